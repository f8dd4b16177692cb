"""read_config.py against the library whose files it reads: its calls are run beside the library's models.

The page's script says the same words; tests/site/test_read_config.py holds it to this file.
"""

import copy
import json
import os
import random
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from check_positions import checker as check_positions
from check_positions.config import TABLE, format_report, read_config, table
from experiments import configurations as asked
from experiments import dialect_outcomes
from snippets.rope import rope_frequencies
from tests.configurations import BROKEN, ROPES, changed, default, spelt
from tests.peers import peer

FILE = sys.modules[read_config.__module__].__file__
ROWS = asked.known()["models"]
TURNING = sorted(kind for kind, row in ROWS.items() if "layout" in row)
FAST = (
    *("llama", "mistral", "qwen2", "qwen3", "gemma2", "gpt_oss", "gpt_neox", "gptj", "cohere", "cohere2"),
    *("glm4", "deepseek_v3", "llama4_text", "smollm3", "phi3", "modernbert", "ministral3", "nanochat"),
)
INTERLEAVED = ("gptj", "codegen", "cohere", "cohere2", "glm", "glm4", "llama4_text", "ernie4_5", "helium")
HALF = (
    *("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "gpt_oss", "gpt_neox", "phi"),
    *("phi3", "olmo2", "smollm3", "starcoder2"),
)
# They read no dictionary of the old dialect, nor one for all kinds of layers; esm reads none.
ALWAYS_OWN = ("mellum", "gemma4_text", "gemma4_unified_text", "mimo_v2_flash", "esm", "beam")
KEYS = (
    *("model_type", "rope_scaling", "rope_parameters", "rope_theta", "factor", "type", "rope_type"),
    *("layer_types", "num_hidden_layers", "head_dim", "no_rope_layers", "text_config", "full_attention"),
    *("sliding_window", "short_factor", "partial_rotary_factor", "rotary_dim", "use_sliding_window"),
    "sliding_window_pattern",
)
LEAVES = ("yarn", "linear", "longrope", "llama3", "gemma3_text", "llama", 2.0, 4, 128)
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(KEYS), inner | st.sampled_from(LEAVES))
    ),
)
SMALL = {
    "model_type": "llama",
    "max_position_embeddings": 16384,
    "hidden_size": 64,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
}


def each(kinds, fast=FAST):
    """The most used by day, all by night."""
    return [pytest.param(kind, marks=[] if kind in fast else pytest.mark.slow) for kind in kinds]


def of(parts, kind):
    return [part.text for part in parts if part.kind == kind]


def answer(**config):
    return read_config(json.dumps(config))


def made(parts):
    """The names that the first two blocks of an answer make: frequencies, cosines, sines."""
    known = {"positions": torch.arange(4)}
    for code in list(asked.printed(parts).values())[:2]:
        asked.run(code, known)
    return known


# --- the library's models


@pytest.fixture(scope="module")
def built():
    """A small random model of a kind, once."""
    peer("transformers")
    kept = {}

    def model(kind):
        if kind not in kept:
            kept.clear()
            kept[kind] = asked.built(kind, **asked.GIVEN.get(kind, {}))
        return kept[kind]

    return model


@pytest.mark.peer
@pytest.mark.claim(
    "add-turns-as-models-do",
    "For every class with RoPE that read_config.py knows, the calls printed for the configuration of a "
    "small random model, and for the same configuration with each of its switches set to another value, "
    "match the model in transformers 5.23.0 as follows: in each layer that rotates, they give the same "
    "scores of unit vectors as the model's own function, within 1e-5, they multiply scores by the model's "
    "factor where they compute attention, and they see the keys that the model's mask leaves, except in "
    "models whose indexer chooses keys. Where a switch disables the rotation, there are no calls.",
)
@pytest.mark.parametrize("kind", each(TURNING))
def test_printed_calls_rotate_as_the_model_does(kind):
    peer("transformers")
    for more in asked.switched(kind, ROWS[kind]):
        assert asked.differs(kind, asked.built(kind, **more)) == "", more


