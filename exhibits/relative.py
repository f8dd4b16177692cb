"""Figures and tables of the chapter on relative positions."""

import math
from functools import partial

import matplotlib.pyplot as plt
import torch
from executable_prose import Choice, Live, Slider
from torch import nn
from torch.nn.functional import normalize
from torch.utils._python_dispatch import TorchDispatchMode

from exhibits._drawing import name_lines
from snippets.attention import (
    SelfAttention,
    attention,
    scaled_dot_product,
)
from snippets.clipped_bias import clipped_bias
from snippets.deberta import DebertaScores, log_buckets
from snippets.relative_logits import RelativeLogits
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from snippets.shaw import ShawTables, shaw_scores
from snippets.sinusoidal import sinusoidal_encoding
from snippets.t5_bias import T5Bias, t5_bias, t5_bias_by_offset, t5_buckets
from snippets.transformer_xl import (
    TransformerXLScores,
    distance_encodings,
    relative_shift,
    transformer_xl_scores,
)


def street():
    """A row of houses with numbers. You stand in one of them, and the baker
    is two doors down. The houses at the start of the street are new.
    """
    own, most = 5, 9  # houses that were there, and that may come
    you, baker = 2, 4  # their numbers then
    walls = torch.tensor([-0.36, -0.36, 0, 0.36, 0.36, -0.36, math.inf])
    roofs = torch.tensor([0, 0.6, 1, 0.6, 0, 0, math.inf])

    def houses(places, there):
        """Return outlines of the houses at positions within the text."""
        x = places[:, None] + walls
        y = torch.where(there[:, None], roofs, math.inf)
        return torch.stack((x.flatten(), y.flatten()), 1)

    def build(new):
        old = torch.arange(1, own + 1) + new
        slots = torch.arange(1, most + 1)
        here, there = you + new, baker + new
        arch = torch.linspace(0, 1, 24, dtype=torch.float64)
        over = here + arch * (there - here)
        made = {
            "new houses": houses(slots, slots <= new),
            "old houses": houses(old, (old != here) & (old != there)),
            "your house": houses(here[None], here[None] > 0),
            "the baker's": houses(there[None], there[None] > 0),
            "way": torch.stack((over, 1.3 + 2 * arch * (1 - arch)), 1),
            "mine": here,
            "his": there,
            "apart": there - here,
        }
        for name, x, y in (
            ("you", here, -0.5),
            ("baker", there, -0.5),
            ("my number", here, -1.1),
            ("his number", there, -1.1),
            ("doors", here + 1, 2),
        ):
            made[name] = torch.stack((x, 0 * x + y))
        return made

    live = _street_live(build, most)
    made, moves = live.start(), live.moves
    fig, ax = plt.subplots(figsize=(4.4, 1.9))
    colors = {"new houses": "gray", "old houses": "black"}
    colors |= {"your house": "C0", "the baker's": "C1", "way": "C1"}
    for name, color in colors.items():
        (moves[name],) = ax.plot(*made[name].T, color)
    for name, color in {
        "you": "C0",
        "my number": "C0",
        "baker": "C1",
        "his number": "C1",
        "doors": "C1",
    }.items():
        moves[name] = ax.text(*made[name].tolist(), name, color=color)
        moves[name].set_ha("center")
    ax.axhline(0, color="gray", lw=0.8)
    ax.set(xlim=(0.4, own + most + 0.6), ylim=(-1.2, 2.5))
    ax.axis("off")
    return fig, live


def _street_live(build, most):
    return Live(
        build,
        {"new": Slider("new houses at the start of the street", 0, most, 3)},
        says="The baker has number {his:.0f} now. From you he is still "
        "{apart|here|one door|two doors} down.",
        texts={
            "doors": "{apart|here|one door|two doors} down",
            "my number": "{mine:.0f}",
            "his number": "{his:.0f}",
        },
    )


