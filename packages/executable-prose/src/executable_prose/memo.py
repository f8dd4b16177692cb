"""What functions made of text, cached from one process to the next.

Reading the syntax of our files and colouring code take most of a build in which nothing changed.
"""

import atexit
import contextlib
import functools
import hashlib
import json
import multiprocessing
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from executable_prose import libraries, project

FILE = project.ROOT / ".cache" / "texts.json"
LIMIT = 6_000  # results in the cache, about four builds' worth; those not asked for longest go first
Function = TypeVar("Function", bound=Callable)


def cached(function: Function) -> Function:
    """Recall what `function` gave for the same text, as long as its file and the libraries are the same.

    It takes text and numbers, gives what JSON can say, and uses no other file of ours. What it raises is not
    cached.
    `is_known` says whether there is a result.
    """
    made_by = [function.__qualname__, _state(function.__code__.co_filename)]

    def key(texts):
        return hashlib.sha256(json.dumps([*made_by, *texts]).encode()).hexdigest()

    @functools.cache
    def recall(*texts):
        return _store().get(key(texts), lambda: function(*texts))

    recall.is_known = lambda *texts: key(texts) in _store().results  # type: ignore[attr-defined]
    return functools.wraps(function)(recall)  # type: ignore[return-value]


def _state(file):
    """All that a result depends on besides its text; the file as it is when this process reads it."""
    return [sys.version, libraries.writing(), hashlib.sha256(Path(file).read_bytes()).hexdigest()]


class Store:
    """The results in a file. A file that cannot be read is made again."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.changed = False
        try:
            self.results = project.stored(file)
        except OSError:
            self.results = {}
        self._read = set(self.results)

    def get(self, key: str, make: Callable[[], Any]) -> Any:
        """The result of that name, made if there is none."""
        if key in self.results:
            self.results[key] = self.results.pop(key)  # the last asked for stands last
        else:
            self.results[key] = json.loads(json.dumps(make()))
            self.changed = True
        return self.results[key]

    def save(self) -> None:
        """Write the results, with those that another process has written meanwhile."""
        if self.changed:
            with contextlib.suppress(OSError):
                written = project.stored(self.file)
                others = {key: made for key, made in written.items() if key not in self._read}
                self.results = others | self.results
            newest = list(self.results.items())[-LIMIT:]
            with contextlib.suppress(OSError):  # what matters more has been refused before
                project.store(self.file, dict(newest))


def save() -> None:
    """Write the results of this process, which is a fork and ends without further ado."""
    _store().save()


@functools.cache
def _store():
    """The results of this process, written when it ends; the process of an exhibit may not write there."""
    store = Store(FILE)
    if multiprocessing.parent_process() is None:
        atexit.register(store.save)
    return store
