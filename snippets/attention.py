# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""Scaled dot-product attention, with four entry points for position.

Each query computes a score for every key and takes the weighted mean of the
values:

    score[i, j]  = q[i] . k[j] / sqrt(dim) + bias[i, j]
    weight[i, :] = softmax(score[i, :])
    output[i]    = sum over j of weight[i, j] * v[j]

Nothing in it depends on i or j except the bias, the causal mask, and a score
function that replaces the scaled dot product. Encodings enter

    1. with x, if they are added to it before SelfAttention is called;
    2. through rotate, which rotates q and k;
    3. through bias, which is added to the scores;
    4. through score, which replaces the scaled dot product.

A fifth entry point is the values, as in Shaw's second table. It is not
implemented here.

References:
    Vaswani et al. 2017, arXiv:1706.03762, section 3.2.1 (equation 1); heads:
    section 3.2.2.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn


def scaled_dot_product(
    q: Tensor,  # (..., queries, dim)
    k: Tensor,  # (..., keys, dim)
) -> Tensor:
    """Return the scaled dot product of each query and key.

    Supports compile, export, vmap, mps; no host-device sync.

    Args:
        q: Queries, shape `(..., queries, dim)`.
        k: Keys, shape `(..., keys, dim)`. Leading axes must equal those of `q`
            or be 1, on either side.

    Returns:
        Scores, shape `(..., queries, keys)`.

    Raises:
        ValueError: If `q` and `k` have different widths, leading axes that
            differ and are not 1, or fewer than 2 axes.
    """
    _check_axes(q=q, k=k)
    dim = q.shape[-1]
    if k.shape[-1] != dim:
        raise ValueError(f"k must be as wide as q, {dim}, got {k.shape[-1]}")
    _check_leading("k", k, q)
    return q / math.sqrt(dim) @ k.mT  # (..., queries, keys)


def attention(
    q: Tensor,  # (..., queries, dim)
    k: Tensor,  # (..., keys, dim)
    v: Tensor,  # (..., keys, value_dim)
    bias: Tensor | None = None,  # (..., queries, keys)
    causal: bool = False,
    score: Callable[[Tensor, Tensor], Tensor] = scaled_dot_product,
) -> tuple[Tensor, Tensor]:
    """Return the outputs and the weights of attention.

    For grouped-query attention, repeat the heads of `k` and `v`:
    `k.repeat_interleave(heads // key_heads, -3)`.

    Supports compile, export, vmap, mps; no host-device sync.

    Args:
        q: Queries, shape `(..., queries, dim)`.
        k: Keys, shape `(..., keys, dim)`.
        v: Values, shape `(..., keys, value_dim)`, floating-point.
        bias: Added to the scores, in their unit, shape `(..., queries, keys)`,
            floating-point; -inf hides a key. Leading axes may be missing or 1.
            None adds nothing.
        causal: Whether to hide the keys after each query. The last query is at
            the position of the last key, so a single query with a cache sees
            every key.
        score: Function that computes the scores from `q` and `k`.

    Returns:
        The outputs, shape `(..., queries, value_dim)`, and the weights, shape
        `(..., queries, keys)`, both in the dtype of `v`. If all keys are hidden
        from a query, its weights and output are zero.

    Raises:
        ValueError: If the shape of `k`, `v` or `bias` does not match, `v` or
            `bias` is not floating-point, or `causal` is set with more queries
            than keys.

    Example:
        >>> q, k = torch.tensor([[0.0]]), torch.tensor([[5.0], [7.0]])
        >>> attention(q, k, v=k)
        (tensor([[6.]]), tensor([[0.5000, 0.5000]]))
    """
    _check_axes(q=q, k=k, v=v)
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(
            f"v must have as many tokens as k, {k.shape[-2]}, got {v.shape[-2]}"
        )
    if not v.is_floating_point():
        raise ValueError(f"v must have a floating-point dtype, got {v.dtype}")
    scores = score(q, k)  # (..., queries, keys)
    _check_leading("v", v, scores)
    if bias is not None:
        _check_bias(bias, scores)
        scores = scores + bias  # (..., queries, keys)
    if causal:
        queries, keys = scores.shape[-2:]
        if queries > keys:
            raise ValueError(
                f"with causal, k must have {queries} tokens or more, one per "
                f"query, got {keys}"
            )
        later = scores.new_ones(queries, keys, dtype=torch.bool)
        later = later.triu(keys - queries + 1)  # (queries, keys)
        scores = scores.masked_fill(later, -math.inf)  # (..., queries, keys)
    blind = scores.isneginf().all(-1, keepdim=True)  # (..., queries, 1)
    weights = scores.masked_fill(blind, 0).softmax(-1)  # (..., queries, keys)
    weights = weights.masked_fill(blind, 0).to(v.dtype)  # (..., queries, keys)
    output = weights @ v  # (..., queries, value_dim)
    return output, weights


