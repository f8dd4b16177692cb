"""What stacks make of a config.json: each rotates known channels, for every case of docs/dialects.toml.

    python experiments/dialects.py transformers-4
    python experiments/dialects.py transformers-5
    python experiments/dialects.py vLLM
    python experiments/dialects.py SGLang
    python experiments/dialects.py mlx-lm
    python experiments/dialects.py llama.cpp --source llama.cpp
    python experiments/dialects.py llama-models --source llama-models
    python experiments/dialects.py Megatron-LM --source Megatron-LM

Run it by a Python that has the stack. What it finds goes to experiments/results/dialects.json, which
exhibits/dialects.py shows. --source names a checkout of what is no package: the converter of llama.cpp, at
the commit that llama-cpp-python was built from, and the code that a model's makers released, of which only
the functions that make and use the tables are run (DeepSeek-V3, gemma and mistral-inference likewise).

No GPU is needed. SGLang's wheel can lie unpacked on PYTHONPATH, with those of the packages that it imports
that need none, and transformers 5.19.0: its own functions read the file and build a decoder layer of Llama;
the one stand-in is a kernel for GPUs, which the layer imports and which nothing calls. Megatron-LM parses its
flags and builds a GPT model of one layer, as its pretrain_gpt.py does; the checks of flags with each other
are left out. There, the CPU stands in for the current CUDA device.

A stack is measured by a rotation, not by a setting: the angle by which position one rotates each pair, in
radians, and by how much it lengthens. llama.cpp gives no rotation away, so a small model is written whose
attention weights tell it.
"""

import argparse
import ast
import contextlib
import functools
import json
import logging
import math
import re
import sys
import tempfile
import tomllib
import types
import typing
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CASES = ROOT / "docs" / "dialects.toml"
RESULTS = ROOT / "experiments" / "results" / "dialects.json"
DIM, WIDTH, FAR = 32, 64, 512
BASE = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": WIDTH,
    "num_attention_heads": WIDTH // DIM,
    "num_key_value_heads": WIDTH // DIM,
    "head_dim": DIM,
    "num_hidden_layers": 1,
    "intermediate_size": WIDTH,
    "vocab_size": WIDTH,
    "max_position_embeddings": 16384,
    "rms_norm_eps": 1e-12,
    "tie_word_embeddings": False,
}
EYE = [[float(i == j) for j in range(DIM)] for i in range(DIM)]


def turns(rotation):
    """Angle and stretch of each pair, the fastest first, of a rotation of EYE's rows: whatever the layout."""
    found = []
    for i, row in enumerate(rotation):
        across = max(abs(x) for j, x in enumerate(row) if j != i)
        found.append((math.atan2(across, row[i]), math.hypot(across, row[i])))
    return sorted(found, reverse=True)[::2]  # both channels of a pair say the same


def by_transformers(config, length, _):
    """Versions 4 and 5 alike: the class of Llama's tables, and its function that rotates."""
    import torch
    from transformers import LlamaConfig
    from transformers.models.llama import modeling_llama
    from transformers.utils import logging as heard

    heard.warning_once.cache_clear()
    tables = modeling_llama.LlamaRotaryEmbedding(LlamaConfig(**config))
    x = torch.tensor(EYE)[None, :, None].expand(1, DIM, 2, DIM)  # a head for each row
    cos, sin = tables(x, torch.tensor([[1, length - 1]]))
    return turns(modeling_llama.apply_rotary_pos_emb(x, x, cos, sin)[0][0, :, 0].tolist())


def by_vllm(config, length, _):
    """As its model of Llama does it; its tables do not look at the length of a text."""
    import torch
    from transformers import LlamaConfig
    from transformers.utils import logging as heard
    from vllm.config import DeviceConfig, VllmConfig, set_current_vllm_config
    from vllm.model_executor.layers.rotary_embedding import get_rope
    from vllm.transformers_utils.config import patch_rope_parameters

    heard.warning_once.cache_clear()
    read = LlamaConfig(**config)
    patch_rope_parameters(read)
    with set_current_vllm_config(VllmConfig(device_config=DeviceConfig("cpu"))):
        given = {"max_position": read.max_position_embeddings, "dtype": torch.float32}
        rope = get_rope(read.head_dim, rope_parameters=read.rope_parameters, **given)
        x = torch.tensor(EYE).flatten()[None]  # one token, a head for each row
        turned, _ = rope.forward_native(torch.tensor([1]), x.clone(), x.clone())
    return turns(turned.view(DIM, DIM).tolist())


