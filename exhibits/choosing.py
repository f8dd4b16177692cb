"""Exhibits of the chapter on choosing.

The matrix is computed; docs/guide/choosing.toml names methods and models.
"""

import tomllib
from datetime import date
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import torch

from exhibits._drawing import COLORS, UNTRAINED
from exhibits._methods import METHODS, Sizes, attend
from exhibits._models import listed, said
from exhibits._on_chains import mean_excess, methods
from experiments.chain_models import EVAL_LENGTH
from experiments.runs import plan
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from snippets.xpos import xpos_tables

WIDTH, HEADS, LENGTH, SHIFT = 768, 12, 1024, 700
SIZES = Sizes(WIDTH, HEADS, LENGTH)
STEPS, APART = 300, 4096  # tokens that stand far from each other
# Channels that turn and that stand, numbers in the latent vector, and heads.
DEEPSEEK = {"turning": 64, "still": 128, "rank": 512, "heads": 128}
CHOOSING = Path(__file__).parents[1] / "docs/guide/choosing.toml"
DATA = tomllib.loads(CHOOSING.read_text("utf-8"))


def _methods():
    """Each method's learned module, if it has one, and its scores."""
    made = {}
    for row in DATA["method"]:
        method = METHODS[row["snippet"]].make(SIZES)
        made[row["snippet"]] = method.module, partial(_scores, method)
    return made


def _scores(method, x, at):
    tokens = x.transpose(0, 1).flatten(1)
    return attend(method, tokens, at, HEADS).scores


def _count(module):
    return sum(p.numel() for p in module.parameters()) if module else 0


@torch.no_grad()
def _moves(scores, x):
    """How far the scores change if the text is shifted by SHIFT."""
    at = torch.arange(x.shape[-2])
    change = scores(x, at + SHIFT) - scores(x, at)
    seen = torch.ones(len(at), len(at), dtype=torch.bool).tril()
    return change[..., seen].abs().max().item()


