# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-26
"""Shaw's relative positions: a learned vector for each clipped distance.

Two tables have a row for each distance r = -clip .. clip from a query to a key;
keys that are farther away share the last row of their side.

    r           = min(max(j - i, -clip), clip)
    score[i, j] = q[i] . (k[j] + key_table[r]) / sqrt(dim)
    output[i]   = sum over j of weight[i, j] * (v[j] + value_table[r])

Heads share the tables, as in the paper's big models; its base models have two
for each head. No tensor of queries x keys x dim is made: each q meets the
2 clip + 1 rows once and every key picks its product, and the weights are summed
by row before they meet the rows.

Source: arXiv:1803.02155, equations 3 and 4, section 3.2; reference code:
dot_product_attention_relative in github.com/tensorflow/tensor2tensor at
bafdc1b, tensor2tensor/layers/common_attention.py.
"""

import math

import torch
from torch import Tensor, nn


def shaw_scores(
    q: Tensor,  # (..., queries, dim)
    k: Tensor,  # (..., keys, dim)
    key_table: Tensor,  # (2 * clip + 1, dim)
    query_positions: Tensor,  # (..., queries)
    key_positions: Tensor,  # (..., keys)
) -> Tensor:
    """How well each key fits each query: (..., queries, keys).

    Positions are integers, in tokens: (tokens,) for all rows of a batch, (1,
    tokens) or (batch, tokens). They may stay on the CPU. k may have fewer heads
    than q: each serves heads / key_heads of them, in order. At its peak, in
    float32, it holds three tensors of the size of the scores, and 8 bytes more
    per query and key.

    >>> q, k = torch.tensor([[4.0]]), torch.tensor([[1.0], [1.0], [1.0]])
    >>> table = torch.tensor([[0.1], [0.2], [0.3]])  # r = -1, 0, 1
    >>> shaw_scores(q, k, table, torch.tensor([7]), torch.tensor([2, 7, 8]))
    tensor([[4.4000, 4.8000, 5.2000]])

    Positions left on the CPU are copied in each call: the host waits for that.

    Its backward pass adds atomically, which is slow on a GPU: for consecutive
    positions, train with shaw_scores_consecutive.

    Fit for compile, export, vmap, mps; no sync.

    ValueError: shapes that do not fit; positions that are no integers.
    """
    _check_keys(q, k)
    dim = q.shape[-1]
    clip = _clip_of(key_table, dim)
    q = q / math.sqrt(dim)  # (..., queries, dim)
    content = _products(q, k)  # (..., queries, keys)
    rows = _rows(query_positions, key_positions, clip, content)
    by_row = q @ key_table.mT  # (..., queries, 2 * clip + 1)
    return content + by_row.gather(-1, rows)  # (..., queries, keys)


def shaw_values(
    weights: Tensor,  # (..., queries, keys)
    value_table: Tensor,  # (2 * clip + 1, dim)
    query_positions: Tensor,  # (..., queries)
    key_positions: Tensor,  # (..., keys)
) -> Tensor:
    """What the table adds to the output of attention: (..., queries, dim).

    Weights are summed in float32 or better.

    >>> weights, at = torch.tensor([[0.25, 0.75]]), torch.tensor([5, 6])
    >>> shaw_values(weights, torch.tensor([[1.0], [2.0], [4.0]]), at[:1], at)
    tensor([[3.5000]])

    Positions left on the CPU are copied in each call: the host waits for that.

    It adds atomically, which is slow on a GPU: for consecutive positions use
    shaw_values_consecutive.

    Fit for compile, export, vmap, mps; no sync.

    ValueError: as shaw_scores.
    """
    clip = _clip_of(value_table)
    rows = _rows(query_positions, key_positions, clip, weights)
    exact = weights.to(torch.promote_types(weights.dtype, torch.float32))
    by_row = exact.new_zeros(*weights.shape[:-1], 2 * clip + 1)
    by_row = by_row.scatter_add(-1, rows, exact).to(weights.dtype)
    return by_row @ value_table  # (..., queries, dim)


