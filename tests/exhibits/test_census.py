"""The numbers of the page on the census, counted again from its file."""

import json

import pytest
import transformers

from exhibits import census
from experiments.census.checked import checked
from experiments.census.inputs import TOKENS
from experiments.census.rows import CENSUS, row_of, rows, words
from snippets.check_positions import small_config
from tests.rows import each_of

MODELS = json.loads(CENSUS.read_text("utf-8"))["models"]
LEAVES = {kind: row for kind, row in MODELS.items() if "parts" not in row}


def test_what_the_page_says_of_the_instrument_is_so(returned):
    told = returned("census.limits")
    assert told["tokens"] == TOKENS
    assert small_config(transformers.MistralConfig()).sliding_window == told["window"]


def test_counts(returned):
    told = returned("census.counts")
    assert told["types"] == len(MODELS) == told["composites"] + told["leaves"]
    measured = [row for row in LEAVES.values() if "measured" in row]
    assert told["measured"] == len(measured) == told["leaves"] - told["unmeasured"]
    assert told["text"] == sum(row["measured"]["reads"] == "text" for row in measured)
    without = {kind for kind, row in LEAVES.items() if row.get("measured", {}).get("attention") == "no"}
    assert told["without"] == len(without)
    can = {kind for kind in without if "attention" in LEAVES[kind]["reachable"]}
    assert {"bamba", "granitemoehybrid"} <= can and "resnet" not in can and told["by_default"] == len(can)
    assert told["filled"] == sum("filled" in row for row in measured)
    assert {"nemotron", "hunyuan_v1_dense"} <= {kind for kind, row in LEAVES.items() if "filled" in row}
    keyed = [
        row for row in LEAVES.values() if "measured" not in row and row.get("declared", {}).get("rotation")
    ]
    made = [row for row in keyed if "rotation" in row.get("reachable", {}) and "switches" not in row]
    assert told["declared"] == len(made)


def test_each_condition_of_a_rotation_has_a_line(printed, returned):
    lines = {line[0].strip("`"): line[1:] for line in cells(printed("census.switches"))}
    assert set(lines) == {kind for kind, row in LEAVES.items() if "switches" in row}
    assert lines["zamba2"] == ["`config.use_mem_rope`", "it does not"]
    assert lines["granitemoehybrid"] == ["`config.position_embedding_type == 'rope'`", "it does not"]
    assert lines["olmo_hybrid"][1] == "it does"
    assert returned("census.switches")["off"] == sum(line[1] != "it does" for line in lines.values())
    for kind, (_, by_default) in lines.items():
        measured = row_of(kind).seen.get("rotation")
        assert measured is None or by_default == {"yes": "it does", "no": "it does not"}[measured], kind


@each_of(
    ("kind", "mark"),
    [
        *[(kind, "turns") for kind in ("llama", "gptj", "smollm3", "gpt_oss")],
        *[(kind, "scores") for kind in ("bloom", "t5", "xlnet", "inkling_text")],
        *[(kind, "input") for kind in ("gpt2", "bert", "marian")],
        *[(kind, "none") for kind in ("nemotron_h", "jamba", "mamba")],
        ("longformer", "unsure"),
    ],
)
def test_a_dot_of_the_picture_has_the_colour_of_what_a_reader_finds(kind, mark):
    assert census._kind(row_of(kind)) == mark


def test_most_dots_turn_as_the_caption_says(returned):
    told = returned("census.compass")
    assert told["all"] == sum(told[mark] for mark in census.KINDS)
    assert told["turns"] > told["input"] > told["scores"] > told["none"]
    assert abs(told["turns"] / told["all"] - told["of_ten"] / 10) <= 0.05
    assert 0.45 < told["turns"] / told["all"] < 0.6  # about half
    without = {row.kind for row in rows() if row.reads == "text" and census._kind(row) == "none"}
    recurrent = {"bamba", "falcon_mamba", "jamba", "kimi_linear", "mamba", "mamba2", "nemotron_h", "xlstm"}
    assert len(without & recurrent) > len(without) / 2


@pytest.mark.claim(
    "census-bare-layers",
    "Of the model types in the census that read text and rotate nothing in some layers, most list none of "
    "these layers in `no_rope_layers`.",
)
def test_most_models_with_bare_layers_have_no_key_that_says_so(printed, returned):
    bare = {row.kind: row.value("bare") for row in rows() if row.reads == "text" and row.seen.get("bare")}
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed("census.left_out")[2:]]
    assert sorted(bare) == [line[0].strip("`") for line in lines]
    for kind, which, said, _ in lines:
        config = transformers.CONFIG_MAPPING[kind.strip("`")]()
        off = [n for n, turns in enumerate(getattr(config, "no_rope_layers", None) or []) if not turns]
        assert said == ("yes" if off else "no")
        assert which.endswith(f": {', '.join(map(str, bare[kind.strip('`')]))}")
        assert not off or off == bare[kind.strip("`")]
    told = returned("census.left_out")
    assert told["models"] == len(lines)
    assert told["silent"] == sum(line[2] == "no" for line in lines)
    assert told["silent"] > told["models"] / 2
    assert {"cohere2", "exaone4"} <= {kind for kind in bare if "bare" not in row_of(kind).said}


def test_bases_are_compared_where_two_speak(returned):
    both = [
        row for row in LEAVES.values() if row.get("measured", {}).get("base") and row["declared"].get("base")
    ]
    told = returned("census.bases")
    assert told["asked"] == len(both) == told["agree"] + told["off"]
    off = [row for row in rows() if row.facts.get("base", {}).get("agrees") is False]
    assert told["off"] == len(off)


