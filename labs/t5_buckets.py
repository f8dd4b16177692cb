# %% [markdown]
# # Lab: implement T5's buckets
#
# Write the rule that gives every distance a row of T5's table, looking back only and looking both ways, and
# put it into the head of a decoder.
#
# **Goal.** Five short functions, from offsets to weights, whose buckets agree with a tested file, and an eye for
# the ways in which
# such code goes wrong without an error.
#
# **Time.** About forty-five minutes.
#
# **You need.** [Relative positions](../guide/relative.md), up to its Intermediate level, and tensors in torch.
#
# A number for each distance needs a long table, and training seldom or never reaches its far rows.
# [T5](../bibliography.md#raffel2020) shares: near distances have a row each, farther ones share rows, the more the
# farther they are, and the farthest all have the last. Such a row is called a *bucket*. The rule that finds it is a
# handful of lines, and most slips in them still return whole numbers of the right shape.

# %%
import math

import matplotlib.pyplot as plt
import torch

from labs.judge import judge
from snippets.t5_bias import t5_bias, t5_buckets

_ = torch.manual_seed(0)

# %% [markdown]
# ## Step one: who is how far away
#
# A query stands at position $i$ of its text, a key at position $j$. T5's bias reads one thing only, the **offset**
# $j - i$: below zero for keys before the query, above zero for keys after it. Make the offsets of all pairs: a row for
# each query, a column for each key.
#
# The positions are given. Use them, and not the place in the tensor: when a decoder adds one token, there is one
# query, in row zero, and it may well stand at position seven hundred.


# %% tags=["starter"]
def offsets_of(query_positions, key_positions):
    """Key position minus query position: (queries, keys)."""
    queries, keys = len(query_positions), len(key_positions)
    return torch.zeros(queries, keys, dtype=torch.long)  # yours: change this


# %% tags=["solution"]
def offsets_of(query_positions, key_positions):
    """Key position minus query position: (queries, keys)."""
    return key_positions[None, :] - query_positions[:, None]


# %% tags=["judge"]
def _offsets(i, j):
    return j[None, :] - i[:, None]


def check_offsets(yours):
    """Compare with j - i for every pair, then with what often goes wrong."""
    few = torch.arange(4)
    cases = {
        "four tokens": (few, few),
        "the last two of five tokens as queries": (
            torch.tensor([3, 4]),
            torch.arange(5),
        ),
        "one new token behind a cache": (
            torch.tensor([9]),
            torch.tensor([0, 1, 2, 9]),
        ),
    }
    mistakes = [
        (
            lambda i, j: 0 * _offsets(i, j),
            "All your offsets are zero, so every key seems to stand where "
            "the query stands. Subtract: a row of key positions minus a "
            "column of query positions.",
        ),
        (
            lambda i, j: -_offsets(i, j),
            "Your signs are turned round: this is i - j, query minus key. T5 "
            "counts j - i. See it in the pair of query 1 and key 0: the key "
            "stands one before, so its offset is -1.",
        ),
        (
            lambda i, j: _offsets(i, j).T,
            "Rows and columns have changed places: you return (keys, "
            "queries). Give each query a row. With as many queries as keys "
            "nothing but the sign shows it.",
        ),
        (
            lambda i, j: -_offsets(i, j).T,
            "The numbers are j - i, but they lie in (keys, queries). Each "
            "query has a row: `[:, None]` belongs to the query positions, "
            "`[None, :]` to the key positions.",
        ),
        (
            lambda i, j: _offsets(i, j).abs(),
            "You return distances, without a sign. Keep the sign: which side "
            "the key is on decides about its bucket.",
        ),
        (
            lambda i, j: _offsets(torch.arange(len(i)), torch.arange(len(j))),
            "You count rows and columns and do not read the positions that "
            "you are given. See it for one new token behind a cache: it is "
            "row 0, but it stands at position 9.",
        ),
    ]
    return judge(yours, _offsets, cases, mistakes)


