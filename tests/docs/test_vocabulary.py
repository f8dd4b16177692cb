"""What people read uses the field's words: private ones are counted, and their number may only go down."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from executable_prose.project import DOCS, ROOT

RULES = tomllib.loads(Path(__file__).with_name("vocabulary.toml").read_text(encoding="utf-8"))
PAGES = [path for path in sorted(DOCS.rglob("*.md")) if path.name != "changes.md"]
TABLES = [DOCS / "broken/register.toml", DOCS / "dialects.toml"]
# Docstrings, messages, axis labels and printed tables. snippets/ has copies of what packages/ has.
SOURCES = [
    "exhibits",
    "guide",
    "labs",
    "snippets",
    "packages/check-positions/src",
    "packages/executable-prose/src",
]
CODE = [file for folder in SOURCES for file in sorted((ROOT / folder).rglob("*.py"))]
# Code, formulas, link targets, tags, inserted values and ids.
HIDDEN = re.compile(r"^id = .*|`[^`]*`|\$[^$]*\$|\]\([^)]*\)|<[^>]*>|\{[^}]*\}|>>> .*")


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


def strings(source):
    """Yield the number and the words of each line of a string that is a sentence or a label, not code."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            for offset, line in enumerate(node.value.splitlines()):
                if not re.search(r"\w = |\w\(|^ {4,}", line):
                    yield node.lineno + offset, HIDDEN.sub(lambda m: " " * len(m[0]), line)


def findings(lines):
    """Return each private word or pattern in numbered lines, with its line and what to write instead."""
    found = []
    for number, line in lines:
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


@pytest.mark.parametrize(
    ("files", "lines", "allowed"),
    [([*PAGES, *TABLES], sentences, "allowed"), (CODE, strings, "allowed_in_code")],
)
def test_private_words_become_fewer(files, lines, allowed):
    texts = {file.relative_to(ROOT): lines(file.read_text("utf-8")) for file in files}
    found = [f"{file}:{each}" for file, text in texts.items() for each in findings(text)]
    told = [*found, f"{len(found)} findings; tests/docs/vocabulary.toml has {allowed} = {RULES[allowed]}"]
    assert len(found) <= RULES[allowed], "\n".join(told)


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
    found = findings(sentences(text))
    assert len(found) == len(expected)
    assert all(word in each for word, each in zip(expected, found, strict=True))
