"""Figures and tables of the chapter on RoPE."""

import math

import matplotlib.pyplot as plt
import torch
from executable_prose import Live, Slider
from torch.nn.functional import cross_entropy
from torch.nn.functional import scaled_dot_product_attention as attend
from torch.utils._python_dispatch import TorchDispatchMode

from exhibits import _loss_by_context
from exhibits._drawing import name_lines
from experiments.language import CONTEXTS
from experiments.language import TRAIN_LENGTH as TRAINED
from snippets.rope import (
    apply_rope,
    interleaved_to_half,
    rope_frequencies,
    rope_tables,
)

BASE = 10_000.0  # of the paper
UPDATES = 150  # of the head that is trained to look back


def _turn(x, positions, layout="interleaved"):
    """Rotate each of the vectors (..., dim) by its own position."""
    positions = torch.as_tensor(positions).expand(x.shape[:-1])
    rows = x.reshape(-1, x.shape[-1])
    frequencies = rope_frequencies(x.shape[-1], base=10000)
    tables = rope_tables(positions.reshape(-1), frequencies, x.dtype)
    return apply_rope(rows, *tables, layout).view(x.shape)


def _pair():
    """A query and a key of 64 channels, in float64."""
    return torch.randn(2, 64, dtype=torch.float64).unbind()


def _arrow(color):
    """Return a style for arrows with no gap at either end."""
    return {"arrowstyle": "-|>", "color": color, "shrinkA": 0, "shrinkB": 0}


def walking():
    """A dial with two needles and an arc between them. Below it, a line with
    two words: “dog” and, three steps after it, “bites”.

    When both words move along the line, both needles turn, and the arc
    between them stays as wide as before.
    """
    live = _walking_live(apart=3)
    made, moves = live.start(), live.moves
    fig, (dial, line) = plt.subplots(
        2, figsize=(4.4, 2.9), height_ratios=(6, 1)
    )
    _draw_needles(dial, made, moves, "“bites” looks", "“dog” offers")
    for name, color in (("looks", "C0"), ("offers", "C1")):
        moves[name] = line.scatter(*made[name].T, s=110, color=color)
    line.set(xlim=(0, 46), ylim=(-1, 1), xticks=[1, 15, 30, 45], yticks=[])
    line.set_xlabel("words of the text")
    line.spines["left"].set_visible(False)
    return fig, live


def _walking_live(apart):
    # a third of a radian for each word
    speed = rope_frequencies(16, base=10000)[1:2]
    walk = Slider("walk both words along the text", 1, 42, 4, drag="offers")
    return Live(
        lambda place: _needles(place, torch.tensor(apart), speed),
        {"place": walk},
        says="With “dog” at word {place:.0f}, as at any other word, the "
        "needles are {degrees:.0f} degrees apart.",
        texts={"at": "{degrees:.0f}°"},
        tolerance=1e-9,
    )


def past_practice():
    """Two lines that show the chance of the right letter, with RoPE and with
    no positions, plotted against the number of letters read before it.

    Up to the training length, the line of RoPE is the higher one. Beyond
    that length it falls far below the other line.
    """
    chances = _loss_by_context.chances("RoPE", "none")
    fig, ax = plt.subplots(figsize=(4.4, 2.3))
    ax.axvspan(0, TRAINED, color="gray", alpha=0.2, linewidth=0)
    for name, color in (("none", "black"), ("RoPE", "C1")):
        ax.plot(CONTEXTS, [100 * each for each in chances[name]], color)
    ax.text(TRAINED + 20, 15, "trained up to here")
    ax.text(CONTEXTS[-1], 9.3, "no positions", ha="right")
    ax.text(CONTEXTS[-1], 2.9, "RoPE", color="C1", ha="right")
    ax.set(ylim=(0, 17), xlabel="number of letters read before")
    ax.set_ylabel("chance (%)")
    ax.set_xticks([0, TRAINED, 512, CONTEXTS[-1]])
    return fig, {
        "trained": TRAINED,
        "near": chances["RoPE"][CONTEXTS.index(_loss_by_context.NEAR)],
        "far": chances["RoPE"][-1],
        "none": chances["none"][-1],
        "longest": CONTEXTS[-1],
    }


