# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""T5 relative bias: add one learned number per head and bucket of offsets.

    bias[h, i, j] = table[bucket(j - i), h]

Small offsets have a bucket each. Larger ones share buckets: the index of the
bucket grows with the logarithm of the distance, so buckets become wider, up to
rounding. The largest distances share the last bucket: with 32 buckets and
`max_distance` 128, from distance 91 on in each direction, or from 113 on if all
buckets are for earlier keys.

T5 adds the bias to q[i] . k[j] without 1/sqrt(dim): for the weights of T5, use
scale=1.0 in scaled_dot_product_attention. All layers of a stack share one
table, and cross-attention has none.

References:
    Raffel et al. 2019, arXiv:1910.10683, section 2.1.
    _relative_position_bucket in github.com/tensorflow/mesh at da90793,
    mesh_tensorflow/transformer/transformer_layers.py.
"""

import math

import torch
from torch import Tensor, nn


def t5_buckets(
    offsets: Tensor,
    buckets: int = 32,
    max_distance: int = 128,
    bidirectional: bool = True,
) -> Tensor:
    """Return the bucket of each offset.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        offsets: Key position minus query position, integers, any shape.
        buckets: Number of buckets; at least 2. If `bidirectional`, even and at
            least 4.
        max_distance: Distance beyond which all keys share the last bucket,
            which begins at a smaller distance; more than the number of
            distances that have a bucket of their own.
        bidirectional: If True, each direction has one half of the buckets; the
            first bucket of the half for later keys stays empty. If False, every
            later key falls into bucket 0, the bucket of the query itself: this
            does not mask later keys.

    Returns:
        Bucket indices, in the shape of `offsets`, int64.

    Raises:
        ValueError: If `offsets` is not an integer tensor, or `buckets` or
            `max_distance` is not as described above.

    Example:
        >>> t5_buckets(torch.tensor([-128, -91, -90, -8, -1, 0, 1, 8]))
        tensor([15, 15, 14,  8,  1,  0, 17, 24])
    """
    _check_integers("offsets", offsets)
    if bidirectional and (buckets < 4 or buckets % 2):
        raise ValueError(f"buckets must be even and 4 or more, got {buckets}")
    if buckets < 2:
        raise ValueError(f"buckets must be 2 or more, got {buckets}")
    side = buckets // 2 if bidirectional else buckets
    near = side // 2  # as many distances have a bucket of their own
    if max_distance <= near:
        raise ValueError(
            f"max_distance must be more than {near}, got {max_distance}"
        )
    offsets = offsets.long()
    distance = offsets.abs() if bidirectional else (-offsets).clamp(min=0)
    times = distance.clamp(min=near).float() / near  # 1 where sharing begins
    share = times.log() / math.log(max_distance / near)  # 1 at max_distance
    far = near + (share * (side - near)).long()
    bucket = torch.where(distance < near, distance, far.clamp(max=side - 1))
    return bucket + side * (offsets > 0) if bidirectional else bucket


def t5_bias_by_offset(
    table: Tensor,  # (buckets, heads)
    max_distance: int = 128,
    bidirectional: bool = True,
) -> Tensor:
    """Return the bias of each offset from -max_distance to max_distance.

    Beyond `max_distance`, the bias is constant. `t5_bias` needs nothing else of
    the table: compute this once, not for each token.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        table: Learned numbers, shape `(buckets, heads)`, as in the weights of
            T5 in transformers.
        max_distance: See `t5_buckets`.
        bidirectional: See `t5_buckets`.

    Returns:
        The bias by offset, -max_distance first, shape
        `(heads, 2*max_distance+1)`, dtype of `table`.

    Raises:
        ValueError: If `table` does not have the shape `(buckets, heads)`, or in
            the cases listed for `t5_buckets`.
    """
    if table.ndim != 2:
        shape = tuple(table.shape)
        raise ValueError(f"table must be (buckets, heads), got {shape}")
    most = max_distance
    span = torch.arange(-most, most + 1, device=table.device)
    bucket = t5_buckets(span, len(table), most, bidirectional)
    return table.T[:, bucket]  # (heads, 2*max_distance+1)


def t5_bias(
    query_positions: Tensor,  # (..., queries)
    key_positions: Tensor,  # (..., keys)
    bias_by_offset: Tensor,  # (heads, offsets)
) -> Tensor:
    """Return the T5 bias for any positions.

    The bias hides no key: in a causal model, mask later keys as well. In
    float32, the computation takes 4 * heads + 8 bytes per query and key at its
    peak (with 2 heads or more).

    With `bidirectional=False`, flex_bias of decoding.py avoids a tensor of this
    size. It needs only the bias of the last query, nearest key first:

        n = torch.tensor([99])
        t5_bias(n, torch.arange(100), bias_by_offset)[:, 0].flip(-1)

    If positions are on the CPU and `bias_by_offset` is not, each call copies
    them, and the host waits for the copy.

    The backward pass uses atomic additions, which are slow on a GPU: for
    consecutive positions, train with `t5_bias_consecutive`.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        query_positions: Positions in tokens, integers, shape `(queries,)` if
            all sequences share them, `(1, queries)` or `(batch, queries)`. May
            stay on the CPU.
        key_positions: The same for the keys, shape `(keys,)`, `(1, keys)` or
            `(batch, keys)`, with the same leading axes.
        bias_by_offset: Bias by offset from `t5_bias_by_offset`, shape
            `(heads, offsets)` with an odd number of offsets.

    Returns:
        The bias, shape `(..., heads, queries, keys)`, with the dtype and device
        of `bias_by_offset`.

    Raises:
        ValueError: If positions are not integer tensors or their shapes do not
            match, or `bias_by_offset` does not have the shape described above.

    Example:
        >>> table = torch.arange(32.0)[:, None]  # one head; bias = bucket
        >>> by_offset = t5_bias_by_offset(table)
        >>> t5_bias(torch.tensor([2]), torch.arange(4), by_offset)
        tensor([[[ 2.,  1.,  0., 17.]]])
    """
    if bias_by_offset.ndim != 2 or bias_by_offset.shape[1] % 2 == 0:
        raise ValueError(
            "bias_by_offset must be (heads, 2 max_distance + 1), "
            f"got {tuple(bias_by_offset.shape)}"
        )
    most = bias_by_offset.shape[1] // 2
    place = _offsets(query_positions, key_positions, bias_by_offset.device)
    place = place.clamp(-most, most).add_(most)  # (..., queries, keys)
    bias = bias_by_offset.index_select(1, place.flatten()).unflatten(
        1, place.shape
    )
    return bias.movedim(0, -3)  # (..., heads, queries, keys)


def t5_bias_consecutive(
    queries: int,
    keys: int,
    bias_by_offset: Tensor,  # (heads, offsets)
) -> Tensor:
    """Return the T5 bias for consecutive positions.

    The result has the same bits as that of `t5_bias`. The keys are consecutive,
    and the queries are the last of them: all of them in training, one in
    decoding. For a model with T5Bias:
    `t5_bias_consecutive(tokens, tokens, bias.bias_by_offset())`.

    The gradient is a sum along diagonals. `t5_bias`, which takes any positions,
    uses a lookup: on a GPU, its gradient consists of many thousands of atomic
    additions to the same few numbers, and training waits for them.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        queries: Number of queries, from 0 to `keys`.
        keys: Number of keys.
        bias_by_offset: Bias by offset from `t5_bias_by_offset`, shape
            `(heads, offsets)` with an odd number of offsets.

    Returns:
        The bias, shape `(heads, queries, keys)`, with the dtype and device of
        `bias_by_offset`.

    Raises:
        ValueError: If there are more queries than keys, or `bias_by_offset`
            does not have the shape described above.

    Example:
        >>> table = torch.arange(32.0)[:, None]  # one head; bias = bucket
        >>> t5_bias_consecutive(2, 4, t5_bias_by_offset(table))
        tensor([[[ 2.,  1.,  0., 17.],
                 [ 3.,  2.,  1.,  0.]]])
    """
    _check_last(queries, keys)
    if bias_by_offset.ndim != 2 or bias_by_offset.shape[1] % 2 == 0:
        raise ValueError(
            "bias_by_offset must be (heads, 2 max_distance + 1), "
            f"got {tuple(bias_by_offset.shape)}"
        )
    row = _each_offset(bias_by_offset, queries, keys)
    return _along_diagonals(row, queries, keys)


class T5Bias(nn.Module):
    """Hold the learned table of a T5 bias, initialised to zero.

    For decoding, compute `bias_by_offset()` once and pass it to `t5_bias`.

    If positions are on the CPU and the table is not, each call copies them, and
    the host waits for the copy.

    Supports autocast, compile, export, vmap, per-sample gradients, mps; no
    host-device sync.

    Args:
        heads: Number of heads; at least 1.
        buckets: Number of buckets, as in `t5_buckets`. The table has the shape
            `(buckets, heads)`, as in the weights of T5 in transformers.
        max_distance: See `t5_buckets`.
        bidirectional: See `t5_buckets`.

    Raises:
        ValueError: If `heads` is less than 1, or in the cases listed for
            `t5_buckets`.
    """

    def __init__(
        self,
        heads: int,
        buckets: int = 32,
        max_distance: int = 128,
        bidirectional: bool = True,
    ):
        super().__init__()
        if heads < 1:
            raise ValueError(f"heads must be at least 1, got {heads}")
        t5_buckets(torch.tensor(0), buckets, max_distance, bidirectional)
        self.max_distance = max_distance
        self.bidirectional = bidirectional
        self.table = nn.Parameter(torch.empty(buckets, heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the table to zero."""
        nn.init.zeros_(self.table)

    def bias_by_offset(self) -> Tensor:
        """Return `t5_bias_by_offset` of the table.

        The result is valid as long as the table is unchanged.

        Returns:
            The bias by offset, shape `(heads, 2*max_distance+1)`.
        """
        return t5_bias_by_offset(
            self.table, self.max_distance, self.bidirectional
        )

    def forward(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        """Return the T5 bias for any positions.

        Args:
            query_positions: Positions of the queries, as in `t5_bias`.
            key_positions: Positions of the keys, as in `t5_bias`.

        Returns:
            The bias, shape `(..., heads, queries, keys)`.

        Raises:
            ValueError: In the cases listed for `t5_bias`.
        """
        return t5_bias(query_positions, key_positions, self.bias_by_offset())


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


# Former names, kept until the next release.
t5_by_offset = t5_bias_by_offset
