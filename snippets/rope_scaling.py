# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-24
"""Longer contexts for RoPE: other frequencies for a model trained on less.

A method takes the frequencies w of a RoPE, (pairs,), in radians per position,
and returns those to use in their place. factor is mostly how many times longer
the context is to be than original_length, the tokens of the training; Llama 3.1
goes from 8,192 tokens to 131,072 by a factor of 8. YaRN and LongRoPE also have
an attention factor: multiply both tables by it, cosines and sines, or what RoPE
turned of q and k, or, if that is all of them, the scores by its square.
NTK-by-parts, YaRN and Llama 3.1 look at how many times a pair turns in the
original length:

    r[p] = original_length * w[p] / (2 pi)

A method that takes the current length gives a key other angles when the length
changes: cache keys before they are turned, or keep to one length.

p-RoPE, which config files call proportional, has no factor of its own: a model
is trained with it. If a file names one, it divides all frequencies besides.

Source: arXiv:2306.15595, section 2.3 (equation 4). arXiv:2309.00071v2, sections
3.1 to 3.4 (equations 16 to 22), and github.com/jquesnelle/yarn at 995db5b,
scaled_rope. arXiv:2402.13753, section 3.1 (equation 3), and
github.com/microsoft/LongRoPE at c9e56aa, rope/longrope.py.
github.com/meta-llama/llama-models at a9c89c4, models/llama3/model.py.
arXiv:2410.06205, section 6, and github.com/huggingface/transformers at v5.23.0,
src/transformers/modeling_rope_utils.py.
"""

import math

import torch
from torch import Tensor


def position_interpolation(
    frequencies: Tensor,  # (pairs)
    factor: float,
) -> Tensor:
    """Every pair slower by factor, as if positions were divided: (pairs,).

    >>> position_interpolation(torch.tensor([1.0, 0.01]), factor=4)
    tensor([0.2500, 0.0025])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: frequencies not (pairs,) of float32 or float64; factor below 1.
    """
    _check(frequencies, factor=factor)
    return frequencies / factor  # (pairs)


def ntk_aware(
    frequencies: Tensor,  # (pairs)
    factor: float,
) -> Tensor:
    """The slowest pair slower by factor, the fastest unchanged: (pairs,).

    It is what the base times factor ^ (dim / (dim - 2)) gives.

    >>> ntk_aware(torch.tensor([1.0, 0.1, 0.01]), factor=4)
    tensor([1.0000, 0.0500, 0.0025])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: as position_interpolation; fewer than 2 pairs.
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
    """ntk_aware by a factor that grows with the current length: (pairs,).

    Up to original_length nothing changes. Beyond it the released code, like
    the post that proposed it and transformers, slows the slowest pair by
    factor * length / original_length - (factor - 1): by 3 for factor 2 and
    twice the length. YaRN's paper has no factor here, only
    length / original_length; factor 1 gives that.

    >>> dynamic_ntk(torch.tensor([1.0, 0.01]), 2, 4096, length=8192)
    tensor([1.0000, 0.0033])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: as ntk_aware; original_length or length below 1.
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
    """Pairs that turn often unchanged, rare ones slower by factor: (pairs,).

    Often is r >= beta, rare is r <= alpha; in between the share kept is linear
    in r, the number of turns. By its paper, these are the frequencies of YaRN;
    by its code they are those of yarn, below.

    >>> ntk_by_parts(torch.tensor([1.0, 0.01, 0.0001]), 4, 4096)
    tensor([1.0000e+00, 3.8352e-03, 2.5000e-05])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: as position_interpolation; original_length below 1; not
    0 <= alpha <= beta.
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
    """The frequencies of Llama 3.1: (pairs,), unchanged from high turns on.

    It is ntk_by_parts with a ramp from low to high turns, and no attention
    factor. Llama 4 Scout has factor 16 and high 1: a step.

    >>> llama3(torch.tensor([1.0, 0.002, 0.0001]))
    tensor([1.0000e+00, 1.1878e-03, 1.2500e-05])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: as ntk_by_parts, for low and high.
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
    """YaRN as its authors released it, and transformers has it: (pairs,).

    As in ntk_by_parts the ramp lies between beta_slow and beta_fast turns, but
    on it the share kept is linear in p, the index of the pair, and truncate
    rounds its ends outwards to whole pairs. In its middle it keeps more.
    frequencies must be those of RoPE itself, positive and each the same
    multiple of the one before: the first and the last tell which pair would
    turn how often. This is not checked.

    >>> yarn(torch.tensor([1.0, 0.1, 0.01]), factor=4, original_length=4096)
    tensor([1.0000, 0.1000, 0.0062])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: as ntk_aware; original_length below 1; not
    0 < beta_slow <= beta_fast.
    """
    _check(frequencies, 2, factor, original_length=original_length)
    if not 0 < beta_slow <= beta_fast < math.inf:
        raise ValueError(
            "0 < beta_slow <= beta_fast must hold, got "
            f"{beta_slow} and {beta_fast}"
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
    """What q and k are multiplied by in YaRN, the root of 1 / temperature.

    >>> yarn_attention_factor(16)
    1.2772588722239782

    ValueError: factor below 1.
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
    """Every pair slower by a factor of its own, found by a search: (pairs,).

    The long factors are for texts of more than original_length tokens, the
    short ones for all others. The paper leaves the first few tokens as they
    were, which transformers does not; neither does this. That factors are
    positive is not checked. A graph is for one side of original_length.

    >>> w, short, long = torch.tensor([[1.0, 0.1], [1.0, 1.0], [1.0, 40.0]])
    >>> longrope(w, short, long, original_length=4096, length=4097)
    tensor([1.0000, 0.0025])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: as position_interpolation; factors that are no tensor of the
    shape of frequencies; original_length or length below 1.
    """
    _check(frequencies, original_length=original_length, length=length)
    want = tuple(frequencies.shape)
    for factors in (short_factors, long_factors):
        tensor = isinstance(factors, Tensor)
        have = tuple(factors.shape) if tensor else type(factors).__name__
        if have != want:
            raise ValueError(f"factors must be a tensor of {want}, got {have}")
    long = length > original_length
    return frequencies / (long_factors if long else short_factors)  # (pairs)


def longrope_attention_factor(factor: float, original_length: int) -> float:
    """What q and k are multiplied by in LongRoPE, at any length.

    >>> longrope_attention_factor(32, 4096)
    1.1902380714238083

    ValueError: factor below 1; original_length below 2.
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
    """p-RoPE: the fastest share of the pairs as they are, others 0: (pairs,).

    How many turn is rounded down. A pair of frequency 0 stands still: what it
    adds to a score is the same at all positions. share 1 is RoPE, 0 is no
    encoding. Gemma 4 has a share of 0.25 and LFM3 of 0.5, in the layers that
    see the whole text.

    Partial rotation is another thing: it gives as many pairs the range of a
    narrower head, down to its slowest. Here frequencies stay those of the whole
    head; give apply_rope all of them, zeros too, for with layout half a pair
    lies half a head apart.

    >>> proportional(torch.tensor([1.0, 0.1, 0.01, 0.001]), share=0.5)
    tensor([1.0000, 0.1000, 0.0000, 0.0000])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: frequencies as position_interpolation; share not from 0 to 1.
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
            f"0 <= {low} <= {high} must hold, got {least} and {most}"
        )


def _check_factor(factor: float) -> None:
    if not 1 <= factor < math.inf:
        raise ValueError(f"factor must be at least 1, got {factor}")
