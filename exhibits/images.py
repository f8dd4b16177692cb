"""What the chapter on pictures and films shows."""

import math
import re

import matplotlib.pyplot as plt
import torch
from executable_prose import Choice, Live, Slider

from snippets.axial_rope import (
    axes_tables,
    axial_frequencies,
    golden_frequencies,
    mixed_frequencies,
    patch_centres,
    turn_by_axes,
)
from snippets.mrope import AFTER, Grid, mrope_positions, mrope_tables
from snippets.rope import rope_frequencies
from snippets.sinusoidal_2d import axial_sinusoids, grid_places
from snippets.vit_table import CONVENTIONS, resize_table

SIDE, DIM = 15, 64
SLOWEST, FASTEST = 0.1, 1.0  # of golden directions, in radians per patch
SHARE = 0.9  # of a period, to which the code of RIFLEx lowers a pair
PROMPTS = {
    "a picture": [4, Grid(1, 3, 4), 3],
    "two pictures": [2, Grid(1, 2, 3), 2, Grid(1, 3, 3), 2],
    "a film": [3, Grid(7, 2, 2), 4],
    "frames with times": [1, *(2, Grid(1, 2, 2)) * 4, 3],
}
MAKERS = {
    "wan": ("Wan 2.1", (44, 42, 42)),
    "flux": ("FLUX.1 and Qwen-Image", (16, 56, 56)),
}
TOKENS = 36  # room for the longest prompt


def _scene(ax):
    """A man and a dog that bites him, in a field of three by three."""
    line = {"color": "black", "lw": 1.4}
    ax.add_patch(plt.Circle((2.25, 2.4), 0.22, fill=False, **line))
    for x, y in (
        ((2.25, 2.25), (2.18, 1.15)),
        ((2.25, 1.95, 2.5), (1.15, 0.3, 0.3)),
        ((2.25, 2.7), (1.9, 1.5)),
        ((2.25, 1.75), (1.9, 1.45)),
    ):
        ax.plot(x, y, **line)
    ax.add_patch(plt.Circle((1.45, 1.35), 0.2, fill=False, **line))
    for x, y in (
        ((1.35, 0.5), (1.17, 1.0)),
        ((1.2, 1.3), (1.1, 0.3)),
        ((0.6, 0.5), (1.0, 0.3)),
        ((0.5, 0.2), (1.0, 1.4)),
        ((1.62, 1.8), (1.42, 1.42)),
    ):
        ax.plot(x, y, **line)
    ax.plot([0, 3], [0.3, 0.3], color="gray", lw=0.8)


def torn():
    """A picture of a dog that bites a man, cut into nine squares, and below
    it the nine squares in a line. Two that are framed touch in the picture;
    in the line two others stand between them.
    """
    fig = plt.figure(figsize=(4.4, 3.6))
    cells = [(row, column) for row in range(3) for column in range(3)]
    for place, (row, column) in enumerate(cells):
        for left, low, size in (
            (0.29 + 0.145 * column, 0.83 - 0.177 * row, 0.135),
            (0.005 + 0.111 * place, 0.12, 0.101),
        ):
            ax = fig.add_axes((left, low, size, size * 4.4 / 3.6))
            _scene(ax)
            ax.set(xlim=(column, column + 1), ylim=(2 - row, 3 - row))
            ax.set(xticks=[], yticks=[])
            framed = column == 1 and row > 0
            for side in ax.spines.values():
                side.set(visible=True, color="C1" if framed else "gray")
                side.set_linewidth(2.5 if framed else 0.6)
    return fig, {"between": cells.index((2, 1)) - cells.index((1, 1)) - 1}


def _vectors():
    """Frequency vectors of a head, in radians per patch: (2, pairs)."""
    return {
        "axial RoPE": axial_frequencies(DIM, "each", base=100),
        "golden directions": golden_frequencies(DIM, 1, SLOWEST, FASTEST)[0],
    }


