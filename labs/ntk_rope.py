# %% [markdown]
# # Lab: Implement NTK-aware RoPE scaling
#
# NTK-aware scaling prepares a RoPE model for longer texts by changing one number, the base of its frequencies.
#
# **Goal.** You derive the new base from two requirements, make the same change pair by pair without knowing the base,
# and let the change grow with the length of the text.
#
# **Time.** About fifty minutes.
#
# **You need.** [RoPE](../guide/rope.md) and [context extension](../guide/long-context.md), both up to the Intermediate
# level, powers and their rules, and some PyTorch.

# %%
import math

import matplotlib.pyplot as plt
import torch

from labs.judge import judge, right_and_wrong
from snippets.rope import apply_rope, rope_frequencies, rope_tables

_ = torch.manual_seed(0)
DIM, BASE = 128, 10_000.0  # channels of a head, base of the frequencies
TRAINED = 4096  # the training length, in tokens
FACTOR = 8  # how many times longer the texts will be

# %% [markdown]
# ## The price of position interpolation
#
# Pair $p$ of a head with $d$ channels rotates by $w_p = b^{-2p/d}$ radians per position, where $b$ is the base. Within
# the training length, the fastest pairs complete many rotations. The slowest pairs do not complete one:

# %%
frequencies = rope_frequencies(DIM, BASE)
print("pair   rotations in training")
for pair in (0, 16, 32, 48, 63):
    turns = TRAINED * frequencies[pair] / (2 * math.pi)
    print(f"{pair:>4}   {turns:>21.2f}")

# %% [markdown]
# A longer text takes the slow pairs to angles that did not occur in training. *Position interpolation* divides every
# $w_p$ by the factor $s$ and so brings these pairs back into the range of training. Its price is at the other end: the
# fastest pair, which distinguishes neighbouring tokens, now rotates by $1/s$ of the angle from one token to the next.

# %%
step = math.degrees(frequencies[0])
print(f"fastest pair, from one token to the next: {step:.1f}°")
print(f"with position interpolation:              {step / FACTOR:.1f}°")

# %% [markdown]
# ## Step one: the new base
#
# *NTK-aware* scaling meets two requirements instead:
#
# - the frequency of the fastest pair, $p = 0$, does not change;
# - the frequency of the slowest pair, $p = d/2 - 1$, is divided by exactly $s$.
#
# A new base can meet both. Which one? Look at $w_p = b^{-2p/d}$ for the first and for the last pair.


# %% tags=["starter"]
def ntk_base(base, dim, factor):
    """Return the base that slows the slowest of dim/2 pairs by factor.

    base    the base of the trained model
    dim     the number of rotated channels, two for each pair
    factor  how many times longer the texts will be
    """
    return base  # change this


# %% tags=["solution"]
def ntk_base(base, dim, factor):
    """Return the base that slows the slowest of dim/2 pairs by factor.

    base    the base of the trained model
    dim     the number of rotated channels, two for each pair
    factor  how many times longer the texts will be
    """
    return base * factor ** (dim / (dim - 2))


# %% tags=["judge"]
def check_ntk_base(yours):
    """Compare with the solution, then with typical mistakes."""
    cases = {
        "a head of 128 channels": (10_000.0, 128, 8),
        "a head of 64 channels": (500_000.0, 64, 4),
        "a head of 8 channels": (100.0, 8, 2.5),
    }
    right, mistakes = right_and_wrong("ntk_rope", "ntk_base", globals())
    return judge(yours, right, cases, mistakes, tolerance=1e-6)


# %% tags=["check"]
passed = check_ntk_base(ntk_base)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Every base meets the first requirement: for $p = 0$ the exponent is zero, and the frequency is one. So look at the
# last pair alone. What is its exponent, $-2p/d$?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# The last pair is $p = d/2 - 1$, so $2p = d - 2$. Call the new base $b'$. The second requirement is
#
# $$b'^{-(d-2)/d} = \frac{b^{-(d-2)/d}}{s}$$
#
# Solve it for $b'$: raise both sides to the power that leaves $b'$ alone.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# That power is $-d/(d-2)$. On the right it turns $b^{-(d-2)/d}$ back into $b$, and $1/s$ into $s^{d/(d-2)}$. In Python
# a power is written `**`, and its exponent needs parentheses.
#
# </details>

