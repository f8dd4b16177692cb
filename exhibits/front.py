"""What the front page shows."""

import math
from itertools import permutations

import matplotlib.pyplot as plt
import torch
from executable_prose import Live, Order

from exhibits import _loss_by_context
from exhibits._drawing import COLORS
from exhibits._loss_by_context import LONG, NEAR
from experiments import language, variants
from snippets.attention import SelfAttention
from snippets.sinusoidal import sinusoidal_encoding

WORDS = ("dog", "bites", "man")
SIDES = {"without": "without positions", "with": "with positions"}
ANSWERS = (
    "The dog bit the man.",
    "Somebody bit somebody.",
    "The man bit the dog.",
)
SWING = math.radians(60)  # of a needle that is sure


def who_bit_whom():
    """Two dials, each with a needle between dog and man: who of them bit?

    Without positions the needle stands in the middle, whatever the order of
    the words dog, bites and man is: somebody bit somebody. With positions it
    stands at dog: the dog bit the man.
    """
    torch.manual_seed(3)
    words = torch.randn(3, 16).double()
    layer = SelfAttention(16, heads=2).double().requires_grad_(False)
    places = sinusoidal_encoding(torch.arange(3), 16)

    def outputs(order):
        """All that the layer makes of the words in an order, (places, words)
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
    """Two lines over the number of letters that stand before: the loss. At
    the bottom, dashed, that of counting which letter follows which four.

    RoPE's line runs far below that of the model without positional encoding
    as long as the text is no longer than those that it learned from. Then it
    rises steeply, crosses the other, and from four times that length on runs
    far above it. Bands: the seeds.
    """
    read = {
        before: _loss_by_context.losses(before)
        for before in language.CONTEXTS
    }
    trained = language.TRAIN_LENGTH
    fig, ax = plt.subplots(figsize=(4.4, 2.7))
    ax.axvspan(trained, LONG, color="gray", alpha=0.12, lw=0)
    ax.text(trained * 1.1, 1.65, "longer than in training")
    lines = {"none": "no positional encoding", "RoPE": "RoPE"}
    for name, label in lines.items():
        seeds = torch.stack([losses[name] for losses in read.values()])
        low, high = seeds.aminmax(dim=1)
        color = COLORS[name]
        ax.plot([*read], seeds.mean(1), color=color, lw=2.5)
        ax.fill_between([*read], low, high, color=color, alpha=0.25, lw=0)
        ax.text(1.1 * min(read), high[0] + 0.05, label, color=color)
    counting = _loss_by_context.counting().mean().item()
    ax.axhline(counting, color="gray", ls="--")
    ax.text(1.1 * min(read), counting + 0.04, "counting", color="gray")
    ax.set_xscale("log", base=2)
    ax.set_xticks([*read], [*read])
    ax.minorticks_off()
    ax.set(yticks=[], xlim=(min(read), LONG), ylim=(1.45, 3.25))
    ax.set_xlabel("letters of context before the guess")
    ax.set_ylabel("loss (lower is better)")
    sizes = {"trained": trained, "seeds": len(seeds[0]), "longest": LONG}
    chance = {
        f"{name.lower()}_{where}": math.exp(-read[before][name].mean())
        for name in lines
        for where, before in (("within", NEAR), ("far", LONG))
    }
    counting = math.exp(-counting)
    values = {"counting": counting, "followed": variants.ORDER - 1}
    return fig, sizes | chance | values
