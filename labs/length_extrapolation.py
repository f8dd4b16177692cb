# %% [markdown]
# # Lab: Length extrapolation: RoPE beyond its training length
#
# Train two small attention heads on short texts, measure them in longer ones, and fix what fails.
#
# **Goal.** You measure a head at distances beyond its training length in a way that is not misleading; you find the
# pairs of RoPE that cause the failure; and you change their frequencies so that one head, the finder, works again and
# the other head, the looker, still does.
#
# **Time.** About an hour.
#
# **You need.** [RoPE](../guide/rope.md) up to the Intermediate level, with [where it
# breaks](../guide/rope.md#where-it-breaks), and some PyTorch. Training takes a second or two.

# %%
import math

import matplotlib.pyplot as plt
import torch
from torch.nn.functional import cross_entropy

from labs.judge import judge, right_and_wrong
from snippets.rope import apply_rope, rope_frequencies, rope_tables

_ = torch.manual_seed(0)
DIM, WORDS = 32, 16  # channels of a head, size of the vocabulary
TRAINED, ASKED = 64, 512  # longest distance: training, evaluation
BACK = 3  # the distance that the looker attends to
frequencies = rope_frequencies(DIM, base=10000)

# %% [markdown]
# ## Two heads
#
# Each head is at the end of a text and attends to earlier tokens. With RoPE, its score depends on positions only
# through their distance, so that this function is enough:


# %%
def score_by_distance(query, key, frequencies, distances):
    """Return the scores of a query with keys at the given distances.

    query  (..., dim)    key  (..., distances or 1, dim)
    """
    key = key.expand(*key.shape[:-2], len(distances), DIM)
    cos, sin = rope_tables(-distances, frequencies)
    turned = apply_rope(key, cos, sin, "half")
    return (turned @ query[..., None])[..., 0] / math.sqrt(DIM)


# %% [markdown]
# The **finder** is given a word and has to find it, wherever it is. It has a query and a key for every word. The
# **looker** has one query and one key and has to attend to the token `BACK` positions back, whatever it is. The two
# represent two uses of attention: finding by content and finding by position.
#
# Training rewards the weight on the right token directly. (A language model has to discover by itself which tokens to
# attend to.) Both heads are trained on distances up to `TRAINED`.


