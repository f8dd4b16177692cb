"""The fence round the process of an exhibit or a lab.

One process, one thread, no network, no writing but in a folder of its own (`tempfile.gettempdir()`), and
limits on time, memory and output. It is a fence against mistakes and no prison. Everywhere, Python tells
of what Python code asks for (audit events, which recorder.py hears). On Linux from 5.13, Landlock holds
what libraries in C do, too: writing, and starting programs; from 6.7 TCP, from 6.12 signals to others.
UDP and a fork in C nothing stops.
"""

import contextlib
import ctypes
import faulthandler
import io
import os
import re
import sys
import tempfile
from pathlib import Path

from weave.project import relative

MEMORY = 4 << 30  # bytes of its own that a process may hold, where the system counts them (Linux)
FILE = 1 << 28  # bytes in one file that it writes
# All that is left of the environment: nothing else of it can decide what is computed.
SET = {"MPLBACKEND", "MPLCONFIGDIR", "OMP_NUM_THREADS", "PYTHONHASHSEED"}
OUTPUT = 1_000_000  # characters that it may print
REFUSED = {
    "work in one process": r"subprocess\.Popen|os\.(system|exec|fork|forkpty|posix_spawn|spawn|startfile)",
    "no network": r"socket\.(?!gethostname).*|urllib\.Request",
}
CHANGES = {  # events of changes to files: which of their arguments name files, and which folders by number
    **dict.fromkeys(("open", "os.truncate", "os.setxattr"), (slice(0, 1), slice(0))),
    **dict.fromkeys(("os.remove", "os.rmdir", "os.mkdir"), (slice(0, 1), slice(-1, None))),
    **dict.fromkeys(("os.chmod", "os.chown", "os.utime"), (slice(0, 1), slice(-1, None))),
    "os.rename": (slice(0, 2), slice(-2, None)),
    "os.link": (slice(1, 2), slice(-1, None)),
    "os.symlink": (slice(1, 2), slice(-1, None)),
}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
TRACE = "trace"  # where a process that is ended or dies says where it was
FRAME = re.compile(r'File "(.+)", line (\d+)')


class Refused(Exception):
    """The run did what it may not. Also those are remembered that it catches itself."""

    raised = []

    def __init__(self, why):
        super().__init__(why)
        self.raised.append(self)


class Printed(io.StringIO):
    """What a run prints, up to a limit."""

    def write(self, text):
        if self.tell() + len(text) > OUTPUT:
            raise Refused(f"expected at most {OUTPUT:,} characters of output")
        return super().write(text)


def close(folder, seconds):
    """Put the fence round this process, for good. `folder` is its own; it is ended after some seconds."""
    tempfile.tempdir = str(Path(folder).resolve())
    if os.name == "posix":  # elsewhere libraries are still to be imported
        for name in os.environ.keys() - SET:
            del os.environ[name]
    os.environ["TMPDIR"] = tempfile.tempdir
    sys.dont_write_bytecode = True
    trace = (Path(folder) / TRACE).open("w")
    faulthandler.enable(trace)
    faulthandler.dump_traceback_later(seconds, exit=True, file=trace)
    with contextlib.suppress(ImportError):  # Windows
        import resource

        limits = [("DATA", MEMORY), ("FSIZE", FILE), ("CORE", 0)]
        with contextlib.suppress(OSError):  # what is shared is no data of its own, but has addresses
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            limits.append(("AS", pages * resource.getpagesize() + MEMORY + FILE))
        for kind, most in limits:
            number = getattr(resource, f"RLIMIT_{kind}")
            now, hard = resource.getrlimit(number)
            least = min(limit for limit in (most, now, hard) if limit != resource.RLIM_INFINITY)
            resource.setrlimit(number, (least, hard))
    if sys.platform == "linux":
        _landlock(folder)


def last_words(folder):
    """What a process wrote when it died: whether its time was over, and the line of ours it was at."""
    with contextlib.suppress(OSError):
        said = (Path(folder) / TRACE).read_text(errors="replace")
        frames = ((relative(file), line) for file, line in FRAME.findall(said))
        place = next((f" (at {file}:{line})" for file, line in frames if file and file[:6] != "weave/"), "")
        return said.startswith("Timeout"), place
    return False, ""


def forbidden(event, arguments):
    """What was expected of a run instead of what Python tells of; None if it may do it."""
    for expected, events in REFUSED.items():
        if re.fullmatch(events, event):
            return f"expected {expected}, got {event}"
    if event not in CHANGES or (event == "open" and not arguments[2] & WRITES):
        return None
    paths, folders = (arguments[which] for which in CHANGES[event])
    if not tempfile.tempdir:
        return None
    if event == "open" and _filled() > FILE:
        return f"expected at most {FILE >> 20} MiB in the files before this one, got {_filled() >> 20} MiB"
    outside = [path for path in paths if not _own(path, any(folder >= 0 for folder in folders))]
    if outside:
        return f"expected no writing outside of tempfile.gettempdir(), got {event} of {str(outside[0])!r}"
    return None


def _filled():
    """Bytes in the files of the run's own folder."""
    return sum(path.lstat().st_size for path in Path(tempfile.tempdir).rglob("*"))


def _own(path, from_folder):
    """Whether a run may write there: into its folder, nowhere, or by the number of what it has opened."""
    if isinstance(path, int) or os.fsdecode(path) == os.devnull:
        return True
    place = Path(os.fsdecode(path))
    return (from_folder and not place.is_absolute()) or place.resolve().is_relative_to(tempfile.tempdir)


# Landlock, by number: neither Python nor the C library has names for it.
CREATE, ADD, RESTRICT = 444, 445, 446  # the calls, on all machines
NO_NEW_PRIVILEGES = 38
EXECUTE, WRITE_FILE, READ_FILE, READ_FOLDER, TRUNCATE = (1 << bit for bit in (0, 1, 2, 3, 14))
FILES = (0, 13, 14, 15, 15, 16)  # how many rights on files each version knows, the last of all that follow


class _Rules(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scope", ctypes.c_uint64)]


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32)]


def _landlock(folder):
    """Allow nothing but to read, and to write in one folder; as much of it as this kernel knows."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    if (version := call(CREATE, None, ctypes.c_size_t(0), 1)) < 1:
        return
    changes = (1 << FILES[min(version, 5)]) - 1 & ~(READ_FILE | READ_FOLDER)
    rules = _Rules(changes, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    ruleset = call(CREATE, ctypes.byref(rules), ctypes.c_size_t(ctypes.sizeof(rules)), 0)
    for path, allowed in ((folder, changes & ~EXECUTE), (os.devnull, changes & (WRITE_FILE | TRUNCATE))):
        beneath = _Beneath(allowed, os.open(path, os.O_PATH))
        call(ADD, ruleset, 1, ctypes.byref(beneath), 0)
    ctypes.CDLL(None).prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    call(RESTRICT, ruleset, 0)
