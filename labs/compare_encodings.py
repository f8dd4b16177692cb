# %% [markdown]
# # Lab: Compare positional encodings by measurement
#
# You write four small measurements and use them for a table that distinguishes five positional encodings.
#
# **Goal.** You measure whether scores depend only on offsets, whether order has an effect at all, and how much of a
# model's skill is left beyond its training length.
#
# **Time.** About an hour.
#
# **You need.** [Why order is lost](../guide/order.md), and the main idea of each of [sinusoidal
# encoding](../guide/sinusoidal.md), [learned tables](../guide/learned.md), [RoPE](../guide/rope.md) and
# [ALiBi](../guide/bias.md).
#
# Measurements can mislead: because of a unit, because of changes that softmax ignores, or because contents moved along
# with positions. So the first measures only what softmax can see, and the other three are ratios of two similar
# quantities; each check tests for the ways in which a measurement can mislead.

# %%
import math

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

from labs.judge import judge, right_and_wrong
from snippets.alibi import alibi_bias_symmetric, alibi_slopes
from snippets.learned import learned_encoding
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from snippets.sinusoidal import sinusoidal_encoding

torch.set_num_threads(1)  # faster for such small tensors
_ = torch.manual_seed(0)
KINDS = ("none", "sinusoidal", "learned", "RoPE", "ALiBi")
DIM, HEADS = 32, 4

# %% [markdown]
# ## Step one: a change that softmax can see
#
# Two tables of scores, `here` and `there`, have one row for each query and one column for each key. How different are
# they? Their plain difference does not answer this: softmax turns the scores of a query into weights, and
# $\mathrm{softmax}(s + c) = \mathrm{softmax}(s)$ for any number $c$. A change that all keys of a query share has no
# effect.

# %%
scores = torch.tensor([1.0, 3.0, 2.0])
print(scores.softmax(dim=-1))
print((scores + 7).softmax(dim=-1))

# %% [markdown]
# So subtract the mean of each row from the difference, and return the root mean square of the result as one number.


# %% tags=["starter"]
def visible_change(here, there):
    """Return the root mean square difference, less each row's mean."""
    gap = there - here
    return gap.mean()  # change this


# %% tags=["solution"]
def visible_change(here, there):
    """Return the root mean square difference, less each row's mean."""
    gap = there - here
    gap = gap - gap.mean(dim=-1, keepdim=True)
    return gap.square().mean().sqrt()


# %% tags=["judge"]
def _number(function, *given):
    """Return the result as a tensor: floats are right, too."""
    made = function(*given)
    if isinstance(made, (int, float)):
        made = torch.tensor(made)
    return made.double() if isinstance(made, torch.Tensor) else made


def check_change(yours):
    """Compare with the solution, then with typical mistakes."""
    made = torch.Generator().manual_seed(1)
    first, second = torch.randn(2, 4, 6, generator=made)
    rows = torch.tensor([[5.0], [-2.0], [1.0], [3.0]])
    cases = {
        "two random tables": (first, second),
        "a constant added to each row": (first, first + rows + second),
    }
    right, mistakes = right_and_wrong(
        "compare_encodings", "visible_change", globals()
    )
    return judge(yours, right, cases, mistakes, call=_number)


# %% tags=["check"]
passed = check_change(visible_change)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Try it by hand: let `here` be all zeros, `there` all ones. Softmax sees no difference. What does your function return?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# There are three steps: the difference; minus the mean of each row, which must stay a column so that the shapes fit;
# then square, mean, square root.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# The second step is
#
# ```python
# gap = gap - gap.mean(dim=-1, keepdim=True)  # (queries, keys)
# ```
#
# Then apply `gap.square()`, `mean()` and `sqrt()`.
#
# </details>

# %% [markdown]
# ## Step two: do scores depend only on offsets?
#
# Keep all contents and shift all positions by the same number. If scores depend only on offsets, no score changes,
# except in ways that softmax ignores. If scores do change, is the change large or small? Compare it with another
# change: reverse the positions of the keys, so that the first and the last are swapped. The change by shifting divided
# by the change by reversing is the **shift-invariance error**.
#
# Here a score is a function of the positions of queries and of keys. The cell defines five such functions, with the
# same contents for all:

