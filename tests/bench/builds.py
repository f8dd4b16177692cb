"""How long building takes, beside the goals and beside plain MkDocs, and what pages weigh.

Seconds are those on the wall, which belong to an idle machine with two cores. Where other work may run beside
the bench, processor time is compared. A goal that is missed is said and is no error.
"""

import ast
import contextlib
import json
import os
import random
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import NamedTuple

from executable_prose.syntax import named

ROOT = Path(__file__).resolve().parents[2]
# What MkDocs leaves out of mkdocs.yml when it makes the same pages without the engine.
PLAIN = re.compile(r"^  - executable_prose:\n(?:    .*\n)*|^  - guide\n", re.M)
NOTEBOOK = re.compile(
    r"^  - mkdocs-jupyter:\n(?:    .*\n)*|^ *- \w+: notebooks/\S+\.py\n", re.M
)  # the tour's
EDITS, SEED = 20, 0
BUILD = [sys.executable, "-m", "executable_prose", "build"]


def copy(folder):
    """The project without its caches, so that this folder's own stay as they are."""
    listed = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], ROOT).said
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)


class Done(NamedTuple):
    seconds: float
    processor: float  # seconds of it, of all processes that were waited for
    said: str


def run(command, folder, environment=None, may_fail=False):
    """Run a command to its end; one that fails ends the bench, unless it may."""
    before, start = os.times(), time.perf_counter()
    done = subprocess.run(
        command, cwd=folder, env=environment, check=False, capture_output=True, text=True, errors="replace"
    )
    seconds, after = time.perf_counter() - start, os.times()
    if done.returncode and not may_fail:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    user, system = after.children_user - before.children_user, after.children_system - before.children_system
    return Done(seconds, user + system, done.stdout + done.stderr)


def head():
    """Begin a table in Markdown, as CONTRIBUTING.md shows it."""
    print(f"| {'Build':<50} | Measured |  Goal |         |\n|{'-' * 52}|---------:|------:|---------|")


def show(what, measured, unit="s", goal=None, note=""):
    """Print a row of it, and what else there is to say below it on stderr."""
    reached = "" if goal is None else "reached" if measured <= goal else "missed"
    wanted = "" if goal is None else f"{goal:g} {unit}"
    print(f"| {what:<50} | {f'{measured:.2f} {unit}':>8} | {wanted:>5} | {reached:<7} |", flush=True)
    if note:
        print(f"  {note}", file=sys.stderr, flush=True)


# Edits, as the reader of a page sees them


class Function(NamedTuple):
    file: str
    name: str
    line: int  # of its first statement, from 0
    indent: int

    def edited(self, text):
        """A text of its file in which the function has a statement more, which does nothing."""
        lines = text.split("\n")
        return "\n".join([*lines[: self.line], " " * self.indent + "_ = 0", *lines[self.line :]])


def functions(project):
    """Every function and method of the snippets."""
    for path in sorted((project / "snippets").glob("*.py")):
        file = path.relative_to(project).as_posix()
        yield from _functions(file, ast.parse(path.read_text(encoding="utf-8")), "")


