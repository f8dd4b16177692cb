"""What a narrow model with random weights does on a text, picture or sound that is the same everywhere.

The reading of layers is check_positions'. All layers of the configuration are built; heads and windows
are few and small.
"""

import inspect
import re

import torch

from census.streams import added
from snippets.check_positions import constant_input, enliven, read_layers, small

EVERY = 1_000  # layers: more than any configuration has
HIDDEN = -1e4  # what a mask adds to a score, or less


def measured(cls, config):
    """Facts by name. ValueError: there is no input for the model; else whatever the model raises."""
    torch.manual_seed(0)
    model = cls(small(config, layers=EVERY)).eval()
    model = model.get_encoder() if getattr(config, "is_encoder_decoder", False) else model
    enliven(model)

    def run(token):
        return model(**_input(model, token))

    return read(read_layers(model, run)) | {"added": added(model, run)}


def read(layers):
    """The facts that the layers show, in the order of their depth; none where no attention ran."""
    if not layers:
        return {"attention": "none seen"}
    turned = [layer for layer in layers if layer.rotation]
    axes = [layer for layer in layers if layer.kind == "turns on axes"]
    facts = {"layers": len({_depth(layers, n) for n in range(len(layers))}), "rotation": _rotates(layers)}
    if turned or axes:
        facts["bare"] = _where(layers, lambda layer: layer.kind in ("still", "adds", "scales"))
    if axes:
        facts["axes"] = "yes"
    if turned:
        facts["layout"] = sorted({layer.rotation.layout for layer in turned})
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
    """Of a head's channels: halves lie apart by half of what turns, be the last too slow to be seen."""
    first, second = rotation.pairs[0].tolist()
    turned = 2 * (second - first) if rotation.layout == "half" else 2 * len(rotation.pairs)
    return round(turned / rotation.dim, 4)


def _rotates(layers):
    kinds = {layer.kind for layer in layers}
    if kinds & {"turns", "turns on axes"}:
        return "yes"
    return "unknown" if "neither" in kinds else "no"


def _of_scores(layers, seen):
    """Windows, sinks, and what places add to scores whose queries do not move."""
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
    """Does a late token see fewer keys than an early one would let it expect?"""
    tokens = scores.shape[-2]
    keys = (scores[0, 0, :, :tokens] > HIDDEN).sum(-1)
    return scores.shape[-1] - tokens in (0, 1) and int(keys[-1]) < tokens


def _bias(scores):
    """What places add to the scores of the query in the middle: "no", "linear", "table" or "in_score"."""
    tokens = scores.shape[-2]
    row = scores[:, :, tokens // 2, :tokens].double()
    row = row[:, :, (row > HIDDEN).all((0, 1))]
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


def _input(model, token):
    """Inputs of one value everywhere, for models that hear, too."""
    name, config = model.main_input_name, model.config
    taken = list(inspect.signature(model.forward).parameters)
    if "grid_thw" in taken:  # patches of a picture of 16 by 16, each with its colours in a row
        given = config.to_dict()
        width = given.get("in_channels", 3) * given.get("temporal_patch_size", 1) * given["patch_size"] ** 2
        patch = torch.randn(width, generator=torch.Generator().manual_seed(token))
        return {taken[0]: patch.repeat(256, 1), "grid_thw": torch.tensor([[1, 16, 16]])}
    if name == "inputs_embeds":
        vector = torch.randn(config.hidden_size, generator=torch.Generator().manual_seed(token))
        return {name: vector.expand(1, 48, -1)}
    if name == "input_values":
        return {name: torch.full((1, 8_000), 0.07 * (token - 4))}
    if name == "input_features":
        bins = next((n for n in map(config.to_dict().get, BINS) if isinstance(n, int)), 80)
        column = torch.randn(bins, generator=torch.Generator().manual_seed(token))
        length = 2 * (getattr(config, "max_source_positions", None) or 32)
        first = hasattr(model, "conv1")  # these convolve over time, which they want last
        return {name: column[:, None].expand(1, bins, length) if first else column.expand(1, length, bins)}
    return constant_input(model, token)


BINS = ("num_mel_bins", "feature_size", "input_feat_per_channel", "feature_projection_input_dim")
