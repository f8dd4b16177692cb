"""What the front page shows."""

from itertools import permutations

import matplotlib.pyplot as plt
import torch
from executable_prose import Live, Slider

from snippets.attention import SelfAttention
from snippets.sinusoidal import sinusoidal_encoding

WORDS = ("dog", "bites", "man")
PLACES = ("first", "second", "third")
TITLES = ("without positions", "with positions")


def six_orders():
    """The words dog, bites and man in a row, and below them two clouds of
    points, one for each word in each of the six orders.

    Without positions the six points of a word fall on one. With positions
    they are six separate points. Large marks show the order of the row.
    """
    torch.manual_seed(3)
    words = torch.randn(3, 16)
    layer = SelfAttention(16, heads=2).requires_grad_(False)
    places = sinusoidal_encoding(torch.arange(3), 16)

    def read(order):
        """Outputs of words in an order, (places, words) of zeros and ones:
        (2, words, dim), without and with positions."""
        text = order @ words
        return order.T @ layer(torch.stack((text, text + places)))[0]

    orders = torch.eye(3)[torch.tensor([*permutations(range(3))])]
    outputs = torch.stack([read(order) for order in orders], 1)

    def move(**at):
        at = torch.stack(list(at.values()))
        order = (at == torch.arange(3)[:, None]).float()
        now = read(order)
        marks = {
            f"{word}_{side}": now[side, None, n, :2]
            for side in range(2)
            for n, word in enumerate(WORDS)
        }
        names = {
            word: torch.stack((at[n], torch.zeros(()).double()))
            for n, word in enumerate(WORDS)
        }
        which = dict(zip(PLACES, order @ torch.arange(3.0), strict=True))
        moved = (now - outputs[:, 0])[..., :2]
        left, right = moved.norm(dim=-1).amax(-1)
        return marks | names | which | {"left": left, "right": right}

    live = _six_orders_live(move)
    made = live.start()
    fig, axes = _row_over_clouds()
    for n, (word, marker) in enumerate(zip(WORDS, "os^", strict=True)):
        color = f"C{n}"
        live.moves[word] = axes["row"].text(
            *made[word], word, color=color, size=13, ha="center"
        )
        for side in range(2):
            x, y = outputs[side, :, n, :2].T
            axes[side].scatter(x, y, s=14, c=color, marker=marker, alpha=0.5)
            name = f"{word}_{side}"
            live.moves[name] = axes[side].scatter(
                *made[name].T, s=110, c=color, marker=marker, label=word
            )
    clouds = outputs.flatten(1, 2).mul(1e4).round()
    values = {
        "orders": len(orders),
        "width": words.shape[1],
        "without": len(clouds[0].unique(dim=0)),
        "with_positions": len(clouds[1].unique(dim=0)),
    }
    return fig, values, live


def _row_over_clouds():
    """The axes: a row of three places, and below it two without numbers."""
    fig, axes = plt.subplot_mosaic(
        [["row", "row"], [0, 1]], figsize=(4.4, 3.1), height_ratios=(1, 5)
    )
    row = axes["row"]
    row.set(xlim=(-0.5, 2.5), ylim=(-0.2, 0.6), yticks=[])
    row.set_xticks(range(3), PLACES)
    row.tick_params(length=0)
    for side in ("left", "bottom"):
        row.spines[side].set_visible(False)
    for side, title in enumerate(TITLES):
        axes[side].set_title(title)
        axes[side].set(xticks=[], yticks=[])
        axes[side].margins(0.2)
    return fig, axes


def _six_orders_live(move):
    row = "{{{}|dog|bites|man}}"
    return Live(
        move,
        {
            word: Slider(
                f"“{word}” stands",
                0,
                2,
                place,
                shows="{value|first|second|third}",
                drag=word,
                swaps=True,
            )
            for place, word in enumerate(WORDS)
        },
        says=f"The text is “{' '.join(map(row.format, PLACES))}”. Since the "
        "first order, the mark that moved most has moved by {left:,.2f} on "
        "the left and by {right:,.2f} on the right.",
        call="import torch\n"
        "from attention import SelfAttention\n"
        "from sinusoidal import sinusoidal_encoding\n\n"
        "torch.manual_seed(3)\n"
        "words, layer = torch.randn(3, 16), SelfAttention(16, heads=2)\n"
        "places = sinusoidal_encoding(torch.arange(3), 16)\n"
        "order = [{first:.0f}, {second:.0f}, {third:.0f}]\n"
        "left, right = layer(words[order])[0], "
        "layer(words[order] + places)[0]\n"
        "before = layer(words)[0], layer(words + places)[0]\n"
        "(left - before[0][order])[:, :2].norm(dim=-1).max()\n"
        "(right - before[1][order])[:, :2].norm(dim=-1).max()",
        draws={
            f"{word}_{n}": f"{side}[order.index({WORDS.index(word)}), :2]"
            for n, side in enumerate(("left", "right"))
            for word in WORDS
        },
        tolerance=1e-6,
    )
