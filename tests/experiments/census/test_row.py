"""The command for one model, the file of all, and how witnesses are joined."""

import json
from types import SimpleNamespace

import pytest
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

from executable_prose.execution.provenance import code_of
from experiments.census.__main__ import MEASURING, READING, RESULT, main
from experiments.census.declared import declared
from experiments.census.joined import join_facts
from experiments.census.measured import NotMeasuredError, filled, measured
from experiments.census.reachable import switches
from tests.rows import each_of

CENSUS = json.loads(RESULT.read_text("utf-8"))


def test_the_file_is_of_this_library_and_this_code():
    assert CENSUS["transformers"] == transformers.__version__, "run make census, and look at what changed"
    assert CENSUS["code"] == code_of(dict.fromkeys((*MEASURING, *READING))), (
        "run make census, and look at what changed"
    )
    assert set(CENSUS["models"]) == set(CONFIG_MAPPING_NAMES)


def test_each_row_is_measured_or_says_why_or_has_parts():
    for kind, row in CENSUS["models"].items():
        assert len({"measured", "why", "parts"} & set(row)) == 1, kind


def test_measured_rotations_are_spelled_alike():
    for kind, row in CENSUS["models"].items():
        facts = row.get("measured", {})
        if "layout" in facts:
            assert facts["rotation"] == "yes", kind
            assert set(facts["layout"]) <= {"half", "interleaved", "pairs of its own", "axes"}, kind
            assert all(0 < share <= 1 for share in facts.get("share", [])), kind
            assert set(facts.get("bare", [])) <= set(range(200)), kind


def test_the_command_tells_one_row(capsys):
    assert main(["SmolLM3"]) == 0
    told = capsys.readouterr().out
    assert "SmolLM3ForCausalLM, transformers/models/smollm3/modeling_smollm3.py line" in told
    assert "[3, 7, 11, 15, 19, 23, 27, 31, 35]" in told
    assert "measured, a second agrees" in told


