"""The page on serving a longer context: what the files of released models
leave to do, the lines for each stack, and what was measured.
"""

import json
import math
from functools import cache

import matplotlib.pyplot as plt
import torch

from exhibits._on_chains import cell, excess_loss, key, mean_excess
from exhibits.long_context import RAISED, _reach
from experiments import short_texts
from experiments.chain_models import TRAIN_LENGTH
from experiments.dialect_outcomes import STACKS, outcome, results
from snippets.rope import rope_frequencies
from snippets.rope_scaling import yarn_attention_factor

WANTED = 131_072
# Keys of the released files; of Qwen3 the original length is in its report.
MODELS = {
    "Qwen/Qwen3-8B": {
        "max_position_embeddings": 40_960,
        "rope_theta": 1_000_000.0,
        "original": 32_768,
        "layers": 36,
        "key_value_heads": 8,
        "head": 128,
    },
    "mistralai/Mixtral-8x22B-v0.1": {
        "max_position_embeddings": 65_536,
        "rope_theta": 1_000_000.0,
        "original": 65_536,
        "layers": 56,
        "key_value_heads": 8,
        "head": 128,
    },
    "XiaomiMiMo/MiMo-7B-Base": {
        "max_position_embeddings": 32_768,
        "rope_theta": 640_000.0,
        "original": 32_768,
    },
    "meta-llama/Meta-Llama-3.1-8B": {
        "max_position_embeddings": 131_072,
        "rope_theta": 500_000.0,
        "scaling": ("llama3", 8),
        "original": 8_192,
    },
    "openai/gpt-oss-20b": {
        "max_position_embeddings": 131_072,
        "rope_theta": 150_000.0,
        "scaling": ("yarn", 32),
        "original": 4_096,
    },
    "deepseek-ai/DeepSeek-V3": {
        "max_position_embeddings": 163_840,
        "rope_theta": 10_000.0,
        "scaling": ("yarn", 40),
        "original": 4_096,
    },
    "nvidia/Nemotron-H-56B-Base-8K": {"max_position_embeddings": 8_192},
}
SHOWN = [name for name, model in MODELS.items() if "layers" in model]
READ_BY_ALL = SHOWN[:1]  # SGLang's and mlx-lm's Mixtral read no method
BYTES = 2  # of a number in bfloat16
SPELLINGS = {  # the cases of docs/dialects.toml that these lines amount to
    "`rope_parameters`": "YaRN, new dictionary",
    "`rope_theta` and `rope_scaling`": "YaRN, original length inside",
}
PRESETS = {"least": 4_096, "middle": 32_768, "most": 262_144}  # Ollama's
HEAD, TRAINED, BASE = 128, 4_096, 10_000  # of Llama 2
TARGETS = [1024 * thousands for thousands in (16, 32, 64, 128)]
WITHOUT_SCALING = [  # base, listed length, name; all channels of 128 rotate
    *((base, length, name) for base, length, name, _ in RAISED),
    (640_000, 32_768, "MiMo"),
    (1_000_000, 65_536, "Mixtral 8x22B"),
    (5_000_000, 262_144, "Qwen3-VL"),
    (10_000_000, 262_144, "Qwen3-Coder"),
]
AT_LEFT = {"Code Llama": -3, "Qwen3-VL": -3, "Qwen3-Coder": 5}  # points up
STEP = 1.15  # of the bases whose reach is shown
LENGTHS = [TRAIN_LENGTH * times for times in (1, 2, 4, 8)]


def _scaling(model, wanted=WANTED):
    """YaRN for a context of so many tokens, under the names of version 5 of
    transformers; None if the file allows that many, or if nothing rotates.
    """
    fits = wanted <= model["max_position_embeddings"]
    if fits or "rope_theta" not in model:
        return None
    return {
        "rope_type": "yarn",
        "rope_theta": model["rope_theta"],
        "factor": wanted / model["original"],
        "original_max_position_embeddings": model["original"],
    }


def _overrides(model, wanted=WANTED):
    """The keys of a configuration that change."""
    return {
        "max_position_embeddings": wanted,
        "rope_parameters": _scaling(model, wanted),
    }


def _cache_bytes(model, tokens=WANTED):
    """The keys and values of a text in bfloat16."""
    numbers = 2 * model["layers"] * model["key_value_heads"] * model["head"]
    return numbers * BYTES * tokens


def models():
    heads = "Model", "What to change", "Positions", "Scaling"
    print("|", " | ".join(heads), "|")
    print("|---|---|--:|---|")
    for name, model in MODELS.items():
        listed = f"{model['max_position_embeddings']:,}"
        scaled, change = _to_do(model)
        print("|", " | ".join((name, change, listed, scaled)), "|")
    qwen, mixtral = (MODELS[name] for name in SHOWN)
    return {
        "wanted": WANTED,
        "original": qwen["original"],
        "listed": qwen["max_position_embeddings"],
        "factor": WANTED / qwen["original"],
        "too_small": WANTED / qwen["max_position_embeddings"],
        "attention": yarn_attention_factor(WANTED / qwen["original"]),
        "other_factor": WANTED / mixtral["original"],
        "cache": _cache_bytes(qwen) / 2**30,
        "other_cache": _cache_bytes(mixtral) / 2**30,
    } | {f"ollama_{name}": tokens for name, tokens in PRESETS.items()}


