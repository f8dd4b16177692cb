# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""Clipped bias: add one learned number per head and offset, up to a distance.

    bias[h, i, j] = table[clip(j - i, -max_distance, max_distance), h]

Row 0 of the table is for offset -max_distance. All keys at a larger distance on
one side share a number. The bias is added to the scaled score.

References:
    No paper of its own.
    Clipping: Shaw et al. 2018, arXiv:1803.02155, section 3.2, where each offset
    has vectors.
    One number per head instead of a vector: Raffel et al. 2019,
    arXiv:1910.10683, section 2.1, where offsets share buckets.
"""

import torch
from torch import Tensor, nn


def clipped_bias(
    query_positions: Tensor,  # (..., queries)
    key_positions: Tensor,  # (..., keys)
    table: Tensor,  # (offsets, heads)
) -> Tensor:
    """Return the clipped bias for any positions.

    The bias hides no key: in a causal model, mask later keys as well.

    If positions are on the CPU and `table` is not, each call copies them, and
    the host waits for the copy.

    The backward pass uses atomic additions, which are slow on a GPU: for
    consecutive positions, train with `clipped_bias_consecutive`.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        query_positions: Positions in tokens, integers, shape `(queries,)` if
            all sequences share them, `(1, queries)` or `(batch, queries)`. May
            stay on the CPU.
        key_positions: The same for the keys, shape `(keys,)`, `(1, keys)` or
            `(batch, keys)`, with the same leading axes.
        table: One number per offset and head, shape `(offsets, heads)` with
            `2*max_distance+1` offsets.

    Returns:
        The bias, shape `(..., heads, queries, keys)`, with the dtype and device
        of `table`.

    Raises:
        ValueError: If positions are not integer tensors or their shapes do not
            match, or `table` does not have two axes and an odd number of rows.

    Example:
        >>> table = torch.tensor([[-1.0], [0.0], [5.0]])  # one head
        >>> clipped_bias(torch.tensor([2]), torch.arange(5), table)
        tensor([[[-1., -1.,  0.,  5.,  5.]]])
    """
    if table.ndim != 2 or len(table) % 2 == 0:
        raise ValueError(
            "table must be (2 max_distance + 1, heads), "
            f"got {tuple(table.shape)}"
        )
    most = len(table) // 2
    row = _offsets(query_positions, key_positions, table.device)
    row = row.clamp(-most, most).add_(most)  # (..., queries, keys)
    bias = table.T.index_select(1, row.flatten()).unflatten(1, row.shape)
    return bias.movedim(0, -3)  # (..., heads, queries, keys)


def clipped_bias_consecutive(
    queries: int,
    keys: int,
    table: Tensor,  # (offsets, heads)
) -> Tensor:
    """Return the clipped bias for consecutive positions.

    The result has the same bits as that of `clipped_bias`. The keys are
    consecutive, and the queries are the last of them: all of them in training,
    one in decoding. For a model with ClippedBias:
    `clipped_bias_consecutive(tokens, tokens, bias.table)`.

    The gradient is a sum along diagonals. `clipped_bias`, which takes any
    positions, uses a lookup: on a GPU, its gradient consists of many thousands
    of atomic additions to the same few numbers, and training waits for them.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        queries: Number of queries, from 0 to `keys`.
        keys: Number of keys.
        table: One number per offset and head, shape `(offsets, heads)` with
            `2*max_distance+1` offsets.

    Returns:
        The bias, shape `(heads, queries, keys)`, with the dtype and device of
        `table`.

    Raises:
        ValueError: If there are more queries than keys, or `table` does not
            have two axes and an odd number of rows.

    Example:
        >>> table = torch.tensor([[-1.0], [0.0], [5.0]])  # one head
        >>> clipped_bias_consecutive(2, 3, table)
        tensor([[[-1.,  0.,  5.],
                 [-1., -1.,  0.]]])
    """
    _check_last(queries, keys)
    if table.ndim != 2 or len(table) % 2 == 0:
        raise ValueError(
            "table must be (2 max_distance + 1, heads), "
            f"got {tuple(table.shape)}"
        )
    row = _each_offset(table.T, queries, keys)
    return _along_diagonals(row, queries, keys)


class ClippedBias(nn.Module):
    """Hold the learned table of a clipped bias, initialised to zero.

    If positions are on the CPU and the table is not, each call copies them, and
    the host waits for the copy.

    Supports autocast, compile, export, vmap, per-sample gradients, mps; no
    host-device sync.

    Args:
        heads: Number of heads; at least 1.
        max_distance: Distance at which offsets are clipped; at least 1.

    Raises:
        ValueError: If `heads` or `max_distance` is less than 1.
    """

    def __init__(self, heads: int, max_distance: int):
        super().__init__()
        if heads < 1:
            raise ValueError(f"heads must be at least 1, got {heads}")
        if max_distance < 1:
            raise ValueError(
                f"max_distance must be at least 1, got {max_distance}"
            )
        self.table = nn.Parameter(torch.empty(2 * max_distance + 1, heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the table to zero."""
        nn.init.zeros_(self.table)

    def forward(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        """Return the clipped bias for any positions.

        Args:
            query_positions: Positions of the queries, as in `clipped_bias`.
            key_positions: Positions of the keys, as in `clipped_bias`.

        Returns:
            The bias, shape `(..., heads, queries, keys)`.

        Raises:
            ValueError: In the cases listed for `clipped_bias`.
        """
        return clipped_bias(query_positions, key_positions, self.table)


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


def _check_last(queries: int, keys: int) -> None:
    if not 0 <= queries <= keys:
        raise ValueError(
            "queries are the last keys: they must be 0 to the number of keys, "
            f"got {queries} queries and {keys} keys"
        )


def _each_offset(by_offset: Tensor, queries: int, keys: int) -> Tensor:
    """Extend the entries of offsets -most to most to offsets -keys to queries.

    This uses repeats and a slice, whose gradients are sums, and no lookup.
    """
    most = by_offset.shape[-1] // 2
    first, last = by_offset[..., :1], by_offset[..., -1:]
    before = first.expand(*first.shape[:-1], keys)
    after = last.expand(*last.shape[:-1], queries)
    row = torch.cat((before, by_offset, after), -1)
    return row[..., most : most + keys + queries + 1]


def _on_cpu(x: Tensor) -> bool:
    """Return whether lookups are fast in backward, without atomic additions."""
    return x.device.type == "cpu"


def _along_diagonals(row: Tensor, queries: int, keys: int) -> Tensor:
    """Spread one number per offset, -keys to queries, over (queries, keys).

    The gradient of unfold is a sum along diagonals, but torch.compile turns it
    into an index_put with atomic additions. A compiled graph on a device
    therefore shifts rows instead.
    """
    if queries and not torch.compiler.is_compiling():
        return row[..., 1:-1].unfold(-1, keys, 1).flip(-2)
    if _on_cpu(row):
        place = torch.arange(keys) - torch.arange(queries)[:, None]
        return row[..., place + queries]
    rows = row[..., None, :].expand(*row.shape[:-1], queries, -1)
    return _skewed(rows, keys)


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
