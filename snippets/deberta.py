# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""DeBERTa's disentangled attention: separate scores for content and distance.

    score[i, j] = (q[i] . k[j]                   content to content
                   + q[i] . key_rows[d]          content to position
                   + query_rows[d] . k[j])       position to content
                  / sqrt(terms dim)              terms = 3
    d           = min(max(i - j + span, 0), 2 span - 1)

The rows are one learned table of 2 span distances, projected for each head as
keys and as queries. The further back the key is, the larger d is. The farthest
key after the query has row 0, or row 1 with max_distance, where row 0 is never
read; transformers reads row 0 from max_distance on. In the last term, the paper
has j - i instead of i - j; the released code has i - j in both, and so does
this file.

References:
    arXiv:2006.03654, section 3.1, equations 3 and 4.
    Reference code: disentangled_attention.py and, for the buckets, da_utils.py
    in github.com/microsoft/DeBERTa at 4d7fe0b, DeBERTa/deberta.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn


def log_buckets(distances: Tensor, span: int, max_distance: int) -> Tensor:
    """Return the bucketed distances of versions 2 and 3.

    Up to span // 2, distances are unchanged. From there to max_distance - 1,
    they are spread by their logarithm, rounded up, over the values up to span -
    1; beyond, they stay at span - 1. Negative distances are treated in the same
    way.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        distances: Distances i - j, integers, any shape.
        span: Number of distances on each side of the table; even and at least
            4.
        max_distance: All distances from max_distance - 1 on have the last
            bucket; more than span // 2 + 1.

    Returns:
        The bucketed distances, in the shape of `distances`, int64.

    Raises:
        ValueError: If `distances` is not an integer tensor, or `span` or
            `max_distance` is not as described above.

    Example:
        >>> log_buckets(torch.tensor([-3, 128, 129, 200, 511, 9999]), 256, 512)
        tensor([ -3, 128, 129, 169, 255, 255])
    """
    _check_integers("distances", distances)
    middle, far = span // 2, max_distance - 1
    if span < 4 or span % 2 or far <= middle:
        raise ValueError(
            "span must be even, at least 4 and below 2 max_distance - 2, "
            f"got {span} and {max_distance}"
        )
    distances = distances.long()
    near = distances.abs().clamp(min=middle)
    part = (near / middle).log() / math.log(far / middle)  # 0 to 1
    bucket = middle + (part * (middle - 1)).ceil().long().clamp(max=middle - 1)
    within = distances.abs() <= middle
    return torch.where(within, distances, bucket * distances.sign())


def deberta_scores(
    q: Tensor,  # (..., heads, queries, dim)
    k: Tensor,  # (..., key_heads, keys, dim)
    key_rows: Tensor | None,  # (heads, 2 * span, dim)
    query_rows: Tensor | None,  # (heads, 2 * span, dim)
    query_positions: Tensor,  # (..., queries)
    key_positions: Tensor,  # (..., keys)
    max_distance: int | None = None,
) -> Tensor:
    """Return the attention scores of DeBERTa.

    If positions are on the CPU and `q` is not, each call copies them, and the
    host waits for the copy.

    The backward pass uses atomic additions, which are slow on a GPU: for
    consecutive positions, train with `deberta_scores_consecutive`.

    Supports compile, export, vmap, mps; no host-device sync.

    Args:
        q: Queries, shape `(..., heads, queries, dim)`.
        k: Keys, shape `(..., key_heads, keys, dim)`. Each key head serves heads
            / key_heads heads of `q`, in order.
        key_rows: The table projected as keys, shape `(heads, 2 * span, dim)`.
            None leaves out its term, and terms is 2.
        query_rows: The table projected as queries, shape
            `(heads, 2 * span, dim)`. None leaves out its term, and terms is 2.
        query_positions: Positions in tokens, integers, shape `(queries,)` if
            all sequences share them, `(1, queries)` or `(batch, queries)`. May
            stay on the CPU.
        key_positions: The same for the keys, shape `(keys,)`, `(1, keys)` or
            `(batch, keys)`, with the same leading axes.
        max_distance: If given, i - j is passed through `log_buckets` first.

    Returns:
        Scores, shape `(..., heads, queries, keys)`.

    Raises:
        ValueError: If the shapes do not match, both tables are None, positions
            are not integers, or, with `max_distance`, in the cases listed for
            `log_buckets`.
    """
    tables = {"key_rows": key_rows, "query_rows": query_rows}
    rows = {name: each for name, each in tables.items() if each is not None}
    if not rows:
        raise ValueError("key_rows or query_rows must be given, got None")
    for name, given, axes in (
        ("q", q, "..., heads, queries"),
        ("k", k, "..., key_heads, keys"),
        *((name, each, "heads, 2 * span") for name, each in rows.items()),
    ):
        if given.ndim < 3:
            have = tuple(given.shape)
            raise ValueError(f"{name} must be ({axes}, dim), got {have}")
    *batch, heads, queries, dim = q.shape
    key_heads, keys = k.shape[-3:-1]
    if not key_heads or heads % key_heads:
        key_heads = heads
    span = next(iter(rows.values())).shape[-2] // 2
    table = heads, 2 * span, dim
    for name, given, want in (
        ("k", k, (*batch, key_heads, keys, dim)),
        *((name, each, table) for name, each in rows.items()),
    ):
        have = tuple(given.shape)
        if have != want:
            raise ValueError(f"{name} must be {want}, got {have}")
    distances = -_offsets(query_positions, key_positions, q.device)
    if max_distance is not None:
        distances = log_buckets(distances, span, max_distance)
    d = (distances + span).clamp(0, 2 * span - 1)
    d = _per_head(d, torch.Size((*batch, heads, queries, keys)))
    scale = 1 / math.sqrt((1 + len(rows)) * dim)
    q = q * scale  # (..., heads, queries, dim)
    scores = _products(q, k)  # (..., heads, queries, keys)
    if key_rows is not None:
        scores = scores + (q @ key_rows.mT).gather(-1, d)
    if query_rows is not None:
        by_row = _products(query_rows * scale, k)  # (..., heads, 2*span, keys)
        scores = scores + by_row.gather(-2, d)
    return scores  # (..., heads, queries, keys)


