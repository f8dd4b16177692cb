# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-23
"""Forgetting attention (FoX and Wall): scores that decay by learned gates.

A head gives each token t a gate f[t] between 0 and 1. A key decays by the gates
of all tokens after it, up to the query. The logarithms of the gates are added:

    bias[i, j]  = log f[j + 1] + ... + log f[i]                 (FoX)
    score[i, j] = sum over n of q[i, n] k[j, n] exp(sum[i, j, n]) / sqrt(dim)
    sum[i, j]   = log f[j + 1] + ... + log f[i], by channels    (Wall)

FoX adds its sum to the scaled score, so a forgotten key gets no weight. Wall
has a gate for each channel n and multiplies, so a forgotten key gets the score
0, and with it some weight. With equal gates, FoX is ALiBi, and Wall has the
decay of xPos. The gate of the first token has no effect.

Only tokens from the key to the query count: padding before a text and other
texts of a sequence change nothing, if their keys are hidden. Padding between
tokens of one text needs log gates of 0. If tokens are dropped from a cache, add
their log gates to that of the next token that remains.

Not implemented here: the other parts of a block of FoX Pro; skipping keys that
are forgotten; gates for both directions; the cap on exponents in Wall's kernel.
Wall may also have a gate for each head: add `forgetting_bias` to the scores for
it.

References:
    FoX: arXiv:2503.02130, section 3;
    github.com/zhixuan-lin/forgetting-transformer at 246d5e3,
    modeling_forgetting_transformer.py.
    Wall: Tilde Research (2026), blog.tilderesearch.com/blog/wall-attn, and
    fla/ops/wall_attn/naive.py in fla-core 0.6.0.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, logsigmoid, pad


def forgetting_bias(
    log_gates: Tensor,  # (..., keys)
    queries: int | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Return the bias that FoX adds to the scores.

    The sums are computed backwards from the query, in float32 or wider, so that
    they are exact up to rounding in texts of any length, and a gate may be 0.
    Peak memory is 8 bytes per head, query and key, plus one byte per query and
    key.

    For a fused kernel, compute `sums = log_gates.cumsum(-1)` and pass
    flex_attention a causal block_mask and this score_mod:

        lambda score, b, h, i, j: score + sums[b, h, i] - sums[b, h, j]

    Float32 sums lose digits as they grow: past 8,192, adjacent numbers differ
    by a thousandth.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        log_gates: Logarithms of the gates of all tokens so far, shape
            `(..., keys)`, usually `(batch, heads, keys)`, floating-point, 0 or
            less. Cache them like keys.
        queries: Number of queries, which are the last tokens; None is all
            tokens.
        dtype: Floating-point dtype of the result.

    Returns:
        The bias, shape `(..., queries, keys)`, dtype `dtype`; -inf for later
        keys.

    Raises:
        ValueError: If `log_gates` is not floating-point, has no axis or, on the
            CPU, contains nan or numbers above 0; `queries` is negative or more
            than the keys; or `dtype` is not floating-point.

    Example:
        >>> forgetting_bias(torch.tensor([0.5, 0.5, 0.25]).log())
        tensor([[ 0.0000,    -inf,    -inf],
                [-0.6931,  0.0000,    -inf],
                [-2.0794, -1.3863,  0.0000]])
    """
    _check_gates(log_gates, "keys")
    keys = log_gates.shape[-1]
    queries = keys if queries is None else queries
    if not 0 <= queries <= keys:
        raise ValueError(f"queries must be 0 to {keys}, got {queries}")
    if not dtype.is_floating_point:
        raise ValueError(f"dtype must be a floating dtype, got {dtype}")
    exact = torch.promote_types(log_gates.dtype, torch.float32)
    places = torch.arange(keys, device=log_gates.device)  # (keys)
    rows = places[keys - queries :, None]  # (queries, 1)
    sums = _sums_back(log_gates.to(exact)[..., None], rows)[..., 0]
    return sums.masked_fill(places > rows, -math.inf).to(dtype)


