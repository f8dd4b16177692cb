"""How sure a mean is that was taken over files and seeds, and when one thing is better than another."""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import torch

LEVEL = 0.95
ONE_SEED = "one seed"  # instead of a verdict
LEAST_P = 1e-5  # where the sums below still tell Student's t to three digits
SEEN = 0.8  # the chance with which a difference that is told as one that could have been seen is seen


def interval(values):
    """The mean of values, (seeds, files, ...), and the ends of its interval: three numbers.

    Each file counts once, with all that came from it. The means over files and those over seeds have an
    interval of Student's t each; that of the whole is as long as both at a right angle. What is neither
    seed nor file, but both, is in both: the interval is then a little too long. Of two things that were
    measured on the same files with the same seeds take the interval of the difference: how hard a file is,
    is then no part of it.
    """
    mean, errors = scatter(values)
    half = math.hypot(*(quantile(freedom) * error for error, freedom in errors))
    return mean, mean - half, mean + half


def scatter(values):
    """The mean of values, (seeds, files, ...), and of each axis its standard error and degrees of freedom."""
    table = values.double().flatten(2).mean(-1) if values.ndim > 2 else values.double()
    axes = (table.mean(0), table.mean(1))
    errors = [(each.std().item() / math.sqrt(len(each)), len(each) - 1) for each in axes if len(each) > 1]
    return table.mean().item(), errors


class Comparison(NamedTuple):
    """By how much one thing loses less than another, the interval of that, and the number of seeds behind it.

    Two rules that are not trained have no seeds: None.
    """

    gain: float
    low: float
    high: float
    seeds: int | None

    def better(self, by=0.0):
        """Whether the one is better by so much: True or False, or None where this cannot be told.

        This is the rule for every such sentence: the whole interval of the difference lies beyond. With a
        single seed on either side it cannot be told: an interval over files leaves out how seeds differ.
        """
        if self.seeds == 1:
            return None
        return True if self.low > by else False if self.high < by else None

    def verdict(self, words, by=0.0):
        """The word for what `better` returns, and for a single seed the one that is never a comparison."""
        return ONE_SEED if self.seeds == 1 else words[self.better(by)]


def compare(one, other):
    """Losses of two things on the same files with the same seeds: (seeds, files, ...) each.

    Where one has fewer seeds, only the seeds that both have are compared. A rule that is not trained has no
    seeds: (files,).
    """
    seeds = min((len(each) for each in (one, other) if each.ndim > 1), default=None)
    one, other = (each[:seeds] if each.ndim > 1 else each[None] for each in (one, other))
    return Comparison(*interval(other - one), seeds)


def could_be_seen(values, draws=20_000):
    """The mean that such an interval would find to be above zero with chance SEEN.

    It supposes that seeds and files scatter, evenly to both sides, as much as they did here.
    """
    luck = np.random.default_rng(0)
    off, half = np.zeros((2, draws))
    for error, freedom in scatter(values)[1]:
        off += error * luck.standard_normal(draws)
        half += (quantile(freedom) * error) ** 2 * luck.chisquare(freedom, draws) / freedom
    return np.quantile(np.sqrt(half) - off, SEEN).item()


def p_value(values):
    """The two-sided p-value of the mean being zero: at 1 less this level, `interval` just ends at zero.

    Below LEAST_P it is LEAST_P.
    """
    mean, errors = scatter(values)
    low, high = LEAST_P, 1.0
    while high > 1.001 * low:
        middle = math.sqrt(low * high)
        half = math.hypot(*(quantile(freedom, 1 - middle) * error for error, freedom in errors))
        low, high = (middle, high) if half > abs(mean) else (low, middle)
    return high


def holm(p_values):
    """Holm's adjusted p-values of a family of tests, in the order given."""
    adjusted, largest = {}, 0.0
    for rank, number in enumerate(sorted(range(len(p_values)), key=lambda n: p_values[n])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[number]))
        adjusted[number] = largest
    return [adjusted[number] for number in range(len(p_values))]


def quantile(freedom, level=LEVEL):
    """How many standard errors Student's t with so much freedom stays within, with this probability."""
    angles, within = _angles(freedom)
    edge = torch.searchsorted(within, level * within[-1])
    return math.sqrt(freedom) * angles[edge].tan().item()


@cache
def _angles(freedom):
    """Angles a, and beside them in proportion the probability that |t| is below sqrt(freedom) tan(a)."""
    angles = torch.linspace(0, math.pi / 2, 1_000_001, dtype=torch.float64)
    return angles, angles.cos().pow(freedom - 1).cumsum(0)
