"""What exhibits and labs gave, kept until something that they used changes.

A result is used again only while every project file that its exhibit imported or
opened is the same, byte for byte, and so are Python, the platform and the libraries
that computed and drew it.
"""

import contextlib
import difflib
import functools
import hashlib
import importlib.metadata
import json
import math
import os
import subprocess
import sys
import sysconfig
import threading

from tqdm import tqdm

from weave import labs
from weave.project import CACHE, ROOT, digest, write_whole
from weave.symbols import table

KEPT = 4  # entries an exhibit keeps, so that an edit taken back finds its result again
LIBRARIES = ("torch", "numpy", "matplotlib", "pillow", "kiwisolver", "contourpy", "babel")
ROOMS = ("snippets", "exhibits", "experiments", "labs", "weave")


class Unavailable(Exception):
    """There is no such exhibit, or it failed; the message says which and why."""


def environment():
    """All that a result depends on besides the project's files."""
    try:
        versions = {name: importlib.metadata.version(name) for name in LIBRARIES}
    except importlib.metadata.PackageNotFoundError as error:
        raise Unavailable(f"{error.name} is not installed here, and exhibits need it") from None
    return {"python": sys.version, "platform": sysconfig.get_platform(), **versions}


def exhibit_names():
    """Every exhibit, as module.function: the public functions of the files in exhibits/."""
    names = []
    for path in sorted((ROOT / "exhibits").glob("*.py")):
        with contextlib.suppress(SyntaxError):  # reported when one of its exhibits runs
            symbols = table(path.read_text(encoding="utf-8")).items()
            names += [
                f"{path.stem}.{name}"
                for name, symbol in symbols
                if symbol["kind"] == "FunctionDef" and not name.startswith("_")
            ]
    return names


def lab_names():
    """Every lab, as lab-name, which no exhibit can be called."""
    return [f"lab-{name}" for name in labs.names()]


def called(name):
    """What a message calls an exhibit or a lab."""
    lab = name.removeprefix("lab-")
    return f"exhibit {name!r}" if lab == name else f"lab {lab!r}"


