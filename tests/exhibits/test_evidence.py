"""What the chapter on evidence says in words, held against the kept results, seed by seed."""

import math
import re

import matplotlib.pyplot as plt
import pytest
import torch
from matplotlib.colors import to_hex

from executable_prose.project import DOCS
from exhibits import _loss_by_context, chains, evidence, regimes
from exhibits import cost as price
from experiments import language, runs, tasks, variants
from experiments.intervals import compare
from snippets.alibi import alibi_bias, alibi_slopes
from snippets.sandwich import sandwich_bias

LEVEL = ("ALiBi", "KERPLE", "Sandwich", "xPos", "Shaw", "DeBERTa", "Transformer-XL", "CoPE")
RISING = ("none", "learned", "FIRE", "clipped bias", "T5")
BROKEN = ("sinusoidal", "RoPE")


@pytest.fixture(scope="module")
def bands():
    """For each encoding and band the loss of each seed."""
    losses = evidence._losses()
    return {
        name: {band: evidence._band(loss, band) for band in evidence.BANDS} for name, loss in losses.items()
    }


def test_the_seeds_of_a_chosen_line_have_its_colour_and_no_other_line_has():
    _, _, live = evidence.by_position()
    losses = evidence._losses()
    for name in live.controls["name"].options:
        made = live.function(name)
        shown = {
            to_hex(live.moves[artist].get_color()): int(made[artist].isinf().all(-1).sum()) - 1
            for artist in live.moves
            if artist.endswith(" seeds") and made[artist].isfinite().any()
        }
        assert shown == ({to_hex(evidence.COLORS[name]): len(losses[name])} if name in losses else {})


@pytest.fixture(scope="module")
def near():
    """For each encoding the loss of the same bytes of each seed, with 64 bytes before them."""
    return _loss_by_context.losses(64)


@pytest.fixture(scope="module")
def far():
    return _loss_by_context.losses(1008)


@pytest.fixture(scope="module")
def costs():
    return _loss_by_context.costs()


def test_what_length_costs_is_told_of_the_same_bytes():
    assert _loss_by_context.NEAR + language.FAR <= language.TRAINED < 2 * _loss_by_context.NEAR + language.FAR
    assert max(language.CONTEXTS) == _loss_by_context.LONG
    told, values = _loss_by_context.costs(), evidence.context()[1]
    for name, cost in told.items():
        kept = runs.load("language")[name]
        means = [[sum(run["far"][n]) / len(run["far"][n]) for n in ("64", "1008")] for run in kept]
        assert cost.tolist() == pytest.approx([many - few for few, many in means], abs=1e-5)
        assert values[f"{key(name)}_loss"] == pytest.approx(cost.mean().item(), abs=1e-5)


@pytest.mark.claim(
    "evidence-every-encoding-helps-within",
    "In our runs every encoding has a lower loss within the trained length than none, in each seed: by "
    "position, and on the same bytes with 64 before them",
)
def test_every_encoding_helps_within(bands, near):
    for name, found in bands.items():
        assert name == "none" or (found["within"] < bands["none"]["within"]).all(), name
        assert name == "none" or (near[name] < near["none"]).all(), name


@pytest.mark.claim(
    "evidence-near-text-is-nearly-all",
    "In our runs 64 bytes before them and not 16 lower the loss of the same bytes by at most 0.019 nats on "
    "average over the seeds, and by at most 0.022 in any seed, with every encoding and with none",
)
def test_near_text_is_nearly_all():
    falls = {name: -cost.mean().item() for name, cost in _loss_by_context.costs(16).items()}
    gains = {name: -fall for name, fall in falls.items()}
    assert len(gains) == 15 and 0.018 < max(gains.values()) <= 0.019
    assert all((_loss_by_context.costs(16)[name] <= 0.022).all() for name in gains)
    assert evidence.context()[1]["near_gain"] == pytest.approx(max(gains.values()), abs=1e-5)


@pytest.mark.claim(
    "evidence-who-stays-level",
    "In our runs the loss of the same bytes is at most 0.06 nats higher with 1,008 bytes before them than "
    "with 64, in each seed, with ALiBi, KERPLE, Sandwich, xPos, Shaw, DeBERTa, Transformer-XL and CoPE; with "
    "every other encoding and with none it is at least 0.1 higher",
)
def test_eight_encodings_stay_level(costs):
    assert {*LEVEL, *RISING, *BROKEN} == set(costs)
    assert _loss_by_context.level() == set(LEVEL) and _loss_by_context.LITTLE == 0.06
    for name, cost in costs.items():
        assert (cost <= 0.06).all() if name in LEVEL else (cost >= 0.1).all(), name
    assert all((costs[name] < 0.55 * costs["none"]).all() for name in LEVEL)  # about half


