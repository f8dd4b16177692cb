# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""Swin relative position bias: a number per head and offset in a window.

An image is cut into windows of rows * columns patches, and a patch attends to
the patches of the same window. The offset (dy, dx) of a pair is the position of
the query minus that of the key, rows first, and the bias added to the scaled
score is

    Swin       table[(dy + rows - 1) * (2 columns - 1) + dx + columns - 1, head]
    Swin V2    16 * sigmoid(mlp(u(dy, rows), u(dx, columns))[head])

    u(d, size) = sign(d) * log2(1 + 8 |d| / (size - 1)) / 3

mlp has one hidden layer of 512 with a ReLU, and no bias in its last layer. A
table fits only its own window. The network can be evaluated for another window,
and `pretrained_window_size` specifies the size in u: either that of the window
in training, so that an offset keeps its bias, or that of the window in use, so
that the bias is stretched with the window. In the configurations of models, 0
is the latter.

Swin V2 also uses the cosine of q and k instead of their product, and multiplies
it by a learned number for each head; that, the windows and their mask are not
implemented here.

References:
    arXiv:2103.14030 and arXiv:2111.09883.
    The authors' code, which has the factors 8, 1 / 3 and 16:
    github.com/microsoft/Swin-Transformer at f82860b, models/swin_transformer.py
    and models/swin_transformer_v2.py.
