"""The cost of context extension on short texts: which frequencies each way uses for each length."""

import math

import pytest
import torch

from experiments import chains, short_texts
from experiments.chain_models import TRAIN_LENGTH, chain_decoder
from experiments.extensions import HEADS, WIDTH
from snippets.rope import rope_frequencies
from snippets.rope_scaling import dynamic_ntk, position_interpolation, yarn

PLAIN = rope_frequencies(WIDTH, base=10_000)
WAYS = short_texts.ways()


def test_a_fixed_factor_is_the_same_at_every_length():
    for method in short_texts.METHODS:
        for factor in short_texts.FACTORS:
            way = WAYS[f"{method} by {factor}"]
            (short, attention), (long, same) = way(32), way(1024)
            assert torch.equal(short, long) and attention == same
            assert short[-1].item() == pytest.approx(PLAIN[-1].item() / factor)


def test_a_factor_that_follows_the_length_changes_nothing_within_the_training_length():
    for method in short_texts.METHODS:
        for length in (1, 64, TRAIN_LENGTH):
            frequencies, attention = WAYS[f"{method} by length"](length)
            assert torch.allclose(frequencies, PLAIN, rtol=1e-12) and attention == 1
        for factor in short_texts.FACTORS:
            found, attention = WAYS[f"{method} by length"](factor * TRAIN_LENGTH)
            fixed, same = WAYS[f"{method} by {factor}"](7)
            assert torch.equal(found, fixed) and attention == same


def test_each_method_is_that_of_the_file_to_copy():
    assert torch.equal(WAYS["position interpolation by 4"](9)[0], position_interpolation(PLAIN, 4))
    assert torch.allclose(WAYS["NTK-aware by length"](512)[0], dynamic_ntk(PLAIN, 1.0, 128, 512))
    frequencies, attention = WAYS["YaRN by 8"](9)
    assert torch.equal(frequencies, yarn(PLAIN, 8, 128)) and attention == 1 + 0.1 * math.log(8)


def test_a_run_evaluates_every_way_on_the_texts_of_all_models():
    excess = short_texts.run("RoPE served longer", 0, "cpu", updates=12, count=1)["excess_loss"]
    assert [*excess] == [*WAYS]
    assert all([*bands] == ["128", "256", "512", "1024"] for bands in excess.values())
    model = chains.trained(chain_decoder("RoPE", 0, HEADS), 0, "cpu", 12)
    whole = chains.model_excess_loss(model, chains.evaluation_texts(1), "cpu")
    assert excess["RoPE"]["1024"] == pytest.approx(whole[:, 512:].mean(-1).tolist(), abs=1e-3)
    assert excess["YaRN by length"]["128"] == pytest.approx(excess["RoPE"]["128"], abs=1e-4)
