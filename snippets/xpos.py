# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-22
"""xPos: RoPE whose pairs fade from the score with distance, fast ones sooner.

Pair p of a query at position i or a key at position j turns as in RoPE and is
scaled by a power of its decay zeta[p], inverse for queries and keys:

    w[p]    = base ^ (-2 p / dim)             radians per position
    zeta[p] = (2 p / dim + gamma) / (1 + gamma)
    query:    scale zeta[p] ^ ((i - centre) / scale_base)
    key:      scale zeta[p] ^ ((centre - j) / scale_base)

In the score the centre cancels and zeta[p] ^ ((i - j) / scale_base) is left.
For keys after the query it would grow: xPos is for causal attention only.

Source: arXiv:2212.10554, section 3.2 (equations 9 and 10, algorithm 1), which
has zeta ^ n, without scale_base. That and the value of gamma are from
github.com/microsoft/torchscale at 4d1e0e8,
torchscale/component/xpos_relative_position.py.
"""

import math

import torch
from torch import Tensor


def xpos_decay(
    dim: int, gamma: float = 0.4, device: torch.device | None = None
) -> Tensor:
    """What remains of each pair after scale_base positions: (dim/2,), float64.

    The slowest to turn lose least; a greater gamma leaves more to all. device
    is where it is made.

    >>> xpos_decay(4)
    tensor([0.2857, 0.6429], dtype=torch.float64)

    ValueError: dim odd or below 2, gamma not positive, or infinite.
    """
    if dim < 2 or dim % 2:
        raise ValueError(f"dim must be even and at least 2, got {dim}")
    if not 0 < gamma < math.inf:
        raise ValueError(f"gamma must be a positive number, got {gamma}")
    p = torch.arange(dim // 2, dtype=torch.float64, device=device)  # (dim/2)
    return (2 * p / dim + gamma) / (1 + gamma)  # (dim/2)


def xpos_tables(
    positions: Tensor,  # (..., tokens)
    dim: int,
    role: str,
    centre: float,
    base: float = 10000.0,
    gamma: float = 0.4,
    scale_base: float = 512.0,
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor]:
    """Scaled cosine and sine of each angle: two of (..., tokens, dim/2).

    Make them once per call of the model and role, for all layers. positions is
    (tokens,), (1, tokens) or (batch, tokens), role "query" or "key". centre is
    a position, the same for all queries and keys that meet, those of a cache
    included: torchscale's moves as the text grows, so that it has to cache keys
    before they are scaled. dtype is float32 for x of float32 and less, float64
    for x of float64. Angles and scales are float64 and are made where positions
    live: leave positions on the CPU if x is on a device without float64, such
    as mps, and bring the tables to x, once.

    Far from the centre the scales leave what the dtype of x can hold, since n
    positions from it they reach 3.5 ^ (n / 512): at some 4,500 in float16, some
    36,000 in float32 and bfloat16.

    >>> cos, sin = xpos_tables(torch.tensor([0, 512]), 2, "query", centre=0)
    >>> cos
    tensor([[ 1.0000],
            [-0.2848]])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: positions of another shape, or not of uint8, int8 to int64,
    float32 or float64; dim odd or below 2; base, gamma or scale_base not
    positive, or infinite; another role; dtype not float32 or float64.
    """
    _check_positions(positions)
    _check_wide("dtype", dtype)
    if role not in ("query", "key"):
        raise ValueError(f"role must be 'query' or 'key', got {role!r}")
    for name, value in (("base", base), ("scale_base", scale_base)):
        if not 0 < value < math.inf:
            raise ValueError(f"{name} must be a positive number, got {value}")
    device = positions.device
    zeta = xpos_decay(dim, gamma, device)  # (dim/2)
    p = torch.arange(dim // 2, dtype=torch.float64, device=device)  # (dim/2)
    position = positions.double()[..., None]  # (..., tokens, 1)
    power = (position - centre) / scale_base  # (..., tokens, 1)
    scale = zeta ** (power if role == "query" else -power)
    angles = position * base ** (-2 * p / dim)  # (..., tokens, dim/2)
    # in one tensor, which a compiler makes once, and not again for each head
    cos, sin = (scale * torch.stack((angles.cos(), angles.sin()))).to(dtype)
    return cos, sin  # (..., pairs)


def apply_xpos(
    x: Tensor,  # (..., dim)
    cos: Tensor,  # (..., tokens, pairs)
    sin: Tensor,  # (..., tokens, pairs)
    heads_axis: int = -3,
) -> Tensor:
    """The queries or the keys of each head, turned and scaled: like x.

    cos and sin are those of xpos_tables, (tokens, dim/2) for all rows alike, or
    (batch, tokens, dim/2), where batch may be 1. x is (batch, heads, tokens,
    dim), or, with heads_axis -2, (batch, tokens, heads, dim): the axis of heads
    is added to the tables here. With tables of (tokens, dim/2), x may have
    other axes before its tokens, or none. Pairs are interleaved, channels 2 p
    and 2 p + 1. The arithmetic is float32 at least, whatever the dtype of x.
    Tables go where x is.

    >>> cos, sin = xpos_tables(torch.tensor([0, 512]), 2, "query", centre=0)
    >>> apply_xpos(torch.ones(2, 2), cos, sin)
    tensor([[ 1.0000,  1.0000],
            [-0.3075, -0.2621]])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: shapes that do not fit; x not of a floating dtype; cos or sin
    not float32 or float64; another axis.
    """
    _check(x, cos, sin, heads_axis)
    dtype = torch.promote_types(x.dtype, torch.float32)
    cos, sin = cos.to(x.device, dtype), sin.to(x.device, dtype)
    if cos.ndim == 3 or heads_axis == -2:
        cos, sin = cos.unsqueeze(heads_axis), sin.unsqueeze(heads_axis)
    if not torch.compiler.is_compiling():
        # the same, and much faster, but compilers have no complex numbers
        turned = _complex(x.to(cos)) * torch.complex(cos, sin)  # (..., pairs)
        return torch.view_as_real(turned).flatten(-2).to(x)  # (..., dim)
    a, b = x.to(cos).unflatten(-1, (-1, 2)).unbind(-1)  # (..., pairs)
    first = torch.addcmul(a * cos, b, sin, value=-1)  # (..., pairs)
    second = torch.addcmul(a * sin, b, cos)  # (..., pairs)
    return torch.stack((first, second), dim=-1).flatten(-2).to(x)  # (..., dim)


def _complex(x: Tensor) -> Tensor:
    """Return channels 2 p and 2 p + 1 as one number, as a view if possible."""
    pairs = x.unflatten(-1, (-1, 2))  # (..., pairs, 2)
    *strides, last = pairs.stride()
    if last != 1 or any(n % 2 for n in (*strides, pairs.storage_offset())):
        return torch.complex(*pairs.unbind(-1))  # (..., pairs)
    return torch.view_as_complex(pairs)  # (..., pairs)


def _check(x: Tensor, cos: Tensor, sin: Tensor, heads_axis: int) -> None:
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
    if not fits or 2 * have[-1] != x.shape[-1] or sin.shape != cos.shape:
        pairs = f"{x.shape[-1] / 2:g}"
        batch = f" or ({x.shape[0]} or 1, {tokens}, {pairs})" * (x.ndim == 4)
        raise ValueError(
            f"with heads_axis {heads_axis}, cos and sin must both be "
            f"({tokens}, {pairs}){batch}, "
            f"got {have} and {tuple(sin.shape)}"
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