def _check_axes(**given: Tensor) -> None:
    for name, each in given.items():
        if each.ndim < 2:
            have = tuple(each.shape)
            raise ValueError(f"{name} must be (..., tokens, dim), got {have}")


def _check_leading(name: str, given: Tensor, other: Tensor) -> None:
    have, want = tuple(given.shape), tuple(other.shape)
    leading = zip(have[-3::-1], want[-3::-1], strict=False)
    if any(a != b and 1 not in (a, b) for a, b in leading):
        raise ValueError(
            f"{name} must have the leading axes of {want}, or 1, got {have}; "
            f"for grouped queries, repeat_interleave the heads of {name}"
        )


def _check_bias(bias: Tensor, scores: Tensor) -> None:
    if not bias.is_floating_point():
        raise ValueError(
            f"bias must have a floating-point dtype, got {bias.dtype}"
        )
    have, want = tuple(bias.shape), tuple(scores.shape)
    leading = zip(reversed(have[:-2]), reversed(want[:-2]), strict=False)
    fits = all(size in (1, of) for size, of in leading)
    if have[-2:] != want[-2:] or len(have) > len(want) or not fits:
        raise ValueError(f"bias must fit scores of {want}, got {have}")


class SelfAttention(nn.Module):
    """Compute multi-head self-attention without any positional encoding.

    Positions enter only through the arguments of `forward`, or with `x`.

    Supports compile, export, vmap, per-sample gradients, mps; no host-device
    sync.

    Args:
        dim: Number of channels of the inputs and outputs; a multiple of
            `heads`.
        heads: Number of heads.

    Raises:
        ValueError: If `dim` is not a positive multiple of `heads`.
    """

    def __init__(self, dim: int, heads: int):
        super().__init__()
        if heads < 1 or dim < 1 or dim % heads:
            raise ValueError(
                f"dim must be a multiple of heads, got {dim} and {heads}"
            )
        self.dim = dim
        self.heads = heads
        self.project = nn.Linear(dim, 3 * dim, bias=False)
        self.merge = nn.Linear(dim, dim, bias=False)

    def forward(
        self,
        x: Tensor,  # (..., tokens, dim)
        rotate: Callable[[Tensor], Tensor] | None = None,
        bias: Tensor | None = None,  # (..., tokens, tokens)
        causal: bool = False,
        score: Callable[[Tensor, Tensor], Tensor] = scaled_dot_product,
    ) -> tuple[Tensor, Tensor]:
        """Return the outputs and the weights of each head.

        Args:
            x: Inputs, shape `(..., tokens, dim)`.
            rotate: Function that is applied to the q and then to the k of all
                heads, each of shape `(..., heads, tokens, dim/heads)`, and
                returns a tensor of the same shape. None leaves them unchanged.
            bias: Added to the scores, as in `attention`.
            causal: Whether to hide the keys after each query.
            score: Function that computes the scores from q and k.

        Returns:
            The outputs, in the shape of `x`, and the weights, shape
            `(..., heads, tokens, tokens)`.

        Raises:
            ValueError: If `x` does not have the shape `(..., tokens, dim)`, or
                `bias` is invalid, as described for `attention`.
        """
        if x.ndim < 2 or x.shape[-1] != self.dim:
            raise ValueError(
                f"x must be (..., tokens, {self.dim}), got {tuple(x.shape)}"
            )
        split = self.project(x).unflatten(-1, (3, self.heads, -1))
        split = split.transpose(-2, -4)  # (..., heads, 3, tokens, dim/heads)
        q, k, v = split.unbind(-3)  # (..., heads, tokens, dim/heads)
        if rotate is not None:
            q, k = rotate(q), rotate(k)  # (..., heads, tokens, dim/heads)
        each, weights = attention(q, k, v, bias, causal, score)
        joined = each.transpose(-2, -3).flatten(-2)  # (..., tokens, dim)
        return self.merge(joined), weights