def _to_do(model):
    if "rope_theta" not in model:
        return "no RoPE", "there is nothing to scale"
    scaled = "none"
    if "scaling" in model:
        kind, factor = model["scaling"]
        scaled = f"`{kind}`, {factor} × {model['original']:,}"
    if _scaling(model) is None:
        return scaled, "only the length"
    factor = _scaling(model)["factor"]
    return scaled, f"**YaRN, {factor:g} × {model['original']:,}**"


def _indented(value, spaces):
    return json.dumps(value, indent=2).replace("\n", "\n" + " " * spaces)


def _each(lines, shown=SHOWN):
    """Print the lines of a stack for each model."""
    print("\n\n".join(lines(name, MODELS[name]) for name in shown))


def _transformers(name, model):
    return (
        f"model = AutoModelForCausalLM.from_pretrained(\n"
        f'    "{name}",\n'
        f"    max_position_embeddings={WANTED},\n"
        f"    rope_parameters={_indented(_scaling(model), 4)},\n"
        ")"
    )


def transformers():
    print("from transformers import AutoModelForCausalLM\n")
    _each(_transformers)


def _vllm(name, model):
    return (
        f"vllm serve {name} \\\n"
        f"  --max-model-len {WANTED} \\\n"
        f"  --hf-overrides '{_indented(_overrides(model), 2)}'"
    )


def vllm():
    _each(_vllm)


def _sglang(name, model):
    return (
        f"python -m sglang.launch_server --model-path {name} \\\n"
        f"  --context-length {WANTED} \\\n"
        f"  --json-model-override-args '{_indented(_overrides(model), 2)}'"
    )


def sglang():
    _each(_sglang, READ_BY_ALL)


def _llama_cpp(name, model):
    file = name.rpartition("/")[2].lower()
    return (
        f"llama-server -m {file}.gguf \\\n"
        f"  -c {WANTED} \\\n"
        f"  --rope-scaling yarn \\\n"
        f"  --rope-scale {_scaling(model)['factor']:g} \\\n"
        f"  --yarn-orig-ctx {model['original']}"
    )


def llama_cpp():
    _each(_llama_cpp)


def _mlx_keys(model):
    """The keys of a config.json for mlx-lm, whose Llama has the old names."""
    changed = _scaling(model)
    base = changed.pop("rope_theta")
    return {
        "max_position_embeddings": WANTED,
        "rope_theta": base,
        "rope_scaling": changed,
    }


def _mlx(name, model):
    keys = json.dumps(_mlx_keys(model), indent=2)
    return f"# in config.json of {name}\n" + "\n".join(
        line[2:] for line in keys.splitlines()[1:-1]
    )


def mlx():
    _each(_mlx, READ_BY_ALL)


def ollama():
    name = SHOWN[0]
    file = name.rpartition("/")[2]
    print("# 1. in config.json, as for mlx-lm")
    print(_mlx(name, MODELS[name]).partition("\n")[2])
    print("\n# 2. a GGUF from it, by the converter of llama.cpp")
    print(f"python convert_hf_to_gguf.py {file} \\")
    print(f"  --outfile {file.lower()}.gguf")
    print("\n# 3. the Modelfile, and then: ollama create longer")
    print(f"FROM ./{file.lower()}.gguf")
    print(f"PARAMETER num_ctx {WANTED}")


def measured():
    known = results()
    print("| Keys in the file |", " | ".join(STACKS), "|")
    print("|---" * (1 + len(STACKS)) + "|")
    for spelling, case in SPELLINGS.items():
        found = [known[name.replace(" ", "-")][case] for name in STACKS]
        print("|", " | ".join([spelling, *map(outcome, found)]), "|")


def _kept(way, end):
    return excess_loss("RoPE served longer", end, way, "short_texts")


def short():
    """Excess loss against the length of the text, for RoPE and for YaRN with
    fixed factors of two, four and eight. At the training length, all four
    points lie close together. On longer texts, RoPE rises steeply, YaRN with
    factor two less steeply, and factors four and eight least.
    """
    fig, ax = plt.subplots(figsize=(4.4, 3))
    named = {"RoPE": "RoPE"} | {
        f"YaRN by {factor}": f"YaRN, factor {factor}"
        for factor in short_texts.FACTORS
    }
    for number, (way, label) in enumerate(named.items()):
        means = [_kept(way, end).mean() for end in LENGTHS]
        color = "black" if way == "RoPE" else f"C{number - 1}"
        ax.plot(LENGTHS, means, color=color, marker="o", label=label)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.minorticks_off()
    ax.set_xticks(LENGTHS, [f"{end:,}" for end in LENGTHS])
    losses = 0.05, 0.1, 0.2, 0.5
    ax.set_yticks(losses, [f"{loss:g}" for loss in losses])
    ax.set(xlabel="length of the text (states)", ylabel="excess loss (nats)")
    ax.legend(frameon=False)
    return fig


