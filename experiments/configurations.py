"""Defaults of transformers' classes for keys that a config.json leaves out, and how they rotate q and k.

    python experiments/configurations.py            each model type that is known here, again
    python experiments/configurations.py qwen3      some, beside those that are there

It writes MEASURED in the package's config.py, which `make dates` copies into snippets/: a row for each model
type that reads text by RoPE, ALiBi, T5's buckets or a learned table, and for each case of docs/dialects.toml
what stacks made of it. A class is asked: its configuration is built with and without a key, a small random
model of it runs, and the function that rotates its q and k is given unit vectors. A type stays out, with the
reason on stderr, where the calls that read_config.py prints for it do not rotate as it does.
"""

import ast
import contextlib
import copy
import functools
import inspect
import itertools
import json
import math
import re
import sys
import textwrap
import warnings
from pathlib import Path

import torch
import transformers
from tqdm import tqdm
from transformers import CONFIG_MAPPING

from executable_prose import command
from experiments import arguments, dialect_outcomes
from experiments.census.joined import join_facts
from experiments.census.reachable import class_of
from snippets import read_config
from snippets.check_positions import constant_input, read_layers, small_config
from snippets.decoding import attention_mask

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "packages" / "check-positions" / "src" / "check_positions" / "config.py"
CENSUS = ROOT / "experiments" / "results" / "census.json"
BLOCK = re.compile(r'(?<=\nMEASURED = r"""\n).*?(?=\n""")', re.S)
TOKENS, QUERY, KEY = 48, 3, 1  # apart by less than half a turn of the fastest pair
SIZES = (
    *("hidden_size", "n_embd", "d_model", "num_attention_heads", "n_head", "n_heads", "num_heads"),
    *("num_hidden_layers", "n_layer", "n_layers", "num_layers", "max_position_embeddings", "n_positions"),
    *("max_seq_len", "head_dim", "qk_rope_head_dim", "qk_nope_head_dim", "rotary_dim", "rope_interleave"),
    *("sliding_window", "use_sliding_window", "max_window_layers", "attention_chunk_size", "local_attention"),
    *("no_rope_layer_interval", "attn_temperature_tuning", "floor_scale", "attn_scale"),
    *("query_pre_attn_scalar", "attention_multiplier", "attn_logit_softcapping"),
    *("original_max_position_embeddings", "relative_attention_num_buckets"),
    "relative_attention_max_distance",
)
OUTSIDE = ("rope_theta", "rotary_emb_base", "rope_local_base_freq", "global_rope_theta", "local_rope_theta")
PATTERNS = ("sliding_window_pattern", "global_attn_every_n_layers", "full_attention_interval", "-")
# What no configuration says and no probe below finds: the code of these adds positions otherwise.
FAMILIES = {
    "bloom": {"family": "alibi"},
    "mpt": {"family": "alibi"},
    "t5": {"family": "t5"},
    "mt5": {"family": "t5"},
    "switch_transformers": {"family": "t5"},
    "gpt2": {"family": "learned", "own": {"table": "transformer.wpe", "more": "", "offset": ""}},
    "gpt_neo": {"family": "learned", "own": {"table": "transformer.wpe", "more": "", "offset": ""}},
    "gpt_bigcode": {"family": "learned", "own": {"table": "transformer.wpe", "more": "", "offset": ""}},
    "bert": {
        "family": "learned",
        "own": {"table": "embeddings.position_embeddings", "more": "", "offset": ""},
    },
    "roberta": {
        "family": "learned",
        "own": {"table": "embeddings.position_embeddings", "more": "", "offset": " + 2"},
    },
    "opt": {
        "family": "learned",
        "own": {"table": "decoder.embed_positions", "more": " + 2", "offset": " + 2"},
    },
}
# What a small model of a class needs beside its defaults: a width, layers with attention, its switch on.
GIVEN = {
    "glm4_moe": {"head_dim": 128},  # its own width leaves an odd number of channels to rotate
    "hunyuan_v1_dense": {"head_dim": 128},
    "hunyuan_v1_moe": {"head_dim": 128},
    "nemotron": {"head_dim": 128, "num_key_value_heads": 8},
    "gemma3n_text": {"num_kv_shared_layers": 0},
    "granitemoehybrid": {"position_embedding_type": "rope", "layer_types": ["full_attention"] * 32},
    "deepseek_v2": {"topk_method": "greedy", "num_experts_per_tok": 2, "n_routed_experts": 4},
    "esm": {"position_embedding_type": "rotary", "vocab_size": 512, "pad_token_id": 1, "mask_token_id": 2},
}
# The key on which a class's rotation depends, and the value that turns it on.
SWITCHES = {
    "esm": ("position_embedding_type", "rotary"),
    "granitemoehybrid": ("position_embedding_type", "rope"),
    "zamba2": ("use_mem_rope", "true"),
}
ENDS = ("mimo_v2_flash",)  # whose attention has sinks in some layers, and a factor of the values
NO_NULL = ("exaone_moe", "kolibri1")  # whose classes reject a window of null, which their layers ask for
TEMPERATURES = {"llama4_text": "llama4", "ministral3": "ministral3", "mistral4": "ministral3"}
LINEAR = {"rope_type": "linear", "factor": 8.0}
FLAGS = ("use_sliding_window", "rope_interleave", "attn_temperature_tuning")
# What a model has that rotates nothing, by a fact of the census.
INSTEAD = {
    ("added", "learned"): "a learned table added to the embeddings",
    ("added", "fixed"): "a fixed table added to the embeddings",
    ("biased", "linear"): "a linear bias of the scores",
    ("biased", "table"): "a learned bias of the scores",
    ("in_score", "yes"): "scores that depend on distance",
}
CLOSE = 1e-5  # scores of unit vectors, in float32
HIDDEN = -1e4  # what a mask adds to a score, or less


