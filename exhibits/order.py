"""Figures and examples of the chapter on order: attention without positions,
with positions, and with a causal mask.
"""

import matplotlib.pyplot as plt
import torch

from exhibits._drawing import COLORS
from snippets.attention import (
    SelfAttention,
    attention,
    scaled_dot_product,
)
from snippets.sinusoidal import sinusoidal_encoding

DOG_BITES_MAN = ["dog", "bites", "man"]
MAN_BITES_DOG = ["man", "bites", "dog"]


def _embed(words, dim=8):
    """Return a fixed random vector for each word, whatever its position."""
    vocabulary = torch.randn(
        3, dim, generator=torch.Generator().manual_seed(1)
    )
    return vocabulary[[DOG_BITES_MAN.index(word) for word in words]]


def _layer(dim=8, heads=1, seed=0):
    """Return an attention layer with random parameters; none is trained."""
    torch.manual_seed(seed)
    return SelfAttention(dim, heads).requires_grad_(False)


def _stack(x, depth, causal):
    """Apply `depth` random attention layers, each with a residual path."""
    for seed in range(depth):
        x = x + _layer(x.shape[-1], heads=4, seed=seed)(x, causal=causal)[0]
    return x


def two_sentences():
    layer = _layer()
    for words in (DOG_BITES_MAN, MAN_BITES_DOG):
        output, _ = layer(_embed(words))
        print(" ".join(words))
        for word, row in zip(words, output, strict=True):
            numbers = "  ".join(f"{x:+.2f}" for x in row[:3])
            print(f"  {word:>5}  {numbers}  …")


def attention_maps():
    """Four grids of attention weights between the words dog, bites and man.

    Without positions, the grids of the two sentences hold the same numbers in
    different cells. With positions added to the words, the numbers differ. A
    frame in each grid marks the weight that “dog” gives to “man”.
    """
    layer, places = _layer(seed=1), sinusoidal_encoding(torch.arange(3), 8)
    fig, axes = plt.subplots(2, 2, figsize=(4.4, 4.2))
    weights = {}
    for row, (title, add) in zip(
        axes,
        (("without positions", 0), ("with positions", places)),
        strict=True,
    ):
        for ax, words in zip(
            row, (DOG_BITES_MAN, MAN_BITES_DOG), strict=True
        ):
            weights[title, words[0]] = layer(2 * (_embed(words) + add))[1][0]
            ax.imshow(weights[title, words[0]], vmin=0, vmax=1)
            for (i, j), weight in _cells(weights[title, words[0]]):
                ax.text(j, i, f"{weight:.2f}", ha="center", va="center")
            dog, man = words.index("dog"), words.index("man")
            frame = (man - 0.45, dog - 0.45), 0.9, 0.9
            ax.add_patch(
                plt.Rectangle(*frame, fill=False, color="C1", linewidth=2)
            )
            ax.set_xticks(range(3), words)
            ax.set_yticks(range(3), words)
            ax.set_title(title)
    axes[0, 0].set_ylabel("query")
    axes[1, 0].set_ylabel("query")
    axes[1, 0].set_xlabel("key")
    axes[1, 1].set_xlabel("key")
    dog_to_man = {
        key: w[0, 2] if key[1] == "dog" else w[2, 0]
        for key, w in weights.items()
    }
    return fig, {
        "without_here": dog_to_man["without positions", "dog"],
        "without_there": dog_to_man["without positions", "man"],
        "with_here": dog_to_man["with positions", "dog"],
        "with_there": dog_to_man["with positions", "man"],
    }


