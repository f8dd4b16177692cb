# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""Transformer-XL: attention scores with sinusoids of the relative distance.

The score of a query and a key i - j tokens before it is a sum of four products:

    score[i, j] = ((q[i] + u) . k[j] + (q[i] + v) . W R[i - j]) / sqrt(dim)

R[d] holds the sines and then the cosines of d * 10000^(-2 p / width), p = 0 ..
width/2 - 1. W is learned, and so are the vectors u and v of each head, which
replace the position of the query.

The keys are the memory of earlier segments, followed by the segment of the
queries. Scores depend only on distances, so no positions are passed. Keys after
the query are hidden, unless `causal` is False: then R is computed for their
distances as well, which are negative. This is the case in XLNet with attn_type
"bi", the default of transformers.

References:
    arXiv:1901.02860, section 3.3.
    Reference code, with the shift: github.com/kimiyoung/transformer-xl at
    44781ed, pytorch/mem_transformer.py.
"""

import math

import torch
from torch import Tensor, nn


def distance_encodings(
    keys: int,
    width: int,
    dtype: torch.dtype = torch.float32,
    device: torch.device | None = None,
    later: int = 0,
) -> Tensor:
    """Return the sinusoids R of the distances keys - 1, ..., 1, 0.

    Angles are computed in float32, or in float64 if `dtype` is float64.

    Args:
        keys: Number of keys.
        width: Number of channels; even and at least 2.
        dtype: Floating-point dtype of the result: that of q.
        device: Device of the result: that of q. None is torch's default device.
        later: Number of negative distances, -1 to -later, that follow as
            further rows, for keys after the query.

    Returns:
        The sinusoids, shape `(keys + later, width)`.

    Raises:
        ValueError: If `width` is odd or less than 2, or `dtype` is not
            floating-point.

    Example:
        >>> distance_encodings(2, 4)
        tensor([[0.8415, 0.0100, 0.5403, 0.9999],
                [0.0000, 0.0000, 1.0000, 1.0000]])
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
    """Turn one column per distance into one column per key.

    The last query is at the position of the last key, and the row of each query
    is shifted one step further to the left than the row of the next query. In
    each row, the query's own entries are followed by a zero and by entries of
    the next query; mask the zero and the entries of the next query.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        x: One column per distance, shape `(..., queries, keys)`; column `c`
            belongs to distance `keys - 1 - c`, as in `distance_encodings`.

    Returns:
        One column per key, in the shape of `x`.

    Raises:
        ValueError: If `x` has no axis for queries or none for keys.

    Example:
        >>> relative_shift(torch.tensor([[12, 11, 10], [22, 21, 20]]))
        tensor([[11, 10,  0],
                [22, 21, 20]])
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
    """Return the attention scores of Transformer-XL.

    Supports compile, export, vmap, mps; no host-device sync.

    Args:
        q: Queries, shape `(..., heads, queries, dim)`. The last query is at the
            position of the last key.
        k: Keys, shape `(..., key_heads, keys, dim)`. Each key head serves heads
            / key_heads heads of `q`, in order.
        rows: W R of each head, shape `(heads, distances, dim)`: as many
            distances as keys, or, if not `causal`, queries - 1 more.
        u: Learned vector of each head for the content of keys, shape
            `(heads, dim)`.
        v: Learned vector of each head for their distance, shape `(heads, dim)`.
        causal: Whether later keys have the score -inf.

    Returns:
        Scores, shape `(..., heads, queries, keys)`.

    Raises:
        ValueError: If the shapes do not match, or there are more queries than
            keys.
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
    """Hold W, u and v of a layer.

    The module is a score function for attention.py. The authors' PyTorch code
    shares u and v among layers: set `second.u = first.u`, and v in the same
    way.

    Supports compile, export, vmap, per-sample gradients, mps; no host-device
    sync.

    Args:
        dim: Width of the model and of R; even and a multiple of `heads`.
        heads: Number of heads, each of width dim/heads.
        causal: Whether later keys have the score -inf. False is for attention
            in both directions, as with attn_type "bi" of XLNet.

    Raises:
        ValueError: If `dim` is odd or not a positive multiple of `heads`.
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
        """Initialise u and v; W is a layer with its own method."""
        nn.init.normal_(self.u, std=0.02)
        nn.init.normal_(self.v, std=0.02)

    def forward(
        self,
        q: Tensor,  # (..., heads, queries, head_dim)
        k: Tensor,  # (..., key_heads, keys, head_dim)
    ) -> Tensor:
        """Return the attention scores of Transformer-XL.

        Args:
            q: Queries, shape `(..., heads, queries, head_dim)`.
            k: Keys, shape `(..., key_heads, keys, head_dim)`.

        Returns:
            Scores, shape `(..., heads, queries, keys)`.

        Raises:
            ValueError: In the cases listed for `transformer_xl_scores`.
        """
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
        rows = distance_encodings(keys, width, q.dtype, q.device, later)
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


# Former names, kept until the next release.
distance_rows = distance_encodings