@torch.no_grad()
def _longest(scores):
    """How long a text may be, found by a last query that is far from all.

    Its content is that of the first third, so that their scores differ by
    their positions.
    """
    near = torch.randn(HEADS, 1, WIDTH // HEADS).repeat(1, STEPS, 1)
    far, first = near.clone(), STEPS // 3
    far[:, first:-1] = torch.randn(far[:, first:-1].shape)
    at = torch.arange(STEPS)
    try:
        found = scores(far, APART * at)[:, -1, :first]
    except ValueError:
        return "its table"
    if not found.isfinite().all():
        return "near its centre"
    told = [
        (each.amax(-1) - each.amin(-1)).max() > 1e-4
        for each in (found, scores(near, at)[:, -1])
    ]
    return "any, clipped" if told == [False, True] else "any"


def _xpos_reach():
    """The last position from the centre up to which tables are finite."""
    places = torch.arange(2**16)
    tables = xpos_tables(places, WIDTH // HEADS, "key", centre=0)
    finite = torch.stack(tables).isfinite().all(0).all(-1)
    return (~finite).nonzero()[0].item() - 1


def matrix():
    x = torch.randn(HEADS, 24, WIDTH // HEADS)
    values, excess = {}, _excess_losses()
    print(
        "| Method, paper | Text length | Excess loss | Shift-invariant "
        "| Enters | Parameters | Used in |"
    )
    print("|---|---|--:|---|---|--:|---|")
    for row, (name, method) in zip(
        DATA["method"], _methods().items(), strict=True
    ):
        module, scores = method
        short = row["short"].removesuffix(" table")
        far = excess.get(short)
        values[name] = _count(module)
        values[f"{name}_moves"] = _moves(scores, x)
        if far is not None:
            values[f"{name}_excess"] = far
        cells = (
            f"{row['method']}<br>{row['paper']}".removesuffix("<br>"),
            _longest(scores),
            "–" if far is None else f"{far:.2f}",
            "no" if values[f"{name}_moves"] > 1e-3 else "yes",
            row["enters"],
            f"{_count(module):,}",
            row["used"],
        )
        print("|", *(f"{cell} |" for cell in cells))
    return values | {
        "width": WIDTH,
        "heads": HEADS,
        "length": LENGTH,
        "shift": SHIFT,
        "farthest": APART * (STEPS - 1),
        "steps": STEPS,
        "xpos_reach": _xpos_reach(),
        "seeds": plan()["chains"]["seeds"],
    }


def _excess_losses():
    """The excess loss of each method on Markov chains, at the end."""
    return {name: mean_excess(name, EVAL_LENGTH).gain for name in methods()}


def parameters():
    """Bar chart of the learned parameters, on a logarithmic scale. DeBERTa
    has the most, then the learned table, Transformer-XL, relative logits and
    PaTH; forget gates, Shaw, CoPE and clipped biases have a few thousand
    each; T5, FIRE and KERPLE have fewer. None, sinusoidal, RoPE, xPos, ALiBi
    and Sandwich have none.
    """
    named = {row["snippet"]: row["short"] for row in DATA["method"]}
    counts = {
        named[name].removesuffix(" table"): _count(module)
        for name, (module, _) in _methods().items()
    }
    colors = COLORS | UNTRAINED
    ordered = sorted(counts, key=counts.get)
    fig, ax = plt.subplots(figsize=(4.4, 3.4))
    for row, name in enumerate(ordered):
        ax.barh(row, max(counts[name], 1), color=colors[name])
        ax.text(
            *(1.3 * max(counts[name], 1), row, f"{counts[name]:,}"),
            color=colors[name],
            va="center",
        )
    ax.set_yticks(range(len(ordered)), ordered)
    ax.set_xscale("log")
    ax.set_xlim(1, 1e8)
    ax.minorticks_off()
    ax.set_xlabel("learned parameters in one module")
    return fig


def models():
    print("| Model, date | By default | What the default does not show |")
    print("|---|---|---|")
    for model in listed():
        row = f"../../models/#{model['type']}"
        name = f'<a href="{row}">{model["name"]}</a>'
        cells = (
            f"{name}<br>{model['released']}",
            said(model),
            model.get("note", ""),
        )
        print("|", " | ".join(cells), "|")
    return {"count": len(DATA["model"])}


def families_by_year():
    """Models by name, the oldest at the top, each with a dot in the column of
    its kind of encoding: added, bias or score, rotation, rotation in some
    layers, none. At the top, the dots are in the first two columns; from 2023
    on, most dots are in the rotation column, none is in the first column, and
    only the dot of the newest model is in the second column again.
    """
    kinds = {  # and colour, filled or hollow
        "added": ("C0", "C0"),
        "bias or score": ("C2", "C2"),
        "rotation": ("C1", "C1"),
        "rotation, some layers": ("C1", "white"),
        "none": ("black", "black"),
    }
    models = listed()
    days = [date.fromisoformat(row["released"]) for row in models]
    placed = [row["kind"] for row in models]
    fig, ax = plt.subplots(figsize=(4.4, 6.2))
    for column in range(len(kinds)):
        ax.axvline(column, color="gray", linewidth=0.4)
    for row, (model, day) in enumerate(zip(models, days, strict=True)):
        column = list(kinds).index(model["kind"])
        color, inside = kinds[model["kind"]]
        ax.plot(column, row, "o", color=color, mfc=inside, ms=7)
        side = -1 if column > 2 else 1
        ax.text(
            *(column + 0.14 * side, row, model["name"]),
            color=color,
            ha="left" if side > 0 else "right",
            va="center",
        )
        if row == 0 or day.year > days[row - 1].year:
            ax.axhline(row - 0.5, color="gray", linewidth=0.4)
            ax.text(
                -0.35, row, day.year, color="gray", ha="right", va="center"
            )
    ax.set_xlim(-0.3, 4.2)
    ax.set_ylim(len(models) - 0.5, -0.5)
    ax.xaxis.tick_top()
    names = [
        kind.replace(" or ", "\nor ").replace(", ", ",\n") for kind in kinds
    ]
    ax.set_xticks(range(len(kinds)), names)
    ax.set_yticks([])
    ax.tick_params(length=0)
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    middle = min(days) + (max(days) - min(days)) / 2
    late = [k for day, k in zip(days, placed, strict=True) if day >= middle]
    turning = sum(kind.startswith("rotation") for kind in late)
    return fig, {
        "models": len(days),
        "late": len(late),
        "turning": turning,
    }


def absorbed(width=64, rank=16, tokens=40):
    up = torch.randn(width, rank)  # makes a key of what is cached
    cached = torch.randn(tokens, rank)
    query, turning = torch.randn(width), torch.randn(width)
    shared = torch.randn(tokens, width)  # one more key, for all heads
    places, now = torch.arange(tokens), torch.tensor([tokens])
    frequencies = rope_frequencies(width, base=10000)

    def turned(x, at):
        return apply_rope(x, *rope_tables(at, frequencies), "half")

    def misses(wanted, found):
        missed = (found - wanted).norm() / wanted.norm()
        return round(missed.item(), 4)  # the rest differs in each process

    keys = cached @ up.T
    still = misses(keys @ query, cached @ (query @ up))

    wanted = turned(keys, places) @ turned(query[None], now)[0]
    best = torch.linalg.lstsq(cached, wanted).solution
    rotated = misses(wanted, cached @ best)

    extra = turned(shared, places) @ turned(turning[None], now)[0]
    whole = torch.cat((keys, turned(shared, places)), -1)
    both = torch.cat((query, turned(turning[None], now)[0]))
    apart = misses(whole @ both, cached @ (query @ up) + extra)

    print("relative error of the scores")
    print(f"  no rotation                     {still:>4.0%}")
    print(f"  rotated keys, best query        {rotated:>4.0%}")
    print(f"  separate channels are rotated   {apart:>4.0%}")
    return {
        "still": still,
        "rotated": rotated,
        "apart": apart,
        "turning": DEEPSEEK["turning"],
        "whole": DEEPSEEK["turning"] + DEEPSEEK["still"],
        "cached": DEEPSEEK["rank"] + DEEPSEEK["turning"],
        "full": DEEPSEEK["heads"]
        * (DEEPSEEK["turning"] + 2 * DEEPSEEK["still"]),
    }
