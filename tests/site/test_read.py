"""The navigation marks what was read to its end, and nothing else."""

import pytest
from visits import FRAME

pytestmark = pytest.mark.browser
READ = "[...document.querySelectorAll('.md-nav__link.read')].map((link) => link.getAttribute('href'))"


def test_a_page_read_to_its_end_is_marked_on_other_pages(visit):
    page = visit("labs/yarn/")
    page.go("labs/ntk_rope/")
    assert page.page.evaluate(READ) == [], "a page that was opened is not yet read"
    page.page.evaluate("scrollTo(0, document.scrollingElement.scrollHeight)")
    page.page.evaluate(FRAME)  # as long as a reader sees the end
    page.go("labs/yarn/")
    assert page.page.evaluate(READ) == ["../ntk_rope/"]
    page.page.evaluate("localStorage.setItem('read', 'nonsense')")
    page.go("labs/yarn/")
    assert page.page.evaluate(READ) == []
    assert page.problems == []
