"""What readers type into the search, and the page that must come first: asked of the theme's worker."""

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
    assert {"guide/rope/", "glossary/"} <= set(found["2d"])


def search(site, queries):
    """For each query the pages that are found, best first."""
    (worker,) = site.glob("assets/javascripts/workers/search.*.min.js")
    command = ["node", Path(__file__).with_name("search.js"), worker, site / "search" / "search_index.json"]
    done = subprocess.run(command, input=json.dumps(queries), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_what_is_alike_on_all_pages_or_belongs_to_a_figure_is_not_searched(built):
    documents = json.loads((built.root / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    index = " ".join(" ".join(re.sub(r"<[^>]*>", " ", each["text"]).split()) for each in documents)
    assert "You will be able to" not in index
    # What a live figure says and its call, and what a lab's check says to a solution.
    parts = ".live .says, .live pre, .live .place, details.success .place"
    told = {e.get_text(" ", strip=True) for page in built.pages for e in built.soup(page).select(parts)}
    assert len(told) > 20
    assert [text for text in told if html.escape(" ".join(text.split()), quote=False) in index] == []
