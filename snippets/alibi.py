# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-22
"""ALiBi: every step between query and key costs the score a fixed amount.

Tokens get no position vector. Head h has a slope that nobody learns:

    bias[h, i, j] = -slope[h] * (i - j)   for keys j <= i, -inf for later keys

It is added to q[i] . k[j] / sqrt(dim), the scaled score, before the softmax.

Source: arXiv:2108.12409, section 3. For any number of heads: get_slopes in
github.com/ofirpress/attention_with_linear_biases at 4b92f28,
fairseq/models/transformer.py, where the bias is slope * j: larger by slope * i,
which the softmax does not see. Both directions: issue 5 of that repository.
"""

import math

import torch
from torch import Tensor


def alibi_slopes(heads: int, device: torch.device | None = None) -> Tensor:
    """What a step costs in each head: (heads,), float32, score per token.

    A power of two gives 2^(-8/heads), 2^(-16/heads), ..., 2^-8. Any other
    number takes the slopes of the power of two below it, then every second
    one of the power of two above it, from the steepest on. device is where they
    are to be.

    >>> alibi_slopes(3)
    tensor([0.0625, 0.0039, 0.2500])

    ValueError: heads below 1.
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
    """The causal bias: (..., heads, queries, keys), -inf for later keys.

    Positions are integers, in tokens: (tokens,) for all rows of a batch, (1,
    tokens) or (batch, tokens). They may stay on the CPU. Counted in float32,
    cast last; at its peak that takes 4 * heads + 13 bytes per query and key,
    and 2 * heads more if the result has 16 bits. For q, k and v of (batch,
    heads, tokens, dim) and positions of (1, tokens) or (batch, tokens), which
    give it the four axes that torch's fused kernel wants:

        slopes = alibi_slopes(heads, q.device)  # once, not for each token
        bias = alibi_bias(positions, positions, slopes, q.dtype)
        scaled_dot_product_attention(q, k, v, attn_mask=bias)  # not is_causal

    Compiled, flex_attention makes none: give it a causal block_mask and, as
    score_mod, lambda score, b, h, i, j: score - slopes[h] * (i - j). There i
    and j count rows, so queries have to begin where keys do; with cached keys,
    add their number to i, in both.

    >>> alibi_bias(torch.tensor([2]), torch.arange(4), alibi_slopes(1))
    tensor([[[-0.0078, -0.0039,  0.0000,    -inf]]])

    Positions left on the CPU are copied in each call: the host waits for that.

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: positions that are no tensors of integers or do not fit each
    other; slopes that are not one floating number per head; dtype not floating.
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
    """For both directions, -slope * |i - j|: it hides no key.

    The paper has causal models only. Shapes and errors: as alibi_bias.

    Positions left on the CPU are copied in each call: the host waits for that.

    Fit for autocast, compile, export, vmap, mps; no sync.

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
                f"{name} must be tensors of uint8 or int8 to int64, got {kind}"
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
