"""Figures of the taxonomy: where each method acts, found by running it.

This module names only the models that use a method. The name, chapter and
operations of each method are in _methods.py; _where_it_acts.py probes them.
"""

import math
import tomllib
from pathlib import Path

import matplotlib.pyplot as plt
import torch

from exhibits._methods import METHODS
from exhibits._where_it_acts import (
    ACTS,
    BEFORE,
    BETWEEN,
    NOTHING,
    SIZES,
    STEPS,
    TOKENS,
    place,
)
from snippets.alibi import alibi_bias, alibi_slopes
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from snippets.xpos import apply_xpos, xpos_decay, xpos_tables

USED = {  # in addition to those of docs/guide/choosing.toml
    "axial_rope": "Pixtral",
    "mrope": "Qwen2-VL",
    "rope_scaling": "gpt-oss",
    "sinusoidal_2d": "DETR",
    "swin_bias": "Swin",
    "vit_table": "ViT",
    "sinks": "gpt-oss",
    "temperature": "Llama 4",
}


def _places():
    return {
        name: place(entry.make(SIZES), entry.axes)
        for name, entry in METHODS.items()
    }


def _used():
    path = Path(__file__).parents[1] / "docs/guide/choosing.toml"
    rows = tomllib.loads(path.read_text("utf-8"))["method"]
    return {row["snippet"]: row["used"] for row in rows} | USED


def _power_above(error):
    """Return the next power of ten: digits differ between processes."""
    return 10.0 ** math.ceil(math.log10(error))


def _color(acts, heard):
    """Return the colour of a family, by the first step where it acts."""
    if acts["scores"]:
        return "C3" if heard else "C2"
    return "C0" if acts["input"] else "C1" if acts["q and k"] else "C4"


def table():
    used, places = _used(), _places()
    print("| Method, file | Operation | Step | Depends on | Used in |")
    print("|---|---|---|---|---|")
    for name, found in places.items():
        entry = METHODS[name]
        link = f"[`{name}`](../reference/{name}.md)"
        file = f'<br><span class="whole">{link}</span>'
        acts = {step: acts for step, acts in found.acts.items() if acts}
        cells = (
            f"[{entry.name}]({entry.chapter}){file * (name != 'none')}",
            "<br>".join(", ".join(each) for each in acts.values()) or "–",
            "<br>".join(acts) or "–",
            ", ".join(found.by) or "–",
            used.get(name, "–"),
        )
        print("|", *(f"{cell} |" for cell in cells))
    changes = [each for found in places.values() for each in found.changes]
    return {
        "methods": len(places) - 1,
        "asked": len(changes),
        "nothing": _power_above(max(c for c in changes if c <= NOTHING)),
        "least": min(c for c in changes if c > NOTHING),
        "tokens": TOKENS,
        "before": BEFORE,
        "between": BETWEEN,
    }


def grid():
    """A grid with a column for each step and a row for each operation.

    Row "add": sinusoids and tables, in one and two dimensions, and Fourier
    features at the input; ALiBi, KERPLE, FIRE, Sandwich, T5, clipped and Swin
    biases at the scores; sinks at the softmax; Shaw at the output.
    Row "rotate": RoPE, YaRN, xPos, axial RoPE and M-RoPE at queries and keys.
    Row "scale": YaRN, xPos and a temperature at queries and keys.
    Row "mix": relative logits, Shaw, local and global, Transformer-XL and
    DeBERTa at the scores. Row "gate": the gated encoding at the input; CoPE,
    forget gates and PaTH at the scores.
    """
    cells = {(act, step): [] for act in ACTS for step in STEPS}
    for name, found in _places().items():
        heard = {"query", "key", "tokens between"} & set(found.by)
        for step, acts in found.acts.items():
            for act in acts:
                color = _color(found.acts, heard)
                cells[act, step].append((METHODS[name].name, color))
    left = [0, 0.45, 1.45, 2.05, 3.17, 3.85]  # of columns, in inches
    line, top, row = 0.185, 0.0, {}
    for act in ACTS:
        lines = max(len(cells[act, step]) for step in STEPS)
        row[act] = top
        top += line * max(lines, 1) + 0.12
    fig, ax = plt.subplots(figsize=(4.4, top + 0.35))
    for act in ACTS:
        ax.axhline(row[act], color="gray", linewidth=0.5)
        ax.text(0, row[act] + 0.06, act, va="top", color="gray")
        for step, x in zip(STEPS, left[1:], strict=True):
            for n, (name, color) in enumerate(cells[act, step]):
                height = row[act] + 0.06 + n * line
                ax.text(x, height, name, va="top", color=color)
    for step, x in zip(STEPS, left[1:], strict=True):
        ax.text(x, -0.08, step, va="bottom", color="black")
    ax.set_xlim(0, 4.4)
    ax.set_ylim(top, -0.3)
    ax.axis("off")
    taken = sum(bool(names) for names in cells.values())
    return fig, {"cells": len(cells), "taken": taken}


