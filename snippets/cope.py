# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-26
"""CoPE: a query counts the keys back to j, each by how much it matters to it.

    gate[i, t]  = sigmoid(q[i] . k[t] / sqrt(dim))
    p[i, j]     = gate[i, j] + ... + gate[i, i], at most rows - 1
    score[i, j] = q[i] . k[j] / sqrt(dim) + q[i] . table[p[i, j]]

Between two whole positions table[p] is the mean of its neighbours, weighted.
With all gates open p is the distance plus 1; with gates that open only at the
ends of sentences it is a number of sentences. Keys after the query have no gate
and no score: a gate of theirs would let the future move the past.

Source: arXiv:2405.18719, the code of appendix B. The authors' repository,
github.com/facebookresearch/RAM at e6f051f,
projects/cope/src/cope/context_position.py, divides q[i] . table[p] by
sqrt(dim) too, unless told not to.
"""

import math

import torch
from torch import Tensor, nn


def cope_scores(
    q: Tensor,  # (..., queries, dim)
    k: Tensor,  # (..., keys, dim)
    table: Tensor,  # (rows, dim)
) -> Tensor:
    """How well each key fits each query: (..., queries, keys).

    The last query stands at the last key, so that one query may meet a cache of
    keys. Later keys get -inf. Gates are summed in float32 or better: bfloat16
    has no position between 128 and 129. k may have fewer heads than q: each
    serves heads / key_heads of them, in order.

    >>> q, k = torch.zeros(1, 1), torch.zeros(3, 1)  # every gate half open
    >>> q[0], table = 1.0, torch.tensor([[0.0], [10.0], [40.0]])
    >>> cope_scores(q, k, table)
    tensor([[25., 10.,  5.]])

    Its backward pass adds atomically, which is slow on a GPU: there compile
    cope_scores_compiled.

    Fit for compile, export, vmap, mps; no sync.

    ValueError: shapes that do not fit; more queries than keys.
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
    """cope_scores for torch.compile on a GPU: the same shape and bits.

    cope_scores looks rows up: on a GPU its gradient is two atomic additions for
    each query and key, and all keys from rows - 1 on add to one row. Here each
    query and key takes the sum of all rows of its query, of which all but one
    count as zero, forward and backward. That is rows times as many additions,
    which a compiled kernel makes without ever holding them. Not compiled, they
    would take rows times the memory of the scores, and on a CPU more time:
    there this is cope_scores.

    With a module: cope_scores_compiled(q, k, cope.table), and torch.compile of
    what calls it.

    Fit for compile, export, vmap, mps; no sync.

    ValueError: as cope_scores.
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
    """The table of a layer, for heads of width dim: a score for attention.py.

    All heads share it. It starts at zero, and positions from rows - 1 on are
    one: there may be far fewer rows than tokens.

    Fit for compile, export, vmap, gradients per sample, mps; no sync.

    ValueError: as cope_scores; dim or rows below 1.
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
        nn.init.zeros_(self.table)

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
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
