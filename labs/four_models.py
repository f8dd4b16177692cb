# %% [markdown]
# # Lab: Find the bugs in four models, and write a check
#
# Four small decoders generate text without an error. One is correct. Each of the other three has a bug that has
# occurred in released code. You find the bugs with [a checker](../guide/broken.md), and then write a check of your own.
#
# **Goal.** You find out from the checker's findings what is wrong with each model, fix one of them, and write a check
# that reports when it could not have failed.
#
# **Time.** About forty minutes.
#
# **You need.** What [RoPE](../guide/rope.md) rotates, and [in which two layouts](../guide/rope.md#build-it); what a
# [cache and padding](../guide/in-a-transformer.md) are; the idea of [debugging](../guide/debugging.md): test with
# inputs whose result you know.

# %%
import textwrap

import matplotlib.pyplot as plt
import torch

from labs.judge import judge, right_and_wrong
from snippets.check_positions import (
    Finding,
    check_model,
    check_rotation,
    read_rotation,
)
from snippets.decoding import attention_mask

# %% [markdown]
# ## The four models
#
# All four models claim the same: heads of `DIM` channels, a window of `WINDOW` tokens, and RoPE with the settings
# below. They share their weights, which are random, and all code except the rotation and the mask. Here are the
# rotations:

# %%
DIM, HEADS, WINDOW, VOCABULARY = 16, 2, 6, 32
SETTINGS = {"rope_type": "default", "rope_theta": 500_000.0}
CONFIG = {"rope_parameters": SETTINGS}


def halves(angles):
    return torch.cat((angles, angles), -1)


def neighbours(angles):
    return angles.repeat_interleave(2, -1)


def swap_halves(x):
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


def swap_neighbours(x):
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((-b, a), -1).flatten(-2)


def rotation(table, swap, base):
    """Return a function that rotates x, (..., tokens, DIM)."""

    def rotate(x, positions):
        w = base ** -(torch.arange(0, DIM, 2) / DIM)
        angles = table(positions[..., None, :, None] * w)
        return x * angles.cos() + swap(x) * angles.sin()

    return rotate


base, old = SETTINGS["rope_theta"], CONFIG.get("rope_theta", 10_000.0)
ROTATIONS = {
    "A": rotation(halves, swap_halves, old),
    "B": rotation(halves, swap_neighbours, base),
    "C": rotation(halves, swap_halves, base),
    "D": rotation(neighbours, swap_neighbours, base),
}

# %% [markdown]
# Released code is far longer than this. So do not read it yet, but test it.
#
# ## Step one: read the findings
#
# `check_rotation` takes any `rotate(x, positions)`. It passes unit vectors, analyses the result, and returns a list of
# findings. Each finding has the name of a check, a verdict, and a description. `tell` prints them for a narrow screen.


# %%
def tell(findings, verdicts=("fails",)):
    """Print the findings with these verdicts, and how many pass."""
    for one in findings:
        if one.verdict in verdicts:
            where = f" First {one.where}." if one.where else ""
            words = f"{one.verdict} {one.check}: {one.found}.{where}"
            print(textwrap.fill(words, 58, subsequent_indent="    "))
    count = sum(one.verdict == "passes" for one in findings)
    print(f"{count} of {len(findings)} pass\n")


for letter, rotate in ROTATIONS.items():
    print("rotation", letter)
    tell(check_rotation(rotate, DIM, settings=SETTINGS), ("fails", "reads"))

# %% alt="Radians per position against the pair, on a logarithmic axis. C and D lie on one line, A falls less steeply, and the two channels of each pair of B differ."
plt.figure(figsize=(4.4, 2.6))
for letter, rotate in ROTATIONS.items():
    first, second = read_rotation(rotate, DIM).frequencies.abs().T
    color = f"C{'ABCD'.index(letter)}"
    width = 5 if letter == "C" else 1.5
    plt.plot(first, color=color, linewidth=width, label=letter)
    plt.plot(second, ":", color=color, linewidth=width)
plt.yscale("log")
plt.xlabel("pair")
plt.ylabel("radians per position")
plt.legend()
plt.show()

# %% [markdown]
# Solid lines are the first channel of each pair, dotted lines the second. The lines of D coincide with those of C.
#
# Now name what is wrong with each rotation, with one of the words below. One bug may fail several checks; a check that
# fails alone is more informative than one that fails together with many others. And two rotations can differ and both
# be right.