def field():
    """A square of cells, one for each patch. With axial RoPE the row and the
    column of the chosen patch are dark: a cross. With golden directions only
    its surroundings are.
    """
    places = grid_places((SIDE, SIDE), start=0).flatten(0, 1)

    def similar(kind, row, column):
        place = torch.stack((row, column))[None]
        w, same = _vectors()[kind], torch.ones(SIDE**2, DIM)
        turned = turn_by_axes(same, *axes_tables(places, w), "half")
        one = turn_by_axes(same[:1], *axes_tables(place, w), "half")
        likeness = turned @ one[0] / DIM
        cells = likeness.unflatten(0, (SIDE, SIDE))
        return {
            "field": cells,
            "patch": torch.stack((column, row))[None],
            "edge": cells[:, 0].index_select(0, row.long()[None])[0],
            "corner": cells[0, 0],
        }

    live = Live(
        similar,
        {
            "kind": Choice(
                "by",
                tuple(_vectors()),
                "axial RoPE",
            ),
            "row": Slider("row", 0, SIDE - 1, 7),
            "column": Slider("column", 0, SIDE - 1, 9, drag="patch"),
        },
        says="With {kind}, the patch in row {row:.0f} and column "
        "{column:.0f} and the first of its row are {edge:.2f} alike, it and "
        "the first of all {corner:.2f}.",
        call="import torch\n"
        "from axial_rope import axes_tables, axial_frequencies\n"
        "from axial_rope import golden_frequencies, turn_by_axes\n\n"
        f"places = torch.cartesian_prod(*2 * [torch.arange({SIDE})])\n"
        'if "{kind}" == "axial RoPE":\n'
        f'    vectors = axial_frequencies({DIM}, "each", 100)\n'
        "else:\n"
        f"    vectors = golden_frequencies({DIM}, 1, 0.1, 1)[0]\n"
        f"same = torch.ones({SIDE**2}, {DIM})\n"
        "tables = axes_tables(places, vectors)\n"
        'turned = turn_by_axes(same, *tables, "half")\n'
        f"field = turned @ turned[{SIDE} * {{row}} + {{column}}] / {DIM}\n"
        f"field[{SIDE} * {{row}}]\n"
        "field[0]",
        draws={"field": "field"},
        tolerance=1e-6,
    )
    made = live.start()
    fig, ax = plt.subplots(figsize=(3.4, 3.4))
    live.moves["field"] = ax.imshow(
        made["field"], cmap="signed", vmin=-1, vmax=1
    )
    (live.moves["patch"],) = ax.plot(*made["patch"].T, "ko")
    ax.set(xticks=range(0, SIDE, 2), yticks=range(0, SIDE, 2))
    ax.set(xlabel="column", ylabel="row")
    return fig, {"side": SIDE, "slowest": SLOWEST, "fastest": FASTEST}, live


def prompt():
    positions = mrope_positions(
        [3, Grid(1, 2, 3), 2], merge=1, after="largest"
    )
    words = ["the", "dog", "here:", *"▦" * 6, "bites", "him"]
    print("token ", *(f"{word:>6}" for word in words), sep="")
    for name, axis in zip(
        ("time", "row", "column"), positions.T, strict=True
    ):
        print(f"{name:<6}", *(f"{place:>6}" for place in axis), sep="")
    return {"tokens": len(words), "last": positions.max()}


def _code(prompt):
    """As it is written, without the step that it leaves alone."""
    return re.sub(r", step=[\d.]+|\w+=", "", str(prompt))


def _placed(prompt, after):
    positions = mrope_positions(prompt, merge=1, after=after).double()
    room = torch.full((TOKENS - len(positions), 3), math.inf).double()
    lines = torch.cat((positions, room)).T
    at, words = torch.arange(TOKENS).double(), prompt[-1]
    made = {
        name: torch.stack((at, line), 1)
        for name, line in zip(("time", "row", "column"), lines, strict=True)
    }
    return made | {
        "tokens": torch.tensor(float(len(positions))),
        "largest": positions[:-words].max(),
        "next": positions[-words, 0],
    }


