"""What exhibits and labs give, run when the store has nothing current.

    python -m executable_prose results

brings all results up to date; with --background at the lowest priority, and while its standard input is open.
"""

import contextlib
import difflib
import math
import os
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from tqdm import tqdm

from executable_prose import input_checks, labs, project, syntax
from executable_prose.execution.process_pool import Worker
from executable_prose.execution.store import Entry, Snapshot, environment, load, store, stored, used
from executable_prose.figures import mermaid
from executable_prose.outcome import Outcome, Result, Unavailable
from executable_prose.symbols import table

BACKGROUND = "--background"
LOWEST = 19  # the priority that leaves the processors to others


def exhibit_names() -> list[str]:
    """Every exhibit, as module.function: public functions of the examples without _ in front."""
    names = []
    for path in sorted((project.ROOT / project.settings().examples).glob("[!_.]*.py")):
        with contextlib.suppress(SyntaxError):  # reported when one of its exhibits runs
            symbols = table(path.read_text(encoding="utf-8")).items()
            names += [
                f"{path.stem}.{name}"
                for name, symbol in symbols
                if symbol["kind"] == "FunctionDef" and not name.startswith("_")
            ]
    return names


def lab_names() -> list[str]:
    """Every lab and notebook, as lab-name, which no exhibit can be called."""
    return [f"lab-{name}" for name in labs.notebooks()]


def called(name: str) -> str:
    """What a message calls an exhibit or a lab."""
    lab = name.removeprefix("lab-")
    return f"exhibit {name!r}" if lab == name else f"lab {lab!r}"


class Seen(dict[str, str | None]):
    """The digests of files, each looked at once."""

    def __missing__(self, name: str) -> str | None:
        self[name] = project.digest(name)
        return self[name]


class Results:
    """The results of all exhibits and labs, brought up to date together, or if `lazy` page by page."""

    def __init__(self, lazy: bool = False) -> None:
        self._lazy = lazy
        self._worker: Worker | None = None
        # In which the worker was started: it keeps the libraries that it has loaded.
        self._environment: dict[str, str] | None = None
        self._lock = threading.RLock()
        self._entries: dict[str, Entry | None] = {}  # exhibit -> its last entry, if one is current
        self._took: dict[str, float] = {}  # exhibit -> how many seconds it last ran
        self.invalidate()

    def invalidate(self) -> None:
        """Look at the files again before the next answer."""
        with self._lock:
            self._seen = Seen()
            self._ran: set[tuple[str, str | None]] = set()  # files and their digests while exhibits ran
            self.digest = self._seen.__getitem__
            self._now: Snapshot | None = None
            self._names: list[str] = []
            self._current: set[str] = set()  # whose entries have been compared with the files as they are
            self._pages: set[str] = set()  # that this build has made

    def visit(self, page: str, text: str) -> None:
        """Bring up to date what a page shows. When a page comes again, another build has begun."""
        with self._lock:
            if page in self._pages:
                self.invalidate()
            self._pages.add(page)
            with contextlib.suppress(Unavailable, syntax.PageError):  # who asks for it is told
                if wanted := syntax.named(text):
                    self.refresh(wanted, [text])

    def get(self, name: str) -> Result:
        """The up-to-date result of exhibit `module.function` or lab `lab-name`."""
        with self._lock:
            if name not in self._current:
                self.refresh({name})
            if name not in self._current:
                raise Unavailable(self._unknown(name))
            entry = self._entries[name]
            if entry.why:
                raise Unavailable(f"{called(name)} failed: {entry.why}")
            return entry.result  # type: ignore[return-value]

    def refresh(self, wanted: Collection[str] = (), pages: Iterable[str] = ()) -> None:
        """Load what is still true and run what is not; a line for each that ran."""
        self._now = self._now or Snapshot(self.digest)
        self._names = self._names or lab_names() + exhibit_names()
        names = [name for name in self._names if name in wanted or not self._lazy]
        asked = [name for name in names if name not in self._current]
        if stale := self._load(asked):
            if not self._lazy:
                pages = (path.read_text(encoding="utf-8") for path in project.documents("*.md"))
            self._renew(stale, mermaid.undrawn(_diagrams(pages)), cached=len(asked) - len(stale))
        self._current.update(asked)

    def _load(self, asked):
        """Take what is known or stored and still true; those of which nothing is, the longest first."""
        paths = stored() if asked else {}
        for name in asked:
            known = self._entries.get(name)
            if not (known and self._now.is_current(known)):
                self._entries[name] = load(paths.get(name, ()), self._now)
        stale = [name for name in asked if not self._entries[name]]
        return sorted(stale, key=lambda name: self._took.get(name, math.inf), reverse=True)

    def stored(self) -> Callable[[str], Result | None]:
        """Return a function that looks up the result that a build would use, and runs nothing."""
        paths, now = stored(), Snapshot()

        def find(name: str) -> Result | None:
            entry = load(paths.get(name, ()), now)
            return entry.result if entry else None

        return find

    def run(self, names: list[str]) -> Iterator[Outcome]:
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

    def close(self) -> None:
        """End the process that runs exhibits."""
        if self._worker:
            self._worker.close()
            self._worker = None

    def files(self) -> project.Digests:
        """The files that the results in use were made with, besides modules."""
        with self._lock:
            return {
                name: digest
                for entry in self._entries.values()
                if entry
                for name, digest in entry.files.items()
            }

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

    def states(self) -> set[tuple[str, str | None]]:
        """Return the files that results depend on, with the digests that they had when they were used."""
        return {*self._seen.items(), *self._ran}

    def _take(self, outcome, code):
        """Store what an exhibit gave; of one that failed, remember why."""
        self._ran |= {*outcome.files.items(), *outcome.modules.items()}
        entry = Entry(self._environment, *used(outcome), outcome.result, outcome.failure)
        self._entries[outcome.name] = entry
        if entry.why:
            entry.code = code
        else:
            store(outcome.name, entry)

    def _unknown(self, name):
        module, _, function = name.partition(".")
        file = f"{project.settings().examples}/{module}.py"
        if why := _unreadable(file):
            return f"exhibit {name!r} failed: {why}"
        kind = _kind(file, function)
        if kind and kind != "FunctionDef":
            what = "a coroutine (async def)" if kind == "AsyncFunctionDef" else "no function"
            found = f"{function!r} in {file} is {what}"
            return f"unknown exhibit {name!r}: expected a plain function, but {found}"
        near = difflib.get_close_matches(name, self._names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"unknown exhibit {name!r}: no function {function!r} in {file}{hint}"


def _diagrams(pages):
    """The diagrams on all pages, but for one that cannot be read, which tells by itself."""
    for page in pages:
        with contextlib.suppress(syntax.PageError):
            yield from syntax.diagrams(page)


@contextlib.contextmanager
def _drawing(sources):
    """Draw diagrams beside what runs: their engine leaves Python to others."""
    pool = ThreadPoolExecutor(1)
    try:
        yield [pool.submit(mermaid.draw, source) for source in sources]
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


def main(how: str = "") -> str | None:
    """The command `results`."""
    if how not in ("", BACKGROUND):
        return f"expected {BACKGROUND} or nothing, got {how!r}: all results are brought up to date"
    if how:
        getattr(os, "nice", int)(LOWEST)
        threading.Thread(target=_end_with_input, daemon=True).start()
    return input_checks.fault() or Results().refresh()  # type: ignore[func-returns-value]
