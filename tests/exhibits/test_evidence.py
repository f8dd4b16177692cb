"""What the chapter on evidence says in words, held against the kept results, seed by seed."""

import math

import pytest
import torch
from matplotlib.colors import to_hex

from exhibits import evidence
from experiments import language, runs, tasks
from snippets.alibi import alibi_bias, alibi_slopes
from weave.project import DOCS

LEVEL = ("ALiBi", "KERPLE", "Sandwich", "Shaw", "DeBERTa", "Transformer-XL", "CoPE")
FADING = ("xPos", "FIRE", "clipped bias", "T5")
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


@pytest.mark.claim(
    "evidence-every-encoding-helps-within",
    "In our runs every encoding has a lower loss within the trained length than none, in each seed",
)
def test_every_encoding_helps_within(bands):
    for name, found in bands.items():
        assert name == "none" or (found["within"] < bands["none"]["within"]).all(), name


@pytest.mark.claim(
    "evidence-seven-stay-level",
    "In our runs the loss of ALiBi, KERPLE, Sandwich, Shaw, DeBERTa, Transformer-XL and CoPE is no higher "
    "from position 512 on than within the trained length of 128, in each seed",
)
def test_seven_encodings_stay_level(bands):
    for name in LEVEL:
        assert (bands[name]["far"] <= bands[name]["within"]).all(), name


@pytest.mark.claim(
    "evidence-rope-and-sinusoids-break",
    "In our runs, trained at length 128, sinusoids and RoPE have a higher loss from position 512 on than a "
    "model without positions, in each seed",
)
def test_rope_and_sinusoids_end_above_no_encoding(bands):
    for name in BROKEN:
        assert (bands[name]["far"] > bands["none"]["far"] + 0.2).all(), name


def test_the_others_rise_and_lose_part_or_all_of_what_they_gained(bands):
    for name in FADING:
        rise = bands[name]["far"] - bands[name]["within"]
        assert (rise > 0.03).all(), name
    lead = {name: {band: bands["none"][band] - bands[name][band] for band in bands[name]} for name in FADING}
    assert all((lead[name]["far"] > 0.1).all() for name in ("xPos", "FIRE"))
    clipped = lead["clipped bias"]
    assert ((clipped["far"] > 0) & (clipped["far"] < clipped["within"] / 2)).all()
    assert (lead["T5"]["far"] < 0.1 * lead["T5"]["within"]).all()
    means = {name: (bands[name]["far"] - bands[name]["within"]).mean() for name in FADING}
    assert min(means, key=means.get) == "FIRE" and max(means, key=means.get) == "xPos"


def test_the_groups_are_all_that_there_are(bands):
    assert {*LEVEL, *FADING, *BROKEN, "none", "learned"} == set(bands)
    assert set(evidence.LEVEL) == set(LEVEL)


def test_seven_walk_on_three_pinch_two_end_a_little_and_two_far_worse_than_none():
    """The counts of the level in plain words, which stand for every encoding."""
    losses = evidence._losses()
    over = {name: (losses[name] - losses["none"])[:, -4:].mean(-1) for name in losses if name != "none"}
    little = {name for name, each in over.items() if (each > 0).all() and (each < 0.2).all()}
    far = {name for name, each in over.items() if (each > 0.2).all()}
    assert little == {"T5", "learned"} and far == set(BROKEN)
    pinched = set(over) - set(LEVEL) - little - far
    assert pinched == set(FADING) - little and all((over[name] < 0).all() for name in pinched)
    counts = {7: LEVEL, 3: pinched, 2: little}
    assert all(len(names) == count for count, names in counts.items()) and len(far) == 2
    text = " ".join((DOCS / "guide" / "evidence.md").read_text(encoding="utf-8").split())
    for words in (
        "Seven pairs walked on",
        "Three began to pinch",
        "Two ended a little worse",
        "two ended far worse",
    ):
        assert words in text