# %%
new_base = ntk_base(BASE, DIM, FACTOR)
slowed_by = frequencies / rope_frequencies(DIM, new_base)
print(f"the base changes from {BASE:,.0f} to {new_base:,.0f}")
print(f"fastest pair slowed by {slowed_by[0]:.4f}")
print(f"slowest pair slowed by {slowed_by[-1]:.4f}")

# %% [markdown]
# ## Step two: pair by pair
#
# Code that scales a model often has only the frequencies, not the base that they were computed from. The base is not
# needed. By which factor does the new base slow each pair, written only with $p$, $s$ and the number of pairs
# $P = d/2$?
#
# The function takes and returns frequencies as a tensor of shape `(pairs,)`, fastest first.


# %% tags=["starter"]
def ntk_aware(frequencies, factor):
    """Slow the slowest pair by factor and the fastest not at all, (pairs,).

    frequencies  (pairs,), in radians per position, the fastest first,
                 float64 like the result
    """
    return frequencies  # change this


# %% tags=["solution"]
def ntk_aware(frequencies, factor):
    """Slow the slowest pair by factor and the fastest not at all, (pairs,).

    frequencies  (pairs,), in radians per position, the fastest first,
                 float64 like the result
    """
    pairs = len(frequencies)
    share = torch.arange(pairs) / (pairs - 1)  # from 0 to 1
    return frequencies * factor**-share


# %% tags=["judge"]
def check_ntk_aware(yours):
    """Compare with the solution, then with typical mistakes."""
    cases = {
        "a head of 8 channels": (rope_frequencies(8, BASE), 4),
        "a head of 64 channels": (rope_frequencies(64, 500_000.0), 8),
        "a head of two pairs": (rope_frequencies(4, BASE), 2.5),
    }
    right, mistakes = right_and_wrong("ntk_rope", "ntk_aware", globals())
    return judge(yours, right, cases, mistakes, tolerance=1e-6)


# %% tags=["check"]
passed = check_ntk_aware(ntk_aware)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# The first pair is slowed by $1 = s^0$, the last by $s = s^1$. What is the exponent between them?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# The new frequency divided by the old one is $(b'/b)^{-2p/d}$, and from step one $b'/b = s^{d/(d-2)}$. Multiply the
# exponents: $d$ cancels, and with $d - 2 = 2(P - 1)$ the result is $s^{-p/(P-1)}$.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# Create all $p$ at once with `torch.arange(len(frequencies))` and divide by the number of pairs minus one: this gives a
# `share` from zero to one. Then multiply the frequencies by `factor**-share`.
#
# </details>

# %%
again = rope_frequencies(DIM, ntk_base(BASE, DIM, FACTOR))
apart = (ntk_aware(frequencies, FACTOR) / again - 1).abs().max()
print(f"step one and step two differ by {apart:.0e} at most")

# %% [markdown]
# Both ways give the same frequencies. The figure shows by how much each pair is slowed: the first pair not at all, and
# only the last pair by the full factor.

# %% alt="Factor by which each pair is slowed. Position interpolation slows all pairs by the same factor, a level line. NTK-aware scaling rises from one at the first pair to that line at the last."
slowed_by = frequencies / ntk_aware(frequencies, FACTOR)
fig, ax = plt.subplots(figsize=(4.4, 2.6), layout="constrained")
ax.axhline(FACTOR, color="C1", linestyle="--", label="interpolation")
ax.semilogy(slowed_by, color="C0", label="NTK-aware")
ax.set_yticks([1, 2, 4, 8], ["1", "2", "4", "8"])
ax.minorticks_off()
ax.set_xlabel("pair, fastest first")
ax.set_ylabel("slowed by a factor of")
ax.legend()
plt.show()

# %% [markdown]
# **What it does not do.** A pair that does not complete a rotation in training has covered only a part of the circle.
# Count the pairs that leave this part in a text that is `FACTOR` times as long:


# %%
def asked_for_new(used):
    """Count the pairs that reach angles outside those of training."""
    seen = (TRAINED * frequencies / (2 * math.pi)).clamp(max=1)
    asked = (FACTOR * TRAINED * used / (2 * math.pi)).clamp(max=1)
    return (asked > seen * (1 + 1e-6)).sum()


print(f"unchanged      {asked_for_new(frequencies):>3} of {DIM // 2} pairs")
print(f"interpolation  {asked_for_new(frequencies / FACTOR):>3}")
print(f"NTK-aware      {asked_for_new(ntk_aware(frequencies, FACTOR)):>3}")

