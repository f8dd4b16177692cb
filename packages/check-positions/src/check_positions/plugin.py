"""Test the positions of a model with pytest.

pytest loads this module wherever the package is installed. In a test, pass the
fixture a path, a model of transformers or findings:

    def test_positions(assert_positions):
        assert_positions("path/to/config.json")

Or mark a test, a class or a module, and the files are checked before it runs:

    @pytest.mark.positions("path/to/config.json")

Paths are relative to pytest's rootdir. torch and transformers are imported by
the first check, so a suite that makes no check starts as fast as before.
"""

import os
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from check_positions.checker import Finding

CHECKED = pytest.StashKey[dict[Path, str]]()  # failures of marked files
HERE = str(Path(__file__).parent)
WANTED = (
    "findings, the path of a config.json or of a folder with one, or a model "
    "of transformers"
)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker.

    Args:
        config: The configuration of the test run.
    """
    said = "positions(path, ...): check these files before the test runs"
    config.addinivalue_line("markers", said)
    config.stash[CHECKED] = {}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Fail a test if a check of a file in its markers fails.

    Args:
        item: The test, which has not run yet.
    """
    failures = []
    for marker in item.iter_markers("positions"):
        if not marker.args or marker.kwargs:
            got = f"args {marker.args}, kwargs {marker.kwargs}"
            wrong = f"the marker positions must have paths only, got {got}"
            pytest.fail(wrong, pytrace=False)
        failures += [
            _failure_of_file(path, item.config) for path in marker.args
        ]
    if told := "\n\n".join(filter(None, failures)):
        pytest.fail(told, pytrace=False)


@pytest.fixture
def assert_positions(pytestconfig: pytest.Config) -> Callable[..., None]:
    """Return a function that fails the test if a check fails.

    The function takes `source`: findings, the path of a config.json or of a
    folder with one, or a model of transformers. A model also takes `causal`,
    whether logits must not depend on later tokens; it is needed only if
    transformers does not know the configuration. The weights of the model do
    not change.

    Args:
        pytestconfig: The configuration of the test run.

    Returns:
        The function. It raises an AssertionError that lists the checks that
        fail, or if no check could decide; a ValueError if nothing could be
        checked; and a TypeError if `source` is none of these.
    """

    def check(source: Any, *, causal: bool | None = None) -> None:
        __tracebackhide__ = True
        name, findings = _findings(source, pytestconfig.rootpath, causal)
        if told := format_failures(name, findings):
            raise AssertionError(told)

    return check


def format_failures(name: str, findings: Iterable["Finding"]) -> str:
    """Format the findings that fail.

    Args:
        name: Name of the code that was checked.
        findings: Findings of any checks.

    Returns:
        The text, empty if no check fails and at least one passes. If no check
        passes or fails, it lists all findings.

    Example:
        >>> from check_positions import Finding
        >>> finding = Finding("finite", "fails", "Finite?", "yes", "no")
        >>> print(format_failures("my code", [finding]))
        my code: 1 of 1 checks failed: finite
        <BLANKLINE>
        finite: Finite?
          - expected: yes
          + found:    no
    """
    findings = list(findings)
    decided = [one for one in findings if one.verdict in ("passes", "fails")]
    failed = [one for one in decided if one.verdict == "fails"]
    if not decided:
        listed = [f"  {one}" for one in findings] or ["  there are no findings"]
        return "\n".join([f"{name}: no check could decide", *listed])
    if not failed:
        return ""
    checks = ", ".join(dict.fromkeys(one.check for one in failed))
    head = f"{name}: {len(failed)} of {len(decided)} checks failed: {checks}"
    return "\n\n".join([head, *map(_format_failure, failed)])


def _format_failure(finding: "Finding") -> str:
    tolerance = finding.tolerance
    within = f", within {tolerance:.1e}" if tolerance is not None else ""
    rows = [
        ("- expected: ", finding.expected + within),
        ("+ found:    ", finding.found),
        ("  first at: ", finding.where),
        ("  cause:    ", finding.cause and f"most often {finding.cause}"),
    ]
    lines = [
        textwrap.fill(
            text, 76, initial_indent=f"  {row}", subsequent_indent=" " * 14
        )
        for row, text in rows
        if text
    ]
    return "\n".join([f"{finding.check}: {finding.question}", *lines])


def _failure_of_file(source: str, config: pytest.Config) -> str:
    """Return why a file is wrong, "" if it is right; check it only once."""
    path, known = config.rootpath / source, config.stash[CHECKED]
    if path not in known:
        try:
            findings = _findings_of_file(source, config.rootpath)
            known[path] = format_failures(f"{source}", findings)
        except ValueError as error:
            known[path] = f"{error}"
    return known[path]


def _findings(
    source: Any, root: Path, causal: bool | None
) -> tuple[str, list["Finding"]]:
    """Return the name of what is checked, and its findings."""
    __tracebackhide__ = True
    if isinstance(source, str | os.PathLike):
        return f"{source}", _findings_of_file(source, root)
    if hasattr(source, "forward") and hasattr(source, "config"):
        return type(source).__name__, _findings_of_model(source, causal)
    from check_positions.checker import Finding

    given = list(source) if isinstance(source, Iterable) else [source]
    if all(isinstance(one, Finding) for one in given):
        return "positional code", given
    got = f"{type(source).__name__} {source!r:.100}"
    raise TypeError(f"source must be {WANTED}, got {got}")


def _findings_of_file(source: Any, root: Path) -> list["Finding"]:
    """Check a file without changing the random numbers of the test."""
    __tracebackhide__ = True
    import torch

    from check_positions.checker import check_transformers

    try:
        with torch.random.fork_rng(devices=[]):
            return check_transformers(root / source)
    except ValueError as error:
        why = f"{error}"
    except ImportError as error:
        why = f"{error}; pip install check-positions[transformers]"
    except Exception as error:  # transformers may raise any error
        why = f"{type(error).__name__}: {error}"
    raise ValueError(f"{source} could not be checked: {why}")


def _findings_of_model(model: Any, causal: bool | None) -> list["Finding"]:
    """Check a model in eval mode, and return it to the mode that it had."""
    __tracebackhide__ = True
    from check_positions.checker import check_module, model_class

    training = model.training
    try:
        if causal is None:
            causal = model_class(model.config)[1]
        return check_module(model.eval(), causal)
    except ValueError as error:
        raise ValueError(f"{error}") from _without_own_frames(error.__cause__)
    finally:
        model.train(training)


def _without_own_frames(error: BaseException | None) -> BaseException | None:
    """Return the error with a traceback that begins in the model."""
    frames = error.__traceback__ if error else None
    while frames and frames.tb_frame.f_code.co_filename.startswith(HERE):
        frames = frames.tb_next
    return error and error.with_traceback(frames)