# %%
def trained(start, loss_of):
    """Return queries and keys after 200 updates that lower the loss."""
    weights = start.requires_grad_()
    optimizer = torch.optim.Adam([weights], lr=0.03)
    for _ in range(200):
        loss = loss_of(*weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return weights.detach()


def texts(count, length, generator):
    """Return random texts, each with one word that occurs only once.

    Returns the words (count, length), nearest first, the word to find,
    and its distance, both (count,).
    """
    asked = torch.randint(WORDS, (count,), generator=generator)
    distance = torch.randint(1, length + 1, (count,), generator=generator)
    words = torch.randint(1, WORDS, (count, length), generator=generator)
    words = (words + asked[:, None]) % WORDS  # any other word
    words[torch.arange(count), distance - 1] = asked
    return words, asked, distance


known = torch.arange(1, TRAINED + 1)  # the distances in training
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
# Now use texts of `ASKED` words. In some, the word is at a distance that occurred in training; in others, it is further
# back. How much weight does it get in each case?
#
# Compare *distances within the same long texts*, not short texts with long ones: in a longer text more tokens compete
# for the weight, which alone makes each weight smaller.


# %% tags=["starter"]
def inside_and_outside(scores, distance, trained):
    """Return the mean weight of the right token, inside and outside.

    scores    (texts, length), column 0 for the token at distance one
    distance  (texts,), distance of the right token, 1 to length
    trained   the longest distance in training
    """
    return torch.tensor(0.0), torch.tensor(0.0)  # change this


# %% tags=["solution"]
def inside_and_outside(scores, distance, trained):
    """Return the mean weight of the right token, inside and outside.

    scores    (texts, length), column 0 for the token at distance one
    distance  (texts,), distance of the right token, 1 to length
    trained   the longest distance in training
    """
    weights = scores.softmax(-1)
    right = weights[torch.arange(len(weights)), distance - 1]
    inside = distance <= trained
    return right[inside].mean(), right[~inside].mean()


# %% tags=["judge"]
def check_inside_and_outside(yours):
    """Compare with the solution, then with typical mistakes."""
    some, cases = torch.Generator().manual_seed(1), {}
    for words, distance, trained in (
        ("texts of 8 words", [1, 2, 3, 4, 5, 7], 4),
        ("texts of 12 words", [9, 2, 10, 5, 5, 6, 1, 11], 5),
    ):
        length = 8 if trained == 4 else 12
        scores = torch.randn(len(distance), length, generator=some)
        cases[words] = scores, torch.tensor(distance), trained

    def numbers(function, *given):
        """Accept tensors and floats."""
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
# Do three things, in this order: compute weights from scores, take one weight from each text, average over the two
# kinds of texts. Along which axis is the softmax?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# The tokens of one text compete, so the softmax is over the last axis. `weights[torch.arange(len(weights)), columns]`
# takes one column from each row. Note which column belongs to distance one.
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
    """Return the finder's two weights and the looker's weight."""
    distances = torch.arange(1, ASKED + 1)
    words, asked, distance = texts(
        1000, ASKED, torch.Generator().manual_seed(1)
    )
    table = score_by_distance(
        finder[0][:, None], finder[1][:, None], used, distances
    )  # (words to find, words in the text, distances)
    scores = table[asked[:, None], words, distances - 1]
    found = inside_and_outside(scores, distance, TRAINED)
    looks = score_by_distance(looker[0], looker[1][None], used, distances)
    return *found, looks.softmax(-1)[BACK - 1]


inside, outside, looks = measure(frequencies)
print("weight on the right token, unmodified RoPE")
print(f"  finder, training distances {inside:.2f}")
print(f"  finder, beyond             {outside:.2f}")
print(f"  looker                     {looks:.2f}")

# %% [markdown]
# At distances within the training length, the finder puts most of its weight on the right token. Beyond it, it loses
# most of this weight, although no error is raised and no number is missing: RoPE *can be computed* at any distance, but
# this does not make a head *work* there. The looker still works, because its token is always at a distance from
# training and tokens at larger distances happen to score low. What goes wrong in the finder?

# %% alt="Mean scores against distance, with a grey band for the training distances. In the band the same word scores high and other words low. To the right of it the first curve falls and the second rises until they meet."
distances = torch.arange(1, ASKED + 1)
table = score_by_distance(
    finder[0][:, None], finder[1][:, None], frequencies, distances
)  # (words to find, words in the text, distances)
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
# Training has shaped these curves inside the band, and only there.
#
# ## Step two: which pairs cause the failure?
#
# A pair rotates by $w$ radians per unit of distance. If it completes at least one rotation within the training length,
# a longer text brings no new angles, apart from the gaps between integer distances. If it does not, a longer text does.
# Mark the pairs that reach new angles, for training distances up to `trained` and texts with distances up to `asked`.


# %% tags=["starter"]
def meets_new_angles(frequencies, trained, asked):
    """Return which pairs reach angles that did not occur in training.

    frequencies     (pairs,), in radians per unit of distance
    trained, asked  the longest distance in training, and now
    """
    return torch.zeros(len(frequencies), dtype=torch.bool)  # change this


# %% tags=["solution"]
def meets_new_angles(frequencies, trained, asked):
    """Return which pairs reach angles that did not occur in training.

    frequencies     (pairs,), in radians per unit of distance
    trained, asked  the longest distance in training, and now
    """
    unfinished = trained * frequencies < 2 * math.pi
    return unfinished & (asked > trained)


# %% tags=["judge"]
def check_meets_new_angles(yours):
    """Compare with the solution, then with typical mistakes."""
    few, many = (rope_frequencies(dim, base=10000) for dim in (32, 64))
    just = 2 * math.pi / torch.tensor([63.9, 64.1])  # around one rotation
    cases = {
        "texts eight times as long": (few, 64, 512),
        "texts a little longer": (many, 1000, 1100),
        "texts that are shorter": (few, 512, 128),
        "texts four times as long": (few, 64, 256),
        "texts of the training length": (few, 64, 64),
        "a pair just over one rotation, one just under": (just, 64, 128),
    }
    step = "meets_new_angles"
    right, mistakes = right_and_wrong("length_extrapolation", step, globals())
    return judge(yours, right, cases, mistakes)


# %% tags=["check"]
passed = check_meets_new_angles(meets_new_angles)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# At distance $n$ a pair has rotated by $n w$ radians. How far does it rotate in training?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# A full rotation has $2\pi$ radians. A pair that has rotated by less at the end of the training length reaches new
# angles as soon as texts are longer. Texts that are not longer bring no new angles.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# There are two conditions, each in parentheses, joined by `&`: `(trained * frequencies < 2 * math.pi)` and
# `(asked > trained)`.
#
# </details>

# %%
new = meets_new_angles(frequencies, TRAINED, ASKED)
print("pair   rotations in training   new angles")
for pair in (0, 2, 4, 5, 6, 10, 15):
    share = TRAINED * frequencies[pair] / (2 * math.pi)
    print(f"{pair:>4}   {share:>21.3f}   {'yes' if new[pair] else 'no':>10}")
print(f"{new.sum()} of {len(new)} pairs reach new angles")

# %% [markdown]
# ## Step three: fix it
#
# Change only the frequencies, so that no pair reaches an angle that did not occur in training:
#
# - a pair that reaches new angles is slowed so that its angle at distance `asked` equals its previous angle at distance
#   `trained`;
# - every other pair keeps its frequency.


# %% tags=["starter"]
def mend(frequencies, trained, asked):
    """Return frequencies with which no pair reaches new angles, (pairs,).

    frequencies     (pairs,), in radians per unit of distance
    trained, asked  the longest distance in training, and now
    """
    return frequencies  # change this


# %% tags=["solution"]
def mend(frequencies, trained, asked):
    """Return frequencies with which no pair reaches new angles, (pairs,).

    frequencies     (pairs,), in radians per unit of distance
    trained, asked  the longest distance in training, and now
    """
    new = meets_new_angles(frequencies, trained, asked)
    return torch.where(new, frequencies * trained / asked, frequencies)


# %% tags=["judge"]
def check_mend(yours):
    """Compare with the solution, then with typical mistakes."""
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
# Take one pair with frequency $w$. What is its angle at distance $L$, the end of the training length? Which $w'$ gives
# the same angle at the longer distance $A$?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# $A\,w' = L\,w$, so $w' = w\,L / A$. Apply this to the pairs that step two marks; the other pairs keep their $w$.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `torch.where(mask, this, that)` takes values from `this` where the mask is True and from `that` elsewhere. The mask is
# `meets_new_angles(frequencies, trained, asked)`.
#
# </details>

# %% [markdown]
# Compare your fix with position interpolation, which slows all pairs:

# %%
remedies = {
    "unmodified": frequencies,
    "interpolation": frequencies * TRAINED / ASKED,
    "yours": mend(frequencies, TRAINED, ASKED),
}
print("weight on the       finder            looker")
print("right token     inside   beyond")
for name, used in remedies.items():
    inside, outside, looks = measure(used)
    print(f"{name:<13}  {inside:>7.2f}  {outside:>7.2f}  {looks:>8.2f}")

# %% [markdown]
# Interpolation fixes the finder and breaks the looker: at the distance that the looker needs, its key is now rotated by
# a smaller angle than the nearest neighbour was in training. Slowing only the affected pairs works for both heads. It
# has a small cost: compare the looker's weight with its weight before.

# %% alt="Mean score of the same word against distance for three choices of frequencies. With unmodified frequencies, it falls beyond the training distances. With interpolation, and with only the affected pairs slowed, it stays high to the end."
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
# **What this does not show.** These are two heads outside a language model, each trained for one task. In a model,
# heads do both and depend on each other, and slowing brings *combinations* of angles that did not occur in training,
# even where each angle alone did. Most papers therefore fine-tune a model after such a change, and then
# [measure](../guide/long-context.md#the-idea). Your fix has a step where other methods have a ramp: it is
# [NTK-by-parts](../guide/long-context.md) with both ends of the ramp at one rotation, as in [Meta's
# code](../bibliography.md#llama-scaling-code) for Llama 4 Scout.
#
# ## What you can do now
#
# You can measure a head at distances beyond its training length without being misled by a mean or by the length of the
# text; you can find the pairs of RoPE that reach new angles in a longer text; and you can slow only those pairs.
#
# - Go on with the labs on [NTK-aware RoPE](ntk_rope.md) and [YaRN](yarn.md).
# - Read again: [where RoPE breaks](../guide/rope.md#where-it-breaks) and [where context extension
#   breaks](../guide/long-context.md#where-it-breaks). For your own models: [debugging](../guide/debugging.md).
# - The tested code: [`rope.py`](../reference/rope.md) and [`rope_scaling.py`](../reference/rope_scaling.md).