def by_sglang(config, length, _):
    """Read by its function, and rotated by the first layer of its Llama, without its kernels for GPUs."""
    import torch

    # Without a GPU, the table of a layer imports this kernel, which forward_native does not call.
    kernel = types.SimpleNamespace(rotary_embedding=None)
    sys.modules |= {"vllm": types.ModuleType("vllm"), "vllm._custom_ops": kernel}
    from sglang.srt.models.llama import LlamaDecoderLayer
    from sglang.srt.runtime_context import get_parallel
    from sglang.srt.utils.hf_transformers import get_config
    from transformers.utils import logging as heard

    heard.warning_once.cache_clear()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(config), encoding="utf-8")
        read = get_config(folder, trust_remote_code=False)
    with get_parallel().override(tp_size=1, tp_rank=0):
        rope = LlamaDecoderLayer(read, stage_boundaries=False).self_attn.rotary_emb
    x = torch.tensor(EYE).flatten()[None]  # one token, a head for each row
    turned, _ = rope.forward_native(torch.tensor([1]), x.clone(), x.clone())
    return turns(turned.view(DIM, DIM).tolist())


def by_mlx(config, length, _):
    """The rotation of the first layer of its Llama."""
    import mlx.core as mx
    from mlx_lm.models import llama

    (layer,) = llama.Model(llama.ModelArgs.from_dict(config)).model.layers
    tokens = length if length > config["max_position_embeddings"] else 2
    x = mx.broadcast_to(mx.array(EYE)[None, :, None], (1, DIM, tokens, DIM))
    return turns(layer.self_attn.rope(x)[0, :, 1].tolist())


