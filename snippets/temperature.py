# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-24
"""Attention scaled by position: a factor for each query that grows with i.

The more keys there are, the thinner softmax spreads its weight. So some models
multiply all scores of a query, or the query itself, by a factor that grows with
the number of tokens up to it. It is called temperature, of which it is really
the inverse: larger scores make weights sharper.

    n = i + first                          i is counted from 0 in each document
    1 + strength * ln(1 + floor(n / length))     in steps    log_temperature
    1 + strength * ln(max(1, n / length))        smoothly    log_temperature
    (1 + n / length) ** power                                power_temperature
    scale * ln(n)               scale learned    SSMax       ssmax_temperature

    Llama 4                   log_temperature(i, 8192, 0.1, first=1, steps=True)
    Ministral 3              log_temperature(i, 16384, 0.1, first=0, steps=True)
    Mistral 4                 log_temperature(i, 8192, 0.1, first=0, steps=True)
    Inkling-2              log_temperature(i, 128000, 0.1, first=1, steps=False)
    Beam                              power_temperature(i, 2048, 0.1, first=1)

Those are their defaults: a checkpoint's configuration may have others. Llama 4
and Beam have it in layers without RoPE, Inkling-2 in layers without a window,
for the states of its relative logits too, the other two in all layers. Inkling
has the form of Inkling-2 and no default for the length. The logarithms below
length change nothing; the power changes every query but one whose n is 0. The
attention factor of YaRN, in rope_scaling.py, is the same for all positions.

The factor makes any model know places, one with relative positions too: padding
may not count as tokens, packed documents count from 0 each. Keys hold nothing
of it, so that a cache that is moved needs no other turn.

Source: for SSMax arXiv:2501.19399; Hugging Face Transformers 5.23.0, under
models/: Llama4TextAttention of llama4, get_llama_4_attn_scale of ministral3 and
mistral4, Inkling2FullAttention, and compute_attention_scaling of beam.
"""

import torch
from torch import Tensor


