# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-24
"""Sinks: a place for weight that no key should have. Two things are so named.

A learned sink is a number s of a head in the denominator of its softmax, as if
there were one more key, with the score s and a value of zeros. It takes weight
and gives nothing, so that the weights of the real keys need not sum to one.

    weight[i, j] = exp(a[i, j]) / (exp(s) + sum over k of exp(a[i, k]))

The same can be had after any attention that also returns the logarithm of the
sum of the exp of its scores: its output times sigmoid(logsumexp[i] - s). With
s = 0 this is softmax-off-by-one, with s = -inf the plain softmax. The sink has
no position and is not cached. But it is at a height: what is added to all
scores of a query, which plain softmax does not notice, counts. So the bias of
ALiBi has to be that of distances, 0 at the query, not BLOOM's of keys alone.

Kept first tokens are real keys: a window over a long text sees the last tokens
and, besides, the first few, where trained models have put such weight.

Source: gpt-oss, gpt_oss/torch/model.py in github.com/openai/gpt-oss, which
drops the sink's column after the softmax, and the gate of Granite-SWA,
models/granite_swa in Hugging Face Transformers 5.23.0; a sink for each query
too in models/inkling2 there. arXiv:2309.17453 for first tokens (section 3.2)
and softmax-off-by-one (3.3); how many keys a query sees there,
streaming_llm/kv_cache.py in github.com/mit-han-lab/streaming-llm.
"""

import torch
from torch import Tensor


def sink_softmax(
    scores: Tensor,  # (..., heads, queries, keys)
    sinks: Tensor,  # by head, or by head and query
) -> Tensor:
    """Weights of keys beside a sink: shape and dtype of scores.

    sinks have the unit of the scores, and are (heads,), or (..., heads,
    queries), where any axis may be 1. -inf among scores hides a key; as a sink
    it takes the sink away. A query that sees no key gets weights of zero. All
    is computed in float32 or better. Scores may be large: the largest, be it a
    score or the sink, is subtracted before exp. In float32 it takes 8
    bytes per score at its peak.

    >>> sink_softmax(torch.zeros(1, 1, 3), torch.tensor([0.0]))
    tensor([[[0.2500, 0.2500, 0.2500]]])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: scores or sinks that are not floating, do not fit or are on two
    devices.
    """
    _check_floating("scores", scores, "(..., heads, queries, keys)", 3)
    column = _per_query(sinks, scores)  # (..., heads, queries, 1)
    exact = torch.promote_types(scores.dtype, torch.float32)
    both = torch.cat((scores.to(exact), column.to(exact)), -1)
    blind = both.detach().amax(-1, keepdim=True).isneginf()
    both[..., -1:].masked_fill_(
        blind, 0
    )  # a sink takes all where no key is seen
    return both.softmax(-1)[..., :-1].to(scores.dtype)


def gate_by_sinks(
    output: Tensor,  # (..., heads, queries, value_dim)
    logsumexp: Tensor,  # (..., heads, queries)
    sinks: Tensor,  # by head, or by head and query
) -> Tensor:
    """The output that attention without sinks would have with them.

    output is that of plain softmax, logsumexp the natural logarithm of the sum
    of exp over the scores of each query, as fused kernels return it:

        output, more = flex_attention(q, k, v, return_aux=AuxRequest(lse=True))
        output = gate_by_sinks(output, more.lse, sinks)

    It has to be that of all keys: where parts of a text are attended apart,
    join them first. sinks are those of sink_softmax. A query that sees no key,
    with a logsumexp of -inf, gets zeros, whatever the kernel made of it. The
    gate is computed in float32 or better; the dtype is that of output.

    >>> output, logsumexp = torch.ones(1, 1, 2), torch.tensor([[3.0]]).log()
    >>> gate_by_sinks(output, logsumexp, torch.tensor([0.0]))
    tensor([[[0.7500, 0.7500]]])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: an argument that is not floating, does not fit or is on another
    device.
    """
    _check_floating("output", output, "(..., heads, queries, value_dim)", 3)
    want, have = tuple(output.shape[:-1]), tuple(logsumexp.shape)
    if have != want or not logsumexp.is_floating_point():
        raise ValueError(
            f"logsumexp must be floating and {want}, as output, "
            f"got {logsumexp.dtype} {have}"
        )
    _check_device("logsumexp", logsumexp, output)
    exact = torch.promote_types(output.dtype, torch.float32)
    blind = logsumexp[..., None].isneginf()  # (..., heads, queries, 1)
    height = logsumexp[..., None].to(exact).masked_fill(blind, 0)
    gate = torch.sigmoid(height - _per_query(sinks, output).to(exact))
    seen = output.masked_fill(blind, 0)  # even where a kernel gave nan
    return (seen.to(exact) * gate).to(output.dtype)