def test_switches_of_a_kind_are_flipped():
    """One of each sort, and a switch that is off leaves no calls."""
    keys = {kind: [*{key for given in asked.switched(kind, ROWS[kind]) for key in given}] for kind in TURNING}
    for kind, key in (
        ("exaone4", "sliding_window"),
        ("qwen3", "use_sliding_window"),
        ("deepseek_v3", "rope_interleave"),
        ("smollm3", "no_rope_layer_interval"),
        ("gemma2", "attn_logit_softcapping"),
        ("gemma3_text", "query_pre_attn_scalar"),
        ("granite_swa", "attention_multiplier"),
        ("hunyuan_v1_dense", "rope_parameters"),
        ("granitemoehybrid", "position_embedding_type"),
        ("modernbert", "global_attn_every_n_layers"),
    ):
        assert key in keys[kind], kind
    for kind, (key, on) in asked.SWITCHES.items():
        for off in ({}, {key: None}, {key: "nope" if on != "true" else False}):
            parts = answer(model_type=kind, **off)
            assert not of(parts, "code") and "no RoPE" in parts[0].text and key in format_report(parts)


@pytest.mark.peer
@pytest.mark.claim(
    "add-windows-hide-the-same",
    "In small random gemma2, gpt_oss, cohere2, llama4_text, mistral and modernbert models of transformers "
    "5.23.0, the mask of each layer leaves exactly the keys that `attention_mask` in the printed calls "
    "leaves.",
)
@pytest.mark.parametrize("kind", ["gemma2", "gpt_oss", "cohere2", "llama4_text", "mistral", "modernbert"])
def test_printed_windows_are_those_of_the_model(kind, built):
    model = built(kind)
    many = model.config.num_hidden_layers
    seen = asked.seen_of(read_config(model.config.to_json_string(use_diff=False)), many)
    layers = check_positions.read_layers(
        model, lambda token: model(**check_positions.constant_input(model, token))
    )
    assert sum(mask is not None for mask in seen) > many // 3
    for mask, layer in zip(seen, layers, strict=True):
        left = layer.scores[0, 0, :, : asked.TOKENS] > asked.HIDDEN
        if mask is None:
            assert left.tril().equal(torch.ones_like(left).tril())
        else:
            assert left.equal(mask)
    assert any(not mask[-1].all() for mask in seen if mask is not None), "some key is hidden"


def theirs(tables, config):
    """Frequencies and factor of each kind of layer, by the library's own class for a configuration."""
    rotary = tables(peer("transformers").AutoConfig.for_model(**copy.deepcopy(config)))
    for name, frequencies in rotary.named_buffers():
        if name.endswith("inv_freq") and "original" not in name:
            kind = name.removesuffix("inv_freq")
            factor = getattr(rotary, f"{kind}attention_scaling", None)
            yield kind.partition("_")[0], frequencies, rotary.attention_scaling if factor is None else factor


def tables_of(model):
    made = [type(m) for m in model.modules() if type(m).__name__.endswith("RotaryEmbedding")]
    return made[-1]  # of a model that reads two kinds of things, the text's


def variants(kind, pairs):
    """Its own configuration, every stretch in both dialects, and each of these changed at random."""
    config, chance = default(kind) | asked.GIVEN.get(kind, {}), random.Random(kind)
    some = [
        config,
        *(spelt(config, rope, old) for rope in (*ROPES, longrope(pairs)) for old in (True, False)),
    ]
    return some + [changed(each, chance) for each in some]


def has_tiny_base(config):
    ropes = [config, *(one for one in config.values() if isinstance(one, dict))]
    return any(isinstance(base := one.get("rope_theta"), int | float) and base < 5 for one in ropes)


def longrope(pairs):
    short, long = ([1.0 + slower * pair / 7 for pair in range(pairs)] for slower in (1, 9))
    return {
        "rope_type": "longrope",
        "short_factor": short,
        "long_factor": long,
        "factor": 4.0,
        "original_max_position_embeddings": 4096,
    }


