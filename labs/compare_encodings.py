# %% [markdown]
# # Lab: Compare encodings
#
# You write four small measurements, and they fill a table that tells five encodings apart.
#
# **Goal.** Measure whether scores know offsets alone, whether order is seen at all, and what is left of a model's
# skill beyond the length that it was trained on.
#
# **Time.** About an hour.
#
# **You need.** [Why order is lost](../guide/order.md), and one idea each of
# [sinusoidal encoding](../guide/sinusoidal.md), [learned tables](../guide/learned.md), [RoPE](../guide/rope.md) and
# [ALiBi](../guide/bias.md).
#
# A measurement is easily fooled: by a unit, by what softmax ignores, by words that moved along. So the first
# measures only what softmax can see, and
# the other three are quotients of two like things; each check looks for the ways in which it could be fooled.

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

torch.set_num_threads(1)  # such small tensors are faster so
_ = torch.manual_seed(0)
KINDS = ("none", "sinusoidal", "learned", "RoPE", "ALiBi")
DIM, HEADS = 32, 4

# %% [markdown]
# ## Step one: a change that softmax can see
#
# Two tables of scores, `here` and `there`, have one row for each query and one column for each key. How far are they
# apart? Not by their plain difference: softmax turns the scores of a query into weights, and
# $\mathrm{softmax}(s + c) = \mathrm{softmax}(s)$ for any number $c$. What all keys of a query share is invisible.

# %%
scores = torch.tensor([1.0, 3.0, 2.0])
print(scores.softmax(dim=-1))
print((scores + 7).softmax(dim=-1))

# %% [markdown]
# So take the mean of each row off the difference, and give the root mean square of the rest: one number.


# %% tags=["starter"]
def visible_change(here, there):
    """Root mean square of what differs, less each row's mean: ()."""
    gap = there - here
    return gap.mean()  # yours: change this


# %% tags=["solution"]
def visible_change(here, there):
    """Root mean square of what differs, less each row's mean: ()."""
    gap = there - here
    gap = gap - gap.mean(dim=-1, keepdim=True)
    return gap.square().mean().sqrt()


# %% tags=["judge"]
def _number(function, *given):
    """What it returns, with a float made a tensor: both are right."""
    made = function(*given)
    if isinstance(made, (int, float)):
        made = torch.tensor(made)
    return made.double() if isinstance(made, torch.Tensor) else made


