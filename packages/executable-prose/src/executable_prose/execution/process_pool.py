"""Run exhibits, each in a fresh process, as many at once as there are cores.

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
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TextIO

from executable_prose import project
from executable_prose.command import ENDED
from executable_prose.execution import sandbox
from executable_prose.outcome import Outcome, Unavailable, definition

LIMIT = 600  # seconds one exhibit may take
REST = 10  # seconds its process may take to end once it has answered
MUTE = 74  # the exit code of one that cannot answer
# Variables of the environment by which systems find programs, libraries, and where to write.
FOUND_BY = (
    *("PATH", "HOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR"),
    *("TEMP", "TMP", "SYSTEMROOT", "USERPROFILE", "APPDATA", "LOCALAPPDATA"),
)
LOST = 255  # the exit code where nobody is left who would know it
WHY = {
    -9: "its process died with exit code -9: was it killed because there was too little memory?",
    0: "its process ended before the exhibit returned",
    MUTE: "it closed files that it had not opened",
    LOST: "the process that starts exhibits was killed, or ended itself: was there too little memory?",
}
# Windows has no fork: there every exhibit imports torch anew.
METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
CONTEXT = multiprocessing.get_context(METHOD)
STARTING = threading.Lock()
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
    """The environment of exhibits: of that of whoever builds, what finds programs and libraries."""
    return {name: os.environ[name] for name in (*FOUND_BY, *sandbox.KERNELS) if name in os.environ} | {
        **sandbox.SET,
        "MPLCONFIGDIR": str(project.ROOT / ".cache" / "matplotlib"),
        "PYTHONPATH": os.pathsep.join(map(str, (project.ROOT, project.ENGINE.parent))),
    }


def _code():
    return [path.read_bytes() for path in sorted(project.ENGINE.rglob("*.py"))]


def in_child(name: str, connection: "multiprocessing.connection.Connection", folder: str, limit: int) -> None:
    """The body of the process of an exhibit; the folder is its own."""
    from executable_prose.execution import run_exhibit

    try:
        sandbox.close(folder, limit)
    except FileNotFoundError:  # the process that asked has ended, and has removed it
        return
    project.settle()
    outcome = run_exhibit.run(name)
    try:
        connection.send_bytes(json.dumps(vars(outcome)).encode())  # data: what is unpickled could run code
    except BrokenPipeError:  # nobody waits for it any more
        pass
    except OSError:
        os._exit(MUTE)
    connection.close()


def run_one(name: str) -> Outcome:
    """Run one exhibit in its own process and wait for it."""
    with tempfile.TemporaryDirectory(prefix="exhibit-", ignore_cleanup_errors=True) as folder:
        start = time.perf_counter()
        outcome = _run(name, folder)
        outcome.seconds = time.perf_counter() - start
    return outcome


def _run(name, folder):
    receiving, sending = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=in_child, args=(name, sending, folder, LIMIT), daemon=True)
    with STARTING:
        process.start()
    sending.close()
    outcome, died = Outcome(name), False
    last = threading.Timer(LIMIT + REST, kill, (process,))
    last.start()
    try:
        outcome = Outcome(**json.loads(receiving.recv_bytes()))
    except (EOFError, OSError):  # the latter in the middle of it
        died = True
    ended = last.finished.is_set()
    last.cancel()
    process.join(REST)
    was_alive, has_left = process.is_alive(), kill(process)
    process.join()
    late, place = sandbox.last_words(folder)
    if died and (late or ended):
        why = f"it did not end within {LIMIT} seconds"
    elif died:
        why = WHY.get(process.exitcode, f"its process died with exit code {process.exitcode}")
    elif was_alive:
        why = f"its process still ran {REST} seconds after its answer: does it leave a thread?"
    elif has_left and not outcome.failure:
        why = "expected work in one process, but it started another one"
    else:
        return outcome
    outcome.failure = why + (place or f" (at {definition(name)})")
    return outcome


def kill(process: "multiprocessing.process.BaseProcess") -> bool:
    """End a process with all that it has started; whether any of these ran."""
    process.kill()  # it may not yet lead its group
    try:
        os.killpg(process.pid, signal.SIGKILL)  # type: ignore[arg-type]
    except (AttributeError, OSError):  # Windows has no groups; or this one is empty
        return False
    return True


def answer(name: str, answers: TextIO, lock: threading.Lock) -> None:
    """Run one exhibit and write the line that answers for it, whatever happens."""
    try:
        line = json.dumps(vars(run_one(name)))
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
    if METHOD == "forkserver":
        CONTEXT.set_forkserver_preload(["executable_prose.execution.preload"])
    tempfile.tempdir = tempfile.mkdtemp(prefix="run-", dir=_temporary())  # removed below
    pool, lock = ThreadPoolExecutor(os.cpu_count()), threading.Lock()
    for line in sys.stdin:
        for name in json.loads(line):
            pool.submit(answer, name, answers, lock)
    pool.shutdown(wait=False, cancel_futures=True)
    STARTING.acquire()  # for good: no other starts, and none is left half started
    for child in multiprocessing.active_children():
        kill(child)
    shutil.rmtree(tempfile.tempdir, ignore_errors=True)
    os._exit(0)  # without waiting for the threads, which wait for those children
