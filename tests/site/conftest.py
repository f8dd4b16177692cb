"""Fixtures for the tests of the built site. Run them with `make browser-test`.

The site is taken from `site/` ($SITE_DIR to test another folder). It is served twice: below
/guide-base/, which shows any absolute path in a page, and below the path of `site_url`, where the
404 page, whose addresses are absolute by need, finds its files.
"""

import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # our helpers, under every import mode of pytest

import successor
from built import MISSING, NOT_FOUND, SITE
from server import serve

BASE = "/guide-base/"


def pytest_generate_tests(metafunc):
    """One test per page: `path` for each, `chapter` for each with level blocks, `opened` for each window."""
    built = SITE.exists
    values = {
        "path": lambda: [*SITE.pages, NOT_FOUND],
        "chapter": lambda: SITE.chapters,
    }
    for argument in set(values) & set(metafunc.fixturenames):
        found = values[argument]() if built else ["site not built"]
        found = found or ["no chapter has level blocks"]
        metafunc.parametrize(argument, found, ids=[item or "home" for item in found])
    if "opened" in metafunc.fixturenames:
        metafunc.parametrize("opened", list(opened()) if built else ["site not built"])


def opened():
    """(path, window): by night all pages; by day a phone opens the front page and the chapters.

    Of the reference, whose pages a program lays out alike, a desktop opens each eighth by day, in order of
    size.
    """
    alike = sorted(
        (path for path in SITE.pages if path.startswith("reference/")),
        key=lambda path: SITE.file(path).stat().st_size,
    )
    by_night = {path for number, path in enumerate(alike) if number % 8}
    for path in [*SITE.pages, NOT_FOUND]:
        late = [pytest.mark.slow] if path and path not in SITE.chapters else []
        yield pytest.param(
            (path, "desktop"), id=f"{path or 'home'}-desktop", marks=late if path in by_night else []
        )
        yield pytest.param((path, "phone"), id=f"{path or 'home'}-phone", marks=late)


def pytest_collection_modifyitems(items):
    for item in items:
        if reason := successor.reason(item.nodeid):
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


def pytest_sessionfinish(session):
    if gone := successor.gone():
        print("\nNo longer differs, or was not asked:", *gone, sep="\n  ")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def built():
    if not SITE.exists:
        pytest.fail(MISSING, pytrace=False)
    return SITE


@pytest.fixture(scope="session")
def visits():
    from playwright.sync_api import sync_playwright
    from visits import Visits, launch

    with sync_playwright() as playwright:
        browser = launch(playwright)
        yield Visits(browser)
        browser.close()


@pytest.fixture(scope="session")
def origin(built):
    with serve(built.root, BASE, built.base) as origin:
        yield origin


@pytest.fixture
def visit(visits, origin, built):
    """`visit("guide/rope/", theme="dark", window="phone")` opens a page as a new reader would."""
    with ExitStack() as stack:

        def open_page(path="", **how):
            base = built.base if path == NOT_FOUND else BASE
            return stack.enter_context(visits.lend(origin + base, **how)).go(path)

        yield open_page


@pytest.fixture
def report():
    """Fail with all the problems of a page at once, under the page's name."""

    def fail_if_any(path, problems, *how):
        problems = successor.unknown(problems)
        if problems:
            title = f"/{path} [{', '.join(how)}]: {len(problems)} problem(s)"
            pytest.fail("\n  - ".join([title, *problems]), pytrace=False)

    return fail_if_any