def log_temperature(
    positions: Tensor,  # (..., queries)
    length: int,
    strength: float,
    *,
    first: int,
    steps: bool,
) -> Tensor:
    """Factors that grow with the logarithm of n: (..., queries), float32.

    first is what the formula counts the token at position 0 as, 0 or 1: a
    model of the one kind with the other is wrong by a token at each step. In
    steps, the factor changes at multiples of length alone, and is exactly 1
    below it; smoothly, it is 1 up to it. Steps are counted in integers, and so
    are right at any position.

    Positions count from 0. On the CPU those below are refused; where that would
    make the host wait, or they show no numbers, they count as 0.

    >>> at = torch.tensor([0, 8190, 8191, 16383])
    >>> log_temperature(at, 8192, 0.1, first=1, steps=True)
    tensor([1.0000, 1.0000, 1.0693, 1.1099])
    >>> log_temperature(at, 8192, 0.1, first=0, steps=True)
    tensor([1.0000, 1.0000, 1.0000, 1.0693])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: positions that are no tensor of integers, or below 0 on the CPU;
    a length below 1; first neither 0 nor 1.
    """
    n = _counted(positions, length, first)
    if steps:
        grown = (n // length).float().log1p()
    else:
        grown = (n.float() / length).clamp(min=1).log()
    return 1 + strength * grown  # (..., queries)


def power_temperature(
    positions: Tensor,  # (..., queries)
    length: int,
    power: float,
    *,
    first: int,
) -> Tensor:
    """Factors that grow with a power of n: (..., queries), float32.

    length, first and positions are those of log_temperature. Here length is no
    end of anything: at n = length the factor is 2 ** power.

    >>> power_temperature(torch.tensor([0, 2047, 65535]), 2048, 0.1, first=1)
    tensor([1.0000, 1.0718, 1.4186])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: as log_temperature.
    """
    n = _counted(positions, length, first)
    # of a small n nothing gets lost beside the 1
    return (power * (n.float() / length).log1p()).exp()  # (..., queries)


def ssmax_temperature(
    positions: Tensor,  # (..., queries)
    scale: Tensor,  # (heads)
) -> Tensor:
    """scale * ln(n), by head: (..., heads, queries), dtype of scale.

    n is how many keys a causal query sees: the query itself and all before it.
    The first token has the factor 0, and one key to see. With a window n would
    be the window at most: clamp positions to it, less 1.

    >>> ssmax_temperature(torch.tensor([0, 999]), torch.tensor([0.5, 0.25]))
    tensor([[0.0000, 3.4539],
            [0.0000, 1.7269]])

    Positions left on the CPU are copied in each call: the host waits for that.

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: positions as for log_temperature; scale not floating or not
    (heads).
    """
    if scale.ndim != 1 or not scale.is_floating_point():
        raise ValueError(
            "scale must be floating and (heads,), "
            f"got {scale.dtype} {tuple(scale.shape)}"
        )
    exact = torch.promote_types(scale.dtype, torch.float32)
    logs = _counted(positions, 1, 1).to(scale.device, exact).log()
    factors = scale.to(exact)[:, None] * logs[..., None, :]
    return factors.to(scale.dtype)  # (..., heads, queries)


def scale_queries(
    q: Tensor,  # (..., heads, queries, dim)
    factors: Tensor,
) -> Tensor:
    """q times its factors, so that any attention after it has them: as q.

    factors are (queries,) for all, (..., queries), alike for all heads, or
    (..., heads, queries), where any axis before the queries may be 1. The
    product is made in float32 or better. Where q is turned by RoPE, before or
    after makes no difference; k stays as it is. What is added to scores later,
    such as a bias, is not scaled by it.

    >>> scale_queries(torch.ones(1, 2, 2), torch.tensor([1.0, 1.5]))
    tensor([[[1.0000, 1.0000],
             [1.5000, 1.5000]]])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: q or factors that are not floating, or do not fit.
    """
    if q.ndim < 3 or not q.is_floating_point():
        raise ValueError(
            "q must be floating and (..., heads, queries, dim), "
            f"got {q.dtype} {tuple(q.shape)}"
        )
    *batch, heads, queries = q.shape[:-1]
    have = tuple(factors.shape)
    each = len(have) == len(batch) + 2
    want = (*batch, heads, queries) if each else (*batch, queries)
    fits = len(have) in (1, len(want)) and have[-1:] == (queries,)
    axes = zip(have[-2::-1], want[-2::-1], strict=False)
    if any(n not in (1, of) for n, of in axes):
        fits = False
    if not fits or not factors.is_floating_point():
        raise ValueError(
            f"factors must be floating and {(queries,)}, {(*batch, queries)} "
            f"or {(*batch, heads, queries)}, got {factors.dtype} {have}"
        )
    exact = torch.promote_types(q.dtype, torch.float32)
    factors = factors.to(q.device, exact)[..., None]
    factors = factors if each else factors[..., None, :, :]
    return (q.to(exact) * factors).to(q.dtype)


def _counted(positions: Tensor, length: int, first: int) -> Tensor:
    """How many tokens there are up to each position: (..., queries), int64."""
    _check_integers("positions", positions)
    if not positions.ndim:
        raise ValueError("positions must be (..., queries), got ()")
    if length < 1:
        raise ValueError(f"length must be at least 1, got {length}")
    if first not in (0, 1):
        raise ValueError(f"first must be 0 or 1, got {first}")
    positions = positions.long()
    if positions.device.type == "cpu" and not torch.compiler.is_compiling():
        _check_from_zero(positions)
    return positions.clamp(min=0) + first


def _check_from_zero(positions: Tensor) -> None:
    try:
        least = int(positions.min())
    except RuntimeError:  # there are none, or they show no numbers
        return
    if least < 0:
        raise ValueError(
            f"positions must be at least 0, the first token's, got {least}: "
            "of padding take 0"
        )


def _check_integers(name: str, *given: Tensor) -> None:
    whole = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    for each in given:
        tensor = isinstance(each, Tensor)
        kind = each.dtype if tensor else type(each).__name__
        if kind not in whole:
            raise ValueError(
                f"{name} must be tensors of uint8 or int8 to int64, got {kind}"
            )