# %%
x = torch.randn(24, DIM, dtype=torch.float64)
to_query, to_key = torch.randn(2, DIM, DIM, dtype=torch.float64) / DIM**0.5
table = torch.randn(200, DIM, dtype=torch.float64)


def sinusoids(positions):
    return sinusoidal_encoding(positions, DIM, dtype=torch.float64)


def added(rows):
    """Return scores of x plus a row for each position."""
    return lambda i, j: (
        (x + rows(i)) @ to_query @ ((x + rows(j)) @ to_key).T / DIM**0.5
    )


def turned(i, j):
    """Return scores of queries and keys rotated by RoPE."""
    w = rope_frequencies(DIM, base=10000)
    of_queries, of_keys = (rope_tables(at, w, x.dtype) for at in (i, j))
    queries = apply_rope(x @ to_query, *of_queries, "half")
    return queries @ apply_rope(x @ to_key, *of_keys, "half").T / DIM**0.5


def penalised(i, j):
    """Return scores with a symmetric linear bias."""
    content = x @ to_query @ (x @ to_key).T / DIM**0.5
    return content + alibi_bias_symmetric(i, j, alibi_slopes(HEADS))[0]


score_of = {
    "none": lambda i, j: x @ to_query @ (x @ to_key).T / DIM**0.5,
    "sinusoidal": added(sinusoids),
    "learned": added(lambda positions: learned_encoding(positions, table)),
    "RoPE": turned,
    "ALiBi": penalised,
}
print(score_of["RoPE"](torch.arange(24), torch.arange(24)).shape)

# %% [markdown]
# The rows of “learned” are random here, as they are before any training. `score(i, j)` returns the scores for queries
# at positions `i` and keys at positions `j`, both tensors of integers. To shift a text, change its positions; contents
# stay where they are.


# %% tags=["starter"]
def relativity(score, positions, shift):
    """Return the change by shifting, divided by that by reversing keys."""
    here = score(positions, positions)
    moved = score(positions + shift, positions)  # change this
    return visible_change(here, moved)  # and this


# %% tags=["solution"]
def relativity(score, positions, shift):
    """Return the change by shifting, divided by that by reversing keys."""
    here = score(positions, positions)
    moved = score(positions + shift, positions + shift)
    traded = score(positions, positions.flip(0))
    return visible_change(here, moved) / visible_change(here, traded)


# %% tags=["judge"]
def check_relativity(yours):
    """Compare with the solution, then with typical mistakes."""
    made = torch.Generator().manual_seed(2)
    kinds = {"generator": made, "dtype": torch.float64}
    content = torch.randn(6, 6, **kinds)
    rows, slopes = torch.randn(40, 8, **kinds), torch.randn(6, 1, **kinds)

    def places(i, j):  # absolute positions, and a preference for late keys
        return content + rows[i] @ rows[j].T + slopes.abs() * j

    def mixed(i, j):  # distance, and a little absolute position
        return content - (i[:, None] - j).abs() + 0.1 * rows[i] @ rows[j].T

    def number_or_say(function, *given):
        try:
            return _number(function, *given)
        except ZeroDivisionError:
            raise ZeroDivisionError(
                "plain numbers cannot be divided by zero. Tensors can, and "
                "zero by zero gives `nan`: leave off .item() and float(), in "
                "`visible_change` too"
            ) from None

    cases = {
        "a table of rows": (places, torch.arange(6), 5),
        "distances and some absolute position": (mixed, torch.arange(6), 3),
        "scores without any position": (
            lambda i, j: content,
            torch.arange(6),
            4,
        ),
    }
    right, mistakes = right_and_wrong(
        "compare_encodings", "relativity", globals()
    )
    return judge(yours, right, cases, mistakes, call=number_or_say)


# %% tags=["check"]
passed = check_relativity(relativity)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# If a train moves, nobody in it changes seats. In your function, do the queries and the keys both move?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# You need three tables of scores: `here`, one with both positions shifted, and one in which only the positions of the
# keys are reversed. Then call `visible_change` twice, and divide.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# The two other tables are
#
# ```python
# moved = score(positions + shift, positions + shift)
# traded = score(positions, positions.flip(0))
# ```
#
# Divide the change from `here` to `moved` by the change from `here` to `traded`.
#
# </details>

