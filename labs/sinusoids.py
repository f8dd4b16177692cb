# %% [markdown]
# # Lab: Build sinusoidal positional encoding from scratch
#
# Sinusoidal positional encoding, the encoding of the first Transformer, gives each position a row of sines and cosines.
# You build it from empty functions.
#
# **Goal.** You write four short functions: the frequencies, the table of the paper, the same table in the other common
# layout, and the matrix that maps the row of any position to the row a fixed number of positions later. Then you
# measure the properties that follow from the formula.
#
# **Time.** About forty minutes.
#
# **You need.** [Sinusoidal encoding](../guide/sinusoidal.md), up to its Intermediate level, and tensors in torch.

# %%
import matplotlib.pyplot as plt
import torch

from labs.judge import judge, right_and_wrong
from snippets.sinusoidal import (
    shift_matrix,
    sinusoidal_encoding,
    sinusoidal_frequencies,
)

# %% [markdown]
# ## Step one: the frequency of each pair
#
# The channels of a row come in pairs $p = 0, \dots, d/2 - 1$ for a width $d$. Each pair is a point on a circle that
# rotates by the same angle, in radians, from each position to the next. This angle is its **frequency**:
#
# $$
# \omega_p = b^{-2p/d}
# $$
#
# The base $b$ is $10000$ in the paper. Return one frequency for each pair, in float64.


