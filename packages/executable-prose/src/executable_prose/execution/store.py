"""The store of results: what each exhibit and lab gave, with all that decided it.

A result is used again only while all that decided it is the same: of every project module that its exhibit
imported the skeleton, the functions that ran, and the heads of functions that were inspected (provenance.py);
every other file that it opened, byte for byte, and whatever else it looked up about files; Python, the
platform and the libraries that computed and drew it.
"""

import contextlib
import functools
import hashlib
import importlib.metadata
import json
import os
import sys
import sysconfig
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from executable_prose import labs, libraries, project
from executable_prose.execution import provenance
from executable_prose.execution.sandbox import KERNELS
from executable_prose.outcome import Outcome, Result, Unavailable
from executable_prose.project import Digests, digest

ENTRIES = 4  # of each exhibit, so that an edit taken back finds its result again


class Module(TypedDict):
    whole: str  # digest of its source
    parts: dict[str, str]  # of what of it decided a result


@dataclass
class Entry:
    """What decided a result, and the result; or why there is none, and the state of all code then."""

    environment: dict[str, str]
    files: Digests
    modules: dict[str, Module]
    result: Result | None = None
    why: str = ""
    code: str = ""


def environment() -> dict[str, str]:
    """All that a result depends on besides the project's files."""
    try:
        versions = libraries.computing()
    except importlib.metadata.PackageNotFoundError as error:
        raise Unavailable(f"{error.name} is not installed here, and exhibits need it") from None
    kernels = {name: os.environ[name] for name in KERNELS if name in os.environ}
    return {"python": sys.version, "platform": sysconfig.get_platform(), **kernels, **versions}


class Snapshot:
    """One state of the files and libraries, each looked at once."""

    def __init__(self, digest: Callable[[str], str | None] | None = None) -> None:
        self.environment = environment()
        self.digest = digest or functools.cache(project.digest)
        self.parts = functools.cache(_parts)

    @functools.cached_property
    def code(self) -> str:
        """One digest of all that an exhibit which failed might have used."""
        code = sorted(p for room in _rooms() for p in room.rglob("*") if p.is_file())
        state = [
            (str(p), self.digest(p.relative_to(project.ROOT).as_posix())) for p in code if p.suffix != ".pyc"
        ]
        return hashlib.sha256(json.dumps(state).encode()).hexdigest()

    def is_current(self, entry: Entry) -> bool:
        """Is everything that decided the entry's result still the same?"""
        return (
            entry.environment == self.environment
            and all(self.digest(file) == found for file, found in entry.files.items())
            and all(self._has(file, used) for file, used in entry.modules.items())
            and (not entry.code or entry.code == self.code)
        )

    def _has(self, file, used):
        return self.digest(file) == used["whole"] or used["parts"].items() <= self.parts(file).items()


def _rooms():
    """The folders of all code that may run: the project's, and the engine's if it is the project's own."""
    rooms = [project.ROOT / room for room in project.settings().rooms]
    return [*rooms, project.ENGINE] if project.relative(project.ENGINE / "__init__.py") else rooms


def _parts(file):
    """The parts of a module; none of one that cannot be read."""
    with contextlib.suppress(OSError, ValueError, SyntaxError):
        text = (project.ROOT / file).read_text(encoding="utf-8")
        return provenance.parts(text) | provenance.heads(text)
    return {}


def used(outcome: Outcome) -> tuple[Digests, dict[str, Module]]:
    """What an exhibit used: whole files by digest, and modules by the parts that decided its result."""
    files, modules = dict(outcome.files), dict[str, Module]()
    unchanged = all(digest(file) == whole for file, whole in outcome.modules.items())  # since it ran
    by_parts = unchanged and outcome.functions is not None
    counts = provenance.counted_heads(_mentioned(outcome)) if by_parts else None
    for file, whole in outcome.modules.items():
        if counts and (known := _parts(file)):
            ran = {"", *outcome.functions.get(file, ())}
            package = (
                {provenance.HEADS} if file.endswith("__init__.py") else set()
            )  # else a submodule is found
            parts = {name: known[name] for name in known if name in ran | package or counts(name)}
            modules[file] = {"whole": whole, "parts": parts}
        else:
            files[file] = whole
    return files, modules


def _mentioned(outcome):
    """The names that occur in the code that ran."""
    found = set[str]()
    lab = labs.file(outcome.name.removeprefix("lab-")) if outcome.name.startswith("lab-") else None
    modules = outcome.modules.keys() - outcome.files.keys()  # the engine's own count whole
    for file in filter(None, (*modules, lab)):
        with contextlib.suppress(OSError, ValueError, SyntaxError):
            named = provenance.mentions((project.ROOT / file).read_text(encoding="utf-8"))
            ran = named if file == lab else {"", *outcome.functions.get(file, ())}
            found.update({"__getattr__"} & set(ran), *(named.get(name, ()) for name in ran))
    return found


def stored() -> dict[str, list[Path]]:
    """The files of all entries, by exhibit."""
    found: dict[str, list[Path]] = {}
    for path in project.CACHE.glob("*.json"):
        found.setdefault(path.name.rsplit(".", 2)[0], []).append(path)
    return found


def load(paths: Iterable[Path], now: Snapshot) -> Entry | None:
    """The first of the stored entries of an exhibit that is current, else None."""
    for path in paths:
        with contextlib.suppress(OSError, TypeError):  # not an entry, or one of another version
            entry = Entry(**project.stored(path))
            if entry.result is not None and now.is_current(entry):
                return entry
    return None


def store(name: str, entry: Entry) -> None:
    """Write an entry, whole or not at all, and drop the oldest of the exhibit's entries."""
    decided_by = [entry.environment, entry.files, entry.modules]
    key = hashlib.sha256(json.dumps(decided_by).encode()).hexdigest()[:16]
    project.store(project.CACHE / f"{name}.{key}.json", vars(entry))
    with contextlib.suppress(FileNotFoundError):  # another build may tidy up at the same time
        entries = sorted(project.CACHE.glob(f"{name}.*.json"), key=lambda path: path.stat().st_mtime_ns)
        for path in entries[:-ENTRIES]:
            path.unlink()