def word_plus_place():
    """Two rows of three panels: dog bites man above, man bites dog below.

    Each panel shows three columns of numbers: the vector of a word, the
    vector of its position, and their sum. The vector of each word and of
    each position is the same in both rows. The sums for dog and for man
    differ between the rows; the sum for bites does not.
    """
    places = sinusoidal_encoding(torch.arange(3), 8)
    fig, axes = plt.subplots(2, 3, figsize=(4.4, 4.2))
    sums = {}
    for row, words in zip(axes, (DOG_BITES_MAN, MAN_BITES_DOG), strict=True):
        for ax, n, word in zip(row, range(3), words, strict=True):
            vectors = _embed(words)[n], places[n]
            sums[" ".join(words), word] = both = sum(vectors)
            for x, column in zip((0, 2, 4), (*vectors, both), strict=True):
                ax.imshow(
                    column[:, None],
                    cmap="signed",
                    vmin=-3,
                    vmax=3,
                    extent=(x - 0.6, x + 0.6, 7.5, -0.5),
                )
                frame = plt.Rectangle(
                    (x - 0.6, -0.5),
                    1.2,
                    8,
                    fill=False,
                    color="gray",
                    linewidth=0.5,
                )
                ax.add_patch(frame)
            ax.text(1, 3.5, "+", ha="center", va="center")
            ax.text(3, 3.5, "=", ha="center", va="center")
            ax.set_xlim(-1.1, 5.1)
            ax.set_ylim(7.7, -0.7)
            ax.set_yticks([])
            ax.set_xticks([0, 2, 4], [word, ("1st", "2nd", "3rd")[n], "sum"])
            ax.tick_params(length=0)
            for side in ("left", "bottom"):
                ax.spines[side].set_visible(False)

    def apart(word):
        here, there = (x for (_, w), x in sums.items() if w == word)
        return (here - there).abs().max()

    return fig, {word: apart(word) for word in DOG_BITES_MAN} | {
        "numbers": places.shape[1]
    }


def _cells(matrix):
    return (
        ((i, j), matrix[i, j])
        for i in range(len(matrix))
        for j in range(len(matrix))
    )


def shuffle_run_unshuffle():
    x = torch.randn(8, 32, dtype=torch.float64)
    shuffle = torch.randperm(8)
    layer = _layer(32, heads=4).double()
    positions = sinusoidal_encoding(torch.arange(8), 32, dtype=torch.float64)

    def change(add):
        """Return the largest difference between the output and the output
        for the shuffled input, put back in order.
        """
        shuffled, _ = layer(x[shuffle] + add)
        straight, _ = layer(x + add)
        return (shuffled[shuffle.argsort()] - straight).abs().max()

    print("shuffle:", shuffle.tolist())
    print(f"largest difference without positions  {change(0):.0e}")
    print(f"largest difference with positions     {change(positions):.2f}")
    return {"without": change(0), "with_positions": change(positions)}


def equivariant_or_invariant():
    x = torch.randn(6, 16, dtype=torch.float64)
    p = torch.tensor([3, 0, 5, 1, 4, 2])
    layer = _layer(16).double()
    (output, (weights,)), (moved, (moved_weights,)) = layer(x), layer(x[p])
    compared = {
        "outputs at the same position": (moved, output),
        "outputs of the same token": (moved, output[p]),
        "weights at the same positions": (moved_weights, weights),
        "weights of the same tokens": (moved_weights, weights[p][:, p]),
        "mean over the tokens": (moved.mean(0), output.mean(0)),
    }
    for what, (one, other) in compared.items():
        gap = (one - other).abs().max()
        print(
            f"{what:<31}", "same" if gap < 1e-12 else f"differ by {gap:.2f}"
        )


def identical_tokens():
    x = torch.randn(8)
    same = x.expand(4, 8)
    others = torch.randn(4, 8)
    positions = sinusoidal_encoding(torch.arange(4), 8)
    for name, tokens in (
        ("four identical tokens", same),
        ("the same, with positions", same + positions),
        ("four different tokens", others),
    ):
        _, weights = attention(tokens, tokens, tokens)
        print(
            f"{name:<26}", "  ".join(f"{weight:.3f}" for weight in weights[0])
        )


def sums_are_blind():
    tokens, swapped = (
        _embed(DOG_BITES_MAN).double(),
        _embed(MAN_BITES_DOG).double(),
    )
    positions = sinusoidal_encoding(torch.arange(3), 8, dtype=torch.float64)
    layer = _layer().double()
    here, there = tokens + positions, swapped + positions
    sums = (here.sum(0) - there.sum(0)).abs().max()
    through = layer(here)[0].sum(0) - layer(there)[0].sum(0)
    through = through.abs().max()
    print(f"tokens plus positions, summed              {sums:.0e}")
    print(f"tokens plus positions, attention, summed   {through:.2f}")
    return {"sums": sums, "through_attention": through}


