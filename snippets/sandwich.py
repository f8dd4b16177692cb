# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""Sandwich: a bias from the dot product of two sinusoidal encodings.

Of the sinusoidal encodings of i and j, with dim channels, only the dot product
is used. Each head h, counted from 1, divides it by its own ratio:

    bias[h, i, j] = sum over p of cos((i - j) * w[p]) / (8 h / heads)
    w[p]          = 10000 ^ (-2 p / dim),   p = 0 .. dim/2 - 1

The bias falls roughly with the logarithm of the distance, but not steadily.
With 128 channels, the sum is first below zero at distance 1,707, and its mean
over a doubling of the distance is first below zero from 4,096 to 8,191. From
16,384 on, that mean varies between -2 and 1. The bias has no parameters and is
added to the scaled score.

References:
    arXiv:2212.10356, appendix E, whose code has p from 0, as has
    attn_gym/mods/sandwich.py of github.com/meta-pytorch/attention-gym at
    7fdb85d.
"""

import torch
from torch import Tensor


def sandwich_bias(
    query_positions: Tensor,  # (..., queries)
    key_positions: Tensor,  # (..., keys)
    heads: int,
    dim: int = 128,
    dtype: torch.dtype = torch.float32,
    device: torch.device | None = None,
) -> Tensor:
    """Return the Sandwich bias for both directions.

    The bias hides no key: in a causal model, mask later keys as well.

    The angles are computed in float64 on the device of the positions. If
    `device` has no float64, such as MPS, leave the positions on the CPU. The
    products are computed in float32.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        query_positions: Positions in tokens, integers, shape `(queries,)` if
            all sequences share them, `(1, queries)` or `(batch, queries)`.
        key_positions: The same for the keys, shape `(keys,)`, `(1, keys)` or
            `(batch, keys)`, with the same leading axes.
        heads: Number of heads; at least 1.
        dim: Number of channels of the sinusoids, whatever the width of the
            heads; even and at least 2.
        dtype: Floating-point dtype of the result.
        device: Device of the result; None is that of the query positions.

    Returns:
        The bias, shape `(..., heads, queries, keys)`, dtype `dtype`.

    Raises:
        ValueError: If `heads` is less than 1, `dim` is odd or less than 2,
            positions are not integer tensors or their shapes do not match, or
            `dtype` is not floating-point.

    Example:
        >>> sandwich_bias(torch.tensor([9]), torch.tensor([0, 8, 9]), 2, dim=4)
        tensor([[[0.0212, 0.3851, 0.5000]],
        <BLANKLINE>
                [[0.0106, 0.1925, 0.2500]]])
    """
    if heads < 1:
        raise ValueError(f"heads must be at least 1, got {heads}")
    if dim < 2 or dim % 2:
        raise ValueError(f"dim must be even and at least 2, got {dim}")
    if not dtype.is_floating_point:
        raise ValueError(f"dtype must be a floating dtype, got {dtype}")
    _check_integers("positions", query_positions, key_positions)
    queries, keys = tuple(query_positions.shape), tuple(key_positions.shape)
    if not queries or not keys or queries[:-1] != keys[:-1]:
        raise ValueError(
            "positions must be (..., queries) and (..., keys), "
            f"got {queries} and {keys}"
        )
    q = _sinusoids(query_positions, dim).to(device)  # (..., queries, dim)
    k = _sinusoids(key_positions, dim).to(q.device)  # (..., keys, dim)
    with torch.autocast("cpu" if q.is_meta else q.device.type, enabled=False):
        products = q @ k.mT  # (..., queries, keys)
    head = torch.arange(1, heads + 1, device=q.device)  # (heads)
    scale = heads / (8 * head[:, None, None])  # (heads, 1, 1)
    bias = scale * products[..., None, :, :]  # (..., heads, queries, keys)
    return bias.to(dtype)


def _sinusoids(positions: Tensor, dim: int) -> Tensor:
    p = torch.arange(dim // 2, dtype=torch.float64, device=positions.device)
    w = 10000 ** (-2 * p / dim)  # (dim/2)
    angles = positions.double()[..., None] * w  # (..., dim/2)
    return torch.cat((angles.cos(), angles.sin()), -1).float()  # (..., dim)


def _check_integers(name: str, *given: Tensor) -> None:
    whole = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    for each in given:
        tensor = isinstance(each, Tensor)
        kind = each.dtype if tensor else type(each).__name__
        if kind not in whole:
            raise ValueError(
                f"{name} must be integer tensors (uint8, int8, int16, int32 or "
                f"int64), got {kind}"
            )
