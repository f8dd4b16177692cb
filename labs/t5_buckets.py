# %% [markdown]
# # Lab: Implement T5’s relative position buckets
#
# Write the function that assigns every distance a row of T5's table, in causal and in bidirectional attention, and use
# it in the attention head of a decoder.
#
# **Goal.** You write five short functions, from offsets to attention weights, whose buckets agree with a tested file,
# and you learn how such code goes wrong without raising an error.
#
# **Time.** About forty-five minutes.
#
# **You need.** [Relative positions](../guide/relative.md), up to its Intermediate level, and tensors in torch.
#
# One parameter per distance needs a long table, and training rarely or never uses the rows of large distances.
# [T5](../bibliography.md#raffel2020) shares rows: small distances have a row each, larger ones share rows, more and
# more as the distance grows, and the largest distances all use the last row. Such a row is called a *bucket*. The rule
# that assigns buckets takes only a few lines, and most mistakes in them still return integers of the right shape.

# %%
import math

import matplotlib.pyplot as plt
import torch

from labs.judge import judge, right_and_wrong
from snippets.t5_bias import t5_bias, t5_bias_by_offset, t5_buckets

_ = torch.manual_seed(0)

# %% [markdown]
# ## Step one: offsets
#
# A query is at position $i$ of its text, a key at position $j$. T5's bias depends only on the **offset** $j - i$:
# negative for keys before the query, positive for keys after it. Compute the offsets of all pairs, with a row for each
# query and a column for each key.
#
# The positions are given. Use them, and not the index in the tensor: when a decoder adds one token, there is one query,
# in row zero, and its position may be seven hundred.


# %% tags=["starter"]
def offsets_of(query_positions, key_positions):
    """Return key position minus query position, (queries, keys)."""
    queries, keys = len(query_positions), len(key_positions)
    return torch.zeros(queries, keys, dtype=torch.long)  # change this


# %% tags=["solution"]
def offsets_of(query_positions, key_positions):
    """Return key position minus query position, (queries, keys)."""
    return key_positions[None, :] - query_positions[:, None]


# %% tags=["judge"]
def check_offsets(yours):
    """Compare with j - i for every pair, then with typical mistakes."""
    few = torch.arange(4)
    cases = {
        "four tokens": (few, few),
        "the last two of five tokens as queries": (
            torch.tensor([3, 4]),
            torch.arange(5),
        ),
        "one new token after a cache": (
            torch.tensor([9]),
            torch.tensor([0, 1, 2, 9]),
        ),
    }
    right, mistakes = right_and_wrong("t5_buckets", "offsets_of", globals())
    return judge(yours, right, cases, mistakes)


# %% tags=["check"]
passed = check_offsets(offsets_of)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Write down by hand the result for four tokens. The first row belongs to the first query, and no key comes before it.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# Torch subtracts a column from a row by repeating both until they form a table. `x[:, None]` makes a column of `x`, and
# `x[None, :]` a row.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# Keys run across, so they are the row; queries run down, so they are the column: `row - column`.
#
# </details>

# %%
print(offsets_of(torch.arange(4), torch.arange(4)))

# %% [markdown]
# ## Step two: causal buckets
#
# A decoder attends to earlier tokens only. Let $t = i - j$ be the distance of a key before the query, and let $t = 0$
# for every later key. With $N$ buckets, a maximum distance $D$ and $m = \lfloor N/2 \rfloor$, the bucket is
#
# $$
# \begin{cases}
# t & t < m \\
# \min\bigl(N-1,\, m + \lfloor \rho\,(N-m) \rfloor\bigr) & t \ge m
# \end{cases}
# $$
#
# with $\rho = \ln (t/m) / \ln (D/m)$. Read the formula from the inside. $t/m$ is one where sharing begins, so its
# logarithm is zero there. The fraction $\rho$ grows from zero at $t = m$ to one at $t = D$: it is the fraction of the
# remaining $N - m$ buckets that has been used. Round down, add the first $m$ buckets, and stop at the last bucket.
#
# The function takes offsets of any shape and returns integers of the same shape.


# %% tags=["starter"]
def look_back(offsets, buckets=32, max_distance=128):
    """Return the bucket of each offset, key minus query, int64."""
    near = buckets // 2  # number of distances with their own bucket
    distance = torch.zeros_like(offsets)  # change this: the distance back
    far = torch.full_like(offsets, near)  # change this: the shared buckets
    return torch.where(distance < near, distance, far)


