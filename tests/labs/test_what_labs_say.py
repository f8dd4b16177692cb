"""What the prose of a lab says of the numbers that its cells print."""

import pytest
import torch

from snippets.check_positions import check_rotation, read_rotation, report
from tests.labs.rehearsal import Rehearsal


@pytest.fixture(scope="module")
def names():
    """A function that gives the names which a solved lab has defined."""
    done = {}
    return lambda lab: done.get(lab) or done.setdefault(lab, Rehearsal(lab).names)


def test_the_checker_accepts_the_rotation_that_is_written_from_scratch(names):
    rotate = names("rope_from_scratch")["rotate"]
    found = check_rotation(rotate, dim=64)
    assert "interleaved layout, 64 of 64 channels" in str(read_rotation(rotate, dim=64))
    assert found and not any(each.verdict == "fails" for each in found) and report(found)


def test_scores_from_scratch_depend_on_the_offset_and_its_direction(names):
    lab = names("rope_from_scratch")
    q, k = torch.randn(2, 1, 8)

    def score(m, n):
        return lab["compute_scores"](q, k, torch.tensor([m]), torch.tensor([n]))

    assert all(torch.allclose(score(5, 3), score(5 + n, 3 + n), atol=1e-4) for n in (1, 100, 1000))
    assert (score(5, 3) - score(3, 5)).abs() > 0.1


def test_weights_that_are_reordered_from_scratch_give_the_scores_as_trained(names):
    lab = names("rope_from_scratch")
    assert lab["converted"].abs().max() < 1e-4 < 0.5 < lab["wrong"].abs().max()
    assert lab["gap"] < 1e-5


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


def test_swapped_axes_and_others_are_exact_in_a_text_and_about_as_much_off_with_a_picture(names):
    lab = names("swapped_axes")
    kinds = {
        lab["verdict"](lab["read_axes"](model.turned, lab["DIM"]), lab["CLAIMED"]): model
        for model in lab["models"]
    }
    assert kinds.keys() == {"right", "swapped", "other"}
    for model in kinds.values():
        assert lab["gap"](model, lab["text"]) == 0
    prompts = [[lab["gap"](kinds[kind], lab["prompt"]) for kind in ("swapped", "other")] for _ in range(20)]
    assert lab["gap"](kinds["right"], lab["prompt"]) == 0
    assert all(1 / 2 < one / other < 2 and one > 0.1 for one, other in prompts)


def test_swapped_axes_are_right_at_words_and_where_row_and_column_are_alike(names):
    lab = names("swapped_axes")
    prompt = lab["prompt"]
    alike = (prompt[:, 1] == prompt[:, 2]).tolist()
    first = prompt[:, 1:].eq(4).all(1).nonzero()[0].item()  # the first patch, after four words
    for model in lab["models"]:
        found = lab["verdict"](lab["read_axes"](model.turned, lab["DIM"]), lab["CLAIMED"])
        off = (lab["change_by_token"](model, prompt, 20) > 1e-9).tolist()
        if found == "swapped":
            assert off == [not each for each in alike]
        elif found == "other":
            assert off == [4 < token < 28 for token in range(32)] and first == 4
        else:
            assert not any(off)
