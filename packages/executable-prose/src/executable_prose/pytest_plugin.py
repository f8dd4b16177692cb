"""For tests of a project: the mark of claims, what exhibits give, and golden files to compare that with.

@pytest.mark.claim("doubling-doubles", "Doubling doubles.")
def test_doubling(returned):
    assert returned("chapter.exhibit")["end"] == 2.0

@pytest.mark.parametrize("name", exhibit_names())
def test_nothing_has_changed(name, golden):
    golden(name, Path(__file__).parent / "goldens")
"""

import functools
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from executable_prose.outcome import Result, Value

Gives = Callable[[str], "Result"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-goldens", action="store_true", help="rewrite the golden files")
    parser.addoption("--cold", action="store_true", help="believe no cache of what exhibits give")


def pytest_configure(config: pytest.Config) -> None:
    from executable_prose import project

    if (project.ROOT / project.CONFIGURATION).is_file():
        project.on_path()
    config.addinivalue_line("markers", "claim(id, statement): this test holds a sentence that a page states")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that was skipped, or was let fail: pages say "tested" beside the claim that it holds."""
    report = yield
    claims = [str(mark.args[0]) for mark in item.iter_markers("claim")]
    if claims and (report.skipped or hasattr(report, "wasxfail")):
        skipped = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        reason = getattr(report, "wasxfail", skipped).removeprefix("Skipped: ")
        why = f"pages mark {', '.join(claims)} as tested, and this test was skipped or may fail: {reason}"
        report.outcome, report.longrepr = "failed", why
        vars(report).pop("wasxfail", None)
    return report


@pytest.fixture(scope="session")
def gives(request: pytest.FixtureRequest) -> Gives:
    """A function that says what an exhibit gives: with --cold just now, else as the site is built."""
    from executable_prose.execution.results import Results  # most tests need none of it

    results = Results()
    if not request.config.getoption("--cold"):
        return results.get

    stored = results.stored()

    @functools.cache
    def cold(name):
        (outcome,) = results.run([name])
        assert not outcome.failure, outcome.failure
        known = stored(name)
        assert known in (None, outcome.result), (
            f"the result of {name} in the store differs from this cold run"
        )
        return outcome.result

    return cold


@pytest.fixture(scope="session")
def printed(gives: Gives) -> Callable[[str], list[str]]:
    """A function that gives the lines that an exhibit prints on its page."""
    return lambda name: gives(name)["output"].splitlines()


@pytest.fixture(scope="session")
def returned(gives: Gives) -> "Callable[[str], dict[str, Value]]":
    """A function that gives the numbers that an exhibit returns."""
    return lambda name: gives(name)["values"]


@pytest.fixture(scope="session")
def golden(gives: Gives, request: pytest.FixtureRequest) -> Callable[[str, Path], None]:
    """A function that compares what an exhibit gives with a golden file in a folder, or writes it there."""
    from executable_prose import goldens

    def golden(name, folder):
        if request.config.getoption("--rewrite-goldens"):
            goldens.write(folder, name, gives(name))
        module = name.partition(".")[0]
        known = goldens.read(folder, module)
        assert name in known, f"{folder.name}/{module}.txt has no {name}: --rewrite-goldens writes it"
        changed = goldens.differences(known[name], goldens.entry(gives(name)))
        assert not changed, f"{name} gives {changed}; if that is right, --rewrite-goldens stores it"

    return golden
