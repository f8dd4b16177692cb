"""The tour: each cell has a number to change, a question and an answer, and the answers are true."""

import contextlib
import io
import itertools
import re

import jupytext
import matplotlib
import matplotlib.pyplot as plt
import pytest
import torch

from executable_prose import labs
from executable_prose.project import ROOT
from tests.docs.test_prose import typed_numbers

CELLS = labs.cells("tour")
CHANGED = re.compile(r"^(?P<name>[A-Z]+) = [\d_.]+(?=  # change me)", re.M)


class Walk:
    """The tour, run in this process, and its cells again with other numbers."""

    def __init__(self):
        matplotlib.use("agg")
        self.names, self.printed = {"__name__": "tour"}, {}
        self.code = {CHANGED.search(cell.text)["name"]: cell.text for cell in CELLS if not cell.prose}
        for name in self.code:
            self.printed[name] = self.run(name)

    def run(self, name, number=None):
        """What a cell prints, with another number in the place of its own."""
        text = self.code[name]
        if number is not None:
            text = CHANGED.sub(f"{name} = {number}", text)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(text, name, "exec"), self.names)
        plt.close("all")
        return printed.getvalue()

    def numbers(self, name, number):
        """With another number, for once: the numbers with a point that a cell prints, all of it, names."""
        before = dict(self.names)
        printed, after = self.run(name, number), dict(self.names)
        self.names.clear()
        self.names.update(before)
        return [float(each) for each in re.findall(r"-?\d+\.\d+", printed)], printed, after


@pytest.fixture(scope="module")
def walk():
    return Walk()


def test_each_cell_has_a_number_to_change_then_a_question_and_its_answer():
    code = [number for number, cell in enumerate(CELLS) if not cell.prose]
    assert 28 <= len(CELLS) <= 36
    for number in code:
        assert len(CHANGED.findall(CELLS[number].text)) == 1
        assert re.match(
            r"\*\*[^*]+\*\*\n\n<details markdown=\"1\"><summary>Answer</summary>\n\n.+?\n\n</details>",
            CELLS[number + 1].text,
            re.S,
        ), CELLS[number].line


def test_its_numbers_have_names_of_their_own(walk):
    assert len(walk.code) == sum(not cell.prose for cell in CELLS)


def test_no_number_in_a_sentence_is_typed(tmp_path):
    (tmp_path / "tour.md").write_text(
        "\n\n".join(cell.text for cell in CELLS if cell.prose), encoding="utf-8"
    )
    assert typed_numbers(tmp_path / "tour.md") == []


def test_code_and_output_fit_a_phone_or_nearly(walk):
    assert [line for cell in CELLS if not cell.prose for line in cell.lines if len(line) > 78] == []
    assert [line for said in walk.printed.values() for line in said.splitlines() if len(line) > 60] == []


def test_jupytext_reads_the_same_cells():
    theirs = jupytext.reads((ROOT / labs.file("tour")).read_text(encoding="utf-8"), "py:percent").cells
    assert [cell.source for cell in theirs] == [cell.text for cell in CELLS]


def test_no_order_of_the_words_changes_an_output(walk):
    for moved in range(-4, 5):
        for line in walk.numbers("MOVED", moved)[1].splitlines()[1:]:
            _, *before, third, fourth = line.split()
            assert before == [third, fourth]


def test_with_a_mask_the_outputs_behind_both_words_stay(walk):
    for trade in range(1, 6):
        changes, _, _ = walk.numbers("TRADE", trade)
        assert all(change > 0 for change in changes[: trade + 1]) and not any(changes[trade + 1 :])


def test_a_table_ends(walk):
    assert "refused: " in walk.numbers("PLACE", 8)[1] and "refused: " not in walk.numbers("PLACE", 7)[1]


def test_a_smaller_base_leaves_the_first_hand_and_hastens_the_others(walk):
    encoding = walk.names["sinusoidal_encoding"]
    one, other = (encoding(torch.arange(64), 32, base) for base in (10_000.0, 100.0))
    assert torch.equal(one[:, :2], other[:, :2])
    assert one[:, 31].std() < 0.01 and other.std(0).min() > 0.1


