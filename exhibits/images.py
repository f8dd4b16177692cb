"""What the chapter on pictures and films shows."""

import math

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
from snippets.mrope import Grid, mrope_positions
from snippets.rope import rope_frequencies, rope_tables
from snippets.sinusoidal_2d import axial_sinusoids, grid_places

SIDE, DIM = 15, 64
PROMPTS = {
    "a picture": [4, Grid(1, 3, 4), 3],
    "two pictures": [2, Grid(1, 2, 3), 2, Grid(1, 3, 3), 2],
    "a film": [3, Grid(7, 2, 2), 4],
    "frames with times": [1, *(2, Grid(1, 2, 2)) * 4, 3],
}
TOKENS = 36  # room for the longest prompt


def _scene(ax):
    """A man and a dog that bites him, in a field of three by three."""
    line = {"color": "black", "lw": 1.4, "solid_capstyle": "round"}
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


def _vectors(kind):
    """Frequency vectors of a head, in radians per patch: (2, pairs)."""
    if kind == "golden directions":
        return golden_frequencies(DIM, 1, slowest=0.1, fastest=1.0)[0]
    return axial_frequencies(DIM, "each", base=100)


def field():
    """A square of cells, one for each patch. With axial RoPE, or sinusoids of
    both axes, the row and the column of the chosen patch are dark: a cross.
    With golden directions only its surroundings are.
    """
    places = grid_places((SIDE, SIDE), start=0).flatten(0, 1)

    def similar(kind, row, column):
        place = torch.stack((row, column))[None]
        if kind == "two sinusoids":
            options = {"order": (0, 1), "layout": "sin_cos", "base": 100}
            one = axial_sinusoids(place, DIM, **options)
            likeness = axial_sinusoids(places, DIM, **options) @ one[0]
            likeness = likeness / (DIM // 2)
        else:
            w, same = _vectors(kind), torch.ones(SIDE**2, DIM)
            turned = turn_by_axes(same, *axes_tables(places, w), "half")
            one = turn_by_axes(same[:1], *axes_tables(place, w), "half")
            likeness = turned @ one[0] / DIM
        cells = likeness.unflatten(0, (SIDE, SIDE))
        return {
            "field": cells,
            "patch": torch.stack((column, row))[None],
            "edge": cells[row.long(), 0],
            "corner": cells[0, 0],
        }

    live = Live(
        similar,
        {
            "kind": Choice(
                "by",
                ("axial RoPE", "golden directions", "two sinusoids"),
                "axial RoPE",
            ),
            "row": Slider("row", 0, SIDE - 1, 7),
            "column": Slider("column", 0, SIDE - 1, 9, drag="patch"),
        },
        says="With {kind}, the patch in row {row:.0f} and column "
        "{column:.0f} and the first of its row are {edge:.2f} alike, it and "
        "the first of all {corner:.2f}.",
        call="import torch\n"
        "from axial_rope import axes_tables, axial_frequencies, turn_by_axes\n"
        "from sinusoidal_2d import grid_places\n\n"
        f"places = grid_places(({SIDE}, {SIDE}), start=0).flatten(0, 1)\n"
        f'tables = axes_tables(places, axial_frequencies({DIM}, "each", 100))\n'
        f'turned = turn_by_axes(torch.ones({SIDE**2}, {DIM}), *tables, "half")\n'
        f"one = turned[{SIDE} * {{row}} + {{column}}]\n"
        f"field = (turned @ one / {DIM}).unflatten(0, ({SIDE}, {SIDE}))\n"
        "field[{row}, 0]\n"
        "field[0, 0]",
        draws={"field": "field"},
        tolerance=1e-6,
    )
    made = live.start()
    fig, ax = plt.subplots(figsize=(3.4, 3.4))
    live.moves["field"] = ax.imshow(
        made["field"], cmap="signed", vmin=-1, vmax=1
    )
    (live.moves["patch"],) = ax.plot(*made["patch"].T, "ko")
    ax.set(xlabel="column", ylabel="row")
    return fig, {"side": SIDE}, live
