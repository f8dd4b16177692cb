"""The page that takes a config.json: its script says what the file to copy says, and what is pasted stays.

Needs Node, the built site and Chromium.
"""

import json
import subprocess
import time
import tomllib

import pytest

from executable_prose import project
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
    assert page.get_by_role("button", name="Copy all code").is_disabled()


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
    page.get_by_role("button", name="Copy all code").click()
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
    assert not page.locator(".config textarea").is_visible()
    assert page.locator(".config noscript p").is_visible()
    page.locator("article details").evaluate_all("all => all.forEach((each) => { each.open = true; })")
    assert page.get_by_text("frequencies = llama3(").is_visible()
    assert page.locator("article table").get_by_text("original_length").first.is_visible()
