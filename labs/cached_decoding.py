# %% [markdown]
# # Lab: Decode with a key-value cache and left padding
#
# Write a decoding loop that uses a key-value cache and processes several texts in one batch, so that each text gets the
# same result as alone and without a cache.
#
# **Goal.** You write positions, mask, cache and decoding loop so that the result with cache and padding equals the
# result of each text alone in one pass, up to rounding.
#
# **Time.** About sixty minutes.
#
# **You need.** [In a Transformer](../guide/in-a-transformer.md), up to its Intermediate level; what
# [RoPE](../guide/rope.md) does to queries and keys; tensors in torch.
#
# Mistakes in this code raise no error. Shapes fit, the model generates text, and the text is merely worse. So this lab
# compares: each text alone in one pass is the reference, and every other way must agree with it.

# %%
import math

import matplotlib.pyplot as plt
import torch

from labs.judge import judge, right_and_wrong
from snippets.decoding import (
    KeyValueCache,
    attend,
    attention_mask,
    document_positions,
)
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from snippets.sinusoidal import sinusoidal_encoding

_ = torch.manual_seed(0)

# %% [markdown]
# Here are the model and its texts. The model is tiny and random, and computes in float64, so that a mistake can be
# distinguished from rounding. Its attention is a function that you will write. `turn` is what the encoding does to
# queries and keys: RoPE rotates them by their positions; sinusoids are added to the tokens before the first layer and
# leave queries and keys unchanged.
#
# Prompts of different lengths share a batch. Short ones are padded **on the left**, so that the last column is the last
# token of each text and the new tokens follow it.

