"""The prose uses the field's words: private ones are counted, and their number may only go down."""

import re
import tomllib
from pathlib import Path

import pytest

from executable_prose.project import DOCS

RULES = tomllib.loads(Path(__file__).with_name("vocabulary.toml").read_text(encoding="utf-8"))
PAGES = [path for path in sorted(DOCS.rglob("*.md")) if path.name != "changes.md"]
# Code, formulas, link targets and tags.
HIDDEN = re.compile(r"`[^`]*`|\$[^$]*\$|\]\([^)]*\)|<[^>]*>")


def sentences(text):
    """Yield the number and the prose of each line, outside front matter, listings and plain words."""
    text = re.sub(r"\A---\n.*?\n---\n", lambda m: "\n" * m[0].count("\n"), text, flags=re.S)
    fence, plain = "", False
    for number, line in enumerate(text.splitlines(), 1):
        if opening := re.match(r"\s*```(\S*)", line):
            fence = "" if fence else opening[1] or "code"
            continue
        if line and not line.startswith(" "):
            plain = line.startswith("??? level-layman")
        if not plain and fence in ("", "exhibit"):
            yield number, HIDDEN.sub(lambda m: " " * len(m[0]), line)


def findings(text):
    """Return each private word or pattern in a page's prose, with its line and what to write instead."""
    found = []
    for number, line in sentences(text):
        for rule in RULES["word"]:
            for hit in re.finditer(rf"\b(?:{rule['not']})\b", line, re.I):
                if not _is_excepted(rule, line[: hit.start()], line[hit.end() :]):
                    found.append(f"{number}: {hit[0]!r}: {rule['but']}")
        for rule in RULES["pattern"]:
            if hit := re.search(rule["not"], line.strip()):
                found.append(f"{number}: {hit[0]!r}: {rule['but']}")
    return found


def _is_excepted(rule, before, after):
    return bool(
        ("before" in rule and re.search(rf"(?:{rule['before']})$", before))
        or ("after" in rule and re.match(rule["after"], after))
    )


def test_private_words_become_fewer():
    found = [
        f"{page.relative_to(DOCS)}:{each}" for page in PAGES for each in findings(page.read_text("utf-8"))
    ]
    told = [*found, f"{len(found)} findings; tests/docs/vocabulary.toml allows {RULES['allowed']}"]
    assert len(found) <= RULES["allowed"], "\n".join(told)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The key takes the first place, in place of a turn.", ["'turn'"]),
        ("A table is turned into sinusoids.", []),
        ("Keys are turned at each place.", ["'place'", "'turned'"]),
        ("In a `place`, $turn$ and [it](turn.md).", []),
        ('??? level-layman "In plain words: turn"\n\n    Turn at each place.\n', []),
        ("```python\nturn = place\n```", []),
        ("```exhibit a.b\nThe place of the key.\n```", ["'place'"]),
        ("What stands far from the query in a text, is hidden.", ["'What"]),
    ],
)
def test_what_counts_as_a_finding(text, expected):
    found = findings(text)
    assert len(found) == len(expected)
    assert all(word in each for word, each in zip(expected, found, strict=True))
