"""What a reader takes from a figure: pictures, data, and a page to show elsewhere."""

import gzip
import json
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from bs4 import BeautifulSoup
from PIL import Image

from executable_prose.figures.palette import ROLES
from executable_prose.site import assets, figure_files
from prose_testing.fixtures import StubResults, build_here

URL = "https://example.org/guide/"
COLOURS = "".join(
    f'<path d="M 0 {n} L 9 {n}" style="stroke:var({role})"/>' for n, role in enumerate(ROLES.values())
)
SVG = (
    '<svg viewBox="0 0 316.8 100" class="figure" role="img">'
    f'<defs><path id="NAME-1" d="M 0 0 L 5 5 z"/></defs>{COLOURS}<use href="#NAME-1" x="5"/>'
    '<image href="data:image/png;base64,AA" width="1" height="1"/>'
    "<text>up</text></svg>"
)
FIGURE = {"figure": SVG, "data": "panel\n1\n"}
SLIDER = {
    "label": "x",
    "low": 0,
    "high": 1,
    "start": 0,
    "step": 1,
    "log": False,
    "shows": "{value}",
    "button": "",
}
WORDS = {"says": "It is {x}.", "title": "Code", "call": ""}
LIVE = {"controls": {"x": SLIDER}, "values": {"x": 0}, "moves": {}, "graphs": {}, "texts": {}, **WORDS}
FILES = {
    "exhibits/some_lines.py": '''
        def still():
            """Lines, "a" < b & c."""


        def moving():
            """A line that moves, and of which much more can be said than a frame has
            room for in the words by which it is called."""


        def bare():
            """Shown without a caption."""


        def unseen():
            """On no page."""
        ''',
    "docs/index.md": "# Start & more\n\n```exhibit some_lines.still\nAs elsewhere.\n```\n",
    "docs/a/some-lines.md": """
        ---
        title: Lines & more
        ---

        # Lines

        ```exhibit some_lines.still
        See [the start](../index.md?x=1#start-more), [this](#lines) and [that](https://example.com/).
        ```

        ```exhibit some_lines.moving
        Move it.
        ```

        ```exhibit some_lines.bare
        ```
        """,
}


@pytest.fixture
def site(here, monkeypatch):
    """A function that builds a site, with what else an exhibit gives; its folder."""
    here.write(FILES)
    here.edit(
        "pyproject.toml", "[tool.executable_prose]\n", '[tool.executable_prose]\nlicence = "CC BY 4.0"\n'
    )
    monkeypatch.setenv("FIGURE_DATA", "true")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")

    def site(url=URL, live=LIVE):
        monkeypatch.setenv("SITE_URL", url)
        names = ("still", "moving", "bare", "unseen")
        results = StubResults(
            {f"some_lines.{name}": FIGURE | {"figure": SVG.replace("NAME", name)} for name in names}
        )
        results.known["some_lines.moving"]["live"] = live
        build_here(here, results)
        folder = here.root / "site"
        assets.write(folder)
        figure_files.write(folder, results)
        return folder

    return site


def embedded(folder, name):
    text = (folder / "embed" / f"some_lines.{name}" / "index.html").read_text(encoding="utf-8")
    return text, BeautifulSoup(text, "html.parser")


def test_what_a_page_shows_under_a_caption_has_all_files_and_an_exhibit_on_no_page_has_its_data(site):
    folder = site()
    shown = {f"some_lines.{name}.{kind}" for name in ("still", "moving") for kind in ("svg", "png", "csv")}
    data = {"some_lines.bare.csv", "some_lines.unseen.csv"}
    assert {path.name for path in (folder / "data").iterdir()} == shown | data
    assert {path.name for path in (folder / "embed").iterdir()} == {"some_lines.still", "some_lines.moving"}