def by_llama_cpp(config, length, source):
    """Converted by its converter, and read by its library."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "model.gguf")
        _convert(config, Path(folder), file, source)
        near, far = (_seen(file, distance) for distance in (1, FAR))
    pairs = []
    for close, remote in zip(near, far, strict=True):
        slow = math.atan2(*close) < 1 / FAR
        angle = math.atan2(*remote) / FAR if slow else math.atan2(*close)
        pairs.append((angle, math.sqrt(math.hypot(*close))))  # of q and of k: half of it each
    return sorted(pairs, reverse=True)


def by_makers(config, length, source):
    """As the code does it that came with a model; keys that its function does not take are an error."""
    import torch

    name = source.name
    if name == "gemma":
        return _by_gemma(config, source)
    if name == "llama-models":
        known = _functions(source / "models/llama3/model.py")
        tables = known["precompute_freqs_cis"](DIM, 2, config["rope_theta"], config["use_scaled_rope"])
    elif name == "mistral-inference":
        known = _functions(source / "src/mistral_inference/rope.py")
        tables = known["precompute_freqs_cis"](DIM, 2, **config)
    else:
        known = _functions(source / "inference/model.py")
        given = argparse.Namespace(qk_rope_head_dim=DIM, **config)
        tables = known["precompute_freqs_cis"](given)
    pairs = torch.view_as_complex(torch.tensor(EYE).view(DIM, -1, 2))  # neighbours, as all three have them
    return turns(torch.view_as_real(pairs * tables[1]).flatten(1).tolist())


def by_megatron(flags, length, source):
    """The rotation of a model that its builder makes of flags, and the layout."""
    import torch

    _start_megatron(source)
    from megatron.core.models.common.embeddings.rope_utils import apply_rotary_pos_emb
    from megatron.core.process_groups_config import ProcessGroupCollection
    from megatron.training.argument_utils import gpt_config_from_args
    from megatron.training.arguments import add_megatron_arguments
    from megatron.training.models import GPTModelBuilder

    words = [[flag] if value is True else [flag, str(value)] for flag, value in (FLAGS | flags).items()]
    parser = add_megatron_arguments(argparse.ArgumentParser())
    given = parser.parse_args([word for pair in words for word in pair])
    given.params_dtype, given.padded_vocab_size = torch.float32, WIDTH
    builder = GPTModelBuilder(gpt_config_from_args(given))
    model = builder.build_model(ProcessGroupCollection.use_mpu_process_groups())
    made = model.rotary_pos_emb(2)
    angles = made[0] if isinstance(made, tuple) else made  # that of YaRN also returns its factor
    factor = model.decoder.layers[0].self_attention._yarn_concentration_factor
    x = torch.tensor(EYE)[None, None].expand(2, 1, DIM, DIM)  # two tokens, a head for each row
    turned = apply_rotary_pos_emb(x, angles, model.config, mscale=factor)[1, 0]
    partner = max(range(1, DIM), key=lambda channel: abs(turned[0, channel].item()))
    return turns(turned.tolist()), "adjacent" if partner == 1 else f"channels {partner} apart"


FLAGS = {
    **{f"--{name}": 1 for name in ("num-layers", "micro-batch-size")},
    "--hidden-size": WIDTH,
    "--num-attention-heads": WIDTH // DIM,
    "--kv-channels": DIM,
    "--seq-length": WIDTH,
    "--max-position-embeddings": BASE["max_position_embeddings"],
    "--transformer-impl": "local",
    "--use-cpu-initialization": True,
    "--no-rope-fusion": True,
    **{f"--no-{name}": True for name in ("persist-layer-norm", "gradient-accumulation-fusion")},
}


@functools.cache
def _start_megatron(source):
    """A group of one process, on the CPU."""
    import torch

    sys.path.insert(0, str(source))
    if not hasattr(typing, "override"):  # before Python 3.12
        typing.override = lambda method: method
    torch.cuda.current_device = lambda: "cpu"
    from megatron.core import parallel_state

    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    parallel_state.initialize_model_parallel()


def _by_gemma(config, source):
    """Its JAX function, run with NumPy instead of JAX."""
    import numpy as np

    rotate = _functions(source / "gemma/gm/math/_positional_embeddings.py", jnp=np)["apply_rope"]
    x = np.array(EYE)[None, None]  # a head for each row
    return turns(rotate(x, np.array([[1]]), **config)[0, 0].tolist())


def _functions(file, **known):
    """The functions of a file without what it imports, for which a machine may lack the room."""
    import torch

    tree = ast.parse(file.read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    for node in tree.body:
        node.decorator_list, node.returns = [], None
        for argument in (*node.args.args, *node.args.kwonlyargs):
            argument.annotation = None
    known |= {"torch": torch, "math": math}
    exec(compile(tree, file, "exec"), known)
    return known


KEY, FILLER, OUT = WIDTH - 3, WIDTH - 2, WIDTH - 1  # tokens; those before are queries, two for each pair


def _convert(config, folder, file, source):
    """A GGUF whose metadata come from the converter, and whose one head looks at one channel a token."""
    sys.path.insert(0, str(source))
    import gguf
    import numpy as np
    from conversion.llama import LlamaModel

    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    model = LlamaModel(folder, gguf.LlamaFileType.ALL_F32, file)
    writer = model.gguf_writer
    model.set_gguf_parameters()
    writer.add_tokenizer_model("no_vocab")
    q, k, v, o = (np.zeros((WIDTH, WIDTH), np.float32) for _ in range(4))
    for channel in range(DIM):
        q[channel, channel] = DIM**0.5  # of a token's vector, which normalisation makes 8 long
    k[0:DIM:2, KEY] = v[0, KEY] = WIDTH**-0.5
    o[OUT, 0] = 1.0
    ones, zeros = np.ones(WIDTH, np.float32), np.zeros((WIDTH, WIDTH), np.float32)
    for name, array in {
        "token_embd.weight": np.eye(WIDTH, dtype=np.float32),
        "output.weight": np.eye(WIDTH, dtype=np.float32),
        "output_norm.weight": ones,
        "blk.0.attn_norm.weight": ones,
        "blk.0.ffn_norm.weight": ones,
        **dict(
            zip(
                (f"blk.0.attn_{part}.weight" for part in ("q", "k", "v", "output")), (q, k, v, o), strict=True
            )
        ),
        **{f"blk.0.ffn_{part}.weight": zeros for part in ("gate", "up", "down")},
        **{name: tensor.numpy() for name, tensor in model.generate_extra_tensors()},
    }.items():
        writer.add_tensor(name, array)
    writer.write_header_to_file(path=file)
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _seen(file, distance):
    """Sine and cosine of the angle of each pair at a distance, times what q and k were lengthened by."""
    import llama_cpp

    # Loaded with its progress on stderr, which would hide what matters.
    with Path("/dev/null").open("w") as silence, contextlib.redirect_stderr(silence):
        model = llama_cpp.Llama(
            str(file), n_ctx=1024, n_batch=1024, flash_attn=False, type_k=0, type_v=0, verbose=False
        )
    scores = []
    for query in range(DIM):
        model.reset()
        model.eval([KEY, *[FILLER] * (distance - 1), query])
        logits = llama_cpp.llama_get_logits(model.ctx)
        share = logits[OUT] / logits[query]  # of the attention, to the key
        scores.append(math.log(share / (1 - share) * distance) / 8)
    return [(-scores[2 * p + 1], scores[2 * p]) for p in range(DIM // 2)]


STACKS = {
    "transformers-4": by_transformers,
    "transformers-5": by_transformers,
    "vLLM": by_vllm,
    "SGLang": by_sglang,
    "mlx-lm": by_mlx,
    "llama.cpp": by_llama_cpp,
}
MAKERS = dict.fromkeys(("llama-models", "DeepSeek-V3", "gemma", "mistral-inference"), by_makers)
MAKERS["Megatron-LM"] = by_megatron


OF_EVERY_CASE = (
    "Unknown RoPE type: default",  # llama.cpp's converter, of every file without a method
    "GPTModel IS DEPRECATED",  # Megatron-LM
)


class _Heard(logging.Handler):
    """All warnings, from any logger."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.words = []

    def emit(self, record):
        if not record.getMessage().startswith(OF_EVERY_CASE):
            self.words.append(record.getMessage())


