"""What the page on myths says of its exhibits, and that each sentence could have been true."""

import pytest
import torch

from exhibits import myths


@pytest.fixture(autouse=True)
def quiet(capsys):
    yield
    capsys.readouterr()


@pytest.mark.claim(
    "equal-steps-reward-a-ramp",
    "The test for equal difference vectors rejects the sinusoidal encoding and passes a ramp and "
    "constant rows.",
)
def test_equal_steps_are_a_bad_test():
    assert myths.equal_steps() == {"passes": 2, "sinusoidal": False}


@pytest.mark.claim(
    "a-shift-changes-absolute-scores",
    "Moving a text to other positions changes the scores of a random table that is added, and not "
    "those of RoPE or Shaw.",
)
def test_a_shift_changes_absolute_scores_alone():
    changes = myths.shifted_input()
    assert changes["learned"] > 0.1
    assert changes["rope"] < 1e-12
    assert changes["shaw"] == 0


@pytest.mark.claim(
    "dimension-index-squares-frequencies",
    "Reading the pair index of the sinusoidal formula as the even dimension squares every frequency.",
)
def test_the_wrong_index_squares_every_frequency():
    values = myths.squared_frequencies()
    assert values["squared"] and values["still"] > 50


@pytest.mark.claim(
    "scale-decides-what-drowns",
    "At width 128 a sinusoidal row is many times as long as a token drawn with deviation 0.02, and "
    "shorter than one drawn with deviation 1.",
)
def test_the_scale_of_the_tokens_decides():
    values = myths.overwhelmed()
    assert 10 * values["small"] < values["position"] < values["unit"]


@pytest.mark.claim(
    "distinct-rows-hold-all-information",
    "Encodings with distinct rows hold all information about the position, be they sinusoidal, random "
    "or one number in each row.",
)
def test_distinct_rows_hold_all_information(capsys):
    most = myths.information()["most"]
    held = dict(line.rsplit(" ", 2)[:2] for line in capsys.readouterr().out.splitlines())
    assert {name.strip(): float(bits) for name, bits in held.items()} == {
        "sinusoidal": most,
        "one number": most,
        "random rows": most,
        "a constant": 0,
    }


@pytest.mark.claim(
    "rows-beyond-training-stay-put",
    "Rows of a learned table beyond the longest text in training keep their first values under Adam "
    "without weight decay.",
)
def test_rows_beyond_the_longest_text_do_not_move():
    values = myths.untouched_rows()
    assert values["still"] == 0
    assert values["moved"] > 0.5


def test_the_sign_of_the_rope_identity():
    values = myths.wrong_sign()
    assert values["right"] < 1e-12 < 0.1 < values["wrong"]


def test_scores_of_rope_neither_factor_nor_fade():
    assert myths.no_factor()["largest"] > 0.9
    values = myths.not_weaker_with_distance()
    assert values["best"] == 50
    assert values["apart"] < 0.05


@pytest.mark.claim(
    "attention-is-quadratic-rope-linear",
    "Four times the tokens take sixteen times the multiplications in the matrix products of attention and "
    "four times those in rotating.",
)
def test_attention_grows_with_the_square_and_rotation_with_the_length():
    assert myths.linear_attention() == {"attention": 16, "turned": 4}


def test_the_other_layout_gives_other_scores_and_mixed_ones_lose_the_offset():
    values = myths.any_layout()
    assert values["trained_spread"] < 1e-12 < 1 < values["mixed_spread"]
    assert values["other_spread"] < 1e-12
    assert abs(values["trained_score"] - values["other_score"]) > 1


@pytest.mark.claim(
    "yarn-is-no-division",
    "YaRN keeps the fastest pair of RoPE as it is and divides the slowest by the factor; position "
    "interpolation divides all.",
)
def test_yarn_keeps_fast_pairs():
    values = myths.division_is_not_yarn()
    assert values["fast"] == 1
    assert values["slow"] == pytest.approx(0.25)


@pytest.mark.claim(
    "alibi-bias-hides-nothing",
    "Under the symmetric form of ALiBi without a mask, the first token of twenty equal ones gives most of "
    "its attention to later ones.",
)
def test_a_penalty_hides_nothing():
    leaks = myths.causal_by_bias()
    assert leaks["symmetric"] > 0.5
    assert leaks["causal"] == 0


@pytest.mark.claim(
    "alibi-slopes-are-no-formula",
    "For twelve heads, the slopes of ALiBi's released code are not those of the formula for powers of two.",
)
def test_the_formula_for_slopes_is_one_for_powers_of_two():
    assert myths.any_number_of_heads()["apart"] > 0.05


@pytest.mark.claim(
    "gaussian-bias-is-flat",
    "A Gaussian bias of width one leaves most of the attention over six hundred keys beyond distance "
    "ten; KERPLE's logarithm with r1 = 2 and r2 = 1 leaves little.",
)
def test_a_gaussian_is_flat_where_a_logarithm_falls():
    far = myths.gaussian()
    assert far["gaussian"] > 0.9
    assert far["kerple"] < 0.1


def test_the_last_bucket_begins_before_the_maximum_distance():
    values = myths.last_bucket()
    assert values["own"] < values["first"] < values["maximum"]


def test_without_the_shift_one_step_back_is_another_score_in_every_row():
    values = myths.no_shift()
    assert values["shifted"] < 1e-12 < 1 < values["no_shift"]


@pytest.mark.claim(
    "a-ramp-wins-quality-scores",
    "Over 256 positions, mean similarity and correlation with distance are higher for a bare count than "
    "for the sinusoidal encoding of width 128.",
)
def test_a_ramp_wins_the_scores():
    values = myths.ramp_wins()
    assert values["quality"] > 0.95 and values["coherence"] > 0.999
    assert values["quality"] > values["sinusoidal_quality"]
    assert values["coherence"] > values["sinusoidal_coherence"]


def test_one_hand_comes_round():
    values = myths.one_compass()
    assert 0.999 < values["to_44"] < values["to_710"] < 1


def test_what_the_order_myths_say():
    torch.manual_seed(0)
    values = myths.same_pattern()
    assert values["permuted"] < 1e-12 < 0.1 < values["same"]
    values = myths.blind_without_positions()
    assert values["full"] < 1e-12 < 0.01 < values["causal"]
    assert myths.set_or_multiset()["change"] > 0.05
    assert myths.uniform_without_positions()["largest"] > 0.5
    values = myths.sums()
    assert values["sum"] < 1e-12 < 0.1 < values["attended"]
    values = myths.too_late()
    assert values["one"] < 1e-12 < 0.05 < values["two"]
    values = myths.additive()
    assert values["miss"] > values["length"]
