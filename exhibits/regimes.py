"""Texts in which length matters: what was expected before anything was
trained, and what came. The kept results of experiments/chains.py.
"""

import math
import tomllib
from functools import cache

import matplotlib.pyplot as plt
import torch

from exhibits._drawing import COLORS, name_lines
from experiments import chains, ciphers
from experiments import regimes as models
from experiments.intervals import LEVEL, SEEN, compare
from experiments.runs import PLAN, load, plan

TRAINED, ASKED = models.TRAINED, models.ASKED
ENDS = [end for _, end in chains.BANDS if end >= TRAINED]
RULES = ("best", "count")  # that are not trained
OUTCOMES = {True: "held", False: "failed", None: "open"}


def _measured(regime, method, at, window=ASKED):
    """Losses: of chains beyond the best possible, (seeds, texts); of ciphers
    (seeds, files, windows). A rule has one row.
    """
    if method == "best":
        return torch.zeros(1, chains.TEXTS)
    if method == "count":
        return torch.tensor([_counting(window)[str(at)]])
    kind = "above" if regime == "chains" else "far"
    found = torch.tensor(
        [run[kind][str(window)][str(at)] for run in load(regime)[method]]
    )
    if regime == "ciphers":
        return found.unflatten(-1, (-1, ciphers.EACH))
    return found


@cache
def _counting(window):
    """By band, for each text: what is lost by counting in so many states."""
    texts = chains.asked()
    chances = chains.counted(texts, window).log()
    return chains.by_band(chains.above(chances, texts))


def _best():
    """By band, the best possible loss on average over the texts."""
    by_band = chains.by_band(chains.floor(chains.asked()))
    return {int(end): sum(row) / len(row) for end, row in by_band.items()}


def _expected():
    """Of each regime that was trained: its name, whether the entry is part
    of the stop rule, and the entry.
    """
    path = PLAN.with_name("predictions.toml")
    told = tomllib.loads(path.read_text(encoding="utf-8"))
    return [
        (regime, kind == "stop", entry)
        for regime, kinds in told.items()
        if regime in plan()
        for kind, entries in kinds.items()
        for entry in entries
    ]


def _compared(regime, entry):
    sides = (_measured(regime, **entry[side]) for side in ("less", "more"))
    return compare(*sides)


def expected():
    """What was expected before anything was trained, and what came: a row
    for each, those of the stop rule first.
    """
    print("| Expected | Came | Difference, nats | Could be seen |")
    print("|---|---|--:|--:|")
    counts = dict.fromkeys(OUTCOMES.values(), 0)
    for regime, stop, entry in _expected():
        found = _compared(regime, entry)
        outcome = OUTCOMES[found.better(entry["by"])]
        counts[outcome] += not stop
        says = f"*Stop rule.* {entry['says']}" if stop else entry["says"]
        nats = f"{found.gain:+.2f} ({found.low:+.2f} to {found.high:+.2f})"
        print(f"| {says} | {outcome} | {nats} | {found.seen:.2f} |")
    return counts | {"sure": LEVEL, "chance": SEEN}


def distances():
    """How far each method is from the best possible, by place in the text:
    first what is not trained, then what is, each with its windows.
    """
    heads = [f"{end // 2} to {end:,}" for end in ENDS]
    print("| Method | Sees |", " | ".join(heads), "|")
    print("|---|--:" + "|--:" * len(heads) + "|")
    best = [f"{loss:.2f}" for end, loss in _best().items() if end in ENDS]
    print("| the best possible, loss | all |", " | ".join(best), "|")
    rows = [("count", window) for window in models.WINDOWS[:-1]]
    rows += [
        (name, window)
        for name in load("chains")
        for window in (ASKED, *models.WINDOWS[:-1])
    ]
    values = {}
    for name, window in rows:
        found = [_distance(name, end, window) for end in ENDS]
        cells = [f"{e.gain:.2f} ±{e.high - e.gain:.2f}" for e in found]
        seen = "all" if window == ASKED else window
        print(f"| {name} | {seen} |", " | ".join(cells), "|")
        for end, each in zip(ENDS, found, strict=True):
            values[f"{name.lower()}_{seen}_{end}"] = each.gain
    for name in ("alibi", "t5"):
        seen = values[f"{name}_{TRAINED}_{ASKED}"]
        values[f"{name}_uses"] = seen - values[f"{name}_all_{ASKED}"]
    return values | _sizes()


def _distance(name, end, window=ASKED):
    found = _measured("chains", name, end, window)
    return compare(_measured("chains", "best", end), found)


def _best_window(name):
    """Of the windows the one with which it is nearest, far out."""
    windows = models.WINDOWS[:-1]
    return min(windows, key=lambda seen: _distance(name, ASKED, seen).gain)


def _sizes():
    best = _best()
    return {
        "trained": TRAINED,
        "asked": ASKED,
        "times": ASKED // TRAINED,
        "states": chains.STATES,
        "texts": chains.TEXTS,
        "updates": models.UPDATES,
        "batch": models.BATCH,
        "width": models.DIM,
        "layers": models.LAYERS,
        "seeds": plan()["chains"]["seeds"],
        "narrow": min(models.WINDOWS),
        "best_within": best[TRAINED],
        "best_far": best[ASKED],
        "falls": best[TRAINED] - best[ASKED],
    }


def floor():
    """Two panels over the place in the text, from half the trained length to
    eight times it. Above, the loss: the best possible is a thick gray line
    that falls all the way; a count of the last stretch, as long as the
    training, is dashed and soon falls no more. Below, how far each encoding
    is from the best possible, with a band that shows how sure that is.
    """
    fig, axes = plt.subplots(2, 1, figsize=(4.4, 6), sharex=True)
    middles = [end / math.sqrt(2) for end in ENDS]
    best = torch.tensor([_best()[end] for end in ENDS])
    lines = {name: (name, ASKED, COLORS[name]) for name in load("chains")}
    narrow = _best_window("RoPE")
    lines |= {
        f"count of {TRAINED}": ("count", TRAINED, "gray"),
        f"RoPE, window {narrow}": ("RoPE", narrow, COLORS["RoPE"]),
    }
    for label, (name, window, color) in lines.items():
        found = [_distance(name, end, window) for end in ENDS]
        gain, low, high, _ = (
            torch.tensor(e) for e in zip(*found, strict=True)
        )
        style = "-" if window == ASKED else "--"
        axes[0].plot(middles, best + gain, style, color=color, label=label)
        axes[1].plot(middles, gain, style, color=color, label=label)
        if name != "count":
            band = middles, low, high
            axes[1].fill_between(*band, color=color, alpha=0.2, lw=0)
    axes[0].plot(middles, best, color="gray", lw=4, label="best possible")
    for ax, label in zip(axes, ("loss", "beyond the best"), strict=True):
        ax.axvline(TRAINED, color="gray", ls=":")
        ax.set_xscale("log", base=2)
        ax.set_xticks([TRAINED * n for n in (1, 2, 4, 8)])
        ax.set_xticklabels(["trained", "2 times", "4 times", "8 times"])
        ax.set_ylabel(f"{label}, nats")
        name_lines(ax)
    axes[1].set_ylim(bottom=0)
    axes[1].set_xlabel("place in the text")
    return fig
