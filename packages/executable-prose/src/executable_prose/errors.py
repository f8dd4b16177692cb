"""How a build is stopped: by one exception."""

import contextlib
import ctypes
import threading
import time
from collections.abc import Iterator

from mkdocs.exceptions import PluginError
from pymdownx.inlinehilite import InlineHiliteException
from pymdownx.superfences import SuperFencesException


class BuildFault(PluginError, SuperFencesException, InlineHiliteException):
    """Something on a page cannot be made; the message starts with the page and line.

    MkDocs prints a PluginError as one line instead of a traceback. SuperFences and
    InlineHilite swallow every exception of a formatter that is not one of their own.
    """


class TooLong(Exception):
    """Something took longer than it may."""


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise TooLong in this thread once the process has computed for so long; waiting for others is free."""
    ended, end, thread = threading.Event(), time.process_time() + seconds, threading.get_ident()

    def watch():
        while not ended.wait(min(1, seconds)):
            if time.process_time() > end:  # and again, for somebody may catch it
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(TooLong))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
