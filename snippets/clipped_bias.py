# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-23
"""Clipped bias: one learned number per head and offset, up to a distance.

    bias[h, i, j] = table[clip(j - i, -max_distance, max_distance), h]

where row 0 of the table is that of -max_distance. All keys farther than that
on one side share a number. It is added to the scaled score.

Source: no paper of its own. The clipping is that of arXiv:1803.02155, section
3.2, where each offset has vectors; the number per head in place of a vector is
that of arXiv:1910.10683, section 2.1, where offsets share buckets.
"""

import torch
from torch import Tensor, nn


def clipped_bias(
    query_positions: Tensor,  # (..., queries)
    key_positions: Tensor,  # (..., keys)
    table: Tensor,  # (offsets, heads)
) -> Tensor:
    """The bias of a table: (..., heads, queries, keys), of the table's dtype.

    Positions are integers, in tokens: (tokens,) for all rows of a batch, (1,
    tokens) or (batch, tokens). They may stay on the CPU. The table has
    2 max_distance + 1 rows. It hides no key: in a causal model mask later keys
    too.

    >>> table = torch.tensor([[-1.0], [0.0], [5.0]])  # one head
    >>> clipped_bias(torch.tensor([2]), torch.arange(5), table)
    tensor([[[-1., -1.,  0.,  5.,  5.]]])

    Positions left on the CPU are copied in each call: the host waits for that.

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: positions that are no tensors of integers or do not fit each
    other; a table that is not (an odd number, heads).
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


class ClippedBias(nn.Module):
    """A learned table, at first zero, and clipped_bias of it.

    Positions left on the CPU are copied in each call: the host waits for that.

    Fit for autocast, compile, export, vmap, gradients per sample, mps; no sync.

    ValueError: heads or max_distance below 1; as clipped_bias.
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
        nn.init.zeros_(self.table)

    def forward(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        return clipped_bias(query_positions, key_positions, self.table)


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
    """Key position minus query position: (..., queries, keys), int64."""
    _check_integers("positions", query_positions, key_positions)
    queries, keys = tuple(query_positions.shape), tuple(key_positions.shape)
    if not queries or not keys or queries[:-1] != keys[:-1]:
        raise ValueError(
            "positions must be (..., queries) and (..., keys), "
            f"got {queries} and {keys}"
        )
    i = query_positions.to(device, torch.int64)[..., :, None]
    return key_positions.to(device)[..., None, :] - i  # (..., queries, keys)
