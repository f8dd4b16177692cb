# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""RoPE for positions with more than one axis: a row and a column, or more.

A position is a vector of coordinates, the row first. Each pair of channels has
a frequency vector with as many entries and is rotated by their product:

    angle = position[0] * w[0, p] + position[1] * w[1, p] + ...

So scores depend only on the offset of two positions, for any choice of the
vectors. Axial, mixed and golden RoPE are three choices:

    axial     one axis each: half the pairs rotate with the row, half with
              the column. A score is a sum of one part for each axis.
    mixed     learned, for each head; mixed_frequencies has initial values.
    golden    of growing length, each rotated from the one before by 180
              degrees divided by the golden ratio.

axial_rope_tables returns tables of cosines and sines, and apply_axial_rope
rotates q and k by them. The bases below are the defaults of the models'
configurations; use the base of the checkpoint.

                     frequencies                      layout        coordinates
    Qwen3-VL vision  axial_frequencies(               half          0, 1, ..
                     dim, "each", base=10000)
    Gemma 4 vision   axial_frequencies(               half_by_axis  0, 1, ..
                     dim, "each", base=100)
                     column first: coordinates.flip(-1)
    Llama 4 vision   axial_frequencies(               interleaved   1, 2, ..
                     dim, "each", base=10000)
                     column first: coordinates.flip(-1)
    Pixtral          axial_frequencies(               half          0, 1, ..
                     dim, "turns", base=10000)
    DINOv3           2 * math.pi * axial_frequencies( half          centres
                     dim, "each", base=100)
    Wan 2.1          axial_frequencies((44, 42, 42),  interleaved   0, 1, ..
                     "each", base=10000)
    Qwen-Image       axial_frequencies((16, 56, 56),  interleaved   0 in the
                     "each", base=10000)                            middle
    FLUX.1           as Qwen-Image                    interleaved   0, 1, ..

The last three have a third axis: position[0] is the frame. FLUX.1 generates
single images, so it is 0 there (in Kontext, 1 for the input image). FLUX.2 has
a fourth axis, on which text tokens are counted.

Class and register tokens are not rotated, or have a position of zeros.

