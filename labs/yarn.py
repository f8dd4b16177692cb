# %% [markdown]
# # Lab: YaRN
#
# Write YaRN from its parts: count turns, slow pairs by them, and sharpen the attention.
#
# **Goal.** You compute the frequencies of YaRN by its paper and by its released code, see where the two part ways, and
# put the temperature where it belongs.
#
# **Time.** About seventy minutes.
#
# **You need.** [RoPE](../guide/rope.md) and [stretching it](../guide/long-context.md), both up to the intermediate
# level, logarithms, and some PyTorch. The [lab on NTK-aware RoPE](ntk_rope.md) is a good first step.

# %%
import math

import matplotlib.pyplot as plt
import torch

from labs.judge import judge, right_and_wrong
from snippets.rope import apply_rope, rope_frequencies, rope_tables

_ = torch.manual_seed(0)
DIM, BASE = 128, 10_000.0  # the channels of a head, and its base
TRAINED = 4096  # tokens in the texts of the training
FACTOR = 16  # how many times longer the texts are to be
frequencies = rope_frequencies(DIM, BASE)

# %% [markdown]
# ## Step one: count turns
#
# A pair with frequency $w$, in radians per position, turns on and on. If it came round at least once in the texts of
# the training, the model has met its whole circle, in steps, and no longer text asks it for anything beyond. If not,
# the model knows a part of it only. So YaRN sorts the pairs by one number: *how many times does a pair turn in $L$
# tokens*, where $L$ is the length of the training?


# %% tags=["starter"]
def turns(frequencies, trained):
    """How many times each pair turns in the texts of the training: (pairs,).

    frequencies  (pairs,), in radians per position, float64 like the result
    trained      tokens in the texts of the training
    """
    return frequencies  # change this


# %% tags=["solution"]
def turns(frequencies, trained):
    """How many times each pair turns in the texts of the training: (pairs,).

    frequencies  (pairs,), in radians per position, float64 like the result
    trained      tokens in the texts of the training
    """
    return trained * frequencies / (2 * math.pi)


# %% tags=["judge"]
def check_turns(yours):
    """Compare with the solution, then with what often goes wrong."""
    cases = {
        "a head of 8 channels": (rope_frequencies(8, BASE), 4096),
        "a head of 64 channels": (rope_frequencies(64, 500_000.0), 8192),
    }
    right, mistakes = right_and_wrong("yarn", "turns", globals())
    return judge(yours, right, cases, mistakes, tolerance=1e-6)


# %% tags=["check"]
passed = check_turns(turns)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Take the fastest pair, with $w = 1$. It moves on by one radian at every token. How far has it gone after $L$ tokens?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# After $L$ tokens a pair has turned by $L w$ radians. One turn has $2\pi$ radians.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `trained * frequencies` are radians. Divide them by `(2 * math.pi)`, with the bracket.
#
# </details>

# %%
counted = turns(frequencies, TRAINED)
print("pair        turns")
for pair in (0, 16, 24, 32, 40, 48, 63):
    print(f"{pair:>4}   {counted[pair]:>10.2f}")
print(f"{(counted < 1).sum()} of {len(counted)} pairs do not come round once")

# %% [markdown]
# ## Step two: slow by parts
#
# Now a rule for each pair, with $r$ for its turns and $s$ for the factor by which texts grow:
#
# - from $\beta$ turns on, it is left alone;
# - up to $\alpha$ turns, its frequency is divided by $s$;
# - between, the two frequencies are mixed, and the share of the old one grows in a straight line with $r$, from zero
#   at $\alpha$ to one at $\beta$.
#
# This is *NTK-by-parts*, and by its paper also what YaRN does to frequencies. The paper takes $\alpha = 1$ and
# $\beta = 32$ for Llama.


# %% tags=["starter"]
def by_parts(frequencies, factor, trained, alpha=1.0, beta=32.0):
    """Slow pairs slower by factor, fast ones unchanged: (pairs,).

    frequencies  (pairs,), in radians per position, float64 like the result
    factor       how many times longer the texts are to be
    trained      tokens in the texts of the training
    alpha, beta  turns: where slowing in full ends, where all of it ends
    """
    return frequencies  # change this


# %% tags=["solution"]
def by_parts(frequencies, factor, trained, alpha=1.0, beta=32.0):
    """Slow pairs slower by factor, fast ones unchanged: (pairs,).

    frequencies  (pairs,), in radians per position, float64 like the result
    factor       how many times longer the texts are to be
    trained      tokens in the texts of the training
    alpha, beta  turns: where slowing in full ends, where all of it ends
    """
    kept = (turns(frequencies, trained) - alpha) / (beta - alpha)
    kept = kept.clamp(0, 1)
    return kept * frequencies + (1 - kept) * frequencies / factor