# %% tags=["solution"]
def look_back(offsets, buckets=32, max_distance=128):
    """Return the bucket of each offset, key minus query, int64."""
    near = buckets // 2  # number of distances with their own bucket
    distance = (-offsets).clamp(min=0)
    share = (distance.clamp(min=near) / near).log()
    share = share / math.log(max_distance / near)  # 1 at max_distance
    far = near + (share * (buckets - near)).long()
    far = far.clamp(max=buckets - 1)
    return torch.where(distance < near, distance, far)


# %% tags=["judge"]
def check_look_back(yours):
    """Compare with the tested file, then with typical mistakes."""
    square = torch.arange(9)[None, :] - torch.arange(9)[:, None]
    cases = {
        "the first sixteen distances": (-torch.arange(16), 32, 128),
        "distances up to the maximum": (-torch.arange(16, 128), 32, 128),
        "distances beyond it": (-torch.arange(128, 400), 32, 128),
        "later keys": (torch.arange(1, 60), 32, 128),
        "offsets of nine queries and keys": (square, 32, 128),
        "eight buckets up to twenty": (-torch.arange(40), 8, 20),
    }

    def right(*given):
        return t5_buckets(*given, bidirectional=False)

    _, mistakes = right_and_wrong("t5_buckets", "look_back", globals())
    return judge(yours, right, cases, mistakes)


# %% tags=["check"]
passed = check_look_back(look_back)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Proceed in three parts, and check after each: the distances; the buckets of small distances; the buckets of large
# ones. The check reports what is right already.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# `(-offsets).clamp(min=0)` is the distance. Compute the formula with the logarithm for *all* distances, and let
# `torch.where(distance < near, …, …)` choose. For distances below `near` the logarithm gives useless numbers, which are
# never chosen; `distance.clamp(min=near)` avoids them.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# In Python, with `t` for the distance:
#
# ```python
# share = (t.clamp(min=near) / near).log() / math.log(max_distance / near)
# far = near + (share * (buckets - near)).long()  # rounds down
# ```
#
# Then limit `far` to the last bucket, and choose.
#
# </details>

# %% [markdown]
# Before you run the next cell, guess: with `32` buckets and a maximum distance of `128`, from which distance on do all
# keys share the last bucket?

# %%
distance = torch.arange(1, 400)
bucket = look_back(-distance)
last = distance[bucket == bucket.max()]
print("the last bucket is", bucket.max().item())
print("it begins at distance", last.min().item())
for name, far in (("m", 16), ("2m", 32), ("4m", 64)):
    print(f"the bucket of {name}:", look_back(torch.tensor(-far)).item())

# %% [markdown]
# It is not the maximum distance. The formula reaches bucket $N$ at $D$, so that, after rounding down, it reaches
# $N - 1$ at a smaller distance. The maximum distance determines how fast the buckets widen, and only roughly where the
# last one begins.
#
# Doubling the distance adds the same number of buckets, up to rounding, until the last bucket: this is a property of
# the logarithm.

# %% [markdown]
# ## Step three: bidirectional buckets
#
# An encoder attends in both directions, and the same distance before and after the query should not share a row. So the
# buckets are split into two halves: the first half is for the query's own key and those before it, the second half for
# those after it. Each half uses the rule of step two with the distance, with $N/2$ instead of $N$, and with the same
# maximum distance.
#
# You may call your `look_back`.


# %% tags=["starter"]
def both_ways(offsets, buckets=32, max_distance=128):
    """Return the bucket of each offset, in two halves, int64."""
    return look_back(offsets, buckets, max_distance)  # change this


# %% tags=["solution"]
def both_ways(offsets, buckets=32, max_distance=128):
    """Return the bucket of each offset, in two halves, int64."""
    side = buckets // 2
    near_or_far = look_back(-offsets.abs(), side, max_distance)
    return near_or_far + side * (offsets > 0)


# %% tags=["judge"]
def check_both_ways(yours):
    """Compare with the tested file, then with typical mistakes."""
    cases = {
        "small offsets": (torch.arange(-7, 8), 32, 128),
        "earlier keys": (-torch.arange(8, 300), 32, 128),
        "later keys": (torch.arange(8, 300), 32, 128),
        "eight buckets up to twenty": (torch.arange(-40, 41), 8, 20),
    }
    _, mistakes = right_and_wrong("t5_buckets", "both_ways", globals())
    return judge(yours, t5_buckets, cases, mistakes)