def turning(model):
    """Each call that rotates q and k in a run: the function and its arguments."""
    module, calls, depth = sys.modules[type(model).__module__], [], [0]
    names = [
        n
        for n, f in vars(module).items()
        if inspect.isfunction(f) and re.match(r"_?apply_\w*(rotary|rope)", n)
    ]

    def heard(function):
        def inner(*given, **named):
            caller = sys._getframe(1).f_locals.get("self")
            if not depth[0] and "Indexer" not in type(caller).__name__:  # which only chooses keys
                calls.append((function, given, named))
            depth[0] += 1
            try:
                return function(*given, **named)
            finally:
                depth[0] -= 1

        return inner

    kept = {name: getattr(module, name) for name in names}
    for name, function in kept.items():
        setattr(module, name, heard(function))
    try:
        with torch.no_grad():
            model(**constant_input(model, 3))
    finally:
        for name, function in kept.items():
            setattr(module, name, function)
    return calls


def turned(call, query=QUERY, key=KEY):
    """Scores of unit vectors, (dim, dim), the first rotated as a query, the second as a key."""
    function, given, named = call
    taken = list(inspect.signature(function).parameters)
    first = next(n for n, name in enumerate(taken) if re.search("cos|sin|freq|emb|position", name))
    x = given[0]
    axis = x.shape.index(TOKENS)
    sides = []
    for channel in range(x.shape[-1]):
        units = [torch.zeros_like(each) for each in given[:first]]
        for unit in units:
            unit[..., channel] = 1
        made = function(*units, *given[first:], **named)
        q, k = made if isinstance(made, tuple) else (made, made)
        sides.append((q.select(axis, query).flatten(0, -2)[0], k.select(axis, key).flatten(0, -2)[0]))
    q, k = (torch.stack(side) for side in zip(*sides, strict=True))
    return q @ k.T


def layout_of(scores):
    """Which channel the first one meets."""
    met = int(scores.clone().fill_diagonal_(0)[0].abs().argmax())
    return "interleaved" if met == 1 else "half"


def built(kind, **given):
    """A small random model of a type; what is given may be nested."""
    torch.manual_seed(0)
    config = small_config(CONFIG_MAPPING[kind](**given), layers=8)
    return class_of(config)(config).eval()


def printed(parts):
    """Each block of code of an answer, by its title."""
    return {a.text: b.text for a, b in itertools.pairwise(parts) if b.kind == "code"}


def numbers(title, many):
    """Which layers a title names: all, if it names none."""
    named = re.match(r"In layers ([\d, to]+) \(", title)
    ends = [each.partition(" to ") for each in named[1].split(", ")] if named else [(0, "", many - 1)]
    return [n for first, _, last in ends for n in range(int(first), int(last or first) + 1)]


def run(code, known):
    """Printed code, beside the snippets."""
    exec(re.sub(r"^from (?!torch)(\w+) import", r"from snippets.\1 import", code, flags=re.M), known)


