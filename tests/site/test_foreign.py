"""What an address or the browser's storage holds, and we have not written, ends none of our scripts."""

import json

import pytest

pytestmark = pytest.mark.browser

ADDRESSES = ["%E0%A4%A", "'\"<b>", "__proto__"]
BY_NIGHT = ["%", "100%", "%zz", "%C3%28", "%%%", "%u0041", "\u202e", "?"]
# JSON of another kind than what the site keeps there, and what is no JSON.
POISON = [
    *("", "nonsense", "{", "advanced", "null", "true", "-1", "1e999"),
    *('""', '"advanced "', "[]", "{}", "[[1], {}, null]", '{"index": "x", "length": 3, "0": {}}'),
]


def works(page):
    """What site.js does late, on a page with terms, at the depth of who has not chosen."""
    assert page.problems == []
    assert page.page.locator("#level :checked").input_value() == "basic"
    assert page.page.locator("form.md-header__option button:visible").count() == 1
    page.page.locator("a.term:visible").first.evaluate("(term) => term.click()")
    assert page.page.locator(".meaning").is_visible()


@pytest.mark.parametrize(
    "written", [*ADDRESSES, *(pytest.param(each, marks=pytest.mark.slow) for each in BY_NIGHT)]
)
def test_in_an_address(visit, built, written):
    page = visit(f"{built.chapters[0]}#{written}")
    works(page)
    page.page.evaluate("(written) => { location.hash = written; }", written)
    with page.page.expect_navigation(wait_until="load"):
        page.page.evaluate("(written) => { location.search = `?h=${written}&level=${written}`; }", written)
    works(page)


@pytest.fixture
def keys(visit, built):
    """The names under which the site keeps what a reader did there, all of it."""
    page = visit(built.chapters[0])
    page.page.locator("#level label:has([value=advanced])").click()
    page.page.locator("form.md-header__option button:visible").click()
    page.page.clock.install()
    page.go("404.html")  # so short that it is soon read
    page.page.clock.run_for(600_000)
    return page.page.evaluate("Object.keys(localStorage)")


def test_in_the_storage(visit, built, keys):
    assert len(keys) >= 3
    ours = ("/guide-base/.", f"{built.base}.")
    assert all(key.startswith(ours) for key in keys), "other sites of the host keep things, too"
    assert len(POISON) == 14
    page = visit(built.chapters[0])
    for poison in POISON:
        page.page.evaluate(POISONED, [keys, poison])
        page.go(built.chapters[0])
        works(page)


POISONED = """([keys, poison]) => {
  for (const key of keys) localStorage["/guide-base/." + key.split(".").pop()] = poison;
}"""


@pytest.mark.parametrize("key", ["level", "read", "__palette"])
def test_what_another_site_keeps_without_a_prefix_says_nothing_here(visit, built, key):
    page = visit(built.chapters[0])
    for said in (
        '"advanced"',
        "advanced",
        json.dumps({"index": 2}),
        json.dumps([built.base, built.chapters[0]]),
    ):
        page.page.evaluate("([key, said]) => { localStorage[key] = said; }", [key, said])
        page.go(built.chapters[0])
        works(page)
        assert page.page.locator(".md-nav__link.read").count() == 0
