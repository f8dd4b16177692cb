"""A test that has passed with the code that it used has passed: `pytest --remember` leaves it out.

What a test uses of the snippets is noted while it runs: functions that run, files that it reads, and all of
them if it starts a process in the project, reads results or the site, or lets torch read code instead of
running it. A process elsewhere is taken to use no more than its test has read. A change of one of these lets
the test run again; so does any change outside of snippets/, or there outside of the code of functions.
A test that asks Git runs again after a commit, and on another day. A failure is never remembered.
"""

import ast
import contextlib
import functools
import hashlib
import importlib
import importlib.metadata
import io
import json
import linecache
import os
import subprocess
import sys
import time
import tokenize
from pathlib import Path

import pytest
import torch

from executable_prose.execution.provenance import parts
from executable_prose.project import CACHE, ROOT, write_whole
from guide.heads import HEAD

FILE = ROOT / ".cache" / "passed.json"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
ANYTHING = "*"  # in the place of what was used
HISTORY = "the history and the day"
PROCESSES = ("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system")

used = set()  # since it was last emptied: "rope.apply_rope" ran, "rope" was read as text


def functions(tree):
    """The functions at the top of a module and the methods of its classes, by qualified name."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{name}", method) for name, method in functions(node))
        elif isinstance(node, FUNCTIONS):
            yield node.name, node


def noting(tree, snippet):
    """The tree of a snippet whose functions note that they run; torch.compile sees nothing of it."""
    for name, node in functions(tree):
        note = ast.parse(f"_remembered.tracing() or _remembered.used.add({f'{snippet}.{name}'!r})").body
        for part in ast.walk(note[0]):
            ast.copy_location(part, node.body[0])
        after = ast.get_docstring(node) is not None
        node.body[after:after] = note
    return tree


tracing = torch.compiler.is_dynamo_compiling


def prose(text):
    """What a module says besides the code of its functions: heads, docstrings, comments, and all else."""
    tree = ast.parse(text)
    for _, node in functions(tree):
        node.body = [ast.Expr(ast.Constant(ast.get_docstring(node)))]
    comments = (each.string for each in tokenize.generate_tokens(io.StringIO(text).readline))
    return [ast.dump(tree), *(each for each in comments if each.startswith("#"))]


def files():
    """The project's files, as git knows them; none where it knows of no project."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    asked = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    return sorted(set(os.fsdecode(asked.stdout).split("\0")) - {""})


def state():
    """Digests of what a test may use of the snippets, and as "" of all else."""
    known, rest = {}, [sys.version, *_installed()]
    for name in files():
        with contextlib.suppress(OSError):  # removed, and not yet from the index
            content = (ROOT / name).read_bytes()
            snippet = name.removeprefix("snippets/").removesuffix(".py")
            if name == f"snippets/{snippet}.py":
                known[snippet] = _digest(content)
                text = HEAD.sub("", content.decode())
                with contextlib.suppress(SyntaxError):
                    found = {name: part for name, part in parts(text).items() if name}
                    known |= {f"{snippet}.{function}": part for function, part in found.items()}
                    content = repr(prose(text)).encode()
            rest += [name, _digest(content)]
    last = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, check=False).stdout
    history = _digest(last + time.strftime("%Y-%m-%d").encode())
    return known | {
        "": _digest(repr(rest).encode()),
        ANYTHING: _digest(repr(known).encode()),
        HISTORY: history,
    }


@functools.cache
def _installed():
    return sorted(f"{each.name} {each.version}" for each in importlib.metadata.distributions())


def _digest(content):
    return hashlib.sha256(content).hexdigest()[:16]


def _is_here(arguments, folder):
    """Whether a process is started in the project, or hears of a snippet."""
    place = Path(os.path.abspath(folder or "."))  # noqa: PTH100
    return place.is_relative_to(ROOT) or str(ROOT / "snippets") in str(arguments)


def _fixtures(item):
    return [each for definitions in item._fixtureinfo.name2fixturedefs.values() for each in definitions]