def _needles(place, apart, frequency):
    """Two arrows rotated by their positions, and the arc between them."""
    start = torch.tensor([[0.6, 0.8], [0.8, 0.6]], dtype=torch.float64)
    places = torch.stack((place + apart, place))
    looking, offering = apply_rope(
        start, *rope_tables(places, frequency, start.dtype), "half"
    )
    cosine = looking @ offering
    sine = offering[0] * looking[1] - offering[1] * looking[0]
    between = torch.atan2(sine, cosine)
    begin = torch.atan2(offering[1], offering[0])
    sweep = begin + torch.linspace(0, 1, 24, dtype=torch.float64) * between
    ring = torch.stack((sweep.cos(), sweep.sin()), -1)
    spots = torch.stack((places, torch.zeros_like(places)), -1)
    return {
        "looking": torch.stack((0 * looking, looking)),
        "offering": torch.stack((0 * offering, offering)),
        "arc": 0.4 * ring,
        "looks": spots[:1],
        "offers": spots[1:],
        "at": 0.62 * ring[12],
        "degrees": torch.rad2deg(between),
    }


def two_needles():
    """A circle with two arrows, and below it the positions of two tokens on a
    line.

    The blue arrow is the query, the orange one the key. An arc marks the
    angle between them. When both tokens move together, both arrows rotate and
    the arc rotates with them, as wide as before.
    """
    live = _two_needles_live()
    made, moves = live.start(), live.moves
    fig, (dial, line) = plt.subplots(
        2, figsize=(4.4, 2.8), height_ratios=(5, 1)
    )
    _draw_needles(dial, made, moves, "query", "key")
    for name, color in (("looks", "C0"), ("offers", "C1")):
        moves[name] = line.scatter(*made[name].T, s=60, color=color)
    line.set(xlim=(-1, 57), ylim=(-1, 1), yticks=[])
    line.set_xlabel("position (tokens)")
    line.spines["left"].set_visible(False)
    return fig, live


def _draw_needles(dial, made, moves, *words):
    dial.add_patch(plt.Circle((0, 0), 1, fill=False, color="gray"))
    for name, color in (("looking", "C0"), ("offering", "C1")):
        (moves[name],) = dial.plot(*made[name].T, color, linewidth=3)
    (moves["arc"],) = dial.plot(*made["arc"].T, "black")
    moves["at"] = dial.text(*made["at"], "", ha="center", va="center")
    dial.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), aspect="equal")
    dial.axis("off")
    dial.legend(
        dial.lines[:2],
        words,
        loc="center left",
        bbox_to_anchor=(1.1, 0.5),
    )


def _two_needles_live():
    # a tenth of a radian for each position
    speed = rope_frequencies(8, base=10000)[1:2]
    return Live(
        lambda place, apart: _needles(place, apart, speed),
        {
            "place": Slider("position of both", 0, 40, 4, drag="offers"),
            "apart": Slider("distance between them", 0, 15, 6, drag="looks"),
        },
        says="The key is at position {place:.0f}, and the query is "
        "{apart:.0f} positions after it. The angle between them is "
        "{degrees:.0f} degrees.",
        call="import math\n\nimport torch\n"
        "from rope import apply_rope, rope_frequencies, rope_tables\n\n"
        "vectors = torch.tensor([[0.6, 0.8], [0.8, 0.6]])\n"
        "positions = torch.tensor([{place} + {apart}, {place}])\n"
        "frequency = rope_frequencies(8, base=10000)[1:2]\n"
        "tables = rope_tables(positions, frequency)\n"
        'query, key = apply_rope(vectors, *tables, "half")\n'
        "math.degrees(math.acos(query @ key))",
        draws={
            "looking": "torch.stack((0 * query, query))",
            "offering": "torch.stack((0 * key, key))",
        },
        texts={"at": "{degrees:.0f}°"},
        tolerance=1e-9,
    )


def by_hand():
    q, k = (
        torch.tensor([2.0, 1.0]).double(),
        torch.tensor([1.0, 2.0]).double(),
    )
    print("the query is (2, 1), the key (1, 2)")
    print("query key  rotated     rotated     score")
    print("   at  at  query       key")
    values = {}
    for m, n in ((3, 3), (5, 3), (105, 103), (3, 5)):
        a, b = _turn(q, m), _turn(k, n)
        score = (a @ b).item()
        left, right = (f"{x:5.2f} {y:5.2f}" for x, y in (a, b))
        print(f"{m:>5}{n:>4} {left} {right} {score:5.2f}")
        values[f"at_{m}_{n}"] = score
    return values | {"length": q.norm(), "turned_length": _turn(q, 5).norm()}


def two_hands():
    q = torch.tensor([2.0, 1.0, 2.0, 1.0]).double()
    print("the vector is (2, 1, 2, 1)")
    print("position  first pair   second pair")
    for position in (0, 1, 2, 50, 100):
        a, b, c, d = _turn(q, position)
        print(f"{position:>8} {a:5.2f} {b:5.2f}  {c:5.2f} {d:5.2f}")
    first, second = rope_frequencies(4, base=10000)
    return {"first": first, "second": second}


