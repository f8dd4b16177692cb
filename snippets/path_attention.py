# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""PaTH attention: each token applies a matrix of its own to all earlier keys.

The matrix is of Householder's type and depends on the token. Token t has a
direction w[t], of length 1, and a strength beta[t] from 0 to 2:

    H[t]        = I - beta[t] w[t] w[t]^T       leaves what is across w[t], and
                                  multiplies what is along it by 1 - beta[t]
    score[i, j] = q[i]^T H[i] H[i - 1] ... H[j + 1] k[j] / sqrt(dim)

beta 0 changes nothing, 1 removes the component along w, and only 2 is a
reflection. The product of two reflections is a rotation, so RoPE's rotation of
one pair is a special case, with two tokens for each position. Products of H
depend on the tokens between key and query, and on their order. No H makes a
vector longer.

The product of a block of n tokens is one sum: H[n] ... H[1] = I - W^T Y for
rows w[t] of W and y[t] of Y. Multiplying it by H[t + 1] gives y[t + 1] = beta[t
+ 1] (w[t + 1] - sum over s <= t of (w[t + 1] . w[s]) y[s]), a triangular
system:

    (I + tril(diag(beta) W W^T, -1)) Y = diag(beta) W

A key of the block is transformed by later rows alone. Set the column of this
key in W K^T to 0 up to the row of the key, and solve the same system for
diag(beta) times that: Z. Then

    own scores = tril(Q K^T) - tril(Q W^T) Z      own keys, after it: K - Z^T W
    other keys: score with Q - tril(Q W^T) Y, and then become K - K Y^T W

Only tokens from the key to the query count: padding before a text and other
texts of a sequence change nothing, if their keys are hidden. Padding between
tokens of one text needs a beta of 0.

Not implemented here: the convolution over three tokens that w passes through in
the authors' layer, their norms of q and k, and their gate for each head:
forgetting_bias of forgetting.py, added to the scaled scores (their plain form
also scales it).

References:
    arXiv:2505.16381.
    w and beta: github.com/fla-org/flash-linear-attention at 27289fc,
    fla/layers/path_attn.py.
    Its plain form: fla/ops/path_attn/naive.py in fla-core 0.6.0.
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize


