"""The copy of the project that `make bench` builds has all that a build reads, and its edits are edits."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from mkdocs.config import load_config

from executable_prose import labs, project
from executable_prose.execution import provenance
from guide import reference
from tests.bench import builds

BENCH = Path(__file__).parent


@pytest.fixture
def copied(tmp_path, monkeypatch):
    builds.copy(tmp_path)
    monkeypatch.setattr(project, "ROOT", tmp_path)
    monkeypatch.setattr(project, "DOCS", tmp_path / "docs")
    return tmp_path


@pytest.mark.slow
def test_notebooks_and_reference_pages_can_be_made_in_it(copied):
    load_config(str(copied / "mkdocs.yml"))
    assert all("pip install" in labs.notebook(name, False, "") for name in labs.names())
    snippets = {path.stem for path in (copied / "snippets").glob("[!_]*.py")}
    assert any(reference.peers(name) for name in snippets)


@pytest.mark.slow
def test_an_edit_changes_one_function_and_nothing_else():
    for function in {function.file: function for function in builds.functions(project.ROOT)}.values():
        text = (project.ROOT / function.file).read_text(encoding="utf-8")
        before, after = provenance.parts(text), provenance.parts(function.edited(text))
        assert {name for name in after if before[name] != after[name]} == {function.name}


def left_out(pattern):
    configuration = (project.ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    return set(configuration.splitlines()) - set(pattern.sub("", configuration).splitlines())


def test_plain_mkdocs_makes_the_same_pages_without_the_engine():
    own = {"  - executable_prose:", "  - guide"}
    left = left_out(builds.PLAIN)
    assert own <= left and all(line.startswith("      ") for line in left - own)


def test_without_the_tour_no_plugin_for_notebooks_is_loaded():
    assert left_out(builds.NOTEBOOK) == {
        "      - Tour: notebooks/tour.py",
        "  - mkdocs-jupyter:",
        '      include: ["notebooks/*.py"]',
        '      ignore: ["*.md"]  # else it reads every page to see whether it is a notebook',
        "      execute: !ENV [EXECUTE_NOTEBOOKS, false]",
        "      allow_errors: false",
        "      cache: false  # it would not see what a notebook imports",
    }


def test_the_page_of_an_edit_shows_what_the_edit_concerns(copied):
    function = next(each for each in builds.functions(copied) if each.name == "apply_rope")
    assert builds.page_of(copied, function) == "reference/rope/"
    entries = copied / ".cache" / "executable_prose"
    entries.mkdir(parents=True)
    used = '{"files": {}, "modules": {"snippets/rope.py": {"parts": {"FUNCTION": ""}}}}'
    (entries / "rope.spread.0.json").write_text(used.replace("FUNCTION", "apply_rope"))
    (entries / "bias.two_ways.0.json").write_text(used.replace("FUNCTION", "rope_frequencies"))
    assert builds.page_of(copied, function) == "guide/rope/"


def test_the_bench_knows_what_it_can_measure_and_refuses_words_that_it_would_not_read():
    ask = [sys.executable, BENCH]
    said = subprocess.run([*ask, "builds", "rope"], capture_output=True, text=True, check=False)
    assert said.returncode == 2 and "expected no more than builds, got rope" in said.stderr
    known = re.search(r"\{(.+)\}", subprocess.check_output([*ask, "--help"], text=True))[1].split(",")
    assert "rivals" in known
    assert all("\ndef bench(" in (BENCH / f"{name}.py").read_text(encoding="utf-8") for name in known)
