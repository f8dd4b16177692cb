# %% [markdown]
# # The tour
#
# From loose words to RoPE past its trained length, in a quarter of an hour. Each cell of code has one number to change,
# marked `change me`, and below it stands a question. Change the number, run the cell again, and then open the answer.
#
# The functions are the guide's own files, which you may copy. Each stage ends with a link to the chapter that tells the
# rest, and the proofs. With less time, read the same argument [in two minutes](../retold.md).

# %% [markdown]
# ## Loose words
#
# Attention compares every word with every other. Each word, the *query*, gives every word, the *key*, a score; its
# output is a mean of all words, weighted by these scores. A word is a row of numbers here, drawn at random: what it
# means does not matter, only that no two are the same.

# %%
import math

import matplotlib.pyplot as plt
import torch

from snippets.attention import attention

_ = torch.manual_seed(0)
MOVED = 1  # change me: how many places every word moves on, in a circle
words = ["dog", "bites", "man"]
x = torch.randn(len(words), 32)  # a row for each word

before, _ = attention(x, x, x)
after, _ = attention(*[x.roll(MOVED, 0)] * 3)
moved = words[-MOVED % 3 :] + words[: -MOVED % 3]
print("two numbers of each word's output, before and after")
for name, row in zip(words, before):
    other = after[moved.index(name)]
    print(f"  {name:<6}{row[0]:6.3f} {row[1]:6.3f}  ", end="")
    print(f"{other[0]:6.3f} {other[1]:6.3f}")

# %% [markdown]
# **Is there an order of the words in which one of them gets another output?**
#
# <details markdown="1"><summary>Answer</summary>
#
# No, not with three words and not with more. The output is a sum over all words, and a sum does not know the order of
# what it adds. The dog that bites and the dog that is bitten get the same numbers, up to rounding.
#
# </details>
#
# Programs that write have a *causal mask*: a word sees only itself and the words before it. Is that order enough? Two
# words trade places, the first and the one at `TRADE`. Whose output changes?

# %%
TRADE = 1  # change me: the place, from zero, that trades with the first
places = list(range(6))
x = torch.randn(6, 8)
traded = [TRADE if p == 0 else 0 if p == TRADE else p for p in places]
before, _ = attention(x, x, x, causal=True)
after, _ = attention(*[x[traded]] * 3, causal=True)
print("place of the output  " + "".join(f"{p:>6}" for p in places))
change = (after - before).abs().amax(-1)
print("its largest change   " + "".join(f"{c:6.2f}" for c in change))

# %% [markdown]
# **Which outputs stay as they were, whatever you trade?**
#
# <details markdown="1"><summary>Answer</summary>
#
# Those behind both words. They see the same words as before, and again take a sum of them. So what one layer with a mask
# gives a word depends on which words came before it, and not on their order. A second layer reads outputs that differ
# already, and can find out more: [can it work without any positions?](../guide/no-position.md)
#
# </details>
#
# The rest of the story: [why order gets lost](../guide/order.md).
#
# ## Add a vector for the place
#
# Give each place a vector of its own and add it to the word that stands there. The plainest way is a table that is
# learned like everything else. This one has its first random values.

# %%
from snippets.learned import learned_encoding

PLACE = 7  # change me: the place that is asked for
table = torch.randn(8, 32)
try:
    row = learned_encoding(torch.tensor([PLACE]), table)[0]
    print(f"place {PLACE} has the row {row[0]:.2f}, {row[1]:.2f}, ...")
except ValueError as error:
    print(f"refused: {error}")

# %% [markdown]
# **What does the table say of the place after its last?**
#
# <details markdown="1"><summary>Answer</summary>
#
# Nothing, and this file says so. A table is exact where it was trained and silent beyond:
# [why not simply learn a vector for every place?](../guide/learned.md)
#
# </details>
#
# Sines and cosines have a row for every place. Each pair of columns is the hand of a clock: the first pair turns
# fastest, every further one more slowly, and the base says by how much.

# %% alt="A map of the encoding: places downwards, columns across. On the left narrow stripes, which get wider to the right until the last columns hardly change."
from snippets.sinusoidal import sinusoidal_encoding

CLOCK = 10_000.0  # change me: the base
rows = sinusoidal_encoding(torch.arange(64), 32, CLOCK)
fig, ax = plt.subplots(figsize=(4.4, 2.6), layout="constrained")
ax.imshow(rows, aspect="auto")
ax.set_xlabel("column")
ax.set_ylabel("place")
plt.show()

