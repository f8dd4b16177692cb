"""What a reader finds in the code of models that are hard to measure, and the census must find, too."""

import pytest
import transformers

from experiments.census.__main__ import measure_row, measure_type, silence_warnings
from experiments.census.joined import join_facts

ROTATES = {"rotation": "yes", "added": "no", "biased": "no", "in_score": "no", "sinks": "no"}
STANDS = {"rotation": "no", "sinks": "no", "in_score": "no"}


def every(fourth, layers):
    return list(range(fourth - 1, layers, fourth))


def others(left_out, layers):
    return [n for n in range(layers) if n not in left_out]


KNOWN = {
    "qwen3": ROTATES | {"layout": ["half"], "share": [1.0], "base": [1e4], "bare": [], "windows": []},
    "gemma3_text": ROTATES | {"base": [1e4, 1e6], "bare": [], "windows": others(every(6, 26), 26)},
    "deepseek_v3": ROTATES | {"layout": ["half"], "share": [0.3333], "base": [1e4]},
    "modernbert": ROTATES | {"base": [1e4, 1.6e5], "windows": others(range(0, 22, 3), 22)},
    "smollm3": ROTATES | {"base": [2e6], "bare": every(4, 36), "windows": []},
    "cohere2": ROTATES
    | {"layout": ["interleaved"], "bare": every(4, 40), "windows": others(every(4, 40), 40)},
    "llama4_text": ROTATES
    | {"layout": ["interleaved"], "bare": every(4, 48), "windows": others(every(4, 48), 48)},
    "gpt_neox": ROTATES | {"layout": ["half"], "share": [0.25]},
    "glm": ROTATES | {"layout": ["interleaved"], "share": [0.5]},
    "gpt_oss": ROTATES
    | {"base": [1.5e5], "scaling": ["yarn"], "sinks": "yes", "windows": list(range(0, 36, 2))},
    "bloom": STANDS | {"biased": "linear", "added": "no"},
    "mpt": STANDS | {"biased": "linear", "added": "no"},
    "t5": STANDS | {"biased": "table", "added": "no"},
    "jamba": STANDS | {"biased": "no", "added": "no"},
    "gpt2": STANDS | {"added": "learned", "biased": "no"},
    "marian": STANDS | {"added": "fixed", "biased": "no"},
    "pegasus": STANDS | {"added": "fixed", "biased": "no"},
    "vit": STANDS | {"added": "learned", "biased": "no"},
    "deberta-v2": STANDS | {"added": "learned", "biased": "no"},
    "llama": ROTATES | {"layout": ["half"], "share": [1.0], "base": [1e4], "bare": [], "windows": []},
    "gptj": ROTATES | {"layout": ["interleaved"], "share": [0.25], "base": [1e4]},
    "gemma4_text": ROTATES | {"share": [0.25, 1.0], "base": [1e4, 1e6], "windows": others(every(6, 30), 30)},
    "exaone4": ROTATES | {"bare": every(4, 32), "windows": others(every(4, 32), 32)},
    "qwen3_vl_text": ROTATES | {"layout": ["half"], "share": [1.0], "base": [5e5]},
    "inkling_text": {
        "rotation": "no",
        "sinks": "no",
        "biased": "no",
        "added": "no",
        "in_score": "yes",
        "windows": others(every(6, 66), 66),
    },
    "nemotron_h": STANDS | {"biased": "no", "added": "no"},
    "xlnet": {"rotation": "no", "added": "no", "biased": "no", "in_score": "yes"},
    "vjepa2": {"rotation": "disputed", "added": "no", "biased": "no"},
    "wav2vec2": STANDS | {"added": "convolution", "biased": "no"},
    "whisper": STANDS | {"added": "fixed", "biased": "no"},
    "falcon_h1": ROTATES | {"layout": ["half"], "share": [1.0], "base": [1e4], "bare": [], "windows": []},
    "bros": STANDS | {"added": "learned", "biased": "no", "in_score": "yes"},
    "layoutlm": STANDS | {"added": "learned", "biased": "no"},
    "layoutlmv3": STANDS | {"added": "learned", "biased": "table"},
    "deepseek_v2": ROTATES | {"layout": ["interleaved"], "share": [0.3333], "base": [1e4]},
    "granitemoehybrid": {"attention": "no"},
    "zamba": STANDS | {"added": "no", "biased": "no"},
    "zamba2": STANDS | {"added": "no", "biased": "no"},
    "mamba": {"attention": "no"},
    "qwen3_vl_vision": {"rotation": "yes", "layout": ["axes"], "added": "learned"},
}


# Each of these takes a second or more, and most of what it shows others show by day: by night.
SLOW = {
    "deepseek_v2",
    "granitemoehybrid",
    "whisper",
    "zamba2",
    "vjepa2",
    "inkling_text",
    "zamba",
    "gptj",
    "deepseek_v3",
    "falcon_h1",
    "gemma4_text",
    "jamba",
    "llama4_text",
}
BY_DAY = [kind for kind in KNOWN if kind not in SLOW][
    ::3
]  # each kind takes a second or two; the others by night
KINDS = [pytest.param(kind, marks=[] if kind in BY_DAY else [pytest.mark.slow]) for kind in KNOWN]


@pytest.mark.parametrize("kind", KINDS)
def test_the_census_finds_what_a_reader_finds(kind):
    silence_warnings()
    facts = join_facts(measure_type(kind))
    assert {name: facts[name]["value"] for name in KNOWN[kind]} == KNOWN[kind]


MAMBA_AND_ATTENTION = 9 * ["mamba"] + ["attention"]
HYBRIDS = [
    ("granitemoehybrid", {"layer_types": MAMBA_AND_ATTENTION, "num_hidden_layers": 10}, "no"),
    ("granitemoehybrid", {"layer_types": MAMBA_AND_ATTENTION, "num_hidden_layers": 10,
                          "position_embedding_type": "nope"}, "no"),
    ("granitemoehybrid", {"layer_types": MAMBA_AND_ATTENTION, "num_hidden_layers": 10,
                          "position_embedding_type": "rope"}, "yes"),
    ("zamba2", {"use_mem_rope": True}, "yes"),
    pytest.param("bamba", {"attn_layer_indices": [9, 18, 27]}, "yes", marks=pytest.mark.slow),
    pytest.param("olmo_hybrid", {"rope_parameters": {"rope_theta": None}}, "no", marks=pytest.mark.slow),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "given", "rotation"), HYBRIDS)
def test_a_hybrid_is_measured_as_it_is_configured(kind, given, rotation):
    """The switch decides, and not the default base that the configuration has with either value."""
    silence_warnings()
    found = measure_row(transformers.CONFIG_MAPPING[kind](**given))
    assert found["declared"].get("rotation", "no") == ("yes" if kind != "olmo_hybrid" else rotation)
    assert join_facts(found)["rotation"]["value"] == rotation
    assert join_facts(found)["rotation"]["witness"] == "measured"


def test_a_composite_names_its_parts_and_has_no_facts():
    assert measure_type("qwen3_vl") == {"parts": ["qwen3_vl_text", "qwen3_vl_vision"]}