def shaw_scores_consecutive(
    q: Tensor,  # (..., queries, dim)
    k: Tensor,  # (..., keys, dim)
    key_table: Tensor,  # (offsets, dim)
) -> Tensor:
    """shaw_scores of consecutive positions: (..., queries, keys), same bits.

    The keys stand one after the other, and the queries are the last of them:
    all of them in training, one in decoding. k may have fewer heads than q.

    On a GPU the products of q and the table are shifted into place, one row
    after the other, and the gradient is a sum. shaw_scores, which takes any
    positions, looks products up: its gradient is an atomic addition for each
    query and key, most of them to two columns, and training waits for them. At
    its peak this holds four tensors of the size of the scores. A CPU adds one
    by one: there this is shaw_scores.

    >>> q, k = torch.tensor([[4.0]]), torch.tensor([[1.0], [1.0], [1.0]])
    >>> shaw_scores_consecutive(q, k, torch.tensor([[0.1], [0.2], [0.3]]))
    tensor([[4.4000, 4.4000, 4.8000]])

    Fit for compile, export, vmap, mps; no sync.

    ValueError: shapes that do not fit; more queries than keys.
    """
    _check_keys(q, k)
    dim, queries, keys = q.shape[-1], q.shape[-2], k.shape[-2]
    _check_last(queries, keys)
    clip = _clip_of(key_table, dim)
    if _on_cpu(q):
        return shaw_scores(q, k, key_table, *_last_of(queries, keys))
    q = q / math.sqrt(dim)  # (..., queries, dim)
    content = _products(q, k)  # (..., queries, keys)
    columns = _each_offset(q @ key_table.mT, -clip, queries, keys)
    return content + _skewed(columns, keys)  # (..., queries, keys)


def shaw_values_consecutive(
    weights: Tensor,  # (..., queries, keys)
    value_table: Tensor,  # (offsets, dim)
) -> Tensor:
    """shaw_values of consecutive positions: (..., queries, dim).

    As shaw_scores_consecutive: the queries are the last of the keys. On a GPU
    nothing is added atomically here, neither forward nor backward; weights that
    share a row are summed in another order than by shaw_values. On a CPU,
    unless compiled, this is shaw_values.

    >>> weights = torch.tensor([[0.25, 0.75]])
    >>> shaw_values_consecutive(weights, torch.tensor([[1.0], [2.0], [4.0]]))
    tensor([[1.7500]])

    Fit for compile, export, vmap, mps; no sync.

    ValueError: as shaw_scores_consecutive.
    """
    clip = _clip_of(value_table)
    if weights.ndim < 2:
        have = tuple(weights.shape)
        raise ValueError(f"weights must be (..., queries, keys), got {have}")
    queries, keys = weights.shape[-2:]
    _check_last(queries, keys)
    if _on_cpu(weights):
        return shaw_values(weights, value_table, *_last_of(queries, keys))
    exact = weights.to(torch.promote_types(weights.dtype, torch.float32))
    by_row = _sums_by_offset(exact, clip).to(weights.dtype)
    return by_row @ value_table  # (..., queries, dim)


