"""Figures and tables of the chapter on images and video."""

import math
import re

import matplotlib.pyplot as plt
import torch
from executable_prose import Choice, Live, Slider

from snippets.axial_rope import (
    apply_axial_rope,
    axial_frequencies,
    axial_rope_tables,
    golden_frequencies,
    mixed_frequencies,
    patch_coordinates,
)
from snippets.mrope import TEXT_STARTS, Grid, mrope_positions, mrope_tables
from snippets.rope import rope_frequencies
from snippets.sinusoidal_2d import axial_sinusoids, grid_positions
from snippets.vit_table import CONVENTIONS, resize_table

SIDE, DIM = 15, 64
SLOWEST, FASTEST = 0.1, 1.0  # of golden directions, in radians per patch
SHARE = 0.9  # the fraction of a period to which RIFLEx's code lowers a pair
PROMPTS = {
    "one image": [4, Grid(1, 3, 4), 3],
    "two images": [2, Grid(1, 2, 3), 2, Grid(1, 3, 3), 2],
    "a video": [3, Grid(7, 2, 2), 4],
    "frames with times": [1, *(2, Grid(1, 2, 2)) * 4, 3],
}
MAKERS = {
    "wan": ("Wan 2.1", (44, 42, 42)),
    "flux": ("FLUX.1 and Qwen-Image", (16, 56, 56)),
}
TOKENS = 36  # room for the longest prompt
CODED = {  # encodings and their coordinates
    "two_sinusoids_counted": "added sinusoids, counted in patches",
    "two_sinusoids_in_shares": "added sinusoids, fractions of the image",
    "axial_rope_counted": "axial RoPE, counted in patches",
    "mixed_rope_counted": "mixed RoPE, counted in patches",
    "axial_rope_centres": "axial RoPE, fractions of the image (centres)",
}


def _scene(ax):
    """Draw a man and a dog that bites him, in a field of three by three."""
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
    it the nine squares in a line. Two framed squares touch in the picture; in
    the line, two other squares lie between them.
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
    """Return frequency vectors in radians per patch, of shape (2, pairs)."""
    return {
        "axial RoPE": axial_frequencies(DIM, "each", base=100),
        "golden directions": golden_frequencies(DIM, 1, SLOWEST, FASTEST)[0],
    }


def field():
    """A square of cells, one for each patch. With axial RoPE, the row and the
    column of the chosen patch are dark, which makes a cross. With golden
    directions, only the surroundings of the patch are dark.
    """
    places = grid_positions((SIDE, SIDE), start=0).flatten(0, 1)

    def similar(kind, row, column):
        place = torch.stack((row, column))[None]
        w, same = _vectors()[kind], torch.ones(SIDE**2, DIM)
        turned = apply_axial_rope(same, *axial_rope_tables(places, w), "half")
        one = apply_axial_rope(same[:1], *axial_rope_tables(place, w), "half")
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
                "encoding",
                tuple(_vectors()),
                "axial RoPE",
            ),
            "row": Slider("row", 0, SIDE - 1, 7),
            "column": Slider("column", 0, SIDE - 1, 9, drag="patch"),
        },
        says="With {kind}, the patch in row {row:.0f} and column "
        "{column:.0f} has a similarity of {edge:.2f} to the first patch of "
        "its row and of {corner:.2f} to the first patch of the image.",
        call="import torch\n"
        "from axial_rope import apply_axial_rope, axial_frequencies\n"
        "from axial_rope import axial_rope_tables, golden_frequencies\n\n"
        f"places = torch.cartesian_prod(*2 * [torch.arange({SIDE})])\n"
        'if "{kind}" == "axial RoPE":\n'
        f'    vectors = axial_frequencies({DIM}, "each", 100)\n'
        "else:\n"
        f"    vectors = golden_frequencies({DIM}, 1, 0.1, 1)[0]\n"
        f"same = torch.ones({SIDE**2}, {DIM})\n"
        "tables = axial_rope_tables(places, vectors)\n"
        'turned = apply_axial_rope(same, *tables, "half")\n'
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
    ax.set(xlabel="column of the patch", ylabel="row of the patch")
    return fig, {"side": SIDE, "slowest": SLOWEST, "fastest": FASTEST}, live


