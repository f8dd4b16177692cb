"""How sure a mean is that was taken over files and seeds."""

import math
from functools import cache

import torch

LEVEL = 0.95


def interval(values):
    """The mean of values, (seeds, files, ...), and the ends of its interval: three numbers.

    Each file counts once, with all that came from it. The means over files and those over seeds have an
    interval of Student's t each; that of the whole is as long as both at a right angle. What is neither
    seed nor file, but both, is in both: the interval is then a little too long. Of two things that were
    measured on the same files with the same seeds take the interval of the difference: how hard a file is,
    is then no part of it.
    """
    table = values.double().flatten(2).mean(-1) if values.ndim > 2 else values.double()
    halves = [
        quantile(len(each) - 1) * each.std().item() / math.sqrt(len(each))
        for each in (table.mean(0), table.mean(1))
        if len(each) > 1
    ]
    mean, half = table.mean().item(), math.hypot(*halves)
    return mean, mean - half, mean + half


@cache
def quantile(freedom):
    """How many standard errors Student's t, of so many degrees of freedom, keeps within with chance LEVEL.

    Of t = sqrt(freedom) tan(a) the angle a has a density like cos(a) ^ (freedom - 1).
    """
    angles = torch.linspace(0, math.pi / 2, 1_000_001, dtype=torch.float64)
    within = angles.cos().pow(freedom - 1).cumsum(0)
    edge = torch.searchsorted(within, LEVEL * within[-1])
    return math.sqrt(freedom) * angles[edge].tan().item()
