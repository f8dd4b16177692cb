"""How two models differ in what they do with positions, and what that does to numbers."""

import itertools
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

ANGLE = 0.1  # radians: a difference that changes scores visibly


@dataclass(frozen=True)
class Difference:
    """Hold one difference between two models.

    Attributes:
        what: What differs, such as "rotation".
        layers: Numbers of the layers, from 0; empty for the whole model.
        first: The value in the first model.
        second: The value in the second model.
        effect: What the difference does.
    """

    what: str
    layers: list[int]
    first: str
    second: str
    effect: str

    def __str__(self) -> str:
        where = f" (layers {spans(self.layers)})" if self.layers else ""
        return f"{self.what}{where}: {self.first} against {self.second}\n  {self.effect}"


def compare(first: Description, second: Description) -> list[Difference]:
    """Compare what two configurations do with positions.

    Args:
        first: The description of one config.json, from `describe_config`.
        second: That of the other.

    Returns:
        The differences; none if both give the same numbers.

    Raises:
        ValueError: If one of the two has missing or contradictory settings.
    """
    for told in (first, second):
        if told.faults:
            raise ValueError(
                f"each configuration must be complete; {told.model_type}: {told.faults[0]}"
            )
    found = []
    if first.encoding != second.encoding:
        return [
            Difference(
                "encoding",
                [],
                first.encoding,
                second.encoding,
                "No score is the same.",
            )
        ]
    if first.layout != second.layout:
        effect = "With the same weights, all scores differ: weights must be permuted from one to the other."
        found += [
            Difference(
                "layout",
                [],
                first.layout or "unknown",
                second.layout or "unknown",
                effect,
            )
        ]
    a, b = _by_layer(first), _by_layer(second)
    if len(a) != len(b):
        effect = "Layers are compared as far as both models have them."
        found += [
            Difference("number of layers", [], str(len(a)), str(len(b)), effect)
        ]
    found += list(_layers(a, b))
    if first.longest != second.longest:
        effect = "This is the length that software allows; it changes no number unless a scaling uses it."
        found += [
            Difference(
                "named positions",
                [],
                f"{first.longest:,}",
                f"{second.longest:,}",
                effect,
            )
        ]
    return found


def compare_with_model(told: Description, folder: Path) -> list[Finding]:
    """Compare a configuration with the measured rotation of a model.

    Args:
        told: The description of the configuration.
        folder: Folder with the config.json and the weights of the model.

    Returns:
        The findings of `check_layers`.

    Raises:
        ValueError: If the model does not have as many layers as the configuration.
    """
    import transformers

    config = transformers.AutoConfig.from_pretrained(
        folder, trust_remote_code=False
    )
    kind, _ = model_class(config)
    model = kind.from_pretrained(folder, attn_implementation="eager").eval()
    with torch.no_grad():
        layers = read_layers(
            model, lambda token: model(**constant_input(model, token))
        )
    return check_layers(layers, settings_by_layer(told))


def settings_by_layer(told: Description) -> list[dict[str, Any] | None]:
    """Return the rotation of each layer, None for a layer without rotation."""
    return [kind.settings or None for kind in _by_layer(told)]


def _by_layer(told: Description) -> list[LayerKind]:
    found = {layer: kind for kind in told.kinds for layer in kind.layers}
    return [found[layer] for layer in sorted(found)] or [
        kind for kind in told.kinds if not kind.layers
    ]


def _layers(
    a: Sequence[LayerKind], b: Sequence[LayerKind]
) -> Iterable[Difference]:
    """Yield the differences of layers; layers that differ in the same way are one."""
    alike: dict[str, list[int]] = {}
    pairs: dict[str, tuple[LayerKind, LayerKind]] = {}
    for layer, (one, other) in enumerate(zip(a, b, strict=False)):
        key = repr([each._replace(layers=[]) for each in (one, other)])
        alike.setdefault(key, []).append(layer)
        pairs[key] = one, other
    for key, layers in alike.items():
        for what, first, second, effect in itertools.chain(
            _rotation(*pairs[key]), _sight(*pairs[key])
        ):
            yield Difference(what, layers, first, second, effect)


def _rotation(
    a: LayerKind, b: LayerKind
) -> Iterable[tuple[str, str, str, str]]:
    if not a.turned and not b.turned:
        return
    if (a.turned, a.head) != (b.turned, b.head):
        widths = (f"{each.turned} of {each.head} channels" for each in (a, b))
        yield (
            "rotated channels",
            *widths,
            "Other channels are rotated, so no score is the same.",
        )
        return
    (w, scale), (v, other) = (
        configured_frequencies(each.settings, each.head) for each in (a, b)
    )
    if not torch.allclose(w, v, rtol=1e-6, atol=0):
        yield "frequencies", _shown(a), _shown(b), _angles(w, v)
    elif _beyond(a) != _beyond(b):
        effect = "Both rotate short texts in the same way, but not texts beyond the original length."
        yield "frequencies of long texts", _shown(a), _shown(b), effect
    if abs(scale - other) > 1e-6:
        ratio = (other / scale) ** 2
        effect = f"In the second model, products of queries and keys are {ratio:.4g} times as large."
        yield (
            "factor of cosines and sines",
            f"{scale:.6g}",
            f"{other:.6g}",
            effect,
        )


def _beyond(kind: LayerKind) -> Any:
    """Return the settings that act only in texts beyond the original length."""
    given = kind.settings
    if given.get("rope_type") not in ("dynamic", "longrope"):
        return None
    return {k: given.get(k) for k in ("factor", "long_factor", "original_max_position_embeddings",
                                      "max_position_embeddings", "alpha")}  # fmt: skip


def _shown(kind: LayerKind) -> str:
    given = kind.settings
    said = f"base {given['rope_theta']:,.10g}"
    if given["rope_type"] != "default":
        said += f", {given['rope_type']}"
        said += (
            f" with factor {given['factor']:g}" if given.get("factor") else ""
        )
    return said


def _angles(w: torch.Tensor, v: torch.Tensor) -> str:
    """Return from which distance on angles differ, and where most."""
    apart = (w - v).abs()
    pair = int(apart.argmax())
    distance = max(1, -int(-ANGLE // float(apart[pair])))
    ratio = float((w / v).log().abs().max().exp())
    changed = int((apart > 1e-6 * w).sum())
    return (
        f"{changed} of {len(w)} pairs of channels turn at other speeds, by a factor of up to {ratio:.4g}. "
        f"From a distance of {distance:,} tokens on, an angle (of pair {pair}) differs by {ANGLE} radians or more."
    )


def _sight(a: LayerKind, b: LayerKind) -> Iterable[tuple[str, str, str, str]]:
    if (a.window, a.chunk) != (b.window, b.chunk):
        effect = "Texts that fit into the smaller one give the same numbers, and longer ones do not."
        yield "window", _sees(a), _sees(b), effect


def _sees(kind: LayerKind) -> str:
    if kind.chunk:
        return f"chunks of {kind.chunk:,} tokens"
    return f"{kind.window:,} keys" if kind.window else "no window"
