# %% [markdown]
# # Lab: Convert a checkpoint between RoPE layouts
#
# A model was trained with one RoPE layout, and your code uses the other. This raises no error; the model just gets
# worse. You write the conversion that fixes it.
#
# **Goal.** You write a function that converts a whole attention layer from the interleaved layout to the half layout,
# for any number of heads, shared keys, biases and partial rotary, and you verify that the scores do not change.
#
# **Time.** About forty minutes.
#
# **You need.** [RoPE](../guide/rope.md), its Basic level and the section on the [two
# layouts](../guide/rope.md#build-it); how to reshape a tensor in torch.

# %%
import matplotlib.pyplot as plt
import torch

from labs.judge import judge, right_and_wrong
from snippets.rope import apply_rope, rope_frequencies, rope_tables

_ = torch.manual_seed(0)

# %% [markdown]
# ## The problem
#
# RoPE rotates channels in pairs. *Interleaved* pairs adjacent channels: `0` with `1`, then `2` with `3`. *Half* splits
# the head in the middle and takes one channel from each half: with eight channels, `0` with `4`, then `1` with `5`.
#
# Here is a small attention layer whose weight rows are ordered for the interleaved layout. As in many models, several
# query heads share one key head. `scores` runs the layer in either layout.

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
    """Return the scores of queries with keys, (heads, n, n)."""
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
print(f"std of the scores       {right.std():.2f}")
print(f"largest change          {(wrong - right).abs().max():.2f}")

# %% [markdown]
# The shapes agree, all numbers are finite, and the scores are far from what they should be.
#
# ## Step one: the rows of one projection
#
# A channel of a query is a row of its projection's weight. So if you reorder the rows, code for the half layout finds
# each pair in the right two channels. Within each head, the first channels of all pairs must come first, in the order
# of the pairs, then the second channels.
#
# `weight` has the shape `(heads * dim, width)`: the rows of the first head, then the rows of the second head, and so
# on.


# %% tags=["starter"]
def to_half(weight, heads):
    """Reorder the rows of an interleaved projection for the half layout."""
    return weight


# %% tags=["solution"]
def to_half(weight, heads):
    """Reorder the rows of an interleaved projection for the half layout."""
    pairs = weight.unflatten(0, (heads, -1, 2))  # (heads, pairs, 2, ...)
    return pairs.transpose(1, 2).flatten(0, 2)  # (heads * dim, ...)


# %% tags=["judge"]
from snippets.rope import interleaved_to_half


def _numbered(rows, width):
    """Return a weight in which no two numbers are equal."""
    return torch.arange(float(rows * width)).reshape(rows, width)


def check_to_half(yours):
    """Test three sizes, so that each mistake gives a different result."""
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
# Write down the six rows of one head, `0 1 2 3 4 5`. Which rows form a pair now? Where does the half layout expect the
# two rows of a pair?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# The new order of these six is `0 2 4 1 3 5`: even rows first. Written as an array with one pair per line, this is
# reading by columns rather than by lines. To read an array by columns, transpose it.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `weight.unflatten(0, (heads, -1, 2))` has the shape `(heads, pairs, 2, width)`. Transpose the axes of size `pairs` and
# `2`, then `flatten(0, 2)`.
#
# </details>

# %% [markdown]
# ## Step two: partial rotary
#
# Some models rotate only the first `rotary_dim` channels of each head. Then only the rows of those channels are
# reordered. Write this as a separate function; it may call `to_half`.


# %% tags=["starter"]
def to_half_partial(weight, heads, rotary_dim):
    """Apply to_half to the first rotary_dim channels of each head."""
    return to_half(weight, heads)


# %% tags=["solution"]
def to_half_partial(weight, heads, rotary_dim):
    """Apply to_half to the first rotary_dim channels of each head."""
    each = weight.unflatten(0, (heads, -1))
    turned, rest = each[:, :rotary_dim], each[:, rotary_dim:]
    turned = to_half(turned.flatten(0, 1), heads).unflatten(0, (heads, -1))
    return torch.cat((turned, rest), dim=1).flatten(0, 1)


# %% tags=["judge"]
def check_to_half_partial(yours):
    """Test heads with some and with all channels rotated."""
    cases = {
        "one head of ten channels, six of them rotated": (
            _numbered(10, 2),
            1,
            6,
        ),
        "three heads of ten, six of them rotated": (_numbered(30, 2), 3, 6),
        "two heads of eight, all of them rotated": (_numbered(16, 2), 2, 8),
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
# Split the rows into heads first, then each head into the rotated part and the rest.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# `to_half` expects all its rows in one axis, head after head. So flatten the rotated parts before you call it, and pass
# the same number of heads.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# With `each = weight.unflatten(0, (heads, -1))`, the rotated part is `each[:, :rotary_dim]`. Convert it, split it into
# heads again, and join with `torch.cat((turned, rest), dim=1)`.
#
# </details>

# %% [markdown]
# ## Step three: the whole layer
#
# Now decide which tensors to convert. `layer` is a dictionary of tensors as above; return a new one with the same keys.
# For each tensor, consider: are its rows the channels that RoPE rotates? How many heads does it have? Many models have
# no biases: convert a bias only if it is there.


# %% tags=["starter"]
def convert(layer, heads, kv_heads, rotary_dim):
    """Convert an interleaved attention layer to the half layout."""
    return dict(layer)


# %% tags=["solution"]
def convert(layer, heads, kv_heads, rotary_dim):
    """Convert an interleaved attention layer to the half layout."""
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
    """Test layers with shared keys, partial rotary, and without biases."""
    bare = _layer(2, 2, 8, 3)
    del bare["q.bias"], bare["k.bias"]
    cases = {
        "four query heads that share two key heads": (
            _layer(4, 2, 12, 3),
            4,
            2,
            12,
        ),
        "two heads of twelve channels, six of them rotated": (
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
# RoPE rotates queries and keys. Convert every tensor that computes these two, and no other.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# A bias is a weight with one axis less. If your functions only change the first axis, they accept a bias as well. And
# there are fewer key heads than query heads.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# Start from `converted = dict(layer)`, loop over `("q", heads), ("k", kv_heads)` and over `"weight", "bias"`, and
# replace each of these four tensors that the layer has by `to_half_partial(..., rotary_dim)`.
#
# </details>

# %% [markdown]
# ## See that it worked
#
# The cell compares the scores of the layer as it was trained, of the layer in the wrong layout, and of your conversion.
# Run it before and after you have solved step three.

# %% alt="Scores of one head against the scores as trained. In the wrong layout the points scatter; after conversion they lie on the diagonal."
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
# The remaining difference is rounding: sums are computed in another order.
#
# ## What you can do now
#
# You can recognise the layout of a piece of code, convert a checkpoint for it, and verify that the scores do not
# change. Scores do not depend on values and output: to verify that these are unchanged, compare tensor by tensor. If a
# model normalises queries and keys with a weight for each channel, that weight needs the same reordering. You know why
# values and the output projection must not be converted, and that shared keys and biases are where conversions often
# fail.
#
# - The tested functions, in both directions: [`rope.py`](../reference/rope.md).
# - Why a wrong layout raises no error, and which check finds it: [debugging](../guide/debugging.md).
# - What else belongs to RoPE: [the chapter](../guide/rope.md#what-it-guarantees).
