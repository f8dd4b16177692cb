# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-26
"""Rotary position embedding (RoPE): q and k turn by an angle per position.

Pair p of the channels is a point (a, b) in a plane, p = 0 .. dim/2 - 1. At
position pos it is turned by the angle t = pos * w[p]:

    w[p] = base ^ (-2 p / dim)        radians per position
    (a, b) becomes (a cos t - b sin t, a sin t + b cos t)

The dot product of a turned q and a turned k knows the two positions only
through their difference. Two layouts say which channels make pair p:

    interleaved    2 p and 2 p + 1      the paper, LLaMA by Meta, GPT-J
    half           p and p + dim/2      GPT-NeoX, LLaMA in transformers

Source: arXiv:2104.09864, sections 3.2.2 and 3.4.2 (equations 15 and 34). Half:
github.com/EleutherAI/gpt-neox at ea7aefd,
megatron/model/positional_embeddings.py. Interleaved:
github.com/meta-llama/llama at 689c7f2, llama/model.py.
"""

import math

import torch
from torch import Tensor


def rope_frequencies(
    dim: int, base: float, device: torch.device | None = None
) -> Tensor:
    """How fast each pair turns: (dim/2,), float64, radians per position.

    base is the checkpoint's, rope_theta in most configurations: 10,000 in the
    paper and in LLaMA, 500,000 in Llama 3. It has no default, since nothing but
    worse results tells that it is not the one of the checkpoint. device is
    where they are made: for a model begun on meta, "cpu", or they stay on meta.
    Keep them as a plain attribute of a model, or as they are wherever tables
    are made: as a buffer they would follow the model to bfloat16, which
    rope_tables refuses.

    >>> rope_frequencies(6, base=10000)
    tensor([1.0000, 0.0464, 0.0022], dtype=torch.float64)

    ValueError: dim odd or below 2, base not positive, or infinite.
    """
    if dim < 2 or dim % 2:
        raise ValueError(f"dim must be even and at least 2, got {dim}")
    if not 0 < base < math.inf:
        raise ValueError(f"base must be a positive number, got {base}")
    p = torch.arange(dim // 2, dtype=torch.float64, device=device)  # (dim/2)
    return base ** (-2 * p / dim)  # (dim/2)


def rope_tables(
    positions: Tensor,  # (..., tokens)
    frequencies: Tensor,  # (pairs)
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor]:
    """Cosine and sine of each angle: two of (..., tokens, pairs).

    Make them once per call of the model, for all layers, q and k alike. An
    attention factor, of YaRN or LongRoPE, may multiply both: then it is in what
    turns of q and k, and in no more, as in transformers. positions is
    (tokens,), (1, tokens) or (batch, tokens). dtype is float32 for x of float32
    and less, float64 for x of float64. Angles are float64. They are made where
    positions live, and frequencies go there: leave positions on the CPU if x is
    on a device without float64, such as mps, and bring the tables to x, once.

    Models were mostly trained with angles of float32, which far out differ.
    These are theirs, bit for bit: cos and sin of positions.float()[..., None] *
    w, where w is 1 / base ** (torch.arange(0, dim, 2).float() / dim).

    >>> frequencies = rope_frequencies(4, base=10000)
    >>> cos, sin = rope_tables(torch.tensor([0, 1]), frequencies)
    >>> sin
    tensor([[0.0000, 0.0000],
            [0.8415, 0.0100]])

    If frequencies are on another device than positions, they are copied in each
    call: the host waits for that.

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: positions of another shape, or not of uint8, int8 to int64,
    float32 or float64 (bfloat16 has no 257); frequencies not (pairs,);
    frequencies or dtype not float32 or float64.
    """
    _check_positions(positions)
    _check_wide("frequencies", frequencies.dtype)
    _check_wide("dtype", dtype)
    shape = tuple(frequencies.shape)
    if len(shape) != 1 or shape[0] < 1:
        raise ValueError(
            f"frequencies must be (pairs,), 1 or more, got {shape}"
        )
    frequencies = frequencies.to(positions.device).double()  # (pairs)
    angles = positions.double()[..., None] * frequencies  # (..., pairs)
    # in one tensor, which a compiler makes once, and not again for each head
    cos, sin = torch.stack((angles.cos(), angles.sin())).to(dtype)
    return cos, sin  # (..., pairs)


def apply_rope(
    x: Tensor,  # (..., dim)
    cos: Tensor,  # (..., tokens, pairs)
    sin: Tensor,  # (..., tokens, pairs)
    layout: str,
    heads_axis: int = -3,
) -> Tensor:
    """The q or the k of each head, turned: like x.

    cos and sin are those of rope_tables, (tokens, pairs) for all rows alike, or
    (batch, tokens, pairs), where batch may be 1: one column for each pair. Of
    transformers' tables, which have each column twice, take the first half (of
    Cohere's and BLT's, which repeat each column beside itself, every second):
    whole they are refused or, where half of dim or less turns, pass for twice
    as many pairs. x is (batch, heads, tokens, dim), or, with heads_axis -2,
    (batch, tokens, heads, dim): the axis of heads is added to the tables here,
    and q and k may be heads of one x. With tables of (tokens, pairs), x may
    have other axes before its tokens, or none. Fewer pairs than dim/2, from
    rope_frequencies(2 * pairs, base), turn the first 2 * pairs channels and
    leave the rest: partial rotary. There is no default layout, since nothing
    but worse results tells that it is not the one of the checkpoint. The
    arithmetic is float32 at least, whatever the dtype of x. Layout half takes
    at most three times the memory of x, with the result. Tables go where x is.

    >>> x = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
    >>> frequencies = rope_frequencies(4, base=10000)
    >>> cos, sin = rope_tables(torch.tensor([1]), frequencies)
    >>> apply_rope(x, cos, sin, "interleaved")
    tensor([[0.5403, 0.8415, 0.0000, 0.0000]])
    >>> apply_rope(x, cos, sin, "half")
    tensor([[0.5403, 0.0000, 0.8415, 0.0000]])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: shapes that do not fit; x not of a floating dtype; cos or sin
    not float32 or float64; another layout or axis.
    """
    _check(x, cos, sin, layout, heads_axis)
    width, dim = 2 * cos.shape[-1], x.shape[-1]
    if width < dim:
        first, rest = x.split((width, dim - width), dim=-1)
        first = apply_rope(first, cos, sin, layout, heads_axis)
        return torch.cat((first, rest), dim=-1)  # (..., dim)
    dtype = torch.promote_types(x.dtype, torch.float32)
    cos, sin = cos.to(x.device, dtype), sin.to(x.device, dtype)
    if cos.ndim == 3 or heads_axis == -2:
        cos, sin = cos.unsqueeze(heads_axis), sin.unsqueeze(heads_axis)
    if layout == "half":
        # one half at a time is of the tables' dtype: that is least memory
        a, b = x.chunk(2, dim=-1)  # (..., pairs)
        a = a.to(cos)
        first, second = a * cos, a * sin
        del a
        b = b.to(cos)
        first.addcmul_(b, sin, value=-1)
        second.addcmul_(b, cos)
        del b
        first = first.to(x)
        return torch.cat((first, second.to(x)), dim=-1)  # (..., dim)
    if torch.compiler.is_compiling():
        a, b = x.to(cos).unflatten(-1, (-1, 2)).unbind(-1)  # (..., pairs)
        first = torch.addcmul(a * cos, b, sin, value=-1)  # (..., pairs)
        second = torch.addcmul(a * sin, b, cos)  # (..., pairs)
        return torch.stack((first, second), dim=-1).flatten(-2).to(x)
    # the same, and much faster, but compilers have no complex numbers
    turned = _complex(x.to(cos)) * torch.complex(cos, sin)  # (..., pairs)
    return torch.view_as_real(turned).flatten(-2).to(x)  # (..., dim)


def interleaved_to_half(
    weight: Tensor, heads: int, rotary_dim: int | None = None
) -> Tensor:
    """A q or k projection of an interleaved checkpoint, for half: like weight.

    weight is that of a Linear, (heads * dim, in), or its bias, (heads * dim,).
    k has as many heads as there are for k and v, which no shape tells; a norm
    of dim channels after the projection counts as one head. v and the output
    stay as they are.
    rotary_dim is the number of channels that turn, all of them if not given.

    >>> interleaved_to_half(torch.tensor([0, 1, 2, 3, 4]), 1, rotary_dim=4)
    tensor([0, 2, 1, 3, 4])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: rows that heads do not share; rotary_dim that does not fit.
    """
    return _reorder(weight, heads, rotary_dim, (-1, 2))


def half_to_interleaved(
    weight: Tensor, heads: int, rotary_dim: int | None = None
) -> Tensor:
    """The inverse of interleaved_to_half: like weight.

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: as interleaved_to_half.
    """
    return _reorder(weight, heads, rotary_dim, (2, -1))


def _reorder(
    weight: Tensor, heads: int, rotary_dim: int | None, pairs: tuple[int, int]
) -> Tensor:
    rows = weight.shape[0] if weight.ndim else 0
    if heads < 1 or rows < heads or rows % heads:
        raise ValueError(
            f"rows must be a multiple of heads, {heads}, got {rows}"
        )
    dim = rows // heads
    width = dim if rotary_dim is None else rotary_dim
    if not 2 <= width <= dim or width % 2:
        raise ValueError(f"rotary_dim must be even, 2 to {dim}, got {width}")
    each = weight.unflatten(0, (heads, dim))
    first = each[:, :width].unflatten(1, pairs).transpose(1, 2).flatten(1, 2)
    return torch.cat((first, each[:, width:]), dim=1).flatten(0, 1)


def _complex(x: Tensor) -> Tensor:
    """Channels 2 p and 2 p + 1 as one number: a view where memory allows."""
    pairs = x.unflatten(-1, (-1, 2))  # (..., pairs, 2)
    *strides, last = pairs.stride()
    if last != 1 or any(n % 2 for n in (*strides, pairs.storage_offset())):
        return torch.complex(*pairs.unbind(-1))  # (..., pairs)
    return torch.view_as_complex(pairs)  # (..., pairs)


def _check(
    x: Tensor, cos: Tensor, sin: Tensor, layout: str, heads_axis: int
) -> None:
    if not x.is_floating_point():
        raise ValueError(f"x must be of a floating dtype, got {x.dtype}")
    if heads_axis not in (-3, -2):
        raise ValueError(f"heads_axis must be -3 or -2, got {heads_axis!r}")
    axis = -2 if heads_axis == -3 else -3
    if x.ndim < -axis:
        axes = "tokens, dim" if axis == -2 else "tokens, heads, dim"
        raise ValueError(f"x must be (..., {axes}), got {tuple(x.shape)}")
    _check_wide("cos", cos.dtype)
    _check_wide("sin", sin.dtype)
    tokens, have = x.shape[axis], tuple(cos.shape)
    rows = x.ndim == 4 and len(have) == 3 and have[0] in (1, x.shape[0])
    fits = (rows or len(have) == 2) and have[-2] == tokens
    most = x.shape[-1] // 2
    if not fits or not 1 <= have[-1] <= most or sin.shape != cos.shape:
        batch = f" or ({x.shape[0]} or 1, {tokens}, pairs)" * (x.ndim == 4)
        raise ValueError(
            f"with heads_axis {heads_axis}, cos and sin must both be "
            f"({tokens}, pairs){batch}, "
            f"1 to {most} pairs, got {have} and {tuple(sin.shape)}"
        )
    if layout not in ("interleaved", "half"):
        raise ValueError(
            f"layout must be 'interleaved' or 'half', got {layout!r}"
        )


def _check_positions(positions: Tensor) -> None:
    tensor = isinstance(positions, Tensor)
    given = positions.dtype if tensor else type(positions).__name__
    whole = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    if given not in (*whole, torch.float32, torch.float64):
        raise ValueError(
            "positions must be a tensor of uint8, int8 to int64, float32 or "
            f"float64, got {given}"
        )
    if positions.ndim not in (1, 2):
        shape = tuple(positions.shape)
        raise ValueError(
            f"positions must be (tokens,) or (batch, tokens), got {shape}"
        )


def _check_wide(name: str, dtype: torch.dtype) -> None:
    if dtype not in (torch.float32, torch.float64):
        raise ValueError(f"{name} must be float32 or float64, got {dtype}")
