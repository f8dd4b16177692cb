"""Every page of the built site in a real browser, on a desktop and a phone.

One test is one load of one page, of which all problems are reported together.
"""

from functools import cache
from types import SimpleNamespace

import checks
import levels
import pytest
from budgets import DEFAULT, PER_PAGE, budget_for
from visits import DESKTOP, NARROWEST, PHONE, WIDE, WINDOWS

pytestmark = pytest.mark.browser


def of(check, *arguments):
    return lambda load: check(load.page, *arguments)


def in_each_theme(*rows):
    def turned(load):
        for theme in load.themes:
            load.page.turn(theme)
            yield from asked(load, rows)

    return turned


def asked(load, rows):
    """The problems that the rows of a table find, of those that are for such a load."""
    return [problem for kind, ask in rows if load.kinds[kind] for problem in ask(load)]


def _open_all(load):
    load.page.ask("openAll")
    return []


def _looks(page):
    sizes = [NARROWEST, PHONE] if page.window == "phone" else [DESKTOP]
    problems = checks.rendered(page) + checks.pictures(page) + checks.tidy(page) + _too_wide(page, sizes)
    return [f"{problem} ({page.theme})" for problem in problems]


def _too_wide(page, sizes):
    problems = []
    for width, height in sizes:
        page.page.set_viewport_size({"width": width, "height": height})
        problems += checks.overflow(page, width)
    return problems


def _wide(load):
    problems = [problem for width in WIDE for problem in checks.roomy(load.page, width)]
    load.page.fit()
    return problems


def _story(load):
    """In plain words; the loads of a chapter in both windows serve it."""
    problems = levels.choose(load.page, "layman") if load.kinds["chapter"] else []
    problems += checks.meanings(load.page)
    if load.kinds["desktop chapter"]:
        problems += levels.is_a_story(load.page)
    problems += levels.choose(load.page, "basic") if load.kinds["chapter"] else []
    if load.kinds["desktop chapter"]:
        problems += levels.pictures_use_the_room_of_a_laptop(load.page)
    load.page.fit()
    return problems


def _weighs(load):
    """By night in a tall window, so that few steps bring into view what is loaded when it is seen."""
    if load.kinds["night"]:
        width, height = WINDOWS[load.page.window]
        load.page.fit((width, 10 * height))
        load.page.ask("scrollToEnd")
        load.page.fit()
    load.page.settle()
    return checks.weight(load.page, budget_for(load.path))


def _without_scripts(load):
    off = load.off()
    problems = checks.prints_what_is_open(off, "scripts off") + checks.opens_natively(off)
    off.ask("openAll")
    problems += checks.same_content(load.page, off) + off.problems
    return [f"Progressive enhancement, scripts off: {each}" for each in problems]


TABLE = (  # from top to bottom: which loads are asked, and what; by day a page turns to the light at last
    ("every", of(checks.structure)),
    ("every", of(checks.policy)),
    ("every", of(levels.control)),
    ("full", of(checks.prints_what_is_open, "scripts on")),
    ("night", in_each_theme(("night", of(checks.axe, "as loaded")))),
    ("chapter, on a desktop by day", of(levels.cumulative)),
    ("chapter or front page", _story),
    ("every", _open_all),
    ("every", of(checks.legible)),
    (
        "every",
        in_each_theme(
            ("every", of(checks.theme)),
            ("whole", of(checks.axe, "details open")),
            ("night", of(_looks)),
        ),
    ),
    ("full, not whole", of(checks.axe, "details open", "article")),
    ("day", of(_looks)),
    ("desktop, or by night", _weighs),
    ("full", _wide),
    ("desktop chapter", lambda load: levels.without_scripts(load.off())),
    ("full", of(checks.prints_dark_on_white)),
    ("full", _without_scripts),
    ("desktop chapter", lambda load: levels.lands_still(load.page, load.path)),
    ("desktop by day, no chapter", of(_too_wide, [PHONE, NARROWEST])),
)


def kinds(night, sample, chapter, front, desktop):
    """By each word of the table, whether a load is such a one."""
    whole = night or sample
    full = desktop and (whole or chapter)
    return {
        "every": True,
        "night": night,
        "day": not night,
        "chapter": chapter,
        "chapter or front page": chapter or front,
        "chapter, on a desktop by day": chapter and (desktop or night),
        "desktop, or by night": desktop or night,
        "desktop chapter": desktop and chapter,
        "desktop by day, no chapter": desktop and not night and not chapter,
        "whole": whole,
        "full": full,
        "full, not whole": full and not whole,
    }


def test_page(built, visit, report, opened, request):
    """As loaded, and with all details open; a desktop turns from dark to light, a phone is light.

    By night all is asked of all, as loaded too, and a phone is turned to the dark. By day a desktop has what
    takes long for chapters and for pages that together show all of the template (`built.samples`): axe, of
    chapters their articles by light, of the others all in both themes; the page without scripts and on paper;
    a wide window. What is neither is seen by light, with scripts, its window made narrow for a phone.
    """
    path, window = opened
    night = request.config.getoption("--cold")
    known = kinds(night, path in built.samples, path in built.chapters, not path, window == "desktop")
    themes = ("dark", "light") if known["full"] else ("light", "dark") if night else ("light",)
    page = visit(path, theme=themes[0], window=window)
    off = cache(lambda: visit(path, javascript=False))
    load = SimpleNamespace(path=path, page=page, off=off, themes=themes, kinds=known)
    report(path, asked(load, TABLE) + page.problems, window)


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
