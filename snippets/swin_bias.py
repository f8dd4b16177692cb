# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-26
"""Swin's biases: a number for each head and offset within a window.

A picture is cut into windows of rows * columns patches, and a patch attends to
those of its window. The offset (dy, dx) of a pair is the query's place minus
the key's, rows first, and what it adds to the scaled score is

    Swin       table[(dy + rows - 1) * (2 columns - 1) + dx + columns - 1, head]
    Swin V2    16 * sigmoid(mlp(u(dy, rows), u(dx, columns))[head])

    u(d, size) = sign(d) * log2(1 + 8 |d| / (size - 1)) / 3

mlp has one hidden layer of 512 with a ReLU, and no bias behind it. A table
knows its own window only. The network can be asked for another, and trained
says which size is in u: that of the window it was trained in, so that an offset
keeps its bias, or that of the window it is used in, so that the bias is
stretched with the window. Models name it pretrained_window_size, where 0 is
the latter.

Swin V2 also takes the cosine of q and k for their product, and multiplies it by
a learned number for each head; that, the windows and their mask are not here.

Source: arXiv:2103.14030 and arXiv:2111.09883, and the authors' code, which has
the factors 8, 1 / 3 and 16: github.com/microsoft/Swin-Transformer at f82860b,
models/swin_transformer.py and models/swin_transformer_v2.py.
"""

import math

import torch
from torch import Tensor, nn


def window_rows(
    query_places: Tensor,  # (..., queries, 2)
    key_places: Tensor,  # (..., keys, 2)
    grid: tuple[int, int],
) -> Tensor:
    """The row of a table for each pair: (..., queries, keys), int64.

    A place is (row, column) and grid is (rows, columns) of the window. Only
    offsets matter: places count from anywhere. Places on the CPU are compared
    with the window. Elsewhere that would make the host wait, and a pair that
    does not fit has a row that no table has, so that the lookup refuses it.

    >>> places = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> window_rows(places, places, (2, 2))
    tensor([[4, 3, 1, 0],
            [5, 4, 2, 1],
            [7, 6, 4, 3],
            [8, 7, 5, 4]])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: places that are no tensors of integers, not (..., tokens, 2), or
    do not fit each other; a pair on the CPU that no window has both of; a grid
    without a patch.
    """
    _check_grid(grid, "grid")
    offsets = _offsets_of_places(query_places, key_places)
    dy, dx = offsets.unbind(-1)  # (..., queries, keys)
    outside = (dy.abs() >= grid[0]) | (dx.abs() >= grid[1])
    if offsets.device.type == "cpu" and not torch.compiler.is_compiling():
        _check_within(outside, offsets, grid)
    rows = (dy + grid[0] - 1) * (2 * grid[1] - 1) + dx + grid[1] - 1
    return rows.masked_fill(outside, _length(grid))


def swin_bias(
    query_places: Tensor,  # (..., queries, 2)
    key_places: Tensor,  # (..., keys, 2)
    table: Tensor,  # (offsets, heads)
    grid: tuple[int, int],
) -> Tensor:
    """The bias of a table: (..., heads, queries, keys), of the table's dtype.

    Places are those of window_rows, and may stay on the CPU. The table has
    (2 rows - 1) * (2 columns - 1) rows, from the offset (1 - rows, 1 - columns)
    on, with columns counted first.

    >>> table = torch.tensor([[-1.0], [0.0], [5.0]])  # one head
    >>> places = torch.tensor([[0, 0], [0, 1]])
    >>> swin_bias(places, places, table, (1, 2))
    tensor([[[ 0., -1.],
             [ 5.,  0.]]])

    Places left on the CPU are copied in each call: the host waits for that.

    Its backward pass adds atomically, which is slow on a GPU: for whole
    windows, train with swin_bias_consecutive.

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: as window_rows; a table of another shape.
    """
    _check_grid(grid, "grid")
    if table.ndim != 2 or len(table) != _length(grid):
        raise ValueError(
            f"table must be ({_length(grid)}, heads) for a window of "
            f"{grid[0]} rows and {grid[1]} columns, got {tuple(table.shape)}"
        )
    rows = window_rows(query_places, key_places, grid).to(table.device)
    bias = table.T.index_select(1, rows.flatten()).unflatten(1, rows.shape)
    return bias.movedim(0, -3)  # (..., heads, queries, keys)


