# %% [markdown]
# # Lab: convert a checkpoint between RoPE layouts
#
# A model was trained with one layout of RoPE, and your code runs the other. Nothing raises an error; the model just
# gets worse. You write the conversion that makes it right.
#
# **Goal.** A function that takes a whole attention layer from the interleaved layout to half, for any number of heads,
# for shared keys, for biases and for partial rotary, and a picture that shows that the scores are as before.
#
# **Time.** About forty minutes.
#
# **You need.** [RoPE](../guide/rope.md), its basic level and the section on
# [two layouts](../guide/rope.md#build-it); to reshape a tensor in torch.

# %%
import matplotlib.pyplot as plt
import torch

from labs.judge import judge, right_and_wrong
from snippets.rope import apply_rope, rope_frequencies, rope_tables

_ = torch.manual_seed(0)

# %% [markdown]
# ## What is wrong
#
# RoPE turns channels in pairs. *Interleaved* takes neighbours: channels `0` and `1`, then `2` and `3`. *Half* cuts the
# head in the middle and takes one channel from each side: of eight, `0` and `4`, then `1` and `5`.
#
# Here is a small attention layer whose rows were made for the interleaved layout. As in many models, several query heads
# share one head of keys. `scores` runs it in either layout.

# %%
heads, kv_heads, dim, width = 4, 2, 8, 32
layer = {
    "q.weight": torch.randn(heads * dim, width) / width**0.5,
    "q.bias": torch.randn(heads * dim),
    "k.weight": torch.randn(kv_heads * dim, width) / width**0.5,
    "k.bias": torch.randn(kv_heads * dim),
    "v.weight": torch.randn(kv_heads * dim, width) / width**0.5,
    "o.weight": torch.randn(width, heads * dim) / width**0.5,
}
text = torch.randn(8, width)  # eight tokens


