# %% [markdown]
# # Lab: build M-RoPE, and find the swapped axes
#
# A model that reads pictures among words gives each token three positions: a time, a row and a column. You make them, let
# RoPE turn by them, and then look at three models that claim to do the same. One has rows and columns swapped. No error
# tells which, and no text does.
#
# **Goal.** Four short functions: the positions of a prompt with a picture, the angles of M-RoPE, which axis each pair of an
# unknown rotation turns by, and a verdict.
#
# **Time.** About forty-five minutes.
#
# **You need.** [RoPE](../guide/rope.md), its frequencies and its pairs, and from [pictures](../guide/images.md) the idea that
# a patch has a row and a column.

# %%
import random

import matplotlib.pyplot as plt
import torch

from labs.judge import judge, right_and_wrong
from snippets.mrope import pair_axes
from snippets.rope import apply_rope, rope_frequencies

_ = torch.manual_seed(0)

# %% [markdown]
# ## Step one: three positions for each token
#
# A prompt has words, then a picture, then words again. The rules, as in Qwen2-VL:
#
# - A **word** has the same number three times. The first word has zero, the next word one, and so on.
# - The **patches** of the picture come row by row. The picture begins with the number that the next word would have had,
#   on all three axes. From there the row and the column count; the time stands still, as a picture is one moment.
# - **Words behind** the picture go on after as many numbers as its longer side has patches.
#
# Return time, row and column of each token, in this order. (Qwen2-VL makes one token of four patches, two by two. Take
# a patch here as what gives one token.)


# %% tags=["starter"]
def prompt_positions(before, rows, columns, behind):
    """Time, row and column of each token: (tokens, 3), int64.

    before, behind  how many words come before and behind the picture
    """
    tokens = before + rows * columns + behind
    return torch.arange(tokens)[:, None].repeat(1, 3)  # yours: change this


# %% tags=["solution"]
def prompt_positions(before, rows, columns, behind):
    """Time, row and column of each token: (tokens, 3), int64.

    before, behind  how many words come before and behind the picture
    """
    words = torch.arange(before)[:, None].repeat(1, 3)
    row = torch.arange(rows).repeat_interleave(columns)
    column = torch.arange(columns).repeat(rows)
    time = torch.zeros_like(row)
    picture = before + torch.stack((time, row, column), -1)
    begin = before + max(rows, columns)
    more = begin + torch.arange(behind)[:, None].repeat(1, 3)
    return torch.cat((words, picture, more))


# %% tags=["judge"]
def check_positions_of_prompt(yours):
    """Pictures that are wide, tall, square and small."""
    cases = {
        "two words, two rows of four patches, two words": (2, 2, 4, 2),
        "one word, five rows of two patches, three words": (1, 5, 2, 3),
        "three words, two rows of two patches, one word": (3, 2, 2, 1),
        "four words, one patch, two words": (4, 1, 1, 2),
    }
    right, mistakes = right_and_wrong(
        "swapped_axes", "prompt_positions", globals()
    )
    return judge(yours, right, cases, mistakes)


# %% tags=["check"]
passed = check_positions_of_prompt(prompt_positions)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Write the table for one word, a picture of two rows and three columns, and one word on paper: nothing but small numbers.
# The last word has a four, three times.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# Of the patches, the row is `0 0 0 1 1 1` and the column `0 1 2 0 1 2`: torch has `repeat_interleave` for the one and `repeat`
# for the other. The time is a row of zeros. Then add the number of words before the picture to all three.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# Make three tensors of `(tokens, 3)` and join them by `torch.cat`. The last begins at `before + max(rows, columns)`.
#
# </details>

# %% alt="Time, row and column over the number of the token, for four words, a picture of four rows of six patches, and four words. In words all three lines climb together. In the picture the time stands still, the row climbs in steps, and the column climbs four times from the same number."
prompt = prompt_positions(before=4, rows=4, columns=6, behind=4)
plt.figure(figsize=(4.4, 2.6))
for axis, name in enumerate(("time", "row", "column")):
    shown = prompt[:, axis] + 0.12 * axis  # beside each other
    plt.plot(shown, ".-", markersize=4, color=f"C{axis}", label=name)
plt.xlabel("token")
plt.ylabel("position")
plt.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
plt.show()

