"""What the page on evidence says of cost in words, from the kept measurement."""

import matplotlib.pyplot as plt
import pytest

from exhibits import cost
from experiments.runs import RESULTS


@pytest.fixture(scope="module")
def rows():
    """The table's values as {method: {column: value}}."""
    values = cost.table()
    found = {}
    for method in ("none", *cost.METHODS):
        name = method.replace(" ", "_").replace("-", "_")
        known = {key.removeprefix(f"{name}_"): v for key, v in values.items() if key.startswith(f"{name}_")}
        found[method] = known
    return found


def greatest(rows, column, count=1):
    return set(sorted(rows, key=lambda method: rows[method][column])[-count:])


def drawn(exhibit):
    figure, values = exhibit()
    plt.close(figure)
    return values


def test_every_method_of_the_measurement_stands_in_one_family():
    assert sorted(["none", *cost.METHODS]) == sorted(cost._part("own")["bytes"])


@pytest.mark.claim(
    "cost-turning-is-linear-scores-are-not",
    "In the stored measurement, the time of encodings that are added or that rotate grows with a power of "
    "the length below 1.5, and the time of every bias and every score, including plain scores, with a "
    "power above 1.5.",
)
def test_turning_goes_with_the_length_and_scores_with_its_square(rows):
    assert all(rows[method]["own_time"] < 1.5 for method in cost.LINEAR)
    assert all(rows[method]["own_time"] > 1.5 for method in ("none", *cost.QUADRATIC))


@pytest.mark.claim(
    "cost-of-training",
    "In the stored measurement, a training step of one block over 2,048 tokens takes at most 1.15 times "
    "as long with an encoding that is added or that rotates as with none. It takes longest with FIRE, and "
    "second longest with CoPE.",
)
def test_a_training_step_is_hardly_longer_with_what_is_added_or_turned(rows):
    assert all(0.85 < rows[method]["training"] < 1.15 for method in cost.LINEAR)
    ordered = sorted(rows, key=lambda method: rows[method]["training"])
    assert ordered[-2:] == ["CoPE", "FIRE"]
    assert rows["FIRE"]["training"] > 1.75
    assert cost.how()["longest"] == 2048


def test_what_is_made_for_each_pair_takes_memory_in_training_and_the_rest_hardly_any(rows):
    assert all(0.95 < rows[method]["training_memory"] < 1.05 for method in cost.LINEAR)
    assert all(rows[method]["training_memory"] > 1.08 for method in cost.QUADRATIC)
    assert greatest(rows, "training_memory") == {"FIRE"}


def test_fire_is_the_bias_that_takes_most_and_the_other_biases_less_than_a_network_of_pairs(rows):
    others = [method for method in cost.FAMILIES["added to scores"] if method != "FIRE"]
    assert max(rows[method]["training"] for method in others) < rows["FIRE"]["training"] / 1.25


@pytest.mark.claim(
    "cost-of-decoding",
    "In the stored measurement, with a cache of 8,192, three encodings make the block for one new token "
    "more than 1.5 times as slow as no encoding: Transformer-XL, DeBERTa and Sandwich. T5, FIRE, xPos and "
    "CoPE, from the fastest to the slowest, make it at least 1.05 times as slow in each third of the "
    "rounds. Each other encoding makes it less than 1.05 times as slow in at least one third of the "
    "rounds.",
)
def test_three_encodings_make_decoding_slow_and_four_a_little_slower(rows):
    seen = [m for m in cost.METHODS if cost._bounds(cost._part("decoding"), m)[0][-1] >= 1.05]
    seen.sort(key=lambda method: rows[method]["decoding"])
    assert seen == ["T5", "FIRE", "xPos", "CoPE", "Sandwich", "DeBERTa", "Transformer-XL"]
    slow = {method for method in rows if rows[method]["decoding"] > 1.5}
    assert slow == {"Transformer-XL", "DeBERTa", "Sandwich"} == greatest(rows, "decoding", 3)
    assert cost.how()["cache"] == 8192


@pytest.mark.claim(
    "cost-through-the-kernel",
    "In the stored measurement, attention over 2,048 tokens through torch's own function takes at most "
    "1.4 times as long with RoPE or xPos as with no encoding, and more than 1.5 times as long with any "
    "bias or score.",
)
def test_the_kernel_stays_fast_with_what_turns_and_not_with_a_bias(rows):
    assert all(rows[method]["kernel"] < 1.4 for method in cost.LINEAR)
    assert all(rows[method]["kernel"] > 1.5 for method in cost.QUADRATIC)
    assert all(rows[method]["kernel_memory"] > 10 for method in cost.QUADRATIC)
    assert drawn(cost.kernel_memory)["length"] == 2048


