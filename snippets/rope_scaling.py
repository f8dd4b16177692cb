# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""Context extension for RoPE: PI, NTK, YaRN, Llama 3.1, LongRoPE and p-RoPE.

Each method takes the frequencies w of a RoPE model, shape `(pairs,)` in radians
per position, and returns the frequencies to use instead. `factor` is usually
the ratio of the extended context length to `original_length`, the context
length in training, in tokens; Llama 3.1 extends 8,192 tokens to 131,072 with a
factor of 8.

YaRN and LongRoPE also have an attention factor. Multiply both tables, cosines
and sines, by it, or the rotated channels of q and k; or, if all channels are
rotated, multiply the scores by its square.

NTK-by-parts, YaRN and Llama 3.1 depend on the number of full rotations that a
pair completes within the original length:

    r[p] = original_length * w[p] / (2 pi)

A method that takes the current length changes the angles of earlier keys when
the length changes: cache keys before they are rotated, or use one fixed length.

p-RoPE, called "proportional" in configuration files, has no factor of its own:
a model is trained with it. If a file specifies a factor, all frequencies are
divided by it in addition.

References:
    Position interpolation: arXiv:2306.15595, section 2.3 (equation 4).
    NTK and YaRN: arXiv:2309.00071v2, sections 3.1 to 3.4 (equations 16 to 22);
    github.com/jquesnelle/yarn at 995db5b, scaled_rope.
    LongRoPE: arXiv:2402.13753, section 3.1 (equation 3);
    github.com/microsoft/LongRoPE at c9e56aa, rope/longrope.py.
    Llama 3.1: github.com/meta-llama/llama-models at a9c89c4,
    models/llama3/model.py.
    p-RoPE: arXiv:2410.06205, section 6; github.com/huggingface/transformers at
    v5.23.0, src/transformers/modeling_rope_utils.py.
