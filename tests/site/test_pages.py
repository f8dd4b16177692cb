"""Every page of the built site in a real browser, on a desktop and a phone.

One test is one load of one page, of which all problems are reported together.
"""

import checks
import levels
import pytest
from budgets import DEFAULT, PER_PAGE, budget_for
from visits import DESKTOP, NARROWEST, PHONE

pytestmark = pytest.mark.browser


@pytest.fixture
def night(request):
    """Whether all is asked in every state, though most answers are those of another state."""
    return request.config.getoption("--cold")


def test_page(built, visit, report, opened, night):
    """As loaded, and with all details open; a desktop turns from dark to light, a phone is light.

    By night all is asked of all, as loaded too, and a phone is turned to the dark. By day axe sees the whole
    of the pages that together show all of the template, and by light the articles of chapters on a desktop;
    what is neither is seen by light, with scripts, its window made narrow for a phone.
    """
    path, window = opened
    desktop, chapter = window == "desktop", path in built.chapters
    whole = night or path in built.samples
    full = desktop and (whole or chapter)
    themes = ("dark", "light") if full else ("light", "dark") if night else ("light",)
    page = visit(path, theme=themes[0], window=window)
    problems = checks.structure(page) + checks.policy(page) + levels.control(page)
    if full:
        problems += checks.prints_what_is_open(page, "scripts on")
    for theme in themes if night else ():
        page.turn(theme)
        problems += checks.axe(page, "as loaded")
    if chapter:
        problems += levels.cumulative(page)
    page.ask("openAll")
    problems += checks.legible(page)
    for theme in themes:
        page.turn(theme)
        problems += checks.theme(page)
        if whole or (full and theme == "light"):
            problems += checks.axe(page, "details open", "page" if whole else "article")
        if night or theme == "light":
            problems += [f"{theme}: {problem}" for problem in _looks(page)]
    page.ask("scrollToEnd")
    page.settle()
    problems += checks.weight(page, budget_for(path))
    if full:
        off = visit(path, javascript=False)
        problems += levels.without_scripts(off) if chapter else []
        problems += checks.prints_dark_on_white(page) + _without_scripts(page, off)
        problems += levels.lands_still(page, path) if chapter else []
    if desktop and not night and not chapter:
        problems += _too_wide(page, [PHONE, NARROWEST])
    report(path, problems + page.problems, window)


def _looks(page):
    sizes = [NARROWEST, PHONE] if page.window == "phone" else [DESKTOP]
    return checks.rendered(page) + checks.pictures(page) + checks.tidy(page) + _too_wide(page, sizes)


def _too_wide(page, sizes):
    problems = []
    for width, height in sizes:
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
