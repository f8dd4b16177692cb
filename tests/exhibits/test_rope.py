"""What the chapter on RoPE says of its exhibits in words."""

import math

import pytest
import torch

from exhibits import evidence, rope
from snippets.rope import rope_frequencies
from tests.peers import peer
from tests.rows import each_of


def test_two_steps_apart_is_two_steps_apart_and_the_side_counts():
    values = rope.by_hand()
    assert values["at_5_3"] == pytest.approx(values["at_105_103"])
    assert abs(values["at_5_3"] - values["at_3_5"]) > 1
    assert values["length"].item() == pytest.approx(values["turned_length"].item())


def test_wherever_two_words_walk_their_needles_are_as_far_apart():
    _, live = rope.walking()
    own = math.degrees(math.atan2(0.8, 0.6) - math.atan2(0.6, 0.8))
    tips = set()
    for place in range(1, 43):
        made = live.function(torch.tensor(place).double())
        wanted = own + math.degrees(3 * 10_000 ** (-2 / 16))
        assert made["degrees"] == pytest.approx(wanted)
        tips.add(tuple(round(each, 6) for each in made["looking"][1].tolist()))
    assert len(tips) == 42, "the needles themselves turn"


def test_past_the_practice_needles_do_worse_than_no_marks():
    _, values = rope.past_practice()
    kept = {name: evidence._far()[name].mean((1, 2, 3)) for name in ("RoPE", "none")}
    assert values["near"] == pytest.approx(math.exp(-kept["RoPE"][2]), abs=1e-6)
    assert values["far"] == pytest.approx(math.exp(-kept["RoPE"][-1]), abs=1e-6)
    assert values["none"] == pytest.approx(math.exp(-kept["none"][-1]), abs=1e-6)
    assert values["far"] < values["none"] < values["near"]


def test_the_second_pair_is_a_hundred_times_slower():
    values = rope.two_hands()
    assert (values["first"] / values["second"]).item() == pytest.approx(100)


def test_the_map_is_strongest_six_keys_back_and_constant_along_diagonals():
    _, values = rope.score_map()
    assert values["best"] == -6
    assert values["apart"] < 1e-12


def test_three_queries_share_one_curve_over_the_offset():
    _, values = rope.score_by_offset()
    assert values["apart"] < 1e-12


@each_of("base", [10.0, 10_000.0, 1_000_000.0])
def test_equal_arrows_score_highest_at_distance_zero_and_opposite_ones_lowest(base):
    _, _, live = rope.own_score()

    def best(k_x, k_y):
        at = {"base": base, "q_x": 0.6, "q_y": -0.8, "k_x": k_x, "k_y": k_y}
        scores = live.function(**{key: torch.tensor(each).double() for key, each in at.items()})["score"][
            :, 1
        ]
        return scores.argmax().item(), scores.argmin().item()

    assert best(0.6, -0.8)[0] == best(-0.6, 0.8)[1] == 0
    assert best(0.8, 0.6)[0] > 0, "turned the other way, it peaks elsewhere"


def test_mixed_layouts_swing_further_than_the_layouts_differ():
    _, values = rope.mixed_layouts()
    assert values["swing"] > 5 * abs(values["both_half"] - values["both_interleaved"])


def test_a_larger_base_leaves_more_pairs_without_a_whole_turn():
    _, values = rope.wavelengths()
    counts = [values[f"{base}_unfinished"].item() for base in ("small", "large", "larger")]
    assert counts == sorted(counts)
    assert counts[:2] == [18, 32]
    assert values["pairs"] == 64


def test_the_waves_can_be_read_off_the_scores():
    assert rope.fourier()["error"] < 1e-9


@pytest.mark.claim(
    "rope-gemma-stops-slow-pairs",
    "In Hugging Face Transformers, Gemma 4 uses the frequencies of the whole head in its full-attention "
    "layers, with the lowest three quarters of them set to zero. By default, one layer in six has full "
    "attention; the others have window attention and rotate whole heads.",
)
def test_gemma_stops_slow_pairs_in_its_layers_of_full_attention():
    config = peer("transformers").Gemma4TextConfig()
    kinds, turning = config.layer_types, config.rope_parameters
    assert kinds.count("full_attention") * 6 == len(kinds)
    assert set(kinds) == {"full_attention", "sliding_attention"}
    full, window = turning["full_attention"], turning["sliding_attention"]
    made = peer("transformers.modeling_rope_utils").ROPE_INIT_FUNCTIONS[full["rope_type"]]
    frequencies, _ = made(config, layer_type="full_attention")
    turned = len(frequencies) // 4
    whole = rope_frequencies(2 * len(frequencies), full["rope_theta"])
    torch.testing.assert_close(frequencies[:turned].double(), whole[:turned], rtol=1e-6, atol=0)
    assert (frequencies[turned:] == 0).all()
    assert (window["rope_type"], window.get("partial_rotary_factor", 1.0)) == ("default", 1.0)


@pytest.mark.claim(
    "rope-fixed-offset-head-extrapolates",
    "A head with one query and one key for all tokens, trained with RoPE on 64 positions to attend to the "
    "token five positions back, gives that token at least nine tenths of its weight up to position 511.",
)
@each_of("seed", range(3))
def test_a_head_for_one_offset_goes_on_working(seed):
    torch.manual_seed(seed)
    values = rope.looks_back()
    assert (values["trained"], values["back"], values["tested"]) == (64, 5, 512)
    assert values["inside"] > 0.9
    assert values["outside"] > 0.9
    assert values["divided"] < 0.2  # "would be lost with it"


@pytest.mark.claim(
    "rope-content-head-fails-far-out",
    "Three heads that were trained with RoPE to find the same token among sixteen at distances below 32 "
    "prefer it there for every token, and at distances from 512 to 1023 for less than half of the tokens "
    "on average.",
)
def test_heads_for_content_fail_at_distances_that_they_never_saw():
    _, values = rope.beyond_training()
    assert (values["trained"], values["words"], values["heads"]) == (32, 16, 3)
    assert values["inside"] == 1
    assert values["right"] == 512
    assert values["outside"] < 0.5
    assert values["divided"] == 1  # "everywhere again"
