# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-26
"""CoPE: positions that depend on content, counted by gates of each query.

    gate[i, t]  = sigmoid(q[i] . k[t] / sqrt(dim))
    p[i, j]     = gate[i, j] + ... + gate[i, i], at most rows - 1
    score[i, j] = q[i] . k[j] / sqrt(dim) + q[i] . table[p[i, j]]

Between two whole positions, table[p] is interpolated linearly. If all gates are
open, p is the distance plus 1; if gates open only at the ends of sentences, p
is a number of sentences. Keys after the query have no gate and no score: their
gates would let future tokens change earlier positions.

References:
    arXiv:2405.18719, the code of appendix B.
    The authors' repository, github.com/facebookresearch/RAM at e6f051f,
    projects/cope/src/cope/context_position.py, divides q[i] . table[p] by
    sqrt(dim) as well, unless configured otherwise.
"""

import math

import torch
from torch import Tensor, nn


def cope_scores(
    q: Tensor,  # (..., queries, dim)
    k: Tensor,  # (..., keys, dim)
    table: Tensor,  # (rows, dim)
) -> Tensor:
    """Return the attention scores with CoPE.

    The gates are summed in float32 or wider: bfloat16 has no position between
    128 and 129.

    The backward pass uses atomic additions, which are slow on a GPU: there,
    compile `cope_scores_compiled`.

    Supports compile, export, vmap, mps; no host-device sync.

    Args:
        q: Queries, shape `(..., queries, dim)`. The last query is at the
            position of the last key, so a single query may be used with a cache
            of keys.
        k: Keys, shape `(..., keys, dim)`. It may have fewer heads than `q`:
            each key head serves heads / key_heads heads, in order.
        table: Learned vectors, shape `(rows, dim)`.

    Returns:
        Scores, shape `(..., queries, keys)`; -inf for later keys.

    Raises:
        ValueError: If the shapes do not match, or there are more queries than
            keys.

    Example:
        >>> q, k = torch.zeros(1, 1), torch.zeros(3, 1)  # every gate half open
        >>> q[0], table = 1.0, torch.tensor([[0.0], [10.0], [40.0]])
        >>> cope_scores(q, k, table)
        tensor([[25., 10.,  5.]])
    """
    _check_keys(q, k)
    dim, queries, keys = q.shape[-1], q.shape[-2], k.shape[-2]
    if queries > keys:
        raise ValueError(f"{queries} queries need as many keys, got {keys}")
    if table.ndim != 2 or table.shape[1] != dim or len(table) == 0:
        raise ValueError(
            f"table must be (rows, {dim}), got {tuple(table.shape)}"
        )
    later = q.new_ones(queries, keys, dtype=torch.bool).triu(keys - queries + 1)
    scores = _products(q / math.sqrt(dim), k)  # (..., queries, keys)
    scores = scores.masked_fill(later, -math.inf)  # (..., queries, keys)
    exact = torch.promote_types(q.dtype, torch.float32)
    gates = scores.to(exact).sigmoid()  # (..., queries, keys)
    p = gates.flip(-1).cumsum(-1).flip(-1)  # (..., queries, keys)
    p = p.clamp(max=len(table) - 1)  # (..., queries, keys)
    below = p.detach().long()  # (..., queries, keys)
    part = (p - below).to(scores.dtype)  # (..., queries, keys)
    by_row = q @ table.mT  # (..., queries, rows)
    step = by_row.diff(append=by_row[..., -1:])  # (..., queries, rows)
    at_p = by_row.gather(-1, below) + part * step.gather(-1, below)
    return scores + at_p  # (..., queries, keys)