def arrows():
    """Two circles with arrows from the centre, one arrow for each position
    from 0 to 6.

    On the left, the arrow rotates by about a sixth of a circle at each step.
    On the right, all arrows lie close together.
    """
    q, frequencies = torch.tensor([1.0, 0.0]), rope_frequencies(8, base=10000)
    fig, axes = plt.subplots(1, 2, figsize=(4.4, 2.4))
    for ax, pair in zip(axes, (0, 1), strict=True):
        ax.add_patch(plt.Circle((0, 0), 1, fill=False, color="gray"))
        speed = frequencies[pair : pair + 1]
        tables = rope_tables(torch.arange(7), speed)
        tips = apply_rope(q.expand(7, 2), *tables, "interleaved")
        for place, tip in enumerate(tips):
            color = "black" if place == 0 else "C0"
            arrow = _arrow(color)
            ax.annotate("", tip.tolist(), (0, 0), arrowprops=arrow)
            if pair == 0 or place in (0, 6):
                ax.text(*(1.17 * tip), str(place), ha="center", va="center")
        ax.set_xlim(-1.35, 1.35)
        ax.set_ylim(-1.35, 1.35)
        ax.set_aspect("equal")
        ax.set_title(f"pair {pair}: {speed.item():.1f} rad per position")
        ax.axis("off")
    return fig


def score_map():
    """Heat map of scores, with query positions downward and key positions
    across.

    Every diagonal has one colour from end to end. The strongest diagonal is a
    few steps below the main one; the others alternate between stronger and
    weaker and do not fall steadily.
    """
    q, k = _pair()
    k = k + 0.4 * _turn(q, 6)
    places = torch.arange(48)
    queries = _turn(q.expand(48, -1), places)
    keys = _turn(k.expand(48, -1), places)
    scores = queries @ keys.T / 8
    fig, ax = plt.subplots(figsize=(4.4, 3.4))
    most = scores.abs().max()
    image = ax.imshow(scores, cmap="signed", vmin=-most, vmax=most)
    fig.colorbar(image, ax=ax, shrink=0.8, label="score")
    ax.set_aspect(1)
    ax.set_xlabel("position of the key")
    ax.set_ylabel("position of the query")
    apart = (scores[1:, 1:] - scores[:-1, :-1]).abs().max()
    return fig, {"best": scores[-1].argmax().item() - 47, "apart": apart}


def score_by_offset():
    """Two line charts of scores. Top, against the position of the key: three
    curves, one for each of three positions of the query, with the same shape
    but shifted. Bottom, against the offset: the three curves coincide.
    """
    q, k = _pair()
    keys = torch.arange(80)
    turned = _turn(k.expand(80, -1), keys)
    fig, axes = plt.subplots(2, 1, figsize=(4.4, 3.8), sharey=True)
    curves = {}
    for query, line in ((15, "-"), (35, "--"), (55, ":")):
        scores = turned @ _turn(q, query) / 8
        axes[0].plot(
            keys, scores, line, linewidth=1.2, label=f"query {query}"
        )
        axes[1].plot(keys - query, scores, line, linewidth=1.2)
        curves[query] = scores[query - 15 : query + 25]
    axes[0].set_xlabel("position of the key")
    axes[1].set_xlabel("offset: position of the key − position of the query")
    for ax in axes:
        ax.set_ylabel("score")
    axes[0].legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1))
    first, *others = curves.values()
    return fig, {"apart": max((first - c).abs().max() for c in others)}


