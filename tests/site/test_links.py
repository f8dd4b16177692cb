"""Every address in the built site leads somewhere. Needs the built site, but no browser."""

import links
import pytest

pytestmark = pytest.mark.browser


def test_links(built, report, path):
    report(path, links.page(built, path) + links.canonical(built, path), "links")
    report(path, links.title(built, path), "title")
    report(path, links.shared(built, path), "shared")


def test_stylesheets(built, report):
    report("*.css", links.stylesheets(built), "links")


def test_search_index(built, report):
    report("search", links.search_index(built), "links")


def test_text_files(built, report):
    names = [file.name for file in built.root.glob("*.txt")]
    report("*.txt", [problem for name in names for problem in links.text_file(built, name)], "links")


def test_every_page_is_in_the_sitemap(built):
    assert not links.pages_in_no_sitemap(built), "Sitemap: these pages are in no sitemap, so not tested"


def test_the_site_has_pages_and_a_404(built):
    assert len(built.pages) > 1
    assert built.file("404.html").is_file()


def test_each_chapter_leads_to_its_twin_in_markdown(built):
    chapters = [path for path in built.pages if path.startswith("guide/")]
    assert chapters
    for path in chapters:
        assert built.soup(path).select_one(".cite a[href='index.md']"), path
        assert built.file(path).with_name("index.md").is_file(), path
