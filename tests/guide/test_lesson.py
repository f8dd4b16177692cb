"""The page for teachers: a plan of a lesson, its slides, and a list of all figures."""

import re

from bs4 import BeautifulSoup

from executable_prose import project
from executable_prose.execution.results import exhibit_names
from guide import lesson

PARTS = """
[[part]]
minutes = 10
title = "Lines & more"
page = "guide/lines.md"
figure = "lines.rising"
points = ["They rise.", "They *fall*."]
ask = "Why?"
answer = "They must."
"""
DOCS = {
    "docs/lesson.toml": PARTS,
    "docs/guide/lines.md": "---\ntitle: Lines\n---\n\n# Lines\n\n```exhibit lines.rising\nIt rises.\n```\n",
    "docs/words.md": "# Words\n\n```exhibit words.spoken\n```\n",
}


def test_the_description_has_the_minutes_of_the_parts_and_each_shows_a_figure():
    text = (project.DOCS / "teach.md").read_text(encoding="utf-8")
    description = text.partition("description:")[2].partition("\n---\n")[0]
    assert f"{sum(part['minutes'] for part in lesson.parts())} minutes" in description
    names = exhibit_names()
    for part in lesson.parts():
        assert part["figure"] in names and (project.DOCS / part["page"]).is_file()
        assert part["ask"].endswith("?") and len(part["points"]) <= 3, "a slide has room for no more"


def test_the_plan_and_the_list_lead_to_the_figures(here, soup, monkeypatch):
    here.write(DOCS)
    plain = soup("```lesson\n```\n\n```figures\n```", "teach.md")
    assert plain.select_one("tr:last-child td").text == "10"
    assert {link["href"] for link in plain.select("table a")} == {
        "guide/lines.md#lines-rising",
        "guide/lines.md",
    }
    assert [head.text for head in plain.select("summary")] == ["Lines (1)"], "words are no figure"
    assert not plain.select("a[download]")


def test_a_part_whose_figure_is_on_no_page_stops_the_build(here, refusal):
    here.write(DOCS | {"docs/guide/lines.md": "# Lines\n"})
    assert refusal("```lesson\n```", "teach.md") == (
        "docs/teach.md:1: docs/lesson.toml: no page shows a figure 'lines.rising'"
    )


def test_where_the_build_writes_them_the_list_has_the_files_and_the_plan_the_slides(here, soup, monkeypatch):
    here.write(DOCS)
    monkeypatch.setenv("FIGURE_DATA", "true")
    page = soup("```lesson\n```\n\n```figures\n```", "teach.md")
    assert [link["href"] for link in page.select("p a")] == ["../slides/", "../slides/slides.md"]
    shown, *files = (link["href"] for link in page.select("li a"))
    assert shown == "../guide/lines/#lines-rising"
    assert files[:3] == [f"../data/lines.rising.{kind}" for kind in ("svg", "png", "csv")]


def test_slides_are_one_text_for_marp_and_for_a_page_without_scripts(here, soup, tmp_path, monkeypatch):
    here.write(DOCS | {"exhibits/lines.py": 'def rising():\n    """It rises."""\n'})
    monkeypatch.setenv("SITE_URL", "https://example.org/guide/")
    site = tmp_path / "made"
    site.mkdir()
    lesson.write(site)
    marp = (site / "slides" / "slides.md").read_text(encoding="utf-8")
    assert marp.startswith("---\nmarp: true\n") and len(re.findall(r"^---$", marp, re.M)) == 3
    assert "![It rises.](https://example.org/guide/data/lines.rising.svg)" in marp
    assert "<!-- 10 minutes. Answer: They must. -->" in marp
    page = BeautifulSoup((site / "slides" / "index.html").read_text(encoding="utf-8"), "html.parser")
    first, second = page.select("section")
    assert "CC BY 4.0" in first.text and not page.select("script")
    assert second.img["src"] == "../data/lines.rising.svg" and second.img["alt"] == "It rises."
    assert [point.text for point in second.select("li")] == ["They rise.", "They fall."]
    assert second.select_one("a[href='../guide/lines/']")
    assert "They must" not in second.get_text()


def test_a_project_without_a_lesson_has_no_slides(here, tmp_path):
    lesson.write(tmp_path / "made")
    assert not (tmp_path / "made").exists()
