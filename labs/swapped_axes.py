# %% [markdown]
# # Lab: Implement M-RoPE and find the swapped axes
#
# A model that processes text and images gives each token three positions: a time, a row and a column. You compute these
# positions, rotate by them with RoPE, and then examine three models that claim to do the same. One has rows and columns
# swapped. This raises no error and does not change the result on text.
#
# **Goal.** You write four short functions: the positions of a prompt with an image, the angles of M-RoPE, a measurement
# of the axis by which each pair of an unknown rotation rotates, and a verdict.
#
# **Time.** About forty-five minutes.
#
# **You need.** [RoPE](../guide/rope.md), its frequencies and its pairs, and from [positional encoding for
# images](../guide/images.md) the idea that a patch has a row and a column.

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
# A prompt has words, then an image, then words again. The rules, as in Qwen2-VL, are:
#
# - A **word** has the same number on all three axes. The first word has zero, the next word one, and so on.
# - The **patches** of the image come row by row. On all three axes, the image begins with the number that the next word
#   would have had. From there, the row and the column count up; the time does not change, because an image is a single
#   moment.
# - The **words after** the image continue from the number at which the image began plus the number of patches on its
#   longer side.
#
# Return time, row and column of each token, in this order. (Qwen2-VL merges two by two patches into one token. Here,
# each patch is one token.)


# %% tags=["starter"]
def prompt_positions(before, rows, columns, behind):
    """Return time, row and column of each token, (tokens, 3), int64.

    before, behind  how many words come before and after the image
    """
    tokens = before + rows * columns + behind
    return torch.arange(tokens)[:, None].repeat(1, 3)  # change this


