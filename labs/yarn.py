# %% [markdown]
# # Lab: YaRN
#
# Write YaRN from its parts: count turns, slow pairs by them, and sharpen the attention.
#
# **Goal.** You compute the frequencies of YaRN by its paper and by its released code, see where the two part ways, and
# put the temperature where it belongs.
#
# **Time.** About seventy minutes.
#
# **You need.** [RoPE](../guide/rope.md) and [stretching it](../guide/long-context.md), both up to the intermediate
# level, logarithms, and some PyTorch. The [lab on NTK-aware RoPE](ntk_rope.md) is a good first step.

# %%
import math

import matplotlib.pyplot as plt
import torch

from labs.judge import judge
from snippets.rope import apply_rope, rope_frequencies

_ = torch.manual_seed(0)
DIM, BASE = 128, 10_000.0  # the channels of a head, and its base
TRAINED = 4096  # tokens in the texts of the training
FACTOR = 16  # how many times longer the texts are to be
frequencies = rope_frequencies(DIM, BASE)

# %% [markdown]
# ## Step one: count turns
#
# A pair with frequency $w$, in radians per position, turns on and on. If it came round at least once in the texts of
# the training, the model has met its whole circle, in steps, and no longer text asks it for anything beyond. If not,
# the model knows a part of it only. So YaRN sorts the pairs by one number: *how many times does a pair turn in $L$
# tokens*, where $L$ is the length of the training?


# %% tags=["starter"]
def turns(frequencies, trained):
    """How many times each pair turns in the texts of the training: (pairs,).

    frequencies  (pairs,), in radians per position, float64 like the result
    trained      tokens in the texts of the training
    """
    return frequencies  # change this


# %% tags=["solution"]
def turns(frequencies, trained):
    """How many times each pair turns in the texts of the training: (pairs,).

    frequencies  (pairs,), in radians per position, float64 like the result
    trained      tokens in the texts of the training
    """
    return trained * frequencies / (2 * math.pi)


# %% tags=["judge"]
def _turns(frequencies, trained):
    return trained * frequencies / (2 * math.pi)


def check_turns(yours):
    """Compare with the reference, then with what often goes wrong."""
    cases = {
        "a head of 8 channels": (rope_frequencies(8), 4096),
        "a head of 64 channels": (rope_frequencies(64, 500_000.0), 8192),
    }
    mistakes = [
        (
            lambda w, trained: w,
            "You return the frequencies as they were. Each says how far a "
            "pair turns at one position; how far does it get in all of the "
            "training?",
        ),
        (
            lambda w, trained: 2 * math.pi / w,
            "These are wavelengths, the positions that one turn takes. "
            "Wanted are the turns: how many wavelengths go into the trained "
            "length?",
        ),
        (
            lambda w, trained: trained * w,
            "This is the angle in radians. A turn has 2 pi of them, so you "
            "still have to divide by 2 pi.",
        ),
        (
            lambda w, trained: trained * w / math.pi,
            "You divide by pi, which is half a turn. A turn is 2 pi.",
        ),
        (
            lambda w, trained: trained * w * 2 * math.pi,
            "You multiply by 2 pi. The angle is in radians already; divide "
            "it by 2 pi to get turns. (In Python, / 2 * pi divides by 2 "
            "and then multiplies by pi: put a bracket around 2 * pi.)",
        ),
        (
            lambda w, trained: trained * w / 2 * math.pi,
            "Python reads / 2 * math.pi from left to right and multiplies "
            "by pi. Put a bracket around 2 * math.pi.",
        ),
        (
            lambda w, trained: 2 * math.pi / (trained * w),
            "Your fraction stands on its head: this is the share of the "
            "training that one turn takes. The fast pairs have to come out "
            "with the large numbers.",
        ),
        (
            lambda w, trained: _turns(w, trained).floor(),
            "You cut off the fraction of the last turn. Keep it: a pair of "
            "half a turn is another case than one that stands still.",
        ),
        (
            lambda w, trained: w / (2 * math.pi),
            "These are turns per position. Wanted are the turns in all of "
            "the training; multiply by its length.",
        ),
    ]
    return judge(yours, _turns, cases, mistakes, tolerance=1e-6)


