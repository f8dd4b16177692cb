# %% [markdown]
# # Lab: ALiBi as a bias and as a score_mod
#
# One penalty, written twice: as a tensor that attention adds to its scores, and as a function of one score that
# `flex_attention` calls.
#
# **Goal.** The slopes for any number of heads, the causal bias, attention with it, and a `score_mod` that makes no tensor
# at all; then both ways give the same, for a whole text and for one new token behind a cache.
#
# **Time.** About fifty minutes.
#
# **You need.** [ALiBi](../guide/bias.md), up to its Intermediate level, and tensors in torch. No GPU.

# %%
import math

import matplotlib.pyplot as plt
import torch
from torch.nn.attention import flex_attention as flex
from torch.nn.functional import scaled_dot_product_attention

from labs.judge import judge, right_and_wrong
from snippets.alibi import alibi_bias, alibi_slopes

flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True  # see the end
_ = torch.manual_seed(0)

# %% [markdown]
# ## Step one: what a step costs
#
# Each head takes a fixed amount off a score for every step between query and key: its **slope**, which nobody learns. For
# $H$ heads, a power of two, the slopes of the heads $h = 1, \dots, H$ are
#
# $$
# m_h = 2^{-8h/H}
# $$
#
# For any other number of heads the authors' code does not use this formula. It takes the slopes of the power of two
# **below** $H$, all of them, and adds what is missing from those of **twice** that power: the first of these, the third,
# the fifth, and so on. BLOOM and MPT follow the code, and so do you. For three heads: both slopes of two heads, and the
# first one of four.


# %% tags=["starter"]
def slopes_of(heads):
    """What a step costs in each head: (heads,), float32."""
    return torch.ones(heads)  # yours: change this


# %% tags=["solution"]
def slopes_of(heads):
    """What a step costs in each head: (heads,), float32."""
    below = 2 ** (heads.bit_length() - 1)  # the power of two not above heads
    own = [2 ** (-8 * h / below) for h in range(1, below + 1)]
    twice = [2 ** (-8 * h / (2 * below)) for h in range(1, 2 * below + 1)]
    return torch.tensor(own + twice[0::2][: heads - below])


# %% tags=["judge"]
def check_slopes(yours):
    """Powers of two and others, against the guide's own file."""
    cases = {
        "eight heads": (8,),
        "one head": (1,),
        "sixteen heads": (16,),
        "three heads": (3,),
        "twelve heads": (12,),
        "thirteen heads": (13,),
    }
    _, mistakes = right_and_wrong("alibi_two_ways", "slopes_of", globals())
    return judge(yours, alibi_slopes, cases, mistakes)


# %% tags=["check"]
passed = check_slopes(slopes_of)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Begin with eight heads: one half, one quarter, one eighth, down to $2^{-8}$. Heads are counted from one, so that no
# slope is one. When the check accepts the powers of two, go on.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# The power of two not above `heads` is `2 ** (heads.bit_length() - 1)`. Write a list of its slopes, and a list of those of
# twice as many heads.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `twice[0::2]` is the first, the third, the fifth of a list, and `[: heads - below]` cuts off what is too much. Join the
# two lists; do not sort them.
#
# </details>

# %%
for heads in (2, 3, 4):
    slopes = slopes_of(heads).tolist()
    print(f"{heads} heads:", " ".join(f"{slope:.4f}" for slope in slopes))

# %% [markdown]
# ## Step two: the bias
#
# For a query at position $i$ and a key at position $j$, head $h$ adds to the score
#
# $$
# b^{(h)}_{ij} = \begin{cases} -m_h\,(i - j) & j \le i \\ -\infty & j > i \end{cases}
# $$
#
# Minus infinity hides what comes later: the softmax gives it no weight. The positions are given. Use them, and not the
# place in the tensor: a decoder adds one query, in row zero, which may stand at position seven hundred.


# %% tags=["starter"]
def bias_of(query_positions, key_positions, slopes):
    """What joins the scaled scores: (heads, queries, keys)."""
    queries, keys = len(query_positions), len(key_positions)
    return torch.zeros(len(slopes), queries, keys)  # yours: change this


# %% tags=["solution"]
def bias_of(query_positions, key_positions, slopes):
    """What joins the scaled scores: (heads, queries, keys)."""
    steps = query_positions[:, None] - key_positions
    bias = -slopes[:, None, None] * steps
    return bias.masked_fill(steps < 0, -math.inf)