# %% tags=["judge"]
def check_by_parts(yours):
    """Compare with the solution, then with what often goes wrong."""
    few, many = rope_frequencies(16, BASE), rope_frequencies(64, 500_000.0)
    cases = {
        "a head of 16 channels": (few, 4, 4096, 1, 32),
        "a head of 64 channels": (many, 8, 8192, 1, 32),
        "a ramp from 2 to 40 turns": (
            rope_frequencies(32, BASE),
            4,
            1024,
            2,
            40,
        ),
    }
    right, mistakes = right_and_wrong("yarn", "by_parts", globals())
    return judge(yours, right, cases, mistakes, tolerance=1e-6)


# %% tags=["check"]
passed = check_by_parts(by_parts)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Do it in two lines. First the share of the old frequency that a pair keeps, a number from zero to one for each pair.
# Then the mixture.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# The straight line that is zero at $\alpha$ and one at $\beta$ is $(r - \alpha) / (\beta - \alpha)$. Left and right of
# the ramp it goes on, and has to be held: `.clamp(0, 1)`.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# With $\gamma$ for the share, the new frequency is $\gamma w + (1 - \gamma)\, w / s$. In code:
# `kept * frequencies + (1 - kept) * frequencies / factor`, where `kept` comes from
# `(turns(frequencies, trained) - alpha) / (beta - alpha)`.
#
# </details>

# %%
slowed_by = frequencies / by_parts(frequencies, FACTOR, TRAINED)
print("pair        turns   slowed by")
for pair in (0, 16, 24, 32, 40, 48, 63):
    print(f"{pair:>4}   {counted[pair]:>10.2f}   {slowed_by[pair]:>9.2f}")

# %% [markdown]
# ## Step three: the ramp of the released code
#
# The code that came with the paper, and transformers after it, do something else between the two ends. They ask *which
# pair would turn* $n$ *times*, and allow fractions of a pair:
#
# $$p(n) = \frac{d \, \ln\bigl(L / (2\pi n)\bigr)}{2 \ln b}$$
#
# with $d$ channels and base $b$. The ramp runs from pair $p(\beta)$ to pair $p(\alpha)$, both rounded outwards to
# whole numbers, and on it the share that is *slowed* grows in a straight line with the pair's index $p$. The lower end
# is held at zero or above, the upper end at $d - 1$ or below. (Should both ends fall on the same pair, the released code
# moves them a little apart. Here they never do.)


# %% tags=["starter"]
def as_released(dim, base, factor, trained, alpha=1.0, beta=32.0):
    """The frequencies of YaRN by its released code: (dim/2,), float64.

    dim, base    those of the RoPE: its channels, its base
    factor       how many times longer the texts are to be
    trained      tokens in the texts of the training
    alpha, beta  turns: where the ramp ends and where it starts
    """
    return rope_frequencies(dim, base)  # change this


