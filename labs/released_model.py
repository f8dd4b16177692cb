# %% [markdown]
# # Lab: Find the wrong RoPE settings of released models
#
# Three models were released, each with a configuration, and in each configuration one setting is wrong. This raises no
# error. You find all three wrong settings by measuring the models, without looking at how they were built.
#
# **Goal.** You write four short functions that measure layout, frequencies, base and factor of a model that you can
# only run, and return what is wrong in its configuration.
#
# **Time.** About fifty minutes.
#
# **You need.** [RoPE](../guide/rope.md) with its [two layouts](../guide/rope.md#build-it), [context
# extension](../guide/long-context.md) up to position interpolation, and the idea of [debugging](../guide/debugging.md):
# test with inputs whose result you know.

# %%
import random

import matplotlib.pyplot as plt
import torch

from labs.judge import judge, right_and_wrong
from snippets.rope import apply_rope, rope_frequencies, rope_tables

_ = torch.manual_seed(0)

# %% [markdown]
# ## The released models
#
# In this lab, three settings determine what RoPE does in a head: the **base** of the frequencies, the **layout** of the
# pairs, and the **factor** that divides all frequencies for longer texts. Base and factor are part of a model's
# configuration. The layout usually is not: it depends on the code that loads the model.
#
# Nothing is downloaded. Three heads with random weights stand in for the checkpoints, and `turned` for a breakpoint
# around the rotation in the publisher's own code. `scores` returns the scores of the publisher's code, or of your code
# with the settings that you pass. The settings of the models, and which of them is wrong in each configuration, are
# chosen at random, so that the cell does not reveal them.

# %%
DIM = 32
CHOICES = {
    "base": [10_000.0, 500_000.0, 1_000_000.0],
    "layout": ["interleaved", "half"],
    "factor": [1.0, 2.0, 4.0, 8.0],
}


def turn(x, positions, base, layout, factor):
    """Apply RoPE with these settings to x, (tokens, dim)."""
    frequencies = rope_frequencies(x.shape[-1], base) / factor
    cos, sin = rope_tables(positions, frequencies, x.dtype)
    return apply_rope(x, cos, sin, layout)


class Released:
    """A head that you can run and whose settings you are to find."""

    def __init__(self, **settings):
        self._settings = settings
        self._weights = torch.randn(2, DIM, DIM, dtype=torch.float64)

    def turned(self, x, positions):
        """Return queries or keys after the rotation, same shape as x."""
        return turn(x, positions, **self._settings)

    def scores(self, text, **settings):
        """Return the publisher's scores, or the scores with your settings."""
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
# What is the effect of a wrong setting? Take one text, and compare the publisher's scores with yours at each distance
# between query and key, relative to the standard deviation of the scores.


