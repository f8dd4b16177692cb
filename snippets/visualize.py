# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-23
"""Figures of positions: tensors in, matplotlib figures out.

This file needs matplotlib in addition to torch. It does not use pyplot, changes
no setting of matplotlib, and shows or saves nothing until you do so:

    encoding_heatmap(encoding, theme="dark").savefig("encoding.png")

Zero has the colour of the page. Of signed values, blue is negative and orange
positive, on a symmetric scale. Attention weights have no sign: the bluer, the
larger. Keys that a bias hides are grey.

References:
    Figures without pyplot: web_application_server_sgskip.html in
    matplotlib.org/stable/gallery/user_interfaces.
"""

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from torch import Tensor

# page, ink, grey, then blue, orange, green and purple
THEMES = (
    ("light", "#ffffff #000000 #808080 #0060a8 #c44e00 #007a5a #a3477f"),
    ("dark", "#161c24 #e3e9ef #97a3b0 #6cb4f5 #ff9a5c #45cfa5 #ee9dcd"),
)
STYLES = ("-", "--", ":", "-.")


def encoding_heatmap(
    encoding: Tensor,  # (positions, dim)
    theme: str = "light",
) -> Figure:
    """Draw an encoding, with positions downwards and dimensions across.

    Args:
        encoding: Positional encoding, shape `(positions, dim)`.
        theme: "light" or "dark".

    Returns:
        The figure.

    Raises:
        ValueError: If `encoding` has a wrong shape or is not finite, or `theme`
            is unknown.

    Example:
        >>> import torch
        >>> encoding_heatmap(torch.zeros(8, 4)).axes[0].get_ylabel()
        'position'
    """
    rows = _numbers("encoding", encoding, 2, "(positions, dim)")
    figure, (ax,), colors = _figure(theme, 1, (4.4, 3.4))
    _image(figure, [(ax, rows)], colors, rows.abs().max().item(), signed=True)
    ax.set(xlabel="dimension", ylabel="position")
    return figure


def similarity_map(
    similarity: Tensor,  # (positions, positions)
    theme: str = "light",
) -> Figure:
    """Draw the similarity of each pair of rows, from -1 to 1.

    Args:
        similarity: Similarities from -1 to 1, shape `(positions, positions)`.
        theme: "light" or "dark".

    Returns:
        The figure.

    Raises:
        ValueError: If `similarity` is not square or finite, or not from -1 to
            1, or `theme` is unknown.
    """
    square = _numbers("similarity", similarity, 2, "(positions, positions)")
    shape, values = tuple(square.shape), square.flatten()
    worst = values[values.abs().argmax()].item()
    if shape[0] != shape[1]:
        raise ValueError(f"similarity must be square, got {shape}")
    if abs(worst) > 1 + 1e-3:
        raise ValueError(f"similarity must be -1 to 1, got {worst:.4g}")
    figure, (ax,), colors = _figure(theme, 1, (4.0, 3.4))
    _image(figure, [(ax, square)], colors, 1.0, signed=True)
    ax.set(xlabel="position", ylabel="position")
    return figure


def attention_heads(
    weights: Tensor,  # (heads, queries, keys), or a bias of this shape
    queries: Sequence[str],
    keys: Sequence[str] | None = None,
    theme: str = "light",
) -> Figure:
    """Draw one map per head, with a row per query and a column per key.

    All heads share one scale, from 0 to the largest weight. A bias or scores
    may be passed instead of weights: if any is negative, the scale is signed,
    and where one is -inf, the key is hidden and its cell grey.

    Args:
        weights: Attention weights, a bias or scores, shape
            `(heads, queries, keys)`.
        queries: Labels of the queries.
        keys: Labels of the keys; None uses the labels of the queries.
        theme: "light" or "dark".

    Returns:
        The figure.

    Raises:
        ValueError: If `weights` has a wrong shape or contains nan or inf, the
            number of labels differs from that of the tokens, or `theme` is
            unknown.

    Example:
        >>> import torch
        >>> figure = attention_heads(torch.tensor([[[0.0, -2.0]]]), "a", "bc")
        >>> figure.axes[0].images[0].get_clim()
        (-2.0, 2.0)
    """
    hidden = weights == -math.inf
    shown = weights.masked_fill(hidden, 0)
    heads = _numbers("weights", shown, 3, "(heads, queries, keys)")
    most, signed = heads.abs().max().item(), heads.min().item() < 0
    heads = heads.masked_fill(hidden.to("cpu"), math.nan)
    labels = (queries, queries if keys is None else keys)
    for name, given, count in zip(
        ("queries", "keys"), labels, heads.shape[1:], strict=True
    ):
        if len(given) != count:
            raise ValueError(f"{name} must be {count} labels, got {len(given)}")
    across = min(len(heads), 4)
    high, wide = (0.9 + 0.22 * count for count in heads.shape[1:])
    size = (0.8 + wide * across, high * math.ceil(len(heads) / across))
    figure, axes, colors = _figure(theme, len(heads), size)
    panels = list(zip(axes, heads, strict=True))
    _image(figure, panels, colors, most, signed)
    for number, ax in enumerate(axes):
        ax.set_title(f"head {number}", color=colors[1], fontsize=9)
        ax.set_yticks(range(len(labels[0])), labels[0])
        ax.set_xticks(range(len(labels[1])), labels[1], rotation=90)
        for label in (*ax.get_xticklabels(), *ax.get_yticklabels()):
            label.set_parse_math(False)  # a token may hold dollar signs
    return figure


