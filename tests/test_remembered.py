"""What has passed is left out exactly as long as it would pass again."""

import json
import re
import shutil
import subprocess
import sys

import pytest
import remembered
import torch

pytest_plugins = ["pytester"]

SNIPPET = '''\
# SPDX-License-Identifier: 0BSD
# From The guide, 2026-01-01
"""What turns."""

BASE = 2


def turned(x):
    """Twice."""
    return BASE * x  # whatever x is


def other(x, by=1):
    return x + by


class Turn:
    scale = 3

    def forward(self, x):
        return self.scale * x
'''
TESTS = """
import os
import pathlib
import subprocess
import sys

import pytest
import torch

from snippets import waves

HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="module")
def made():
    return waves.turned(1)


@pytest.fixture(scope="module")
def lazy():
    known = {}
    return lambda: known.get("x") or known.setdefault("x", waves.turned(1))


def test_calls():
    assert waves.turned(1) == 2


def test_calls_a_method():
    assert waves.Turn().forward(1) == 3


def test_calls_another():
    assert waves.other(1) == 2


def test_takes_what_a_fixture_made(made):
    assert made == 2


def test_asks_first(lazy):
    assert lazy() == 2


def test_is_told_what_was_asked(lazy):
    assert lazy() == 2


def test_reads():
    assert "BASE" in (HERE / "snippets" / "waves.py").read_text()


def test_starts_a_process():
    assert subprocess.run([sys.executable, "-S", "-c", ""], cwd=HERE).returncode == 0


def test_starts_a_process_elsewhere(tmp_path):
    assert subprocess.run([sys.executable, "-S", "-c", ""], cwd=tmp_path).returncode == 0


def test_tells_a_process_elsewhere_of_a_snippet(tmp_path):
    command = [sys.executable, "-S", "-c", "", HERE / "snippets" / "waves.py"]
    assert subprocess.run(command, cwd=tmp_path).returncode == 0


def test_forks():
    if not (child := os.fork()):
        os._exit(0)
    os.waitpid(child, 0)


def test_reads_results():
    assert not (HERE / ".cache" / "executable_prose" / "a.json").read_text()


def test_reads_the_site():
    assert (HERE / "site").is_dir() and (HERE / "site" / "index.html").read_text() == ""


def test_lets_torch_read():
    assert torch.compile(waves.other, backend="eager")(torch.ones(1)) == 2


def test_asks_git(tmp_path):
    assert subprocess.run(["git", "--version"], cwd=tmp_path).returncode == 0


def test_uses_nothing():
    pass


def test_fails():
    assert not waves.Turn
"""
EVERY = set(re.findall(r"\ndef test_(\w+)", TESTS))
ALWAYS = {"fails"}  # a failure is not remembered
CALLS_TURNED = {"calls", "takes_what_a_fixture_made", "asks_first", "is_told_what_was_asked"}
ANY_FUNCTION = {
    "starts_a_process",
    "tells_a_process_elsewhere_of_a_snippet",
    "forks",
    "reads",
    "reads_results",
    "reads_the_site",
    "lets_torch_read",
}


@pytest.fixture(scope="module", autouse=True)
def compiler():
    """pytester takes back what was imported in a test, and torch does not bear to be imported again."""
    torch.compile(abs, backend="eager")(torch.ones(1))


@pytest.fixture
def passes(pytester, monkeypatch):
    """A function that runs the tests of a project of one snippet, but for those remembered; their names."""
    monkeypatch.setattr(remembered, "ROOT", pytester.path)
    monkeypatch.setattr(remembered, "CACHE", pytester.path / ".cache" / "executable_prose")
    monkeypatch.setattr(remembered, "FILE", pytester.path / ".cache" / "passed.json")
    monkeypatch.syspath_prepend(pytester.path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "snippets"]:
        monkeypatch.delitem(sys.modules, name)
    pytester.makeini("[pytest]\naddopts = -p no:cacheprovider -p no:xdist\n")
    pytester.path.joinpath(".gitignore").write_text(".cache/\nsite/\n__pycache__/\n")
    for name, text in {
        "snippets/__init__.py": "",
        "snippets/waves.py": SNIPPET,
        "site/index.html": "",
        ".cache/executable_prose/a.json": "",
    }.items():
        path = pytester.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    pytester.makepyfile(test_it=TESTS)
    subprocess.run(["git", "init", "--quiet"], cwd=pytester.path, check=True)

    def passes(*options):
        remembered.used.clear()  # of the tests around
        done = pytester.inline_run(*options, plugins=[remembered.Remembered()])
        return {
            report.nodeid.partition("::test_")[2] for report in done.getreports("pytest_runtest_logreport")
        }

    return passes


