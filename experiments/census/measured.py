"""What a narrow model with random weights does on a text, picture or sound that is the same everywhere.

The reading of layers is check_positions'. All layers of the configuration are built; heads and windows
are few and small.
"""

import copy
import re
from contextlib import contextmanager

import torch

from experiments.census.inputs import constant_inputs, reads
from experiments.census.streams import added, is_attention
from snippets.check_positions import read_layers, scale_up_weights, small_config

EVERY = 1_000  # layers or heads: more than any configuration has
FIRST = 6
OF_DEPTHS = ("layers", "bare", "windows")
HIDDEN = 5e3  # how far a hidden score lies below the largest of its query, or further
UNBUILT = "its narrow copy cannot be built"
FILLED = {  # keys that some defaults leave empty although their models cannot be built or run without
    "head_dim": lambda config: config.hidden_size // config.num_attention_heads,
    "num_key_value_heads": lambda config: config.num_attention_heads,
    "n_routed_experts": lambda config: 4,
    "n_shared_experts": lambda config: 1,
    "num_experts_per_tok": lambda config: 2,
    "layer_types": lambda config: ["full_attention"] * config.num_hidden_layers,
    "mlp_layer_types": lambda config: ["dense"] * config.num_hidden_layers,
}


class NotMeasuredError(Exception):
    """Says in a sentence why a model cannot be measured."""


def measured(cls, config):
    """Facts by name, of all layers, narrow; where that does not run, of the first ones, as wide as they are.

    NotMeasuredError: the model cannot be built, needs an unknown input, or does not run.
    """
    try:
        return _measured(cls, _narrow(config, EVERY))
    except NotMeasuredError as error:
        try:
            facts = _measured(cls, _narrow(config, FIRST, EVERY))
        except NotMeasuredError:
            if str(error).startswith(UNBUILT):
                with _said("the configuration itself builds no model"), torch.device("meta"):
                    cls(config)
            raise error from None
    cut = _narrow(config, FIRST).to_dict() != _narrow(config, EVERY).to_dict()
    return {name: fact for name, fact in facts.items() if not (cut and name in OF_DEPTHS)}


def filled(config):
    """A copy in which the keys of FILLED that were empty have values, and these keys with their values."""
    config, given = copy.deepcopy(config), {}
    for name, value in FILLED.items():
        if name in vars(config) and vars(config)[name] is None:
            given[name] = value(config)
            object.__setattr__(config, name, given[name])
    return config, given


def _narrow(config, layers, heads=4):
    """As the checker narrows it, but for keys that are picked by their scores, and windows in pictures."""
    narrow = small_config(config, layers, heads)
    for name in ("index_topk", "window_size" if hasattr(config, "patch_size") else ""):
        if hasattr(config, name):
            setattr(narrow, name, getattr(config, name))
    if isinstance(width := vars(config).get("attention_hidden_size"), int):
        narrow.attention_hidden_size = width * narrow.hidden_size // config.hidden_size
    if "use_cache" in vars(narrow):
        narrow.use_cache = False
    return narrow


def _measured(cls, config):
    torch.manual_seed(0)
    with _said(UNBUILT):
        model = cls(config).eval()
    model = model.get_encoder() if getattr(config, "is_encoder_decoder", False) else model
    model.config = getattr(model, "config", config)
    scale_up_weights(model)
    with _said("it needs an input that the census does not make"):
        given = constant_inputs(model, 0)
    with _said("its narrow copy does not run"):
        layers = read_layers(model, lambda token: model(**constant_inputs(model, token)))
        table = added(model, lambda token: model(**constant_inputs(model, token, boxes=False)))
    return {"reads": reads(given)} | read(layers, attends(model)) | {"added": table}


@contextmanager
def _said(why):
    """An error inside is raised as a sentence that begins with why."""
    try:
        yield
    except Exception as error:
        first = next((line for line in str(error).splitlines() if line.strip()), "")
        raise NotMeasuredError(f"{why} ({type(error).__name__}: {first[:140]})") from error


