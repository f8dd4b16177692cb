"""The checker gives the right findings with each version of transformers that it supports.

`make versions TRANSFORMERS=4.57.6` runs this file with that version.
"""

import json

import pytest

from check_positions import checker

SMALL = {
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "num_hidden_layers": 2,
    "vocab_size": 200,
}
LINEAR = {"type": "linear", "factor": 4.0}
LOCAL = "rope_theta 10000; half layout, 32 of 32 channels, default, rope_theta 1e+06"
RIGHT = {  # a configuration, and what its rotation must be read as; "" if it has none
    "llama": ({"rope_theta": 5e5}, "32 of 32 channels, default, rope_theta 500000"),
    "qwen3": ({"rope_theta": 1e4, "rope_scaling": LINEAR}, "linear, rope_theta 10000, factor 4"),
    "gpt_neox": ({}, "8 of 32 channels, default, rope_theta 10000, partial_rotary_factor 0.25"),
    "gemma3_text": ({"num_hidden_layers": 6}, LOCAL),
    "deepseek_v3": ({"head_dim": 64}, "64 of 192 channels, default"),
    "bert": ({}, ""),
}


@pytest.mark.peer
@pytest.mark.parametrize("kind", RIGHT)
def test_a_model_of_each_kind_has_no_fault(kind, tmp_path):
    pytest.importorskip("transformers")
    given, words = RIGHT[kind]
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind} | SMALL | given))
    findings = checker.check_transformers(tmp_path)
    assert [str(each) for each in findings if each.verdict == "fails"] == []
    (layers,) = [each for each in findings if each.check == "layers_as_configured"][:1]
    assert (layers.verdict, words in layers.found) == ("passes" if words else "reads", True), layers


@pytest.mark.parametrize("version", ["4.57.0", "5.0.0rc1", "5.24.3"])
def test_a_supported_version_is_accepted(version):
    checker._require_supported(version)