def lengths():
    print("| Frequencies |", " | ".join(f"{end:,}" for end in LENGTHS), "|")
    print("|---" + "|--:" * len(LENGTHS) + "|")
    values = {}
    for way in short_texts.ways():
        found = [
            mean_excess("RoPE served longer", end, way, "short_texts")
            for end in LENGTHS
        ]
        print("|", " | ".join([way, *map(cell, found)]), "|")
        for end, each in zip(LENGTHS, found, strict=True):
            values[f"{key(way)}_{end}"] = each.gain
    trained = torch.stack(
        [_kept(f"YaRN by {f}", TRAIN_LENGTH) for f in short_texts.FACTORS]
    ) - _kept("RoPE", TRAIN_LENGTH)
    for factor, cost in zip(short_texts.FACTORS, trained, strict=True):
        values[f"cost_{factor}"] = cost.mean().item()
    fixed = f"YaRN by {short_texts.FACTORS[-1]}"
    gains = [
        (_kept(fixed, end) - _kept("YaRN by length", end)).mean().item()
        for end in LENGTHS
    ]
    return values | {
        "trained": TRAIN_LENGTH,
        "seeds": trained.shape[1],
        "dynamic_gain": max(gains),
    }


def _by_ntk(length):
    """The base of NTK-aware scaling from Llama 2 to a length."""
    return BASE * (length / TRAINED) ** (HEAD / (HEAD - 2))


def _by_critical_dimension(length):
    """The base with which a pair that did not complete a rotation in the
    training of Llama 2 completes one at a length.
    """
    rotations = TRAINED * rope_frequencies(HEAD, base=BASE) / (2 * math.pi)
    critical = 2 * int((rotations >= 1).sum())
    return (length / (2 * math.pi)) ** (HEAD / critical)


@cache
def _reaches():
    """Bases, each a step above the one before, and the reach of each."""
    found, base = [], float(BASE)
    while not found or found[-1][1] < 1.5 * TARGETS[-1]:
        found.append((base, _reach(rope_frequencies(HEAD, base), 400_000)))
        base *= STEP
    return tuple(found)


def _by_reach(length):
    """The smallest of the bases whose reach is at least a length."""
    return next(base for base, reach in _reaches() if reach >= length)


RULES = {
    "NTK-aware": _by_ntk,
    "critical dimension": _by_critical_dimension,
    "lower bound": _by_reach,
}


def base_rules():
    print("| Length | NTK-aware | Critical dimension | Lower bound |")
    print("|--:|--:|--:|--:|")
    values = {"step": STEP - 1, "trained": TRAINED, "from": BASE, "dim": HEAD}
    for length in TARGETS:
        bases = [rule(length) for rule in RULES.values()]
        rounded = [f"{float(f'{base:.2g}'):,.0f}" for base in bases]
        print("|", " | ".join([f"{length:,}", *rounded]), "|")
    values["apart"] = max(bases) / min(bases)
    return values | {"longest": TARGETS[-1]}


def base_chart():
    """Base against context length, both logarithmic. NTK-aware scaling is
    the lowest line at long contexts, the rule of the critical dimension lies
    above it, and the jagged line of the lower bound is highest. Apart from
    Llama 2, all dots lie above the first two lines; some are above the lower
    bound and some below it.
    """
    fig, ax = plt.subplots(figsize=(4.4, 3.6))
    lengths = [TRAINED, *TARGETS, 2 * TARGETS[-1]]
    ax.plot(lengths, [_by_ntk(n) for n in lengths], "C0", label="NTK-aware")
    rule = [_by_critical_dimension(length) for length in lengths]
    ax.plot(lengths, rule, "C1--", label="critical dimension")
    bases, reaches = zip(*_reaches(), strict=True)
    ax.plot(reaches, bases, "gray", linewidth=0.8, label="lower bound")
    for base, length, name in WITHOUT_SCALING:
        ax.plot(length, base, "o", color="black", markersize=4)
        right = 4 if name in ("Qwen3", "Mixtral 8x22B") else -9
        up = AT_LEFT.get(name, right)
        ax.annotate(
            *(name, (length, base), (-5 if name in AT_LEFT else 5, up)),
            textcoords="offset points",
            ha="right" if name in AT_LEFT else "left",
        )
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.minorticks_off()
    ax.set_xlim(TRAINED / 1.6, 2.8 * TARGETS[-1])
    ax.set_ylim(top=1e8)
    powers = [10**power for power in (4, 5, 6, 7)]
    ax.set_yticks(powers, [f"{base:,}" for base in powers])
    ticks = [TRAINED, *TARGETS[::2], 2 * TARGETS[-1]]
    ax.set_xticks(ticks, [f"{length:,}" for length in ticks])
    ax.set(xlabel="context (tokens)", ylabel="base")
    ax.legend(frameon=False, loc="upper left")
    return fig