# %% tags=["solution"]
def as_released(dim, base, factor, trained, alpha=1.0, beta=32.0):
    """The frequencies of YaRN by its released code: (dim/2,), float64.

    dim, base    those of the RoPE: its channels, its base
    factor       how many times longer the texts are to be
    trained      tokens in the texts of the training
    alpha, beta  turns: where the ramp ends and where it starts
    """

    def pair_that_turns(times):
        most = trained / (2 * math.pi * times)
        return dim * math.log(most) / (2 * math.log(base))

    low = max(math.floor(pair_that_turns(beta)), 0)
    high = min(math.ceil(pair_that_turns(alpha)), dim - 1)
    p = torch.arange(dim // 2)
    slowed = ((p - low) / (high - low)).clamp(0, 1)
    frequencies = rope_frequencies(dim, base)
    return slowed * frequencies / factor + (1 - slowed) * frequencies


# %% tags=["judge"]
def check_as_released(yours):
    """Compare with the solution, then with what often goes wrong."""
    often = 32, 100.0, 4, 131_072, 1, 4096
    cases = {
        "a head of 128 channels": (128, 10_000.0, 16, 4096, 1, 32),
        "a head of 64 channels": (64, 500_000.0, 8, 9000, 1, 16),
        "a model trained on 128 tokens": (32, 10_000.0, 4, 128, 1, 32),
        "a head whose pairs all turn often": often,
    }
    right, mistakes = right_and_wrong("yarn", "as_released", globals())
    return judge(yours, right, cases, mistakes, tolerance=1e-6)


# %% tags=["check"]
passed = check_as_released(as_released)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Go in this order: a small function for $p(n)$; `low` and `high`, two whole numbers; the share that each pair is
# slowed; the mixture of step two.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# Which end belongs to which? A pair that turns $\beta$ times is a fast one, and fast pairs have small indices. So
# $p(\beta)$ is the lower end. Outwards means that it is rounded down and the other end up.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# ```python
# low = max(math.floor(pair_that_turns(beta)), 0)
# high = min(math.ceil(pair_that_turns(alpha)), dim - 1)
# slowed = ((torch.arange(dim // 2) - low) / (high - low)).clamp(0, 1)
# ```
#
# A pair is slowed by this share: `slowed * frequencies / factor` and the rest of it unchanged.
#
# </details>

# %%
paper = by_parts(frequencies, FACTOR, TRAINED)
code = as_released(DIM, BASE, FACTOR, TRAINED)
pair = (code / paper).argmax()
print(f"pair {pair} turns {counted[pair]:.1f} times in training")
print(f"  slowed by {frequencies[pair] / paper[pair]:.2f} by the paper")
print(f"  slowed by {frequencies[pair] / code[pair]:.2f} by the code")

# %% [markdown]
# For this head the ends agree, the middle does not. Neither is wrong, but a model that was tuned with one of them
# needs that one, and
# with the other nothing raises an error:

# %% alt="By pair, interpolation slows all alike. The paper's ramp leaves the first pairs, then rises at once and flattens. The code's starts at the same place, stays lower in the middle and reaches the same end."
fig, ax = plt.subplots(figsize=(4.4, 3), layout="constrained")
ax.axhline(FACTOR, color="gray", linestyle=":", label="interpolation")
ax.semilogy(frequencies / paper, "--", color="C0", label="YaRN, paper")
ax.semilogy(frequencies / code, color="C1", label="YaRN, code")
ax.set_yticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
ax.minorticks_off()
ax.set_xlabel("pair, fastest first")
ax.set_ylabel("slowed by")
fig.legend(loc="outside lower center", ncols=2)
plt.show()

# %% [markdown]
# ## Step four: the temperature
#
# The second half of YaRN divides the scores by a temperature $t$ before the softmax, with
#
# $$\sqrt{1/t} = 0.1 \ln s + 1$$
#
# Since a score is a product of a query and a key, it is enough to multiply *both* by that root, as the released code
# does. Write the scores of a head, as they enter the softmax. Turn queries and keys with `apply_rope` in the layout
# `"half"`, and do not forget what attention always does to its scores.


# %% tags=["starter"]
def scores(q, k, positions, frequencies, factor):
    """The scores of YaRN, ready for the softmax: (tokens, tokens).

    q, k         (tokens, dim), not yet turned
    positions    (tokens,)
    frequencies  (dim/2,), already those of YaRN
    factor       how many times longer the texts are to be
    """
    cos, sin = rope_tables(positions, frequencies)
    q = apply_rope(q, cos, sin, "half")
    k = apply_rope(k, cos, sin, "half")
    return q @ k.T / math.sqrt(q.shape[-1])  # change this


# %% tags=["solution"]
def scores(q, k, positions, frequencies, factor):
    """The scores of YaRN, ready for the softmax: (tokens, tokens).

    q, k         (tokens, dim), not yet turned
    positions    (tokens,)
    frequencies  (dim/2,), already those of YaRN
    factor       how many times longer the texts are to be
    """
    strength = 0.1 * math.log(factor) + 1
    cos, sin = rope_tables(positions, frequencies)
    q = strength * apply_rope(q, cos, sin, "half")
    k = strength * apply_rope(k, cos, sin, "half")
    return q @ k.T / math.sqrt(q.shape[-1])


# %% tags=["judge"]
def check_scores(yours):
    """Compare with the solution, then with what often goes wrong."""
    some = torch.Generator().manual_seed(1)
    cases = {}
    for dim, factor in ((8, 16), (32, 4)):
        q, k = torch.randn(2, 6, dim, generator=some)
        positions = torch.tensor([0, 1, 2, 7, 40, 900])
        w = rope_frequencies(dim, 100.0) / factor
        cases[f"factor {factor}"] = q, k, positions, w, factor
    right, mistakes = right_and_wrong("yarn", "scores", globals())
    return judge(yours, right, cases, mistakes)


# %% tags=["check"]
passed = check_scores(scores)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# The starter has the scores of plain RoPE. What has to change is a single number. Which one, and how often does it
# enter a score?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# Multiplying `q` by $m$ and `k` by $m$ multiplies the score by $m^2 = 1/t$. Do that, or multiply the scores by $m^2$,
# never both.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `strength = 0.1 * math.log(factor) + 1`, and then `strength *` in front of both calls of `apply_rope`. The rest stays.
#
# </details>

# %%
q, k = torch.randn(2, 200, DIM)
positions = torch.arange(200)
print("largest weight of the last token, random q and k")
for name, used, factor in (
    ("frequencies alone", code, 1),
    ("YaRN", code, 16),
):
    weights = scores(q, k, positions, used, factor)[-1].softmax(-1)
    print(f"  {name:<18} {weights.max():.3f}")

# %% [markdown]
# The same frequencies, and the same token is ahead, but by more. Any factor above one sharpens a softmax in this way;
# that it should be $0.1 \ln s + 1$ was found by a fit to measurements
# ([Peng et al. 2024](../bibliography.md#peng2024), section 3.4), not derived.
#
# ## What you can do now
#
# You can count a pair's turns in training and say why they decide what to do with it. You can write NTK-by-parts, the
# ramp of the released YaRN and its temperature, and you know that two programs which both say “YaRN” may differ. For a
# checkpoint, take the one that it was tuned with.
#
# - Go on with the lab on [what happens beyond the trained length](length_extrapolation.md), where a trained head needs
#   such a remedy.
# - Read again: [stretching RoPE](../guide/long-context.md#the-idea), at the advanced level on two ramps by one name.
# - The tested code, with its checks of what comes in: [`rope_scaling.py`](../reference/rope_scaling.md).
