"""The first screen: what a rule can read of an order, and lines that fall past the training length."""

import itertools
import math

import numpy as np
import pytest
import torch

from executable_prose.execution.run_exhibit import seed
from executable_prose.figures.live_html import fill
from exhibits import front
from exhibits._on_chains import every_run, excess_loss, optimal_loss
from snippets.attention import SelfAttention
from snippets.sinusoidal import sinusoidal_encoding

ORDERS = [*itertools.permutations(range(3))]
DOG_FIRST = [order.index(0) < order.index(2) for order in ORDERS]


@pytest.fixture(scope="module")
def outputs():
    """What the layer makes of dog, bites and man, of each text by itself: (sides, orders, numbers)."""
    torch.manual_seed(3)
    words, layer = torch.randn(3, 16), SelfAttention(16, heads=2).double()
    places = sinusoidal_encoding(torch.arange(3), 16)
    made = [[], []]
    for order in ORDERS:
        for side, added in enumerate((0, places)):
            rows = layer((words[list(order)] + added).double()[None])[0][0].detach().numpy()
            made[side].append(np.concatenate([rows[order.index(word)] for word in range(3)]))
    return np.array(made)


@pytest.fixture(scope="module")
def live():
    seed()
    return front.who_bit_whom()[2]


@pytest.mark.claim(
    "front-who-bit-whom",
    "On the front page, an attention layer with random weights and without positions gives each of the "
    "three words the same output in all six orders, so the best weighted sum of its outputs is zero for "
    "the question who bit whom. With sinusoidal positions, its outputs for the six orders are linearly "
    "independent, and weighted sums give any six answers.",
)
def test_no_rule_reads_an_order_without_positions_and_some_rule_reads_any_answer_with_them(outputs, live):
    without, with_positions = outputs
    np.testing.assert_allclose(without, without[:1].repeat(6, 0), atol=1e-12)
    assert np.linalg.matrix_rank(with_positions, rtol=1e-6) == len(ORDERS)
    wanted = np.where(DOG_FIRST, 1.0, -1.0)
    for order, sign in zip(ORDERS, wanted, strict=True):
        made = live.function(torch.tensor(order, dtype=torch.float64))
        assert made["left"].item() == pytest.approx(1, abs=1e-6), "a shrug"
        assert made["right"].item() == pytest.approx(1 - sign, abs=1e-6)
        np.testing.assert_allclose(made["without"][-1], (0, 0.95), atol=1e-6)
        assert np.sign(made["with"][-1][0].item()) == -sign, "dog stands at the left"
    for answers in np.random.default_rng(0).standard_normal((5, 6)):
        np.testing.assert_allclose(
            with_positions @ np.linalg.pinv(with_positions) @ answers, answers, atol=1e-6
        )
        # Any one rule says one and the same of all orders without positions: the mean is the best of it.
        best = np.linalg.pinv(without, rcond=1e-6) @ answers
        np.testing.assert_allclose(without @ best, answers.mean(), atol=1e-6)


def test_its_words_say_what_the_needles_do(live):
    for order, dog in zip(ORDERS, DOG_FIRST, strict=True):
        made = live.function(torch.tensor(order, dtype=torch.float64))
        known = live.words({"order": order}) | {side: made[side].item() for side in ("left", "right")}
        says = fill(live.says, known)
        assert says.startswith(f"The text is “{' '.join(front.WORDS[word] for word in order)}”.")
        assert "Without positions: Somebody bit somebody." in says
        bit = "The dog bit the man." if dog else "The man bit the dog."
        assert says.endswith(f"With positions: {bit}")


def test_the_values_of_the_first_screen(returned):
    assert returned("front.who_bit_whom") == {"orders": 6, "numbers": 48, "with_positions": 6}


def test_the_first_figure_has_a_line_for_each_run_of_rope_and_of_window_and_nope(returned):
    values = returned("front.past_the_end")
    figure, _ = front.past_the_end()
    lines = [np.asarray(line.get_ydata()) for line in figure.axes[0].lines if len(line.get_xdata()) == 4]
    best, *hybrid, memory = lines[: -values["rope_runs"]]
    rope = lines[-values["rope_runs"] :]
    assert values == {"trained": 128, "rope_runs": 25} and len(hybrid) == 20
    assert all(each[-1] < memory[-1] for each in rope)
    assert all((each[1:] > memory[1:]).all() and (each < best).all() for each in hybrid)
    counted = excess_loss("count", 1024, 128).mean().item()
    assert best[-1] == pytest.approx(100 * math.exp(-optimal_loss()[1024]))
    assert memory[-1] == pytest.approx(best[-1] * math.exp(-counted))
    drawn = torch.tensor([each[-1] for each in rope])
    stored = torch.cat([*every_run("RoPE").values()], 1)[-1]
    assert torch.allclose(drawn, 100 * (-optimal_loss()[1024] - stored).exp(), rtol=1e-6)
