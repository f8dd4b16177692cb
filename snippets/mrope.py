# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""M-RoPE: RoPE for text, images and video, with three positions per token.

Each token has a time, a row and a column, and each pair of channels rotates by
one of the three. pos is the position of the token on the axis of pair p:

    angle = pos[axis of p] * w[p]         w as in RoPE, over all pairs

A text token has the same position three times, so text alone is rotated as in
RoPE. The number of pairs of each axis determines the axis of a pair:

    chunks        t t t .. h h h .. w w w ..          Qwen2-VL, Qwen2.5-VL
    interleaved   t h w t h w .. t t t                Qwen3-VL, Qwen3.5

Not implemented here: h w h w .. t t t of ERNIE 4.5-VL, which gives time the
lowest frequencies.

The tables of cosines and sines are for apply_rope of rope.py with the layout of
the checkpoint: "half" in all of these models. Tables may be computed once for
all layers. Use the sections and the layout of the checkpoint: wrong ones raise
no error and only make the answers worse.

References:
    arXiv:2409.12191, section 2.1.
    Hugging Face Transformers 5.23.0, under models/: qwen2_vl, qwen2_5_vl and
    qwen3_vl, get_rope_index and the classes of rotary embeddings.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

TEXT_STARTS = ("largest", "space")


class Grid(NamedTuple):
    """Describe the patches of an image, which has one frame, or of a video.

    Attributes:
        frames: Number of frames; at least 1.
        rows: Number of rows of patches, a multiple of `spatial_merge_size`.
        columns: Number of columns of patches, a multiple of
            `spatial_merge_size`.
        step: Time from one frame to the next: 1 in Qwen2-VL; in Qwen2.5-VL,
            tokens per second times seconds from one frame of the grid to the
            next. Qwen3-VL writes the time between frames as text: pass each
            frame as a Grid of its own.
    """

    frames: int
    rows: int
    columns: int
    step: float = 1.0


def mrope_positions(
    segments: Sequence[int | Grid], *, spatial_merge_size: int, text_start: str
) -> Tensor:
    """Return the time, row and column of each token of a prompt.

    All frames, rows and columns of a grid begin at the position that the text
    has reached. Times are products in float32, rounded down, as in
    transformers. The text after a grid continues

        largest   beyond all positions before: transformers at 00b676f
        space     by the longer side of the image: transformers 5.23.0

    These differ for videos that are longer in time than their sides: with
    "space", the last frames and later text tokens then have the same times.

    For transformers, which takes `(3, batch, tokens)`, pass `.T[:, None]`.
    Tokens that transformers generates continue from the largest position of the
    prompt plus 1. With "space", this may be beyond the end of a prompt that
    ends with text: the same token then has one position in the prompt and
    another when it is generated.

    Args:
        segments: Numbers of text tokens, each at least 1, and Grids of patches,
            in the order of the prompt.
        spatial_merge_size: Number of patches on a side that form one token, as
            in the configurations; 2 in these models.
        text_start: Where the text after a grid continues, "largest" or "space".

    Returns:
        Positions, shape `(tokens, 3)`, int64.

    Raises:
        ValueError: If there are no segments, a segment has less than one token
            or patch, `spatial_merge_size` is less than 1 or does not divide the
            sides of a grid, a step is negative or not finite, or `text_start`
            is not as described above.

    Example:
        >>> prompt = [2, Grid(1, 4, 6), 1]
        >>> options = {"spatial_merge_size": 2, "text_start": "largest"}
        >>> mrope_positions(prompt, **options).T
        tensor([[0, 1, 2, 2, 2, 2, 2, 2, 5],
                [0, 1, 2, 2, 2, 3, 3, 3, 5],
                [0, 1, 2, 3, 4, 2, 3, 4, 5]])
    """
    if text_start not in TEXT_STARTS:
        raise ValueError(
            f"text_start must be 'largest' or 'space', got {text_start!r}"
        )
    if spatial_merge_size < 1:
        raise ValueError(
            f"spatial_merge_size must be at least 1, got {spatial_merge_size}"
        )
    if not segments:
        raise ValueError("segments must contain at least one segment, got none")
    begin, made = 0, []
    for segment in segments:
        if isinstance(segment, Grid):
            places = _places(segment, spatial_merge_size)
            longer = max(segment.rows, segment.columns) // spatial_merge_size
            used = int(places.max()) + 1 if text_start == "largest" else longer
        else:
            places = _words(segment)
            used = segment
        made.append(begin + places)
        begin += used
    return torch.cat(made)


