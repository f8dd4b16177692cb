"""Code that a reader changes and runs in the page prints there what it printed while building."""

import gzip
import time

import pytest
from built import SITE

pytestmark = pytest.mark.browser

PYTHON = ("micropython.mjs", "micropython.wasm", "editable-worker.js")
ENDED = "(box) => box.querySelector('.state').textContent !== 'Running …'"
TOLD = "(box) => ['.printed code', '.state'].map((part) => box.querySelector(part).textContent)"
LATE = "Stopped after 5 seconds. Is there a loop that never ends?"


def programs():
    """(page, which of its programs) of all in the site."""
    if not SITE.exists:
        return []
    found = {path: SITE.file(path).read_text("utf-8").count('class="editable"') for path in SITE.pages}
    return [(path, n) for path, count in found.items() for n in range(count)]


class Program:
    def __init__(self, page, which=0):
        self.page = page
        self.box = page.locator(".editable").nth(which)
        self.field = self.box.get_by_role("textbox", name="Code to change and run")

    def run(self, code=None):
        """What is printed, and what is said of it."""
        if code is not None:
            self.field.fill(code)
        self.box.get_by_role("button", name="Run").click()
        return self.ended()

    def ended(self):
        self.page.wait_for_function(ENDED, arg=self.box.element_handle())
        return self.told()

    def told(self):
        return tuple(self.box.evaluate(TOLD))  # both at one time, or the end of a run could come between


@pytest.fixture
def program(visit):
    def opened(path, which=0, **how):
        visited = visit(path, **how)
        visited.ask("openAll")
        return Program(visited.page, which)

    return opened


@pytest.fixture
def first(program):
    return program(*programs()[0])


@pytest.mark.parametrize(("where", "which"), programs())
def test_unchanged_it_prints_what_the_page_has(program, where, which):
    opened = program(where, which)
    built = SITE.soup(where).select(".editable")[which]
    code, printed = (built.select_one(part).get_text() for part in ("textarea", ".printed code"))
    assert opened.field.input_value() == code
    opened.box.locator(".printed code").evaluate("(code) => { code.textContent = ''; }")
    assert opened.run() == (printed, "")


def test_there_are_some():
    assert len(programs()) >= 3


def test_what_is_changed_counts_and_reset_takes_it_back(first):
    given, printed = first.field.input_value(), first.told()[0]
    assert first.run("for n in range(3):\n    print(n / 3, end=';')") == (
        "0.0;0.3333333333333333;0.6666666666666666;",
        "",
    )
    first.box.get_by_role("button", name="Reset").click()
    assert (first.field.input_value(), *first.told()) == (given, printed, "")


@pytest.mark.parametrize(
    ("code", "printed", "said"),
    [
        ("x = 1\nprint(x)\nprint(y)", "1\n", "Line 3: NameError: name 'y' isn't defined"),
        ("def half(x):\n    return x / 0\n\nhalf(2)", "", "Line 2: ZeroDivisionError: divide by zero"),
        ("print(1)\nif True\n    print(2)", "", "Line 2: SyntaxError: invalid syntax"),
        ("import torch", "", "Line 1: ImportError: no module named 'torch'"),
        ("raise SystemExit", "", "Line 1: SystemExit"),
        ("", "", ""),
    ],
)
def test_what_goes_wrong_is_said(first, code, printed, said):
    assert first.run(code) == (printed, said)
    assert first.run("print('well again')") == ("well again\n", "")


def test_what_never_ends_is_stopped_after_five_seconds(first):
    first.page.clock.install()

    def run(code):
        first.field.fill(code)
        begun = first.page.evaluate("Date.now()")  # by the page's clock, before Python has begun
        first.box.get_by_role("button", name="Run").click()
        for _ in range(1000):
            if (told := first.told())[1] != "Running …":
                return told, first.page.evaluate("Date.now()") - begun
            first.page.clock.run_for(1000)
            time.sleep(0.03)
        raise AssertionError("it never ends")

    told, milliseconds = run("while True:\n    pass")
    assert told == ("", LATE) and milliseconds >= 5000
    assert run("print('well again')")[0] == ("well again\n", "")


def test_too_much_is_cut(first):
    printed, said = first.run("while True:\n    print('on and on')")
    assert said == "Stopped after 10,000 characters." and printed == ("on and on\n" * 1000)


def test_nothing_of_python_comes_before_it_is_run_and_all_from_the_site(visit):
    visited = visit(programs()[0][0])
    visited.ask("openAll")

    def asked():
        return {name for each in visited.requests for name in PYTHON if each.url.endswith(name)}

    visited.page.get_by_role("button", name="Run").first.scroll_into_view_if_needed()
    assert asked() == set()
    assert Program(visited.page).run()[1] == ""
    assert asked() == set(PYTHON)
    assert visited.problems == []


def test_it_is_light_to_load():
    sizes = [len(gzip.compress((SITE.root / "assets" / name).read_bytes(), 6)) for name in PYTHON]
    assert sum(sizes) < 250_000


def test_the_keyboard_runs_it_and_goes_on(first):
    first.field.fill("print(2 + 3)")
    first.field.press("Control+Enter")
    assert first.ended() == ("5\n", "")
    for name in ("Run", "Reset"):
        first.page.keyboard.press("Tab")
        assert first.page.evaluate("document.activeElement.textContent") == name
    first.page.keyboard.press("Tab")
    assert not first.box.evaluate("(box) => box.contains(document.activeElement)")


def test_where_python_cannot_be_loaded_that_is_said(first):
    first.page.route("**/micropython.wasm", lambda route: route.abort())
    assert first.run()[1].startswith("Python could not be loaded.")
    first.page.unroute("**/micropython.wasm")
    assert first.run()[1] == ""


def test_without_scripts_it_can_be_read(program):
    box = program(*programs()[0], javascript=False).box
    assert box.locator("textarea").input_value() and not box.locator("textarea").is_editable()
    assert box.locator(".printed").is_visible() and not box.locator("button").first.is_visible()