@pytest.mark.peer
@pytest.mark.claim(
    "add-frequencies-are-the-librarys",
    "For the classes with RoPE that read_config.py knows, the frequencies that the printed calls compute "
    "agree with those of transformers 5.23.0 within three in a million, and so does the factor of cosines "
    "and sines. This holds for plain RoPE and for the settings of linear, dynamic, YaRN, LongRoPE and "
    "Llama 3.1 scaling in both dialects, also with keys renamed, dropped or given other values at random, "
    "wherever the library accepts the configuration, calls are printed, and no YaRN ramp runs backwards "
    "(as it does for a base below five).",
)
@pytest.mark.parametrize("kind", each([kind for kind in TURNING if kind not in ("gptj", "codegen")]))
def test_printed_frequencies_are_those_of_the_library(kind, built, same_as):
    tables, compared = tables_of(built(kind)), 0
    plain = made(answer(**default(kind) | asked.GIVEN.get(kind, {})))
    pairs = len(next(w for name, w in plain.items() if name.startswith("frequencies")))
    for config in variants(kind, pairs):
        parts = answer(**config)
        try:
            known = list(theirs(tables, config))
        except Exception:
            continue  # the library refuses it
        if config.get("model_type") != kind or not of(parts, "code") or has_tiny_base(config):
            continue
        ours = made(parts)
        for layers, frequencies, factor in known:
            end = f"_{layers}" if layers else ""
            end = end if f"frequencies{end}" in ours else ""
            w = ours.get(f"now{end}", ours[f"frequencies{end}"])
            assert_close(w.float(), frequencies, rtol=3e-6, atol=0)
            assert ours.get(f"factor{end}", 1.0) == pytest.approx(factor, rel=1e-6)
            same_as("transformers.modeling_rope_utils", w.float(), frequencies)
            compared += 1
    assert compared >= (1 if kind in ALWAYS_OWN else 2)


@pytest.mark.peer
@pytest.mark.parametrize("method", ["dynamic", "longrope"])
def test_printed_frequencies_of_a_long_text_are_those_of_the_library(method):
    rope = longrope(32) if method == "longrope" else {"rope_type": "dynamic", "factor": 2.0}
    config = {"model_type": "llama", "head_dim": 64, "max_position_embeddings": 4096, "rope_theta": 5e5}
    blocks = list(asked.printed(answer(**config, rope_scaling=rope)).values())
    known = {"positions": torch.tensor([0, 8191])}
    for code in blocks[:2]:
        asked.run(code, known)
    made = peer("transformers").AutoConfig.for_model(**config, rope_scaling=dict(rope))
    functions = peer("transformers.modeling_rope_utils").ROPE_INIT_FUNCTIONS
    frequencies, factor = functions[method](made, "cpu", seq_len=8192)
    assert_close(known["now"].float(), frequencies, rtol=3e-6, atol=0)
    assert known.get("factor", 1.0) == factor


@pytest.mark.parametrize(("layout", "kinds"), [("interleaved", INTERLEAVED), ("half", HALF)])
def test_known_layouts(layout, kinds):
    for kind in kinds:
        assert f'apply_rope(q, cos, sin, "{layout}")' in "\n".join(
            of(answer(model_type=kind), "code")
        ).replace("_full", "").replace("_sliding", ""), kind


def test_the_layout_of_deepseeks_weights_is_a_key():
    def printed(**more):
        return "\n".join(of(answer(model_type="deepseek_v3", **more), "code"))

    assert '"interleaved"' in printed() and '"half"' not in printed()
    assert '"half"' in printed(rope_interleave=False) and '"interleaved"' not in printed(
        rope_interleave=False
    )


def test_another_direction_is_printed():
    assert "rope_tables(-positions, frequencies)" in "\n".join(of(answer(model_type="nanochat"), "code"))


@pytest.mark.peer
@pytest.mark.parametrize("kind", ["deepseek_v3", "mistral4"])
def test_a_scale_of_the_scores_is_that_of_the_model(kind, built):
    yarn = {
        "rope_type": "yarn",
        "factor": 40.0,
        "original_max_position_embeddings": 64,
        "mscale_all_dim": 0.7,
    }
    config = built(kind).config.to_dict() | {"rope_parameters": {**yarn, "rope_theta": 1e4, "mscale": 1.0}}
    (layer, *_) = [m for m in built(kind).modules() if type(m).__name__.endswith("Attention")]
    scaling = type(layer)(type(layer.config)(**config), 0).scaling
    assert made(answer(**json.loads(json.dumps(config, default=str))))["scale"] == pytest.approx(scaling)


