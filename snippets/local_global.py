# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""Local-global relative positions: exact offsets nearby, buckets at a distance.

A key at offset o = j - i from a query has one vector in the score:

    score[i, j] = q[i] . (k[j] + vector(o)) / sqrt(dim)
    vector(o)   = local_table[o + window]                 if |o| <= window
                = global_table[o > 0, bucket]             otherwise
    bucket      = min((|o| - window - 1) // width, far_buckets - 1)

Each far bucket except the last contains width distances, and the last one
contains all larger ones. No tensor of queries x keys x dim is created: each q
is multiplied by every row once, and every key selects its product.

This is a module for learning, not a paper's method. Two bugs occur in other
implementations. (1) Offsets that are shifted to start at 0, then clipped to
-window..window and shifted again: every key from the query on gets the last
local row. (2) Offsets that are clipped to the window before the lookup: then no
key is in a far bucket, and the global table never receives a gradient.

References:
    No paper of its own.
    Vectors in the score: Shaw et al. 2018, arXiv:1803.02155, equation 4.
    Finer buckets nearby than at a distance, as numbers: Raffel et al. 2019,
    arXiv:1910.10683, section 2.1.
"""

import math

import torch
from torch import Tensor, nn


def local_global_index(
    query_positions: Tensor,  # (..., queries)
    key_positions: Tensor,  # (..., keys)
    window: int,
    width: int,
    far_buckets: int,
    device: torch.device | None = None,
) -> Tensor:
    """Return the row of the tables for each query and key.

    Rows 0 to 2 window are the local table. They are followed by the far
    buckets before the query, nearest first, and then by those after it.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        query_positions: Positions in tokens, integers, shape `(..., queries)`.
        key_positions: Positions of the keys, integers, shape `(..., keys)`,
            with the same leading axes.
        window: Largest distance of the local table, in tokens; at least 0.
        width: Number of distances in a far bucket; at least 1.
        far_buckets: Number of far buckets on each side; at least 1.
        device: Device of the result, to which positions are moved; None is the
            device of the positions.

    Returns:
        Row indices, shape `(..., queries, keys)`, int64.

    Raises:
        ValueError: If `window`, `width` or `far_buckets` is not as described
            above, or positions are not integer tensors or their shapes do not
            match.

    Example:
        >>> at = torch.arange(6)
        >>> local_global_index(at[:1], at, window=1, width=2, far_buckets=2)
        tensor([[1, 2, 5, 5, 6, 6]])
        >>> local_global_index(at[5:], at, window=1, width=2, far_buckets=2)
        tensor([[4, 4, 3, 3, 0, 1]])
    """
    if window < 0 or width < 1 or far_buckets < 1:
        raise ValueError(
            "window must be at least 0, width and far_buckets at least 1, "
            f"got {window}, {width} and {far_buckets}"
        )
    offsets = _offsets(query_positions, key_positions, device)
    distance = offsets.abs()  # (..., queries, keys)
    bucket = (distance - window - 1).div(width, rounding_mode="floor")
    after = (offsets > 0).long()  # (..., queries, keys)
    far = (
        2 * window + 1 + far_buckets * after + bucket.clamp(max=far_buckets - 1)
    )
    return torch.where(distance <= window, offsets + window, far)


def local_global_scores(
    q: Tensor,  # (..., queries, dim)
    k: Tensor,  # (..., keys, dim)
    local_table: Tensor,  # (2 * window + 1, dim)
    global_table: Tensor,  # (2, far_buckets, dim)
    query_positions: Tensor,  # (..., queries)
    key_positions: Tensor,  # (..., keys)
    width: int,
) -> Tensor:
    """Return the attention scores with local and global vectors.

    The scores hide no key: in a causal model, mask later keys as well.

    If positions are on the CPU and `q` is not, each call copies them, and the
    host waits for the copy.

    The backward pass uses atomic additions, which are slow on a GPU: for
    consecutive positions, train with `local_global_scores_consecutive`.

    Supports compile, export, vmap, mps; no host-device sync.

    Args:
        q: Queries, shape `(..., queries, dim)`.
        k: Keys, shape `(..., keys, dim)`. It may have fewer heads than `q`:
            each key head serves heads / key_heads heads, in order.
        local_table: One vector per offset, shape `(2 * window + 1, dim)`.
        global_table: Vectors of the far buckets before and after the query,
            shape `(2, far_buckets, dim)`.
        query_positions: Positions in tokens, integers, shape `(queries,)` if
            all sequences share them, or, if `q` has heads, `(1, queries)` or
            `(batch, queries)`. May stay on the CPU.
        key_positions: The same for the keys, with the same leading axes.
        width: Number of distances in a far bucket; at least 1.

    Returns:
        Scores, shape `(..., queries, keys)`.

    Raises:
        ValueError: In the cases listed for `local_global_index`, or if the
            shapes do not match.

    Example:
        >>> q, k = torch.ones(1, 1), torch.zeros(4, 1)
        >>> near = torch.tensor([[1.0], [2.0], [3.0]])
        >>> far = torch.zeros(2, 1, 1)
        >>> at = torch.tensor([5]), torch.tensor([3, 4, 5, 6])
        >>> local_global_scores(q, k, near, far + 9, *at, width=4)
        tensor([[9., 1., 2., 3.]])
    """
    _check_keys(q, k)
    dim = q.shape[-1]
    have = tuple(local_table.shape), tuple(global_table.shape)
    _check_tables(*have, dim)
    window, far_buckets = have[0][0] // 2, have[1][1]
    at = query_positions, key_positions
    rows = local_global_index(*at, window, width, far_buckets, q.device)
    q = q / math.sqrt(dim)  # (..., queries, dim)
    content = _products(q, k)  # (..., queries, keys)
    rows = _per_head(rows, content.shape)  # (..., queries, keys)
    table = torch.cat((local_table, global_table.flatten(0, 1)))  # (all, dim)
    by_row = q @ table.mT  # (..., queries, all)
    return content + by_row.gather(-1, rows)  # (..., queries, keys)


def local_global_scores_consecutive(
    q: Tensor,  # (..., queries, dim)
    k: Tensor,  # (..., keys, dim)
    local_table: Tensor,  # (rows, dim)
    global_table: Tensor,  # (2, far_buckets, dim)
    width: int,
) -> Tensor:
    """Return the scores of `local_global_scores` for consecutive positions.

    The result has the same bits. The keys are consecutive, and the queries are
    the last of them: all of them in training, one in decoding. The scores hide
    no key.

    On a GPU, the products of q and the tables are shifted into place, one row
    after the other, and the gradient is a sum. `local_global_scores`, which
    takes any positions, uses a lookup: its gradient is an atomic addition for
    each query and key, many of them to the same column, and training waits for
    them. A CPU adds one by one: there, this function calls
    `local_global_scores`.

    Supports compile, export, vmap, mps; no host-device sync.

    Args:
        q: Queries, shape `(..., queries, dim)`.
        k: Keys, shape `(..., keys, dim)`. It may have fewer heads than `q`.
        local_table: One vector per offset, shape `(rows, dim)` with
            `2 * window + 1` rows.
        global_table: Vectors of the far buckets before and after the query,
            shape `(2, far_buckets, dim)`.
        width: Number of distances in a far bucket; at least 1.

    Returns:
        Scores, shape `(..., queries, keys)`.

    Raises:
        ValueError: In the cases listed for `local_global_scores`, or if there
            are more queries than keys.

    Example:
        >>> q, k = torch.ones(1, 1), torch.zeros(4, 1)
        >>> near = torch.tensor([[1.0], [2.0], [3.0]])
        >>> far = torch.zeros(2, 1, 1)
        >>> local_global_scores_consecutive(q, k, near, far + 9, width=4)
        tensor([[9., 9., 1., 2.]])
    """
    _check_keys(q, k)
    queries, keys = q.shape[-2], k.shape[-2]
    _check_last(queries, keys)
    tables = local_table, global_table
    have = tuple(local_table.shape), tuple(global_table.shape)
    _check_tables(*have, q.shape[-1])
    nowhere = torch.arange(0)  # reject invalid sizes
    window = len(local_table) // 2
    local_global_index(nowhere, nowhere, window, width, have[1][1])
    if _on_cpu(q):
        at = _last_of(queries, keys)
        return local_global_scores(q, k, *tables, *at, width)
    q = q / math.sqrt(q.shape[-1])  # (..., queries, dim)
    content = _products(q, k)  # (..., queries, keys)
    table = torch.cat((local_table, global_table.flatten(0, 1)))  # (all, dim)
    columns = _by_offset(q @ table.mT, window, width, keys)
    columns = _each_offset(columns, -(columns.shape[-1] // 2), queries, keys)
    return content + _skewed(columns, keys)  # (..., queries, keys)


class LocalGlobal(nn.Module):
    """Hold both tables of a layer.

    With attention.py, for tokens at positions `at`:

        score = lambda q, k: local_global(q, k, at, at)
        output, weights = attention(q, k, v, score=score)

    If positions are on the CPU and the module is not, each call copies them,
    and the host waits for the copy.

    Supports compile, export, vmap, per-sample gradients, mps; no host-device
    sync.

    Args:
        dim: Width of a head; at least 1.
        window: Largest distance of the local table, in tokens; at least 0.
        width: Number of distances in a far bucket; at least 1.
        far_buckets: Number of far buckets on each side; at least 1.

    Raises:
        ValueError: If `dim` is less than 1, or in the cases listed for
            `local_global_index`.
    """

    def __init__(self, dim: int, window: int, width: int, far_buckets: int):
        super().__init__()
        if dim < 1:
            raise ValueError(f"dim must be at least 1, got {dim}")
        nowhere = torch.arange(0)  # reject invalid sizes now
        local_global_index(nowhere, nowhere, window, width, far_buckets)
        self.width = width
        self.local_table = nn.Parameter(torch.empty(2 * window + 1, dim))
        self.global_table = nn.Parameter(torch.empty(2, far_buckets, dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise both tables."""
        for table in (self.local_table, self.global_table):
            nn.init.normal_(table, std=table.shape[-1] ** -0.5)

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        query_positions: Tensor,
        key_positions: Tensor,
    ) -> Tensor:
        """Return the attention scores with local and global vectors.

        Args:
            q: Queries, as in `local_global_scores`.
            k: Keys, as in `local_global_scores`.
            query_positions: Positions of the queries, as in
                `local_global_scores`.
            key_positions: Positions of the keys, as in `local_global_scores`.

        Returns:
            Scores, shape `(..., queries, keys)`.

        Raises:
            ValueError: In the cases listed for `local_global_scores`.
        """
        tables = self.local_table, self.global_table
        at = query_positions, key_positions
        return local_global_scores(q, k, *tables, *at, self.width)


def _check_tables(
    local: tuple[int, ...], far: tuple[int, ...], dim: int
) -> None:
    if len(local) != 2 or local[0] % 2 == 0 or local[1] != dim:
        raise ValueError(
            f"local_table must be (2 window + 1, {dim}), got {local}"
        )
    if len(far) != 3 or far[0] != 2 or far[2] != dim:
        raise ValueError(
            f"global_table must be (2, far_buckets, {dim}), got {far}"
        )


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


def _by_offset(by_row: Tensor, window: int, width: int, keys: int) -> Tensor:
    """Extend one column per row to one per offset, as far as there are keys."""
    near, far_buckets = 2 * window + 1, by_row.shape[-1] // 2 - window
    here, before, after = by_row.split((near, far_buckets, far_buckets), -1)
    if not torch.compiler.is_compiling():  # which creates no unused ones
        reach = min(far_buckets, keys // width + 1)
        before, after = before[..., :reach], after[..., :reach]
    before, after = (
        bucket[..., None].expand(*bucket.shape, width).flatten(-2)
        for bucket in (before.flip(-1), after)
    )
    return torch.cat((before, here, after), -1)


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


# Former names, kept until the next release.
local_global_rows = local_global_index
