# %% [markdown]
# # Lab: Implement YaRN
#
# YaRN scales the frequencies of RoPE for longer texts, depending on how many rotations each pair completes in training,
# and sharpens the attention. You write it step by step.
#
# **Goal.** You compute YaRN's frequencies as in the paper and as in the released code, see where the two differ, and
# apply the attention temperature where it belongs.
#
# **Time.** About seventy minutes.
#
# **You need.** [RoPE](../guide/rope.md) and [context extension](../guide/long-context.md), both up to the Intermediate
# level, logarithms, and some PyTorch. The [lab on NTK-aware RoPE](ntk_rope.md) is a good first step.

# %%
import math

import matplotlib.pyplot as plt
import torch

from labs.judge import judge, right_and_wrong
from snippets.rope import apply_rope, rope_frequencies, rope_tables

_ = torch.manual_seed(0)
DIM, BASE = 128, 10_000.0  # channels of a head, base of the frequencies
TRAINED = 4096  # the training length, in tokens
FACTOR = 16  # how many times longer the texts will be
frequencies = rope_frequencies(DIM, BASE)

# %% [markdown]
# ## Step one: count rotations
#
# A pair rotates by its frequency $w$, in radians, at every position. If it completes at least one rotation within the
# training length, the model has seen the whole circle, in steps, and a longer text brings no new angles. If not, the
# model has seen only a part of the circle. So YaRN sorts the pairs by one number: *how many rotations does a pair
# complete in $L$ tokens*, where $L$ is the training length?


# %% tags=["starter"]
def turns(frequencies, trained):
    """Return how many rotations each pair completes in training, (pairs,).

    frequencies  (pairs,), in radians per position, float64 like the result
    trained      the training length, in tokens
    """
    return frequencies  # change this


# %% tags=["solution"]
def turns(frequencies, trained):
    """Return how many rotations each pair completes in training, (pairs,).

    frequencies  (pairs,), in radians per position, float64 like the result
    trained      the training length, in tokens
    """
    return trained * frequencies / (2 * math.pi)


# %% tags=["judge"]
def check_turns(yours):
    """Compare with the solution, then with typical mistakes."""
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
# Take the fastest pair, with $w = 1$. It rotates by one radian per token. How far has it rotated after $L$ tokens?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# After $L$ tokens a pair has rotated by $L w$ radians. A full rotation has $2\pi$ radians.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `trained * frequencies` is in radians. Divide it by `(2 * math.pi)`, with the parentheses.
#
# </details>

# %%
counted = turns(frequencies, TRAINED)
print("pair    rotations")
for pair in (0, 16, 24, 32, 40, 48, 63):
    print(f"{pair:>4}   {counted[pair]:>10.2f}")
print(f"{(counted < 1).sum()} of {len(counted)} pairs: less than 1 rotation")

# %% [markdown]
# ## Step two: scale by parts
#
# The rule for each pair depends on its number of rotations $r$ and on the factor $s$ by which texts get longer:
#
# - if $r \ge \beta$, the frequency does not change;
# - if $r \le \alpha$, the frequency is divided by $s$;
# - in between, the two frequencies are mixed, and the weight of the old one grows linearly with $r$, from zero at
#   $\alpha$ to one at $\beta$.
#
# This rule is *NTK-by-parts*, and according to the paper it is also what YaRN does to frequencies. The paper uses
# $\alpha = 1$ and $\beta = 32$ for Llama.


# %% tags=["starter"]
def by_parts(frequencies, factor, trained, alpha=1.0, beta=32.0):
    """Slow the slow pairs by factor, leave fast ones unchanged, (pairs,).

    frequencies  (pairs,), in radians per position, float64 like the result
    factor       how many times longer the texts will be
    trained      the training length, in tokens
    alpha, beta  rotations: at most alpha, divided by factor; from beta, kept
    """
    return frequencies  # change this


# %% tags=["solution"]
def by_parts(frequencies, factor, trained, alpha=1.0, beta=32.0):
    """Slow the slow pairs by factor, leave fast ones unchanged, (pairs,).

    frequencies  (pairs,), in radians per position, float64 like the result
    factor       how many times longer the texts will be
    trained      the training length, in tokens
    alpha, beta  rotations: at most alpha, divided by factor; from beta, kept
    """
    kept = (turns(frequencies, trained) - alpha) / (beta - alpha)
    kept = kept.clamp(0, 1)
    return kept * frequencies + (1 - kept) * frequencies / factor