# %% [markdown]
# Every slow pair but the slowest is slowed by less than $s$, so that it still reaches new angles at full length. The
# [YaRN paper](../bibliography.md#peng2024), section 3.1, names this as the reason why $s$ has to be set higher than the
# desired extension factor. Fixing it pair by pair leads to [YaRN](yarn.md).
#
# ## Step three: a factor that grows with the text
#
# A fixed factor changes short texts, too. *Dynamic NTK* uses the current length $T$ of the text and the training length
# $L$. Up to $L$ nothing changes. Beyond it, the released code slows the slowest pair by
#
# $$s\,\frac{T}{L} - (s - 1)$$
#
# and the other pairs as in step two. Write it; you may call your `ntk_aware`.


# %% tags=["starter"]
def dynamic_ntk(frequencies, factor, trained, length):
    """Scale NTK-aware by a factor that grows with the text, (pairs,).

    frequencies  (pairs,), in radians per position, the fastest first,
                 float64 like the result
    factor       s in the formula
    trained      the training length in tokens, L
    length       the current length of the text in tokens, T
    """
    return ntk_aware(frequencies, factor)  # change this


# %% tags=["solution"]
def dynamic_ntk(frequencies, factor, trained, length):
    """Scale NTK-aware by a factor that grows with the text, (pairs,).

    frequencies  (pairs,), in radians per position, the fastest first,
                 float64 like the result
    factor       s in the formula
    trained      the training length in tokens, L
    length       the current length of the text in tokens, T
    """
    length = max(length, trained)
    now = factor * length / trained - (factor - 1)
    return ntk_aware(frequencies, now)


# %% tags=["judge"]
def check_dynamic_ntk(yours):
    """Compare with the solution, then with typical mistakes."""
    few, many = rope_frequencies(8, 500_000.0), rope_frequencies(64, BASE)
    cases = {
        "a text shorter than in training": (few, 4, 4096, 1024),
        "one of the training length": (many, 2, 4096, 4096),
        "one a little longer": (few, 4, 4096, 5000),
        "one somewhat longer": (few, 4, 4096, 10_240),
        "one eight times as long": (many, 2.5, 2048, 16_384),
    }
    right, mistakes = right_and_wrong("ntk_rope", "dynamic_ntk", globals())
    return judge(yours, right, cases, mistakes, tolerance=1e-6)


# %% tags=["check"]
passed = check_dynamic_ntk(dynamic_ntk)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# What is the value of the formula at $T = L$? And what would it be for a text shorter than $L$?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# At $T = L$ it is one, and step two with factor one changes nothing. Below $L$ it would be less than one. So treat
# every shorter text as if it had the training length.
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
# **A trap.** During generation, a model keeps its rotated keys in a cache. With dynamic NTK, each new token beyond the
# training length changes the frequencies, so that a cached key was rotated with the frequencies of an earlier length.
# The table shows the scores of the last token with four keys. Left: all keys are rotated with the frequencies for the
# current length. Right: each key is rotated with the frequencies for the length at which it was added.

# %%
query, key = torch.randn(2, 1, DIM)
now = 2 * TRAINED


def turned(x, position, length):
    used = dynamic_ntk(frequencies, 2, TRAINED, length)
    cos, sin = rope_tables(torch.tensor([position]), used)
    return apply_rope(x, cos, sin, "half")


print("key at   current length   length when added")
for position in (8000, 7000, 6000, 4000):
    at = turned(query, now - 1, now) / math.sqrt(DIM)
    fresh = (at * turned(key, position, now)).sum()
    stale = (at * turned(key, position, position + 1)).sum()
    print(f"{position:>6}   {fresh:>14.2f}   {stale:>17.2f}")

# %% [markdown]
# The columns should agree and do not. To fix this, cache keys before they are rotated, or use one fixed length for the
# whole text. Scaling by a fixed factor, as in step two, does not have this problem.
#
# ## What you can do now
#
# You can compute the base for NTK-aware scaling, explain why it is not simply the base times the factor, scale
# frequencies whose base is unknown, and let the factor grow with the text. You know which pairs still reach unseen
# angles, and why dynamic NTK must not use keys that were rotated before they were cached.
#
# - Go on with the labs on [YaRN](yarn.md) and on [RoPE beyond its training length](length_extrapolation.md).
# - Read again: [context extension](../guide/long-context.md#where-it-breaks) and [RoPE beyond its training
#   length](../guide/rope.md#where-it-breaks).
# - The tested code, with its input checks: [`rope_scaling.py`](../reference/rope_scaling.md).