def window_with_first(
    query_positions: Tensor,  # (..., queries)
    key_positions: Tensor,  # (..., keys)
    window: int,
    first: int,
) -> Tensor:
    """Which keys a query may see: (..., queries, keys), bool.

    Those that are not later and less than window tokens back, the query itself
    counted, and the first ones of the text, at positions below first. Positions
    are integers, (tokens,) or with a batch before, from 0 in each document. For
    packed or padded rows take `& visible(...)` of decoding.py too.

    >>> window_with_first(torch.tensor([5]), torch.arange(7), 2, first=1).int()
    tensor([[1, 0, 0, 0, 1, 1, 0]], dtype=torch.int32)

    So StreamingLLM sees, which also counts positions in the cache, not in the
    text. For all queries at once that is: no distance to a first token is more
    than first + window - 1 less its position. Distances to others stay. Token
    by token, with kept and moved of decoding.py, by RoPE as turn:

        places = places_to_keep(cache.positions.shape[-1], first, window - 1)
        cache = moved(kept(cache, places), torch.arange(len(places)), turn)

    and the next token is at len(places).

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: positions that are no tensors of integers or do not fit; a
    window below 1; first below 0.
    """
    _check_integers("positions", query_positions, key_positions)
    queries, keys = tuple(query_positions.shape), tuple(key_positions.shape)
    if not queries or not keys or queries[:-1] != keys[:-1]:
        raise ValueError(
            "positions must be (..., queries) and (..., keys), "
            f"got {queries} and {keys}"
        )
    if window < 1:
        raise ValueError(f"window must be at least 1, got {window}")
    if first < 0:
        raise ValueError(f"first must be at least 0, got {first}")
    i, j = query_positions.long()[..., :, None], key_positions[..., None, :]
    return (j <= i) & ((i - j < window) | (j < first))


def places_to_keep(keys: int, first: int, last: int) -> Tensor:
    """Where the first and the last keys of a cache stand: (kept,), int64.

    All of them if there are no more than first + last. Places count from 0, as
    kept of decoding.py takes them, padding too: it has to go before.

    >>> places_to_keep(9, first=2, last=3)
    tensor([0, 1, 6, 7, 8])

    ValueError: a number below 0.
    """
    if min(keys, first, last) < 0:
        raise ValueError(
            "keys, first and last must be at least 0, "
            f"got {keys}, {first} and {last}"
        )
    first = min(first, keys)
    rest = torch.arange(max(first, keys - last), keys)
    return torch.cat((torch.arange(first), rest))


def _check_floating(name: str, given: Tensor, want: str, axes: int) -> None:
    if given.ndim < axes or not given.is_floating_point():
        have = tuple(given.shape)
        raise ValueError(
            f"{name} must be floating and {want}, got {given.dtype} {have}"
        )


def _check_device(name: str, given: Tensor, other: Tensor) -> None:
    if given.device != other.device:
        raise ValueError(
            f"{name} must be on {other.device}, as all else, got {given.device}"
        )


def _per_query(sinks: Tensor, rows: Tensor) -> Tensor:
    """Sinks for rows of (..., heads, queries, any): (..., heads, queries, 1).

    Axes that are alike for all may be 1, or missing before the heads.
    """
    want, have = tuple(rows.shape[:-1]), tuple(sinks.shape)
    each = len(have) == len(want)
    fits = each or (len(have) == 1 and have[0] == want[-2])
    axes = zip(have, want, strict=False) if each else ()
    if any(n not in (1, of) for n, of in axes):
        fits = False
    if not fits or not sinks.is_floating_point():
        raise ValueError(
            f"sinks must be floating and {want[-2:-1]}, or {want} where any "
            f"axis may be 1, got {sinks.dtype} {have}"
        )
    _check_device("sinks", sinks, rows)
    column = sinks[..., None] if each else sinks[:, None, None]
    return column.expand(*want, 1)


def _check_integers(name: str, *given: Tensor) -> None:
    whole = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    for each in given:
        tensor = isinstance(each, Tensor)
        kind = each.dtype if tensor else type(each).__name__
        if kind not in whole:
            raise ValueError(
                f"{name} must be tensors of uint8 or int8 to int64, got {kind}"
            )
