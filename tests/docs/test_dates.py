"""Sentences that say which models do what name a day or version, and are looked at when the pin moves."""

import re

from executable_prose import project

VERSION = re.compile(r"\bTransformers\*{0,2}(?:\]\([^)]*\))?,? (?:version )?(\d+\.\d+\.\d+)", re.I)
PLACES = ("docs/**/*.md", "snippets/*.py", "exhibits/*.py")
OLDER = {"4.57.6"}  # asked besides, for the table of dialects
CHAPTERS = sorted((project.ROOT / "docs/guide").glob("*.md"))


def named(text):
    """Each version of transformers that a text names, with its line."""
    text = re.sub(r"\s", " ", text)
    return [match[1] for match in VERSION.finditer(text)]


def test_every_named_version_of_transformers_is_the_pinned_one():
    pins = (project.ROOT / "requirements-test.lock").read_text("utf-8")
    wanted = re.search(r"^transformers==([\d.]+)", pins, re.M)[1]
    files = [file for place in PLACES for file in project.ROOT.glob(place)]
    found = {file.relative_to(project.ROOT).as_posix(): set(named(file.read_text("utf-8"))) for file in files}
    others = {
        name: versions - {wanted} - OLDER for name, versions in found.items() if versions - {wanted} - OLDER
    }
    assert others == {}, f"the tests run {wanted}: look at what these say of models, then name it"
    assert sum(bool(versions) for versions in found.values()) > 5


def test_another_version_would_be_found():
    text = "It is so in [Transformers](../a.md#b), version 4.1.0, and in\nTransformers 5.0.1."
    assert named(text) == ["4.1.0", "5.0.1"]


def cells(path):
    return [line for line in path.read_text("utf-8").split("\n") if line.startswith("| Who uses it |")]


def test_who_uses_it_leads_to_a_source_with_its_day_or_version():
    sources = (project.ROOT / "docs/bibliography.md").read_text("utf-8")
    dated = re.compile(r"\b(?:19|20)\d\d\b|version \d|\b[Tt]ransformers \d|at [0-9a-f]{7}")
    lines = [line for path in CHAPTERS for line in cells(path)]
    named = [anchor for line in lines for anchor in re.findall(r"bibliography\.md#([\w-]+)", line)]
    entries = {anchor: sources[sources.index(f'id="{anchor}"') :].split("\n\n")[0] for anchor in named}
    undated = [anchor for anchor, entry in entries.items() if not dated.search(entry)]
    assert entries and not undated, "these in bibliography.md have neither a day nor a version"