@pytest.mark.peer
def test_temperatures_are_those_of_the_models():
    from snippets.temperature import log_temperature

    at = torch.tensor([0, 100, 8191, 8192, 50_000])
    (llama4,) = re.findall(r"log_temperature\(.*\)", "".join(of(answer(model_type="llama4_text"), "code")))
    config = peer("transformers").Llama4TextConfig()
    wanted = ((at + 1.0) / config.floor_scale).floor().log1p() * config.attn_scale + 1.0
    assert_close(eval(llama4, {"log_temperature": log_temperature, "positions": at}), wanted)
    (ministral,) = re.findall(r"log_temperature\(.*\)", "".join(of(answer(model_type="ministral3"), "code")))
    scale = peer("transformers.models.ministral3.modeling_ministral3").get_llama_4_attn_scale
    rope = peer("transformers").Ministral3Config().rope_parameters
    wanted = scale(at[None], rope["llama_4_scaling_beta"], rope["original_max_position_embeddings"]).flatten()
    assert_close(eval(ministral, {"log_temperature": log_temperature, "positions": at}), wanted)


@pytest.mark.peer
@pytest.mark.parametrize("kind", ["bloom", "mpt"])
def test_the_printed_alibi_is_that_of_the_model(kind, built):
    model = built(kind)
    layers = check_positions.read_layers(
        model, lambda token: model(**check_positions.constant_input(model, token))
    )
    row = layers[0].scores[0, :, -1, :48].double()
    known = {"positions": torch.arange(48)}
    blocks = asked.printed(read_config(model.config.to_json_string(use_diff=False)))
    for code in list(blocks.values())[:2]:
        asked.run(code, known)
    bias = known["bias"][:, -1].double()
    assert_close((row - row[:, -1:]).float(), (bias - bias[:, -1:]).float(), rtol=1e-4, atol=1e-4)


@pytest.mark.peer
@pytest.mark.parametrize("kind", ["t5", "mt5", "switch_transformers"])
def test_the_printed_buckets_are_those_of_the_model(kind):
    config = peer("transformers").CONFIG_MAPPING[kind]()
    known = {"positions": torch.arange(200)}
    asked.run(next(iter(asked.printed(answer(model_type=kind)).values())), known)
    module = peer(f"transformers.models.{kind}.modeling_{kind}")
    attention = next(
        c for name, c in vars(module).items() if name.lower() == f"{kind.replace('_', '')}attention"
    )
    for name, decodes in (("encoder", False), ("decoder", True)):
        config.is_decoder = decodes
        theirs = attention(
            config, has_relative_attention_bias=True, **({} if kind == "t5" else {"layer_idx": 0})
        )
        ours = known[name]
        with torch.no_grad():
            ours.table.copy_(theirs.relative_attention_bias.weight)
            assert_close(ours(known["positions"], known["positions"]), theirs.compute_bias(200, 200)[0])


@pytest.mark.peer
@pytest.mark.parametrize("kind", sorted(k for k, row in ROWS.items() if row.get("family") == "learned"))
def test_the_printed_rows_are_those_that_the_model_reads(kind, built):
    """The last row that a text needs is the last that changes anything."""
    model = built(kind)
    config = json.loads(model.config.to_json_string(use_diff=False))
    parts = read_config(json.dumps(config))
    blocks = list(asked.printed(parts).values())
    name = re.search(r"# weights: (\S+)", blocks[0])[1]
    (rows,) = [p for n, p in model.named_parameters() if n.endswith(f"{name}.weight")]
    known = {"x": torch.zeros(1, 5, rows.shape[1]), "positions": torch.arange(5)}
    asked.run(blocks[0], known)
    with torch.no_grad():
        assert known["add"].table.shape == rows.shape
        known["add"].table.copy_(rows)
        asked.run(blocks[1], known)
        last = known["x"][0, -1]
        (row,) = (rows == last).all(-1).nonzero().flatten().tolist()
        ids = torch.full((1, 5), 7)
        before = model(ids)[0]
        rows[row + 1 :] = torch.nan
        assert_close(model(ids)[0], before)
        rows[row] = torch.nan
        assert model(ids)[0].isnan().any()