def path_scores(
    q: Tensor,  # (..., tokens, dim)
    k: Tensor,  # (..., tokens, dim)
    w: Tensor,  # (..., tokens, dim)
    beta: Tensor,  # (..., tokens)
    cached_keys: Tensor | None = None,  # (..., cached, dim)
    block: int = 64,
) -> Tensor:
    """Return the scaled scores of PaTH attention.

    The arithmetic is float32 or wider, also under autocast. In float32 a long
    text takes about 9 bytes per head, query and key at its peak.

    Supports autocast, vmap, mps; no host-device sync.

    Args:
        q: Queries, shape `(..., tokens, dim)`, floating-point.
        k: Keys, shape `(..., tokens, dim)`, floating-point. It may have fewer
            heads than `q`: each key head serves heads / key_heads heads, in
            order.
        w: Directions, in the shape of `k`, floating-point. They are normalised
            to length 1 here, and a `w` of 0 changes no key.
        beta: Strengths, shape `(..., tokens)` with the heads of `k`, from 0 to
            2, floating-point.
        cached_keys: Result of `path_keys` for the tokens before, shape
            `(..., cached, dim)` with the heads of `k`; None if there are none.
        block: Number of tokens in a block; at least 1. It changes the scores
            only by rounding: small blocks retain more digits if adjacent tokens
            have almost the same direction and a beta near 2.

    Returns:
        Scores, shape `(..., tokens, cached + tokens)`; -inf for later keys.

    Raises:
        ValueError: If the shapes do not match, a dtype is not floating-point,
            `beta` on the CPU contains nan or is not from 0 to 2, or `block` is
            less than 1.

    Example:
        >>> q, k = torch.tensor([[1.0]] * 3), torch.tensor([[4.0]] * 3)
        >>> w, beta = torch.tensor([[3.0]] * 3), torch.tensor([0.0, 2.0, 1.0])
        >>> path_scores(q, k, w, beta)
        tensor([[ 4., -inf, -inf],
                [-4.,  4., -inf],
                [ 0.,  0.,  4.]])
    """
    _check(k, w, beta, cached_keys, block)
    _check_queries(q, k)
    exact = torch.promote_types(q.dtype, torch.float32)
    heads = (q.shape[-3] // k.shape[-3],) if q.ndim > 2 else ()
    rows = q.to(exact) / math.sqrt(q.shape[-1])
    if heads:  # of a key head, as one axis more
        rows = rows.unflatten(-3, (-1, *heads))
    parts = []
    with torch.autocast(_device_type(q), enabled=False):
        for own, old, transforms in _walk(
            k, w, beta, cached_keys, exact, block
        ):
            here, (k_rows, w_rows, y, z) = rows[..., own, :], transforms
            if heads:
                old, k_rows, w_rows, y, z = (
                    x[..., None, :, :] for x in (old, k_rows, w_rows, y, z)
                )
            along = (here @ w_rows.mT).tril()
            far = (here - along @ y) @ old.mT
            near = here @ k_rows.mT - along @ z
            hidden = torch.ones_like(near, dtype=torch.bool).triu(1)
            near = near.masked_fill(hidden, -math.inf)
            after = rows.shape[-2] - own.stop
            later = near.new_full((*near.shape[:-1], after), -math.inf)
            parts.append(torch.cat((far, near, later), -1))
    if not parts:
        keys = 0 if cached_keys is None else cached_keys.shape[-2]
        return q.new_empty(*q.shape[:-1], keys)  # (..., 0, cached)
    scores = torch.cat(parts, -2)
    return (scores.flatten(-4, -3) if heads else scores).to(q.dtype)


def path_keys(
    k: Tensor,  # (..., tokens, dim)
    w: Tensor,  # (..., tokens, dim)
    beta: Tensor,  # (..., tokens)
    cached_keys: Tensor | None = None,  # (..., cached, dim)
    block: int = 64,
) -> Tensor:
    """Return the keys after the transforms of all tokens, to be cached.

    Each key is transformed by all tokens after it. The query of the last token
    scores them with plain scaled dot products. Keys may be dropped: the
    transforms of their tokens are already applied to the other keys. Do not
    convert the result to a narrower dtype, because each step rounds all keys
    once more.

    Supports autocast, vmap, mps; no host-device sync.

    Args:
        k: Keys, shape `(..., tokens, dim)`, floating-point.
        w: Directions, as in `path_scores`.
        beta: Strengths, as in `path_scores`.
        cached_keys: Result of this function for the tokens before, shape
            `(..., cached, dim)`; None if there are none.
        block: Number of tokens in a block; at least 1.

    Returns:
        Keys, shape `(..., cached + tokens, dim)`, float32 or wider.

    Raises:
        ValueError: In the cases listed for `path_scores`.

    Example:
        >>> k = torch.tensor([[2.0, 1.0]] * 3)
        >>> w = torch.tensor([[3.0, 0.0]] * 3)
        >>> beta = torch.tensor([0.0, 2.0, 1.0])
        >>> path_keys(k, w, beta)
        tensor([[0., 1.],
                [0., 1.],
                [2., 1.]])
    """
    _check(k, w, beta, cached_keys, block)
    exact = torch.promote_types(k.dtype, torch.float32)
    keys = _cached(k, cached_keys).to(exact)  # (..., cached, dim)
    with torch.autocast(_device_type(k), enabled=False):
        for _, old, transforms in _walk(k, w, beta, cached_keys, exact, block):
            keys = _transformed(old, *transforms)
    return keys  # (..., keys, dim)


class PathProjection(nn.Module):
    """Compute w and beta of the key heads of a layer.

    All w of a token are computed from `rank` numbers, as in the authors' code
    where no heads share keys.

    Supports compile, export, vmap, per-sample gradients, mps; no host-device
    sync.

    Args:
        dim: Number of channels of the inputs; at least 1.
        heads: Number of key heads; at least 1.
        width: Width of a head; at least 1.
        rank: Number of channels between the two projections for w; at least 1.

    Raises:
        ValueError: If a size is less than 1.
    """

    def __init__(self, dim: int, heads: int, width: int, rank: int = 32):
        super().__init__()
        if min(dim, heads, width, rank) < 1:
            raise ValueError(
                "dim, heads, width and rank must be at least 1, "
                f"got {dim}, {heads}, {width} and {rank}"
            )
        self.heads = heads
        self.narrow = nn.Linear(dim, rank, bias=False)
        self.widen = nn.Linear(rank, heads * width, bias=False)
        self.strength = nn.Linear(dim, heads)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return w and beta.

        Args:
            x: Vectors from which the keys are projected, shape
                `(..., tokens, dim)`.

        Returns:
            w, shape `(..., heads, tokens, width)`, and beta, shape
            `(..., heads, tokens)`, which is twice a sigmoid, float32 or wider.

        Raises:
            ValueError: If `x` does not have the shape described above.
        """
        dim = self.narrow.in_features
        if x.ndim < 2 or x.shape[-1] != dim:
            raise ValueError(
                f"x must be (..., tokens, {dim}), got {tuple(x.shape)}"
            )
        w = self.widen(self.narrow(x)).unflatten(-1, (self.heads, -1))
        logits = self.strength(x)  # (..., tokens, heads)
        exact = torch.promote_types(logits.dtype, torch.float32)
        beta = 2 * logits.to(exact).sigmoid()  # (..., tokens, heads)
        return w.transpose(-3, -2), beta.mT


def _walk(
    k: Tensor,
    w: Tensor,
    beta: Tensor,
    cached_keys: Tensor | None,
    exact: torch.dtype,
    block: int,
) -> Iterator[tuple[slice, Tensor, tuple[Tensor, ...]]]:
    """Yield the rows of each block, the keys before it, and its transforms.

    The keys before are transformed up to the block. The transforms are its rows
    of k and of w, Y and Z.
    """
    old = _cached(k, cached_keys).to(exact)  # (..., cached, dim)
    k, w, beta = k.to(exact), normalize(w.to(exact), dim=-1), beta.to(exact)
    tokens = k.shape[-2]
    for start in range(0, tokens, block):
        own = slice(start, min(start + block, tokens))
        k_rows, w_rows = k[..., own, :], w[..., own, :]
        strength = beta[..., own, None]
        system = strength * (w_rows @ w_rows.mT)  # its diagonal is taken as 1
        reach = (w_rows @ k_rows.mT).tril(-1)
        right = strength * torch.cat((w_rows, reach), -1)
        solved = torch.linalg.solve_triangular(
            system, right, upper=False, unitriangular=True
        )
        transforms = (k_rows, w_rows, *_split(solved, k.shape[-1]))
        yield own, old, transforms
        old = _transformed(old, *transforms)


def _split(solved: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    return solved[..., :dim], solved[..., dim:]


def _transformed(
    old: Tensor, k_rows: Tensor, w_rows: Tensor, y: Tensor, z: Tensor
) -> Tensor:
    """Return the keys before a block and in it, transformed by its tokens."""
    old = old - (old @ y.mT) @ w_rows
    return torch.cat((old, k_rows - z.mT @ w_rows), -2)


def _cached(k: Tensor, cached_keys: Tensor | None) -> Tensor:
    return k[..., :0, :] if cached_keys is None else cached_keys


def _device_type(x: Tensor) -> str:
    return "cpu" if x.is_meta else x.device.type


def _check_queries(q: Tensor, k: Tensor) -> None:
    want, have = tuple(q.shape), tuple(k.shape)
    same = len(have) == len(want) and have[-2:] == want[-2:]
    heads, serve = (*want[-3:-2], 1)[0], (*have[-3:-2], 1)[0]
    fits = same and have[:-3] == want[:-3] and serve and heads % serve == 0
    if not fits or not q.is_floating_point():
        raise ValueError(
            f"q must be floating-point of shape {have}, as k, or with a "
            f"multiple of k's heads, got {q.dtype} {want}"
        )


def _check(
    k: Tensor, w: Tensor, beta: Tensor, cached_keys: Tensor | None, block: int
) -> None:
    want = tuple(k.shape)
    if len(want) < 2 or not want[-1] or not k.is_floating_point():
        raise ValueError(
            f"k must be floating and (..., tokens, dim), got {k.dtype} {want}"
        )
    old = w if cached_keys is None else cached_keys
    count = old.shape[-2] if old.ndim > 1 else 0
    for name, given, shape in (
        ("w", w, want),
        ("beta", beta, want[:-1]),
        ("cached_keys", old, (*want[:-2], count, want[-1])),
    ):
        have = tuple(given.shape)
        if have != shape or not given.is_floating_point():
            raise ValueError(
                f"{name} must be floating and {shape}, got {given.dtype} {have}"
            )
    if block < 1:
        raise ValueError(f"block must be at least 1, got {block}")
    if beta.device.type == "cpu" and not torch.compiler.is_compiling():
        _check_range(beta.detach())


def _check_range(beta: Tensor) -> None:
    try:
        low, high = map(float, beta.aminmax())
    except RuntimeError:  # none, or their numbers cannot be read
        return
    if not (low >= 0 and high <= 2):
        raise ValueError(f"beta must be 0 to 2, got {low:.3g} to {high:.3g}")


# Former names, kept until the next release.
PathTurns = PathProjection