class ShawTables(nn.Module):
    """Both tables of a layer, for heads of width dim: dim, 2 clip + 1 rows.

    forward gives scores, values what to add to the output. With attention.py,
    for tokens at positions `at`:

        score = lambda q, k: shaw(q, k, at, at)
        output, weights = attention(q, k, v, score=score)
        output = output + shaw.values(weights, at, at)

    Positions left on the CPU are copied in each call: the host waits for that.

    Fit for compile, export, vmap, gradients per sample, mps; no sync.

    ValueError: as shaw_scores; dim below 1 or clip below 0.
    """

    def __init__(self, dim: int, clip: int):
        super().__init__()
        if dim < 1 or clip < 0:
            raise ValueError(
                "dim must be 1 or more and clip 0 or more, "
                f"got {dim} and {clip}"
            )
        self.key_table = nn.Parameter(torch.empty(2 * clip + 1, dim))
        self.value_table = nn.Parameter(torch.empty(2 * clip + 1, dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.xavier_uniform_(self.key_table)
        nn.init.xavier_uniform_(self.value_table)

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        query_positions: Tensor,
        key_positions: Tensor,
    ) -> Tensor:
        return shaw_scores(q, k, self.key_table, query_positions, key_positions)

    def values(
        self, weights: Tensor, query_positions: Tensor, key_positions: Tensor
    ) -> Tensor:
        """shaw_values of its table."""
        table = self.value_table
        return shaw_values(weights, table, query_positions, key_positions)


def _clip_of(table: Tensor, dim: int | None = None) -> int:
    shape = tuple(table.shape)
    if dim is None:
        dim = shape[-1] if shape else 1
    if len(shape) != 2 or shape[0] % 2 == 0 or shape[1] != dim:
        raise ValueError(f"a table must be (2 clip + 1, {dim}), got {shape}")
    return shape[0] // 2


def _rows(
    query_positions: Tensor, key_positions: Tensor, clip: int, scores: Tensor
) -> Tensor:
    """The row that each query has for each key: int64, for these scores."""
    offsets = _offsets(query_positions, key_positions, scores.device)
    return _per_head(offsets.clamp(-clip, clip).add_(clip), scores.shape)


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


def _per_head(rows: Tensor, shape: torch.Size) -> Tensor:
    """Add an axis of heads to rows, (..., queries, keys), to fit scores."""
    *batch, queries, keys = rows.shape
    fits = len(batch) in (0, len(shape) - 3) and (queries, keys) == shape[-2:]
    leading = zip(batch, shape, strict=False)
    if not fits or any(n not in (1, of) for n, of in leading):
        raise ValueError(
            f"positions must fit scores of {tuple(shape)}, "
            f"got {(*batch, queries)} and {(*batch, keys)}"
        )
    rows = rows[..., None, :, :] if batch else rows
    return rows.expand(shape)  # (..., queries, keys)


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


def _on_cpu(x: Tensor) -> bool:
    """Return whether lookups are fast in backward, without atomic additions."""
    return x.device.type == "cpu"


def _last_of(queries: int, keys: int) -> tuple[Tensor, Tensor]:
    """Return positions of queries and keys; the queries are the last keys."""
    positions = torch.arange(keys)
    return positions[keys - queries :], positions


def _check_last(queries: int, keys: int) -> None:
    if not 0 <= queries <= keys:
        raise ValueError(
            "queries must be the last of the keys, from 0 to as many, "
            f"got {queries} queries and {keys} keys"
        )


def _each_offset(
    columns: Tensor, start: int, queries: int, keys: int
) -> Tensor:
    """Extend the columns, from offset start on, to offsets -keys to queries.

    This uses repeats and slices, whose gradients are sums, and no lookup.
    """
    first, last = columns[..., :1], columns[..., -1:]
    before, after, end = keys, queries, start + columns.shape[-1] - 1
    compiling = torch.compiler.is_compiling()
    if not compiling:  # which makes nothing that is cut off again
        before, after = max(keys + start, 0), max(queries - end, 0)
        stop = columns.shape[-1] - max(end - queries, 0)
        columns = columns[..., max(-start - keys, 0) : stop]
    parts = (
        first.expand(*first.shape[:-1], before),
        columns,
        last.expand(*last.shape[:-1], after),
    )
    each = torch.cat(parts, -1)  # (..., keys + queries + 1)
    if compiling:
        return each[..., -start : keys + queries + 1 - start]
    return each


def _skewed(columns: Tensor, keys: int) -> Tensor:
    """Turn one column per offset, -keys to queries, into one per key.

    The columns of each query are shifted one step further to the left than
    those of the next query, as in Transformer-XL. The last query is at the
    position of the last key.
    """
    queries = columns.shape[-2]
    moved = columns.flatten(-2)[..., queries:]
    moved = moved.unflatten(-1, (queries, queries + keys))
    return moved[..., :keys]  # (..., queries, keys)


def _sums_by_offset(weights: Tensor, clip: int) -> Tensor:
    """Of each query the sum for each offset, clipped: (..., 2 * clip + 1)."""
    queries, keys = weights.shape[-2:]
    if clip == 0:
        return weights.sum(-1, keepdim=True)
    sizes = keys + 1, 2 * clip - 1, queries + 1  # before, near and after
    padded = nn.functional.pad(weights, (queries + clip, clip, 0, 1))
    moved = padded.flatten(-2)[..., : queries * sum(sizes)]
    before, near, after = moved.unflatten(-1, (queries, sum(sizes))).split(
        sizes, -1
    )
    ends = before.sum(-1, keepdim=True), after.sum(-1, keepdim=True)
    return torch.cat((ends[0], near, ends[1]), -1)