def test_which_of_the_level_ones_lose_a_little_and_which_nothing(costs):
    mean = {name: costs[name].mean() for name in LEVEL}
    assert all(abs(mean[name]) < 0.01 for name in ("ALiBi", "KERPLE", "Transformer-XL"))
    assert 0.01 < mean["Sandwich"] < 0.03 < mean["xPos"]
    for name in LEVEL:
        before, after = evidence._far()[name][[2, -1]]
        nothing = name in ("ALiBi", "KERPLE", "Transformer-XL")
        assert compare(before, after).better() is (None if nothing else True), name
    assert mean["xPos"] <= mean["CoPE"] <= mean["DeBERTa"] <= mean["Shaw"]


@pytest.mark.claim(
    "evidence-rope-and-sinusoids-break",
    "In our runs, trained at length 128, the loss of the same bytes is higher with sinusoids and RoPE than "
    "without positions when 1,008 bytes stand before them, in each seed, by at least 0.4 nats",
)
def test_rope_and_sinusoids_end_above_no_encoding(far, bands):
    for name in BROKEN:
        assert (far[name] > far["none"] + 0.4).all(), name
        assert (bands[name]["far"] > bands["none"]["far"] + 0.2).all(), name


@pytest.mark.claim(
    "evidence-who-beats-none-far-out",
    "In our runs, with 1,008 bytes before the same bytes, ten encodings have a lower loss than the model "
    "without positions, and RoPE and sinusoids a higher one: the 95 % interval of each difference over seeds "
    "and files lies on that side; for T5 and the learned table it holds zero",
)
def test_who_is_better_than_none_far_out_is_decided_by_the_rule():
    values = evidence.verdicts()
    words = evidence.WORDS
    kept = runs.load("language")
    none = torch.tensor([run["far"]["1008"] for run in kept["none"]]).view(3, -1, 3)
    for name in kept.keys() - {"none"}:
        mine = torch.tensor([run["far"]["1008"] for run in kept[name]]).view(3, -1, 3)
        found = compare(mine, none).better()
        assert values[key(name)] == words[found]
        assert found is (None if name in ("T5", "learned") else name not in BROKEN), name
    assert (values["better"], values["worse"], values["alike"]) == (10, 2, 2)


@pytest.mark.claim(
    "evidence-who-is-lowest-within",
    "In our runs on source code, with 64 bytes before the same bytes, DeBERTa, Transformer-XL, CoPE, xPos, "
    "Shaw, Sandwich and RoPE have the lowest mean loss, in this order; by the rule for better DeBERTa has a "
    "lower one than the last four, Transformer-XL than the last two, CoPE than Shaw and Sandwich, and no "
    "other two of the seven differ; each of the fourteen encodings has a lower one than none",
)
def test_which_of_the_seven_with_the_lowest_loss_within_differ(near):
    best = ("DeBERTa", "Transformer-XL", "CoPE", "xPos", "Shaw", "Sandwich", "RoPE")
    assert tuple(sorted(near, key=lambda name: near[name].mean()))[:7] == best
    differ = {
        (one, other)
        for at, one in enumerate(best)
        for other in best[at + 1 :]
        if evidence._compared(one, other, 64).better() is not None
    }
    beaten = {"DeBERTa": best[3:], "Transformer-XL": best[5:], "CoPE": ("Shaw", "Sandwich")}
    assert differ == {(one, other) for one, others in beaten.items() for other in others}
    assert all(evidence._compared(one, other, 64).better() for one, other in differ)
    for name in runs.load("language"):
        assert name == "none" or evidence._compared(name, "none", 64).better() is True, name


def test_the_others_rise_and_lose_part_or_all_of_what_they_gained(near, far, costs):
    order = sorted(RISING, key=lambda name: costs[name].mean())
    assert tuple(order) == RISING  # as the page lists them
    lead = {name: (near["none"] - near[name], far["none"] - far[name]) for name in RISING}
    assert (lead["FIRE"][1] > 0.2).all()
    before, after = lead["clipped bias"]
    assert ((after > 0) & (after < before / 2)).all()
    assert (lead["T5"][1] < 0).all() and (lead["learned"][1] < 0).all()


@pytest.mark.claim(
    "evidence-length-costs-none-less",
    "In our runs on source code, 1,008 bytes before the same bytes and not 64 raise the loss of the model "
    "without positional encoding less than that with T5, the clipped bias, FIRE, RoPE and sinusoids, and "
    "more than that with each other encoding but the learned table, which is not distinguishable: by the "
    "rule for better",
)
def test_length_costs_the_model_without_positions_less_than_five_encodings_and_it_had_least_to_lose(near):
    cost = {name: far[-1] - far[2] for name, far in evidence._far().items()}
    found = {name: compare(cost["none"], each).better() for name, each in cost.items() if name != "none"}
    assert {name for name, less in found.items() if less} == {"T5", "clipped bias", "FIRE", *BROKEN}
    assert {name for name, less in found.items() if less is None} == {"learned"}
    assert max(near, key=lambda name: near[name].mean()) == "none"


