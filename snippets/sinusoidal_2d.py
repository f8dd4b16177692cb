# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""2-D sinusoidal encoding for images: separate channels for each axis.

A position is (row, column), the row first, and may have more axes. Of dim
channels, each axis has dim / axes, which contain the sinusoids of its
coordinate:

    w[p]     = base ^ (-2 p / (dim / axes))      radians per unit
    wave     = sin(position[axis] * w[p]) and cos(position[axis] * w[p])

The sum of patch and encoding enters the first layer, or the queries and keys of
each layer. Released code differs in five choices, which have no default here:

    order    start  layout        coordinates
    (0, 1)   1      interleaved   (n + 1) / size * 2 pi    DETR, normalised
    (0, 1)   1      interleaved   n + 1                    DETR, class default
    (1, 0)   0      sin_cos       n                        MAE, ViT-MAE, AIMv2
    (0, 1)   0      sin_cos       n                        RT-DETR
    (1, 0)   0      sin_cos       n / size * trained size  diffusers, PatchEmbed
    (0, 1)   0      sines_first   n                        timm
    (1, 0)   0      sin_cos       n                        big_vision, closed

The fifth is the base: 10000 in all of these, and 20 in DAB-DETR and Grounding
DINO, which otherwise are the same as DETR, normalised.

MAE's code calls its first half emb_h, for the height, and fills it from the
columns. ViT-MAE in transformers computes rows first and then swaps the halves,
in the encoder and in the decoder, because pretrained weights need MAE's order.
PixArt, in diffusers, also divides coordinates by an interpolation scale.
interleave_sin_cos=True in timm gives sin_cos, not the layout that is called
interleaved here.

References:
    DETR (arXiv:2005.12872): github.com/facebookresearch/detr at 29901c5,
    models/position_encoding.py.
    MAE (arXiv:2111.06377): github.com/facebookresearch/mae at efb2a80,
    util/pos_embed.py.
    big_vision: github.com/google-research/big_vision at 0127fb6,
    big_vision/models/vit.py.
    The code of transformers 5.23.0, timm 1.0.22 and diffusers 0.36.0.
