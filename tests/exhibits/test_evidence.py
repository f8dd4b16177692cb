"""What the chapter on evidence says in words, held against the kept results, seed by seed."""

import pytest
import torch

from exhibits import evidence
from experiments import tasks

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


def test_t5_is_above_no_encoding_at_the_very_end():
    losses = evidence._losses()
    assert (losses["T5"][:, -4:].mean(-1) > losses["none"][:, -4:].mean(-1)).all()


def test_the_groups_are_all_that_there_are(bands):
    assert {*LEVEL, *FADING, *BROKEN, "none", "learned"} == set(bands)


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


def test_a_fade_removes_most_of_ropes_rise(bands):
    rise = {name: (bands[name]["far"] - bands[name]["within"]).mean() for name in ("RoPE", "xPos")}
    assert 0 < rise["xPos"] < rise["RoPE"] / 2


def test_the_learned_table_ends_just_above_no_encoding(bands):
    over = bands["learned"]["far"] - bands["none"]["far"]
    assert (over > 0).all() and over.mean() < 0.15


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
    far = {name: found["far"].mean() for name, found in stretched["untuned"].items()}
    assert min(far, key=far.get) == "LongRoPE"


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
    "In our runs every encoding but sinusoids learns recall in each seed, and every one of these but RoPE is "
    "right at eight times the trained length too, where RoPE has less than half right",
)
def test_recall_is_kept_by_all_but_rope(shares):
    for name, share in shares["recall"].items():
        if name == "sinusoidal":
            continue
        assert (share[:, 0] > 0.98).all(), name
        assert (share[:, -1] < 0.5).all() if name == "RoPE" else (share[:, -1] > 0.98).all(), name


def test_one_seed_of_sinusoids_did_not_learn_recall_and_the_others_kept_it(shares):
    share = shares["recall"]["sinusoidal"]
    assert (share[:, 0] < 0.3).sum() == 1
    assert (share[share[:, 0] > 0.98][:, -1] > 0.9).sum() == 2


@pytest.mark.claim(
    "evidence-copying-fades-for-all",
    "In our runs copying falls below half right letters with every encoding at eight times the trained "
    "length, in each seed",
)
def test_copying_fades_for_all(shares):
    for name, share in shares["copying"].items():
        assert (share[:, -1] < 0.5).all(), name


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


def test_the_trained_length_is_the_first_that_is_asked_about():
    assert tasks.LENGTHS[0] == tasks.LONGEST


def test_all_results_are_of_one_corpus():
    assert evidence.provenance()["corpora"] == 1


def test_spread_is_half_the_range():
    assert evidence._spread(torch.tensor([1.0, 4.0, 2.0])) == 1.5


def test_labels_keep_their_distance_and_their_order():
    assert evidence._spaced([0.0, 0.1, 5.0], 1.0) == [0.0, 1.0, 5.0]
