"""Mermaid diagrams become SVG of the site's colours."""

import contextlib
import re
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace

import pytest

from executable_prose.execution import results
from executable_prose.figures import mermaid

DIAGRAM = """
flowchart LR
  accTitle: Two boxes
  accDescr: An arrow leads from one to the other.
  A[one] -->|then| B["two (2)"]
"""


SEQUENCE = """
sequenceDiagram
  accTitle: Two that talk
  accDescr: One asks, the other answers, in a loop.
  participant A as one
  participant B as two
  loop each day
    A->>B: asks
    B-->>A: answers
    Note over A,B: both agree
  end
"""


@pytest.fixture(scope="module")
def drawn():
    """What Mermaid draws, once: its engine takes a second to start."""
    return mermaid.draw.__wrapped__(DIAGRAM)


@pytest.fixture
def render(here, monkeypatch, drawn):
    monkeypatch.setattr(mermaid, "draw", lambda source: drawn)
    return mermaid.render


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


def test_the_ids_of_another_diagram_are_others(drawn):
    other = mermaid.draw.__wrapped__(DIAGRAM.replace("one]", "1]"))
    ids = [set(re.findall(r'\bid="([^"]+)"', svg)) for svg in (drawn, other)]
    assert ids[0] and not ids[0] & ids[1]


GROUPED = """
flowchart TB
  accTitle: Groups
  accDescr: Two groups, one in the other, whose boxes have classes and long words.
  subgraph outer["an outer group"]
    A["a box whose words need more than one line"]:::in
    subgraph inner
      B{"a question?"} -- "no" --> C(("a *ring*"))
    end
  end
  A --> B
  C -.-> D[/"a slope"/]
  classDef in font-weight:bold
  class B,D other
"""


@pytest.fixture(scope="module")
def alone():
    """A function that draws as the library does: each diagram in a context of its own, without haste."""
    from mermaidx.engines.quickjs_engine import Engine  # not above: what it loads must not be frozen

    engine = Engine()
    engine.start()

    def alone(source):
        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(mermaid, "_engine", lambda: engine)
            return mermaid.draw.__wrapped__(source)

    yield alone
    engine.close()


@pytest.mark.slow
@pytest.mark.parametrize("source", [DIAGRAM, GROUPED, SEQUENCE])
def test_haste_and_what_was_drawn_before_change_nothing(source, alone):
    for other in (SEQUENCE, DIAGRAM, SEQUENCE.replace("loop", "lop")):
        with contextlib.suppress(mermaid.DiagramError):
            mermaid.draw.__wrapped__(other)
    assert mermaid.draw.__wrapped__(source) == alone(source)


def test_the_diagrams_of_pages_are_found_as_the_pages_give_them(monkeypatch):
    """So that they can be drawn at the same time as exhibits run."""
    monkeypatch.setattr(mermaid, "draw", SimpleNamespace(is_known=lambda source: source == "known"))
    pages = [
        "# A\n\n```mermaid\none\n  two\n```\n\n```python\nx\n```\n",
        "??? note\n\n    ````mermaid\n    three\n      four\n    ````\n",
        "```mermaid\nknown\n```\n",
    ]
    assert mermaid.undrawn(results._diagrams(pages)) == ["one\n  two", "three\n  four"]


def test_mermaids_picture_of_an_error_is_refused_however_it_came(render, drawn, monkeypatch):
    picture = re.sub(r"<title .*</desc>", "", drawn)
    assert picture != drawn
    monkeypatch.setattr(mermaid, "draw", lambda source: picture)
    with pytest.raises(mermaid.DiagramError, match=r"a picture that says 'then one two \(2\)' and not the"):
        render(DIAGRAM)


def test_a_kind_without_a_size_is_refused(here):
    with pytest.raises(mermaid.DiagramError, match="this kind of diagram no size"):
        mermaid.render("info\n  accTitle: One\n  accDescr: Two.\n")


def test_a_diagram_that_brings_its_own_colours_is_refused(render, drawn, monkeypatch):
    monkeypatch.setattr(mermaid, "draw", lambda source: drawn.replace("<rect ", '<rect fill="#eaeaea" ', 1))
    with pytest.raises(mermaid.DiagramError, match="brings colours of its own; flowcharts and sequences"):
        render(DIAGRAM)


def test_a_sequence_follows_the_palette_and_keeps_its_arrow_heads(here):
    svg = mermaid.render(SEQUENCE)
    assert not re.search(r"<style|<defs|<symbol|#[0-9a-fA-F]{3,6}\b|rgb\(", re.sub(r"url\(#[^)]*\)", "", svg))
    root = ElementTree.fromstring(svg)
    ids = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    assert len(ids) == len(set(ids)) and all("diagram-" in id for id in ids)
    heads = set(re.findall(r'marker-end="url\(#([^)]+)\)"', svg))
    assert heads and heads <= set(ids)
    boxes = [box for box in root.iter("rect") if box.attrib["class"].startswith("actor ")]
    assert len(boxes) == 2
    assert "both agree" in "".join(root.itertext())


def test_a_sequence_with_colours_of_its_own_is_refused(here):
    coloured = SEQUENCE.replace("  loop each day", "  rect rgb(0, 0, 255)")
    with pytest.raises(mermaid.DiagramError, match="brings colours of its own"):
        mermaid.render(coloured)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('B["two (2)"]', "B[two (2)]", "Parse error on line"),
        ("flowchart", "flowchrt", "No diagram type detected"),
    ],
)
def test_what_mermaid_cannot_draw_is_refused_in_one_line(here, old, new, message):
    with pytest.raises(mermaid.DiagramError) as error:
        mermaid.render(DIAGRAM.replace(old, new))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("accTitle: Two boxes", ""),
        ("accTitle: Two boxes", "accTitle: "),
        ("accDescr: An arrow leads from one to the other.", ""),
    ],
)
def test_what_cannot_be_heard_is_refused(here, old, new):
    with pytest.raises(mermaid.DiagramError, match="needs a line 'accTitle: …' and a line 'accDescr: …'"):
        mermaid.render(DIAGRAM.replace(old, new))
