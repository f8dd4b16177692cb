"""What the chapter on sinusoidal encoding says of adding and appending in words."""

import math

import pytest
import torch

from exhibits import sinusoidal
from snippets.sinusoidal import sinusoidal_encoding
from tests.rows import each_of


@each_of("dim", [2, 64, 512])
def test_any_projection_of_an_appended_place_is_one_of_some_added_vector(dim):
    torch.manual_seed(0)
    words, places = torch.randn(2, 9, dim, dtype=torch.float64)
    first, second = torch.randn(2, dim, dim, dtype=torch.float64)
    appended = torch.cat([words, places], 1) @ torch.cat([first, second])
    added = (words + places @ second @ first.inverse()) @ first
    assert torch.allclose(appended, added, atol=1e-6)
    assert torch.allclose(torch.cat([words, places], 1) @ torch.cat([first, first]), (words + places) @ first)


def test_a_block_of_twice_the_width_has_four_times_the_parameters():
    values = sinusoidal.wider()
    assert values["as_much"] == pytest.approx(4, abs=0.01)
    assert values["some"] == pytest.approx((1 + values["extra"] / values["dim"]) ** 2, abs=0.01)


def test_words_are_found_in_sums_and_places_the_better_the_wider(capsys):
    torch.manual_seed(0)
    values = sinusoidal.pulled_apart()
    assert all(values[f"{name}_{dim}"] == 1 for name in ("word", "alone") for dim in (64, 256, 1024))
    assert values["place_64"] < 0.6 < values["place_256"] < 0.95 < values["place_1024"]
    rows = capsys.readouterr().out.splitlines()[1:]
    assert all(row.endswith("100%") for row in rows) and len(rows) == 3


def test_a_place_that_is_told_wrong_is_mostly_one_nearby():
    torch.manual_seed(0)
    table = sinusoidal_encoding(torch.arange(512), 64)
    place = torch.randint(512, (4096,))
    told = ((table[place] + torch.randn(4096, 64)) @ table.T).argmax(-1)
    off = (told - place).abs()[told != place]
    assert len(off) > 1000
    assert off.median() <= 4


def test_equal_hands_of_the_two_conventions_are_apart_by_the_angle_between_them():
    values = sinusoidal.two_layouts()[1]
    pairs = torch.arange(values["dim"] // 2, dtype=torch.float64)
    speeds = 10_000 ** (-2 * pairs / values["dim"]), 10_000 ** (-pairs / (len(pairs) - 1))
    angles = values["far"] * (speeds[0] - speeds[1])
    assert float(values["apart"]) == pytest.approx((2 * (angles / 2).sin()).abs().max().item(), abs=1e-3)
    assert values["apart"] > 1.9  # of two: nearly opposite


def test_four_terms_make_the_score_up_to_rounding(capsys):
    torch.manual_seed(0)
    sinusoidal.four_terms()
    *terms, last = capsys.readouterr().out.splitlines()
    assert len(terms) == 4 and all(float(line.split()[-1]) > 1 for line in terms)
    assert last.startswith("their sum and the score: ") and float(last.split()[-2]) < 1e-4


def test_the_fast_hand_comes_round_and_the_slower_ones_do_not():
    _, live = sinusoidal.turned()
    assert live.controls["word"].high == 45
    for word in range(1, 46):
        made = live.function(torch.tensor(word).double())
        angles = [(word - 1) * speed for speed in (1, 100 ** (-1 / 3), 100 ** (-2 / 3))]
        for n, (angle, reach) in enumerate(zip(angles, (0.95, 0.75, 0.5), strict=True)):
            tip = reach * math.sin(angle), reach * math.cos(angle)
            assert made[f"hand {n}"][1].tolist() == pytest.approx(tip), word
        off = [abs((angle + math.pi) % (2 * math.pi) - math.pi) for angle in angles]
        back = off[0] < math.radians(20)
        assert made["back"] == (2 if word == 1 else back)
        assert word == 1 or not back or max(off[1:]) > math.radians(50), "the slower hands tell them apart"


def test_walks_of_five_are_equally_long_until_the_hands_are_mixed():
    torch.manual_seed(0)
    _, values = sinusoidal.walks_of_five()
    assert values["walk"] == 5 and values["apart"] < 1e-9
    assert 0.1 < values["opposed"] < 0.9
