# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-23
"""Forgetting: each token says how much of what came before it is to be kept.

A head gives each token t a gate f[t] between 0 and 1. A key fades by the gates
of all tokens after it, up to the query. Logarithms add up what gates multiply:

    bias[i, j]  = log f[j + 1] + ... + log f[i]                 (FoX)
    score[i, j] = sum over n of q[i, n] k[j, n] exp(sum[i, j, n]) / sqrt(dim)
    sum[i, j]   = log f[j + 1] + ... + log f[i], by channels    (Wall)

FoX adds its sum to the scaled score, so that a forgotten key gets no weight.
Wall has a gate for each channel n and multiplies, so that a forgotten key gets
the score 0, and with it some weight. Gates that are all alike make ALiBi of
FoX, and of Wall the decay of xPos. The gate of the first token does nothing.

Only tokens from the key to the query count: padding before a text and other
texts of a row change nothing, if their keys are hidden. Padding between tokens
of one text gets log gates of 0. Where tokens are dropped from a cache, add
their log gates to that of the next one that is kept.

Not here: what else a block of FoX Pro has; skipping keys that are forgotten;
gates for both directions; the cap on exponents in Wall's kernel. The gate for
each head that Wall may have too is forgetting_bias, added.

Source: arXiv:2503.02130, section 3; github.com/zhixuan-lin/
forgetting-transformer at 246d5e3, modeling_forgetting_transformer.py. Wall:
Tilde Research (2026), blog.tilderesearch.com/blog/wall-attn, and
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
    """What FoX adds to the scores: (..., queries, keys), -inf for later keys.

    log_gates are of all tokens so far, mostly (batch, heads, keys). The queries
    are the last tokens, all of them if no number is given: cache log gates as
    you cache keys. Sums go back from the query, in float32 or better, so that
    they are exact to rounding in texts of any length, and a gate may be 0. At
    its peak that takes 8 bytes per head, query and key, and one more for each
    query and key.

    A fused kernel takes sums = log_gates.cumsum(-1): as score_mod of
    flex_attention, lambda score, b, h, i, j: score + sums[b, h, i] - sums[b, h,
    j], with a causal block_mask. Sums of float32 lose digits as they grow: past
    8,192 the next number is a thousandth away.

    >>> forgetting_bias(torch.tensor([0.5, 0.5, 0.25]).log())
    tensor([[ 0.0000,    -inf,    -inf],
            [-0.6931,  0.0000,    -inf],
            [-2.0794, -1.3863,  0.0000]])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: log gates not floating, without an axis or, on the CPU, above 0
    or no numbers; queries below 0 or more than keys; dtype not floating.
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
    """Wall's scaled scores: (..., queries, keys), -inf for later keys.

    The queries are the last tokens. log_gates have the leading axes of q, of
    all tokens so far. k may have fewer heads than q: each serves heads /
    key_heads of them, in order.

    exp(P[i]) exp(-P[j]) of sums P over a whole text would overflow. Here the
    last token before a block of queries parts the sum: what a key has faded by
    then, and what fades it from there, are both at most 1. In the block itself
    each query and key get their own. Whatever the block, scores are the same;
    its peak is some 8 * heads * dim * queries * (block + keys / block) bytes.

    To decode without old gates, keep faded keys: multiply those of a cache by
    exp(log gate) of each token that comes. q . k / sqrt(dim) is then its score.

    >>> q, k = torch.ones(3, 1), torch.tensor([[8.0], [4.0], [2.0]])
    >>> wall_scores(q, k, torch.full((3, 1), 0.5).log())
    tensor([[8., -inf, -inf],
            [4., 4., -inf],
            [2., 2., 2.]])

    Fit for compile, export, vmap, mps; no sync.

    ValueError: shapes that do not fit; more queries than keys; log gates not
    floating or, on the CPU, above 0 or no numbers; a block below 1.
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
    after = after[:, None]  # (blocks, 1, keys): the key's place in the block
    near = near.gather(-1, after.clamp(0, block - 1).expand(far.shape))
    scores = far.where(after < 0, near).masked_fill(after > place, -math.inf)
    return scores.flatten(-3, -2)[..., :queries, :].to(q.dtype)


class ForgetGates(nn.Module):
    """The logarithms of the gates of a layer: x to (..., heads, tokens).

    x is what the queries are projected from, (..., tokens, dim). With channels
    they are (..., heads, tokens, channels), as Wall wants them. Gates are
    sigmoids, their logarithms float32 or better. bias is what the bias starts
    with: where x is zero, 0, as in the code of FoX, is a gate of a half, and 5,
    as in x-transformers, one of 0.993.

    Fit for compile, export, vmap, gradients per sample, mps; no sync.

    ValueError: a size below 1; x of another width.
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
        nn.init.normal_(self.weight, std=0.02)
        nn.init.constant_(self.bias, self.begin)

    def forward(self, x: Tensor) -> Tensor:
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
    """From behind each key to each row: (..., rows, keys, channels).

    log_gates are (..., keys, channels), rows (rows, 1). 0 for keys that are not
    before the row. What is summed has one sign, and so keeps its digits.
    """
    keys = log_gates.shape[-2]
    place = torch.arange(keys, device=rows.device).flip(0)  # the last key first
    next_gates = log_gates.flip(-2).roll(1, -2)  # (..., keys, channels)
    late = (place >= rows)[..., None]  # (rows, keys, 1)
    sums = next_gates[..., None, :, :].masked_fill(late, 0).cumsum(-2)
    return sums.flip(-2)  # (..., rows, keys, channels)


def _blocks(x: Tensor, rows: int, block: int) -> Tensor:
    """The last rows of x, and zeros to fill: (..., blocks, block, channels)."""
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
        except RuntimeError:  # there are none, or they show no numbers
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