# %%
FAULTS = {
    "nothing": "it rotates as its settings specify",
    "base": "a correct rotation with other settings",
    "layouts": "the table is in one layout, the swap in the other",
    "precision": "angles are rounded at large positions",
}


# %% tags=["starter"]
def what_is_wrong(letter):
    """Return a word of FAULTS for each rotation."""
    answers = {
        "A": "nothing",  # change these
        "B": "nothing",
        "C": "nothing",
        "D": "nothing",
    }
    return answers[letter]


# %% tags=["solution"]
def what_is_wrong(letter):
    """Return a word of FAULTS for each rotation."""
    answers = {
        "A": "base",
        "B": "layouts",
        "C": "nothing",
        "D": "nothing",
    }
    return answers[letter]


# %% tags=["judge"]
def check_answers(yours):
    """Give feedback on the first wrong answer."""
    right, mistakes = right_and_wrong(
        "four_models", "what_is_wrong", globals(), pairs=False
    )

    def answer(function, letter):
        said = function(letter)
        if said is None or said is ... or said in FAULTS:
            return said
        raise ValueError(f"expected one of {', '.join(FAULTS)}; got {said!r}")

    def is_right(letter):
        try:
            return answer(yours, letter) == right(letter)
        except Exception:  # judge reports the error
            return False

    cases = {f"rotation {letter}": (letter,) for letter in ROTATIONS}
    wrong = [words for words in cases if not is_right(*cases[words])]
    for words in wrong[:1]:
        cases = {words: cases[words]}
    return judge(yours, right, cases, mistakes, call=answer)


# %% tags=["check"]
passed = check_answers(what_is_wrong)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# For each rotation, read the finding `reading` first: layout, kind, base. Which of the four differs from `SETTINGS`?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# A rotation with another base is still a rotation: it keeps lengths, and scores depend only on offsets. Only a check
# that compares it with its settings can detect this.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `one_layout` tests whether both channels of a pair rotate by the same angle. If it fails, table and swap disagree, and
# all other failures follow from that. And no rotation here fails `precise_angles`.
#
# </details>

# %% [markdown]
# ## Step two: the same rotation, and another bug
#
# Now test the models. The decoder is below; `sees` returns which keys a query sees. `A`, `B` and `D` use the tested
# mask of this guide, `C` has its own, with a separate path for each case.


# %%
class Decoder:
    """Return (logits, cache); the mask is True where a token is real."""

    def __init__(self, rotate, sees):
        made = torch.Generator().manual_seed(3)
        width = HEADS * DIM

        def draw(*shape):
            return torch.randn(*shape, generator=made)

        self.rotate, self.sees = rotate, sees
        self.tokens = draw(VOCABULARY, width)
        self.layers = [
            (draw(width, 3 * width) / 4, draw(width, width) / 6)
            for _ in range(2)
        ]

    def __call__(self, ids, mask=None, positions=None, cache=None):
        past = cache[-1].shape[1] if cache else 0
        if mask is None:
            mask = torch.ones(len(ids), past + ids.shape[1]).bool()
        if positions is None:
            positions = (mask.cumsum(1) - 1).clamp(min=0)[:, past:]
        old = [cache[-1]] if cache else []
        at = torch.cat((*old, positions), 1)  # of all keys
        seen = self.sees(positions, at, mask, WINDOW)
        x, kept = self.tokens[ids], []
        for n, (inwards, outwards) in enumerate(self.layers):
            parts = (x @ inwards).unflatten(-1, (3, HEADS, DIM))
            q, k, v = parts.permute(2, 0, 3, 1, 4)
            q, k = self.rotate(q, positions), self.rotate(k, positions)
            if cache:
                k = torch.cat((cache[n][0], k), -2)
                v = torch.cat((cache[n][1], v), -2)
            kept.append((k, v))
            scores = q @ k.mT / DIM**0.5
            scores = scores.masked_fill(~seen[:, None], -1e9)
            y = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
            x = x + y @ outwards
        return x @ self.tokens.T, [*kept, at]


def healthy_sees(query_positions, key_positions, real, window):
    of = real.long()
    new = query_positions.shape[1]
    return attention_mask(
        query_positions, key_positions, of[:, -new:], of, window=window
    )


