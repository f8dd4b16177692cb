# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-23
"""Transformer-XL's relative positions: sinusoids of the distance in the score.

A query that stands i - j tokens after a key scores it by four products:

    score[i, j] = ((q[i] + u) . k[j] + (q[i] + v) . W R[i - j]) / sqrt(dim)

R[d] holds the sines and then the cosines of d * 10000^(-2 p / width), p = 0 ..
width/2 - 1. Learned: W, and the vectors u and v of each head, which take the
place of a query's own position.

The keys are the memory of earlier segments and then the segment of the queries;
only distances count, so there are no positions to give. Keys after the query
are hidden, unless causal is False: then R is made for their distances too,
which are negative. So it is in XLNet with attn_type "bi", which is the default
of transformers.

Source: arXiv:1901.02860, section 3.3; reference code, with the shift:
github.com/kimiyoung/transformer-xl at 44781ed, pytorch/mem_transformer.py.
"""

import math

import torch
from torch import Tensor, nn


def distance_rows(
    keys: int,
    width: int,
    dtype: torch.dtype = torch.float32,
    device: torch.device | None = None,
    later: int = 0,
) -> Tensor:
    """R for the distances keys - 1, ..., 1, 0: (keys, width).

    After them come -1 to -later, for keys after the query, in as many rows
    more. Angles are float32, or float64 if dtype is. dtype and device are those
    of R: take those of q.

    >>> distance_rows(2, 4)
    tensor([[0.8415, 0.0100, 0.5403, 0.9999],
            [0.0000, 0.0000, 1.0000, 1.0000]])

    ValueError: width odd or below 2; dtype not floating.
    """
    if width < 2 or width % 2:
        raise ValueError(f"width must be even and at least 2, got {width}")
    if not dtype.is_floating_point:
        raise ValueError(f"dtype must be a floating dtype, got {dtype}")
    exact = torch.promote_types(dtype, torch.float32)
    p = torch.arange(width // 2, dtype=exact, device=device)
    end = -1 - later
    distance = torch.arange(keys - 1, end, -1, dtype=exact, device=device)
    angle = distance[:, None] * 10000 ** (-2 * p / width)  # (..., width/2)
    return torch.cat((angle.sin(), angle.cos()), -1).to(dtype)  # (..., width)


def relative_shift(
    x: Tensor,  # (..., queries, keys)
) -> Tensor:
    """From a column for each distance to a column for each key, same shape.

    Column c of x is distance keys - 1 - c, as in distance_rows. The last query
    stands at the last key, and each query before it has its columns moved one
    more to the left. Then come a zero and columns of the next query: hide them.

    Fit for autocast, compile, export, vmap, mps; no sync.

    >>> relative_shift(torch.tensor([[12, 11, 10], [22, 21, 20]]))
    tensor([[11, 10,  0],
            [22, 21, 20]])

    ValueError: x without an axis for queries and one for keys.
    """
    if x.ndim < 2:
        have = tuple(x.shape)
        raise ValueError(f"x must be (..., queries, keys), got {have}")
    queries, keys = x.shape[-2:]
    padded = nn.functional.pad(x, (1, 0))  # (..., queries, keys + 1)
    moved = padded.flatten(-2)[..., queries:]  # (..., queries * keys)
    return moved.unflatten(-1, (queries, keys))  # (..., queries, keys)


def transformer_xl_scores(
    q: Tensor,  # (..., heads, queries, dim)
    k: Tensor,  # (..., key_heads, keys, dim)
    rows: Tensor,  # (heads, distances, dim)
    u: Tensor,  # (heads, dim)
    v: Tensor,  # (heads, dim)
    causal: bool = True,
) -> Tensor:
    """How well each key fits each query: (..., heads, queries, keys).

    rows is W R of each head: of as many distances as there are keys, or, if not
    causal, of queries - 1 more. If causal, later keys get -inf. The last query
    stands at the last key. k may have fewer heads than q: each serves heads /
    key_heads of them, in order.

    Fit for compile, export, vmap, mps; no sync.

    ValueError: shapes that do not fit; more queries than keys.
    """
    for name, given, axes in (
        ("q", q, "heads, queries"),
        ("k", k, "key_heads, keys"),
    ):
        if given.ndim < 3:
            have = tuple(given.shape)
            raise ValueError(f"{name} must be (..., {axes}, dim), got {have}")
    *batch, heads, queries, dim = q.shape
    key_heads, keys = k.shape[-3:-1]
    if not key_heads or heads % key_heads:
        key_heads = heads
    if queries > keys:
        raise ValueError(f"{queries} queries need as many keys, got {keys}")
    distances = keys if causal else keys + queries - 1
    for name, given, want in (
        ("k", k, (*batch, key_heads, keys, dim)),
        ("rows", rows, (heads, distances, dim)),
        ("u", u, (heads, dim)),
        ("v", v, (heads, dim)),
    ):
        have = tuple(given.shape)
        if have != want:
            raise ValueError(f"{name} must be {want}, got {have}")
    scale = 1 / math.sqrt(dim)
    content = _products((q + u[:, None]) * scale, k)
    by_row = (q + v[:, None]) * scale @ rows.mT  # (..., queries, distances)
    # (..., heads, queries, keys)
    scores = content + relative_shift(by_row)[..., :keys]
    if not causal:
        return scores
    later = q.new_ones(queries, keys, dtype=torch.bool).triu(keys - queries + 1)
    return scores.masked_fill(later, -math.inf)


class TransformerXLScores(nn.Module):
    """What a layer learns for its scores: W, u and v.

    forward(q, k) is a score for attention.py. dim is the width of the model
    and of R, the heads are dim/heads wide. causal is False for attention in
    both directions, as in XLNet's attn_type "bi". The PyTorch code of the
    authors shares u and v among layers: set second.u = first.u, and v alike.

    Fit for compile, export, vmap, gradients per sample, mps; no sync.

    ValueError: as transformer_xl_scores; dim odd or not a multiple of heads.
    """

    def __init__(self, dim: int, heads: int, causal: bool = True):
        super().__init__()
        if heads < 1 or dim < 2 or dim % heads or dim % 2:
            raise ValueError(
                "dim must be even and a multiple of heads, "
                f"got {dim} and {heads}"
            )
        self.causal = causal
        self.project = nn.Linear(dim, dim, bias=False)
        self.u = nn.Parameter(torch.empty(heads, dim // heads))
        self.v = nn.Parameter(torch.empty(heads, dim // heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw u and v; W, a layer of its own, has its own."""
        nn.init.normal_(self.u, std=0.02)
        nn.init.normal_(self.v, std=0.02)

    def forward(
        self,
        q: Tensor,  # (..., heads, queries, head_dim)
        k: Tensor,  # (..., key_heads, keys, head_dim)
    ) -> Tensor:
        for name, given, axes in (
            ("q", q, "heads, queries"),
            ("k", k, "key_heads, keys"),
        ):
            if given.ndim < 2:
                have = tuple(given.shape)
                raise ValueError(
                    f"{name} must be (..., {axes}, dim), got {have}"
                )
        width, keys = self.project.in_features, k.shape[-2]
        later = 0 if self.causal else q.shape[-2] - 1
        rows = distance_rows(keys, width, q.dtype, q.device, later)
        rows = self.project(rows).unflatten(-1, self.u.shape)
        rows = rows.transpose(0, 1)  # (heads, distances, head_dim)
        return transformer_xl_scores(q, k, rows, self.u, self.v, self.causal)


def _products(q: Tensor, k: Tensor) -> Tensor:
    """Return q . k; each key head serves heads / key_heads heads, in order."""
    if k.ndim < 3:
        return q @ k.mT  # (..., queries, keys)
    (heads, queries), key_heads = q.shape[-3:-1], k.shape[-3]
    group = heads // key_heads
    rows = q.unflatten(-3, (key_heads, group)).flatten(-3, -2)
    products = rows @ k.mT  # (..., key_heads, group*queries, keys)
    return products.unflatten(-2, (group, queries)).flatten(-4, -3)