def test_a_product_of_rows_knows_how_far_and_no_more(walk):
    for apart in (1, 7, 300):
        forth, back = (walk.numbers("APART", each)[1] for each in (apart, -apart))
        assert len({line.split()[-1] for line in (forth + back).splitlines()}) == 1


def test_an_added_encoding_makes_a_score_depend_on_the_place_and_a_turned_one_does_not(walk):
    early, later = walk.numbers("SHIFT", 7)[0]
    assert abs(early - later) > 0.01
    for move in (1, 1000, 10**7):
        early, later = walk.numbers("MOVE", move)[0]
        assert early == later


def test_the_first_of_four_heads_looks_further_and_the_last_as_far(walk):
    eight, four = (walk.names["alibi_slopes"](heads) for heads in (8, 4))
    assert four[0] == 0.25 and eight[0] == 0.5 and four[-1] == eight[-1]
    assert four[1] / four[0] == four[0]


def test_a_base_a_hundred_times_as_large_slows_the_last_pair_most(walk):
    before, after = (walk.numbers("BASE", base)[1].replace(",", "") for base in ("10_000.0", "1_000_000.0"))
    one, other = ([float(line.split()[-2]) for line in said.splitlines()] for said in (before, after))
    slowed = [there / here for here, there in zip(one, other, strict=True)]
    assert slowed[0] == 1 and slowed == sorted(slowed) and 80 < slowed[-1] < 100


def test_a_cached_word_has_the_place_after_those_before_it(walk):
    assert walk.numbers("GIVEN", 9)[0] == [0.0]
    assert all(walk.numbers("GIVEN", place)[0][0] > 0.1 for place in (0, 8, 10, 1))


def test_the_score_of_equal_vectors_rises_early_sinks_on_the_whole_and_then_wavers_around_zero(walk):
    _, _, names = walk.numbers("LONGEST", 20_000)
    score, slowest = (
        names["score"] / 64,
        round(1 / names["frequencies"][-1].item()),
    )  # turned by one radian there
    rises = score.diff() > 0
    assert score[0] == 1 and score[5:10].max() < 0.75
    assert rises[:10].any() and all(rises[at : at + 50].float().mean() > 0.25 for at in range(0, slowest, 50))
    doublings = [score[2**n : 2 ** (n + 1)].mean() for n in range(slowest.bit_length())]
    assert all(later < earlier for earlier, later in itertools.pairwise(doublings))
    beyond = score[slowest:]
    assert beyond.min() < -0.1 and beyond.max() > 0.1 and beyond.abs().max() < 0.5
    assert abs(beyond.mean()) < 0.1


def test_some_updates_are_enough_to_beat_a_guess(walk):
    (guess, none), (_, ten) = (walk.numbers("UPDATES", updates)[0] for updates in (0, 10))
    assert none > guess - 0.05 and ten < guess - 0.2


def test_twice_the_trained_length_is_not_safe(walk):
    inside, beyond = walk.numbers("TIMES", 2)[0]
    assert beyond < inside - 0.05


def test_pairs_come_round_in_tens_of_thousands_of_places(walk):
    assert walk.numbers("LENGTH", 30_000)[1].startswith("1 of 16 pairs")
    assert walk.numbers("LENGTH", 40_000)[1].startswith("0 of 16 pairs")


def test_a_factor_as_large_as_the_texts_are_longer_is_needed(walk):
    own = [float(line.split()[-1]) for line in walk.printed["FACTOR"].splitlines()[1:]]
    assert own[0] < 0.3 and own[1] > 0.9 and own[3] > 0.9
    two = [float(line.split()[-1]) for line in walk.numbers("FACTOR", 2.0)[1].splitlines()[1:]]
    assert all(each < 0.6 for each in two)


def test_interpolation_turns_a_near_look_elsewhere_and_by_parts_does_not(walk):
    def looks(back):
        return [int(at) for at in re.findall(r"distance (\d+)", walk.numbers("BACK", back)[1])]

    for back in (1, 2, 3, 4):
        unchanged, interpolation, _, parts = looks(back)
        assert unchanged == parts == back and interpolation == 8 * back
    assert looks(30)[0] == 30 and 30 not in looks(30)[1:]