def suspect_sees(query_positions, key_positions, real, window):
    """Return which keys each query sees, bool, (batch, queries, keys)."""
    steps = query_positions[:, :, None] - key_positions[:, None, :]
    if not real.all():  # there is padding: hide it
        return (steps >= 0) & real[:, None, :]
    if steps.shape[1] == 1:  # one new token, after its cache
        return steps <= window
    return (steps >= 0) & (steps < window)


MODELS = {
    letter: Decoder(rotate, suspect_sees if letter == "C" else healthy_sees)
    for letter, rotate in ROTATIONS.items()
}


def ask(model):
    """Return findings on a decoder that claims RoPE and a window."""
    weights = [model.tokens, *sum(model.layers, ())]
    return check_model(
        model,
        VOCABULARY,
        weights=weights,
        moves=True,
        limits={"window": WINDOW},
    )


for letter, model in MODELS.items():
    print("model", letter)
    tell(ask(model))

# %% [markdown]
# Look at A first. It passes every check, although you know that it is wrong: it uses the same wrong base everywhere.
# `check_model` compares a model with itself, so it cannot detect a bug that is the same in every call.
#
# Then look at C, whose rotation is right. List the checks that fail and the related ones that pass. One pass and chunks
# give the same result, but token by token gives another; a sequence alone has the same result every time, but another
# one in a batch with a padded sequence. **The checks that pass show where the bug is not.**
#
# Fix C's mask. A query sees a key if the key is real, not later, and among the last `window` tokens, including the
# query's own. `real` has the shape (batch, keys), and includes the keys of the cache. If a query is padding, it does
# not matter what it sees.


# %% tags=["starter"]
def mended_sees(query_positions, key_positions, real, window):
    """Return which keys each query sees, bool, (batch, queries, keys)."""
    return suspect_sees(query_positions, key_positions, real, window)


# %% tags=["solution"]
def mended_sees(query_positions, key_positions, real, window):
    """Return which keys each query sees, bool, (batch, queries, keys)."""
    steps = query_positions[:, :, None] - key_positions[:, None, :]
    return (steps >= 0) & (steps < window) & real[:, None, :]


# %% tags=["judge"]
def check_mended(yours):
    """Compare what real queries see with the tested mask."""

    def case(*padding, new=12, window=4, far=0):
        real = torch.arange(12) >= torch.tensor(padding)[:, None]
        at = (real.cumsum(1) - 1).clamp(min=0) + far
        return at[:, -new:], at, real, window

    def look(function, query_positions, key_positions, real, window):
        seen = function(query_positions, key_positions, real, window)
        if seen is None or seen is ...:
            return None
        shape = (*query_positions.shape, key_positions.shape[1])
        have = getattr(seen, "dtype", None), tuple(getattr(seen, "shape", ()))
        if have != (torch.bool, shape):
            raise ValueError(
                f"expected a mask of torch.bool, {shape}, got {have}"
            )
        return seen & real[:, -shape[1] :, None]

    cases = {
        "two whole texts": case(0, 0),
        "a whole text at large positions": case(0, far=70),
        "one new token after a cache": case(0, 0, new=1),
        "three new tokens after a cache": case(0, 0, new=3),
        "a batch with padding": case(0, 5),
        "one new token of a batch with padding": case(5, 0, new=1),
        "a window of one": case(0, 0, window=1),
    }
    _, mistakes = right_and_wrong(
        "four_models", "mended_sees", globals(), pairs=False
    )
    return judge(yours, healthy_sees, cases, mistakes, call=look)


# %% tags=["check"]
passed = check_mended(mended_sees)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# `suspect_sees` has three paths. Which of the three conditions of a correct mask does each path contain? Two paths lack
# one, or have it off by one.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# `whole_as_steps` fails, `whole_as_chunks` does not: look at the path for one new token. With `steps <= window`, how
# many keys are visible, from zero steps on? `alone_in_batch` fails: `real.all()` is one condition for all sequences.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# No case needs its own path. `steps` uses positions, so it is right after a cache too, and `real[:, None, :]` hides
# nothing if all tokens are real. Join the three conditions with `&`.
#
# </details>

# %%
print("C, fixed")
tell(ask(Decoder(ROTATIONS["C"], mended_sees)))

# %% [markdown]
# ## Step three: write your own check
#
# Make one more mistake on purpose: a window that is too wide by one *in every path*. The model agrees with itself
# again.


