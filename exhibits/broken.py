"""Figures of the page on bugs in released code and their checker."""

import itertools
import json
import tomllib
from collections import Counter
from itertools import chain
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from executable_prose.execution.provenance import changed

from exhibits._drawing import name_lines
from snippets.check_positions import check_rotation, report

ROOT = Path(__file__).resolve().parents[1]
DIM = 64
CHECKER = "snippets/check_positions.py"


def pages_that_wait():
    """Twelve pages in a row: the first six are right, the last six wrong."""
    figure, axes = plt.subplots(figsize=(4.4, 0.7))
    for page in range(12):
        wrong = page >= 6
        axes.add_patch(
            plt.Rectangle((page, 0), 0.8, 1, color="C1" if wrong else "C0")
        )
        axes.text(
            page + 0.4, 0.5, page + 1, ha="center", va="center", color="white"
        )
        if wrong:
            axes.plot([page, page + 0.8], [0, 1], color="white")
    axes.set(xlim=(-0.1, 12), ylim=(-0.1, 1.1))
    axes.axis("off")
    return figure


def one_offset():
    """Two lines that show the score of a query and a key three tokens apart,
    plotted against the position of the query. With one layout, the line is
    level. With the table of angles in one layout and the rotation in the
    other, the line goes up and down and never settles.
    """
    made = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, DIM, generator=made, dtype=torch.float64)
    place = torch.arange(3, 103)
    steps = torch.arange(0, DIM, 2) / DIM

    def turned(x, at, table):
        angles = table(at[:, None] * 10_000.0**-steps)
        swapped = torch.stack((-x[1::2], x[::2]), -1).flatten()
        return x * angles.cos() + swapped * angles.sin()

    tables = {
        "one layout": lambda angles: angles.repeat_interleave(2, -1),
        "two layouts": lambda angles: angles.repeat(1, 2),
    }
    figure, axes = plt.subplots(figsize=(4.4, 2.4))
    numbers = {}
    for n, (name, table) in enumerate(tables.items()):
        products = turned(q, place, table) * turned(k, place - 3, table)
        score = products.sum(-1) / DIM**0.5
        axes.plot(place, score, color=f"C{n}", label=name)
        numbers[name.replace(" ", "_")] = float(score.max() - score.min())
    axes.set(xlabel="position of the query", ylabel="score")
    axes.set_xlim(0, 145)
    name_lines(axes)
    return figure, numbers


def _heads(length):
    made = torch.Generator().manual_seed(0)
    return torch.randn(3, length, DIM, generator=made, dtype=torch.float64)


def _turned(x, angles):
    a, b = x.chunk(2, -1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def _read(q, k, v, shown):
    scores = (q @ k.mT / DIM**0.5).masked_fill(~shown, -torch.inf)
    return scores.softmax(-1) @ v


def where_faults_hide():
    """Three lines on logarithmic axes that show the relative error by
    position. The window is wrong from token 65 on and the selection from
    token 257 on; each is exactly right before that token. Rounded angles are
    wrong from the second token on, with an error that is at first a thousand
    times smaller than at the end.
    """
    length, window, selected = 1024, 64, 256
    q, k, v = _heads(length)
    at = torch.arange(length)
    w = 10_000.0 ** -(torch.arange(0, DIM, 2).double() / DIM)
    angles, steps = at[:, None] * w, at[:, None] - at
    causal = steps >= 0
    turned = _turned(q, angles), _turned(k, angles)

    def best(q, k):
        """Return the keys that an indexer selects: the best scores."""
        scores = (q @ k.mT).masked_fill(~causal, -torch.inf)
        order = scores.argsort(-1, descending=True).argsort(-1)
        return causal & (order < selected)

    swapped = [x.unflatten(-1, (2, -1)).mT.flatten(-2) for x in (q, k)]
    other = [_turned(x, angles) for x in swapped]
    rounded = (at[:, None].bfloat16() * w.bfloat16()).double()
    pairs = {
        "window": [
            _read(*turned, v, causal & (steps < n))
            for n in (window, window + 1)
        ],
        "selection": [_read(*turned, v, best(*x)) for x in (turned, other)],
        "rounding": [
            _read(_turned(q, a), _turned(k, a), v, causal)
            for a in (angles, rounded)
        ],
    }
    figure, axes = plt.subplots(figsize=(4.4, 2.8))
    numbers = {}
    for n, (name, (right, wrong)) in enumerate(pairs.items()):
        gap = (right - wrong).square().mean(-1)
        off = (gap / right.square().mean(-1)).sqrt()
        first = int((off > 1e-6).nonzero()[0])
        edges = (torch.logspace(0, 3, 25, dtype=torch.float64)).long()
        edges = [first, *(int(e) for e in edges if e > first + 1), length]
        parts = [off[a:b].mean() for a, b in itertools.pairwise(edges)]
        axes.plot(
            [e + 1 for e in edges[:-1]], parts, color=f"C{n}", label=name
        )
        numbers |= {name: first + 1, f"{name}_last": float(off[-32:].mean())}
        numbers[f"{name}_first"] = float(off[first])
    axes.set(xscale="log", yscale="log", xlim=(1, 9000))
    axes.set(xlabel="position (tokens)", ylabel="relative error")
    name_lines(axes)
    return figure, numbers


def two_lines():
    def rotate(x, positions):
        angles = positions[:, None] * 10_000 ** -(torch.arange(8) / 8)
        angles = angles.repeat(1, 2)  # a table in the half layout
        swapped = torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1)
        swapped = swapped.flatten(-2)  # a swap in the interleaved layout
        return x * angles.cos() + swapped * angles.sin()

    print(report(check_rotation(rotate, dim=16)))


