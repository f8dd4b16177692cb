"""The page that takes a config.json: its script says what the file to copy says, and what is pasted stays.

Needs Node, the built site and Chromium.
"""

import json
import subprocess
import time
import tomllib

import pytest

from check_positions.comparison import WORDS, compare
from check_positions.config import describe_config
from check_positions.explanation import explain
from executable_prose import project
from guide.config_page import known
from snippets import read_config
from tests.configurations import BROKEN, KINDS, configurations

pytestmark = pytest.mark.browser

RUN = """
import { readConfig } from %s;
import { readFileSync } from "node:fs";
const { known, texts } = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(texts.map((text) => readConfig(text, known))));
"""
HOSTILE = (
    "</textarea></script><img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"
)


def by_the_page(texts):
    """What the script makes of texts."""
    known = {"table": tomllib.loads(read_config.TABLE), "measured": read_config.MEASURED}
    script = RUN % json.dumps((project.DOCS / "assets" / "read_config.js").as_uri())
    done = subprocess.run(
        ["node", "--input-type=module", "-e", script],
        input=json.dumps({"known": known, "texts": texts}),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def by_the_file(texts):
    return [[list(part) for part in read_config.read_config(text)] for text in texts]


@pytest.mark.claim(
    "add-both-say-the-same",
    "The page's script and read_config.py return the same parts, word for word, for the defaults of sixty "
    "model types of transformers 5.23.0, with every scaling of RoPE written in both dialects and with "
    "names and values changed at random, and for thirty broken texts.",
)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_both_give_the_same_words(seed):
    texts = configurations(seed=seed) + [text for text, _ in BROKEN.values()]
    assert len(set(KINDS)) >= 60 and len(BROKEN) >= 30
    ours = by_the_file(texts)
    for text, page, copied in zip(texts, by_the_page(texts), ours, strict=True):
        assert page == copied, text[:2000]
    answered = sum(any(kind == "code" for kind, _ in parts) for parts in ours)
    assert 0.3 < answered / len(texts) < 0.9, "else one kind of answer is hardly compared"


EXPLAINED = """
import { explainConfig, compareConfigs } from %s;
import { readFileSync } from "node:fs";
const { known, texts } = JSON.parse(readFileSync(0, "utf8"));
const after = (n) => texts[(n + 1) %% texts.length];
const both = texts.map((text, n) => [explainConfig(text, known), compareConfigs([text, after(n)], known)]);
console.log(JSON.stringify(both));
"""


def by_the_command(text, after):
    """The lines of `positions explain` and of `positions compare`."""
    try:
        told = [describe_config(each) for each in (text, after)]
        found = compare(*told)
    except ValueError as error:
        return explain(told[0]), [f"! {error}"]
    guesses = [f"! {WORDS['guess'].format(kind=each.model_type)}" for each in told if each.guess]
    lines = "\n".join(map(str, found)).split("\n") if found else [WORDS["same"]]
    return explain(told[0]), guesses + lines


@pytest.mark.claim(
    "add-explains-as-the-command",
    "The page and the commands positions explain and positions compare print the same lines for the defaults "
    "of sixty model types of transformers 5.23.0 with every scaling of RoPE, with names and values changed "
    "at random, each compared with the next one.",
)
def test_both_explain_and_compare_in_the_same_words():
    texts = configurations(seed=0)
    script = EXPLAINED % json.dumps((project.DOCS / "assets" / "explain.js").as_uri())
    done = subprocess.run(
        ["node", "--input-type=module", "-e", script],
        input=json.dumps({"known": known(), "texts": texts}),
        capture_output=True,
        text=True,
        check=True,
    )
    for n, (explained, compared) in enumerate(json.loads(done.stdout)):
        want = by_the_command(texts[n], texts[(n + 1) % len(texts)])
        assert (explained, compared) == want, texts[n][:2000]


def test_a_model_is_explained_and_compared_on_the_page(visit):
    page = visit("add/").page
    first = json.dumps({"model_type": "llama", "num_hidden_layers": 2, "rope_theta": 1e4})
    page.get_by_label("Your config.json", exact=False).fill(first)
    page.get_by_label("Explanation").check()
    lines, compared = by_the_command(first, first.replace("10000.0", "500000.0"))
    told = page.locator(".config .answer > *").all_text_contents()
    assert told == [line.strip().removeprefix("! ") for line in lines if line]
    assert page.locator(".answer > p a").get_attribute("href") == "../guide/rope/"
    page.get_by_label("Comparison with a second file").check()
    assert page.get_by_role("status").text_content() == "Paste the second file."
    page.get_by_label("The second config.json").fill(first.replace("10000.0", "500000.0"))
    told = page.locator(".config .answer > *").all_text_contents()
    assert told == [line.strip() for line in compared] and "base 10,000 against base 500,000" in told[0]


def test_a_link_names_the_model_and_the_view_and_holds_no_pasted_text(visit):
    page = visit("add/#model=gemma2&show=explanation").page
    assert page.get_by_label("Known models").input_value() == "gemma2"
    assert page.locator(".config .answer > h2").text_content() == "gemma2: RoPE in every layer"
    link = page.get_by_role("button", name="Copy a link to this model")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    link.click()
    address = page.evaluate("navigator.clipboard.readText()")
    assert address.endswith("/add/#model=gemma2&show=explanation")
    page.get_by_label("Your config.json", exact=False).fill('{"model_type": "secret"}')
    assert link.is_disabled()


def shown(page):
    """The parts of the answer that stands on the page."""
    return page.locator(".config .answer > *").evaluate_all(
        "all => all.map((e) => [e.className, e.textContent])"
    )


def test_what_is_pasted_is_answered_on_the_page(visit):
    page = visit("add/").page
    text = json.dumps({"model_type": "llama", "head_dim": 64, "rope_theta": 5e5, "num_hidden_layers": 2})
    page.get_by_label("Your config.json", exact=False).fill(text)
    assert [shown(page)] == by_the_file([text])
    page.get_by_label("Your config.json", exact=False).fill("")
    assert shown(page) == []


def test_the_page_opens_with_an_example_which_pasting_replaces(visit):
    page = visit("add/").page
    box, kinds = page.get_by_label("Your config.json", exact=False), page.get_by_label("Known models")
    assert "Llama 3.1" in kinds.input_value() and [shown(page)] == by_the_file([box.input_value()])
    box.focus()
    page.keyboard.insert_text('{"model_type": "gptj"}')
    assert box.input_value() == '{"model_type": "gptj"}' and kinds.input_value() == ""


def test_a_known_model_can_be_chosen_changed_and_cleared(visit):
    page = visit("add/").page
    kinds, box = page.get_by_label("Known models"), page.get_by_label("Your config.json", exact=False)
    for kind in ("gpt_oss", "gemma3_text", "t5", "Llama 3.1, as released for transformers 4"):
        kinds.select_option(label=kind)
        assert [shown(page)] == by_the_file([box.input_value()])
        assert page.locator(".answer .code").count() >= 3
    box.press("End")
    box.type(" ")
    assert kinds.input_value() == ""
    page.locator(".config [name=clear]").click()
    assert box.input_value() == "" and shown(page) == []
    assert page.get_by_role("button", name="Copy the answer").is_disabled()


@pytest.mark.claim(
    "add-sends-nothing",
    "While texts are pasted into the page that takes a config.json, a model is chosen and code is copied, "
    "the page sends no requests, changes neither localStorage nor cookies, and does not change its "
    "address.",
)
def test_nothing_leaves_the_page(visit):
    visited = visit("add/")
    visited.settle()
    page, before = visited.page, len(visited.requests)
    state = "[location.href, JSON.stringify(localStorage), document.cookie, history.length]"
    kept = page.evaluate(state)
    for text, _ in list(BROKEN.values())[:20]:
        page.get_by_label("Your config.json", exact=False).fill(text[:20_000])
    page.get_by_label("Known models").select_option("llama")
    page.get_by_role("button", name="Copy the answer").click()
    visited.settle()
    assert len(visited.requests) == before and page.evaluate(state) == kept
    assert "connect-src" not in page.content() and "default-src 'self'" in page.content()


def test_what_is_pasted_is_text_whatever_it_is(visit):
    visited = visit("add/")
    page, title = visited.page, visited.page.title()
    for config in (
        {"model_type": HOSTILE, "rope_theta": 5e5, "head_dim": 64},
        {"model_type": "llama", HOSTILE: HOSTILE, "rope_scaling": {"type": HOSTILE}},
        {"model_type": "gemma2", "layer_types": [HOSTILE]},
    ):
        box = page.get_by_label("Your config.json", exact=False)
        box.fill(json.dumps(config))
        assert page.locator(".answer :is(img, script, a)").count() == 0
        assert [shown(page)] == by_the_file([box.input_value()])
        assert box.input_value() == json.dumps(config)
    assert page.title() == title and visited.problems == []


def test_two_megabytes_do_not_freeze_the_page_and_are_not_lost(visit):
    page = visit("add/").page
    text = '{"a": "' + 2_000_000 * "x" + '"}'
    begin = time.monotonic()
    page.evaluate(
        """(text) => { const box = document.querySelector(".config textarea");
        box.value = text; box.dispatchEvent(new Event("input")); }""",
        text,
    )
    assert shown(page)[1][1].startswith("A config.json must have at most 1000000 characters")
    assert time.monotonic() - begin < 5
    assert len(page.get_by_label("Your config.json", exact=False).input_value()) == len(text)


def test_without_scripts_the_page_shows_keys_and_answers_and_no_box(visit):
    page = visit("add/", javascript=False).page
    assert not any(box.is_visible() for box in page.locator(".config textarea").all())
    assert page.locator(".config noscript p").is_visible()
    page.locator("article details").evaluate_all("all => all.forEach((each) => { each.open = true; })")
    assert page.get_by_text("frequencies = llama3(").is_visible()
    assert page.locator("article table").get_by_text("original_length").first.is_visible()
