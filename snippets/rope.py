# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""Rotary position embedding (RoPE): rotate q and k by an angle per position.

RoPE splits the channels of each head into pairs (a, b), p = 0 .. dim/2 - 1, and
rotates pair p at position pos by the angle t = pos * w[p]:

    w[p] = base ^ (-2 p / dim)        radians per position
    (a, b) becomes (a cos t - b sin t, a sin t + b cos t)

The dot product of a rotated query and a rotated key depends on the two
positions only through their difference. Two channel layouts are in use, which
differ in the channels that form pair p; a checkpoint works with one of them:

    interleaved    2 p and 2 p + 1      the paper, LLaMA by Meta, GPT-J
    half           p and p + dim/2      GPT-NeoX, LLaMA in transformers

Call `rope_frequencies` once, `rope_tables` once per forward pass of the model,
and `apply_rope` in each layer, for q and k but not for v.

References:
    Su et al. 2021, arXiv:2104.09864, sections 3.2.2 and 3.4.2 (equations 15 and
    34).
    Layout half: github.com/EleutherAI/gpt-neox at ea7aefd,
    megatron/model/positional_embeddings.py.
    Layout interleaved: github.com/meta-llama/llama at 689c7f2, llama/model.py.
"""

import math

import torch
from torch import Tensor


def rope_frequencies(
    dim: int, base: float, device: torch.device | None = None
) -> Tensor:
    """Return the rotation frequency of each channel pair.

    Keep the result as a plain attribute of the model, or compute it wherever
    tables are computed. A registered buffer would follow the model to bfloat16,
    which `rope_tables` rejects.

    Args:
        dim: Number of rotated channels per head; even and at least 2.
        base: RoPE base of the checkpoint, `rope_theta` in most configurations:
            10,000 in the paper and in LLaMA, 500,000 in Llama 3. There is no
            default because a wrong base raises no error and only makes the
            results worse.
        device: Device on which to create the result; None is torch's default
            device. Use "cpu" for a model that is initialised on "meta",
            otherwise the frequencies stay on "meta".

    Returns:
        Frequencies in radians per position, shape `(dim/2,)`, float64.

    Raises:
        ValueError: If `dim` is odd or less than 2, or `base` is not a positive
            finite number.

    Example:
        >>> rope_frequencies(6, base=10000)
        tensor([1.0000, 0.0464, 0.0022], dtype=torch.float64)
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
    """Return the cosine and sine of each rotation angle.

    Compute the tables once per forward pass of the model, and use them in all
    layers, for both q and k. The angles are computed in float64 on the device
    of `positions`. If `x` is on a device without float64, such as MPS, leave
    `positions` on the CPU and move the tables to the device of `x` once.

    An attention factor, as in YaRN or LongRoPE, may be multiplied into both
    tables. It then scales only the rotated channels of q and k, as in
    transformers.

    Most models were trained with float32 angles, which differ from exact angles
    at large positions. The tables of such a model are, bit for bit:

        w = 1 / base ** (torch.arange(0, dim, 2).float() / dim)
        angles = positions.float()[..., None] * w
        cos, sin = angles.cos(), angles.sin()

    If `frequencies` are on another device than `positions`, each call copies
    them, and the host waits for the copy.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        positions: Position of each token, shape `(tokens,)`, `(1, tokens)` or
            `(batch, tokens)`; uint8, int8 to int64, float32 or float64.
            bfloat16 is rejected because it cannot represent 257.
        frequencies: Radians per position, shape `(pairs,)`, float32 or float64,
            as `rope_frequencies` returns them.
        dtype: Dtype of the tables: float32 if `x` is float32 or narrower,
            float64 if `x` is float64.

    Returns:
        Cosines and sines, each of shape `(..., tokens, pairs)` and dtype
        `dtype`, on the device of `positions`.

    Raises:
        ValueError: If `positions` or `frequencies` do not have the shape or
            dtype described above, or `dtype` is neither float32 nor float64.

    Example:
        >>> frequencies = rope_frequencies(4, base=10000)
        >>> cos, sin = rope_tables(torch.tensor([0, 1]), frequencies)
        >>> sin
        tensor([[0.0000, 0.0000],
                [0.8415, 0.0100]])
    """
    _check_positions(positions)
    _check_wide("frequencies", frequencies.dtype)
    _check_wide("dtype", dtype)
    shape = tuple(frequencies.shape)
    if len(shape) != 1 or shape[0] < 1:
        raise ValueError(
            f"frequencies must be (pairs,), at least one pair, got {shape}"
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
    """Rotate a query or key tensor by the angles of its positions.

    If the tables have fewer than `dim/2` pairs, only the first `2 * pairs`
    channels are rotated, and the other channels are returned unchanged (partial
    rotary); take the frequencies from rope_frequencies(2 * pairs, base).

    Tables from transformers contain each column twice. Pass only the first half
    of the columns, or every second column for Cohere and BLT, which repeat each
    column next to itself. A table with both copies raises an error, unless at
    most half of `dim` is rotated: then it is mistaken for a table with twice as
    many pairs.

    The arithmetic is float32 or wider, whatever the dtype of `x`. Layout "half"
    needs at most three times the memory of `x`, including the result.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        x: Queries or keys, shape `(batch, heads, tokens, dim)`, or
            `(batch, tokens, heads, dim)` with `heads_axis=-2`. q and k may be
            stacked as heads of one tensor. With tables of shape
            `(tokens, pairs)`, `x` may have any other axes, or none, before
            these: `(..., tokens, dim)`, or `(..., tokens, heads, dim)` with
            `heads_axis=-2`.
        cos: Cosines from `rope_tables`, one column per pair, without an axis
            for heads: `(tokens, pairs)` if all sequences share them, or
            `(batch, tokens, pairs)`, where batch may be 1; float32 or float64.
            Moved to the device of `x`.
        sin: Sines from `rope_tables`, in the same shape as `cos`.
        layout: "interleaved" or "half", as in the checkpoint. There is no
            default because the wrong layout raises no error and only makes the
            results worse.
        heads_axis: Axis of the heads in `x`, -3 or -2.

    Returns:
        The rotated tensor, with the shape and dtype of `x`.

    Raises:
        ValueError: If the shapes do not match, `x` is not floating-point, `cos`
            or `sin` is neither float32 nor float64, or `layout` or `heads_axis`
            is not as described above.

    Example:
        >>> x = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
        >>> frequencies = rope_frequencies(4, base=10000)
        >>> cos, sin = rope_tables(torch.tensor([1]), frequencies)
        >>> apply_rope(x, cos, sin, "interleaved")
        tensor([[0.5403, 0.8415, 0.0000, 0.0000]])
        >>> apply_rope(x, cos, sin, "half")
        tensor([[0.5403, 0.0000, 0.8415, 0.0000]])
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
        # one half at a time has the tables' dtype, which takes least memory
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
    """Reorder a q or k projection from layout "interleaved" to "half".

    The projections of v and of the output stay as they are.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        weight: Weight of a Linear layer, shape `(heads * dim, in)`, or its
            bias, shape `(heads * dim,)`.
        heads: Number of heads in `weight`. For the projection of k this is the
            number of key-value heads, which cannot be inferred from the shape.
            For a norm of `dim` channels after the projection, it is 1.
        rotary_dim: Number of rotated channels per head; None means all of them.

    Returns:
        The reordered tensor, with the shape and dtype of `weight`.

    Raises:
        ValueError: If `heads` does not divide the number of rows of `weight`,
            or `rotary_dim` is not an even number from 2 to the head width.

    Example:
        >>> interleaved_to_half(torch.tensor([0, 1, 2, 3, 4]), 1, rotary_dim=4)
        tensor([0, 2, 1, 3, 4])
    """
    return _reorder(weight, heads, rotary_dim, (-1, 2))


def half_to_interleaved(
    weight: Tensor, heads: int, rotary_dim: int | None = None
) -> Tensor:
    """Reorder a q or k projection from layout "half" to "interleaved".

    This is the inverse of `interleaved_to_half`.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        weight: Weight of a Linear layer, shape `(heads * dim, in)`, or its
            bias, shape `(heads * dim,)`.
        heads: Number of heads in `weight`, as in `interleaved_to_half`.
        rotary_dim: Number of rotated channels per head; None means all of them.

    Returns:
        The reordered tensor, with the shape and dtype of `weight`.

    Raises:
        ValueError: In the cases listed for `interleaved_to_half`.
    """
    return _reorder(weight, heads, rotary_dim, (2, -1))


def _reorder(
    weight: Tensor, heads: int, rotary_dim: int | None, pairs: tuple[int, int]
) -> Tensor:
    rows = weight.shape[0] if weight.ndim else 0
    if heads < 1 or rows < heads or rows % heads:
        raise ValueError(
            "the rows of weight must be a positive multiple of heads, "
            f"{heads}, got {rows}"
        )
    dim = rows // heads
    width = dim if rotary_dim is None else rotary_dim
    if not 2 <= width <= dim or width % 2:
        raise ValueError(f"rotary_dim must be even, 2 to {dim}, got {width}")
    each = weight.unflatten(0, (heads, dim))
    first = each[:, :width].unflatten(1, pairs).transpose(1, 2).flatten(1, 2)
    return torch.cat((first, each[:, width:]), dim=1).flatten(0, 1)


def _complex(x: Tensor) -> Tensor:
    """Return channels 2 p and 2 p + 1 as one number, as a view if possible."""
    pairs = x.unflatten(-1, (-1, 2))  # (..., pairs, 2)
    *strides, last = pairs.stride()
    if last != 1 or any(n % 2 for n in (*strides, pairs.storage_offset())):
        return torch.complex(*pairs.unbind(-1))  # (..., pairs)
    return torch.view_as_complex(pairs)  # (..., pairs)


def _check(
    x: Tensor, cos: Tensor, sin: Tensor, layout: str, heads_axis: int
) -> None:
    if not x.is_floating_point():
        raise ValueError(f"x must have a floating-point dtype, got {x.dtype}")
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
