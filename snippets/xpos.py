# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""xPos: RoPE with scores that decay with distance, faster at high frequencies.

Pair p of a query at position i or a key at position j is rotated as in RoPE and
scaled by a power of its decay zeta[p], inverse for queries and keys:

    w[p]    = base ^ (-2 p / dim)             radians per position
    zeta[p] = (2 p / dim + gamma) / (1 + gamma)
    query:    scale zeta[p] ^ ((i - centre) / scale_base)
    key:      scale zeta[p] ^ ((centre - j) / scale_base)

In the score, the centre cancels, and zeta[p] ^ ((i - j) / scale_base) remains.
For keys after the query this factor would grow: xPos is for causal attention
only.

References:
    arXiv:2212.10554, section 3.2 (equations 9 and 10, algorithm 1), which has
    zeta ^ n, without scale_base.
    scale_base and the value of gamma: github.com/microsoft/torchscale at
    4d1e0e8, torchscale/component/xpos_relative_position.py.
"""

import math

import torch
from torch import Tensor


def xpos_decay(
    dim: int, gamma: float = 0.4, device: torch.device | None = None
) -> Tensor:
    """Return the factor by which each pair decays over scale_base positions.

    The pairs of the lowest frequencies decay least; a larger gamma makes all
    pairs decay less.

    Args:
        dim: Number of channels per head; even and at least 2.
        gamma: Parameter of the decay; positive and finite.
        device: Device on which to create the result; None is torch's default
            device.

    Returns:
        The factors, shape `(dim/2,)`, float64.

    Raises:
        ValueError: If `dim` is odd or less than 2, or `gamma` is not positive
            and finite.

    Example:
        >>> xpos_decay(4)
        tensor([0.2857, 0.6429], dtype=torch.float64)
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
    """Return the scaled cosine and sine of each rotation angle.

    Compute the tables once per forward pass of the model and role, for all
    layers. Angles and scales are computed in float64 on the device of
    `positions`. If `x` is on a device without float64, such as MPS, leave
    `positions` on the CPU and move the tables to the device of `x` once.

    Far from the centre, the scales exceed the range of the dtype of `x`,
    because n positions from it they reach 3.5 ^ (n / 512): at about 4,500
    positions in float16, and about 36,000 in float32 and bfloat16.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        positions: Position of each token, shape `(tokens,)`, `(1, tokens)` or
            `(batch, tokens)`; uint8, int8 to int64, float32 or float64.
        dim: Number of channels per head; even and at least 2.
        role: "query" or "key".
        centre: Position at which the scale is 1. It must be the same for all
            queries and keys that meet, including cached ones. In torchscale it
            moves as the text grows, so torchscale has to cache keys before they
            are scaled.
        base: Base of the frequencies; positive and finite.
        gamma: Parameter of the decay, as in `xpos_decay`.
        scale_base: Number of positions over which a pair decays by its factor;
            positive and finite.
        dtype: Dtype of the tables: float32 if `x` is float32 or narrower,
            float64 if `x` is float64.

    Returns:
        Scaled cosines and sines, each of shape `(..., tokens, dim/2)` and dtype
        `dtype`, on the device of `positions`.

    Raises:
        ValueError: If `positions` does not have the shape or dtype described
            above; `dim` is odd or less than 2; `base`, `gamma` or `scale_base`
            is not positive and finite; `role` is unknown; or `dtype` is neither
            float32 nor float64.

    Example:
        >>> cos, sin = xpos_tables(torch.tensor([0, 512]), 2, "query", centre=0)
        >>> cos
        tensor([[ 1.0000],
                [-0.2848]])
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
    """Rotate and scale a query or key tensor.

    Pairs are interleaved: pair p is channels 2 p and 2 p + 1. The arithmetic is
    float32 or wider, whatever the dtype of `x`.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        x: Queries or keys, shape `(batch, heads, tokens, dim)`, or
            `(batch, tokens, heads, dim)` with `heads_axis=-2`. With tables of
            shape `(tokens, dim/2)`, `x` may have any other axes, or none,
            before these: `(..., tokens, dim)`, or `(..., tokens, heads, dim)`
            with `heads_axis=-2`.
        cos: Scaled cosines from `xpos_tables`, without an axis for heads:
            `(tokens, dim/2)` if all sequences share them, or
            `(batch, tokens, dim/2)`, where batch may be 1; float32 or float64.
            Moved to the device of `x`.
        sin: Scaled sines from `xpos_tables`, in the same shape as `cos`.
        heads_axis: Axis of the heads in `x`, -3 or -2.

    Returns:
        The rotated and scaled tensor, with the shape and dtype of `x`.

    Raises:
        ValueError: If the shapes do not match, `x` is not floating-point, `cos`
            or `sin` is neither float32 nor float64, or `heads_axis` is neither
            -3 nor -2.

    Example:
        >>> cos, sin = xpos_tables(torch.tensor([0, 512]), 2, "query", centre=0)
        >>> apply_xpos(torch.ones(2, 2), cos, sin)
        tensor([[ 1.0000,  1.0000],
                [-0.3075, -0.2621]])
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