References:
    Axial and mixed: arXiv:2403.13298, section 3, and models/vit_rope.py of
    github.com/naver-ai/rope-vit.
    Golden: jerryxio.ng/posts/nd-rope (July 2025).
    The models: Hugging Face Transformers 5.23.0, under models/, and diffusers
    0.42.1, under models/transformers/.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def axial_frequencies(
    dim: int | Sequence[int], spectrum: str, base: float
) -> Tensor:
    """Return frequency vectors along the axes.

    The first pairs rotate with the first axis, and so on. The spectrum of an
    axis of d channels, in radians per unit of its coordinate, is

        each     all frequencies from 1 down, base ^ (-2 p / d)
        turns    the frequencies of one spectrum of the whole head, assigned to
                 the axes in alternation: the row has the first, the third and
                 so on, as in Pixtral

    Args:
        dim: Number of channels of a head, a multiple of 4, half for the row and
            half for the column; or the channels of each axis, all even and at
            least 2: (44, 42, 42) has three axes.
        spectrum: "each" or "turns". "turns" requires the same number of
            channels for each axis.
        base: Base of the checkpoint. There is no default because a wrong base
            raises no error and only makes the results worse.

    Returns:
        Frequency vectors, shape `(axes, pairs)`, float64.

    Raises:
        ValueError: If `dim` or `spectrum` is not as described above, or `base`
            is not positive and finite.

    Example:
        >>> axial_frequencies(8, "each", base=10000)
        tensor([[1.0000, 0.0100, 0.0000, 0.0000],
                [0.0000, 0.0000, 1.0000, 0.0100]], dtype=torch.float64)
        >>> axial_frequencies(8, "turns", base=10000)
        tensor([[1.0000, 0.0100, 0.0000, 0.0000],
                [0.0000, 0.0000, 0.1000, 0.0010]], dtype=torch.float64)
    """
    if isinstance(dim, int):
        _check_dim(dim, 4)
        dim = (dim // 2, dim // 2)
    if not dim or any(own < 2 or own % 2 for own in dim):
        raise ValueError(
            "dim must be an even number of channels for each axis, 2 or more, "
            f"got {list(dim)}"
        )
    if not 0 < base < math.inf:
        raise ValueError(f"base must be a positive number, got {base}")
    if spectrum == "each":
        return torch.block_diag(*(_speeds(own, base) for own in dim))
    if spectrum != "turns" or len(set(dim)) > 1:
        raise ValueError(
            "spectrum must be 'each' or, with as many channels for each axis, "
            f"'turns', got {spectrum!r} and {list(dim)}"
        )
    whole, axes = _speeds(sum(dim), base), len(dim)
    return torch.block_diag(*(whole[axis::axes] for axis in range(axes)))


def golden_frequencies(
    dim: int, heads: int, slowest: float, fastest: float
) -> Tensor:
    """Return frequency vectors in all directions, by the golden ratio.

    The lengths form a geometric sequence from `slowest` to `fastest`. The
    direction of each vector is rotated from that of the vector before by 180
    degrees divided by the golden ratio (111 degrees), and the vectors of the
    next head continue the sequence. A range of 180 degrees is enough because a
    vector and its opposite give the same rotation in opposite directions.
    Nothing is learned.

    Args:
        dim: Number of channels of a head; even and at least 2.
        heads: Number of heads; at least 1.
        slowest: Smallest length, in radians per unit; above 0.
        fastest: Largest length, in radians per unit; at least `slowest`.

    Returns:
        Frequency vectors, shape `(heads, 2, dim / 2)`, float64.

    Raises:
        ValueError: If `dim` is odd or less than 2, `heads` is less than 1, or
            not 0 < `slowest` <= `fastest`, both finite.

    Example:
        >>> golden_frequencies(4, heads=1, slowest=0.1, fastest=1.0)
        tensor([[[ 0.1000, -0.3624],
                 [ 0.0000,  0.9320]]], dtype=torch.float64)
    """
    _check_dim(dim, 2)
    if heads < 1:
        raise ValueError(f"heads must be at least 1, got {heads}")
    if not 0 < slowest <= fastest < math.inf:
        raise ValueError(
            "slowest and fastest must be above 0, in this order, "
            f"got {slowest} and {fastest}"
        )
    pairs = dim // 2
    share = torch.linspace(0, 1, pairs, dtype=torch.float64)
    lengths = slowest * (fastest / slowest) ** share  # (pairs)
    golden_angle = math.pi * (math.sqrt(5) - 1) / 2
    turn = torch.arange(heads * pairs, dtype=torch.float64) * golden_angle
    turn = turn.unflatten(0, (heads, pairs))
    return torch.stack((lengths * turn.cos(), lengths * turn.sin()), 1)


def mixed_frequencies(dim: int, heads: int, base: float) -> Tensor:
    """Return initial values for the learned vectors of mixed RoPE.

    In each head, the frequency vectors lie on two perpendicular axes at a
    random angle; along each axis, their lengths are base ^ (-4 p / dim). Store
    them as an nn.Parameter of float32, one for each layer, without weight
    decay, as the authors' code does.

    Args:
        dim: Number of channels of a head; a multiple of 4.
        heads: Number of heads; at least 1.
        base: Base of the lengths; the authors use 10.

    Returns:
        Frequency vectors, shape `(heads, 2, dim / 2)`, float64.

    Raises:
        ValueError: If `dim` is not a positive multiple of 4, `heads` is less
            than 1, or `base` is not positive and finite.
    """
    if heads < 1:
        raise ValueError(f"heads must be at least 1, got {heads}")
    along = axial_frequencies(dim, "each", base)  # (2, pairs)
    turn = 2 * math.pi * torch.rand(heads, dtype=torch.float64)
    cos, sin = turn.cos(), turn.sin()
    rows = torch.stack(
        (torch.stack((cos, -sin), -1), torch.stack((sin, cos), -1)), -2
    )
    return rows @ along  # (heads, 2, pairs)


def patch_coordinates(rows: int, columns: int) -> Tensor:
    """Return the coordinates of patches in DINOv3, row by row.

    The coordinates are the centres of the patches in an image that extends from
    -1 to 1 on both axes.

    Args:
        rows: Number of rows of patches; at least 1.
        columns: Number of columns of patches; at least 1.

    Returns:
        Coordinates, shape `(rows * columns, 2)`, float64.

    Raises:
        ValueError: If there is no row or no column.

    Example:
        >>> patch_coordinates(1, 2).tolist()
        [[0.0, -0.5], [0.0, 0.5]]
    """
    if min(rows, columns) < 1:
        raise ValueError(
            f"a picture must have a patch or more, got {rows} by {columns}"
        )
    sides = [
        (2 * torch.arange(n, dtype=torch.float64) + 1) / n - 1
        for n in (rows, columns)
    ]
    return torch.cartesian_prod(*sides)


def axial_rope_tables(
    places: Tensor,  # (..., tokens, axes)
    frequencies: Tensor,  # (..., axes, pairs)
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor]:
    """Return the cosine and sine of each rotation angle.

    The angles are computed in float64 on the device of `places`. Only learned
    frequencies need gradients, and the tables pass gradients back to them.

    If `frequencies` are on another device than `places`, each call copies them,
    and the host waits for the copy.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        places: Coordinates of each position, shape `(..., tokens, axes)`;
            uint8, int8 to int64, float32 or float64. Shapes combine as in a
            matrix product: with vectors for each head, coordinates of shape
            `(tokens, axes)` give tables of shape `(heads, tokens, pairs)`, and
            the coordinates of a batch must have the shape
            `(batch, 1, tokens, axes)`.
        frequencies: Frequency vectors, shape `(axes, pairs)` or
            `(heads, axes, pairs)`, float32 or float64.
        dtype: Dtype of the tables, float32 or float64.

    Returns:
        Cosines and sines, each of shape `(..., tokens, pairs)` and dtype
        `dtype`, on the device of `places`.

    Raises:
        ValueError: If `places`, `frequencies` or `dtype` does not have the
            shape or dtype described above.

    Example:
        >>> places = torch.tensor([[0, 0], [1, 2]])
        >>> frequencies = axial_frequencies(4, "each", base=100)
        >>> axial_rope_tables(places, frequencies)[1]
        tensor([[0.0000, 0.0000],
                [0.8415, 0.9093]])
    """
    _check_places(places)
    for name, kind in (("frequencies", frequencies.dtype), ("dtype", dtype)):
        if kind not in (torch.float32, torch.float64):
            raise ValueError(f"{name} must be float32 or float64, got {kind}")
    axes, shape = places.shape[-1], tuple(frequencies.shape)
    if len(shape) not in (2, 3) or shape[-2] != axes or not shape[-1]:
        raise ValueError(
            f"frequencies must be ({axes}, pairs) or (heads, {axes}, pairs), "
            f"got {shape}"
        )
    along = frequencies.to(places.device).double().unsqueeze(-3)
    angles = (places.double()[..., None] * along).sum(-2)  # (..., pairs)
    cos, sin = torch.stack((angles.cos(), angles.sin())).to(dtype)
    return cos, sin  # (..., tokens, pairs)


def apply_axial_rope(
    x: Tensor,  # (..., tokens, dim)
    cos: Tensor,  # (..., tokens, pairs)
    sin: Tensor,  # (..., tokens, pairs)
    layout: str,
) -> Tensor:
    """Rotate a query or key tensor by the angles of its positions.

    Leave class and register tokens out. Pair p is

        interleaved     channels 2 p and 2 p + 1
        half            p and p + dim / 2
        half_by_axis    as half in the first half of x, which is rotated by the
                        first half of pairs, and again in the second

    The arithmetic is float32 or wider.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        x: Queries or keys, shape `(..., tokens, dim)`, such as
            `(batch, heads, tokens, dim)`, floating-point.
        cos: Cosines from `axial_rope_tables`, with the axes of `x` or fewer:
            `(tokens, pairs)` or `(heads, tokens, pairs)` are shared by a batch.
        sin: Sines from `axial_rope_tables`, in the same shape as `cos`.
        layout: "interleaved", "half", or, if `dim` is a multiple of 4,
            "half_by_axis". There is no default.

    Returns:
        The rotated tensor, with the shape and dtype of `x`.

    Raises:
        ValueError: If the shapes do not match, `x` is not floating-point, or
            `layout` is not as described above.

    Example:
        >>> x = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
        >>> frequencies = axial_frequencies(4, "each", base=100)
        >>> cos, sin = axial_rope_tables(torch.tensor([[1, 0]]), frequencies)
        >>> apply_axial_rope(x, cos, sin, "half")
        tensor([[0.5403, 0.0000, 0.8415, 0.0000]])
        >>> apply_axial_rope(x, cos, sin, "half_by_axis")
        tensor([[0.5403, 0.8415, 0.0000, 0.0000]])
    """
    tokens, dim = x.shape[-2:] if x.ndim > 1 else (0, 0)
    want = (tokens, dim // 2)
    have = tuple(cos.shape), tuple(sin.shape)
    fits = all(len(each) <= x.ndim and each[-2:] == want for each in have)
    if not fits or dim % 2 or not x.is_floating_point():
        raise ValueError(
            "x must be floating (..., tokens, dim), cos and sin (..., tokens, "
            f"dim / 2), got {x.dtype} {tuple(x.shape)}, {have[0]} and {have[1]}"
        )
    exact = torch.promote_types(x.dtype, torch.float32)
    cos, sin = cos.to(x.device, exact), sin.to(x.device, exact)
    if layout == "interleaved":
        a, b = x.to(cos).unflatten(-1, (-1, 2)).unbind(-1)
        made = torch.stack((a * cos - b * sin, a * sin + b * cos), -1)
        return made.flatten(-2).to(x.dtype)
    if layout == "half":
        # one half at a time is exact, which takes least memory
        a, b = x.chunk(2, -1)
        a = a.to(cos)
        first, second = a * cos, a * sin
        del a
        b = b.to(cos)
        first -= b * sin
        second += b * cos
        del b
        first = first.to(x.dtype)
        return torch.cat((first, second.to(x.dtype)), -1)
    if layout != "half_by_axis" or dim % 4:
        raise ValueError(
            "layout must be 'interleaved', 'half', or, with dim a multiple of "
            f"4, 'half_by_axis', got {layout!r} and dim {dim}"
        )
    parts = zip(*(each.chunk(2, -1) for each in (x, cos, sin)), strict=True)
    turned = [apply_axial_rope(own, c, s, "half") for own, c, s in parts]
    return torch.cat(turned, -1)


def _speeds(dim: int, base: float) -> Tensor:
    """Return the frequencies of RoPE, highest first: (dim / 2,)."""
    p = torch.arange(dim // 2, dtype=torch.float64)
    return base ** (-2 * p / dim)


def _check_dim(dim: int, multiple: int) -> None:
    if dim < multiple or dim % multiple:
        raise ValueError(
            f"dim must be a multiple of {multiple} and at least {multiple}, "
            f"got {dim}"
        )


def _check_places(places: Tensor) -> None:
    whole = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    tensor = isinstance(places, Tensor)
    kind = places.dtype if tensor else type(places).__name__
    if kind not in (*whole, torch.float32, torch.float64):
        raise ValueError(
            "places must be a tensor of integers, float32 or float64, "
            f"got {kind}"
        )
    shape = tuple(places.shape)
    if len(shape) < 2 or not shape[-1]:
        raise ValueError(f"places must be (..., tokens, axes), got {shape}")


# Former names, kept until the next release.
turn_by_axes = apply_axial_rope
axes_tables = axial_rope_tables
patch_centres = patch_coordinates
