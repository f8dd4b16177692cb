"""Configurations to read: those of transformers in both dialects, also changed at random; and broken ones."""

import json
import random

from tests.peers import peer

# Types that read text by RoPE in many ways, by a bias, by a table; and parts, pictures and sound.
KINDS = (
    *(
        "llama",
        "mistral",
        "mixtral",
        "qwen2",
        "qwen2_moe",
        "qwen3",
        "qwen3_moe",
        "qwen3_next",
        "gemma",
        "gemma2",
    ),
    *(
        "gemma3_text",
        "gemma4_text",
        "gpt_oss",
        "gpt_neox",
        "gptj",
        "codegen",
        "cohere",
        "cohere2",
        "glm",
        "glm4",
    ),
    *("glm4_moe", "deepseek_v2", "deepseek_v3", "llama4_text", "smollm3", "phi", "phi3", "phimoe", "olmo2"),
    *("olmo3", "exaone4", "falcon", "starcoder2", "stablelm", "persimmon", "helium", "ernie4_5", "granite"),
    *("granite_swa", "nanochat", "ministral3", "mistral4", "minimax_m2", "modernbert", "modernbert-decoder"),
    *(
        "cwm",
        "apertus",
        "bloom",
        "mpt",
        "t5",
        "mt5",
        "gpt2",
        "bert",
        "roberta",
        "opt",
        "deberta-v2",
        "gemma3",
    ),
    *("qwen2_vl", "llava", "siglip_vision_model", "whisper"),
    *("granitemoehybrid", "mimo_v2_flash", "hunyuan_v1_dense", "nemotron_h", "esm", "deepseek_v32"),
)
NAMES = (
    "rope_theta",
    "rope_type",
    "type",
    "factor",
    "head_dim",
    "sliding_window",
    "beta_fast",
    "rotary_dim",
    "foo_rope",
    "position_embedding_type",
    "no_rope_layers",
    "alpha",
    "x",
)
VALUES = (
    *(None, True, False, 0, 1, 2, 7, 64, 128, 4096, -1, 0.5, 1.5, 1e6, 10_000.0, 1e400, 1e-12),
    *("", "8.0", "yarn", "default", "nope", "</script><script>alert(1)</script>", "\u202e\ud800", "{kind}"),
    *([], [1, 0, 1], ["full_attention"], {}, {"rope_type": "linear", "factor": 2.0}),
)
ROPES = (
    {"rope_type": "default"},
    {"type": "linear", "factor": 4.0},
    {"rope_type": "dynamic", "factor": 2.0},
    {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 4096},
    {
        "rope_type": "yarn",
        "factor": 40,
        "original_max_position_embeddings": 4096,
        "beta_fast": 32,
        "beta_slow": 1,
        "mscale": 1.0,
        "mscale_all_dim": 0.7,
        "truncate": False,
    },
    {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
    {"rope_type": "yarn", "factor": 4.0, "attention_factor": 1.25, "low_freq_factor": 1.0},
)


def default(kind):
    """The configuration of a type as its class writes it, of keys that JSON can have."""
    made = peer("transformers").CONFIG_MAPPING[kind]().to_json_string(use_diff=False)
    tuples = ("time_step_limit",)  # which a class refuses as the list that JSON makes of them
    return {key: value for key, value in json.loads(made).items() if key not in tuples}


def spelt(config, rope, old):
    """With a stretch of RoPE in the one dialect or in the other."""
    base = {"rope_theta": 500_000.0}
    without = {key: value for key, value in config.items() if key not in ("rope_parameters", "rope_scaling")}
    return without | (base | {"rope_scaling": rope} if old else {"rope_parameters": rope | base})


def changed(config, chance):
    """With some keys renamed, taken away, added or given another value, here and in dictionaries below."""
    made = {}
    for key, value in config.items():
        what = chance.random()
        if what < 0.03:
            continue
        if isinstance(value, dict) and value:
            value = changed(value, chance)
        elif what < 0.06:
            value = chance.choice(VALUES)
        made[chance.choice(NAMES) if 0.06 <= what < 0.08 else key] = value
    if chance.random() < 0.4:
        made[chance.choice(NAMES)] = chance.choice(VALUES)
    return made


def configurations(kinds=KINDS, times=4, seed=0):
    """Texts: of each type its defaults, every stretch in both dialects, and each of these changed."""
    chance, made = random.Random(seed), []
    for kind in kinds:
        config = default(kind)
        some = [config, *(spelt(config, rope, old) for rope in ROPES for old in (True, False))]
        some += [changed(chance.choice(some), chance) for _ in range(times * 4)]
        made += map(json.dumps, some)
    return made


def nested(depth):
    return "[" * depth + "]" * depth


LLAMA = '{"model_type": "llama", "head_dim": 64, "num_hidden_layers": 2, '
YARN = '"rope_theta": 10000.0, "rope_scaling": {"rope_type": "yarn", "factor": 4.0, '
# What is read of each, and a word of what is told.
BROKEN = {
    "nothing": ("", "expected a value, got the end"),
    "blanks": (" \n\t ", "line 2, column 3"),
    "no JSON": ("model_type: llama", "line 1, column 1: expected a value"),
    "Python": ("{'model_type': 'llama'}", "expected a name in double quotes"),
    "cut off": (LLAMA, "expected a name in double quotes, got the end"),
    "comma at the end": ('{"a": 1,}', "expected a name in double quotes"),
    "comment": ('{"a": 1} // note', "expected the end"),
    "two objects": ('{"a": 1}{"b": 2}', 'expected the end of the text, got "{"'),
    "text cut off": ('{"model_type": "lla', "expected a value"),
    "a line in a text": ('{"a": "b\nc"}', "expected a value"),
    "NaN": (LLAMA + '"rope_theta": NaN}', "rope_theta must be a number above 1, at most 1e15, got NaN"),
    "Infinity": (
        LLAMA + '"rope_theta": -Infinity}',
        "rope_theta must be a number above 1, at most 1e15, got -Infinity",
    ),
    "leading zero": (LLAMA + '"rope_theta": 010000}', "expected , or }"),
    "a list": ("[1, 2]", "A config.json must be a JSON object"),
    "a number": ("42", "A config.json must be a JSON object"),
    "two megabytes": ('{"a": "' + 2_000_000 * "x" + '"}', "at most 1000000 characters"),
    "deep": (nested(10_000), "at most 40 levels deep"),
    "deep objects": ('{"a":' * 99 + "1" + "}" * 99, "at most 40 levels deep"),
    "another kind": ('{"hello": "world"}', "No key of this file concerns positions"),
    "numbers as words": (
        LLAMA + '"rope_theta": "10000.0"}',
        'rope_theta must be a number above 1, at most 1e15, got "10000.0"',
    ),
    "negative base": (LLAMA + '"rope_theta": -10000.0}', "rope_theta must be"),
    "base zero": (LLAMA + '"rope_theta": 0}', "rope_theta must be"),
    "infinite base": (LLAMA + '"rope_theta": 1e999}', "rope_theta must be"),
    "odd head": ('{"model_type": "llama", "head_dim": 63}', "must be even, got 63"),
    "half a head": ('{"model_type": "llama", "head_dim": 64.5}', "head_dim must be an integer"),
    "no heads": ('{"model_type": "llama", "num_attention_heads": 0}', "num_attention_heads must be"),
    "script": (
        '{"model_type": "<script>alert(1)</script>", "rope_theta": 1e4}',
        '"<script>alert(1)</script>"',
    ),
    "script as a method": (
        LLAMA + '"rope_scaling": {"type": "</script><img onerror=x>"}}',
        "rope_type must be one that this tool knows",
    ),
    "code": (LLAMA + '"rope_theta": "__import__(\\"os\\")"}', "rope_theta must be a number"),
    "prototype": (
        '{"__proto__": {"rope_theta": 5}, "constructor": 1, "model_type": "__proto__"}',
        "calls cannot be determined",
    ),
    "a type that every object has": (
        LLAMA + '"rope_scaling": {"type": "constructor"}}',
        'got "constructor"',
    ),
    "twice": (LLAMA + '"rope_theta": 10000.0, "rope_theta": 5e5}', '"rope_theta" appears twice'),
    "layers of another number": (
        '{"model_type": "gemma2", "layer_types": ["full_attention"]}',
        "layer_types must contain 26 strings",
    ),
    "layers of another kind": (
        '{"model_type": "gemma2", "num_hidden_layers": 1, "layer_types": ["mirror"]}',
        '"mirror" layers are unknown',
    ),
    "factor below one": (
        LLAMA + '"rope_scaling": {"rope_type": "linear", "factor": 0.5}}',
        "factor must be a number from 1",
    ),
    "no factor": (LLAMA + '"rope_scaling": {"rope_type": "linear"}}', "linear requires factor"),
    "no original length": (LLAMA + YARN + '"beta_fast": 32}}', "The original length is missing"),
    "llama3's keys for yarn": (
        LLAMA + YARN + '"low_freq_factor": 1.0}}',
        "depends on low_freq_factor",
    ),
    "ramp upside down": (LLAMA + YARN + '"beta_fast": 1, "beta_slow": 32}}', "beta_slow must be at most"),
    "lists of another length": (
        LLAMA + '"rope_scaling": {"type": "longrope", "short_factor": [1.0], "long_factor": [1.0]}}',
        "short_factor must contain 32 numbers",
    ),
    "a dictionary that is none": (LLAMA + '"rope_scaling": [1, 2]}', "rope_scaling must be an object"),
    "a misspelt key": (LLAMA + '"rope_tetha": 5e5}', "rope_tetha is not read by the code of llama"),
    "unpaired surrogate": ('{"model_type": "\\ud800\\u202e", "rope_theta": 1e4}', '"\\ud800\\u202e"'),
}
