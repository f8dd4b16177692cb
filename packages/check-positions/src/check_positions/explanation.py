"""Explain in sentences what a model does with positions."""

import math

from check_positions.checker import configured_frequencies
from check_positions.config import Description, LayerKind, spans

WORDS = {  # the page that takes a config.json has the same
    "title": "{kind}: {what}",
    "unknown": "what it does with positions cannot be determined",
    "every": "RoPE in every layer",
    "some": "RoPE in {turning} of {layers} layers",
    "alibi": "ALiBi",
    "t5": "T5 relative position bias",
    "learned": "learned position embeddings",
    "none": "no RoPE",
    "alibi_does": """\
A bias that is linear in the distance is added to the attention scores. Each \
head has its own slope. Queries and keys are not rotated.""",
    "t5_does": """\
A learned bias for the bucket of each distance is added to the attention \
scores. All distances beyond the last bucket share one bias. Queries and keys \
are not rotated.""",
    "learned_does": """\
A row of a table is added to the embedding of each token. The table has no \
rows for later positions. Queries and keys are not rotated.""",
    "each_layer": "Each layer",
    "all_layers": "All {layers} layers ({kind})",
    "some_layers": "{many} of {layers} layers ({kind}): {spans}",
    "rotates": """\
RoPE rotates {share} channels of each query and key, {layout}, with base \
{base}.""",
    "all_channels": "all {head}",
    "some_channels": "{turned} of {head}",
    "layout": "in {layout} layout",
    "no_layout": "in an unknown layout",
    "bare": """\
No rotation (NoPE). In these layers, only the mask distinguishes earlier \
tokens from later ones.""",
    "linear_attention": """\
No rotation. In these layers, a recurrence carries the order of the tokens.""",
    "mamba": """\
No rotation. In these layers, a recurrence carries the order of the tokens.""",
    "conv": """\
No rotation. In these layers, a convolution carries the order of the tokens.""",
    "cross_attention": """\
No rotation. These layers attend to another input, such as an image.""",
    "window": "A token attends to at most {window} keys, itself included.",
    "chunk": """\
A token attends only to keys in its own chunk of {chunk} tokens.""",
    "yarn": """\
YaRN divides low frequencies by {factor}, keeps high ones, and blends those \
between.""",
    "llama3": """\
The scaling of Llama 3 divides low frequencies by {factor}, keeps high ones, \
and blends those between.""",
    "linear": """\
All frequencies are divided by {factor} (position interpolation).""",
    "dynamic": """\
In texts beyond the original length, the base grows with the length of the \
text (dynamic NTK, factor {factor}).""",
    "alpha": "The base is raised for texts of all lengths, by alpha {alpha}.",
    "longrope": """\
LongRoPE divides each frequency by its own factor, and by another factor in \
texts beyond the original length.""",
    "proportional": """\
Only the fastest frequencies of the whole head rotate it.""",
    "original": "The original length is {original} tokens.",
    "multiplied": "Cosines and sines are multiplied by {by}.",
    "turns": """\
The fastest pair of channels makes a full rotation in {fast} tokens, the \
slowest in {slow}.""",
    "within": """\
Within {longest} positions, {full} of {pairs} pairs make a full rotation.""",
    "longest": "The configuration names {longest} positions.",
    "guess_unread": """\
This is a guess from the keys, because the code that reads them does not read \
all positional keys of this file.""",
    "guess_unknown": """\
This is a guess from the keys, because the code that reads them was not \
measured.""",
    "pages": "In the guide: {pages}",
}
PAGES = {  # of the guide, by what a model has
    "rope": "guide/rope/",
    "scaled": "guide/long-context/",
    "alibi": "guide/bias/",
    "t5": "guide/bias/",
    "learned": "guide/learned/",
    "none": "guide/no-position/",
    "bare": "guide/no-position/",
}


def explain(told: Description) -> list[str]:
    """Return what a model does with positions, layer kind by layer kind.

    Args:
        told: The description of its config.json, from `describe_config`.

    Returns:
        Lines of text. A line that begins with a space belongs to the heading
        above it, and a line that begins with an exclamation mark is a note.
    """
    lines = [_say("title", kind=told.model_type, what=_what(told)), ""]
    lines += [f"! {fault}" for fault in told.faults]
    if not told.faults:
        lines += _body(told)
    if told.longest:
        lines += [_say("longest", longest=number(told.longest))]
    if told.guess:
        why = "guess_unread" if told.known else "guess_unknown"
        lines += [f"! {_say(why)}"]
    lines += [f"! {note}" for note in told.notes]
    return [*lines, _say("pages", pages=", ".join(_pages(told)))]