def log_offsets(
    grid: tuple[int, int],
    trained: tuple[int, int] | None = None,
    dtype: torch.dtype = torch.float64,
    device: torch.device | None = None,
) -> Tensor:
    """u of each row of a table, what Swin V2's network reads: (offsets, 2).

    trained is the window whose size u is measured by; if None, that is grid.
    dtype is that in which u is computed, and device where.

    >>> log_offsets((1, 2))
    tensor([[ 0.0000, -1.0566],
            [ 0.0000,  0.0000],
            [ 0.0000,  1.0566]], dtype=torch.float64)

    ValueError: a grid without a patch; trained without one, or with a single
    one on an axis where grid has more: it has no offset to measure by.
    """
    _check_grid(grid, "grid")
    trained = grid if trained is None else trained
    _check_grid(trained, "trained")
    if any(by == 1 < size for size, by in zip(grid, trained, strict=True)):
        raise ValueError(
            "trained must have offsets on each axis where grid has, "
            f"got {trained} for {grid}"
        )
    axes = []
    for size, by in zip(grid, trained, strict=True):
        d = torch.arange(1 - size, size, dtype=dtype, device=device)
        u = (8 * d.abs() / max(by - 1, 1)).log1p() / math.log(8)
        axes.append(d.sign() * u)
    return torch.stack(torch.meshgrid(axes, indexing="ij"), -1).flatten(0, 1)


def swin_bias_consecutive(
    table: Tensor,  # (offsets, heads)
    grid: tuple[int, int],
) -> Tensor:
    """swin_bias of a whole window, row by row: (heads, tokens, tokens).

    The same bits. Queries and keys are all places of the window, columns
    counted first: torch.cartesian_prod(torch.arange(rows),
    torch.arange(columns)). For a model with a SwinBias:
    swin_bias_consecutive(bias.table, bias.grid); for one with a SwinV2Bias it
    is bias.table().

    Its gradient is a sum along diagonals. swin_bias, which takes any places,
    looks numbers up: on a GPU its gradient is an atomic addition for each query
    and key, many of them to the same row, and training waits for them. A CPU
    adds one by one: there this is swin_bias.

    >>> swin_bias_consecutive(torch.tensor([[-1.0], [0.0], [5.0]]), (1, 2))
    tensor([[[ 0., -1.],
             [ 5.,  0.]]])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: as swin_bias.
    """
    _check_grid(grid, "grid")
    if table.ndim != 2 or len(table) != _length(grid):
        raise ValueError(
            f"table must be ({_length(grid)}, heads) for a window of "
            f"{grid[0]} rows and {grid[1]} columns, got {tuple(table.shape)}"
        )
    rows, columns = grid
    if _on_cpu(table):
        places = torch.cartesian_prod(torch.arange(rows), torch.arange(columns))
        return swin_bias(places, places, table, grid)
    by_offset = table.T.unflatten(1, (2 * rows - 1, 2 * columns - 1))
    by_offset = nn.functional.pad(by_offset, (1, 1, 1, 1))  # never read
    # (heads, offsets of rows, key column, query column)
    by_row = _along_diagonals(by_offset, columns, columns)
    # (heads, key column, query column, key row, query row)
    bias = _along_diagonals(by_row.movedim(1, -1), rows, rows)
    return bias.permute(0, 4, 2, 3, 1).flatten(3).flatten(1, 2)


