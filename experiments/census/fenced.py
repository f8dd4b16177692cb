"""A function in a process of its own, with limits, whose mess stays there."""

import contextlib
import multiprocessing
import os
import resource
import socket
import sys
import tempfile
import time
from pathlib import Path

CLOCK = 4


def fenced(function, argument, seconds, memory):
    """What function(argument) gives, or a text that says why it gave nothing.

    The limits are seconds of processor time, CLOCK times as many seconds of the clock because other programs
    may run, and memory in bytes of addresses. What it prints and writes is lost, and no connection opens.
    """
    fork = multiprocessing.get_context("fork")
    answer, send = fork.Pipe(duplex=False)
    process = fork.Process(target=_inside, args=(function, argument, seconds, memory, send), daemon=True)
    process.start()
    send.close()
    end = time.monotonic() + CLOCK * seconds
    try:
        while process.is_alive() and time.monotonic() < end:
            if answer.poll(0.1):
                break
        with contextlib.suppress(EOFError):
            if answer.poll():  # also of one that has ended since
                return answer.recv()
        return f"it took more than {seconds} seconds, or memory"
    finally:
        process.kill()
        process.join()


def _inside(function, argument, seconds, memory, send):
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    socket.socket.connect = _refuse
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
        sys.stdout = sys.stderr = nothing
        _answer(function, argument, send)


def _answer(function, argument, send):
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            send.send(function(argument))
        except BaseException as error:
            send.send(f"{type(error).__name__}: {error}".splitlines()[0][:160])


def _refuse(*_):
    raise OSError("a model must be built without a network")
