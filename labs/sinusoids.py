# %% [markdown]
# # Lab: sinusoids from nothing
#
# One frequency a pair, one row a position, one matrix a walk: the first Transformer's encoding, built from an empty
# function.
#
# **Goal.** Four short functions: the frequencies, the table of the paper, the same table in the other common layout, and
# the matrix that takes the row of any position to the row some steps on. Then you measure what the formula promises.
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
# ## Step one: how fast each hand turns
#
# The channels of a row come in pairs $p = 0, \dots, d/2 - 1$ for a width $d$. Each pair is the hand of a clock, and turns
# at every position by the same angle, in radians, its **frequency**:
#
# $$
# \omega_p = b^{-2p/d}
# $$
#
# The base $b$ is $10000$ in the paper. Return one frequency for each pair, in float64.


# %% tags=["starter"]
def frequencies_of(dim, base=10000.0):
    """Radians per position of each pair: (dim/2,), float64."""
    return torch.ones(dim // 2, dtype=torch.float64)  # yours: change this


# %% tags=["solution"]
def frequencies_of(dim, base=10000.0):
    """Radians per position of each pair: (dim/2,), float64."""
    pair = torch.arange(dim // 2, dtype=torch.float64)
    return base ** (-2 * pair / dim)


# %% tags=["judge"]
def check_frequencies(yours):
    """Compare with the guide's own file, then with what goes wrong."""
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
# The first pair has the exponent zero, so it turns by one radian, whatever the base. Each further pair turns more slowly,
# by the same factor every time.
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
# `base ** (-2 * p / dim)`, where `p` is a tensor of float64: `torch.arange(dim // 2, dtype=torch.float64)`.
#
# </details>

# %%
for pair, frequency in enumerate(frequencies_of(8).tolist()):
    wavelength = 2 * torch.pi / frequency
    print(f"pair {pair}: {frequency:.4f} radians a step,", end=" ")
    print(f"once round in {wavelength:7.1f}")

# %% [markdown]
# ## Step two: a row for each position
#
# A pair holds the sine and the cosine of where its hand points. In the layout of the paper, **interleaved**, the two are
# neighbours:
#
# $$
# PE_{t,\,2p} = \sin(t\,\omega_p), \qquad PE_{t,\,2p+1} = \cos(t\,\omega_p)
# $$
#
# `positions` is a tensor of whole numbers, a text's places, and need not begin at zero. Return float32, as a model
# wants it, but make the angles in float64: far into a text, float32 has too few digits for them.


# %% tags=["starter"]
def table_of(positions, dim, base=10000.0):
    """Sine and cosine of each pair, as neighbours: (tokens, dim), float32."""
    return torch.zeros(len(positions), dim)  # yours: change this


# %% tags=["solution"]
def table_of(positions, dim, base=10000.0):
    """Sine and cosine of each pair, as neighbours: (tokens, dim), float32."""
    angles = positions[:, None] * frequencies_of(dim, base)
    table = torch.zeros(len(positions), dim)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()
    return table


# %% tags=["judge"]
def check_table(yours):
    """Compare with the guide's own file, then with what goes wrong."""
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
# First all the angles: one for each position and each pair, `(tokens, dim/2)`. There is one angle for a sine *and* its
# cosine.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# A column times a row fills a rectangle: `positions[:, None] * frequencies_of(dim, base)`. Then make an empty table of
# the whole width, and fill every second column.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `table[:, 0::2]` are the even columns and `table[:, 1::2]` the odd ones. Each has as many columns as there are pairs:
# the sines of all angles go into the one, the cosines into the other.
#
# </details>

# %% alt="A picture of the table, positions downwards and channels across. On the left columns flicker; to the right they turn into long stripes."
plt.figure(figsize=(4.4, 2.8))
plt.imshow(table_of(torch.arange(64), 64))
plt.xlabel("channel")
plt.ylabel("position")
plt.show()

# %% [markdown]
# ## Step three: the other layout
#
# The code that the paper's authors released does not put a sine beside its cosine: all sines come first, then all
# cosines. GPT-J and RoFormer in transformers do so as well. Nothing else differs between the two layouts, so one is the
# other with its columns in another order. Write the order, and compute nothing anew.


# %% tags=["starter"]
def sines_first(table):
    """An interleaved table with all sines before all cosines: like table."""
    return table  # yours: change this


# %% tags=["solution"]
def sines_first(table):
    """An interleaved table with all sines before all cosines: like table."""
    return torch.cat((table[:, 0::2], table[:, 1::2]), dim=1)


# %% tags=["judge"]
def check_sines_first(yours):
    """Tables in which no two numbers are equal."""
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
# The new order is `0 2 4 1 3 5`. Every second column, from the first on: `table[:, 0::2]`.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `torch.cat((…, …), dim=1)` puts one block of columns beside another.
#
# </details>

# %%
positions = torch.arange(200)
paper, other = table_of(positions, 64), sines_first(table_of(positions, 64))
known = sinusoidal_encoding(positions, 64, layout="sin_cos")
products = paper @ paper.T - other @ other.T
print(f"from the tested file    {(other - known).abs().max():.0e}")
print(f"change of dot products  {products.abs().max():.0e}")
print(f"from layout to layout   {(paper - other).abs().max():.2f}")

# %% [markdown]
# The largest differences of each kind. Between rows of one layout nothing is lost: a dot product adds the same terms in
# another order, so what is left is rounding. But a model whose weights were trained with one layout finds other
# numbers in the places of the other. (The released code also has
# [other frequencies](../guide/sinusoidal.md#the-idea); those are no matter of order.)
#
# ## Step four: the matrix of a walk
#
# Walk $k$ steps on. Each hand turns by $k\,\omega_p$, wherever you start. For the row of one pair, written as a column,
# the addition theorems say
#
# $$
# \begin{aligned}
# &\begin{pmatrix} \sin((t+k)\omega) \\ \cos((t+k)\omega) \end{pmatrix} \\
# &\quad = \begin{pmatrix} \cos k\omega & \sin k\omega \\ -\sin k\omega & \cos k\omega \end{pmatrix}
#   \begin{pmatrix} \sin t\omega \\ \cos t\omega \end{pmatrix}
# \end{aligned}
# $$
#
# So there is one matrix $M_k$ with $M_k\,PE_t = PE_{t+k}$ for **every** $t$: a block of two by two for each pair, along
# the diagonal of a matrix of zeros. Return it in float32, for the interleaved layout. `steps` is a whole number, and may
# be negative.


# %% tags=["starter"]
def walk_of(steps, dim, base=10000.0):
    """M with M @ row of t = row of t + steps: (dim, dim), float32."""
    return torch.eye(dim)  # yours: change this


# %% tags=["solution"]
def walk_of(steps, dim, base=10000.0):
    """M with M @ row of t = row of t + steps: (dim, dim), float32."""
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
    """Compare with the guide's own file, then with what goes wrong."""
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
# first two rows of your table in your head: what has $(0, 1)$ to become?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# The block of pair $p$ stands in the rows and columns $2p$ and $2p + 1$. With `even = torch.arange(0, dim, 2)`, the cell
# `matrix[even, even]` is the upper left corner of every block at once.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# Four assignments fill all blocks: `[even, even]` and `[odd, odd]` get the cosines of `steps * frequencies_of(dim, base)`,
# `[even, odd]` the sines, `[odd, even]` minus the sines.
#
# </details>

# %% [markdown]
# ## See that it worked
#
# Four things follow from the formula before any training. Measure them on your own functions, and run the cell before and
# after you have solved step four.

# %%
rows, steps = table_of(torch.arange(500), 64), 7
lengths = rows.norm(dim=1)
walked = rows[:-steps] @ walk_of(steps, 64).T - rows[steps:]
joined = walk_of(3, 64) @ walk_of(4, 64) - walk_of(7, 64)
turned_back = walk_of(steps, 64).T - walk_of(-steps, 64)
print(f"lengths of rows        {lengths.min():.4f} to {lengths.max():.4f}")
print(f"walked and looked up   {walked.abs().max():.0e} apart")
print(f"walks of 3 and 4, of 7 {joined.abs().max():.0e} apart")
print(f"transposed, and back   {turned_back.abs().max():.0e} apart")

# %% alt="Dot product of rows over their offset, from three places of the text: one curve, highest at offset zero."
offsets = torch.arange(-60, 61)
plt.figure(figsize=(4.4, 2.4))
for place, color in ((60, "C0"), (200, "C1"), (400, "C2")):
    plt.plot(offsets, rows[place + offsets] @ rows[place], color=color)
plt.xlabel("offset")
plt.ylabel("dot product of rows")
plt.show()

# %% [markdown]
# Three places of the text, and one curve: the three lie on one another. The dot product of two rows depends on their
# offset alone, and it is the same forth and back.
#
# ## What you can do now
#
# You can write the encoding without looking it up, say in which layout a table is, bring it into the other, and name the
# matrix that the paper hoped a model would learn. You have seen that this matrix is linear in the row, and knows nothing
# of the place: that is the idea which [RoPE](../guide/rope.md) applies to queries and keys.
#
# - The tested functions, with every check that they need: [`sinusoidal.py`](../reference/sinusoidal.md).
# - What the formula does not promise a trained model:
#   [where it breaks](../guide/sinusoidal.md#where-it-breaks).
# - The same formula, broken, for you to mend: [three broken encodings](three_bugs.md).
