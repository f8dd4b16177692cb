"""The sandbox in which an exhibit or a lab runs, in a process of its own.

One process, one thread, no network, no writing but in a folder of its own (`tempfile.gettempdir()`), and
limits on time, memory and output. It guards against mistakes and is no prison: Python tells of what Python
code asks for (audit events, which recorder.py hears), and nothing stops what libraries in C do by themselves.
"""

import contextlib
import ctypes
import faulthandler
import io
import os
import re
import signal
import sys
import tempfile
from pathlib import Path

from executable_prose.project import ours

MEMORY = 4 << 30  # bytes of its own that a process may hold, where the system counts them (Linux)
FILE = 1 << 28  # bytes in one file that it writes
# The environment of exhibits, whoever builds.
SET = {
    "COLUMNS": "80",
    "LC_ALL": "C.UTF-8",
    "LINES": "24",
    "MPLBACKEND": "svg",
    "OMP_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    "TZ": "UTC",
}
# Besides that: by these somebody chooses how processors round, and results belong to the choice.
KERNELS = ("ATEN_CPU_CAPABILITY", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "OPENBLAS_CORETYPE")
OUTPUT = 1_000_000  # characters that it may print
REFUSED = {
    "work in one process": r"subprocess\.Popen|os\.(system|exec|fork|forkpty|posix_spawn|spawn|startfile)",
    "work in one thread": r"_thread\.start_\w+",
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
DIES_WITH_ITS_PARENT = 1  # to Linux's prctl
TRACE = "trace"  # where a process that is ended or dies says where it was
FRAME = re.compile(r'File "([^<].*)", line (\d+)')


class Refused(Exception):
    """The run did what it may not. Also those are remembered that it catches itself."""

    raised: "list[Refused]" = []

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.raised.append(self)


class Printed(io.StringIO):
    """What a run prints, up to a limit."""

    def write(self, text: str) -> int:
        if self.tell() + len(text) > OUTPUT:
            raise Refused(f"expected at most {OUTPUT:,} characters of output")
        return super().write(text)


def close(folder: str | Path, seconds: int) -> None:
    """Put this process into the sandbox, for good. `folder` is its own; it is ended after some seconds."""
    tempfile.tempdir = str(Path(folder).resolve())
    FILLED.begin()
    if os.name == "posix":  # elsewhere libraries are still to be imported
        for name in os.environ.keys() - {*SET, "MPLCONFIGDIR"}:
            del os.environ[name]
    os.environ["TMPDIR"] = tempfile.tempdir
    os.umask(0o022)
    sys.dont_write_bytecode = True
    trace = (Path(folder) / TRACE).open("w")
    faulthandler.enable(trace)
    faulthandler.dump_traceback_later(seconds, exit=True, file=trace)
    _lead_a_group()
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


def _lead_a_group():
    """What this process starts can be ended with it; and it ends with what has started it, on Linux."""
    with contextlib.suppress(AttributeError):  # Windows
        os.setsid()
    end_with_parent()


def end_with_parent() -> None:
    """End this process, on Linux, when the one that has started it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIES_WITH_ITS_PARENT, signal.SIGKILL)


def last_words(folder: str | Path) -> tuple[bool, str]:
    """What a process wrote when it died: whether its time was over, and the line of ours it was at."""
    with contextlib.suppress(OSError):
        said = (Path(folder) / TRACE).read_text(errors="replace")
        frames = ((ours(file), line) for file, line in FRAME.findall(said))
        place = next((f" (at {file}:{line})" for file, line in frames if file), "")
        return said.startswith("Timeout"), place
    return False, ""


def forbidden(event: str, arguments: tuple) -> str | None:
    """What was expected of a run instead of what Python tells of; None if it may do it."""
    for expected, events in REFUSED.items():
        if re.fullmatch(events, event):
            if event.startswith("socket.") and _is_within("asyncio"):
                expected = "no event loop of asyncio, which opens a socket"
            return f"expected {expected}, got {event}"
    if event not in CHANGES or (event == "open" and not arguments[2] & WRITES):
        return None
    paths, folders = (arguments[which] for which in CHANGES[event])
    if not tempfile.tempdir:
        return None
    if event == "open" and (filled := FILLED.before(paths[0])) > FILE:
        return f"expected at most {FILE >> 20} MiB in the files before this one, got {filled >> 20} MiB"
    outside = [path for path in paths if not _own(path, any(folder >= 0 for folder in folders))]
    if outside:
        return f"expected no writing outside of tempfile.gettempdir(), got {event} of {str(outside[0])!r}"
    return None


class Filled:
    """The bytes in the files of the run's own folder.

    When a file is opened, the size of the one before it is added. Files may grow later or be removed: all are
    measured again when the sum is too large, and when twice as many have been opened as the last time.
    """

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Count from nothing: this process has a folder of its own now."""
        self._sizes: dict[str, int] = {}
        self._sum = self._opened = 0
        self._due = 1  # at which number of them all are looked at
        self._last: str | None = None

    def before(self, path: "str | bytes | int | os.PathLike") -> int:
        """How many there are when `path` is opened to be written."""
        if self._last is not None:
            with contextlib.suppress(OSError):
                size = os.lstat(self._last).st_size
                self._sum += size - self._sizes.get(self._last, 0)
                self._sizes[self._last] = size
        self._last = None if isinstance(path, int) else os.fsdecode(path)
        self._opened += 1
        if self._sum > FILE or self._opened >= self._due:
            self._sizes = dict(_sizes(tempfile.tempdir))
            self._sum, self._due = sum(self._sizes.values()), 2 * self._opened
        return self._sum


FILLED = Filled()


def _sizes(folder):
    """Each file below a folder with its bytes."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _sizes(entry.path)
            else:
                yield entry.path, entry.stat(follow_symlinks=False).st_size


def _is_within(package):
    """Whether code of a package has called this."""
    frame = sys._getframe()
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] != package:
        frame = frame.f_back
    return frame is not None


def _own(path, from_folder):
    """Whether a run may write there: into its folder, nowhere, or by the number of what it has opened."""
    if isinstance(path, int) or os.fsdecode(path) == os.devnull:
        return True
    place = Path(os.fsdecode(path))
    return (from_folder and not place.is_absolute()) or place.resolve().is_relative_to(tempfile.tempdir)
