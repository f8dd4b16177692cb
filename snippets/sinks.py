# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""Attention sinks: sinks in the softmax, and a window with first tokens.

The two methods here have the same name. A learned sink is a number s per head
in the denominator of its softmax, as if there were one more key with the score
s and a value of zeros. It takes weight and adds nothing to the output, so the
weights of the real keys need not sum to one.

    weight[i, j] = exp(a[i, j]) / (exp(s) + sum over k of exp(a[i, k]))

The same result can be computed after any attention that also returns the
logarithm of the sum of the exp of its scores: multiply its output by
sigmoid(logsumexp[i] - s). With s = 0 this is softmax-off-by-one, with s = -inf
the plain softmax. The sink has no position and is not cached.

The score of a sink is absolute: adding a constant to all scores of a query
leaves plain softmax unchanged, but changes softmax with a sink. So the bias of
ALiBi has to depend on distances, with 0 at the query; BLOOM's bias, which
depends on the keys alone, does not work.

In the second method, the first tokens are real keys: in a long text, a query
sees the tokens of a window and also the first few tokens, to which trained
models give such weight.

References:
    gpt-oss: gpt_oss/torch/model.py in github.com/openai/gpt-oss, which drops
    the column of the sink after the softmax.
    The gate of Granite-SWA: models/granite_swa in Hugging Face Transformers
    5.23.0; a sink for each query as well: models/inkling2 there.
    First tokens: arXiv:2309.17453, section 3.2; softmax-off-by-one: section
    3.3.
    How many keys a query sees there: streaming_llm/kv_cache.py in
    github.com/mit-han-lab/streaming-llm.
