# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-24
"""M-RoPE: RoPE for prompts of text, pictures and films, with three positions.

Each token has a time, a row and a column, and each pair of channels turns by
one of the three. pos is their position on the axis of pair p:

    angle = pos[axis of p] * w[p]         w as in RoPE, over all pairs

A word has the same position three times, so that text alone is turned as by
RoPE. Which axis a pair has is given by how many pairs each axis gets:

    chunks        t t t .. h h h .. w w w ..          Qwen2-VL, Qwen2.5-VL
    interleaved   t h w t h w .. t t t                Qwen3-VL, Qwen3.5

Not here: h w h w .. t t t of ERNIE 4.5-VL, which gives time the slowest pairs.

Tables of cosines and sines come out, for apply_rope of rope.py with the layout
of the checkpoint: "half" in all of these. Tables may be made for all layers at
once. A checkpoint keeps to its sections and layout; nothing but worse answers
tells that they are others.

Source: arXiv:2409.12191, section 2.1. Hugging Face Transformers 5.23.0, under
models/: qwen2_vl, qwen2_5_vl and qwen3_vl, get_rope_index and the classes of
rotary embeddings.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

AFTER = ("largest", "space")


class Grid(NamedTuple):
    """The patches of a picture, with one frame, or of a film.

    step is by how much time goes on from frame to frame: 1 in Qwen2-VL; tokens
    per second times seconds from one frame of the grid to the next in
    Qwen2.5-VL. Qwen3-VL writes the time between frames as text: give each frame
    as a Grid of its own.
    """

    frames: int
    rows: int
    columns: int
    step: float = 1.0


def mrope_positions(
    segments: Sequence[int | Grid], *, merge: int, after: str
) -> Tensor:
    """Time, row and column of each token of a prompt: (tokens, 3), int64.

    segments are, in their order, numbers of text tokens and grids of patches.
    merge is how many patches on a side make one token, 2 in these models. All
    frames, then rows, then columns of a grid begin where the text has come to.
    Times are rounded down, products of float32, as in transformers. Where text
    goes on, after says:

        largest   beyond all positions before: transformers at 00b676f
        space     by the longer side of the picture: transformers 5.23.0

    They differ for films whose time goes further than their sides: with "space"
    the times of last frames are then those of words that come later.

    >>> prompt = [2, Grid(1, 4, 6), 1]
    >>> mrope_positions(prompt, merge=2, after="largest").T
    tensor([[0, 1, 2, 2, 2, 2, 2, 2, 5],
            [0, 1, 2, 2, 2, 3, 3, 3, 5],
            [0, 1, 2, 3, 4, 2, 3, 4, 5]])

    For transformers, which wants (3, batch, tokens), take .T[:, None]. Tokens
    that it generates go on from the largest position of the prompt plus 1. With
    "space" that may be beyond the end of a prompt that ends with text: the same
    token then has one position when it is read and another when it is written.

    ValueError: no segments; fewer than one token or patch; sides that merge
    does not divide; a step below 0 or none; another after.
    """
    if after not in AFTER:
        raise ValueError(f"after must be 'largest' or 'space', got {after!r}")
    if merge < 1:
        raise ValueError(f"merge must be at least 1, got {merge}")
    if not segments:
        raise ValueError("segments must be one or more, got none")
    begin, made = 0, []
    for segment in segments:
        if isinstance(segment, Grid):
            places = _places(segment, merge)
            longer = max(segment.rows, segment.columns) // merge
            used = int(places.max()) + 1 if after == "largest" else longer
        else:
            places = _words(segment)
            used = segment
        made.append(begin + places)
        begin += used
    return torch.cat(made)


def pair_axes(sections: Sequence[int], layout: str) -> Tensor:
    """Which axis each pair turns by: (pairs,), int64; 0 is time.

    sections are numbers of pairs, of time, row and column: [16, 24, 24] in
    Qwen2-VL. (Older code doubles them, to count channels.) There is no default
    layout, chunks or interleaved. In the latter a row or a column has every
    third pair until it has as many as it gets, and time has the rest.

    >>> pair_axes([3, 2, 2], "chunks")
    tensor([0, 0, 0, 1, 1, 2, 2])
    >>> pair_axes([3, 2, 2], "interleaved")
    tensor([0, 1, 2, 0, 1, 2, 0])

    ValueError: sections that are not three, or below 0, or that sum to nothing;
    too many of a row or a column to be interleaved; another layout.
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
                f"interleaved, {pairs} pairs have {len(every_third)} for axis "
                f"{axis}, got {sections[axis]}"
            )
        axes[every_third[: sections[axis]]] = axis
    return axes


def mrope_tables(
    positions: Tensor,  # (..., tokens, 3)
    frequencies: Tensor,  # (pairs)
    axes: Tensor,  # (pairs)
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor]:
    """Cosine and sine of each angle: two of (..., tokens, pairs).

    frequencies are those of RoPE for the rotated channels, rope_frequencies(2 *
    pairs, base) of rope.py, in radians per position: all channels of a head in
    Qwen2-VL to Qwen3-VL, a quarter in Qwen3.5. axes are those of pair_axes.
    Angles are float64, and are made where positions live, as in rope_tables of
    rope.py, whose other words hold here too.

    >>> positions = torch.tensor([[1, 1, 1], [1, 2, 3]])
    >>> frequencies = torch.tensor([1.0, 0.1, 0.01])
    >>> mrope_tables(positions, frequencies, torch.tensor([0, 1, 2]))[1]
    tensor([[0.8415, 0.0998, 0.0100],
            [0.8415, 0.1987, 0.0300]])

    If frequencies or axes are on another device than positions, they are copied
    in each call: the host waits for that.

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: positions of another shape, or not of uint8, int8 to int64,
    float32 or float64; frequencies that are not (pairs,); axes of another
    number of pairs, or not int64; frequencies or dtype not float32 or float64.
    """
    _check_three(positions)
    for name, kind in (("frequencies", frequencies.dtype), ("dtype", dtype)):
        if kind not in (torch.float32, torch.float64):
            raise ValueError(f"{name} must be float32 or float64, got {kind}")
    pairs = tuple(frequencies.shape)
    if len(pairs) != 1 or not pairs[0]:
        raise ValueError(
            f"frequencies must be (pairs,), 1 or more, got {pairs}"
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


def _places(grid: Grid, merge: int) -> Tensor:
    """Time, row and column of each token of a grid, from 0: (tokens, 3)."""
    frames, rows, columns, step = grid
    if min(frames, rows, columns) < 1 or rows % merge or columns % merge:
        raise ValueError(
            "a grid must have a frame or more, and rows and columns that are "
            f"multiples of merge, {merge}, got {frames}, {rows} and {columns}"
        )
    if not 0 <= step < float("inf"):
        raise ValueError(f"step must be a number from 0 on, got {step}")
    times = (torch.arange(frames).float() * step).long()
    sides = (torch.arange(side // merge) for side in (rows, columns))
    places = torch.meshgrid(times, *sides, indexing="ij")
    return torch.stack(places, -1).flatten(0, 2)


def _words(count: int) -> Tensor:
    """The same position three times: (count, 3)."""
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
