"""Excess loss on Markov chains by recipe: the runs that were declared in
experiments/preregistration.toml. The kept results of experiments/chains.py,
recipes.py and depth.py.
"""

import tomllib

import matplotlib.pyplot as plt
import torch

from exhibits._drawing import COLORS
from exhibits._on_chains import (
    MIDDLES,
    USUAL,
    by_seed,
    every_run,
    excess_loss,
    in_training_lengths,
    key,
    recipes_of,
    with_recipe,
)
from experiments import chains
from experiments.chain_models import EVAL_LENGTH, LARGE_BASE, TRAIN_LENGTH
from experiments.intervals import holm, p_value
from experiments.models import HEADS, LAYERS
from experiments.recipes import LONGER, TIMES
from experiments.runs import PLAN, plan

DECLARED = tomllib.loads(
    PLAN.with_name("preregistration.toml").read_text(encoding="utf-8")
)
ENCODINGS = DECLARED["grid"]["encodings"]
LEARNED = 0.1  # excess loss within the training length, at most
FAMILY_LEVEL = 0.05  # of the declared comparisons, after Holm's correction
COUNTING = f"count {TRAIN_LENGTH}"  # the optimum, limited to these states
OUTCOMES = {True: "finding", False: "no finding"}
PLACES = {"within": TRAIN_LENGTH, "far": EVAL_LENGTH}
NAMES = {  # of recipes, as the page has them
    USUAL: "usual recipe",
    "one head": "one wide head",
    "step size 0.001": "a third of the step size",
    "4x updates": "four times the updates",
    "base 500,000": "base 500,000",
}


def by_recipe():
    """Eight small charts of excess loss against position, one for each
    method: a line for each recipe, and a band from the lowest run to the
    highest. RoPE rises with each recipe, and its band is wide at the end.
    Forget gates, and a window below a layer without positions, stay low with
    each recipe, and DeBERTa with all but one. ALiBi's band is the widest. The
    model without positional encoding is far above zero from the start, as is
    ALiBi with one of the recipes.
    """
    fig, axes = plt.subplots(
        4, 2, figsize=(4.4, 6.4), sharex=True, sharey=True
    )
    values, fewest = {}, []
    for ax, name in zip(axes.flat, ENCODINGS, strict=True):
        color = COLORS.get(name, "C4")
        found = every_run(name)
        fewest += [runs.shape[1] for runs in found.values()]
        every = torch.cat([*found.values()], 1)  # (bands, runs)
        low, high = every.amin(1), every.amax(1)
        ax.fill_between(MIDDLES, low, high, color=color, alpha=0.2, lw=0)
        for runs in found.values():
            learned = runs[0].mean() < LEARNED
            style = "-" if learned else ":"
            ax.plot(MIDDLES, runs.mean(1), style, color=color, lw=1)
        in_training_lengths(ax)
        ax.set_xlabel("")
        ax.set_title(name, loc="left")
        ax.tick_params(axis="x", rotation=90)
        values[f"{key(name)}_runs"] = every.shape[1]
        for place, row in (("within", 0), ("far", -1)):
            values[f"{key(name)}_{place}_least"] = low[row]
            values[f"{key(name)}_{place}_most"] = high[row]
    fig.supxlabel("position (multiples of the training length)")
    fig.supylabel("excess loss (nats)")
    two = ("window_nope_layer", "forget_gates")
    known = DECLARED["grid"]["known_runs"]
    return fig, values | {
        "lowest_two_most": max(values[f"{e}_far_most"] for e in two),
        "known": sum(known.values()),
        "known_rope": known["RoPE"],
        "far_from": EVAL_LENGTH // 2,
        "heads": HEADS,
        "base": LARGE_BASE,
        "learned": LEARNED,
        "seeds": min(fewest),
        "runs": sum(values[f"{key(name)}_runs"] for name in ENCODINGS),
        "updates": chains.UPDATES,
        "times": TIMES,
    }


def table():
    """Excess loss within the training length and at the end, by recipe: the
    mean over seeds, with the lowest and highest seed, and each seed at the
    end.
    """
    seeds = f"Seeds 0 to {plan()['recipes']['seeds'] - 1} at the end"
    print(f"| Method | Recipe | Within | At the end | {seeds} | Learned |")
    print("|---|---|--:|--:|--:|---|")
    values = {}
    for name in ENCODINGS:
        for recipe in recipes_of(name):
            within, far = (
                by_seed(name, recipe, end) for end in PLACES.values()
            )
            learned = "yes" if within.mean() < LEARNED else "no"
            each = " ".join(f"{seed:.2f}" for seed in far)
            cells = f"{_spread(within)} | {_spread(far)} | {each}"
            print(f"| {name} | {NAMES[recipe]} | {cells} | {learned} |")
            slug = key(f"{name} {recipe}")
            values[f"{slug}_within"] = within.mean()
            values[f"{slug}_far"] = far.mean()
    return values


