# %% [markdown]
# # Lab: Find and fix three broken positional encodings
#
# Three functions run without an error. Each has more than one bug, and you find them by measuring.
#
# **Goal.** You fix a sinusoidal encoding, a RoPE and an ALiBi, guided by measurements whose right results you know.
#
# **Time.** About fifty minutes.
#
# **You need.** The formulas of [sinusoidal encoding](../guide/sinusoidal.md), [RoPE](../guide/rope.md) and
# [ALiBi](../guide/bias.md), and the idea of [debugging](../guide/debugging.md): test with inputs whose result you know.
#
# Each step has a broken function, the *suspect*; some *probes*, which are small measurements; and the probes' results
# for a correct function. Edit the suspect and run its cell again, or write the whole function into the starter below
# it. Then run the check. It does not report everything at once: it names the first thing that is still wrong, and how
# to see it.

# %%
import matplotlib.pyplot as plt
import torch

from labs.judge import judge, right_and_wrong
from snippets.alibi import alibi_bias, alibi_slopes
from snippets.diagnostics import shift_invariance_error
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from snippets.sinusoidal import sinusoidal_encoding

_ = torch.manual_seed(0)

# %% [markdown]
# ## Step one: rows of sines and cosines
#
# This function should return the encoding of the paper. For positions $t$, a width $d$, a base $b$ and the pairs
# $p = 0, \dots, d/2 - 1$, whose frequencies are $\omega_p = b^{-2p/d}$:
#
# $$
# PE_{t,\,2p} = \sin(t\,\omega_p), \quad PE_{t,\,2p+1} = \cos(t\,\omega_p)
# $$
#
# Here is the suspect:


# %%
def suspect_rows(positions, dim, base=10000.0):
    """Return sines in even and cosines in odd channels, (positions, dim)."""
    i = torch.arange(dim)
    angles = positions[:, None] / base ** (2 * i / dim)
    rows = angles.sin()
    rows[:, 1::2] = angles[:, 1::2].cos()
    return rows


# %% [markdown]
# A correct encoding has two known properties. Every row has the length $\sqrt{d/2}$, because each pair contributes
# $\sin^2 + \cos^2 = 1$. And the slowest pair rotates by $b^{2/d - 1}$ radians per position: with the usual base and a
# few hundred positions that is little, but every channel changes.


# %%
def probe_rows(rows):
    """Print the shortest and longest row and count constant channels."""
    lengths = rows.norm(dim=-1)
    moved = rows.amax(dim=0) - rows.amin(dim=0)
    at_rest = (moved < 0.001).sum()
    print(f"shortest row      {lengths.min():6.3f}")
    print(f"longest row       {lengths.max():6.3f}")
    print(f"constant channels {at_rest:6d} of {rows.shape[-1]}")


positions = torch.arange(512)
print("the suspect")
probe_rows(suspect_rows(positions, 64))
print("\ncorrect")
probe_rows(sinusoidal_encoding(positions, 64))

# %% alt="Length of each row against the position: a level line for the correct rows, a jagged line for the suspect."
plt.figure(figsize=(4.4, 2.2))
for name, rows, color in (
    ("correct", sinusoidal_encoding(positions, 64), "gray"),
    ("suspect", suspect_rows(positions, 64), "C1"),
):
    plt.plot(rows.norm(dim=-1)[:128], color=color, label=name)
plt.xlabel("position")
plt.ylabel("length of the row")
plt.legend()
plt.show()

# %% [markdown]
# Position zero proves nothing here: all its angles are zero, whatever the frequencies, and the first row is right.


# %% tags=["starter"]
def mended_rows(positions, dim, base=10000.0):
    """Return sines in even and cosines in odd channels, (positions, dim)."""
    return suspect_rows(positions, dim, base)  # unless edited above


# %% tags=["solution"]
def mended_rows(positions, dim, base=10000.0):
    """Return sines in even and cosines in odd channels, (positions, dim)."""
    i = torch.arange(0, dim, 2)
    angles = positions[:, None] / base ** (i / dim)
    rows = torch.zeros(len(positions), dim)
    rows[:, 0::2] = angles.sin()
    rows[:, 1::2] = angles.cos()
    return rows