# %% tags=["solution"]
def prompt_positions(before, rows, columns, behind):
    """Return time, row and column of each token, (tokens, 3), int64.

    before, behind  how many words come before and after the image
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
    """Test images that are wide, tall, square and small."""
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
# On paper, write the table for one word, an image of two rows and three columns, and one word. All its numbers are
# small. The last word has a four on all three axes.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# For the patches, the row is `0 0 0 1 1 1` and the column `0 1 2 0 1 2`: torch has `repeat_interleave` for the first
# and `repeat` for the second. The time is all zeros. Then add the number of words before the image to all three.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# Create three tensors of shape `(tokens, 3)` and join them with `torch.cat`. The last one begins at
# `before + max(rows, columns)`.
#
# </details>

# %% alt="Time, row and column against the index of the token, for four words, an image of four rows of six patches, and four words. In words all three lines rise together. In the image the time is constant, the row rises in steps, and the column rises four times from the same number."
prompt = prompt_positions(before=4, rows=4, columns=6, behind=4)
plt.figure(figsize=(4.4, 2.6))
for axis, name in enumerate(("time", "row", "column")):
    shown = prompt[:, axis] + 0.12 * axis  # side by side
    plt.plot(shown, ".-", markersize=4, color=f"C{axis}", label=name)
plt.xlabel("token")
plt.ylabel("position")
plt.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
plt.show()

# %% [markdown]
# ## Step two: from RoPE to M-RoPE
#
# RoPE rotates pair $p$ of a token at position $m$ by $m\,\omega_p$. M-RoPE changes one thing: each pair has an **axis**
# and rotates by the position on that axis. The frequencies are those of the whole head, so that words are rotated as in
# RoPE.
#
# $$
# \text{angle}_p = \text{position}_{a(p)} \cdot \omega_p
# $$
#
# `axes` contains $a(p)$, a number from zero to two for each pair. Qwen2-VL assigns the pairs to the axes in chunks,
# Qwen3-VL in turn:

# %%
DIM, SECTIONS = 32, [6, 5, 5]
for layout in ("chunks", "interleaved"):
    print(f"{layout:12}", *pair_axes(SECTIONS, layout).tolist())

# %% [markdown]
# Write the angles of all tokens. The starter is RoPE, which uses the time alone.


# %% tags=["starter"]
def mrope_angles(positions, frequencies, axes):
    """Return the angle of each pair in radians, (tokens, pairs).

    positions    time, row, column: (tokens, 3)
    frequencies  radians per position: (pairs,)
    axes         0, 1 or 2 for each pair: (pairs,)
    """
    return positions[:, :1] * frequencies  # change this


# %% tags=["solution"]
def mrope_angles(positions, frequencies, axes):
    """Return the angle of each pair in radians, (tokens, pairs).

    positions    time, row, column: (tokens, 3)
    frequencies  radians per position: (pairs,)
    axes         0, 1 or 2 for each pair: (pairs,)
    """
    return positions[:, axes] * frequencies


# %% tags=["judge"]
def check_angles(yours):
    """Test axes in chunks and interleaved, of several sizes."""
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
# A tensor can be indexed by a tensor: `x[:, [2, 0, 0]]` contains the columns two, zero and zero of `x`.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `positions[:, axes]` has the shape (tokens, pairs), and `frequencies` has the shape (pairs,): return their product.
#
# </details>

# %% [markdown]
# ## Three models
#
# All three models claim to use M-RoPE with `SECTIONS`, interleaved, in the half layout. One does. One has rows and
# columns swapped. One assigns its pairs to the axes in another way. Nothing is downloaded: heads with the same random
# weights stand in for the models, and `turned` for a breakpoint around the rotation. The models are in random order, so
# that this cell does not reveal which is which.

# %%
FREQUENCIES = rope_frequencies(DIM, base=10000)
CLAIMED = pair_axes(SECTIONS, "interleaved")
WEIGHTS = torch.randn(2, DIM, DIM, dtype=torch.float64) / DIM**0.5
EXCHANGE = torch.tensor([0, 2, 1])  # time, column, row


class Model:
    """A head that you can run and whose axes you are to find."""

    def __init__(self, axes):
        self._axes = axes

    def turned(self, x, positions):
        """Return queries or keys after the rotation, same shape as x."""
        angles = positions[:, self._axes] * FREQUENCIES
        return apply_rope(x, angles.cos(), angles.sin(), "half")

    def scores(self, vectors, positions):
        """Return the scores, a row for each query, (tokens, tokens)."""
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
    """Return how far the scores deviate from the claim, relative."""
    vectors = torch.randn(len(positions), DIM, dtype=torch.float64)
    ours, theirs = (one.scores(vectors, positions) for one in (claim, model))
    return ((ours - theirs).std() / ours.std()).item()


text = torch.arange(32)[:, None].repeat(1, 3)
for number, model in enumerate(models):
    print(f"model {number}: error {gap(model, text):.2f} on text,", end=" ")
    print(f"{gap(model, prompt):.2f} with an image")

# %% [markdown]
# On text, all three models are exact, whatever their axes, because words have three equal numbers. A test with words
# alone passes for all of them. With an image, two models deviate, by about the same amount. Where do they deviate? Take
# the last word of the prompt, and compare its score with each token, over many prompts:


# %% alt="Deviation of the last word's scores against the index of the key, one line for each of three models. All are zero at words before and after the image. Within the image one model stays at zero; another deviates at all patches except where row and column are equal; a third deviates at all patches but the first."
def change_by_token(model, positions, prompts=200):
    """Return the deviation of the last word's scores, (tokens,)."""
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
plt.ylabel("deviation of the score")
plt.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
plt.show()

# %% [markdown]
# A line shows *that* something is wrong, and one of the lines gives a hint of what. For a proof, look at the rotation
# itself.
#
# ## Step three: measure the axis of each pair
#
# Use inputs whose result you know. Place a token at position one on one axis and at zero on the other axes: only the
# pairs of that axis rotate. A unit vector in channel $p$ then becomes a cosine in its own channel and a sine in the
# channel of its partner, $p + d/2$. All unit vectors together form the identity matrix, so the sines of all pairs are
# one diagonal of the result:
#
# ```python
# turned(torch.eye(dim, dtype=torch.float64), place)  # place: (dim, 3)
# ```
#
# `turned` is a function as above, for example `models[0].turned`. Find the axis by which each pair rotates.


