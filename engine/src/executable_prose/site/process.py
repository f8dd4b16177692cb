"""Inputs that every page depends on once this process has read them.

These are the modules of the site's own code, as they were loaded; files that this code opened while it was
imported, or in a function whose result `functools` caches; and environment variables that it read.
"""

import contextlib
import functools
import importlib.machinery
import os
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType
from typing import Any

from executable_prose import project
from executable_prose.execution.recorder import Listener
from executable_prose.project import Digests, digest

Variables = dict[str, str | None]  # environment variables with their values


class CachedReads(Listener):
    """Records files whose content the site's own code may keep in a variable or a cache."""

    def __init__(self) -> None:
        super().__init__()
        self._thread = None

    def _on_file(self, event: str, arguments: tuple, frame: FrameType) -> None:
        if _may_be_cached(frame):
            super()._on_file(event, arguments, frame)


class RecordedEnviron(dict):
    """The dictionary behind os.environ; it records which variables are read."""

    by_site: set[str] = set()  # names that the site's own code has read and may have stored
    by_page: set[str] | None = None  # names read while a page is converted

    def __getitem__(self, key: Any) -> Any:
        self._record(os.fsdecode(key))
        return super().__getitem__(key)

    def __iter__(self) -> Any:
        self._record("")  # the names of all variables
        return super().__iter__()

    def _record(self, name):
        frame = sys._getframe(2)
        if self.by_page is not None:
            self.by_page.add(name)
            if not _may_be_cached(frame):
                return
        while frame and frame.f_code.co_filename.startswith("<frozen "):  # os, and collections.abc below it
            frame = frame.f_back
        if frame and _is_own(frame):
            self.by_site.add(name)


CACHED_READS = CachedReads()
LOADED: Digests = {}  # the site's own modules, each with the digest of the source that was loaded
_SEEN: set[str] = set()  # names of modules that `files` has looked at


def watch() -> None:
    """Record inputs from now on, and ignore the bytecode of the site's own modules: it may be outdated."""
    if CACHED_READS.files is not None:
        return
    CACHED_READS.hear()
    CACHED_READS.files = {}
    os.environ._data = RecordedEnviron(os.environ._data)  # type: ignore[attr-defined]
    original = importlib.machinery.SourceFileLoader.path_stats

    def path_stats(loader, path):
        if (name := project.ours(path)) is None:
            return original(loader, path)
        LOADED[name] = digest(name)
        raise OSError("bytecode is not used")

    importlib.machinery.SourceFileLoader.path_stats = path_stats  # type: ignore[method-assign]


@contextlib.contextmanager
def recording_variables() -> Iterator[set[str]]:
    """Record the names of the environment variables that are read while a page is converted."""
    RecordedEnviron.by_page = set()
    try:
        yield RecordedEnviron.by_page
    finally:
        RecordedEnviron.by_page = None


def files() -> Digests:
    """Return the loaded modules and the files whose content they may have cached."""
    for name in sys.modules.keys() - _SEEN:  # modules that were loaded before `watch` was called, too
        _SEEN.add(name)
        if file := project.ours(getattr(sys.modules[name], "__file__", None) or os.devnull):
            LOADED.setdefault(file, digest(file))
    return LOADED | (CACHED_READS.files or {})


def variables(names: Iterable[str]) -> Variables:
    """Return the current values of environment variables; for "", the names of all variables."""
    known = {os.fsdecode(key): os.fsdecode(value) for key, value in dict.items(os.environ._data)}  # type: ignore[attr-defined]
    return {name: known.get(name) if name else " ".join(sorted(known)) for name in names}


def _may_be_cached(frame):
    """Whether the site's own code is importing a module or filling a cache of functools."""
    current: FrameType | None = frame
    while current:
        if _is_own(current) and _caches(current):
            return True
        current = current.f_back
    return False


def _is_own(frame):
    file = frame.f_code.co_filename
    return file.startswith(str(project.ROOT)) and _is_own_file(file)


@functools.cache
def _is_own_file(path):
    return project.ours(path) is not None


_CACHES: dict[CodeType, bool] = {}


def _caches(frame):
    """Whether the frame belongs to a module's top level or to a function with a cache of functools."""
    code = frame.f_code
    if code not in _CACHES:
        found: Any = frame.f_globals
        for part in code.co_qualname.split("."):
            found = found.get(part) if found is frame.f_globals else getattr(found, part, None)
        _CACHES[code] = code.co_name == "<module>" or hasattr(found, "cache_info")
    return _CACHES[code]
