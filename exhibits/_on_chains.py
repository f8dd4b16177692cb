"""The kept results on Markov chains, as excess loss, and the rules that
nothing has to be trained for. What exhibits of several chapters share.
"""

import math
import re
from functools import cache

import torch

from experiments import chains
from experiments.chain_models import EVAL_LENGTH, TRAIN_LENGTH
from experiments.intervals import compare
from experiments.models import LAYERS
from experiments.runs import load, plan

ENDS = [end for _, end in chains.BANDS if end >= TRAIN_LENGTH]
MIDDLES = [end / math.sqrt(2) for end in ENDS]
USUAL = "that of chains"  # the recipe of all figures that name none
WORDS = {
    True: "has a lower excess loss than",
    False: "has a higher excess loss than",
    None: "is not distinguishable from",
}


def methods(experiment="chains"):
    return plan()[experiment]["methods"]


@cache
def runs(experiment, method):
    return load(experiment, method=method)[method]


def excess_loss(method, end, window=EVAL_LENGTH, experiment="chains"):
    """The excess loss in the band of positions up to end: (seeds, texts), and
    (texts,) of a rule. window is a patch or a way of stretching, too.
    """
    if method == "best":
        return torch.zeros(chains.EVAL_TEXTS)
    if method == "count":
        return torch.tensor(counting(window)[str(end)])
    kept = runs(experiment, method)
    found = [run["excess_loss"][str(window)][str(end)] for run in kept]
    return torch.tensor(found, dtype=torch.float64)


def recipes_of(encoding):
    """The recipes with which an encoding was trained, the usual one first."""
    changed = [method.split(", ", 1) for method in methods("recipes")]
    return [USUAL, *(change for name, change in changed if name == encoding)]


def with_recipe(encoding, recipe, end):
    """The excess loss of an encoding with a recipe: (seeds, texts)."""
    if recipe == USUAL:
        return excess_loss(encoding, end)
    return excess_loss(f"{encoding}, {recipe}", end, experiment="recipes")


def by_seed(encoding, recipe, end):
    """The mean excess loss of each run with a recipe: (seeds,)."""
    return with_recipe(encoding, recipe, end).mean(1)


def every_run(encoding):
    """By recipe, the mean excess loss of each run in each band from the
    training length on: (bands, seeds).
    """
    return {
        recipe: torch.stack([by_seed(encoding, recipe, end) for end in ENDS])
        for recipe in recipes_of(encoding)
    }


@cache
def counting(window):
    """By band and text, the excess loss of counting in so many states."""
    texts = chains.evaluation_texts()
    predictions = chains.counting_predictions(texts, window)
    return chains.band_means(chains.excess_loss(predictions.log(), texts))


@cache
def optimal_loss():
    """By band, the optimal loss on average over the texts."""
    by_band = chains.band_means(
        chains.optimal_loss(chains.evaluation_texts())
    )
    return {int(end): sum(row) / len(row) for end, row in by_band.items()}


def mean_excess(method, end, window=EVAL_LENGTH, experiment="chains"):
    """The mean excess loss with its interval, as a Comparison."""
    found = excess_loss(method, end, window, experiment)
    return compare(excess_loss("best", end), found)


def cell(found):
    return f"{found.gain:.2f} ±{found.high - found.gain:.2f}"


def verdict(one, other):
    """Whether the one has a lower excess loss at the end than the other, in
    the words of the rule; what counts sees as much as was trained.
    """
    seen = TRAIN_LENGTH if other == "count" else EVAL_LENGTH
    found = compare(
        excess_loss(one, EVAL_LENGTH), excess_loss(other, EVAL_LENGTH, seen)
    )
    return found.verdict(WORDS)


def reach(window):
    """How many states reach the end where each layer sees so many."""
    return LAYERS * (window - 1) + 1


def heads():
    return [f"{end // 2} to {end:,}" for end in ENDS]


def key(name):
    return re.sub(r"\W+", "_", name.lower()).strip("_")


def in_training_lengths(ax):
    """The axis of positions in the text, from the training length on."""
    ax.axvline(TRAIN_LENGTH, color="gray", ls=":")
    ax.set_xscale("log", base=2)
    ax.minorticks_off()
    times = [
        f"{end // 2 // TRAIN_LENGTH} to {end // TRAIN_LENGTH}"
        for end in ENDS[1:]
    ]
    ax.set_xticks(MIDDLES, ["trained", *times])
    ax.set_xlabel("position (multiples of the training length)")
    ax.set_xlim(right=MIDDLES[-1])
