"""What a configuration says of positions."""

import re

PLAIN = ("default", "axial")  # rope types that scale nothing
WINDOWS = ("sliding_window", "attention_chunk_size", "attention_window_size", "local_attention_window_size")
FULL = {"full_attention", "linear_attention"}  # kinds of layers without a window
KNOWN = re.compile("^(full|linear|sliding|chunked|indexed)_attention$|^hybrid|^conv$|^moe$|^mlp$")
CONTEXT = ("max_position_embeddings", "n_positions", "max_target_positions", "max_seq_len")
TEMPERATURES = ("attn_temperature_tuning", "llama_4_scaling_beta", "use_ssmax", "log_scaling_n_floor")


def declared(config):
    """Facts by name, each a list or a word; what the configuration does not speak of is not there."""
    given = {k: v for k, v in vars(config).items() if not k.startswith("_") and v is not None}
    facts = {}
    ropes = _ropes(given.get("rope_parameters"))
    if ropes:
        facts["rotation"] = "yes"
        facts["base"] = _distinct(ropes, "rope_theta")
        facts["scaling"] = [kind for kind in _distinct(ropes, "rope_type") if kind not in PLAIN]
        facts["share"] = _shares(ropes, given)
    facts["bare"] = [n for n, turns in enumerate(given.get("no_rope_layers") or []) if not turns]
    facts["windows"] = _windows(config, given)
    facts["other_kinds"] = sorted({kind for kind in given.get("layer_types") or [] if not KNOWN.search(kind)})
    everywhere = [given, *ropes]
    facts["temperature"] = "yes" if any(d.get(name) for d in everywhere for name in TEMPERATURES) else None
    if given.get("rope_interleave") is False:
        facts["reordered"] = "no"
    facts["context"] = next((given[name] for name in CONTEXT if isinstance(given.get(name), int)), None)
    facts["window"] = next((given[name] for name in WINDOWS if name in given), None)
    return {name: fact for name, fact in facts.items() if fact is not None and (fact or name == "windows")}


def _windows(config, given):
    """Layers by their kinds; none if a window could be given and is not; None if layers are not spoken of."""
    kinds = given.get("layer_types") or []
    near = [n for n, kind in enumerate(kinds) if re.search("sliding|chunked", kind)]
    asked = [name for name in WINDOWS if hasattr(config, name)]
    without = (kinds and set(kinds) <= FULL) or (asked and not any(name in given for name in asked))
    return near if near or without else None


def parts(config):
    """The model types of which a composite is made; none for a model of its own."""
    names = getattr(type(config), "sub_configs", None) or {}
    held = [getattr(config, name, None) for name in names]
    return sorted({one.model_type for one in held if getattr(one, "model_type", None)})


def _ropes(given):
    """The rotations of rope_parameters, which may hold one for each kind of layer; a base of null is none."""
    given = given or {}
    nested = [each for each in given.values() if isinstance(each, dict)] or [given]
    return [one for one in nested if one and one.get("rope_theta", 0) is not None]


def _shares(ropes, given):
    """Of a head's channels; none where no rotation says so, and all where others do."""
    turned, stays = (given.get(f"qk_{kind}_head_dim") or 0 for kind in ("rope", "nope"))
    if turned and stays:
        return [round(turned / (turned + stays), 4)]
    said = _distinct(ropes, "partial_rotary_factor")
    return sorted({each.get("partial_rotary_factor") or 1.0 for each in ropes}) if said else []


def _distinct(ropes, name):
    return sorted({each[name] for each in ropes if name in each and each[name] is not None})