# %% alt="Deviation of the scores against the distance between query and key, one line for each of three models. All three lines begin at zero; two of them rise within a few positions, one slowly, and none returns to zero."
def gap_by_distance(model, settings, text):
    """Return the root mean square deviation of the scores by distance."""
    theirs, ours = model.scores(text), model.scores(text, **settings)
    change = (ours - theirs) / theirs.std()
    distances = range(len(text) // 2)
    return [change.diagonal(-n).square().mean().sqrt() for n in distances]


text = torch.randn(96, DIM, dtype=torch.float64)
plt.figure(figsize=(4.4, 2.6))
for number, (model, settings) in enumerate(zip(models, configurations)):
    gaps = gap_by_distance(model, settings, text)
    plt.plot(gaps, color=f"C{number}", label=f"model {number}")
    print(f"model {number}: {gaps[1]:.2f} at distance one,", end=" ")
    print(f"{gaps[-1]:.2f} at the largest")
plt.xlabel("distance")
plt.ylabel("deviation of the scores")
plt.legend()
plt.show()

# %% [markdown]
# All shapes agree, and all three configurations are wrong. At distance zero the scores are right: query and key rotate
# by the same angle there, and a score depends only on the difference. So a test with one token passes.
#
# The curves do not show *which* setting is wrong. For that, look at the rotation itself.
#
# ## Step one: which channels form a pair?
#
# Use inputs whose result you know. A unit vector is one in a single channel and zero elsewhere. After the rotation, it
# is the cosine of an angle in its own channel, and plus or minus the sine in the channel of its partner. All unit
# vectors together form the identity matrix. So row $c$ of
#
# ```python
# matrix = model.turned(torch.eye(dim), torch.full((dim,), position))
# ```
#
# is the rotated unit vector of channel $c$. In the interleaved layout, the partner of channel `0` is channel `1`; in
# the half layout, it is channel `dim // 2`. Return the name of the layout.


# %% tags=["starter"]
def layout_of(matrix):
    """Return 'interleaved' or 'half' for rotated unit vectors."""
    return "interleaved"  # change this


# %% tags=["solution"]
def layout_of(matrix):
    """Return 'interleaved' or 'half' for rotated unit vectors."""
    beside = matrix[0, 1].abs()
    across = matrix[0, len(matrix) // 2].abs()
    return "interleaved" if beside > across else "half"


# %% tags=["judge"]
def turned_units(dim, position, base, layout, factor=1.0):
    """Return unit vectors, all rotated at one position, (dim, dim)."""
    units = torch.eye(dim, dtype=torch.float64)
    return turn(units, torch.full((dim,), position), base, layout, factor)


def check_layout(yours):
    """Test both layouts, with positive and negative sines of many sizes."""
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
# Print `turned_units(8, 1, 10_000.0, "half").round(decimals=2)`, then the same for the other layout, and read the first
# row. (The function is defined in the cell above the check.)
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# Two entries of the first row can belong to the partner. One of them is zero. Which one is larger?
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# A sine may be negative: compare absolute values, `matrix[0, 1].abs()` with `matrix[0, len(matrix) // 2].abs()`.
#
# </details>

# %% [markdown]
# ## Step two: the frequency of each pair
#
# At position one, the angle of a pair **is** its frequency. At larger positions, a fast pair may have completed a
# rotation, which you could not see. Read the cosine and the sine of each pair from the matrix, and compute the angle
# from both. Do not assume that their squares sum to one: with [YaRN](../guide/long-context.md), for example, rotated
# queries are longer than before.


# %% tags=["starter"]
def frequencies_of(matrix, layout):
    """Return the angle of each pair at position one, (dim/2,)."""
    return torch.ones(len(matrix) // 2, dtype=matrix.dtype)  # change this


# %% tags=["solution"]
def frequencies_of(matrix, layout):
    """Return the angle of each pair at position one, (dim/2,)."""
    channels = torch.arange(len(matrix))
    if layout == "interleaved":
        first, second = channels[0::2], channels[1::2]
    else:
        first, second = channels.chunk(2)
    return torch.atan2(matrix[first, second], matrix[first, first])


# %% tags=["judge"]
def check_frequencies(yours):
    """Compare with the frequencies used to build the matrices."""
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
# For each pair you need the index of its first channel and of its second one. In the interleaved layout, these are
# `0 2 4 …` and `1 3 5 …`; in the half layout, the first half and the second half.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# With two tensors of channel indices, `matrix[first, first]` contains the cosines of all pairs, and
# `matrix[first, second]` their sines.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `torch.atan2(sine, cosine)` is the angle, whatever the length of the vector.
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
# There are two unknowns, and a whole row of numbers. The first number does not depend on the base, and the ratio of two
# adjacent numbers does not depend on the factor. Return base and factor as plain numbers, base first.


# %% tags=["starter"]
def base_and_factor(frequencies):
    """Return the base and the factor that divides all frequencies."""
    return 1.0, 1.0  # change this


# %% tags=["solution"]
def base_and_factor(frequencies):
    """Return the base and the factor that divides all frequencies."""
    fastest, next_one = frequencies[0].item(), frequencies[1].item()
    base = (fastest / next_one) ** len(frequencies)
    return base, 1 / fastest


# %% tags=["judge"]
def check_base_and_factor(yours):
    """Compare with the base and factor used to build the frequencies."""
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
# $\omega_0 / \omega_1 = b^{2/d}$: the factor cancels. Which power turns $b^{2/d}$ into $b$?
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# There are $d/2$ frequencies, so the power is `len(frequencies)`. The factor is one over the first frequency.
#
# </details>

# %% alt="Logarithm of the frequency of each pair for three models: measured, as dots, and as claimed in each configuration, as lines. The dots of each model lie on a falling straight line: for one model on the claimed line, for one below it by the same amount everywhere, and for one they fall faster."
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
# Dots are measured frequencies, lines are the claimed ones. On a logarithmic scale, the base determines the slope of a
# line, and the factor shifts it down. Dots that do not lie on a straight line would indicate a scaling that treats
# pairs differently, such as [YaRN](../guide/long-context.md).
#
# ## Step four: find the wrong setting
#
# Combine your functions. For a model and a configuration, return a dictionary of the settings in which they differ,
# with the measured values: `{}` if the configuration is right, `{"layout": "half"}` if the model uses the half layout
# and the configuration claims another. A measured number is never exact: treat two numbers as equal if they differ by
# at most one percent.


# %% tags=["starter"]
def what_is_wrong(model, configuration):
    """Return the wrong settings of a configuration, as measured."""
    return {}  # change this


# %% tags=["solution"]
def what_is_wrong(model, configuration):
    """Return the wrong settings of a configuration, as measured."""
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
    """Test other models, with none, one, two or all settings wrong."""
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
# Four lines measure: the unit vectors at position one, the layout, the frequencies, base and factor. Each uses the
# result of the one before, and none uses the configuration.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# `model.turned(torch.eye(DIM, dtype=torch.float64), torch.ones(DIM, dtype=torch.long))` returns the matrix, with every
# unit vector at position one.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# Names of layouts are equal or not. For the two numbers, `abs(base / configuration["base"] - 1) > 0.01` means that they
# differ.
#
# </details>

# %% [markdown]
# ## Verify the three results
#
# Apply your function to the three models. The measured settings replace the claimed ones, and the scores are compared
# again. Run the cell before and after you have solved step four.

# %%
for number, (model, said) in enumerate(zip(models, configurations)):
    found = what_is_wrong(model, said)
    for name, value in found.items():
        value = value if isinstance(value, str) else f"{value:.0f}"
        print(f"model {number}: {name} is {value}, not {said[name]}")
    before = gap_by_distance(model, said, text)[-1]
    after = gap_by_distance(model, said | found, text)[-1]
    print(f"model {number}: deviation {before:.2f} before,", end=" ")
    print(f"{after:.0e} after")

# %% [markdown]
# ## What you can do now
#
# You can measure from outside what a rotation does, with inputs whose result you know, and compare the result with a
# configuration. The decisive test came last: scores that equal the publisher's. In a real model, the same breakpoint
# shows queries before and after their rotation; if you cannot set one, compare the scores, or the output for one text,
# with the publisher's code, setting by setting.
#
# - What to do about a wrong layout if the code cannot be changed: [convert the checkpoint](rope_layouts.md).
# - Scalings that treat pairs differently: [NTK-aware RoPE](ntk_rope.md) and [YaRN](yarn.md).
# - What each check detects, and what none detects: [debugging](../guide/debugging.md#where-it-breaks).
# - The tested functions: [`rope.py`](../reference/rope.md), [`rope_scaling.py`](../reference/rope_scaling.md).
