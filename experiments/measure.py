"""What a call takes: the time of its thread, and the most bytes at one time."""

import ctypes
import gc
import os
import platform
import random
import time
from pathlib import Path

from torch.profiler import ProfilerActivity, profile

os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # torch's profiler would say when it starts and stops

TURN = 0.01  # seconds at least, by calling again


def peak_bytes(function):
    """The most bytes that tensors made during a call take up at one time, its result included."""
    function()  # what is set up once is no part of it
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        kept = function()
    events = profiler.profiler.kineto_results.events()
    changes = sorted((event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]")
    now = most = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    assert kept is not None and most > 0
    return most


def seconds(ways, rounds, parts, seed):
    """How long each way takes, to three digits: for each part of the rounds, its shortest turn.

    ways is a dictionary of functions, each called at least once before. In each round every way has
    one turn, in an order of the round's own. Counted is the time of this thread on its processor: other
    programs can only add to it, by way of the caches that they share, so the shortest turn tells most.
    """
    calls = {name: max(1, round(TURN / once(way))) for name, way in ways.items()}
    found = {name: [float("inf")] * parts for name in ways}
    order = random.Random(seed)
    gc.collect()
    gc.disable()
    for turn in range(rounds):
        for name in order.sample(list(ways), len(ways)):
            took = sum(once(ways[name]) for _ in range(calls[name])) / calls[name]
            part = turn % parts
            found[name][part] = min(found[name][part], took)
    gc.enable()
    return {name: [float(f"{each:.3g}") for each in times] for name, times in found.items()}


def once(way):
    start = time.thread_time_ns()
    way()
    return (time.thread_time_ns() - start) / 1e9


def keep_memory():
    """Have freed memory stay with this process, as the allocators of other devices do it.

    A large tensor would otherwise cost a page fault for every 4 kB in one round and nothing in the
    next. Where the C library is another than glibc, nothing changes.
    """
    if platform.libc_ver()[0] == "glibc":
        library = ctypes.CDLL(None)
        for parameter, value in ((-4, 0), (-1, -1), (-2, 2**28)):  # MMAP_MAX, TRIM_THRESHOLD, TOP_PAD
            library.mallopt(parameter, value)


def processor():
    """The name of this machine's processor."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