def test_the_falls_of_the_level_lines_are_within_what_the_text_of_the_places_may_do():
    values = evidence.level()
    assert 0 < values["least_fall"] < values["most_fall"] < 2.5 * values["noise"]
    assert values["alike"] > 0.9
    losses = evidence._losses()
    for name in LEVEL:  # the noise is that of each line, seen in its own bins
        line = losses[name].mean(0)
        squares = [line[1:8].var() / 7, line[32:].var() / 32]
        assert sum(squares) ** 0.5 == pytest.approx(values["noise"].item(), rel=0.2)


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


def test_who_is_best_within(bands):
    means = {name: bands[name]["within"].mean() for name in bands}
    best = sorted(means, key=means.get)
    assert set(best[:2]) == {"Transformer-XL", "DeBERTa"}
    assert set(best[2:7]) == {"CoPE", "RoPE", "Sandwich", "xPos", "Shaw"}


def test_sinusoids_break_at_once_and_rope_a_little_later(bands):
    jump = {name: bands[name]["just past"] - bands[name]["within"] for name in BROKEN}
    assert (jump["sinusoidal"] > 0.4).all()
    holds = evidence.table()["rope_holds_until"]
    assert evidence.TRAINED < holds < 2 * evidence.TRAINED


def test_no_encoding_stays_level_and_high(bands):
    none = bands["none"]
    assert ((none["far"] - none["within"]).abs() < 0.05).all()
    higher = [name for name in bands if (bands[name]["within"] > none["within"] - 0.1).any()]
    assert set(higher) <= {"none", "learned", "sinusoidal"}


def test_xpos_rises_less_than_half_as_much_as_rope(bands):
    rise = {name: (bands[name]["far"] - bands[name]["within"]).mean() for name in ("RoPE", "xPos")}
    assert 0 < rise["xPos"] < rise["RoPE"] / 2


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
    "with every encoding: the 95 % interval over files and seeds ends below that for each",
)
def test_far_text_helps_with_no_encoding_and_hurts_with_most():
    values = evidence.context()[1]
    assert all(values[f"{key(name)}_most"] < 0.01 for name in evidence.COLORS)
    untouched = ("ALiBi", "KERPLE", "Transformer-XL")
    assert all(abs(values[f"{key(name)}_loss"]) < 0.01 for name in untouched)
    assert 0.01 < values["sandwich_loss"] < 0.03
    for name in evidence.COLORS.keys() - {*untouched, "Sandwich"}:
        assert values[f"{key(name)}_loss"] > values["sandwich_loss"], name
        assert values[f"{key(name)}_most"] < 0, name
    assert values["cope_loss"] <= values["deberta_loss"] <= values["shaw_loss"]


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
    "In our runs on shuffled bytes no encoding is better than none by more than 0.01 nats within the "
    "trained length",
)
def test_on_shuffled_bytes_no_encoding_gains():
    values = evidence.control()[1]
    assert values["largest_gain"] < 0.01 < 0.3 < values["gain_in_order"]


@pytest.fixture(scope="module")
def stretched():
    return {
        when: {
            name: {band: evidence._band(loss, band) for band in evidence.BANDS}
            for name, loss in evidence._stretched(when).items()
        }
        for when in ("untuned", "tuned")
    }


@pytest.mark.claim(
    "evidence-stretching-helps-untuned",
    "In our runs each way to stretch RoPE, untuned, has a lower loss from position 512 on than RoPE as "
    "it is, in each seed",
)
def test_each_way_to_stretch_helps_untuned(stretched):
    plain = stretched["untuned"]["RoPE"]
    for name, found in stretched["untuned"].items():
        assert name == "RoPE" or (found["far"] < plain["far"]).all(), name
        assert (found["far"] > plain["within"]).all(), name


@pytest.mark.claim(
    "evidence-tuning-helps",
    "In our runs a few updates at the full length lower the loss from position 512 on for RoPE as it is and "
    "for each way to stretch it, in each seed",
)
def test_tuning_helps_each(stretched):
    for name, found in stretched["tuned"].items():
        assert (found["far"] < stretched["untuned"][name]["far"]).all(), name


