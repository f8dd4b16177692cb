"""The engine knows no folder, file or chapter of the site that it was first written for."""

import ast
import hashlib
import re

import pytest

from executable_prose import project
from prose_testing.projects import PACKAGE

ROOMS = "snippets|exhibits|experiments|in_a_model"
CHAPTERS = "|".join(path.stem for path in sorted((PACKAGE.parents[1] / "docs/guide").glob("*.md")))
NAMES = re.compile(
    rf"\b(?:snippets|experiments|in_a_model)\b|\b(?:{ROOMS}|guide|reference)[/.]|\b(?:{CHAPTERS})\.md\b"
    rf"|^(?:{ROOMS}|guide|reference)$"
)
OTHERS = (*ROOMS.split("|"), "guide", "labs", "tests")


def named(source):
    """What a module names of the site in its strings, but for docstrings, and what of it it imports."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value.value = ""  # a docstring: its words are for people
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and NAMES.search(node.value):
            yield f"line {node.lineno}: {node.value!r}"
        for module in imported(node):
            if module.partition(".")[0] in OTHERS:
                yield f"line {node.lineno}: import of {module}"


def imported(node):
    if isinstance(node, ast.Import):
        return [each.name for each in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module else []


@pytest.mark.parametrize(
    "file", sorted(project.ENGINE.rglob("*.py")), ids=lambda file: file.relative_to(project.ENGINE).as_posix()
)
def test_no_module_names_the_site(file):
    assert not list(named(file.read_text(encoding="utf-8")))


@pytest.mark.parametrize("file", sorted((project.ENGINE / "assets").iterdir()), ids=lambda file: file.name)
def test_nothing_that_it_brings_names_the_site(file):
    text = re.sub(r"/\*.*?\*/|^\s*//.*", "", file.read_text(encoding="latin-1"), flags=re.S | re.M)
    assert not re.search(rf"\b(?:{ROOMS}|guide|reference)/|\b(?:{CHAPTERS})\.md\b", text)


@pytest.mark.parametrize(
    "source",
    [
        'x = "snippets/"',
        'x = "snippets"',
        "x = f'snippets/{name}.py'",
        'x = "exhibits"',
        'x = f"exhibits.{name}"',
        'x = ["exhibits/a.py"]',
        'def f(folder="experiments"): pass',
        'x = "the in_a_model of it"',
        'x = "guide/"',
        'x = f"docs/reference/{name}.md"',
        'x = "rope.md"',
        "import snippets.rope",
        "from guide import levels",
        "def f():\n    from tests import bench",
    ],
)
def test_a_name_of_the_site_would_be_seen(source):
    assert list(named(source))


@pytest.mark.parametrize(
    "source", ['"""As in snippets/."""', 'x = f"{n} exhibits ran"', 'x = "relative"', "from a import labs"]
)
def test_common_words_are_no_names(source):
    assert not list(named(source))


@pytest.mark.parametrize(
    ("file", "digest"),
    [
        ("micropython.mjs", "c2be87e7ba24e3b47d133022b009a66bff07f4720aa23d816d216ef8cc47014c"),
        ("micropython.wasm", "06338c955b03c5700aa0069015d3e392d76836ef8e2ce25bedbe59b88ccd373c"),
    ],
)
def test_the_python_of_the_page_is_that_of_npm(file, digest):
    """As `npm pack @micropython/micropython-webassembly-pyscript@1.27.0` brings it."""
    assert hashlib.sha256((project.ENGINE / "assets" / file).read_bytes()).hexdigest() == digest
