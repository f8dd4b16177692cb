"""The file of all models as rows: facts, words, dates, the drawn sample; and inputs of each kind."""

import json
import os
import random
from types import SimpleNamespace

import pytest
import torch

import experiments.census.rows as rows_of
from experiments.census.checked import checked, interval, sample
from experiments.census.inputs import constant_inputs, reads
from experiments.census.rows import FIELDS, Row, composites, digest, plan, row_of, rows, words
from tests.experiments.census.test_known_answers import KNOWN
from tests.rows import each_of

LATER = {  # answers that came after the sample was drawn
    *("mamba", "qwen3_vl_vision", "bros", "layoutlm", "layoutlmv3", "deepseek_v2", "falcon_h1"),
    *("granitemoehybrid", "zamba", "zamba2"),
}


def test_every_type_is_a_row_or_a_composite_of_types():
    kinds = {row.kind for row in rows()}
    assert not kinds & set(composites())
    assert kinds | set(composites()) == set(rows_of.census()["models"])
    parts = {part for parts in composites().values() for part in parts}
    assert {row.kind for row in rows() if row.part_of} <= parts


def test_every_fact_has_a_place_in_the_dictionary_and_a_witness():
    for row in rows():
        assert set(row.facts) <= set(FIELDS), row.kind
        for name, fact in row.facts.items():
            assert (fact["witness"] == "none") == (fact["value"] == "unknown"), (row.kind, name)


def test_what_is_not_measured_says_why_and_states_nothing_as_measured():
    for row in rows():
        if row.why:
            witnesses = {fact["witness"] for fact in row.facts.values()}
            assert witnesses <= {"none", "declared"}, row.kind


def test_words_name_witnesses():
    said = words(row_of("smollm3"))
    assert said[0] == "rotates whole heads, in the half layout, with default base 2,000,000 ✓"
    assert said[1] == "no rotation (NoPE) in every 4th layer from layer 3 on ✓"
    assert words(row_of("bloom"))[0] == "a bias linear in distance ✓"
    assert words(row_of("gpt2"))[0].startswith("adds a learned table")
    assert words(row_of("resnet")) == ["no attention"]
    assert words(row_of("kimi_linear")) == ["no positions in its attention"]
    assert "its weights pair adjacent channels, according to the source" in words(row_of("deepseek_v3"))
    assert "inside the score" in " ".join(words(row_of("xlnet")))
    assert words(row_of("qwen4_exp_text"))[-1].startswith(
        "not measured: the configuration itself builds no model"
    )
    assert "rotates only if config.use_mem_rope" in words(row_of("zamba2"))
    assert words(row_of("bamba"))[0] == words(row_of("granitemoehybrid"))[0] == "no attention by default"
    assert "measured with num_key_value_heads, which the default leaves empty" in words(row_of("nemotron"))
    assert row_of("efficientloftr").value("share") == "disputed"


def made(**facts):
    whole = {name: {"value": value, "witness": w, "agrees": a} for name, (value, w, a) in facts.items()}
    return Row("x", "text", 4, whole, {}, {}, None, None, None, (), {}, "")


@each_of(
    ("facts", "said"),
    [
        ({"rotation": ("yes", "measured", None)}, ["rotates"]),
        ({"rotation": ("yes", "declared", None)}, ["rotates (declared)"]),
        (
            {"rotation": ("yes", "measured", True), "base": ([1e4, 1e6], "measured", False)},
            ["rotates with default base 10,000 and 1,000,000 ✗"],
        ),
        ({"sinks": ("yes", "measured", None), "biased": ("no", "measured", True)}, ["sinks"]),
        ({"sinks": ("unknown", "none", None), "biased": ("disputed", "measured alone", False)},
         ["unknown: sinks", "disputed: biases"]),
        ({"attention": ("no", "measured", None)}, ["no attention"]),
        (
            {"windows": ([0, 1, 2, 3], "measured", None), "window": (4096, "declared", None)},
            ["window of 4,096 in all 4 layers"],
        ),
    ],
)  # fmt: skip
def test_each_mark(facts, said):
    assert words(made(**facts)) == said


@each_of(
    ("numbers", "layers", "said"),
    [
        ([3, 7, 11], 12, "every 4th layer from layer 3 on"),
        ([0, 2, 4], 6, "every 2nd layer from layer 0 on"),
        ([0, 1, 2], 3, "all 3 layers"),
        ([5], 20, "1 of 20 layers"),
        ([0, 1, 5, 9], 49, "4 of 49 layers"),
        ([1, 2, 3], None, "3 layers"),
    ],
)
def test_a_plan_in_words(numbers, layers, said):
    assert plan(numbers, layers) == said


def test_rows_are_read_again_when_the_file_changes(tmp_path, monkeypatch):
    whole = rows_of.census()
    file = tmp_path / "census.json"
    monkeypatch.setattr(rows_of, "CENSUS", file)
    for n, kinds in enumerate((["qwen3"], ["qwen3", "bloom"])):
        file.write_text(json.dumps(whole | {"models": {kind: whole["models"][kind] for kind in kinds}}))
        os.utime(file, ns=(n, n))
        assert [row.kind for row in rows()] == kinds