def prompts():
    """Three lines over the tokens of a prompt. In text they run together and
    climb. In a picture time stands still, the row climbs in steps and the
    column like a saw; behind it all three go on together.
    """

    made = {
        (kind, after): _placed(PROMPTS[kind], after)
        for kind in PROMPTS
        for after in AFTER
    }

    def places(kind, after):
        return {name: each + 0.0 for name, each in made[kind, after].items()}

    live = Live(
        places,
        {
            "kind": Choice("prompt", tuple(PROMPTS), "a picture"),
            "after": Choice("text goes on", AFTER, "largest"),
        },
        says="The prompt has {tokens:.0f} tokens. Before its last words the "
        "largest position is {largest:.0f}; they begin at {next:.0f}.",
        call="from mrope import Grid, mrope_positions\n\n"
        "prompts = dict([\n"
        + "".join(f'    ("{n}", {_code(p)}),\n' for n, p in PROMPTS.items())
        + "])\n"
        'prompt = prompts["{kind}"]\n'
        'positions = mrope_positions(prompt, merge=1, after="{after}")\n'
        "time, row, column = positions.T\n"
        "len(positions)\n"
        "positions[:-prompt[-1]].max()\n"
        "time[-prompt[-1]]",
        title="The positions, in code",
    )
    shown = live.start()
    fig, ax = plt.subplots(figsize=(4.4, 3.6))
    for name, style in (("time", "o-"), ("row", "s--"), ("column", "^:")):
        (live.moves[name],) = ax.plot(
            *shown[name].T, style, markersize=3.5, label=name
        )
    ax.set(xlim=(-1, TOKENS), ylim=(-0.5, 16), xlabel="token")
    ax.set_ylabel("position")
    ax.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1))
    return fig, live


def by_heads():
    prompt = [2, Grid(frames=1, rows=2, columns=3), 1]
    positions = mrope_positions(prompt, merge=1, after="largest")
    frequencies = rope_frequencies(8, base=10000)
    heads = [
        mrope_tables(positions, frequencies, torch.full((4,), axis))
        for axis in (0, 1, 1, 2, 2)
    ]
    cos, sin = (torch.stack(tables) for tables in zip(*heads, strict=True))
    turned = turn_by_axes(torch.randn(5, 9, 8), cos, sin, "half")
    print(tuple(turned.shape))  # heads, tokens, dim
    return {"heads": len(turned)}


def makers():
    """The pairs of the time axis of models that generate images or videos."""
    print("| Model | Channels of time, row, column | Slowest pair of time |")
    print("|---|---|--:|")
    values = {}
    for key, (name, dim) in MAKERS.items():
        time = axial_frequencies(dim, "each", base=10000)[0]
        slowest = 2 * math.pi / time[time > 0].min()
        sides = ", ".join(map(str, dim))
        print(f"| {name} | {sides} | once in {slowest:,.0f} frames |")
        values[key] = slowest
    return values


def loop():
    """A wave over the frames of a video. After one period it is where it
    began, and begins again; lowered, it does not come round before the end.
    """
    speeds, frames = rope_frequencies(16, base=256), torch.arange(121)

    def turns(pair, length):
        speed = speeds.index_select(0, pair.long()[None])[0]
        lowered = torch.minimum(speed, SHARE * 2 * math.pi / length)
        at = torch.where(frames <= length, frames, math.inf)

        def wave(speed):
            return torch.stack((at, (frames * speed).cos()), 1)

        return {
            "as trained": wave(speed),
            "lowered": wave(lowered),
            "period": 2 * math.pi / speed,
            "times": length * speed / (2 * math.pi),
        }

    live = Live(
        turns,
        {
            "pair": Slider("pair", 0, 7, 3),
            "length": Slider("frames", 10, 120, 96),
        },
        says="Pair {pair:.0f} comes round every {period:.1f} frames, and "
        "{times:.1f} times in a film of {length:.0f}.",
        call="import math\n"
        "from rope import rope_frequencies\n\n"
        "speed = rope_frequencies(16, base=256)[{pair}]\n"
        "2 * math.pi / speed\n"
        "{length} * speed / (2 * math.pi)",
        title="The numbers, in code",
        tolerance=1e-9,
    )
    made = live.start()
    fig, ax = plt.subplots(figsize=(4.4, 2.5))
    for name, style in (("as trained", "C1-"), ("lowered", "C2--")):
        (live.moves[name],) = ax.plot(*made[name].T, style, label=name)
    ax.set(xlim=(0, 120), ylim=(-1.1, 1.1), xlabel="frame")
    ax.set_ylabel("cosine of the angle")
    ax.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1))
    return fig, {"period": made["period"], "share": SHARE}, live


