"""The page on serving a longer context: its lines are what the libraries read, where they can be run."""

import ast
import inspect
import itertools
import json
import logging
import math
import re
import textwrap
import tomllib

import pytest
import torch

from executable_prose.project import ROOT
from exhibits import in_plain_python, serve_longer
from experiments import dialect_outcomes as outcomes
from experiments import dialects as tool
from experiments import short_texts
from experiments.runs import load
from snippets.rope import rope_frequencies
from snippets.rope_scaling import yarn, yarn_attention_factor
from tests.exhibits.common import numbers
from tests.peers import peer
from tests.rows import each_of

RELEASED = tomllib.loads((ROOT / "packages/check-positions/tests/configurations.toml").read_text("utf-8"))[
    "released"
]
QWEN, MIXTRAL = serve_longer.SHOWN
FACTORS = {QWEN: 4.0, MIXTRAL: 2.0}
ORIGINAL = {QWEN: 32_768, MIXTRAL: 65_536}
YARN = {"rope_type": "yarn", "rope_theta": 500_000.0, "factor": 4.0, "original_max_position_embeddings": 64}


def released(name):
    """The keys of a released file, with those of the file that it is like."""
    entry = RELEASED[name]
    inherited = released(entry["like"]) if "like" in entry else {}
    return inherited | json.loads(re.sub(r'"@48[^"]*"', '""', entry["config"]))


@each_of("name", serve_longer.MODELS)
def test_the_keys_of_a_model_are_those_of_its_released_file(name):
    model, file = serve_longer.MODELS[name], released(name)
    assert model["max_position_embeddings"] == file.get("max_position_embeddings", 8192)
    if file["model_type"] == "nemotron_h":
        assert RELEASED[name]["right"]["answer"] == "none" and "rope_theta" not in model
        return
    assert model["rope_theta"] == file["rope_theta"]
    scaled = file.get("rope_scaling")
    if scaled:
        assert model["scaling"] == (scaled.get("rope_type", scaled.get("type")), scaled["factor"])
        assert model["original"] == scaled["original_max_position_embeddings"]
        assert model["original"] * scaled["factor"] <= model["max_position_embeddings"]
    else:
        assert "scaling" not in model and model["original"] <= model["max_position_embeddings"]