def test_sinusoids_break_at_once_and_rope_a_little_later():
    at_once, later = _loss_by_context.costs(128), _loss_by_context.costs(256)
    assert (at_once["sinusoidal"] > 0.4).all()
    assert (at_once["RoPE"] < 0.03).all() and (later["RoPE"] > 0.4).all()


def test_eight_walk_on_two_pinch_two_end_about_as_and_two_far_worse_than_none(near, far, costs):
    """The counts of the level in plain words, which stand for every encoding."""
    over = {name: far[name] - far["none"] for name in far if name != "none"}
    little = {name for name in over if evidence._compared(name, "none", 1008).better() is None}
    bad = {name for name, each in over.items() if (each > 0.4).all()}
    assert little == {"T5", "learned"} and bad == set(BROKEN)
    pinched = set(over) - set(LEVEL) - little - bad
    assert pinched == {"FIRE", "clipped bias"} and all((over[name] < 0).all() for name in pinched)
    assert (costs["none"] > 0).all()
    assert [len(LEVEL), len(pinched), len(little), len(bad)] == [8, 2, 2, 2]
    text = " ".join((DOCS / "guide" / "evidence.md").read_text(encoding="utf-8").split())
    for words in (
        "Bare feet got a little sore",
        "Eight pairs walked on",
        "Two began to pinch",
        "Two ended about as bare feet did",
        "two ended far worse",
    ):
        assert words in text


def test_three_pairs_of_boots_are_the_best_none_and_needles(near, far):
    _, values = evidence.boots()
    assert values["best"] == min(far, key=lambda name: far[name].mean())
    for name, chance in ((values["best"], "best_near"), ("RoPE", "needles_near")):
        assert values[chance] == pytest.approx(math.exp(-near[name].mean()), abs=1e-6)
    assert values["needles_near"] > 0.9 * values["best_near"], "nearly as good"


def test_by_position_the_level_lines_fall_and_on_the_same_bytes_none_does(bands, costs):
    values = evidence.level()
    assert 0.04 < values["least_fall"] < values["most_fall"] < 0.1
    assert all(costs[name].mean() > 0 for name in LEVEL)
    assert (bands["none"]["far"] - bands["none"]["within"]).mean() < 0.03 < 0.1 < costs["none"].mean()


@pytest.mark.claim(
    "evidence-a-window-mends-rope",
    "In our runs RoPE models that see no key 128 or more bytes back, with nothing retrained, lose at most "
    "0.02 nats on the same bytes with 1,008 bytes before them instead of 64, in each seed; so do they with "
    "windows of 32 and 64 bytes, and within the trained length that costs less than 0.01 nats",
)
def test_a_window_mends_rope(near, far):
    assert variants.WINDOWS == (32, 64, 128, language.ASKED)
    kept = runs.load("variants")["RoPE with a window"]
    for number, (run, plain) in enumerate(zip(kept, runs.load("language")["RoPE"], strict=True)):
        assert run["far"]["1024"] == plain["far"]  # the same models: hiding nothing changes nothing
        for window in ("32", "64", "128"):
            within, long = (torch.tensor(run["far"][window][n]).mean() for n in ("64", "1008"))
            assert long - near["RoPE"][number] < 0.02 and within - near["RoPE"][number] < 0.01
    values = evidence.variants()
    better = {name for name in far if far[name].mean() < values["128_loss"]}
    assert better == {"Transformer-XL", "DeBERTa", "CoPE"} and len(better) == values["128_better"]
    assert values["narrowest"] == 32 and values["32_cost"] < 0.02


def windowed(name, window, before):
    """The loss of the same bytes with a window at test time: (seeds, files, windows)."""
    kept = runs.load("variants")[f"{name} with a window"]
    return torch.tensor([run["far"][str(window)][str(before)] for run in kept]).view(3, -1, 3)


@pytest.mark.claim(
    "evidence-a-window-is-no-cure",
    "In our runs on source code, with 1,008 bytes before the same bytes and a window of 32, 64 or 128 bytes "
    "at test time, models without positions have a lower loss than with no window: the 95 % interval of the "
    "difference over seeds and files lies on that side; with sinusoids, and with a learned table that ends "
    "where training ended, it holds zero. All three have a higher loss so than with 64 bytes before",
)
def test_a_window_helps_no_positions_in_part_and_neither_sinusoids_nor_a_learned_table():
    values = evidence.windows()
    for name, helps in (("none", True), ("sinusoidal", None), ("learned", None)):
        plain, near = windowed(name, language.ASKED, 1008), windowed(name, language.ASKED, 64)
        assert values[f"{name}_within"] == pytest.approx(near.mean().item(), abs=1e-5)
        assert values[f"{name}_1024"] == pytest.approx(plain.mean().item(), abs=1e-5)
        for window in (32, 64, 128):
            narrow = windowed(name, window, 1008)
            assert compare(narrow, plain).better() is helps, (name, window)
            assert compare(near, narrow).better() is True
            assert values[f"{name}_{window}"] == pytest.approx(narrow.mean().item(), abs=1e-5)
    assert values["none_1024"] - values["none_within"] == pytest.approx(
        evidence.context()[1]["none_loss"], abs=1e-5
    )