# %%
def wide_sees(query_positions, key_positions, real, window):
    return healthy_sees(query_positions, key_positions, real, window + 1)


WIDE = Decoder(ROTATIONS["D"], wide_sees)
print("a window too wide by one, everywhere")
tell(ask(WIDE))

# %% [markdown]
# So test a property that follows from theory. One layer with a window of $W$ tokens attends to at most $W - 1$
# positions back. Through $L$ layers, the last token depends on tokens up to $L\,(W - 1)$ positions back, and on none
# further back. Call this distance the **reach**. The figure shows how much the logits of the last token change when one
# token before it changes:

# %% alt="Change of the last token's logits against the distance of the changed token. For the correct model it falls to zero beyond its reach, for the other model two positions later."
REACH = 2 * (WINDOW - 1)
PROMPT = torch.randint(
    0, VOCABULARY, (1, 24), generator=torch.Generator().manual_seed(5)
)


def effects(model):
    """Return the largest change of the last logits, by distance."""
    here = model(PROMPT)[0][0, -1]
    changes = []
    for back in range(1, PROMPT.shape[1]):
        other = PROMPT.clone()
        other[0, -1 - back] = (other[0, -1 - back] + 1) % VOCABULARY
        changes.append((model(other)[0][0, -1] - here).abs().max())
    return torch.stack(changes).clamp(min=1e-6)


plt.figure(figsize=(4.4, 2.4))
back = torch.arange(1, PROMPT.shape[1])
plt.semilogy(back, effects(WIDE), ".-", color="C1", label="too wide")
plt.semilogy(back, effects(MODELS["D"]), ".-", color="C0", label="D")
plt.axvline(REACH + 0.5, color="gray", linestyle=":")
plt.xlabel("distance (positions back)")
plt.ylabel("change of logits")
plt.legend()
plt.show()

# %% [markdown]
# The dotted line is just beyond the reach. (No change at all is drawn at the lower end.)
#
# Write `check_reach`. It returns a `Finding(check, verdict, asked, expected, found)`, all of them strings, with one of
# three verdicts:
#
# - **fails**, if the logits of the last token change when tokens further back than `reach` change;
# - **passes**, if they do not;
# - **no power**, if the result is inconclusive because the check could not have failed. This is the case if the prompt
#   has no token that far back. It is also the case if no earlier token changes the logits of the last one: a model that
#   never attends to earlier tokens has no reach to exceed.
#
# A change counts if it is larger than rounding, for example larger than `1e-5` times the largest logit.


# %% tags=["starter"]
def check_reach(model, ids, reach):
    """Check that the last token depends on nothing beyond reach.

    model(ids) returns (logits, cache); ids are (1, tokens), tokens are below
    VOCABULARY.
    """
    asked = f"Is the last token independent of all over {reach} back?"
    return Finding("reach", "passes", asked, "yes", "yes")  # change this


# %% tags=["solution"]
def check_reach(model, ids, reach):
    """Check that the last token depends on nothing beyond reach.

    model(ids) returns (logits, cache); ids are (1, tokens), tokens are below
    VOCABULARY.
    """
    asked = f"Is the last token independent of all over {reach} back?"

    def finding(verdict, found):
        return Finding("reach", verdict, asked, "yes", found)

    def last(ids):
        return model(ids)[0][0, -1]

    first = ids.shape[1] - 1 - reach  # the first token within reach
    if first < 1:
        return finding("no power", "no token is further back")
    other = (ids + 1) % VOCABULARY
    far = torch.cat((other[:, :first], ids[:, first:]), 1)
    before = torch.cat((other[:, :-1], ids[:, -1:]), 1)
    here = last(ids)
    by_far = (last(far) - here).abs().max()
    by_any = (last(before) - here).abs().max()
    tolerance = 1e-5 * here.abs().max()
    if by_any <= tolerance:
        return finding("no power", "no token before it changes its logits")
    if by_far <= tolerance:
        return finding("passes", f"yes, to {by_far:.0e}")
    return finding("fails", f"no: its logits change by {by_far:.2g}")