def deberta_scores_consecutive(
    q: Tensor,  # (..., heads, queries, dim)
    k: Tensor,  # (..., key_heads, keys, dim)
    key_rows: Tensor | None,  # (heads, distances, dim)
    query_rows: Tensor | None,  # (heads, distances, dim)
    max_distance: int | None = None,
) -> Tensor:
    """Return the scores of `deberta_scores` for consecutive positions.

    The result is the same up to rounding. The keys are consecutive, and the
    queries are the last of them: all of them, as in DeBERTa, or the last few.
    The rows of a model with DebertaScores are

        key_rows, query_rows = (
            project(scores.table).unflatten(-1, (heads, -1)).transpose(0, 1)
            for project in (scores.project_key, scores.project_query)
        )

    On a GPU, the products with the rows are shifted into place, one row after
    the other, and the gradient is a sum. `deberta_scores`, which takes any
    positions, uses a lookup: its gradient consists of two atomic additions for
    each query and key, and training waits for them. Without `max_distance`, the
    result has the same bits; with it, this function computes products for 2
    max_distance distances instead of 2 span. A CPU adds one by one: there, this
    function calls `deberta_scores`.

    Supports compile, export, vmap, mps; no host-device sync.

    Args:
        q: Queries, as in `deberta_scores`.
        k: Keys, as in `deberta_scores`.
        key_rows: The table projected as keys, shape `(heads, distances, dim)`,
            or None.
        query_rows: The table projected as queries, shape
            `(heads, distances, dim)`, or None.
        max_distance: See `deberta_scores`.

    Returns:
        Scores, shape `(..., heads, queries, keys)`.

    Raises:
        ValueError: In the cases listed for `deberta_scores`, or if there are
            more queries than keys.
    """
    given = [each for each in (key_rows, query_rows) if each is not None]
    _check_shapes(q, k, key_rows, query_rows)
    queries, dim, keys = *q.shape[-2:], k.shape[-2]
    _check_last(queries, keys)
    far = span = given[0].shape[-2] // 2
    if max_distance is not None:  # reject invalid values
        log_buckets(torch.arange(0), span, max_distance)
    if _on_cpu(q):
        at = _last_of(queries, keys)
        return deberta_scores(q, k, key_rows, query_rows, *at, max_distance)
    if max_distance is not None:
        far = max_distance
        key_rows, query_rows = (
            rows if rows is None else _in_buckets(rows, max_distance)
            for rows in (key_rows, query_rows)
        )
    scale = 1 / math.sqrt((1 + len(given)) * dim)
    q = q * scale  # (..., heads, queries, dim)
    scores = _products(q, k)  # (..., heads, queries, keys)
    if key_rows is not None:  # a key later by one is nearer by one
        columns = (q @ key_rows.mT).flip(-1)
        columns = _each_offset(columns, 1 - far, queries, keys)
        scores = scores + _skewed(columns, keys)
    if query_rows is not None:  # the queries of each key, one after the other
        columns = _products(query_rows * scale, k).mT
        columns = _each_offset(columns, -far, keys, queries)
        scores = scores + _skewed(columns, queries).mT
    return scores  # (..., heads, queries, keys)