def _functions(file, scope, prefix):
    for node in scope.body:
        if isinstance(node, ast.ClassDef):
            yield from _functions(file, node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            first = node.body[ast.get_docstring(node) is not None :] or node.body
            yield Function(file, prefix + node.name, first[0].lineno - 1, first[0].col_offset)


def page_of(project, function):
    """The page that shows most of what an edit of the function concerns; else its reference page."""
    concerned = set()
    for path in (project / ".cache" / "executable_prose").glob("*.json"):
        entry = json.loads(path.read_bytes())
        parts = entry["modules"].get(function.file, {}).get("parts", {})
        if function.name in parts or function.file in entry["files"]:
            concerned.add(path.name.rsplit(".", 2)[0])
    pages = sorted((project / "docs").rglob("*.md"))
    shown = {page: len(concerned & named(page.read_text(encoding="utf-8"))) for page in pages}
    most = max(pages, key=shown.get)
    if not shown[most]:
        most = project / "docs" / "reference" / Path(function.file).with_suffix(".md").name
    return re.sub(r"(^|/)index/$", r"\1", f"{most.relative_to(project / 'docs').with_suffix('').as_posix()}/")


class Reader:
    """One who has a page of the server open, as a browser has."""

    def __init__(self, origin, page):
        self.origin, self.page = origin, page
        self.load()

    def load(self):
        text = _get(f"{self.origin}/{self.page}")
        if "<title>Error</title>" in text:
            sys.exit(f"{self.page} cannot be made:\n{text}")
        self.epoch, self.id = re.search(r"livereload\((\d+), (\d+)\)", text).groups()

    def wait(self):
        """Wait until the server calls for a reload, and reload."""
        while _get(f"{self.origin}/livereload/{self.epoch}/{self.id}") == self.epoch:
            pass
        self.load()


def _get(address):
    with urllib.request.urlopen(address, timeout=600) as answer:
        return answer.read().decode()


@contextlib.contextmanager
def server(project):
    """The address of `make serve`, once it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "-m", "executable_prose", "serve", "--quiet", "--dev-addr", address]
    # What it leaves behind when it is ended goes with the copy.
    environment = os.environ | {"TMPDIR": str(project / ".cache")}
    process = subprocess.Popen(command, cwd=project, env=environment, stderr=subprocess.DEVNULL)
    try:
        while True:
            with contextlib.suppress(OSError):
                _get(f"http://{address}/")
                break
            if process.poll() is not None:
                sys.exit("`make serve` has ended")
            time.sleep(0.1)
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait()


def edit_times(project):
    """Seconds from saving an edited function to the reloaded page, and which it was."""
    chosen = random.Random(SEED).sample(list(functions(project)), EDITS)
    pages = [page_of(project, function) for function in chosen]
    with server(project) as origin:
        for function, page in zip(chosen, pages, strict=True):
            file, reader = project / function.file, Reader(origin, page)
            text = file.read_text(encoding="utf-8")
            file.write_text(function.edited(text), encoding="utf-8")
            start = time.perf_counter()
            reader.wait()
            yield time.perf_counter() - start, f"{function.file}@{function.name}, seen on {page or 'home'}"
            file.write_text(text, encoding="utf-8")
            reader.wait()


def build_times(project):
    """A line for each thing that was timed."""
    cold = run(BUILD, project)
    ran = re.search(r"\d+ exhibits ran", cold.said)[0]
    show("first build after set-up", cold.seconds, note=ran)
    warm = [run(BUILD, project) for _ in range(3)]
    configuration = PLAIN.sub("", (project / "mkdocs.yml").read_text(encoding="utf-8"))
    plain = [plainly(project, configuration) for _ in range(3)]
    bare = [plainly(project, NOTEBOOK.sub("", configuration)) for _ in range(3)]
    ours, theirs, less = (min(done.processor for done in each) for each in (warm, plain, bare))
    note = f"{ours:.2f} and {theirs:.2f} s of processor time"
    show("nothing changed, beside plain MkDocs", ours / theirs, "×", 1.3, note)
    note = f"{less:.2f} s without the tour, for which it needs mkdocs-jupyter"
    show("the same, beside MkDocs without the tour", ours / less, "×", note=note)
    edits = sorted(edit_times(project))
    median = statistics.median(seconds for seconds, _ in edits)
    show(f"from an edit to the page, median of {EDITS}", median, goal=1.5)
    show("from an edit to the page, the worst", edits[-1][0], goal=4, note=edits[-1][1])
    show("plain MkDocs, which runs nothing", min(done.seconds for done in plain))


def plainly(project, configuration):
    """Build the same pages without the engine; not where nbconvert finds the template of ours in lab/."""
    (project / "plain.yml").write_text(configuration, encoding="utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", "plain"]
    return run([*command, "--config-file", "../plain.yml"], project / ".cache")


def page_weights(site):
    from built import BuiltSite
    from playwright.sync_api import sync_playwright
    from server import serve
    from visits import Visit, launch

    with serve(site, "/") as origin, sync_playwright() as playwright:
        browser = launch(playwright)
        for path in BuiltSite(site).pages:
            with Visit(browser, f"{origin}/") as visit:
                visit.go(path)
                visit.ask("scrollToEnd")
                visit.settle()
                yield path or "home", visit.bytes_received(), len(visit.requests), visit.ask("elements")
        browser.close()


def bench():
    with tempfile.TemporaryDirectory(prefix="bench ", ignore_cleanup_errors=True) as folder:
        project = Path(folder)
        copy(project)
        head()
        build_times(project)
        print("\npage, scrolled to its end                 kB  requests  elements")
        for path, size, requests, elements in page_weights(project / "site"):
            print(f"{path:<38}{size / 1000:>8.1f}{requests:>10}{elements:>10}", flush=True)
