# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""Shaw's relative positions: a learned vector for each clipped distance.

Two tables have a row for each distance r = -clip .. clip from a query to a key;
keys at larger distances share the last row of their side.

    r           = min(max(j - i, -clip), clip)
    score[i, j] = q[i] . (k[j] + key_table[r]) / sqrt(dim)
    output[i]   = sum over j of weight[i, j] * (v[j] + value_table[r])

The heads share the tables, as in the paper's big models; its base models have
two tables for each head. No tensor of queries x keys x dim is created: each q
is multiplied by the 2 clip + 1 rows once, and each key selects its product; the
weights are summed by row before they are multiplied by the rows.

References:
    Shaw et al. 2018, arXiv:1803.02155, equations 3 and 4, section 3.2.
    Reference code: dot_product_attention_relative in
    github.com/tensorflow/tensor2tensor at bafdc1b,
    tensor2tensor/layers/common_attention.py.
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
    """Return the attention scores with Shaw's table for keys.

    At its peak, in float32, this takes three tensors of the size of the scores,
    and 8 bytes more per query and key.

    If positions are on the CPU and `q` is not, each call copies them, and the
    host waits for the copy.

    The backward pass uses atomic additions, which are slow on a GPU: for
    consecutive positions, train with `shaw_scores_consecutive`.

    Supports compile, export, vmap, mps; no host-device sync.

    Args:
        q: Queries, shape `(..., queries, dim)`.
        k: Keys, shape `(..., keys, dim)`. It may have fewer heads than `q`:
            each key head serves heads / key_heads heads, in order.
        key_table: One vector per distance, shape `(2 * clip + 1, dim)`.
        query_positions: Positions in tokens, integers, shape `(queries,)` if
            all sequences share them, `(1, queries)` or `(batch, queries)`. May
            stay on the CPU.
        key_positions: The same for the keys, shape `(keys,)`, `(1, keys)` or
            `(batch, keys)`, with the same leading axes.

    Returns:
        Scores, shape `(..., queries, keys)`.

    Raises:
        ValueError: If the shapes do not match, or positions are not integers.

    Example:
        >>> q, k = torch.tensor([[4.0]]), torch.tensor([[1.0], [1.0], [1.0]])
        >>> table = torch.tensor([[0.1], [0.2], [0.3]])  # r = -1, 0, 1
        >>> shaw_scores(q, k, table, torch.tensor([7]), torch.tensor([2, 7, 8]))
        tensor([[4.4000, 4.8000, 5.2000]])
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
    """Return the addition of Shaw's table for values to the output.

    The weights are summed in float32 or wider.

    If positions are on the CPU and `weights` are not, each call copies them,
    and the host waits for the copy.

    This uses atomic additions, which are slow on a GPU: for consecutive
    positions, use `shaw_values_consecutive`.

    Supports compile, export, vmap, mps; no host-device sync.

    Args:
        weights: Attention weights, shape `(..., queries, keys)`.
        value_table: One vector per distance, shape `(2 * clip + 1, dim)`.
        query_positions: Positions of the queries, as in `shaw_scores`.
        key_positions: Positions of the keys, as in `shaw_scores`.

    Returns:
        The addition to the output, shape `(..., queries, dim)`.

    Raises:
        ValueError: In the cases listed for `shaw_scores`.

    Example:
        >>> weights, at = torch.tensor([[0.25, 0.75]]), torch.tensor([5, 6])
        >>> table = torch.tensor([[1.0], [2.0], [4.0]])
        >>> shaw_values(weights, table, at[:1], at)
        tensor([[3.5000]])
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
    """Return the scores of `shaw_scores` for consecutive positions.

    The result has the same bits. The keys are consecutive, and the queries are
    the last of them: all of them in training, one in decoding.

    On a GPU, the products of q and the table are shifted into place, one row
    after the other, and the gradient is a sum. `shaw_scores`, which takes any
    positions, uses a lookup: its gradient is an atomic addition for each query
    and key, most of them to two columns, and training waits for them. At its
    peak this takes four tensors of the size of the scores. A CPU adds one by
    one: there, this function calls `shaw_scores`.

    Supports compile, export, vmap, mps; no host-device sync.

    Args:
        q: Queries, shape `(..., queries, dim)`.
        k: Keys, shape `(..., keys, dim)`. It may have fewer heads than `q`.
        key_table: One vector per distance, shape `(offsets, dim)` with
            `2 * clip + 1` offsets.

    Returns:
        Scores, shape `(..., queries, keys)`.

    Raises:
        ValueError: If the shapes do not match, or there are more queries than
            keys.

    Example:
        >>> q, k = torch.tensor([[4.0]]), torch.tensor([[1.0], [1.0], [1.0]])
        >>> shaw_scores_consecutive(q, k, torch.tensor([[0.1], [0.2], [0.3]]))
        tensor([[4.4000, 4.4000, 4.8000]])
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
    """Return the result of `shaw_values` for consecutive positions.

    As in `shaw_scores_consecutive`, the queries are the last of the keys. On a
    GPU there are no atomic additions, neither forward nor backward; weights
    that share a row are summed in another order than in `shaw_values`. On a
    CPU, this function calls `shaw_values`.

    Supports compile, export, vmap, mps; no host-device sync.

    Args:
        weights: Attention weights, shape `(..., queries, keys)`.
        value_table: One vector per distance, shape `(offsets, dim)` with
            `2 * clip + 1` offsets.

    Returns:
        The addition to the output, shape `(..., queries, dim)`.

    Raises:
        ValueError: In the cases listed for `shaw_scores_consecutive`.

    Example:
        >>> weights = torch.tensor([[0.25, 0.75]])
        >>> table = torch.tensor([[1.0], [2.0], [4.0]])
        >>> shaw_values_consecutive(weights, table)
        tensor([[1.7500]])
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
    """Hold both tables of a layer.

    With attention.py, for tokens at positions `at`:

        score = lambda q, k: shaw(q, k, at, at)
        output, weights = attention(q, k, v, score=score)
        output = output + shaw.values(weights, at, at)

    If positions are on the CPU and the module is not, each call copies them,
    and the host waits for the copy.

    Supports compile, export, vmap, per-sample gradients, mps; no host-device
    sync.

    Args:
        dim: Width of a head; at least 1.
        clip: Distance at which offsets are clipped; at least 0. Each table has
            2 clip + 1 rows.

    Raises:
        ValueError: If `dim` is less than 1 or `clip` is negative.
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
        """Initialise both tables."""
        nn.init.xavier_uniform_(self.key_table)
        nn.init.xavier_uniform_(self.value_table)

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        query_positions: Tensor,
        key_positions: Tensor,
    ) -> Tensor:
        """Return the attention scores with the table for keys.

        Args:
            q: Queries, shape `(..., queries, dim)`.
            k: Keys, shape `(..., keys, dim)`.
            query_positions: Positions of the queries, as in `shaw_scores`.
            key_positions: Positions of the keys, as in `shaw_scores`.

        Returns:
            Scores, shape `(..., queries, keys)`.

        Raises:
            ValueError: In the cases listed for `shaw_scores`.
        """
        return shaw_scores(q, k, self.key_table, query_positions, key_positions)

    def values(
        self, weights: Tensor, query_positions: Tensor, key_positions: Tensor
    ) -> Tensor:
        """Return the addition of the table for values to the output.

        Args:
            weights: Attention weights, shape `(..., queries, keys)`.
            query_positions: Positions of the queries, as in `shaw_scores`.
            key_positions: Positions of the keys, as in `shaw_scores`.

        Returns:
            The addition to the output, shape `(..., queries, dim)`.

        Raises:
            ValueError: In the cases listed for `shaw_values`.
        """
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
    """Return the row of the table for each query and key."""
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
            "query and key positions must match scores of shape "
            f"{tuple(shape)}, got {(*batch, queries)} and {(*batch, keys)}"
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
            "queries are the last keys: they must be 0 to the number of keys, "
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
    if not compiling:  # a compiler creates no unused columns
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
    """Return sums per query and clipped offset: (..., queries, offsets)."""
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