@pytest.mark.peer
def test_a_sink_and_a_window_together_are_attention_of_gpt_oss(built):
    config = built("gpt_oss").config
    parts = read_config(config.to_json_string(use_diff=False))
    (code,) = [c for title, c in asked.printed(parts).items() if "sliding" in title]
    attention = built("gpt_oss").model.layers[0].self_attn
    module = peer("transformers.models.gpt_oss.modeling_gpt_oss")
    q, k, v = (torch.randn(1, config.num_attention_heads, 48, config.head_dim) for _ in range(3))
    known = made(parts) | {"positions": torch.arange(48), "q": q, "k": k, "v": v, "sinks": attention.sinks}
    for block in list(asked.printed(parts).values())[:2]:
        asked.run(block, known)
    asked.run(code, known)
    mask = torch.where(known["mask"], 0.0, -torch.inf)[None, None]
    turned = module.apply_rotary_pos_emb(q, k, *built("gpt_oss").model.rotary_emb(q, torch.arange(48)[None]))
    kept, attention.num_key_value_groups = attention.num_key_value_groups, 1
    theirs, _ = module.eager_attention_forward(attention, *turned, v, mask, scaling=config.head_dim**-0.5)
    attention.num_key_value_groups = kept
    assert_close(known["output"].transpose(1, 2), theirs)


# --- the check that is named


@pytest.mark.parametrize("kind", ["llama", "gpt_neox", "cohere", "ministral3", "deepseek_v3", "gemma3_text"])
def test_the_printed_check_passes_on_the_printed_calls_and_not_on_others(kind):
    parts = answer(model_type=kind)
    blocks = asked.printed(parts)
    known, check = made(parts), blocks[table()["words"]["own_check"]]
    asked.run(check, known)
    (layout,) = set(re.findall(r'"(half|interleaved)"', check))
    other = {"half": "interleaved", "interleaved": "half"}[layout]
    with pytest.raises(AssertionError, match="layout"):
        asked.run(check.replace(f'sin, "{layout}")', f'sin, "{other}")'), known)


@pytest.mark.peer
@pytest.mark.parametrize(
    "kind", each(["llama", "gpt_neox", "cohere2", "deepseek_v3", "gemma3_text"], ["gpt_neox"])
)
def test_check_positions_reads_what_is_told(kind, tmp_path):
    config = default(kind) | {"num_hidden_layers": 6, "layer_types": None, "no_rope_layers": None}
    (tmp_path / "config.json").write_text(json.dumps(config))
    found = check_positions.check_transformers(tmp_path / "config.json")
    (told,) = [text for text in of(answer(**config), "text") if "layers_as_configured" in text]
    (layers,) = [f for f in found if f.check == "layers_as_configured" and f.verdict == "passes"]
    for reading in re.findall(r"\w+ layout, \d+ of \d+ channels", told):
        assert reading in layers.found


# --- what is told


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_told(name):
    text, words = BROKEN[name]
    parts = read_config(text)
    assert any(words in told for told in of(parts, "mind") + of(parts, "title")), parts


def test_at_least_thirty_are_broken():
    assert len(BROKEN) >= 30


@pytest.mark.claim(
    "add-never-raises",
    "read_config raises no exception and returns an answer, whose parts are all text, for texts generated "
    "by Hypothesis (JSON or not, with configuration keys that have values of any kind) and for a text "
    "nested ten thousand deep.",
)
@settings(max_examples=300, deadline=None)
@given(st.text() | JSON.map(json.dumps))
def test_no_text_raises(text):
    parts = read_config(text)
    assert parts and all(isinstance(part.text, str) for part in parts)
    format_report(parts)


