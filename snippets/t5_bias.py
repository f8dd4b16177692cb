# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-26
"""T5's relative bias: one learned number per head for each bucket of offsets.

    bias[h, i, j] = table[bucket(j - i), h]

Near offsets have a bucket each. Farther ones share buckets: the number of the
bucket grows with the logarithm of the distance, so that buckets get wider, up
to rounding. The farthest share the last: with 32 buckets and max_distance 128
from distance 91 on in each direction, or from 113 on if all buckets look back.

T5 adds it to q[i] . k[j] without 1/sqrt(dim): scale=1.0 in
scaled_dot_product_attention, if weights are T5's. All layers of a stack share
one table, and cross-attention has none.

Source: arXiv:1910.10683, section 2.1; _relative_position_bucket in
github.com/tensorflow/mesh at da90793,
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
    """The bucket of each offset, key position minus query position: int64.

    bidirectional gives each direction one half of the buckets; of later keys'
    half the first stays empty. Otherwise every later key falls into bucket 0,
    the query's own: it is no mask.

    >>> t5_buckets(torch.tensor([-128, -91, -90, -8, -1, 0, 1, 8]))
    tensor([15, 15, 14,  8,  1,  0, 17, 24])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: offsets no tensor of integers; fewer than 2 buckets, or if
    bidirectional an odd number or fewer than 4; max_distance not above the
    number of distances with a bucket of their own.
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


def t5_by_offset(
    table: Tensor,  # (buckets, heads)
    max_distance: int = 128,
    bidirectional: bool = True,
) -> Tensor:
    """The bias of each offset, -max_distance first: (heads, 2*max_distance+1).

    Beyond max_distance nothing changes. bidirectional is as in t5_buckets. It
    is all that t5_bias needs of the table: make it once, not for each token.

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: a table that is not (buckets, heads); as t5_buckets.
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
    by_offset: Tensor,  # (heads, offsets)
) -> Tensor:
    """The bias of t5_by_offset: (..., heads, queries, keys), of its dtype.

    Positions are integers, in tokens: (tokens,) for all rows of a batch, (1,
    tokens) or (batch, tokens). They may stay on the CPU. It hides no key: if
    not bidirectional, mask later keys too. In float32 it takes 4 * heads + 8
    bytes per query and key at its peak (with 2 heads or more). Where it looks
    back only, flex_bias of decoding.py needs but the bias of the last query,
    nearest key first, and makes nothing of that size:
    t5_bias(n, torch.arange(100), by_offset)[:, 0].flip(-1), where n is
    torch.tensor([99]).

    >>> table = torch.arange(32.0)[:, None]  # one head whose bias is the bucket
    >>> t5_bias(torch.tensor([2]), torch.arange(4), t5_by_offset(table))
    tensor([[[ 2.,  1.,  0., 17.]]])

    Positions left on the CPU are copied in each call: the host waits for that.

    Its backward pass adds atomically, which is slow on a GPU: for consecutive
    positions, train with t5_bias_consecutive.

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: positions that are no tensors of integers or do not fit each
    other; by_offset not (heads, an odd number).
    """
    if by_offset.ndim != 2 or by_offset.shape[1] % 2 == 0:
        raise ValueError(
            "by_offset must be (heads, 2 max_distance + 1), "
            f"got {tuple(by_offset.shape)}"
        )
    most = by_offset.shape[1] // 2
    place = _offsets(query_positions, key_positions, by_offset.device)
    place = place.clamp(-most, most).add_(most)  # (..., queries, keys)
    bias = by_offset.index_select(1, place.flatten()).unflatten(1, place.shape)
    return bias.movedim(0, -3)  # (..., heads, queries, keys)


def t5_bias_consecutive(
    queries: int,
    keys: int,
    by_offset: Tensor,  # (heads, offsets)
) -> Tensor:
    """t5_bias of consecutive positions: (heads, queries, keys), the same bits.

    The keys stand one after the other, and the queries are the last of them:
    all of them in training, one in decoding. For a model with T5Bias:
    t5_bias_consecutive(tokens, tokens, bias.by_offset()).

    Its gradient is a sum along diagonals. t5_bias, which takes any positions,
    looks numbers up: on a GPU its gradient is many thousand atomic additions to
    the same few numbers, and training waits for them.

    >>> table = torch.arange(32.0)[:, None]  # one head whose bias is the bucket
    >>> t5_bias_consecutive(2, 4, t5_by_offset(table))
    tensor([[[ 2.,  1.,  0., 17.],
             [ 3.,  2.,  1.,  0.]]])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: more queries than keys; by_offset not (heads, an odd number).
    """
    _check_last(queries, keys)
    if by_offset.ndim != 2 or by_offset.shape[1] % 2 == 0:
        raise ValueError(
            "by_offset must be (heads, 2 max_distance + 1), "
            f"got {tuple(by_offset.shape)}"
        )
    row = _each_offset(by_offset, queries, keys)
    return _along_diagonals(row, queries, keys)


class T5Bias(nn.Module):
    """A learned table, at first zero, and t5_bias of it.

    The table is (buckets, heads), as in the weights of Hugging Face's T5. To
    decode, hold by_offset() and give it to t5_bias.

    Positions left on the CPU are copied in each call: the host waits for that.

    Fit for autocast, compile, export, vmap, gradients per sample, mps; no sync.

    ValueError: heads below 1; as t5_buckets; positions as t5_bias.
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
        nn.init.zeros_(self.table)

    def by_offset(self) -> Tensor:
        """t5_by_offset of the table: hold it while the table stays."""
        return t5_by_offset(self.table, self.max_distance, self.bidirectional)

    def forward(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        return t5_bias(query_positions, key_positions, self.by_offset())


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


def _check_last(queries: int, keys: int) -> None:
    if not 0 <= queries <= keys:
        raise ValueError(
            "queries must be the last of the keys, from 0 to as many, "
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