def findings():
    """The twelve declared comparisons: by how much the first method's excess
    loss is lower, from the recipe with the least difference to that with the
    most; the largest p-value of the recipes, corrected by Holm's method;
    whether the comparison is a finding; and what was expected.
    """
    declared = DECLARED["comparison"]
    found = [_by_recipe(each) for each in declared]
    corrected = holm([max(p for _, p in recipes) for recipes in found])
    print("| Declared comparison | Difference | p | Outcome | Expected |")
    print("|---|--:|--:|---|---|")
    outcomes = [OUTCOMES[p < FAMILY_LEVEL] for p in corrected]
    for each, recipes, p, outcome in zip(
        declared, found, corrected, outcomes, strict=True
    ):
        gains = [gain for gain, _ in recipes]
        shown = f"{p:.3f}" if p >= 0.001 else "below 0.001"
        cells = f"{min(gains):.2f} to {max(gains):.2f} | {shown} | {outcome}"
        print(f"| {each['says']} | {cells} | {each['expected']} |")
    same_sign = [min(gain for gain, _ in recipes) > 0 for recipes in found]
    yes, expected = OUTCOMES[True], [each["expected"] for each in declared]
    return {
        "comparisons": len(declared),
        "level": FAMILY_LEVEL,
        "found": outcomes.count(yes),
        "expected": expected.count(yes),
        "undecided": sum(same_sign) - outcomes.count(yes),
    }


def _by_recipe(comparison):
    """For each recipe that both sides were trained with, the mean difference
    and its p-value, which is 1 if the difference has the other direction.
    """
    less, more = comparison["less"], comparison["more"]
    sides = [e["method"] for e in (less, more) if e["method"] != COUNTING]
    shared = set.intersection(*(set(recipes_of(name)) for name in sides))
    differences = [_side(more, each) - _side(less, each) for each in shared]
    return [
        (each.mean().item(), p_value(each) if each.mean() > 0 else 1.0)
        for each in differences
    ]


def _side(side, recipe):
    """The excess loss of one side of a comparison: (seeds, texts), or of
    counting, (texts,).
    """
    end = PLACES[side["at"]]
    if side["method"] == COUNTING:
        return excess_loss("count", end, TRAIN_LENGTH)
    return with_recipe(side["method"], recipe, end)


def _spread(runs):
    return f"{runs.mean():.2f} ({runs.min():.2f} to {runs.max():.2f})"


def depth():
    """Excess loss within the training length and at the end with two, three
    and four layers: the mean over seeds, and the lowest and highest seed. The
    last row has four times the updates.
    """
    print("| Method | Layers | Within | At the end | Learned |")
    print("|---|--:|--:|--:|---|")
    control, values = DECLARED["control"], {}
    for name in control["encodings"]:
        for layers in (LAYERS, *control["layers"]):
            values |= _row_of_layers(name, layers)
    return values | _longer() | {"seeds": plan()["depth"]["seeds"]}


def _row_of_layers(name, layers, change=""):
    """Print the row of one model, and return its means."""
    within, far = (
        _with_layers(name, layers, change, end) for end in PLACES.values()
    )
    learned = "yes" if within.mean() < LEARNED else "no"
    cells = f"{_spread(within)} | {_spread(far)} | {learned}"
    updates = f", {NAMES[change]}" if change else ""
    print(f"| {name} | {layers}{updates} | {cells} |")
    slug = key(f"{name} {layers} {change}")
    return {f"{slug}_within": within.mean(), f"{slug}_far": far.mean()}


def _longer():
    """The row of no positions with four layers and four times the updates,
    and its seeds: how many learned the task, and where these end.
    """
    name, layers = "none", max(DECLARED["control"]["layers"])
    means = _row_of_layers(name, layers, LONGER)
    within, far = (
        _with_layers(name, layers, LONGER, end) for end in PLACES.values()
    )
    learned = within < LEARNED
    return means | {
        "longer_learned": learned.sum(),
        "longer_learned_within": within[learned].max(),
        "longer_learned_far": far[learned].max(),
        "longer_others_within": within[~learned].min(),
    }


def _with_layers(name, layers, change, end):
    """The mean excess loss of each seed: (seeds,)."""
    if layers == LAYERS:
        return by_seed(name, USUAL, end)
    method = ", ".join(
        [name, f"{layers} layers", *([change] if change else [])]
    )
    return excess_loss(method, end, experiment="depth").mean(1)
