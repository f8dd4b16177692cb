"""Inputs that every page depends on once this process has read them.

These are the modules of the site's own code, as they were loaded, and whatever this code itself reads or
looks up: it may keep that in a variable, for other pages. What it reads by way of the engine
(`reading.parsed`, a listing, a result) counts for the page alone that it was read for.
"""

import contextlib
import functools
import importlib.machinery
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from executable_prose import project
from executable_prose.execution.recorder import Listener, is_library
from executable_prose.project import Digests, FileName, digest

Variables = dict[str, str | None]  # environment variables with their values


class OwnReads(Listener):
    """Records files that the site's own code opens, in any thread, and whether it starts a program."""

    def __init__(self) -> None:
        super().__init__()
        self._thread = None
        self.made: Path | None = None  # the folder in which a site is being made: no input

    def _name(self, path: FileName) -> str | None:  # type: ignore[override]
        made = self.made and Path(os.path.abspath(os.fsdecode(path))).is_relative_to(self.made)  # noqa: PTH100
        return None if made else Listener._name(path)

    def _on_file(self, event: str, arguments: tuple, frame: FrameType) -> None:
        if _is_by_own_code(frame):
            super()._on_file(event, arguments, frame)

    def _on_program(self, frame: FrameType) -> None:
        self.ran_program |= _is_by_own_code(frame)


class RecordedEnviron(dict):
    """The dictionary behind os.environ; it records which variables are read."""

    by_site: set[str] = set()  # names that the site's own code has read
    by_page: set[str] | None = None  # names read while a page is converted

    def __getitem__(self, key: Any) -> Any:
        self._record(os.fsdecode(key))
        return super().__getitem__(key)

    def __iter__(self) -> Any:
        self._record("")  # the names of all variables
        return super().__iter__()

    def _record(self, name):
        if self.by_page is not None:
            self.by_page.add(name)
        if _is_by_own_code(sys._getframe(2)):
            self.by_site.add(name)


OWN_READS = OwnReads()
LOADED: Digests = {}  # the site's own modules, each with the digest of the source that was loaded
_SEEN: set[str] = set()  # names of modules that `files` has looked at


def watch() -> None:
    """Record inputs from now on, and ignore the bytecode of the site's own modules: it may be outdated."""
    if is_watched():
        return
    OWN_READS.hear()
    OWN_READS.files = {}
    OWN_READS.look()
    os.environ._data = RecordedEnviron(os.environ._data)  # type: ignore[attr-defined]
    if os.supports_bytes_environ:
        os.environb._data = os.environ._data  # type: ignore[attr-defined]
    original = importlib.machinery.SourceFileLoader.path_stats

    def path_stats(loader, path):
        if (name := project.ours(path)) is None:
            return original(loader, path)
        LOADED[name] = digest(name)
        raise OSError("bytecode is not used")

    importlib.machinery.SourceFileLoader.path_stats = path_stats  # type: ignore[method-assign]


def is_watched() -> bool:
    """Return whether the inputs of this process are recorded."""
    return OWN_READS.files is not None


@contextlib.contextmanager
def recording_variables() -> Iterator[set[str]]:
    """Record the names of the environment variables that are read while a page is converted."""
    RecordedEnviron.by_page = set()
    try:
        yield RecordedEnviron.by_page
    finally:
        RecordedEnviron.by_page = None


def files() -> Digests:
    """Return the loaded modules and the files that they have read."""
    for name in sys.modules.keys() - _SEEN:  # modules that were loaded before `watch` was called, too
        _SEEN.add(name)
        if file := project.ours(getattr(sys.modules[name], "__file__", None) or os.devnull):
            LOADED.setdefault(file, digest(file))
    return LOADED | (OWN_READS.files or {})


def variables(names: Iterable[str]) -> Variables:
    """Return the current values of environment variables; for "", the names of all variables."""
    known = {os.fsdecode(key): os.fsdecode(value) for key, value in dict.items(os.environ._data)}  # type: ignore[attr-defined]
    return {name: known.get(name) if name else " ".join(sorted(known)) for name in names}


def _is_by_own_code(frame):
    """Whether the site's own code has called this, directly or by way of Python's library."""
    current: FrameType | None = frame
    while current and is_library(current):
        current = current.f_back
    return bool(current) and _is_own_file(current.f_code.co_filename, project.ROOT)


@functools.cache
def _is_own_file(path, root):
    return not path.startswith("<") and project.ours(path) is not None
