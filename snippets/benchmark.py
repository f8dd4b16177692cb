# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-23
"""Benchmark your functions against others: CPU time and peak memory.

The functions for a task are called in alternation, in an order sampled for each
round, so that other load on the machine affects all of them. The measured time
is the CPU time of this thread, and the shortest turn of each function counts,
because other programs can only add time. It is compared with the time to copy
the result once. This time is a measure of the machine, and code that reads as
much as it newly writes cannot be much faster. A view writes nothing.

This is for the CPU. A copy to a large new tensor is expensive where the system
allocates its memory page by page; this applies to all functions and to the
copy.

References:
    No paper; the shortest of several turns as in timeit of Python, whose
    documentation gives the reason.
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
    """Hold the cost of one call.

    Attributes:
        seconds: Time of one call.
        copies: Time of one call as a multiple of the time to copy the result
            once.
        peak: Peak memory in bytes, as in `peak_bytes`.
    """

    seconds: float
    copies: float  # seconds of a call / seconds to copy its result
    peak: int  # bytes


def benchmark(
    ways: dict[str, Callable[[], Any]],
    rounds: int = 11,
    turn: float = 0.01,
    seed: int = 0,
) -> dict[str, Cost]:
    """Measure the cost of each function.

    Each function is called once before it is measured, so that compilation is
    not measured. torch has one thread during the measurement. Whether all
    functions give the same result is not checked.

    Args:
        ways: Functions without arguments, by name. Each returns a tensor, or a
            tuple, list or dictionary of tensors; prepare its inputs before. To
            measure without gradients, use torch.no_grad inside the function.
        rounds: Number of rounds; at least 1.
        turn: Length of a turn in seconds, above 0. Each turn has as many calls
            as took this time in a trial before the first round.
        seed: Seed of the order of the turns.

    Returns:
        The Cost of each function, by name. `copies` is nan if the result has no
        tensor.

    Raises:
        ValueError: If there are no functions, `rounds` is less than 1, or
            `turn` is not above 0.

    Example:
        >>> x = torch.randn(100, 100)
        >>> ways = {"once": lambda: x @ x, "more": lambda: x @ x @ x @ x}
        >>> cost = benchmark(ways)
        >>> cost["once"].seconds < cost["more"].seconds
        True
        >>> cost["once"].peak, cost["more"].peak
        (40000, 80000)
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
    """Return the peak memory of the tensors created during a call.

    The result counts; tensors that existed before do not. This is for the CPU.
    The function uses torch's profiler, which prints to stderr when it starts
    and stops, unless KINETO_LOG_LEVEL is 6 in the environment.

    Args:
        way: Function without arguments.

    Returns:
        The largest number of bytes in use at the same time.

    Example:
        >>> x = torch.zeros(1000)
        >>> peak_bytes(lambda: x * x * x)
        8000

    """
    way()  # one-time setup does not count
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
    """Return the seconds of one call in the shortest turn of each function."""
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
    """Return the number of calls in a turn: 1, 2, 4, ..."""
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
    """Return all tensors in the result of a function."""
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