# %% tags=["judge"]
def check_by_parts(yours):
    """Compare with the solution, then with typical mistakes."""
    few, many = rope_frequencies(16, BASE), rope_frequencies(64, 500_000.0)
    cases = {
        "a head of 16 channels": (few, 4, 4096, 1, 32),
        "a head of 64 channels": (many, 8, 8192, 1, 32),
        "a ramp from 2 to 40 rotations": (
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
# Write it in two lines: first the weight of the old frequency, a number from zero to one for each pair, then the
# mixture.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# The straight line that is zero at $\alpha$ and one at $\beta$ is $(r - \alpha) / (\beta - \alpha)$. Outside the ramp
# it leaves the range from zero to one, so limit it: `.clamp(0, 1)`.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# With $\gamma$ for the weight, the new frequency is $\gamma w + (1 - \gamma)\, w / s$. In code:
# `kept * frequencies + (1 - kept) * frequencies / factor`, where `kept` comes from
# `(turns(frequencies, trained) - alpha) / (beta - alpha)`.
#
# </details>

# %%
slowed_by = frequencies / by_parts(frequencies, FACTOR, TRAINED)
print("pair    rotations   slowed by")
for pair in (0, 16, 24, 32, 40, 48, 63):
    print(f"{pair:>4}   {counted[pair]:>10.2f}   {slowed_by[pair]:>9.2f}")

# %% [markdown]
# ## Step three: the ramp of the released code
#
# The code released with the paper, and transformers after it, use a different ramp between the two ends. They compute
# *which pair would complete* $n$ *rotations*, allowing fractions of a pair:
#
# $$p(n) = \frac{d \, \ln\bigl(L / (2\pi n)\bigr)}{2 \ln b}$$
#
# with $d$ channels and base $b$. The ramp runs from pair $p(\beta)$ to pair $p(\alpha)$, both rounded outwards to
# integers. Along the ramp, the weight of the *divided* frequency grows linearly with the pair's index $p$. The lower
# end is limited to at least zero, the upper end to at most $d - 1$. (If both ends fall on the same pair, the released
# code moves them slightly apart. Here they never do.)


# %% tags=["starter"]
def as_released(dim, base, factor, trained, alpha=1.0, beta=32.0):
    """Return YaRN's frequencies as in its released code, (dim/2,), float64.

    dim, base    channels of a head, base of the frequencies
    factor       how many times longer the texts will be
    trained      the training length, in tokens
    alpha, beta  rotations: where the ramp ends and where it starts
    """
    return rope_frequencies(dim, base)  # change this


# %% tags=["solution"]
def as_released(dim, base, factor, trained, alpha=1.0, beta=32.0):
    """Return YaRN's frequencies as in its released code, (dim/2,), float64.

    dim, base    channels of a head, base of the frequencies
    factor       how many times longer the texts will be
    trained      the training length, in tokens
    alpha, beta  rotations: where the ramp ends and where it starts
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
    """Compare with the solution, then with typical mistakes."""
    often = 32, 100.0, 4, 131_072, 1, 4096
    cases = {
        "a head of 128 channels": (128, 10_000.0, 16, 4096, 1, 32),
        "a head of 64 channels": (64, 500_000.0, 8, 9000, 1, 16),
        "a model trained on 128 tokens": (32, 10_000.0, 4, 128, 1, 32),
        "a head whose pairs all complete many rotations": often,
    }
    right, mistakes = right_and_wrong("yarn", "as_released", globals())
    return judge(yours, right, cases, mistakes, tolerance=1e-6)


# %% tags=["check"]
passed = check_as_released(as_released)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Proceed in this order: a small function for $p(n)$; `low` and `high`, two integers; the weight of the divided
# frequency for each pair; the mixture of step two.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# Which end belongs to which? A pair that completes $\beta$ rotations is a fast one, and fast pairs have small indices.
# So $p(\beta)$ is the lower end. Outwards means that the lower end is rounded down and the upper end up.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# The ends and the weight are
#
# ```python
# low = max(math.floor(pair_that_turns(beta)), 0)
# high = min(math.ceil(pair_that_turns(alpha)), dim - 1)
# slowed = ((torch.arange(dim // 2) - low) / (high - low)).clamp(0, 1)
# ```
#
# The new frequency is `slowed * frequencies / factor` plus `(1 - slowed) * frequencies`.
#
# </details>

# %%
paper = by_parts(frequencies, FACTOR, TRAINED)
code = as_released(DIM, BASE, FACTOR, TRAINED)
pair = (code / paper).argmax()
print(f"pair {pair} completes {counted[pair]:.1f} rotations in training")
print(f"  slowed by {frequencies[pair] / paper[pair]:.2f} in the paper")
print(f"  slowed by {frequencies[pair] / code[pair]:.2f} in the code")

# %% [markdown]
# For this head the two ramps agree at the ends and differ in the middle. Neither is wrong, but a model that was
# fine-tuned with one of them needs the same one, and the other raises no error:

# %% alt="Factor by which each pair is slowed. Interpolation slows all pairs equally. The paper's ramp leaves the first pairs unchanged, then rises steeply and flattens. The code's ramp starts at the same pair, stays lower in the middle and reaches the same end."
fig, ax = plt.subplots(figsize=(4.4, 3), layout="constrained")
ax.axhline(FACTOR, color="gray", linestyle=":", label="interpolation")
ax.semilogy(frequencies / paper, "--", color="C0", label="YaRN, paper")
ax.semilogy(frequencies / code, color="C1", label="YaRN, code")
ax.set_yticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
ax.minorticks_off()
ax.set_xlabel("pair, fastest first")
ax.set_ylabel("slowed by a factor of")
fig.legend(loc="outside lower center", ncols=2)
plt.show()

# %% [markdown]
# ## Step four: the attention temperature
#
# The second part of YaRN divides the scores by a temperature $t$ before the softmax, with
#
# $$\sqrt{1/t} = 0.1 \ln s + 1$$
#
# Because a score is a product of a query and a key, it is enough to multiply *both* by this square root, as the
# released code does. Write the scores of a head, as they enter the softmax. Rotate queries and keys with `apply_rope`
# in the layout `"half"`, and do not forget to divide the scores by the square root of the head width, as attention
# always does.


# %% tags=["starter"]
def scores(q, k, positions, frequencies, factor):
    """Return YaRN's scores, ready for the softmax, (tokens, tokens).

    q, k         (tokens, dim), not yet rotated
    positions    (tokens,)
    frequencies  (dim/2,), already scaled by YaRN
    factor       how many times longer the texts will be
    """
    cos, sin = rope_tables(positions, frequencies)
    q = apply_rope(q, cos, sin, "half")
    k = apply_rope(k, cos, sin, "half")
    return q @ k.T / math.sqrt(q.shape[-1])  # change this


# %% tags=["solution"]
def scores(q, k, positions, frequencies, factor):
    """Return YaRN's scores, ready for the softmax, (tokens, tokens).

    q, k         (tokens, dim), not yet rotated
    positions    (tokens,)
    frequencies  (dim/2,), already scaled by YaRN
    factor       how many times longer the texts will be
    """
    strength = 0.1 * math.log(factor) + 1
    cos, sin = rope_tables(positions, frequencies)
    q = strength * apply_rope(q, cos, sin, "half")
    k = strength * apply_rope(k, cos, sin, "half")
    return q @ k.T / math.sqrt(q.shape[-1])


# %% tags=["judge"]
def check_scores(yours):
    """Compare with the solution, then with typical mistakes."""
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
# The starter computes the scores of plain RoPE. Only a factor is missing. Which one, and how often does it enter a
# score?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# Multiplying `q` by $m$ and `k` by $m$ multiplies the score by $m^2 = 1/t$. Do that, or multiply the scores by $m^2$,
# but not both.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `strength = 0.1 * math.log(factor) + 1`, and then `strength *` in front of both calls of `apply_rope`. Nothing else
# changes.
#
# </details>

# %%
q, k = torch.randn(2, 200, DIM)
positions = torch.arange(200)
print("largest attention weight of the last token")
for name, used, factor in (
    ("frequencies only", code, 1),
    ("YaRN", code, 16),
):
    weights = scores(q, k, positions, used, factor)[-1].softmax(-1)
    print(f"  {name:<18} {weights.max():.3f}")

# %% [markdown]
# With the same frequencies, the same token has the largest weight, but a larger one. Any factor above one sharpens a
# softmax in this way; the value $0.1 \ln s + 1$ was found by a fit to measurements ([Peng et al.
# 2024](../bibliography.md#peng2024), section 3.4), not derived.
#
# ## What you can do now
#
# You can count a pair's rotations in training and explain why they decide how to scale it. You can write NTK-by-parts,
# the ramp of the released YaRN code and its attention temperature, and you know that two programs that are both called
# “YaRN” may differ. For a checkpoint, use the variant that it was fine-tuned with.
#
# - Go on with the lab on [RoPE beyond its training length](length_extrapolation.md), where a trained head needs such a
#   fix.
# - Read again: [context extension](../guide/long-context.md#the-idea), at the Advanced level on the two ramps of YaRN.
# - The tested code, with its input checks: [`rope_scaling.py`](../reference/rope_scaling.md).