def wall_scores(
    q: Tensor,  # (..., queries, dim)
    k: Tensor,  # (..., keys, dim)
    log_gates: Tensor,  # (..., keys, dim)
    block: int = 64,
) -> Tensor:
    """Return the scaled scores of Wall.

    The product exp(P[i]) exp(-P[j]) of sums P over a whole text would overflow.
    Here the sum is split at the last token before a block of queries: the decay
    of a key up to that token, and from there on, are both at most 1. In the
    block itself, each query and key have their own decay. The block size does
    not change the scores; the peak memory is about 8 * heads * dim * queries *
    (block + keys / block) bytes.

    To decode without old gates, store decayed keys: multiply the cached keys by
    exp(log gate) of each new token. q . k / sqrt(dim) is then the score.

    Supports compile, export, vmap, mps; no host-device sync.

    Args:
        q: Queries of the last tokens, shape `(..., queries, dim)`.
        k: Keys, shape `(..., keys, dim)`. It may have fewer heads than `q`:
            each key head serves heads / key_heads heads, in order.
        log_gates: Logarithms of the gates of all tokens so far, shape
            `(..., keys, dim)` with the leading axes of `q`, floating-point, 0
            or less.
        block: Number of queries in a block; at least 1.

    Returns:
        Scores, shape `(..., queries, keys)`; -inf for later keys.

    Raises:
        ValueError: If the shapes do not match; there are more queries than
            keys; `log_gates` is not floating-point or, on the CPU, contains nan
            or numbers above 0; or `block` is less than 1.

    Example:
        >>> q, k = torch.ones(3, 1), torch.tensor([[8.0], [4.0], [2.0]])
        >>> wall_scores(q, k, torch.full((3, 1), 0.5).log())
        tensor([[8., -inf, -inf],
                [4., 4., -inf],
                [2., 2., 2.]])
    """
    _check_keys(q, k)
    _check_gates(log_gates, "keys, dim")
    (queries, dim), keys = q.shape[-2:], k.shape[-2]
    if queries > keys:
        raise ValueError(f"{queries} queries need as many keys, got {keys}")
    want, have = (*q.shape[:-2], keys, dim), tuple(log_gates.shape)
    if have != want:
        raise ValueError(f"log_gates must be {want}, got {have}")
    if block < 1:
        raise ValueError(f"block must be at least 1, got {block}")
    exact = torch.promote_types(q.dtype, torch.float32)
    if k.ndim > 2:
        k = k.repeat_interleave(q.shape[-3] // k.shape[-3], -3)
    k, gates = k.to(exact), log_gates.to(exact)
    rows = (_blocks(x, queries, block) for x in (q.to(exact), k, gates))
    q_rows, k_rows, gate_rows = rows  # (..., blocks, block, dim)
    q_rows = q_rows / math.sqrt(dim)
    first = torch.arange(keys - queries, keys, block, device=q.device)
    place = torch.arange(block, device=q.device)[:, None]  # (block, 1)
    faded = k[..., None, :, :] * _sums_back(gates, first[:, None] - 1).exp()
    far = (q_rows * gate_rows.cumsum(-2).exp()) @ faded.mT
    faded = k_rows[..., None, :, :] * _sums_back(gate_rows, place).exp()
    near = (faded @ q_rows[..., None])[..., 0]  # (..., blocks, block, block)
    after = torch.arange(keys, device=q.device) - first[:, None]
    after = after[:, None]  # (blocks, 1, keys): the key's index in the block
    near = near.gather(-1, after.clamp(0, block - 1).expand(far.shape))
    scores = far.where(after < 0, near).masked_fill(after > place, -math.inf)
    return scores.flatten(-3, -2)[..., :queries, :].to(q.dtype)


class ForgetGates(nn.Module):
    """Compute the logarithms of the gates of a layer.

    The gates are sigmoids of a linear layer.

    Supports compile, export, vmap, per-sample gradients, mps; no host-device
    sync.

    Args:
        dim: Number of channels of the inputs; at least 1.
        heads: Number of heads; at least 1.
        channels: Number of channels with their own gate, as Wall needs them;
            None is for one gate per head, as in FoX.
        bias: Initial value of the bias of the layer. Where x is zero, 0, as in
            the code of FoX, is a gate of one half, and 5, as in x-transformers,
            a gate of 0.993.

    Raises:
        ValueError: If a size is less than 1.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        channels: int | None = None,
        bias: float = 0.0,
    ):
        super().__init__()
        each = 1 if channels is None else channels
        if min(dim, heads, each) < 1:
            raise ValueError(
                "dim, heads and channels must be at least 1, "
                f"got {dim}, {heads} and {channels}"
            )
        self.heads, self.channels, self.begin = heads, channels, bias
        self.weight = nn.Parameter(torch.empty(heads * each, dim))
        self.bias = nn.Parameter(torch.empty(heads * each))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the weight and the bias."""
        nn.init.normal_(self.weight, std=0.02)
        nn.init.constant_(self.bias, self.begin)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logarithms of the gates.

        Args:
            x: Vectors from which the queries are projected, shape
                `(..., tokens, dim)`.

        Returns:
            Log gates, shape `(..., heads, tokens)`, or
            `(..., heads, tokens, channels)` with `channels`, float32 or wider.

        Raises:
            ValueError: If `x` does not have the shape described above.
        """
        dim = self.weight.shape[1]
        if x.ndim < 2 or x.shape[-1] != dim:
            raise ValueError(
                f"x must be (..., tokens, {dim}), got {tuple(x.shape)}"
            )
        logits = linear(x, self.weight, self.bias)
        exact = torch.promote_types(logits.dtype, torch.float32)
        log_gates: Tensor = logsigmoid(logits.to(exact))
        if self.channels is None:
            return log_gates.mT  # (..., heads, tokens)
        return log_gates.unflatten(-1, (self.heads, -1)).transpose(-3, -2)


def _sums_back(log_gates: Tensor, rows: Tensor) -> Tensor:
    """Return the sums of the gates after each key, up to each row.

    log_gates are (..., keys, channels), rows (rows, 1), and the result is (...,
    rows, keys, channels), with 0 for keys that are not before the row. All
    summands have one sign, so no digits are lost.
    """
    keys = log_gates.shape[-2]
    place = torch.arange(keys, device=rows.device).flip(0)  # the last key first
    next_gates = log_gates.flip(-2).roll(1, -2)  # (..., keys, channels)
    late = (place >= rows)[..., None]  # (rows, keys, 1)
    sums = next_gates[..., None, :, :].masked_fill(late, 0).cumsum(-2)
    return sums.flip(-2)  # (..., rows, keys, channels)


def _blocks(x: Tensor, rows: int, block: int) -> Tensor:
    """Split the last rows of x, padded with zeros, into blocks."""
    count = (rows + block - 1) // block
    fill = (0, 0, 0, count * block - rows)
    last: Tensor = pad(x[..., x.shape[-2] - rows :, :], fill)
    return last.unflatten(-2, (count, block))  # (..., count, block, channels)


def _check_gates(log_gates: Tensor, axes: str) -> None:
    have, kind = tuple(log_gates.shape), log_gates.dtype
    if len(have) <= axes.count(",") or not kind.is_floating_point:
        raise ValueError(
            f"log_gates must be floating and (..., {axes}), got {kind} {have}"
        )
    if log_gates.device.type == "cpu" and not torch.compiler.is_compiling():
        try:
            most = float(log_gates.detach().max())
        except RuntimeError:  # none, or their numbers cannot be read
            return
        if not most <= 0:
            raise ValueError(f"log_gates must be 0 or less, got {most:.3g}")


def _check_keys(q: Tensor, k: Tensor) -> None:
    want, have = tuple(q.shape), tuple(k.shape)
    if len(want) < 2 or len(have) < 2:
        raise ValueError(
            f"q and k must be (..., tokens, dim), got {want} and {have}"
        )
    if have[-1] != want[-1]:
        raise ValueError(f"k must be as wide as q, {want[-1]}, got {have[-1]}")
    leading = list(zip(have[-3::-1], want[-3::-1], strict=False))
    fits = all(n and of % n == 0 for n, of in leading[:1])  # heads
    fits = fits and all(n in (1, of) for n, of in leading[1:])
    if not fits or len(have) > len(want):
        raise ValueError(
            f"k must have the leading axes of q, {want}, or 1, or fewer heads "
            f"that divide its, got {have}"
        )