"""

import math

import torch
from torch import Tensor


def position_interpolation(
    frequencies: Tensor,  # (pairs)
    factor: float,
) -> Tensor:
    """Divide all frequencies by a factor (position interpolation, PI).

    The result is the same as if the positions were divided by `factor`.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        frequencies: Frequencies of the model, shape `(pairs,)`, float32 or
            float64.
        factor: Factor by which to extend the context; at least 1.

    Returns:
        Scaled frequencies, with the shape and dtype of `frequencies`.

    Raises:
        ValueError: If `frequencies` do not have the shape `(pairs,)` or are
            neither float32 nor float64, or `factor` is less than 1 or not
            finite.

    Example:
        >>> position_interpolation(torch.tensor([1.0, 0.01]), factor=4)
        tensor([0.2500, 0.0025])
    """
    _check(frequencies, factor=factor)
    return frequencies / factor  # (pairs)


def ntk_aware(
    frequencies: Tensor,  # (pairs)
    factor: float,
) -> Tensor:
    """Divide the lowest frequency by a factor and keep the highest (NTK-aware).

    The frequencies between are divided by powers of `factor`. The result is the
    same as if the RoPE base were multiplied by factor ^ (dim / (dim - 2)).

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        frequencies: Frequencies of the model, shape `(pairs,)` with at least 2
            pairs, float32 or float64.
        factor: Factor by which to extend the context; at least 1.

    Returns:
        Scaled frequencies, with the shape and dtype of `frequencies`.

    Raises:
        ValueError: In the cases listed for `position_interpolation`, or if
            there are fewer than 2 pairs.

    Example:
        >>> ntk_aware(torch.tensor([1.0, 0.1, 0.01]), factor=4)
        tensor([1.0000, 0.0500, 0.0025])
    """
    _check(frequencies, pairs=2, factor=factor)
    pairs = frequencies.shape[0]
    p = torch.arange(pairs, device=frequencies.device)  # (pairs)
    share = p.to(frequencies.dtype) / (pairs - 1)  # (pairs)
    return frequencies * factor**-share  # (pairs)


def dynamic_ntk(
    frequencies: Tensor,  # (pairs)
    factor: float,
    original_length: int,
    length: int,
) -> Tensor:
    """Apply `ntk_aware` with a factor that grows with the current length.

    Up to `original_length` nothing changes. Beyond it, the lowest frequency is
    divided by factor * length / original_length - (factor - 1), which is 3 for
    factor 2 and twice the original length. The released code does this, like
    the post that proposed the method and like transformers. YaRN's paper has no
    factor here and divides by length / original_length; factor 1 gives that.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        frequencies: Frequencies of the model, shape `(pairs,)` with at least 2
            pairs, float32 or float64.
        factor: How fast the scaling grows with the length; at least 1.
        original_length: Context length in training, in tokens; at least 1.
        length: Current context length, in tokens; at least 1.

    Returns:
        Scaled frequencies, with the shape and dtype of `frequencies`.

    Raises:
        ValueError: In the cases listed for `ntk_aware`, or if `original_length`
            or `length` is less than 1.

    Example:
        >>> dynamic_ntk(torch.tensor([1.0, 0.01]), 2, 4096, length=8192)
        tensor([1.0000, 0.0033])
    """
    _check(frequencies, 2, factor, original_length=original_length)
    _check(frequencies, length=length)
    beyond = max(0, length - original_length) / original_length
    return ntk_aware(frequencies, 1 + factor * beyond)  # (pairs)


def ntk_by_parts(
    frequencies: Tensor,  # (pairs)
    factor: float,
    original_length: int,
    alpha: float = 1.0,
    beta: float = 32.0,
) -> Tensor:
    """Divide only the frequencies of pairs that rotate rarely (NTK-by-parts).

    A pair that completes at least `beta` full rotations within the original
    length keeps its frequency; a pair that completes at most `alpha` has it
    divided by `factor`. In between, the weight of the unchanged frequency is
    linear in the number of rotations. According to the YaRN paper, these are
    the frequencies of YaRN; the released code uses those of `yarn`, below.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        frequencies: Frequencies of the model, shape `(pairs,)`, float32 or
            float64.
        factor: Factor by which to extend the context; at least 1.
        original_length: Context length in training, in tokens; at least 1.
        alpha: Number of rotations up to which a frequency is divided by
            `factor`; at least 0.
        beta: Number of rotations from which a frequency is unchanged; at least
            `alpha`.

    Returns:
        Scaled frequencies, with the shape and dtype of `frequencies`.

    Raises:
        ValueError: In the cases listed for `position_interpolation`, or if
            `original_length` is less than 1, or not 0 <= `alpha` <= `beta`,
            both finite.

    Example:
        >>> ntk_by_parts(torch.tensor([1.0, 0.01, 0.0001]), 4, 4096)
        tensor([1.0000e+00, 3.8352e-03, 2.5000e-05])
    """
    _check(frequencies, factor=factor, original_length=original_length)
    _check_ramp(alpha=alpha, beta=beta)
    turns = original_length * frequencies / (2 * math.pi)  # (pairs)
    kept = (turns - alpha) / max(beta - alpha, 1e-9)  # (pairs)
    return _blend(frequencies, factor, kept.clamp(0, 1))  # (pairs)


def llama3(
    frequencies: Tensor,  # (pairs)
    factor: float = 8.0,
    original_length: int = 8192,
    low: float = 1.0,
    high: float = 4.0,
) -> Tensor:
    """Return the scaled frequencies of Llama 3.1.

    The method is `ntk_by_parts` with a ramp from `low` to `high` rotations, and
    no attention factor. Llama 4 Scout uses factor 16 and `high` 1, which makes
    the ramp a step.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        frequencies: Frequencies of the model, shape `(pairs,)`, float32 or
            float64.
        factor: Divisor of the low frequencies; at least 1.
        original_length: Context length in training, in tokens; at least 1.
        low: Number of rotations up to which a frequency is divided by `factor`;
            at least 0.
        high: Number of rotations from which a frequency is unchanged; at least
            `low`.

    Returns:
        Scaled frequencies, with the shape and dtype of `frequencies`.

    Raises:
        ValueError: In the cases listed for `ntk_by_parts`, with `low` and
            `high` in place of `alpha` and `beta`.

    Example:
        >>> llama3(torch.tensor([1.0, 0.002, 0.0001]))
        tensor([1.0000e+00, 1.1878e-03, 1.2500e-05])
    """
    _check_ramp(low=low, high=high)
    return ntk_by_parts(frequencies, factor, original_length, low, high)


def yarn(
    frequencies: Tensor,  # (pairs)
    factor: float,
    original_length: int,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    truncate: bool = True,
) -> Tensor:
    """Return the frequencies of YaRN as released, and as in transformers.

    As in `ntk_by_parts`, the ramp lies between `beta_slow` and `beta_fast`
    rotations. But on the ramp the weight of the unchanged frequency is linear
    in the index p of the pair, not in the number of rotations; in the middle of
    the ramp this weight is larger than in `ntk_by_parts`.

    `frequencies` must be those of unscaled RoPE: positive, and each the same
    multiple of the frequency before. The number of rotations of every pair is
    derived from the first and the last frequency. This condition is not
    checked.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        frequencies: Frequencies of the model, shape `(pairs,)` with at least 2
            pairs, float32 or float64.
        factor: Factor by which to extend the context; at least 1.
        original_length: Context length in training, in tokens; at least 1.
        beta_fast: Number of rotations at the upper end of the ramp, from which
            a frequency is unchanged.
        beta_slow: Number of rotations at the lower end of the ramp, up to which
            a frequency is divided by `factor`; above 0 and at most `beta_fast`.
        truncate: Whether to round the ends of the ramp outwards to whole pairs.

    Returns:
        Scaled frequencies, with the shape and dtype of `frequencies`.

    Raises:
        ValueError: In the cases listed for `ntk_aware`, or if `original_length`
            is less than 1, or not 0 < `beta_slow` <= `beta_fast`, both finite.

    Example:
        >>> yarn(torch.tensor([1.0, 0.1, 0.01]), factor=4, original_length=4096)
        tensor([1.0000, 0.1000, 0.0062])
    """
    _check(frequencies, 2, factor, original_length=original_length)
    if not 0 < beta_slow <= beta_fast < math.inf:
        raise ValueError(
            "beta_slow and beta_fast must satisfy 0 < beta_slow <= beta_fast, "
            f"got {beta_slow} and {beta_fast}"
        )
    pairs = frequencies.shape[0]
    p = torch.arange(pairs, device=frequencies.device)  # (pairs)
    logs = (original_length * frequencies / (2 * math.pi)).log()  # (pairs)
    step = (logs[0] - logs[-1]) / (pairs - 1)
    low = (logs[0] - math.log(beta_fast)) / step
    high = (logs[0] - math.log(beta_slow)) / step
    if truncate:
        low, high = low.floor(), high.ceil()
    low, high = low.clamp(min=0), high.clamp(max=2 * pairs - 1)
    slowed = (p - low) / (high - low).clamp(min=0.001)  # (pairs)
    return _blend(frequencies, factor, 1 - slowed.clamp(0, 1))  # (pairs)


def yarn_attention_factor(factor: float) -> float:
    """Return the attention factor of YaRN, by which to multiply q and k.

    It is the square root of 1 / temperature.

    Args:
        factor: Factor by which the context is extended; at least 1.

    Returns:
        The attention factor, 0.1 ln(factor) + 1.

    Raises:
        ValueError: If `factor` is less than 1 or not finite.

    Example:
        >>> yarn_attention_factor(16)
        1.2772588722239782
    """
    _check_factor(factor)
    return 0.1 * math.log(factor) + 1


def longrope(
    frequencies: Tensor,  # (pairs)
    short_factors: Tensor,  # (pairs)
    long_factors: Tensor,  # (pairs)
    original_length: int,
    length: int,
) -> Tensor:
    """Divide each frequency by its own factor, found by a search (LongRoPE).

    The paper leaves the first few tokens unscaled. transformers does not, and
    neither does this function. Whether the factors are positive is not checked.
    A compiled or exported graph is valid for lengths on one side of
    `original_length` only.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        frequencies: Frequencies of the model, shape `(pairs,)`, float32 or
            float64.
        short_factors: Divisors for sequences of up to `original_length` tokens,
            shape `(pairs,)`.
        long_factors: Divisors for sequences of more than `original_length`
            tokens, shape `(pairs,)`.
        original_length: Context length in training, in tokens; at least 1.
        length: Current context length, in tokens; at least 1.

    Returns:
        Scaled frequencies, shape `(pairs,)`.

    Raises:
        ValueError: In the cases listed for `position_interpolation`, or if the
            factors are not tensors of the shape of `frequencies`, or
            `original_length` or `length` is less than 1.

    Example:
        >>> w, short, long = torch.tensor([[1.0, 0.1], [1.0, 1.0], [1.0, 40.0]])
        >>> longrope(w, short, long, original_length=4096, length=4097)
        tensor([1.0000, 0.0025])
    """
    _check(frequencies, original_length=original_length, length=length)
    want = tuple(frequencies.shape)
    for factors in (short_factors, long_factors):
        tensor = isinstance(factors, Tensor)
        have = tuple(factors.shape) if tensor else type(factors).__name__
        if have != want:
            raise ValueError(
                "short_factors and long_factors must be tensors of shape "
                f"{want}, got {have}"
            )
    long = length > original_length
    return frequencies / (long_factors if long else short_factors)  # (pairs)


def longrope_attention_factor(factor: float, original_length: int) -> float:
    """Return the attention factor of LongRoPE, by which to multiply q and k.

    It is the same at every length.

    Args:
        factor: Factor by which the context is extended; at least 1.
        original_length: Context length in training, in tokens; at least 2.

    Returns:
        The attention factor, sqrt(1 + ln(factor) / ln(original_length)).

    Raises:
        ValueError: If `factor` is less than 1 or not finite, or
            `original_length` is less than 2.

    Example:
        >>> longrope_attention_factor(32, 4096)
        1.1902380714238083
    """
    _check_factor(factor)
    if original_length < 2:
        raise ValueError(
            f"original_length must be at least 2, got {original_length}"
        )
    return math.sqrt(1 + math.log(factor) / math.log(original_length))


def proportional(
    frequencies: Tensor,  # (pairs)
    share: float,
) -> Tensor:
    """Keep the highest frequencies and set all others to 0 (p-RoPE).

    A pair of frequency 0 is not rotated: its contribution to a score is the
    same at all positions. Gemma 4 uses a share of 0.25 and LFM3 of 0.5, in
    their full-attention layers.

    This is not partial rotary, which gives the same number of pairs the whole
    frequency range of a narrower head, down to its lowest. Here the frequencies
    remain those of the whole head. Pass all of them to `apply_rope`, including
    the zeros, because in layout "half" the two channels of a pair are half a
    head apart.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        frequencies: Frequencies of the model, shape `(pairs,)`, float32 or
            float64.
        share: Fraction of the pairs that keep their frequency, from 0 to 1; the
            number of pairs is rounded down. 1 is RoPE, 0 is no positional
            encoding.

    Returns:
        Frequencies, with the shape and dtype of `frequencies`.

    Raises:
        ValueError: If `frequencies` are invalid, as described for
            `position_interpolation`, or `share` is not from 0 to 1.

    Example:
        >>> proportional(torch.tensor([1.0, 0.1, 0.01, 0.001]), share=0.5)
        tensor([1.0000, 0.1000, 0.0000, 0.0000])
    """
    _check(frequencies)
    if not 0 <= share <= 1:
        raise ValueError(f"share must be from 0 to 1, got {share}")
    pairs = frequencies.shape[0]
    p = torch.arange(pairs, device=frequencies.device)  # (pairs)
    return frequencies * (p < int(share * pairs))  # (pairs)


def _blend(frequencies: Tensor, factor: float, kept: Tensor) -> Tensor:
    return kept * frequencies + (1 - kept) * frequencies / factor


def _check(
    frequencies: Tensor, pairs: int = 1, factor: float = 1.0, **lengths: int
) -> None:
    if frequencies.dtype not in (torch.float32, torch.float64):
        raise ValueError(
            f"frequencies must be float32 or float64, got {frequencies.dtype}"
        )
    shape = tuple(frequencies.shape)
    if len(shape) != 1 or shape[0] < pairs:
        raise ValueError(
            f"frequencies must be (pairs,), {pairs} or more, got {shape}"
        )
    _check_factor(factor)
    for name, value in lengths.items():
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")


def _check_ramp(**ends: float) -> None:
    (low, least), (high, most) = ends.items()
    if not 0 <= least <= most < math.inf:
        raise ValueError(
            f"{low} and {high} must satisfy 0 <= {low} <= {high}, "
            f"got {least} and {most}"
        )


def _check_factor(factor: float) -> None:
    if not 1 <= factor < math.inf:
        raise ValueError(f"factor must be at least 1, got {factor}")