def shelf():
    """Four stops on the way of a word. At the door, there are a card and a
    clock; at the next stop, two needles; then three voices that grow fainter;
    and at the last stop, a parcel with a small note.
    """
    fig, ax = plt.subplots(figsize=(4.4, 1.6))
    ax.plot([0, 4.3], [0.62, 0.62], color="gray")
    ax.annotate(
        *("", (4.4, 0.62), (4.2, 0.62)),
        arrowprops={"arrowstyle": "-|>", "color": "gray"},
    )
    for x, says in (
        (0.5, "at the door:\npin it on"),
        (1.6, "needles:\nrotate them"),
        (2.7, "listening:\nfainter"),
        (3.8, "handing over:\nadd a note"),
    ):
        ax.text(x, 0.5, says, ha="center", va="top")
    ax.add_patch(plt.Rectangle((0.1, 0.8), 0.34, 0.5, fill=False, color="C0"))
    ax.plot([0.18, 0.36], [1.15, 1.15], color="C0")
    ax.plot([0.18, 0.3], [1.0, 1.0], color="C0")
    ax.add_patch(plt.Circle((0.73, 1.05), 0.22, fill=False, color="C0"))
    ax.plot([0.73, 0.73, 0.84], [1.2, 1.05, 1.0], color="C0")
    for x, turn in ((1.35, 0.12), (1.85, -0.12)):
        ax.annotate(
            *("", (x + turn, 1.4), (x - turn, 0.75)),
            arrowprops={"arrowstyle": "-|>", "color": "C1", "linewidth": 2},
        )
    for x, radius in ((2.35, 0.05), (2.62, 0.1), (3.0, 0.17)):
        ax.add_patch(plt.Circle((x, 1.05), radius, color="C2"))
    ax.add_patch(
        plt.Rectangle((3.5, 0.75), 0.6, 0.45, fill=False, color="C3")
    )
    ax.add_patch(plt.Rectangle((3.9, 1.1), 0.22, 0.2, color="C3"))
    ax.set(xlim=(-0.05, 4.45), ylim=(0.05, 1.45), aspect="equal")
    ax.axis("off")
    return fig


def _turning(dim):
    """Return the generator of RoPE, with adjacent channels as pairs."""
    step = torch.zeros(dim, dim, dtype=torch.float64)
    first = torch.arange(0, dim, 2)
    step[first + 1, first] = rope_frequencies(dim, base=10000)
    return step - step.T


def _shearing(dim, slope):
    """Return the generator of ALiBi, on two additional channels."""
    step = torch.zeros(dim + 2, dim + 2, dtype=torch.float64)
    step[dim, dim + 1] = slope
    return step


def _turning_and_scaling(dim):
    """Return the generator of xPos."""
    grows = -xpos_decay(dim).log() / 512
    return _turning(dim) + grows.repeat_interleave(2).diag()


def _lifted(q, k):
    """Add two channels to each vector; their product is zero."""
    one, zero = torch.eye(2, dtype=q.dtype).unbind()
    return torch.cat((q, one)), torch.cat((k, zero))


def _between(step, q, k, i, j):
    """Return the score of a query at position i and a key at position j."""
    move = torch.linalg.matrix_exp
    return (move(-i * step).T @ q) @ (move(j * step) @ k)


def alibi_as_a_move():
    q, k = torch.randn(2, 8, dtype=torch.float64)
    slopes = alibi_slopes(8)
    query = torch.cat((q / 8**0.5, torch.tensor([1.0, 0.0])))
    key = torch.cat((k, torch.tensor([0.0, 1.0])))
    step = torch.zeros(10, 10, dtype=torch.float64)
    step[8, 9] = slopes[0]

    def shear(n):
        return torch.eye(10, dtype=torch.float64) + n * step

    print(" query   key sheared    ALiBi")
    for i, j in ((5, 3), (905, 903), (905, 3)):
        sheared = (shear(-i).T @ query) @ (shear(j) @ key)
        bias = alibi_bias(torch.tensor([i]), torch.tensor([j]), slopes)
        score = q @ k / 8**0.5 + bias[0, 0, 0]
        print(f"{i:>6}{j:>6}{sheared:>8.2f}{score:>9.2f}")


def moves(dim=16, steps=(100, 1_000, 5_000)):
    q, k = torch.randn(2, dim, dtype=torch.float64)
    i, j = torch.tensor([905]), torch.tensor([850])
    slope = alibi_slopes(8)[0]

    def rope():
        made = []
        for x, at in ((q, i), (k, j)):
            w = rope_frequencies(dim, base=10000)
            tables = rope_tables(at, w, x.dtype)
            made.append(apply_rope(x[None], *tables, "interleaved"))
        return made[0] @ made[1].T

    def xpos():
        made = []
        for x, at, role in ((q, i, "query"), (k, j, "key")):
            tables = xpos_tables(at, dim, role, centre=0, dtype=x.dtype)
            made.append(apply_xpos(x[None], *tables))
        return made[0] @ made[1].T

    bias = alibi_bias(i, j, alibi_slopes(8)[:1])
    rows = {
        "RoPE": ("rotation", _turning(dim), (q, k), rope()),
        "ALiBi": (
            "shear",
            _shearing(dim, slope),
            _lifted(q, k),
            q @ k + bias,
        ),
        "xPos": (
            "rotation, scaling",
            _turning_and_scaling(dim),
            (q, k),
            xpos(),
        ),
    }
    print("| Method | Factor |", *(f"n = {n:,} |" for n in steps))
    print("|---|---|", *("--:|" for _ in steps))
    off = []
    for name, (does, step, vectors, score) in rows.items():
        off.append((_between(step, *vectors, i, j) - score).abs().item())
        lengths = [
            torch.linalg.matrix_norm(torch.linalg.matrix_exp(n * step), 2)
            for n in steps
        ]
        shown = (f"{length:,.1f}" for length in lengths)
        print(f"| {name} | {does} |", *(f"{each} |" for each in shown))
    return {
        "within": _power_above(max(off)),
        "dim": dim,
        "query": i,
        "key": j,
    }