def outcome(measure, case, source=None):
    """What a stack makes of one case: angles and stretch, or the error; and whether it warned."""
    config = json.loads(case["config"])
    heard = _Heard()
    loggers = [logging.getLogger(name) for name in (None, "transformers", "vllm", "sglang", "hf-to-gguf")]
    for logger in loggers:
        logger.addHandler(heard)
    try:
        measured = measure(config, case.get("length", 2), source)
        pairs, *layout = measured if isinstance(measured, tuple) else (measured,)
        found = ({"layout": layout[0]} if layout else {}) | {
            "angles": [float(f"{angle:.4g}") for angle, _ in pairs],
            "stretch": round(max(stretch for _, stretch in pairs), 3),
        }
    except Exception as error:  # a refusal of any kind is a finding
        found = {"refuses": type(error).__name__, "words": str(error).splitlines()[0][:120]}
    finally:
        for logger in loggers:
            logger.removeHandler(heard)
    for words in heard.words:
        print(f"    heard: {words[:110]}", file=sys.stderr)
    return found | {"warns": bool(heard.words)}


def cases_of(stack):
    """The cases of a stack: those of a config.json, on top of BASE, or its own."""
    known = tomllib.loads(CASES.read_text(encoding="utf-8"))
    if stack in MAKERS:
        return [case for case in known["own"] if case["stack"] == stack]
    return [case | {"config": json.dumps(BASE | json.loads(case["config"]))} for case in known["case"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("stack", choices=(*STACKS, *MAKERS))
    parser.add_argument("--source", type=Path, help="a checkout, named as its repository")
    asked = parser.parse_args()
    measure = (STACKS | MAKERS)[asked.stack]
    cases = cases_of(asked.stack)
    found = {}
    for case in (cases[0], *cases):  # the first time it imports, and may say other things
        found[case["name"]] = outcome(measure, case, asked.source)
        print(case["name"], found[case["name"]], file=sys.stderr)
    kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    kept[asked.stack] = found
    text = json.dumps(kept, indent=1, sort_keys=True)
    text = re.sub(
        r"\[[^\]{}]*\]", lambda angles: " ".join(angles[0].split()), text
    )  # a row of numbers, a line
    RESULTS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
