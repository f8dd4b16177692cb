"""More of the models of chains: what each layer needs, and RoPE stretched.
The kept results of experiments/layers.py and extensions.py.
"""

import math

import matplotlib.pyplot as plt
import torch

from exhibits._on_chains import (
    cell,
    excess_loss,
    key,
    mean_excess,
    methods,
    runs,
)
from experiments import extensions
from experiments.chain_models import EVAL_LENGTH, TRAIN_LENGTH
from experiments.models import CLIP

PATCHES = [
    f"{layer} {patch}"
    for layer in ("first", "second")
    for patch in ("no positions", "shifted", CLIP, TRAIN_LENGTH)
]
PLAIN = str(EVAL_LENGTH)
PLACES = {"within": TRAIN_LENGTH, "far": EVAL_LENGTH}
# What sees how much in the first layer, and what the second has.
PARTED = {
    ("sees all", "RoPE"): "RoPE",
    ("sees all", "no positions"): "RoPE + NoPE layer",
    ("window", "RoPE"): "window + RoPE layer",
    ("window", "no positions"): "window + NoPE layer",
}


def patched():
    """Two grids of excess losses, within the training length and at the end:
    a row for each model, and columns for the model as trained and for each
    patch of a layer. A shift in the first layer ruins all models but ALiBi
    and no positions; a shift in the second layer changes nothing. At the end,
    a window in the first layer lowers the loss of RoPE, and a window in the
    second layer does not.
    """
    found = methods("layers")
    columns = [PLAIN, *PATCHES]
    fig, axes = plt.subplots(2, 1, figsize=(4.4, 4.6))
    values = {}
    for ax, end in zip(axes, (TRAIN_LENGTH, EVAL_LENGTH), strict=True):
        grid = torch.tensor(
            [[_mean(name, c, end) for c in columns] for name in found]
        )
        ax.imshow(grid, cmap="amount", vmin=0, vmax=3, aspect="auto")
        for row, cells in enumerate(grid.tolist()):
            for column, mean in enumerate(cells):
                if math.isfinite(mean):
                    text = f"{mean:.2f}".removeprefix("0")
                    ax.text(column, row, text, ha="center", va="center")
        names = [name.removesuffix(" layer") for name in found]
        ax.set_yticks(range(len(found)), names)
        ax.tick_params(length=0)
        ax.set_title(f"{end // 2} to {end:,}", loc="left", pad=14)
        ax.set_xticks([])
        for column, layer in ((2.5, "first layer"), (6.5, "second layer")):
            ax.text(column, -0.7, layer, ha="center")
            ax.axvline(column - 2, color="gray")
        for name, cells in zip(found, grid.tolist(), strict=True):
            for column, mean in zip(columns, cells, strict=True):
                if math.isfinite(mean):
                    patch = "all" if column == PLAIN else column
                    values[key(f"{name} {patch} {end}")] = mean
    cost = [
        _mean(name, "second no positions", TRAIN_LENGTH)
        - _mean(name, PLAIN, TRAIN_LENGTH)
        for name in found
    ]
    cost = [each for each in cost if each]  # the others have none there
    values |= {"second_least": min(cost), "second_most": max(cost)}
    labels = ["as trained", *(patch.partition(" ")[2] for patch in PATCHES)]
    axes[-1].set_xticks(range(len(columns)), labels, rotation=90)
    return fig, values


def _mean(name, window, end):
    """The mean over seeds and texts; nan if a model cannot be patched so."""
    found = [
        run["excess_loss"].get(window, {}).get(str(end))
        for run in runs("layers", name)
    ]
    return math.nan if None in found else torch.tensor(found).mean().item()


def parted():
    """The excess loss at the end, by what the first layer sees and what the
    second has.
    """
    print("| First layer (RoPE) | Second layer: RoPE | Second layer: NoPE |")
    print("|---|--:|--:|")
    values, heads = (
        {},
        {
            "sees all": "sees all states",
            "window": f"sees {CLIP} states",
        },
    )
    for first, head in heads.items():
        cells = []
        for (sees, second), name in PARTED.items():
            if sees == first:
                found = mean_excess(name, EVAL_LENGTH, experiment="layers")
                cells.append(cell(found))
                values[key(f"{first} {second}")] = found.gain
        print(f"| {head} |", " | ".join(cells), "|")
    return values


def stretched():
    """RoPE's own frequencies, a larger base and each way of stretching: the
    excess loss within the training length and at the end, as trained and
    after a few updates at the full length.
    """
    heads = "Within", "At the end", "Tuned: within", "Tuned: at the end"
    print("| Frequencies |", " | ".join(heads), "|")
    print("|---|--:|--:|--:|--:|")
    values = {}
    for name in _ways():
        cells = []
        for state in ("untuned", "tuned"):
            for place, end in PLACES.items():
                found = mean_excess(
                    "RoPE stretched", end, f"{state} {name}", "extensions"
                )
                cells.append(cell(found))
                values[key(f"{name} {state} {place}")] = found.gain
        print(f"| {name} |", " | ".join(cells), "|")
    plain = excess_loss(
        "RoPE stretched", EVAL_LENGTH, "untuned RoPE", "extensions"
    ).mean(1)
    return values | {
        "rope_least": plain.min(),
        "rope_most": plain.max(),
        "factor": extensions.FACTOR,
        "width": extensions.WIDTH,
        "updates": extensions.TUNING["updates"],
        "batch": extensions.TUNING["batch"],
        "trials": extensions.TRIALS,
        "seeds": len(plain),
    }


def _ways():
    """What RoPE was stretched with, by name; its own frequencies first."""
    kept = runs("extensions", "RoPE stretched")[0]["excess_loss"]
    return [
        name.removeprefix("untuned ")
        for name in kept
        if name.startswith("untuned ")
    ]