# %% tags=["check"]
passed = check_offsets(offsets_of)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Write down by hand what four tokens should give. The first row belongs to the first query, and no key stands
# before it.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# Torch subtracts a column from a row by repeating both until they fill a rectangle. `x[:, None]` makes a column of
# `x`, and `x[None, :]` a row.
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
# ## Step two: looking back
#
# A decoder looks back. Let $t = i - j$ be how far a key lies before the query, and count every later key as
# $t = 0$. With $N$ buckets, a maximum distance $D$ and $m = \lfloor N/2 \rfloor$, the bucket is
#
# $$
# \text{bucket}(t) =
# \begin{cases}
# t & t < m \\
# \min\Bigl(N-1,\; m + \Bigl\lfloor \dfrac{\ln (t/m)}{\ln (D/m)}\,(N-m) \Bigr\rfloor\Bigr) & t \ge m
# \end{cases}
# $$
#
# Read it from the inside. $t/m$ is one where sharing begins, so its logarithm is zero there. The fraction grows from
# zero at $t = m$ to one at $t = D$: it is the share of the remaining $N - m$ buckets that has been used up. Round down,
# start after the first $m$, and stop at the last bucket.
#
# The function gets offsets, of any shape, and returns whole numbers of the same shape.


# %% tags=["starter"]
def look_back(offsets, buckets=32, max_distance=128):
    """The bucket of each offset, key minus query: int64, like offsets."""
    near = buckets // 2  # as many distances have a bucket of their own
    distance = torch.zeros_like(offsets)  # yours: how far back is the key?
    far = torch.full_like(offsets, near)  # yours: the bucket of a far key
    return torch.where(distance < near, distance, far)


# %% tags=["solution"]
def look_back(offsets, buckets=32, max_distance=128):
    """The bucket of each offset, key minus query: int64, like offsets."""
    near = buckets // 2  # as many distances have a bucket of their own
    distance = (-offsets).clamp(min=0)
    share = (distance.clamp(min=near) / near).log()
    share = share / math.log(max_distance / near)  # 1 at max_distance
    far = near + (share * (buckets - near)).long()
    far = far.clamp(max=buckets - 1)
    return torch.where(distance < near, distance, far)


# %% tags=["judge"]
def _back(offsets, buckets=32, max_distance=128, slips=()):
    """Buckets looking back, with the slips that are asked for."""
    if "fixed" in slips:
        buckets, max_distance = 32, 128
    distance = offsets if "sign" in slips else -offsets
    if "bare" not in slips:
        later = torch.abs if "mirror" in slips else torch.relu
        distance = later(distance)
    near = buckets if "linear" in slips else buckets // 2
    near = near - 1 if "near" in slips else near
    top = distance // near if "whole" in slips else distance / near
    top = distance.float() if {"plain", "top"} & set(slips) else top
    low = max_distance / (1 if {"plain", "low"} & set(slips) else near)
    low = low if low > 1 else 2.0
    share = (top.log2() if "base" in slips else top.log()) / math.log(low)
    share = share.floor() if "early" in slips else share
    left = buckets - near - ("short" in slips)
    steps = share * (buckets if "width" in slips else left)
    if "real" not in slips:
        how = {"round": torch.round, "ceil": torch.ceil}
        steps = next((how[s] for s in slips if s in how), torch.floor)(steps)
    far = steps + (0 if "start" in slips else near + ("later" in slips))
    last = buckets - ("brim" not in slips)
    far = far if "open" in slips else far.clamp(max=last)
    far = far.clamp(min=near) if "all far" in slips else far
    own = (distance < near) & ("all far" not in slips)
    all_of = torch.where(own, distance.to(far.dtype), far) + ("one" in slips)
    return all_of if {"real", "float"} & set(slips) else all_of.long()


