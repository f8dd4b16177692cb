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


# How many terms can be seen, and those whose meaning does not fit into the window, or covers its term or the
# page's first sentence.
COVERED = """() => {
  const terms = [...document.querySelectorAll('a.term')].filter((term) => term.checkVisibility());
  return [terms.length, terms.filter((term) => !clear(term)).map((term) => term.innerText)];

function clear(term) {
  term.scrollIntoView({block: 'center', behavior: 'instant'});
  term.click();
  const meaning = document.querySelector('.meaning').getBoundingClientRect();
  const clear = [...term.getClientRects(), document.querySelector('.lede')?.getBoundingClientRect()].every(
    (box) => !box || meaning.top >= box.bottom || meaning.bottom <= box.top);
  const across = meaning.left >= 0 && meaning.right <= document.body.clientWidth;
  return clear && across && meaning.top >= 0 && meaning.bottom <= innerHeight;
}
}"""


@pytest.mark.parametrize("window", ["desktop", "phone"])
def test_a_meaning_covers_neither_its_term_nor_the_first_sentence(visit, built, window):
    count = 0
    for where in ("", *built.chapters):
        page = visit(f"{where}?level=layman", window=window).page
        terms, covered = page.evaluate(COVERED)
        assert not covered, f"/{where}: {covered}"
        count += terms
    assert count > 5
