"""What functions made of text, kept from one process to the next.

Reading the syntax of our files and colouring code take most of a build in which nothing changed.
"""

import atexit
import functools
import hashlib
import json
import sys
from pathlib import Path

import pygments

from weave.project import ROOT, write_whole

FILE = ROOT / ".cache" / "texts.json"
LIMIT = 4_000  # how many results are kept, about four builds' worth; those not asked for longest go first


def kept(function):
    """Recall what `function` gave for the same text; a changed file of this package forgets everything.

    It takes text and gives what JSON can say. What it raises is not kept.
    """

    @functools.cache
    def recall(*texts):
        told = json.dumps([function.__module__, function.__qualname__, STATE, *texts])
        key = hashlib.sha256(told.encode()).hexdigest()
        return _known().get(key, lambda: function(*texts))

    return functools.wraps(function)(recall)


class Store:
    """The results in a file, each as [checksum, result]."""

    def __init__(self, file):
        self.file = file
        self.changed = False
        try:
            self.stored = dict(json.loads(file.read_bytes()))
        except (OSError, ValueError, TypeError):  # none yet, or damaged: it is made again
            self.stored = {}

    def get(self, key, make):
        """The result of that name; made if there is none, or a damaged one."""
        known = self.stored.pop(key, None)
        if not _is_whole(key, known):
            self.changed = True
            result = json.loads(json.dumps(make()))
            known = [_checksum(key, result), result]
        self.stored[key] = known  # the last asked for stands last
        return known[1]

    def save(self):
        if self.changed:
            newest = list(self.stored.items())[-LIMIT:]
            write_whole(self.file, json.dumps(dict(newest)))


def _is_whole(key, known):
    return isinstance(known, list) and len(known) == 2 and known[0] == _checksum(key, known[1])


def _checksum(key, result):
    return hashlib.sha256(json.dumps([key, result]).encode()).hexdigest()


@functools.cache
def _known():
    """The results of this process, which are written when it ends."""
    store = Store(FILE)
    atexit.register(store.save)
    return store


def _state():
    """All that a result depends on besides its text."""
    code = b"\0".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    return [sys.version, pygments.__version__, hashlib.sha256(code).hexdigest()]


STATE = _state()  # now: a file that changes later is not the code that this process runs