def scores(layer, layout, rotary_dim=dim):
    """Scores of queries with keys, head by head: (heads, n, n)."""
    positions = torch.arange(len(text))
    tables = rope_tables(positions, rope_frequencies(rotary_dim, base=10000))
    turned = {}
    for name, count in (("q", heads), ("k", kv_heads)):
        x = text @ layer[f"{name}.weight"].T + layer[f"{name}.bias"]
        x = x.unflatten(-1, (count, dim)).transpose(0, 1)
        turned[name] = apply_rope(x, *tables, layout)
    shared = turned["k"].repeat_interleave(heads // kv_heads, dim=0)
    return turned["q"] @ shared.mT


right, wrong = scores(layer, "interleaved"), scores(layer, "half")
print(f"spread of the scores    {right.std():.2f}")
print(f"largest change of one   {(wrong - right).abs().max():.2f}")

# %% [markdown]
# The shapes agree, no number is infinite, and the scores are far from what they should be.
#
# ## Step one: the rows of one projection
#
# A channel of a query is a row of its projection's weight. So put the rows into another order, and code for the half
# layout finds each pair where it looks for it. Within each head, the first channels of all pairs come first, in their
# order, then the second channels.
#
# `weight` is `(heads * dim, width)`: the rows of the first head, then those of the second, and so on.


# %% tags=["starter"]
def to_half(weight, heads):
    """The rows of an interleaved projection in the order of half."""
    return weight


# %% tags=["solution"]
def to_half(weight, heads):
    """The rows of an interleaved projection in the order of half."""
    pairs = weight.unflatten(0, (heads, -1, 2))  # (heads, pairs, 2, ...)
    return pairs.transpose(1, 2).flatten(0, 2)  # (heads * dim, ...)


# %% tags=["judge"]
from snippets.rope import interleaved_to_half


def _numbered(rows, width):
    """A weight in which no two numbers are equal."""
    return torch.arange(float(rows * width)).reshape(rows, width)


def check_to_half(yours):
    """Three sizes, so that no mistake looks like another."""
    cases = {
        "one head of six channels": (_numbered(6, 6), 1),
        "two heads of six": (_numbered(12, 12), 2),
        "three heads of eight": (_numbered(24, 24), 3),
    }
    _, mistakes = right_and_wrong("rope_layouts", "to_half", globals())
    return judge(yours, interleaved_to_half, cases, mistakes)


# %% tags=["check"]
passed = check_to_half(to_half)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Write down the six rows of one head, `0 1 2 3 4 5`. Which rows form a pair now? Where does half want the two of a pair?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# The new order of these six is `0 2 4 1 3 5`: even rows first. As an array of pairs, one pair a line, that is reading by
# columns rather than by lines. Reading an array by columns is transposing it.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `weight.unflatten(0, (heads, -1, 2))` gives `(heads, pairs, 2, width)`. Transpose the axes of `pairs` and of `2`, then
# `flatten(0, 2)`.
#
# </details>

# %% [markdown]
# ## Step two: only some channels turn
#
# Some models turn the first `rotary_dim` channels of each head and leave the rest alone. Then only the rows of those
# channels change places. This is a function of its own; it may call `to_half`.


# %% tags=["starter"]
def to_half_partial(weight, heads, rotary_dim):
    """to_half for heads of which the first rotary_dim channels turn."""
    return to_half(weight, heads)


# %% tags=["solution"]
def to_half_partial(weight, heads, rotary_dim):
    """to_half for heads of which the first rotary_dim channels turn."""
    each = weight.unflatten(0, (heads, -1))
    turned, rest = each[:, :rotary_dim], each[:, rotary_dim:]
    turned = to_half(turned.flatten(0, 1), heads).unflatten(0, (heads, -1))
    return torch.cat((turned, rest), dim=1).flatten(0, 1)


# %% tags=["judge"]
def check_to_half_partial(yours):
    """Heads of ten channels of which six turn, and all of them."""
    cases = {
        "one head of ten channels, six of them turned": (
            _numbered(10, 2),
            1,
            6,
        ),
        "three heads of ten, six of them turned": (_numbered(30, 2), 3, 6),
        "two heads of eight, all of them turned": (_numbered(16, 2), 2, 8),
    }
    _, mistakes = right_and_wrong(
        "rope_layouts", "to_half_partial", globals()
    )
    return judge(yours, interleaved_to_half, cases, mistakes)


# %% tags=["check"]
passed = check_to_half_partial(to_half_partial)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Split the rows into heads first, then each head into the part that turns and the rest.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# `to_half` wants all its rows in one axis, head after head. So flatten the turned parts before you call it, and give it
# the same number of heads.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# With `each = weight.unflatten(0, (heads, -1))`, the turned part is `each[:, :rotary_dim]`. Convert it, split it into
# heads again, and join with `torch.cat((turned, rest), dim=1)`.
#
# </details>

# %% [markdown]
# ## Step three: the whole layer
#
# Now decide what to convert. `layer` is a dictionary of tensors as above; return a new one with the same names. Ask of
# each tensor: do the channels that RoPE turns lie along its rows? How many heads has it? Many models have no biases:
# convert those that are there.


# %% tags=["starter"]
def convert(layer, heads, kv_heads, rotary_dim):
    """An interleaved attention layer for code that runs half."""
    return dict(layer)


# %% tags=["solution"]
def convert(layer, heads, kv_heads, rotary_dim):
    """An interleaved attention layer for code that runs half."""
    converted = dict(layer)
    for name, count in (("q", heads), ("k", kv_heads)):
        for key in (f"{name}.weight", f"{name}.bias"):
            if key in layer:
                rows = layer[key]
                converted[key] = to_half_partial(rows, count, rotary_dim)
    return converted


# %% tags=["judge"]
def _layer(heads, kv_heads, dim, width):
    sizes = {"q": heads * dim, "k": kv_heads * dim}
    made = {
        f"{n}.weight": _numbered(size, width) for n, size in sizes.items()
    }
    made |= {
        f"{n}.bias": torch.arange(float(size)) for n, size in sizes.items()
    }
    made["v.weight"] = _numbered(kv_heads * dim, width)
    made["o.weight"] = _numbered(width, heads * dim)
    return made


def check_convert(yours):
    """Layers with shared keys, with partial rotary, without biases."""
    bare = _layer(2, 2, 8, 3)
    del bare["q.bias"], bare["k.bias"]
    cases = {
        "four heads that share two heads of keys": (
            _layer(4, 2, 12, 3),
            4,
            2,
            12,
        ),
        "two heads of twelve channels, six of them turned": (
            _layer(2, 1, 12, 3),
            2,
            1,
            6,
        ),
        "two heads without biases": (bare, 2, 2, 8),
    }
    right, mistakes = right_and_wrong("rope_layouts", "convert", globals())
    return judge(yours, right, cases, mistakes)


# %% tags=["check"]
passed = check_convert(convert)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# RoPE turns queries and keys. Everything that makes these two is concerned, and nothing that comes after.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# A bias is a weight with one axis less. If your functions treat only the first axis, they take it as it is. And the keys
# have fewer heads than the queries.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# Start from `converted = dict(layer)`, loop over `("q", heads), ("k", kv_heads)` and over `"weight", "bias"`, and
# replace those of these four tensors that the layer has by `to_half_partial(..., rotary_dim)`.
#
# </details>

# %% [markdown]
# ## See that it worked
#
# The same scores as at the start: the layer as it was trained, the layer in the wrong layout, and your conversion. Run it
# before and after you have solved step three.

# %% alt="Scores of one head over the right ones. In the wrong layout they scatter; converted, they lie on the diagonal."
converted = scores(convert(layer, heads, kv_heads, dim), "half")
print(f"largest change, wrong layout {(wrong - right).abs().max():.1e}")
print(f"largest change, converted    {(converted - right).abs().max():.1e}")

head = right[0].flatten()
plt.axline((0, 0), slope=1, color="gray")
plt.plot(head, wrong[0].flatten(), "x", color="C1", label="wrong layout")
plt.plot(head, converted[0].flatten(), ".", color="C0", label="converted")
plt.xlabel("score as trained")
plt.ylabel("score in the half layout")
plt.legend()
plt.show()

# %% [markdown]
# What is left is rounding: sums are taken in another order.
#
# ## What you can do now
#
# You can read which layout a piece of code has, convert a checkpoint for it, and show that the
# scores are the same before and after. Scores do not see values and output: that these stayed, compare tensor by
# tensor. If a model normalises queries and keys with a weight for each channel, that weight needs the same order.
# You know why values and the output projection stay, and that shared keys and biases are where
# conversions go wrong.
#
# - The tested functions, both ways: [`rope.py`](../reference/rope.md).
# - Why a wrong layout raises no error, and which check finds it: [debugging](../guide/debugging.md).
# - What else belongs to RoPE: [the chapter](../guide/rope.md#what-it-guarantees).