_SLIPS = {
    "sign": "You take the offset itself for the distance: later keys get the "
    "buckets, and all earlier ones get bucket 0. The offset is j - i and the "
    "distance back is i - j, so turn the sign. Look at offset -1: it belongs "
    "in bucket 1.",
    "mirror": "Later keys get buckets too, those of the same distance back: "
    "that is what abs() does. Looking back only, every later key counts as "
    "distance zero: clamp instead.",
    "bare": "Later keys get buckets below zero, which torch reads from the "
    "end of the table, without an error. Looking back only, they count as "
    "distance zero: clamp(min=0).",
    "one": "Every bucket is one too high: you count from one. The query's "
    "own key is at distance 0 and has bucket 0, the first row of the table.",
    "near": "Sharing begins one too early: m is N // 2, and the distances "
    "from 0 to m - 1 have a bucket of their own. With N = 32, compare the "
    "distances 14 to 17: buckets 14, 15, 16, 16.",
    "later": "From distance m on, your buckets are one too high, and bucket "
    "m stays empty. At t = m the logarithm is zero, and the bucket is m "
    "itself.",
    "linear": "You give each distance its own bucket up to the last one, and "
    "nothing is left for sharing. Only the first half of the buckets, m = N "
    "// 2, is for single distances.",
    "top": "In the numerator stands ln(t); wanted is ln(t / m). See it at t "
    "= m, where sharing begins: the fraction must be 0 there, or buckets are "
    "skipped.",
    "low": "In the denominator stands ln(D); wanted is ln(D / m). See it at "
    "t = D: the fraction must be 1 there. Yours stays below 1, and the far "
    "distances end in too low a bucket.",
    "all far": "The far distances are right, and the near ones all have "
    "bucket m: you use the formula with the logarithm for every distance. "
    "Below m, the bucket is the distance itself: choose with torch.where.",
    "plain": "Your fraction is ln(t) / ln(D). Both need dividing by m: ln(t "
    "/ m) / ln(D / m) runs from 0 at t = m to 1 at t = D. Yours is far above "
    "0 where sharing begins, so the first shared buckets stay empty.",
    "base": "You mix two logarithms: base 2 above the fraction line, natural "
    "below. Any base will do, if it is the same in both. See it at t = D, "
    "before you clamp: the fraction must be 1, and yours is 1 / ln(2).",
    "whole": "You divide t by m in whole numbers, so that all distances up "
    "to 2 m - 1 count as m. Use / and not //: round down only once, at the "
    "end.",
    "width": "You multiply by N. There are only N - m buckets left to share, "
    "so the last one is reached much too soon.",
    "start": "The far distances begin again at bucket 0, where the near ones "
    "already are. Add m: the shared buckets come after the first m.",
    "short": "You multiply by N - m - 1. There are N - m buckets left to "
    "share; rounding down and the limit keep to the last one. See it in the "
    "last bucket: yours begins at D, T5's begins sooner.",
    "early": "You round down too early, before you multiply: the fraction is "
    "below 1 up to D, so all those distances get bucket m. Multiply by N - m "
    "first, and round down then.",
    "round": "You round to the nearest whole number. T5 rounds down. See it "
    "in which distances share bucket m: with N = 32, those from 16 to 18. "
    "Yours changes bucket sooner.",
    "ceil": "You round up. T5 rounds down: at the first distances after m "
    "the fraction has only begun, and they still belong in bucket m.",
    "open": "There is no upper limit: distances of D and more get bucket N "
    "or above, a row that the table does not have. Nothing shows it on short "
    "texts. Keep it to N - 1.",
    "brim": "Your upper limit is N, but the rows are numbered from 0 to N - "
    "1. Distances of D and more would read one row too far.",
    "real": "You do not round down. A bucket is a row of a table, so it is a "
    "whole number: end with .long().",
    "float": "The numbers are right, but they are of a floating dtype. A "
    "bucket is a row of a table, and only whole numbers can pick one: end "
    "with .long().",
    "fixed": "Right for 32 buckets and a maximum distance of 128, and for no "
    "other table: you do not use `buckets` and `max_distance`.",
}