def number(x: float) -> str:
    """Return a number with its thousands separated, or six digits of it.

    Args:
        x: The number.

    Returns:
        The number as text, such as "1,000,000" or "1.13863".
    """
    return f"{x:,.0f}" if x == int(x) else digits(x, 6)


def digits(x: float, many: int) -> str:
    """Return a number with so many digits; a tie is rounded up.

    Args:
        x: The number, 0 or more.
        many: Number of digits.

    Returns:
        The number as text, such as "169,500" or "1.139".
    """
    kept = float(f"{x * (1 + 1e-12):.{many}g}")
    if kept == int(kept):
        return f"{kept:,.0f}"
    return f"{kept:.10f}".rstrip("0")


def _say(words: str, **values: object) -> str:
    return WORDS[words].format(**values)


def _what(told: Description) -> str:
    if told.faults:
        return _say("unknown")
    if told.encoding != "rope":
        return _say(told.encoding)
    turning = sum(len(kind.layers) for kind in told.kinds if kind.turned)
    layers = _layers(told)
    name = "some" if turning < layers else "every"
    return _say(name, turning=turning, layers=layers)


def _layers(told: Description) -> int:
    return sum(len(kind.layers) for kind in told.kinds)


def _body(told: Description) -> list[str]:
    if told.encoding == "none":
        return [part.text for part in told.parts if part.kind == "fact"]
    if told.encoding != "rope":
        return [_say(f"{told.encoding}_does")]
    lines = []
    for kind in told.kinds:
        lines += [_heading(kind, _layers(told))]
        lines += [f"  {line}" for line in _layer(kind, told)]
    return lines


def _heading(kind: LayerKind, layers: int) -> str:
    many = len(kind.layers)
    name = "some_layers" if many < layers else "all_layers"
    where = spans(kind.layers)
    said = _say(name, many=many, layers=layers, kind=kind.kind, spans=where)
    return said if many else _say("each_layer")


def _layer(kind: LayerKind, told: Description) -> list[str]:
    if not kind.turned:
        own = kind.kind if kind.kind in WORDS else "bare"
        return [_say(own), *_seen(kind)]
    whole = kind.turned == kind.head
    share = "all_channels" if whole else "some_channels"
    rotates = _say(
        "rotates",
        share=_say(share, turned=kind.turned, head=kind.head),
        layout=_say("layout" if told.layout else "no_layout",
                    layout=told.layout),
        base=number(kind.settings["rope_theta"]),
    )  # fmt: skip
    turns = _turns(kind, told.longest)
    return [rotates, *_scaling(kind), *turns, *_seen(kind)]


def _seen(kind: LayerKind) -> list[str]:
    if kind.window:
        return [_say("window", window=number(kind.window))]
    if kind.chunk:
        return [_say("chunk", chunk=number(kind.chunk))]
    return []


def _scaling(kind: LayerKind) -> list[str]:
    """Return what a scaling does to the frequencies, [] without one."""
    given = kind.settings
    name = given["rope_type"]
    if name == "default":
        return []
    name = "alpha" if given.get("alpha") else name
    values = {"factor": number(given.get("factor") or 1),
              "alpha": number(given.get("alpha") or 1)}  # fmt: skip
    lines = [_say(name, **values)]
    if original := given.get("original_max_position_embeddings"):
        lines += [_say("original", original=number(original))]
    _, by = configured_frequencies(given, kind.head)
    return lines + [_say("multiplied", by=digits(by, 4))] * (by != 1)


def _turns(kind: LayerKind, longest: int) -> list[str]:
    """Return how far the fastest and the slowest pair of channels turn."""
    lengths = math.tau / configured_frequencies(kind.settings, kind.head)[0]
    fast, slow = (_count(float(n)) for n in (lengths.min(), lengths.max()))
    lines = [_say("turns", fast=fast, slow=slow)]
    if longest:
        full = int((lengths <= longest).sum())
        given = {"longest": number(longest), "pairs": len(lengths)}
        lines += [_say("within", full=full, **given)]
    return lines


def _count(tokens: float) -> str:
    return f"{tokens:.2f}" if tokens < 100 else f"{tokens:,.0f}"


def _pages(told: Description) -> list[str]:
    found = [told.encoding]
    found += ["bare"] * any(not kind.turned for kind in told.kinds)
    ropes = [kind.settings for kind in told.kinds if kind.turned]
    scaled = any(rope["rope_type"] != "default" for rope in ropes)
    found += ["scaled"] * scaled
    return list(dict.fromkeys(PAGES[each] for each in found))
