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
        told = json.dumps([function.__module__, function.__qualname__, _state(), *texts])
        key = hashlib.sha256(told.encode()).hexdigest()
        known = _known()
        if key not in known.stored:
            known.changed = True
            known.stored[key] = json.loads(json.dumps(function(*texts)))
        known.stored[key] = known.stored.pop(key)  # the last asked for stands last
        return known.stored[key]

    return functools.wraps(function)(recall)


class _Store:
    """The results in the file, which is written when the process ends."""

    def __init__(self):
        self.changed = False
        try:
            self.stored = dict(json.loads(FILE.read_bytes()))
        except (OSError, ValueError, TypeError):  # none yet, or damaged: it is made again
            self.stored = {}
        atexit.register(self.save)

    def save(self):
        if self.changed:
            newest = list(self.stored.items())[-LIMIT:]
            write_whole(FILE, json.dumps(dict(newest)))


@functools.cache
def _known():
    return _Store()


@functools.cache
def _state():
    """All that a result depends on besides its text."""
    code = b"\0".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    return [sys.version, pygments.__version__, hashlib.sha256(code).hexdigest()]