def check_look_back(yours):
    """Compare with the tested file, then with what often goes wrong."""
    cases = {
        "the first sixteen distances": (-torch.arange(16), 32, 128),
        "distances up to the maximum": (-torch.arange(16, 128), 32, 128),
        "distances beyond it": (-torch.arange(128, 400), 32, 128),
        "later keys": (torch.arange(1, 60), 32, 128),
        "a square of offsets": (
            _offsets(torch.arange(9), torch.arange(9)),
            32,
            128,
        ),
        "eight buckets up to twenty": (-torch.arange(40), 8, 20),
    }

    def right(*given):
        return t5_buckets(*given, bidirectional=False)

    def slipping(*names):
        return lambda *given: _back(*given, slips=names)

    mistakes = [
        (
            lambda offsets, *sizes: torch.zeros_like(offsets),
            "Every offset is in bucket 0 so far. Begin with `distance`: turn "
            "the sign of the offsets and count later keys as zero.",
        ),
        (
            lambda offsets, buckets, most: torch.minimum(
                (-offsets).clamp(min=0), torch.tensor(buckets // 2)
            ),
            "The near distances are right, and so are later keys. Now `far`: "
            "so far, all distances from m = N // 2 on have bucket m. The "
            "formula spreads them over the buckets from m to N - 1.",
        ),
        (
            lambda offsets, *sizes: (-offsets).clamp(min=0),
            "The near distances are right, and so are later keys. Now the "
            "far ones: from distance m = N // 2 on, keys share buckets. As "
            "it is, the table would need a row for each distance.",
        ),
    ]
    mistakes += [(slipping(name), says) for name, says in _SLIPS.items()]
    for a in _SLIPS:
        for b in _SLIPS:
            if a < b:
                both = f"Two things. First: {_SLIPS[a]} Then: {_SLIPS[b]}"
                mistakes.append((slipping(a, b), both))
    return judge(yours, right, cases, mistakes)


# %% tags=["check"]
passed = check_look_back(look_back)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Do it in three parts, and check after each: the distances; the buckets of near distances; those of far ones. The
# check says what is right already.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# `(-offsets).clamp(min=0)` is the distance. Compute the far buckets for *all* distances, as if all were far, and let
# `torch.where(distance < near, …, …)` choose. For distances below `near` the logarithm gives useless numbers, which
# are never chosen; `distance.clamp(min=near)` avoids them.
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
# What is left is to keep `far` to the last bucket, and to choose.
#
# </details>

# %% [markdown]
# Before you run the next cell, guess: with `32` buckets and a maximum distance of `128`, from which distance on do
# all keys share the last bucket?

# %%
distance = torch.arange(1, 400)
bucket = look_back(-distance)
last = distance[bucket == bucket.max()]
print("the last bucket is", bucket.max().item())
print("it begins at distance", last.min().item())
for name, far in (("m", 16), ("2m", 32), ("4m", 64)):
    print(f"the bucket of {name}:", look_back(torch.tensor(-far)).item())

# %% [markdown]
# It is not the maximum distance. The formula reaches bucket $N$ at $D$, and rounding down reaches $N - 1$ some way
# before. The maximum distance says how fast the buckets widen, and only roughly where they end.
#
# Twice as far is the same number of buckets farther on, up to
# rounding, until the last bucket stops it: that is what a logarithm does.

# %% [markdown]
# ## Step three: looking both ways
#
# An encoder looks both ways, and the same distance before and after should not share a row. So the buckets are
# halved: the first half is for the query's own key and those before it, the second half for those after it. In each
# half, the rule of step two goes by the distance, with $N/2$ in place of $N$, and with the same maximum distance.
#
# You may call your `look_back`.


# %% tags=["starter"]
def both_ways(offsets, buckets=32, max_distance=128):
    """The bucket of each offset, in two halves: int64, like offsets."""
    return look_back(offsets, buckets, max_distance)  # yours: change this


# %% tags=["solution"]
def both_ways(offsets, buckets=32, max_distance=128):
    """The bucket of each offset, in two halves: int64, like offsets."""
    side = buckets // 2
    near_or_far = look_back(-offsets.abs(), side, max_distance)
    return near_or_far + side * (offsets > 0)


# %% tags=["judge"]
def check_both_ways(yours):
    """Compare with the tested file, then with what often goes wrong."""
    cases = {
        "near offsets": (torch.arange(-7, 8), 32, 128),
        "earlier keys": (-torch.arange(8, 300), 32, 128),
        "later keys": (torch.arange(8, 300), 32, 128),
        "eight buckets up to twenty": (torch.arange(-40, 41), 8, 20),
    }

    def back(offsets, buckets, most):
        return t5_buckets(offsets, buckets, most, bidirectional=False)

    def slip(take=torch.abs, halve=2, side=2, most=1, after=torch.gt, less=0):
        def slipping(offsets, buckets, max_distance):
            far = max_distance // most
            each = back(-take(offsets), buckets // halve, far)
            second = after(offsets, 0)
            add = buckets // side if side else 0
            return each + (add - less) * second

        return slipping

    mistakes = [
        (
            back,
            "This is step two: it looks back only, and all later keys share "
            "bucket 0 with the query's own. Give them the second half of the "
            "buckets.",
        ),
        (
            lambda offsets, *sizes: torch.zeros_like(offsets),
            "Every offset is in bucket 0. If your `look_back` is not right "
            "yet, finish step two first.",
        ),
        (
            slip(halve=1),
            "You add half of the buckets for later keys, but each side still "
            "uses all of them. The two sides overlap: halve `buckets` before "
            "you call the rule of step two.",
        ),
        (
            slip(halve=1, side=1),
            "Half the buckets are forgotten: each side uses all N, and later "
            "keys come out between N and 2N - 1, rows that the table does "
            "not have. Each side has N // 2.",
        ),
        (
            slip(halve=1, side=0),
            "Both sides share all the buckets, so one before and one after "
            "get the same row. Each side has half of the buckets, and the "
            "half of later keys comes second.",
        ),
        (
            slip(side=0),
            "The distances are right, but both sides share the first half: "
            "one before and one after get the same row. Add N // 2 where the "
            "key comes after the query.",
        ),
        (
            slip(after=torch.lt),
            "The halves have changed places: keys before the query belong in "
            "the first half, later ones in the second. Offset -1 has bucket "
            "1.",
        ),
        (
            slip(after=torch.ge),
            "Offset 0, the query's own key, is in your second half. It "
            "counts as looking back and has bucket 0: the second half is for "
            "offsets above zero only.",
        ),
        (
            slip(less=1),
            "Later keys are one bucket too low. It looks sensible, because "
            "the first bucket of the second half stays empty. T5 leaves it "
            "empty, and with its weights you must too.",
        ),
        (
            slip(take=lambda x: -x),
            "All later keys share one bucket, the first of their half. For "
            "them the rule of step two sees no distance: give it minus the "
            "absolute value of the offset.",
        ),
        (
            slip(take=lambda x: x),
            "All earlier keys are in bucket 0: turning the sign of every "
            "offset helps the later keys and spoils the earlier ones. Give "
            "`look_back` minus the absolute value.",
        ),
        (
            slip(take=lambda x: -x.abs()),
            "Every distance counts as zero: `look_back` wants offsets, and "
            "those of earlier keys are negative. Give it minus the absolute "
            "value.",
        ),
        (
            lambda offsets, buckets, most: (
                _back(-offsets.abs(), buckets // 2, most, ("open",))
                + buckets // 2 * (offsets > 0)
            ),
            "Far keys leave their half: from the maximum distance on, those "
            "before the query get a bucket of the other side, and those "
            "after it a row that the table does not have. Each half ends at "
            "its own last bucket, N // 2 - 1 on from its first.",
        ),
        (
            lambda offsets, buckets, most: t5_buckets(offsets, buckets),
            "`max_distance` does not reach the rule of step two, which then "
            "takes 128. Hand it on.",
        ),
        (
            lambda offsets, buckets, most: t5_buckets(offsets, 32, most),
            "Right for 32 buckets, and for no other number: halve `buckets` "
            "in place of typing 16.",
        ),
        (
            slip(most=2),
            "You halve the maximum distance too. Only the buckets are shared "
            "out between the two sides; each side reaches as far as before.",
        ),
    ]
    return judge(yours, t5_buckets, cases, mistakes)


# %% tags=["check"]
passed = check_both_ways(both_ways)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Two questions decide the bucket of an offset: how far, and on which side? The first has an answer already.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# For the distance, make all offsets look as if their keys came before: minus the absolute value. For the side, add
# half of the buckets where the offset is above zero.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# With `side = buckets // 2`, the answer is `look_back(…, side, max_distance) + side * (offsets > 0)`. A truth value
# times a number is the number or zero.
#
# </details>

# %% [markdown]
# Draw both rules. Where do the steps widen? Which row does nobody use?

# %% alt="Two staircases over the offset. Looking back only, the steps widen from the middle to the left and all later keys are at zero. Looking both ways there is a low staircase to the left and a high one to the right, both with wider steps."
offset = torch.arange(-140, 141)
fig, ax = plt.subplots(figsize=(4.4, 2.8))
ax.step(offset, look_back(offset), where="mid", label="looking back")
ax.step(offset, both_ways(offset), where="mid", label="both ways")
ax.set(xlabel="offset: key minus query", ylabel="bucket")
ax.legend()
plt.show()

# %%
far = torch.arange(-1000, 1001)
for rule in (look_back, both_ways):
    used = set(rule(far).tolist())
    print(f"{rule.__name__}: rows without offset:", set(range(32)) - used)
after = both_ways(torch.arange(1, 400))
start = 1 + (after == after.max()).nonzero()[0].item()
print("looking both ways, the last bucket begins at", start)

# %% [markdown]
# One row of the second half belongs to no offset at all, because distance zero counts as looking back. And each side
# has half as many buckets for the same distance: fewer are single, the shared ones are wider, and the last begins
# sooner.

# %% [markdown]
# ## Step four: from buckets to a bias
#
# T5 learns a table with a row for each bucket and a column for each head. The bias of a pair is the number in its
# bucket's row, and attention wants it head by head: `(heads, queries, keys)`.


# %% tags=["starter"]
def bias_of(table, buckets):
    """The bias of each head and pair: (heads, queries, keys).

    table is (rows, heads), and buckets, (queries, keys), says which row.
    """
    queries, keys = buckets.shape
    return torch.zeros(table.shape[1], queries, keys)  # yours: change this


# %% tags=["solution"]
def bias_of(table, buckets):
    """The bias of each head and pair: (heads, queries, keys).

    table is (rows, heads), and buckets, (queries, keys), says which row.
    """
    return table[buckets].movedim(-1, 0)


# %% tags=["judge"]
def check_bias(yours):
    """Compare with the tested file, then with what often goes wrong."""

    def right(table, buckets):
        return torch.stack([column[buckets] for column in table.unbind(1)])

    random = torch.Generator().manual_seed(1)
    table = torch.randn(32, 4, generator=random)
    square = t5_buckets(_offsets(torch.arange(4), torch.arange(4)))
    wide = t5_buckets(_offsets(torch.arange(3, 5), torch.arange(5)))
    cases = {
        "two queries and five keys": (table, wide),
        "four queries, keys and heads": (table, square),
    }
    mistakes = [
        (
            lambda table, buckets: 0 * right(table, buckets),
            "All biases are zero so far. Pick rows of the table with the "
            "buckets: `table[buckets]`.",
        ),
        (
            lambda table, buckets: table[buckets],
            "The heads come last: `table[buckets]` puts them there. Move "
            "that axis to the front. Where the sizes happen to be equal, "
            "nothing complains, and pairs get the bias of another pair.",
        ),
        (
            lambda table, buckets: right(table, buckets).mT,
            "The heads are in front, but queries and keys have changed "
            "places on the way. `.T` and `permute(2, 1, 0)` turn all axes "
            "round; only the last one should move.",
        ),
        (
            lambda table, buckets: table[buckets].reshape(-1, *buckets.shape),
            "The shape is right and the numbers are shuffled: reshape cuts "
            "the same row of numbers at other places and moves no axis. Use "
            "movedim or permute.",
        ),
        (
            lambda table, buckets: right(table.flip(0), buckets),
            "You read the table from its end. Bucket 0 is its first row.",
        ),
    ]
    return judge(yours, right, cases, mistakes)


# %% tags=["check"]
passed = check_bias(bias_of)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# A tensor of whole numbers between the brackets picks rows. Print the shape of `table[buckets]`.
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
# `movedim(-1, 0)` takes the last axis to the front and leaves the others in order.
#
# </details>

# %% alt="Two square maps of bucket numbers, queries down and keys across. Looking back only, everything right of the diagonal has one colour. Looking both ways, both sides have stripes that widen with distance."
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
# Now use the bias. Two things about T5 are easily missed. Its scores are **not** divided by $\sqrt d$: its weights
# were trained without. And the buckets of step two **hide nothing**: later keys sit in bucket zero, and a mask must
# hide them.
#
# Return the weights of each head: those of a query sum to one, and later keys get none.


# %% tags=["starter"]
def weights_of(q, k, bias, offsets):
    """Attention weights of T5's decoder: (heads, queries, keys).

    q is (heads, queries, dim), k (heads, keys, dim), bias (heads, queries,
    keys), and offsets, key minus query, (queries, keys).
    """
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # yours: not yet T5's
    return scores.softmax(-1)


# %% tags=["solution"]
def weights_of(q, k, bias, offsets):
    """Attention weights of T5's decoder: (heads, queries, keys).

    q is (heads, queries, dim), k (heads, keys, dim), bias (heads, queries,
    keys), and offsets, key minus query, (queries, keys).
    """
    scores = q @ k.mT + bias
    scores = scores.masked_fill(offsets > 0, -math.inf)
    return scores.softmax(-1)


# %% tags=["judge"]
def _weights(q, k, bias, offsets, product=1.0, both=1.0, hide=None, over=-1):
    hide = offsets > 0 if hide is None else hide(offsets)
    scores = both * (product * (q @ k.mT) + bias)
    return scores.masked_fill(hide, -math.inf).softmax(over)


def check_weights(yours):
    """Compare with the definition, then with what often goes wrong."""
    random = torch.Generator().manual_seed(2)
    table = torch.randn(32, 2, generator=random)

    def case(queries, keys):
        offsets = _offsets(queries, keys)
        q = torch.randn(2, len(queries), 8, generator=random)
        k = torch.randn(2, len(keys), 8, generator=random)
        bias = t5_bias(queries, keys, table, bidirectional=False)
        return q, k, bias, offsets

    cases = {
        "six tokens": case(torch.arange(6), torch.arange(6)),
        "three queries behind a cache": case(
            torch.arange(5, 8), torch.arange(8)
        ),
    }
    none = torch.zeros_like

    def slip(**slips):
        return lambda *given: _weights(*given, **slips)

    def late(q, k, bias, offsets):
        weights = _weights(q, k, bias, offsets, hide=lambda x: none(x).bool())
        return weights.masked_fill(offsets > 0, 0.0)

    def zero(q, k, bias, offsets):
        return (q @ k.mT + bias).masked_fill(offsets > 0, 0.0).softmax(-1)

    def by_index(q, k, bias, offsets):
        hidden = none(offsets).bool().logical_not().triu(1)
        return _weights(q, k, bias, offsets, hide=lambda x: hidden)

    def open_(x):
        return none(x).bool()

    root = 8**-0.5
    mistakes = [
        (
            lambda q, k, bias, offsets: _weights(
                q, k, none(bias), offsets, product=root, hide=open_
            ),
            "This is attention without positions: add the bias to the "
            "scores, leave out the division by the root of dim, and hide "
            "later keys.",
        ),
        (
            slip(product=root, hide=open_),
            "The bias is in. Two things are left: T5 does not divide by the "
            "root of dim, and later keys must be hidden.",
        ),
        (
            slip(product=root),
            "You divide the scores by the root of dim. T5 does not: its "
            "weights were trained without, and so every product of q and k "
            "comes out too small, while the bias does not.",
        ),
        (
            slip(both=root),
            "You divide scores and bias by the root of dim. T5 divides "
            "neither.",
        ),
        (
            slip(hide=open_),
            "Later keys get weight: nothing hides them. Bucket 0 is no mask, "
            "it is the bucket of the query's own key. Set the scores where "
            "the offset is above zero to minus infinity.",
        ),
        (
            slip(hide=open_, product=0.0),
            "Only the bias is left: add the products of q and k.",
        ),
        (
            lambda q, k, bias, offsets: _weights(q, k, none(bias), offsets),
            "The bias is missing. Without it the weights of a query do not "
            "know how far its keys are.",
        ),
        (
            late,
            "You hide later keys after the softmax. They have already taken "
            "their share, and the weights of a query sum to less than one. "
            "Hide scores, before the softmax.",
        ),
        (
            zero,
            "You set the scores of later keys to 0. That is a score like any "
            "other, and the softmax gives it weight. No weight takes a score "
            "of minus infinity.",
        ),
        (
            by_index,
            "You hide by row and column, as triu and tril do. That is right "
            "only if the first query stands at the first key. Behind a cache "
            "it does not: hide where the offset is above zero.",
        ),
        (
            slip(hide=lambda x: x >= 0),
            "A query does not see its own key: offset 0 must stay visible. "
            "The first token then sees nothing at all, and its softmax has "
            "no answer (nan).",
        ),
        (
            slip(hide=lambda x: x < 0),
            "You hide the keys before the query and show those after it. "
            "Later keys are those with an offset above zero.",
        ),
        (
            slip(over=-2),
            "Your weights sum to one over the queries of a key. Sum over the "
            "keys of a query: the softmax belongs on the last axis.",
        ),
    ]
    return judge(yours, _weights, cases, mistakes)


# %% tags=["check"]
passed = check_weights(weights_of)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Three changes to the starter: one goes away, one is added to the scores, one is done to the scores before the
# softmax.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# `bias` has the shape of the scores. A key comes later where its offset is above zero, and a score of minus infinity
# gets no weight.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `scores.masked_fill(offsets > 0, -math.inf)` hides; the one mask serves all heads.
#
# </details>

# %% [markdown]
# ## Put it together
#
# One query behind a growing text, equal tokens everywhere, so that only the bias speaks. The table favours “one
# back”. Then the question that decides what a model can learn: which rows of the table does a text of a given length
# touch at all?

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
    print(f"{length:4} tokens: {back} rows back, {both} rows both ways")

# %% [markdown]
# The same number for “one back” buys less weight among more keys. And rows that no pair of the training texts falls
# into get no gradient in training: on longer texts the model reads numbers there that nothing has fitted.

# %% [markdown]
# ## What you can do now
#
# You can write T5's buckets in both modes from the formula, for any size of table, and turn them into a bias that
# fits attention. You know where the last bucket begins, which row is never used, that bucket zero is no mask, and that
# T5's scores are not scaled. You have a set of probes for any code of this kind: the distances `m - 1` and `m`, one
# beyond the maximum, offset `0`, and one offset on each side.
#
# Back to the chapter: [the formula](../guide/relative.md#the-idea), [where it breaks](../guide/relative.md#where-it-breaks).
# Copy the tested file: [`t5_bias.py`](../reference/t5_bias.md). To see what a cache asks of positions and masks, go on
# with [the lab on cached decoding](cached_decoding.md).