"""

import math

import torch
from torch import Tensor, nn


def relative_position_index(
    query_coords: Tensor,  # (..., queries, 2)
    key_coords: Tensor,  # (..., keys, 2)
    window_size: tuple[int, int],
) -> Tensor:
    """Return the row of the table for each query and key.

    Only offsets matter, so coordinates may start at any number. On the CPU,
    positions are compared with the window. Elsewhere the comparison would make
    the host wait, and a pair outside the window gets a row index that no table
    has, so that the lookup raises an error.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        query_coords: Row and column of each query, shape `(..., queries, 2)`,
            integers.
        key_coords: Row and column of each key, shape `(..., keys, 2)`,
            integers, with the same leading axes.
        window_size: Rows and columns of the window, each at least 1.

    Returns:
        Row indices, shape `(..., queries, keys)`, int64.

    Raises:
        ValueError: If positions are not integer tensors, do not have the shape
            `(..., tokens, 2)` or their shapes do not match; a pair on the CPU
            does not lie in one window; or `window_size` has no patch.

    Example:
        >>> coords = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]])
        >>> relative_position_index(coords, coords, (2, 2))
        tensor([[4, 3, 1, 0],
                [5, 4, 2, 1],
                [7, 6, 4, 3],
                [8, 7, 5, 4]])
    """
    _check_window_size(window_size, "window_size")
    offsets = _coordinate_offsets(query_coords, key_coords)
    dy, dx = offsets.unbind(-1)  # (..., queries, keys)
    outside = (dy.abs() >= window_size[0]) | (dx.abs() >= window_size[1])
    if offsets.device.type == "cpu" and not torch.compiler.is_compiling():
        _check_within(outside, offsets, window_size)
    rows = (
        (dy + window_size[0] - 1) * (2 * window_size[1] - 1)
        + dx
        + window_size[1]
        - 1
    )
    return rows.masked_fill(outside, _length(window_size))


def swin_bias(
    query_coords: Tensor,  # (..., queries, 2)
    key_coords: Tensor,  # (..., keys, 2)
    table: Tensor,  # (offsets, heads)
    window_size: tuple[int, int],
) -> Tensor:
    """Return the Swin bias of a table.

    If positions are on the CPU and the table is not, each call copies them, and
    the host waits for the copy.

    The backward pass uses atomic additions, which are slow on a GPU: for whole
    windows, train with `swin_bias_consecutive`.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        query_coords: Row and column of each query, as in
            `relative_position_index`. May stay on the CPU.
        key_coords: Row and column of each key, as in `relative_position_index`.
            May stay on the CPU.
        table: One number per offset and head, shape `(offsets, heads)`, with (2
            rows - 1) * (2 columns - 1) offsets from (1 - rows, 1 - columns) on,
            columns counted first.
        window_size: Rows and columns of the window, each at least 1.

    Returns:
        The bias, shape `(..., heads, queries, keys)`, with the dtype and device
        of `table`.

    Raises:
        ValueError: In the cases listed for `relative_position_index`, or if
            `table` does not have the shape described above.

    Example:
        >>> table = torch.tensor([[-1.0], [0.0], [5.0]])  # one head
        >>> coords = torch.tensor([[0, 0], [0, 1]])
        >>> swin_bias(coords, coords, table, (1, 2))
        tensor([[[ 0., -1.],
                 [ 5.,  0.]]])
    """
    _check_window_size(window_size, "window_size")
    if table.ndim != 2 or len(table) != _length(window_size):
        raise ValueError(
            f"table must be ({_length(window_size)}, heads) for a window of "
            f"{window_size[0]} rows and {window_size[1]} columns, "
            f"got {tuple(table.shape)}"
        )
    rows = relative_position_index(query_coords, key_coords, window_size).to(
        table.device
    )
    bias = table.T.index_select(1, rows.flatten()).unflatten(1, rows.shape)
    return bias.movedim(0, -3)  # (..., heads, queries, keys)


def log_spaced_offsets(
    window_size: tuple[int, int],
    pretrained_window_size: tuple[int, int] | None = None,
    dtype: torch.dtype = torch.float64,
    device: torch.device | None = None,
) -> Tensor:
    """Return u for each row of a table, the input of the network of Swin V2.

    Args:
        window_size: Rows and columns of the window, each at least 1.
        pretrained_window_size: Rows and columns of the window whose size is in
            u; None is `window_size`.
        dtype: Dtype in which u is computed.
        device: Device on which u is computed; None is torch's default device.

    Returns:
        The inputs, shape `(offsets, 2)`, dtype `dtype`.

    Raises:
        ValueError: If `window_size` or `pretrained_window_size` has no patch,
            or `pretrained_window_size` has a single patch on an axis where
            `window_size` has more: there is no offset to measure by.

    Example:
        >>> log_spaced_offsets((1, 2))
        tensor([[ 0.0000, -1.0566],
                [ 0.0000,  0.0000],
                [ 0.0000,  1.0566]], dtype=torch.float64)
    """
    _check_window_size(window_size, "window_size")
    pretrained_window_size = (
        window_size
        if pretrained_window_size is None
        else pretrained_window_size
    )
    _check_window_size(pretrained_window_size, "pretrained_window_size")
    if any(
        by == 1 < size
        for size, by in zip(window_size, pretrained_window_size, strict=True)
    ):
        raise ValueError(
            "pretrained_window_size must have offsets on each axis where "
            f"window_size has, got {pretrained_window_size} for {window_size}"
        )
    axes = []
    for size, by in zip(window_size, pretrained_window_size, strict=True):
        d = torch.arange(1 - size, size, dtype=dtype, device=device)
        u = (8 * d.abs() / max(by - 1, 1)).log1p() / math.log(8)
        axes.append(d.sign() * u)
    return torch.stack(torch.meshgrid(axes, indexing="ij"), -1).flatten(0, 1)


def swin_bias_consecutive(
    table: Tensor,  # (offsets, heads)
    window_size: tuple[int, int],
) -> Tensor:
    """Return the Swin bias of a whole window, row by row.

    The result has the same bits as that of `swin_bias`. Queries and keys are
    all positions of the window, columns counted first:
    `torch.cartesian_prod(torch.arange(rows), torch.arange(columns))`. For a
    model with a SwinBias:
    `swin_bias_consecutive(bias.table, bias.window_size)`; with a SwinV2Bias,
    the table is `bias.table()`.

    The gradient is a sum along diagonals. `swin_bias`, which takes any
    positions, uses a lookup: on a GPU, its gradient is an atomic addition for
    each query and key, many of them to the same row, and training waits for
    them. A CPU adds one by one: there, this function calls `swin_bias`.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        table: One number per offset and head, shape `(offsets, heads)`, as in
            `swin_bias`.
        window_size: Rows and columns of the window, each at least 1.

    Returns:
        The bias, shape `(heads, tokens, tokens)`, with the dtype and device of
        `table`.

    Raises:
        ValueError: In the cases listed for `swin_bias`.

    Example:
        >>> swin_bias_consecutive(torch.tensor([[-1.0], [0.0], [5.0]]), (1, 2))
        tensor([[[ 0., -1.],
                 [ 5.,  0.]]])
    """
    _check_window_size(window_size, "window_size")
    if table.ndim != 2 or len(table) != _length(window_size):
        raise ValueError(
            f"table must be ({_length(window_size)}, heads) for a window of "
            f"{window_size[0]} rows and {window_size[1]} columns, "
            f"got {tuple(table.shape)}"
        )
    rows, columns = window_size
    if _on_cpu(table):
        coords = torch.cartesian_prod(torch.arange(rows), torch.arange(columns))
        return swin_bias(coords, coords, table, window_size)
    by_offset = table.T.unflatten(1, (2 * rows - 1, 2 * columns - 1))
    by_offset = nn.functional.pad(by_offset, (1, 1, 1, 1))  # never read
    # (heads, offsets of rows, key column, query column)
    by_row = _along_diagonals(by_offset, columns, columns)
    # (heads, key column, query column, key row, query row)
    bias = _along_diagonals(by_row.movedim(1, -1), rows, rows)
    return bias.permute(0, 4, 2, 3, 1).flatten(3).flatten(1, 2)


class SwinBias(nn.Module):
    """Hold the learned table of a Swin bias.

    It is initialised from a normal distribution with standard deviation 0.02,
    as in the authors' code; transformers initialises it to zero.

    If positions are on the CPU and the module is not, each call copies them,
    and the host waits for the copy.

    Supports autocast, compile, export, vmap, per-sample gradients, mps; no
    host-device sync.

    Args:
        heads: Number of heads; at least 1.
        window_size: Rows and columns of the window, each at least 1.

    Raises:
        ValueError: If `heads` is less than 1, or `window_size` has no patch.
    """

    def __init__(self, heads: int, window_size: tuple[int, int]):
        super().__init__()
        _check_window_size(window_size, "window_size")
        if heads < 1:
            raise ValueError(f"heads must be at least 1, got {heads}")
        self.window_size = window_size
        self.table = nn.Parameter(torch.empty(_length(window_size), heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the table."""
        nn.init.trunc_normal_(self.table, std=0.02)

    def forward(self, query_coords: Tensor, key_coords: Tensor) -> Tensor:
        """Return the Swin bias.

        Args:
            query_coords: Row and column of each query, as in `swin_bias`.
            key_coords: Row and column of each key, as in `swin_bias`.

        Returns:
            The bias, shape `(..., heads, queries, keys)`.

        Raises:
            ValueError: If positions are invalid, as described for
                `relative_position_index`.
        """
        return swin_bias(query_coords, key_coords, self.table, self.window_size)