class DebertaScores(nn.Module):
    """Hold the table of a layer and its two projections.

    All layers of the paper's models share the table: set
    `second.table = first.table`. Versions 2 and 3 have no projections for the
    table: they normalise the rows and project them with the projections of the
    content. Neither projection has a bias here; that of the queries has one in
    version 1 as released.

    If positions are on the CPU and the module is not, each call copies them,
    and the host waits for the copy.

    Supports compile, export, vmap, per-sample gradients, mps; no host-device
    sync.

    Args:
        dim: Width of the model; a multiple of `heads`.
        heads: Number of heads, each of width dim/heads.
        span: Number of distances on each side of the table; at least 1. It is
            256 in versions 2 and 3.
        max_distance: Use the buckets of versions 2 and 3, where it is 512. None
            is for distances without buckets.
        terms: Terms of the score, as pos_att_type in transformers: "c2p" has
            project_key, "p2c" has project_query. The projection of a missing
            term is None.

    Raises:
        ValueError: If `dim` is not a positive multiple of `heads`, `span` is
            less than 1, `terms` is empty or unknown, or in the cases listed for
            `log_buckets`.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        span: int,
        max_distance: int | None = None,
        terms: Sequence[str] = ("c2p", "p2c"),
    ):
        super().__init__()
        if heads < 1 or dim < 1 or dim % heads or span < 1:
            raise ValueError(
                "dim must be a multiple of heads and span at least 1, "
                f"got {dim}, {heads} and {span}"
            )
        if not terms or not {"c2p", "p2c"}.issuperset(terms):
            raise ValueError(
                f"terms must be 'c2p', 'p2c' or both, got {tuple(terms)}"
            )
        if max_distance is not None:  # reject invalid values now
            log_buckets(torch.tensor(0), span, max_distance)
        self.heads = heads
        self.max_distance = max_distance
        self.table = nn.Parameter(torch.empty(2 * span, dim))
        self.reset_parameters()
        self.project_key, self.project_query = (
            nn.Linear(dim, dim, bias=False) if term in terms else None
            for term in ("c2p", "p2c")
        )

    def reset_parameters(self) -> None:
        """Initialise the table; the two projections have their own method."""
        nn.init.normal_(self.table, std=0.02)

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        query_positions: Tensor,
        key_positions: Tensor,
    ) -> Tensor:
        """Return the attention scores of DeBERTa.

        Args:
            q: Queries, as in `deberta_scores`.
            k: Keys, as in `deberta_scores`.
            query_positions: Positions of the queries, as in `deberta_scores`.
            key_positions: Positions of the keys, as in `deberta_scores`.

        Returns:
            Scores, shape `(..., heads, queries, keys)`.

        Raises:
            ValueError: In the cases listed for `deberta_scores`.
        """
        return deberta_scores(
            q,
            k,
            self._rows(self.project_key),
            self._rows(self.project_query),
            query_positions,
            key_positions,
            self.max_distance,
        )

    def _rows(self, project: nn.Linear | None) -> Tensor | None:
        if project is None:
            return None
        rows = project(self.table).unflatten(-1, (self.heads, -1))
        return rows.transpose(0, 1)  # (heads, distances, dim)


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


def _check_shapes(
    q: Tensor, k: Tensor, key_rows: Tensor | None, query_rows: Tensor | None
) -> None:
    tables = {"key_rows": key_rows, "query_rows": query_rows}
    rows = {name: each for name, each in tables.items() if each is not None}
    if not rows:
        raise ValueError("key_rows or query_rows must be given, got None")
    for name, given, axes in (
        ("q", q, "..., heads, queries"),
        ("k", k, "..., key_heads, keys"),
        *((name, each, "heads, 2 * span") for name, each in rows.items()),
    ):
        if given.ndim < 3:
            have = tuple(given.shape)
            raise ValueError(f"{name} must be ({axes}, dim), got {have}")
    *batch, heads, _, dim = q.shape
    key_heads, keys = k.shape[-3:-1]
    if not key_heads or heads % key_heads:
        key_heads = heads
    span = next(iter(rows.values())).shape[-2] // 2
    for name, given, want in (
        ("k", k, (*batch, key_heads, keys, dim)),
        *((name, each, (heads, 2 * span, dim)) for name, each in rows.items()),
    ):
        have = tuple(given.shape)
        if have != want:
            raise ValueError(f"{name} must be {want}, got {have}")


def _in_buckets(rows: Tensor, max_distance: int) -> Tensor:
    """Return the rows of distances -max_distance to max_distance - 1."""
    span = rows.shape[-2] // 2
    distances = torch.arange(-max_distance, max_distance, device=rows.device)
    return rows[..., log_buckets(distances, span, max_distance) + span, :]


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
