"""Run exhibits, each in a process of its own, as many at once as there are cores.

`main` reads lines of JSON, each a list of exhibits, and answers a line for each as it ends,
its `Outcome`. It lives as long as its standard input, so that a server pays for importing
torch once, and takes the exhibits that still run with it, so that an interrupted build
leaves none behind. `Worker` is its other end.
"""

import contextlib
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TextIO

from executable_prose import project
from executable_prose.command import ENDED
from executable_prose.execution import sandbox
from executable_prose.execution.chapter_process import Chapter
from executable_prose.execution.exhibit_process import CONTEXT, FORKS, LOST, STARTING, WHY, kill, run_one
from executable_prose.outcome import Outcome, Unavailable, definition

# Variables of the environment by which systems find programs, libraries, and where to write.
FOUND_BY = (
    *("PATH", "HOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR"),
    *("TEMP", "TMP", "SYSTEMROOT", "USERPROFILE", "APPDATA", "LOCALAPPDATA"),
)
SHORT = 58  # bytes of the name of a folder for temporary files; a socket below it may have 50 more


class Worker:
    """The process that runs exhibits; it has loaded code and libraries as they were when it started."""

    def __init__(self) -> None:
        self._code = _code()
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-c", "from executable_prose.execution.process_pool import main; main()"],
                cwd=project.ROOT,
                env=_surroundings(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,  # signals of a terminal are for the builder
            )
        except OSError as error:
            raise Unavailable(f"the process that runs exhibits cannot start: {error}") from error

    def run(self, names: list[str]) -> Iterator[Outcome]:
        """The outcome of each, as it ends. Who does not take all answers closes the worker."""
        complete = False
        try:
            self.process.stdin.write(json.dumps(names) + "\n")
            self.process.stdin.flush()
            for _ in names:
                yield Outcome(**json.loads(self.process.stdout.readline()))
            complete = True
        except (OSError, ValueError) as error:
            code = self.close()
            raise Unavailable(f"the process that runs exhibits ended with exit code {code}") from error
        finally:
            if not complete:
                self.close()

    def is_current(self) -> bool:
        """Whether it can run exhibits, by the engine as it is now."""
        return not self.is_closed() and self.process.poll() is None and self._code == _code()

    def is_closed(self) -> bool:
        return self.process.stdout.closed

    def close(self) -> int:
        """End the process, which takes what it still runs along; its exit code."""
        with contextlib.suppress(OSError):  # it has ended already, and cannot read what was written
            self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait()


def _surroundings():
    """The environment of exhibits: of the builder's variables, those that locate programs and libraries."""
    return {name: os.environ[name] for name in (*FOUND_BY, *sandbox.KERNELS) if name in os.environ} | {
        **sandbox.SET,
        "MPLCONFIGDIR": str(project.ROOT / ".cache" / "matplotlib"),
        "PYTHONPATH": os.pathsep.join(map(str, (project.ROOT, project.ENGINE.parent))),
    }


def _code():
    return [path.read_bytes() for path in sorted(project.ENGINE.rglob("*.py"))]


class Plan:
    """What is left to run: the exhibits of each module, in the order of the requests."""

    def __init__(self, names: list[str]) -> None:
        self._left: dict[str, list[str]] = {}
        for name in names:
            self._left.setdefault(name.partition(".")[0], []).append(name)
        self._workers = dict.fromkeys(self._left, 0)
        self._lock = threading.Lock()

    def module(self) -> str | None:
        """A module with exhibits left, the first of those at which fewest work; None if there is none."""
        with self._lock:
            module = min(self._left, key=self._workers.__getitem__, default=None)
            if module:
                self._workers[module] += 1
            return module

    def has_many(self, module: str) -> bool:
        """Whether more than one exhibit of a module is left."""
        return len(self._left.get(module, ())) > 1

    def next(self, module: str) -> str | None:
        """The next exhibit of a module; None if none is left."""
        with self._lock:
            names = self._left.get(module, [])
            name = names.pop(0) if names else None
            if not names:
                self._left.pop(module, None)
            return name


def work(plan: Plan, answers: TextIO, lock: threading.Lock) -> None:
    """Run what is left of a plan, one module after another."""
    while module := plan.module():
        chapter = Chapter(module) if FORKS and plan.has_many(module) else None
        while name := plan.next(module):
            answer(name, chapter.run if chapter else run_one, answers, lock)
        if chapter:
            chapter.close()


def answer(name: str, run: Callable[[str], Outcome], answers: TextIO, lock: threading.Lock) -> None:
    """Run one exhibit and write the line that answers for it, whatever happens."""
    try:
        line = json.dumps(vars(run(name)))
    except Exception as error:  # no process, no memory: an answer that never comes would be waited for
        lost = isinstance(error, (EOFError, ConnectionError))  # by who starts them
        why = WHY[LOST] if lost else f"{type(error).__name__}: {error}"
        line = json.dumps(vars(Outcome(name, failure=f"{why} (at {definition(name)})")))
    with lock:
        print(line, file=answers, flush=True)


def _temporary():
    """Where temporary files go; a socket, which lies there, may have no long name."""
    folder = tempfile.gettempdir()
    if os.name != "posix" or len(os.fsencode(folder)) <= SHORT:
        return folder
    if os.access("/tmp", os.W_OK):
        return "/tmp"
    sys.exit(f"TMPDIR must be a name of at most {SHORT} bytes where /tmp cannot be written, got {folder!r}")


def main() -> None:
    for name in ("SIGINT", *ENDED):  # which all its processes get: the builder ends this one by its input
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries and C code print must not come between the answers
    if FORKS:
        CONTEXT.set_forkserver_preload(["executable_prose.execution.preload"])
    tempfile.tempdir = tempfile.mkdtemp(prefix="run-", dir=_temporary())  # removed below
    pool, lock = ThreadPoolExecutor(os.cpu_count()), threading.Lock()
    for line in sys.stdin:
        plan = Plan(json.loads(line))
        for _ in range(os.cpu_count() or 1):
            pool.submit(work, plan, answers, lock)
    pool.shutdown(wait=False, cancel_futures=True)
    STARTING.acquire()  # for good: no other starts, and none is left half started
    for child in multiprocessing.active_children():
        if child.daemon:  # those that fork exhibits end with this process, and take them along
            kill(child)
    shutil.rmtree(tempfile.tempdir, ignore_errors=True)
    os._exit(0)  # without waiting for the threads, which wait for those children
