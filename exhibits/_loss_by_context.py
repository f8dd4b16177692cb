"""Loss by context length: the same bytes, predicted with few and with many
bytes before them.

The kept results of experiments/language.py. Its losses by position compare
other bytes at each position, and so cannot tell this.
"""

import torch

from experiments.language import CONTEXTS
from experiments.runs import load
from experiments.variants import ORDER

NEAR, LONG = 64, 1008  # bytes read before: all within the training; the most
LITTLE = 0.06  # nats


def losses(before):
    """For each encoding the mean loss of each seed: (seeds,), in nats."""
    return {
        name: torch.tensor(
            [run["loss_by_context"][str(before)] for run in runs]
        ).mean(-1)
        for name, runs in load("language").items()
    }


def counting():
    """The same of counting which byte followed which four: (seeds,)."""
    runs = load("variants")["5-gram"]
    return torch.tensor(
        [run["loss_by_context"][str(ORDER)] for run in runs]
    ).mean(-1)


def chances(*names):
    """Of each encoding, the chance that the right byte mostly got, by how
    many bytes were read before: the geometric mean over bytes and seeds."""
    read = [losses(before) for before in CONTEXTS]
    return {
        n: [(-each[n].mean()).exp().item() for each in read] for n in names
    }


def costs(before=LONG):
    """How much higher that is than with NEAR bytes before: (seeds,)."""
    near, far = losses(NEAR), losses(before)
    return {name: far[name] - near[name] for name in near}


def level():
    """The encodings to which length costs LITTLE at most, in each seed."""
    return {name for name, cost in costs().items() if (cost <= LITTLE).all()}