def own_score():
    """Left, two arrows from one point, a query and a key. Right, their score
    by the distance between them.

    The arrows point in nearly opposite directions. The score begins far below
    zero and rises with the distance, with ripples.
    """
    dim, count = 64, 129

    def score(base, **ends):
        q, k = (
            torch.stack((ends[f"{name}_x"], ends[f"{name}_y"]))
            for name in "qk"
        )
        distances = torch.arange(count)
        frequencies = rope_frequencies(dim, base)
        tables = rope_tables(distances, frequencies, torch.float64)
        query, key = (each.expand(dim // 2, 2).flatten() for each in (q, k))
        turned = apply_rope(query.expand(count, dim), *tables, "interleaved")
        scores = turned @ key / math.sqrt(dim)
        made = {"score": torch.stack((distances, scores), -1)}
        for name, tip in (("q", q), ("k", k)):
            made |= {
                f"{name} arrow": torch.stack((0 * tip, tip)),
                f"{name} tip": tip[None],
            }
        return made | {"first": scores[0], "last": scores[-1]}

    names = {"q": "query", "k": "key"}
    live = _own_score_live(score, names, count)
    made, moves = live.start(), live.moves
    fig, (dial, plot) = plt.subplots(
        1, 2, figsize=(4.4, 2.3), width_ratios=(2, 3)
    )
    for name, color in (("q", "C0"), ("k", "C1")):
        (moves[f"{name} arrow"],) = dial.plot(
            *made[f"{name} arrow"].T, color, linewidth=3, label=names[name]
        )
        moves[f"{name} tip"] = dial.scatter(
            *made[f"{name} tip"].T, s=70, color=color, zorder=3
        )
    dial.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), aspect="equal")
    dial.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1])
    dial.set(xlabel="channel 0", ylabel="channel 1")
    dial.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1))
    plot.axhline(0, color="gray", linewidth=0.6)
    (moves["score"],) = plot.plot(*made["score"].T, "black")
    plot.set(ylim=(-8.4, 8.4), ylabel="score")
    plot.set_xlabel("distance (positions)")
    return fig, {"pairs": dim // 2}, live


def _own_score_live(score, names, count):
    starts = {"q_x": 0.9, "q_y": 0.0, "k_x": -0.8, "k_y": 0.5}
    return Live(
        score,
        {"base": Slider("base", 10, 1e6, BASE, log=True)}
        | {
            end: Slider(
                f"{names[end[0]]}, channel {'xy'.index(end[2])}",
                -1,
                1,
                start,
                step=0.1,
                shows="{value:,.1f}",
                drag=f"{end[0]} tip",
                along=end[2],
            )
            for end, start in starts.items()
        },
        says="With base {base:,} the score is {first:,.1f} at distance 0 "
        f"and {{last:,.1f}} at {count - 1}.",
        call="import torch\n"
        "from rope import apply_rope, rope_frequencies, rope_tables\n\n"
        "q = torch.tensor([{q_x}, {q_y}]).float().repeat(32)\n"
        "k = torch.tensor([{k_x}, {k_y}]).float().repeat(32)\n"
        "frequencies = rope_frequencies(64, base={base})\n"
        f"tables = rope_tables(torch.arange({count}), frequencies)\n"
        f"q = q.expand({count}, 64)\n"
        'scores = apply_rope(q, *tables, "interleaved") @ k / 8\n'
        f"scores[0], scores[{count - 1}]",
        draws={"score": "scores"},
        tolerance=1e-9,
    )


def layouts():
    """Eight channels as boxes in a row, coloured by the pair they belong to,
    and below them the matrix that rotates them, for both layouts.

    Left, interleaved: neighbouring boxes share a colour, and the matrix has
    four blocks along its diagonal. Right, half: boxes four steps apart share
    a colour, and the matrix has three diagonal lines, one in the middle and
    one four steps to either side. Triangles above two boxes mark a pair.
    """
    speeds = torch.tensor([1.0, 0.8, 0.6, 0.4])  # for the figure
    pairs = {
        "interleaved": [0, 0, 1, 1, 2, 2, 3, 3],
        "half": [0, 1, 2, 3] * 2,
    }
    corners = torch.tensor([[0, 0], [1, 0], [1, 8], [0, 8], [0, 0]]) - 0.5

    def turn(channel, place):
        tables = rope_tables(place.expand(8), speeds)
        inside = torch.arange(8)
        made = {"frame": corners + torch.stack((channel, 0 * channel))}
        for layout in pairs:
            turned = apply_rope(torch.eye(8), *tables, layout).T
            column = turned.index_select(1, channel.long()[None])[:, 0]
            meets = torch.where(column != 0, inside, math.inf)
            other = (column != 0) & (inside != channel)
            made |= {
                layout: turned,
                f"{layout} meets": torch.stack((meets, 0 * inside + 1.4), -1),
                f"{layout}_other": (inside * other).sum(),
            }
        return made

    live = _layouts_live(turn, pairs)
    made = live.start()
    fig, axes = plt.subplots(
        2, 2, figsize=(4.4, 3.1), height_ratios=(1.4, 6), sharex="col"
    )
    for (boxes, grid), (layout, pair_of) in zip(
        axes.T, pairs.items(), strict=True
    ):
        for channel, pair in enumerate(pair_of):
            color = f"C{pair}"
            place = (channel - 0.42, 0)
            boxes.add_patch(plt.Rectangle(place, 0.84, 1, color=color))
            boxes.text(
                channel, 0.45, str(pair), ha="center", va="center", color="w"
            )
        live.moves[f"{layout} meets"] = boxes.scatter(
            *made[f"{layout} meets"].T, color="black", marker="v"
        )
        boxes.set(title=layout, ylim=(0, 2))
        boxes.axis("off")
        live.moves[layout] = grid.imshow(
            made[layout], cmap="signed", vmin=-1, vmax=1
        )
        grid.set(xticks=range(8), yticks=range(8), xlabel="input channel")
    (live.moves["frame"],) = axes[1, 0].plot(*made["frame"].T, "black")
    axes[1, 0].set_ylabel("output channel")
    return fig, live


def _layouts_live(turn, pairs):
    return Live(
        turn,
        {
            "channel": Slider("channel", 0, 7, 1, drag="frame"),
            "place": Slider("position", 1, 12, 1),
        },
        says="Channel {channel:.0f} forms a pair with channel "
        "{interleaved_other:.0f} in the interleaved layout and with channel "
        "{half_other:.0f} in the half layout. The matrices are those of "
        "position {place:.0f}.",
        call="import torch\n"
        "from rope import apply_rope, rope_tables\n\n"
        "frequencies = torch.tensor([1.0, 0.8, 0.6, 0.4])\n"
        "tables = rope_tables(torch.full((8,), {place}), frequencies)\n"
        'interleaved = apply_rope(torch.eye(8), *tables, "interleaved").T\n'
        'half = apply_rope(torch.eye(8), *tables, "half").T\n'
        "n = {channel}\n"
        "[m for m in range(8) if interleaved[m, n] and m != n]\n"
        "[m for m in range(8) if half[m, n] and m != n]",
        draws={layout: layout for layout in pairs},
        tolerance=1e-6,
    )


def mixed_layouts():
    """Line chart of scores against the position of the key, at one fixed
    offset.

    Two lines, for q and k in the same layout, are flat, each at its own
    height. The third line, for q in one layout and k in the other, goes up
    and down.
    """
    q, k = _pair()
    offset, places = 7, torch.arange(120)
    fig, ax = plt.subplots()
    values = {"offset": offset}
    for name, of_q, of_k, line in (
        ("both interleaved", "interleaved", "interleaved", "-"),
        ("both half", "half", "half", "--"),
        ("mixed", "interleaved", "half", ":"),
    ):
        queries = _turn(q.expand(120, -1), places + offset, of_q)
        keys = _turn(k.expand(120, -1), places, of_k)
        scores = (queries * keys).sum(-1) / 8
        ax.plot(places, scores, line, label=name)
        values[name.replace(" ", "_")] = scores[0]
        values["swing"] = scores.max() - scores.min()
    ax.set_xlabel("position of the key")
    ax.set_ylabel(f"score at offset {offset}")
    ax.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1))
    return fig, values