"""

import math

import torch
from torch import Tensor

LAYOUTS = ("interleaved", "sin_cos", "sines_first")


def grid_positions(
    grid: tuple[int, ...], *, start: float, span: float | None = None
) -> Tensor:
    """Return the coordinates of the cells of a grid, row by row.

    Args:
        grid: Number of cells on each axis, rows first; at least one axis, each
            with at least 1 cell.
        start: Coordinate of the first cell of each axis: 0, 1, or 0.5 for
            centres.
        span: If given, all images have the same size: a coordinate is then
            (start + n) * span / cells of the axis. Above 0. DETR has `start=1`
            and `span=2 * math.pi`.

    Returns:
        Coordinates, shape `(*grid, axes)`, on the CPU; int64 if `start` is an
        integer and there is no `span`, otherwise float64.

    Raises:
        ValueError: If there is no axis or an axis has no cell, `start` or
            `span` is not a finite number, or `span` is not above 0.

    Example:
        >>> grid_positions((2, 3), start=0).flatten(0, 1).tolist()
        [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    """
    if not grid or min(grid) < 1:
        raise ValueError(
            f"grid must have a cell or more on each axis, got {tuple(grid)}"
        )
    _check_scale(start, span)
    axes = []
    for size in grid:
        cells = start + torch.arange(size, dtype=_kind(start, span))
        axes.append(cells if span is None else cells * (span / size))
    return torch.stack(torch.meshgrid(axes, indexing="ij"), -1)


def padded_grid_positions(
    valid: Tensor,  # (..., rows, columns), bool
    *,
    start: float,
    span: float | None = None,
) -> Tensor:
    """Return the coordinates of the cells of padded images.

    As in DETR, each image of a batch has its own size, so cells are counted
    along their column and their row.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        valid: True for the cells of the image, False for padding, shape
            `(..., rows, columns)`, bool. If `span` is given and the result is
            for MPS, leave `valid` on the CPU.
        start: See `grid_positions`.
        span: See `grid_positions`.

    Returns:
        Coordinates, shape `(..., rows, columns, 2)`, dtype as in
        `grid_positions`, on the device of `valid`. Coordinates of padding have
        no meaning; mask these cells.

    Raises:
        ValueError: If `valid` does not have the shape or dtype described above,
            or in the cases listed for `grid_positions`.

    Example:
        >>> valid = torch.tensor([[True, True, False], [True, True, False]])
        >>> columns = padded_grid_positions(valid, start=1, span=1.0)[..., 1]
        >>> columns
        tensor([[0.5000, 1.0000, 1.0000],
                [0.5000, 1.0000, 1.0000]], dtype=torch.float64)
    """
    tensor = isinstance(valid, Tensor)
    given = valid.dtype if tensor else type(valid).__name__
    shape = tuple(valid.shape) if tensor else ""
    if given != torch.bool or len(shape) < 2:
        raise ValueError(
            "valid must be torch.bool (..., rows, columns), "
            f"got {given} {shape}".rstrip()
        )
    _check_scale(start, span)
    axes = []
    for axis in (-2, -1):
        count = valid.cumsum(axis)  # of cells up to this one, with it
        cells = (count - 1).to(_kind(start, span)) + start
        if span is not None:
            size = count.amax(axis, keepdim=True).clamp(min=1)
            cells = cells * (span / size.double())
        axes.append(cells)
    return torch.stack(axes, -1)


def axis_frequencies(
    dim: int,
    axes: int,
    base: float,
    closed: bool = False,
    device: torch.device | None = None,
) -> Tensor:
    """Return the frequencies of the channel pairs of each axis.

    Args:
        dim: Number of channels of the encoding, a multiple of 2 * axes; at
            least 4 * axes if `closed`.
        axes: Number of axes.
        base: Base of the frequencies; positive and finite.
        closed: If True, the last frequency is 1 / base itself, as in
            big_vision. If False, the one after the last would be.
        device: Device on which to create the result; None is torch's default
            device.

    Returns:
        Frequencies in radians per unit of a coordinate, shape
        `(dim / axes / 2,)`, float64.

    Raises:
        ValueError: If `dim` or `base` is not as described above.

    Example:
        >>> axis_frequencies(8, axes=2, base=10000)
        tensor([1.0000, 0.0100], dtype=torch.float64)
    """
    pairs = dim // (2 * axes)
    least = 2 if closed else 1
    if dim % (2 * axes) or pairs < least:
        raise ValueError(
            f"dim must be a multiple of {2 * axes} and at least "
            f"{2 * axes * least}, got {dim}"
        )
    if not 0 < base < math.inf:
        raise ValueError(f"base must be a positive number, got {base}")
    p = torch.arange(pairs, dtype=torch.float64, device=device)
    return base ** (-p / (pairs - closed))


def axial_sinusoids(
    places: Tensor,  # (..., axes)
    dim: int,
    *,
    order: tuple[int, ...],
    layout: str,
    base: float,
    closed: bool = False,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Return the sinusoidal encoding of each position.

    The layouts are

        interleaved   sin, cos, sin, cos ... of one axis, then of the next
        sin_cos       all sines of an axis, its cosines, then the next axis
        sines_first   all sines of all axes, then all cosines

    Angles are computed in float64 on the device of `places`. If the result is
    for a device without float64, such as MPS, leave `places` on the CPU.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        places: Coordinates of each position, shape `(..., axes)`; integers,
            float32 or float64.
        dim: Number of channels, as in `axis_frequencies`.
        order: Axes in the order of their channels: (0, 1) has the channels of
            the rows first, (1, 0) the channels of the columns.
        layout: "interleaved", "sin_cos" or "sines_first".
        base: Base of the frequencies; positive and finite.
        closed: See `axis_frequencies`.
        dtype: Floating-point dtype of the result.

    Returns:
        The encoding, shape `(..., dim)`, dtype `dtype`, on the device of
        `places`.

    Raises:
        ValueError: If `dim` or `base` is invalid, as in `axis_frequencies`;
            `places` does not have the shape or dtype described above; `order`
            does not contain each axis once; `layout` is unknown; or `dtype` is
            not floating-point.

    Example:
        >>> places = grid_positions((2, 2), start=0).flatten(0, 1)
        >>> given = {"order": (0, 1), "layout": "sin_cos", "base": 10000}
        >>> axial_sinusoids(places, 4, **given)
        tensor([[0.0000, 1.0000, 0.0000, 1.0000],
                [0.0000, 1.0000, 0.8415, 0.5403],
                [0.8415, 0.5403, 0.0000, 1.0000],
                [0.8415, 0.5403, 0.8415, 0.5403]])
    """
    axes = _count_axes(places)
    named = [any(each == axis for each in order) for axis in range(axes)]
    if len(order) != axes or not all(named):
        raise ValueError(
            f"order must name each axis of 0 to {axes - 1} once, got {order}"
        )
    if layout not in LAYOUTS:
        raise ValueError(
            "layout must be 'interleaved', 'sin_cos' or 'sines_first', "
            f"got {layout!r}"
        )
    if not dtype.is_floating_point:
        raise ValueError(f"dtype must be a floating dtype, got {dtype}")
    frequencies = axis_frequencies(dim, axes, base, closed, places.device)
    ordered = torch.stack([places[..., axis] for axis in order], -1)
    angles = ordered[..., None] * frequencies  # (..., axes, pairs)
    between = -1 - LAYOUTS.index(layout)  # pairs, axes, or before both
    waves = torch.stack((angles.sin(), angles.cos()), between)
    return waves.flatten(-3).to(dtype)  # (..., dim)


def _kind(start: float, span: float | None) -> torch.dtype:
    whole = isinstance(start, int) and span is None
    return torch.int64 if whole else torch.float64


def _check_scale(start: float, span: float | None) -> None:
    if not -math.inf < start < math.inf:
        raise ValueError(f"start must be a number, got {start}")
    if span is not None and not 0 < span < math.inf:
        raise ValueError(f"span must be above 0, or None, got {span}")


def _count_axes(places: Tensor) -> int:
    """Return the number of axes of a position."""
    tensor = isinstance(places, Tensor)
    given = places.dtype if tensor else type(places).__name__
    whole = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    if given not in (*whole, torch.float32, torch.float64):
        raise ValueError(
            "places must be a tensor of integers, float32 or float64, "
            f"got {given}"
        )
    shape = tuple(places.shape)
    if not shape or not shape[-1]:
        raise ValueError(f"places must be (..., axes), got {shape}")
    return shape[-1]


# Former names, kept until the next release.
grid_places = grid_positions
padded_places = padded_grid_positions
