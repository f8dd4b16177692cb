"""What the chapter says of texts in which length matters, held against the kept results, seed by seed."""

import math
from collections import Counter, defaultdict
from itertools import pairwise

import pytest
import torch

from exhibits import regimes
from experiments import chains
from experiments.intervals import compare, quantile
from experiments.runs import load

WITHIN, FAR, ALL = "128", "1024", "1024"  # two bands, by their ends; the window that hides nothing


def means(name, end, window=ALL):
    """The distance from the best possible, of each seed."""
    runs = [run["above"][window][end] for run in load("chains")[name]]
    return torch.tensor(runs, dtype=torch.float64).mean(-1)


@pytest.fixture(scope="module")
def counted():
    """By how many states are seen, then by band: what is lost by counting, text by text, slowly.

    With None what is best possible is told itself.
    """
    lost = {seen: defaultdict(list) for seen in (None, 32, 64, 128)}
    for text in chains.asked(12).tolist():
        for place in range(len(text) - 1):
            whole = chances(text[: place + 1], text[place])
            end = next(str(end) for _, end in chains.BANDS if place < end)
            lost[None][end].append(-sum(p * math.log(p) for p in whole))
            for seen in (32, 64, 128):
                part = chances(text[max(0, place + 1 - seen) : place + 1], text[place])
                lost[seen][end].append(sum(p * math.log(p / q) for p, q in zip(whole, part, strict=True)))
    return {seen: {end: sum(e) / len(e) for end, e in bands.items()} for seen, bands in lost.items()}


def chances(text, now):
    came = Counter(then for before, then in pairwise(text) if before == now)
    all_ = sum(came.values()) + chains.PRIOR * chains.STATES
    return [(came[state] + chains.PRIOR) / all_ for state in range(chains.STATES)]


def test_the_floor_and_the_counts_are_those_of_counting_by_hand(counted):
    texts = chains.asked(12)
    floor = chains.by_band(chains.floor(texts))
    for end, expected in counted[None].items():
        assert sum(floor[end]) / 12 == pytest.approx(expected, abs=1e-3)
    for seen in (32, 64, 128):
        lost = chains.by_band(chains.above(chains.counted(texts, seen).log(), texts))
        for end, expected in counted[seen].items():
            assert sum(lost[end]) / 12 == pytest.approx(expected, abs=1e-3)
            shown = regimes._counting(seen)[end]
            assert shown[:12] == lost[end] and len(shown) == chains.TEXTS


def test_the_table_tells_what_was_kept(capsys):
    values = regimes.distances()
    rows = capsys.readouterr().out.splitlines()[2:]
    assert len(rows) == 1 + 3 + 4 * len(load("chains"))
    for name in load("chains"):
        for end in ("128", "256", "512", "1024"):
            for window, seen in (("1024", "all"), ("32", "32"), ("64", "64"), ("128", "128")):
                kept = means(name, end, window).mean().item()
                assert values[f"{name.lower()}_{seen}_{end}"] == pytest.approx(kept, abs=1e-5)


def test_an_outcome_is_that_of_the_whole_interval(capsys):
    told = regimes.expected()
    rows = capsys.readouterr().out.splitlines()[2:]
    assert len(rows) == len(regimes._expected())
    for row, (regime, stop, entry) in zip(rows, regimes._expected(), strict=True):
        less, more = (regimes._measured(regime, **entry[side]).double() for side in ("less", "more"))
        gain = more - less
        seeds, texts = gain.mean(1), gain.mean(0)
        halves = [quantile(len(e) - 1) * e.std() / len(e) ** 0.5 for e in (seeds, texts) if len(e) > 1]
        half = math.hypot(*halves)
        low, high = gain.mean() - half, gain.mean() + half
        outcome = "held" if low > entry["by"] else "failed" if high < entry["by"] else "open"
        cells = [cell.strip() for cell in row.strip("| ").split(" | ")]
        assert cells[:2] == [f"*Stop rule.* {entry['says']}" if stop else entry["says"], outcome]
        assert cells[2] == f"{gain.mean():+.2f} ({low:+.2f} to {high:+.2f})"
    outcomes = [row.split(" | ")[1] for row in rows if "Stop rule" not in row]
    assert {word: told[word] for word in ("held", "failed", "open")} == {
        word: outcomes.count(word) for word in ("held", "failed", "open")
    }


def distance(name, end, window=ALL):
    return regimes._measured("chains", name, int(end), int(window))


@pytest.mark.claim(
    "evidence-chains-are-learned",
    "In our runs on chains, in the second half of the trained length, T5 and RoPE are at most 0.1 nats "
    "above the best possible loss in each seed, ALiBi 0.1 to 0.25, and the model without positions at "
    "least 0.4",
)
def test_chains_are_learned_within_the_trained_length():
    for name in ("T5", "RoPE"):
        assert (means(name, WITHIN) < 0.1).all()
        assert compare(distance(name, WITHIN), distance("ALiBi", WITHIN)).better() is True
    assert (means("ALiBi", WITHIN) > 0.1).all() and (means("ALiBi", WITHIN) < 0.25).all()
    assert (means("none", WITHIN) > 0.4).all()


@pytest.mark.claim(
    "evidence-a-longer-window-is-better",
    "In our runs on chains, from 512 to 1,024 states, where 128 were trained, RoPE is nearer to the "
    "best possible with a window of 128 states than with one of 64, with that nearer than with one of "
    "32, and with each nearer than with none, by 0.05 nats or more in each seed; with no window it is "
    "at most 0.2 nearer than the model without positions",
)
def test_a_longer_window_is_better_and_without_any_rope_is_nearly_as_none():
    windows = [means("RoPE", FAR, seen) for seen in ("128", "64", "32", ALL)]
    assert all((one < other - 0.05).all() for one, other in pairwise(windows))
    assert (means("RoPE", FAR) > means("none", FAR) - 0.2).all()
    assert compare(distance("RoPE", FAR, 128), distance("RoPE", FAR)).better(0.1) is True


@pytest.mark.claim(
    "evidence-far-text-is-used",
    "In our runs on chains, from 512 to 1,024 states, ALiBi and T5, trained on 128, are nearer to the "
    "best possible as they are than with a window of 128 states, in each seed",
)
def test_alibi_and_t5_use_what_lies_beyond_the_trained_length():
    for name in ("ALiBi", "T5"):
        assert (means(name, FAR) < means(name, FAR, "128")).all()
        assert compare(distance(name, FAR), distance(name, FAR, 128)).better() is True


def test_the_rule_for_stopping_lets_pass_what_is_drawn():
    rule = [(regime, entry) for regime, stop, entry in regimes._expected() if stop]
    assert len(rule) >= 2
    for regime, entry in rule:
        assert regimes._compared(regime, entry).better(entry["by"]) is True, entry["says"]


def test_the_best_possible_keeps_falling(counted):
    values = regimes.distances()
    assert values["best_within"] - values["best_far"] > 0.3
    floors = [regimes._best()[end] for _, end in chains.BANDS]
    assert floors == sorted(floors, reverse=True)