class SwinV2Bias(nn.Module):
    """Compute the table of a Swin bias with the network of Swin V2.

    The bias lies between 0 and 16, and has the dtype of the parameters, or that
    of autocast. In the authors' code, mlp is called cpb_mlp, in transformers
    continuous_position_bias_mlp. It is initialised as nn.Linear is; the authors
    sample weights with a standard deviation of 0.02. On the CPU, u is computed
    in float64; on another device in float32, or in the dtype of the parameters
    if that is wider.

    If positions are on the CPU and the module is not, each call copies them,
    and the host waits for the copy.

    Supports compile, export, vmap, per-sample gradients, mps; no host-device
    sync.

    Args:
        heads: Number of heads; at least 1.
        window_size: Rows and columns of the window in use. It may change: set
            the attribute to another window.
        pretrained_window_size: Rows and columns of the window in training, as
            in `log_spaced_offsets`.
        hidden: Width of the hidden layer; at least 1.

    Raises:
        ValueError: If `heads` or `hidden` is less than 1, or in the cases
            listed for `log_spaced_offsets`.
    """

    def __init__(
        self,
        heads: int,
        window_size: tuple[int, int],
        pretrained_window_size: tuple[int, int] | None = None,
        hidden: int = 512,
    ):
        super().__init__()
        if min(heads, hidden) < 1:
            raise ValueError(
                f"heads and hidden must be at least 1, got {heads} and {hidden}"
            )
        # reject invalid sizes now
        log_spaced_offsets(window_size, pretrained_window_size)
        self.window_size, self.pretrained_window_size = (
            window_size,
            pretrained_window_size,
        )
        self.mlp = nn.Sequential(
            nn.Linear(2, hidden),
            nn.ReLU(),
            nn.Linear(hidden, heads, bias=False),
        )

    def table(self) -> Tensor:
        """Return the bias of each offset of the window.

        Returns:
            The table, shape `(offsets, heads)`.
        """
        like = next(self.mlp.parameters())
        exact = torch.promote_types(like.dtype, torch.float32)
        exact = torch.float64 if like.device.type == "cpu" else exact
        offsets = log_spaced_offsets(
            self.window_size, self.pretrained_window_size, exact, like.device
        )
        return 16 * torch.sigmoid(self.mlp(offsets.to(like.dtype)))

    def forward(self, query_coords: Tensor, key_coords: Tensor) -> Tensor:
        """Return the Swin bias.

        Args:
            query_coords: Row and column of each query, as in `swin_bias`.
            key_coords: Row and column of each key, as in `swin_bias`.

        Returns:
            The bias, shape `(..., heads, queries, keys)`.

        Raises:
            ValueError: If positions are invalid, as described for
                `relative_position_index`.
        """
        return swin_bias(
            query_coords, key_coords, self.table(), self.window_size
        )