def test_what_stretching_costs_within(stretched):
    plain = stretched["untuned"]["RoPE"]["within"]
    price = {name: (found["within"] - plain).mean() for name, found in stretched["untuned"].items()}
    assert max(price, key=price.get) == "position interpolation"
    assert price["dynamic NTK"].abs() < 1e-4
    assert sum(each > 0.02 for each in price.values()) >= 4


def test_tuning_costs_something_within(stretched):
    plain = stretched["untuned"]["RoPE"]["within"]
    assert all((found["within"] > plain).all() for found in stretched["tuned"].values())


def test_the_searched_factors_are_best_far_out_as_trained(stretched):
    searched = stretched["untuned"]["LongRoPE"]["far"]
    assert all(
        (found["far"] > searched).all() for n, found in stretched["untuned"].items() if n != "LongRoPE"
    )


def test_tuned_rope_comes_close_to_the_best(stretched):
    far = {name: found["far"].mean() for name, found in stretched["tuned"].items()}
    best = min(far.values())
    recovered = stretched["untuned"]["RoPE"]["far"].mean() - far["RoPE"]
    assert recovered > 2 * (far["RoPE"] - best)


@pytest.fixture(scope="module")
def shares():
    """For each task and encoding the share of right answers: (seeds, lengths)."""
    found = evidence._accuracies()
    return {task: {name: found[name][task] for name in found} for task in tasks.TASKS}


@pytest.mark.claim(
    "evidence-recall-breaks-with-rope",
    "In our runs every encoding but sinusoids learns recall in each seed, and every one of these but RoPE "
    "is right at every length up to eight times the trained one, too, where RoPE has lost at least a third",
)
def test_recall_is_kept_by_all_but_rope(shares):
    for name, share in shares["recall"].items():
        if name == "sinusoidal":
            continue
        assert (share[:, 0] > 0.98).all(), name
        assert (share[:, -1] < 0.67).all() if name == "RoPE" else (share > 0.98).all(), name


def test_one_seed_of_sinusoids_did_not_learn_recall_whole_and_the_others_kept_it(shares):
    share = shares["recall"]["sinusoidal"]
    assert (share[:, 0] < 0.8).sum() == 1
    assert (share[share[:, 0] > 0.98][:, -1] > 0.9).sum() == 2


@pytest.mark.claim(
    "evidence-copying-fades-for-all",
    "In our runs copying falls below three fifths right letters with every encoding at eight times the "
    "trained length, in each seed",
)
def test_copying_fades_for_all(shares):
    for name, share in shares["copying"].items():
        assert (share[:, -1] < 0.6).all(), name
        assert (share[:, -1] < share[:, 0]).all(), name


def test_fire_and_alibi_copy_longest_but_one_seed_of_fire_never_learned_it(shares):
    copying = shares["copying"]
    far = {name: share[:, -1].mean() for name, share in copying.items()}
    assert set(sorted(far, key=far.get)[-2:]) == {"FIRE", "ALiBi"}
    assert (copying["FIRE"][:, 0] < 0.5).sum() == 1


@pytest.mark.claim(
    "evidence-counting-needs-no-places",
    "In our runs CoPE and a model without positions count best at eight times the trained length, "
    "in each seed",
)
def test_counting_is_best_with_cope_and_without_positions(shares):
    far = {name: share[:, -1] for name, share in shares["counting"].items()}
    best = [far.pop(name) for name in ("CoPE", "none")]
    for name, share in far.items():
        assert all((each > share).all() for each in best), name
    within = {name: share[:, 0].mean() for name, share in shares["counting"].items()}
    assert set(sorted(within, key=within.get)[-2:]) == {"CoPE", "none"}
    assert within["CoPE"] > 0.98


def test_rope_and_alibi_count_hardly_better_far_out_than_one_and_the_same_answer(shares):
    values = evidence.tasks()[1]
    constant = [values["constant_count_far"]] * 3
    for name in ("RoPE", "ALiBi"):
        assert shares["counting"][name][:, -1].tolist() == pytest.approx(constant, abs=0.04)
    assert values["constant_count"] >= values["constant_count_far"] > values["guess_count"]


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