@pytest.mark.claim(
    "evidence-five-bytes-beat-all",
    "In our runs on source code a count of which byte followed which four, in the windows that the models "
    "learned from, has a lower loss on the same bytes than every encoding and than none, at each number of "
    "bytes read before them: the 95 % interval of each difference over seeds and files lies on that side",
)
def test_a_count_of_five_bytes_beats_every_model():
    counted = torch.tensor([run["far"]["5"] for run in runs.load("variants")["5-gram"]]).view(3, -1, 3)
    values, lowest = evidence.windows(), []
    for name, kept in runs.load("language").items():
        for before in language.CONTEXTS:
            loss = torch.tensor([run["far"][str(before)] for run in kept]).view(3, -1, 3)
            assert compare(counted, loss).better() is True, (name, before)
            lowest.append(loss.mean().item())
    assert values["worse"] == 15 and values["order"] == 5
    assert values["counted"] == pytest.approx(counted.mean().item(), abs=1e-5)
    assert values["lowest"] == pytest.approx(min(lowest), abs=1e-5)
    for name in ("none", "sinusoidal", "learned", "RoPE"):
        for window in variants.WINDOWS:
            assert compare(counted, windowed(name, window, 1008)).better() is True


@pytest.mark.claim(
    "evidence-alibi-gains-at-cuts",
    "In our runs on source code ALiBi, trained on 128 bytes, has a lower loss on the same bytes in windows "
    "side by side of 1,024 bytes than of 128: the 95 % interval of the gain over seeds and files lies above "
    "zero; in windows that slide it holds zero, and ends below 0.005 nats",
)
def test_longer_windows_help_alibi_side_by_side_and_not_where_they_slide():
    values, kept = evidence.both_ways(), runs.load("variants")["ALiBi both ways"]
    found = {}
    for way, name in (("side by side", "side"), ("sliding", "sliding")):
        losses = [torch.tensor([run["far"][way][str(n)] for run in kept]) for n in variants.LENGTHS]
        found[name] = compare(losses[-1], losses[0])
        told = [values[f"{name}_{end}"] for end in ("gain", "low", "high")]
        assert told == pytest.approx([found[name].gain, found[name].low, found[name].high])
        assert all(loss.shape == (3, values["files"]) for loss in losses)
    assert found["side"].better() is True and found["sliding"].better() is None
    assert values["sliding_high"] < 0.005
    assert (values["shortest"], values["longest"]) == (language.TRAINED, language.ASKED)


@pytest.mark.claim(
    "evidence-the-fade-decides",
    "In our runs xPos with a fade eight times as slow loses at least 0.2 nats on the same bytes with 1,008 "
    "bytes before them instead of 64, in each seed; xPos made for the trained length loses at most 0.06",
)
def test_the_fade_of_xpos_decides(costs):
    values = evidence.variants()
    assert 0.2 < values["slow_least"] <= values["slow_most"]
    assert (costs["xPos"] <= 0.06).all()
    assert variants.SLOWER * language.TRAINED == language.ASKED  # made for the length asked about


def test_what_runs_here_is_told_of_each_encoding_as_it_is_made(capsys):
    values = evidence.fidelity()
    lines = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    here = {name: ours for name, _, ours in lines}
    assert list(here) == runs.plan()["language"]["methods"] and values["encodings"] == 15
    made = {name: language.decoder(name, 0).encoding for name in here}
    assert made["FIRE"].make.init_L == 512 == values["times"] * language.TRAINED
    assert made["learned"].add.table.shape[0] == language.ASKED and "1,024 rows" in here["learned"]
    assert made["CoPE"].scores.table.shape[0] == 32 and "32 rows" in here["CoPE"]
    for name, table in (("Shaw", made["Shaw"].table), ("clipped bias", made["clipped bias"].make.table)):
        assert len(table) == 2 * 32 + 1 and "ends at 32" in here[name]
    assert len(made["DeBERTa"].scores.table) == 2 * 32 and "ends at 32" in here["DeBERTa"]
    at = torch.arange(128)[None]
    bias = language.decoder("T5", 0).encoding
    torch.nn.init.normal_(next(bias.parameters()))
    row = bias.bias(at[:, -1:], at)[0, 0, 0].flip(0)  # by distance
    shares = [distance for distance in range(128) if row[distance] == row[127]]
    assert shares == list(range(113, 128)) and "113 of 128" in here["T5"]
    assert "over 64 of 128" in here["xPos"]  # held by tests/experiments/test_language.py
    theirs = made["Sandwich"].bias(at, at)
    assert torch.equal(theirs, sandwich_bias(at, at, language.HEADS, dim=128)) and "128" in here["Sandwich"]