def _length(window_size: tuple[int, int]) -> int:
    return (2 * window_size[0] - 1) * (2 * window_size[1] - 1)


def _check_window_size(window_size: tuple[int, int], name: str) -> None:
    if len(window_size) != 2 or min(window_size) < 1:
        raise ValueError(
            f"{name} must be rows and columns, of a patch or more, "
            f"got {window_size}"
        )


def _check_within(
    outside: Tensor, offsets: Tensor, window_size: tuple[int, int]
) -> None:
    try:
        fits = not outside.any()
    except RuntimeError:  # their numbers cannot be read
        return
    if not fits:
        rows, columns = offsets.abs().flatten(0, -2).amax(0).tolist()
        raise ValueError(
            f"coordinates must lie in a window of {window_size[0]} rows and "
            f"{window_size[1]} columns, got some {rows} rows and {columns} "
            "columns apart"
        )


def _coordinate_offsets(query_coords: Tensor, key_coords: Tensor) -> Tensor:
    """Return query minus key position: (..., queries, keys, 2), int64."""
    whole = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    for each in (query_coords, key_coords):
        tensor = isinstance(each, Tensor)
        kind = each.dtype if tensor else type(each).__name__
        if kind not in whole:
            raise ValueError(
                "coordinates must be integer tensors (uint8, int8, int16, "
                f"int32 or int64), got {kind}"
            )
    queries, keys = tuple(query_coords.shape), tuple(key_coords.shape)
    pairs = queries[-1:] == keys[-1:] == (2,)
    pairs = pairs and min(len(queries), len(keys)) > 1
    if not pairs or queries[:-2] != keys[:-2]:
        raise ValueError(
            "coordinates must be (..., queries, 2) and (..., keys, 2), "
            f"got {queries} and {keys}"
        )
    i = query_coords.to(torch.int64)[..., :, None, :]
    return i - key_coords.to(i.device)[..., None, :, :]


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


# Former names, kept until the next release.
window_rows = relative_position_index
log_offsets = log_spaced_offsets
