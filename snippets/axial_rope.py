# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-26
"""RoPE for places with more than one axis: a row and a column, or more.

A place is a vector of coordinates, the row first. Each pair of channels has a
frequency vector of as many numbers, and turns by their product:

    angle = place[0] * w[0, p] + place[1] * w[1, p] + ...

So scores depend on the offset of two places alone, whatever the vectors are.
What is called axial, mixed or golden are three choices of them:

    axial     one axis each: half the pairs turn with the row, half with the
              column. A score is a sum of one part for each axis.
    mixed     learned, of each head; here is what they begin with.
    golden    of growing length, each half a turn over the golden ratio further
              round than the one before.

Tables of cosines and sines come out, and turn_by_axes turns q and k by them.
Bases are the defaults of the models' configurations; look at the checkpoint's.

                     frequencies                      layout        places
    Qwen3-VL vision  axial_frequencies(               half          0, 1, ..
                     dim, "each", base=10000)
    Gemma 4 vision   axial_frequencies(               half_by_axis  0, 1, ..
                     dim, "each", base=100)
                     column first: places.flip(-1)
    Llama 4 vision   axial_frequencies(               interleaved   1, 2, ..
                     dim, "each", base=10000)
                     column first: places.flip(-1)
    Pixtral          axial_frequencies(               half          0, 1, ..
                     dim, "turns", base=10000)
    DINOv3           2 * math.pi * axial_frequencies( half          centres
                     dim, "each", base=100)
    Wan 2.1          axial_frequencies((44, 42, 42),  interleaved   0, 1, ..
                     "each", base=10000)
    Qwen-Image       axial_frequencies((16, 56, 56),  interleaved   0 in the
                     "each", base=10000)                            middle
    FLUX.1           as Qwen-Image                    interleaved   0, 1, ..

The last three have a third axis: place[0] is the frame. FLUX.1 makes single
images, so it is 0 there (in Kontext, 1 for the image that is given). FLUX.2 has
a fourth axis, on which text tokens are counted.

Class and register tokens are not turned, or stand at a place of zeros.

Source: axial and mixed arXiv:2403.13298, section 3, and models/vit_rope.py of
github.com/naver-ai/rope-vit; golden jerryxio.ng/posts/nd-rope (July 2025); the
models in Hugging Face Transformers 5.23.0, under models/, and in diffusers
0.42.1, under models/transformers/.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def axial_frequencies(
    dim: int | Sequence[int], spectrum: str, base: float
) -> Tensor:
    """Frequency vectors along the axes: (axes, pairs), float64.

    dim are the channels of a head, half for the row and half for the column, or
    the channels of each axis: (44, 42, 42) are three axes. The first pairs turn
    with the first axis, and so on. spectrum says which speeds an axis of d
    channels gets, in radians per unit of its coordinate:

        each     all from 1 down, base ^ (-2 p / d)
        turns    of one spectrum of the whole head, the axes in turns: the row
                 has the first, the third and so on, as in Pixtral

    base is the checkpoint's, and has no default: nothing but worse results
    tells of a wrong one.

    >>> axial_frequencies(8, "each", base=10000)
    tensor([[1.0000, 0.0100, 0.0000, 0.0000],
            [0.0000, 0.0000, 1.0000, 0.0100]], dtype=torch.float64)
    >>> axial_frequencies(8, "turns", base=10000)
    tensor([[1.0000, 0.0100, 0.0000, 0.0000],
            [0.0000, 0.0000, 0.1000, 0.0010]], dtype=torch.float64)

    ValueError: dim that is no multiple of four; channels of an axis that are
    odd or below 2, or not alike in turns; no axis; base not positive, or
    infinite; another spectrum.
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
    """Frequency vectors all around: (heads, 2, dim / 2), float64.

    Lengths go from slowest to fastest, in radians per unit, each by the same
    factor; each vector points half a turn over the golden ratio (111 degrees)
    further round than the one before, and those of the next head go on. It is
    half a turn, as a vector and its opposite turn alike but for the sense.
    Nothing is learned.

    >>> golden_frequencies(4, heads=1, slowest=0.1, fastest=1.0)
    tensor([[[ 0.1000, -0.3624],
             [ 0.0000,  0.9320]]], dtype=torch.float64)

    ValueError: dim odd or below 2; heads below 1; a speed that is not above 0,
    or a slowest above the fastest.
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
    """What learned vectors of mixed RoPE begin with: (heads, 2, dim / 2).

    Of float64. Each head has two crossed axes at a random angle, and lengths
    base ^ (-4 p / dim) along each; the authors' base is 10. Make them an
    nn.Parameter of float32, of each layer, without weight decay, as the
    authors' code does.

    ValueError: dim that is no multiple of four; heads below 1; base not
    positive, or infinite.
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


def patch_centres(rows: int, columns: int) -> Tensor:
    """Where DINOv3 sees patches: (rows * columns, 2), float64, row by row.

    The middle of each patch, in a picture that goes from -1 to 1 on both axes.

    >>> patch_centres(1, 2).tolist()
    [[0.0, -0.5], [0.0, 0.5]]

    ValueError: no row or no column.
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


def axes_tables(
    places: Tensor,  # (..., tokens, axes)
    frequencies: Tensor,  # (..., axes, pairs)
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor]:
    """Cosine and sine of each angle: two of (..., tokens, pairs).

    Shapes are those of a product of matrices: with vectors of each head, places
    of (tokens, axes) give (heads, tokens, pairs), and places of a batch are
    (batch, 1, tokens, axes). Angles are float64, made where places live. Only
    learned frequencies need gradients, and get them.

    >>> places = torch.tensor([[0, 0], [1, 2]])
    >>> axes_tables(places, axial_frequencies(4, "each", base=100))[1]
    tensor([[0.0000, 0.0000],
            [0.8415, 0.9093]])

    If frequencies are on another device than places, they are copied in each
    call: the host waits for that.

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: places or frequencies of another shape; places not of uint8,
    int8 to int64, float32 or float64; frequencies or dtype not of the latter
    two.
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


def turn_by_axes(
    x: Tensor,  # (..., tokens, dim)
    cos: Tensor,  # (..., tokens, pairs)
    sin: Tensor,  # (..., tokens, pairs)
    layout: str,
) -> Tensor:
    """The q or the k of each head, turned: like x.

    cos and sin are those of axes_tables, with an axis for each of x or fewer,
    which are alike for all: (tokens, pairs) or (heads, tokens, pairs) for x of
    (batch, heads, tokens, dim). There is no default layout. Pair p is

        interleaved     channels 2 p and 2 p + 1
        half            p and p + dim / 2
        half_by_axis    as half in the first half of x, which is turned by the
                        first half of pairs, and again in the second

    The arithmetic is float32 at least. Leave class and register tokens out.

    >>> x = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
    >>> frequencies = axial_frequencies(4, "each", base=100)
    >>> cos, sin = axes_tables(torch.tensor([[1, 0]]), frequencies)
    >>> turn_by_axes(x, cos, sin, "half")
    tensor([[0.5403, 0.0000, 0.8415, 0.0000]])
    >>> turn_by_axes(x, cos, sin, "half_by_axis")
    tensor([[0.5403, 0.8415, 0.0000, 0.0000]])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: shapes that do not fit; x not floating; another layout.
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
        # one half at a time is exact: that is least memory
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
    turned = [turn_by_axes(own, c, s, "half") for own, c, s in parts]
    return torch.cat(turned, -1)


def _speeds(dim: int, base: float) -> Tensor:
    """Those of RoPE, fastest first: (dim / 2,), radians per unit."""
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