def attention_by_distance(
    mass: Tensor,  # (heads, distances)
    equal: Tensor | None = None,  # (distances)
    theme: str = "light",
) -> Figure:
    """Draw one line per head: the mean weight at each distance from 0.

    Args:
        mass: Mean weight over all queries, shape `(heads, distances)`, with at
            most 16 heads.
        equal: Mean weight at these distances if all weights were equal, shape
            `(distances,)`, drawn in grey. Without it, a causal head seems to
            prefer near keys even if it has no preference. None draws no such
            line.
        theme: "light" or "dark".

    Returns:
        The figure.

    Raises:
        ValueError: If `mass` or `equal` does not have the shape described above
            or is not finite, or `theme` is unknown.
    """
    lines = _numbers("mass", mass, 2, "(heads, distances)")
    if len(lines) > 16:  # more lines could not be distinguished
        raise ValueError(
            "mass must be of 16 heads or fewer, such as mass[:16], "
            f"got {len(lines)}"
        )
    figure, (ax,), colors = _figure(theme, 1, (4.4, 2.9))
    if equal is not None:
        one = _numbers("equal", equal, 1, "(distances,)")
        if len(one) != lines.shape[1]:
            want, got = lines.shape[1], len(one)
            raise ValueError(f"equal must have {want} distances, got {got}")
        ax.plot(
            one.numpy(), color=colors[2], linewidth=3, label="equal weights"
        )
    for number, line in enumerate(lines):
        style, color = STYLES[number // 4], colors[3 + number % 4]
        ax.plot(line.numpy(), style, color=color, label=f"head {number}")
    ax.set(xlabel="distance in tokens", ylabel="mean weight")
    ax.locator_params("x", integer=True)
    columns = math.ceil(len(ax.lines) / 5)
    ax.legend(frameon=False, labelcolor=colors[1], fontsize=8, ncols=columns)
    return figure


def _numbers(name: str, given: Tensor, axes: int, wanted: str) -> Tensor:
    """Return the tensor as finite float64 numbers on the CPU, for drawing."""
    if given.ndim != axes or given.numel() == 0 or given.is_complex():
        got = f"{tuple(given.shape)} of {given.dtype}"
        raise ValueError(f"{name} must be {wanted} of real numbers, got {got}")
    if not given.isfinite().all():
        raise ValueError(f"{name} must be finite, got nan or inf")
    return given.detach().to("cpu").double()


def _figure(
    theme: str, panels: int, size: tuple[float, float]
) -> tuple[Figure, list[Axes], list[str]]:
    """Return a figure in the colours of the theme, four panels in a row."""
    known = dict(THEMES)
    if theme not in known:
        raise ValueError(f"theme must be 'light' or 'dark', got {theme!r}")
    colors = known[theme].split()
    page, ink, grey, *_ = colors
    figure = Figure(figsize=size, facecolor=page, layout="constrained")
    across = min(panels, 4)
    grid = figure.subplots(math.ceil(panels / across), across, squeeze=False)
    axes = list(grid.flat)
    for ax in axes[panels:]:
        ax.remove()
    for ax in axes[:panels]:
        ax.grid(False)
        ax.set_facecolor("none")
        ax.tick_params(color=grey, labelcolor=ink, labelsize=8)
        ax.xaxis.label.set_color(ink)
        ax.yaxis.label.set_color(ink)
        ax.spines[:].set_color(grey)
        ax.spines[["top", "right"]].set_visible(False)
    return figure, axes[:panels], colors


def _image(
    figure: Figure,
    panels: list[tuple[Axes, Tensor]],
    colors: list[str],
    most: float,
    signed: bool,
) -> None:
    """Draw the panels on one scale, with a colour bar."""
    blue, orange = colors[3], colors[4]
    shades = [(0.0, f"{blue}00"), (1.0, blue)]  # from clear to blue
    if signed:
        middle = [(0.5, f"{blue}00"), (0.5, f"{orange}00")]
        shades = [(0.0, blue), *middle, (1.0, orange)]
    most = most if most > 0 else 1.0
    clear = LinearSegmentedColormap.from_list("clear", shades)
    colormap = clear.with_extremes(bad=colors[2])  # a hidden key is nan
    images = [
        ax.imshow(
            values.numpy(),
            cmap=colormap,
            vmin=-most if signed else 0.0,
            vmax=most,
            aspect="auto",
            interpolation="none",
            origin="upper",
        )
        for ax, values in panels
    ]
    bar = figure.colorbar(images[0], ax=[ax for ax, _ in panels])
    bar.ax.set_facecolor("none")
    bar.outline.set_color(colors[2])
    bar.ax.tick_params(color=colors[2], labelcolor=colors[1], labelsize=8)