# %% tags=["check"]
passed = check_turns(turns)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Take the fastest pair, with $w = 1$. It moves on by one radian at every token. How far has it gone after $L$ tokens?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# After $L$ tokens a pair has turned by $L w$ radians. One turn has $2\pi$ radians.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `trained * frequencies` are radians. Divide them by `(2 * math.pi)`, with the bracket.
#
# </details>

# %%
counted = turns(frequencies, TRAINED)
print("pair        turns")
for pair in (0, 16, 24, 32, 40, 48, 63):
    print(f"{pair:>4}   {counted[pair]:>10.2f}")
print(f"{(counted < 1).sum()} of {len(counted)} pairs do not come round once")

# %% [markdown]
# ## Step two: slow by parts
#
# Now a rule for each pair, with $r$ for its turns and $s$ for the factor by which texts grow:
#
# - from $\beta$ turns on, it is left alone;
# - up to $\alpha$ turns, its frequency is divided by $s$;
# - between, the two frequencies are mixed, and the share of the old one grows in a straight line with $r$, from zero
#   at $\alpha$ to one at $\beta$.
#
# This is *NTK-by-parts*, and by its paper also what YaRN does to frequencies. The paper takes $\alpha = 1$ and
# $\beta = 32$ for Llama.


# %% tags=["starter"]
def by_parts(frequencies, factor, trained, alpha=1.0, beta=32.0):
    """Slow pairs slower by factor, fast ones unchanged: (pairs,).

    frequencies  (pairs,), in radians per position, float64 like the result
    factor       how many times longer the texts are to be
    trained      tokens in the texts of the training
    alpha, beta  turns: where slowing in full ends, where all of it ends
    """
    return frequencies  # change this


# %% tags=["solution"]
def by_parts(frequencies, factor, trained, alpha=1.0, beta=32.0):
    """Slow pairs slower by factor, fast ones unchanged: (pairs,).

    frequencies  (pairs,), in radians per position, float64 like the result
    factor       how many times longer the texts are to be
    trained      tokens in the texts of the training
    alpha, beta  turns: where slowing in full ends, where all of it ends
    """
    kept = (turns(frequencies, trained) - alpha) / (beta - alpha)
    kept = kept.clamp(0, 1)
    return kept * frequencies + (1 - kept) * frequencies / factor


# %% tags=["judge"]
def _mix(frequencies, factor, kept):
    return kept * frequencies + (1 - kept) * frequencies / factor


def _share(turns, alpha, beta):
    return ((turns - alpha) / (beta - alpha)).clamp(0, 1)


