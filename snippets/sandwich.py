# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-23
"""Sandwich: the bias that two sinusoidal encodings have in common.

The dot product of the sinusoidal vectors of i and j, dim channels wide, is all
that is kept of them; each head divides it by a ratio of its own, h from 1:

    bias[h, i, j] = sum over p of cos((i - j) * w[p]) / (8 h / heads)
    w[p]          = 10000 ^ (-2 p / dim),   p = 0 .. dim/2 - 1

It falls, roughly with the logarithm of the distance and not steadily: of 128
channels the sum is first below zero at distance 1,707, and its mean over each
doubling of the distance in that from 4,096 to 8,191. From 16,384 on that mean
wavers, between -2 and 1. The bias has no parameters and is added to the scaled
score.

Source: arXiv:2212.10356, appendix E, whose code has p from 0, as has
attn_gym/mods/sandwich.py of github.com/meta-pytorch/attention-gym at 7fdb85d.
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
    """The bias of both directions: (..., heads, queries, keys).

    Positions are integers, in tokens: (tokens,) for all rows of a batch, (1,
    tokens) or (batch, tokens). Their angles are float64, made where positions
    live: leave them on the CPU if device, where the bias is wanted, has no
    float64, as mps. The products are float32. dim is that of the sinusoids,
    whatever the width of the heads. It hides no key: in a causal model mask
    later keys too.

    >>> sandwich_bias(torch.tensor([9]), torch.tensor([0, 8, 9]), 2, dim=4)
    tensor([[[0.0212, 0.3851, 0.5000]],
    <BLANKLINE>
            [[0.0106, 0.1925, 0.2500]]])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: heads below 1; dim odd or below 2; positions that are no tensors
    of integers or do not fit each other; dtype not floating.
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
                f"{name} must be tensors of uint8 or int8 to int64, got {kind}"
            )