# %%
places = torch.arange(24)
moved_by = {}
print("shift error       by 1     by 10    by 100")
for kind, score in score_of.items():
    found = [float(relativity(score, places, s)) for s in (1, 10, 100)]
    moved_by[kind] = found[-1]
    print(f"{kind:12}" + "".join(f"{number:10.4f}" for number in found))

# %% [markdown]
# With RoPE and ALiBi, scores depend only on offsets. With encodings added to the tokens, scores here also depend on the
# absolute position. This is true for sinusoids too, although their plain dot products depend only on the offset ([what
# it guarantees](../guide/sinusoidal.md#what-it-guarantees)). Scores without positions give `nan`, zero divided by zero,
# because neither change has an effect.

# %% [markdown]
# ## Step three: does order have an effect?
#
# Shuffle the words, run the layer, restore the original order of the results, and compare with the results for the
# original text. A layer that does not depend on order gives the same results, whatever the shuffling.
#
# Positions stay where they are: the first word gets the first position, whatever it is. The layer assigns them by
# itself.

# %%
FREQUENCIES = rope_frequencies(DIM // HEADS, base=10000)
LEARNED = torch.randn(16, DIM)


class Layer(nn.Module):
    """Attention with one of the encodings, for x (..., tokens, DIM)."""

    def __init__(self, kind, causal):
        super().__init__()
        self.kind, self.causal = kind, causal
        self.project = nn.Linear(DIM, 3 * DIM)

    def forward(self, x):
        places = torch.arange(x.shape[-2])
        if self.kind == "sinusoidal":
            x = x + sinusoidal_encoding(places, DIM)
        if self.kind == "learned":
            x = x + learned_encoding(places, LEARNED)
        q, k, v = self.project(x).unflatten(-1, (3, HEADS, -1)).unbind(-3)
        q, k, v = (part.transpose(-2, -3) for part in (q, k, v))
        if self.kind == "RoPE":
            cos, sin = rope_tables(places, FREQUENCIES)
            q = apply_rope(q, cos, sin, "half")
            k = apply_rope(k, cos, sin, "half")
        bias = torch.zeros(len(places), len(places))
        if self.kind == "ALiBi":
            bias = alibi_bias_symmetric(places, places, alibi_slopes(HEADS))
        if self.causal:
            later = places > places[:, None]
            bias = bias.masked_fill(later, -math.inf)
        mixed = scaled_dot_product_attention(q, k, v, attn_mask=bias)
        return mixed.transpose(-2, -3).flatten(-2)


words = torch.randn(12, DIM)
print(Layer("RoPE", causal=True)(words).shape)

# %% [markdown]
# `order` gives the order of the words: `x[order]` is the shuffled text. Return the norm of the difference, divided by
# the norm of the original output.


# %% tags=["starter"]
def order_gap(layer, x, order):
    """Return the relative effect of order on the layer's output."""
    plain = layer(x)
    shuffled = layer(x[order])
    return (shuffled - plain).norm()  # change this


# %% tags=["solution"]
def order_gap(layer, x, order):
    """Return the relative effect of order on the layer's output."""
    plain = layer(x)
    shuffled = layer(x[order])
    back = shuffled[order.argsort()]
    return (back - plain).norm() / plain.norm()


# %% tags=["judge"]
def check_order_gap(yours):
    """Compare with the solution, then with typical mistakes."""
    made = torch.Generator().manual_seed(3)
    x = torch.randn(5, 4, generator=made, dtype=torch.float64)
    fade = torch.arange(1.0, 6.0, dtype=torch.float64)[:, None]
    cases = {
        "a layer that sums all earlier words": (
            lambda x: x.cumsum(0),
            x,
            torch.tensor([1, 2, 0, 4, 3]),
        ),
        "a layer that depends on absolute position": (
            lambda x: x * x + fade * x,
            x,
            torch.tensor([3, 0, 1, 2, 4]),
        ),
        "a layer that treats each word separately": (
            lambda x: 2 * x,
            x,
            torch.tensor([2, 4, 1, 0, 3]),
        ),
    }
    right, mistakes = right_and_wrong(
        "compare_encodings", "order_gap", globals()
    )
    return judge(yours, right, cases, mistakes, call=_number)


# %% tags=["check"]
passed = check_order_gap(order_gap)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Take the layer `lambda x: 2 * x`, which cannot depend on order. What does your function return, and why is it not
# zero?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# Row $r$ of `shuffled` belongs to word `order[r]`, so it must become row `order[r]` of `back`. `argsort` gives the
# inverse of an order.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# Restore the order with
#
# ```python
# back = shuffled[order.argsort()]
# ```
#
# Then divide the norm of `back - plain` by the norm of `plain`.
#
# </details>

# %%
shuffled = torch.tensor([5, 0, 9, 3, 11, 1, 7, 2, 10, 4, 8, 6])
mirrored = torch.arange(11, -1, -1)
seen = {}
print("order gap          no mask             causal")
print("             shuffled  reversed  shuffled  reversed")
with torch.no_grad():
    for kind in KINDS:
        seen[kind] = []
        for causal in (False, True):
            torch.manual_seed(0)  # the same weights for all
            layer = Layer(kind, causal)
            for order in (shuffled, mirrored):
                seen[kind].append(float(order_gap(layer, words, order)))
        numbers = "".join(f"{number:10.4f}" for number in seen[kind])
        print(f"{kind:11}{numbers}")

# %% [markdown]
# Look at the zeros. The weights are random, but no weights would change them.
#
# - Without positions and without a mask, order has no effect.
# - Without positions, but *with* a causal mask, it has an effect: what a word sees depends on [the words before
#   it](../guide/no-position.md).
# - A symmetric bias for distance does not distinguish a text from its reverse, in which every two words are as far
#   apart as before. With a causal mask it does.

# %% [markdown]
# ## Step four: how much skill is left beyond the training length?
#
# A formula that can be computed at larger positions does not guarantee good predictions there. So measure the
# predictions. You are given the mean loss at each position, the training length, and the loss of a random guess.
# *Skill* is the loss of a guess minus the loss of the model. Return the mean skill beyond the training length, divided
# by the mean skill within. *Within* is the second half of the training length, because the first words of a text have
# less context.
#
# A result of one means that all skill is left, zero that the model is no better than a guess, and a negative number
# that it is worse.


# %% tags=["starter"]
def skill_left(losses, trained, guess):
    """Return mean skill beyond the training length, divided by within."""
    return losses[trained:].mean() / losses[:trained].mean()  # change this


# %% tags=["solution"]
def skill_left(losses, trained, guess):
    """Return mean skill beyond the training length, divided by within."""
    within = guess - losses[trained // 2 : trained].mean()
    beyond = guess - losses[trained:].mean()
    return beyond / within


# %% tags=["judge"]
def check_skill(yours):
    """Compare with the solution, then with typical mistakes."""
    worse = [3.0, 2.0, 1.5, 1.0, 0.9, 0.6, 1.2, 2.0, 2.9]
    good = [1.3, 0.6, 0.5, 0.2, 0.3, 0.25, 0.35, 0.3, 0.1, 0.2]
    cases = {
        "a model that gets worse": (torch.tensor(worse), 6, 2.5),
        "a model that stays good": (torch.tensor(good), 4, 1.4),
        "a model worse than a guess": (torch.tensor(worse), 6, 0.95),
    }
    right, mistakes = right_and_wrong(
        "compare_encodings", "skill_left", globals()
    )
    return judge(yours, right, cases, mistakes, call=_number)


# %% tags=["check"]
passed = check_skill(skill_left)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# What should be the result for a model that only guesses beyond its training length? Zero. What do you return if all
# losses beyond are equal to `guess`?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# A skill is `guess` minus a mean loss. You need two skills, for two slices of `losses`. Note where each slice begins
# and ends.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# The two skills are
#
# ```python
# within = guess - losses[trained // 2 : trained].mean()
# beyond = guess - losses[trained:].mean()
# ```
#
# Return their ratio.
#
# </details>

# %% [markdown]
# Now use a task in which position matters. There are eight words, and four of them are *marked*. At each position of a
# text, predict which marked word came last. A model has to attend to marked words and to prefer the latest. Each model
# has one layer with a causal mask and is trained on texts of sixteen words. Then it is evaluated on texts four times as
# long.

# %%
TRAINED, LONGER, MARKED = 16, 64, 4


def make_texts(count, length, made):
    """Return words and answers, (count, length). The first is marked."""
    words = torch.randint(2 * MARKED, (count, length), generator=made)
    words[:, 0] %= MARKED
    last = torch.where(words < MARKED, torch.arange(length), 0)
    return words, words.gather(-1, last.cummax(dim=-1).values)


def train(kind, updates=120):
    """Train a model on short texts."""
    torch.manual_seed(0)
    made = torch.Generator().manual_seed(0)
    model = nn.Sequential(
        nn.Embedding(2 * MARKED, DIM),
        Layer(kind, True),
        nn.Linear(DIM, MARKED),
    )
    adam = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(updates):
        words, answers = make_texts(32, TRAINED, made)
        loss = cross_entropy(model(words).transpose(1, 2), answers)
        adam.zero_grad()
        loss.backward()
        adam.step()
    return model


def losses_by_position(model):
    """Return the mean loss at each position of longer texts, (LONGER,)."""
    made = torch.Generator().manual_seed(1)
    words, answers = make_texts(256, LONGER, made)
    with torch.no_grad():
        logits = model(words).transpose(1, 2)
    return cross_entropy(logits, answers, reduction="none").mean(dim=0)


# A learned table has no rows beyond the training length.
try:
    Layer("learned", causal=True)(torch.zeros(LONGER, DIM))
except ValueError as error:
    print(f"learned: {error}")

losses = {}
for kind in KINDS:
    if kind != "learned":
        losses[kind] = losses_by_position(train(kind))

# %% alt="Loss against position. Beyond the sixteen training positions, the sinusoidal model soon gets worse than a guess, RoPE later. ALiBi and the model without positions stay better."
plt.figure(figsize=(4.4, 2.6))
plt.axvspan(0, TRAINED - 1, color="gray", alpha=0.2)
for number, (kind, each) in enumerate(losses.items()):
    plt.plot(each, color=f"C{number}", label=kind)
plt.axhline(math.log(MARKED), color="gray", linestyle=":")
plt.xlabel("position")
plt.ylabel("loss")
plt.legend()
plt.show()

# %% [markdown]
# The grey band is the training length, the dotted line a random guess. The table shows all your measurements side by
# side. *Shifted* is the shift-invariance error at the largest shift; order was measured without a mask.

# %%
print("          shifted     order     order   skill   skill")
print("           by 100  shuffled  reversed  within    left")
for kind in KINDS:
    line = f"{kind:10}{moved_by[kind]:7.3f}"
    line += f"{seen[kind][0]:10.3f}{seen[kind][1]:10.3f}"
    if kind in losses:
        within = losses[kind][TRAINED // 2 : TRAINED].mean()
        left = skill_left(losses[kind], TRAINED, math.log(MARKED))
        line += f"{math.log(MARKED) - within:8.2f}{left:8.2f}"
    else:
        line += "     raises error"
    print(line)

# %% [markdown]
# No column can replace another.
#
# - With RoPE, scores depend only on offsets, and it still loses its skill. Longer texts contain offsets that did not
#   occur in training.
# - ALiBi keeps nearly all of its skill. Its bias gives recent words more weight, and the last marked word is usually
#   recent: the task suits it. If the answer were far back, the bias could be a disadvantage.
# - The model without positions keeps most of a smaller skill. Its one layer depends on the current word and on the
#   mixture of earlier words, not on which came last. So always read *left* together with *within*.
# - The learned table raises an error beyond its last row, so that nothing wrong goes unnoticed.
#
# This is one task, one layer and one random seed. Such numbers do not carry over to your data; measure them there.
#
# ## What you can do now
#
# You can measure three properties of any encoding without being misled by units, by what softmax ignores or by contents
# that moved along: do scores depend only on offsets, does order have an effect, and how much skill is left beyond the
# training length? To try other encodings, add them to `score_of` and to `Layer`.
#
# - The same checks for your own model, to copy: [debugging](../guide/debugging.md#build-it) and its [reference
#   page](../reference/diagnostics.md).
# - Why a layer without positions cannot depend on order: [why order is lost](../guide/order.md#the-idea-intermediate).
# - Which encoding to use: [choosing](../guide/choosing.md).
# - The chapters: [sinusoidal encoding](../guide/sinusoidal.md#what-it-guarantees), [learned
#   tables](../guide/learned.md#where-it-breaks), [RoPE](../guide/rope.md#where-it-breaks),
#   [ALiBi](../guide/bias.md#where-it-breaks), [no positional encoding](../guide/no-position.md).
