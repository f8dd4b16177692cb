# %% [markdown]
# # Lab: NTK-aware RoPE
#
# Get a RoPE model ready for longer texts by changing one number, its base.
#
# **Goal.** You find the new base from two demands, do the same pair by pair without knowing the base, and let the
# change grow with the text.
#
# **Time.** About fifty minutes.
#
# **You need.** [RoPE](../guide/rope.md) and [stretching it](../guide/long-context.md), both up to the intermediate
# level, powers and their rules, and some PyTorch.

# %%
import math

import matplotlib.pyplot as plt
import torch

from labs.judge import judge
from snippets.rope import apply_rope, rope_frequencies

_ = torch.manual_seed(0)
DIM, BASE = 128, 10_000.0  # the channels of a head, and its base
TRAINED = 4096  # tokens in the texts of the training
FACTOR = 8  # how many times longer the texts are to be

# %% [markdown]
# ## What stretching costs
#
# Pair $p$ of a head with $d$ channels turns at $w_p = b^{-2p/d}$ radians per position, where $b$ is the base. The
# fastest pairs have gone round many times in training. The slowest have not come round once:

# %%
frequencies = rope_frequencies(DIM, BASE)
print("pair   turns in training")
for pair in (0, 16, 32, 48, 63):
    turns = TRAINED * frequencies[pair] / (2 * math.pi)
    print(f"{pair:>4}   {turns:>17.2f}")

# %% [markdown]
# A longer text takes the slow pairs to angles that training never showed. *Position interpolation* divides every
# $w_p$ by the factor $s$ and so brings them back. Its price is at the other end: the fastest pair, which tells
# neighbours apart, now moves that much less from one token to the next.

# %%
step = math.degrees(frequencies[0])
print(f"fastest pair, from one token to the next: {step:.1f}°")
print(f"with position interpolation:              {step / FACTOR:.1f}°")

# %% [markdown]
# ## Step one: one number
#
# *NTK-aware* scaling makes two demands instead:
#
# - the fastest pair, $p = 0$, stays as it is;
# - the slowest pair, $p = d/2 - 1$, is slowed by exactly $s$.
#
# A new base can meet both. Which one? Look at $w_p = b^{-2p/d}$ for the first and for the last pair.


# %% tags=["starter"]
def ntk_base(base, dim, factor):
    """The base with which the slowest of dim/2 pairs is slower by factor.

    base    the base of the trained model
    dim     the number of channels that turn, two for each pair
    factor  how many times longer the texts are to be
    """
    return base  # change this


# %% tags=["solution"]
def ntk_base(base, dim, factor):
    """The base with which the slowest of dim/2 pairs is slower by factor.

    base    the base of the trained model
    dim     the number of channels that turn, two for each pair
    factor  how many times longer the texts are to be
    """
    return base * factor ** (dim / (dim - 2))