def test_what_was_run_is_counted_over_all_that_the_pages_show(monkeypatch):
    """Each exhibit of the two pages is asked which results it reads."""
    pages = [(DOCS / name).read_text(encoding="utf-8") for name in ("guide/evidence.md", "source-code.md")]
    modules = {"evidence": evidence, "cost": price, "regimes": regimes, "chains": chains}
    shown = {found for page in pages for found in re.findall(r"(?:```exhibit |#!val )(\w+)\.(\w+)", page)}
    shown = {(module, name) for module, name in shown if module in modules}
    shown.remove(("evidence", "provenance"))
    read = set()
    for module in (*modules.values(), _loss_by_context):
        for name in ("load", "made_with"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, noting(getattr(runs, name), read))
    for module, name in sorted(shown):
        getattr(modules[module], name)()
    assert read == set(evidence.SHOWN)
    values, entries = evidence.provenance(), [e for name in read for e in runs.made_with(name)]
    assert values["runs"] == len(entries)
    assert values["minutes"] == pytest.approx(sum(entry["seconds"] for entry in entries) / 60)


def noting(function, names):
    return lambda name, **more: names.add(name) or function(name, **more)


def test_all_seeds_are_asked_about_the_same_windows():
    assert torch.equal(language.held_out(2), language.held_out(2))


def test_a_position_has_one_byte_more_of_context_than_its_number():
    model = language.decoder("RoPE", 0).double()
    windows = language.held_out(1)[:, :9]
    whole = language.losses(model, windows)[0]
    for place in range(7):
        other = windows.clone()
        other[0, place] ^= 1
        moved = (language.losses(model, other)[0] - whole).abs() > 1e-9
        assert moved.tolist() == [at >= place - 1 for at in range(8)]  # place - 1 has it to guess


def test_a_number_that_starts_at_zero_is_trained_here_as_in_the_experiment(monkeypatch):
    asked = []
    schedule = torch.optim.lr_scheduler.OneCycleLR

    def spy(optimizer, *given, **named):
        (group,) = optimizer.state_dict()["param_groups"]
        kind = {key: each for key, each in group.items() if key != "params"}
        asked.append((type(optimizer), kind, given, named))
        return schedule(optimizer, *given, **named)

    monkeypatch.setattr(torch.optim.lr_scheduler, "OneCycleLR", spy)
    language.train(language.decoder("T5", 0), 0, "cpu", updates=11, length=8, batch=2)
    evidence.from_zero(updates=11)
    assert asked[0] == asked[1]


def test_what_a_bias_can_learn_from_zero_is_little_beside_what_alibi_begins_with():
    values = evidence.from_zero()
    near, far = values["reach"], -values["reach"]
    assert values["times"] == pytest.approx(math.exp(near - far))
    assert values["reach"] < values["growing"] < 2 * values["reach"]
    faster = [evidence._reach(language.UPDATES, power) for power in (1, 2, 3)]
    assert faster == sorted(faster) and faster[0] == values["growing"]
    places = torch.arange(values["alibi"] + 1)
    row = alibi_bias(places[-1:], places, alibi_slopes(language.HEADS))[0, 0]
    weighs = (row[-1] - row).exp()
    assert weighs[0] >= values["times"] > weighs[1]
    for keys, share in ((128, "share_within"), (1024, "share_far")):
        scores = torch.full((keys,), far)
        scores[-values["near"] :] = near
        assert scores.softmax(-1)[-values["near"] :].sum() == pytest.approx(values[share])


def test_two_biases_and_copes_table_start_at_zero_and_the_query_multiplies_copes():
    for name in ("T5", "clipped bias", "CoPE"):
        assert not any(each.any() for each in language.decoder(name, 0).encoding.parameters()), name
    cope = language.decoder("CoPE", 0).encoding.scores
    q, k = torch.randn(2, 1, 2, 5, 16)
    torch.nn.init.normal_(cope.table)
    assert torch.allclose(cope(0 * q, k).tril(), torch.zeros(5))
    for name in ("KERPLE", "FIRE", "ALiBi", "Sandwich"):
        encoding, places = language.decoder(name, 0).encoding, torch.arange(128)[None]
        bias = encoding.bias(places[:, -1:], places)
        assert (bias[..., -1] - bias[..., 0]).abs().max() > 0.01, name


