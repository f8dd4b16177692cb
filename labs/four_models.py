# %% [markdown]
# # Lab: Four models, one healthy
#
# Four small decoders write without an error. One is healthy. In each of the others a fault is hidden that has stood in
# released code. You find them with [a checker](../guide/broken.md), and then teach it a question of your own.
#
# **Goal.** Say from the checker's findings what is wrong with each model, mend one of them, and write a check that knows
# when it has nothing to say.
#
# **Time.** About forty minutes.
#
# **You need.** What [RoPE](../guide/rope.md) turns, and [in two layouts](../guide/rope.md#build-it); what a
# [cache and padding](../guide/in-a-transformer.md) are; the idea of [debugging](../guide/debugging.md): ask what you know
# the answer to.

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
from snippets.decoding import visible

# %% [markdown]
# ## What was released
#
# All four say the same of themselves: heads of `DIM` channels, a window of `WINDOW` tokens, RoPE with the settings below.
# They share their weights, which are random, and all code but for the rotation and the mask. Here are the rotations:

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
    """A function that turns x: (..., tokens, DIM) by its positions."""

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
# Released code is far longer than this. So do not read it yet: ask.
#
# ## Step one: read the findings
#
# `check_rotation` takes any `rotate(x, positions)`. It puts unit vectors in, reads off what comes out, and gives a list of
# findings. Each has the name of a check, a verdict, and words. `tell` prints them for a narrow screen.


# %%
def tell(findings, verdicts=("fails",)):
    """Print the findings of these verdicts, and how many pass."""
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

# %% alt="Radians per position over the pair, on a logarithmic axis. C and D lie on one line, A falls less steeply, and the two channels of each pair of B lie apart."
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
# Solid is the first channel of each pair, dotted the second. D's line lies on C's.
#
# Now say what is wrong with each rotation, in one of these words. One fault may fail several checks; one that fails alone
# says more than the loudest. And two rotations can differ and both be right.

# %%
FAULTS = {
    "nothing": "it turns as its settings say",
    "base": "a clean rotation, of other settings",
    "layouts": "the table is in one layout, the swap in the other",
    "precision": "angles are rounded far into a text",
}


# %% tags=["starter"]
def what_is_wrong(letter):
    """A word of FAULTS for each rotation."""
    answers = {
        "A": "nothing",  # yours: change these
        "B": "nothing",
        "C": "nothing",
        "D": "nothing",
    }
    return answers[letter]


# %% tags=["solution"]
def what_is_wrong(letter):
    """A word of FAULTS for each rotation."""
    answers = {
        "A": "base",
        "B": "layouts",
        "C": "nothing",
        "D": "nothing",
    }
    return answers[letter]


# %% tags=["judge"]
def check_answers(yours):
    """One rotation at a time: the first wrong answer gets words."""
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
        except Exception:  # judge says what was raised
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
# For each rotation, read the finding `reading` first: layout, kind, base. Which of the four lines does not say what
# `SETTINGS` says?
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# A rotation of another base is still a rotation: it keeps lengths, and scores know offsets alone. Only what compares it
# with its settings can tell.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# `one_layout` asks whether both channels of a pair turn by one angle. Where it fails, table and swap disagree, and
# everything else that fails follows from it. And no rotation here fails `precise_angles`.
#
# </details>

# %% [markdown]
# ## Step two: the same rotation, and another fault
#
# Now the models. The decoder is below; `sees` decides which keys a query sees. `A`, `B` and `D` use the guide's own mask,
# `C` has one of its own, with a path of its own for each case.


# %%
class Decoder:
    """Gives (logits, cache); the mask is True where a token is real."""

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
    return visible(
        query_positions, key_positions, of[:, -new:], of, window=window
    )


def suspect_sees(query_positions, key_positions, real, window):
    """Which keys each query sees: bool, (batch, queries, keys)."""
    steps = query_positions[:, :, None] - key_positions[:, None, :]
    if not real.all():  # there is padding: hide it
        return (steps >= 0) & real[:, None, :]
    if steps.shape[1] == 1:  # one new token, behind its cache
        return steps <= window
    return (steps >= 0) & (steps < window)


