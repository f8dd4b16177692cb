# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""ALiBi: add a bias to each score that is linear in the distance.

Tokens have no position vector. Head h has a fixed slope, which is not learned:

    bias[h, i, j] = -slope[h] * (i - j)   for keys j <= i, -inf for later keys

The bias is added to q[i] . k[j] / sqrt(dim), the scaled score, before the
softmax.

References:
    Press et al. 2021, arXiv:2108.12409, section 3.
    Any number of heads: get_slopes in
    github.com/ofirpress/attention_with_linear_biases at 4b92f28,
    fairseq/models/transformer.py. There the bias is slope * j, which is larger
    by slope * i; the softmax does not depend on that term.
    Both directions: issue 5 of that repository.
"""

import math

import torch
from torch import Tensor


def alibi_slopes(heads: int, device: torch.device | None = None) -> Tensor:
    """Return the slope of each head.

    For a power of two, the slopes are 2^(-8/heads), 2^(-16/heads), ..., 2^-8.
    For any other number of heads, they are the slopes of the power of two below
    it, followed by every second slope of the power of two above it, starting
    with the steepest.

    Args:
        heads: Number of heads; at least 1.
        device: Device of the result; None is torch's default device.

    Returns:
        Slopes, in units of the score per token, shape `(heads,)`, float32.

    Raises:
        ValueError: If `heads` is less than 1.

    Example:
        >>> alibi_slopes(3)
        tensor([0.0625, 0.0039, 0.2500])
    """
    if heads < 1:
        raise ValueError(f"heads must be at least 1, got {heads}")
    below = 1 << (heads.bit_length() - 1)  # the largest power of two <= heads
    rank = torch.arange(1, heads + 1, dtype=torch.float64)  # (heads)
    between = 2 * (rank - below) - 1  # 1, 3, 5, ... for the heads beyond
    steps = torch.where(rank <= below, 8 * rank, 4 * between)  # (heads)
    return (2 ** (-steps / below)).to(device, torch.float32)  # (heads)


def alibi_bias(
    query_positions: Tensor,  # (..., queries)
    key_positions: Tensor,  # (..., keys)
    slopes: Tensor,  # (heads)
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Return the causal ALiBi bias.

    To use it with torch's fused kernel, for q, k and v of shape
    `(batch, heads, tokens, dim)`, give positions of shape `(1, tokens)` or
    `(batch, tokens)`, so that the bias has the four axes that the kernel
    requires:

        slopes = alibi_slopes(heads, q.device)  # once, not for each token
        bias = alibi_bias(positions, positions, slopes, q.dtype)
        scaled_dot_product_attention(q, k, v, attn_mask=bias)  # not is_causal

    Under torch.compile, flex_attention needs no bias tensor: pass it a causal
    block_mask and this score_mod:

        lambda score, b, h, i, j: score - slopes[h] * (i - j)

    There i and j are indices, so queries and keys must begin at the same
    position. With cached keys, add their number to i, in both functions.

    The bias is computed in float32 and then converted to `dtype`. At its peak
    this takes 4 * heads + 13 bytes per query and key, and 2 * heads more if the
    result has 16 bits.

    If positions are on the CPU and `slopes` are not, each call copies them, and
    the host waits for the copy.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        query_positions: Positions in tokens, integers, shape `(queries,)` if
            all sequences share them, `(1, queries)` or `(batch, queries)`. May
            stay on the CPU.
        key_positions: The same for the keys, shape `(keys,)`, `(1, keys)` or
            `(batch, keys)`, with the same leading axes.
        slopes: One slope per head, as from `alibi_slopes`, shape `(heads,)`,
            floating-point.
        dtype: Floating-point dtype of the result.

    Returns:
        The bias, shape `(..., heads, queries, keys)`, dtype `dtype`, on the
        device of `slopes`; -inf for later keys.

    Raises:
        ValueError: If positions are not integer tensors or their shapes do not
            match, `slopes` is not one floating-point number per head, or
            `dtype` is not floating-point.

    Example:
        >>> alibi_bias(torch.tensor([2]), torch.arange(4), alibi_slopes(1))
        tensor([[[-0.0078, -0.0039,  0.0000,    -inf]]])
    """
    _check(slopes, dtype)
    offsets = _offsets(query_positions, key_positions, slopes.device)
    later = offsets > 0  # (..., queries, keys)
    steps = offsets.float().masked_fill(later, -math.inf)
    bias = slopes[:, None, None] * steps[..., None, :, :]
    return bias.to(dtype)  # (..., heads, queries, keys)


def alibi_bias_symmetric(
    query_positions: Tensor,  # (..., queries)
    key_positions: Tensor,  # (..., keys)
    slopes: Tensor,  # (heads)
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Return the ALiBi bias for both directions, which hides no key.

    The bias is -slope * |i - j|. The paper has only causal models.

    If positions are on the CPU and `slopes` are not, each call copies them, and
    the host waits for the copy.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        query_positions: Positions of the queries, as in `alibi_bias`.
        key_positions: Positions of the keys, as in `alibi_bias`.
        slopes: One slope per head, as from `alibi_slopes`, shape `(heads,)`,
            floating-point.
        dtype: Floating-point dtype of the result.

    Returns:
        The bias, shape `(..., heads, queries, keys)`, dtype `dtype`, on the
        device of `slopes`.

    Raises:
        ValueError: In the cases listed for `alibi_bias`.

    Example:
        >>> at = torch.arange(4)
        >>> alibi_bias_symmetric(at[2:3], at, alibi_slopes(1))
        tensor([[[-0.0078, -0.0039,  0.0000, -0.0039]]])

    """
    _check(slopes, dtype)
    offsets = _offsets(query_positions, key_positions, slopes.device)
    bias = slopes[:, None, None] * (-offsets.abs()).float()[..., None, :, :]
    return bias.to(dtype)  # (..., heads, queries, keys)


def _check(slopes: Tensor, dtype: torch.dtype) -> None:
    if not isinstance(slopes, Tensor):
        raise ValueError(f"slopes must be those of alibi_slopes, got {slopes}")
    if not slopes.is_floating_point() or slopes.ndim != 1 or not len(slopes):
        raise ValueError(
            "slopes must be floating and (heads,), "
            f"got {slopes.dtype} {tuple(slopes.shape)}"
        )
    if not dtype.is_floating_point:
        raise ValueError(f"dtype must be a floating dtype, got {dtype}")


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


def _offsets(
    query_positions: Tensor, key_positions: Tensor, device: torch.device | None
) -> Tensor:
    """Return key minus query position: (..., queries, keys), int64."""
    _check_integers("positions", query_positions, key_positions)
    queries, keys = tuple(query_positions.shape), tuple(key_positions.shape)
    if not queries or not keys or queries[:-1] != keys[:-1]:
        raise ValueError(
            "positions must be (..., queries) and (..., keys), "
            f"got {queries} and {keys}"
        )
    i = query_positions.to(device, torch.int64)[..., :, None]
    return key_positions.to(device)[..., None, :] - i  # (..., queries, keys)