def test_what_far_text_is_worth_is_told_from_results_that_say_it(monkeypatch, capsys):
    """On made-up results: no encoding gains 0.05, RoPE loses 0.5, the learned table neither."""
    change = dict.fromkeys(evidence.COLORS, 0.0) | {"none": -0.05, "RoPE": 0.5}
    hard = 2 + torch.rand(58, 3).flatten()

    def result(name):
        far = {str(each): hard + 0.02 * torch.randn(174) for each in language.CONTEXTS}
        far["1008"] = far["1008"] + change[name]
        return {"far": {each: loss.tolist() for each, loss in far.items()}}

    made = {name: [result(name) for _ in range(3)] for name in change}
    monkeypatch.setattr(evidence, "load", lambda experiment: made)
    values = evidence.context()[1]
    for key, gain in (("none", 0.05), ("rope", -0.5), ("learned", 0.0)):
        assert values[f"{key}_least"] < gain < values[f"{key}_most"]
        assert values[f"{key}_most"] - values[f"{key}_least"] < 0.02
    assert (values["files"], values["windows"], values["bytes"]) == (58, 3, 58 * 3 * 16)
    assert "RoPE" in capsys.readouterr().out


@pytest.mark.claim(
    "evidence-far-text-helps-none",
    "In our runs bytes further back than 64 lower the loss of the bytes asked for by less than 0.01 nats "
    "with every encoding and with none: the 95 % interval over files and seeds ends below that for each",
)
def test_far_text_helps_with_no_encoding_and_hurts_with_most():
    values = evidence.context()[1]
    assert all(values[f"{key(name)}_most"] < 0.01 for name in evidence.COLORS)
    untouched = ("ALiBi", "KERPLE", "Transformer-XL")
    for name in evidence.COLORS.keys() - {*untouched}:
        assert values[f"{key(name)}_most"] < 0, name


def key(name):
    return name.lower().replace(" ", "_").replace("-", "_")


def test_rope_and_xpos_pair_other_columns():
    x, at = torch.zeros(1, 1, 2, 16), torch.arange(2)[None]
    x[..., 0] = 1
    for name, partner in (("RoPE", 8), ("xPos", 1)):
        encoding = language.decoder(name, 0).encoding
        turned = encoding.rotate(x, encoding.tables(at), "query")[0, 0, 1]
        assert turned[1:].abs().argmax() + 1 == partner


def test_the_two_that_are_added_start_far_apart_in_loudness():
    values = evidence.loudness()
    assert values["waves"] == pytest.approx(0.5**0.5 / (0.02 * 8), rel=0.02)
    assert values["quieter"] == pytest.approx(0.02 * 8 / 0.01, rel=0.02)
    assert values["apart"].item() == pytest.approx((values["waves"] * values["quieter"]).item())


def test_tables_that_start_at_zero_lag_behind_given_shapes(bands):
    for slow in ("T5", "clipped bias"):
        for quick in ("FIRE", "KERPLE"):
            assert (bands[slow]["within"] > bands[quick]["within"] + 0.1).all()
        assert (bands["none"]["within"] - bands[slow]["within"] < 0.3).all()


@pytest.mark.claim(
    "evidence-shuffled-gains-nothing",
    "In our runs on shuffled bytes neither sinusoids nor RoPE nor ALiBi, which alone were asked, are better "
    "than none by more than 0.01 nats within the trained length",
)
def test_on_shuffled_bytes_no_encoding_gains():
    values = evidence.control()
    assert set(runs.load("shuffled")) == {"none", "sinusoidal", "RoPE", "ALiBi"}
    assert values["largest_gain"] < 0.01 < 0.3 < values["gain_in_order"]


@pytest.fixture(scope="module")
def wrong():
    """For each task, length and encoding the share of wrong answers, as a prediction names it: (seeds, 1)."""
    methods = runs.plan()["tasks"]["methods"]
    return {
        (task, length): {name: regimes._measured("tasks", name, length, task=task) for name in methods}
        for task in tasks.TASKS
        for length in tasks.LENGTHS
    }


def test_of_a_task_what_is_measured_is_the_share_of_wrong_answers(wrong):
    for name, kept in runs.load("tasks").items():
        for task, told in ((task, [run["accuracy"][task] for run in kept]) for task in tasks.TASKS):
            for column, length in enumerate(tasks.LENGTHS):
                found = wrong[task, length][name]
                assert found.shape == (3, 1)
                assert found[:, 0].tolist() == pytest.approx([1 - each[column] for each in told], abs=1e-6)


def learned(task):
    """The encodings with which each seed reached the criterion."""
    kept = runs.load("tasks")
    return {name for name, each in kept.items() if None not in [run["learned"][task] for run in each]}


