# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""Attention temperature by position: scale queries by a factor that grows.

The more keys there are, the more thinly softmax spreads its weight. Some models
therefore multiply all scores of a query, or the query itself, by a factor that
grows with the number of tokens up to it. It is called temperature but is the
inverse of one: larger scores make the weights sharper.

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

These are the defaults of the models: the configuration of a checkpoint may have
other values. Llama 4 and Beam use it in layers without RoPE; Inkling-2 in
layers without a window, also for the states of its relative logits; the other
two in all layers. Inkling has the form of Inkling-2 and no default for the
length. Below `length`, the logarithms change nothing; the power changes every
query except one whose n is 0. The attention factor of YaRN, in rope_scaling.py,
is the same for all positions.

The factor makes any model depend on absolute positions, also one with relative
positions: padding must not count as tokens, and each packed document counts
from 0. Keys do not contain the factor, so a cache whose tokens are moved needs
no other change for it.

References:
    SSMax: arXiv:2501.19399.
    Hugging Face Transformers 5.23.0, under models/: Llama4TextAttention of
    llama4, get_llama_4_attn_scale of ministral3 and mistral4,
    Inkling2FullAttention, and compute_attention_scaling of beam.
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
    """Return factors that grow with the logarithm of the token count n.

    Positions count from 0. Negative positions raise an error on the CPU. Where
    the check would make the host wait, or positions have no readable values,
    they count as 0.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        positions: Position of each query in its document, shape
            `(..., queries)`, integers.
        length: Number of tokens from which the factor grows; at least 1.
        strength: Factor of the logarithm.
        first: Token count n at position 0, 0 or 1. With the value of the other
            kind of model, each step is off by one token.
        steps: If True, the factor changes only at multiples of `length` and is
            exactly 1 below it; steps are counted in integers, so they are exact
            at any position. If False, it grows smoothly and is 1 up to
            `length`.

    Returns:
        The factors, shape `(..., queries)`, float32.

    Raises:
        ValueError: If `positions` is not an integer tensor, or contains
            negative ones on the CPU; `length` is less than 1; or `first` is
            neither 0 nor 1.

    Example:
        >>> at = torch.tensor([0, 8190, 8191, 16383])
        >>> log_temperature(at, 8192, 0.1, first=1, steps=True)
        tensor([1.0000, 1.0000, 1.0693, 1.1099])
        >>> log_temperature(at, 8192, 0.1, first=0, steps=True)
        tensor([1.0000, 1.0000, 1.0000, 1.0693])
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
    """Return factors that grow with a power of the token count n.

    The factor grows below `length`, too: at n = length it is 2 ** power.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        positions: Position of each query, as in `log_temperature`.
        length: Unit of the token count; at least 1.
        power: Exponent.
        first: See `log_temperature`.

    Returns:
        The factors, shape `(..., queries)`, float32.

    Raises:
        ValueError: In the cases listed for `log_temperature`.

    Example:
        >>> at = torch.tensor([0, 2047, 65535])
        >>> power_temperature(at, 2048, 0.1, first=1)
        tensor([1.0000, 1.0718, 1.4186])
    """
    n = _counted(positions, length, first)
    # no digit of a small n is lost next to the 1
    return (power * (n.float() / length).log1p()).exp()  # (..., queries)


def ssmax_temperature(
    positions: Tensor,  # (..., queries)
    scale: Tensor,  # (heads)
) -> Tensor:
    """Return the factors of SSMax, scale * ln(n), for each head.

    n is the number of keys that a causal query sees: the query itself and all
    keys before it. The first token has the factor 0 and sees one key. With a
    window, n is at most the window: clamp positions to the window less 1.

    If `positions` are on the CPU and `scale` is not, each call copies them, and
    the host waits for the copy.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        positions: Position of each query, as in `log_temperature`.
        scale: Learned number per head, shape `(heads,)`, floating-point.

    Returns:
        The factors, shape `(..., heads, queries)`, with the dtype and device of
        `scale`.

    Raises:
        ValueError: If `positions` are invalid, as in `log_temperature`, or
            `scale` is not floating-point or not of shape `(heads,)`.

    Example:
        >>> ssmax_temperature(torch.tensor([0, 999]), torch.tensor([0.5, 0.25]))
        tensor([[0.0000, 3.4539],
                [0.0000, 1.7269]])
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
    """Multiply queries by their factors, for use with any attention.

    The product is computed in float32 or wider. If q is rotated by RoPE, the
    factors may be applied before or after; k is unchanged. A bias or another
    term that is added to the scores later is not scaled.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        q: Queries, shape `(..., heads, queries, dim)`, floating-point.
        factors: Factors, floating-point, shape `(queries,)` for all sequences
            and heads, `(..., queries)` for all heads, or
            `(..., heads, queries)`, where any axis before the queries may be 1.

    Returns:
        The scaled queries, with the shape and dtype of `q`.

    Raises:
        ValueError: If `q` or `factors` is not floating-point, or their shapes
            do not match.

    Example:
        >>> scale_queries(torch.ones(1, 2, 2), torch.tensor([1.0, 1.5]))
        tensor([[[1.0000, 1.0000],
                 [1.5000, 1.5000]]])
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
    """Return the number of tokens up to each position, int64."""
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
    except RuntimeError:  # none, or their numbers cannot be read
        return
    if least < 0:
        raise ValueError(
            f"positions must be at least 0, got {least} (0 is the first token; "
            "use 0 for padding as well)"
        )


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