# %% tags=["judge"]
def check_ntk_base(yours):
    """Compare with the reference, then with what often goes wrong."""
    cases = {
        "a head of 128 channels": (10_000.0, 128, 8),
        "a head of 64 channels": (500_000.0, 64, 4),
        "a head of 8 channels": (100.0, 8, 2.5),
    }

    def right(base, dim, factor):
        return base * factor ** (dim / (dim - 2))

    mistakes = [
        (
            lambda base, dim, factor: base,
            "You return the base as it was, so no pair is slowed. Look for "
            "the base that makes the last frequency smaller by the factor.",
        ),
        (
            lambda base, dim, factor: base * factor,
            "You multiply the base by the factor itself. But the slowest "
            "pair has the base to the power of -(dim - 2) / dim, so it is "
            "slowed by factor ** ((dim - 2) / dim), which is too little. "
            "Which power of the factor makes up for that? (If you have a "
            "power already: with // in place of / its exponent is cut off "
            "to one.)",
        ),
        (
            lambda base, dim, factor: base * factor ** ((dim - 2) / dim),
            "Your exponent stands on its head. The base is raised to "
            "-(dim - 2) / dim in the slowest pair. To undo that power, the "
            "factor needs the inverse one: dim over dim - 2.",
        ),
        (
            lambda base, dim, factor: base * factor ** (dim / (dim - 1)),
            "Your exponent has dim - 1 below. The last pair is p = dim/2 - "
            "1, so 2p is dim - 2.",
        ),
        (
            lambda base, dim, factor: base * factor ** (dim / (dim - 4)),
            "Your exponent counts pairs, p over p - 2. It is dim over dim "
            "- 2, in channels; in pairs that is dim/2 over dim/2 - 1.",
        ),
        (
            lambda base, dim, factor: (base * factor) ** (dim / (dim - 2)),
            "You raise the old base as well. Only the factor gets the "
            "power: base * factor ** (...), with no bracket around base * "
            "factor.",
        ),
        (
            lambda base, dim, factor: base ** (dim / (dim - 2)) * factor,
            "You raise the base and not the factor. It is the other way "
            "round: base * factor ** (...).",
        ),
        (
            lambda base, dim, factor: base * factor * dim / (dim - 2),
            "You multiply by dim / (dim - 2). It is an exponent: factor ** "
            "(dim / (dim - 2)).",
        ),
        (
            lambda base, dim, factor: base * factor**dim / (dim - 2),
            "Python reads factor ** dim / (dim - 2) as (factor ** dim) / "
            "(dim - 2). Put a bracket around the whole exponent.",
        ),
        (
            lambda base, dim, factor: base * factor ** (dim / dim - 2),
            "Python reads dim / dim - 2 as (dim / dim) - 2, which is minus "
            "one. Put a bracket around dim - 2.",
        ),
        (
            lambda base, dim, factor: base / factor ** (dim / (dim - 2)),
            "You make the base smaller, and the pairs turn faster. A slower "
            "pair needs a larger base, since the base stands there with a "
            "negative exponent.",
        ),
    ]
    return judge(yours, right, cases, mistakes, tolerance=1e-6)


# %% tags=["check"]
passed = check_ntk_base(ntk_base)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# The first demand costs nothing: for $p = 0$ the exponent is zero, and every base gives one. So look at the last pair
# alone. What is its exponent, $-2p/d$?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# The last pair is $p = d/2 - 1$, so $2p = d - 2$. Call the new base $b'$. The second demand says
#
# $$b'^{-(d-2)/d} = \frac{b^{-(d-2)/d}}{s}$$
#
# Solve it for $b'$: bring both sides to the power that leaves $b'$ alone.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# That power is $-d/(d-2)$. On the right it turns $b^{-(d-2)/d}$ back into $b$, and $1/s$ into $s^{d/(d-2)}$. In
# Python a power is written `**`, and its exponent needs brackets.
#
# </details>

# %%
new_base = ntk_base(BASE, DIM, FACTOR)
slowed_by = frequencies / rope_frequencies(DIM, new_base)
print(f"the base was {BASE:,.0f} and is {new_base:,.0f}")
print(f"fastest pair slowed by {slowed_by[0]:.4f}")
print(f"slowest pair slowed by {slowed_by[-1]:.4f}")

# %% [markdown]
# ## Step two: pair by pair
#
# A model that runs often has only its frequencies at hand, not the base they came from. It is not needed. Ask of each
# pair: by how much does the new base slow it, if written with $p$, $s$ and the number of pairs $P = d/2$ alone?
#
# Frequencies come in and go out as a tensor of shape `(pairs,)`, fastest first.


# %% tags=["starter"]
def ntk_aware(frequencies, factor):
    """The slowest pair slower by factor, the fastest unchanged: (pairs,).

    frequencies  (pairs,), in radians per position, the fastest first,
                 float64 like the result
    """
    return frequencies  # change this


# %% tags=["solution"]
def ntk_aware(frequencies, factor):
    """The slowest pair slower by factor, the fastest unchanged: (pairs,).

    frequencies  (pairs,), in radians per position, the fastest first,
                 float64 like the result
    """
    pairs = len(frequencies)
    share = torch.arange(pairs) / (pairs - 1)  # from 0 to 1
    return frequencies * factor**-share


# %% tags=["judge"]
def _ntk(frequencies, factor):
    pairs = len(frequencies)
    share = torch.arange(pairs, dtype=frequencies.dtype) / (pairs - 1)
    return frequencies * factor**-share


