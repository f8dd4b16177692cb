# %% [markdown]
# # Lab: where do a released model's positions go wrong?
#
# Three models were released, each with a configuration, and in each configuration one setting is wrong. Nothing raises an
# error. You find all three by measuring, without a look at what the models were made with.
#
# **Goal.** Four short functions that read layout, frequencies, base and factor off a model that you can only run, and say
# what its configuration has wrong.
#
# **Time.** About fifty minutes.
#
# **You need.** [RoPE](../guide/rope.md) with its [two layouts](../guide/rope.md#build-it),
# [stretching RoPE](../guide/long-context.md) as far as interpolation, and the idea of
# [debugging](../guide/debugging.md): ask what you know the answer to.

# %%
import random

import matplotlib.pyplot as plt
import torch

from labs.judge import judge, right_and_wrong
from snippets.rope import apply_rope, rope_frequencies, rope_tables

_ = torch.manual_seed(0)

# %% [markdown]
# ## What was released
#
# Three settings decide here what RoPE does to a head: the **base** of the frequencies, the **layout** of the pairs, and
# the **factor** by which all frequencies are divided, so that longer texts fit. Base and factor stand in a model's
# configuration. The layout mostly stands nowhere: the code that loads the model decides it.
#
# Nothing is downloaded. Three heads with random weights stand for the checkpoints, `turned` for a breakpoint around the
# rotation in the publisher's own code, and `scores` for what that code gives, or yours with the settings that you hand
# in. Which settings the models have, and which of them is wrong in each configuration, is drawn by lot, so that the cell
# does not tell you.

# %%
DIM = 32
CHOICES = {
    "base": [10_000.0, 500_000.0, 1_000_000.0],
    "layout": ["interleaved", "half"],
    "factor": [1.0, 2.0, 4.0, 8.0],
}


def turn(x, positions, base, layout, factor):
    """RoPE with these settings: like x, which is (tokens, dim)."""
    frequencies = rope_frequencies(x.shape[-1], base) / factor
    cos, sin = rope_tables(positions, frequencies, x.dtype)
    return apply_rope(x, cos, sin, layout)


class Released:
    """A head that you can run; its settings are for you to find."""

    def __init__(self, **settings):
        self._settings = settings
        self._weights = torch.randn(2, DIM, DIM, dtype=torch.float64)

    def turned(self, x, positions):
        """Queries or keys as the rotation leaves them: like x."""
        return turn(x, positions, **self._settings)

    def scores(self, text, **settings):
        """Scores as the publisher has them, or with your settings."""
        positions = torch.arange(len(text))
        q, k = (
            turn(text @ weight, positions, **(settings or self._settings))
            for weight in self._weights
        )
        return q @ k.T / DIM**0.5


lot = random.Random(170)
models, configurations = [], []
for name in lot.sample(sorted(CHOICES), 3):
    settings = {key: lot.choice(values) for key, values in CHOICES.items()}
    others = [each for each in CHOICES[name] if each != settings[name]]
    models.append(Released(**settings))
    configurations.append(settings | {name: lot.choice(others)})

for configuration in configurations:
    print(configuration)

# %% [markdown]
# What does a wrong setting do? Take one text, and compare the publisher's scores with yours, at each distance between
# query and key, as a share of the scores' spread.