class Results:
    """The results of all exhibits and labs, brought up to date together and on demand."""

    def __init__(self):
        self._worker = None
        self._environment = None  # in which the worker was started: it keeps the libraries that it has loaded
        self._lock = threading.Lock()
        self._fresh = False
        self._loaded = {}  # exhibit -> entry
        self._failures = {}  # exhibit -> entry, with why and the state of all code instead of a result
        self._took = {}  # exhibit -> how many seconds it last ran

    def get(self, name):
        """The up-to-date result of exhibit `module.function` or lab `lab-name`."""
        with self._lock:
            if not self._fresh:
                self.refresh()
            if name in self._failures:
                raise Unavailable(f"{called(name)} failed: {self._failures[name]['why']}")
            if name not in self._loaded:
                raise Unavailable(self._unknown(name))
            return self._loaded[name]["result"]

    def forget(self):
        """Look at the files again before the next answer."""
        with self._lock:
            self._fresh = False

    def refresh(self):
        """Load what is still true and run what is not; a line for each that ran."""
        names = exhibit_names() + lab_names()
        now = _Now()
        self._loaded = {name: entry for name in names if (entry := self._entry(name, now))}
        failures = self._failures.items()
        self._failures = {name: entry for name, entry in failures if now.holds(entry)}
        stale = [name for name in names if name not in self._loaded | self._failures]
        if stale:
            stale.sort(key=lambda name: self._took.get(name, math.inf), reverse=True)  # none long at the end
            self._renew(stale, now, kept=len(names) - len(stale))
        self._fresh = True

    def _entry(self, name, now):
        known = self._loaded.get(name)
        return known if known and now.holds(known) else load(name, now)

    def _renew(self, stale, now, kept):
        code, failed = now.code, 0  # as it was before they ran
        bar = tqdm(total=len(stale), unit="exhibit", disable=None, leave=False)
        with bar, contextlib.closing(self.run(stale)) as outcomes:
            for outcome in outcomes:
                name, seconds = outcome["exhibit"], outcome["seconds"]
                self._took[name] = seconds
                used = {"environment": self._environment, "files": outcome.get("files", {})}
                if why := outcome.get("failure"):
                    failed += 1
                    self._failures[name] = used | {"code": code, "why": why}
                else:
                    self._loaded[name] = store(name, used | {"result": outcome["result"]})
                bar.write(f"{'failed' if why else 'ran':>6}  {seconds:6.2f} s  {name}", file=sys.stderr)
                bar.update()
        counts = f"{len(stale) - failed} exhibits ran, {kept} cached"
        print(counts + (f", {failed} failed" if failed else ""), file=sys.stderr)

    def run(self, names):
        """Run exhibits whatever is stored; yields what each gave, as it ends, and stores nothing.

        Who does not take all answers loses the worker: the next question would get those left over.
        """
        worker, complete = self._ready(), False
        try:
            worker.stdin.write(json.dumps(names) + "\n")
            worker.stdin.flush()
            for _ in names:
                yield json.loads(worker.stdout.readline())
            complete = True
        except (OSError, ValueError) as error:
            code = self._leave()
            raise Unavailable(f"the process that runs exhibits ended with exit code {code}") from error
        finally:
            if not complete:
                self._leave()

    def _ready(self):
        """The worker; a new one if there is none, or if the libraries are others than when it started."""
        now = environment()
        if self._worker and (self._worker.poll() is not None or self._environment != now):
            self._leave()
        if not self._worker:
            try:
                self._worker, self._environment = _start_worker(), now
            except OSError as error:
                raise Unavailable(f"the process that runs exhibits cannot start: {error}") from error
        return self._worker

    def _leave(self):
        """End the worker, which takes what it still runs along; its exit code."""
        worker, self._worker = self._worker, None
        if worker:
            with contextlib.suppress(OSError):  # it has ended already, and cannot read what was written
                worker.stdin.close()
            worker.stdout.close()
            return worker.wait()
        return None

    def _unknown(self, name):
        module, _, function = name.partition(".")
        if why := _unreadable(f"exhibits/{module}.py"):
            return f"exhibit {name!r} failed: {why}"
        near = difflib.get_close_matches(name, self._loaded | self._failures, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"unknown exhibit {name!r}: no function {function!r} in exhibits/{module}.py{hint}"


class _Now:
    """The state of the files and libraries during one refresh, each read once."""

    def __init__(self):
        self.environment = environment()
        self._digests = {}

    @functools.cached_property
    def code(self):
        """One digest of all that an exhibit which failed might have used."""
        code = sorted(p for room in ROOMS for p in (ROOT / room).rglob("*") if p.is_file())
        state = [(str(p), self.digest(p.relative_to(ROOT).as_posix())) for p in code if p.suffix != ".pyc"]
        return hashlib.sha256(json.dumps(state).encode()).hexdigest()

    @functools.cached_property
    def stored(self):
        """The files of all entries, by exhibit."""
        found = {}
        for path in CACHE.glob("*.json"):
            found.setdefault(path.name.rsplit(".", 2)[0], []).append(path)
        return found

    def digest(self, name):
        if name not in self._digests:
            self._digests[name] = digest(name)
        return self._digests[name]

    def holds(self, entry):
        """Is everything that the entry's exhibit used still the same?"""
        return (
            entry["environment"] == self.environment
            and all(self.digest(file) == found for file, found in entry["files"].items())
            and ("code" not in entry or entry["code"] == self.code)
        )


def _unreadable(file):
    """Why a Python file cannot be read, or None."""
    try:
        table((ROOT / file).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return f"no file {file}"
    except SyntaxError as error:
        return f"{error.msg} (at {file}:{error.lineno})"
    return None


def load(name, now):
    """The stored entry of an exhibit that still holds, else None. A damaged entry does not hold."""
    for path in now.stored.get(name, ()):
        try:
            entry = json.loads(path.read_bytes())
            if entry.pop("checksum") == _checksum(entry) and now.holds(entry):
                return entry
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
    return None


def store(name, entry):
    """Keep a result, whole or not at all, and drop the oldest of the exhibit's entries."""
    key = _checksum({part: entry[part] for part in ("environment", "files")})[:16]
    write_whole(CACHE / f"{name}.{key}.json", json.dumps(entry | {"checksum": _checksum(entry)}))
    with contextlib.suppress(FileNotFoundError):  # another build may tidy up at the same time
        entries = sorted(CACHE.glob(f"{name}.*.json"), key=lambda path: path.stat().st_mtime_ns)
        for path in entries[:-KEPT]:
            path.unlink()
    return entry


def _checksum(entry):
    return hashlib.sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest()


def _start_worker():
    settings = {
        "MPLBACKEND": "svg",
        "MPLCONFIGDIR": str(ROOT / ".cache" / "matplotlib"),
        "OMP_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": str(ROOT),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "weave.worker"],
        cwd=ROOT,
        env=os.environ | settings,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