def check_by_parts(yours):
    """Compare with the reference, then with what often goes wrong."""
    cases = {
        "a head of 16 channels": (rope_frequencies(16), 4, 4096, 1, 32),
        "a head of 64 channels": (
            rope_frequencies(64, 500_000.0),
            8,
            8192,
            1,
            32,
        ),
        "a ramp from 2 to 40 turns": (rope_frequencies(32), 4, 1024, 2, 40),
    }

    def right(w, s, L, alpha, beta):
        return _mix(w, s, _share(_turns(w, L), alpha, beta))

    def kept(share):
        """What another share of the old frequency gives."""
        return lambda w, s, L, a, b: _mix(w, s, share(_turns(w, L), a, b))

    mistakes = [
        (
            lambda w, s, L, a, b: w,
            "You return the frequencies as they were. Compute the share of "
            "the old frequency that each pair keeps, from its turns, and "
            "mix the old one and the divided one by it.",
        ),
        (
            lambda w, s, L, a, b: w / s,
            "You divide every frequency. That is position interpolation; "
            "by parts, pairs that turn beta times or more stay as they "
            "are.",
        ),
        (
            kept(lambda r, a, b: 1 - _share(r, a, b)),
            "Your ramp is reversed: pairs that turn often are slowed and "
            "rare ones are not. The share kept of the old frequency is "
            "zero at alpha and one at beta (did alpha and beta change "
            "places, or the two terms of the mixture?).",
        ),
        (
            lambda w, s, L, a, b: _mix(w, s, _share(2 * math.pi / w, a, b)),
            "You compare wavelengths with alpha and beta. These are counts "
            "of turns: take turns(frequencies, trained).",
        ),
        (
            lambda w, s, L, a, b: _mix(w, s, _share(L * w, a, b)),
            "You compare radians with alpha and beta. Take turns, radians "
            "divided by 2 pi.",
        ),
        (
            lambda w, s, L, a, b: _mix(w, s, _share(_turns(w, s * L), a, b)),
            "You count the turns in the longer text. What the model knows "
            "was settled in training, so count them in the trained length, "
            "without the factor.",
        ),
        (
            kept(lambda r, a, b: (r - a) / (b - a)),
            "Your share leaves the range from zero to one, so that fast "
            "pairs come out faster than they were. Hold it there with "
            ".clamp(0, 1).",
        ),
        (
            kept(lambda r, a, b: ((r - a) / (b - a)).clamp(min=0)),
            "Your share goes above one, so that fast pairs come out faster "
            "than they were. Hold both ends: .clamp(0, 1).",
        ),
        (
            kept(lambda r, a, b: ((r - a) / (b - a)).clamp(max=1)),
            "Your share falls below zero, so that the slowest pairs are "
            "slowed by more than the factor. Hold both ends: .clamp(0, 1).",
        ),
        (
            kept(lambda r, a, b: ((r - a) / b).clamp(0, 1)),
            "You divide by beta, so your share reaches one only at alpha + "
            "beta turns. The ramp is beta - alpha wide.",
        ),
        (
            kept(lambda r, a, b: (r / b).clamp(0, 1)),
            "Your ramp starts at no turns at all and not at alpha: "
            "subtract alpha above and below.",
        ),
        (
            kept(lambda r, a, b: (r - a / (b - a)).clamp(0, 1)),
            "Python divides before it subtracts. Put a bracket around "
            "turns - alpha.",
        ),
        (
            lambda w, s, L, a, b: _mix(w, 1 / s, _share(_turns(w, L), a, b)),
            "You multiply by the factor, and slow pairs turn faster than "
            "before. Divide by it.",
        ),
        (
            lambda w, s, L, a, b: _share(_turns(w, L), a, b) * w,
            "Only the share that is kept is there, so slow pairs stand "
            "still. Add the other share, (1 - kept), of the divided "
            "frequency.",
        ),
        (
            lambda w, s, L, a, b: (1 - _share(_turns(w, L), a, b)) * w / s,
            "Only the divided frequency is there, so fast pairs stand "
            "still. Add the share that is kept of the old one.",
        ),
        (
            lambda w, s, L, a, b: w / _mix(s, s, _share(_turns(w, L), a, b)),
            "You mix the divisors, one and factor, with the shares the "
            "wrong way round. Mix the frequencies themselves: kept * old + "
            "(1 - kept) * old / factor.",
        ),
        (
            lambda w, s, L, a, b: (
                w / (1 + (s - 1) * (1 - _share(_turns(w, L), a, b)))
            ),
            "You mix the divisors, one and factor. The ends are the same, "
            "but between them YaRN mixes the frequencies: kept * old + (1 "
            "- kept) * old / factor.",
        ),
        (
            kept(lambda r, a, b: (_share(r, a, b) > 0.5).double()),
            "You have a step in the middle and no ramp: pairs between alpha "
            "and beta turns are slowed in part, each by its own share.",
        ),
        (
            kept(lambda r, a, b: (r > a).double()),
            "You have a step at alpha and no ramp: pairs between alpha and "
            "beta turns are slowed in part.",
        ),
        (
            kept(lambda r, a, b: (r >= b).double()),
            "You have a step at beta and no ramp: pairs between alpha and "
            "beta turns are slowed in part.",
        ),
        (
            kept(
                lambda r, a, b: ((r / a).log() / math.log(b / a)).clamp(0, 1)
            ),
            "Your ramp is straight in the logarithm of the turns. That is "
            "nearly the ramp of the released code, which is the next step; "
            "the paper's is straight in the turns themselves.",
        ),
    ]
    return judge(yours, right, cases, mistakes, tolerance=1e-6)