# %% tags=["judge"]
def check_check(yours):
    """Test it on models that pass, that fail, and with no power."""

    def endless_sees(query_positions, key_positions, real, window):
        return healthy_sees(query_positions, key_positions, real, 10**6)

    def bigrams(ids, mask=None, positions=None, cache=None):
        tokens = MODELS["D"].tokens
        return tokens[ids] @ tokens.T, cache

    def rounded(ids, mask=None, positions=None, cache=None):
        logits, cache = MODELS["D"](ids, mask, positions, cache)
        return logits * (1 + 2.5e-7 * ids.double().mean()), cache

    def ask_yours(function, model, prompts, reach):
        verdicts = [
            verdict(function(model, ids, reach)) for ids in prompts.split(1)
        ]
        return None if None in verdicts else ", ".join(sorted({*verdicts}))

    def verdict(found):
        if found is None or found is ...:
            return None
        if not isinstance(found, Finding):
            kind = type(found).__name__
            raise ValueError(f"expected a Finding, got a {kind}")
        known = "fails", "passes", "no power"
        if found.verdict not in known:
            raise ValueError(
                f"the verdict must be one of {', '.join(known)}; "
                f"got {found.verdict!r}"
            )
        if not (isinstance(found.found, str) and found.found):
            raise ValueError("`found` must describe the result, as a string")
        return found.verdict

    healthy = MODELS["D"]
    endless = Decoder(ROTATIONS["D"], endless_sees)
    short, longer = PROMPT[:, : REACH + 1], PROMPT[:, : REACH + 2]
    alike = torch.arange(VOCABULARY)[:, None].repeat(1, 24)
    cases = {
        "a correct model": (healthy, PROMPT, REACH),
        "a model without a window": (endless, PROMPT, REACH),
        "a window that is too wide by one": (WIDE, PROMPT, REACH),
        "a reach that is too short by one": (healthy, PROMPT, REACH - 1),
        "a prompt with one token beyond reach": (WIDE, longer, REACH),
        "a prompt that ends at the reach": (endless, short, REACH),
        "a prompt far shorter than the reach": (endless, short[:, 6:], REACH),
        "a bigram model": (bigrams, PROMPT, REACH),
        "a model that rounds differently": (rounded, PROMPT, REACH),
        "prompts that repeat one token": (endless, alike, REACH),
    }
    right, mistakes = right_and_wrong(
        "four_models", "check_reach", globals(), pairs=False
    )
    return judge(yours, right, cases, mistakes, call=ask_yours)


# %% tags=["check"]
passed = check_check(check_reach)

# %% [markdown]
# <details markdown="1"><summary>Hint 1</summary>
#
# Number the tokens from zero: the last is $n - 1$. Which token is exactly `reach` positions back? All tokens before
# that one are too far back, and if there are none, the verdict is **no power**.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# Run the model three times: on the prompt; on the prompt with all distant tokens changed; and on the prompt with all
# tokens changed but the last. Compare only the logits of the last token. The third run shows whether the second could
# have differed.
#
# `(ids + 1) % VOCABULARY` is a different token at every position.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# The prompts are
#
# ```python
# first = ids.shape[1] - 1 - reach
# other = (ids + 1) % VOCABULARY
# far = torch.cat((other[:, :first], ids[:, first:]), 1)
# before = torch.cat((other[:, :-1], ids[:, -1:]), 1)
# ```
#
# If `first < 1`: no power. If `before` changes nothing: no power. Otherwise `far` decides.
#
# </details>

# %%
for letter, model in (MODELS | {"too wide": WIDE}).items():
    found = check_reach(model, PROMPT, REACH)
    print(f"{letter:9} {found.verdict:9} {found.found}")

# %% [markdown]
# Your check detects the window that no comparison of the model with itself could detect. And C passes! Its bugs are in
# paths that this prompt does not use: there is no padding here, and no cache. Like every check, yours can detect only
# bugs in what it tests.

# %% [markdown]
# ## What you can do now
#
# You can test a rotation and a model without reading their code, distinguish a bug from its consequences, and infer
# from the checks that pass where the bug is not. And your own checks report when they could not have failed. In a test
# suite, two lines guard against later changes:
#
# ```python
# findings = check_rotation(rotate, dim=128)
# assert_positions([*findings, check_reach(model, ids, reach)])
# ```
#
# - What each check tests, and what it cannot detect: [bugs in released code](../guide/broken.md).
# - Measurements for models that you can only run: [the lab on released models](released_model.md), and
#   [debugging](../guide/debugging.md#where-it-breaks).
# - Masks, caches and padding, built from scratch: [the lab on decoding](cached_decoding.md).
