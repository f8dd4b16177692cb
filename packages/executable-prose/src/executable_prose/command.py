"""How a command begins and ends: standard files, signals, and a line instead of a traceback.

It needs Python alone: some commands of a project run before anything is installed.
"""

import contextlib
import errno
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM)
ROOM = "make room, or allow writing to .cache/, beside the site, and where the output goes"
IN_THE_WAY = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTEMPTY)
GONE = (errno.ENOENT, errno.ESTALE)
CLOSED = 128 + 13  # the exit code of a command whose reader has gone, as a shell has it (SIGPIPE)
ENDED = ("SIGTERM", "SIGHUP", "SIGQUIT")  # what a system or a closed terminal sends


def run(main: Callable[[], str | int | None]) -> NoReturn:
    """Call `main` as a command and end the process with what it returns: an exit code, or why it failed."""
    _open_standard_files()
    with in_a_line():
        code = main()
        if sys.stdout:
            sys.stdout.flush()  # what comes next is read below it
        if isinstance(code, str):
            print(code, file=sys.stderr)
            code = 1
    sys.exit(code)


def _open_standard_files():
    """Where one is closed, the next file that is opened would have its number, and would be taken for it."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            file = os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
            os.set_inheritable(file, True)
            if file == number:
                setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


@contextlib.contextmanager
def in_a_line() -> Iterator[None]:
    """End the process with a line about what the machine refuses, and with none after a signal."""
    received = _heard()
    try:
        yield
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except BrokenPipeError:
        sys.exit(CLOSED)
    except OSError as error:
        if why := _why(error):
            sys.exit(why)
        raise
    finally:
        if lost := _lost_output():
            sys.exit(lost)
        if received:
            sys.exit(128 + received[0])


@contextlib.contextmanager
def temporary(prefix: str, where: Path | None = None) -> Iterator[Path]:
    """A folder that is removed in the end, even where a signal comes while it is being removed."""
    folder = tempfile.TemporaryDirectory(prefix=prefix, dir=where, ignore_cleanup_errors=True)
    try:
        with folder:
            yield Path(folder.name)
    finally:
        folder.cleanup()


def _heard():
    """Take signals that end a process for an interrupt: what it has begun is tidied. Those that have come."""
    received = []

    def interrupt(number, frame):
        received.append(number)
        for each in heard:  # a shell and a terminal may both send one
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    known = [getattr(signal, name) for name in ENDED if hasattr(signal, name)]
    heard = [number for number in known if signal.getsignal(number) is signal.SIG_DFL]  # not under nohup
    for number in heard:
        signal.signal(number, interrupt)
    return received


def _why(error):
    """What to do about an error of the system, else None."""
    if error.errno in FULL:
        return f"cannot write: {error}: {ROOM}"
    if error.errno in IN_THE_WAY:
        return f"cannot write: {error}: something is in the way there: remove it"
    if error.errno in GONE:
        return f"cannot read: {error}: if it has been renamed or removed just now, start again"
    return None


def _lost_output():
    """The exit code of a command whose output nobody takes, or why it cannot be written; else None."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # else Python tries once more
            if isinstance(error, BrokenPipeError):
                return CLOSED
            return f"cannot write: {error}: {ROOM}"
    return None