# %% [markdown]
# ## Step two: from RoPE to M-RoPE
#
# RoPE turns pair $p$ of a token at position $m$ by $m\,\omega_p$. M-RoPE changes one thing: each pair has an **axis**, and
# turns by the position on that axis. The frequencies stay those of the whole head, so that words are turned as
# before.
#
# $$
# \text{angle}_p = \text{position}_{a(p)} \cdot \omega_p
# $$
#
# `axes` holds $a(p)$, a number from zero to two for each pair. Here is how Qwen2-VL gives pairs out, in chunks, and how
# Qwen3-VL does, in turn:

# %%
DIM, SECTIONS = 32, [6, 5, 5]
for layout in ("chunks", "interleaved"):
    print(f"{layout:12}", *pair_axes(SECTIONS, layout).tolist())

# %% [markdown]
# Write the angles of all tokens. The starter is RoPE, by the time alone.


# %% tags=["starter"]
def mrope_angles(positions, frequencies, axes):
    """Radians that each pair turns by: (tokens, pairs).

    positions    time, row, column: (tokens, 3)
    frequencies  radians per position: (pairs,)
    axes         0, 1 or 2 for each pair: (pairs,)
    """
    return positions[:, :1] * frequencies  # yours: change this


# %% tags=["solution"]
def mrope_angles(positions, frequencies, axes):
    """Radians that each pair turns by: (tokens, pairs).

    positions    time, row, column: (tokens, 3)
    frequencies  radians per position: (pairs,)
    axes         0, 1 or 2 for each pair: (pairs,)
    """
    return positions[:, axes] * frequencies


# %% tags=["judge"]
def check_angles(yours):
    """Chunks, interleaved, and pairs that one axis has alone."""
    positions = torch.tensor([[5, 5, 5], [6, 8, 11], [6, 9, 7], [12, 3, 2]])
    cases = {
        f"{sections}, {layout}": (
            positions,
            rope_frequencies(2 * sum(sections), base=10000),
            pair_axes(sections, layout),
        )
        for sections, layout in (
            ([2, 3, 3], "chunks"),
            ([4, 2, 2], "interleaved"),
            ([1, 2, 4], "chunks"),
            (SECTIONS, "interleaved"),
        )
    }
    right, mistakes = right_and_wrong(
        "swapped_axes", "mrope_angles", globals(), pairs=False
    )
    return judge(yours, right, cases, mistakes)


# %% tags=["check"]
passed = check_angles(mrope_angles)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# For pair `p` you need the column `axes[p]` of `positions`. First write it as a loop over pairs.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# A tensor may be indexed by a tensor: `x[:, [2, 0, 0]]` has the columns two, zero and zero of `x`.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `positions[:, axes]` is (tokens, pairs), and `frequencies` is (pairs,): their product is what you want.
#
# </details>

# %% [markdown]
# ## Three models
#
# All three claim: M-RoPE with `SECTIONS`, interleaved, in the half layout. One keeps to it. One has rows and columns swapped. One
# gives out its pairs in another way. Nothing is downloaded: heads with the same random weights stand for the models,
# `turned` for a breakpoint around the rotation, and a lot decides which is which, so that this cell does not tell you.

# %%
FREQUENCIES = rope_frequencies(DIM, base=10000)
CLAIMED = pair_axes(SECTIONS, "interleaved")
WEIGHTS = torch.randn(2, DIM, DIM, dtype=torch.float64) / DIM**0.5
EXCHANGE = torch.tensor([0, 2, 1])  # time, column, row


class Model:
    """A head that you can run; its axes are for you to find."""

    def __init__(self, axes):
        self._axes = axes

    def turned(self, x, positions):
        """Queries or keys as the rotation leaves them: like x."""
        angles = positions[:, self._axes] * FREQUENCIES
        return apply_rope(x, angles.cos(), angles.sin(), "half")

    def scores(self, vectors, positions):
        """Scores of each query, a row, with each key: (tokens, tokens)."""
        q, k = (self.turned(vectors @ w, positions) for w in WEIGHTS)
        return q @ k.T / DIM**0.5


models = [
    Model(CLAIMED),
    Model(EXCHANGE[CLAIMED]),
    Model(pair_axes(SECTIONS, "chunks")),
]
random.Random(11).shuffle(models)
claim = Model(CLAIMED)