MODELS = {
    letter: Decoder(rotate, suspect_sees if letter == "C" else healthy_sees)
    for letter, rotate in ROTATIONS.items()
}


def ask(model):
    """Findings on a decoder that says it has RoPE and a window."""
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
# Look at A first. It passes everything, and you know that it is wrong: in every way of asking, it has the same wrong base.
# `check_model` compares a model with itself, and a fault that is everywhere is invisible to it.
#
# Then C, whose rotation is right. List what fails and what passes beside it. A text in one pass and in chunks agree, token
# by token does not; a row alone agrees with itself, and not when a padded one joins it. **What passes says where the fault
# is not.**
#
# Mend C's mask. A query sees a key if the key is real, not later, and among the last `window` tokens, the query's own
# counted. `real` is (batch, keys), for the keys of the cache too. What a query that is padding sees is nobody's business.


# %% tags=["starter"]
def mended_sees(query_positions, key_positions, real, window):
    """Which keys each query sees: bool, (batch, queries, keys)."""
    return suspect_sees(query_positions, key_positions, real, window)


# %% tags=["solution"]
def mended_sees(query_positions, key_positions, real, window):
    """Which keys each query sees: bool, (batch, queries, keys)."""
    steps = query_positions[:, :, None] - key_positions[:, None, :]
    return (steps >= 0) & (steps < window) & real[:, None, :]


# %% tags=["judge"]
def check_mended(yours):
    """Look at what real queries see, beside the guide's own mask."""

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
        "a whole text far away": case(0, far=70),
        "one new token behind a cache": case(0, 0, new=1),
        "three new tokens behind a cache": case(0, 0, new=3),
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
# `suspect_sees` has three paths. Which of the three conditions of a healthy mask does each of them have? Two paths lack
# one, or have it off by one.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# `whole_as_steps` fails, `whole_as_chunks` does not: look at the path for one new token. With `steps <= window`, how many
# keys are seen, from zero steps on? `alone_in_batch` fails: whether `real.all()` holds is decided once for all rows.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# No path of its own is needed for anything. `steps` goes by positions, so it is right behind a cache too, and
# `real[:, None, :]` hides nothing where all is real. Join the three conditions with `&`.
#
# </details>

# %%
print("C, mended")
tell(ask(Decoder(ROTATIONS["C"], mended_sees)))

# %% [markdown]
# ## Step three: a check of your own
#
# Make one more mistake on purpose: a window that is one too wide *in every path*. The model agrees with itself again.


# %%
def wide_sees(query_positions, key_positions, real, window):
    return healthy_sees(query_positions, key_positions, real, window + 1)


WIDE = Decoder(ROTATIONS["D"], wide_sees)
print("a window one too wide, everywhere")
tell(ask(WIDE))

# %% [markdown]
# So ask something that is known from elsewhere. One layer with a window of $W$ tokens looks $W - 1$ steps back. Through
# $L$ layers, the last token hears of what is up to $L\,(W - 1)$ steps back, and of nothing further. Call this the
# **reach**. Here is how much the logits of the last token change when one token before it does:

# %% alt="Change of the last token's logits over how far back a token was changed. The healthy model falls to nothing behind its reach, the other one two steps later."
REACH = 2 * (WINDOW - 1)
PROMPT = torch.randint(
    0, VOCABULARY, (1, 24), generator=torch.Generator().manual_seed(5)
)


def effects(model):
    """Largest change of the last logits, for a change 1, 2, ... back."""
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
plt.xlabel("steps back")
plt.ylabel("change of logits")
plt.legend()
plt.show()

# %% [markdown]
# The dotted line is right behind the reach. (No change at all is drawn at the lower end.)
#
# Write `check_reach`. It gives a `Finding(check, verdict, asked, expected, found)`, all of them strings, with one of three
# verdicts:
#
# - **fails**, if the logits of the last token change when tokens further back than `reach` do;
# - **passes**, if they do not;
# - **no power**, if the check could not have failed. That is so if the prompt has no token that far back. It is also so if
#   nothing before the last token changes its logits: whoever never looks back has no reach to exceed.
#
# A change counts if it is more than rounding: more than the hundred-thousandth part of the largest logit, say.


