"""What a configuration says of positions."""

CONTEXT = ("max_position_embeddings", "n_positions", "max_target_positions", "max_seq_len")
TEMPERATURES = ("attn_temperature_tuning", "llama_4_scaling_beta", "use_ssmax")


def declared(config):
    """Facts by name, each a list or a word; what the configuration does not speak of is not there."""
    given = {k: v for k, v in vars(config).items() if not k.startswith("_") and v is not None}
    facts = {}
    ropes = _ropes(given.get("rope_parameters"))
    if ropes:
        facts["rotation"] = "yes"
        facts["base"] = _distinct(ropes, "rope_theta")
        facts["scaling"] = [kind for kind in _distinct(ropes, "rope_type") if kind != "default"]
        facts["share"] = _distinct(ropes, "partial_rotary_factor")
    facts["bare"] = [n for n, turns in enumerate(given.get("no_rope_layers") or []) if not turns]
    kinds = given.get("layer_types") or []
    facts["windows"] = [n for n, kind in enumerate(kinds) if "sliding" in kind or "chunked" in kind]
    facts["temperature"] = "yes" if any(given.get(name) for name in TEMPERATURES) else None
    facts["context"] = next((given[name] for name in CONTEXT if isinstance(given.get(name), int)), None)
    facts["window"] = next(
        (given[name] for name in ("sliding_window", "attention_chunk_size") if name in given), None
    )
    return {name: fact for name, fact in facts.items() if fact not in (None, [])}


def parts(config):
    """The model types of which a composite is made; none for a model of its own."""
    names = getattr(type(config), "sub_configs", None) or {}
    held = [getattr(config, name, None) for name in names]
    return sorted({one.model_type for one in held if getattr(one, "model_type", None)})


def _ropes(given):
    """The rotations of rope_parameters, which may hold one for each kind of layer."""
    given = given or {}
    nested = [each for each in given.values() if isinstance(each, dict)]
    return nested or ([given] if given else [])


def _distinct(ropes, name):
    return sorted({each[name] for each in ropes if name in each and each[name] is not None})
