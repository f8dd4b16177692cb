# %% [markdown]
# # Lab: Three broken encodings
#
# Three functions run without an error. Each is wrong in more than one way, and you find out in which.
#
# **Goal.** Mend a sinusoidal encoding, a RoPE and an ALiBi, led by measurements whose right answers you know.
#
# **Time.** About fifty minutes.
#
# **You need.** The formulas of [sinusoidal encoding](../guide/sinusoidal.md), [RoPE](../guide/rope.md) and
# [ALiBi](../guide/bias.md), and the idea of [debugging](../guide/debugging.md): ask what you know the answer to.
#
# Each step has a *suspect*, some *probes* (small measurements), and what they say to a healthy function. Mend the
# suspect where it stands and run its cell again, or write the whole function into the starter below it. Then run the
# check. It does not tell you everything at once: it names the first thing that is still wrong, and how to see it.

# %%
import matplotlib.pyplot as plt
import torch

from labs.judge import judge, right_and_wrong
from snippets.alibi import alibi_bias, alibi_slopes
from snippets.diagnostics import relativity_error
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
    """Sines in even channels, cosines in odd ones: (positions, dim)."""
    i = torch.arange(dim)
    angles = positions[:, None] / base ** (2 * i / dim)
    rows = angles.sin()
    rows[:, 1::2] = angles[:, 1::2].cos()
    return rows


# %% [markdown]
# Two things you know of a healthy one. Every row has the length $\sqrt{d/2}$, since each pair adds
# $\sin^2 + \cos^2 = 1$. And the slowest pair turns by $b^{2/d - 1}$ radians a step: with the usual base and a few
# hundred positions, that is little, but every channel moves.


# %%
def probe_rows(rows):
    """Shortest row, longest row, and the number of channels at rest."""
    lengths = rows.norm(dim=-1)
    moved = rows.amax(dim=0) - rows.amin(dim=0)
    at_rest = (moved < 0.001).sum()
    print(f"shortest row      {lengths.min():6.3f}")
    print(f"longest row       {lengths.max():6.3f}")
    print(f"channels at rest  {at_rest:6d} of {rows.shape[-1]}")


positions = torch.arange(512)
print("the suspect")
probe_rows(suspect_rows(positions, 64))
print("\nhealthy")
probe_rows(sinusoidal_encoding(positions, 64))

# %% alt="Length of each row over the position: a level line for the healthy rows, a ragged line for the suspect's."
plt.figure(figsize=(4.4, 2.2))
for name, rows, color in (
    ("healthy", sinusoidal_encoding(positions, 64), "gray"),
    ("suspect", suspect_rows(positions, 64), "C1"),
):
    plt.plot(rows.norm(dim=-1)[:128], color=color, label=name)
plt.xlabel("position")
plt.ylabel("length of the row")
plt.legend()
plt.show()

# %% [markdown]
# Position zero proves nothing here: all angles are zero there, whatever the frequencies, and the first row is right.


# %% tags=["starter"]
def mended_rows(positions, dim, base=10000.0):
    """Sines in even channels, cosines in odd ones: (positions, dim)."""
    return suspect_rows(positions, dim, base)  # yours, if not mended above


# %% tags=["solution"]
def mended_rows(positions, dim, base=10000.0):
    """Sines in even channels, cosines in odd ones: (positions, dim)."""
    i = torch.arange(0, dim, 2)
    angles = positions[:, None] / base ** (i / dim)
    rows = torch.zeros(len(positions), dim)
    rows[:, 0::2] = angles.sin()
    rows[:, 1::2] = angles.cos()
    return rows


# %% tags=["judge"]
def check_rows(yours):
    """Compare with the guide's own encoding, then with what goes wrong."""
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
# Rows of unequal length: which two numbers have to make $\sin^2 + \cos^2$? Print `angles[1]` for a width of eight, and
# see which angles come twice.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# The paper writes the exponent as $2i/d$ and means by $i$ the number of the pair. In the suspect, `i` is something else. Decide
# what your `i` counts, pairs or even channels, and use the same for sine and cosine.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# ```python
# i = torch.arange(0, dim, 2)  # the even channels: twice the pair's number
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
# RoPE turns a query or a key $x$ at position $t$. This suspect is meant for the *half* layout: channels $p$ and
# $p + d/2$ make pair $p$, an arrow $(a, b)$ that turns by the angle $t\,\omega_p$:
#
# $$
# \begin{aligned}
# a' &= a \cos t\omega_p - b \sin t\omega_p \\
# b' &= a \sin t\omega_p + b \cos t\omega_p
# \end{aligned}
# $$


