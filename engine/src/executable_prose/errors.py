"""How a build is stopped: by one exception, or at the end of a command by one line."""

import contextlib
import ctypes
import errno
import sys
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


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM)
IN_THE_WAY = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTEMPTY)


@contextlib.contextmanager
def in_a_line() -> Iterator[None]:
    """End the process with a line about a file that cannot be written, and with none after an interrupt."""
    try:
        yield
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        if error.errno in FULL:
            sys.exit(f"cannot write: {error}: make room, or allow writing to .cache/ and beside the site")
        if error.errno in IN_THE_WAY:
            sys.exit(f"cannot write: {error}: something is in the way there: remove it")
        raise