class Remembered:
    """A pytest plugin, in each worker and in the process that has started them."""

    def __init__(self):
        self.state = state()
        self.passed = self._read()  # by test, what it used and its digest
        self.left_out = 0
        self.new = {}
        self.failed = set()
        self.fixtures = {}  # that are for several tests: used in their set-up and in the tests so far
        self.listening = True
        sys.addaudithook(self._on_audit)

    def _read(self):
        try:
            kept = json.loads(FILE.read_bytes())
            passed = kept["passed"] if kept["state"] == self.state[""] else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}
        holds = lambda uses: all(self.state.get(name) == digest for name, digest in uses.items())  # noqa: E731
        return {test: uses for test, uses in passed.items() if holds(uses)}

    def _on_audit(self, event, arguments):
        if not self.listening:
            return
        if event == "open" and isinstance(arguments[0], (str, bytes)):
            self._on_open(os.fsdecode(arguments[0]))
        elif event in PROCESSES or (event == "subprocess.Popen" and _is_here(*arguments[1:3])):
            used.add(ANYTHING)
        if event == "subprocess.Popen" and arguments[0] == "git":
            used.add(HISTORY)

    def _on_open(self, path):
        place = Path(os.path.abspath(path))  # noqa: PTH100
        if place.parent == ROOT / "snippets":
            if not sys._getframe(2).f_code.co_filename.startswith("<frozen importlib"):
                used.add(place.stem)
        elif place.is_relative_to(ROOT / "site") or place.is_relative_to(CACHE):
            used.add(ANYTHING)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        out = [item for item in items if item.nodeid in self.passed]
        self.left_out = len(out)
        items[:] = [item for item in items if item.nodeid not in self.passed]
        config.hook.pytest_deselected(items=out)

    def pytest_collection_finish(self):
        for room in ("experiments", "exhibits"):  # whoever imports them first, nothing may run then
            for path in sorted((ROOT / room).glob("[!_]*.py")):
                importlib.import_module(f"{room}.{path.stem}")
        self._look_at_torch()
        if ran := sorted(name for name in used if "." in name):
            raise pytest.UsageError(
                f"{', '.join(ran)} ran while tests were collected: of which test is that?"
            )

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef, request):
        if fixturedef.scope == "function" or not fixturedef.baseid:  # pytest's own
            return (yield)
        before = set(used)
        used.clear()
        try:
            return (yield)
        finally:
            self._look_at_torch()
            self.fixtures[fixturedef] = set(used)
            used.update(before)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        used.clear()
        linecache.clearcache()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        if report.when == "teardown":
            self._look_at_torch()
            shared = [self.fixtures[each] for each in _fixtures(item) if each in self.fixtures]
            used.update(*shared)
            for each in shared:
                each.update(used)
            report.user_properties.append(("used", sorted(used)))
        return report

    def _look_at_torch(self):
        """Code that torch.compile has read notes nothing when it runs; what it keeps of it, it forgets."""
        utils = sys.modules.get("torch._dynamo.utils")
        if utils and any(utils.counters.values()):
            used.add(ANYTHING)
            torch.compiler.reset()
            utils.counters.clear()

    def pytest_runtest_logreport(self, report):
        if report.outcome != "passed":
            self.failed.add(report.nodeid)
        for name, value in report.user_properties:
            if name == "used":
                self.new[report.nodeid] = value

    def pytest_sessionfinish(self, session):
        self.listening = False
        nothing = session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED
        if nothing and self.left_out:
            session.exitstatus = pytest.ExitCode.OK
        if hasattr(session.config, "workerinput"):
            session.config.workeroutput["left out"] = self.left_out
        elif self.state == state() and files():
            known = {test: uses for test, uses in self.passed.items() if test not in self.failed}
            for test, names in self.new.items():
                if test not in self.failed:
                    known[test] = {name: self.state.get(name) for name in names}
            write_whole(FILE, json.dumps({"state": self.state[""], "passed": known}))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        self.left_out = getattr(node, "workeroutput", {}).get("left out", 0)

    def pytest_terminal_summary(self, terminalreporter):
        if self.left_out:
            said = "tests left out, which have passed with the code that they use"
            terminalreporter.write_line(f"{self.left_out} {said}")
