"""What this process has of the project that decides every page which it makes from then on.

That is the site's own code, as it was loaded; files that this code has opened while it was imported, or in a
function whose answers `functools` keeps; and the variables of the environment that it has read.
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

Variables = dict[str, str | None]  # of the environment, with their values


class Kept(Listener):
    """Notes the files that the site's own code opens and of which it may keep what it read."""

    def __init__(self) -> None:
        super().__init__()
        self._thread = None

    def _on_file(self, event: str, arguments: tuple, frame: FrameType) -> None:
        if _any_keeps(frame):
            super()._on_file(event, arguments, frame)


class Heard(dict):
    """What os.environ holds; it notes who asks for what."""

    kept: set[str] = set()  # names that the site's own code asked for, which may keep the value
    by_page: set[str] | None = None  # while a page is made, names that anybody asked for

    def __getitem__(self, key: Any) -> Any:
        self._note(os.fsdecode(key))
        return super().__getitem__(key)

    def __iter__(self) -> Any:
        self._note("")  # all names
        return super().__iter__()

    def _note(self, name):
        if self.by_page is not None:
            self.by_page.add(name)
        if self.by_page is None or _any_keeps(sys._getframe(2)):
            frame = sys._getframe(2)
            while frame and frame.f_code.co_filename.startswith("<frozen "):  # os, and what it is made of
                frame = frame.f_back
            if frame and _is_own(frame):
                self.kept.add(name)


KEPT = Kept()
LOADED: Digests = {}  # the site's own modules: the source of each as it was loaded
_LOOKED_AT: set[str] = set()  # names of modules


def watch() -> None:
    """Notice from now on what is loaded, opened and asked for; believe no bytecode of the site's own code."""
    if KEPT.files is not None:
        return
    KEPT.hear()
    KEPT.files = {}
    os.environ._data = Heard(os.environ._data)  # type: ignore[attr-defined]
    known = importlib.machinery.SourceFileLoader.path_stats

    def path_stats(loader, path):
        if (name := _own_file(path)) is None:
            return known(loader, path)
        LOADED[name] = digest(name)
        raise OSError("no bytecode: it may be older than an edit")

    importlib.machinery.SourceFileLoader.path_stats = path_stats  # type: ignore[method-assign]


@contextlib.contextmanager
def hearing() -> Iterator[set[str]]:
    """While a page is made: the names of the variables of the environment that it depends on."""
    Heard.by_page = set()
    try:
        yield Heard.by_page
    finally:
        Heard.by_page = None


def files() -> Digests:
    """The modules that this process has loaded, and the files of which they may keep something."""
    for name in sys.modules.keys() - _LOOKED_AT:  # also what was loaded before anybody watched
        _LOOKED_AT.add(name)
        if file := _own_file(getattr(sys.modules[name], "__file__", None) or os.devnull):
            LOADED.setdefault(file, digest(file))
    return LOADED | (KEPT.files or {})


def variables(names: Iterable[str]) -> Variables:
    """Variables of the environment as they are; "" stands for the names of all."""
    known = {os.fsdecode(key): os.fsdecode(value) for key, value in dict.items(os.environ._data)}  # type: ignore[attr-defined]
    return {name: known.get(name) if name else " ".join(sorted(known)) for name in names}


def _own_file(path):
    """The name of a file of the site's own; None for others, and those of the engine."""
    return project.ours(path)


def _any_keeps(frame):
    """Whether the site's own code is at work that may keep what it learns, for other pages."""
    around: FrameType | None = frame
    while around:
        if _is_own(around) and _keeps(around):
            return True
        around = around.f_back
    return False


def _is_own(frame):
    file = frame.f_code.co_filename
    return file.startswith(str(project.ROOT)) and _is_own_file(file)


@functools.cache
def _is_own_file(path):
    return _own_file(path) is not None


_KEEPING: dict[CodeType, bool] = {}


def _keeps(frame):
    """Whether it is that of a module, or of a function whose answers functools keeps."""
    code = frame.f_code
    if code not in _KEEPING:
        found: Any = frame.f_globals
        for part in code.co_qualname.split("."):
            found = found.get(part) if found is frame.f_globals else getattr(found, part, None)
        _KEEPING[code] = code.co_name == "<module>" or hasattr(found, "cache_info")
    return _KEEPING[code]