# %%
WIDTH, HEADS, VOCABULARY = 32, 2, 26
FREQUENCIES = rope_frequencies(WIDTH // HEADS, base=10000)


def rope(x, positions):
    """Rotate x, (batch, heads, tokens, dim), by its positions."""
    cos, sin = rope_tables(positions, FREQUENCIES, x.dtype)
    return apply_rope(x, cos, sin, "half")


def still(x, positions):
    return x


class Model:
    """Return scores of the next token, and a cache for each layer."""

    def __init__(self, attention, encoding="rope", layers=2):
        made = torch.Generator().manual_seed(3)

        def draw(*shape):
            return torch.randn(*shape, generator=made, dtype=torch.float64)

        self.attention = attention
        self.encoding = encoding
        self.tokens = draw(VOCABULARY, WIDTH)
        self.out = draw(WIDTH, VOCABULARY)
        self.layers = [
            (draw(WIDTH, 3 * WIDTH) / 4, draw(WIDTH, WIDTH) / 4)
            for _ in range(layers)
        ]

    def __call__(self, ids, positions, real, caches=None):
        x = self.tokens[ids]
        turn = rope
        if self.encoding == "sinusoids":
            x = x + sinusoidal_encoding(positions, WIDTH, dtype=x.dtype)
            turn = still
        kept = []
        for n, (inwards, outwards) in enumerate(self.layers):
            q, k, v = (
                part.unflatten(-1, (HEADS, -1)).transpose(1, 2)
                for part in (x @ inwards).chunk(3, -1)
            )
            cache = caches[n] if caches else None
            y, cache = self.attention(q, k, v, positions, real, cache, turn)
            x = x / 2 + (y.transpose(1, 2).flatten(-2) @ outwards).tanh()
            kept.append(cache)
        return x @ self.out, kept


def batch(*texts):
    """Return ids and which of them are real, two (texts, longest)."""
    longest = max(len(text) for text in texts)
    rows = [text.rjust(longest, "_") for text in texts]
    ids = [[max(0, ord(c) - ord("a")) for c in row] for row in rows]
    return torch.tensor(ids), torch.tensor(
        [[c != "_" for c in r] for r in rows]
    )


ids, real = batch("positions", "count", "tokens")
print("ids\n", ids)
print("real\n", real.int())

# %% [markdown]
# ## Step one: a position for each token
#
# The position of a token is the number of tokens *of its own text* before it. Padding is not part of the text. Compute
# the positions from `real`, which is true where there is a token.
#
# Padding needs a position too, because a tensor has no gaps. It does not affect the result, so any position that occurs
# in this batch is fine; zero always is. A negative number is not: a position table would be read from its end, and, as
# step two shows, a row of the mask can be left empty.


# %% tags=["starter"]
def positions_of(real):
    """Return the position of each token in its text, int64."""
    columns = torch.arange(real.shape[-1])
    return columns.expand(real.shape)  # change this


# %% tags=["solution"]
def positions_of(real):
    """Return the position of each token in its text, int64."""
    return (real.cumsum(-1) - 1).clamp(min=0)


# %% tags=["judge"]
def check_positions(yours):
    """Compare positions of tokens, and test that padding is in range."""

    def mask(*texts):
        return batch(*texts)[1]

    def look(function, real):
        positions = function(real)
        if positions is None or positions is ...:
            return None
        if not isinstance(positions, torch.Tensor):
            kind = type(positions).__name__
            raise ValueError(f"expected a tensor like `real`, got a {kind}")
        below = (positions < 0).any().int()
        beyond = (positions >= real.sum(-1).max()).any().int()
        if positions.shape == real.shape:
            positions = positions * real
        return {
            "positions of tokens": positions,
            "below zero": below,
            "beyond all texts": beyond,
        }

    cases = {
        "one text": (mask("count"),),
        "texts of one length": (mask("count", "shift"),),
        "padding on the left": (mask("positions", "count", "a"),),
    }
    _, mistakes = right_and_wrong(
        "cached_decoding", "positions_of", globals()
    )
    return judge(yours, document_positions, cases, mistakes, call=look)


# %% tags=["check"]
passed = check_positions(positions_of)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Write the positions of the three texts above by hand, below the ones and zeros of `real`.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# A running sum over `real` counts the tokens so far, including the token itself.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `real.cumsum(-1)` is one too high at tokens, and zero at padding. Subtract one, and do not let the result fall below
# zero.
#
# </details>

# %%
print(positions_of(real))

# %% [markdown]
# ## Step two: the mask
#
# Queries and keys come from different tensors now: the queries are the new tokens, and the keys are those of the cache
# followed by the new ones. A real query may see a key if
#
# - the key is real, and
# - the position of the key is at most the position of the query.
#
# Compare positions and not indices in the tensor. One new token is row zero, and yet it may see the whole cache. And in
# a ring buffer, the newest key replaces the oldest.
#
# Padding is also a query, whose result is not used. But it must see at least one key, because a softmax over nothing is
# `nan`, and in the next layer a weight of zero times `nan` is `nan` again, for every token.


# %% tags=["starter"]
def may_see(query_positions, key_positions, query_real, key_real):
    """Return which keys each query may see, bool, (batch, queries, keys).

    Positions are int64, real is bool: (batch, queries) and (batch, keys).
    """
    rows, queries = query_positions.shape
    keys = key_positions.shape[-1]
    return torch.ones(rows, queries, keys, dtype=torch.bool)  # change this


# %% tags=["solution"]
def may_see(query_positions, key_positions, query_real, key_real):
    """Return which keys each query may see, bool, (batch, queries, keys).

    Positions are int64, real is bool: (batch, queries) and (batch, keys).
    """
    earlier = key_positions[:, None, :] <= query_positions[:, :, None]
    alike = key_real[:, None, :] == query_real[:, :, None]
    return earlier & alike


# %% tags=["judge"]
def _refuse_no_mask(seen, shape):
    """Raise ValueError unless this is a mask; its axes may be swapped."""
    have = f"a {type(seen).__name__}"
    if isinstance(seen, torch.Tensor):
        swapped = (shape[0], shape[2], shape[1])
        fits = seen.shape in (shape, swapped)
        if fits and ((seen == 0) | (seen == 1)).all():
            return
        have = f"{seen.dtype}, {tuple(seen.shape)}"
    raise ValueError(
        f"the mask must be torch.bool, (batch, queries, keys), here {shape}, "
        "true where a key is seen, with no axis for heads; got " + have
    )


def check_may_see(yours):
    """Compare what tokens see, and test for empty rows of the mask."""

    def look(function, i, j, query_real, key_real):
        seen = function(i, j, query_real, key_real)
        if seen is None or seen is ...:
            return None
        shape = (*i.shape, j.shape[-1])
        _refuse_no_mask(seen, shape)
        empty = (seen == 0).all(-1).any().int()
        if seen.shape == shape:
            seen = seen * query_real[:, :, None]
        return {"what tokens see": seen, "empty rows": empty}

    def case(real, new=None, ring=0):
        at = document_positions(real)
        new = real.shape[-1] if new is None else new
        i, of = at[:, -new:], real[:, -new:]
        return i, at.roll(ring, -1), of, real.roll(ring, -1)

    def right(i, j, query_real, key_real):
        return attention_mask(i, j, query_real.long(), key_real.long())

    _, uneven = batch("counts", "two")
    _, even = batch("ring", "cups")
    cases = {
        "whole texts": case(even),
        "one new token after a cache": case(even, 1),
        "two new tokens after a padded cache": case(uneven, 2),
        "a padded prompt": case(uneven),
        "a ring buffer, whose newest key is first": case(even, 2, 1),
        "a first column that is padding in one row": case(uneven[:, :1]),
    }
    _, mistakes = right_and_wrong("cached_decoding", "may_see", globals())
    return judge(yours, right, cases, mistakes, call=look)


# %% tags=["check"]
passed = check_may_see(may_see)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Each condition alone is a table of queries times keys. Create both tables, and join them with `&`.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# `x[:, :, None]` lets `x` vary with the query, and `y[:, None, :]` lets `y` vary with the key. Comparing the two gives
# the table.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `key_positions[:, None, :] <= query_positions[:, :, None]` is the first condition. For the second, require that key
# and query are both real or both padding: then tokens see tokens, padding sees padding, and no row is empty.
#
# </details>

# %% alt="Two maps of queries and keys. On the left, a padded prompt: a triangle for its tokens, and a square for the padding, which sees only padding. On the right, two new tokens: each sees all tokens up to itself and no padding."
_, padded = batch("positions", "count")
padded = padded[1:]  # four padding positions, then five tokens
grown = torch.cat((padded, torch.ones(1, 2, dtype=torch.bool)), -1)
old, new = positions_of(padded), positions_of(grown)
maps = {
    "the prompt": may_see(old, old, padded, padded)[0],
    "two new tokens": may_see(new[:, -2:], new, grown[:, -2:], grown)[0],
}
fig, axes = plt.subplots(1, 2, figsize=(4.4, 2.6))
for ax, (title, seen) in zip(axes, maps.items()):
    ax.imshow(seen.int(), vmin=0, vmax=1)
    ax.set(title=title, xlabel="key")
    ax.set_yticks(range(len(seen)))
axes[0].set_ylabel("query")
plt.show()

# %% [markdown]
# ## Step three: attention with a cache
#
# This is the central step. Your function takes queries, keys and values of the *new* tokens, none of them rotated, with
# their positions, and the `cache` that you returned in the previous call (at first `None`). It returns the result of
# attention for the new tokens, and the next cache.
#
# You decide what the cache contains; no other code reads it. It needs everything about earlier tokens that later
# queries need.
#
# - `turn(x, positions)` rotates queries and keys, each by its own position. Rotate each of them **once**.
# - The positions that you are given are those of the text already. Use them unchanged.
# - The new keys are among the keys: a token sees itself.
# - A score is the product of query and key divided by the square root of `dim`. Values are not rotated.


# %% tags=["starter"]
def attend_step(q, k, v, positions, real, cache, turn):
    """Return attention for new tokens, like q, and the next cache.

    q, k, v are (batch, heads, tokens, dim), positions and real are
    (batch, tokens), cache is what you returned before, or None.
    """
    q, k = turn(q, positions), turn(k, positions)
    seen = may_see(positions, positions, real, real)
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(~seen[:, None], -math.inf)
    return scores.softmax(-1) @ v, cache  # change this: nothing is cached


# %% tags=["solution"]
def attend_step(q, k, v, positions, real, cache, turn):
    """Return attention for new tokens, like q, and the next cache.

    q, k, v are (batch, heads, tokens, dim), positions and real are
    (batch, tokens), cache is what you returned before, or None.
    """
    q, k = turn(q, positions), turn(k, positions)
    at, of = positions, real
    if cache is not None:
        k = torch.cat((cache[0], k), -2)
        v = torch.cat((cache[1], v), -2)
        at = torch.cat((cache[2], at), -1)
        of = torch.cat((cache[3], of), -1)
    seen = may_see(positions, at, real, of)
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(~seen[:, None], -math.inf)
    return scores.softmax(-1) @ v, (k, v, at, of)


# %% tags=["judge"]
def _step(q, k, v, positions, real, cache, turn):
    """Compute attend_step with the tested files."""
    new = turn(k, positions), v, positions, real.long()
    kept = cache.extend(*new) if cache else KeyValueCache(*new)
    seen = attention_mask(
        positions, kept.positions, real.long(), kept.documents
    )
    return attend(turn(q, positions), kept.k, kept.v, seen), kept


def check_attend_step(yours):
    """Call it on texts in pieces, and compare the results of tokens."""
    made = torch.Generator().manual_seed(4)

    def case(real, *pieces):
        shape = (3, len(real), 2, real.shape[-1], 8)
        drawn = torch.randn(shape, generator=made, dtype=torch.float64)
        return drawn, document_positions(real), real, pieces

    def drive(function, drawn, positions, real, pieces):
        cache, made = None, []
        parts = zip(
            drawn.split(pieces, -2),
            positions.split(pieces, -1),
            real.split(pieces, -1),
        )
        for (q, k, v), at, of in parts:
            given = q, k, v, at, of, cache, turn
            answer = function(*given)
            if answer is None or answer is ...:
                return None
            several = isinstance(answer, (tuple, list))
            if not several or len(answer) != 2:
                number = f" of {len(answer)}" if several else ""
                raise ValueError(
                    "return two values, the result and the next cache; "
                    f"got a {type(answer).__name__}{number}"
                )
            y, cache = answer
            if not isinstance(y, torch.Tensor) or y.shape != q.shape:
                raise ValueError(
                    f"the result must have the shape of q, {tuple(q.shape)}, "
                    f"got {tuple(getattr(y, 'shape', ()))}"
                )
            unread = ~of[:, None, :, None] & ~y.isnan()  # but nan spreads
            made.append(y.masked_fill(unread, 0.0))
        return torch.cat(made, -2)

    def turn(x, positions):
        frequencies = rope_frequencies(8, base=10000)
        tables = rope_tables(positions, frequencies, x.dtype)
        return apply_rope(x, *tables, "half")

    _, even = batch("decoding", "position")
    _, uneven = batch("decoding", "cache")
    cases = {
        "a prompt in one call": case(even, 8),
        "a prompt, then one token at a time": case(even, 5, 1, 1, 1),
        "a prompt in two pieces": case(even, 4, 4),
        "a padded prompt, then one token at a time": case(uneven, 5, 1, 1, 1),
        "a padded prompt, one token at a time": case(uneven, *8 * [1]),
    }
    _, mistakes = right_and_wrong("cached_decoding", "attend_step", globals())
    return judge(yours, _step, cases, mistakes, call=drive)


# %% tags=["check"]
passed = check_attend_step(attend_step)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# What does a later query need to know about an earlier token? Its key, its value, and the arguments of `may_see` about
# keys.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# First rotate the new queries and keys. Then join: the old keys in front, the new ones after them, and the same for
# values, positions and `real`. The rest is as in the starter, with the joined tensors as keys. The joined tensors are
# the next cache.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# If `cache` is not `None`, use `torch.cat((cache[0], k), -2)` and the same for `v`; positions and `real` are joined
# along `-1`. The mask is `may_see(positions, joined_positions, real, joined_real)`. Return the result and the four
# joined tensors.
#
# </details>

# %%
if passed:
    model = Model(attend_step)
    whole, _ = model(ids, positions_of(real), real)
    at, caches, pieces = positions_of(real), None, []
    for n in range(ids.shape[-1]):
        one = slice(n, n + 1)
        scores, caches = model(ids[:, one], at[:, one], real[:, one], caches)
        pieces.append(scores)
    apart = (torch.cat(pieces, 1) - whole)[real].abs().max().item()
    print(f"token by token and one pass differ by {apart:.0e}")
else:
    print("Finish step three to compare it with one pass.")

# %% [markdown]
# ## Step four: generate
#
# Continue every text of the batch with the most probable token, again and again. In the first call the model processes
# the prompts. In each later call it processes one new token of each text, with the cache of the previous call:
#
# `scores, caches = model(ids, positions, real, caches)`
#
# Which position does the new token have? It follows the last token **of its own text**. The length of the cache is not
# this position, because it counts padding.


# %% tags=["starter"]
def continue_texts(model, ids, real, steps):
    """Return the most probable next tokens of each text, (texts, steps)."""
    scores, _caches = model(ids, positions_of(real), real, None)
    token = scores[:, -1:].argmax(-1)  # the first new token of each text
    return token.repeat(1, steps)  # change this


# %% tags=["solution"]
def continue_texts(model, ids, real, steps):
    """Return the most probable next tokens of each text, (texts, steps)."""
    positions, caches, written = positions_of(real), None, []
    for _ in range(steps):
        scores, caches = model(ids, positions, real, caches)
        ids = scores[:, -1:].argmax(-1)
        written.append(ids)
        positions = positions[:, -1:] + 1
        real = torch.ones_like(ids, dtype=torch.bool)
    return torch.cat(written, -1)


# %% tags=["judge"]
class _Watched:
    """A model that records its calls. Its cache is a count of tokens."""

    def __init__(self):
        self.calls = []

    def __call__(self, ids, positions, real, caches=None):
        past = 0 if caches is None else caches
        shapes = [tuple(each.shape) for each in (ids, positions, real)]
        if len(set(shapes)) > 1 or len(shapes[0]) != 2:
            raise ValueError(
                "ids, positions and real must all be (texts, new tokens), "
                f"got {shapes[0]}, {shapes[1]} and {shapes[2]}"
            )
        note = ids * real, positions * real, real.int(), past
        self.calls.append(note)
        likely = (3 * ids + positions + past + 1) % 7
        scores = torch.nn.functional.one_hot(likely, 7).double()
        return scores, past + ids.shape[-1]


def check_continue(yours):
    """Compare the tokens, positions and caches of all calls."""

    def watch(function, ids, real, steps):
        model = _Watched()
        written = function(model, ids, real, steps)
        if written is None or written is ...:
            return None
        calls = model.calls[:steps]
        report = {"number of calls": len(calls)}
        for n in range(steps):
            parts = calls[n] if n < len(calls) else (0, 0, 0, 0)
            names = "tokens", "positions", "real", "tokens in the cache"
            for name, part in zip(names, parts):
                report[f"{name} of call {n + 1}"] = part
        return report | {"tokens written": written}

    cases = {
        "one text": (*batch("count"), 5),
        "texts of different lengths": (*batch("_counts", "two"), 4),
        "a text that continues after the letter a": (
            *batch("banana", "fig"),
            4,
        ),
    }
    right, mistakes = right_and_wrong(
        "cached_decoding", "continue_texts", globals()
    )
    return judge(yours, right, cases, mistakes, call=watch)


# %% tags=["check"]
passed = check_continue(continue_texts)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Four things change from call to call: the tokens, their positions, which are real, and the caches. Write down what
# each of them is in the second call.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# The last column of the positions is that of the last token in every row, because padding is on the left. The next
# position is one higher.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# Loop over `steps`: call the model; take the most probable token of the last column; append it to a list; then set
# `positions = positions[:, -1:] + 1`, and `real` to true for the new token of each text. Join the tokens of the list at
# the end.
#
# </details>

# %% [markdown]
# ## Put it together
#
# The cell continues the three texts together, with a cache and padding, and each text alone, processed again from the
# start for every token. The letters mean nothing, because the weights are random; what matters is that they are the
# same.

# %%
PROMPTS = "positions", "count", "tokens"


def letters(row):
    return "".join(chr(97 + n) for n in row.tolist())


def alone(encoding, text, steps):
    """Continue a text without cache and padding, with tested files."""
    model = Model(_step, encoding)
    for _ in range(steps):
        ids, real = batch(text)
        scores, _ = model(ids, document_positions(real), real)
        text += letters(scores[0, -1:].argmax(-1))
    return text[-steps:]


for encoding in ("rope", "sinusoids") if passed else ():
    model = Model(attend_step, encoding)
    together = continue_texts(model, *batch(*PROMPTS), 8)
    for text, row in zip(PROMPTS, together):
        theirs = alone(encoding, text, 8)
        same = "same" if letters(row) == theirs else "NOT the same"
        print(f"{encoding:9} {text:>9} + {letters(row)} {same}")
if not passed:
    print("Finish the four steps to compare the texts.")

# %% [markdown]
# Which mistake affects which encoding? Count the padding on purpose, either throughout or only from the first new token
# on, and see how much the scores of the last token change for the shortest text. Guess first: which of the four
# combinations is harmless?

# %%
RULES = {  # is padding counted in the prompt, and after it?
    "positions of the text": (0, 0),
    "padding counted throughout": (1, 1),
    "padding counted by new tokens": (0, 1),
}


def last_scores(encoding, rule):
    """Process a padded prompt, then three tokens, by one of the rules."""
    model = Model(attend_step, encoding)
    ids, real = batch("positionsabc", "countabc")
    padding = (~real).sum(-1, keepdim=True)
    at = positions_of(real) + padding * real * rule[0]
    _, caches = model(ids[:, :-3], at[:, :-3], real[:, :-3])
    at = positions_of(real) + padding * rule[1]
    scores, _ = model(ids[:, -3:], at[:, -3:], real[:, -3:], caches)
    return scores[1, -1]


if passed:
    moved = {}
    for name, rule in RULES.items():
        for encoding in ("rope", "sinusoids"):
            ids, real = batch("countabc")
            model = Model(_step, encoding)
            truth, _ = model(ids, document_positions(real), real)
            apart = last_scores(encoding, rule) - truth[0, -1]
            moved[name, encoding] = apart.abs().max().item()
    print(f"{'':30} {'RoPE':>7} {'sinusoids':>9}")
    for name in RULES:
        a, b = (moved[name, each] for each in ("rope", "sinusoids"))
        print(f"{name:30} {a:7.0e} {b:9.0e}")
else:
    print("Finish the four steps first.")

# %% [markdown]
# With RoPE, a shift that all positions of a text share changes nothing, because scores depend on differences of
# positions. A shift between prompt and new tokens does change the result. With an encoding added to the tokens, both
# shifts do. So a test with RoPE alone can pass although padding is counted, and the same code is wrong for another
# model: if you count only tokens of the text, the code is right for any encoding.

# %% [markdown]
# ## What you can do now
#
# You can give each token its position under padding and a cache, hide keys by position, rotate each query and key once,
# and decode a batch of texts of different lengths. You have a test for any decoder: compare a text alone in one pass
# with the same text padded, cached, and in a batch; in float64 the two agree to many digits, or there is a bug.
#
# Back to the chapter: [two numbers for every token](../guide/in-a-transformer.md#the-idea), [where it
# breaks](../guide/in-a-transformer.md#where-it-breaks), and [RoPE](../guide/rope.md). Copy the tested files:
# [`decoding.py`](../reference/decoding.md) has the mask and a cache, [`block.py`](../reference/block.md) a whole
# decoder. For biases, which need the positions in the cache too, there is [the lab on T5's buckets](t5_buckets.md).
