# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-23
"""What your own functions cost beside others: time, and memory at the peak.

The ways to do a piece of work take turns, in an order drawn for each round, so
that what else the machine does hits all of them. Counted is the time of this
thread on its processor, and of each way the shortest turn: other programs can
only add to it. Beside it stands the time to copy once what comes out: a measure
of the machine, and a floor that no code goes far below which reads as much as
it writes anew. A view writes nothing.

For the CPU. A copy to a large new tensor is dear where the system hands out its
memory page by page; it is so for all ways and for the copy.

Source: no paper's; the shortest of several turns as in timeit of Python, whose
documentation says why.
"""

import gc
import itertools
import math
import random
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile


class Cost(NamedTuple):
    """What one call takes."""

    seconds: float
    copies: float  # seconds, by those to copy once what comes out
    peak: int  # bytes


def benchmark(
    ways: dict[str, Callable[[], Any]],
    rounds: int = 11,
    turn: float = 0.01,
    seed: int = 0,
) -> dict[str, Cost]:
    """What each way costs, by name.

    A way takes nothing and returns a tensor, or a tuple, list or dictionary of
    such; what it needs is made before. It says itself whether it is under
    torch.no_grad; that all give the same is not checked. Each is called before
    it counts, which compiles what is to be compiled. A turn is as many calls as
    took `turn` seconds before the first round. torch has one thread meanwhile.
    copies is nan where no tensor comes out. peak_bytes says what peak is.

    >>> x = torch.randn(100, 100)
    >>> cost = benchmark({"once": lambda: x @ x, "more": lambda: x @ x @ x @ x})
    >>> cost["once"].seconds < cost["more"].seconds
    True
    >>> cost["once"].peak, cost["more"].peak
    (40000, 80000)

    ValueError: no ways; rounds below 1; turn not above 0.
    """
    _check(bool(ways), "ways must be a function or more, by name, got none")
    _check(rounds > 0, f"rounds must be 1 or more, got {rounds}")
    _check(turn > 0, f"turn must be above 0, in seconds, got {turn}")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        made = [_tensors(way()) for way in ways.values()]
        copies = [lambda out=out: [x.clone() for x in out] for out in made]
        took = _shortest([*ways.values(), *copies], rounds, turn, seed)
        peaks = [peak_bytes(way) for way in ways.values()]
    finally:
        torch.set_num_threads(threads)
    found = {}
    for n, name in enumerate(ways):
        copied = took[len(ways) + n] if made[n] else math.nan
        found[name] = Cost(took[n], took[n] / copied, peaks[n])
    return found


def peak_bytes(way: Callable[[], Any]) -> int:
    """The most bytes that tensors made during a call take at one time.

    What comes out counts, what was there before does not. On the CPU. torch's
    profiler, which is asked, says on stderr when it starts and stops, unless
    KINETO_LOG_LEVEL is 6 in the environment.

    >>> x = torch.zeros(1000)
    >>> peak_bytes(lambda: x * x * x)
    8000
    """
    way()  # what is set up once does not count
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as p:
        kept = way()
    recorded: Any = p.profiler  # torch gives it no types
    events = recorded.kineto_results.events()
    changes = [(e.start_ns(), e.nbytes()) for e in events if e.nbytes()]
    del kept  # not before the profile has ended
    sizes = itertools.accumulate(size for _, size in sorted(changes))
    return max(sizes, default=0)


def _shortest(
    ways: list[Callable[[], Any]], rounds: int, turn: float, seed: int
) -> list[float]:
    """The seconds of one call in the shortest turn of each way."""
    calls = [_calls(way, turn) for way in ways]
    found, order = [math.inf] * len(ways), random.Random(seed)
    collects = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            for n in order.sample(range(len(ways)), len(ways)):
                took = _seconds(ways[n], calls[n]) / calls[n]
                found[n] = min(found[n], took)
    finally:
        if collects:
            gc.enable()
    return found


def _calls(way: Callable[[], Any], turn: float) -> int:
    """How many calls take a turn: 1, 2, 4, ..."""
    calls = 1
    while _seconds(way, calls) < turn:
        calls *= 2
    return calls


def _seconds(way: Callable[[], Any], calls: int) -> float:
    start = time.thread_time()
    for _ in range(calls):
        way()
    return time.thread_time() - start


def _tensors(made: Any) -> list[Tensor]:
    """All tensors in what a way gives."""
    if isinstance(made, Tensor):
        return [made.detach()]
    if isinstance(made, dict):
        made = made.values()
    nested = isinstance(made, Iterable) and not isinstance(made, str)
    parts = made if nested else ()
    return [tensor for part in parts for tensor in _tensors(part)]


def _check(fits: bool, message: str) -> None:
    if not fits:
        raise ValueError(message)
