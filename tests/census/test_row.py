"""The command for one model, the file of all, and how witnesses are joined."""

import json

import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

from census.__main__ import CODE, RESULT, main
from census.joined import joined
from exhibits._code import code_of

CENSUS = json.loads(RESULT.read_text("utf-8"))


def test_the_file_is_of_this_library_and_this_code():
    assert CENSUS["transformers"] == transformers.__version__, "run make census, and look at what changed"
    assert CENSUS["code"] == code_of(*CODE), "run make census, and look at what changed"
    assert set(CENSUS["models"]) == set(CONFIG_MAPPING_NAMES)


def test_each_row_is_measured_or_says_why_or_has_parts():
    for kind, row in CENSUS["models"].items():
        assert len({"measured", "why", "parts"} & set(row)) == 1, kind


def test_measured_rotations_are_spelled_alike():
    for kind, row in CENSUS["models"].items():
        facts = row.get("measured", {})
        if "layout" in facts:
            assert facts["rotation"] == "yes", kind
            assert set(facts["layout"]) <= {"half", "interleaved", "pairs of its own"} or facts["layout"], (
                kind
            )
            assert all(0 < share <= 1 for share in facts["share"]), kind
            assert set(facts["bare"]) <= set(range(200)), kind


def test_the_command_tells_one_row(capsys):
    assert main(["smollm3"]) == 0
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
    facts = joined(row)
    assert facts["base"] == {"value": [1e4], "witness": "measured", "agrees": False}
    assert facts["rotation"]["agrees"] is True
    assert facts["layout"] == {"value": "unknown", "witness": "none", "agrees": None}


def test_digits_that_measuring_has_not_are_no_disagreement():
    row = {"measured": {"base": [9_920_000.0, 9_940_000.0]}, "declared": {"base": [10_000_000.0]}}
    assert joined(row)["base"] == {"value": [10_000_000.0], "witness": "measured", "agrees": True}
    row["declared"]["base"] = [10_000_000.0, 20_000.0]
    assert joined(row)["base"]["agrees"] is False


def test_layers_are_compared_exactly():
    row = {"measured": {"bare": [99]}, "declared": {"bare": [100]}}
    assert joined(row)["bare"] == {"value": [99], "witness": "measured", "agrees": False}


def test_a_share_that_is_said_otherwise_is_disputed():
    assert (
        joined({"measured": {"share": [1.0]}, "declared": {"share": [0.5]}})["share"]["value"] == "disputed"
    )


def test_a_window_longer_than_the_text_is_believed_of_the_configuration():
    row = {"measured": {"windows": []}, "declared": {"windows": [0, 2]}}
    assert joined(row)["windows"] == {"value": [0, 2], "witness": "declared", "agrees": False}


def test_what_is_added_or_biased_needs_two_witnesses():
    alone = joined({"measured": {"biased": "linear", "added": "no"}, "reachable": {}})
    assert alone["biased"]["value"] == "disputed"
    assert alone["added"] == {"value": "no", "witness": "measured", "agrees": True}
    both = joined({"measured": {"biased": "linear"}, "reachable": {"biased": ["alibi"]}})
    assert both["biased"] == {"value": "linear", "witness": "measured and source", "agrees": True}


def test_a_model_that_turns_nothing_has_no_layout():
    assert "layout" not in joined({"measured": {"rotation": "no"}})
