"""What the chapter on learned positions says of its exhibits in words."""

import pytest
import torch

from exhibits import learned
from experiments.runs import load


@pytest.fixture(scope="module")
def guesses():
    torch.manual_seed(0)
    return learned.guesses()


def test_both_tables_are_at_the_best_that_can_be_reached(guesses):
    for name in ("sinusoidal", "learned"):
        assert guesses[name] == pytest.approx(learned.STAY, abs=0.005)
    assert guesses["none"] < 0.75


def test_waves_past_the_trained_days_are_far_below_waves_within(guesses):
    assert guesses["sinusoidal_beyond"] < guesses["sinusoidal"] - 0.1


def test_the_table_beside_sinusoids_holds_what_was_kept(capsys):
    learned.beside_sinusoidal()
    out = capsys.readouterr().out
    kept = load("language")
    rows = {cells[1].strip(): cells[2:] for line in out.splitlines() if len(cells := line.split("|")) > 2}
    for n, name in enumerate(("sinusoidal", "learned")):
        losses = [sum(seed["loss_by_position"][1:8]) / 7 for seed in kept[name]]
        shown = [float(each) for each in rows["Loss on source code (nats per byte)"][n].split(",")]
        assert shown == pytest.approx(losses, abs=0.005)
        exact = [100 * seed["exact"] for seed in load("translator")[name]]
        shown = [float(each) for each in rows["Dates translated correctly (%)"][n].split(",")]
        assert shown == pytest.approx(exact, abs=0.05) and (100 in shown) == (100 in exact)
    assert f"{1024 * 768:,}" in out


def test_the_scale_learns_and_what_is_dropped_is_dropped_while_it_trains(capsys):
    learned.scaled_and_dropped()
    share, scale, same = capsys.readouterr().out.splitlines()
    assert 0.08 < float(share.split()[1]) < 0.12
    assert scale.endswith("True") and same.endswith("True")


def test_words_past_the_lockers_get_no_card():
    _, values, live = learned.lockers()
    assert values["lockers"] == 32
    for words in range(1, 45):
        made = live.function(torch.tensor(words).double())
        assert made["without"] == max(0, words - 32)
        assert made["have"][:, 1].isfinite().sum() == min(words, 32)
        assert made["lack"][:, 1].isfinite().sum() == made["without"]
        filled = made["cards"].any(0).tolist()
        assert filled == [column < words for column in range(32)]


def test_past_the_practised_cards_guesses_are_about_as_good_as_with_none():
    torch.manual_seed(0)
    _, values = learned.past_lockers()
    assert values["inside"] > 0.88
    assert abs(values["beyond"] - values["blind"]) < 0.03
