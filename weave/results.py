"""What exhibits and labs give, run when the store has nothing current.

    python -m weave.results

brings all results up to date; with --background at the lowest priority, and while its standard input is open.
"""

import contextlib
import difflib
import functools
import math
import os
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from tqdm import tqdm

from weave import diagrams, labs, project, texts
from weave.entries import Entry, Snapshot, environment, load, store, stored, used
from weave.errors import in_a_line
from weave.symbols import table
from weave.worker import Unavailable, Worker

LOWEST = 19  # the priority that leaves the processors to others
NAMED = re.compile(r"(?:\bexhibit|#!val)\s+(?P<exhibit>\w+\.\w+)|\blab\s+(?P<lab>\w+)")


def exhibit_names():
    """Every exhibit, as module.function: public functions of the files in exhibits/ without _ in front."""
    names = []
    for path in sorted((project.ROOT / "exhibits").glob("[!_]*.py")):
        with contextlib.suppress(SyntaxError):  # reported when one of its exhibits runs
            symbols = table(path.read_text(encoding="utf-8")).items()
            names += [
                f"{path.stem}.{name}"
                for name, symbol in symbols
                if symbol["kind"] == "FunctionDef" and not name.startswith("_")
            ]
    return names


def lab_names():
    """Every lab and notebook, as lab-name, which no exhibit can be called."""
    return [f"lab-{name}" for name in labs.notebooks()]


def named(text):
    """What the text of a page may show, as exhibits and labs are called."""
    return {match["exhibit"] or f"lab-{match['lab']}" for match in NAMED.finditer(text)}


def called(name):
    """What a message calls an exhibit or a lab."""
    lab = name.removeprefix("lab-")
    return f"exhibit {name!r}" if lab == name else f"lab {lab!r}"


class Results:
    """The results of all exhibits and labs, brought up to date together, or if `lazy` page by page."""

    def __init__(self, lazy=False):
        self._lazy = lazy
        self._worker = None
        self._environment = None  # in which the worker was started: it keeps the libraries that it has loaded
        self._lock = threading.RLock()
        self._entries = {}  # exhibit -> its last entry, None if there is none that is current
        self._took = {}  # exhibit -> how many seconds it last ran
        self.invalidate()

    def invalidate(self):
        """Look at the files again before the next answer."""
        with self._lock:
            self.digest = functools.cache(project.digest)  # of a file, looked at once a build
            self._now = None
            self._names = []
            self._current = set()  # the exhibits whose entries have been compared with the files as they are
            self._pages = set()  # that this build has made

    def visit(self, page, text):
        """Bring up to date what a page shows. When a page comes again, another build has begun."""
        with self._lock:
            if page in self._pages:
                self.invalidate()
            self._pages.add(page)
            if wanted := named(text):
                with contextlib.suppress(Unavailable):  # who asks for it is told
                    self.refresh(wanted, [text])

    def get(self, name):
        """The up-to-date result of exhibit `module.function` or lab `lab-name`."""
        with self._lock:
            if name not in self._current:
                self.refresh({name})
            if name not in self._current:
                raise Unavailable(self._unknown(name))
            entry = self._entries[name]
            if entry.why:
                raise Unavailable(f"{called(name)} failed: {entry.why}")
            return entry.result

    def refresh(self, wanted=(), pages=()):
        """Load what is still true and run what is not; a line for each that ran."""
        self._now = now = self._now or Snapshot(self.digest)
        self._names = self._names or lab_names() + exhibit_names()
        names = [name for name in self._names if name in wanted or not self._lazy]
        asked = [name for name in names if name not in self._current]
        paths = stored() if asked else {}
        for name in asked:
            known = self._entries.get(name)
            self._entries[name] = known if known and now.is_current(known) else load(paths.get(name, ()), now)
        if stale := [name for name in asked if not self._entries[name]]:
            stale.sort(key=lambda name: self._took.get(name, math.inf), reverse=True)  # none long at the end
            if not self._lazy:
                pages = (path.read_text(encoding="utf-8") for path in sorted(project.DOCS.rglob("*.md")))
            self._renew(stale, diagrams.undrawn(pages), cached=len(asked) - len(stale))
        self._current.update(asked)

    def run(self, names):
        """Run exhibits whatever is stored; yields what each gave, as it ends, and stores nothing."""
        now = environment()
        if self._worker and not (self._worker.is_current() and self._environment == now):
            self.close()
        if not self._worker:
            self._worker, self._environment = Worker(), now
        try:
            yield from self._worker.run(names)
        finally:
            if self._worker and self._worker.is_closed():
                self._worker = None

    def close(self):
        """End the process that runs exhibits."""
        if self._worker:
            self._worker.close()
            self._worker = None

    def _renew(self, stale, undrawn, cached):
        code, failed = self._now.code, 0  # as it was before they ran
        bar = tqdm(total=len(stale) + len(undrawn), unit="exhibit", disable=None, leave=False)
        with bar, contextlib.closing(self.run(stale)) as outcomes, _drawing(undrawn) as drawings:
            for outcome in outcomes:
                name, why = outcome.name, outcome.failure
                self._took[name] = outcome.seconds
                failed += bool(why)
                self._take(outcome, code)
                said = f"{'failed' if why else 'ran':>6}  {outcome.seconds:6.2f} s  {name}"
                bar.write(f"{said}: {why}" if why else said, file=sys.stderr)
                bar.update()
            for drawing in drawings:
                drawing.exception()  # its page tells, with the line
                bar.update()
        counts = f"{len(stale) - failed} exhibits ran, {cached} cached"
        print(counts + (f", {failed} failed" if failed else ""), file=sys.stderr)

    def _take(self, outcome, code):
        """Store what an exhibit gave; of one that failed, remember why."""
        entry = Entry(self._environment, *used(outcome), outcome.result, outcome.failure)
        self._entries[outcome.name] = entry
        if entry.why:
            entry.code = code
        else:
            store(outcome.name, entry)

    def _unknown(self, name):
        module, _, function = name.partition(".")
        if why := _unreadable(f"exhibits/{module}.py"):
            return f"exhibit {name!r} failed: {why}"
        kind = _kind(f"exhibits/{module}.py", function)
        if kind and kind != "FunctionDef":
            what = "a coroutine (async def)" if kind == "AsyncFunctionDef" else "no function"
            found = f"{function!r} in exhibits/{module}.py is {what}"
            return f"unknown exhibit {name!r}: expected a plain function, but {found}"
        near = difflib.get_close_matches(name, self._names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"unknown exhibit {name!r}: no function {function!r} in exhibits/{module}.py{hint}"


@contextlib.contextmanager
def _drawing(sources):
    """Draw diagrams beside what runs: their engine leaves Python to others."""
    pool = ThreadPoolExecutor(1)
    try:
        yield [pool.submit(diagrams.draw, source) for source in sources]
    finally:
        pool.shutdown(cancel_futures=True)


def _kind(file, symbol):
    """What a symbol of a Python file is, as its syntax tree has it; None if there is none."""
    return table((project.ROOT / file).read_text(encoding="utf-8")).get(symbol, {}).get("kind")


def _unreadable(file):
    """Why a Python file cannot be read, or None."""
    try:
        table((project.ROOT / file).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return f"no file {file}"
    except SyntaxError as error:
        return f"{error.msg} (at {file}:{error.lineno})"
    return None


def _end_with_input():
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    if "--background" in sys.argv:
        getattr(os, "nice", int)(LOWEST)
        threading.Thread(target=_end_with_input, daemon=True).start()
    with in_a_line():
        sys.exit(texts.fault() or Results().refresh())