# %% tags=["judge"]
def check_rows(yours):
    """Compare with the tested encoding, then with typical mistakes."""
    cases = {
        "a text from position zero": (torch.arange(32), 8),
        "positions that begin at forty": (torch.arange(40, 50), 12),
        "another base": (torch.arange(20), 6, 100.0),
        "positions beyond the base": (torch.arange(95, 105), 6, 100.0),
    }
    _, mistakes = right_and_wrong(
        "three_bugs", "mended_rows", globals(), pairs=False
    )
    return judge(yours, sinusoidal_encoding, cases, mistakes)


# %% tags=["check"]
passed = check_rows(mended_rows)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# If rows differ in length: which two numbers must satisfy $\sin^2 + \cos^2 = 1$? Print `angles[1]` for a width of
# eight, and see which angles occur twice.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# The paper writes the exponent as $2i/d$, where $i$ is the index of the pair. In the suspect, `i` is something else.
# Decide what your `i` counts, pairs or even channels, and use the same `i` for sine and cosine.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# The exponents and angles are
#
# ```python
# i = torch.arange(0, dim, 2)  # the even channels: twice the index of the pair
# angles = positions[:, None] / base ** (i / dim)  # (positions, dim/2)
# ```
#
# There is one angle for each pair now. `angles.sin()` fills the channels `0::2`, `angles.cos()` the channels `1::2`.
#
# </details>

# %%
print("yours")
probe_rows(mended_rows(positions, 64))

# %% [markdown]
# ## Step two: a rotation
#
# RoPE rotates a query or a key $x$ at position $t$. This suspect is meant for the *half* layout: channels $p$ and
# $p + d/2$ form pair $p$, a vector $(a, b)$ that rotates by the angle $t\,\omega_p$:
#
# $$
# \begin{aligned}
# a' &= a \cos t\omega_p - b \sin t\omega_p \\
# b' &= a \sin t\omega_p + b \cos t\omega_p
# \end{aligned}
# $$


# %%
def suspect_turn(x, positions, frequencies):
    """Rotate the pairs (p, p + dim/2) of x, (tokens, dim)."""
    angles = positions[:, None] * frequencies  # (tokens, dim/2)
    angles = angles.repeat_interleave(2, dim=-1)  # (tokens, dim)
    a, b = x.chunk(2, dim=-1)
    partner = torch.cat((-b, a), dim=-1)
    return x * angles.sin() + partner * angles.cos()


# %% [markdown]
# A rotation has three known properties. It keeps lengths. At position zero its angle is zero. And for fixed queries and
# keys, scores depend only on the offset: the [shift-invariance error](../guide/debugging.md#build-it) is zero up to
# rounding.

# %%
queries, keys = torch.randn(2, 24, 16, dtype=torch.float64)
frequencies = rope_frequencies(16, base=10000)


def healthy_turn(x, positions, frequencies):
    cos, sin = rope_tables(positions, frequencies, x.dtype)
    return apply_rope(x, cos, sin, "half")


def probe_turn(turn):
    """Print changes of length and at position zero, and the error."""
    places = torch.arange(24)

    def score(i, j):
        return turn(queries, i, frequencies) @ turn(keys, j, frequencies).T

    turned = turn(queries, places, frequencies)
    stretch = (turned.norm(dim=-1) / queries.norm(dim=-1) - 1).abs().max()
    at_zero = (turned[0] - queries[0]).norm() / queries[0].norm()
    error = shift_invariance_error(score, places)
    print(f"largest change of a length  {stretch:8.4f}")
    print(f"change at position zero     {at_zero:8.4f}")
    print(f"shift-invariance error      {error:8.4f}")


print("the suspect")
probe_turn(suspect_turn)
print("\ncorrect")
probe_turn(healthy_turn)


# %% alt="Score against offset for three positions. For the correct rotation, the three curves coincide; for the suspect, they differ."
def draw_scores(turn, axis, title):
    """Draw the score of a query and a key by offset, at three positions."""
    query, key = queries[:1], keys[:1]
    for place, color in ((0, "C0"), (20, "C1"), (50, "C2")):
        here = turn(query, torch.tensor([place]), frequencies)
        offsets = torch.arange(16)
        there = turn(key.expand(16, -1), place + offsets, frequencies)
        axis.plot(offsets, (there @ here.T)[:, 0], color=color)
    axis.set_title(title)
    axis.set_xlabel("offset")


figure, axes = plt.subplots(1, 2, figsize=(4.4, 2.2), sharey=True)
draw_scores(healthy_turn, axes[0], "correct")
draw_scores(suspect_turn, axes[1], "suspect")
axes[0].set_ylabel("score")
plt.show()