def pair_axes(sections: Sequence[int], layout: str) -> Tensor:
    """Return the axis of each pair: 0 is time, 1 the row, 2 the column.

    Args:
        sections: Numbers of pairs of time, row and column: [16, 24, 24] in
            Qwen2-VL. (Older code doubles them, to count channels.)
        layout: "chunks" or "interleaved". There is no default. If interleaved,
            row and column each have every third pair until they have their
            number, and time has all other pairs.

    Returns:
        Axes, shape `(pairs,)`, int64.

    Raises:
        ValueError: If `sections` are not three non-negative numbers with a
            positive sum, there are more pairs for rows or columns than can be
            interleaved, or `layout` is not as described above.

    Example:
        >>> pair_axes([3, 2, 2], "chunks")
        tensor([0, 0, 0, 1, 1, 2, 2])
        >>> pair_axes([3, 2, 2], "interleaved")
        tensor([0, 1, 2, 0, 1, 2, 0])
    """
    if len(sections) != 3 or min(sections) < 0 or not sum(sections):
        raise ValueError(
            "sections must be three numbers of pairs, of time, row and column, "
            f"got {list(sections)}"
        )
    if layout == "chunks":
        return torch.arange(3).repeat_interleave(torch.tensor(sections))
    if layout != "interleaved":
        raise ValueError(
            f"layout must be 'chunks' or 'interleaved', got {layout!r}"
        )
    pairs = sum(sections)
    axes = torch.zeros(pairs, dtype=torch.int64)
    for axis in (1, 2):
        every_third = torch.arange(axis, pairs, 3)
        if sections[axis] > len(every_third):
            raise ValueError(
                f"sections[{axis}] must be at most {len(every_third)} for "
                f"{pairs} interleaved pairs, got {sections[axis]}"
            )
        axes[every_third[: sections[axis]]] = axis
    return axes


def mrope_tables(
    positions: Tensor,  # (..., tokens, 3)
    frequencies: Tensor,  # (pairs)
    axes: Tensor,  # (pairs)
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor]:
    """Return the cosine and sine of each rotation angle.

    Angles are computed in float64 on the device of `positions`. The notes of
    rope_tables in rope.py apply here as well.

    If `frequencies` or `axes` are on another device than `positions`, each call
    copies them, and the host waits for the copy.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        positions: Time, row and column of each token, shape `(..., tokens, 3)`;
            uint8, int8 to int64, float32 or float64.
        frequencies: Radians per position, shape `(pairs,)`, float32 or float64:
            the frequencies of RoPE for the rotated channels,
            `rope_frequencies(2 * pairs, base)` of rope.py. These are all
            channels of a head in Qwen2-VL to Qwen3-VL, a quarter in Qwen3.5.
        axes: Axis of each pair from `pair_axes`, shape `(pairs,)`, int64.
        dtype: Dtype of the tables, float32 or float64.

    Returns:
        Cosines and sines, each of shape `(..., tokens, pairs)` and dtype
        `dtype`, on the device of `positions`.

    Raises:
        ValueError: If `positions`, `frequencies`, `axes` or `dtype` does not
            have the shape or dtype described above.

    Example:
        >>> positions = torch.tensor([[1, 1, 1], [1, 2, 3]])
        >>> frequencies = torch.tensor([1.0, 0.1, 0.01])
        >>> mrope_tables(positions, frequencies, torch.tensor([0, 1, 2]))[1]
        tensor([[0.8415, 0.0998, 0.0100],
                [0.8415, 0.1987, 0.0300]])
    """
    _check_three(positions)
    for name, kind in (("frequencies", frequencies.dtype), ("dtype", dtype)):
        if kind not in (torch.float32, torch.float64):
            raise ValueError(f"{name} must be float32 or float64, got {kind}")
    pairs = tuple(frequencies.shape)
    if len(pairs) != 1 or not pairs[0]:
        raise ValueError(
            f"frequencies must be (pairs,), at least one pair, got {pairs}"
        )
    if tuple(axes.shape) != pairs or axes.dtype != torch.int64:
        raise ValueError(
            f"axes must be int64 {pairs}, as frequencies, got {axes.dtype} "
            f"{tuple(axes.shape)}: sections must sum to the pairs"
        )
    device = positions.device
    along = positions.index_select(-1, axes.to(device))  # (..., tokens, pairs)
    angles = along.double() * frequencies.to(device).double()
    cos, sin = torch.stack((angles.cos(), angles.sin())).to(dtype)
    return cos, sin  # (..., tokens, pairs)


def _places(grid: Grid, spatial_merge_size: int) -> Tensor:
    """Return time, row and column of each token of a grid: (tokens, 3)."""
    frames, rows, columns, step = grid
    if (
        min(frames, rows, columns) < 1
        or rows % spatial_merge_size
        or columns % spatial_merge_size
    ):
        raise ValueError(
            "a grid must have a frame or more, and rows and columns that are "
            f"multiples of spatial_merge_size, {spatial_merge_size}, "
            f"got {frames}, {rows} and {columns}"
        )
    if not 0 <= step < float("inf"):
        raise ValueError(f"step must be a number from 0 on, got {step}")
    times = (torch.arange(frames).float() * step).long()
    sides = (
        torch.arange(side // spatial_merge_size) for side in (rows, columns)
    )
    places = torch.meshgrid(times, *sides, indexing="ij")
    return torch.stack(places, -1).flatten(0, 2)


def _words(count: int) -> Tensor:
    """Return the same position three times for each token: (count, 3)."""
    if not isinstance(count, int) or count < 1:
        raise ValueError(
            "a segment must be a Grid, or a number of words from 1 on, "
            f"got {count!r}"
        )
    return torch.arange(count)[:, None].expand(-1, 3)


def _check_three(positions: Tensor) -> None:
    whole = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    tensor = isinstance(positions, Tensor)
    kind = positions.dtype if tensor else type(positions).__name__
    if kind not in (*whole, torch.float32, torch.float64):
        raise ValueError(
            "positions must be a tensor of integers, float32 or float64, "
            f"got {kind}"
        )
    shape = tuple(positions.shape)
    if len(shape) < 2 or shape[-1] != 3:
        raise ValueError(f"positions must be (..., tokens, 3), got {shape}")
