# %% [markdown]
# # Lab: Implement ALiBi as a bias and as a score_mod
#
# ALiBi subtracts from each attention score an amount proportional to the distance between query and key. You write this
# bias twice: as a tensor that attention adds to its scores, and as a function of one score that `flex_attention` calls.
#
# **Goal.** You write the slopes for any number of heads, the causal bias, attention with this bias, and a `score_mod`
# that needs no bias tensor. Then you verify that both ways give the same result, for a whole text and for one new token
# after a cache.
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
# ## Step one: the slopes
#
# Each head subtracts a fixed amount from a score for every position between query and key: its **slope**, which is not
# learned. For $H$ heads, a power of two, the slopes of the heads $h = 1, \dots, H$ are
#
# $$
# m_h = 2^{-8h/H}
# $$
#
# For any other number of heads, the authors' code does not use this formula. It takes all slopes of the power of two
# **below** $H$, and adds the missing ones from the slopes of **twice** that power: the first, the third, the fifth, and
# so on. BLOOM and MPT follow the code, and so do you. For three heads, the slopes are the two slopes of two heads and
# the first slope of four heads.


# %% tags=["starter"]
def slopes_of(heads):
    """Return the slope of each head, (heads,), float32."""
    return torch.ones(heads)  # change this


# %% tags=["solution"]
def slopes_of(heads):
    """Return the slope of each head, (heads,), float32."""
    below = 2 ** (heads.bit_length() - 1)  # the power of two not above heads
    own = [2 ** (-8 * h / below) for h in range(1, below + 1)]
    twice = [2 ** (-8 * h / (2 * below)) for h in range(1, 2 * below + 1)]
    return torch.tensor(own + twice[0::2][: heads - below])


# %% tags=["judge"]
def check_slopes(yours):
    """Compare powers of two and other numbers with the tested file."""
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
# slope is one. When the check accepts the powers of two, continue with the other numbers of heads.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# The largest power of two that is at most `heads` is `2 ** (heads.bit_length() - 1)`. Write a list of its slopes, and a
# list of the slopes of twice as many heads.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `twice[0::2]` contains the first, the third, the fifth element of a list, and `[: heads - below]` keeps as many of
# them as are missing. Join the two lists; do not sort them.
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
# Minus infinity hides later keys: the softmax gives them no weight. The positions are given. Use them, and not the
# index in the tensor: a decoder adds one query, in row zero, which may be at position seven hundred.


# %% tags=["starter"]
def bias_of(query_positions, key_positions, slopes):
    """Return the bias for the scaled scores, (heads, queries, keys)."""
    queries, keys = len(query_positions), len(key_positions)
    return torch.zeros(len(slopes), queries, keys)  # change this


# %% tags=["solution"]
def bias_of(query_positions, key_positions, slopes):
    """Return the bias for the scaled scores, (heads, queries, keys)."""
    steps = query_positions[:, None] - key_positions
    bias = -slopes[:, None, None] * steps
    return bias.masked_fill(steps < 0, -math.inf)