def test_of_a_task_that_was_not_learned_nothing_is_shown_past_the_trained_length(wrong):
    figure, values = evidence.tasks()
    names = [*runs.load("tasks")]
    assert names == runs.plan()["language"]["methods"] and values["asked"] == len(names) == 15
    for ax, task in zip(figure.axes, tasks.TASKS, strict=True):
        shown = {text.get_position(): text.get_text() for text in ax.texts}
        told = {}
        for row, name in enumerate(names):
            for column, length in enumerate(tasks.LENGTHS):
                share = 1 - wrong[task, length][name].mean().item()
                assert values[f"{task}_{key(name)}_{length}"] == pytest.approx(share, abs=1e-6)
                if column == 0 or name in learned(task):
                    told[column, row] = f"{share:.2f}".removeprefix("0").replace("1.00", "1")
        assert shown == told
        assert values[f"{task}_known"] == len(learned(task))
    plt.close(figure)
    assert values["enough"] == 0.99


def test_where_seeds_lie_farthest_apart_is_told_of_what_was_learned(wrong):
    values, apart = evidence.tasks()[1], []
    for (task, _), shares in wrong.items():
        for name in learned(task):
            right = 1 - shares[name]
            apart.append((right.max() - right.min(), right.min().item(), right.max().item()))
    _, least, most = max(apart)
    assert (values["widest_least"], values["widest_most"]) == pytest.approx((least, most))
    assert most - least > 0.5


@pytest.mark.claim(
    "evidence-updates-differ-in-tasks",
    "In our runs of recall, RoPE is trained for 300 updates in each seed, before its step size has reached "
    "its peak, and the model without positions for 1,700 to 1,900; in copying ALiBi and FIRE for at most "
    "3,300, and the model without positions for 4,000",
)
def test_how_long_each_was_trained_for_a_task_is_told(capsys):
    values, kept = evidence.updates(), runs.load("tasks")
    rows = [line[2:-2].split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[0] for row in rows] == [*kept]
    for name, *cells in rows:
        for task, cell in zip(tasks.TASKS, cells, strict=True):
            learned = [run["learned"][task] for run in kept[name]]
            assert cell == ", ".join("4,000*" if each is None else f"{each:,}" for each in learned)
            ends = [values[f"{task}_{key(name)}_{end}"] for end in ("min", "max")]
            assert ends == [f(each or 4000 for each in learned) for f in (min, max)]
    assert {run["learned"]["recall"] for run in kept["RoPE"]} == {300}
    assert (values["recall_none_min"], values["recall_none_max"]) == (1700, 1900)
    assert max(values[f"copying_{name}_max"] for name in ("alibi", "fire")) == 3300
    assert values["copying_none_min"] == tasks.MOST == 4000
    optimizer = torch.optim.AdamW(tasks.decoder("RoPE", 0).parameters(), tasks.RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, tasks.RATE, tasks.MOST, pct_start=0.1)
    rates = []
    for _ in range(500):
        rates.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    assert rates[:300] == sorted(rates[:300]) and rates[299] < 0.95 * max(rates)


@pytest.mark.claim(
    "evidence-copying-fades",
    "In our runs copying is learned in each seed with ALiBi, KERPLE, FIRE, DeBERTa, xPos, sinusoids and a "
    "learned table, and in no seed without positions; at twice the trained length ALiBi, KERPLE and FIRE "
    "copy at least 90 % of the letters in each seed, xPos, sinusoids and the table at most 40 %; at eight "
    "times no encoding copies more than 55 % on average over the seeds, and none more than 63 % in any seed",
)
def test_copying_fades_with_length(wrong):
    longer = {"ALiBi", "KERPLE", "FIRE"}
    lost = {"xPos", "sinusoidal", "learned"}
    assert learned("copying") == longer | lost | {"DeBERTa"}
    assert {run["learned"]["copying"] for run in runs.load("tasks")["none"]} == {None}
    assert all((wrong["copying", 64][name] < 0.1).all() for name in longer)
    assert all((wrong["copying", 64][name] > 0.6).all() for name in lost)
    far = {name: 1 - each.mean().item() for name, each in wrong["copying", 256].items()}
    assert max(far, key=far.get) == "KERPLE" and far["KERPLE"] < 0.55
    most = max(1 - each.min().item() for each in wrong["copying", 256].values())
    assert evidence.tasks()[1]["copying_alibi_256_most"] == pytest.approx(most, abs=1e-6) and most < 0.63


@pytest.mark.claim(
    "evidence-recall-breaks-with-rope",
    "In our runs every encoding but sinusoids, and the model with none, learns recall in each seed; at eight "
    "times the trained length ALiBi and Sandwich have at least 95 % of the answers right in each seed, RoPE "
    "at most 25 %, and fewer than the model without positions, which was trained for more than five times as "
    "many updates: the 95 % interval of the difference over seeds lies on that side",
)
def test_recall_is_kept_with_alibi_and_sandwich_and_lost_with_rope(wrong):
    far = wrong["recall", 256]
    assert learned("recall") == {*far} - {"sinusoidal"}
    assert all((far[name] <= 0.05).all() for name in ("ALiBi", "Sandwich"))
    assert (far["RoPE"] > 0.75).all()
    assert compare(far["none"], far["RoPE"]).better() is True
    took = {n: [run["learned"]["recall"] for run in runs.load("tasks")[n]] for n in ("none", "RoPE")}
    assert min(took["none"]) > 5 * max(took["RoPE"])