def attends(model):
    """Is anything in the model called an attention?"""
    return any(is_attention(module) for module in model.modules())


def read(layers, attends=True):
    """The facts that the layers show, in the order of their depth; none where no attention ran."""
    if not layers:
        return {"attention": "unknown" if attends else "no"}
    turned = [layer for layer in layers if layer.rotation]
    axes = [layer for layer in layers if layer.kind == "turns on axes"]
    facts = {"attention": "yes", "layers": len({_depth(layers, n) for n in range(len(layers))})}
    facts["rotation"] = _rotates(layers)
    if turned or axes:
        facts["bare"] = _where(layers, lambda layer: layer.kind in ("still", "adds", "scales"))
        facts["layout"] = sorted({layer.rotation.layout for layer in turned} | ({"axes"} if axes else set()))
    if turned:
        facts["share"] = sorted({_share(layer.rotation) for layer in turned})
        told = [layer.rotation.settings for layer in turned]
        facts["base"] = sorted({float(f"{one['rope_theta']:.3g}") for one in told if one.get("rope_theta")})
        facts["scaling"] = sorted(
            {one["rope_type"] for one in told if one.get("rope_type", "default") != "default"}
        )
    facts["temperature"] = "yes" if any(layer.kind == "scales" for layer in layers) else "no"
    seen = [layer for layer in layers if layer.scores is not None and layer.scores.shape[-2] > 8]
    return facts | (_of_scores(layers, seen) if seen else {})


def _share(rotation):
    """Of a head's channels, as the spelling of the layer has it, which knows of pairs too slow to be seen."""
    return round(rotation.settings.get("partial_rotary_factor", 1.0), 4)


def _rotates(layers):
    kinds = {layer.kind for layer in layers}
    if kinds & {"turns", "turns on axes"}:
        return "yes"
    return "unlike one" if "neither" in kinds else "no"


def _of_scores(layers, seen):
    """Windows, sinks, and what positions add to scores whose queries do not move."""
    still = [layer for layer in seen if layer.kind in ("still", "adds")]
    how = {_bias(layer.scores) for layer in still} - {"no"}
    return {
        "windows": _where(layers, lambda layer: layer.scores is not None and _windowed(layer.scores)),
        "sinks": "yes" if any(_sunk(layer.scores) for layer in seen) else "no",
        "biased": next((kind for kind in ("linear", "table") if kind in how), "no"),
        "in_score": "yes" if "in_score" in how else "no",
    }


def _sunk(scores):
    return scores.shape[-1] == scores.shape[-2] + 1


def _windowed(scores):
    """Does the last token see itself and near ones alone? What is picked by its scores lies anywhere."""
    tokens = scores.shape[-2]
    seen = _visible(scores[0, 0, -1, :tokens])
    near = seen[tokens - int(seen.sum()) :]
    return scores.shape[-1] - tokens in (0, 1) and len(near) < tokens and bool(near.all())


def _visible(scores):
    return scores > scores.amax(-1, keepdim=True) - HIDDEN


def _bias(scores):
    """What positions add to the scores of the query in the middle: "no", "linear", "table" or "in_score"."""
    tokens = scores.shape[-2]
    row = scores[:, :, tokens // 2, :tokens].double()
    row = row[:, :, _visible(row).all((0, 1))]
    if row.shape[-1] < 4:
        return "no"
    size = float(row.abs().max()) or 1.0
    moved = row - row[..., :1]
    if float(moved.abs().max()) <= 1e-5 * size:
        return "no"
    if float((moved[0] - moved[1]).abs().max()) > 1e-4 * size:
        return "in_score"
    bends = moved[0].diff(dim=-1).diff(dim=-1).abs().max()
    return "linear" if float(bends) <= 1e-5 * size else "table"


def _where(layers, holds):
    return sorted({_depth(layers, n) for n, layer in enumerate(layers) if holds(layer)})


def _depth(layers, n):
    """The number of a layer in the model's list, or of its attention where the path has none."""
    numbers = re.findall(r"\.(\d+)\.", layers[n].path)
    return int(numbers[0]) if numbers else n
