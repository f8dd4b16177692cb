"""Draw the main figure of the page "What we measured" from the table of all runs.

    python main_figure.py runs.csv main_figure.svg

It needs matplotlib alone, and nothing of this project but the table.
"""

import csv
import sys
from pathlib import Path
from statistics import fmean

import matplotlib.pyplot as plt

ENDS = (128, 256, 512, 1024)  # of the bands of positions; models were trained on the first
LEARNED = 0.1  # excess loss within the training length, at most
RECIPES = ("chains", "recipes")
METHODS = (
    *("RoPE", "none", "T5", "ALiBi", "KERPLE", "DeBERTa"),
    *("window + NoPE layer", "forget gates"),
)


def read(path):
    """Excess loss by method, then by recipe: a run in each row, a band of positions in each column."""
    runs = {}
    with Path(path).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            wanted = row["measure"] == "excess_loss" and row["setting"] == "1024"
            if wanted and row["experiment"] in RECIPES and int(row["at"]) in ENDS:
                name, _, recipe = row["method"].partition(", ")
                run = runs.setdefault(name, {}).setdefault(recipe, {}).setdefault(row["seed"], {})
                run[int(row["at"])] = float(row["value"])
    return {
        name: {
            recipe: [[run[end] for end in ENDS] for run in by_seed.values()]
            for recipe, by_seed in runs[name].items()
        }
        for name in METHODS
    }


def draw(runs):
    """A panel for each method: a line for each recipe, and shaded from the lowest run to the highest."""
    figure, axes = plt.subplots(4, 2, figsize=(4.4, 6.4), sharex=True, sharey=True, layout="constrained")
    for ax, (name, by_recipe) in zip(axes.flat, runs.items(), strict=True):
        every = list(zip(*(run for seeds in by_recipe.values() for run in seeds), strict=True))
        ax.fill_between(ENDS, list(map(min, every)), list(map(max, every)), alpha=0.2)
        for seeds in by_recipe.values():
            mean = [fmean(band) for band in zip(*seeds, strict=True)]
            ax.plot(ENDS, mean, "-" if mean[0] < LEARNED else ":", color="C0")
        ax.set_xscale("log", base=2)
        ax.set_title(name, loc="left")
    figure.supxlabel("end of the band of positions (training length: 128)")
    figure.supylabel("excess loss (nats)")
    return figure


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    draw(read(sys.argv[1])).savefig(sys.argv[2])