@pytest.mark.claim(
    "evidence-cope-counts-on",
    "In our runs every encoding but Sandwich, and the model with none, learns counting in each seed; at "
    "twice the trained length CoPE has at least 97 % of the counts right in each seed, and every other at "
    "most 84 %; at eight times CoPE has at most half",
)
def test_cope_counts_on_and_not_for_long(wrong):
    twice = wrong["counting", 64]
    assert learned("counting") == {*twice} - {"Sandwich"}
    assert (twice["CoPE"] < 0.03).all() and (wrong["counting", 256]["CoPE"] > 0.5).all()
    others = {name: each for name, each in twice.items() if name != "CoPE"}
    assert all((each > 0.16).all() for each in others.values())
    assert min(others, key=lambda name: others[name].mean()) == "KERPLE"


@pytest.mark.claim(
    "evidence-no-positions-lead-no-task",
    "In our runs, at two, four and eight times the trained length, ALiBi and FIRE are right more often than "
    "the model without positions in copying and in recall, after fewer updates: the 95 % interval of each "
    "difference over seeds lies on that side; in counting CoPE is right more often on average, and by the "
    "rule for better not distinguishable from it",
)
def test_no_positions_lead_in_no_task(wrong):
    for length in (64, 128, 256):
        for task in ("copying", "recall"):
            none = wrong[task, length]["none"]
            assert all(
                compare(wrong[task, length][name], none).better() is True for name in ("ALiBi", "FIRE")
            )
        counting = wrong["counting", length]
        assert min(counting, key=lambda name: counting[name].mean()) == "CoPE"
        assert compare(counting["CoPE"], counting["none"]).better() is None
    updates = evidence.updates()
    for task in ("copying", "recall"):
        assert all(updates[f"{task}_{n}_max"] < updates[f"{task}_none_min"] for n in ("alibi", "fire"))


def test_what_is_copied_is_as_long_as_the_page_says():
    values = evidence.tasks()[1]
    answers = tasks.copying(3, tasks.LONGEST, torch.Generator().manual_seed(0))[1]
    assert (answers != tasks.NOTHING).sum(-1).tolist() == 3 * [values["copied"]]
    assert (values["trained"], values["times"], values["letters"], values["most"]) == (32, 8, 8, 9)


def test_the_trained_length_is_the_first_that_is_asked_about():
    assert tasks.LENGTHS[0] == tasks.LONGEST


def test_all_results_are_of_one_corpus():
    assert evidence.provenance()["corpora"] == 1


def test_spread_is_half_the_range():
    assert evidence._spread(torch.tensor([1.0, 4.0, 2.0])) == 1.5


@pytest.mark.claim(
    "evidence-gate-opens-at-line-breaks",
    "In the kept runs with gated sinusoids, in each seed, a line break takes a larger share of its encoding "
    "than any small letter; far out the loss is below that of sinusoids and above that of no encoding",
)
def test_a_line_break_takes_more_of_its_place_than_any_letter():
    kept = runs.load("teaching")["gated sinusoids"]
    for gates in (result["gates"] for result in kept):
        assert gates[ord("\n")] > max(gates[letter] for letter in b"abcdefghijklmnopqrstuvwxyz")
    plain = runs.load("language")["sinusoidal"]
    for one, other in zip(kept, plain, strict=True):
        loss = torch.tensor([one["loss"], other["loss"]])
        assert loss[0, 1:8].mean() > loss[1, 1:8].mean()
        assert loss[0, 32:].mean() < loss[1, 32:].mean()
    for one, other in zip(kept, runs.load("language")["none"], strict=True):
        assert torch.tensor(one["loss"][32:]).mean() > torch.tensor(other["loss"][32:]).mean()
    assert evidence.gated()["over_min"] > 0


@pytest.mark.claim(
    "evidence-rings-are-enough-here",
    "In the kept runs, local and global rows end within 0.02 nats of Shaw's keys, within the trained length "
    "and far out, in each seed",
)
def test_rows_for_rings_do_as_well_as_a_row_for_each_distance():
    pairs = zip(runs.load("teaching")["local and global"], runs.load("language")["Shaw"], strict=True)
    for one, other in pairs:
        loss = torch.tensor([one["loss"], other["loss"]])
        for band in (slice(1, 8), slice(32, 64)):
            assert (loss[0, band].mean() - loss[1, band].mean()).abs() < 0.02
        assert one["encoding_parameters"] < other["encoding_parameters"] / 2
    assert evidence.near_and_far()["largest"] < 0.02