def test_the_kernel_takes_less_time_than_attention_written_out():
    kernel, whole = cost._part("kernel"), cost._part("forward")
    assert cost._times(kernel, "none")[-1] < cost._times(whole, "none")[-1] / 2


def test_a_block_lies_between_the_length_and_its_square():
    assert 1 < drawn(cost.training)["none_exponent"] < 2


def test_figures_and_table_tell_the_same(rows):
    training, growth = drawn(cost.training), drawn(cost.growth)
    assert (training["most"], training["rotation"]) == (rows["FIRE"]["training"], rows["RoPE"]["training"])
    assert (growth["rotation"], growth["scores"]) == (rows["RoPE"]["own_time"], rows["none"]["own_time"])
    assert growth["rotation_memory"] == pytest.approx(1, abs=0.02)
    assert 1.9 < growth["scores_memory"] < 2  # the queries are scaled first, which is linear


def test_a_ratio_lies_within_its_bounds():
    part = cost._part("training")
    for method in cost.METHODS:
        least, most = cost._bounds(part, method)
        within = zip(least, cost._ratios(part, method), most, strict=True)
        assert all(low <= ratio <= high for low, ratio, high in within)


def test_snippets_are_about_as_fast_as_the_fastest_peer_that_does_the_same(capsys):
    values = cost.peers()
    assert values["slowest"] < 1.25 < values["slowest_less"]
    assert values["layers"] == 24
    told = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    starred = {work for work, *cells in told if any("*" in cell for cell in cells)}
    assert starred == {
        "Embed with AddLearned",
        "alibi_bias",
        "alibi_bias, decoding",
        "attend, one mask and ALiBi for all texts",
        "forgetting_bias of ForgetGates",
        "log_temperature of queries",
        "swin_bias",
        "alibi_bias_symmetric",
        "KeyValueCache, one more token",
        "apply_xpos, q and k",
        "apply_xpos, q and k, decoding",
        "sandwich_bias",
        "sinusoidal_encoding, added",
        "sinusoidal_encoding_t2t",
        "attention_mask, packed rows",
        "apply_axial_rope, half, q and k",
        "mrope_tables, half, q and k",
    }
    decoding = [cells for work, *cells in told if work.endswith(", decoding")]
    assert len(decoding) == 5 and all("–" not in cells for cells in decoding)


@pytest.mark.parametrize("exhibit", [cost.peers, cost.how])
def test_what_is_older_than_its_code_says_so(monkeypatch, exhibit):
    monkeypatch.setattr(
        cost.fresh, "speed", lambda: {"a": ["apply_rope"], "b": ["apply_rope", "rope_tables"]}
    )
    monkeypatch.setattr(cost.fresh, "cost", lambda: ["snippets/rope.py"])
    says = exhibit()["older"]
    assert says.endswith("measured before apply_rope, rope_tables changed.") or "snippets/rope.py" in says
    monkeypatch.setattr(cost.fresh, "speed", dict)
    monkeypatch.setattr(cost.fresh, "cost", list)
    assert exhibit()["older"] == ""


def test_the_table_of_a_gpu_has_a_cell_for_each_way_and_says_what_did_not_fit(capsys):
    half = {"method": "ALiBi", "way": "mask", "queries": 8, "keys": 8, "forward": 0.001, "bytes": 2**20}
    whole = {**half, "queries": 16, "forward": 0.0025, "training": 0.0075, "bytes": 3 * 2**20}
    full = {"method": "ALiBi", "way": "written", "queries": 16, "keys": 16, "failed": "out of memory"}
    one = {**half, "queries": 1, "forward": 0.0005}
    made = {"device": "A card", "torch": "2", "date": "2026-11-26", "rows": [half, whole, full, one]}
    assert cost._on_gpu(made) == {"card": "A card, torch 2, 2026-11-26"}
    *_, row = capsys.readouterr().out.splitlines()
    assert row == "| ALiBi | 2.50 / 7.50, 3 MiB | – | – / –, –, out of memory | 0.50 |"


def test_the_table_of_a_gpu_says_what_has_been_measured(capsys, printed, returned):
    assert cost._on_gpu({}) == {"card": "none"}
    assert cost.COMMAND in capsys.readouterr().out
    measured = (RESULTS / "cost_on_gpu.json").exists()
    assert (returned("cost.on_a_gpu")["card"] == "none") is not measured
    assert (cost.COMMAND in printed("cost.on_a_gpu")[-1]) is not measured