def fourier():
    dim, reach = 8, 2000
    q, k = torch.randn(2, dim, dtype=torch.float64)
    offsets = torch.arange(-reach, reach + 1)
    curve = _turn(q.expand(len(offsets), dim), offsets) @ k

    angles = offsets[:, None] * rope_frequencies(dim, base=10000)
    waves = torch.cat((angles.cos(), -angles.sin()), dim=1)
    found = torch.linalg.lstsq(waves, curve[:, None]).solution
    found = torch.complex(*found.view(2, -1))

    q, k = (torch.view_as_complex(x.view(-1, 2)) for x in (q, k))
    content = q * k.conj()
    print("           from q and k  from scores")
    print("pair freq. ampl.  phase ampl.  phase")
    for pair, frequency in enumerate(rope_frequencies(dim, base=10000)):
        print(f"{pair:>4}{frequency:>6.3f}", end="")
        for wave in (content[pair], found[pair]):
            print(f"{wave.abs():>6.2f}{wave.angle():>7.2f}", end="")
        print()
    return {
        "dim": dim,
        "offsets": len(offsets),
        # its last digits are another in each process, as memory lies
        "error": round((found - content).abs().max().item(), 9),
    }


def decay():
    """Two line charts against distance, from 1 to 4096 on a logarithmic
    scale.

    Top: the mean of the partial sums falls on the whole, with ripples. The
    score of two vectors of ones also falls, with larger ripples. Bottom: the
    scores of two other pairs. One ripples around zero at all distances, and
    the other has its peak at distance 50.
    """
    dim, far, chosen = 128, 4096, 50
    frequencies = rope_frequencies(dim, base=10000)
    spaced = torch.logspace(0, math.log10(far), 110).long()
    shown = torch.cat((spaced, torch.tensor([chosen]))).unique() - 1
    distances = torch.arange(1, far + 1)
    turns = distances[:, None] * frequencies
    partial = torch.polar(torch.ones_like(turns), turns).cumsum(-1).abs()
    full = (dim / 2 + 1) / 2  # the mean of the partial sums at distance 0
    q, k = torch.randn(2, dim, dtype=torch.float64)
    fig, axes = plt.subplots(2, 1, figsize=(4.4, 3.9), sharex=True)
    for heights, line, label in (
        (partial.mean(-1) / full, "-", "mean of the |S|"),
        (turns.cos().mean(-1), "--", "score of ones"),
    ):
        axes[0].plot(distances[shown], heights[shown], line, label=label)
    for key, line, label in (
        (k, "-", "random key"),
        (_turn(q, chosen), "--", f"best key for {chosen}"),
    ):
        keys = _turn(key.expand(len(distances), -1), -distances)
        scores = (keys @ q / (q.norm() * key.norm()))[shown]
        axes[1].plot(
            distances[shown], scores, line, linewidth=1.2, label=label
        )
    for ax in axes:
        ax.set_xscale("log")
        ax.axhline(0, color="gray", linewidth=0.8)
        ax.legend()
    axes[0].set_ylim(-0.1, 1.05)
    axes[1].set_ylim(-0.4, 1.05)
    axes[0].set_ylabel("ratio to distance 0")
    axes[1].set_ylabel("score / (|q| |k|)")
    axes[1].set_xlabel("distance (positions)")
    h = torch.view_as_complex(q.view(-1, 2) + 0)
    h = h * torch.view_as_complex(k.view(-1, 2) + 0).conj()
    steps = torch.cat((h, torch.zeros(1, dtype=h.dtype))).diff().abs()
    bound = steps.max() * partial.sum(-1) / (q.norm() * k.norm())
    return fig, {
        "dim": dim,
        "far": far,
        "chosen": chosen,
        "loosest": bound.max(),
        "tightest": bound.min(),
    }