def test_another_fact_has_another_digest(monkeypatch):
    before = digest()
    changed = [*rows()]
    changed[0] = made(sinks=("yes", "measured", None))
    monkeypatch.setattr(rows_of, "rows", lambda: changed)
    assert digest() != before


def test_dates_are_those_of_pages():
    """Read by hand in the documentation of the library."""
    assert row_of("qwen3").dates["released"][0] == "2025-04-29"
    assert row_of("qwen3").dates["paper"][0] == "2025-05-14"
    assert row_of("gpt2").dates["released"][0] == "2019-02-14"
    assert "paper" not in row_of("gpt2").dates
    assert row_of("deberta-v2").dates  # its page has a hyphen, its package none
    assert row_of("gpt-sw3").dates["released"][0] == "2022-06-25"  # and not GPT-2's, whose class it uses
    assert row_of("internlm3").dates == {}  # and not Llama's


def test_the_sample_is_as_drawn():
    known = sorted({row.kind for row in rows()} - (set(KNOWN) - LATER))
    assert sorted(random.Random(31).sample(known, 60)) == sorted(sample())


def test_the_sample_is_read_whole():
    asked = set(FIELDS) - {"context", "window"}
    for kind, given in sample().items():
        assert set(given["read"]) <= asked, kind
        assert len(given["where"]) == 2 and all(given["where"]), kind
        if given["read"]:
            assert given["read"]["attention"] in ("yes", "no"), kind


def test_at_most_three_of_a_hundred_stated_facts_are_wrong_in_each_column():
    """Columns of the sample; one that fails must not be published."""
    for name, cells in checked().items():
        stated = [right for *_, right in cells if right is not None]
        assert stated.count(False) <= 0.03 * len(stated), [cell for cell in cells if cell[3] is False]
        assert len(stated) >= 10, name


def test_wilson_s_interval():
    assert interval(0, 10) == pytest.approx((0, 0.2775), abs=1e-4)
    assert interval(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert interval(0, 0) == (0, 1)


class Model(torch.nn.Linear):
    def __init__(self, forward, name=None, **config):
        super().__init__(1, 1)
        self.forward = forward
        self.config = SimpleNamespace(**config, to_dict=lambda: config)
        if name:
            self.main_input_name = name


INPUTS = [
    ("text", Model(lambda input_ids, use_cache=None: 0, "input_ids", n_positions=16), (1, 16)),
    ("text", Model(lambda input_ids, bbox=None: 0, "input_ids"), (1, 48)),
    ("pictures", Model(lambda pixel_values: 0, "pixel_values", image_size=(32, 64)), (1, 3, 32, 64)),
    ("pictures", Model(lambda pixel_values=None: 0, "input_ids", num_channels=1), (1, 1, 224, 224)),
    ("pictures", Model(lambda pixel_values, grid_thw: 0, patch_size=2), (256, 12)),
    ("films", Model(lambda pixel_values_videos: 0, "pixel_values_videos", image_size=8), (1, 4, 3, 8, 8)),
    ("sound", Model(lambda input_values: 0, "input_values"), (1, 9_600)),
    ("sound", Model(lambda input_features: 0, "input_features", num_mel_bins=20), (1, 200, 20)),
    ("series", Model(lambda past_values: 0, num_input_channels=2, context_length=9), (1, 9, 2)),
    ("vectors", Model(lambda hidden_states, attention_mask: 0, hidden_size=5), (1, 48, 5)),
]


def test_boxes_differ_from_token_to_token_while_contents_stay():
    model = Model(lambda input_ids, bbox=None: 0, "input_ids", n_positions=16)
    a, b = (constant_inputs(model, token)["bbox"] for token in (3, 5))
    assert torch.equal(a, b) and a.shape == (1, 16, 4) and a.min() >= 0
    assert (a[0, 1:] > a[0, :-1]).all() and (a[..., 2:] > a[..., :2]).all()
    assert len(constant_inputs(model, 3, boxes=False)["bbox"].unique()) == 1


@each_of(("kind", "model", "shape"), INPUTS)
def test_an_input_is_the_same_at_all_places_and_another_for_another_token(kind, model, shape):
    a, b = (constant_inputs(model, token) for token in (3, 5))
    assert reads(a) == kind
    first, second = (next(x for x in each.values() if isinstance(x, torch.Tensor)) for each in (a, b))
    assert first.shape == shape and not torch.equal(first, second)
    assert a.keys() == b.keys()


def test_an_input_that_is_not_known_is_told():
    with pytest.raises(ValueError, match="it wants spectrogram, for which there is no input here"):
        constant_inputs(Model(lambda spectrogram: 0, "spectrogram"), 3)
    with pytest.raises(ValueError, match="has none of input_dim, hidden_size"):
        constant_inputs(Model(lambda hidden_states: 0), 3)
