"""The store of results: what each exhibit and lab gave, with all that decided it.

A result is used again only while all that decided it is the same: of every project module that its exhibit
imported the skeleton, and the functions that ran (see provenance.py); every other project file that it
opened, byte for byte; Python, the platform and the libraries that computed and drew it.
"""

import contextlib
import functools
import hashlib
import importlib.metadata
import json
import sys
import sysconfig
from dataclasses import dataclass

from weave import project
from weave.project import digest
from weave.provenance import parts
from weave.worker import Unavailable

ENTRIES = 4  # of each exhibit, so that an edit taken back finds its result again
LIBRARIES = ("torch", "numpy", "matplotlib", "pillow", "kiwisolver", "contourpy", "babel")
ROOMS = ("snippets", "exhibits", "experiments", "labs", "weave")


@dataclass
class Entry:
    """What decided a result, and the result; or why there is none, and the state of all code then."""

    environment: dict
    files: dict
    modules: dict
    result: dict | None = None
    why: str = ""
    code: str = ""


def environment():
    """All that a result depends on besides the project's files."""
    try:
        versions = {name: importlib.metadata.version(name) for name in LIBRARIES}
    except importlib.metadata.PackageNotFoundError as error:
        raise Unavailable(f"{error.name} is not installed here, and exhibits need it") from None
    return {"python": sys.version, "platform": sysconfig.get_platform(), **versions}


class Snapshot:
    """One state of the files and libraries, each looked at once."""

    def __init__(self, digest=None):
        self.environment = environment()
        self.digest = digest or functools.cache(project.digest)
        self.parts = functools.cache(_parts)

    @functools.cached_property
    def code(self):
        """One digest of all that an exhibit which failed might have used."""
        code = sorted(p for room in ROOMS for p in (project.ROOT / room).rglob("*") if p.is_file())
        state = [
            (str(p), self.digest(p.relative_to(project.ROOT).as_posix())) for p in code if p.suffix != ".pyc"
        ]
        return hashlib.sha256(json.dumps(state).encode()).hexdigest()

    def is_current(self, entry):
        """Is everything that decided the entry's result still the same?"""
        return (
            entry.environment == self.environment
            and all(self.digest(file) == found for file, found in entry.files.items())
            and all(self._has(file, used) for file, used in entry.modules.items())
            and (not entry.code or entry.code == self.code)
        )

    def _has(self, file, used):
        return self.digest(file) == used["whole"] or used["parts"].items() <= self.parts(file).items()


def _parts(file):
    """The parts of a module; none of one that cannot be read."""
    with contextlib.suppress(OSError, ValueError, SyntaxError):
        return parts((project.ROOT / file).read_text(encoding="utf-8"))
    return {}


def used(outcome):
    """What an exhibit used: whole files by digest, and modules by the parts that decided its result."""
    files, modules = dict(outcome.files), {}
    for file, whole in outcome.modules.items():
        names = {"", *outcome.functions.get(file, ())} if outcome.functions is not None else set()
        known = _parts(file) if names and digest(file) == whole else {}  # not what it was when it ran
        if known:
            modules[file] = {"whole": whole, "parts": {name: known[name] for name in names & known.keys()}}
        else:
            files[file] = whole
    return files, modules


def stored():
    """The files of all entries, by exhibit."""
    found = {}
    for path in project.CACHE.glob("*.json"):
        found.setdefault(path.name.rsplit(".", 2)[0], []).append(path)
    return found


def load(paths, now):
    """The first of the stored entries of an exhibit that is current, else None."""
    for path in paths:
        with contextlib.suppress(OSError, TypeError):  # not an entry, or one of another weave
            entry = Entry(**project.stored(path))
            if entry.result is not None and now.is_current(entry):
                return entry
    return None


def store(name, entry):
    """Write an entry, whole or not at all, and drop the oldest of the exhibit's entries."""
    decided_by = [entry.environment, entry.files, entry.modules]
    key = hashlib.sha256(json.dumps(decided_by).encode()).hexdigest()[:16]
    project.store(project.CACHE / f"{name}.{key}.json", vars(entry))
    with contextlib.suppress(FileNotFoundError):  # another build may tidy up at the same time
        entries = sorted(project.CACHE.glob(f"{name}.*.json"), key=lambda path: path.stat().st_mtime_ns)
        for path in entries[:-ENTRIES]:
            path.unlink()