def counts_and_proportions():
    a, b = torch.randn(2, 16, dtype=torch.float64)
    layer = _layer(16).double()

    def first(*tokens):
        return layer(torch.stack(tokens))[0][0]

    repeated = (first(a, b) - first(a, a, b)).abs().max()
    doubled = (first(a, b) - first(a, b, a, b)).abs().max()
    print(f"a b  against  a a b    {repeated:.2f}")
    print(f"a b  against  a b a b  {doubled:.0e}")
    return {"repeated": repeated, "doubled": doubled}


def causal_depth():
    """Bar chart of the change of the last token's output when the tokens
    before it are shuffled, for one to four layers.

    Without a mask the change is zero with any number of layers. With a causal
    mask it is zero with one layer and clearly above zero with two or more.
    """
    x = torch.randn(8, 32, dtype=torch.float64)
    shuffled = x[torch.tensor([3, 0, 6, 1, 5, 2, 4, 7])]
    torch.set_default_dtype(torch.float64)
    depths = [1, 2, 3, 4]
    fig, ax = plt.subplots(figsize=(4.4, 2.4))
    moved = {}
    for shift, causal, name in (
        (-0.2, False, "no mask"),
        (0.2, True, "causal mask"),
    ):
        outputs = [
            (
                _stack(x, depth, causal)[-1],
                _stack(shuffled, depth, causal)[-1],
            )
            for depth in depths
        ]
        moved[name] = [
            (straight - other).norm() for straight, other in outputs
        ]
        color = "C1" if causal else "gray"
        for depth, change in zip(depths, moved[name], strict=True):
            ax.bar(depth + shift, change, width=0.4, color=color)
            ax.text(
                depth + shift,
                change,
                "0" if change < 1e-9 else f"{change:.2f}",
                color=color,
                ha="center",
                va="bottom",
            )
    ax.set_xticks(depths)
    ax.set_xlabel("number of layers (gray: no mask, orange: causal mask)")
    ax.set_ylabel("change of last output")
    return fig, {
        "one_layer": moved["causal mask"][0],
        "two_layers": moved["causal mask"][1],
        "no_mask": max(moved["no mask"]),
    }


def place_from_a_mask():
    """Line chart of one divided by the position, before and after rounding to
    bfloat16.

    The smooth curve is the output of a causal head without positions. Rounded
    to bfloat16 it becomes a staircase, in which the values of some
    neighbouring positions are equal.
    """
    tokens = 600
    values = torch.zeros(tokens, 1)
    values[0] = 1.0  # only the first token, a start-of-text mark, has a one
    flat = torch.zeros(tokens, 1)  # equal scores, so equal weights
    mean = attention(flat, flat, values, causal=True)[0].flatten()
    coarse = mean.bfloat16().float()
    twin = (coarse[1:] == coarse[:-1]).nonzero()[0].item() + 1
    shown = range(twin - 12, twin + 22)
    fig, ax = plt.subplots(figsize=(4.4, 2.4))
    ax.plot(shown, mean[shown[0] - 1 : shown[-1]], "--", label="float32")
    ax.step(
        shown, coarse[shown[0] - 1 : shown[-1]], where="mid", label="bfloat16"
    )
    ax.set_xlabel("position t (counted from one)")
    ax.set_ylabel("output of the head, 1/t")
    ax.legend()
    same = coarse[1:] == coarse[:-1]  # entry 0: positions 1 and 2

    def shared(first, last):
        """Return the fraction of positions equal to the next in bfloat16."""
        return same[first - 1 : last].float().mean()

    return fig, {
        "first_twin": twin,
        "before": shared(224, 255),
        "power": 256,
        "after": shared(256, 287),
        "before_next": shared(480, 511),
        "next": 512,
        "after_next": shared(512, 543),
    }


NEAR, FAR = 128, 8192  # numbers of positions whose magnitudes are compared
MARKS, SHIFT = 600, 700  # positions to distinguish, and by how many to shift
ASKED = 8  # different queries at the last position
CLIP = 16  # a table has one entry for all distances, or counts, from here on
WANTED = {
    "mark": "Distinct positions",
    "ties": "Distinct copies",
    "alike": "Shift-invariant",
    "steady": "Stable magnitude",
    "no_pairs": "No term per pair",
    "positions": "Uses positions",
    "no_end": "No maximum length",
    "level": "Keeps its loss",
}