def prompt():
    positions = mrope_positions(
        [3, Grid(1, 2, 3), 2], spatial_merge_size=1, text_start="largest"
    )
    words = ["the", "dog", "here:", *"▦" * 6, "bites", "him"]
    print("token ", *(f"{word:>6}" for word in words), sep="")
    for name, axis in zip(
        ("time", "row", "column"), positions.T, strict=True
    ):
        print(f"{name:<6}", *(f"{place:>6}" for place in axis), sep="")
    return {"tokens": len(words), "last": positions.max()}


def _code(prompt):
    """Return the prompt as written, without the step that has its default."""
    return re.sub(r", step=[\d.]+|\w+=", "", str(prompt))


def _placed(prompt, after):
    options = {"spatial_merge_size": 1, "text_start": after}
    positions = mrope_positions(prompt, **options).double()
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
    """Line chart of time, row and column for each token of a prompt.

    In text, the three lines coincide and rise. In an image, time is constant,
    the row rises in steps and the column like a sawtooth; after the image,
    the three lines continue together.
    """

    made = {
        (kind, after): _placed(PROMPTS[kind], after)
        for kind in PROMPTS
        for after in TEXT_STARTS
    }

    def places(kind, after):
        return {name: each + 0.0 for name, each in made[kind, after].items()}

    live = Live(
        places,
        {
            "kind": Choice("prompt", tuple(PROMPTS), "one image"),
            "after": Choice("text continues after", TEXT_STARTS, "largest"),
        },
        says="The prompt has {tokens:.0f} tokens. The largest position "
        "before its last words is {largest:.0f}; these words begin at "
        "{next:.0f}.",
        call="from mrope import Grid, mrope_positions\n\n"
        "prompts = dict([\n"
        + "".join(f'    ("{n}", {_code(p)}),\n' for n, p in PROMPTS.items())
        + "])\n"
        'prompt = prompts["{kind}"]\n'
        "positions = mrope_positions(\n"
        '    prompt, spatial_merge_size=1, text_start="{after}"\n'
        ")\n"
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
    ax.set(xlim=(-1, TOKENS), ylim=(-0.5, 16), xlabel="token (index)")
    ax.set_ylabel("position")
    ax.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1))
    return fig, live


def by_heads():
    prompt = [2, Grid(frames=1, rows=2, columns=3), 1]
    positions = mrope_positions(
        prompt, spatial_merge_size=1, text_start="largest"
    )
    frequencies = rope_frequencies(8, base=10000)
    heads = [
        mrope_tables(positions, frequencies, torch.full((4,), axis))
        for axis in (0, 1, 1, 2, 2)
    ]
    cos, sin = (torch.stack(tables) for tables in zip(*heads, strict=True))
    rotated = apply_axial_rope(torch.randn(5, 9, 8), cos, sin, "half")
    print(tuple(rotated.shape))  # heads, tokens, dim
    return {"heads": len(rotated)}


def makers():
    """Return the longest period of the time axis, by model."""
    print("| Model | Channels for time, row, column | Period |")
    print("|---|---|--:|")
    values = {}
    for key, (name, dim) in MAKERS.items():
        time = axial_frequencies(dim, "each", base=10000)[0]
        slowest = 2 * math.pi / time[time > 0].min()
        sides = ", ".join(map(str, dim))
        print(f"| {name} | {sides} | {slowest:,.0f} frames |")
        values[key] = slowest
    return values


