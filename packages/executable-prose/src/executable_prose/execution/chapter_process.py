"""A process that has imported a module of exhibits, and forks for each of them.

So the imports of a chapter run once. What they used counts for each of its exhibits. An exhibit sees nothing
that another one has done, as each has its own fork.
"""

import contextlib
import faulthandler
import gc
import json
import multiprocessing
import tempfile
from multiprocessing.connection import Connection

from executable_prose import project
from executable_prose.execution import exhibit_process, sandbox
from executable_prose.execution.exhibit_process import CONTEXT, STARTING, kill, run_one
from executable_prose.outcome import Outcome


class Chapter:
    """The other end of it. An exhibit that it cannot run gets a process without it, which tells why."""

    def __init__(self, module: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="chapter-", ignore_cleanup_errors=True)
        self._connection, theirs = CONTEXT.Pipe()
        # No daemon, for that may have no children.
        given = module, theirs, self._folder.name, exhibit_process.LIMIT
        self._process = CONTEXT.Process(target=in_chapter, args=given)
        with STARTING:
            self._process.start()
        theirs.close()
        self._can_run = bool(self._answer())

    def run(self, name: str) -> Outcome:
        """Run one exhibit and wait for it."""
        if self._can_run:
            with contextlib.suppress(OSError):
                self._connection.send_bytes(name.encode())
            if answer := self._answer():
                return Outcome(**answer)
            self._can_run = False
        return run_one(name)

    def _answer(self):
        with contextlib.suppress(EOFError, OSError):
            if self._connection.poll(exhibit_process.LIMIT + 3 * exhibit_process.REST):
                return json.loads(self._connection.recv_bytes())
        kill(self._process)
        return None

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.join(exhibit_process.REST)
        kill(self._process)
        self._folder.cleanup()


def in_chapter(name: str, connection: Connection, folder: str, limit: int) -> None:
    """The body of the process; the folder is its own."""
    from executable_prose.execution import run_exhibit

    try:
        sandbox.close(folder, limit)
    except FileNotFoundError:  # the process that asked has ended, and has removed it
        return
    project.settle()
    module = run_exhibit.imported(name)
    faulthandler.cancel_dump_traceback_later()  # which would be waited for in forks
    gc.freeze()  # else each fork copies all that it looks at for garbage
    with contextlib.suppress(EOFError, OSError):  # nobody asks any more
        connection.send_bytes(json.dumps(module is not None).encode())
        while module:
            exhibit = connection.recv_bytes().decode()
            outcome = run_one(exhibit, multiprocessing.get_context("fork"), module, (connection,))
            connection.send_bytes(json.dumps(vars(outcome)).encode())
