"""Figures and tables of the page on cost: time and memory, from the stored
measurements of experiments/cost.py and of tests/bench/speed.py.
"""

import json
import math
import re
from pathlib import Path
from statistics import median

import matplotlib.pyplot as plt

from exhibits._drawing import COLORS, FAMILIES, name_lines
from experiments import fresh
from experiments.runs import RESULTS, load, made_with, stored

LINEAR, QUADRATIC = (
    [name for family in families for name in FAMILIES[family]]
    for families in (
        ("added to the input", "rotating q and k"),
        ("added to scores", "inside the score"),
    )
)
METHODS = LINEAR + QUADRATIC
SPEED = Path(__file__).parent.parent / fresh.SPEED
ON_GPU = RESULTS / "cost_on_gpu.json"  # of experiments/cost_on_gpu.py
WAYS = ("mask", "rule", "written")
COMMAND = "python -m experiments cost --device cuda"
SHORT = {
    "attention with transformer_xl_scores": "attention, Transformer-XL",
    "XLNet, which has rows for later keys too": "XLNet",
    " and a causal mask": "",
    ", which keeps it": "",
    ", whose layers each make it": "",
    "torch's scaled_dot_product_attention": "torch",
    "transformers' ": "",
    "float64 angles": "exact",
}


def _measured():
    return load("cost")["all"][0]


def _part(name):
    return _measured()["encodings"][name]


def _times(part, method):
    """The shortest time at each length."""
    return [min(thirds) for thirds in part["seconds"][method]]


def _ratios(part, method):
    """Time relative to no encoding at each length."""
    pairs = zip(_times(part, method), _times(part, "none"), strict=True)
    return [ours / none for ours, none in pairs]


def _bounds(part, method):
    """The same ratio from each part of the rounds alone: least, greatest."""
    every = zip(part["seconds"][method], part["seconds"]["none"], strict=True)
    by_part = [
        [ours / none for ours, none in zip(*pair, strict=True)]
        for pair in every
    ]
    return [min(each) for each in by_part], [max(each) for each in by_part]


def _step(method):
    """The time of a training step at the greatest length relative to no
    encoding, and half the range over the parts of the rounds."""
    part = _part("training")
    least, most = _bounds(part, method)
    return _ratios(part, method)[-1], (most[-1] - least[-1]) / 2


def _space(part, method):
    """Memory relative to no encoding at the greatest length."""
    return part["bytes"][method][-1] / part["bytes"]["none"][-1]


def _exponent(amounts):
    """The power of the length with which the last two doublings went."""
    return math.log2(amounts[-1] / amounts[-3]) / 2


def how():
    measured, (made,) = _measured(), made_with("cost")
    training, decoding = (
        measured["encodings"][part] for part in ("training", "decoding")
    )
    spreads = [
        greatest / least - 1
        for method in METHODS
        for least, greatest in zip(*_bounds(training, method), strict=True)
    ]
    return {
        "width": measured["width"],
        "heads": measured["heads"],
        "rounds": measured["rounds"],
        "shortest": training["lengths"][0],
        "longest": training["lengths"][-1],
        "cache": decoding["lengths"][-1],
        "processor": made["processor"],
        "system": made["machine"],
        "python": made["python"],
        "torch": made["torch"],
        "minutes": made["seconds"] / 60,
        "spread": median(spreads),
        "widest": max(spreads),
        "older": _older("These numbers were", fresh.cost()),
    }


def table():
    parts = _measured()["encodings"]
    values = {}
    shown = (
        "training",
        "training_memory",
        "decoding",
        "kernel",
        "kernel_memory",
    )
    print("| Method | Training | Memory | Decoding | Kernel | Memory |")
    print("|---|--:|--:|--:|--:|--:|")
    for method in ("none", *METHODS):
        row = {
            "own_time": _exponent(_times(parts["own"], method)),
            "own_memory": _exponent(parts["own"]["bytes"][method]),
            "forward": _ratios(parts["forward"], method)[-1],
            "training": _ratios(parts["training"], method)[-1],
            "training_memory": _space(parts["training"], method),
            "decoding": _ratios(parts["decoding"], method)[-1],
            "kernel": _ratios(parts["kernel"], method)[-1],
            "kernel_memory": _space(parts["kernel"], method),
        }
        cells = " | ".join(f"{row[name]:.2f}" for name in shown)
        print(f"| {method} | {cells} |")
        name = method.replace(" ", "_").replace("-", "_")
        values |= {f"{name}_{key}": value for key, value in row.items()}
    return values