def check_ntk_aware(yours):
    """Compare with the reference, then with what often goes wrong."""
    cases = {
        "a head of 8 channels": (rope_frequencies(8), 4),
        "a head of 64 channels": (
            rope_frequencies(64, 500_000.0),
            8,
        ),
        "a head of two pairs": (rope_frequencies(4), 2.5),
    }

    def by(exponent):
        """What a wrong power of the factor gives."""

        def variant(frequencies, factor):
            p = torch.arange(len(frequencies), dtype=frequencies.dtype)
            return frequencies * factor ** exponent(p, len(frequencies))

        return variant

    def line(frequencies, factor):
        share = torch.linspace(0, 1, len(frequencies))
        return frequencies / (1 + (factor - 1) * share)

    mistakes = [
        (
            lambda frequencies, factor: frequencies,
            "You return the frequencies as they were. The last one has to "
            "be divided by the factor, the first one by nothing, and those "
            "between by powers of the factor between zero and one.",
        ),
        (
            lambda frequencies, factor: frequencies / factor,
            "You divide every frequency by the factor. That is position "
            "interpolation, and the fastest pair suffers from it. Here the "
            "power of the factor depends on the pair.",
        ),
        (
            lambda frequencies, factor: rope_frequencies(
                2 * len(frequencies),
                10_000
                * factor ** (len(frequencies) / (len(frequencies) - 1)),
            ),
            "You take it that the base is 10000. The frequencies that come "
            "in may have another one: change them, and ask for no base.",
        ),
        (
            by(lambda p, pairs: -p / pairs),
            "You divide p by the number of pairs. The last p is one less "
            "than that, so your slowest pair is not slowed in full: p / "
            "(pairs - 1) runs from zero to one.",
        ),
        (
            by(lambda p, pairs: -(p.long() // (pairs - 1))),
            "You divide with //, which drops the fraction: no pair but the "
            "last is changed. Use /.",
        ),
        (
            by(lambda p, pairs: -(p / pairs - 1)),
            "Python reads p / pairs - 1 as (p / pairs) - 1. Put a bracket "
            "around pairs - 1.",
        ),
        (
            by(lambda p, pairs: -(p + 1) / pairs),
            "You count the pairs from one. Then the fastest pair is slowed "
            "as well; it has p = 0 and must stay.",
        ),
        (
            by(lambda p, pairs: p / (pairs - 1)),
            "Your pairs turn faster than before: a minus is missing in the "
            "exponent. Slower means a smaller frequency.",
        ),
        (
            by(lambda p, pairs: -(1 - p / (pairs - 1))),
            "Your ramp is reversed: the fastest pair is slowed in full and "
            "the slowest not at all. Frequencies come fastest first.",
        ),
        (
            by(lambda p, pairs: -2 * p / (pairs - 1)),
            "Your exponent is twice as large as it should be, so the "
            "slowest pair is slowed by the square of the factor. With 2p on "
            "top there must be channels below, 2 * pairs - 2.",
        ),
        (
            line,
            "You raise the divisor in equal steps, 1 to factor. A change of "
            "the base multiplies: each pair is slowed by the same ratio more "
            "than the one before. Put p / (pairs - 1) into the exponent.",
        ),
    ]
    return judge(yours, _ntk, cases, mistakes, tolerance=1e-6)


# %% tags=["check"]
passed = check_ntk_aware(ntk_aware)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# The first pair is slowed by $1 = s^0$, the last by $s = s^1$. What is between?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# The new frequency over the old one is $(b'/b)^{-2p/d}$, and from step one $b'/b = s^{d/(d-2)}$. Multiply the exponents:
# $d$ goes away on top and below, and with $d - 2 = 2(P - 1)$ there remains $s^{-p/(P-1)}$.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# Make all $p$ at once with `torch.arange(len(frequencies))`, divide by the number of pairs less one, and you have a
# `share` from zero to one. Then multiply the frequencies by `factor**-share`.
#
# </details>

# %%
again = rope_frequencies(DIM, ntk_base(BASE, DIM, FACTOR))
apart = (ntk_aware(frequencies, FACTOR) / again - 1).abs().max()
print(f"step one and step two differ by {apart:.0e} at most")

# %% [markdown]
# Both ways give one curve. It starts at the bottom, where nothing is slowed, and reaches the full factor only at the
# last pair:

# %% alt="By pair, position interpolation slows by the same factor everywhere, a level line. NTK-aware scaling rises from one at the first pair to that line at the last."
slowed_by = frequencies / ntk_aware(frequencies, FACTOR)
fig, ax = plt.subplots(figsize=(4.4, 2.6), layout="constrained")
ax.axhline(FACTOR, color="C1", linestyle="--", label="interpolation")
ax.semilogy(slowed_by, color="C0", label="NTK-aware")
ax.set_yticks([1, 2, 4, 8], ["1", "2", "4", "8"])
ax.minorticks_off()
ax.set_xlabel("pair, fastest first")
ax.set_ylabel("slowed by")
ax.legend()
plt.show()

# %% [markdown]
# **What it does not do.** A pair that never came round in training knows only a part of the circle. Count the pairs
# that a text `FACTOR` times as long asks for more than that part:


# %%
def asked_for_new(used):
    """How many pairs leave the part of the circle that they know."""
    seen = (TRAINED * frequencies / (2 * math.pi)).clamp(max=1)
    asked = (FACTOR * TRAINED * used / (2 * math.pi)).clamp(max=1)
    return (asked > seen * (1 + 1e-6)).sum()


print(f"unchanged      {asked_for_new(frequencies):>3} of {DIM // 2} pairs")
print(f"interpolation  {asked_for_new(frequencies / FACTOR):>3}")
print(f"NTK-aware      {asked_for_new(ntk_aware(frequencies, FACTOR)):>3}")

# %% [markdown]
# Every slow pair but the slowest is slowed by less than $s$, so at full length it is still asked for something new.
# The [YaRN paper](../bibliography.md#peng2024), section 3.1, names this as the reason why $s$ has to be set above the
# factor that one wants. Mending it pair by pair leads to [YaRN](yarn.md).
#
# ## Step three: let it grow with the text
#
# A fixed factor changes short texts, too. *Dynamic NTK* looks at the length $T$ of the text so far and at the length
# $L$ of the training. Up to $L$ nothing changes. Beyond it, the released code slows the slowest pair by
#
# $$s\,\frac{T}{L} - (s - 1)$$
#
# and the other pairs as in step two. Write it; you may call your `ntk_aware`.


# %% tags=["starter"]
def dynamic_ntk(frequencies, factor, trained, length):
    """NTK-aware by a factor that grows with the text: (pairs,).

    frequencies  (pairs,), in radians per position, the fastest first,
                 float64 like the result
    factor       s in the formula
    trained      tokens in the texts of the training, L
    length       tokens in the text so far, T
    """
    return ntk_aware(frequencies, factor)  # change this


# %% tags=["solution"]
def dynamic_ntk(frequencies, factor, trained, length):
    """NTK-aware by a factor that grows with the text: (pairs,).

    frequencies  (pairs,), in radians per position, the fastest first,
                 float64 like the result
    factor       s in the formula
    trained      tokens in the texts of the training, L
    length       tokens in the text so far, T
    """
    length = max(length, trained)
    now = factor * length / trained - (factor - 1)
    return ntk_aware(frequencies, now)


# %% tags=["judge"]
def check_dynamic_ntk(yours):
    """Compare with the reference, then with what often goes wrong."""
    cases = {
        "a text shorter than the training": (
            rope_frequencies(8),
            4,
            4096,
            1024,
        ),
        "one of the trained length": (
            rope_frequencies(64),
            2,
            4096,
            4096,
        ),
        "one a little longer": (
            rope_frequencies(8),
            4,
            4096,
            5120,
        ),
        "one somewhat longer": (
            rope_frequencies(8),
            4,
            4096,
            10_240,
        ),
        "one eight times as long": (
            rope_frequencies(64),
            2.5,
            2048,
            16_384,
        ),
    }

    def by(now):
        """What another factor for the text so far gives."""
        return lambda w, s, trained, length: _ntk(w, now(s, trained, length))

    right = by(lambda s, L, T: s * max(T, L) / L - (s - 1))
    mistakes = [
        (
            lambda w, s, L, T: w,
            "The frequencies come out as they were, however long the text. "
            "Do you call ntk_aware with a factor above one, and has step "
            "two been done?",
        ),
        (
            by(lambda s, L, T: s),
            "Your factor does not look at the length: short texts are "
            "changed as much as long ones. Up to the trained length "
            "nothing may change, and beyond it the factor grows.",
        ),
        (
            by(lambda s, L, T: s if T > L else 1),
            "You switch to the whole factor at the trained length, and "
            "there it stays. It has to start from one there and to grow "
            "with the text.",
        ),
        (
            by(lambda s, L, T: min(s, s * max(T, L) / L - (s - 1))),
            "Your factor stops at s. Beyond that the text still grows, and "
            "so must the factor.",
        ),
        (
            by(lambda s, L, T: s * T / L - (s - 1)),
            "Long texts are right, but in texts shorter than the training "
            "your factor falls below one, and pairs turn faster than they "
            "were trained to (below zero, the power is no number). Take no "
            "length below the trained one: max(length, trained).",
        ),
        (
            by(lambda s, L, T: max(T, L) / L),
            "You take length / trained. That is the formula in YaRN's "
            "paper, but not that of the released code, which this step "
            "asks for: s * T / L - (s - 1). Both start from one at the "
            "trained length; yours grows less.",
        ),
        (
            by(lambda s, L, T: s * max(T, L) / L),
            "You left out - (s - 1). At the trained length your factor "
            "already is s, so that it jumps there and texts that need no "
            "change get one.",
        ),
        (
            by(lambda s, L, T: max(s * T / L, 1)),
            "You left out - (s - 1). At the trained length your factor "
            "already is s, and short texts that need no change get one.",
        ),
        (
            by(lambda s, L, T: s * max(T, L) / L - s),
            "You subtract s and not s - 1. At the trained length the "
            "factor then is zero; it has to be one, which changes nothing.",
        ),
        (
            by(lambda s, L, T: s * max(T, L) / L - s - 1),
            "Without its bracket - (s - 1) becomes - s - 1. At the trained "
            "length the factor then is minus one; it has to be one.",
        ),
        (
            by(lambda s, L, T: s * (max(T, L) // L) - (s - 1)),
            "You divide the lengths with //, which drops the fraction: your "
            "factor grows in jumps, once every trained length. Use /.",
        ),
        (
            by(lambda s, L, T: s * L / min(T, L) - (s - 1)),
            "You have length and trained the wrong way round: short texts "
            "are stretched and long ones are not. It is length / trained.",
        ),
        (
            lambda w, s, L, T: w / (s * max(T, L) / L - (s - 1)),
            "Your factor is right, but you divide every frequency by it. "
            "That is interpolation; hand the factor to ntk_aware.",
        ),
    ]
    return judge(yours, right, cases, mistakes, tolerance=1e-6)


# %% tags=["check"]
passed = check_dynamic_ntk(dynamic_ntk)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# What does the formula give at $T = L$? And what would it give for a text shorter than $L$?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# At $T = L$ it gives one, and step two with factor one changes nothing. Below $L$ it would give less than one. So
# treat every shorter text as if it had the trained length.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# First `length = max(length, trained)`, then the formula with `factor`, `length` and `trained`, then
# `return ntk_aware(frequencies, now)`.
#
# </details>

# %% [markdown]
# **A trap.** While a model writes, it keeps its turned keys in a cache. With dynamic NTK, each new token beyond the
# trained length changes
# the frequencies, and a key that was turned long ago stands at an angle of its own time. Here are the scores of the
# last
# token with four keys. Left, all are turned for the length of now; right, each is turned for the length at which it
# came.

# %%
query, key = torch.randn(2, 1, DIM)
now = 2 * TRAINED


def turned(x, position, length):
    used = dynamic_ntk(frequencies, 2, TRAINED, length)
    return apply_rope(x, torch.tensor([position]), used, "half")


print("key at   turned now   when it came")
for position in (8000, 7000, 6000, 4000):
    at = turned(query, now - 1, now) / math.sqrt(DIM)
    fresh = (at * turned(key, position, now)).sum()
    stale = (at * turned(key, position, position + 1)).sum()
    print(f"{position:>6}   {fresh:>10.2f}   {stale:>12.2f}")

# %% [markdown]
# The columns should agree and do not. The way out is to cache keys before they are turned, or to fix one length for the
# whole text. Scaling by a fixed factor, as in step two, has no such trap.
#
# ## What you can do now
#
# You can compute the base for NTK-aware scaling, say why it is not simply the base times the factor, apply it to
# frequencies of unknown base, and let it grow with the text. You know which pairs it leaves with unseen angles, and
# why dynamic NTK must not read
# keys that were turned before they were cached.
#
# - Go on with the labs on [YaRN](yarn.md) and on [what happens beyond the trained length](length_extrapolation.md).
# - Read again: [stretching RoPE](../guide/long-context.md#where-it-breaks) and
#   [RoPE beyond the trained length](../guide/rope.md#where-it-breaks).
# - The tested code, with its checks of what comes in: [`rope_scaling.py`](../reference/rope_scaling.md).
