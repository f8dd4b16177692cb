"""The list of what a method lacks can name each thing."""

import shutil
import subprocess
import sys

import pytest

from tests import lacking as listing
from tests.lacking import ROOT, files, lacking

SNIPPET = '''# SPDX-License-Identifier: 0BSD
# From The guide, 2026-11-23
r"""Waves: a sine.

    wave[t] = sin(t)

References:
    Vaswani et al. 2017, arXiv:1706.03762, section 3.5.
"""

import torch

BASE = 10000.0


def waves(t):
    """Return the sine.

    Example:
        >>> waves(torch.tensor(0.0))
        tensor(0.)
    """
    return torch.sin(t)
'''
TESTS = 'from snippets.waves import waves\n\n@pytest.mark.claim("waves-end", "They end.")\n'
PAGE = "---\ntitle: waves.py\n---\n\n```reference snippets/waves.py\n```\n"


@pytest.fixture
def house(tmp_path):
    """The files that a method shares with others, without any method's own."""
    for file in ("mkdocs.yml", "docs/bibliography.md", "docs/llms.txt", "experiments/results/peers.json"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    for folder in ("snippets", "tests/snippets", "docs/reference", "docs/guide"):
        (tmp_path / folder).mkdir(parents=True)
    return tmp_path


def edit(path, was, now):
    text = path.read_text(encoding="utf-8")
    assert was in text
    path.write_text(text.replace(was, now, 1), encoding="utf-8")


@pytest.fixture
def whole(house):
    """A method that lacks nothing."""
    for file, text in zip(files("waves"), (SNIPPET, TESTS, PAGE), strict=True):
        (house / file).write_text(text, encoding="utf-8")
    edit(house / "mkdocs.yml", "  - Evidence:", "      - reference/waves.md\n  - Evidence:")
    (house / "CHANGES.md").write_text("- Added waves.py: this file.\n")
    (house / "docs/llms.txt").write_text("- [waves.py](reference/waves/): Waves.\n")
    (house / "docs/guide/chapter.md").write_text(
        "They end. `#!claim waves-end` [Code](../reference/waves.md)\n"
    )
    return house


def test_a_whole_method_lacks_nothing(whole):
    assert list(lacking("waves", whole)) == []


CODE, TEST, REFERENCE = files("waves")


def test_last_lines_may_keep_former_names_of_definitions(whole):
    with (whole / CODE).open("a", encoding="utf-8") as file:
        file.write("\n\nsine = waves\nsines = waves\n")
    assert list(lacking("waves", whole)) == []
    with (whole / CODE).open("a", encoding="utf-8") as file:
        file.write("sinus = torch.sin\n")
    assert [line.split(":")[1] for line in lacking("waves", whole)] == ["26", "27", "28"]


DAMAGES = [
    (CODE, "# SPDX", "# The", f"{CODE}:1: does not say where it is from"),
    ("CHANGES.md", "waves.py", "saves.py", "CHANGES.md: does not say that waves.py was added"),
    (CODE, "Waves: a sine.", "Waves", f"{CODE}:1: the docstring has to say in a sentence"),
    (CODE, "References:\n", "See:\n", f"{CODE}:1: `References:` must name"),
    (CODE, "arXiv:1706.03762", "arXiv:0000.00000", "docs/bibliography.md: does not have arXiv:0000.00000"),
    (CODE, "    >>> ", "    ", f"{CODE}: no docstring has an example"),
    (CODE, "def waves", "def _waves", f"{CODE}: no function and no class"),
    (CODE, 'BASE = 10000.0', "def bare(t):\n    return t", f"{CODE}:13: bare has no docstring"),
    (CODE, "import torch", "import numpy", f"{CODE}:11: imports numpy"),
    (CODE, "import torch", "from . import rope", f"{CODE}:11: a relative import"),
    (CODE, "10000.0", "[10000.0]", f"{CODE}:13: only definitions, constants"),
    (CODE, "10000.0", "float(1)", f"{CODE}:13: only definitions, constants"),
    (CODE, "BASE = 10000.0", "BASE: float = 1.0", f"{CODE}:13: only definitions, constants"),
    (CODE, "BASE = 10000.0", "sine = waves", f"{CODE}:13: only definitions, constants"),
    (CODE, "    return", "    global BASE\n    return", f"{CODE}:23: state that outlives"),
    (CODE, "(t):", "(t, kept=[]):", f"{CODE}:16: a default that every call"),
    (CODE, "    return", "    t.kept = t\n    return", f"{CODE}:23: kept from one call"),
    (CODE, "    return", "    print(t)\n    return", f"{CODE}:23: prints"),
    (CODE, "def waves", "@cache\ndef waves", f"{CODE}:16: a hidden cache"),
    (CODE, "sin(t)\n\nRef", "sin(t)" + " " * 70 + ".\n\nRef", f"{CODE}:5: more than 80 columns"),
    (CODE, "the sine.", "the \\new sine.", f"{CODE}:17: a backslash"),
    (CODE, "return", "return (", f"{CODE}:23: '(' was never closed"),
    (TEST, "snippets.waves", "snippets.rope", f"{TEST}: no test imports snippets.waves"),
    (TEST, "waves-end", "waves-never-end", f"{TEST}: no page states its claim; write `#!claim waves-nev"),
    (TEST, "\n\n", "\n\nsame_as()\n", f"{TEST}: peers.json does not have it"),
    (REFERENCE, "snippets/waves.py", "snippets/rope.py", "docs/reference/waves.md: has to show the file"),
    ("mkdocs.yml", "reference/waves.md", "reference/wave.md", "mkdocs.yml: `nav` has to name"),
    ("docs/llms.txt", "reference/waves/", "waves/", "docs/llms.txt: does not list"),
    ("docs/guide/chapter.md", "waves.md", "rope.md", "docs/guide/: no chapter says"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "was", "now", "said"), DAMAGES, ids=[said for *_, said in DAMAGES])
def test_whatever_is_missing_is_named_with_its_place_and_alone(whole, file, was, now, said):
    edit(whole / file, was, now)
    (line,) = lacking("waves", whole)
    assert line.startswith(said)


def test_a_snippet_that_is_not_there_is_lacking(whole):
    (whole / CODE).unlink()
    assert f"{CODE}: is not there" in list(lacking("waves", whole))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "has to be a Python identifier in lower case, such as fourier; got ''"),
        ("two words", "got 'two words'"),
        ("2d", "got '2d'"),
        ("Rope", "got 'Rope'"),
        ("class", "got 'class'"),
        ("types", "types is taken by a module that a copied types.py would hide"),
        ("torch", "torch is taken by a module"),
    ],
)
def test_a_name_that_cannot_be_is_refused(name, said):
    done = subprocess.run(
        [sys.executable, listing.__file__, name], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_method_that_is_there_is_asked_what_it_lacks():
    said = subprocess.check_output([sys.executable, listing.__file__, "rope"], text=True)
    assert said == "It lacks:\n  nothing\n"