# %% alt="Change of scores over the distance between query and key, one line for each of three models. All three lines begin at zero; two of them climb within a few steps, one slowly, and none returns to zero."
def gap_by_distance(model, settings, text):
    """Root mean square change of the scores at each distance."""
    theirs, ours = model.scores(text), model.scores(text, **settings)
    change = (ours - theirs) / theirs.std()
    distances = range(len(text) // 2)
    return [change.diagonal(-n).square().mean().sqrt() for n in distances]


text = torch.randn(96, DIM, dtype=torch.float64)
plt.figure(figsize=(4.4, 2.6))
for number, (model, settings) in enumerate(zip(models, configurations)):
    gaps = gap_by_distance(model, settings, text)
    plt.plot(gaps, color=f"C{number}", label=f"model {number}")
    print(f"model {number}: {gaps[1]:.2f} at one step,", end=" ")
    print(f"{gaps[-1]:.2f} at the farthest")
plt.xlabel("distance")
plt.ylabel("change of scores")
plt.legend()
plt.show()

# %% [markdown]
# All shapes agree, and all three are wrong. At distance zero nothing is: query and key turn alike there, and a score knows
# the difference alone. So a test with one token passes.
#
# The lines do not say *which* setting it is. For that, look at the rotation itself.
#
# ## Step one: which channels are a pair?
#
# Feed what you know. A unit vector is one in a single channel and zero elsewhere. Turned, it is the cosine of an angle in
# its own channel, and plus or minus the sine in that of its partner. All of them at once are the unit matrix. So row $c$ of
#
# ```python
# matrix = model.turned(torch.eye(dim), torch.full((dim,), position))
# ```
#
# is what became of channel $c$. In the interleaved layout the partner of channel `0` is channel `1`; in the half layout it
# is channel `dim // 2`. Return the layout's name.


# %% tags=["starter"]
def layout_of(matrix):
    """'interleaved' or 'half', from unit vectors that were turned."""
    return "interleaved"  # yours: change this


# %% tags=["solution"]
def layout_of(matrix):
    """'interleaved' or 'half', from unit vectors that were turned."""
    beside = matrix[0, 1].abs()
    across = matrix[0, len(matrix) // 2].abs()
    return "interleaved" if beside > across else "half"


# %% tags=["judge"]
def turned_units(dim, position, base, layout, factor=1.0):
    """Unit vectors, all turned at one position: (dim, dim)."""
    units = torch.eye(dim, dtype=torch.float64)
    return turn(units, torch.full((dim,), position), base, layout, factor)


def check_layout(yours):
    """Both layouts, at positions with sines of either sign and size."""
    cases = {
        f"{layout}, position {position}, {dim} channels": (
            turned_units(dim, position, base, layout),
        )
        for layout in CHOICES["layout"]
        for dim, position, base in (
            (8, 1, 10_000.0),
            (12, 4, 10_000.0),
            (8, 3, 500_000.0),
            (6, 10, 500_000.0),
        )
    }
    right, mistakes = right_and_wrong(
        "released_model", "layout_of", globals(), pairs=False
    )
    return judge(yours, right, cases, mistakes)


# %% tags=["check"]
passed = check_layout(layout_of)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Print `turned_units(8, 1, 10_000.0, "half").round(decimals=2)`, then the same for the other layout, and read the first row.
# (The cell of the check above defines the function.)
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# Two numbers of the first row can be the partner's. One of them is zero. Which one is larger?
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# A sine may be negative: compare sizes, `matrix[0, 1].abs()` with `matrix[0, len(matrix) // 2].abs()`.
#
# </details>

# %% [markdown]
# ## Step two: how fast does each pair turn?
#
# At position one, the angle of a pair **is** its frequency. Farther out a fast pair may have gone round, and you could not
# tell. Take the cosine and the sine of each pair from the matrix, and make an angle of the two. Do not rely on
# their sizes: with [YaRN](../guide/long-context.md), for one, turned queries come out longer than they went in.


# %% tags=["starter"]
def frequencies_of(matrix, layout):
    """The angle of each pair, from unit vectors at position one: (dim/2,)."""
    return torch.ones(len(matrix) // 2, dtype=matrix.dtype)  # yours


# %% tags=["solution"]
def frequencies_of(matrix, layout):
    """The angle of each pair, from unit vectors at position one: (dim/2,)."""
    channels = torch.arange(len(matrix))
    if layout == "interleaved":
        first, second = channels[0::2], channels[1::2]
    else:
        first, second = channels.chunk(2)
    return torch.atan2(matrix[first, second], matrix[first, first])


# %% tags=["judge"]
def check_frequencies(yours):
    """Compare with what the matrices were made of."""
    cases = {}
    for dim, layout, base, factor, size in (
        (8, "interleaved", 10_000.0, 1.0, 1.0),
        (8, "half", 10_000.0, 1.0, 1.0),
        (12, "half", 500_000.0, 4.0, 1.0),
        (12, "interleaved", 100.0, 1.0, 1.25),
    ):
        longer = ", longer by a quarter" if size > 1 else ""
        matrix = size * turned_units(dim, 1, base, layout, factor)
        cases[f"{dim} channels, {layout}{longer}"] = (matrix, layout)
    right, mistakes = right_and_wrong(
        "released_model", "frequencies_of", globals(), pairs=False
    )
    return judge(yours, right, cases, mistakes)


# %% tags=["check"]
passed = check_frequencies(frequencies_of)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# For each pair you need the number of its first channel and that of its second one. Interleaved, these are
# `0 2 4 …` and `1 3 5 …`; in the half layout, the first half and the second half.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# With two tensors of channel numbers, `matrix[first, first]` holds the cosines of all pairs, and `matrix[first, second]`
# their sines.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `torch.atan2(sine, cosine)` is the angle, however long the two are together.
#
# </details>

# %% [markdown]
# ## Step three: base and factor
#
# For pairs $p = 0, \dots, d/2 - 1$, a base $b$ and a factor $f$ that divides all frequencies, you have measured
#
# $$
# \omega_p = \frac{b^{-2p/d}}{f}
# $$
#
# Two unknowns, and a whole row of numbers. The first of them knows nothing of the base, and the quotient of two
# neighbours nothing of the factor. Return the two as plain numbers, base first.


# %% tags=["starter"]
def base_and_factor(frequencies):
    """The base, and what all frequencies were divided by: two floats."""
    return 1.0, 1.0  # yours: change this


# %% tags=["solution"]
def base_and_factor(frequencies):
    """The base, and what all frequencies were divided by: two floats."""
    fastest, next_one = frequencies[0].item(), frequencies[1].item()
    base = (fastest / next_one) ** len(frequencies)
    return base, 1 / fastest


# %% tags=["judge"]
def check_base_and_factor(yours):
    """Compare with what the frequencies were made of."""
    cases = {
        f"{dim} channels, base {base:.0f}, factor {factor:g}": (
            rope_frequencies(dim, base) / factor,
        )
        for dim, base, factor in (
            (8, 10_000.0, 1.0),
            (32, 500_000.0, 1.0),
            (12, 10_000.0, 2.5),
        )
    }
    right, mistakes = right_and_wrong(
        "released_model", "base_and_factor", globals(), pairs=False
    )
    return judge(yours, right, cases, mistakes)


# %% tags=["check"]
passed = check_base_and_factor(base_and_factor)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Put $p = 0$ into the formula. What is left?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# $\omega_0 / \omega_1 = b^{2/d}$: the factor is gone. Which power takes $b^{2/d}$ to $b$?
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# There are $d/2$ frequencies, so the power is `len(frequencies)`. The factor is one over the first frequency.
#
# </details>

# %% alt="Logarithm of the measured frequency of each pair, dots, over what each configuration says, lines, for three models. The dots of each model lie on a falling straight line: for one model on the line that is claimed, for one below it by the same everywhere, and for one they fall faster."
plt.figure(figsize=(4.4, 2.8))
for number, (model, said) in enumerate(zip(models, configurations)):
    ones = torch.ones(DIM, dtype=torch.long)
    matrix = model.turned(torch.eye(DIM, dtype=torch.float64), ones)
    measured = frequencies_of(matrix, layout_of(matrix))
    claimed = rope_frequencies(DIM, said["base"]) / said["factor"]
    color, label = f"C{number}", f"model {number}"
    plt.plot(claimed.log10(), color=color)
    plt.plot(measured.log10(), ".", color=color, label=label)
plt.xlabel("pair")
plt.ylabel("log10 of the frequency")
plt.legend()
plt.show()

# %% [markdown]
# Dots are measured, lines are claimed. In logarithms a base tilts a line, and a factor moves it down. Dots that do not
# lie on a straight line would tell of a scaling that treats pairs differently, as
# [YaRN](../guide/long-context.md) and others do.
#
# ## Step four: what is wrong
#
# Put it together. For a model and a configuration, return a dictionary of the settings which the model contradicts, with
# what you measured: `{}` if all is well, `{"layout": "half"}` if that is what the model does and not what is claimed. A
# measured number is never exact: call two numbers the same if they are within a hundredth of each other.


# %% tags=["starter"]
def what_is_wrong(model, configuration):
    """The settings that a model contradicts, with what was measured."""
    return {}  # yours: change this


# %% tags=["solution"]
def what_is_wrong(model, configuration):
    """The settings that a model contradicts, with what was measured."""
    units = torch.eye(DIM, dtype=torch.float64)
    matrix = model.turned(units, torch.ones(DIM, dtype=torch.long))
    layout = layout_of(matrix)
    base, factor = base_and_factor(frequencies_of(matrix, layout))
    wrong = {}
    if layout != configuration["layout"]:
        wrong["layout"] = layout
    if abs(base / configuration["base"] - 1) > 0.01:
        wrong["base"] = base
    if abs(factor / configuration["factor"] - 1) > 0.01:
        wrong["factor"] = factor
    return wrong


# %% tags=["judge"]
def check_what_is_wrong(yours):
    """Other models than those above, with nothing, one or two wrong."""
    one = {"base": 500_000.0, "layout": "half", "factor": 4.0}
    other = {"base": 10_000.0, "layout": "interleaved", "factor": 1.0}
    cases = {
        "a right configuration": (Released(**one), one),
        "a base too large": (Released(**other), other | {"base": 500_000.0}),
        "a base too small": (Released(**one), one | {"base": 10_000.0}),
        "a wrong layout": (Released(**one), one | {"layout": "interleaved"}),
        "the other wrong layout": (
            Released(**other),
            other | {"layout": "half"},
        ),
        "a wrong factor": (Released(**one), one | {"factor": 1.0}),
        "wrong base and factor": (
            Released(**other),
            other | {"base": 1_000_000.0, "factor": 2.0},
        ),
        "everything wrong": (
            Released(**one),
            other | {"base": 1_000_000.0},
        ),
    }
    right, mistakes = right_and_wrong(
        "released_model", "what_is_wrong", globals(), pairs=False
    )
    return judge(yours, right, cases, mistakes)


# %% tags=["check"]
passed = check_what_is_wrong(what_is_wrong)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Four lines measure: the unit vectors at position one, the layout, the frequencies, base and factor. Each uses what the
# one before gave, and none looks into the configuration.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# `model.turned(torch.eye(DIM, dtype=torch.float64), torch.ones(DIM, dtype=torch.long))` gives the matrix: every unit
# vector stands at position one.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# Names of layouts are equal or not. For the two numbers, `abs(base / configuration["base"] - 1) > 0.01` says that they
# are not the same.
#
# </details>

# %% [markdown]
# ## Three verdicts, and a proof
#
# Now the three models. What you found replaces what was claimed, and the scores are compared again. Run it before and
# after you have solved step four.

# %%
for number, (model, said) in enumerate(zip(models, configurations)):
    found = what_is_wrong(model, said)
    for name, value in found.items():
        value = value if isinstance(value, str) else f"{value:.0f}"
        print(f"model {number}: {name} is {value}, not {said[name]}")
    before = gap_by_distance(model, said, text)[-1]
    after = gap_by_distance(model, said | found, text)[-1]
    print(f"model {number}: the scores' change was {before:.2f},", end=" ")
    print(f"and is {after:.0e}")

# %% [markdown]
# ## What you can do now
#
# You can tell what a rotation does from outside, by feeding it what you know the answer to, and hold a configuration
# against it. The proof came last, and it is the one that counts: scores as the publisher has them. In a real model, the
# same breakpoint shows queries before and after their rotation; where you cannot set one, compare the scores, or the
# output for one text, with the publisher's code, setting by setting.
#
# - What a wrong layout needs, if the code cannot be changed: [convert the checkpoint](rope_layouts.md).
# - Scalings that treat pairs differently: [NTK-aware RoPE](ntk_rope.md) and [YaRN](yarn.md).
# - Which check sees what, and what none sees: [debugging](../guide/debugging.md#where-it-breaks).
# - The tested functions: [`rope.py`](../reference/rope.md), [`rope_scaling.py`](../reference/rope_scaling.md).