# %% tags=["starter"]
def read_axes(turned, dim):
    """Return the axis of each pair, (dim / 2,), int64; 0 is time."""
    return torch.zeros(dim // 2, dtype=torch.int64)  # change this


# %% tags=["solution"]
def read_axes(turned, dim):
    """Return the axis of each pair, (dim / 2,), int64; 0 is time."""
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
    """Return a rotation with the given axis for each pair."""
    frequencies = rope_frequencies(2 * len(axes), base=10000)

    def turned(x, positions):
        angles = positions[:, axes] * frequencies
        return apply_rope(x, angles.cos(), angles.sin(), "half")

    return turned


def check_axes(yours):
    """Test rotations of other sizes and sections than the models."""
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
# Measure three times, once for each axis. `place` is zero except for a one in the column of that axis, for all `dim`
# unit vectors alike.
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
# Stack the three rows of sines. In each column one number is above zero: `argmax(0)` returns the index of its row.
#
# </details>

# %% [markdown]
# ## Step four: a verdict
#
# Compare the measured axes with the claimed ones. Return `"right"` if both are equal, `"swapped"` if they are equal
# once rows and columns are swapped, and `"other"` otherwise.


# %% tags=["starter"]
def verdict(read, claimed):
    """Return 'right', 'swapped' or 'other' for axes of shape (pairs,)."""
    return "right"  # change this


# %% tags=["solution"]
def verdict(read, claimed):
    """Return 'right', 'swapped' or 'other' for axes of shape (pairs,)."""
    if torch.equal(read, claimed):
        return "right"
    exchanged = torch.tensor([0, 2, 1])[claimed]
    return "swapped" if torch.equal(read, exchanged) else "other"


# %% tags=["judge"]
def check_verdict(yours):
    """Test axes that are right, swapped, and wrong in other ways."""
    woven = pair_axes([4, 2, 2], "interleaved")
    chunks = pair_axes([4, 2, 2], "chunks")
    uneven = pair_axes([2, 1, 3], "chunks")
    cases = {
        "the same axes": (woven, woven),
        "swapped, interleaved": (EXCHANGE[woven], woven),
        "swapped, in chunks of different sizes": (EXCHANGE[uneven], uneven),
        "chunks instead of interleaved": (chunks, woven),
        "rows and columns mixed": (uneven[[0, 1, 3, 2, 4, 5]], uneven),
        "time and row exchanged": (torch.tensor([1, 0, 2])[woven], woven),
        "time and column exchanged": (2 - uneven, uneven),
        "backwards": (woven.flip(0), woven),
        "chunks in reverse order": (chunks.flip(0), chunks),
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
# Test two things, in this order: are the two tensors equal? And are they equal once each one becomes a two and each two
# a one?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# `torch.equal(a, b)` is True or False. Indexing a small table with a tensor swaps its numbers:
# `torch.tensor([0, 2, 1])[claimed]`.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# It is not enough to count the pairs of each axis: two encodings can have the same counts and different pairs.
#
# </details>

# %% [markdown]
# ## Find the swapped model, and prove it
#
# Apply your functions to the three models. A model with rows and columns swapped must agree with the claim if its input
# has columns in place of rows. Run the cell before and after you have solved step four.

# %%
for number, model in enumerate(models):
    found = verdict(read_axes(model.turned, DIM), CLAIMED)
    print(f"model {number}: {found}")
    if found == "swapped":
        vectors = torch.randn(len(prompt), DIM, dtype=torch.float64)
        theirs = model.scores(vectors, prompt[:, EXCHANGE])
        off = (theirs - claim.scores(vectors, prompt)).abs().max()
        print(f"  with rows and columns swapped: error {off:.0e}")

# %% [markdown]
# Look at the figure again. The swapped model was right at words, and at patches whose row and column are equal, because
# swapping does not change their positions. So a test with words, or with an image of one patch, finds nothing.
#
# ## What you can do now
#
# You can compute the positions of a prompt with an image, rotate by them, and measure the axis by which each pair of a
# rotation rotates. Test axes with an image that is not square, and look at a patch off the diagonal.
#
# - The tested functions, with video and with the code of three released models: [`mrope.py`](../reference/mrope.md).
# - Other positions for patches: [positional encoding for images and video](../guide/images.md).
# - Released code with this bug: [x and y swapped](../broken/images.md#x-for-y), and [all bugs with
#   images](../broken/images.md).
# - The same approach for base, layout and factor: [released models](released_model.md).
