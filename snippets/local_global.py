"""Local and global relative positions: every offset near by, rings far away.

A key at offset o = j - i from a query has one vector in the score:

    score[i, j] = q[i] . (k[j] + vector(o)) / sqrt(dim)
    vector(o)   = local_table[o + window]                 if |o| <= window
                = global_table[o > 0, ring]               otherwise
    ring        = min((|o| - window - 1) // width, rings - 1)

so each ring but the last holds width distances, and the last one all the rest.
No tensor of queries x keys x dim is made: each q meets every row once, and
every key picks its product.

This is a module for learning, not a paper's method. Look for two faults where
it is written elsewhere. Offsets that were shifted to start at 0, then clipped
to -window..window and shifted again: every key from the query on gets the last
local row. Offsets that were clipped to the window before the tables are asked:
then no key is far away, and no gradient ever reaches the global table.

Source: no paper of its own. Vectors in the score: arXiv:1803.02155, equation 4.
Finer near by than far away, as numbers: arXiv:1910.10683, section 2.1.
"""

import math

import torch
from torch import Tensor, nn


def local_global_rows(
    query_positions: Tensor,  # (..., queries)
    key_positions: Tensor,  # (..., keys)
    window: int,
    width: int,
    rings: int,
) -> Tensor:
    """The row of each pair: (..., queries, keys), int64.

    Rows 0 to 2 window are the local table, then come the rings before the
    query, nearest first, then those after it. Positions are integers, in
    tokens; window and width are distances in tokens.

    >>> at = torch.arange(6)
    >>> local_global_rows(at[:1], at, window=1, width=2, rings=2)
    tensor([[1, 2, 5, 5, 6, 6]])
    >>> local_global_rows(at[5:], at, window=1, width=2, rings=2)
    tensor([[4, 4, 3, 3, 0, 1]])

    ValueError: window below 0; width or rings below 1; positions that are no
    tensors of integers or do not fit each other.
    """
    if window < 0 or width < 1 or rings < 1:
        raise ValueError(
            "window must be at least 0, width and rings at least 1, "
            f"got {window}, {width} and {rings}"
        )
    offsets = _offsets(query_positions, key_positions)
    distance = offsets.abs()  # (..., queries, keys)
    ring = (distance - window - 1).div(width, rounding_mode="floor")
    after = (offsets > 0).long()  # (..., queries, keys)
    far = 2 * window + 1 + rings * after + ring.clamp(max=rings - 1)
    return torch.where(distance <= window, offsets + window, far)


def local_global_scores(
    q: Tensor,  # (..., queries, dim)
    k: Tensor,  # (..., keys, dim)
    local_table: Tensor,  # (2 * window + 1, dim)
    global_table: Tensor,  # (2, rings, dim)
    query_positions: Tensor,  # (..., queries)
    key_positions: Tensor,  # (..., keys)
    width: int,
) -> Tensor:
    """How well each key fits each query: (..., queries, keys).

    Positions are (tokens,) for all alike, or have the leading axes of q and k
    before the axis of heads, and may stay on the CPU. It hides no key: in a
    causal model mask later keys too.

    >>> q, k = torch.ones(1, 1), torch.zeros(4, 1)
    >>> near, far = torch.tensor([[1.0], [2.0], [3.0]]), torch.zeros(2, 1, 1)
    >>> at = torch.tensor([5]), torch.tensor([3, 4, 5, 6])
    >>> local_global_scores(q, k, near, far + 9, *at, width=4)
    tensor([[9., 1., 2., 3.]])

    ValueError: as local_global_rows; shapes that do not fit.
    """
    dim = q.shape[-1]
    if k.shape[-1] != dim:
        raise ValueError(f"k must be as wide as q, {dim}, got {k.shape[-1]}")
    leading = zip(k.shape[-3::-1], q.shape[-3::-1], strict=False)
    if k.ndim > q.ndim or any(n not in (1, of) for n, of in leading):
        raise ValueError(
            f"k must have the leading axes of q, {tuple(q.shape)}, or 1, "
            f"got {tuple(k.shape)}"
        )
    have = tuple(local_table.shape), tuple(global_table.shape)
    _check_tables(*have, dim)
    window, rings = have[0][0] // 2, have[1][1]
    rows = local_global_rows(
        query_positions, key_positions, window, width, rings
    )
    q = q / math.sqrt(dim)  # (..., queries, dim)
    content = q @ k.mT  # (..., queries, keys)
    rows = rows.to(q.device)
    if rows.ndim > 2:
        rows = rows[..., None, :, :]  # one for all heads
    want = tuple(content.shape)
    alone, each = rows.shape == want[-2:], (*want[:-3], 1, *want[-2:])
    if not alone and (content.ndim < 3 or tuple(rows.shape) != each):
        shapes = tuple(query_positions.shape), tuple(key_positions.shape)
        raise ValueError(
            f"positions must fit scores of {want}, "
            f"got {shapes[0]} and {shapes[1]}"
        )
    table = torch.cat((local_table, global_table.flatten(0, 1)))  # (all, dim)
    by_row = q @ table.mT  # (..., queries, all)
    return content + by_row.gather(-1, rows.expand(want))


class LocalGlobal(nn.Module):
    """Both tables of a layer, for heads of width dim, and the scores of them.

    With attention.py, for tokens at positions `at`:

        score = lambda q, k: local_global(q, k, at, at)
        output, weights = attention(q, k, v, score=score)

    ValueError: as local_global_scores; dim below 1.
    """

    def __init__(self, dim: int, window: int, width: int, rings: int):
        super().__init__()
        if dim < 1:
            raise ValueError(f"dim must be at least 1, got {dim}")
        nowhere = torch.arange(0)  # refuse now what has no rows
        local_global_rows(nowhere, nowhere, window, width, rings)
        self.width = width
        self.local_table = nn.Parameter(torch.empty(2 * window + 1, dim))
        self.global_table = nn.Parameter(torch.empty(2, rings, dim))
        nn.init.normal_(self.local_table, std=dim**-0.5)
        nn.init.normal_(self.global_table, std=dim**-0.5)

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        query_positions: Tensor,
        key_positions: Tensor,
    ) -> Tensor:
        tables = self.local_table, self.global_table
        at = query_positions, key_positions
        return local_global_scores(q, k, *tables, *at, self.width)


def _check_tables(local: tuple, far: tuple, dim: int) -> None:
    if len(local) != 2 or local[0] % 2 == 0 or local[1] != dim:
        raise ValueError(
            f"local_table must be (2 window + 1, {dim}), got {local}"
        )
    if len(far) != 3 or far[0] != 2 or far[2] != dim:
        raise ValueError(f"global_table must be (2, rings, {dim}), got {far}")


def _offsets(query_positions: Tensor, key_positions: Tensor) -> Tensor:
    """Key position minus query position: (..., queries, keys), int64."""
    whole = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    for given in (query_positions, key_positions):
        tensor = isinstance(given, Tensor)
        kind = given.dtype if tensor else type(given).__name__
        if kind not in whole:
            raise ValueError(
                "positions must be tensors of uint8 or int8 to int64, "
                f"got {kind}"
            )
    queries, keys = tuple(query_positions.shape), tuple(key_positions.shape)
    if not queries or not keys or queries[:-1] != keys[:-1]:
        raise ValueError(
            "positions must be (..., queries) and (..., keys), "
            f"got {queries} and {keys}"
        )
    i = query_positions.long()[..., :, None]  # (..., queries, 1)
    return key_positions[..., None, :] - i  # (..., queries, keys)