def loop():
    """Two waves against the frames of a video. As trained, the wave repeats
    after one period. With the lowered frequency, it does not complete a
    period before the end of the video.
    """
    trained, frames = rope_frequencies(16, base=256), torch.arange(121)

    def turns(pair, length):
        frequency = trained.index_select(0, pair.long()[None])[0]
        lowered = torch.minimum(frequency, SHARE * 2 * math.pi / length)
        at = torch.where(frames <= length, frames, math.inf)

        def wave(frequency):
            return torch.stack((at, (frames * frequency).cos()), 1)

        return {
            "as trained": wave(frequency),
            "lowered": wave(lowered),
            "period": 2 * math.pi / frequency,
            "times": length * frequency / (2 * math.pi),
        }

    live = Live(
        turns,
        {
            "pair": Slider("pair", 0, 7, 3),
            "length": Slider("length of the video (frames)", 10, 120, 96),
        },
        says="Pair {pair:.0f} has a period of {period:.1f} frames and "
        "completes {times:.1f} periods in a video of {length:.0f} frames.",
        call="import math\n"
        "from rope import rope_frequencies\n\n"
        "frequency = rope_frequencies(16, base=256)[{pair}]\n"
        "2 * math.pi / frequency\n"
        "{length} * frequency / (2 * math.pi)",
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
    """Count the different positions of a row of patches, by dtype."""
    values, far, patches = {}, 65_536, 64
    print(f"different positions in a row of {patches} patches")
    for start in (0, 256, far):
        row = start + torch.arange(patches)
        for dtype in (torch.float32, torch.bfloat16):
            places = row.to(dtype).unique().numel()
            kind = str(dtype).removeprefix("torch.")
            print(f"  counted from {start:>6,}, {kind:<8} {places:>3}")
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
    """Compare scores after an image moves, or after columns are cut off."""
    x = torch.randn(36, DIM, dtype=torch.float64)
    places = grid_positions((6, 6), start=0).flatten(0, 1)
    kept = places[:, 1] < 4
    width = {"dim": DIM, "order": (0, 1), "layout": "sin_cos", "base": 10000}

    def added(encoding):
        y = x + encoding
        return y @ y.mT

    def turned(at, w):
        tables = axial_rope_tables(at, w, torch.float64)
        y = apply_axial_rope(x, *tables, "half")
        return y @ y.mT

    def sinusoids(at):
        return added(axial_sinusoids(at, dtype=torch.float64, **width))

    axial = axial_frequencies(DIM, "each", 100)
    mixed = mixed_frequencies(DIM, 1, base=10)[0]
    centres = 2 * math.pi * axial
    shares = grid_positions((6, 6), start=1, span=2 * math.pi).flatten(0, 1)
    cut_shares = grid_positions((6, 4), start=1, span=2 * math.pi)
    cut_centres = patch_coordinates(6, 4)
    further = torch.tensor([2, 5])
    rows = {
        "two_sinusoids_counted": (
            sinusoids(places),
            sinusoids(places + further),
            sinusoids(places),
        ),
        "two_sinusoids_in_shares": (
            sinusoids(shares),
            sinusoids(shares + further / 6 * 2 * math.pi),
            _within(kept, sinusoids, shares, cut_shares.flatten(0, 1)),
        ),
        "axial_rope_counted": (
            turned(places, axial),
            turned(places + further, axial),
            turned(places, axial),
        ),
        "mixed_rope_counted": (
            turned(places, mixed),
            turned(places + further, mixed),
            turned(places, mixed),
        ),
        "axial_rope_centres": (
            turned(patch_coordinates(6, 6), centres),
            turned(patch_coordinates(6, 6) + further / 3, centres),
            _within(
                kept,
                lambda at: turned(at, centres),
                patch_coordinates(6, 6),
                cut_centres,
            ),
        ),
    }
    print("| Encoding and coordinates | All patches moved | Columns cut |")
    print("|---|---|---|")
    values = {}
    for key, (first, away, cut) in rows.items():
        pairs = kept[:, None] & kept
        changes = (
            (away - first).abs().max(),
            (cut - first)[pairs].abs().max(),
        )
        cells = ("changed" if each > 1e-6 else "same" for each in changes)
        print(f"| {CODED[key]} |", *(f"{each} |" for each in cells))
        values |= dict(
            zip((f"{key}_moved", f"{key}_cut"), changes, strict=True)
        )
    return values


def resized():
    """Measure the error of a table after resizing it and resizing it back."""
    patches = _smooth(grid_positions((14, 14), start=0).flatten(0, 1))
    smooth = torch.cat((torch.zeros(1, 8), patches))
    print("| Method | Finer and back | Coarser and back |")
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
    """Return a table that changes slowly from patch to patch: (rows, 8)."""
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
    """Return scores with other coordinates for the patches that are kept."""
    at = places.clone()
    at[kept] = cut
    return scores(at)