# %% tags=["check"]
passed = check_by_parts(by_parts)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Do it in two lines. First the share of the old frequency that a pair keeps, a number from zero to one for each pair.
# Then the mixture.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# The straight line that is zero at $\alpha$ and one at $\beta$ is $(r - \alpha) / (\beta - \alpha)$. Left and right of
# the ramp it goes on, and has to be held: `.clamp(0, 1)`.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# With $\gamma$ for the share, the new frequency is $\gamma w + (1 - \gamma)\, w / s$. In code:
# `kept * frequencies + (1 - kept) * frequencies / factor`, where `kept` comes from
# `(turns(frequencies, trained) - alpha) / (beta - alpha)`.
#
# </details>

# %%
slowed_by = frequencies / by_parts(frequencies, FACTOR, TRAINED)
print("pair        turns   slowed by")
for pair in (0, 16, 24, 32, 40, 48, 63):
    print(f"{pair:>4}   {counted[pair]:>10.2f}   {slowed_by[pair]:>9.2f}")

# %% [markdown]
# ## Step three: the ramp of the released code
#
# The code that came with the paper, and transformers after it, do something else between the two ends. They ask *which
# pair would turn* $n$ *times*, and allow fractions of a pair:
#
# $$p(n) = \frac{d \, \ln\bigl(L / (2\pi n)\bigr)}{2 \ln b}$$
#
# with $d$ channels and base $b$. The ramp runs from pair $p(\beta)$ to pair $p(\alpha)$, both rounded outwards to
# whole numbers, and on it the share that is *slowed* grows in a straight line with the pair's index $p$. The lower end
# is held at zero or above, the upper end at $d - 1$ or below. (Should both ends fall on the same pair, the released code
# moves them a little apart. Here they never do.)


# %% tags=["starter"]
def as_released(dim, base, factor, trained, alpha=1.0, beta=32.0):
    """The frequencies of YaRN by its released code: (dim/2,), float64.

    dim, base    those of the RoPE: its channels, its base
    factor       how many times longer the texts are to be
    trained      tokens in the texts of the training
    alpha, beta  turns: where the ramp ends and where it starts
    """
    return rope_frequencies(dim, base)  # change this