# %% [markdown]
# Each colour is the same query and key at a different position in the text. For a correct rotation, the three curves
# coincide.


# %% tags=["starter"]
def mended_turn(x, positions, frequencies):
    """Rotate the pairs (p, p + dim/2) of x, (tokens, dim)."""
    return suspect_turn(x, positions, frequencies)  # change this


# %% tags=["solution"]
def mended_turn(x, positions, frequencies):
    """Rotate the pairs (p, p + dim/2) of x, (tokens, dim)."""
    angles = positions[:, None] * frequencies  # (tokens, dim/2)
    angles = torch.cat((angles, angles), dim=-1)  # (tokens, dim)
    a, b = x.chunk(2, dim=-1)
    partner = torch.cat((-b, a), dim=-1)
    return x * angles.cos() + partner * angles.sin()


# %% tags=["judge"]
def check_turn(yours):
    """Compare with the tested RoPE, then with typical mistakes."""
    made = torch.Generator().manual_seed(1)
    wide = torch.randn(10, 8, generator=made, dtype=torch.float64)
    late = torch.randn(3, 12, generator=made, dtype=torch.float64)
    cases = {
        "ten tokens from position zero": (
            wide,
            torch.arange(10),
            rope_frequencies(8, base=10000),
        ),
        "three tokens in the middle of a text, another base": (
            late,
            torch.arange(70, 73),
            rope_frequencies(12, 100.0),
        ),
    }
    _, mistakes = right_and_wrong(
        "three_bugs", "mended_turn", globals(), pairs=False
    )
    return judge(yours, healthy_turn, cases, mistakes)


# %% tags=["check"]
passed = check_turn(mended_turn)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Begin with the lengths. For a width of eight, print `angles[1]` after the line with `repeat_interleave`, and write
# down which channels `chunk` makes partners. Which two channels share an angle, and which two form a pair?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# At position one, the angles should be $\omega_0, \omega_1, \dots$ and then again $\omega_0, \omega_1, \dots$, because
# channel $p + d/2$ belongs to pair $p$. When lengths are right, look at position zero: is the sine one there, or the
# cosine?
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# Repeat the angles as halves:
#
# ```python
# angles = torch.cat((angles, angles), dim=-1)
# ```
#
# `partner` was right from the start: $(-b, a)$. The factor of `x` must be one at angle zero, and the factor of
# `partner` must be zero.
#
# </details>

# %%
print("yours")
probe_turn(mended_turn)

# %% [markdown]
# Swapped sines and cosines are worth a second look. With them, pairs rotate by $\pi/2 - t\omega$ instead of $t\omega$:
# lengths and relativity are right, although every pair rotates backwards from a wrong starting angle. **A measurement
# that passes excludes only the bugs that it can detect.** Try it: swap `cos` and `sin` in your function, and run the
# probes.

# %% [markdown]
# ## Step three: a bias for distance
#
# ALiBi subtracts from each score an amount for every position between query $i$ and key $j$. For $H$ heads, a power of
# two, head $h = 1, \dots, H$ has the slope $m_h = 2^{-8h/H}$, and the bias is
#
# $$
# b^{(h)}_{ij} = \begin{cases} -m_h\,(i - j) & j \le i \\ -\infty & j > i \end{cases}
# $$
#
# Here is the last suspect. It has three bugs.


# %%
def suspect_bias(query_positions, key_positions, heads):
    """Return the bias for the scaled scores, (heads, queries, keys)."""
    h = torch.arange(heads)
    slopes = 2.0 ** (-8 * h / heads)
    steps = query_positions[:, None] - key_positions
    return slopes[:, None, None] * steps


# %% [markdown]
# Give all keys the same score, so that the bias alone decides. Then a correct bias has these properties: each query of
# the first head attends mostly to nearby keys, no query gives any weight to later keys, and the last head has the slope
# $2^{-8}$, for every power of two. (For other numbers of heads, ALiBi's code uses another rule.)


# %%
def probe_bias(bias):
    """Print weights of the first head, and slopes, for equal scores."""
    made = bias(torch.arange(16), torch.arange(16), 8)
    weights = made[0].softmax(dim=-1)
    slopes = (made[:, 5, 5] - made[:, 5, 4]).abs()
    print(f"last query, weight on itself  {weights[-1, -1]:.4f}")
    print(f"last query, on the first key  {weights[-1, 0]:.4f}")
    print(f"first query, on later keys    {weights[0, 1:].sum():.4f}")
    print(f"slope of the first head       {slopes[0]:.4f}")
    print(f"slope of the last head        {slopes[-1]:.4f}")