def far_names():
    """A staircase: how many different names (numbers) are in use for all
    distances up to a number of steps back, plotted against that number.

    It climbs by one at each step, then more and more slowly. From a dot
    onwards it is level: all words farther back share one name.
    """
    steps, buckets = torch.arange(1, 401), 32
    names = t5_buckets(-steps, buckets, 128, bidirectional=False)
    last = (names < names.max()).sum().item() + 1
    fig, ax = plt.subplots(figsize=(4.4, 2.2))
    ax.step(steps, names, "C2", where="mid")
    ax.plot([last, 400], [names.max()] * 2, "C3", lw=3)
    ax.plot(last, names.max(), "o", color="C3")
    ax.text(400, 27, "one name: “far”", color="C3", ha="right")
    ax.set(xlim=(0, 405), ylim=(0, 34), xlabel="steps back")
    ax.set(ylabel="names so far", yticks=[0, 16, 31])
    ax.set_xticks([1, last, 200, 300, 400])
    return fig, {"names": names.max(), "last": last}


def distances():
    """Two grids of six queries and six keys. Left, the position of the key
    minus the position of the query: zero on the diagonal, negative below it,
    positive above it, and the same number all along each diagonal. Right, the
    same numbers clipped to the range from minus two to two.
    """
    place = torch.arange(6)
    distance = place - place[:, None]
    fig, axes = plt.subplots(1, 2, figsize=(4.4, 2.4), sharey=True)
    for ax, title, grid in (
        (axes[0], "distance", distance),
        (axes[1], "clipped to two", distance.clamp(-2, 2)),
    ):
        ax.imshow(grid, cmap="signed", vmin=-8, vmax=8)
        for i, j in torch.cartesian_prod(place, place).tolist():
            ax.text(j, i, f"{grid[i, j]}", ha="center", va="center")
        ax.set_title(title)
        ax.set_xlabel("key")
        ax.set_xticks(range(6))
    axes[0].set_ylabel("query")
    axes[0].set_yticks(range(6))
    return fig, {"distinct": len(distance.unique()), "tokens": len(place)}


def by_hand():
    words = ["the", "cat", "sat", "on", "it"]
    scores = torch.tensor([0.4, 1.0, 0.2, 0.1, 0.7])  # made up
    table = torch.tensor([[-1.0], [1.5], [0.0], [0.5], [-0.5]])
    query, keys = torch.tensor([2]), torch.arange(5)
    number = clipped_bias(query, keys, table)[0, 0]  # one head
    weights = (scores + number).softmax(0)
    print("key  distance score number  weight")
    for i, word in enumerate(words):
        row = f"{word:<4}{i - 2:>7}{scores[i]:>8.1f}{number[i]:>+7.1f}"
        print(f"{row}{weights[i]:>8.2f}")
    later = clipped_bias(query + 100, keys + 100, table)[0, 0]
    print("same numbers a hundred positions later:", later.equal(number))
    return {"query": "sat", "most": weights.max()}


# What is added to the score of a key that is -3 .. 3 tokens away.
NUMBERS = torch.tensor([-1.0, 0.0, 1.5, 0.0, 0.5, -0.5, -1.0])[:, None]


def identical_tokens():
    """Two heat maps of attention weights over eight copies of one token.
    Without positions, all weights are equal; with a table of distances, there
    are stripes along the diagonals.
    """
    place = torch.arange(8)
    q = k = torch.ones(8, 4)
    v = torch.zeros(8, 4)
    bias = clipped_bias(place, place, NUMBERS)[0]
    fig, axes = plt.subplots(1, 2, figsize=(4.4, 2.4), sharey=True)
    for ax, title, given in (
        (axes[0], "no positions", None),
        (axes[1], "one number per distance", bias),
    ):
        ax.imshow(attention(q, k, v, given)[1], vmin=0, vmax=0.6)
        ax.set_title(title)
        ax.set_xlabel("key")
    axes[0].set_ylabel("query")
    even = attention(q, k, v)[1]
    return fig, {"tokens": 8, "even": even.max(), "least": even.min()}


def _ways(tokens, width):
    """Return ways in which positions can enter, as arguments of _layers."""
    at = torch.arange(tokens)
    number = clipped_bias(at, at, NUMBERS.double())[0]
    frequencies = rope_frequencies(width, base=10000)
    tables = rope_tables(at, frequencies, torch.float64)
    shaw = ShawTables(width, clip=3).double().requires_grad_(False)
    score = partial(shaw, query_positions=at, key_positions=at)
    values = partial(shaw.values, query_positions=at, key_positions=at)
    return {
        "no positions": {},
        "a number": {"bias": number},
        "RoPE": {"rotate": lambda x: apply_rope(x, *tables, "half")},
        "Shaw's keys": {"score": score},
        "and values": {"score": score, "values": values},
        "added vectors": {"add": sinusoidal_encoding(at, width).double()},
    }