def gap(model, positions):
    """How far scores are from those of the claim, as a share of them."""
    vectors = torch.randn(len(positions), DIM, dtype=torch.float64)
    ours, theirs = (one.scores(vectors, positions) for one in (claim, model))
    return ((ours - theirs).std() / ours.std()).item()


text = torch.arange(32)[:, None].repeat(1, 3)
for number, model in enumerate(models):
    print(f"model {number}: {gap(model, text):.2f} off in a text,", end=" ")
    print(f"{gap(model, prompt):.2f} with a picture")

# %% [markdown]
# In a text all three are exact, whatever their axes: words have three equal numbers. A test that knows words alone
# passes them all. With a picture two are off, by about as much. And where? Take the last word of the prompt, and compare its
# score with each token, over many prompts:


# %% alt="Change of the last word's scores over the token that it looks at, one line for each of three models. All are zero at words before and behind the picture. Within the picture one model stays at zero; another rises at all patches but falls to zero where row and column are the same; a third is off at all patches but the first."
def change_by_token(model, positions, prompts=200):
    """How far the last word's score with each token is off: (tokens,)."""
    squares = torch.zeros(len(positions), dtype=torch.float64)
    for _ in range(prompts):
        vectors = torch.randn(len(positions), DIM, dtype=torch.float64)
        ours = claim.scores(vectors, positions)[-1]
        squares += (model.scores(vectors, positions)[-1] - ours).square()
    return (squares / prompts).sqrt()


prompt = prompt_positions(before=4, rows=4, columns=6, behind=4)
plt.figure(figsize=(4.4, 2.6))
for number, model in enumerate(models):
    change = change_by_token(model, prompt)
    plt.plot(change, ".-", color=f"C{number}", label=f"model {number}")
plt.xlabel("token")
plt.ylabel("change of score")
plt.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
plt.show()

# %% [markdown]
# A line shows *that* something is off, and one of the lines hints at what. For a proof, look at the rotation itself.
#
# ## Step three: which axis does each pair turn by?
#
# Feed what you know. Let a token move by one step on one axis alone, all else zero: only pairs of that axis turn. A unit
# vector in channel $p$ then becomes a cosine in its own channel and a sine in that of its partner, channel $p + d/2$. All unit
# vectors at once are the unit matrix, so the sines of all pairs are one diagonal of what comes out:
#
# ```python
# turned(torch.eye(dim, dtype=torch.float64), place)  # place: (dim, 3)
# ```
#
# `turned` is a function as above, `models[0].turned` for one. Find the axis that each pair turns by.