# %% tags=["solution"]
def as_released(dim, base, factor, trained, alpha=1.0, beta=32.0):
    """The frequencies of YaRN by its released code: (dim/2,), float64.

    dim, base    those of the RoPE: its channels, its base
    factor       how many times longer the texts are to be
    trained      tokens in the texts of the training
    alpha, beta  turns: where the ramp ends and where it starts
    """

    def pair_that_turns(times):
        most = trained / (2 * math.pi * times)
        return dim * math.log(most) / (2 * math.log(base))

    low = max(math.floor(pair_that_turns(beta)), 0)
    high = min(math.ceil(pair_that_turns(alpha)), dim - 1)
    p = torch.arange(dim // 2)
    slowed = ((p - low) / (high - low)).clamp(0, 1)
    frequencies = rope_frequencies(dim, base)
    return slowed * frequencies / factor + (1 - slowed) * frequencies


# %% tags=["judge"]
def _pair(times, dim, base, trained):
    return (
        dim * math.log(trained / (2 * math.pi * times)) / math.log(base) / 2
    )


def _floor_ceil(low, high):
    return math.floor(low), math.ceil(high)


def _hold(low, high, dim):
    return max(low, 0), min(high, dim - 1)


def _indexed(
    rounded=_floor_ceil,
    hold=_hold,
    pair=_pair,
    longer=False,
    index=torch.arange,
):
    """The released YaRN, or what a change in its ends makes of it."""

    def made(dim, base, factor, trained, alpha, beta):
        length = trained * factor if longer else trained
        low, high = rounded(
            pair(beta, dim, base, length), pair(alpha, dim, base, length)
        )
        low, high = hold(low, high, dim)
        p = index(dim // 2)
        slowed = ((p - low) / (high - low)).clamp(0, 1)
        return _mix(rope_frequencies(dim, base), factor, 1 - slowed.double())

    return made


_LOW = (
    "Where no pair turns beta times, as in the model trained on few tokens, "
    "your lower end falls below zero and the ramp starts before the first "
    "pair. Hold it: max(low, 0)."
)


def check_as_released(yours):
    """Compare with the reference, then with what often goes wrong."""
    cases = {
        "a head of 128 channels": (128, 10_000.0, 16, 4096, 1, 32),
        "a head of 64 channels": (64, 500_000.0, 8, 9000, 1, 16),
        "a model trained on 128 tokens": (32, 10_000.0, 4, 128, 1, 32),
        "a head whose pairs all turn often": (
            32,
            100.0,
            4,
            131_072,
            1,
            4096,
        ),
    }

    def paper(dim, base, factor, trained, alpha, beta):
        w = rope_frequencies(dim, base)
        return _mix(w, factor, _share(_turns(w, trained), alpha, beta))

    def reversed_(dim, base, factor, *rest):
        w = rope_frequencies(dim, base)
        return w + w / factor - _indexed()(dim, base, factor, *rest)

    def without_2_pi(times, dim, base, trained):
        return _pair(times / (2 * math.pi), dim, base, trained)

    def without_bracket(times, dim, base, trained):
        return _pair(1 / (times * math.pi**2), dim, base, trained)

    mistakes = [
        (
            lambda dim, base, *rest: rope_frequencies(dim, base),
            "These are the frequencies of RoPE, unchanged. Find the two "
            "ends of the ramp first, then the share that each pair is "
            "slowed.",
        ),
        (
            paper,
            "This is the ramp of the paper, straight in the turns. The "
            "released code has one that is straight in the index of the "
            "pair, p = 0, 1, 2 and so on.",
        ),
        (
            reversed_,
            "Your ramp is reversed: the share p has gone from low to high "
            "is the share that is slowed, and you keep it. The first "
            "pairs, the fast ones, must stay as they were.",
        ),
        (
            _indexed(lambda low, high: (math.floor(high), math.ceil(low))),
            "The ends have changed places: beta is the larger number of "
            "turns, so its pair is a fast one and comes first. low belongs "
            "to beta, high to alpha.",
        ),
        (
            _indexed(lambda low, high: (low, high)),
            "You do not round the ends of the ramp. The released code "
            "does, unless it is told otherwise: low down, high up.",
        ),
        (
            _indexed(lambda low, high: (math.ceil(low), math.floor(high))),
            "You round the ends inwards. They are rounded outwards, the "
            "lower one down and the upper one up, so that the ramp gets "
            "longer.",
        ),
        (
            _indexed(lambda low, high: (round(low), round(high))),
            "You round the ends to the nearest pair. They are rounded "
            "outwards: low with floor, high with ceil.",
        ),
        (
            _indexed(lambda low, high: (math.floor(low), math.floor(high))),
            "You round both ends down. The upper one is rounded up, with "
            "ceil.",
        ),
        (
            _indexed(hold=lambda low, high, dim: (low, min(high, dim - 1))),
            _LOW,
        ),
        (
            _indexed(hold=lambda low, high, dim: (low, high)),
            _LOW + " Hold the upper end, too: min(high, dim - 1).",
        ),
        (
            _indexed(hold=lambda low, high, dim: (max(low, 0), high)),
            "Where all pairs turn often, your upper end goes beyond the "
            "number of channels. Hold it: min(high, dim - 1).",
        ),
        (
            _indexed(
                hold=lambda low, high, dim: (
                    max(low, 0),
                    min(high, dim // 2 - 1),
                )
            ),
            "You hold the upper end at the last pair, dim // 2 - 1. The "
            "released code holds it at the number of channels less one, "
            "dim - 1, so that the ramp may end beyond all pairs.",
        ),
        (
            _indexed(pair=lambda *given: 2 * _pair(*given)),
            "Your ends count channels and not pairs: twice too far. The "
            "logarithm of the base stands below with a 2.",
        ),
        (
            _indexed(pair=lambda *given: _pair(*given) / 2),
            "Your ramp comes half way too early: the number of pairs stands "
            "for d, which is the number of channels.",
        ),
        (
            _indexed(index=lambda pairs: 2 * torch.arange(pairs)),
            "Your ramp comes half way too early: p counts channels where it "
            "should count pairs, 0, 1, 2 and so on.",
        ),
        (
            _indexed(pair=without_bracket),
            "Python reads trained / 2 * math.pi * n from left to right and "
            "multiplies by pi and by n. Put a bracket around 2 * math.pi * "
            "n.",
        ),
        (
            _indexed(index=lambda pairs: 1 + torch.arange(pairs)),
            "You count the pairs from one. The fastest pair is p = 0.",
        ),
        (
            _indexed(pair=without_2_pi),
            "2 pi is missing in the logarithm, so you ask which pair goes "
            "that many radians. Turns have 2 pi of them: trained / (2 * pi "
            "* n).",
        ),
        (
            _indexed(longer=True),
            "You count the turns in the longer text. Take the trained "
            "length, without the factor.",
        ),
    ]
    return judge(yours, _indexed(), cases, mistakes, tolerance=1e-6)


# %% tags=["check"]
passed = check_as_released(as_released)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Go in this order: a small function for $p(n)$; `low` and `high`, two whole numbers; the share that each pair is
# slowed; the mixture of step two.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# Which end belongs to which? A pair that turns $\beta$ times is a fast one, and fast pairs have small indices. So
# $p(\beta)$ is the lower end. Outwards means that it is rounded down and the other end up.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# ```python
# low = max(math.floor(pair_that_turns(beta)), 0)
# high = min(math.ceil(pair_that_turns(alpha)), dim - 1)
# slowed = ((torch.arange(dim // 2) - low) / (high - low)).clamp(0, 1)
# ```
#
# A pair is slowed by this share: `slowed * frequencies / factor` and the rest of it unchanged.
#
# </details>

# %%
paper = by_parts(frequencies, FACTOR, TRAINED)
code = as_released(DIM, BASE, FACTOR, TRAINED)
pair = (code / paper).argmax()
print(f"pair {pair} turns {counted[pair]:.1f} times in training")
print(f"  slowed by {frequencies[pair] / paper[pair]:.2f} by the paper")
print(f"  slowed by {frequencies[pair] / code[pair]:.2f} by the code")

# %% [markdown]
# For this head the ends agree, the middle does not. Neither is wrong, but a model that was tuned with one of them
# needs that one, and
# with the other nothing raises an error:

# %% alt="By pair, interpolation slows all alike. The paper's ramp leaves the first pairs, then rises at once and flattens. The code's starts at the same place, stays lower in the middle and reaches the same end."
fig, ax = plt.subplots(figsize=(4.4, 3), layout="constrained")
ax.axhline(FACTOR, color="gray", linestyle=":", label="interpolation")
ax.semilogy(frequencies / paper, "--", color="C0", label="YaRN, paper")
ax.semilogy(frequencies / code, color="C1", label="YaRN, code")
ax.set_yticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
ax.minorticks_off()
ax.set_xlabel("pair, fastest first")
ax.set_ylabel("slowed by")
fig.legend(loc="outside lower center", ncols=2)
plt.show()

# %% [markdown]
# ## Step four: the temperature
#
# The second half of YaRN divides the scores by a temperature $t$ before the softmax, with
#
# $$\sqrt{1/t} = 0.1 \ln s + 1$$
#
# Since a score is a product of a query and a key, it is enough to multiply *both* by that root, as the released code
# does. Write the scores of a head, as they enter the softmax. Turn queries and keys with `apply_rope` in the layout
# `"half"`, and do not forget what attention always does to its scores.


# %% tags=["starter"]
def scores(q, k, positions, frequencies, factor):
    """The scores of YaRN, ready for the softmax: (tokens, tokens).

    q, k         (tokens, dim), not yet turned
    positions    (tokens,)
    frequencies  (dim/2,), already those of YaRN
    factor       how many times longer the texts are to be
    """
    q = apply_rope(q, positions, frequencies, "half")
    k = apply_rope(k, positions, frequencies, "half")
    return q @ k.T / math.sqrt(q.shape[-1])  # change this


# %% tags=["solution"]
def scores(q, k, positions, frequencies, factor):
    """The scores of YaRN, ready for the softmax: (tokens, tokens).

    q, k         (tokens, dim), not yet turned
    positions    (tokens,)
    frequencies  (dim/2,), already those of YaRN
    factor       how many times longer the texts are to be
    """
    strength = 0.1 * math.log(factor) + 1
    q = strength * apply_rope(q, positions, frequencies, "half")
    k = strength * apply_rope(k, positions, frequencies, "half")
    return q @ k.T / math.sqrt(q.shape[-1])


# %% tags=["judge"]
def check_scores(yours):
    """Compare with the reference, then with what often goes wrong."""
    some = torch.Generator().manual_seed(1)
    cases = {}
    for dim, factor in ((8, 16), (32, 4)):
        q, k = torch.randn(2, 6, dim, generator=some)
        positions = torch.tensor([0, 1, 2, 7, 40, 900])
        w = rope_frequencies(dim) / factor
        cases[f"factor {factor}"] = q, k, positions, w, factor

    def plain(q, k, positions, w, layout="half"):
        q = apply_rope(q, positions, w, layout)
        k = apply_rope(k, positions, w, layout)
        return q @ k.T / math.sqrt(q.shape[-1])

    def root(factor):
        return 0.1 * math.log(factor) + 1

    def times(multiple):
        """What another multiple of the plain scores gives."""
        return lambda q, k, at, w, s: plain(q, k, at, w) * multiple(s)

    right = times(lambda s: root(s) ** 2)
    mistakes = [
        (
            times(lambda s: 1),
            "The temperature is missing: these are the scores of RoPE. "
            "Queries and keys are both multiplied by 0.1 ln s + 1.",
        ),
        (
            times(root),
            "You apply the factor once, and it is wanted twice. 0.1 ln s + "
            "1 is the root of 1/t: it goes on queries and on keys, or its "
            "square on the scores.",
        ),
        (
            times(lambda s: root(s) ** 3),
            "You apply the factor to queries, to keys and once more to the "
            "scores. Twice is enough: on q and k, or squared on the "
            "scores.",
        ),
        (
            times(lambda s: root(s) ** 4),
            "You apply the temperature twice, to q and k and again to the "
            "scores. Choose one of the two places.",
        ),
        (
            times(lambda s: root(s) ** -2),
            "You divide by the factor, and the attention gets flatter. A "
            "temperature below one sharpens it: multiply q and k.",
        ),
        (
            times(lambda s: 1 / root(s)),
            "You divide the scores by 0.1 ln s + 1. That number is the "
            "root of 1/t, so scores are multiplied by its square.",
        ),
        (
            times(lambda s: (0.1 * math.log10(s) + 1) ** 2),
            "Your logarithm has base ten. It is the natural one, math.log.",
        ),
        (
            times(lambda s: (0.1 * math.log2(s) + 1) ** 2),
            "Your logarithm has base two. It is the natural one, math.log.",
        ),
        (
            times(lambda s: (0.1 * math.log(s)) ** 2),
            "The + 1 is missing: with a factor of one nothing may change, "
            "and yours makes all scores zero.",
        ),
        (
            times(lambda s: (0.1 * math.log(s + 1)) ** 2),
            "Your + 1 stands inside the logarithm. It is added afterwards.",
        ),
        (
            times(lambda s: math.log(s) ** 2),
            "You multiply by ln s alone. The factor is 0.1 ln s + 1.",
        ),
        (
            lambda q, k, at, w, s: (
                right(q, k, at, w, s) * math.sqrt(q.shape[-1])
            ),
            "The temperature is right, but the division of the scores by "
            "the root of dim is missing. YaRN's temperature comes on top "
            "of it.",
        ),
        (
            lambda q, k, at, w, s: (
                right(q, k, at, w, s) * math.sqrt(q.shape[-1] / len(q))
            ),
            "The temperature is right, but you divide by the root of the "
            "number of tokens. It is the root of dim, q.shape[-1].",
        ),
        (
            lambda q, k, at, w, s: right(q, k, at, w, s).softmax(-1),
            "You return weights. Wanted are the scores, before the softmax.",
        ),
        (
            lambda q, k, at, w, s: plain(q, k, at, w * root(s)),
            "You multiply the frequencies by the factor. That turns pairs "
            "otherwise; the temperature changes the length of q and k and "
            "leaves their angles.",
        ),
        (
            lambda q, k, at, w, s: right(q, k, at, w / s, s),
            "The temperature is right, but you slow the frequencies once "
            "more. They come in slowed.",
        ),
        (
            lambda q, k, at, w, s: (
                plain(q, k, at, w, "interleaved") * root(s) ** 2
            ),
            "The temperature is right, but the layout is interleaved. The "
            "step asks for half.",
        ),
        (
            lambda q, k, at, w, s: right(k, q, at, w, s),
            "Queries and keys have changed places: rows belong to queries, "
            "so it is q @ k.T.",
        ),
        (
            lambda q, k, at, w, s: (
                q @ k.T / math.sqrt(q.shape[-1]) * root(s) ** 2
            ),
            "The temperature is right, but q and k are not turned. Apply "
            "RoPE to both, with the frequencies given.",
        ),
    ]
    return judge(yours, right, cases, mistakes)


# %% tags=["check"]
passed = check_scores(scores)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# The starter has the scores of plain RoPE. What has to change is a single number. Which one, and how often does it
# enter a score?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# Multiplying `q` by $m$ and `k` by $m$ multiplies the score by $m^2 = 1/t$. Do that, or multiply the scores by $m^2$,
# never both.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `strength = 0.1 * math.log(factor) + 1`, and then `strength *` in front of both calls of `apply_rope`. The rest stays.
#
# </details>

# %%
q, k = torch.randn(2, 200, DIM)
positions = torch.arange(200)
print("largest weight of the last token, random q and k")
for name, used, factor in (
    ("frequencies alone", code, 1),
    ("YaRN", code, 16),
):
    weights = scores(q, k, positions, used, factor)[-1].softmax(-1)
    print(f"  {name:<18} {weights.max():.3f}")

# %% [markdown]
# The same frequencies, and the same token is ahead, but by more. Any factor above one sharpens a softmax in this way;
# that it should be $0.1 \ln s + 1$ was found by a fit to measurements
# ([Peng et al. 2024](../bibliography.md#peng2024), section 3.4), not derived.
#
# ## What you can do now
#
# You can count a pair's turns in training and say why they decide what to do with it. You can write NTK-by-parts, the
# ramp of the released YaRN and its temperature, and you know that two programs which both say “YaRN” may differ. For a
# checkpoint, take the one that it was tuned with.
#
# - Go on with the lab on [what happens beyond the trained length](length_extrapolation.md), where a trained head needs
#   such a remedy.
# - Read again: [stretching RoPE](../guide/long-context.md#the-idea), at the advanced level on two ramps by one name.
# - The tested code, with its checks of what comes in: [`rope_scaling.py`](../reference/rope_scaling.md).