# %% tags=["judge"]
def check_bias(yours):
    """Compare with the guide's own file, then with what goes wrong."""
    whole = torch.arange(6)
    cases = {
        "a whole text and four heads": (whole, whole, alibi_slopes(4)),
        "as many heads as tokens": (whole, whole, alibi_slopes(6)),
        "one new query behind seven keys": (
            torch.tensor([7]),
            torch.arange(8),
            alibi_slopes(3),
        ),
        "a window of keys": (
            torch.arange(9, 11),
            torch.arange(5, 11),
            alibi_slopes(2),
        ),
    }
    _, mistakes = right_and_wrong(
        "alibi_two_ways", "bias_of", globals(), pairs=False
    )
    return judge(yours, alibi_bias, cases, mistakes)


# %% tags=["check"]
passed = check_bias(bias_of)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# First a rectangle of steps, a row for each query and a column for each key: how far does each key lie before the query?
# For later keys that number is below zero.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# A column less a row fills a rectangle: `query_positions[:, None] - key_positions`. To multiply it by one number for each
# head, give the slopes two more axes: `slopes[:, None, None]`.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `bias.masked_fill(steps < 0, -math.inf)` hides later keys. Do not use `tril` or `triu`: they go by rows and columns, which
# are positions only in a whole text.
#
# </details>

# %% [markdown]
# ## Step three: attention with the bias
#
# Let torch's attention add the bias. `q` is `(batch, heads, queries, dim)`, and `k` and `v` have keys in the place of
# queries. Scores are divided by $\sqrt d$ **before** the bias joins them, and
# [`scaled_dot_product_attention`](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html)
# does the one and the other.


# %% tags=["starter"]
def attend(q, k, v, bias):
    """Attention with a bias: (batch, heads, queries, dim)."""
    return scaled_dot_product_attention(q, k, v)  # yours: change this


# %% tags=["solution"]
def attend(q, k, v, bias):
    """Attention with a bias: (batch, heads, queries, dim)."""
    return scaled_dot_product_attention(q, k, v, attn_mask=bias)


# %% tags=["judge"]
def drawn(heads, queries, keys, dim=8):
    """Random q, k and v of a batch of two."""
    made = torch.Generator().manual_seed(keys)
    shapes = (queries, keys, keys)
    return [torch.randn(2, heads, n, dim, generator=made) for n in shapes]


def check_attend(yours):
    """A whole text, and one new token behind a cache."""
    whole, late = torch.arange(6), torch.tensor([7])
    slopes = alibi_slopes(4)
    cases = {
        "a whole text": (
            *drawn(4, 6, 6),
            alibi_bias(whole, whole, slopes),
        ),
        "one new token behind seven": (
            *drawn(4, 1, 8),
            alibi_bias(late, torch.arange(8), slopes),
        ),
    }
    right, mistakes = right_and_wrong(
        "alibi_two_ways", "attend", globals(), pairs=False
    )
    return judge(yours, right, cases, mistakes)


# %% tags=["check"]
passed = check_attend(attend)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# The function takes a mask that it adds to the scores, if it holds numbers and not truth values.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# The mask is called `attn_mask`. It needs no axis for the batch: all texts share it.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# Later keys are hidden in the bias already. Do not set `is_causal`.
#
# </details>

# %% [markdown]
# ## Step four: a function of one score
#
# `flex_attention` wants no bias. It takes a function, the `score_mod`, and calls it for each score, which is already
# divided by $\sqrt d$:
#
# ```python
# def score_mod(score, batch, head, query, key):
#     return score
# ```
#
# `query` and `key` are **rows**, counted from zero, and all five are tensors of one number each. What comes back
# replaces the score. Write the function that makes a `score_mod`, from the slopes and from the positions that belong to
# the rows.
#
# Two things about the inner function. It may look things up, as in `slopes[head]`. And it must not ask with `if`: it is
# run for all scores at once, so that there is no one answer. `torch.where` chooses for each score.


# %% tags=["starter"]
def score_mod_of(query_positions, key_positions, slopes):
    """ALiBi, with later keys hidden, as a score_mod for flex_attention."""

    def score_mod(score, batch, head, query, key):
        return score  # yours: change this

    return score_mod


