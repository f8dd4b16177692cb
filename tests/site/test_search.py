"""What readers type into the search, and the page that must come first: asked of the theme's worker."""

import gzip
import html
import json
import re
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

FIRST = {
    "guide/order/": ["order", "why order is lost", "bag of words", "equivariance", "permutation invariant"],
    "guide/sinusoidal/": [
        "sinusoidal",
        "sine cosine",
        "sinusoids",
        "fixed positional encoding",
        "wavelength",
    ],
    "guide/learned/": ["learned positions", "position embedding table", "BERT positions", "GPT-2 positions"],
    "guide/relative/": ["relative positions", "relative attention", "distance instead of place", "T5 bias"],
    "guide/rope/": ["rope", "RoPE", "rotary", "rotary embedding", "rope theta", "rope_theta", "rotate_half"],
    "guide/bias/": ["ALiBi", "alibi slopes", "linear bias", "attention bias", "KERPLE", "FIRE"],
    "guide/long-context/": [
        "long context",
        "context window",
        "extend context",
        "NTK",
        "YaRN",
        "YaRN factor",
        "rope scaling",
        "position interpolation",
        "LongRoPE",
        "dynamic ntk",
    ],
    "guide/no-position/": ["NoPE", "no positions", "without positional encoding"],
    "guide/read/": ["CoPE"],
    "guide/images/": ["mrope"],
    "guide/in-a-transformer/": [
        "KV cache",
        "position ids",
        "position_ids",
        "padding",
        "left padding",
        "packing",
        "causal mask",
    ],
    "guide/choosing/": ["which encoding", "compare encodings", "what does Llama use", "LLM", "best encoding"],
    "guide/evidence/": [
        "extrapolation",
        "length generalisation",
        "length generalization",
        "extrapolate",
        "benchmark",
        "perplexity",
    ],
    "guide/applications/": ["translation", "translator", "text generation", "temperature"],
    "guide/debugging/": ["debug", "wrong positions", "common mistakes", "model gives bad output"],
    "guide/myths/": ["myths", "is it true", "misconceptions"],
    "": ["ChatGPT", "transformer"],
    "add/": ["config.json"],
    "labs/": ["exercises", "labs"],
    "glossary/": ["glossary"],
    "claims/": ["claims"],
}
SHARE = 0.95


def test_what_is_searched_for_comes_first(built):
    wanted = {query: page for page, queries in FIRST.items() for query in queries}
    found = search(built.root, list(wanted))
    others = [
        f"{query!r} finds {found[query][:1]}, not /{page}"
        for query, page in wanted.items()
        if found[query][:1] != [page]
    ]
    share = 1 - len(others) / len(wanted)
    print(f"{share:.0%} of {len(wanted)} queries find their page first", *others, sep="\n")
    assert len(wanted) >= 40
    assert share >= SHARE


def test_a_search_for_pictures_finds_the_chapters_that_speak_of_them(built):
    found = search(built.root, ["2d rope", "2d rope vision", "mrope", "2d"])
    assert {found["2d rope"][0], found["2d rope vision"][0]} <= {"guide/images/", "guide/rope/"}
    assert found["mrope"][0] in ("guide/images/", "glossary/", "reference/mrope/")
    assert {"guide/images/", "glossary/"} <= set(found["2d"])


def search(site, queries):
    """For each query the pages that are found, best first."""
    return asked(site, queries)["found"]


def asked(site, queries):
    (worker,) = site.glob("assets/javascripts/workers/search.*.min.js")
    command = ["node", Path(__file__).with_name("search.js"), worker, site / "search" / "search_index.json"]
    done = subprocess.run(command, input=json.dumps(queries), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_the_first_answer_takes_less_than_a_second_of_work_and_little_to_load(built):
    seconds = asked(built.root, ["mrope"])["seconds"]
    loaded = len(gzip.compress((built.root / "search" / "search_index.json").read_bytes(), 6))
    print(f"{seconds:.2f} s to the first answer, of {loaded / 1000:.0f} kB")
    assert seconds < 1
    assert loaded < 305_000


def test_what_is_searched_and_what_searches_wait_for_whoever_reaches_for_it(visit):
    page = visit("guide/rope/")
    page.settle()
    assert [each.url for each in page.requests if re.search("search|sitemap", each.url)] == []
    page.page.locator("[data-md-component=search-query]").press_sequentially("mrope")
    page.page.wait_for_selector(".md-search-result__list li")
    assert len([each.url for each in page.requests if "search" in each.url]) == 2
    assert page.problems == []


def test_what_is_alike_on_all_pages_or_belongs_to_a_figure_is_not_searched(built):
    documents = json.loads((built.root / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    index = " ".join(" ".join(re.sub(r"<[^>]*>", " ", each["text"]).split()) for each in documents)
    assert "The chapter takes about" not in index
    # What a live figure says and its call, what a lab's check says to a solution, and where listings stand.
    parts = ".live .says, .live pre, .live .place, details.success .place, p.place"
    told = {e.get_text(" ", strip=True) for page in built.pages for e in built.soup(page).select(parts)}
    assert len(told) > 20
    assert [text for text in told if html.escape(" ".join(text.split()), quote=False) in index] == []
    # A wide formula is letters in a row; the sentences of claims are found where they are stated.
    formulas = {_bare(e.get_text()) for page in built.chapters for e in built.soup(page).select(".formula")}
    assert len(formulas) > 20
    bare = "".join(index.split())
    assert [each for each in formulas if len(each) > 20 and each in bare] == []
    claims = [each["text"] for each in documents if each["location"].startswith("claims/#")]
    assert len(claims) > 20 and not any(claims)


def _bare(text):
    return html.escape("".join(text.split()), quote=False)