# %% tags=["check"]
passed = check_both_ways(both_ways)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Two things determine the bucket of an offset: the distance and the side. You have a function for the distance already.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# For the distance, make all offsets look as if their keys came before: minus the absolute value. For the side, add half
# of the buckets where the offset is positive.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# With `side = buckets // 2`, the result is `look_back(…, side, max_distance) + side * (offsets > 0)`. A boolean times a
# number is the number or zero.
#
# </details>

# %% [markdown]
# Plot both rules. Where do the steps widen? Which row is never used?

# %% alt="Bucket against offset, two staircases. With causal buckets, the steps widen from the middle to the left and all later keys are at zero. With bidirectional buckets, there is a low staircase to the left and a high one to the right, both with wider steps."
offset = torch.arange(-140, 141)
fig, ax = plt.subplots(figsize=(4.4, 2.8))
ax.step(offset, look_back(offset), where="mid", label="causal")
ax.step(offset, both_ways(offset), where="mid", label="bidirectional")
ax.set(xlabel="offset: key minus query", ylabel="bucket")
ax.legend()
plt.show()

# %%
far = torch.arange(-1000, 1001)
for rule in (look_back, both_ways):
    used = set(rule(far).tolist())
    print(f"{rule.__name__}: unused rows:", set(range(32)) - used)
after = both_ways(torch.arange(1, 400))
start = 1 + (after == after.max()).nonzero()[0].item()
print("bidirectional: the last bucket begins at", start)

# %% [markdown]
# One row of the second half belongs to no offset at all, because distance zero belongs to the first half. And each side
# has half as many buckets for the same distances: fewer distances have their own bucket, the shared buckets are wider,
# and the last one begins at a smaller distance.

# %% [markdown]
# ## Step four: from buckets to a bias
#
# T5 learns a table with a row for each bucket and a column for each head. The bias of a pair is the entry in its
# bucket's row, and attention needs it per head: `(heads, queries, keys)`.


# %% tags=["starter"]
def bias_of(table, buckets):
    """Return the bias of each head and pair, (heads, queries, keys).

    table is (rows, heads); buckets, (queries, keys), are row indices.
    """
    queries, keys = buckets.shape
    return torch.zeros(table.shape[1], queries, keys)  # change this


# %% tags=["solution"]
def bias_of(table, buckets):
    """Return the bias of each head and pair, (heads, queries, keys).

    table is (rows, heads); buckets, (queries, keys), are row indices.
    """
    return table[buckets].movedim(-1, 0)


# %% tags=["judge"]
def check_bias(yours):
    """Compare with the solution, then with typical mistakes."""
    random = torch.Generator().manual_seed(1)
    table = torch.randn(32, 4, generator=random)
    places = torch.arange(5)
    offsets = places[None, :] - places[:, None]
    cases = {
        "two queries and five keys": (table, t5_buckets(offsets[3:])),
        "four queries, keys and heads": (table, t5_buckets(offsets[:4, :4])),
    }
    right, mistakes = right_and_wrong("t5_buckets", "bias_of", globals())
    return judge(yours, right, cases, mistakes)


# %% tags=["check"]
passed = check_bias(bias_of)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# A tensor of integers in the index selects rows. Print the shape of `table[buckets]`.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# Every pair now has a whole row, one number for each head. So the heads are the last axis, and they should be the
# first.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `movedim(-1, 0)` moves the last axis to the front and leaves the other axes in order.
#
# </details>

# %% alt="Two square maps of bucket indices, queries down and keys across. With causal buckets, everything right of the diagonal has one colour. With bidirectional buckets, both sides have stripes that widen with distance."
places = torch.arange(60)
pairs = offsets_of(places, places)
fig, axes = plt.subplots(1, 2, figsize=(4.4, 2.4), sharey=True)
for ax, rule in zip(axes, (look_back, both_ways)):
    ax.imshow(rule(pairs), vmin=0, vmax=31)
    ax.set(title=rule.__name__, xlabel="key")
axes[0].set_ylabel("query")
plt.show()

# %% [markdown]
# Every diagonal has one bucket, so one bias: wherever a text begins, “one back” is the same row.

