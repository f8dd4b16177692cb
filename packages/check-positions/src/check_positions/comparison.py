"""How two models differ in what they do with positions, and what it changes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from check_positions.checker import (
    Finding,
    check_layers,
    configured_frequencies,
    constant_input,
    model_class,
    read_layers,
)
from check_positions.config import Description, LayerKind, spans
from check_positions.explanation import digits, number

ANGLE = 0.1  # radians
LONG = (  # settings that act only in texts beyond the original length
    "rope_type", "factor", "long_factor", "original_max_position_embeddings",
    "max_position_embeddings",
)  # fmt: skip
WORDS = {  # the page that takes a config.json has the same
    "difference": "{what}{where}: {first} against {second}",
    "where": " (layers {spans})",
    "same": """\
Both configurations give the same rotation, windows and lengths.""",
    "incomplete": "each configuration must be complete; {kind}: {fault}",
    "guess": """\
{kind} is a guess from the keys, because the code that reads them was not \
measured or does not read all of them.""",
    "encoding": "encoding",
    "encoding_does": "No score is the same.",
    "layout": "layout",
    "layout_does": """\
With the same weights, all scores differ. Permute the weights of queries and \
keys to convert a model from one layout to the other.""",
    "unknown": "unknown",
    "layout_unknown": """\
Whether the scores agree is unknown; `positions check` measures the layout of \
a model.""",
    "layers": "number of layers",
    "layers_does": "Layers are compared as far as both models have them.",
    "longest": "named positions",
    "longest_does": """\
Software may refuse longer texts. No number changes, unless a scaling depends \
on this length.""",
    "channels": "rotated channels",
    "share": "{turned} of {head} channels",
    "channels_does": "Other channels are rotated, so no score is the same.",
    "frequencies": "frequencies",
    "frequencies_does": """\
{changed} of {pairs} pairs of channels rotate at another speed, by a factor of \
up to {ratio}. From a distance of {distance} on, an angle (of pair {pair}) \
differs by {angle} radians or more.""",
    "base": "base {base}",
    "scaled": "base {base}, {kind}",
    "by_factor": "base {base}, {kind} with factor {factor}",
    "long": "frequencies of long texts",
    "long_does": """\
Both rotate short texts in the same way, but not texts beyond the original \
length.""",
    "factor": "factor of cosines and sines",
    "factor_does": """\
In the second model, products of queries and keys are {ratio} times as \
large.""",
    "window": "window",
    "window_does": """\
