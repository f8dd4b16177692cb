"""Inputs of one content at all positions, for models that read, see, hear or continue a series.

Where a model is given positions, as the boxes of words on a page, these differ from token to token.
"""

import inspect
import math

import torch

from snippets.check_positions import constant_input

TOKENS = 48
WIDTHS = ("input_dim", "hidden_size", "d_model", "hidden_dim", "embed_dim", "dim")
BINS = ("num_mel_bins", "feature_size", "input_feat_per_channel", "feature_projection_input_dim", "input_dim")
TEXTS = ("max_position_embeddings", "n_positions")
VECTORS = ("inputs_embeds", "hidden_states", "query_embeds", "encoder_hidden_states")
MASKS = ("attention_mask", "mask", "input_features_mask", "padding_mask", "audio_mel_mask")


def constant_inputs(model, token, boxes=True):
    """What the model must be given, another content for another token.

    boxes: whether each token has a box of its own, to the right of and below the one before.
    ValueError: an input that is not known here.
    """
    taken = inspect.signature(model.forward).parameters
    needed = [
        name
        for name, one in taken.items()
        if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD
    ]
    main = getattr(model, "main_input_name", None)
    main = [main] if main in taken else [] if needed else list(taken)[:1]
    given = {"use_cache": False} if "use_cache" in taken else {}
    for name in dict.fromkeys([*main, *needed, *(["bbox"] if "bbox" in taken else [])]):
        given |= _made(name, model, token, taken)
    if "bbox" in given and boxes:
        near = torch.arange(TOKENS)[:, None]
        given["bbox"] = torch.cat([near, near, near + 1, near + 1], -1)[None, : given["input_ids"].shape[1]]
    return given


def reads(given):
    """text, pictures, films, sound, series or vectors, by the names of what a model was given."""
    found = [KINDS[name] for name in given if name in KINDS]
    return found[0] if found else "vectors"


def _made(name, model, token, taken):
    config = model.config
    if "grid_thw" in taken and name != "grid_thw":
        return _patches(name, config, token) | {"grid_thw": torch.tensor([[1, 16, 16]])}
    if name == "grid_thw":
        return {}
    if name in VECTORS:
        return {name: _random(token, _first(config, WIDTHS)).expand(1, TOKENS, -1)}
    if name in MASKS:
        return {name: torch.ones(1, TOKENS, dtype=torch.int64)}
    if name == "bbox":
        return {name: torch.zeros(1, TOKENS, 4, dtype=torch.int64)}
    maker = MAKERS.get(name)
    return {name: maker(model, token)} if maker else constant_input(model, token)


def _patches(name, config, token):
    """Patches of a picture of 16 by 16, each with its colours in a row."""
    given = config.to_dict()
    frames = given.get("temporal_patch_size") or 1
    width = given.get("in_channels", given.get("num_channels", 3)) * frames * given["patch_size"] ** 2
    return {name: _random(token, width).repeat(256, 1)}


def _text(model, token):
    """As many tokens as there are rows in a table that has few."""
    most = _first(model.config, TEXTS, TOKENS)
    return torch.full((1, min(TOKENS, most)), 10 + token)


def _sound(model, token):
    """A wave, or the spectrogram that some call so."""
    bins = getattr(model.config, "num_mel_bins", None)
    if bins:
        return _random(token, bins).expand(1, getattr(model.config, "max_length", 1_024), bins)
    channels = getattr(model.config, "audio_channels", None)
    shape = (1, channels, 9_600) if channels else (1, 9_600)
    # Each frame hears the same period. Of a constant wave, a norm over time would leave nothing but rounding.
    period = math.prod(getattr(model.config, "conv_stride", None) or [1])
    return _random(token, period).repeat(9_600 // period + 1)[:9_600].expand(shape)


def _spectrum(model, token):
    bins = _first(model.config, BINS, 80)
    column = _random(token, bins)
    if any(
        f".{name}".endswith(".conv1") for name, _ in model.named_modules()
    ):  # over time, which it wants last
        length = 2 * (getattr(model.config, "max_source_positions", None) or 100)
        return column[:, None].expand(1, bins, length)
    return column.expand(1, 200, bins)


def _picture(model, token):
    """A picture, or as many as there are frames."""
    config = model.config
    size = getattr(config, "image_size", None) or getattr(config, "crop_size", None) or 224
    height, width = size if isinstance(size, (list, tuple)) else (size, size)
    colour = _random(token, _first(config, ("num_channels", "in_channels"), 3))[:, None, None]
    frames = [getattr(config, "num_frames", None)] if hasattr(config, "tubelet_size") else []
    frames = frames or (
        [config.num_frames] if getattr(config, "attention_type", "") == "divided_space_time" else []
    )
    return colour.to(next(model.parameters()).dtype).expand(1, *frames, len(colour), height, width)


def _series(model, token):
    channels = getattr(model.config, "num_input_channels", None)
    length = model.config.context_length
    value = 0.3 * (token - 4)
    return torch.full((1, length, channels), value) if channels else [torch.full((length,), value)]


MAKERS = {
    "input_ids": _text,
    "input_values": _sound,
    "input_features": _spectrum,
    "pixel_values": _picture,
    "past_values": _series,
}
KINDS = {
    "grid_thw": "pictures",
    "pixel_values": "pictures",
    "pixel_values_videos": "films",
    "input_values": "sound",
    "input_features": "sound",
    "past_values": "series",
    "input_ids": "text",
}


def _first(config, names, otherwise=None):
    held = [n for n in (getattr(config, name, None) for name in names) if isinstance(n, int) and n > 0]
    if not held and otherwise is None:
        raise ValueError(f"{type(config).__name__} has none of {', '.join(names)}")
    return held[0] if held else otherwise


def _random(token, width):
    return torch.randn(width, generator=torch.Generator().manual_seed(token))