def test_only_what_a_file_does_not_allow_is_scaled(capsys):
    values = serve_longer.models()
    lines = [line[2:-2].split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    rows = {name: change for name, change, *_ in lines}
    assert rows[QWEN] == "**YaRN, 4 × 32,768**" and rows[MIXTRAL] == "**YaRN, 2 × 65,536**"
    assert rows["meta-llama/Meta-Llama-3.1-8B"] == rows["openai/gpt-oss-20b"] == "only the length"
    assert rows["nvidia/Nemotron-H-56B-Base-8K"] == "there is nothing to scale"
    assert (values["factor"], values["too_small"], values["other_factor"]) == (4.0, 3.2, 2.0)
    # Keys and values of 8 heads of 128 in 36 and in 56 layers, two bytes each.
    assert values["cache"] == 131_072 * 2 * 36 * 8 * 128 * 2 / 1024**3
    assert values["other_cache"] == 131_072 * 2 * 56 * 8 * 128 * 2 / 1024**3
    assert values["attention"] == yarn_attention_factor(4)


def dictionaries(text):
    """The JSON between single quotes, of each model."""
    return [json.loads(found) for found in re.findall(r"'(\{.*?\})'", text, re.S)]


def printed(function, capsys):
    function()
    return capsys.readouterr().out


def test_vllm_and_sglang_get_the_same_keys_and_the_length(capsys):
    """The Mixtral of SGLang reads no method, so it has no lines for SGLang."""
    told = [printed(each, capsys) for each in (serve_longer.vllm, serve_longer.sglang)]
    assert dictionaries(told[0])[:1] == dictionaries(told[1]) and f"--model-path {QWEN} " in told[1]
    for (name, factor), keys in zip(FACTORS.items(), dictionaries(told[0]), strict=True):
        scaled = keys["rope_parameters"]
        assert keys["max_position_embeddings"] == 131_072 == scaled["factor"] * ORIGINAL[name]
        assert (scaled["factor"], scaled["original_max_position_embeddings"]) == (factor, ORIGINAL[name])
        assert scaled["rope_theta"] == released(name)["rope_theta"]
    assert told[0].count("--max-model-len 131072 ") == 2 and told[1].count("--context-length 131072 ") == 1


def test_the_call_for_transformers_passes_the_same_keys(capsys):
    calls = [node.value for node in ast.parse(printed(serve_longer.transformers, capsys)).body[1:]]
    for name, call in zip(serve_longer.SHOWN, calls, strict=True):
        assert ast.unparse(call.func) == "AutoModelForCausalLM.from_pretrained"
        assert [ast.literal_eval(each) for each in call.args] == [name]
        given = {each.arg: ast.literal_eval(each.value) for each in call.keywords}
        assert given == serve_longer._overrides(serve_longer.MODELS[name])


def test_the_flags_of_llama_cpp_have_the_same_numbers(capsys):
    told = printed(serve_longer.llama_cpp, capsys)
    assert re.findall(r"-c (\d+)", told) == ["131072"] * 2
    assert [float(each) for each in re.findall(r"--rope-scale (\S+)", told)] == [*FACTORS.values()]
    assert [int(each) for each in re.findall(r"--yarn-orig-ctx (\d+)", told)] == [*ORIGINAL.values()]


def test_the_keys_for_mlx_and_before_a_conversion_are_those_of_version_4(capsys):
    """The Mixtral of mlx-lm reads no method, so it has no keys for mlx-lm."""
    told = printed(serve_longer.mlx, capsys)
    assert told.startswith(f"# in config.json of {QWEN}\n")
    keys_of_qwen = json.loads("{" + told.partition("\n")[2] + "}")
    assert keys_of_qwen == serve_longer._mlx_keys(serve_longer.MODELS[QWEN])
    assert {*keys_of_qwen} == {"max_position_embeddings", "rope_theta", "rope_scaling"}
    made = printed(serve_longer.ollama, capsys)
    keys, _, rest = made.partition("\n# 2.")
    assert json.loads("{" + keys.partition("\n")[2].strip() + "}") == keys_of_qwen
    assert "FROM ./qwen3-8b.gguf\nPARAMETER num_ctx 131072" in rest and "--outfile qwen3-8b.gguf" in rest


def test_the_program_prints_the_same_settings(capsys):
    told = printed(in_plain_python.serve_longer, capsys)
    expected = serve_longer._overrides(serve_longer.MODELS[QWEN])
    assert dictionaries(told) == [expected, expected]
    (argument,) = re.findall(r" rope_parameters=(\{.*\})", told)
    assert json.loads(argument) == expected["rope_parameters"]
    keys = told.partition("GGUF\n")[2].rpartition("\n# q and k")[0]
    assert json.loads("{" + keys + "}") == serve_longer._mlx_keys(serve_longer.MODELS[QWEN])
    assert "-c 131072 --rope-scaling yarn \\\n  --rope-scale 4.0 --yarn-orig-ctx 32768" in told
    assert float(told.split()[-1]) == pytest.approx(yarn_attention_factor(4), abs=5e-5)


@pytest.mark.peer
@pytest.mark.claim(
    "serve-lines-are-yarn",
    "In transformers 5.23.0, a Llama with the keys that this page prints for two models, under the new names "
    "or the old ones, rotates by YaRN's angles and attention factor, with the printed base, factor and "
    "original length.",
)
@each_of("name", serve_longer.SHOWN)
@each_of("old", [False, True])
def test_the_printed_keys_are_yarn(name, old):
    peer("transformers").utils.logging.set_verbosity_error()
    model = serve_longer.MODELS[name]
    keys = serve_longer._mlx_keys(model) if old else serve_longer._overrides(model)
    found = tool.outcome(tool.by_transformers, {"config": json.dumps(tool.BASE | keys)})
    plain = rope_frequencies(tool.DIM, base=released(name)["rope_theta"])
    angles = torch.tensor(found["angles"], dtype=torch.float64)
    assert torch.allclose(angles, yarn(plain, FACTORS[name], ORIGINAL[name]), rtol=1e-3)
    assert found["stretch"] == pytest.approx(yarn_attention_factor(FACTORS[name]), abs=1e-3)
    assert not torch.allclose(angles, plain, rtol=0.1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small Llama with plain RoPE and 64 positions, saved."""
    library = peer("transformers")
    config = library.LlamaConfig(
        hidden_size=64,
        num_attention_heads=2,
        num_key_value_heads=2,
        num_hidden_layers=1,
        intermediate_size=64,
        vocab_size=64,
        max_position_embeddings=64,
        rope_parameters={"rope_type": "default", "rope_theta": 500_000.0},
    )
    place = tmp_path_factory.mktemp("llama")
    library.LlamaForCausalLM(config).save_pretrained(place)
    return place


def loaded(folder, **changes):
    return peer("transformers").AutoModelForCausalLM.from_pretrained(folder, **changes)


def without(key):
    return {name: value for name, value in YARN.items() if name != key}


@pytest.mark.peer
@pytest.mark.claim(
    "serve-transformers-replaces",
    "In transformers 5.23.0, `rope_parameters` as an argument of `from_pretrained` replaces the dictionary "
    "of the file: without a base, a Llama raises an error, and without an original length, YaRN uses the "
    "new `max_position_embeddings` instead.",
)
def test_an_argument_replaces_the_dictionary_of_the_file(folder):
    longer = {"max_position_embeddings": 256}
    plain = rope_frequencies(32, base=500_000)
    given = loaded(folder, rope_parameters=dict(YARN), **longer).model.rotary_emb
    assert torch.allclose(given.inv_freq.double(), yarn(plain, 4, 64), rtol=1e-5)
    with pytest.raises(TypeError):
        loaded(folder, rope_parameters=without("rope_theta"), **longer)
    unsaid = loaded(folder, rope_parameters=without("original_max_position_embeddings"), **longer)
    frequencies = unsaid.model.rotary_emb.inv_freq.double()
    assert torch.allclose(frequencies, yarn(plain, 4, 256), rtol=1e-5)
    assert not torch.allclose(frequencies, yarn(plain, 4, 64), rtol=0.1)


@pytest.mark.peer
@pytest.mark.claim(
    "serve-transformers-does-not-refuse",
    "In transformers 5.23.0, a Llama returns logits for a text longer than `max_position_embeddings`, with "
    "the frequencies of its file, and `generate` continues it with no more than a message in the log.",
)
def test_nothing_refuses_a_longer_text(folder):
    peer("transformers").utils.logging.set_verbosity_warning()
    model = loaded(folder)
    text = torch.arange(100)[None] % 64
    assert model(text).logits.shape == (1, 100, 64)
    assert torch.allclose(model.model.rotary_emb.inv_freq.double(), rope_frequencies(32, base=500_000))
    heard, logger = tool._Heard(), logging.getLogger("transformers")
    logger.addHandler(heard)
    longer = model.generate(text, max_new_tokens=2, do_sample=False, pad_token_id=0)
    logger.removeHandler(heard)
    assert longer.shape == (1, 102)
    assert [words for words in heard.words if "maximum length (64)" in words]


def test_the_measured_rows_are_those_of_the_dialects(capsys):
    rows = printed(serve_longer.measured, capsys).splitlines()[2:]
    new, old = (line[2:-2].split(" | ")[1:] for line in rows)
    assert new == ["base 10,000", "YaRN", "YaRN", "YaRN", "base 10,000", "YaRN"]
    assert old == ["YaRN"] * 6
    for case in serve_longer.SPELLINGS.values():
        (config,) = [each["config"] for each in outcomes.DATA["case"] if each["name"] == case]
        assert '"factor": 4.0' in config and '"original_max_position_embeddings": 4096' in config


def by_seed(way, end=128):
    """The mean excess loss of each seed."""
    kept = load("short_texts")["RoPE served longer"]
    return torch.tensor([run["excess_loss"][way][str(end)] for run in kept], dtype=torch.float64).mean(1)


@pytest.mark.claim(
    "serve-short-texts-cost",
    "On Markov chains, in the second half of the training length and without fine-tuning, YaRN with a fixed "
    "factor of 8 has a higher excess loss than with 4, and with 4 a higher one than RoPE, in each seed; "
    "the loss with 8 is at most 0.006 nats above that of RoPE. With a factor of 2 it is lower than RoPE's.",
)
def test_yarn_costs_little_on_short_texts():
    plain, two, four, eight = (by_seed(way) for way in ("RoPE", "YaRN by 2", "YaRN by 4", "YaRN by 8"))
    assert len(plain) == 3
    assert (two < plain).all() and (plain < four).all() and (four < eight).all()
    assert (eight - plain <= 0.006).all()


@pytest.mark.claim(
    "serve-linear-costs-most",
    "On Markov chains, in the second half of the training length and without fine-tuning, position "
    "interpolation by 2, 4 or 8 has an excess loss of at least 0.8 nats in each seed; with YaRN and "
    "NTK-aware scaling by the same factors, it is at most 0.06.",
)
def test_interpolation_costs_most_on_short_texts():
    for factor in (2, 4, 8):
        assert (by_seed(f"position interpolation by {factor}") >= 0.8).all()
        for method in ("YaRN", "NTK-aware"):
            assert (by_seed(f"{method} by {factor}") <= 0.06).all()


@pytest.mark.claim(
    "serve-too-small-a-factor",
    "On Markov chains, from 512 to 1,024 states after training on 128, without fine-tuning, YaRN by 2 has a "
    "higher excess loss than YaRN by 4, and YaRN by 4 a higher one than YaRN by 8, in each seed; RoPE has "
    "the highest.",
)
def test_too_small_a_factor_costs_more():
    losses = [by_seed(way, 1024) for way in ("YaRN by 8", "YaRN by 4", "YaRN by 2", "RoPE")]
    assert all((low < high).all() for low, high in itertools.pairwise(losses))


def test_the_table_of_lengths_has_what_was_kept(capsys):
    values = serve_longer.lengths()
    rows = [line[2:-2].split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[0] for row in rows] == [*short_texts.ways()]
    for way, *cells in rows:
        for cell, end in zip(cells, (128, 256, 512, 1024), strict=True):
            mean = by_seed(way, end).mean().item()
            assert cell.startswith(f"{mean:.2f} ±")
            assert values[f"{re.sub('[^a-z0-9]+', '_', way.lower())}_{end}"] == pytest.approx(mean)
    plain = by_seed("RoPE").mean()
    for factor in (2, 4, 8):
        assert values[f"cost_{factor}"] == pytest.approx((by_seed(f"YaRN by {factor}").mean() - plain).item())
    gains = [(by_seed("YaRN by 8", end) - by_seed("YaRN by length", end)).mean().item() for end in (128, 256)]
    assert values["dynamic_gain"] == pytest.approx(max(gains))
    assert torch.equal(by_seed("YaRN by length"), by_seed("RoPE"))
    for factor in (2, 4, 8):
        assert torch.equal(
            by_seed("YaRN by length", 128 * factor), by_seed(f"YaRN by {factor}", 128 * factor)
        )


def test_the_figure_has_the_means_of_the_runs():
    (ax,) = serve_longer.short().axes
    for line, way in zip(ax.lines, ("RoPE", "YaRN by 2", "YaRN by 4", "YaRN by 8"), strict=True):
        means = [by_seed(way, end).mean().item() for end in (128, 256, 512, 1024)]
        assert line.get_ydata() == pytest.approx(means)


# --- bases


def test_the_rules_are_those_of_their_papers(capsys):
    values = serve_longer.base_rules()
    rows = [line[2:-2].split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [numbers(row[0]) for row in rows] == [[16_384], [32_768], [65_536], [131_072]]
    for row in rows:
        length, ntk, critical, bound = (numbers(cell)[0] for cell in row)
        assert ntk == pytest.approx(10_000 * (length / 4096) ** (128 / 126), rel=0.06)
        # Of the 128 channels, 92 complete a rotation in 4,096 tokens with a base of 10,000.
        assert 2 * math.pi * critical ** (92 / 128) == pytest.approx(length, rel=0.05)
        assert bound > critical > ntk
    assert values["apart"] == pytest.approx(bound / ntk, rel=0.05)


@each_of("length", [16_384, 65_536])
def test_the_lower_bound_is_the_first_base_whose_sum_stays_positive(length):
    distance = torch.arange(length + 1)[:, None]
    base = serve_longer._by_reach(length)
    assert (distance * rope_frequencies(128, base)).cos().sum(-1).min() >= 0
    smaller = 10_000.0
    while smaller < base * 0.99:
        assert (distance * rope_frequencies(128, smaller)).cos().sum(-1).min() < 0
        smaller *= 1.15
    assert smaller == pytest.approx(base)


@pytest.mark.claim(
    "serve-bases-of-models",
    "Llama 3, Code Llama, Qwen3, MiMo 7B, Mixtral 8x22B, Qwen3-VL and Qwen3-Coder have larger bases than "
    "NTK-aware scaling of Llama 2 and the rule of its critical dimension give for their lengths.",
)
def test_released_models_have_larger_bases_than_two_of_the_rules():
    files = {
        "MiMo": "XiaomiMiMo/MiMo-7B-Base",
        "Mixtral 8x22B": "mistralai/Mixtral-8x22B-v0.1",
        "Qwen3-VL": "Qwen/Qwen3-VL-2B-Instruct",
        "Qwen3-Coder": "Qwen/Qwen3-Coder-480B-A35B-Instruct",
    }
    for base, length, name in serve_longer.WITHOUT_SCALING:
        if name in files:
            file = released(files[name])
            file = file.get("text_config", file)
            assert (file["rope_theta"], file["max_position_embeddings"]) == (base, length)
            assert file.get("rope_scaling") is None
        if name != "Llama 2":
            assert base > 10_000 * (length / 4096) ** (128 / 126)
            assert base > (length / (2 * math.pi)) ** (128 / 92)
    assert len(serve_longer.WITHOUT_SCALING) == 8 and {*files} < {n for *_, n in serve_longer.WITHOUT_SCALING}


def test_the_chart_has_a_dot_for_each_model():
    (ax,) = serve_longer.base_chart().axes
    dots = [(line.get_ydata()[0], line.get_xdata()[0]) for line in ax.lines if line.get_marker() == "o"]
    assert dots == [(base, length) for base, length, _ in serve_longer.WITHOUT_SCALING]
    assert [text.get_text() for text in ax.texts] == [name for *_, name in serve_longer.WITHOUT_SCALING]


PASTED = {
    "nested": ({"text_config": {"max_position_embeddings": 32_768, "rope_theta": 5e6}}, 5e6, 32_768),
    "new names": ({"max_position_embeddings": 8192, "rope_parameters": {"rope_theta": 1e4}}, 1e4, 8192),
    "scaled": (
        {
            "max_position_embeddings": 65_536,
            "rope_theta": 1e6,
            "rope_scaling": {"type": "yarn", "original_max_position_embeddings": 16_384},
        },
        1e6,
        16_384,
    ),
}


@each_of("name", PASTED)
def test_the_program_takes_a_pasted_file(name, capsys):
    file, base, trained = PASTED[name]
    program(file)
    told = capsys.readouterr().out
    new = dictionaries(told)[0]["rope_parameters"]
    assert new == YARN | {
        "rope_theta": base,
        "factor": 131_072 / trained,
        "original_max_position_embeddings": trained,
    }
    assert ("already has the method yarn" in told) == ("rope_scaling" in file)


def test_the_program_says_that_a_long_enough_model_needs_no_scaling():
    with pytest.raises(AssertionError, match="262144 tokens need no scaling: set the limit"):
        program({"max_position_embeddings": 262_144, "rope_theta": 1e6})


def program(file):
    """Run the page's program with another file, and with the length that the file says."""
    lines = inspect.getsource(in_plain_python.serve_longer).splitlines()[1:]
    code = textwrap.dedent("\n".join(lines)).replace("trained = 32768", "trained = 0")
    exec(re.sub(r'(?s)""".*?"""', lambda _: repr(json.dumps(file)), code, count=1), {})


def test_the_program_has_the_bases_of_the_rules(capsys):
    in_plain_python.rope_bases()
    ntk, _, critical = [line.split(": ")[1] for line in capsys.readouterr().out.splitlines()]
    length = serve_longer.TARGETS[-1]
    assert int(ntk) == round(serve_longer._by_ntk(length))
    assert int(critical) == round(serve_longer._by_critical_dimension(length))
