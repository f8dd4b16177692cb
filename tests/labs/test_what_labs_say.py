"""What the prose of a lab says of the numbers that its cells print."""

import pytest
import torch

from tests.labs.rehearsal import Rehearsal


@pytest.fixture(scope="module")
def names():
    """A function that gives the names which a solved lab has defined."""
    done = {}
    return lambda lab: done.get(lab) or done.setdefault(lab, Rehearsal(lab).names)


def test_ntk_aware_scaling_leaves_all_slow_pairs_but_the_slowest_with_new_angles(names):
    lab = names("ntk_rope")
    w, factor = lab["frequencies"], lab["FACTOR"]
    slow = int((lab["TRAINED"] * w < 2 * torch.pi).sum())
    assert slow > 1
    assert lab["asked_for_new"](w) == slow
    assert lab["asked_for_new"](w / factor) == 0
    assert lab["asked_for_new"](lab["ntk_aware"](w, factor)) == slow - 1


def test_a_key_that_dynamic_ntk_turned_earlier_has_another_score(names):
    lab = names("ntk_rope")
    last = lab["turned"](lab["query"], lab["now"] - 1, lab["now"])
    for position in (8000, 7000, 6000, 4000):
        fresh, stale = (
            (last * lab["turned"](lab["key"], position, length)).sum() / lab["DIM"] ** 0.5
            for length in (lab["now"], position + 1)
        )
        assert abs(fresh - stale) > 0.05


def test_the_ramps_of_yarn_agree_at_the_ends_and_not_in_the_middle(names):
    lab = names("yarn")
    apart = lab["code"] / lab["paper"]
    assert apart[0] == apart[-1] == 1
    assert apart.max() > 2


def test_the_temperature_of_yarn_puts_the_same_token_further_ahead(names):
    lab = names("yarn")
    plain, sharp = (
        lab["scores"](lab["q"], lab["k"], lab["positions"], lab["code"], factor)[-1].softmax(-1)
        for factor in (1, lab["FACTOR"])
    )
    assert plain.argmax() == sharp.argmax()
    assert plain.max() < sharp.max()


def test_the_finder_fails_beyond_its_training_and_the_looker_does_not(names):
    lab = names("length_extrapolation")
    inside, outside, looks = lab["measure"](lab["frequencies"])
    assert inside > 0.8 and looks > 0.8
    assert outside < inside / 4


def test_interpolation_mends_the_finder_and_ruins_the_looker_and_the_remedy_serves_both(names):
    lab = names("length_extrapolation")
    w, trained, asked = lab["frequencies"], lab["TRAINED"], lab["ASKED"]
    _, _, looked = lab["measure"](w)
    _, outside, looks = lab["measure"](w * trained / asked)
    assert outside > 0.9 and looks < 0.01
    assert lab["BACK"] * trained / asked * w[0] < w[0]  # less than a neighbour in training
    inside, outside, looks = lab["measure"](lab["mend"](w, trained, asked))
    assert inside > 0.9 and outside > 0.9
    assert 0.8 < looks < looked
