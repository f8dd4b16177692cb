"""More of the models of chains: what each layer needs, what another recipe
changes, and RoPE stretched. The kept results of experiments/layers.py,
recipes.py and extensions.py.
"""

import math

import matplotlib.pyplot as plt
import torch

from exhibits import regimes
from exhibits.regimes import ASKED, TRAINED
from experiments import extensions, larger
from experiments import recent as modern
from experiments import recipes as other
from experiments.regimes import CLIP, DIM, HEADS, RATE

PATCHES = [
    f"{layer} {patch}"
    for layer in ("first", "second")
    for patch in ("nothing", "shifted", CLIP, TRAINED)
]
PLAIN = str(ASKED)
LEARNED = 0.1  # excess loss within the training length, at most
# What sees how much in the first layer, and what the second has.
PARTED = {
    ("sees all", "RoPE"): "RoPE",
    ("sees all", "no positions"): "RoPE and none",
    ("window", "RoPE"): "window and RoPE",
    ("window", "no positions"): "window and none",
}


def patched():
    """Two grids of distances from the best possible, within the trained
    length and at the end: a row for each model, a column for it as trained
    and for each patch of a layer. To shift the first layer ruins all but
    ALiBi and no positions, to shift the second changes nothing. At the end a
    window in the first layer brings RoPE nearer, one in the second does not.
    """
    found = regimes._methods("layers")
    columns = [PLAIN, *PATCHES]
    fig, axes = plt.subplots(2, 1, figsize=(4.4, 4.6))
    values = {}
    for ax, end in zip(axes, (TRAINED, ASKED), strict=True):
        grid = torch.tensor(
            [[_mean(name, c, end) for c in columns] for name in found]
        )
        ax.imshow(grid, cmap="amount", vmin=0, vmax=3, aspect="auto")
        for row, cells in enumerate(grid.tolist()):
            for column, cell in enumerate(cells):
                if math.isfinite(cell):
                    text = f"{cell:.2f}".removeprefix("0")
                    ax.text(column, row, text, ha="center", va="center")
        ax.set_yticks(range(len(found)), found)
        ax.tick_params(length=0)
        ax.set_title(f"{end // 2} to {end:,}", loc="left")
        ax.set_xticks([])
        for column, layer in ((2.5, "first layer"), (6.5, "second layer")):
            ax.text(column, -0.7, layer, ha="center")
            ax.axvline(column - 2, color="gray")
        for name, cells in zip(found, grid.tolist(), strict=True):
            for column, cell in zip(columns, cells, strict=True):
                if math.isfinite(cell):
                    asked = "all" if column == PLAIN else column
                    values[regimes._key(f"{name} {asked} {end}")] = cell
    cost = [
        _mean(name, "second nothing", TRAINED) - _mean(name, PLAIN, TRAINED)
        for name in found
    ]
    cost = [each for each in cost if each]  # the others have none there
    values |= {"second_least": min(cost), "second_most": max(cost)}
    labels = ["as trained", *(patch.split()[1] for patch in PATCHES)]
    axes[-1].set_xticks(range(len(columns)), labels, rotation=90)
    return fig, values


def _mean(name, window, end):
    """The mean over seeds and texts; nan if a model cannot be patched so."""
    runs = [
        run["above"].get(window, {}).get(str(end))
        for run in regimes._runs("layers", name)
    ]
    return (
        torch.tensor(runs).mean().item() if None not in runs else float("nan")
    )


def parted():
    """The distance from the best possible at the end, by what the first layer
    sees and what the second has.
    """
    print("| First layer, with RoPE | Second: RoPE | Second: no positions |")
    print("|---|--:|--:|")
    values, heads = {}, {"sees all": "sees all", "window": f"sees {CLIP}"}
    for first, head in heads.items():
        cells = []
        for (sees, second), name in PARTED.items():
            if sees == first:
                found = regimes._distance(name, ASKED, regime="layers")
                cells.append(
                    f"{found.gain:.2f} ±{found.high - found.gain:.2f}"
                )
                values[regimes._key(f"{first} {second}")] = found.gain
        print(f"| {head} |", " | ".join(cells), "|")
    return values


def recipes():
    """How far each is from the best possible with four step sizes, within the
    trained length and at the end; the step size with which it is nearest
    within stands in bold.
    """
    rates = sorted({RATE, *(float(c[5:]) for _, c in _changes("rate"))})
    print("| Method |", " | ".join(f"{rate:g}" for rate in rates), "|")
    print("|---" + "|--:" * len(rates) + "|")
    values = {}
    for name in dict.fromkeys(name for name, _ in _changes("rate")):
        found = {rate: _ends(name, rate) for rate in rates}
        best = min(found, key=lambda rate: found[rate][0])
        cells = [
            f"{within:.2f} / {far:.2f}" for within, far in found.values()
        ]
        cells = [
            f"**{c}**" if rate == best else c
            for c, rate in zip(cells, rates, strict=True)
        ]
        print(f"| {name} |", " | ".join(cells), "|")
        key = regimes._key(name)
        values |= {f"{key}_best": best, f"{key}_within": found[best][0]}
        values |= {f"{key}_far": found[best][1]}
        values |= {f"{key}_nearest": min(far for _, far in found.values())}
    return values | {"usual": RATE}