# %% tags=["starter"]
def read_axes(turned, dim):
    """Which axis each pair turns by: (dim / 2,), int64; 0 is time."""
    return torch.zeros(dim // 2, dtype=torch.int64)  # yours: change this


# %% tags=["solution"]
def read_axes(turned, dim):
    """Which axis each pair turns by: (dim / 2,), int64; 0 is time."""
    units = torch.eye(dim, dtype=torch.float64)
    sines = []
    for axis in range(3):
        place = torch.zeros(dim, 3, dtype=torch.int64)
        place[:, axis] = 1
        matrix = turned(units, place)
        sines.append(matrix.diagonal(dim // 2))
    return torch.stack(sines).argmax(0)


# %% tags=["judge"]
def rotation(axes):
    """A rotation of which each pair has its axis, by RoPE's frequencies."""
    frequencies = rope_frequencies(2 * len(axes), base=10000)

    def turned(x, positions):
        angles = positions[:, axes] * frequencies
        return apply_rope(x, angles.cos(), angles.sin(), "half")

    return turned


def check_axes(yours):
    """Rotations of other sizes and sections than those of the models."""
    cases = {
        f"{sections}, {layout}": (
            rotation(pair_axes(sections, layout)),
            2 * sum(sections),
        )
        for sections, layout in (
            ([2, 3, 3], "chunks"),
            ([4, 2, 2], "interleaved"),
            ([1, 2, 4], "chunks"),
        )
    }
    swapped = EXCHANGE[pair_axes([3, 2, 1], "interleaved")]
    cases["rows and columns swapped"] = (rotation(swapped), 12)
    right, mistakes = right_and_wrong(
        "swapped_axes", "read_axes", globals(), pairs=False
    )
    return judge(yours, right, cases, mistakes)


# %% tags=["check"]
passed = check_axes(read_axes)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Three measurements, one for each axis. `place` is zero but for a one in the column of that axis, for all `dim` unit
# vectors alike.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# `matrix.diagonal(dim // 2)` has the entries `matrix[p, p + dim // 2]`: the sines of all pairs.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# Stack the three rows of sines. In each column one number is above zero: `argmax(0)` says in which row.
#
# </details>

# %% [markdown]
# ## Step four: a verdict
#
# Compare what you read with what is claimed. Return `"right"` if both are the same, `"swapped"` if they are the same once
# rows and columns change places, and `"other"` if neither holds.


# %% tags=["starter"]
def verdict(read, claimed):
    """'right', 'swapped' or 'other', from the axes of pairs: (pairs,)."""
    return "right"  # yours: change this


# %% tags=["solution"]
def verdict(read, claimed):
    """'right', 'swapped' or 'other', from the axes of pairs: (pairs,)."""
    if torch.equal(read, claimed):
        return "right"
    exchanged = torch.tensor([0, 2, 1])[claimed]
    return "swapped" if torch.equal(read, exchanged) else "other"


# %% tags=["judge"]
def check_verdict(yours):
    """Axes that are right, swapped, and wrong in other ways."""
    woven = pair_axes([4, 2, 2], "interleaved")
    chunks = pair_axes([4, 2, 2], "chunks")
    uneven = pair_axes([2, 1, 3], "chunks")
    cases = {
        "the same axes": (woven, woven),
        "swapped, interleaved": (EXCHANGE[woven], woven),
        "swapped, in chunks of their own sizes": (EXCHANGE[uneven], uneven),
        "chunks for interleaved": (chunks, woven),
        "rows and columns mixed": (uneven[[0, 1, 3, 2, 4, 5]], uneven),
        "time and row exchanged": (torch.tensor([1, 0, 2])[woven], woven),
        "time and column exchanged": (2 - uneven, uneven),
        "backwards": (woven.flip(0), woven),
        "chunks the other way round": (chunks.flip(0), chunks),
    }
    right, mistakes = right_and_wrong(
        "swapped_axes", "verdict", globals(), pairs=False
    )
    return judge(yours, right, cases, mistakes)


# %% tags=["check"]
passed = check_verdict(verdict)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Two questions, in this order: are the two tensors equal? And are they, once each one has become a two and each two a one?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# `torch.equal(a, b)` is a plain yes or no. A table looked up by a tensor exchanges numbers:
# `torch.tensor([0, 2, 1])[claimed]`.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# How many pairs each axis has is not enough: two ways to give out the same numbers of pairs are two encodings.
#
# </details>

# %% [markdown]
# ## Which model is it, and a proof
#
# Now the three models. If one has rows and columns swapped, then it must agree once it is *given* columns for rows. Run it
# before and after you have solved step four.

# %%
for number, model in enumerate(models):
    found = verdict(read_axes(model.turned, DIM), CLAIMED)
    print(f"model {number}: {found}")
    if found == "swapped":
        vectors = torch.randn(len(prompt), DIM, dtype=torch.float64)
        theirs = model.scores(vectors, prompt[:, EXCHANGE])
        off = (theirs - claim.scores(vectors, prompt)).abs().max()
        print(f"  given columns for rows, it is off by {off:.0e}")

# %% [markdown]
# Look at the figure again. The swapped model was right at words, and at patches whose row and column are alike: exchanged,
# their places stay. So a test with words, or with a picture of one patch, finds nothing.
#
# ## What you can do now
#
# You can make the positions of a prompt with a picture, turn by them, and read off a rotation what it turns by. Test axes
# with a picture that is not square, and look at a patch off the diagonal.
#
# - The tested functions, with films and with the code of three released models: [`mrope.py`](../reference/mrope.md).
# - What else a place of a patch can be: [pictures and films](../guide/images.md).
# - Released code that had it wrong: [x and y swapped](../broken/images.md#x-for-y), and
#   [all faults with pictures](../broken/images.md).
# - The same way of asking, for base, layout and factor: [a released model](released_model.md).