# %% tags=["starter"]
def frequencies_of(dim, base=10000.0):
    """Return the frequency of each pair, (dim/2,), float64."""
    return torch.ones(dim // 2, dtype=torch.float64)  # change this


# %% tags=["solution"]
def frequencies_of(dim, base=10000.0):
    """Return the frequency of each pair, (dim/2,), float64."""
    pair = torch.arange(dim // 2, dtype=torch.float64)
    return base ** (-2 * pair / dim)


# %% tags=["judge"]
def check_frequencies(yours):
    """Compare with the tested file, then with typical mistakes."""
    cases = {
        "eight channels": (8,),
        "twelve channels": (12,),
        "six channels and another base": (6, 100.0),
        "a single pair": (2,),
    }
    _, mistakes = right_and_wrong("sinusoids", "frequencies_of", globals())
    return judge(yours, sinusoidal_frequencies, cases, mistakes)


# %% tags=["check"]
passed = check_frequencies(frequencies_of)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# The first pair has the exponent zero, so it rotates by one radian per position, whatever the base. Each further pair
# rotates more slowly, by the same factor every time.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# Count pairs, not channels: `torch.arange(dim // 2)` is $p$. The two in the exponent belongs to $p$.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `base ** (-2 * p / dim)`, where `p` is a float64 tensor: `torch.arange(dim // 2, dtype=torch.float64)`.
#
# </details>

# %%
for pair, frequency in enumerate(frequencies_of(8).tolist()):
    wavelength = 2 * torch.pi / frequency
    print(f"pair {pair}: {frequency:.4f} radians per step,", end=" ")
    print(f"period {wavelength:7.1f}")

# %% [markdown]
# ## Step two: a row for each position
#
# A pair stores the sine and the cosine of its angle. In the layout of the paper, **interleaved**, the two are in
# adjacent channels:
#
# $$
# PE_{t,\,2p} = \sin(t\,\omega_p), \qquad PE_{t,\,2p+1} = \cos(t\,\omega_p)
# $$
#
# `positions` is a tensor of integers, the positions in a text, and need not begin at zero. Return float32, the usual
# dtype of a model, but compute the angles in float64: at large positions, float32 has too few digits for them.


# %% tags=["starter"]
def table_of(positions, dim, base=10000.0):
    """Return the interleaved table, (tokens, dim), float32."""
    return torch.zeros(len(positions), dim)  # change this


# %% tags=["solution"]
def table_of(positions, dim, base=10000.0):
    """Return the interleaved table, (tokens, dim), float32."""
    angles = positions[:, None] * frequencies_of(dim, base)
    table = torch.zeros(len(positions), dim)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()
    return table


# %% tags=["judge"]
def check_table(yours):
    """Compare with the tested file, then with typical mistakes."""
    cases = {
        "eight channels from position zero": (torch.arange(12), 8),
        "three tokens in the middle of a text": (torch.arange(40, 43), 12),
        "as many tokens as channels": (torch.arange(6), 6),
        "another base": (torch.arange(9), 6, 100.0),
        "near position one million": (10**6 + torch.arange(64), 64),
    }
    _, mistakes = right_and_wrong(
        "sinusoids", "table_of", globals(), pairs=False
    )
    return judge(yours, sinusoidal_encoding, cases, mistakes)


# %% tags=["check"]
passed = check_table(table_of)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Compute all the angles first: one for each position and each pair, `(tokens, dim/2)`. A sine *and* its cosine share
# one angle.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# A column times a row gives a table: `positions[:, None] * frequencies_of(dim, base)`. Then create an empty table of
# the full width, and fill every second column.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `table[:, 0::2]` are the even columns and `table[:, 1::2]` the odd ones. Each has as many columns as there are pairs:
# the sines of all angles go into the even columns, the cosines into the odd ones.
#
# </details>

# %% alt="The table as an image, positions downwards and channels across. The columns on the left alternate quickly; towards the right they become long stripes."
plt.figure(figsize=(4.4, 2.8))
plt.imshow(table_of(torch.arange(64), 64))
plt.xlabel("channel")
plt.ylabel("position")
plt.show()

# %% [markdown]
# ## Step three: the other layout
#
# The code released by the paper's authors does not put a sine next to its cosine: all sines come first, then all
# cosines. GPT-J and RoFormer in transformers use this layout too. Nothing else differs between the two layouts, so each
# table is the other with its columns reordered. Reorder the columns, and do not compute any sine or cosine again.


# %% tags=["starter"]
def sines_first(table):
    """Return an interleaved table with all sines before all cosines."""
    return table  # change this


# %% tags=["solution"]
def sines_first(table):
    """Return an interleaved table with all sines before all cosines."""
    return torch.cat((table[:, 0::2], table[:, 1::2]), dim=1)


# %% tags=["judge"]
def check_sines_first(yours):
    """Test tables in which no two numbers are equal."""
    cases = {
        "two rows of six channels": (torch.arange(12.0).reshape(2, 6),),
        "six rows of six": (torch.arange(36.0).reshape(6, 6),),
        "three rows of eight": (torch.arange(24.0).reshape(3, 8),),
    }
    right, mistakes = right_and_wrong(
        "sinusoids", "sines_first", globals(), pairs=False
    )
    return judge(yours, right, cases, mistakes)


# %% tags=["check"]
passed = check_sines_first(sines_first)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Write down the columns of six channels, `0 1 2 3 4 5`. Which are sines? Where do they go?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# The new order is `0 2 4 1 3 5`. It starts with every second column, from the first on: `table[:, 0::2]`.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `torch.cat((…, …), dim=1)` puts one block of columns next to another.
#
# </details>

# %%
positions = torch.arange(200)
paper, other = table_of(positions, 64), sines_first(table_of(positions, 64))
known = sinusoidal_encoding(positions, 64, layout="sin_cos")
products = paper @ paper.T - other @ other.T
print(f"to the tested file      {(other - known).abs().max():.0e}")
print(f"change of dot products  {products.abs().max():.0e}")
print(f"between the layouts     {(paper - other).abs().max():.2f}")

# %% [markdown]
# These are the largest differences. Within one layout, dot products do not change: the same terms are added in another
# order, so only rounding remains. But a model trained with one layout does not work with the other, because its weights
# then meet different numbers in each channel. (The released code also has [different
# frequencies](../guide/sinusoidal.md#the-idea); reordering does not change those.)
#
# ## Step four: the matrix that shifts a position
#
# Move $k$ positions on. Each pair rotates by $k\,\omega_p$, wherever you start. For the row of one pair, written as a
# column, the angle addition formulas state
#
# $$
# \begin{aligned}
# &\begin{pmatrix} \sin((t+k)\omega) \\ \cos((t+k)\omega) \end{pmatrix} \\
# &\quad = \begin{pmatrix} \cos k\omega & \sin k\omega \\ -\sin k\omega & \cos k\omega \end{pmatrix}
#   \begin{pmatrix} \sin t\omega \\ \cos t\omega \end{pmatrix}
# \end{aligned}
# $$
#
# So there is one matrix $M_k$ with $M_k\,PE_t = PE_{t+k}$ for **every** $t$: it has a block of two by two for each pair
# on its diagonal and zeros elsewhere. Return it in float32, for the interleaved layout. `steps` is an integer and may
# be negative.


# %% tags=["starter"]
def walk_of(steps, dim, base=10000.0):
    """Return M with M @ row of t = row of t + steps, (dim, dim), float32."""
    return torch.eye(dim)  # change this


# %% tags=["solution"]
def walk_of(steps, dim, base=10000.0):
    """Return M with M @ row of t = row of t + steps, (dim, dim), float32."""
    angles = steps * frequencies_of(dim, base)
    even = torch.arange(0, dim, 2)
    odd = even + 1
    matrix = torch.zeros(dim, dim)
    matrix[even, even] = angles.cos().float()
    matrix[even, odd] = angles.sin().float()
    matrix[odd, even] = -angles.sin().float()
    matrix[odd, odd] = angles.cos().float()
    return matrix


# %% tags=["judge"]
def check_walk(yours):
    """Compare with the tested file, then with typical mistakes."""
    cases = {
        "one step, six channels": (1, 6),
        "three steps back": (-3, 6),
        "forty steps, eight channels": (40, 8),
        "no step": (0, 4),
        "another base": (5, 6, 100.0),
    }

    def right(steps, *given):
        return shift_matrix(torch.tensor(steps), *given)

    _, mistakes = right_and_wrong(
        "sinusoids", "walk_of", globals(), pairs=False
    )
    return judge(yours, right, cases, mistakes)


# %% tags=["check"]
passed = check_walk(walk_of)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Begin with two channels and one step: the matrix is the block of the formula, with $k\,\omega = 1$. Multiply it by the
# first row of your table by hand: what must $(0, 1)$ become?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# The block of pair $p$ is in rows and columns $2p$ and $2p + 1$. With `even = torch.arange(0, dim, 2)`,
# `matrix[even, even]` is the upper left entry of every block at once.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# Four assignments fill all blocks: `[even, even]` and `[odd, odd]` get the cosines of
# `steps * frequencies_of(dim, base)`, `[even, odd]` the sines, `[odd, even]` minus the sines.
#
# </details>

# %% [markdown]
# ## See that it worked
#
# Four properties follow from the formula before any training. Measure them on your own functions, and run the cell
# before and after you have solved step four.

# %%
rows, steps = table_of(torch.arange(500), 64), 7
lengths = rows.norm(dim=1)
walked = rows[:-steps] @ walk_of(steps, 64).T - rows[steps:]
joined = walk_of(3, 64) @ walk_of(4, 64) - walk_of(7, 64)
turned_back = walk_of(steps, 64).T - walk_of(-steps, 64)
print(f"lengths of rows        {lengths.min():.4f} to {lengths.max():.4f}")
print(f"shifted and looked up  {walked.abs().max():.0e} apart")
print(f"shifts by 3 + 4, by 7  {joined.abs().max():.0e} apart")
print(f"transposed and inverse {turned_back.abs().max():.0e} apart")

# %% alt="Dot product of rows against their offset, from three positions. The three lines form one curve, highest at offset zero."
offsets = torch.arange(-60, 61)
plt.figure(figsize=(4.4, 2.4))
for place, color in ((60, "C0"), (200, "C1"), (400, "C2")):
    plt.plot(offsets, rows[place + offsets] @ rows[place], color=color)
plt.xlabel("offset")
plt.ylabel("dot product of rows")
plt.show()

# %% [markdown]
# The curves for the three positions coincide: the dot product of two rows depends only on their offset, and it is the
# same for positive and negative offsets.
#
# ## What you can do now
#
# You can write the encoding from memory, recognise the layout of a table, convert it to the other layout, and write the
# matrix that shifts a position. Because this matrix exists, the paper's authors expected a model to learn relative
# positions easily. You have seen that the shift is linear in the row and that its matrix does not depend on the position:
# [RoPE](../guide/rope.md) applies this idea to queries and keys.
#
# - The tested functions, with their input checks: [`sinusoidal.py`](../reference/sinusoidal.md).
# - What the formula does not guarantee for a trained model: [where it breaks](../guide/sinusoidal.md#where-it-breaks).
# - The same formula with bugs for you to fix: [three broken encodings](three_bugs.md).