# %% [markdown]
# **With a base of one hundred, what becomes of the left edge, and what of the right?**
#
# <details markdown="1"><summary>Answer</summary>
#
# The first two columns stay exactly as they are, for the first hand makes one radian a place whatever the base. All other
# hands turn faster, so the stripes on the right get narrower, and no column is nearly constant any more.
#
# </details>
#
# What are the hands good for? Multiply the rows of two places, number by number, and add up.

# %%
APART = 5  # change me: how many places the two are apart
for start in (0, 10, 1000, 100_000):
    one, other = sinusoidal_encoding(
        torch.tensor([start, start + APART]), 64, dtype=torch.float64
    )
    print(f"places {start:>6} and {start + APART:>6}: {one @ other:.6f}")

# %% [markdown]
# **What does the product know of the two places? Try a negative number, too.**
#
# <details markdown="1"><summary>Answer</summary>
#
# How far apart they are and nothing else: not where they stand, and not which comes first. Of each hand it is the cosine
# of the angle between its two positions, and a cosine is the same forwards and backwards.
#
# </details>
#
# That is a promise for the rows alone. A model adds them to words, and multiplies the sums. Move a whole text on and
# look at one score, between two of its words:

# %%
SHIFT = 100  # change me: by how many places the text moves on
query, key = torch.randn(2, 64, dtype=torch.float64)


def added(place):
    """The score of a query at `place` and a key three places before."""
    places = torch.tensor([place, place - 3])
    here, there = sinusoidal_encoding(places, 64, dtype=torch.float64)
    return ((query + here) @ (key + there)).item() / math.sqrt(64)


print(f"the score early in a text: {added(3):.4f}")
print(f"further on:                {added(3 + SHIFT):.4f}")

# %% [markdown]
# **The two words are as far apart as before. Why is the score another?**
#
# <details markdown="1"><summary>Answer</summary>
#
# The product of two sums has four parts: word by word, place by place, and twice word by place. Only the second has the
# promise. The last two depend on where each word stands.
#
# </details>
#
# The rest of the story: [sines and cosines](../guide/sinusoidal.md).
#
# ## Add a number to the score
#
# If only the distance is to count, add it to the score itself. ALiBi takes off a fixed amount for every step, more in
# some heads and less in others. Here all words are alike, so that the weights show the bias alone.

# %% alt="Weight by distance, four curves. One falls to nothing within a few places; each next one falls more slowly, and the last is nearly level."
from snippets.alibi import alibi_bias, alibi_slopes

