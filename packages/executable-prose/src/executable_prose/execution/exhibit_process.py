"""Run one exhibit in a process of its own, and tell why that ended if it did not answer."""

import json
import multiprocessing
import os
import signal
import tempfile
import threading
import time
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

from executable_prose import project
from executable_prose.execution import sandbox
from executable_prose.outcome import Outcome, definition

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from executable_prose.execution.run_exhibit import Imported

LIMIT = 600  # seconds one exhibit may take
REST = 10  # seconds its process may take to end once it has answered
MUTE = 74  # the exit code of one that cannot answer
LOST = 255  # the exit code where nobody is left who would know it
WHY = {
    -9: "its process died with exit code -9: was it killed because there was too little memory?",
    0: "its process ended before the exhibit returned",
    MUTE: "it closed files that it had not opened",
    LOST: "the process that starts exhibits was killed, or ended itself: was there too little memory?",
}
# Windows has no fork: there every exhibit imports torch anew.
FORKS = "forkserver" in multiprocessing.get_all_start_methods()
CONTEXT: Any = multiprocessing.get_context("forkserver" if FORKS else "spawn")
STARTING = threading.Lock()


def in_child(
    name: str, connection: "Connection", folder: str, limit: int, module: "Imported | None" = None
) -> None:
    """The body of the process of an exhibit; the folder is its own.

    It is the fork of one that has imported its module, if that is given.
    """
    from executable_prose.execution import run_exhibit

    try:
        sandbox.close(folder, limit)
    except FileNotFoundError:  # the process that asked has ended, and has removed it
        return
    project.settle()
    outcome = run_exhibit.run(name, module)
    try:
        connection.send_bytes(json.dumps(vars(outcome)).encode())  # data: what is unpickled could run code
    except BrokenPipeError:  # nobody waits for it any more
        pass
    except OSError:
        os._exit(MUTE)
    connection.close()


def run_one(
    name: str, context: Any = CONTEXT, module: "Imported | None" = None, asker: tuple = ()
) -> Outcome:
    """Run one exhibit in its own process and wait for it; end both when a connection of `asker` is closed."""
    with tempfile.TemporaryDirectory(prefix="exhibit-", ignore_cleanup_errors=True) as folder:
        start = time.perf_counter()
        outcome = _run(name, folder, context, module, asker)
        outcome.seconds = time.perf_counter() - start
    return outcome


def _run(name, folder, context, module, asker):
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=in_child, args=(name, sending, folder, LIMIT, module), daemon=True)
    with STARTING:
        process.start()
    sending.close()
    expired = threading.Event()

    def end():
        expired.set()
        kill(process)

    last = threading.Timer(LIMIT + REST, end)
    last.start()
    if not set(asker).isdisjoint(wait([receiving, *asker])):  # whoever asked says nothing before the answer
        kill(process)
        os._exit(0)
    try:
        outcome = Outcome(**json.loads(receiving.recv_bytes()))
    except (EOFError, OSError):  # the latter in the middle of it
        outcome = None
    last.cancel()
    last.join()  # a process with threads is not forked well
    why, place = _fault(process, folder, outcome, expired.is_set())
    outcome = outcome or Outcome(name)
    if why:
        outcome.failure = why + (place or f" (at {definition(name)})")
    return outcome


def _fault(process, folder, outcome, expired):
    """What is wrong about how a process ended, if anything, and the line of ours where it was."""
    process.join(REST)
    was_alive, has_left = process.is_alive(), kill(process)
    process.join()
    late, place = sandbox.last_words(folder)
    why = ""
    if not outcome and (late or expired):
        why = f"it did not end within {LIMIT} seconds"
    elif not outcome:
        why = WHY.get(process.exitcode, f"its process died with exit code {process.exitcode}")
    elif was_alive:
        why = f"its process still ran {REST} seconds after its answer: does it leave a thread?"
    elif has_left and not outcome.failure:
        why = "expected work in one process, but it started another one"
    return why, place


def kill(process: "BaseProcess") -> bool:
    """End a process with all that it has started; whether any of these ran."""
    process.kill()  # it may not yet lead its group
    try:
        os.killpg(process.pid, signal.SIGKILL)  # type: ignore[arg-type]
    except (AttributeError, OSError):  # Windows has no groups; or this one is empty
        return False
    return True