def healthy_bias(query_positions, key_positions, heads):
    return alibi_bias(query_positions, key_positions, alibi_slopes(heads))


print("the suspect")
probe_bias(suspect_bias)
print("\ncorrect")
probe_bias(healthy_bias)

# %% alt="Attention weight against the position of the key, two heads. For the correct bias, the weights rise towards the query and are zero after it; for the suspect, they fall."
figure, axes = plt.subplots(1, 2, figsize=(4.4, 2.2), sharey=True)
places = torch.arange(16)
for axis, title, bias in zip(
    axes, ("correct", "suspect"), (healthy_bias, suspect_bias), strict=True
):
    weights = bias(places, places, 8).softmax(dim=-1)
    for head, color in ((0, "C0"), (3, "C1")):
        axis.plot(places, weights[head, 10], ".-", color=color)
    axis.axvline(10, color="gray", linestyle=":")
    axis.set_title(title)
    axis.set_xlabel("key")
axes[0].set_ylabel("attention weight")
plt.show()

# %% [markdown]
# The dotted line is the position of the query. Blue is the first head, orange the fourth.


# %% tags=["starter"]
def mended_bias(query_positions, key_positions, heads):
    """Return the bias for the scaled scores, (heads, queries, keys)."""
    return suspect_bias(query_positions, key_positions, heads)  # change this


# %% tags=["solution"]
def mended_bias(query_positions, key_positions, heads):
    """Return the bias for the scaled scores, (heads, queries, keys)."""
    h = torch.arange(1, heads + 1)
    slopes = 2.0 ** (-8 * h / heads)
    steps = query_positions[:, None] - key_positions
    bias = -slopes[:, None, None] * steps
    return bias.masked_fill(steps < 0, -torch.inf)


# %% tags=["judge"]
def check_bias(yours):
    """Compare with the tested ALiBi, then with typical mistakes."""
    whole = torch.arange(6)
    cases = {
        "a whole text and eight heads": (whole, whole, 8),
        "two heads": (whole, whole, 2),
        "sixteen heads": (whole, whole, 16),
        "as many heads as tokens": (whole[:4], whole[:4], 4),
        "one new query after seven keys": (
            torch.tensor([7]),
            torch.arange(8),
            4,
        ),
    }
    _, mistakes = right_and_wrong(
        "three_bugs", "mended_bias", globals(), pairs=False
    )
    return judge(yours, healthy_bias, cases, mistakes)


# %% tags=["check"]
passed = check_bias(mended_bias)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Print `suspect_bias(torch.arange(4), torch.arange(4), 2)` and read the last row of the first head: the bias must be
# zero at the query itself and negative before it. Then read the first row, in which all keys but one come later.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# There are three bugs in three lines: the first number of `h`, the sign in the last line, and a missing line, which
# hides the keys with `steps < 0`.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# The three lines are
#
# ```python
# h = torch.arange(1, heads + 1)
# bias = -slopes[:, None, None] * steps
# bias = bias.masked_fill(steps < 0, -torch.inf)
# ```
#
# </details>

# %%
print("yours")
probe_bias(mended_bias)

# %% [markdown]
# ## What you can do now
#
# You can test a function by the properties that it must have, before you read its code: lengths, position zero,
# relativity, the weights of a head. And you know that each probe misses some bugs: squared frequencies keep lengths,
# swapped sines keep relativity, and the other layout passes everything but a comparison with known code.
#
# - Checks for a whole model, what each cannot detect, and further mistakes:
#   [debugging](../guide/debugging.md#where-it-breaks).
# - The layouts of RoPE in more detail: [the lab on converting a checkpoint](rope_layouts.md).
# - The chapters: [sinusoidal encoding](../guide/sinusoidal.md#where-it-breaks), [RoPE](../guide/rope.md#build-it),
#   [ALiBi](../guide/bias.md#where-it-breaks).
# - Code to copy: [sinusoidal](../reference/sinusoidal.md), [rope](../reference/rope.md),
#   [alibi](../reference/alibi.md), [diagnostics](../reference/diagnostics.md).
