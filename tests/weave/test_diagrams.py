"""Mermaid diagrams become SVG of the site's colours."""

import hashlib
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from weave import diagrams

DIAGRAM = """
flowchart LR
  accTitle: Two boxes
  accDescr: An arrow leads from one to the other.
  A[one] -->|then| B["two (2)"]
"""


@pytest.fixture(scope="module")
def drawn():
    """What Mermaid draws, once: its engine takes a second to start."""
    return diagrams._draw(DIAGRAM)


@pytest.fixture
def engine(monkeypatch, drawn):
    """The sources that reach Mermaid; it draws the same whatever they say."""
    sources = []
    monkeypatch.setattr(diagrams, "_draw", lambda source: sources.append(source) or drawn)
    return sources


@pytest.fixture
def render(here, engine):
    return diagrams.render


def stored(here):
    (path,) = (here.root / ".cache" / "weave" / "diagrams").iterdir()
    return path


def test_a_diagram_is_an_image_with_a_title_and_a_description(render):
    svg = ElementTree.fromstring(render(DIAGRAM))
    assert svg.attrib["role"] == "img"
    named = {element.attrib.get("id"): element.text for element in svg.iter()}
    assert named[svg.attrib["aria-labelledby"]] == "Two boxes"
    assert named[svg.attrib["aria-describedby"]] == "An arrow leads from one to the other."


def test_its_words_are_text(render):
    text = " ".join("".join(ElementTree.fromstring(render(DIAGRAM)).itertext()).split())
    for label in ("one", "then", "two (2)"):
        assert label in text


def test_it_brings_no_colours_and_no_style_sheet_of_its_own(render):
    svg = render(DIAGRAM)
    assert not re.search(r"<style|<script|foreignObject|#[0-9a-fA-F]{6}\b|rgb\(|hsl\(", svg)
    (style,) = re.findall(r'\bstyle="([^"]*)"', svg.replace("font-style", ""))
    assert re.fullmatch(r"width:\d+px(;min-width:\d+px)?", style)


def test_every_id_is_the_diagrams_own_and_every_reference_leads_somewhere(render):
    svg = render(DIAGRAM)
    ids = re.findall(r'\bid="([^"]+)"', svg)
    assert len(ids) == len(set(ids))
    assert all("diagram-" in id for id in ids)
    assert set(re.findall(r"url\(#([^)]+)\)", svg)) <= set(ids)
    assert not set(ids) & set(re.findall(r'\bid="([^"]+)"', render(DIAGRAM.replace("one]", "1]"))))


def test_it_is_drawn_once(render, engine):
    assert render(DIAGRAM) == render(DIAGRAM)
    assert engine == [DIAGRAM]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: data[:500] + bytes([data[500] ^ 1]) + data[501:],
        lambda data: b"\xff" + data,
    ],
    ids=["empty", "half", "one bit", "not text"],
)
def test_a_damaged_entry_is_drawn_again(render, engine, here, damage):
    first = render(DIAGRAM)
    whole = stored(here).read_bytes()
    stored(here).write_bytes(damage(whole))
    assert render(DIAGRAM) == first
    assert stored(here).read_bytes() == whole
    assert len(engine) == 2


@pytest.mark.parametrize("library", ["mermaidx", "novasvg"])
def test_another_version_of_a_library_draws_again(render, engine, monkeypatch, library):
    version = diagrams.importlib.metadata.version
    render(DIAGRAM)
    monkeypatch.setattr(
        diagrams.importlib.metadata, "version", lambda name: "0" if name == library else version(name)
    )
    render(DIAGRAM)
    assert len(engine) == 2


def test_another_version_of_this_code_draws_again(render, engine, monkeypatch):
    render(DIAGRAM)
    monkeypatch.setattr(diagrams, "CODE", "edited")
    render(DIAGRAM)
    assert len(engine) == 2
    monkeypatch.undo()
    assert hashlib.sha256(Path(diagrams.__file__).read_bytes()).hexdigest() == diagrams.CODE


def test_a_diagram_that_brings_its_own_colours_is_refused(render, drawn, monkeypatch):
    monkeypatch.setattr(diagrams, "_draw", lambda source: drawn.replace("<rect ", '<rect fill="#eaeaea" ', 1))
    with pytest.raises(diagrams.DiagramError, match="brings colours of its own; a flowchart"):
        render(DIAGRAM)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('B["two (2)"]', "B[two (2)]", "Parse error on line"),
        ("flowchart", "flowchrt", "No diagram type detected"),
    ],
)
def test_what_mermaid_cannot_draw_is_refused_in_one_line(here, old, new, message):
    with pytest.raises(diagrams.DiagramError) as error:
        diagrams.render(DIAGRAM.replace(old, new))
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert not list(here.root.rglob("*.svg"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("accTitle: Two boxes", ""),
        ("accTitle: Two boxes", "accTitle: "),
        ("accDescr: An arrow leads from one to the other.", ""),
    ],
)
def test_what_cannot_be_heard_is_refused(render, engine, old, new):
    with pytest.raises(diagrams.DiagramError, match="needs a line 'accTitle: …' and a line 'accDescr: …'"):
        render(DIAGRAM.replace(old, new))
    assert not engine