Texts that fit into the smaller window give the same numbers; longer ones do \
not.""",
    "keys": "{window} keys",
    "chunks": "chunks of {chunk} tokens",
    "no_window": "no window",
}


@dataclass(frozen=True)
class Difference:
    """Hold one difference between two models.

    Attributes:
        what: What differs, such as "frequencies".
        layers: Numbers of the layers, from 0; empty for the whole model.
        first: The value in the first model.
        second: The value in the second model.
        effect: What the difference changes.
    """

    what: str
    layers: list[int]
    first: str
    second: str
    effect: str

    def __str__(self) -> str:
        where = _say("where", spans=spans(self.layers)) if self.layers else ""
        given = {"what": self.what, "first": self.first, "second": self.second}
        return f"{_say('difference', where=where, **given)}\n  {self.effect}"


def compare(first: Description, second: Description) -> list[Difference]:
    """Compare what two configurations do with positions.

    Args:
        first: The description of a config.json, from `describe_config`.
        second: That of another one.

    Returns:
        The differences; none if both give the same numbers.

    Raises:
        ValueError: If one of the two has missing or contradictory settings.
    """
    for told in (first, second):
        if told.faults:
            fault = told.faults[0]
            raise ValueError(
                _say("incomplete", kind=told.model_type, fault=fault)
            )
    if first.encoding != second.encoding:
        return [_whole("encoding", first.encoding, second.encoding)]
    found = []
    if first.layout != second.layout:
        layouts = [told.layout or _say("unknown") for told in (first, second)]
        known = first.layout and second.layout
        effect = _say("layout_does" if known else "layout_unknown")
        found += [Difference(_say("layout"), [], *layouts, effect)]
    a, b = _by_layer(first), _by_layer(second)
    if len(a) != len(b):
        found += [_whole("layers", str(len(a)), str(len(b)))]
    found += _layers(a, b)
    if first.longest != second.longest and first.longest and second.longest:
        lengths = (number(told.longest) for told in (first, second))
        found += [_whole("longest", *lengths)]
    return found


def compare_with_model(told: Description, folder: Path) -> list[Finding]:
    """Compare a configuration with the measured rotation of a model.

    Args:
        told: The description of the configuration.
        folder: Folder with the config.json and the weights of the model.

    Returns:
        The findings of `check_layers`.

    Raises:
        ValueError: If the model has another number of layers.
    """
    import transformers

    config = transformers.AutoConfig.from_pretrained(
        folder, trust_remote_code=False
    )
    kind, _ = model_class(config)
    model = kind.from_pretrained(folder, attn_implementation="eager")
    layers = read_layers(model, lambda n: model(**constant_input(model, n)))
    return check_layers(layers, _settings(told))


def _say(words: str, **values: object) -> str:
    return WORDS[words].format(**values)


def _whole(what: str, first: str, second: str) -> Difference:
    return Difference(_say(what), [], first, second, _say(f"{what}_does"))


def _settings(told: Description) -> list[dict[str, Any] | None]:
    """Return the rotation of each layer, None for a layer without one."""
    return [kind.settings or None for kind in _by_layer(told)]


def _by_layer(told: Description) -> list[LayerKind]:
    found = {layer: kind for kind in told.kinds for layer in kind.layers}
    known = [found[layer] for layer in sorted(found)]
    return known or told.kinds


def _layers(a: Sequence[LayerKind], b: Sequence[LayerKind]) -> list[Difference]:
    """Return the differences of layers; those that differ alike are one."""
    alike: dict[str, tuple[LayerKind, LayerKind, list[int]]] = {}
    for layer, (one, other) in enumerate(zip(a, b, strict=False)):
        key = repr([each._replace(layers=[]) for each in (one, other)])
        alike.setdefault(key, (one, other, []))[2].append(layer)
    return [
        Difference(_say(what), layers, first, second, effect)
        for one, other, layers in alike.values()
        for found in (_rotation(one, other), _sight(one, other))
        for what, first, second, effect in found
    ]


def _rotation(
    a: LayerKind, b: LayerKind
) -> Iterable[tuple[str, str, str, str]]:
    if (a.turned, a.head) != (b.turned, b.head):
        if a.turned or b.turned:
            shares = (_say("share", turned=each.turned, head=each.head)
                      for each in (a, b))  # fmt: skip
            yield "channels", *shares, _say("channels_does")
        return
    if not a.turned:
        return
    w, scale = configured_frequencies(a.settings, a.head)
    v, other = configured_frequencies(b.settings, b.head)
    if bool(((w - v).abs() > 1e-6 * w).any()):
        yield "frequencies", _shown(a), _shown(b), _angles(w, v)
    elif _beyond(a) != _beyond(b):
        yield "long", _shown(a), _shown(b), _say("long_does")
    if abs(scale - other) > 1e-6:
        effect = _say("factor_does", ratio=digits((other / scale) ** 2, 4))
        yield "factor", number(scale), number(other), effect


def _beyond(kind: LayerKind) -> list[Any]:
    given = kind.settings
    if given["rope_type"] not in ("dynamic", "longrope") or given.get("alpha"):
        return []
    return [given.get(key) for key in LONG]


def _shown(kind: LayerKind) -> str:
    given = kind.settings
    name = "scaled" if given["rope_type"] != "default" else "base"
    name = "by_factor" if given.get("factor") else name
    factor = number(given.get("factor") or 1)
    base = number(given["rope_theta"])
    return _say(name, base=base, kind=given["rope_type"], factor=factor)


def _angles(w: torch.Tensor, v: torch.Tensor) -> str:
    """Return from which distance on an angle differs, and where most."""
    apart = (w - v).abs()
    pair = int(apart.argmax())
    ratio = torch.maximum(w / v, v / w).max()
    return _say(
        "frequencies_does",
        changed=int((apart > 1e-6 * w).sum()),
        pairs=len(w),
        ratio=digits(float(ratio), 4),
        distance=number(max(1, -int(-ANGLE // float(apart[pair])))),
        pair=pair,
        angle=ANGLE,
    )


def _sight(a: LayerKind, b: LayerKind) -> Iterable[tuple[str, str, str, str]]:
    if (a.window, a.chunk) != (b.window, b.chunk):
        yield "window", _sees(a), _sees(b), _say("window_does")


def _sees(kind: LayerKind) -> str:
    if kind.chunk:
        return _say("chunks", chunk=number(kind.chunk))
    name = "keys" if kind.window else "no_window"
    return _say(name, window=number(kind.window))
