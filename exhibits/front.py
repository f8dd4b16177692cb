"""Exhibits of the front page."""

import math
from itertools import permutations

import matplotlib.pyplot as plt
import torch
from executable_prose import Live, Order

from exhibits._drawing import COLORS
from exhibits._on_chains import (
    ENDS,
    MIDDLES,
    every_run,
    excess_loss,
    in_training_lengths,
    optimal_loss,
)
from experiments.chain_models import TRAIN_LENGTH
from snippets.attention import SelfAttention
from snippets.sinusoidal import sinusoidal_encoding

WORDS = ("dog", "bites", "man")
SIDES = {"without": "without positions", "with": "with positions"}
ANSWERS = (
    "The dog bit the man.",
    "Somebody bit somebody.",
    "The man bit the dog.",
)
HYBRID = "window + NoPE layer"
SWING = math.radians(60)  # of a needle that is sure


def who_bit_whom():
    """Two dials, each with a needle between “dog” and “man” that shows which
    of the two did the biting.

    Without positions the needle stays in the middle, whatever the order of
    the words dog, bites and man: somebody bit somebody. With positions it
    points to “dog”: the dog bit the man.
    """
    torch.manual_seed(3)
    words = torch.randn(3, 16).double()
    layer = SelfAttention(16, heads=2).double().requires_grad_(False)
    places = sinusoidal_encoding(torch.arange(3), 16)

    def outputs(order):
        """The layer's output for the words in an order, (positions, words)
        of zeros and ones: (2, numbers), without and with positions."""
        text = order @ words
        made = layer(torch.stack((text, text + places)))[0]
        return (order.T @ made).flatten(1)

    orders = torch.eye(3).double()[torch.tensor([*permutations(range(3))])]
    made = torch.stack([outputs(order) for order in orders], 1)
    first = orders.argmax(1)  # where each word stands: (orders, words)
    bit = (first[:, 2] - first[:, 0]).sign().double()  # 1: the dog bit
    # The straight rule for each side that reads this best, by least squares.
    rules = torch.linalg.lstsq(
        made, bit[:, None].expand(2, -1, 1), rcond=1e-6, driver="gelsd"
    ).solution  # (sides, numbers, 1)
    told = (made @ rules)[..., 0]  # (sides, orders)

    def move(order):
        order = (order[:, None] == torch.arange(3)).double()
        said = (outputs(order)[:, None] @ rules).flatten()
        turn = SWING * said
        tips = torch.stack((-turn.sin(), turn.cos()), -1)  # (sides, 2)
        needles = torch.stack((0.2 * tips, 0.95 * tips), 1)
        return {
            **dict(zip(SIDES, needles, strict=True)),
            **dict(zip(("left", "right"), 1 - said, strict=True)),
        }

    live = _who_bit_whom_live(move)
    right = (told[1].sign() == bit) & (told[1].abs() > 0.5)
    values = {
        "orders": len(orders),
        "numbers": made.shape[-1],
        "with_positions": right.sum(),
    }
    return _dials(live), values, live


def _dials(live):
    """A dial for each side, with its needle and below it the answer."""
    fig, axes = plt.subplots(1, 2, figsize=(4.4, 1.56))
    live.moves["question"] = fig.suptitle("")
    made, colors = live.start(), ("gray", COLORS["sinusoidal"])
    around = 1.15 * SWING * torch.linspace(-1, 1, 41)
    for ax, (side, title), color in zip(
        axes, SIDES.items(), colors, strict=True
    ):
        ax.set(xlim=(-1.7, 1.7), ylim=(-0.7, 1.1), aspect="equal")
        ax.set_axis_off()
        ax.set_title(title, color="gray", pad=1)
        ax.plot(around.sin(), around.cos(), color="gray", lw=0.8)
        for at, name, align in ((-1, "dog", "right"), (1, "man", "left")):
            ax.text(1.05 * at, 0.55, name, ha=align, va="center")
        (live.moves[side],) = ax.plot(
            *made[side].T, color=color, lw=5, solid_capstyle="round"
        )
        ax.plot(0, 0, "o", color=color, mfc="white", ms=11, mew=3)
        live.moves[f"{side}_answer"] = ax.text(0, -0.65, "", ha="center")
    return fig


def _who_bit_whom_live(move):
    answers = {
        side: f"{{{side}|{'|'.join(ANSWERS)}}}" for side in ("left", "right")
    }
    return Live(
        move,
        {"order": Order("Order of the words", WORDS)},
        says="The text is “{order}”. Who bit whom? Without positions: "
        f"{answers['left']} With positions: {answers['right']}",
        texts={
            "question": "“{order}”: who bit whom?",
            "without_answer": answers["left"],
            "with_answer": answers["right"],
        },
        tolerance=1e-6,
    )


def past_the_end():
    """One thin line for each trained model: the probability that was
    typically given to the right symbol, plotted against the position in the
    text. Up to the training length, all lines lie just below a thick line,
    the best possible predictor, which rises. Past that length, every line of
    RoPE falls and ends below a dashed line, that of a predictor with a short
    memory. The models with RoPE and an attention window in the first layer,
    and no positions in the second, stay above the dashed line.
    """
    best = torch.tensor([optimal_loss()[end] for end in ENDS])
    memory = [excess_loss("count", end, TRAIN_LENGTH).mean() for end in ENDS]
    rope, hybrid = (
        torch.cat([*every_run(name).values()], 1)  # (bands, runs)
        for name in ("RoPE", HYBRID)
    )
    fig, ax = plt.subplots(figsize=(4.4, 2.7))
    for name, excess, color, style in (
        ("best possible", torch.zeros(len(ENDS), 1), "gray", {"lw": 4}),
        ("window + NoPE", hybrid, "C4", {"lw": 0.8}),
        ("short memory", torch.tensor(memory)[:, None], "gray", {"ls": "--"}),
        ("RoPE", rope, COLORS["RoPE"], {"lw": 0.8}),
    ):
        percent = 100 * (-best[:, None] - excess).exp()
        ax.plot(MIDDLES, percent, color=color, **style)
        ax.annotate(
            *(name, (MIDDLES[-1], percent[-1].mean())),
            xytext=(4, 0),
            textcoords="offset points",
            color=color,
            va="center",
            annotation_clip=False,
        )
    in_training_lengths(ax)
    ax.set(ylim=(0, 32), ylabel="probability (%)")
    return fig, {"trained": TRAIN_LENGTH, "rope_runs": rope.shape[1]}
