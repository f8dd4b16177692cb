"""Exhibits, snippets and labs learn of files only in ways that the engine's Recorder hears of."""

import re

import pytest

from executable_prose.project import ROOT

UNHEARD = re.compile(
    r"\.(?:exists|is_file|is_dir|stat)\(|\b(?:isfile|isdir|find_spec)\("
    r"|except \(?(?:ImportError|ModuleNotFoundError)"
)
COMMAND = "# --- models of transformers"  # of check_positions.py, which no exhibit runs
FILES = [path for room in ("exhibits", "snippets", "labs") for path in sorted((ROOT / room).glob("*.py"))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_nothing_is_asked_that_nobody_hears(path):
    text = path.read_text(encoding="utf-8").partition(COMMAND)[0]
    for number, line in enumerate(text.splitlines(), 1):
        assert not UNHEARD.search(line), f"line {number}: a change of what this asks would run nothing again"


@pytest.mark.parametrize(
    "line",
    [
        "if path.exists():",
        "if path.is_file():",
        "except ImportError:",
        "except (ImportError, OSError):",
        "os.path.isfile(name)",
    ],
)
def test_what_nobody_hears_is_seen(line):
    assert UNHEARD.search(line)
