"""What a reader takes from a figure: pictures that need nothing else, and a frame on another site."""

import re
import xml.etree.ElementTree as ElementTree

import links
import pytest
from budgets import Budget
from checks import AXE, weight
from PIL import Image
from server import serve

pytestmark = pytest.mark.browser

EMBED = Budget(bytes=60_000, requests=8, elements=1_500)
STILL, MOVES, CARDS = "rope.decay", "rope.two_needles", "front.who_bit_whom"
VIOLATIONS = """axe.run({ rules: { region: { enabled: false } } }).then(
  ({ violations }) => violations.map(({ id, nodes }) => [id, nodes[0].html]))"""
SIZES = """(({ scrollHeight, scrollWidth }) => [scrollHeight, innerHeight, scrollWidth, innerWidth])(
  document.documentElement)"""
OUTER = """<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>A course</title>
<h1>A course</h1>{frame}"""


@pytest.fixture
def frame(built, origin, visits, tmp_path):
    """A function that shows a figure on a page of another site, as its line to copy says; page and frame."""
    from contextlib import ExitStack

    with ExitStack() as stack:

        def open_frame(name, **how):
            line = built.soup(f"embed/{name}/").select_one("#embed + pre").text
            there = f"{origin}/guide-base/embed/{name}/"
            assert f"embed/{name}/" in line
            line = re.sub(r'src="[^"]*"', f'src="{there}"', line)
            (tmp_path / "index.html").write_text(OUTER.format(frame=line), encoding="utf-8")
            other = stack.enter_context(serve(tmp_path, "/"))
            visit = stack.enter_context(visits.lend("http://127.0.0.1:", **how))
            visit.go(f"{other.rpartition(':')[2]}/").settle()
            return visit, visit.page.frame(url=there)

        yield open_frame


def test_every_picture_needs_nothing_else_and_the_pixels_are_twice_as_many(built):
    pictures = sorted(built.root.glob("data/*.svg"))
    assert len(pictures) > 100
    for file in pictures:
        text = file.read_text(encoding="utf-8")
        root = ElementTree.fromstring(text)
        assert "var(" not in text, file.name
        for part in root.iter():
            for key, value in part.attrib.items():
                assert not key.endswith("href") or value.startswith(("#", "data:")), (file.name, value)
                assert all(each.startswith("#") for each in re.findall(r"url\(([^)]*)\)", value)), file.name
        with Image.open(file.with_suffix(".png")) as pixels:
            assert pixels.size == (2 * int(root.get("width")), 2 * int(root.get("height"))), file.name


def test_pages_to_embed_lead_somewhere_and_are_named_nowhere(built, report):
    shown = [path for path in built.apart if path.startswith("embed/")]
    assert len(shown) > 100
    for path in shown:
        report(path, links.page(built, path), "links")
        assert built.soup(path).select_one("meta[name=robots]")["content"] == "noindex"
    for name in ("sitemap.xml", "search/search_index.json"):
        file = built.root / name
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        assert f"{built.url}embed/" not in text and '"embed/' not in text


def test_what_a_page_to_embed_loads_is_light(visits, origin, built):
    heavy = sorted(built.root.glob("embed/*/index.html"), key=lambda file: file.stat().st_size)[-5:]
    names = {*(file.parent.name for file in heavy), MOVES, CARDS}
    for name in names:
        with visits.lend(f"{origin}/guide-base/") as visit:
            visit.go(f"embed/{name}/").settle()
            assert weight(visit, EMBED) + visit.problems == [], name


@pytest.mark.parametrize("name", [STILL, MOVES, CARDS])
@pytest.mark.parametrize("window", ["desktop", "phone"])
def test_another_site_shows_a_figure_in_a_frame_that_is_high_enough(frame, name, window):
    visit, shown = frame(name, window=window)
    assert shown.locator("svg.figure").is_visible()
    high, room, wide, across = shown.evaluate(SIZES)
    assert wide <= across, "sideways"
    assert window == "phone" or high <= room <= 1.35 * high, "no bar to scroll, and no empty half"
    assert visit.problems == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_frame_follows_the_theme_of_the_reader_and_is_accessible(frame, theme):
    _, shown = frame(MOVES, theme=theme)
    red = int(re.search(r"\d+", shown.evaluate("getComputedStyle(document.body).backgroundColor"))[0])
    assert (red > 200) is (theme == "light")
    shown.evaluate(AXE.read_text(encoding="utf-8"))
    shown.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    found = shown.evaluate(VIOLATIONS)
    assert found == []


def test_in_a_frame_a_live_figure_moves(frame):
    visit, shown = frame(MOVES)
    before = shown.locator("svg.figure").inner_html()
    slider = shown.locator("input[type=range]").first
    slider.focus()
    slider.press("ArrowRight")
    visit.page.wait_for_timeout(100)
    assert shown.locator("svg.figure").inner_html() != before
    assert shown.locator(".says").is_visible() and visit.problems == []


def test_in_a_frame_cards_change_places(frame):
    visit, shown = frame(CARDS)
    before = shown.locator("svg.figure").inner_html()
    shown.locator(".cards button").first.press("ArrowRight")
    visit.page.wait_for_timeout(100)
    assert shown.locator("svg.figure").inner_html() != before


def test_without_scripts_the_frame_has_the_still_figure_alone(frame):
    _, shown = frame(MOVES, javascript=False)
    assert shown.locator("svg.figure").is_visible()
    assert not shown.locator(".live input").first.is_visible()
    assert shown.locator("figcaption").is_visible() and shown.locator("h1 a").is_visible()


def test_a_link_to_embed_opens_the_line_to_copy(visits, origin):
    with visits.lend(f"{origin}/guide-base/") as visit:
        visit.go("guide/rope/?level=basic").settle()
        fold = visit.page.locator("#rope-two_needles + details.code")
        fold.locator("summary").click()
        fold.get_by_text("Cite", exact=True).click()
        visit.page.wait_for_url("**/embed/rope.two_needles/#cite")
        assert visit.page.locator("#cite + pre").is_visible()