def spread():
    q, k = torch.randn(2, 10_000, 64, dtype=torch.float64)
    print("distance   mean score   deviation")
    for distance in (0, 1, 10, 100, 1000, 10_000):
        scores = (q * _turn(k, -distance)).sum(-1) / 8
        mean = scores.mean().round(decimals=2) + 0.0  # no minus zero
        print(f"{distance:>8}   {mean:10.2f}   {scores.std():9.2f}")
    return {"pairs": len(q)}


def wavelengths():
    """Line chart of the wavelength of each pair for three bases, on a
    logarithmic scale. All lines rise; the larger the base, the steeper the
    line. A dashed line marks the length of a text.
    """
    dim, tokens = 128, 4096
    fig, ax = plt.subplots()
    values = {"dim": dim, "pairs": dim // 2, "tokens": tokens}
    bases = {"small": BASE, "large": 500_000.0, "larger": 1_000_000.0}
    for (name, base), line in zip(
        bases.items(), ("-", "--", ":"), strict=True
    ):
        waves = 2 * math.pi / rope_frequencies(dim, base)
        ax.semilogy(waves, line, label=f"base {base:,.0f}")
        values[f"{name}_base"] = base
        values[f"{name}_longest"] = waves[-1]
        values[f"{name}_unfinished"] = (waves > tokens).sum()
        values[f"{name}_unseen"] = (waves >= 2 * tokens).sum()
    ax.axhline(tokens, color="gray", linestyle="--", linewidth=1)
    ax.text(0, 1.5 * tokens, f"{tokens:,} positions")
    ax.set_xlabel("pair")
    ax.set_ylabel("wavelength (positions)")
    name_lines(ax)
    return fig, values


def three_ways():
    x, position = torch.randn(8, dtype=torch.float64), torch.tensor([5])
    frequencies = rope_frequencies(8, base=10000)
    tables = rope_tables(position, frequencies, x.dtype)
    made = apply_rope(x[None], *tables, "interleaved")[0]

    angles = position * frequencies  # one for each of four pairs
    points = torch.view_as_complex(x.view(4, 2))
    rotated = points * torch.polar(torch.ones(4).double(), angles)
    as_complex = torch.view_as_real(rotated).flatten()

    cos, sin = angles.cos(), angles.sin()
    blocks = torch.stack((cos, -sin, sin, cos), -1).view(4, 2, 2)
    as_matrix = torch.block_diag(*blocks) @ x

    for other in (as_complex, as_matrix):
        assert (made - other).abs().max() < 1e-14
    print(made.view(4, 2))


def shapes():
    q = torch.randn(2, 8, 5, 64)  # batch, heads, tokens, channels
    k = torch.randn(2, 2, 5, 64)  # fewer heads for keys
    full, quarter = (rope_frequencies(dim, base=10000) for dim in (64, 16))
    row = torch.arange(5)  # the same positions for every sequence
    padded = torch.tensor([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]])

    for name, x, positions, frequencies in (
        ("q", q, row, full),
        ("k", k, row, full),
        ("left-padded", q, padded, full),
        ("partial", q, row, quarter),
    ):
        cos, sin = rope_tables(positions, frequencies)  # without heads
        rotated = apply_rope(x, cos, sin, "half")
        print(f"{name:<12}{tuple(positions.shape)!s:<11}", end="")
        print(f"{tuple(frequencies.shape)!s:<6}{tuple(rotated.shape)}")