# %% tags=["starter"]
def check_reach(model, ids, reach):
    """Is the last token free of what is further back than reach?

    model(ids) gives (logits, cache); ids are (1, tokens), tokens are below
    VOCABULARY.
    """
    asked = f"Is the last token free of all that is over {reach} back?"
    return Finding("reach", "passes", asked, "yes", "yes")  # yours


# %% tags=["solution"]
def check_reach(model, ids, reach):
    """Is the last token free of what is further back than reach?

    model(ids) gives (logits, cache); ids are (1, tokens), tokens are below
    VOCABULARY.
    """
    asked = f"Is the last token free of all that is over {reach} back?"

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
    """Try it on models that pass, that fail, and where it has no power."""

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
            raise ValueError("`found` must say in words what was seen")
        return found.verdict

    healthy = MODELS["D"]
    endless = Decoder(ROTATIONS["D"], endless_sees)
    short, longer = PROMPT[:, : REACH + 1], PROMPT[:, : REACH + 2]
    alike = torch.arange(VOCABULARY)[:, None].repeat(1, 24)
    cases = {
        "a healthy model": (healthy, PROMPT, REACH),
        "a model without a window": (endless, PROMPT, REACH),
        "a window that is one too wide": (WIDE, PROMPT, REACH),
        "a reach that is one too short": (healthy, PROMPT, REACH - 1),
        "a prompt with one token beyond": (WIDE, longer, REACH),
        "a prompt that ends at the reach": (endless, short, REACH),
        "a prompt far shorter than the reach": (endless, short[:, 6:], REACH),
        "a model of bigrams": (bigrams, PROMPT, REACH),
        "a model that rounds differently": (rounded, PROMPT, REACH),
        "prompts of one token, over and over": (endless, alike, REACH),
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
# Number the tokens from zero: the last is $n - 1$. Which is exactly `reach` steps back? All before that one are too far,
# and if there are none, you have your first **no power**.
#
# </details>
#
# <details markdown="1"><summary>Hint 2</summary>
#
# Ask the model three times: for the prompt; for the prompt with all far tokens changed; and for the prompt with all tokens
# changed but the last. Compare the logits of the last token alone. The third tells whether the second could have differed.
#
# `(ids + 1) % VOCABULARY` is another token everywhere.
#
# </details>
#
# <details markdown="1"><summary>Hint 3</summary>
#
# ```python
# first = ids.shape[1] - 1 - reach
# other = (ids + 1) % VOCABULARY
# far = torch.cat((other[:, :first], ids[:, first:]), 1)
# before = torch.cat((other[:, :-1], ids[:, -1:]), 1)
# ```
#
# If `first < 1`: no power. If `before` changes nothing: no power. Else `far` decides.
#
# </details>

# %%
for letter, model in (MODELS | {"too wide": WIDE}).items():
    found = check_reach(model, PROMPT, REACH)
    print(f"{letter:9} {found.verdict:9} {found.found}")

# %% [markdown]
# It finds the window that no comparison of the model with itself could find. And C passes! Its faults lie in paths
# that this prompt does not take: there is no padding here, and no cache. Your check has power over what it asks and over
# nothing else, like all the others.

# %% [markdown]
# ## What you can do now
#
# You can put a rotation and a model on trial without reading their code, tell a fault from what follows from it, and see
# in what passes where the fault is not. And your own checks say when they could not have failed. In a test, two lines
# keep what is right today:
#
# ```python
# findings = check_rotation(rotate, dim=128)
# assert_positions([*findings, check_reach(model, ids, reach)])
# ```
#
# - What each check asks, and what it cannot see: [broken in released code](../guide/broken.md).
# - Measurements for models that you can only run: [the lab on a released model](released_model.md), and
#   [debugging](../guide/debugging.md#where-it-breaks).
# - Masks, caches and padding, built from nothing: [the lab on decoding](cached_decoding.md).