def test_the_picture_is_whole_without_anything_else_and_says_where_it_is_from(site):
    file = site() / "data" / "some_lines.still.svg"
    root = ElementTree.fromstring(text := file.read_text(encoding="utf-8"))
    assert "var(" not in text and "class=" in text
    used = [value for part in root.iter() for key, value in part.attrib.items() if key.endswith("href")]
    assert used == ["#still-1", "data:image/png;base64,AA"]
    assert root[0].tag.endswith("title") and root[0].text == 'Lines, "a" < b & c.'
    words = " ".join(part.text for part in root.iter() if part.tag.endswith("}text"))
    assert (
        f"up Figure some_lines.still, Lines & more, Trial, CC BY 4.0 {URL}a/some-lines/#some_lines-still"
        == words
    )


def test_the_pixels_are_twice_as_many_on_white_and_are_drawn_once(site):
    folder = site()
    svg = ElementTree.parse(folder / "data" / "some_lines.still.svg").getroot()
    with Image.open(folder / "data" / "some_lines.still.png") as picture:
        assert picture.size == (2 * int(svg.get("width")), 2 * int(svg.get("height")))
        pixels = np.asarray(picture.convert("RGB")).astype(int)
    assert (pixels[:, 0] == 255).all() and (pixels[0] == 255).all()
    blue = (abs(pixels - (0x00, 0x60, 0xA8)).sum(-1) < 60).sum()
    assert blue > 10
    foot = pixels[-60:]
    assert (foot.sum(-1) < 600).sum() > 100, "the words below"
    cached = {path: path.stat().st_mtime_ns for path in folder.parent.glob(".cache/pictures/*")}
    assert len(cached) == 2
    assert site() and cached == {path: path.stat().st_mtime_ns for path in cached}


@pytest.mark.parametrize("url", ["", URL, URL.rstrip("/")])
def test_the_page_to_embed_has_the_figure_and_the_lines_to_copy(site, url):
    text, page = embedded(site(url), "still")
    at = URL * bool(url)
    assert page.select_one("figure svg.figure[aria-label]")["aria-label"] == 'Lines, "a" < b & c.'
    assert page.select_one("meta[name=robots]")["content"] == "noindex"
    assert page.title.text == "Figure some_lines.still, Lines & more"
    frame = BeautifulSoup(page.select_one("#embed + pre").text, "html.parser").iframe
    assert frame["src"] == f"{at}embed/some_lines.still/" and frame["title"] == 'Lines, "a" < b & c.'
    assert int(frame["width"]) and int(frame["height"])
    place = f", {URL}a/some-lines/#some_lines-still" * bool(url)
    expected = f"Figure some_lines.still, “Lines & more”, Trial{place}, 1970-01-02, CC BY 4.0"
    assert page.select_one("#cite + pre").text == expected
    assert "<script" not in text


def test_its_links_lead_where_those_of_the_page_do_and_out_of_the_frame(site):
    _, page = embedded(site(), "still")
    links = page.select("figcaption a")
    assert [link["href"] for link in links] == [
        "../../?x=1#start-more",
        "../../a/some-lines/#lines",
        "https://example.com/",
    ]
    source = page.select_one("h1 a")
    assert source["href"] == "../../a/some-lines/#some_lines-still"
    assert {link["target"] for link in [*links, source]} == {"_blank"}


def test_a_live_figure_lives_there_too_unless_it_is_too_heavy(site):
    text, page = embedded(site(), "moving")
    frame = BeautifulSoup(page.select_one("#embed + pre").text, "html.parser").iframe
    assert (
        len(frame["title"]) <= 100
        and frame["title"].startswith("A line that moves, and")
        and frame["title"].endswith(" …")
    )
    assert page.select_one("section.live input") and page.select_one("figure[data-live]")
    assert [script["src"] for script in page.select("script[src]")] == ["../../assets/live.js"]
    noise = np.random.default_rng(1).bytes(60_000).hex()
    heavy, still = embedded(site(live=LIVE | {"graphs": {"": noise}}), "moving")
    assert json.dumps(noise) not in heavy and len(gzip.compress(heavy.encode())) < len(
        gzip.compress(text.encode())
    )
    assert still.select_one("figure svg.figure") and not still.select("section.live, script")
    note = still.find(string="This figure is interactive ").parent
    assert note.a["href"] == "../../a/some-lines/#some_lines-moving"
