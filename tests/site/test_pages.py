"""Every page of the built site in a real browser, in both themes, on a desktop and a phone.

One test is one load of one page, of which all problems are reported together.
"""

import checks
import levels
import pytest
from budgets import DEFAULT, PER_PAGE, budget_for
from visits import DESKTOP, NARROWEST, PHONE, WINDOWS

pytestmark = pytest.mark.browser


@pytest.fixture
def whole(built, path, request):
    """Whether axe is to see all of a page, though its template is that of another page."""
    return path in built.samples or request.config.getoption("--cold")


@pytest.mark.parametrize("window", WINDOWS)
def test_page(built, visit, report, path, window, whole):
    """As loaded, and with all details open, in both themes: a desktop begins in the dark, a phone not.

    axe has most to do: on a phone it sees light pages with all details open, unless it is to see the whole.
    """
    first, second = ("dark", "light") if window == "desktop" else ("light", "dark")
    page = visit(path, theme=first, window=window)
    problems = checks.structure(page) + levels.control(page)
    if window == "desktop":
        problems += checks.prints_what_is_open(page, "scripts on")
    for theme in (first, second):
        page.turn(theme)
        problems += checks.theme(page) + (checks.axe(page, "as loaded") if whole else [])
    chapter = path in built.chapters
    if chapter:
        problems += levels.cumulative(page)
    page.ask("openAll")
    for theme in (second, first):
        page.turn(theme)
        if whole or window == "desktop" or theme == "light":
            problems += checks.axe(page, "details open", "page" if whole else "article")
        problems += [f"{theme}: {problem}" for problem in _looks(page)]
    page.ask("scrollToEnd")
    page.settle()
    problems += checks.weight(page, budget_for(path))
    if window == "desktop":
        off = visit(path, javascript=False)
        problems += levels.without_scripts(off) if chapter else []
        problems += checks.prints_dark_on_white(page) + _without_scripts(page, off)
        problems += levels.lands_still(page, path) if chapter else []
    report(path, problems + page.problems, window)


def _looks(page):
    return checks.rendered(page) + checks.pictures(page) + checks.tidy(page) + _too_wide(page)


def _too_wide(page):
    problems = []
    for width, height in [NARROWEST, PHONE] if page.window == "phone" else [DESKTOP]:
        page.page.set_viewport_size({"width": width, "height": height})
        problems += checks.overflow(page, width)
    return problems


def _without_scripts(page, off):
    problems = checks.prints_what_is_open(off, "scripts off") + checks.opens_natively(off)
    off.ask("openAll")
    return [f"scripts off: {each}" for each in problems + checks.same_content(page, off) + off.problems]


def test_an_address_that_does_not_exist_shows_the_404_page(visits, origin, built, report):
    with visits.lend(origin + built.base) as page:
        missing = "no/such/page/"
        page.go(missing).settle()
        expected = f"status 404: {page.page.url}"
        others = [p for p in page.problems if p != expected and not p.startswith("console error: F")]
        heading = page.page.locator("h1").count()
        problems = others + ([] if expected in page.problems else ["status is not 404"])
        report(missing, problems + ([] if heading else ["no heading"]), "404")


def test_allowances_are_for_pages_that_exist(built):
    gone = set(PER_PAGE) - {*built.pages, "404.html"}
    assert not gone, f"budgets.py allows more for pages that are gone: {sorted(gone)}"
    assert all(budget != DEFAULT for budget in PER_PAGE.values())
