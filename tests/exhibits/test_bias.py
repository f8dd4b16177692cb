"""What the chapter on penalties on scores says of its exhibits in words."""

import pytest

from exhibits import bias


def test_the_penalty_takes_the_first_place_from_a_far_word():
    values = bias.by_hand()
    assert values["before"] > 0.4 > values["after"]
    assert values["slope"] == 0.5


def test_two_early_queries_read_the_same_and_a_late_one_less():
    values = bias.fire_two_queries()[1]
    assert values["near"] == values["nearer"] > values["far"]


def test_alibi_has_a_window_where_the_logarithm_has_none():
    values = bias.window()[1]
    assert values["alibi"] == values["alibi_early"]
    assert values["log"] > 4 * values["log_early"]
    assert values["sandwich_first"] < 10


def test_each_head_of_alibi_reaches_twice_as_far():
    values = bias.mass_by_distance()[1]
    assert values["gentlest"].item() == pytest.approx(2**7 * values["steepest"].item(), rel=0.05)


def test_far_keys_have_it_harder_than_without_a_bias():
    values = bias.lead_needed()[1]
    assert values["none"] < values["log"] < values["alibi"] < values["steep"]


def test_most_of_the_attention_leaks_without_the_mask():
    assert bias.without_the_mask()["leak"] > 0.8


def test_the_key_only_form_misplaces_far_more():
    values = bias.key_only()
    assert values["by_key"] > 10 * values["by_distance"]


def test_the_released_slopes_are_steeper_at_the_top_and_share_some_with_the_formula():
    values = bias.slopes()[1]
    assert values["steepest_released"] > values["steepest_formula"]
    assert 0 < values["common"] < values["heads"]