def _split(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def _scores(encoding, heads, x, at):
    """Return the scores between all tokens of each sequence."""
    at = at.expand(len(x), -1)
    y = encoding.embed(x, at)
    tables = encoding.tables(at)
    q = encoding.rotate(_split(y, heads), tables, "query")
    k = encoding.rotate(_split(y, heads), tables, "key")
    scores, bias = encoding.score(q, k, at, at), encoding.bias(at, at)
    return scores if bias is None else scores + bias


def _last_row(encoding, heads, tokens, asks, copy, doors=True):
    """Return the scores that queries at the last position give to copies of
    one token, less the scores of the contents; (asks, heads, tokens).
    """
    at = torch.arange(tokens).expand(ASKED, -1)
    x, last = copy.expand(ASKED, tokens, -1), at[:, -1:]
    k, q = (_split(each, heads) for each in (x, asks[:, None]))
    plain = scaled_dot_product(q, k)
    if doors:
        k = _split(encoding.embed(x, at), heads)
        q = _split(encoding.embed(asks[:, None], last), heads)
        q = encoding.rotate(q, encoding.tables(last), "query")
        k = encoding.rotate(k, encoding.tables(at), "key")
    scores, bias = encoding.score(q, k, last, at), encoding.bias(last, at)
    return ((scores if bias is None else scores + bias) - plain)[..., 0, :]


def _sizes(encoding, heads, tokens, asks, copy):
    """Return the largest norm of what is added to a token, the largest norm
    of a rotated query or key, and the largest change of a score.
    """
    at, dim = torch.arange(tokens)[None], len(copy)
    x, tables = _split(torch.ones(1, tokens, dim), heads), encoding.tables(at)
    turned = [encoding.rotate(x, tables, role) for role in ("query", "key")]
    return (
        encoding.embed(torch.zeros(1, tokens, dim), at).norm(dim=-1).max(),
        max(x.norm(dim=-1).max() for x in turned),
        _last_row(encoding, heads, tokens, asks, copy, False).abs().max(),
    )


def _has(encoding, values, length, dim, heads):
    """Return which of the properties that need no training it has."""
    from snippets.block import Encoding

    tokens = 24
    x, at = torch.randn(1, tokens, dim), torch.arange(tokens)
    asks, copy = torch.randn(ASKED, dim).abs(), torch.randn(dim).abs()
    marks = _last_row(encoding, heads, MARKS, asks, copy).flatten(0, 1).mT
    gaps = (marks[:, None] - marks).abs().amax(-1)
    near, far = (
        _sizes(encoding, heads, places, asks, copy) for places in (NEAR, FAR)
    )
    later = torch.ones(tokens, tokens).triu(1) > 0
    copies = copy.expand(1, tokens, -1)
    weights = _scores(encoding, heads, copies, at)[0]
    weights = weights.masked_fill(later, -torch.inf).softmax(-1)
    inputs = encoding.embed(copies, at[None])[0]
    rows = weights.mean(0) @ inputs + inputs + values(weights, at)

    def change(moved):
        scores = [_scores(encoding, heads, x, to) for to in (at, moved)]
        return (scores[1] - scores[0]).masked_fill(later, 0).abs().max()

    try:
        encoding.embed(x, at[None] + length)
        no_end = True
    except (IndexError, ValueError):
        no_end = False
    return {
        "mark": (gaps + torch.eye(MARKS)).min() > 1e-5,
        "ties": (rows - rows[0]).abs().max() > 1e-3,
        "alike": change(at + SHIFT) < 1e-3,
        "steady": all(b <= 1.5 * a for a, b in zip(near, far, strict=True)),
        "no_pairs": all(
            getattr(type(encoding), door) is getattr(Encoding, door)
            for door in ("bias", "score")
        ),
        "positions": change(at + 5 * (at > 11)) > 1e-3,
        "no_end": no_end,
    }


def _properties(dim=32, heads=2, seed=0):
    """Return, for each encoding of the guide, which of WANTED it has."""
    from exhibits import _loss_by_context
    from experiments.encodings import switch
    from snippets.shaw import ShawTables

    torch.manual_seed(seed)
    length, level, table = FAR, _loss_by_context.level(), {}
    for name, make in switch(dim, heads, length, CLIP).items():
        encoding = make().requires_grad_(False)
        for parameter in encoding.parameters():
            if not parameter.any():  # at zero it has no effect yet
                torch.nn.init.normal_(parameter)
        given = length, dim, heads
        has = _has(encoding, lambda weights, at: 0, *given)
        table[name] = has | {"level": name in level}
        if name == "Shaw":
            both = ShawTables(dim // heads, CLIP).requires_grad_(False)

            def values(weights, at, both=both):
                added = both.values(weights, at, at)
                return added.transpose(0, 1).flatten(1)

            table["Shaw, with values"] = _has(encoding, values, *given)
    return table


def properties():
    """Grid of sixteen encodings and eight properties. A filled cell means
    that the encoding has the property. No encoding has all of them. Distinct
    positions: all but “none”, T5, clipped bias, Shaw, DeBERTa and CoPE.
    Distinct copies: sinusoidal, learned, and Shaw with values.
    Shift-invariant: all but sinusoidal, learned and FIRE. Stable magnitude:
    all but xPos, ALiBi and KERPLE. No term per pair: “none”, sinusoidal,
    learned, RoPE and xPos. Uses positions: all but “none”, Transformer-XL and
    CoPE. No maximum length: all but learned. Keeps its loss: xPos, ALiBi,
    KERPLE, Sandwich, Shaw, DeBERTa, Transformer-XL and CoPE.
    """
    table = _properties()
    fig, ax = plt.subplots(figsize=(4.4, 4.6))
    for y, (name, has) in enumerate(table.items()):
        door = COLORS[name.removesuffix(", with values")]
        for x, key in enumerate(WANTED):
            if key not in has:
                ax.text(x, y, "?", ha="center", va="center")
            else:
                size = 12 if has[key] else 2
                color = door if has[key] else "gray"
                ax.plot(x, y, "s", color=color, markersize=size)
    ax.set_yticks(range(len(table)), list(table))
    ax.set_ylim(len(table) - 0.5, -0.5)
    ax.set_xlim(-0.5, len(WANTED) - 0.5)
    ax.xaxis.tick_top()
    ax.set_xticks(range(len(WANTED)), list(WANTED.values()), rotation=90)
    ax.tick_params(length=0)
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    counts = [sum(map(bool, has.values())) for has in table.values()]
    return fig, {
        "wanted": len(WANTED),
        "most": max(counts),
        "near": NEAR,
        "far": FAR,
        "marks": MARKS,
        "shift": SHIFT,
        "clip": CLIP,
    }


def one_heap():
    """Two sentences of three cards each, and one heap of the same cards.

    An arrow leads from “dog bites man” to the heap, and another arrow leads
    from “man bites dog” to the same heap.
    """
    fig, ax = plt.subplots(figsize=(4.4, 2))
    places = [(3.35, 0.75, 25), (3.55, 1.05, -12), (3.3, 1.3, 8)]
    rows = [[(x, y, 0) for x in (0.4, 1.1, 1.8)] for y in (1.75, 0.3)] + [
        places
    ]
    for words, cards in zip(
        (DOG_BITES_MAN, MAN_BITES_DOG, DOG_BITES_MAN), rows, strict=True
    ):
        for word, (x, y, turn) in zip(words, cards, strict=True):
            ax.text(
                *(x, y, word),
                rotation=turn,
                ha="center",
                va="center",
                bbox={
                    "boxstyle": "round",
                    "facecolor": "white",
                    "edgecolor": f"C{DOG_BITES_MAN.index(word)}",
                },
            )
    for height in (1.6, 0.45):
        ax.annotate(
            "",
            (2.85, 1.02 + (height - 1.02) / 4),
            (2.2, height),
            arrowprops={"arrowstyle": "-|>", "color": "gray"},
        )
    ax.set(xlim=(0, 4), ylim=(0, 2))
    ax.axis("off")
    return fig
