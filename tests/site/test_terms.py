"""A word of the glossary, as a reader meets it in a chapter."""

import pytest

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("window", ["desktop", "phone"])
def test_a_term_opens_its_meaning_in_place(visit, built, window):
    page = visit(built.chapters[0], window=window).page
    term = page.locator("a.term:visible").first
    term.scroll_into_view_if_needed()
    if window == "phone":
        term.tap()
    else:
        term.press("Enter")
    meaning = page.locator(".meaning")
    assert meaning.inner_text() == f"{term.get_attribute('title')} In the glossary"
    assert meaning.locator("a").get_attribute("href") == term.evaluate("(link) => link.href")
    page.keyboard.press("Escape")
    assert not meaning.is_visible()
    assert term.evaluate("(link) => link === document.activeElement")


def test_chapters_have_terms(built):
    """Of each, test_pages.py looks at its meaning."""
    assert sum(bool(built.soup(path).select("a.term")) for path in built.chapters) > 5