# %% tags=["judge"]
def check_bias(yours):
    """Compare with the tested file, then with typical mistakes."""
    whole = torch.arange(6)
    cases = {
        "a whole text and four heads": (whole, whole, alibi_slopes(4)),
        "as many heads as tokens": (whole, whole, alibi_slopes(6)),
        "one new query after seven keys": (
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
# First compute a table of distances, with a row for each query and a column for each key: how far is each key before
# the query? For later keys, this number is negative.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# A column minus a row gives a table: `query_positions[:, None] - key_positions`. To multiply it by one number for each
# head, give the slopes two more axes: `slopes[:, None, None]`.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `bias.masked_fill(steps < 0, -math.inf)` hides later keys. Do not use `tril` or `triu`: they compare row and column
# indices, which equal the positions only in a whole text.
#
# </details>

# %% [markdown]
# ## Step three: attention with the bias
#
# Let torch's attention add the bias. `q` has the shape `(batch, heads, queries, dim)`; `k` and `v` have the shape
# `(batch, heads, keys, dim)`. Scores are divided by $\sqrt d$ **before** the bias is added, and
# [`scaled_dot_product_attention`](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html)
# does both.


# %% tags=["starter"]
def attend(q, k, v, bias):
    """Return attention with a bias, (batch, heads, queries, dim)."""
    return scaled_dot_product_attention(q, k, v)  # change this


# %% tags=["solution"]
def attend(q, k, v, bias):
    """Return attention with a bias, (batch, heads, queries, dim)."""
    return scaled_dot_product_attention(q, k, v, attn_mask=bias)


# %% tags=["judge"]
def drawn(heads, queries, keys, dim=8):
    """Return random q, k and v of a batch of two."""
    made = torch.Generator().manual_seed(keys)
    shapes = (queries, keys, keys)
    return [torch.randn(2, heads, n, dim, generator=made) for n in shapes]


def check_attend(yours):
    """Test a whole text, and one new token after a cache."""
    whole, late = torch.arange(6), torch.tensor([7])
    slopes = alibi_slopes(4)
    cases = {
        "a whole text": (
            *drawn(4, 6, 6),
            alibi_bias(whole, whole, slopes),
        ),
        "one new token after seven": (
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
# The function accepts a mask. If the mask contains numbers rather than booleans, the function adds it to the scores.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# The parameter is called `attn_mask`. The mask needs no batch axis: all sequences share it.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# The bias already hides later keys. Do not set `is_causal`.
#
# </details>

# %% [markdown]
# ## Step four: a function of one score
#
# `flex_attention` takes no bias tensor. It takes a function, the `score_mod`, and calls it for each score, which is
# already divided by $\sqrt d$:
#
# ```python
# def score_mod(score, batch, head, query, key):
#     return score
# ```
#
# `query` and `key` are **indices**, counted from zero, and all five arguments are tensors with one number each. The
# return value replaces the score. Write the function that creates a `score_mod` from the slopes and from the positions
# that belong to the indices.
#
# Note two things about the inner function. It may look up values, as in `slopes[head]`. But it must not use `if`: it
# runs for all scores at once, so that a condition does not have a single value. `torch.where` chooses for each score.


# %% tags=["starter"]
def score_mod_of(query_positions, key_positions, slopes):
    """Return causal ALiBi as a score_mod for flex_attention."""

    def score_mod(score, batch, head, query, key):
        return score  # change this

    return score_mod


# %% tags=["solution"]
def score_mod_of(query_positions, key_positions, slopes):
    """Return causal ALiBi as a score_mod for flex_attention."""

    def score_mod(score, batch, head, query, key):
        steps = query_positions[query] - key_positions[key]
        score = score - slopes[head] * steps
        return torch.where(steps >= 0, score, -math.inf)

    return score_mod


# %% tags=["judge"]
def over_all(make, scores, *given):
    """Apply the score_mod that make returns to all scores of a text."""
    each = (torch.arange(n) for n in scores.shape)
    head, query, key = torch.meshgrid(*each, indexing="ij")
    return make(*given)(scores, torch.zeros_like(head), head, query, key)


def check_score_mod(yours):
    """Compare the modified scores, one by one, without attention."""
    whole = torch.arange(6)
    cases = {
        "a whole text and four heads": (
            torch.randn(4, 6, 6),
            whole,
            whole,
            alibi_slopes(4),
        ),
        "one new query after seven keys": (
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
# What are the positions of this query and this key? `query_positions[query]` looks one up. The distance is their
# difference.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# Subtract from the score the slope of this head times the distance. Then decide which of two numbers to return: the new
# score, or minus infinity.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `torch.where(steps >= 0, score, -math.inf)` keeps the score of a key at or before the query and hides all later keys.
#
# </details>

# %% [markdown]
# ## Verify that both ways agree
#
# The cell uses the same queries, keys and values once with the tensor and once with the function: for a whole text,
# then for one new token after a cache. Run it before and after you have solved step four.

# %%
heads, tokens = 6, 40
slopes, places = slopes_of(heads), torch.arange(tokens)
for name, queries in (("a whole text", places), ("a new token", places[-1:])):
    q, k, v = drawn(heads, len(queries), tokens)
    added = attend(q, k, v, bias_of(queries, places, slopes))
    score_mod = score_mod_of(queries, places, slopes)
    called = flex.flex_attention(q, k, v, score_mod=score_mod)
    print(f"{name}: largest difference {(added - called).abs().max():.0e}")
print(f"entries in the bias   {bias_of(places, places, slopes).numel()}")
print(f"entries in the slopes {slopes.numel()}")

# %% [markdown]
# Here `flex_attention` runs uncompiled: because of the switch in the first cell, which is torch's own, it calls your
# function as it is written. So you may print from it, but it creates all scores as a tensor. In a model, leave out the
# switch and write `torch.compile(flex_attention)`: your function then becomes part of a kernel, and no tensor of size
# queries times keys is stored. There, pass a `block_mask` that hides later keys as well, so that whole blocks of them
# are not computed.
#
# What do the slopes do? Give all keys the same score, so that the bias alone decides, and look at the last query:

# %% alt="Attention weight against distance, three heads. The first head gives the query's own position half of its weight and falls fast; the last is nearly level."
bias = bias_of(places[-1:], places, slopes_of(8))
plt.figure(figsize=(4.4, 2.4))
for head, color in ((0, "C0"), (3, "C1"), (7, "C2")):
    weights = bias[head, 0].softmax(-1)
    plt.plot(tokens - 1 - places, weights, color=color, label=f"head {head}")
plt.xlabel("distance (positions back)")
plt.ylabel("attention weight")
plt.legend()
plt.show()

# %% [markdown]
# ## What you can do now
#
# You can write ALiBi for any number of heads in the way that checkpoints use it, as a tensor and as a function, and you
# know what both need after a cache: positions, not indices. Any bias that depends on distance can be written either
# way; only one line changes.
#
# - The tested functions: [`alibi.py`](../reference/alibi.md), and for batches with padding and packed texts `flex_bias`
#   and `flex_attention_mask` in [`decoding.py`](../reference/decoding.md).
# - Which mask to use in which call: [in a Transformer](../guide/in-a-transformer.md).
# - What the bias is good for, and where it fails: [the chapter](../guide/bias.md#where-it-breaks).