def growth():
    """Dot plot of growth exponents, with two marks for each method: a circle
    for time and a cross for memory. For encodings that are added to the input
    or that rotate queries and keys, both are near one. For biases and terms
    inside the score, both are near two, as for the plain scores without any
    encoding.
    """
    part = _part("own")
    names = [*METHODS, "none"]
    rows = range(len(names))
    time = [_exponent(_times(part, name)) for name in names]
    memory = [_exponent(part["bytes"][name]) for name in names]
    fig, ax = plt.subplots(figsize=(4.4, 4.2))
    for power in (1, 2):
        ax.axvline(power, color="gray", linewidth=0.8)
    ax.plot(memory, rows, "x", color="C1", markersize=7, label="memory")
    ax.plot(time, rows, "o", color="C0", markersize=4, label="time")
    ax.set_yticks(rows, [*METHODS, "plain scores (none)"])
    ax.invert_yaxis()
    ax.set_xlim(0, 3)
    ax.set_xlabel("growth exponent")
    ax.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.4, 1))
    return fig, {
        "rotation": time[names.index("RoPE")],
        "rotation_memory": memory[names.index("RoPE")],
        "scores": time[-1],
        "scores_memory": memory[-1],
        "shorter": part["lengths"][-3],
        "longer": part["lengths"][-1],
    }


def training():
    """Four line charts, one for each point at which an encoding enters: the
    time of a training step against the length, relative to no encoding. Added
    and rotary encodings stay close to one. FIRE among the biases and CoPE
    among the terms inside the score rise far above one as the text grows, the
    other methods less.
    """
    part = _part("training")
    low = min(min(_bounds(part, method)[0]) for method in METHODS)
    high = max(max(_bounds(part, method)[1]) for method in METHODS)
    fig, axes = plt.subplots(2, 2, figsize=(4.4, 5.2), height_ratios=(2, 5))
    for ax, (family, methods) in zip(
        axes.flat, FAMILIES.items(), strict=True
    ):
        ax.axhline(1, color="gray", linewidth=0.8)
        for method in methods:
            color = COLORS[method]
            ax.plot(
                part["lengths"],
                _ratios(part, method),
                color=color,
                marker="o",
                markersize=3,
                linewidth=1,
                label=method,
            )
            least, most = _bounds(part, method)
            ax.vlines(part["lengths"], least, most, color, linewidth=1)
        ax.set_title(family.replace("turning", "rotating"), loc="left")
        ax.set_xscale("log", base=2)
        ends = part["lengths"][0], part["lengths"][-1]
        ax.set_xticks(ends, [str(n) for n in ends])
        ax.minorticks_off()
    for ax in axes[0]:
        ax.set_ylim(low, low + (high - low) * 2 / 5)
    for ax in axes[1]:
        ax.set_ylim(low, high)
    for ax in axes.flat:
        name_lines(ax)
    fig.supxlabel("length (tokens)")
    fig.supylabel("time (relative to no encoding)")
    none = _times(part, "none")
    ratio = {method: _ratios(part, method)[-1] for method in METHODS}
    return fig, {
        "most": ratio["FIRE"],
        "rotation": ratio["RoPE"],
        "none_exponent": _exponent(none),
    }


def kernel_memory():
    """Line chart on logarithmic scales: the memory of attention with torch's
    scaled_dot_product_attention against the length. The lines of no encoding
    and of RoPE are lowest and rise slowly. Those of ALiBi, Shaw and FIRE lie
    far above and rise about twice as steeply, with FIRE highest.
    """
    part = _part("kernel")
    fig, ax = plt.subplots(figsize=(4.4, 3))
    for method in ("FIRE", "Shaw", "ALiBi", "RoPE", "none"):
        ax.loglog(
            part["lengths"],
            [size / 2**20 for size in part["bytes"][method]],
            color=COLORS[method],
            marker="o",
            markersize=4,
            label=method,
        )
    ax.set_xticks(part["lengths"], [str(n) for n in part["lengths"]])
    ax.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
    ax.minorticks_off()
    ax.set_xlabel("length (tokens)")
    ax.set_ylabel("memory (MiB)")
    name_lines(ax)
    times = {method: _ratios(part, method)[-1] for method in METHODS}
    return fig, {
        "none_exponent": _exponent(part["bytes"]["none"]),
        "rope_exponent": _exponent(part["bytes"]["RoPE"]),
        "alibi_exponent": _exponent(part["bytes"]["ALiBi"]),
        "rope": _space(part, "RoPE"),
        "alibi": _space(part, "ALiBi"),
        "rope_time": times["RoPE"],
        "alibi_time": times["ALiBi"],
        "length": part["lengths"][-1],
    }


