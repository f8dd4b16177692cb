"""What the front page shows."""

from itertools import permutations

import matplotlib.pyplot as plt
import torch

from snippets.attention import SelfAttention
from snippets.sinusoidal import sinusoidal_encoding

WORDS = ("dog", "bites", "man")
TITLES = ("without positions", "with positions")


def six_orders():
    """Two clouds of points, one for each word in each of the six orders of
    dog, bites and man.

    Without positions the six points of a word fall on one. With positions
    they are six separate points.
    """
    torch.manual_seed(3)
    words = torch.randn(3, 16)
    layer = SelfAttention(16, heads=2).requires_grad_(False)
    places = sinusoidal_encoding(torch.arange(3), 16)
    orders = [torch.tensor(order) for order in permutations(range(3))]
    fig, axes = plt.subplots(1, 2, figsize=(4.4, 2.3))
    distinct = []
    for ax, title, add in zip(axes, TITLES, (0, places), strict=True):
        outputs = torch.stack(
            [
                layer(words[order] + add)[0][order.argsort()]
                for order in orders
            ]
        )
        for word, marker in enumerate("os^"):
            x, y = outputs[:, word, :2].T
            ax.scatter(x, y, s=30, marker=marker, label=WORDS[word])
        ax.set_title(title)
        ax.set_xticks([])
        ax.set_yticks([])
        ax.margins(0.2)
        rounded = outputs.flatten(0, 1).mul(1e4).round()
        distinct.append(len(rounded.unique(dim=0)))
    fig.legend(
        *ax.get_legend_handles_labels(), loc="outside lower center", ncols=3
    )
    return fig, {
        "orders": len(orders),
        "width": words.shape[1],
        "without": distinct[0],
        "with_positions": distinct[1],
    }