def scores_of(parts, dims, many):
    """What printed code makes of unit vectors in each layer that rotates, as turned() has them, by width."""
    blocks, known, made = printed(parts), {"positions": torch.arange(TOKENS)}, {}
    titles = list(blocks)
    for title in titles[:2]:
        run(blocks[title], known)
    for title in titles[2:]:
        lines = [line for line in blocks[title].splitlines() if " = apply_rope(" in line]
        for dim in dims if lines and title.startswith("In ") else []:
            known["q"] = known["k"] = torch.eye(dim)[:, None, None].expand(dim, 1, TOKENS, dim)
            with contextlib.suppress(ValueError):  # tables wider than the vectors
                run("\n".join(lines), known)
                scores = known["q"][:, 0, QUERY] @ known["k"][:, 0, KEY].T
                for n in numbers(title, many):
                    made.setdefault(n, {})[dim] = scores
    return [made[n] for n in sorted(made)]


def differs(kind, model):
    """Why the calls for a model's configuration do not do what it does, "" if they do."""
    config = json.loads(model.config.to_json_string(use_diff=False))
    parts = read_config.read_config(json.dumps(config))
    calls = turning(model)
    if not calls:
        return "calls for a model that rotates nothing" if printed(parts) else ""
    if not printed(parts):
        return f"no calls: {[part.text for part in parts if part.kind in ('title', 'mind')]}"
    if (scale := scale_of(parts)) is not None and abs(scale - _scaling(model)) > CLOSE:
        return f"scores are multiplied by {scale}, not by {_scaling(model)}"
    many = next(config[name] for name in read_config.table()["aliases"]["layers"] if config.get(name))
    ours = scores_of(parts, {call[1][0].shape[-1] for call in calls}, many)
    if not ours or len(calls) % len(ours):
        return f"{len(calls)} calls in {len(ours)} layers that turn"
    theirs = [turned(call) for call in calls[:: len(calls) // len(ours)]]
    apart = max(float((a[len(b)] - b).abs().max()) for a, b in zip(ours, theirs, strict=True))
    if apart > CLOSE:
        return f"scores are {apart:.1e} apart"
    seen = seen_of(parts, many)
    masks = [
        layer.scores for layer in read_layers(model, lambda token: model(**constant_input(model, token)))
    ]
    chosen = any("Indexer" in type(module).__name__ for module in model.modules())  # keys, by what they hold
    if (
        not chosen
        and len(masks) == many
        and any(
            mask is not None and not _alike(mask[0, 0, :, :TOKENS] > HIDDEN, seen[n])
            for n, mask in enumerate(masks)
        )
    ):
        return "another window"
    return ""


def seen_of(parts, many):
    """Which keys printed code lets a token see in each layer; None where it says nothing of it."""
    known, made = {"positions": torch.arange(TOKENS), "documents": torch.zeros(TOKENS).long()}, [None] * many
    known["attention_mask"] = attention_mask
    for title, code in printed(parts).items():
        lines = re.search(r"^(?:chunks = .*\n)?mask = attention_mask\((?:\n    .*)*[^)]*\)$", code, re.M)
        if lines and title.startswith("In "):
            run(lines[0], known)
            for n in numbers(title, many):
                made[n] = known["mask"]
    return made


def _alike(mask, seen):
    """Without a word, all keys are seen, or all before."""
    if seen is None:
        return bool(mask.all()) or bool(
            (mask == torch.ones_like(mask).tril(mask.shape[1] - mask.shape[0])).all()
        )
    return bool((mask == seen[-len(mask) :]).all())


def row(kind, census):
    """All that is told of a model type. ValueError: what keeps it out."""
    config = CONFIG_MAPPING[kind]()
    found = dict(FAMILIES.get(kind, {}))
    found["defaults"] = _defaults(kind, config)
    if found.get("family"):
        return found | _reads(kind, config, found)
    package = type(config).__module__.split(".")[-2]
    if package != kind:
        found["file"] = package
    facts = {name: fact["value"] for name, fact in join_facts(census).items()}
    model = built(kind, **GIVEN.get(kind, {}))
    calls = turning(model)
    if not calls:
        raise ValueError("no function turns q and k")
    tables = [w for name, w in model.named_buffers() if name.endswith("inv_freq")]
    if any((w.diff(dim=-1) > 0).any() for w in tables):
        raise ValueError("its frequencies stand in an order of their own")
    found["layout"] = _layout(kind, config, calls)
    scores = turned(calls[0])
    if scores[0, int(scores.clone().fill_diagonal_(0)[0].abs().argmax())] < 0:
        found["backwards"] = True
    seen = facts.get("layout")
    seen = seen if isinstance(seen, list) else [found["layout"]]
    if seen != [found["layout"]] and found["layout"] != "rope_interleave":
        found["shows"] = seen[0]
    elif found["layout"] == "rope_interleave":
        found["shows"] = "half"
    found |= _ropes(kind, config, found, facts) | _share(kind, config, model)
    found |= _windows(kind, config, facts, model)
    if facts.get("sinks") == "yes":
        found["sinks"] = True
    found |= _scale(kind, config, model, found)
    if any("Indexer" in type(module).__name__ for module in model.modules()):
        found["indexer"] = True
    if kind in ENDS:
        found["ends"] = True
    if hasattr(config, "sliding_window"):
        with contextlib.suppress(Exception):
            more = CONFIG_MAPPING[kind](sliding_window_size=77).sliding_window - 77
            found |= {"window_size": f"sliding_window_size {more}"} if more in (0, 1) else {}
    if kind in TEMPERATURES:
        found["temperature"] = TEMPERATURES[kind]
        found |= {"inside": ["llama_4_scaling_beta"]} if "floor_scale" not in found["defaults"] else {}
    if "yarn_apply_mscale" in inspect.getsource(sys.modules[type(model).__module__]):
        found["mscale"] = True
    return found | _reads(kind, config, found)


def _layout(kind, config, calls):
    layouts = _layouts(calls)
    if len(layouts) > 1:
        raise ValueError(f"it has layouts {layouts}")
    if hasattr(config, "rope_interleave"):
        other = turning(built(kind, rope_interleave=not config.rope_interleave))
        if _layouts(other) != layouts:
            return "rope_interleave"
    return layouts.pop()


def _layouts(calls):
    """That of each function: a run calls it for each layer."""
    first = {call[0]: call for call in reversed(calls)}
    return {layout_of(turned(call)) for call in first.values()}


def _defaults(kind, config):
    """Numbers that the class takes where a key is not there; those that follow from others stay out."""
    told = config.to_dict()
    if "use_sliding_window" in told:
        told["sliding_window"] = CONFIG_MAPPING[kind](use_sliding_window=True).sliding_window
    if (
        set(told.get("layer_types") or ()) == {"full_attention"}
        and told.get("use_sliding_window") is not False
    ):
        told.pop("sliding_window", None)
    found = {key: told[key] for key in SIZES if isinstance(told.get(key), (int, float, bool))}
    if "qk_rope_head_dim" in found or _follows(kind, "head_dim"):
        found.pop("head_dim", None)
    return found


def _follows(kind, name):
    """Whether a number changes with the width."""
    config = CONFIG_MAPPING[kind]()
    if not isinstance(getattr(config, "hidden_size", None), int):
        return False
    other = CONFIG_MAPPING[kind](hidden_size=2 * config.hidden_size)
    return config.to_dict().get(name) != other.to_dict().get(name)


def _ropes(kind, config, found, facts):
    given = getattr(config, "rope_parameters", None)
    if given is None and getattr(config, "rope_theta", None):
        found["defaults"]["rope_theta"] = float(config.rope_theta)
        return {}
    if given is None:  # the base is in the code
        (found["defaults"]["-"],) = facts["base"]
        return {"base_key": "-"}
    if any(each is None or isinstance(each, dict) for each in given.values()):
        kinds = {each: _kind(kind, each, given[each]) for each in given}
        for each in [each for each, one in kinds.items() if "head" in one]:
            found["defaults"][kinds[each]["head"]] = config.per_layer_config[each].head_dim
        return {"kinds": kinds}
    plain = CONFIG_MAPPING[kind](rope_parameters={"rope_type": "default"}).rope_parameters
    base = next(
        name
        for name in OUTSIDE
        if _base(kind, rope_parameters={"rope_type": "default"}, **{name: 777.0}) == 777.0
    )
    made = {} if base == "rope_theta" else {"base_key": base}
    found["defaults"][base] = plain["rope_theta"]
    known = {key: value for key, value in given.items() if key not in plain or value != plain[key]}
    known.pop("type", None)
    known.pop("max_position_embeddings", None)
    if known and _base(kind, rope_theta=777.0) != 777.0 and "rope_theta" in given:
        known["rope_theta"] = given["rope_theta"]
    methods = {word: _type(kind, word) for word in ("su", "mrope", "yarn")}
    other = {word: was for word, was in methods.items() if was not in (None, word)}
    if _frequency(kind, config, alpha=1.0) != _frequency(kind, config, alpha=8.0):
        made["inside"] = ["alpha"]  # beside dynamic: one base for all lengths
    return made | ({"rope": known} if known else {}) | ({"methods": other} if other else {})


def _frequency(kind, config, **more):
    """The slowest frequency of a small model whose dictionary says dynamic and more."""
    rope = {"rope_type": "dynamic", "factor": 1.0, **more}
    try:
        model = built(kind, **GIVEN.get(kind, {}) | {"rope_parameters": rope | {"rope_theta": 1e4}})
    except Exception:
        return None
    return next((float(w.min()) for n, w in model.named_buffers() if n.endswith("inv_freq")), None)


def _base(kind, **given):
    return (CONFIG_MAPPING[kind](**given).rope_parameters or {}).get("rope_theta")


def _type(kind, word):
    """What a class makes of a type's name, None if it refuses."""
    rope = {"type": word, "rope_type": word, "factor": 2.0, "original_max_position_embeddings": 64}
    config = CONFIG_MAPPING[kind]()
    pairs = (config.to_dict().get("head_dim") or config.hidden_size // config.num_attention_heads) // 2
    rope |= {"short_factor": [1.0] * pairs, "long_factor": [1.0] * pairs, "mrope_section": [1]}
    try:
        return CONFIG_MAPPING[kind](rope_scaling=rope).rope_parameters["rope_type"]
    except Exception:
        return None


def _kind(kind, each, default):
    """What a class with a dictionary for each kind of layer takes for one of them."""
    if default is None:
        return {"rope": None}
    made = {}
    for name in OUTSIDE:
        if (CONFIG_MAPPING[kind](**{name: 777.0}).rope_parameters[each] or {}).get("rope_theta") == 777.0:
            made["key"] = name
    try:
        other = "full_attention" if each != "full_attention" else "sliding_attention"
        alone = CONFIG_MAPPING[kind](rope_parameters={other: {"rope_type": "default", "rope_theta": 5.0}})
        made["theta"] = alone.rope_parameters[each]["rope_theta"]
    except Exception:
        made["rope"] = default
    try:
        stretch = CONFIG_MAPPING[kind](rope_scaling={"rope_type": "linear", "factor": 8.0})
        made |= {"stretched": True} if stretch.rope_parameters[each].get("factor") == 8.0 else {}
    except Exception:
        pass
    with contextlib.suppress(Exception):  # classes whose layers differ in width
        wide = CONFIG_MAPPING[kind](global_head_dim=96).per_layer_config[each].head_dim
        made |= {"head": "global_head_dim"} if wide == 96 else {}
    return made


def _share(kind, config, model):
    """Whether the code reads a share of the head, and which if none is given."""
    given = getattr(config, "rope_parameters", None) or {}
    if getattr(config, "rotary_dim", None) and not given:
        return {"channels": True}
    tables = [m for m in model.modules() if re.search("RotaryEmbedding", type(m).__name__)]
    if not tables or hasattr(config, "qk_rope_head_dim"):
        return {}
    try:
        less = small_config(CONFIG_MAPPING[kind](**_with(given, partial_rotary_factor=0.5)))
        more = small_config(CONFIG_MAPPING[kind](**_with(given, partial_rotary_factor=1.0)))
        reads = [_pairs(type(tables[0])(each)) for each in (less, more)]
    except Exception:
        return {}
    if reads[0] == reads[1]:
        return {}
    one = next((each for each in given.values() if isinstance(each, dict)), given)
    made = {"share": float(one.get("partial_rotary_factor", 1.0))}
    for name in ("rotary_pct",):
        if CONFIG_MAPPING[kind](**{name: 0.375}).rope_parameters.get("partial_rotary_factor") == 0.375:
            made["share_key"] = name
    if (CONFIG_MAPPING[kind](rotary_dim=8).rope_parameters or {}).get("partial_rotary_factor") not in (
        None,
        made["share"],
    ):
        made["channels"] = True
    return made


def _with(given, **more):
    """Plain RoPE: what stretches it reads a share whether or not the model's code does."""
    plain = {"rope_type": "default", **more}
    nested = {k: {**v, **more} for k, v in given.items() if isinstance(v, dict)}
    return {"rope_parameters": nested or plain}


def _pairs(tables):
    return [len(table) for name, table in tables.named_buffers() if name.endswith("inv_freq")]


def _windows(kind, config, facts, model):
    """By which rule layers have a window, and which have no rotation."""
    made, source = {}, inspect.getsource(sys.modules[type(model).__module__])
    if crossed := getattr(config, "cross_attention_layers", None):
        made["crossed"] = crossed
    bare = facts.get("bare")
    bare = bare if isinstance(bare, list) else []
    types = getattr(config, "layer_types", None)
    if hasattr(config, "no_rope_layers") and config.no_rope_layers:
        made["bare"] = "no_rope_layers"
    elif bare:
        kinds = {types[n] for n in bare} if types else set()
        same = len(kinds) == 1 and [n for n, each in enumerate(types) if each in kinds] == bare
        if not same:
            raise ValueError(f"layers {bare} do not turn, by no rule that is known")
        if not any(each is None for each in (config.rope_parameters or {}).values()):
            made["bare"] = kinds.pop()
            made |= _lifted(source)
    if hasattr(config, "local_attention") and "sliding_window" not in config.to_dict():
        made["window_key"] = "local_attention"  # of which half is seen on each side
    if types:
        return made | {"window": _pattern(kind, config)}
    if "sliding_window is None" in source:
        made["window"] = "all"
    elif getattr(config, "sliding_window", None) and "sliding_window" in code_reads(kind):
        raise ValueError("a window by no rule that is known")
    return made


def _lifted(source):
    """Whether all layers rotate where sliding_window is null."""
    return {"lifted": True} if "sliding_window is None or self.is_sliding" in source else {}


def _scaling(model):
    """What the first attention multiplies scores by; nan where it has no such number."""
    found = (getattr(m, "scaling", None) for m in model.modules() if type(m).__name__.endswith("Attention"))
    return next((float(each) for each in found if isinstance(each, (int, float))), math.nan)


def _scale(kind, config, model, found):
    """The key or the number by which scores are multiplied, where it is not the root of the head's width."""
    for key, given, wanted in (("query_pre_attn_scalar", 100, 0.1), ("attention_multiplier", 0.5, 0.5)):
        if hasattr(config, key):
            other = _scaling(built(kind, **GIVEN.get(kind, {}) | {key: given}))
            if math.isclose(other, wanted):
                return {"scale": key}
    head = next((getattr(m, "head_dim", 0) for m in model.modules() if hasattr(m, "scaling")), 0)
    plain = not head or hasattr(config, "qk_rope_head_dim") or math.isclose(_scaling(model), head**-0.5)
    return {} if plain or "window" not in found else {"scale": _scaling(model)}


def scale_of(parts):
    """What printed code multiplies scores by; None where no code says it."""
    code = "\n".join(printed(parts).values())
    said = re.search(r"scale=(.+)\)|scores = q @ k\.mT \* (.+?)(?:  #|\n)", code)
    return eval(said[1] or said[2]) if said and "q." not in said[0] else None


def _pattern(kind, config):
    """The rule by which a class makes layer_types where they are not given."""
    many = config.num_hidden_layers

    def types(**given):
        return CONFIG_MAPPING[kind](num_hidden_layers=given.pop("many", many), **given).layer_types

    if set(types()) == {"full_attention"}:
        try:
            seen = types(many=12, use_sliding_window=True, sliding_window=64, max_window_layers=5)
        except Exception:
            return "layer_types"
        if seen == ["full_attention"] * 5 + ["sliding_attention"] * 7:
            return "beyond"
        return "layer_types"
    others = sorted(set(types()) - {"full_attention"})
    if len(others) != 1:
        raise ValueError(f"layers of kinds {others}")
    for n in (2, 3, 4, 5, 6, 8, 100_000):
        for at in ("last", "first", "last_and_end", "start_and_last"):
            if all(types(many=m) == _predicted(n, at, others[0], m) for m in (many, 13)):
                other = 5 if n == 3 else 3
                wanted = _predicted(other, at, others[0], many)
                key = next(k for k in PATTERNS if k == "-" or types(**{k: other}) == wanted)
                if others == ["chunked_attention"]:
                    return "turning"
                return f"{key} {n} {at} {others[0]}"
    raise ValueError("layer_types by no rule that is known")


def _predicted(n, at, other, many):
    full, more = 0 if at == "first" else n - 1, {"last_and_end": many - 1, "start_and_last": 0}.get(at)
    return ["full_attention" if i % n == full or i == more else other for i in range(many)]


# --- which keys are read


@functools.cache
def code_reads(kind, part="."):
    """Names in a configuration that its type's code reads: the model's module, and the class's functions."""
    config = CONFIG_MAPPING[kind]()
    classes = [each for each in type(config).__mro__ if "transformers.models." in each.__module__]
    made = set()
    for module in {sys.modules[class_of(config).__module__], *map(inspect.getmodule, classes)}:
        if part not in module.__name__:
            continue
        mine = "self" if ".configuration_" in module.__name__ else "config"
        for node in ast.walk(_tree(module)):
            if isinstance(node, ast.Attribute) and re.search(rf"(config|^{mine})$", _last(node.value)):
                made.add(node.attr)
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                made.add(node.value)
            mask = isinstance(node, ast.Name) and re.match(r"create_\w*(sliding_window|chunked)", node.id)
            made |= {{"chunked": "attention_chunk_size"}.get(mask[1], mask[1])} if mask else set()
    return made


@functools.cache
def _tree(module):
    """Functions of a module; what a class says of its fields is not among them."""
    tree = ast.parse(inspect.getsource(module))
    return ast.Module([n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.Lambda))], [])


def _last(node):
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _reads(kind, config, found):
    """Keys about positions that a type's code reads beside the usual ones, and which of those it does not."""
    table = read_config.table()
    known = set(" ".join(check["keys"] for check in table["value"]).split())
    own = {*config.to_dict(), *code_reads(kind, ".configuration_")}
    never = {*table["sizes"].split(), *table["inside"].split(), *table["layers"], "alpha"}
    near = {k for k in own if re.fullmatch(r"\w+", k) and any(word in k.lower() for word in table["near"])}
    read = (known | near) & code_reads(kind) - set(table["others"].split()) - never
    shares = {"partial_rotary_factor", "rotary_pct", "rotary_emb_fraction", "rotary_dim"}
    bases = {k for k in known if "theta" in k or k == "rotary_emb_base"}
    read -= shares | bases | {"rope_scaling", "rope_parameters", "original_max_position_embeddings"}
    if "family" not in found:
        share = {"partial_rotary_factor": 0.375}
        read |= set(share) if "share" in found and 0.375 in _leaves(kind, **share) else set()
        read |= {found["share_key"]} if "share_key" in found else set()
        read |= {"rotary_dim"} if "channels" in found else set()
        read |= {key for key in bases if 777.0 in _leaves(kind, **{key: 777.0})}
        scaled = _leaves(kind, rope_scaling=LINEAR)  # a class that rejects it has read it
        ropes = getattr(config, "rope_parameters", None) is not None  # else it is only stored
        read |= {"rope_scaling"} if ropes and (8.0 in scaled or not scaled) else set()
        read |= {"rope_parameters"} if ropes else set()
        read |= {"original_max_position_embeddings"} if "rope_scaling" in read else set()
    usual = set(table["usual"].split())
    made = {"reads": sorted(read - usual), "unread": sorted(usual - read)}
    return {name: keys for name, keys in made.items() if keys}


def _leaves(kind, **given):
    """All values in the dictionaries of RoPE, and the base that stands beside them."""
    try:
        config = CONFIG_MAPPING[kind](**GIVEN.get(kind, {}) | copy.deepcopy(given))
    except Exception:
        return []
    ropes = getattr(config, "rope_parameters", None) or {}
    flat = [ropes, *(each for each in ropes.values() if isinstance(each, dict))]
    bases = [getattr(config, "rope_theta", None)] if not ropes else []
    return [*bases, *(v for each in flat for v in each.values() if not isinstance(v, (dict, list)))]


# --- of all types


def rotations(census):
    """Model types by what the census measured: the layout of a rotation, or what there is in place of one."""
    made = {}
    for kind, found in census.items():
        facts = {} if "parts" in found else {name: f["value"] for name, f in join_facts(found).items()}
        if found.get("measured", {}).get("reads") != "text" or facts.get("rotation") not in ("yes", "no"):
            continue
        what = next(iter(facts["layout"]), "") if facts["rotation"] == "yes" else _instead(facts)
        made.setdefault(what, []).append(kind)
    return made


def _instead(facts):
    told = [words for (name, value), words in INSTEAD.items() if facts.get(name) == value]
    return " and ".join(told) or "no other encoding of positions"


def wholes(census, models):
    """Types whose class reads a file without parts as one of its part for text: from whole to part."""
    made = {}
    for kind, found in census.items():
        if "parts" in found:
            try:
                text = CONFIG_MAPPING[kind](hidden_size=8 * 97, rope_theta=777.0).get_text_config()
            except Exception:
                continue
            if text.model_type in models and text.hidden_size == 8 * 97:
                made[kind] = text.model_type
    return made


# --- what stacks made of cases


SAID = {
    "base 10,000": "plain RoPE with base 10,000",
    "base 500,000": "plain RoPE with the base as written",
    "linear": "linear, by the factor",
    "dynamic": "dynamic NTK",
    "half of each head": "half of each head is rotated",
    "YaRN": "YaRN with its default settings",
    "YaRN from 16,384": "YaRN from max_position_embeddings",
    "Llama 3.1": "Llama 3.1 scaling",
    "Llama 3.1 from 131,072": "Llama 3.1 scaling from max_position_embeddings",
    "refuses": "an error",
}


def outcomes():
    """For each case that a rule names, what came of it, and of which stacks; "as intended" is last."""
    results, made = dialect_outcomes.results(), {}
    named = re.findall(r'^case = "(.*)"$', FILE.read_text(encoding="utf-8"), re.M)
    for case in [case for case in dialect_outcomes.DATA["case"] if case["name"] in named]:
        by = {}
        for stack in dialect_outcomes.DATA["stack"][: len(dialect_outcomes.STACKS)]:
            name = stack["name"]
            came = dialect_outcomes.outcome(results[name.replace(" ", "-")][case["name"]])
            at = (
                f"{name} at {stack['version']}"
                if name == "llama.cpp"
                else f"{name.split()[0]} {stack['version']}"
            )
            by.setdefault("as intended" if came == case["means"] else SAID[came], []).append(at)
        meant = by.pop("as intended", None)
        made[case["name"]] = by | ({"as intended": meant} if meant else {})
    return made


def known():
    """What the file has now."""
    return json.loads(BLOCK.search(FILE.read_text(encoding="utf-8"))[0])


def measured(census, models):
    """All that the file has."""
    switches = {kind: f"{key} {value}" for kind, (key, value) in SWITCHES.items()}
    found = {"models": models, "wholes": wholes(census, models), "rotations": rotations(census)}
    return found | {"switches": switches, "outcomes": outcomes()}


def text(found):
    """JSON of few columns: broken behind commas, an entry on lines of its own."""
    lines = []
    for part, entries in found.items():
        lines.append(f'"{part}": {{')
        for n, (name, entry) in enumerate(sorted(entries.items())):
            line = f"{json.dumps(name)}: {json.dumps(entry)}" + "," * (n + 1 < len(entries))
            whole = re.sub(r'"[^"]*"', lambda word: word[0].replace(" ", "\0"), line)
            rows = textwrap.wrap(whole, 80, subsequent_indent=" ", break_on_hyphens=False)
            lines += [row.replace("\0", " ") for row in rows]
        lines.append("}," if part != list(found)[-1] else "}")
    return "{\n" + "\n".join(lines) + "\n}"


def write(found):
    whole = FILE.read_text(encoding="utf-8")
    FILE.write_text(BLOCK.sub(lambda _: text(found), whole), encoding="utf-8")


def candidates(census):
    """Types that rotate and may read text, or that are of another family that is known here."""
    for kind, found in sorted(census.items()):
        facts = join_facts(found) if "parts" not in found else {}
        rotates = facts.get("rotation", {}).get("value") == "yes" or kind in SWITCHES
        alone = CONFIG_MAPPING[kind].model_type == kind  # no other name of a type
        if kind in FAMILIES or (
            alone and rotates and found.get("measured", {}).get("reads", "text") == "text"
        ):
            yield kind


def switched(kind, found):
    """What a model of a type is given to have each switch that its row names at another value."""
    own, reads = found["defaults"], found.get("reads", [])
    given = [{}]
    given += [{name: not own[name]} for name in FLAGS if name in own]
    given += [{"sliding_window": None}] if found.get("window") == "all" and "sliding_window" in own else []
    if "lifted" in found and kind not in NO_NULL:
        given += [{"sliding_window": None, "layer_types": ["full_attention"] * own["num_hidden_layers"]}]
    given += [{"no_rope_layer_interval": 3}] if "no_rope_layer_interval" in own else []
    given += [{name: 2} for name in found.get("window", "").split()[:1] if name in PATTERNS[:-1]]
    given += [{SWITCHES[kind][0]: None if kind != "zamba2" else False}] if kind in SWITCHES else []
    given += [{"attn_logit_softcapping": 30.0}] if "attn_logit_softcapping" in reads else []
    scale = found.get("scale")
    given += [{scale: 100 if "scalar" in scale else 0.5}] if isinstance(scale, str) else []
    if "alpha" in found.get("inside", []):
        rope = {"rope_type": "dynamic", "factor": 1.0, "alpha": 1000.0}
        given += [{"rope_parameters": rope | {"rope_theta": 1e4}}]
    return [GIVEN.get(kind, {}) | each for each in given]


def main():
    census = json.loads(CENSUS.read_text("utf-8"))["models"]
    kinds = arguments.names(__doc__, "model_type", census)
    transformers.logging.set_verbosity_error()
    warnings.filterwarnings("ignore")
    models = known()["models"] if kinds else {}
    for kind in tqdm(kinds or list(candidates(census)), unit="model"):
        models.pop(kind, None)
        try:
            models[kind] = row(kind, census[kind])
            read_config.MEASURED = text(measured(census, models))
            for given in switched(kind, models[kind]) if "layout" in models[kind] else []:
                if why := differs(kind, built(kind, **given)):
                    raise ValueError(f"{given}: {why}")
        except Exception as error:
            models.pop(kind, None)
            sys.stderr.write(f"{kind} stays out: {type(error).__name__}: {str(error)[:120]}\n")
        write(measured(census, models))


if __name__ == "__main__":
    command.run(main)