def peers():
    known = json.loads(SPEED.read_text())["rows"]
    apart = "attention", "rope_scaling"  # not work for each token of a text
    rows = [
        row for row in known if row["peers"] and row["snippet"] not in apart
    ]
    beside = {row["what"]: {} for row in rows}
    for row in rows:  # of each story the last, which is the largest
        beside[row["what"]][row["story"]] = _fastest(row)
    print("| Work | Nothing cached | Tables cached | Memory |")
    print("|---|---|---|--:|")
    for what, fastest in beside.items():
        cells = [_beside(fastest.get(story)) for story in ("anew", "held")]
        *_, last = fastest.values()
        cells.append(f"{last['memory']:.2f}")
        print(f"| {_short(what)} |", " | ".join(cells), "|")
    every = [peer for fastest in beside.values() for peer in fastest.values()]
    stale = {name for names in fresh.speed().values() for name in names}
    return {
        "slowest": max(p["forward"] for p in every if not p["less"]),
        "slowest_less": max(p["forward"] for p in every if p["less"]),
        "layers": max(row["layers"] for row in rows),
        "older": _older("Some of these ratios were", sorted(stale)),
    }


def _older(what, names):
    """A sentence, if something has changed since it was measured."""
    changed = ", ".join(names)
    return f"{what} measured before {changed} changed." if names else ""


def _fastest(row):
    """The fastest peer that does the same, or else that does less."""
    same = [peer for peer in row["peers"] if not peer["less"]]
    return max(same or row["peers"], key=lambda peer: peer["forward"])


def _beside(peer):
    if not peer:
        return "–"
    star = "*" if peer["less"] else ""
    return f"{peer['forward']:.2f}{star} ({_short(peer['name'])})"


def _short(name):
    for long, short in SHORT.items():
        name = name.replace(long, short)
    return re.sub(r", one token, \d+ layers", ", decoding", name)


def on_a_gpu():
    """Time and memory of each encoding on a GPU. For each way to pass a bias
    to attention over the longest text: the time of the forward pass, the time
    with the backward pass, and the memory. The last column has the time of
    one new token with a cache.
    """
    return _on_gpu(stored(ON_GPU))


def _on_gpu(made):
    if not made:
        print("| Not measured yet |")
        print("|---|")
        print(f"| No GPU has run this yet. `{COMMAND}` fills the table. |")
        return {"card": "none"}
    ways = "|".join(f" as a {way} " for way in WAYS[:2]) + "| written out "
    print(f"| ms forward / with backward, MiB |{ways}| one token, ms |")
    print("|---|--:|--:|--:|--:|")
    longest = max(row["queries"] for row in made["rows"])
    rows = {
        (row["method"], row["way"]): row
        for row in made["rows"]
        if row["queries"] == longest
    }
    tokens = {
        row["method"]: row
        for row in made["rows"]
        if row["queries"] == 1 and row["way"] == "mask"
    }
    for method in dict.fromkeys(row["method"] for row in made["rows"]):
        cells = [_in_a_way(rows.get((method, way))) for way in WAYS]
        one = _milliseconds(tokens[method].get("forward"))
        print(f"| {method} |", " | ".join([*cells, one]), "|")
    return {
        "card": f"{made['device']}, torch {made['torch']}, {made['date']}"
    }


def _in_a_way(row):
    """Milliseconds forward and with the backward pass, and MiB."""
    if not row:
        return "–"
    times = [_milliseconds(row.get(key)) for key in ("forward", "training")]
    bytes_ = row.get("bytes")
    space = "–" if bytes_ is None else f"{bytes_ / 2**20:.0f} MiB"
    failed = [row["failed"]] if "failed" in row else []
    return ", ".join([" / ".join(times), space, *failed])


def _milliseconds(seconds):
    return "–" if seconds is None else f"{1000 * seconds:.2f}"