class _Waves(TorchDispatchMode):
    """Counts the cosines and sines that are made."""

    made = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if function in (
            torch.ops.aten.cos.default,
            torch.ops.aten.sin.default,
        ):
            self.made += result.numel()
        return result


def once_per_model():
    layers, tokens, dim = 24, 512, 64
    frequencies = rope_frequencies(dim, base=10000)

    def in_every_layer(x, positions):
        for _ in range(2 * layers):  # queries and keys
            tables = rope_tables(positions, frequencies)
            made = apply_rope(x, *tables, "half")
        return made

    def once(x, positions):
        tables = rope_tables(positions, frequencies)
        for _ in range(2 * layers):
            made = apply_rope(x, *tables, "half")
        return made

    text, token = torch.arange(tokens), torch.tensor([tokens])
    print("cosines and sines  full text   one token")
    values, results = {"layers": layers, "tokens": tokens, "dim": dim}, []
    for make in (in_every_layer, once):
        counts = []
        for positions in (text, token):
            x = torch.ones(len(positions), dim)
            with _Waves() as waves:
                results.append(make(x, positions))
            counts.append(waves.made)
        print(f"{make.__name__:<16}{counts[0]:>12,}{counts[1]:>12,}")
        values[make.__name__] = counts[1]
    assert all(map(torch.equal, results[:2], results[2:]))
    return values | {"times": values["in_every_layer"] // values["once"]}


def with_a_cache():
    q, k, v = torch.randn(3, 1, 8, 6, 64)
    cos, sin = rope_tables(torch.arange(6), rope_frequencies(64, base=10000))

    def rotate(x, rows):
        return apply_rope(x, cos[rows], sin[rows], "half")

    six, last = slice(6), slice(5, 6)
    whole = attend(rotate(q, six), rotate(k, six), v, is_causal=True)

    cache = rotate(k[..., :5, :], slice(5))  # rotated once, then stored
    keys = torch.cat((cache, rotate(k[..., 5:, :], last)), dim=-2)
    step = attend(rotate(q[..., 5:, :], last), keys, v)

    error = (step - whole[..., 5:, :]).abs().max()
    assert error < 1e-5
    print("same output for the last token:", tuple(step.shape))


def convert():
    heads, dim = 4, 16
    x = torch.randn(10, 32, dtype=torch.float64)  # ten tokens
    wq, wk = torch.randn(2, heads * dim, 32, dtype=torch.float64) / 6
    frequencies = rope_frequencies(dim, base=10000)
    tables = rope_tables(torch.arange(10), frequencies, x.dtype)

    def scores(wq, wk, layout):
        q, k = ((x @ w.mT).view(10, heads, dim) for w in (wq, wk))
        # tokens, heads, channels: the heads are the last axis but one
        q, k = (apply_rope(part, *tables, layout, -2) for part in (q, k))
        return q.transpose(0, 1) @ k.permute(1, 2, 0) / math.sqrt(dim)

    expected = scores(wq, wk, "interleaved")
    other = [interleaved_to_half(w, heads) for w in (wq, wk)]
    for name, made in (
        ("converted, half", scores(*other, "half")),
        ("not converted, half", scores(wq, wk, "half")),
        ("converted, interleaved", scores(*other, "interleaved")),
    ):
        print(f"{name:<33}{(made - expected).abs().max():.0e}")
    return {"deviation": expected.std()}


def precision():
    print("position    float32   float16  bfloat16")
    frequencies = rope_frequencies(128, base=10000)
    for position in (100, 257, 4096, 131_071, 1_000_003):
        exact = (position * frequencies).cos()
        print(f"{position:>9,}", end="")
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            rounded = torch.tensor(position).to(dtype) * frequencies.to(dtype)
            error = (rounded.double().cos() - exact).abs().max()
            cell = f"{error:.0e}" if error.isfinite() else "overflow"
            print(f"{cell:>10}", end="")
        print()
    return {"dim": 128}


def looks_back():
    trained, tested, back, dim = 64, 512, 5, 64
    frequencies = rope_frequencies(dim, base=10000)
    q, k = (0.3 * torch.randn(2, dim)).unbind()
    q, k = q.requires_grad_(), k.requires_grad_()

    def weights(count, step=1.0):
        """Return the logarithms of the attention weights."""
        tables = rope_tables(torch.arange(count) * step, frequencies)
        queries, keys = (
            apply_rope(x.expand(count, -1), *tables, "half") for x in (q, k)
        )
        later = torch.ones(count, count).triu(1) > 0
        scores = queries @ keys.T / math.sqrt(dim)
        return scores.masked_fill(later, -math.inf).log_softmax(-1)

    optimizer = torch.optim.Adam([q, k], lr=0.04)
    for _ in range(UPDATES):
        optimizer.zero_grad()
        loss = -weights(trained).diagonal(-back).mean()
        loss.backward()
        optimizer.step()
    found = weights(tested).detach().exp().diagonal(-back)
    squeezed = weights(tested, trained / tested).detach().exp()
    return {
        "dim": dim,
        "trained": trained,
        "tested": tested,
        "back": back,
        "inside": found[: trained - back].min(),
        "outside": found[trained - back :].min(),
        "divided": squeezed.diagonal(-back).mean(),
    }


def beyond_training():
    """Line chart of two scores by distance, on a logarithmic scale.

    In the grey band, the distances in training, the score of the same word is
    high and level, and that of the best other word is low. To the right of
    the band, the first curve falls and the second rises, until they are close
    together.
    """
    trained, far, words, heads, dim = 32, 1024, 16, 3, 32
    matches, others, shares, divided = zip(
        *(
            _train_to_match(trained, far, words, dim, seed)
            for seed in range(heads)
        ),
        strict=True,
    )
    shares = torch.stack(shares).mean(0)
    fig, ax = plt.subplots(figsize=(4.4, 2.8))
    shown = torch.logspace(0, math.log10(far - 1), 80).long().unique()
    ax.axvspan(1, trained - 1, color="gray", alpha=0.2, linewidth=0)
    ax.plot(shown, matches[0][shown], label="same word")
    ax.plot(shown, others[0][shown], "--", label="best other word")
    ax.set_xscale("log")
    ax.set_xlabel("distance (positions)")
    ax.set_ylabel("score")
    name_lines(ax)
    return fig, {
        "dim": dim,
        "trained": trained,
        "words": words,
        "heads": heads,
        "right": far // 2,
        "inside": shares[:trained].min(),
        "outside": shares[far // 2 :].mean(),
        "divided": torch.stack(divided).min(),
    }


def _train_to_match(trained, far, words, dim, seed):
    """Return, by distance: the score of a word with itself, the score of the
    best other word, and the fraction of words that prefer themselves; then
    that fraction again, with all distances divided to fit into those of
    training.
    """
    generator = torch.Generator().manual_seed(seed)
    frequencies = rope_frequencies(dim, base=10000)
    distances = torch.arange(far)
    tables = rope_tables(-distances[:trained], frequencies)
    queries, keys = torch.randn(2, words, dim, generator=generator) * 0.3
    queries, keys = queries.requires_grad_(), keys.requires_grad_()
    optimizer = torch.optim.Adam([queries, keys], lr=0.02)
    for _ in range(200):
        asked = torch.randint(words, (32,), generator=generator)
        target = torch.randint(trained, (32,), generator=generator)
        text = torch.randint(1, words, (32, trained), generator=generator)
        text = (text + asked[:, None]) % words  # anything but what is asked
        text[torch.arange(32), target] = asked
        seen = apply_rope(keys[text], *tables, "half")
        scores = (seen @ queries[asked][..., None])[..., 0] / math.sqrt(dim)
        optimizer.zero_grad()
        cross_entropy(scores, target).backward()
        optimizer.step()
    diagonal = torch.eye(words, dtype=torch.bool)

    def judge(positions):
        everywhere = keys[:, None].expand(-1, far, -1)
        tables = rope_tables(-positions, frequencies)
        seen = apply_rope(everywhere, *tables, "half")
        scores = torch.einsum("qc,kdc->dqk", queries, seen) / math.sqrt(dim)
        itself = scores.diagonal(dim1=1, dim2=2)
        other = scores.masked_fill(diagonal, -math.inf).amax(-1)
        share = (itself > other).double().mean(-1)
        return itself.mean(-1), other.mean(-1), share

    with torch.no_grad():
        _, _, divided = judge(distances * ((trained - 1) / (far - 1)))
        return *judge(distances), divided
