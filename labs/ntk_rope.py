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

from labs.judge import judge, right_and_wrong
from snippets.rope import apply_rope, rope_frequencies, rope_tables

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
    """Compare with the solution, then with what often goes wrong."""
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
def check_ntk_aware(yours):
    """Compare with the solution, then with what often goes wrong."""
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
    """Compare with the solution, then with what often goes wrong."""
    few, many = rope_frequencies(8, 500_000.0), rope_frequencies(64, BASE)
    cases = {
        "a text shorter than the training": (few, 4, 4096, 1024),
        "one of the trained length": (many, 2, 4096, 4096),
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
    cos, sin = rope_tables(torch.tensor([position]), used)
    return apply_rope(x, cos, sin, "half")


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
