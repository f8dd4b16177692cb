"""The first screen: what a rule can read of an order, and a line that crosses another."""

import itertools
import math

import numpy as np
import pytest
import torch

from executable_prose.execution.run_exhibit import seed
from executable_prose.figures.live_html import fill
from exhibits import evidence, front
from experiments.intervals import compare
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
    "On the front page, a layer of attention with random weights gives each of the three words the same "
    "output in all six orders without positions, so that the best sum says zero of who bit whom; with "
    "sinusoidal positions its outputs of the six orders are linearly independent, and sums give any six "
    "answers.",
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


@pytest.mark.claim(
    "front-rope-past-the-end",
    "In our runs on source code, trained on 128 bytes, RoPE gives the right byte a higher typical "
    "probability (exp of minus the mean loss) than the model without positional encoding with 16, 32, 64 and "
    "128 bytes before the same bytes, and a lower one with 512 and 1,008, in each seed and by the rule for "
    "better, by at least 0.3 nats in each seed; with 256 it is lower in each seed, and by the rule not "
    "distinguishable",
)
def test_rope_is_better_within_and_worse_from_four_times_the_trained_length_on(returned):
    values = returned("front.past_the_end")
    kept = evidence._far()
    for at, before in enumerate((16, 32, 64, 128, 256, 512, 1008)):
        gain = (kept["none"][at] - kept["RoPE"][at]).mean((1, 2))
        found = compare(kept["RoPE"][at], kept["none"][at]).better()
        if before == 256:
            assert (gain < 0).all() and found is None
            continue
        within = before <= values["trained"]
        assert ((gain > 0.3) if within else (gain < -0.3)).all() and found is within, before
    assert (values["trained"], values["seeds"], values["longest"]) == (128, 3, 1008)
    for name in ("none", "RoPE"):
        for where, at in (("within", 2), ("far", -1)):
            told = values[f"{name.lower()}_{where}"]
            assert told == pytest.approx(math.exp(-kept[name][at].mean()), abs=1e-6)
    assert values["counting"] == pytest.approx(math.exp(-evidence.windows()["counted"]), abs=1e-6)
    assert values["counting"] > max(values["rope_within"], values["none_within"])
    assert values["followed"] == 4