# %% [markdown]
# ## Step five: in the head of a decoder
#
# Now use the bias. Two properties of T5 are easily missed. Its scores are **not** divided by $\sqrt d$, because its
# weights were trained without this division. And the buckets of step two **hide nothing**: later keys are in bucket
# zero, and a mask must hide them.
#
# Return the attention weights of each head: the weights of a query sum to one, and later keys get zero.


# %% tags=["starter"]
def weights_of(q, k, bias, offsets):
    """Return attention weights of T5's decoder, (heads, queries, keys).

    q is (heads, queries, dim), k (heads, keys, dim), bias (heads, queries,
    keys), and offsets, key minus query, (queries, keys).
    """
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # change this
    return scores.softmax(-1)


# %% tags=["solution"]
def weights_of(q, k, bias, offsets):
    """Return attention weights of T5's decoder, (heads, queries, keys).

    q is (heads, queries, dim), k (heads, keys, dim), bias (heads, queries,
    keys), and offsets, key minus query, (queries, keys).
    """
    scores = q @ k.mT + bias
    scores = scores.masked_fill(offsets > 0, -math.inf)
    return scores.softmax(-1)


# %% tags=["judge"]
def check_weights(yours):
    """Compare with the solution, then with typical mistakes."""
    random = torch.Generator().manual_seed(2)
    table = torch.randn(32, 2, generator=random)

    def case(queries, keys):
        q = torch.randn(2, len(queries), 8, generator=random)
        k = torch.randn(2, len(keys), 8, generator=random)
        bias = t5_bias(
            queries, keys, t5_bias_by_offset(table, bidirectional=False)
        )
        return q, k, bias, keys[None, :] - queries[:, None]

    late = torch.arange(5, 8), torch.arange(8)
    cases = {
        "six tokens": case(torch.arange(6), torch.arange(6)),
        "three queries after a cache": case(*late),
    }
    right, mistakes = right_and_wrong("t5_buckets", "weights_of", globals())
    return judge(yours, right, cases, mistakes)


# %% tags=["check"]
passed = check_weights(weights_of)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# The starter needs three changes: remove one operation, add one term to the scores, and change the scores once more
# before the softmax.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# `bias` has the shape of the scores. A key comes later where its offset is positive, and a score of minus infinity gets
# no weight.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `scores.masked_fill(offsets > 0, -math.inf)` hides later keys; the same mask applies to all heads.
#
# </details>

# %% [markdown]
# ## Put it together
#
# The first part has one query at the end of a growing text of equal tokens, so that only the bias matters. The table
# favours “one back”. The second part counts which rows of the table a text of a given length uses at all, and therefore
# what a model can learn.

# %%
table = torch.zeros(32, 1)
table[1] = 4.0  # the row of "one back"
for length in (4, 64, 1024):
    keys = torch.arange(length)
    query = keys[-1:]
    offsets = offsets_of(query, keys)
    bias = bias_of(table, look_back(offsets))
    q, k = torch.zeros(1, 1, 8), torch.zeros(1, length, 8)
    weight = weights_of(q, k, bias, offsets)[0, 0, -2].item()
    print(f"{length:4} tokens: one back gets {weight:.3f}")

print()
for length in (4, 64, 1024):
    pairs = offsets_of(torch.arange(length), torch.arange(length))
    back, both = (
        len(rule(pairs).unique()) for rule in (look_back, both_ways)
    )
    print(f"{length:4} tokens: {back} rows causal, {both} bidirectional")

# %% [markdown]
# The same bias for “one back” gives less weight among more keys. And rows that no pair of the training texts uses get
# no gradient in training: on longer texts the model then uses entries that were never trained.

# %% [markdown]
# ## What you can do now
#
# You can write T5's buckets in both modes from the formula, for any size of table, and turn them into a bias for
# attention. You know where the last bucket begins, which row is never used, that bucket zero is not a mask, and that
# T5's scores are not scaled. You have a set of test inputs for any code of this kind: the distances `m - 1` and `m`,
# one beyond the maximum, offset `0`, and one offset on each side.
#
# Back to the chapter: [the formula](../guide/relative.md#the-idea), [where it
# breaks](../guide/relative.md#where-it-breaks). Copy the tested file: [`t5_bias.py`](../reference/t5_bias.md). To see
# what a cache requires of positions and masks, go on with [the lab on cached decoding](cached_decoding.md).
