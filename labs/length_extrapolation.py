# %% [markdown]
# # Lab: beyond the trained length
#
# Train two small attention heads on short texts, see what becomes of them in longer ones, and mend it.
#
# **Goal.** You measure what a head does at distances that it was never trained on, in a way that does not fool you; you
# find the pairs of RoPE that are to blame; and you change their
# frequencies so that the finder works there again and the looker still does.
#
# **Time.** About an hour.
#
# **You need.** [RoPE](../guide/rope.md) up to the intermediate level, with
# [where it breaks](../guide/rope.md#where-it-breaks), and some PyTorch. The training takes a second or two.

# %%
import math

import matplotlib.pyplot as plt
import torch
from torch.nn.functional import cross_entropy

from labs.judge import judge, right_and_wrong
from snippets.rope import apply_rope, rope_frequencies, rope_tables

_ = torch.manual_seed(0)
DIM, WORDS = 32, 16  # the channels of a head, and the words that there are
TRAINED, ASKED = 64, 512  # the longest distances: in training, and then
BACK = 3  # where one of the heads is to look
frequencies = rope_frequencies(DIM, base=10000)

# %% [markdown]
# ## Two heads
#
# Each head stands at the end of a text and looks back. With RoPE its score hears of the places only by their distance,
# so that we need no more than this:


# %%
def score_by_distance(query, key, frequencies, distances):
    """The score of a query with a key that stands so far back.

    query  (..., dim)    key  (..., distances or 1, dim)
    """
    key = key.expand(*key.shape[:-2], len(distances), DIM)
    cos, sin = rope_tables(-distances, frequencies)
    turned = apply_rope(key, cos, sin, "half")
    return (turned @ query[..., None])[..., 0] / math.sqrt(DIM)


# %% [markdown]
# The **finder** is asked for a word and has to find it, wherever it stands. It has a query and a key for every word.
# The **looker** has one query and one key and has to look at the token `BACK` places back, whatever stands there. They
# stand for two things that attention does: finding by content, and finding by place.
#
# Their training rewards the weight on the right token directly. (A language model has to discover by itself what to
# look at.) Both meet distances up to `TRAINED`, and none beyond.