def test_ten_thousand_brackets_do_not_raise():
    assert "nested at most" in of(read_config("[" * 10_000), "mind")[0]


HOSTILE = (
    '__import__("os").system("x")',
    "</script><script>alert(1)</script>",
    "\x1b[2J\x9b\u202e",
    "{kind}",
    "'''",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_that_is_read_gets_into_code(text):
    config = default("gemma3_text") | {
        "rope_scaling": {"rope_type": "linear", "factor": 4.0, text: text},
        text: text,
    }
    parts = answer(**config)
    assert of(parts, "guess") and of(parts, "mind")
    assert not any(text in code for code in of(parts, "code") + of(parts, "guess"))
    assert not any(sign in format_report(parts) for sign in "\x1b\x9b\u202e")
    parts = answer(**(config | {"layer_types": [text] * 26, "rope_scaling": {"type": text}}))
    assert not of(parts, "code") and not of(parts, "guess")


@pytest.mark.peer
@pytest.mark.parametrize("kind", asked.known()["wholes"])
def test_a_whole_without_parts_is_read_as_its_part_for_text(kind):
    part = asked.known()["wholes"][kind]
    config = {"hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 2, "rope_theta": 5e5}
    parts = answer(model_type=kind, **config)
    assert of(parts, "code") == of(answer(model_type=part, **config), "code")
    text = peer("transformers").CONFIG_MAPPING[kind](**config).get_text_config()
    assert (text.model_type, text.hidden_size, text.rope_parameters["rope_theta"]) == (part, 4096, 5e5)


@pytest.mark.peer
@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        ("mistral4", {"rope_scaling": {"llama_4_scaling_beta": 0.1}}, "With rope_scaling they are too wide"),
        ("mistral4", {"rope_parameters": {"rope_type": "default"}}, "if the type is default"),
        ("mistral4", {"rope_parameters": {}}, "reads llama_4_scaling_beta from the dictionary"),
        ("ministral3", {"rope_parameters": {}}, "reads llama_4_scaling_beta from the dictionary"),
        (
            "ministral3",
            {"rope_parameters": {"rope_type": "linear", "llama_4_scaling_beta": 0.1}},
            "reads original_max_position_embeddings from the dictionary",
        ),
    ],
)
def test_what_stops_a_class_of_mistral_is_told_and_stops_it(kind, given, said):
    usual = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e4, "original_max_position_embeddings": 4096}
    ((name, rope),) = given.items()
    rope = usual | rope
    if rope["rope_type"] == "linear":
        del rope["original_max_position_embeddings"]
    assert any(said in words for words in of(answer(model_type=kind, **{name: rope}), "mind"))
    small = asked.built(kind, **{name: rope})
    with pytest.raises((RuntimeError, TypeError)):
        small(**check_positions.constant_input(small, 1))


def test_sections_for_pictures_are_no_method():
    rope = {"type": "mrope", "mrope_section": [16, 24, 24]}
    parts = answer(model_type="qwen2_vl", hidden_size=3584, num_attention_heads=28, rope_scaling=rope)
    assert of(parts, "code") and any("mrope.py makes these tables" in words for words in of(parts, "mind"))


def test_numbers_stay_as_they_are_written():
    text = '{"model_type": "llama", "head_dim": 64, "rope_theta": 5.00E5}'
    assert "rope_frequencies(64, base=5.00E5)" in "\n".join(of(read_config(text), "code"))
    assert made(read_config(text))["frequencies"].equal(rope_frequencies(64, base=500_000.0))


def test_null_is_none_whatever_the_class_takes():
    codes = [
        "\n".join(of(answer(model_type="mistral", **more), "code")) for more in ({}, {"sliding_window": None})
    ]
    assert ["window=4096" in code for code in codes] == [True, False]


# --- its table


