"""The measurement of cost: what is exact about it firmly, and the rest by its form."""

import math
import platform
import subprocess
import sys

import pytest
import torch
from torch.testing import assert_close

from executable_prose.project import ROOT
from experiments import cost, measure
from experiments.measure import peak_bytes, seconds
from snippets.block import Encoding
from tests.rows import each_of

ADDED, TURNED = ["sinusoidal", "learned"], ["RoPE", "xPos"]
LINEAR = ADDED + TURNED
QUADRATIC = [name for name in cost.ENCODINGS if name not in ["none", *LINEAR]]
LENGTH = 256


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """As the measurement has it."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def growth(part, name, length):
    """How many times the memory of a part is what it was, at twice the length."""
    short, long = (peak_bytes(getattr(cost.Ways(name, n), part)) for n in (length, 2 * length))
    return long / short


# --- memory, which is exact


@pytest.mark.claim(
    "cost-own-memory-is-linear",
    "Sinusoids, learned tables, RoPE and xPos themselves take memory in proportion to the length: twice "
    "the length takes twice the memory, within 2 %.",
)
@each_of("name", LINEAR)
@each_of("length", [16, 100, LENGTH, 1000])
def test_what_is_added_or_turned_takes_memory_in_proportion_to_the_length(name, length):
    assert growth("own", name, length) == pytest.approx(2, rel=0.02)


@pytest.mark.claim(
    "cost-own-memory-is-quadratic",
    "A bias or a score for each pair of tokens, computed in full, takes four times the memory at twice "
    "the length once texts are long: at least 3.1 and at most 4.1 times from 256 to 512 tokens, and at "
    "least 3.7 times from 500 to 1,000.",
)
@each_of("name", ["none", *QUADRATIC])
def test_what_is_made_for_each_pair_takes_memory_by_the_square_of_the_length(name):
    assert 3.1 < growth("own", name, LENGTH) < 4.1
    assert 3.7 < growth("own", name, 500) < 4.1


@pytest.mark.claim(
    "cost-kernel-memory",
    "Through torch's own attention function, on one CPU thread and without gradients, memory at most "
    "doubles from 1,024 to 2,048 tokens with no encoding, with one that is added and with one that "
    "rotates. With any bias or score that is computed in full and passed as a mask, it grows more than "
    "3.5 times.",
)
@pytest.mark.parametrize(
    "name",
    ["none", *LINEAR, "ALiBi", *(pytest.param(name, marks=pytest.mark.slow) for name in QUADRATIC[1:])],
)
def test_the_kernel_needs_no_scores_unless_a_bias_brings_them(name):
    grown = growth("kernel", name, 1024)
    assert grown > 3.5 if name in QUADRATIC else 1 < grown <= 2.001


@pytest.mark.claim(
    "cost-fire-memory",
    "A training step of a block takes more memory with FIRE than with any other encoding of the guide, at "
    "four heads and 256 tokens.",
)
def test_fire_takes_most_memory_in_training():
    taken = {name: peak_bytes(cost.Ways(name, LENGTH).training) for name in cost.ENCODINGS}
    assert max(taken, key=taken.get) == "FIRE"


# --- that all ways do what they say


def test_each_encoding_uses_the_doors_of_its_family():
    used = {name: cost.Ways(name, 4).doors() for name in cost.ENCODINGS}
    assert all(used[name] == ["embed"] for name in ADDED)
    assert all(used[name] == ["rotate"] for name in TURNED)
    assert used["none"] == used["Shaw"] == ["score"]
    assert {door for name in QUADRATIC for door in used[name]} == {"bias", "score"}


@torch.no_grad()
@each_of("name", list(cost.ENCODINGS))
def test_the_kernel_gives_what_attention_written_out_gives(name):
    ways = cost.Ways(name, 24)
    encoding, at = ways.encoding, ways.positions
    for parameter in encoding.parameters():
        torch.nn.init.normal_(parameter)  # some start at zero, which changes nothing
    q, k = ways.turned()
    scores = encoding.score(q, k, at, at)
    if (bias := encoding.bias(at, at)) is not None:
        scores = scores + bias
    weights = scores.masked_fill(~ways.seen, -math.inf).softmax(-1)
    assert_close(ways.kernel(), weights @ ways.v, rtol=1e-4, atol=1e-5)


@torch.no_grad()
@each_of("name", list(cost.ENCODINGS))
def test_decoding_gives_the_last_row_of_the_whole(name):
    ways = cost.Ways(name, 24)
    ways.x = torch.cat((ways.x, ways.token), 1)
    ways.positions = torch.arange(25)[None]
    ways.seen = torch.ones(1, 25, 25, dtype=torch.bool).tril()
    whole, (k, v) = ways.whole()
    ways.k, ways.v, ways.positions = k[..., :-1, :], v[..., :-1, :], ways.positions[:, :-1]
    assert_close(ways.decoding(), whole[:, -1:], rtol=1e-4, atol=1e-5)


@each_of("name", list(cost.ENCODINGS))
def test_training_gives_a_gradient_for_everything_learned(name):
    ways = cost.Ways(name, 8)
    gradients = ways.training()
    learned = [*ways.block.parameters(), *ways.encoding.parameters()]
    assert [each.shape for each in gradients] == [each.shape for each in [ways.x, *learned]]


def test_every_encoding_meets_the_same_block_and_the_same_input():
    first, *others = (cost.Ways(name, 8) for name in cost.ENCODINGS)
    assert type(first.encoding) is Encoding
    for ways in others:
        for ours, same in zip(ways.block.parameters(), first.block.parameters(), strict=True):
            assert ours.equal(same)


# --- the whole, small


LENGTHS = {"own": (16, 32), "forward": (16,), "training": (16,), "decoding": (32,), "kernel": (16,)}


@pytest.fixture(scope="module")
def small():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost, "keep_memory", lambda: None)
        patch.setattr(measure, "TURN", 0.0)
        return cost.run("all", 0, "cpu", plan=LENGTHS, rounds=cost.PARTS)


def test_every_encoding_has_times_and_bytes_at_every_length(small):
    assert set(cost.PLAN) == set(LENGTHS)
    for name, part in small["encodings"].items():
        assert part["lengths"] == list(LENGTHS[name])
        for encoding in cost.ENCODINGS:
            times, sizes = part["seconds"][encoding], part["bytes"][encoding]
            assert len(times) == len(sizes) == len(LENGTHS[name])
            assert all(len(each) == cost.PARTS and min(each) > 0 for each in times)
            assert sizes == sorted(sizes) and sizes[0] > 0


def test_it_says_that_it_ran_on_the_processor_and_on_which():
    made = cost.provenance()
    assert made["device"] == "cpu" and made["threads"] == 1
    assert len(made["processor"]) > 2


# --- measuring


def test_the_most_bytes_at_one_time_are_counted():
    assert peak_bytes(lambda: torch.ones(1000)) == 4000
    assert peak_bytes(lambda: torch.ones(1000) + torch.ones(1000)) == 12000
    assert peak_bytes(lambda: torch.ones(1000).relu_().relu_()) == 4000


def test_every_way_has_a_turn_in_each_round_and_the_shortest_of_each_part_counts(monkeypatch):
    took = {"a": [9.0, 5.0, 6.0, 4.0, 7.0], "b": [9.0, 1.0, 2.0, 3.0, 0.5]}  # the first sets the calls
    left = {name: iter(each) for name, each in took.items()}
    monkeypatch.setattr(measure, "once", lambda way: next(left[way]))
    assert seconds({"a": "a", "b": "b"}, rounds=4, parts=2, seed=0) == {"a": [4.0, 6.0], "b": [1.0, 0.5]}


def test_a_short_way_is_called_until_its_turn_is_long_enough(monkeypatch):
    calls = []
    monkeypatch.setattr(measure, "once", lambda way: calls.append(way) or measure.TURN / 10)
    assert seconds({"a": "a"}, rounds=1, parts=1, seed=0)["a"] == [pytest.approx(measure.TURN / 10)]
    assert len(calls) == 11


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told to keep memory")
def test_kept_memory_is_used_again_without_page_faults_in_the_end():
    script = """
import resource, torch
from experiments.measure import keep_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(2**24)  # 64 MiB
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

keep_memory()
print(*(faults() for _ in range(24)))
"""
    command = [sys.executable, "-c", script]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    first, *_, last = map(int, said.stdout.split())
    assert last < 100 < first
