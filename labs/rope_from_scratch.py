# %% [markdown]
# # Lab: RoPE from scratch
#
# RoPE (rotary position embedding) rotates queries and keys by angles proportional to their positions. You write all of
# it, in six short functions, and each check names your mistake.
#
# **Goal.** You write the frequencies, the rotation of one pair and of all pairs, and the scores, which depend only on
# the offset. Then you convert weights to the other channel layout, and continue a text with a key-value cache.
#
# **Time.** About fifty minutes.
#
# **You need.** [RoPE](../guide/rope.md), its Basic level, and tensors in torch.

# %%
import torch

from labs.judge import judge, right_and_wrong
from snippets.rope import (
    apply_rope,
    interleaved_to_half,
    rope_frequencies,
    rope_tables,
)

_ = torch.manual_seed(0)

# %% [markdown]
# ## Step one: the frequency of each pair
#
# RoPE takes the $d$ channels of a query or key in pairs $p = 0, \dots, d/2 - 1$. From each position to the next, pair
# $p$ rotates by the same angle, in radians, which is its **frequency**: $\omega_p = b^{-2p/d}$, with a base $b$ that is
# $10000$ in the paper. Return one frequency for each pair, in float64.


# %% tags=["starter"]
def compute_frequencies(dim, base=10000.0):
    """Return the frequency of each pair, (dim/2,), float64."""
    return torch.ones(dim // 2, dtype=torch.float64)  # change this


# %% tags=["solution"]
def compute_frequencies(dim, base=10000.0):
    """Return the frequency of each pair, (dim/2,), float64."""
    pair = torch.arange(dim // 2, dtype=torch.float64)
    return base ** (-2 * pair / dim)


# %% tags=["judge"]
def check(step, yours, cases, right=None):
    """Compare with the right function, then with typical mistakes."""
    own, mistakes = right_and_wrong("rope_from_scratch", step, globals())
    return judge(yours, right or own, cases, mistakes)


def check_frequencies(yours):
    """Compare with the tested file, for several widths and bases."""
    cases = {
        "eight channels": (8, 10000.0),
        "six channels and another base": (6, 500.0),
    }
    return check("compute_frequencies", yours, cases, rope_frequencies)


# %% tags=["check"]
passed = check_frequencies(compute_frequencies)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# `torch.arange(dim // 2, dtype=torch.float64)` is $p$. The two in the exponent belongs to $p$: count pairs, not
# channels.
#
# </details>

# %% [markdown]
# ## Step two: rotate one pair
#
# A pair of channels is an arrow $(x, y)$ in the plane. Rotated counterclockwise by an angle $a$, it becomes
# $(x \cos a - y \sin a,\; x \sin a + y \cos a)$. All arguments are tensors, and the angle is in radians.


# %% tags=["starter"]
def rotate_pair(x, y, angle):
    """Return both numbers of the arrow (x, y) after the rotation."""
    return x, y  # change this


# %% tags=["solution"]
def rotate_pair(x, y, angle):
    """Return both numbers of the arrow (x, y) after the rotation."""
    cos, sin = angle.cos(), angle.sin()
    return x * cos - y * sin, x * sin + y * cos


# %% tags=["judge"]
def check_pair(yours):
    """Test one arrow and a table of arrows."""
    one, zero = torch.tensor([1.0, 0.0]).double()
    cases = {
        "the arrow (1, 0) and one radian": (one, zero, one),
        "six arrows and angles": tuple(torch.randn(3, 2, 3).double()),
    }
    return check("rotate_pair", yours, cases)


# %% tags=["check"]
passed = check_pair(rotate_pair)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Each of the two new numbers needs both old ones. So compute both before you give a new value to `x` or `y`.
#
# </details>

# %%
x, y, angle = torch.tensor([1.0, 0.0, 1.0])
for step in range(4):
    print(f"rotations: {step}    arrow: ({x:5.2f}, {y:5.2f})")
    x, y = rotate_pair(x, y, angle)

# %% [markdown]
# ## Step three: rotate all pairs
#
# In the **interleaved** layout, that of the paper, pair $p$ consists of channels $2p$ and $2p + 1$. At position $m$, it
# rotates by the angle $m\,\omega_p$. So you need a table of angles, `(tokens, dim/2)`, whose cosines and sines rotate
# all pairs at once. Put each rotated number back into its own channel. Compute the angles in float32 or float64,
# because half precision has too few digits, and return the dtype of `x`.


# %% tags=["starter"]
def rotate(x, positions, base=10000.0):
    """Rotate x, (..., tokens, dim), by positions, (tokens,)."""
    return x  # change this


# %% tags=["solution"]
def rotate(x, positions, base=10000.0):
    """Rotate x, (..., tokens, dim), by positions, (tokens,)."""
    angles = positions[:, None] * compute_frequencies(x.shape[-1], base)
    first, second = x[..., 0::2], x[..., 1::2]
    turned = rotate_pair(first, second, angles)
    return torch.stack(turned, dim=-1).flatten(-2).to(x.dtype)


# %% tags=["judge"]
def check_rotate(yours):
    """Compare with the tested file, in and out of order, and far out."""

    def right(x, positions, base=10000.0):
        tables = rope_tables(positions, rope_frequencies(x.shape[-1], base))
        return apply_rope(x, *tables, "interleaved")

    x, heads, four = torch.randn(4, 8), torch.randn(2, 3, 6), torch.arange(4)
    cases = {
        "four tokens": (x, four),
        "two heads, out of order": (heads, torch.tensor([9, 2, 5])),
        "another base": (x, four, 100.0),
        "positions beyond one thousand": (x, four + 1001),
    }
    return check("rotate", yours, cases, right)


# %% tags=["check"]
passed = check_rotate(rotate)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# A column times a row gives a table: `positions[:, None] * compute_frequencies(...)`. The first channels of all pairs
# are `x[..., 0::2]`, and `rotate_pair` accepts all of them at once.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# `torch.stack((first, second), dim=-1)` has the shape `(..., dim/2, 2)`. Then `flatten(-2)` puts the two numbers of each
# pair next to each other.
#
# </details>

# %% [markdown]
# ## Step four: scores depend only on the offset
#
# A score is the dot product of a rotated query and a rotated key. Return it for each query (row) and each key (column),
# without a scale.


# %% tags=["starter"]
def compute_scores(q, k, q_positions, k_positions):
    """Return the scores after rotation, (queries, keys)."""
    return q @ k.T  # change this


# %% tags=["solution"]
def compute_scores(q, k, q_positions, k_positions):
    """Return the scores after rotation, (queries, keys)."""
    return rotate(q, q_positions) @ rotate(k, k_positions).T


# %% tags=["judge"]
def check_scores(yours):
    """Test two offsets near the start and far from it."""
    q, k = torch.randn(2, 8), torch.randn(3, 8)
    at, of = torch.tensor([4, 7]), torch.tensor([5, 3, 9])
    cases = {
        "two queries and three keys": (q, k, at, of),
        "a hundred positions later": (q, k, at + 100, of + 100),
    }
    return check("compute_scores", yours, cases)


# %% tags=["check"]
passed = check_scores(compute_scores)

# %%
q, k = torch.randn(2, 1, 8)
for m, n in [(5, 3), (105, 103), (1005, 1003), (3, 5)]:
    score = compute_scores(q, k, torch.tensor([m]), torch.tensor([n]))
    print(f"query at {m:4}, key at {n:4}: {score.item():7.4f}")

# %% [markdown]
# In the first three rows, the offset is the same, and so is the score. In the last row, the key comes after the query,
# and the score is different: RoPE distinguishes the two directions.
#
# ## Step five: convert weights to the other layout
#
# The **half** layout pairs channel $p$ with channel $p + d/2$. Llama in transformers uses it, with a function
# `rotate_half`. A channel of a query is a row of the weight of its projection, so the rows of a checkpoint are in one of
# the two layouts. Code for the other layout pairs the wrong rows, and raises no error. Reorder the rows of one head, so
# that interleaved weights work with code for the half layout.


# %% tags=["starter"]
def to_half(weight):
    """Reorder the rows of an interleaved projection, (dim, width)."""
    return weight  # change this


# %% tags=["solution"]
def to_half(weight):
    """Reorder the rows of an interleaved projection, (dim, width)."""
    return torch.cat((weight[0::2], weight[1::2]))


# %% tags=["judge"]
def check_to_half(yours):
    """Compare with the tested file; no two numbers are equal."""
    cases = {
        "six rows of six": (torch.arange(36.0).reshape(6, 6),),
        "eight rows of three": (torch.arange(24.0).reshape(8, 3),),
    }
    return check(
        "to_half", yours, cases, lambda weight: interleaved_to_half(weight, 1)
    )


# %% tags=["check"]
passed = check_to_half(to_half)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# With six rows, the pairs are `0 1`, `2 3`, `4 5`. The half layout pairs row `0` of the result with row `3`, and `1` with
# `4`. So the new order is `0 2 4 1 3 5`.
#
# </details>

# %%
text, positions = torch.randn(6, 32), torch.arange(6)
weights = torch.randn(2, 8, 32) / 32**0.5  # of queries and of keys
tables = rope_tables(positions, rope_frequencies(8, base=10000.0))


def compute_half_scores(weights):
    """Return the scores that code for the half layout computes."""
    q, k = (apply_rope(text @ each.T, *tables, "half") for each in weights)
    return q @ k.T


q, k = text @ weights.mT
trained = compute_scores(q, k, positions, positions)
wrong = compute_half_scores(weights) - trained
converted = compute_half_scores(map(to_half, weights)) - trained
print(f"largest change, wrong layout {wrong.abs().max():.1e}")
print(f"largest change, converted    {converted.abs().max():.1e}")

# %% [markdown]
# ## Step six: continue with a key-value cache
#
# A decoder stores the keys and values of earlier tokens. Since the angle of a key depends only on its own position, keys
# are stored **rotated**, and never rotated again. Positions of new tokens continue from the length of the cache. The
# function gets unrotated `q`, `k`, `v` of the new tokens, `(tokens, dim)`, and the cache `(keys, values)`. Return the
# output of `attend`, which is given, and the new cache.


# %%
def attend(q, k, v):
    """Return the causal attention of the last len(q) of len(k) tokens."""
    later = torch.ones(len(q), len(k)).triu(len(k) - len(q) + 1).bool()
    scores = (q @ k.T / q.shape[-1] ** 0.5).masked_fill(later, -torch.inf)
    return scores.softmax(-1) @ v


# %% tags=["starter"]
def attend_step(q, k, v, cache):
    """Return the output of new tokens, and the cache with them."""
    return attend(q, k, v), (k, v)  # change this


# %% tags=["solution"]
def attend_step(q, k, v, cache):
    """Return the output of new tokens, and the cache with them."""
    start = len(cache[0])
    positions = torch.arange(start, start + len(q))
    q, k = rotate(q, positions), rotate(k, positions)
    keys, values = torch.cat((cache[0], k)), torch.cat((cache[1], v))
    return attend(q, keys, values), (keys, values)


# %% tags=["judge"]
def check_step(yours):
    """Test one and several new tokens, with and without others."""

    def given(new, old):
        return (*torch.randn(3, new, 8), tuple(torch.randn(2, old, 8)))

    cases = {
        "four tokens and an empty cache": given(4, 0),
        "one token after five": given(1, 5),
        "three tokens after two": given(3, 2),
    }
    return check("attend_step", yours, cases)


# %% tags=["check"]
passed = check_step(attend_step)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# After five tokens, which have positions `0` to `4`, the next one is at position `5`, which is the length of the cache.
# Rotate the new tokens first, then append them.
#
# </details>

# %%
q, k, v = torch.randn(3, 40, 8)
empty = cache = tuple(torch.zeros(2, 0, 8))
whole, _ = attend_step(q, k, v, empty)
outputs = []
for new in zip(q.split(1), k.split(1), v.split(1)):
    output, cache = attend_step(*new, cache)
    outputs.append(output)
gap = (torch.cat(outputs) - whole).abs().max()
print(f"token by token and in one pass: {gap:.0e} apart")

# %% [markdown]
# ## What you can do now
#
# You can write RoPE from memory, test that scores depend only on the offset, and say which layout your code has. You know
# that a layout is a property of the weights, and that positions continue when a cache is used.
#
# - Test RoPE code in any layout with [`check_positions.py`](../reference/check_positions.md). Your function fits as it is:
#   `print(report(check_rotation(rotate, dim=64)))`.
# - The tested functions, with their input checks: [`rope.py`](../reference/rope.md).
# - Many heads, biases and partial rotary: [convert a checkpoint](rope_layouts.md). Batches with padding:
#   [decode with a cache](cached_decoding.md).
