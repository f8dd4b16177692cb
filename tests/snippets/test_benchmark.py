"""benchmark.py: with a clock that moves only when a way says so, every number is exact; the peak of memory is
that of tensors whose sizes are known.

Others time otherwise: they have no copy beside, and no turns.
"""

import gc
import itertools
import math
import time

import pytest
import torch

import snippets.benchmark
from snippets.benchmark import benchmark, peak_bytes
from tests.snippets.common import refusals


class Clock:
    """Moves by what ways take, and by a millisecond for each 1,000 bytes of a copy."""

    def __init__(self):
        self.now, self.said = 0.0, []

    def way(self, name, takes, size=250):
        """A function that gives a tensor of so many float32; takes has the seconds of a call, one or many."""
        takes, out = iter(takes) if isinstance(takes, list) else itertools.repeat(takes), torch.zeros(size)

        def call():
            self.said.append(name)
            self.now += next(takes)
            return out

        return call

    def clone(self, tensor):
        self.now += tensor.numel() * 4e-6
        self.said.append("copy")
        return tensor

    def read(self):
        assert len(self.said) < 10_000, "a turn has no end"
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(time, "thread_time", made.read)
    monkeypatch.setattr(torch.Tensor, "clone", lambda tensor: made.clone(tensor))
    monkeypatch.setattr(snippets.benchmark, "peak_bytes", lambda way: 7)
    return made


# --- time


def test_seconds_are_those_of_a_call_and_copies_those_of_copying(clock):
    made = benchmark({"one": clock.way("one", 0.002), "two": clock.way("two", 0.006, size=500)})
    assert made["one"] == pytest.approx((0.002, 2.0, 7))
    assert made["two"] == pytest.approx((0.006, 3.0, 7))


def test_the_shortest_turn_counts(clock):
    takes = [9.0, 9.0, 0.5, 0.25, 0.125, 0.75]  # what comes out, how many calls, and four rounds
    made = benchmark({"one": clock.way("one", takes)}, rounds=4)
    assert made["one"].seconds == 0.125


def test_a_turn_repeats_the_call_until_it_is_long_enough(clock):
    benchmark({"one": clock.way("one", 0.003)}, rounds=2, turn=0.01)
    # for what comes out; for how many calls: 1, 2, 4; and two turns of 4
    assert clock.said.count("one") == 1 + (1 + 2 + 4) + 2 * 4


def test_a_turn_that_is_just_long_enough_is_not_repeated(clock):
    benchmark({"one": clock.way("one", 0.5)}, rounds=1, turn=0.5)
    assert clock.said.count("one") == 3


def test_eleven_rounds_of_ten_milliseconds_unless_told_otherwise(clock):
    benchmark({"one": clock.way("one", 0.01)})
    assert clock.said.count("one") == 1 + 1 + 11
    clock.said.clear()
    benchmark({"one": clock.way("one", 0.009)})
    assert clock.said.count("one") == 1 + 1 + 2 + 11 * 2


def orders(clock, rounds=12, **options):
    """The order of each round."""
    clock.said.clear()
    ways = {name: clock.way(name, 1.0, 1) for name in "abc"}
    clock.clone = lambda tensor: setattr(clock, "now", clock.now + 1) or clock.said.append("copy")
    benchmark(ways, rounds, **options)
    said = "".join(name[0] for name in clock.said[6 + 3 :])
    assert len(said) == 6 * rounds
    return [said[at : at + 6] for at in range(0, len(said), 6)]


def test_each_way_and_each_copy_has_a_turn_in_every_round_in_an_order_of_its_own(clock):
    first = orders(clock)
    assert all(sorted(each) == sorted("abcccc") for each in first)
    assert len(set(first)) > 6
    assert first == orders(clock, seed=0)
    assert first != orders(clock, seed=1)


def test_all_tensors_that_come_out_are_copied(clock):
    parts = {"a": torch.zeros(100), "b": [torch.zeros(200), (torch.zeros(50), None, 3.0)]}

    def way():
        clock.now += 0.0014
        return parts

    assert benchmark({"one": way})["one"].copies == pytest.approx(1.0)


def test_what_is_no_tensor_beside_tensors_is_not_copied():
    found = benchmark({"named": lambda: {"x": torch.ones(4), "kind": "words", "others": [1, None]}})
    assert found["named"].copies > 0


def test_without_tensors_there_is_nothing_to_copy():
    made = benchmark({"one": lambda: 3.0}, 1, 1e-4)["one"]
    assert 0 < made.seconds < 1e-4
    assert math.isnan(made.copies)
    assert made.peak == 0


def test_gradients_are_no_part_of_a_copy():
    learned = torch.ones(10, requires_grad=True)
    assert benchmark({"one": lambda: learned * 2}, 1, 1e-9)["one"].copies > 0


def test_one_thread_and_no_collection_meanwhile_and_both_as_before_after():
    threads, seen = torch.get_num_threads(), set()

    def way():
        seen.add((torch.get_num_threads(), gc.isenabled()))
        return torch.zeros(1)

    torch.set_num_threads(2)
    try:
        benchmark({"one": way}, 1, 1e-9)
        assert seen == {(1, True), (1, False)}  # first for what comes out
        assert (torch.get_num_threads(), gc.isenabled()) == (2, True)
        gc.disable()
        benchmark({"one": way}, 1, 1e-9)
        assert not gc.isenabled()
    finally:
        gc.enable()
        torch.set_num_threads(threads)


@pytest.mark.parametrize("fails_at", [1, 2, 3])
def test_an_error_leaves_everything_as_it_was(fails_at, clock):
    threads, calls = torch.get_num_threads(), []

    def way():
        calls.append(1)
        clock.now += 1.0
        if len(calls) == fails_at:
            raise KeyError
        return torch.zeros(500)

    torch.set_num_threads(2)
    try:
        with pytest.raises(KeyError):
            benchmark({"one": way}, 1)
        assert (torch.get_num_threads(), gc.isenabled()) == (2, True)
    finally:
        torch.set_num_threads(threads)


def test_twice_the_work_takes_longer():
    x = torch.randn(200, 200)
    made = benchmark({"once": lambda: x @ x, "more": lambda: x @ x @ x @ x}, rounds=3)
    assert 1.5 < made["more"].seconds / made["once"].seconds < 6
    assert made["once"].peak == 160000


# --- memory

X = torch.zeros(1000)  # 4,000 bytes


@pytest.mark.parametrize(
    ("way", "peak"),
    [
        (lambda: X * X, 4000),
        (lambda: X * X * X, 8000),
        (lambda: X * X * X * X * X, 8000),
        (lambda: [X * X, X * X, X * X], 12000),
        (lambda: (X * X).sum(), 4004),
        (lambda: X.double(), 8000),
        (lambda: X[:10], 0),
        (lambda: None, 0),
    ],
)
def test_the_peak_is_what_is_there_at_one_time(way, peak):
    assert peak_bytes(way) == peak


def test_what_is_set_up_once_does_not_count():
    kept = []

    def way():
        if not kept:
            kept.append(torch.zeros(5000))
        return X * X

    assert peak_bytes(way) == 4000


# --- bad input


@refusals
def test_refuses_what_cannot_be_measured():
    yield "ways must be a function or more, by name, got none", benchmark, {}
    yield "rounds must be 1 or more, got 0", benchmark, {"one": lambda: X}, 0
    for turn in (0, -1):
        yield f"turn must be above 0, in seconds, got {turn}", benchmark, {"one": lambda: X}, 1, turn
