"""The navigation marks what was read, and nothing else."""

import pytest

pytestmark = pytest.mark.browser
READ = "[...document.querySelectorAll('.md-nav__link.read')].map((link) => link.pathname)"
# As the site keeps it, in a page below /guide-base/.
KEEP = "(pages) => localStorage.setItem('/guide-base/.read', JSON.stringify(pages))"
LAB = "labs/yarn/"


@pytest.fixture
def reader(visit):
    """A page of which the test turns the clock."""
    page = visit("labs/sinusoids/")
    page.page.clock.install()
    page.go(LAB)
    return page


def reads(page, seconds):
    """From its beginning to its end, and at each window for so long."""
    for window in range(1 + int(page.page.evaluate("document.scrollingElement.scrollHeight / innerHeight"))):
        page.page.evaluate("(window) => scrollTo(0, window * innerHeight)", window)
        page.page.evaluate(PAINTED)
        page.page.clock.run_for(1000 * seconds)


# The page's own clock stands still; what it paints does not.
PAINTED = """new Promise((done) => {
  const painted = new IntersectionObserver(() => { painted.disconnect(); done(); });
  painted.observe(document.body);
})"""


def marked(page):
    page.go("labs/sinusoids/")
    return page.page.evaluate(READ)


def test_a_page_that_was_read_is_marked_on_other_pages(reader):
    reads(reader, seconds=60)
    assert marked(reader) == [f"/guide-base/{LAB}"]
    assert reader.problems == []


def test_a_page_that_was_scrolled_through_is_not(reader):
    reads(reader, seconds=1)
    assert marked(reader) == []


@pytest.mark.parametrize("where", ["0", "document.scrollingElement.scrollHeight"], ids=["top", "end"])
def test_nor_is_one_that_stood_open_for_an_hour_where_it_opened_or_at_its_end(reader, where):
    reader.page.evaluate(f"scrollTo(0, {where})")
    reader.page.evaluate(PAINTED)
    reader.page.clock.run_for(3_600_000)
    assert marked(reader) == []


def test_a_group_is_marked_when_all_its_pages_were_read(visit):
    page = visit("labs/yarn/")
    group = """[...document.querySelectorAll('.md-nav--primary a.md-nav__link')].map((link) => link.pathname)
        .filter((path) => path.includes('/labs/'))"""
    labs = page.page.evaluate(group)
    assert len(labs) > 5 and labs[0].endswith("/labs/")
    for kept, expected in ((labs[:1], []), (labs[1:], labs[1:]), (labs, labs)):
        page.page.evaluate(KEEP, kept)
        page.go("labs/yarn/")
        marks = page.page.evaluate(
            "[...document.querySelectorAll('.md-nav__link.read')].map((a) => a.pathname)"
        )
        assert marks == [each for each in expected if not each.endswith("/yarn/")], (
            "but the page that is open"
        )