def cope_scores_compiled(
    q: Tensor,  # (..., queries, dim)
    k: Tensor,  # (..., keys, dim)
    table: Tensor,  # (rows, dim)
) -> Tensor:
    """Return the scores of `cope_scores`, for torch.compile on a GPU.

    The result has the same bits. `cope_scores` uses a lookup of rows: on a GPU
    its gradient consists of two atomic additions for each query and key, and
    all keys from position rows - 1 on add to one row. This function sums over
    all rows for each query and key, where all but one row count as zero,
    forward and backward. This takes `rows` times as many additions, which a
    compiled kernel performs without storing the terms. Without compilation,
    they would take `rows` times the memory of the scores, and more time on a
    CPU; in both cases this function calls `cope_scores`.

    With a module: `cope_scores_compiled(q, k, cope.table)`, and torch.compile
    of the caller.

    Supports compile, export, vmap, mps; no host-device sync.

    Args:
        q: Queries, as in `cope_scores`.
        k: Keys, as in `cope_scores`.
        table: Learned vectors, shape `(rows, dim)`.

    Returns:
        Scores, shape `(..., queries, keys)`; -inf for later keys.

    Raises:
        ValueError: In the cases listed for `cope_scores`.
    """
    if _on_cpu(q) or not torch.compiler.is_compiling():
        return cope_scores(q, k, table)
    _check_keys(q, k)
    dim, queries, keys = q.shape[-1], q.shape[-2], k.shape[-2]
    if queries > keys:
        raise ValueError(f"{queries} queries need as many keys, got {keys}")
    if table.ndim != 2 or table.shape[1] != dim or len(table) == 0:
        raise ValueError(
            f"table must be (rows, {dim}), got {tuple(table.shape)}"
        )
    later = q.new_ones(queries, keys, dtype=torch.bool).triu(keys - queries + 1)
    scores = _products(q / math.sqrt(dim), k)  # (..., queries, keys)
    scores = scores.masked_fill(later, -math.inf)  # (..., queries, keys)
    exact = torch.promote_types(q.dtype, torch.float32)
    gates = scores.to(exact).sigmoid()  # (..., queries, keys)
    p = gates.flip(-1).cumsum(-1).flip(-1)  # (..., queries, keys)
    p = p.clamp(max=len(table) - 1)  # (..., queries, keys)
    below = p.detach().int()  # (..., queries, keys)
    part = (p - below).to(scores.dtype)  # (..., queries, keys)
    by_row = q @ table.mT  # (..., queries, rows)
    step = by_row.diff(append=by_row[..., -1:])  # (..., queries, rows)
    rows = torch.arange(len(table), dtype=below.dtype, device=q.device)
    here = below[..., None] == rows  # (..., queries, keys, rows)
    at, up = (
        torch.where(here, each[..., None, :], 0).sum(-1)
        for each in (by_row, step)
    )
    return scores + (at + part * up)  # (..., queries, keys)


class CopeScores(nn.Module):
    """Hold the table of a layer, shared by all heads and initialised to zero.

    The module is a score function for attention.py. Positions from rows - 1 on
    count as one, so there may be far fewer rows than tokens.

    Supports compile, export, vmap, per-sample gradients, mps; no host-device
    sync.

    Args:
        dim: Width of a head; at least 1.
        rows: Number of rows of the table; at least 1.

    Raises:
        ValueError: If `dim` or `rows` is less than 1.
    """

    def __init__(self, dim: int, rows: int):
        super().__init__()
        if dim < 1 or rows < 1:
            raise ValueError(
                f"dim and rows must be at least 1, got {dim} and {rows}"
            )
        self.table = nn.Parameter(torch.empty(rows, dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the table to zero."""
        nn.init.zeros_(self.table)

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        """Return the attention scores with CoPE.

        Args:
            q: Queries, as in `cope_scores`.
            k: Keys, as in `cope_scores`.

        Returns:
            Scores, shape `(..., queries, keys)`; -inf for later keys.

        Raises:
            ValueError: In the cases listed for `cope_scores`.
        """
        return cope_scores(q, k, self.table)


def _check_keys(q: Tensor, k: Tensor) -> None:
    want, have = tuple(q.shape), tuple(k.shape)
    if len(want) < 2 or len(have) < 2:
        raise ValueError(
            f"q and k must be (..., tokens, dim), got {want} and {have}"
        )
    if have[-1] != want[-1]:
        raise ValueError(f"k must be as wide as q, {want[-1]}, got {have[-1]}")
    leading = list(zip(have[-3::-1], want[-3::-1], strict=False))
    fits = all(n and of % n == 0 for n, of in leading[:1])  # heads
    fits = fits and all(n in (1, of) for n, of in leading[1:])
    if not fits or len(have) > len(want):
        raise ValueError(
            f"k must have the leading axes of q, {want}, or 1, or fewer heads "
            f"that divide its, got {have}"
        )


def _products(q: Tensor, k: Tensor) -> Tensor:
    """Return q . k; each key head serves heads / key_heads heads, in order."""
    if k.ndim < 3:
        return q @ k.mT  # (..., queries, keys)
    (heads, queries), key_heads = q.shape[-3:-1], k.shape[-3]
    group = heads // key_heads
    rows = q.unflatten(-3, (key_heads, group)).flatten(-3, -2)
    products = rows @ k.mT  # (..., key_heads, group*queries, keys)
    return products.unflatten(-2, (group, queries)).flatten(-4, -3)


def _on_cpu(x: Tensor) -> bool:
    """Return whether lookups are fast in backward, without atomic additions."""
    return x.device.type == "cpu"