"""

import torch
from torch import Tensor


def sink_softmax(
    scores: Tensor,  # (..., heads, queries, keys)
    sinks: Tensor,  # by head, or by head and query
) -> Tensor:
    """Return the attention weights of keys next to a sink.

    The computation is in float32 or wider. Scores may be large: the maximum,
    whether of a score or of the sink, is subtracted before exp. In float32 it
    takes 8 bytes per score at its peak.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        scores: Scores, shape `(..., heads, queries, keys)`, floating-point;
            -inf hides a key.
        sinks: Sinks in the unit of the scores, shape `(heads,)`, or
            `(..., heads, queries)`, where any axis may be 1; floating-point.
            -inf removes the sink.

    Returns:
        The weights, with the shape and dtype of `scores`. The weights of a
        query that sees no key are zero.

    Raises:
        ValueError: If `scores` or `sinks` is not floating-point, their shapes
            do not match, or they are on different devices.

    Example:
        >>> sink_softmax(torch.zeros(1, 1, 3), torch.tensor([0.0]))
        tensor([[[0.2500, 0.2500, 0.2500]]])
    """
    _check_floating("scores", scores, "(..., heads, queries, keys)", 3)
    column = _per_query(sinks, scores)  # (..., heads, queries, 1)
    exact = torch.promote_types(scores.dtype, torch.float32)
    both = torch.cat((scores.to(exact), column.to(exact)), -1)
    blind = both.detach().amax(-1, keepdim=True).isneginf()
    both[..., -1:].masked_fill_(
        blind, 0
    )  # without a visible key, the sink has all weight
    return both.softmax(-1)[..., :-1].to(scores.dtype)


def apply_sink_gate(
    output: Tensor,  # (..., heads, queries, value_dim)
    logsumexp: Tensor,  # (..., heads, queries)
    sinks: Tensor,  # by head, or by head and query
) -> Tensor:
    """Apply sinks to the output of attention without sinks.

    Use the output of plain softmax and the logsumexp as a fused kernel returns
    it:

        output, more = flex_attention(q, k, v, return_aux=AuxRequest(lse=True))
        output = apply_sink_gate(output, more.lse, sinks)

    The logsumexp must include all keys: if parts of a text are processed
    separately, combine their results first. The gate is computed in float32 or
    wider.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        output: Output of attention with plain softmax, shape
            `(..., heads, queries, value_dim)`, floating-point.
        logsumexp: Natural logarithm of the sum of exp over the scores of each
            query, shape `(..., heads, queries)`, floating-point.
        sinks: Sinks, as in `sink_softmax`.

    Returns:
        The output with sinks, in the shape and dtype of `output`. A query that
        sees no key, with a logsumexp of -inf, has zeros, whatever the kernel
        returned.

    Raises:
        ValueError: If an argument is not floating-point, or the shapes or
            devices of the arguments do not match.

    Example:
        >>> output, logsumexp = torch.ones(1, 1, 2), torch.tensor([[3.0]]).log()
        >>> apply_sink_gate(output, logsumexp, torch.tensor([0.0]))
        tensor([[[0.7500, 0.7500]]])
    """
    _check_floating("output", output, "(..., heads, queries, value_dim)", 3)
    want, have = tuple(output.shape[:-1]), tuple(logsumexp.shape)
    if have != want or not logsumexp.is_floating_point():
        raise ValueError(
            f"logsumexp must be floating and {want}, to match output, "
            f"got {logsumexp.dtype} {have}"
        )
    _check_device("logsumexp", logsumexp, output)
    exact = torch.promote_types(output.dtype, torch.float32)
    blind = logsumexp[..., None].isneginf()  # (..., heads, queries, 1)
    height = logsumexp[..., None].to(exact).masked_fill(blind, 0)
    gate = torch.sigmoid(height - _per_query(sinks, output).to(exact))
    seen = output.masked_fill(blind, 0)  # even if a kernel returned nan
    return (seen.to(exact) * gate).to(output.dtype)


def window_mask_with_first_tokens(
    query_positions: Tensor,  # (..., queries)
    key_positions: Tensor,  # (..., keys)
    window: int,
    num_first: int,
) -> Tensor:
    """Return the mask of a causal window plus the first tokens.

    A query sees the keys that are not later and less than `window` tokens back,
    counting the query itself, and the keys at positions below `num_first`. For
    packed or padded sequences, combine the mask with `& attention_mask(...)` of
    decoding.py.

    StreamingLLM sees the same keys, but counts positions in the cache, not in
    the text. For all queries at once, this means: no distance to a first token
    is more than num_first + window - 1 less its position. Distances to other
    keys are unchanged. Token by token, with keep_slots and move_positions of
    decoding.py and a rotation by RoPE as `rotate`:

        keys = cache.positions.shape[-1]
        slots = cache_slots_to_keep(keys, num_first, window - 1)
        new = torch.arange(len(slots))
        cache = move_positions(keep_slots(cache, slots), new, rotate)

    and the next token is at position len(slots).

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        query_positions: Positions, integers, shape `(queries,)` or with a batch
            axis before it, from 0 in each document.
        key_positions: Positions of the keys, `(keys,)` or with the same batch
            axis.
        window: Number of tokens in the window, including the query; at least 1.
        num_first: Number of first positions that every later query sees; at
            least 0.

    Returns:
        The mask, shape `(..., queries, keys)`, bool; True where the key is
        visible.

    Raises:
        ValueError: If positions are not integer tensors or their shapes do not
            match, `window` is less than 1, or `num_first` is negative.

    Example:
        >>> i, j = torch.tensor([5]), torch.arange(7)
        >>> window_mask_with_first_tokens(i, j, window=2, num_first=1).int()
        tensor([[1, 0, 0, 0, 1, 1, 0]], dtype=torch.int32)
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
    if num_first < 0:
        raise ValueError(f"num_first must be at least 0, got {num_first}")
    i, j = query_positions.long()[..., :, None], key_positions[..., None, :]
    return (j <= i) & ((i - j < window) | (j < num_first))


def cache_slots_to_keep(keys: int, num_first: int, num_last: int) -> Tensor:
    """Return the slots of the first and the last keys of a cache.

    Slots are counted from 0, as keep_slots of decoding.py takes them. Padding
    counts as well: remove it before.

    Args:
        keys: Number of keys in the cache.
        num_first: Number of first keys to keep.
        num_last: Number of last keys to keep.

    Returns:
        The slot indices, shape `(kept,)`, int64: all slots if there are no more
        than num_first + num_last.

    Raises:
        ValueError: If a number is negative.

    Example:
        >>> cache_slots_to_keep(9, num_first=2, num_last=3)
        tensor([0, 1, 6, 7, 8])
    """
    if min(keys, num_first, num_last) < 0:
        raise ValueError(
            "keys, num_first and num_last must be at least 0, "
            f"got {keys}, {num_first} and {num_last}"
        )
    num_first = min(num_first, keys)
    rest = torch.arange(max(num_first, keys - num_last), keys)
    return torch.cat((torch.arange(num_first), rest))


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
    """Return sinks to fit rows of (..., heads, queries, any), last axis 1.

    Axes that all rows share may be 1, or missing before the heads.
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
                f"{name} must be integer tensors (uint8, int8, int16, int32 or "
                f"int64), got {kind}"
            )


# Former names, kept until the next release.
gate_by_sinks = apply_sink_gate
window_with_first = window_mask_with_first_tokens
places_to_keep = cache_slots_to_keep
