"""What a model does with positions, in sentences."""

import math
from collections.abc import Mapping
from typing import Any

from check_positions.checker import configured_frequencies
from check_positions.config import Description, LayerKind, spans

RECURRENT = {
    "linear_attention": "a recurrence",
    "mamba": "a recurrence",
    "conv": "a convolution",
}
WITHOUT = {
    "alibi": (
        "ALiBi: a bias that is linear in the distance is added to the attention scores.",
        "Each head has its own slope. Queries and keys are not rotated.",
    ),
    "t5": (
        "T5 relative position bias: a learned bias for the bucket of each distance is added to the scores.",
        "All distances beyond the last bucket share one bias. Queries and keys are not rotated.",
    ),
    "learned": (
        "Learned position embeddings: a row of a table is added to the embedding of each token.",
        "The table has no rows for later positions. Queries and keys are not rotated.",
    ),
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
        Lines of text. A line that begins with a space belongs to the heading above it, and a line that begins
        with an exclamation mark is a note.
    """
    lines = [f"{told.model_type}: {_title(told)}", ""]
    if told.faults:
        lines += [f"! {fault}" for fault in told.faults]
    else:
        lines += [*WITHOUT.get(told.encoding, [])]
        lines += _unrotated(told) if told.encoding == "none" else []
        for kind in told.kinds:
            lines += [
                _heading(kind, _layers(told)),
                *(f"  {line}" for line in _layer(kind, told)),
            ]
    lines += [f"The configuration names {told.longest:,} positions."] * bool(
        told.longest
    )
    if told.guess:
        why = (
            "does not read all positional keys of this file"
            if told.known
            else "was not measured"
        )
        lines += [
            f"! This is a guess from the keys, because the code that reads them {why}."
        ]
    lines += [f"! {note}" for note in told.notes]
    return [*lines, f"In the guide: {', '.join(_pages(told))}"]


def _title(told: Description) -> str:
    if told.faults:
        return "what it does with positions cannot be determined"
    if told.encoding != "rope":
        return {"alibi": "ALiBi", "t5": "T5 relative position bias", "learned": "learned position embeddings",
                "none": "no RoPE"}[told.encoding]  # fmt: skip
    turning = sum(len(kind.layers) for kind in told.kinds if kind.turned)
    some = turning < _layers(told)
    return (
        f"RoPE in {turning} of {_layers(told)} layers"
        if some
        else "RoPE in every layer"
    )


def _layers(told: Description) -> int:
    return sum(len(kind.layers) for kind in told.kinds)


def _unrotated(told: Description) -> list[str]:
    return [part.text for part in told.parts if part.kind == "fact"]


def _heading(kind: LayerKind, layers: int) -> str:
    if not kind.layers:
        return "Each layer"
    if len(kind.layers) == layers:
        return f"All {layers} layers ({kind.kind})"
    return f"{len(kind.layers)} of {layers} layers ({kind.kind}): {spans(kind.layers)}"


def _layer(kind: LayerKind, told: Description) -> list[str]:
    if not kind.turned:
        return [_still(kind), *_seen(kind)]
    layout = (
        f"in {told.layout} layout" if told.layout else "in an unknown layout"
    )
    whole = (
        f"all {kind.head}"
        if kind.turned == kind.head
        else f"{kind.turned} of {kind.head}"
    )
    base = kind.settings["rope_theta"]
    return [
        f"RoPE rotates {whole} channels of each query and key, {layout}, with base {base:,.10g}.",
        *_scaling(kind.settings),
        *_turns(kind, told.longest),
        *_seen(kind),
    ]


def _still(kind: LayerKind) -> str:
    if carrier := RECURRENT.get(kind.kind):
        return f"No rotation. In these layers, {carrier} carries the order of the tokens."
    if kind.kind == "cross_attention":
        return "No rotation. These layers attend to another input, such as an image."
    return "No rotation (NoPE). In these layers, only the mask distinguishes earlier tokens from later ones."


def _seen(kind: LayerKind) -> list[str]:
    if kind.window:
        return [
            f"A token attends to at most {kind.window:,} keys, itself included."
        ]
    if kind.chunk:
        return [
            f"A token attends only to keys in its own chunk of {kind.chunk:,} tokens."
        ]
    return []


def _scaling(given: Mapping[str, Any]) -> list[str]:
    """Return what a scaling does to the frequencies, [] without one."""
    kind, factor = given["rope_type"], given.get("factor")
    original = given.get("original_max_position_embeddings")
    trained = (
        f" It assumes an original length of {original:,.0f} tokens."
        if original
        else ""
    )
    if kind in ("yarn", "llama3"):
        name = {"yarn": "YaRN", "llama3": "The scaling of Llama 3"}[kind]
        said = f"{name} divides low frequencies by {factor:g}, keeps high ones, and blends those between."
        return [said + trained, *_stretched(given)]
    if kind == "dynamic" and given.get("alpha"):
        return [
            f"The base is raised for all lengths, by alpha {given['alpha']:g}."
        ]
    return {
        "linear": [f"All frequencies are divided by {factor} (position interpolation)."],
        "dynamic": ["In texts beyond the original length, the base grows with the length of the text "
                    f"(dynamic NTK, factor {factor})."],
        "longrope": ["LongRoPE: each frequency is divided by its own factor, and longer texts use other "
                     f"factors.{trained}"],
        "proportional": ["Only the fastest frequencies of the whole head rotate it."],
    }.get(kind, [])  # fmt: skip


def _stretched(given: Mapping[str, Any]) -> list[str]:
    _, by = configured_frequencies(given, 64)
    return [f"Cosines and sines are multiplied by {by:.4g}."] if by != 1 else []


def _turns(kind: LayerKind, longest: int) -> list[str]:
    """Return how far the fastest and the slowest pair of channels turn."""
    lengths = math.tau / configured_frequencies(kind.settings, kind.head)[0]
    fast, slow = float(lengths.min()), float(lengths.max())
    said = f"The fastest pair of channels makes a full turn in {_count(fast)} tokens, the slowest in {_count(slow)}."
    if not longest:
        return [said]
    full = int((lengths <= longest).sum())
    return [
        f"{said} Within {longest:,} positions, {full} of {len(lengths)} pairs make a full turn."
    ]


def _count(tokens: float) -> str:
    return f"{tokens:.2f}" if tokens < 100 else f"{tokens:,.0f}"


def _pages(told: Description) -> list[str]:
    found = [told.encoding]
    found += ["bare"] * any(not kind.turned for kind in told.kinds)
    scaled = {
        kind.settings.get("rope_type", "default") for kind in told.kinds
    } - {"default"}
    found += ["scaled"] * bool(scaled)
    return list(dict.fromkeys(PAGES[each] for each in found))
