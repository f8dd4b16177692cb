"""Words of the chapter on stretching RoPE that rest on numbers."""

import matplotlib.pyplot as plt
import pytest

from exhibits import long_context
from weave import figures

METHODS = ("unchanged", "interpolation", "ntk_aware", "by_parts", "yarn")


@pytest.fixture(autouse=True)
def as_on_the_page(capsys):
    figures.prepare()
    yield
    plt.close("all")
    capsys.readouterr()


@pytest.fixture(scope="module")
def heads():
    return long_context.two_heads()


def test_to_change_nothing_is_best_for_the_near_head_and_interpolation_for_the_far_one(heads):
    assert min(METHODS, key=lambda name: heads[f"{name}_near"]) == "unchanged"
    assert min(METHODS, key=lambda name: heads[f"{name}_far"]) == "interpolation"


def test_by_parts_comes_closest_to_serving_both_heads(heads):
    worse = {name: max(heads[f"{name}_near"], heads[f"{name}_far"]) for name in METHODS}
    assert min(worse, key=worse.get) == "by_parts"


def test_yarn_is_far_from_interpolation_for_the_far_head_before_tuning(heads):
    assert heads["yarn_far"] > 2 * heads["interpolation_far"]


def test_a_few_updates_help_everywhere(heads):
    for name in METHODS:
        assert heads[f"{name}_near_tuned"] < heads[f"{name}_near"]
        assert heads[f"{name}_far_tuned"] < heads[f"{name}_far"]


def test_unchanged_scores_leave_the_trained_range_on_both_sides_and_slowed_ones_hardly():
    _, scores = long_context.beyond()
    width = scores["highest_within"] - scores["lowest_within"]
    assert scores["lowest_outside"] < scores["lowest_within"] - 0.25 * width
    assert scores["highest_outside"] > scores["highest_within"] + 0.25 * width
    assert scores["lowest_slowed"] > scores["lowest_within"] - 0.05 * width
    assert scores["highest_slowed"] < scores["highest_within"] + 0.05 * width


def test_four_curves_meet_at_the_full_factor_and_the_searched_one_ends_above_it():
    _, values = long_context.factors()
    assert values["searched_most"] > values["factor"]
    _, unseen = long_context.seen_and_asked()
    assert unseen["unchanged"] == unseen["slow_pairs"] == values["slow_pairs"]
    assert unseen["interpolation"] == unseen["by_parts"] == unseen["yarn"] == unseen["longrope"]


def test_interpolation_makes_a_level_line_of_the_neighbourhood_and_yarn_does_not():
    _, near = long_context.neighbours()
    assert near["interpolation"] > 0.999
    assert abs(near["yarn"] - near["unchanged"]) < 0.001