HEADS = 8  # change me: how many heads share the slopes out
places = torch.arange(64)
bias = alibi_bias(places, places, alibi_slopes(HEADS))
weights = bias[:, -1].softmax(-1).flip(-1)  # of the last query
fig, ax = plt.subplots(figsize=(4.4, 2.6), layout="constrained")
for nth in range(0, HEADS, max(1, HEADS // 4)):
    ax.plot(places, weights[nth], label=f"head {nth}")
ax.set_xlabel("places back")
ax.set_ylabel("weight")
ax.legend()
plt.show()

# %% [markdown]
# **With four heads, does the first look further than the first of eight?**
#
# <details markdown="1"><summary>Answer</summary>
#
# Yes: it loses a quarter for every step, the first of eight loses a half. The last head is the same in both cases; four
# heads get there in larger steps, and the first is such a step, too.
#
# </details>
#
# No table ends here and no angle is new, so ALiBi can be computed at any distance, and far words fade. Whether that is
# wanted is another question: [what if far words should simply count less?](../guide/bias.md)
#
# ## Turn the vectors
#
# Most models of today do something else. They turn the query and the key before the two are multiplied, pair of numbers
# by pair of numbers, each pair at a speed of its own. This is RoPE.

# %%
from snippets.rope import apply_rope, rope_frequencies, rope_tables

BASE = 10_000.0  # change me: the base
frequencies = rope_frequencies(64, BASE)  # radians for each place
for pair in (0, 1, 8, 16, 24, 31):
    turn = 2 * math.pi / frequencies[pair]
    print(f"pair {pair:>2} comes round every {turn:>10,.1f} places")

# %% [markdown]
# **Which pair keeps its speed when the base is a hundred times as large? Which slows most?**
#
# <details markdown="1"><summary>Answer</summary>
#
# The first keeps it: any base to the power of zero is one. The last slows most, by almost as much as the base has grown.
# A larger base can keep the slow pairs from coming round within a long text.
#
# </details>
#
# Now the score from before, turned in the place of added:

# %%
MOVE = 100  # change me: by how many places the text moves on
frequencies = rope_frequencies(64, base=10000)


def turned(here, there):
    """The score of the query at one place and the key at another."""
    cos, sin = rope_tables(
        torch.tensor([here, there]), frequencies, torch.float64
    )
    q, k = apply_rope(torch.stack((query, key)), cos, sin, "half")
    return (q @ k).item() / math.sqrt(64)


print(f"the score early in a text: {turned(3, 0):.4f}")
print(f"further on:                {turned(3 + MOVE, MOVE):.4f}")

# %% [markdown]
# **Is there a distance so long that the two differ in these digits?**
#
# <details markdown="1"><summary>Answer</summary>
#
# Not in any text that you will meet. Both vectors turn on by the same angle, and what is between them stays. The
# distance counts, the place does not, and this holds whatever the words are. In the computer it holds up to rounding,
# which is why this file computes angles in float64.
#
# </details>
#
# A token that is decoded from a cache comes alone, and somebody has to tell RoPE its place. Here the last of ten words
# is turned alone, at a place that you give:

# %%
GIVEN = 0  # change me: the place that the last word is told to have
text = torch.randn(10, 64, dtype=torch.float64)
cos, sin = rope_tables(torch.arange(10), frequencies, torch.float64)
keys = apply_rope(text, cos, sin, "half")  # the cache, and the last query
whole = keys[-1] @ keys.T
cos, sin = rope_tables(torch.tensor([GIVEN]), frequencies, torch.float64)
alone = apply_rope(text[-1:], cos, sin, "half")[0] @ keys.T
gap = (alone - whole).abs().max()
print(f"largest difference from the whole text: {gap:.6f}")

# %% [markdown]
# **At which place does the difference vanish?**
#
# <details markdown="1"><summary>Answer</summary>
#
# At the number of words before it, since places count from zero. At any other nothing is raised and no shape is wrong;
# only the scores are. [Is it the positions?](../guide/debugging.md)
#
# </details>
#
# And how does the score depend on distance? Take a query and a key that are the same, so that at distance zero all
# pairs point the same way.

# %% alt="A score by distance. It begins at its highest, falls steeply within a few places and then wavers on a lower level."
LONGEST = 200  # change me: the longest distance shown
distances = torch.arange(LONGEST)
ones = torch.ones(1, 64)
cos, sin = rope_tables(distances, frequencies)
score = apply_rope(ones.expand(LONGEST, 64), cos, sin, "half") @ ones[0]
fig, ax = plt.subplots(figsize=(4.4, 2.4), layout="constrained")
ax.plot(distances, score / 64)
ax.set_xlabel("distance")
ax.set_ylabel("score, of its largest")
plt.show()

# %% [markdown]
# **Does the score fall for ever? Look at twenty thousand.**
#
# <details markdown="1"><summary>Answer</summary>
#
# No, and at the start not at every step either. It is a sum of cosines, one for each pair, and cosines come back: those of
# the fast pairs lift it again within a few places, and go on doing so. On the whole it sinks as long as the slowest pair
# has not turned far; beyond that it wavers around zero. And that was for one query and key. Others can score highest at
# any distance: [what most of today's models do](../guide/rope.md).
#
# </details>
#
# ## Past the trained length
#
# RoPE can be *computed* at any distance. Does a head *work* there? Train one and see. It is asked for a word and has to
# find it somewhere in the text before; in its training, at most `TRAINED` places back.

# %%
from torch.nn.functional import cross_entropy

UPDATES = 200  # change me: how long it trains
TRAINED, KINDS = 64, 16  # the longest distance, and how many words there are
slow = rope_frequencies(32, base=10000)
some = torch.Generator().manual_seed(0)


def texts(count, length):
    """Words, nearest first; the one asked for, which stands there once."""
    asked = torch.randint(KINDS, (count,), generator=some)
    at = torch.randint(length, (count,), generator=some)
    others = torch.randint(1, KINDS, (count, length), generator=some)
    there = (others + asked[:, None]) % KINDS  # anything but that word
    there[torch.arange(count), at] = asked
    return there, asked, at


def scores(head, there, asked, used):
    """What the head gives each word of a text: (texts, length)."""
    queries, keys = head
    cos, sin = rope_tables(-1 - torch.arange(there.shape[1]), used)
    turned = apply_rope(keys[there], cos, sin, "half")
    return (turned @ queries[asked, :, None])[..., 0] / math.sqrt(32)


head = 0.3 * torch.randn(2, KINDS, 32, generator=some)
optimizer = torch.optim.Adam([head.requires_grad_()], lr=0.03)
for _ in range(UPDATES):
    there, asked, at = texts(32, TRAINED)
    loss = cross_entropy(scores(head, there, asked, slow), at)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
head = head.detach()
there, asked, at = texts(500, TRAINED)
loss = cross_entropy(scores(head, there, asked, slow), at)
print(f"the loss of a guess {math.log(TRAINED):.3f}, and its own {loss:.3f}")

# %% [markdown]
# **How many updates does it need to be better than a guess?**
#
# <details markdown="1"><summary>Answer</summary>
#
# Few. With none it is no better than a guess, and ten make it better already. Put the number back before you go on.
#
# </details>
#
# Now give it longer texts. How much weight does the right word get, by how far back it stands?

# %%
TIMES = 8  # change me: how many times longer the texts are


def found(used):
    """The mean weight of the right word: within the training, beyond."""
    some.manual_seed(1)
    there, asked, at = texts(500, TIMES * TRAINED)
    weights = scores(head, there, asked, used).softmax(-1)
    right = weights[torch.arange(500), at]
    return right[at < TRAINED].mean(), right[at >= TRAINED].mean()


inside, outside = found(slow)
print(f"trained distances {inside:.2f}, beyond {outside:.2f}")

# %% [markdown]
# **Twice as long is not much. Is it safe?**
#
# <details markdown="1"><summary>Answer</summary>
#
# No. The weight of words that stand further back than any in training falls even there. Nothing is raised and no number
# is missing: the head has simply never learned what these angles mean.
#
# </details>
#
# Which angles are new? Those of pairs that did not come round once in the training.

# %%
LENGTH = 64  # change me: the longest distance of a training
turns = LENGTH * slow / (2 * math.pi)
print(f"{(turns < 1).sum()} of {len(turns)} pairs have not come round")
for pair in (0, 4, 8, 12):
    print(f"pair {pair:>2} turned {turns[pair]:>7.3f} times")

# %% [markdown]
# **How long must a training be for all of them to come round?**
#
# <details markdown="1"><summary>Answer</summary>
#
# As long as the slowest pair takes for a turn, tens of thousands of places with this base and head. Where a training is
# shorter, longer texts bring such pairs new angles.
#
# </details>
#
# Then slow them down. *Interpolation* slows all pairs by the factor, *NTK-aware* scaling slows the last by the factor
# and the first not at all, *by parts* slows those that have not come round and leaves those that turned often. None of
# them trains anything.

# %%
from snippets.rope_scaling import (
    ntk_aware,
    ntk_by_parts,
    position_interpolation,
)

FACTOR = 8.0  # change me: by how much to slow
remedies = {
    "unchanged": slow,
    "interpolation": position_interpolation(slow, FACTOR),
    "NTK-aware": ntk_aware(slow, FACTOR),
    "by parts": ntk_by_parts(slow, FACTOR, TRAINED, 1.0, 4.0),
}
print("weight of the right word   trained  beyond")
for name, used in remedies.items():
    inside, outside = found(used)
    print(f"  {name:<25}{inside:>7.2f}{outside:>8.2f}")

# %% [markdown]
# **Is a factor of two enough for these texts?**
#
# <details markdown="1"><summary>Answer</summary>
#
# No. The slow pairs still go on to angles that the training never had. To keep them from there, the factor has to be how
# many times longer the texts are.
#
# </details>
#
# Then why not slow all pairs, and by much? Because some heads do not search: they look a few places back, whatever stands
# there. Such a head has a query that fits a key best when the key is `BACK` places behind. No training is needed to see
# what slowing does to it.

# %%
BACK = 3  # change me: where the head looks
behind = torch.arange(TIMES * TRAINED)
for name, used in remedies.items():
    cos, sin = rope_tables(torch.tensor([-BACK]), slow)
    looking = apply_rope(torch.ones(1, 32), cos, sin, "half")[0]
    cos, sin = rope_tables(-behind, used)
    keys = apply_rope(torch.ones(len(behind), 32), cos, sin, "half")
    weights = (keys @ looking).softmax(-1)
    print(f"  {name:<15}looks at distance {weights.argmax()}, ", end="")
    print(f"with a weight of {weights.max():.2f}")

# %% [markdown]
# **Which remedy turns this head's eyes elsewhere, and which serves both heads?**
#
# <details markdown="1"><summary>Answer</summary>
#
# Interpolation does: slowed by the factor, the key that fits stands as many times further back. By parts serves both
# heads, as long as this one looks a few places back, and at a price: compare its weight with the first. Let it look
# thirty places back, and no remedy leaves it where it was.
#
# </details>
#
# YaRN slows its pairs by parts, and so does Llama 3.1. Most papers then train the model a little more:
# [how is a model made to read more than it was trained on?](../guide/long-context.md)
#
# ## Where to go from here
#
# - [Choose a question](../index.md) and a depth. Each chapter tells its idea four times.
# - Build one yourself: the [labs](../labs/index.md) have hints, and checks that name the mistake.
# - Take the file: [RoPE](../reference/rope.md), [its scaling](../reference/rope_scaling.md),
#   [ALiBi](../reference/alibi.md), [sinusoids](../reference/sinusoidal.md), and all others.