def far_off():
    """How many positions a row of patches has, by dtype, far from zero."""
    values, far, patches = {}, 65_536, 64
    print(f"patches in a row of {patches}, and how many positions they have")
    for start in (0, 256, far):
        row = start + torch.arange(patches)
        for dtype in (torch.float32, torch.bfloat16):
            places = row.to(dtype).unique().numel()
            kind = str(dtype).removeprefix("torch.")
            print(f"  counted from {start:>6,} in {kind:<8} {places:>3}")
            values[f"{kind}_{start}"] = places
    steps = (
        (far + torch.arange(1024))
        .bfloat16()
        .unique_consecutive(return_counts=True)
    )
    return values | {
        "far": far,
        "patches": patches,
        "step": steps[0][1] - steps[0][0],
        "most": steps[1][0],
    }


def moved():
    """What a score makes of it if the picture moves, or is cut."""
    x = torch.randn(36, DIM, dtype=torch.float64)
    places = grid_places((6, 6), start=0).flatten(0, 1)
    kept = places[:, 1] < 4
    width = {"dim": DIM, "order": (0, 1), "layout": "sin_cos", "base": 10000}

    def added(encoding):
        y = x + encoding
        return y @ y.mT

    def turned(at, w):
        y = turn_by_axes(x, *axes_tables(at, w, torch.float64), "half")
        return y @ y.mT

    def sinusoids(at):
        return added(axial_sinusoids(at, dtype=torch.float64, **width))

    axial = axial_frequencies(DIM, "each", 100)
    mixed = mixed_frequencies(DIM, 1, base=10)[0]
    centres = 2 * math.pi * axial
    shares = grid_places((6, 6), start=1, span=2 * math.pi).flatten(0, 1)
    cut_shares = grid_places((6, 4), start=1, span=2 * math.pi)
    cut_centres = patch_centres(6, 4)
    further = torch.tensor([2, 5])
    rows = {
        "two sinusoids, counted": (
            sinusoids(places),
            sinusoids(places + further),
            sinusoids(places),
        ),
        "two sinusoids, in shares": (
            sinusoids(shares),
            sinusoids(shares + further / 6 * 2 * math.pi),
            _within(kept, sinusoids, shares, cut_shares.flatten(0, 1)),
        ),
        "axial RoPE, counted": (
            turned(places, axial),
            turned(places + further, axial),
            turned(places, axial),
        ),
        "mixed RoPE, counted": (
            turned(places, mixed),
            turned(places + further, mixed),
            turned(places, mixed),
        ),
        "axial RoPE, centres": (
            turned(patch_centres(6, 6), centres),
            turned(patch_centres(6, 6) + further / 3, centres),
            _within(
                kept,
                lambda at: turned(at, centres),
                patch_centres(6, 6),
                cut_centres,
            ),
        ),
    }
    print("| Positions | Moved | Cut |")
    print("|---|---|---|")
    values = {}
    for name, (first, away, cut) in rows.items():
        pairs = kept[:, None] & kept
        changes = (
            (away - first).abs().max(),
            (cut - first)[pairs].abs().max(),
        )
        cells = ("other" if each > 1e-6 else "same" for each in changes)
        print(f"| {name} |", *(f"{each} |" for each in cells))
        key = name.replace(",", "").replace(" ", "_").lower()
        values |= dict(
            zip((f"{key}_moved", f"{key}_cut"), changes, strict=True)
        )
    return values


def resized():
    """How far a table is off that went to another size and came back."""
    patches = _smooth(grid_places((14, 14), start=0).flatten(0, 1))
    smooth = torch.cat((torch.zeros(1, 8), patches))
    print("| Convention | Finer and back | Coarser and back |")
    print("|---|--:|--:|")
    values = {}
    for convention in CONVENTIONS:
        named = {"convention": convention, "extra": 1}
        off = []
        for to in ((24, 24), (7, 7)):
            there = resize_table(smooth, (14, 14), to, **named)
            back = resize_table(there, to, (14, 14), **named)
            off.append(((back - smooth).norm() / smooth.norm()).item())
        print(f"| `{convention}` |", *(f"{each:.3f} |" for each in off))
        values |= {f"{convention}_finer": off[0], convention: off[1]}
    return values


def _smooth(places):
    """A table whose rows change slowly from place to place: (rows, 8)."""
    waves = places / 14 * 2 * math.pi
    return torch.stack(
        [
            turn(n * wave)
            for wave in waves.unbind(-1)
            for n in (1, 2)
            for turn in (torch.sin, torch.cos)
        ],
        -1,
    ).float()


def _within(kept, scores, places, cut):
    """Scores at places of which those that are kept are others."""
    at = places.clone()
    at[kept] = cut
    return scores(at)