# %%
def trained(start, loss_of):
    """Queries and keys after some updates that lower the loss."""
    weights = start.requires_grad_()
    optimizer = torch.optim.Adam([weights], lr=0.03)
    for _ in range(200):
        loss = loss_of(*weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return weights.detach()


def texts(count, length, generator):
    """Random words, and in each text one that stands there only once.

    Gives words (count, length), nearest first; the word that is asked for
    and the distance at which it stands, both (count,).
    """
    asked = torch.randint(WORDS, (count,), generator=generator)
    distance = torch.randint(1, length + 1, (count,), generator=generator)
    words = torch.randint(1, WORDS, (count, length), generator=generator)
    words = (words + asked[:, None]) % WORDS  # anything but that word
    words[torch.arange(count), distance - 1] = asked
    return words, asked, distance


known = torch.arange(1, TRAINED + 1)  # the distances of the training
some = torch.Generator().manual_seed(0)


def finder_loss(queries, keys):
    words, asked, distance = texts(32, TRAINED, some)
    scores = score_by_distance(
        queries[asked], keys[words], frequencies, known
    )
    return cross_entropy(scores, distance - 1)


def looker_loss(query, key):
    scores = score_by_distance(query, key[None], frequencies, known)
    return cross_entropy(scores, torch.tensor(BACK - 1))


finder = trained(0.3 * torch.randn(2, WORDS, DIM), finder_loss)
looker = trained(0.3 * torch.randn(2, DIM), looker_loss)
print(f"finder: loss {finder_loss(*finder):.2f}")
print(f"looker: loss {looker_loss(*looker):.2f}")

# %% [markdown]
# ## Step one: measure
#
# Now texts of `ASKED` words. In some, the word stands at a distance of the training; in others, further back. How much
# weight does it get, in the one kind and in the other?
#
# Compare *distances within the same long texts*, never short texts with long ones: in a longer text more tokens compete
# for the weight, and that alone makes it smaller.


# %% tags=["starter"]
def inside_and_outside(scores, distance, trained):
    """The mean weight of the right token: in the trained range, beyond it.

    scores    (texts, length), column 0 for the token one place back
    distance  (texts,), where the right token stands: 1 to length
    trained   the longest distance of the training
    """
    return torch.tensor(0.0), torch.tensor(0.0)  # change this


# %% tags=["solution"]
def inside_and_outside(scores, distance, trained):
    """The mean weight of the right token: in the trained range, beyond it.

    scores    (texts, length), column 0 for the token one place back
    distance  (texts,), where the right token stands: 1 to length
    trained   the longest distance of the training
    """
    weights = scores.softmax(-1)
    right = weights[torch.arange(len(weights)), distance - 1]
    inside = distance <= trained
    return right[inside].mean(), right[~inside].mean()


# %% tags=["judge"]
def check_inside_and_outside(yours):
    """Compare with the solution, then with what often goes wrong."""
    some, cases = torch.Generator().manual_seed(1), {}
    for words, distance, trained in (
        ("texts of 8 words", [1, 2, 3, 4, 5, 7], 4),
        ("texts of 12 words", [9, 2, 10, 5, 5, 6, 1, 11], 5),
    ):
        length = 8 if trained == 4 else 12
        scores = torch.randn(len(distance), length, generator=some)
        cases[words] = scores, torch.tensor(distance), trained

    def numbers(function, *given):
        """Tensors or floats, both are fine."""
        made = function(*given)
        two = isinstance(made, (tuple, list)) and len(made) == 2
        return (
            tuple(torch.as_tensor(each).item() for each in made)
            if two
            else made
        )

    step = "inside_and_outside"
    right, mistakes = right_and_wrong("length_extrapolation", step, globals())
    return judge(yours, right, cases, mistakes, call=numbers)


# %% tags=["check"]
passed = check_inside_and_outside(inside_and_outside)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Three things, in this order: weights from scores, one weight from each text, the mean of two kinds of texts. Over which
# axis does the softmax go?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# Tokens of one text compete, so the softmax is over the last axis. Picking one column from each row is
# `weights[torch.arange(len(weights)), columns]`. Mind which column belongs to distance one.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# With `inside = distance <= trained`, a tensor of True and False, the two means are `right[inside].mean()` and
# `right[~inside].mean()`.
#
# </details>


# %%
def measure(used):
    """Weights with other frequencies: the finder's two, the looker's."""
    distances = torch.arange(1, ASKED + 1)
    words, asked, distance = texts(
        1000, ASKED, torch.Generator().manual_seed(1)
    )
    table = score_by_distance(
        finder[0][:, None], finder[1][:, None], used, distances
    )  # (words asked for, words there, distances)
    scores = table[asked[:, None], words, distances - 1]
    found = inside_and_outside(scores, distance, TRAINED)
    looks = score_by_distance(looker[0], looker[1][None], used, distances)
    return *found, looks.softmax(-1)[BACK - 1]


inside, outside, looks = measure(frequencies)
print("weight on the right token, unchanged")
print(f"  finder, trained distances  {inside:.2f}")
print(f"  finder, beyond             {outside:.2f}")
print(f"  looker                     {looks:.2f}")

# %% [markdown]
# Inside, the finder is sure. Beyond, it loses most of its weight, though nothing was raised and no number is missing:
# that RoPE *can be computed* at any distance does not make a head *work* there. The looker is safe, since its token
# never leaves the trained range and the far ones happen to score low. What goes on in the finder?

# %% alt="Mean scores by distance, with a grey band for the trained range. In the band the same word scores high and other words low. To the right of it the first curve falls and the second rises until they meet."
distances = torch.arange(1, ASKED + 1)
table = score_by_distance(
    finder[0][:, None], finder[1][:, None], frequencies, distances
)  # (words asked for, words there, distances)
same = torch.eye(WORDS, dtype=torch.bool)
fig, ax = plt.subplots(figsize=(4.4, 2.7), layout="constrained")
ax.axvspan(1, TRAINED, color="gray", alpha=0.2, linewidth=0)
ax.semilogx(distances, table[same].mean(0), label="the same word")
ax.semilogx(distances, table[~same].mean(0), "--", label="other words")
ax.set_xlabel("distance")
ax.set_ylabel("mean score")
ax.legend()
plt.show()

# %% [markdown]
# Training has shaped these curves inside the band. Beyond it nothing holds them.
#
# ## Step two: which pairs are to blame?
#
# A pair turns by $w$ radians at every step of distance. If it came round at least once within the trained distances, a
# longer text brings it no new angle, up to the gaps between whole steps. If it did not, a longer text does. Mark the
# pairs that meet new angles, for a training up to distance `trained` and texts that ask for distances up to `asked`.


# %% tags=["starter"]
def meets_new_angles(frequencies, trained, asked):
    """Which pairs are asked for angles beyond those of the training: bool.

    frequencies     (pairs,), in radians for each step of distance
    trained, asked  the longest distance in training, and in the texts now
    """
    return torch.zeros(len(frequencies), dtype=torch.bool)  # change this


# %% tags=["solution"]
def meets_new_angles(frequencies, trained, asked):
    """Which pairs are asked for angles beyond those of the training: bool.

    frequencies     (pairs,), in radians for each step of distance
    trained, asked  the longest distance in training, and in the texts now
    """
    unfinished = trained * frequencies < 2 * math.pi
    return unfinished & (asked > trained)


# %% tags=["judge"]
def check_meets_new_angles(yours):
    """Compare with the solution, then with what often goes wrong."""
    few, many = (rope_frequencies(dim, base=10000) for dim in (32, 64))
    just = 2 * math.pi / torch.tensor([63.9, 64.1])  # and just not a turn
    cases = {
        "texts eight times as long": (few, 64, 512),
        "texts a little longer": (many, 1000, 1100),
        "texts that are shorter": (few, 512, 128),
        "texts four times as long": (few, 64, 256),
        "texts of the trained length": (few, 64, 64),
        "a pair that just comes round, one just not": (just, 64, 128),
    }
    step = "meets_new_angles"
    right, mistakes = right_and_wrong("length_extrapolation", step, globals())
    return judge(yours, right, cases, mistakes)


# %% tags=["check"]
passed = check_meets_new_angles(meets_new_angles)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# At distance $n$ a pair has turned by $n w$ radians. How far does it get in training?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# A whole turn has $2\pi$ radians. A pair with less than that at the end of the training goes on into angles that it
# never had, as soon as texts are longer than that. Texts that are not longer ask nobody for anything new.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# Two conditions, joined by `&`, each in its bracket: `(trained * frequencies < 2 * math.pi)` and `(asked > trained)`.
#
# </details>

# %%
new = meets_new_angles(frequencies, TRAINED, ASKED)
print("pair   turns in training   new angles")
for pair in (0, 2, 4, 5, 6, 10, 15):
    share = TRAINED * frequencies[pair] / (2 * math.pi)
    print(f"{pair:>4}   {share:>17.3f}   {'yes' if new[pair] else 'no':>10}")
print(f"{new.sum()} of {len(new)} pairs meet new angles")

# %% [markdown]
# ## Step three: mend it
#
# Change the frequencies, and nothing else, so that no pair is asked for an angle that it does not know:
#
# - a pair that meets new angles is slowed, by so much that at distance `asked` it stands where it stood at distance
#   `trained` before;
# - every other pair stays as it is.


# %% tags=["starter"]
def mend(frequencies, trained, asked):
    """Frequencies that ask no pair for new angles: (pairs,).

    frequencies     (pairs,), in radians for each step of distance
    trained, asked  the longest distance in training, and in the texts now
    """
    return frequencies  # change this


# %% tags=["solution"]
def mend(frequencies, trained, asked):
    """Frequencies that ask no pair for new angles: (pairs,).

    frequencies     (pairs,), in radians for each step of distance
    trained, asked  the longest distance in training, and in the texts now
    """
    new = meets_new_angles(frequencies, trained, asked)
    return torch.where(new, frequencies * trained / asked, frequencies)


# %% tags=["judge"]
def check_mend(yours):
    """Compare with the solution, then with what often goes wrong."""
    few, many = (rope_frequencies(dim, base=10000) for dim in (16, 32))
    cases = {
        "texts eight times as long": (many, 64, 512),
        "texts a half longer": (few, 200, 300),
        "texts that are shorter": (many, 512, 128),
    }
    right, mistakes = right_and_wrong(
        "length_extrapolation", "mend", globals()
    )
    return judge(yours, right, cases, mistakes, tolerance=1e-6)


# %% tags=["check"]
passed = check_mend(mend)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Take one pair with frequency $w$. Where does it stand at distance $L$, the end of the training? Which $w'$ takes it to
# the same angle at the longer distance $A$?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# $A\,w' = L\,w$, so $w' = w\,L / A$. That is for the pairs which step two marks; the others keep their $w$.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `torch.where(mask, this, that)` takes from `this` where the mask is True and from `that` elsewhere. The mask is
# `meets_new_angles(frequencies, trained, asked)`.
#
# </details>

# %% [markdown]
# Put it to the test, beside position interpolation, which slows all pairs:

# %%
remedies = {
    "unchanged": frequencies,
    "interpolation": frequencies * TRAINED / ASKED,
    "yours": mend(frequencies, TRAINED, ASKED),
}
print("weight on the       finder            looker")
print("right token    trained   beyond")
for name, used in remedies.items():
    inside, outside, looks = measure(used)
    print(f"{name:<13}  {inside:>7.2f}  {outside:>7.2f}  {looks:>8.2f}")

# %% [markdown]
# Interpolation mends the finder and ruins the looker: the token that the looker wants is now turned by less than its
# nearest neighbour was in training. Slowing only the pairs in need serves both. The price is small here, and not
# nothing: compare the looker's weight with what it was.

# %% alt="Mean score of the same word by distance for three choices of frequencies. Unchanged, it falls beyond the trained range. With interpolation, and with only the pairs in need slowed, it stays high to the end."
fig, ax = plt.subplots(figsize=(4.4, 2.9), layout="constrained")
ax.axvspan(1, TRAINED, color="gray", alpha=0.2, linewidth=0)
for (name, used), line in zip(remedies.items(), ("-", "--", "-.")):
    table = score_by_distance(*finder[:, :, None], used, distances)
    ax.semilogx(distances, table[same].mean(0), line, label=name)
ax.set_xlabel("distance")
ax.set_ylabel("mean score")
fig.legend(loc="outside lower center", ncols=3)
plt.show()

# %% [markdown]
# **What this does not show.** These are two heads without a language, each trained for one thing. In a model, heads do
# both at once and feed each other, and slowing brings *combinations* of angles that training never had, even where each
# angle alone is known. Most of the papers therefore train a model on a little after such a change, and then
# [measure](../guide/long-context.md#the-idea). Your remedy is a step where other methods have a ramp: it is [NTK-by-parts](../guide/long-context.md) with both ends of the
# ramp at one turn, as [Meta's code](../bibliography.md#llama-scaling-code) has it for Llama 4 Scout.
#
# ## What you can do now
#
# You can measure a head at distances beyond its training without being fooled by a mean or by the length of the text;
# you can say which pairs of RoPE a longer text takes to new angles; and you can slow those and no others.
#
# - Go on with the labs on [NTK-aware RoPE](ntk_rope.md) and [YaRN](yarn.md).
# - Read again: [where RoPE breaks](../guide/rope.md#where-it-breaks) and
#   [where its remedies break](../guide/long-context.md#where-it-breaks). For models of your own:
#   [debugging](../guide/debugging.md).
# - The tested code: [`rope.py`](../reference/rope.md) and [`rope_scaling.py`](../reference/rope_scaling.md).
