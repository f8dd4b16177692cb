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


# Whether a meaning stands whole in the window, and neither on its term nor on the page's first sentence.
CLEAR = """(term) => {
  term.click();
  const meaning = document.querySelector('.meaning').getBoundingClientRect();
  const clear = [...term.getClientRects(), document.querySelector('.lede')?.getBoundingClientRect()].every(
    (box) => !box || meaning.top >= box.bottom || meaning.bottom <= box.top);
  const across = meaning.left >= 0 && meaning.right <= document.body.clientWidth;
  return clear && across && meaning.top >= 0 && meaning.bottom <= innerHeight;
}"""


@pytest.mark.parametrize("window", ["desktop", "phone"])
def test_a_meaning_covers_neither_its_term_nor_the_first_sentence(visit, built, window):
    count = 0
    for where in ("", *built.chapters):
        page = visit(f"{where}?level=layman", window=window).page
        for term in page.locator("a.term:visible").all():
            term.scroll_into_view_if_needed()
            assert term.evaluate(CLEAR), f"/{where}: {term.inner_text()}"
            count += 1
    assert count > 5