# %%
def suspect_turn(x, positions, frequencies):
    """Turn the pairs (p, p + dim/2) of x: (tokens, dim), like x."""
    angles = positions[:, None] * frequencies  # (tokens, dim/2)
    angles = angles.repeat_interleave(2, dim=-1)  # (tokens, dim)
    a, b = x.chunk(2, dim=-1)
    partner = torch.cat((-b, a), dim=-1)
    return x * angles.sin() + partner * angles.cos()


# %% [markdown]
# Three things that you know of a rotation. It keeps lengths. At position zero it turns by nothing. And for given
# queries and keys, scores know the offset alone: the
# [relativity error](../guide/debugging.md#build-it) is zero up to rounding.

# %%
queries, keys = torch.randn(2, 24, 16, dtype=torch.float64)
frequencies = rope_frequencies(16, base=10000)


def healthy_turn(x, positions, frequencies):
    cos, sin = rope_tables(positions, frequencies, x.dtype)
    return apply_rope(x, cos, sin, "half")


def probe_turn(turn):
    """Change of length, change at position zero, relativity error."""
    places = torch.arange(24)

    def score(i, j):
        return turn(queries, i, frequencies) @ turn(keys, j, frequencies).T

    turned = turn(queries, places, frequencies)
    stretch = (turned.norm(dim=-1) / queries.norm(dim=-1) - 1).abs().max()
    at_zero = (turned[0] - queries[0]).norm() / queries[0].norm()
    relativity = relativity_error(score, places)
    print(f"largest change of a length  {stretch:8.4f}")
    print(f"change at position zero     {at_zero:8.4f}")
    print(f"relativity error            {relativity:8.4f}")


print("the suspect")
probe_turn(suspect_turn)
print("\nhealthy")
probe_turn(healthy_turn)


# %% alt="Score over the offset for three places of the text. Healthy, the three curves are one; the suspect's differ."
def draw_scores(turn, axis, title):
    """One query and one key: their score at each offset, at three places."""
    query, key = queries[:1], keys[:1]
    for place, color in ((0, "C0"), (20, "C1"), (50, "C2")):
        here = turn(query, torch.tensor([place]), frequencies)
        offsets = torch.arange(16)
        there = turn(key.expand(16, -1), place + offsets, frequencies)
        axis.plot(offsets, (there @ here.T)[:, 0], color=color)
    axis.set_title(title)
    axis.set_xlabel("offset")


figure, axes = plt.subplots(1, 2, figsize=(4.4, 2.2), sharey=True)
draw_scores(healthy_turn, axes[0], "healthy")
draw_scores(suspect_turn, axes[1], "suspect")
axes[0].set_ylabel("score")
plt.show()

# %% [markdown]
# Each colour is the same query and key at another place of the text. Healthy, the three curves lie on one another.


# %% tags=["starter"]
def mended_turn(x, positions, frequencies):
    """Turn the pairs (p, p + dim/2) of x: (tokens, dim), like x."""
    return suspect_turn(x, positions, frequencies)  # yours, as before


# %% tags=["solution"]
def mended_turn(x, positions, frequencies):
    """Turn the pairs (p, p + dim/2) of x: (tokens, dim), like x."""
    angles = positions[:, None] * frequencies  # (tokens, dim/2)
    angles = torch.cat((angles, angles), dim=-1)  # (tokens, dim)
    a, b = x.chunk(2, dim=-1)
    partner = torch.cat((-b, a), dim=-1)
    return x * angles.cos() + partner * angles.sin()


# %% tags=["judge"]
def check_turn(yours):
    """Compare with the guide's own RoPE, then with what goes wrong."""
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
# down which channel `chunk` makes the partner of which. Which two channels share an angle, and which two a pair?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# At position one, the angles should read $\omega_0, \omega_1, \dots$ and then once more from $\omega_0$ on, since
# channel $p + d/2$ belongs to pair $p$. When lengths are right, look at position zero: is the sine one there, or the
# cosine?
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# ```python
# angles = torch.cat((angles, angles), dim=-1)
# ```
#
# `partner` was right all along: $(-b, a)$. What multiplies `x` has to be one at angle zero, and what multiplies
# `partner` has to be zero.
#
# </details>

# %%
print("yours")
probe_turn(mended_turn)