class SwinBias(nn.Module):
    """A learned table, and swin_bias of it.

    At first its numbers come from a normal distribution of standard deviation
    0.02, as in the authors' code; those of transformers are zero.

    Places left on the CPU are copied in each call: the host waits for that.

    Fit for autocast, compile, export, vmap, gradients per sample, mps; no sync.

    ValueError: heads below 1; as swin_bias.
    """

    def __init__(self, heads: int, grid: tuple[int, int]):
        super().__init__()
        _check_grid(grid, "grid")
        if heads < 1:
            raise ValueError(f"heads must be at least 1, got {heads}")
        self.grid = grid
        self.table = nn.Parameter(torch.empty(_length(grid), heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.trunc_normal_(self.table, std=0.02)

    def forward(self, query_places: Tensor, key_places: Tensor) -> Tensor:
        return swin_bias(query_places, key_places, self.table, self.grid)


class SwinV2Bias(nn.Module):
    """Swin V2's network, and swin_bias of the table that it makes.

    grid is the window it is used in, which may change: set it to another. The
    bias lies between 0 and 16, and has the dtype of the parameters, or that of
    autocast. In the authors' code mlp is cpb_mlp, in transformers
    continuous_position_bias_mlp. It begins as nn.Linear does; the authors draw
    weights with a standard deviation of 0.02. On the CPU u is computed in
    float64; on another device in float32, or in the dtype of the parameters if
    that is finer.

    Places left on the CPU are copied in each call: the host waits for that.

    Fit for compile, export, vmap, gradients per sample, mps; no sync.

    ValueError: heads or hidden below 1; as log_offsets and swin_bias.
    """

    def __init__(
        self,
        heads: int,
        grid: tuple[int, int],
        trained: tuple[int, int] | None = None,
        hidden: int = 512,
    ):
        super().__init__()
        if min(heads, hidden) < 1:
            raise ValueError(
                f"heads and hidden must be at least 1, got {heads} and {hidden}"
            )
        log_offsets(grid, trained)  # refuse now what cannot be measured
        self.grid, self.trained = grid, trained
        self.mlp = nn.Sequential(
            nn.Linear(2, hidden),
            nn.ReLU(),
            nn.Linear(hidden, heads, bias=False),
        )

    def table(self) -> Tensor:
        """The bias of each offset of the window: (offsets, heads)."""
        like = next(self.mlp.parameters())
        exact = torch.promote_types(like.dtype, torch.float32)
        exact = torch.float64 if like.device.type == "cpu" else exact
        offsets = log_offsets(self.grid, self.trained, exact, like.device)
        return 16 * torch.sigmoid(self.mlp(offsets.to(like.dtype)))

    def forward(self, query_places: Tensor, key_places: Tensor) -> Tensor:
        return swin_bias(query_places, key_places, self.table(), self.grid)


def _length(grid: tuple[int, int]) -> int:
    return (2 * grid[0] - 1) * (2 * grid[1] - 1)


def _check_grid(grid: tuple[int, int], name: str) -> None:
    if len(grid) != 2 or min(grid) < 1:
        raise ValueError(
            f"{name} must be rows and columns, of a patch or more, got {grid}"
        )


def _check_within(
    outside: Tensor, offsets: Tensor, grid: tuple[int, int]
) -> None:
    try:
        fits = not outside.any()
    except RuntimeError:  # they show no numbers
        return
    if not fits:
        rows, columns = offsets.abs().flatten(0, -2).amax(0).tolist()
        raise ValueError(
            f"places must lie in a window of {grid[0]} rows and {grid[1]} "
            f"columns, got some {rows} rows and {columns} columns apart"
        )


def _offsets_of_places(query_places: Tensor, key_places: Tensor) -> Tensor:
    """Query place minus key place: (..., queries, keys, 2), int64."""
    whole = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    for each in (query_places, key_places):
        tensor = isinstance(each, Tensor)
        kind = each.dtype if tensor else type(each).__name__
        if kind not in whole:
            raise ValueError(
                f"places must be tensors of uint8 or int8 to int64, got {kind}"
            )
    queries, keys = tuple(query_places.shape), tuple(key_places.shape)
    pairs = queries[-1:] == keys[-1:] == (2,)
    pairs = pairs and min(len(queries), len(keys)) > 1
    if not pairs or queries[:-2] != keys[:-2]:
        raise ValueError(
            "places must be (..., queries, 2) and (..., keys, 2), "
            f"got {queries} and {keys}"
        )
    i = query_places.to(torch.int64)[..., :, None, :]
    return i - key_places.to(i.device)[..., None, :, :]


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