def _layers(
    x,
    layers,
    causal,
    add=0,
    rotate=lambda x: x,
    bias=None,
    score=scaled_dot_product,
    values=lambda weights: 0,
):
    """Return x after layers of attention with residual connections, and the
    weights of the first layer.
    """
    x, first = x + add, None
    for _ in range(layers):
        size = 3, x.shape[-1], x.shape[-1]
        q, k, v = x @ torch.randn(size, dtype=x.dtype) / x.shape[-1] ** 0.5
        output, weights = attention(
            rotate(q), rotate(k), v, bias, causal, score
        )
        x = x + output + values(weights)
        first = weights if first is None else first
    return x, first


def _apart(rows):
    """Return the largest difference between rows, relative to their size."""
    return ((rows - rows[:1]).abs().max() / rows.abs().max()).item()


def equal_words():
    tokens, width, layers = 8, 16, 4
    copies = torch.randn(width, dtype=torch.float64).expand(tokens, -1)
    marked = torch.cat((torch.randn(1, width, dtype=torch.float64), copies))
    print("               weights    difference")
    print("                        no mask causal")
    rounding = []
    for name, way in _ways(tokens, width).items():
        both = [_layers(copies, layers, mask, **way) for mask in (0, 1)]
        apart = [_apart(rows) for rows, _ in both]
        last = both[0][1][-1]
        rounding += [gap for gap in apart if gap < 1e-12]
        shown = ["0" if gap < 1e-12 else f"{gap:.2f}" for gap in apart]
        weights = f"{last.min():.3f}-{last.max():.3f}"
        print(f"{name:<14}{weights}{shown[0]:>6}{shown[1]:>7}")
    way = _ways(tokens + 1, width)["a number"]
    apart = [
        _apart(_layers(marked, layers, mask, **way)[0][1:]) for mask in (0, 1)
    ]
    print("a number, after a different token:")
    print(f"{apart[0]:>30.2f}{apart[1]:>7.2f}")
    return {
        "tokens": tokens,
        "layers": layers,
        "rounding": max(rounding),
        "equal": len(rounding) // 2,
    }


def moved():
    q, k = torch.randn(2, 6, 16, dtype=torch.float64)
    absolute = torch.randn(2000, 16, dtype=torch.float64)
    relative = torch.randn(2 * 4 + 1, 16, dtype=torch.float64)
    start = torch.arange(6)

    def added(at):
        return (q + absolute[at]) @ (k + absolute[at]).T / 4

    def shaw(at):
        return shaw_scores(q, k, relative, at, at)

    print("largest change of a score")
    print("moved by  positions  distances")
    for by in (1, 100, 1000):
        change = [
            (scores(start + by) - scores(start)).abs().max()
            for scores in (added, shaw)
        ]
        print(f"{by:>8}{change[0]:>11.2f}{change[1]:>11.2f}")


def whole():
    q, k, v = torch.randn(3, 2, 8, 5, 64)  # batch, heads, tokens, width
    at = torch.arange(5)
    shaw = ShawTables(dim=64, clip=16)

    def score(q, k):
        return shaw(q, k, at, at)

    output, weights = attention(q, k, v, causal=True, score=score)
    output = output + shaw.values(weights, at, at)
    print("tables ", *(tuple(table.shape) for table in shaw.parameters()))
    print("weights", tuple(weights.shape))
    print("output ", tuple(output.shape))