def _entries():
    path = ROOT / "docs/broken/register.toml"
    return tomllib.loads(path.read_text("utf-8"))["entry"]


def found_by():
    """Count the entries of the register by the check that finds them."""
    counts = Counter(entry["check"] for entry in _entries())
    print("| Check | Entries found |\n|---|--:|")
    for check, many in sorted(counts.items(), key=lambda each: -each[1]):
        print(f"| `{check}` | {many} |")
    return {"entries": len(_entries()), "checks": len(counts)}


def power():
    """Count the silent mutants of the guide's files that a check finds."""
    path = ROOT / "experiments" / "results" / "power.json"
    known = json.loads(path.read_text("utf-8"))
    print("| File | Silent mutants | Found | Found by |\n|---|--:|--:|---|")
    for name, told in known.items():
        by = sorted(told["by"], key=lambda check: -told["by"][check])[:3]
        by = "<br>".join(f"`{check}`" for check in by) or "–"
        print(f"| `{name}.py` | {told['silent']} | {told['found']} | {by} |")
    codes = (changed(told["code"]) for told in known.values())
    _print_what_changed(sorted({*chain(*codes)}), columns=4)
    silent = sum(told["silent"] for told in known.values())
    found = sum(told["found"] for told in known.values())
    return {"silent": silent, "found": found, "files": len(known)}


def _print_what_changed(files, columns):
    """Print a row if files have changed since the measurement."""
    if files:
        words = f"*measured before a change of {', '.join(files)}*"
        print(f"| {words} {'| ' * columns}")


def alarms():
    """Explain every check that fails on a model of transformers."""
    measured = ROOT / "experiments" / "results" / "alarms.json"
    known = json.loads(measured.read_text("utf-8"))
    models = known["models"]
    rows = tomllib.loads((ROOT / "experiments" / "alarms.toml").read_text())
    asked = {kind for kind, told in models.items() if isinstance(told, dict)}
    print("| Model | Failing check | Explanation |\n|---|---|---|")
    kinds = Counter()
    for row in rows["alarm"]:
        checks = ", ".join(f"`{check}`" for check in row["checks"])
        names = ", ".join(row["models"])
        print(f"| {names} | {checks} | **{row['kind']}**: {row['why']} |")
        kinds[row["kind"]] += len(row["models"])
    _print_what_changed(changed(known["code"]), columns=3)
    return {
        "tried": len(models),
        "asked": len(asked),
        "silent": len(asked) - sum(kinds.values()),
        "alarms": sum(kinds.values()),
        "version": known["transformers"],
        **kinds,
    }