# %% [markdown]
# Swapped sines and cosines are worth a second look. With them, pairs turn by $\pi/2 - t\omega$ in place of
# $t\omega$: lengths stay, and so does relativity, although everything turns backwards from a wrong start. **A
# measurement that passes excludes only the faults that it can see.** Try it: swap `cos` and `sin` in your function,
# and run the probes.

# %% [markdown]
# ## Step three: a penalty on distance
#
# ALiBi takes something off each score for every step between query $i$ and key $j$. For $H$ heads, a power of two, head
# $h = 1, \dots, H$ has the slope $m_h = 2^{-8h/H}$, and the bias is
#
# $$
# b^{(h)}_{ij} = \begin{cases} -m_h\,(i - j) & j \le i \\ -\infty & j > i \end{cases}
# $$
#
# Here is the last suspect. It has three faults.


# %%
def suspect_bias(query_positions, key_positions, heads):
    """What joins the scaled scores: (heads, queries, keys)."""
    h = torch.arange(heads)
    slopes = 2.0 ** (-8 * h / heads)
    steps = query_positions[:, None] - key_positions
    return slopes[:, None, None] * steps


# %% [markdown]
# Give all keys the same score, so that the bias alone decides. Then each query of the first head looks nearby, no
# query gives any weight to what comes later, and the last head has the slope
# $2^{-8}$, for every power of two. (For other numbers of heads ALiBi's code has another rule.)


# %%
def probe_bias(bias):
    """Weights of the first head, and the slopes, for equal scores."""
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
print("\nhealthy")
probe_bias(healthy_bias)

# %% alt="Weight over the key's position, two heads. Healthy ones rise towards the query and are zero after it; the suspect's fall."
figure, axes = plt.subplots(1, 2, figsize=(4.4, 2.2), sharey=True)
places = torch.arange(16)
for axis, title, bias in zip(
    axes, ("healthy", "suspect"), (healthy_bias, suspect_bias), strict=True
):
    weights = bias(places, places, 8).softmax(dim=-1)
    for head, color in ((0, "C0"), (3, "C1")):
        axis.plot(places, weights[head, 10], ".-", color=color)
    axis.axvline(10, color="gray", linestyle=":")
    axis.set_title(title)
    axis.set_xlabel("key")
axes[0].set_ylabel("weight")
plt.show()

# %% [markdown]
# The dotted line is where the query stands. Blue is the first head, orange the fourth.


# %% tags=["starter"]
def mended_bias(query_positions, key_positions, heads):
    """What joins the scaled scores: (heads, queries, keys)."""
    return suspect_bias(query_positions, key_positions, heads)  # yours


# %% tags=["solution"]
def mended_bias(query_positions, key_positions, heads):
    """What joins the scaled scores: (heads, queries, keys)."""
    h = torch.arange(1, heads + 1)
    slopes = 2.0 ** (-8 * h / heads)
    steps = query_positions[:, None] - key_positions
    bias = -slopes[:, None, None] * steps
    return bias.masked_fill(steps < 0, -torch.inf)


# %% tags=["judge"]
def check_bias(yours):
    """Compare with the guide's own ALiBi, then with what goes wrong."""
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
# Print `suspect_bias(torch.arange(4), torch.arange(4), 2)` and read the last row of the first head: a penalty is
# zero at the query itself and negative before it. Then read the first row, all of whose keys but one come later.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# Three places, three faults: the first number of `h`, the sign in the last line, and a line that is missing, which
# hides the keys with `steps < 0`.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
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
# You can put a function on trial by what it must do, before you read its code: lengths, position zero, relativity,
# the weights of a head. And you know that each probe is blind to something: squared frequencies keep lengths, swapped
# sines keep relativity, and the other layout passes everything but a comparison with known code.
#
# - Checks for a whole model, what each cannot see, and further mistakes:
#   [debugging](../guide/debugging.md#where-it-breaks).
# - The layouts of RoPE, at length: [the lab on converting a checkpoint](rope_layouts.md).
# - The chapters: [sinusoidal encoding](../guide/sinusoidal.md#where-it-breaks), [RoPE](../guide/rope.md#build-it),
#   [ALiBi](../guide/bias.md#where-it-breaks).
# - Code to copy: [sinusoidal](../reference/sinusoidal.md), [rope](../reference/rope.md),
#   [alibi](../reference/alibi.md), [diagnostics](../reference/diagnostics.md).