def parameters():
    dim, heads, layers, clip = 512, 8, 6, 16
    span, span_shared = 512, 256  # of DeBERTa, versions 1 and 2
    profiles, extent = 16, 1024  # of Inkling
    shaw, xl, deberta, inkling = (nn.ModuleList() for _ in range(4))
    for _ in range(layers):
        shaw.append(ShawTables(dim // heads, clip))
        xl.append(TransformerXLScores(dim, heads))
        xl[-1].u, xl[-1].v = xl[0].u, xl[0].v
        inkling.append(RelativeLogits(dim, heads, profiles, extent))
        deberta.append(DebertaScores(dim, heads, span))
        deberta[-1].table = deberta[0].table
    counts = {
        "shaw": shaw,
        "transformer_xl": xl,
        "t5": T5Bias(heads),
        "deberta": deberta,
        "inkling": inkling,
    }
    return {
        "profiles": profiles,
        "extent": extent,
        "dim": dim,
        "heads": heads,
        "layers": layers,
        "clip": clip,
        "span": span,
        "span_shared": span_shared,
        "deberta_shared": DebertaScores(
            dim, heads, span_shared
        ).table.numel(),
        **{
            name: sum(p.numel() for p in module.parameters())
            for name, module in counts.items()
        },
    }


def term_maps():
    """Four triangular heat maps of scores. The term of content and content
    has no pattern; that of content and distance changes along both axes; the
    vector u gives vertical stripes, one for each key; the vector v gives
    diagonal stripes.
    """
    tokens, dim = 24, 16
    q, k = torch.randn(2, 1, tokens, dim)
    u, v = torch.randn(2, 1, dim)
    rows = distance_encodings(tokens, dim)[None] @ torch.randn(dim, dim) / 2

    def term(q, k, rows, u, v):
        return transformer_xl_scores(q, k, rows, u, v)[0]

    nothing = torch.zeros_like
    terms = {
        "q · k": term(q, k, nothing(rows), nothing(u), nothing(v)),
        "q · W R": term(q, nothing(k), rows, nothing(u), nothing(v)),
        "u · k": term(nothing(q), k, nothing(rows), u, nothing(v)),
        "v · W R": term(nothing(q), nothing(k), rows, nothing(u), v),
    }
    shape = {"sharex": True, "sharey": True, "figsize": (4.4, 4.2)}
    fig, axes = plt.subplots(2, 2, **shape)
    for ax, (title, scores) in zip(axes.flat, terms.items(), strict=True):
        hidden = scores.isneginf()
        bound = scores[~hidden].abs().max()
        shown = scores.masked_fill(hidden, 0)
        ax.imshow(shown, cmap="signed", vmin=-bound, vmax=bound)
        ax.set_title(title)
    for ax in axes[:, 0]:
        ax.set_ylabel("query")
    for ax in axes[1]:
        ax.set_xlabel("key")
    exact = transformer_xl_scores(q, k, rows, u, v)[0].exp()
    error = (sum(terms.values()).exp() / exact).nan_to_num(1) - 1
    return fig, {"error": error.abs().max()}


def shift_trick():
    """Three grids of numbers, with a row for each of four queries. In the
    first grid, each row is 3, 2, 1, 0. In the second, there is a zero before
    each row. In the third, each row has moved so that 0 is on the diagonal;
    the cells above the diagonal, on gray, hold the zero and numbers in the
    colour of the next row.
    """
    tokens = 4
    columns = torch.arange(tokens - 1, -1, -1).expand(tokens, tokens)
    owner = torch.arange(1, tokens + 1)[:, None].expand(tokens, tokens)
    padded = nn.functional.pad(columns, (1, 0))
    panels = (
        ("a column per\ndistance", columns, owner),
        ("a zero before\neach row", padded, nn.functional.pad(owner, (1, 0))),
        (
            "cut again: a\ncolumn per key",
            relative_shift(columns),
            relative_shift(owner),
        ),
    )
    colors = ["gray", "C0", "C1", "C2", "C3"]
    widths = {"width_ratios": [4, 5, 4]}
    fig, axes = plt.subplots(1, 3, figsize=(4.4, 2), gridspec_kw=widths)
    for ax, (title, grid, whose) in zip(axes, panels, strict=True):
        for (i, j), number in _cells(grid):
            if ax is axes[2] and j > i:
                corner = j - 0.5, i - 0.5
                ax.add_patch(
                    plt.Rectangle(
                        corner, 1, 1, color="gray", alpha=0.25, linewidth=0
                    )
                )
            ax.text(
                j,
                i,
                str(number),
                color=colors[whose[i, j]],
                ha="center",
                va="center",
                weight="bold",
            )
        ax.set_xlim(-0.5, grid.shape[1] - 0.5)
        ax.set_ylim(tokens - 0.5, -0.5)
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_title(title)
    axes[0].set_ylabel("query")
    return fig, {"queries": tokens}


def _cells(grid):
    """Yield ((row, column), number) of each cell."""
    for i, row in enumerate(grid.tolist()):
        for j, number in enumerate(row):
            yield (i, j), number


def without_the_shift():
    tokens, width = 6, 16
    rows = distance_encodings(tokens, width)
    same = torch.ones(tokens, width)  # every query is the same vector
    by_column = same @ rows.T
    before = by_column.diagonal(-1)
    shifted = relative_shift(by_column).diagonal(-1)
    return {
        "tokens": tokens,
        "least": before.min(),
        "most": before.max(),
        "shifted_least": shifted.min(),
        "shifted_most": shifted.max(),
    }


def t5_steps():
    """Line chart of the bucket by distance, on a logarithmic axis: two
    staircases. Each rises by one per distance, then in longer and longer
    steps, and becomes flat before the dashed line at the maximum distance.
    """
    sides = (("back", "causal"), ("both", "bidirectional"))
    longest, top = 300, 68

    def stairs(buckets, most, distance):
        distances = torch.arange(1, longest + 1)
        asked = torch.cat((distances, distance.long()[None]))
        made = {"wall": torch.tensor([[int(most), 0], [int(most), top]])}
        for side, _ in sides:
            given = int(buckets), int(most), side == "both"
            bucket = t5_buckets(-asked, *given)
            own, each = bucket[-1], bucket[:-1]
            last = each.amax()
            start = (each < last).sum() + 1
            begin = torch.stack((start, last))
            corners = _twice(distances)[1:], _twice(each)[:-1]
            made |= {
                f"{side} steps": torch.stack(corners, 1),
                f"{side} begin": begin[None],
                f"{side} number": begin,
                f"{side} key": torch.stack((distance, own))[None],
                f"{side}_starts": start,
                f"{side}_bucket": own,
            }
        return made

    live = _t5_steps_live(stairs, sides, longest)
    made = live.start()
    fig, ax = plt.subplots()
    for n, (side, name) in enumerate(sides):
        color = f"C{n}"
        (live.moves[f"{side} steps"],) = ax.plot(
            *made[f"{side} steps"].T, color=color, label=name
        )
        for marks, size in ((f"{side} begin", 25), (f"{side} key", 70)):
            live.moves[marks] = ax.scatter(
                *made[marks].T, s=size, color=color, zorder=3
            )
        live.moves[f"{side} number"] = ax.annotate(
            "",
            made[f"{side} number"].tolist(),
            (-3, 5),
            textcoords="offset points",
            ha="right",
        )
    (live.moves["wall"],) = ax.plot(*made["wall"].T, "--", color="gray")
    ax.set_xscale("log", base=2)
    ax.set_xlabel("distance to an earlier key (tokens)")
    ax.set_ylabel("bucket")
    ax.set_ylim(0, top)
    ax.legend(loc="upper left")
    offsets = torch.arange(-1000, 1001)
    (unused,) = set(range(32)) - set(t5_buckets(offsets).tolist())
    values = {"buckets": 32, "most": 128}
    values |= {side: made[f"{side}_starts"] for side, _ in sides}
    values |= {"unused": unused, "own_back": 16, "own_both": 8}
    return fig, values, live


def _twice(x):
    return x[:, None].expand(-1, 2).flatten()


def _t5_steps_live(stairs, sides, longest):
    return Live(
        stairs,
        {
            "distance": Slider(
                "distance of a key",
                1,
                longest,
                40,
                shows="{value:.0f} tokens",
                drag="back key",
            ),
            "buckets": Choice("buckets", ("16", "32", "64"), "32"),
            "most": Choice("maximum distance", ("64", "128", "256"), "128"),
        },
        says="A key {distance} tokens back has bucket {back_bucket:.0f} in "
        "the causal mode, where all {buckets} buckets look back, and bucket "
        "{both_bucket:.0f} in the bidirectional mode, where half of them do. "
        "The last buckets start at {back_starts:.0f} and {both_starts:.0f}.",
        call="import torch\n"
        "from t5_bias import t5_buckets\n\n"
        f"keys = -torch.arange(1, {longest + 1})\n"
        "back = t5_buckets(keys, {buckets}, {most}, bidirectional=False)\n"
        "both = t5_buckets(keys, {buckets}, {most})\n"
        "back[{distance} - 1], both[{distance} - 1]\n"
        "1 + (back < back.max()).sum(), 1 + (both < both.max()).sum()",
        draws={
            f"{side} steps": f"{side}.repeat_interleave(2)[:-1]"
            for side, _ in sides
        },
        texts={
            f"{side} number": f"{{{side}_starts:.0f}}" for side, _ in sides
        },
    )


def t5_map():
    """Two square heat maps with stripes parallel to the main diagonal, narrow
    near it and broad far from it. Left, stripes on both sides, of different
    colours. Right, stripes below the diagonal and a single colour above it.
    """
    place, table = torch.arange(160), torch.randn(32, 1)
    fig, axes = plt.subplots(1, 2, figsize=(4.4, 2.5), sharey=True)
    for ax, title, both in (
        (axes[0], "bidirectional", True),
        (axes[1], "causal", False),
    ):
        bias = t5_bias(
            place, place, t5_bias_by_offset(table, bidirectional=both)
        )[0]
        ax.imshow(bias, cmap="signed", vmin=-2.5, vmax=2.5)
        ax.set_title(title)
        ax.set_xlabel("key")
    axes[0].set_ylabel("query")
    return fig


def clipped_similarity():
    """Square heat map of similarities between distances. It has a strong
    diagonal in the middle, noise around it, and in two opposite corners a
    square of full similarity, where all distances share a row.
    """
    clip, most = 8, 20
    shaw = ShawTables(64, clip)
    rows = torch.arange(-most, most + 1).clamp(-clip, clip) + clip
    vectors = normalize(shaw.key_table.detach()[rows], dim=-1)
    fig, ax = plt.subplots(figsize=(3.4, 3.1))
    edge = most + 0.5
    ax.imshow(
        vectors @ vectors.T,
        cmap="signed",
        vmin=-1,
        vmax=1,
        extent=(-edge, edge, edge, -edge),
    )
    ax.set_xlabel("distance")
    ax.set_ylabel("distance")
    return fig, {"clip": clip, "most": most}


def _taught_two_back(updates, seed=0):
    """Return Shaw's key table for distances -6 .. 6, before and after one
    head was trained to predict which token was two positions back; the mean
    scores of its rows over all tokens; and the fraction predicted right.
    """
    torch.manual_seed(seed)
    vocabulary, width, tokens = 12, 16, 24
    shaw, embed = ShawTables(width, 6), nn.Embedding(vocabulary, width)
    query, key = nn.Linear(width, width), nn.Linear(width, width)
    say = nn.Linear(width, vocabulary)
    before, at = shaw.key_table.detach().clone(), torch.arange(tokens)
    parts = nn.ModuleList([shaw, embed, query, key, say])
    optimizer = torch.optim.Adam(parts.parameters(), lr=0.02)
    score = partial(shaw, query_positions=at, key_positions=at)
    for _ in range(updates):
        ids = torch.randint(vocabulary, (16, tokens))
        x = embed(ids)
        read, _ = attention(query(x), key(x), x, score=score)
        said, wanted = say(read)[:, 2:].mT, ids[:, :-2]
        optimizer.zero_grad()
        nn.functional.cross_entropy(said, wanted).backward()
        optimizer.step()
    after, all_queries = shaw.key_table.detach(), query(embed.weight)
    scores = (all_queries @ after.T / width**0.5).mean(0).detach()
    right = (said.argmax(1) == wanted).float().mean()
    return before, after, scores, right


def rows_by_distance():
    """Two heat maps, with a row for each distance from -6 to 6 and a column
    for each channel, and a bar for each distance. Before training, the heat
    map is noise. After training, all rows look alike except that of -2, which
    has the opposite colours; its bar points right, and all other bars point
    left.
    """
    updates = 80
    before, after, scores, right = _taught_two_back(updates)
    clip = len(scores) // 2
    fig, axes = plt.subplots(
        1, 3, figsize=(4.4, 3.2), sharey=True, width_ratios=[3, 3, 2]
    )
    for ax, title, rows in (
        (axes[0], "before", before),
        (axes[1], "after", after),
    ):
        ax.imshow(
            rows,
            cmap="signed",
            vmin=-1,
            vmax=1,
            extent=(-0.5, rows.shape[1] - 0.5, clip + 0.5, -clip - 0.5),
        )
        ax.set_title(title)
        ax.set_xlabel("channel")
        ax.set_xticks([])
    distances = torch.arange(-clip, clip + 1)
    axes[2].barh(distances, scores, color="C0")
    axes[2].axvline(0, color="gray", linewidth=0.8)
    axes[2].set_title("score added")
    axes[0].set_ylabel("distance")
    axes[0].set_yticks(distances[::2])
    alike = normalize(after, dim=-1) @ normalize(after, dim=-1).T
    wanted = clip - 2
    others = torch.arange(len(scores)) != wanted
    return fig, {
        "updates": updates,
        "right": right,
        "wanted": scores[wanted],
        "others": scores[others].max(),
        "alike": alike[others][:, others].min(),
        "opposite": alike[wanted, others].max(),
    }


def deberta_steps():
    """Line chart of the row by distance. One line rises by one per distance
    up to the clip. The other leaves it a quarter of the way up and bends,
    reaching half the height. Both end flat.
    """
    span, most = 256, 512
    distance = torch.arange(700)
    bucket = log_buckets(distance, span, most)
    fig, ax = plt.subplots()
    ax.plot(distance, distance.clamp(max=most - 1), "--", label="version 1")
    ax.plot(distance, bucket, label="versions\n2 and 3")
    ax.set_xlabel("distance from query back to key (tokens)")
    ax.set_ylabel("row (from the middle)")
    name_lines(ax)
    return fig, {
        "own": (bucket.bincount() > 1).nonzero()[0] - 1,
        "last": bucket[-1],
        "start": (bucket == bucket[-1]).nonzero()[0].item(),
        "most": most,
        "span": span,
    }


class _Largest(TorchDispatchMode):
    """Records the bytes of the largest tensor that any operation creates."""

    bytes = 0

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        made = function(*arguments, **(options or {}))
        self.bytes = max(self.bytes, made.untyped_storage().nbytes())
        return made


def memory():
    heads, dim, clip = 8, 64, 16
    table = torch.empty(2 * clip + 1, dim, device="meta")
    print("largest tensor, MiB, for one sequence")
    print("tokens     scores   a vector for    snippet")
    print("            alone      each pair           ")
    for tokens in (512, 2048, 8192):
        at = torch.arange(tokens, device="meta")
        q = torch.empty(heads, tokens, dim, device="meta")

        def pairs(q=q, at=at):
            rows = (at - at[:, None]).clamp(-clip, clip) + clip
            vectors = table[rows]  # queries x keys x dim, for all heads
            by_query = q.transpose(0, 1) @ vectors.mT
            return q @ q.mT + by_query.transpose(0, 1)

        def ours(q=q, at=at):
            return shaw_scores(q, q, table, at, at)

        sizes = []
        for scores in (lambda q=q: q @ q.mT, pairs, ours):
            with _Largest() as seen:
                scores()
            sizes.append(seen.bytes / 2**20)
        print("{:>6}{:>11.0f}{:>15.0f}{:>11.0f}".format(tokens, *sizes))
    return {"heads": heads, "dim": dim, "ratio": sizes[1] / sizes[0]}


def beyond_the_clip():
    tokens, clip = 12, 3
    at = torch.arange(tokens)
    layers = [SelfAttention(8, 2).double() for _ in range(2)]
    tables = [ShawTables(4, clip).double() for _ in range(2)]

    def last(x, depth):
        for layer, shaw in list(zip(layers, tables, strict=True))[:depth]:
            score = partial(shaw, query_positions=at, key_positions=at)
            x = x + layer(x, score=score)[0]
        return x[-1].detach()

    x = torch.randn(tokens, 8, dtype=torch.float64)
    print("change of the last output")
    print("swapped       one layer  two layers")
    for name, a, b in (("first two", 0, 1), ("two before", 9, 10)):
        order = torch.arange(tokens)
        order[[a, b]] = order[[b, a]]
        change = [
            (last(x[order], depth) - last(x, depth)).abs().max()
            for depth in (1, 2)
        ]
        print(f"{name:<11}{change[0]:>12.1e}{change[1]:>12.1e}")
    return {"clip": clip, "tokens": tokens}


def dilution():
    table = torch.zeros(2 * 4 + 1, 1)
    table[3] = 6.0  # the row of the token before
    weights = {}
    print("tokens   weight")
    for tokens in (64, 512, 4096, 32768):
        query, keys = torch.tensor([tokens - 1]), torch.arange(tokens)
        weight = clipped_bias(query, keys, table)[0, 0].softmax(0)
        weights[tokens] = weight[-2]
        print(f"{tokens:>6}{weights[tokens]:>9.3f}")
    return {
        "number": table.max(),
        "short": 64,
        "long": 32768,
        "near": weights[64],
        "far": weights[32768],
    }