EDITS = [
    ("", "", set()),
    ("2026-01-01", "2026-02-02", ANY_FUNCTION),
    ("BASE * x", "x * BASE", {*CALLS_TURNED, *ANY_FUNCTION}),
    ("# whatever x is", "# of x", EVERY),
    ("return x + by", "return by + x", {"calls_another", *ANY_FUNCTION}),
    ("self.scale * x", "x * self.scale", {"calls_a_method", *ANY_FUNCTION}),
    ("scale = 3", "scale = 3.0", EVERY),
    ("BASE = 2", "BASE = 2.0", EVERY),
    ("by=1", "by=1.0", EVERY),
    ("Twice.", "Two times.", EVERY),
    ("def other", "def third(x):\n    return x\n\n\ndef other", EVERY),
]


def test_an_edit_runs_what_may_notice_it(passes, pytester):
    assert passes() == EVERY
    path, known = pytester.path / "snippets" / "waves.py", remembered.FILE.read_text()
    for was, becomes, again in EDITS:
        assert was in SNIPPET
        path.write_text(SNIPPET.replace(was, becomes, 1))
        remembered.FILE.write_text(known)
        assert passes() == again | ALWAYS, (was, becomes)


def test_to_have_nothing_left_to_run_is_no_error(passes, pytester):
    pytester.makepyfile(test_it="def test_it():\n    pass\n")
    for by_name, ran, ended in (
        ("it", 1, pytest.ExitCode.OK),
        ("it", 0, pytest.ExitCode.OK),
        ("nothing", 0, pytest.ExitCode.NO_TESTS_COLLECTED),
    ):
        done = pytester.inline_run("-k", by_name, plugins=[remembered.Remembered()])
        assert (len(done.getcalls("pytest_runtest_protocol")), done.ret) == (ran, ended)


def test_an_edit_of_anything_else_runs_everything(passes, pytester):
    passes()
    pytester.makepyfile(helper="")
    assert passes() == EVERY


def test_who_asks_git_asks_again_after_a_commit_and_on_another_day(passes, pytester, monkeypatch):
    passes()
    assert passes() == ALWAYS
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    command = ["git", *who, "commit", "--quiet", "--allow-empty", "--no-gpg-sign", "--message", "A change"]
    subprocess.run(command, cwd=pytester.path, check=True)
    assert passes() == {"asks_git"} | ALWAYS
    assert passes() == ALWAYS
    monkeypatch.setattr(remembered.time, "strftime", lambda form: "2026-01-01")
    assert passes() == {"asks_git"} | ALWAYS


def test_an_edit_while_tests_run_is_of_no_run(passes, pytester):
    pytester.makeconftest(
        """
        from pathlib import Path

        def pytest_sessionfinish():
            Path("new.txt").touch()
        """
    )
    assert passes() == EVERY
    assert not remembered.FILE.exists()


def test_what_is_left_out_by_name_is_remembered_all_the_same(passes):
    passes()
    assert passes("-k", "calls") == set()
    assert passes() == ALWAYS


@pytest.mark.parametrize("damage", ["{", "{}", "[]"])
def test_what_cannot_be_read_was_never_written(passes, damage):
    passes()
    remembered.FILE.write_text(damage)
    assert passes() == EVERY


def test_a_snippet_that_is_no_python_counts_whole(passes, pytester):
    broken = pytester.path / "snippets" / "broken.py"
    broken.write_text("def f(:\n")
    before = remembered.state()
    broken.write_text("def g(:\n")
    assert remembered.state()[""] != before[""]


def test_without_git_nothing_is_remembered(passes, pytester):
    shutil.rmtree(pytester.path / ".git")
    assert passes() == EVERY
    assert passes() == EVERY


def test_what_runs_while_tests_are_collected_is_refused(passes, pytester, capsys):
    pytester.makepyfile(test_more="from snippets import waves\n\nTABLE = waves.turned(1)\n")
    assert passes() == set()
    assert "waves.turned ran while tests were collected: of which test is that?" in capsys.readouterr().err


@pytest.mark.slow
def test_what_would_be_left_out_does_not_need_the_function(tmp_path):
    """Of the project's own tests: those that fail once a function raises are those that would run again."""
    for name in remembered.files():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(remembered.ROOT / name, path)
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    rooms = [f"tests/{room}" for room in ("exhibits", "experiments", "labs", "snippets")]
    options = ["-q", "--tb=no", "-m", "not slow", "--numprocesses=auto", "--dist=loadfile"]
    ask = [sys.executable, "-m", "pytest", *options, *rooms]
    done = subprocess.run([*ask, "--remember"], cwd=tmp_path, check=False)
    assert done.returncode == 0
    file = tmp_path / "snippets" / "alibi.py"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("    _check(", "    raise AssertionError\n    _check(", 1), encoding="utf-8")
    changed = remembered.parts(file.read_text(encoding="utf-8")).items() - remembered.parts(text).items()
    ((function, _),) = changed
    subprocess.run(ask, cwd=tmp_path, check=False)
    failed = json.loads((tmp_path / ".pytest_cache/v/cache/lastfailed").read_text())
    passed = json.loads((tmp_path / ".cache/passed.json").read_text())["passed"]
    assert len(failed) > 100
    runs_again = {f"alibi.{function}", "alibi", remembered.ANYTHING}
    assert [test for test in failed if not runs_again & passed.get(test, {}).keys()] == []