# %% tags=["solution"]
def score_mod_of(query_positions, key_positions, slopes):
    """ALiBi, with later keys hidden, as a score_mod for flex_attention."""

    def score_mod(score, batch, head, query, key):
        steps = query_positions[query] - key_positions[key]
        score = score - slopes[head] * steps
        return torch.where(steps >= 0, score, -math.inf)

    return score_mod


# %% tags=["judge"]
def over_all(make, scores, *given):
    """What the score_mod that make gives says to all scores of a text."""
    each = (torch.arange(n) for n in scores.shape)
    head, query, key = torch.meshgrid(*each, indexing="ij")
    return make(*given)(scores, torch.zeros_like(head), head, query, key)


def check_score_mod(yours):
    """Its numbers, score by score, before attention sees them."""
    whole = torch.arange(6)
    cases = {
        "a whole text and four heads": (
            torch.randn(4, 6, 6),
            whole,
            whole,
            alibi_slopes(4),
        ),
        "one new query behind seven keys": (
            torch.randn(3, 1, 8),
            torch.tensor([7]),
            torch.arange(8),
            alibi_slopes(3),
        ),
        "a window of keys": (
            torch.randn(2, 2, 6),
            torch.arange(9, 11),
            torch.arange(5, 11),
            alibi_slopes(2),
        ),
    }
    right, mistakes = right_and_wrong(
        "alibi_two_ways", "score_mod_of", globals(), pairs=False
    )
    return judge(yours, right, cases, mistakes, call=over_all)


# %% tags=["check"]
passed = check_score_mod(score_mod_of)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# What are the positions of this query and this key? `query_positions[query]` looks one up. Steps are their difference.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# The penalty is the slope of this head, times the steps, taken off the score. Then decide which of two numbers comes
# back: the new score, or minus infinity.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `torch.where(steps >= 0, score, -math.inf)` keeps the score of a key at or before the query and hides the others.
#
# </details>

# %% [markdown]
# ## See that both are one
#
# The same queries, keys and values, once with the tensor and once with the function: a whole text, then one new token
# behind a cache. Run it before and after you have solved step four.

# %%
heads, tokens = 6, 40
slopes, places = slopes_of(heads), torch.arange(tokens)
for name, queries in (("a whole text", places), ("a new token", places[-1:])):
    q, k, v = drawn(heads, len(queries), tokens)
    added = attend(q, k, v, bias_of(queries, places, slopes))
    score_mod = score_mod_of(queries, places, slopes)
    called = flex.flex_attention(q, k, v, score_mod=score_mod)
    print(f"{name}: largest difference {(added - called).abs().max():.0e}")
print(f"numbers in the bias   {bias_of(places, places, slopes).numel()}")
print(f"numbers in the slopes {slopes.numel()}")

# %% [markdown]
# Here `flex_attention` is for trying: with the switch of the first cell, which is torch's own, it runs your function as it
# stands. So you may print from it, and it makes all scores as a tensor. In a model, leave the switch alone and write
# `torch.compile(flex_attention)`: your function then becomes part of a kernel, and nothing of the size of queries times
# keys is kept. There, hide later keys by a `block_mask` as well: whole blocks of them are then never computed.
#
# What do the slopes do? Give all keys one score, so that the penalty alone decides, and look at the last query:

# %% alt="Weight over the steps back to the key, three heads. The first head puts half of its weight on the query's own place and falls fast; the last is nearly level."
bias = bias_of(places[-1:], places, slopes_of(8))
plt.figure(figsize=(4.4, 2.4))
for head, color in ((0, "C0"), (3, "C1"), (7, "C2")):
    weights = bias[head, 0].softmax(-1)
    plt.plot(tokens - 1 - places, weights, color=color, label=f"head {head}")
plt.xlabel("steps back")
plt.ylabel("weight")
plt.legend()
plt.show()

# %% [markdown]
# ## What you can do now
#
# You can write ALiBi for any number of heads as checkpoints have it, use it where a tensor is wanted and where a function
# is, and you know what both need behind a cache: positions, not rows. Any bias that reads distances can be written
# either way; what changes is one line.
#
# - The tested functions: [`alibi.py`](../reference/alibi.md), and for batches with padding and packed texts
#   `flex_bias` and `flex_visible` in [`decoding.py`](../reference/decoding.md).
# - Which mask fits which call: [in a Transformer](../guide/in-a-transformer.md).
# - What the penalty is good for, and where it fails: [the chapter](../guide/bias.md#where-it-breaks).