def test_what_it_says_of_stacks_is_what_was_measured():
    outcomes, rules = asked.known()["outcomes"], table()["rule"]
    assert outcomes == asked.outcomes()
    assert {rule["case"] for rule in rules if "case" in rule} == set(outcomes)
    cases = {case["name"]: json.loads(case["config"]) for case in dialect_outcomes.DATA["case"]}
    for name, came in outcomes.items():
        (rule, *_) = [rule for rule in rules if rule.get("case") == name]
        told = of(answer(**SMALL | cases[name]), "mind")
        begin = rule["says"].partition(" Results for a Llama")[0].format(kind="llama")
        (words,) = [each for each in told if each.startswith(begin)]
        for came_to, stacks in came.items():
            assert f"{came_to} in {', '.join(stacks)}" in words


def test_every_key_of_the_page_on_dialects_is_known():
    known = {key for check in table()["value"] for key in check["keys"].split()}
    for setting in dialect_outcomes.DATA["setting"]:
        (cell,) = [c for c in setting["cells"] if c["stack"] == "transformers 5"]
        named = re.findall(r"`(\w+)`", cell["key"]) if setting["part"] != "unknown" else []
        assert set(named) <= known | {"null"}, setting["name"]
        assert ("becomes" in setting) == (setting["part"] != "unknown")


@pytest.mark.peer
def test_the_defaults_of_a_class_that_is_known_are_no_guess():
    for kind in TURNING:
        parts = answer(**default(kind) | asked.GIVEN.get(kind, {}))
        assert of(parts, "code") and not of(parts, "guess"), (kind, of(parts, "mind"))


@pytest.mark.peer
@pytest.mark.parametrize("kind", each(sorted(ROWS), ["llama", "gpt_oss", "gemma3_text", "t5"]))
def test_rows_are_what_the_tool_makes(kind):
    census = json.loads(asked.CENSUS.read_text("utf-8"))["models"]
    assert json.loads(json.dumps(asked.row(kind, census[kind]))) == ROWS[kind]


# --- the command


def command(*arguments):
    done = subprocess.run(
        [sys.executable, "-I", "-B", FILE, *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done.stdout, done.returncode


def test_the_command_prints_the_answer(tmp_path):
    file = tmp_path / "config.json"
    file.write_text('\ufeff{"model_type": "llama"}', encoding="utf-8")
    said, code = command(file)
    assert said == format_report(answer(model_type="llama")) and code == 0
    file.write_text("[]")
    said, code = command(file)
    assert "A config.json must be a JSON object" in said and code == 1
    file.write_bytes(b"\xff\xfe")
    assert command(file) == ("", 2)
    assert command(tmp_path / "none.json") == ("", 2)


@pytest.mark.skipif(os.name != "posix", reason="pipes and devices of POSIX")
@pytest.mark.parametrize("kind", ["a pipe", "a device", "a large file", "a folder"])
def test_a_file_that_may_have_no_end_is_not_read(tmp_path, kind):
    file = tmp_path / "config.json"
    if kind == "a pipe":
        os.mkfifo(file)
    if kind == "a device":
        file.symlink_to("/dev/zero")
    if kind == "a large file":
        file.touch()
        os.truncate(file, 1 << 40)
    assert command(file if kind != "a folder" else tmp_path) == ("", 2)


OUTPUT = {"> /dev/full": (2, "cannot write: No space left on device"), "| true": (141, ""), ">&-": (0, "")}


@pytest.mark.skipif(os.name != "posix", reason="a shell of POSIX")
@pytest.mark.parametrize("output", OUTPUT)
def test_output_that_nobody_takes_is_told_in_a_line(tmp_path, output):
    code, said = OUTPUT[output]
    file = tmp_path / "config.json"
    file.write_text('{"model_type": "llama"}')
    line = f"'{sys.executable}' '{FILE}' '{file}' {output}"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, timeout=60)
    assert done.returncode == code and said in done.stderr, done
    assert len(done.stderr.splitlines()) == bool(said), done.stderr


def test_the_table_is_toml_and_every_word_in_it_is_used():
    code = Path(FILE).read_text(encoding="utf-8").partition("TABLE = ")[0]
    for name in tomllib.loads(TABLE)["words"]:
        family = re.fullmatch(r"(is|asks|says)_\w+|\w*head_dim", name)
        assert family or re.search(rf"""["']{name}["']""", code), name