def rope_by_recipe():
    """Excess loss of RoPE and of no positional encoding, within the training
    length and at the end, the least and the greatest over the seeds, with
    each recipe that was tried.
    """
    heads = f"one head of {extensions.WIDTH}"
    recipes = {  # where RoPE was trained so, and no positional encoding
        "as above": (("chains", "RoPE"), ("chains", "none")),
        heads: (("extensions", "RoPE stretched", "untuned RoPE"), None),
        f"base {modern.BASE:,.0f}": (("recent", "larger base"), None),
    }
    for _, change in _changes():
        pair = [("recipes", f"{name}, {change}") for name in ("RoPE", "none")]
        if all(name in regimes._methods("recipes") for _, name in pair):
            name = change.replace("rate", "step size")
            recipes[name.replace("long", f"{other.LONGER} × updates")] = pair
    size = f"{larger.TIMES**2} × parameters"
    recipes[size] = (("larger", "RoPE"), ("larger", "none"))
    print("| Recipe | Seeds | RoPE, within | Far | None, within | Far |")
    print("|---|--:|--:|--:|--:|--:|")
    found = {"RoPE": [], "none": []}
    for recipe, sides in recipes.items():
        cells = []
        for name, side in zip(found, sides, strict=True):
            ends = _by_seed(*side) if side else None
            cells += [_range(each) for each in ends] if side else ["–", "–"]
            found[name] += [] if ends is None else [ends]
        seeds = len(found["RoPE"][-1][0])
        print(f"| {recipe} | {seeds} |", " | ".join(cells), "|")
    values = {"recipes": len(recipes), "head": DIM // HEADS}
    for name, runs in found.items():
        within, far = torch.cat(runs, 1)
        values[f"{name.lower()}_runs"] = len(within)
        known = (within < LEARNED) if name == "RoPE" else within > 0
        values[f"{name.lower()}_known"] = int(known.sum())
        for place, each in (("within", within[known]), ("far", far[known])):
            values[f"{name.lower()}_{place}_least"] = each.min()
            values[f"{name.lower()}_{place}_most"] = each.max()
    return values


def _by_seed(experiment, name, window=ASKED):
    """Within and at the end, the mean of each seed: (2, seeds)."""
    return torch.stack(
        [
            regimes._measured(experiment, name, end, window).mean(1)
            for end in (TRAINED, ASKED)
        ]
    )


def _range(values):
    """The least and the greatest, or the one where there is one."""
    ends = f"{values.min():.2f}", f"{values.max():.2f}"
    return " to ".join(dict.fromkeys(ends))


def changes():
    """How far each is from the best possible, within the trained length and
    at the end, with one other change of the recipe, and without.
    """
    print("| Method | Change | Within | Far | Unchanged, within | Far |")
    print("|---|---|--:|--:|--:|--:|")
    values = {}
    for name, change in _changes():
        if not change.startswith("rate"):
            changed, plain = (
                _of("recipes", f"{name}, {change}"),
                _ends(name, RATE),
            )
            cells = " | ".join(f"{each:.2f}" for each in (*changed, *plain))
            print(f"| {name} | {change} | {cells} |")
            key = regimes._key(f"{name} {change}")
            values |= {f"{key}_within": changed[0], f"{key}_far": changed[1]}
    t5 = [
        _of("recipes", name)[1]
        for name in regimes._methods("recipes")
        if name.startswith("T5, ")
    ]
    t5.append(_of("larger", "T5")[1])
    return values | {
        "longer": other.LONGER,
        "t5_runs": len(t5),
        "t5_least": min(t5),
        "t5_most": max(t5),
    }


def _changes(kind=""):
    """The methods of recipes.py, each with its change, of one kind or all."""
    both = [method.split(", ") for method in regimes._methods("recipes")]
    return [
        (name, change) for name, change in both if change.startswith(kind)
    ]


def _ends(name, rate):
    """Of the first seed, within and at the end."""
    if rate != RATE:
        return _of("recipes", f"{name}, rate {rate:g}")
    return _of("chains" if name in regimes._methods() else "recent", name)


def _of(experiment, name):
    above = regimes._runs(experiment, name)[0]["above"][PLAIN]
    return [
        torch.tensor(above[str(end)]).mean().item()
        for end in (TRAINED, ASKED)
    ]


def stretched():
    """RoPE's own frequencies, a larger base and each way of stretching: how
    far from the best possible within the trained length and at the end, as
    trained and after a few updates at the full length.
    """
    print("| Frequencies | Within | Far | Tuned, within | Tuned, far |")
    print("|---|--:|--:|--:|--:|")
    values = {}
    for name in _ways():
        cells = []
        for state in ("untuned", "tuned"):
            for place, end in (("within", TRAINED), ("far", ASKED)):
                found = regimes._distance(
                    "RoPE stretched", end, f"{state} {name}", "extensions"
                )
                half = found.high - found.gain
                cells.append(f"{found.gain:.2f} ±{half:.2f}")
                values[regimes._key(f"{name} {state} {place}")] = found.gain
        print(f"| {name} |", " | ".join(cells), "|")
    plain = regimes._measured(
        "extensions", "RoPE stretched", ASKED, "untuned RoPE"
    ).mean(1)
    return values | {
        "rope_least": plain.min(),
        "rope_most": plain.max(),
        "factor": extensions.FACTOR,
        "width": extensions.WIDTH,
        "updates": extensions.TUNING["updates"],
        "batch": extensions.TUNING["batch"],
        "trials": extensions.TRIALS,
    }


def _ways():
    """What RoPE was stretched with, by name; its own frequencies first."""
    above = regimes._runs("extensions", "RoPE stretched")[0]["above"]
    return [
        name.removeprefix("untuned ")
        for name in above
        if name.startswith("untuned ")
    ]