@pytest.mark.claim(
    "census-old-base-far-text",
    "Some default configurations declare a base of ten thousand together with a context length of 32,768 "
    "or more; a few of these also declare a scaling of RoPE.",
)
def test_a_base_of_ten_thousand_far_out_is_counted_again(returned):
    said = [row.get("declared", {}) for row in LEAVES.values()]
    said = [each for each in said if "base" in each and "context" in each]
    told = returned("census.far")
    assert told["said"] == len(said)
    far = [each for each in said if each["base"] == [10_000] and each["context"] >= told["far"]]
    assert told["old_far"] == len(far) > 10 and told["far"] == 32_768
    assert 0 < sum("scaling" in each for each in far) < len(far) / 2


def test_plans_have_all_models_with_windows_or_bare_layers(returned):
    found = [row for row in LEAVES.values() if row.get("measured", {}).get("reads") == "text"]
    bare = [row for row in found if row["measured"].get("bare")]
    assert returned("census.barcode")["models"] >= len(bare)
    plans = census._plans()
    assert ((36, tuple(range(3, 36, 4)), ()), ["smollm3"]) in plans.items()
    near = tuple(n for n in range(26) if n % 6 != 5)
    assert "gemma3_text" in plans[26, (), near]


def test_lists_name_what_a_reader_finds(printed):
    assert {line.split()[0] for line in printed("census.two_bases")} >= {"gemma3_text", "modernbert"}
    scores, weights = (line.partition(": ")[2].split(", ") for line in printed("census.neighbours"))
    assert {"gptj", "cohere2", "glm", "moonshine"} <= set(scores)
    assert {"deepseek_v3", "longcat_flash", "youtu"} <= set(weights)
    assert {"qwen3", "gpt_neox"}.isdisjoint((*scores, *weights))
    assert "gpt_oss" in printed("census.sinks")


def test_tables_are_counted_by_what_a_model_reads(returned):
    told = returned("census.tables")
    for what in ("text", "pictures", "sound"):
        assert sum(told[f"{value}_{what}"] for value in ("learned", "fixed", "convolution")) <= told[what]
    assert (
        told["learned_pictures"] / told["pictures"] > told["learned_text"] / told["text"]
    )  # most where it sees


def test_the_sample_s_error_is_published_as_it_is(returned):
    told = returned("census.sample")
    assert told["models"] == 60
    assert told["low"] <= told["share"] <= told["high"] and told["share"] <= 0.03
    assert told["stated"] + told["unknown"] == told["asked"]


def test_the_row_shown_is_that_of_the_table(printed):
    head, *said = printed("census.one_row")
    row = row_of("smollm3")
    assert head == f"SmolLM3ForCausalLM, line {row.line} of transformers/models/smollm3/modeling_smollm3.py"
    assert [line.strip() for line in said] == words(row)


def cells(lines):
    return [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in lines[2:]]


def test_every_difference_of_measured_and_declared_has_a_line(printed, returned):
    lines = cells(printed("census.differ"))
    told = {(line[0].strip("`"), line[1]) for line in lines}
    named = {"deepseek_v4", "laguna", "mellum", "glm4_moe", "zaya", "zamba2"}  # in the caption
    assert named <= {kind for kind, _ in told}
    for row in rows():
        for name, fact in row.facts.items():
            both = name in row.said and name in row.seen
            assert ((row.kind, name) in told) == (fact["agrees"] is False and both), (row.kind, name)
    assert returned("census.differ") == {"facts": len(told)}
    assert ["`glm4_moe`", "share", "0.5238", "0.5"] in lines


def test_the_table_of_witnesses_counts_each_fact_once(printed, returned):
    *lines, total = cells(printed("census.witnesses"))
    for name, *counts in lines:
        assert sum(map(int, counts)) == sum(row.measured and name in row.facts for row in rows()), name
    sums = [sum(int(line[n]) for line in lines) for n in range(1, len(total))]
    assert sums == [int(count) for count in total[1:]]
    assert returned("census.witnesses")["all"] == sum(sums)


def test_the_table_of_the_sample_is_the_comparison(printed, returned):
    *lines, total = cells(printed("census.sample"))
    for name, stated, said, wrong, _, unknown in lines:
        found = [cell for cell in checked()[name] if cell[3] is not None]
        assert (int(stated), int(wrong)) == (len(found), sum(not right for *_, right in found))
        assert int(said) == sum(value not in ("no", []) for _, value, *_ in found)
        assert int(unknown) == len(checked()[name]) - len(found)
    told = returned("census.sample")
    assert [int(total[n]) for n in (1, 2, 3, 5)] == [told[n] for n in ("stated", "said", "wrong", "unknown")]


def test_layouts_and_shares_are_counted_again(returned):
    turning = [row for row in rows() if row.reads == "text" and row.value("rotation") == "yes"]
    told = returned("census.layouts")
    assert told["turning"] == len(turning)
    assert told["half"] == sum(row.value("layout") == ["half"] for row in turning)
    assert told["interleaved"] == sum(row.value("layout") == ["interleaved"] for row in turning)
    assert told["layouts"] >= told["half"] + told["interleaved"]
    assert told["whole"] == sum(row.value("share") == [1.0] for row in turning) > told["part"] > 0