def test_the_command_reads_a_folder(tmp_path, capsys):
    given = {"rope_type": "default", "rope_theta": 777.0}
    transformers.Qwen3Config(num_hidden_layers=2, rope_parameters=given).save_pretrained(tmp_path)
    assert main([str(tmp_path), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)["facts"]
    assert facts["base"] == {"value": [777.0], "witness": "measured", "agrees": True}


def test_the_command_says_what_it_lacks(tmp_path, capsys):
    assert main(["qwen33"]) == 2
    assert "qwen33 must be a model type of transformers" in capsys.readouterr().err
    (tmp_path / "config.json").write_text('{"model_type": "no such"}')
    assert main([str(tmp_path)]) == 2
    assert main(["qwen3_vl"]) == 1
    assert "it is made of qwen3_vl_text, qwen3_vl_vision: ask for these" in capsys.readouterr().out


def test_a_witness_who_disagrees_is_heard():
    row = {"measured": {"rotation": "yes", "base": [1e4]}, "declared": {"rotation": "yes", "base": [1e6]}}
    facts = join_facts(row)
    assert facts["base"] == {"value": [1e4], "witness": "measured", "agrees": False}
    assert facts["rotation"]["agrees"] is True
    assert facts["layout"] == {"value": "unknown", "witness": "none", "agrees": None}


@each_of(
    ("others", "rotation"),
    [
        ({}, ("unknown", "none")),
        ({"reachable": {"rotation": ["rotary_emb"]}}, ("yes", "declared")),
        ({"reachable": {"rotation": ["x"]}, "switches": {"config.use_mem_rope": True}}, ("yes", "declared")),
        ({"reachable": {"rotation": ["x"]}, "switches": {"config.use_mem_rope": False}}, ("no", "declared")),
        ({"reachable": {"rotation": ["x"]}, "switches": {"use_rope": None}}, ("unknown", "none")),
    ],
)
def test_a_declared_rotation_needs_a_source_that_makes_it(others, rotation):
    fact = join_facts({"declared": {"rotation": "yes", "base": [1e4]}} | others)["rotation"]
    assert (fact["value"], fact["witness"]) == rotation


def test_a_declared_share_above_one_is_disputed():
    row = {"declared": {"rotation": "yes", "share": [4.0]}, "reachable": {"rotation": ["rotary_emb"]}}
    assert join_facts(row)["share"] == {"value": "disputed", "witness": "declared", "agrees": False}
    row["declared"]["share"] = [0.5, 1.0]
    assert join_facts(row)["share"]["value"] == [0.5, 1.0]


class MadeRotaryEmbedding:
    pass


def always(config):
    return MadeRotaryEmbedding(config)


def by_its_key(config):
    return MadeRotaryEmbedding(config) if config.use_rope else None


def by_its_own(self, config):
    if self.kind == "relative":
        self.made = None
    elif self.kind == "rotary":
        self.made = MadeRotaryEmbedding(config)


def by_its_caller(config, use_rope):
    return MadeRotaryEmbedding(config) if use_rope else None


@each_of(
    ("model", "given", "found"),
    [
        (always, {}, {}),
        (by_its_key, {"use_rope": True}, {"config.use_rope": True}),
        (by_its_key, {"use_rope": False}, {"config.use_rope": False}),
        (by_its_key, {}, {"config.use_rope": None}),
        (by_its_own, {"kind": "rotary"}, {"self.kind == 'rotary'": True}),
        (by_its_own, {"kind": "relative"}, {"self.kind == 'rotary'": False}),
        (by_its_caller, {"use_rope": True}, {"use_rope": None}),
    ],
)
def test_on_what_it_depends_that_a_rotation_is_made(model, given, found):
    assert switches(model, SimpleNamespace(**given)) == found


def test_keys_that_a_default_leaves_empty_are_filled_in_a_copy():
    config = transformers.LlamaConfig(hidden_size=64, num_attention_heads=4)
    assert filled(config)[1] == {}
    config.head_dim = None
    whole, given = filled(config)
    assert (whole.head_dim, given, config.head_dim) == (16, {"head_dim": 16}, None)


def builds_nothing(config):
    raise TypeError("\nno width")


def test_a_model_that_cannot_be_measured_says_why():
    with pytest.raises(
        NotMeasuredError, match=r"the configuration itself builds no model \(TypeError: no width\)"
    ):
        measured(builds_nothing, transformers.LlamaConfig())
    for kind, said in {"seggpt": "its narrow copy does not run", "perceiver": "it needs an input"}.items():
        assert CENSUS["models"][kind]["why"].startswith(said), kind


def test_digits_that_measuring_has_not_are_no_disagreement():
    row = {"measured": {"base": [9_920_000.0, 9_940_000.0]}, "declared": {"base": [10_000_000.0]}}
    assert join_facts(row)["base"] == {"value": [10_000_000.0], "witness": "measured", "agrees": True}
    row["declared"]["base"] = [10_000_000.0, 20_000.0]
    assert join_facts(row)["base"]["agrees"] is False


def test_layers_are_compared_exactly():
    row = {"measured": {"bare": [99]}, "declared": {"bare": [100]}}
    assert join_facts(row)["bare"] == {"value": [99], "witness": "measured", "agrees": False}


def test_a_window_or_a_temperature_beyond_the_text_is_believed_of_the_configuration():
    row = {
        "measured": {"windows": [0], "temperature": "no"},
        "declared": {"windows": [0, 2], "temperature": "yes"},
    }
    assert join_facts(row)["windows"] == {"value": [0, 2], "witness": "declared", "agrees": None}
    assert join_facts(row)["temperature"] == {"value": "yes", "witness": "declared", "agrees": None}


def test_that_there_is_no_window_rests_on_two_witnesses_or_on_a_source_that_names_none():
    seen, named = {"measured": {"windows": []}}, {"reachable": {"windows": ["local_attention"]}}
    assert join_facts(seen)["windows"] == {"value": [], "witness": "measured", "agrees": None}
    assert join_facts(seen | named)["windows"]["value"] == "unknown"
    assert join_facts(seen | named | {"declared": {"windows": []}})["windows"]["agrees"] is True
    assert "windows" not in join_facts({"measured": {"reads": "pictures", "windows": []}})


def test_windows_that_should_have_been_seen_or_stand_in_layers_of_no_known_kind_are_disputed():
    narrowed = {"measured": {"windows": []}, "declared": {"windows": [0], "window": 128}}
    other = {"measured": {"windows": [0]}, "declared": {"other_kinds": ["compressed_sparse_attention"]}}
    assert join_facts(narrowed)["windows"]["value"] == join_facts(other)["windows"]["value"] == "disputed"


@each_of("name", ["sinks", "temperature"])
def test_what_is_not_seen_and_named_in_the_source_is_unknown(name):
    assert join_facts({"measured": {name: "no"}})[name]["value"] == "no"
    assert join_facts({"measured": {name: "no"}, "reachable": {name: ["s_aux"]}})[name]["value"] == "unknown"


def test_weights_that_the_source_reorders_pair_neighbours():
    row = {"measured": {"rotation": "yes", "layout": ["half"]}, "reachable": {"reordered": ["x"]}}
    assert join_facts(row)["reordered"] == {"value": "yes", "witness": "source", "agrees": None}
    assert "reordered" not in join_facts(row | {"declared": {"reordered": "no"}})
    assert "reordered" not in join_facts({**row, "measured": {"rotation": "yes", "layout": ["interleaved"]}})


def test_what_moves_as_by_no_rotation_is_disputed_where_one_is_spoken_of():
    moved = {"measured": {"rotation": "unlike one"}}
    assert join_facts(moved)["rotation"]["value"] == "unknown"
    for spoken in ({"declared": {"rotation": "yes"}}, {"reachable": {"rotation": ["rotary_emb"]}}):
        fact = {"value": "disputed", "witness": "measured alone", "agrees": False}
        assert join_facts(moved | spoken)["rotation"] == fact


def test_what_has_no_attention_has_no_other_facts_but_those_declared():
    row = {"measured": {"attention": "no", "added": "unknown"}, "declared": {"context": 9}}
    assert {name: fact["value"] for name, fact in join_facts(row).items()} == {
        "attention": "no",
        "context": 9,
    }


def test_a_head_with_parts_for_rows_and_columns_has_no_share():
    facts = join_facts({"measured": {"rotation": "yes", "layout": ["axes"]}})
    assert "share" not in facts and facts["layout"]["value"] == ["axes"]


def declares(**given):
    return declared(transformers.PretrainedConfig(**given)).get("windows")


@each_of(
    ("given", "windows"),
    [
        ({}, None),
        ({"sliding_window": None}, []),
        ({"sliding_window": 8}, None),
        ({"sliding_window": 8, "layer_types": ["full_attention", "sliding_attention"]}, [1]),
        ({"sliding_window": 8, "layer_types": ["full_attention", "linear_attention"]}, []),
        ({"layer_types": ["full_attention", "new_attention"]}, None),
        ({"attention_chunk_size": 8, "layer_types": ["chunked_attention"]}, [0]),
    ],
)
def test_what_a_configuration_says_of_windows(given, windows):
    assert declares(**given) == windows


def test_shares_that_a_configuration_says():
    nested = {"full": {"rope_theta": 1e6, "partial_rotary_factor": 0.25}, "near": {"rope_theta": 1e4}}
    config = transformers.PretrainedConfig(rope_parameters=nested)
    assert declared(config)["share"] == [0.25, 1.0]
    assert declared(transformers.DeepseekV3Config())["share"] == [0.3333]
    assert "share" not in declared(transformers.LlamaConfig())


def test_what_is_added_or_biased_needs_two_witnesses():
    alone = join_facts({"measured": {"biased": "linear", "added": "no"}, "reachable": {}})
    assert alone["biased"]["value"] == "disputed"
    assert alone["added"] == {"value": "no", "witness": "measured", "agrees": True}
    both = join_facts({"measured": {"biased": "linear"}, "reachable": {"biased": ["alibi"]}})
    assert both["biased"] == {"value": "linear", "witness": "measured and source", "agrees": True}


def test_a_model_that_turns_nothing_has_no_layout():
    assert "layout" not in join_facts({"measured": {"rotation": "no"}})