def check_change(yours):
    """Compare with the solution, then with what often goes wrong."""
    made = torch.Generator().manual_seed(1)
    first, second = torch.randn(2, 4, 6, generator=made)
    rows = torch.tensor([[5.0], [-2.0], [1.0], [3.0]])
    cases = {
        "two tables drawn at random": (first, second),
        "a table that is raised row by row": (first, first + rows + second),
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
# Try it by hand: `here` all zeros, `there` all ones. Softmax sees no difference. What does your function say?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# Three steps: the difference; less the mean of each row, which has to stay a column so that it fits; then square, mean, root.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# ```python
# gap = gap - gap.mean(dim=-1, keepdim=True)  # (queries, keys)
# ```
#
# What remains is `gap.square()`, then `mean()`, then `sqrt()`.
#
# </details>

# %% [markdown]
# ## Step two: do scores know offsets alone?
#
# Keep all contents and move the whole text by a few places. If only offsets count, no score changes, but for what
# softmax ignores. Say it does change: is that much or little? Compare it with another change: let the keys trade
# places, first with last. The change by moving divided by the change by trading is the **relativity error**.
#
# Here a score is a function of the positions of queries and of keys. Five are given, with the same contents for all:

# %%
x = torch.randn(24, DIM, dtype=torch.float64)
to_query, to_key = torch.randn(2, DIM, DIM, dtype=torch.float64) / DIM**0.5
table = torch.randn(200, DIM, dtype=torch.float64)


def sinusoids(positions):
    return sinusoidal_encoding(positions, DIM, dtype=torch.float64)


def added(rows):
    """Scores of x plus a row for each position."""
    return lambda i, j: (
        (x + rows(i)) @ to_query @ ((x + rows(j)) @ to_key).T / DIM**0.5
    )


def turned(i, j):
    """Scores of queries and keys that RoPE has turned."""
    w = rope_frequencies(DIM, base=10000)
    of_queries, of_keys = (rope_tables(at, w, x.dtype) for at in (i, j))
    queries = apply_rope(x @ to_query, *of_queries, "half")
    return queries @ apply_rope(x @ to_key, *of_keys, "half").T / DIM**0.5


def penalised(i, j):
    """Scores less a penalty for every step, in both directions."""
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
# The rows of “learned” are random here, as they are before any training. `score(i, j)` gives the scores for queries at
# positions `i` and keys at positions `j`, both tensors of integers. To move a text, change its positions; contents
# stay where they are.


# %% tags=["starter"]
def relativity(score, positions, shift):
    """Change by moving all, divided by change by trading keys: ()."""
    here = score(positions, positions)
    moved = score(positions + shift, positions)  # yours: change this
    return visible_change(here, moved)  # and this


# %% tags=["solution"]
def relativity(score, positions, shift):
    """Change by moving all, divided by change by trading keys: ()."""
    here = score(positions, positions)
    moved = score(positions + shift, positions + shift)
    traded = score(positions, positions.flip(0))
    return visible_change(here, moved) / visible_change(here, traded)


# %% tags=["judge"]
def check_relativity(yours):
    """Compare with the solution, then with what often goes wrong."""
    made = torch.Generator().manual_seed(2)
    kinds = {"generator": made, "dtype": torch.float64}
    content = torch.randn(6, 6, **kinds)
    rows, slopes = torch.randn(40, 8, **kinds), torch.randn(6, 1, **kinds)

    def places(i, j):  # a table of rows, and a query that prefers late keys
        return content + rows[i] @ rows[j].T + slopes.abs() * j

    def mixed(i, j):  # mostly distance, a little of places
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
        "distances with a little of places": (mixed, torch.arange(6), 3),
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
# A train moves, and nobody in it changes seats. Who moves in your function, and who stays on the platform?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# You need three tables of scores: `here`, one with both positions moved, and one with the keys' positions alone in
# reverse order. Then two calls of `visible_change`, and a quotient.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
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
print("relativity error  by 1     by 10    by 100")
for kind, score in score_of.items():
    found = [float(relativity(score, places, s)) for s in (1, 10, 100)]
    moved_by[kind] = found[-1]
    print(f"{kind:12}" + "".join(f"{number:10.4f}" for number in found))

# %% [markdown]
# RoPE and ALiBi know offsets alone. What is added to the words does not: here scores also depend on the place,
# for sinusoids too, although their plain inner products know the offset alone
# ([what is kept and what is not](../guide/sinusoidal.md#what-it-guarantees)). Scores without positions give `nan`,
# zero by zero, for there is nothing to judge.

# %% [markdown]
# ## Step three: is order seen?
#
# Shuffle the words, run the layer, put the results back into the old order, and compare with the run on the words as
# they were. A layer that does not know order gives the same, whatever the shuffling.
#
# Positions stay with the places: whatever word comes first gets the first position. The layer does that by itself.

# %%
FREQUENCIES = rope_frequencies(DIM // HEADS, base=10000)
LEARNED = torch.randn(16, DIM)


class Layer(nn.Module):
    """Attention with one of the encodings: (..., tokens, DIM), like x."""

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
# `order` says which word comes where: `x[order]` is the shuffled text. Return the norm of the difference, divided by
# the norm of the plain output.


# %% tags=["starter"]
def order_gap(layer, x, order):
    """How much the layer's output knows about order, relative: ()."""
    plain = layer(x)
    shuffled = layer(x[order])
    return (shuffled - plain).norm()  # yours: change this


# %% tags=["solution"]
def order_gap(layer, x, order):
    """How much the layer's output knows about order, relative: ()."""
    plain = layer(x)
    shuffled = layer(x[order])
    back = shuffled[order.argsort()]
    return (back - plain).norm() / plain.norm()


# %% tags=["judge"]
def check_order_gap(yours):
    """Compare with the solution, then with what often goes wrong."""
    made = torch.Generator().manual_seed(3)
    x = torch.randn(5, 4, generator=made, dtype=torch.float64)
    fade = torch.arange(1.0, 6.0, dtype=torch.float64)[:, None]
    cases = {
        "a layer that adds up what came before": (
            lambda x: x.cumsum(0),
            x,
            torch.tensor([1, 2, 0, 4, 3]),
        ),
        "a layer that marks each place": (
            lambda x: x * x + fade * x,
            x,
            torch.tensor([3, 0, 1, 2, 4]),
        ),
        "a layer that treats each word alone": (
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
# Take the layer `lambda x: 2 * x`, which cannot know order. What does your function say, and why is it not zero?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# Row $r$ of `shuffled` belongs to word `order[r]`, so it has to become row `order[r]` of `back`. `argsort` gives the
# order that undoes another.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# ```python
# back = shuffled[order.argsort()]
# ```
#
# Then the norm of `back - plain`, divided by that of `plain`.
#
# </details>

# %%
shuffled = torch.tensor([5, 0, 9, 3, 11, 1, 7, 2, 10, 4, 8, 6])
mirrored = torch.arange(11, -1, -1)
seen = {}
print("order gap         both ways            causal")
print("             shuffled  mirrored  shuffled  mirrored")
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
# - Without positions and with a view both ways, order is not seen.
# - Without positions, but *with* a causal mask, it is: which words a word sees depends on
#   [what stands before it](../guide/no-position.md).
# - A penalty on distance that is the same to both sides does not tell a text from its mirror image, where every two
#   words are as far apart as before. With a causal mask it does.

# %% [markdown]
# ## Step four: what is left beyond the trained length?
#
# That a formula goes on does not mean that predictions stay good. So ask the predictions. You get the mean loss at each
# position, how many positions were trained, and the loss of a guess. *Skill* is how much lower than that a loss is.
# Return the mean skill beyond the trained positions, divided by the mean skill within. *Within* is the second half of
# the trained positions, since the first words of a text have less to look at.
#
# One then means that all skill is left, zero that the model is no better than a guess, and below zero that it is worse.


# %% tags=["starter"]
def skill_left(losses, trained, guess):
    """Mean skill beyond the trained length, by that within: ()."""
    return losses[trained:].mean() / losses[:trained].mean()  # yours


# %% tags=["solution"]
def skill_left(losses, trained, guess):
    """Mean skill beyond the trained length, by that within: ()."""
    within = guess - losses[trained // 2 : trained].mean()
    beyond = guess - losses[trained:].mean()
    return beyond / within


# %% tags=["judge"]
def check_skill(yours):
    """Compare with the solution, then with what often goes wrong."""
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
# What should a model get that merely guesses beyond its length? Zero. What do you return if all losses beyond are
# equal to `guess`?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# A skill is `guess` less a mean loss. You need two of them, for two slices of `losses`. Mind where each begins and ends.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# ```python
# within = guess - losses[trained // 2 : trained].mean()
# beyond = guess - losses[trained:].mean()
# ```
#
# </details>

# %% [markdown]
# Now a task for which position counts. There are eight words, and four of them are *marked*. At each position of a
# text, say which marked word came last. A model has to look at marked words and to prefer the latest. Each model has
# one layer with a causal mask and learns from texts of sixteen words. Then it reads texts four times as long.

# %%
TRAINED, LONGER, MARKED = 16, 64, 4


def make_texts(count, length, made):
    """Words and answers: two of (count, length). The first is marked."""
    words = torch.randint(2 * MARKED, (count, length), generator=made)
    words[:, 0] %= MARKED
    last = torch.where(words < MARKED, torch.arange(length), 0)
    return words, words.gather(-1, last.cummax(dim=-1).values)


def train(kind, updates=120):
    """A model that was trained on short texts."""
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
    """Mean loss at each position of longer texts: (LONGER,)."""
    made = torch.Generator().manual_seed(1)
    words, answers = make_texts(256, LONGER, made)
    with torch.no_grad():
        logits = model(words).transpose(1, 2)
    return cross_entropy(logits, answers, reduction="none").mean(dim=0)


# A learned table with a row for each trained place has no other rows.
try:
    Layer("learned", causal=True)(torch.zeros(LONGER, DIM))
except ValueError as error:
    print(f"learned: {error}")

losses = {}
for kind in KINDS:
    if kind != "learned":
        losses[kind] = losses_by_position(train(kind))

# %% alt="Loss over position. After the sixteen trained ones the sinusoidal model soon gets worse than a guess, RoPE later. ALiBi and the model without positions stay better."
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
# The grey band is the trained range, the dotted line a guess. And this is what your measurements found, side by side.
# *Moved* is the relativity error at the largest shift; order was tried without a mask here.

# %%
print("            moved     order     order   skill   skill")
print("           by 100  shuffled  mirrored  within    left")
for kind in KINDS:
    line = f"{kind:10}{moved_by[kind]:7.3f}"
    line += f"{seen[kind][0]:10.3f}{seen[kind][1]:10.3f}"
    if kind in losses:
        within = losses[kind][TRAINED // 2 : TRAINED].mean()
        left = skill_left(losses[kind], TRAINED, math.log(MARKED))
        line += f"{math.log(MARKED) - within:8.2f}{left:8.2f}"
    else:
        line += "         refuses"
    print(line)

# %% [markdown]
# No column speaks for another.
#
# - RoPE knows offsets alone, and loses its skill all the same. Longer texts hold offsets that training never had.
# - ALiBi keeps nearly all of its skill. Under a penalty near words weigh more, and the last marked word is mostly near:
#   the task suits it. Where the answer stands far back, that may be a burden.
# - The model without positions keeps most of a smaller skill. Its one layer knows the word at hand and the mix of
#   words so far, not which came last. So never read what is left without what there was.
# - The learned table does the most honest thing: it refuses.
#
# That is one task, one layer and one start. What such numbers say about your data, only your data can tell.
#
# ## What you can do now
#
# You can ask any encoding three questions and get numbers that are not fooled by units, by what softmax ignores or by
# words that moved along: does it know offsets alone, does it see order, and what is left beyond the trained length? To
# try others, add them to `score_of` and to `Layer`.
#
# - The same checks for your own model, to copy: [debugging](../guide/debugging.md#build-it) and its
#   [reference page](../reference/diagnostics.md).
# - Why a layer without positions cannot see order: [why order is lost](../guide/order.md#the-idea-intermediate).
# - Which encoding to take: [choosing](../guide/choosing.md).
# - The chapters: [sinusoidal encoding](../guide/sinusoidal.md#what-it-guarantees),
#   [learned tables](../guide/learned.md#where-it-breaks), [RoPE](../guide/rope.md#where-it-breaks),
#   [ALiBi](../guide/bias.md#where-it-breaks), [no positions at all](../guide/no-position.md).
