"""Context extension of RoPE on chains: the frequencies of the evaluation, and the texts of the tuning."""

import math

import pytest
import torch

from experiments import chains, extensions
from experiments.chain_models import TRAIN_LENGTH, chain_decoder
from snippets import rope_scaling
from snippets.rope import rope_frequencies


def one_head():
    return chain_decoder("RoPE", 0, extensions.HEADS)


def test_each_layer_has_one_head_of_64():
    model = one_head()
    assert [block.heads for block in model.blocks] == [1, 1]
    assert len(model.encoding.frequencies) == extensions.WIDTH // 2 == 32
    wide = chain_decoder("RoPE", 0)
    assert sum(e.numel() for e in model.parameters()) == sum(e.numel() for e in wide.parameters())


def test_another_frequency_leaves_the_model_itself_as_it_is():
    model = one_head()
    before = model.encoding.frequencies.clone()
    other = extensions.with_frequencies(model, before / 2, 1.0)
    assert torch.equal(model.encoding.frequencies, before)
    assert torch.equal(other.encoding.frequencies, before / 2)
    assert other.blocks is model.blocks


def test_a_frequency_that_depends_on_the_length_is_that_of_the_text_so_far():
    model, texts = one_head(), chains.evaluation_texts(2)
    frequencies = rope_frequencies(extensions.WIDTH, base=10000)
    scaled = extensions.methods(torch.ones(extensions.WIDTH // 2))["dynamic NTK"]
    found = extensions.by_position(model, scaled, texts, "cpu")
    assert [*found] == ["128", "256", "512", "1024"]
    for end in map(int, found):
        now = rope_scaling.dynamic_ntk(frequencies, 1.0, TRAIN_LENGTH, end)
        stretched = extensions.with_frequencies(model, now, 1.0)
        whole = chains.model_excess_loss(stretched, texts[:, : end + 1], "cpu")
        assert found[str(end)] == pytest.approx(whole[:, end // 2 :].mean(-1).tolist(), abs=1e-3)


def test_a_method_is_that_of_the_file_to_copy_and_a_larger_base_the_formula():
    ways = extensions.methods(torch.full((32,), 3.0))
    found, factor = ways["larger base"](1024)
    expected = [500_000 ** (-2 * pair / 64) for pair in range(32)]
    assert found.tolist() == pytest.approx(expected) and factor == 1
    found, factor = ways["YaRN"](1024)
    assert factor == pytest.approx(1 + 0.1 * math.log(8)) and found[-1] == pytest.approx(
        10_000 ** (-62 / 64) / 8
    )
    assert torch.equal(ways["LongRoPE"](128)[0], ways["RoPE"](128)[0])
    assert torch.allclose(ways["LongRoPE"](129)[0], ways["RoPE"](128)[0] / 3)


@pytest.mark.slow
def test_each_method_is_evaluated_untuned_and_after_tuning_on_other_texts_of_full_length(monkeypatch):
    met, real = [], extensions.train

    def train(model, batches, device, updates, learning_rate):
        batches = list(batches)
        texts = torch.cat([each for (each,) in batches])
        met.append((model.encoding.frequencies, texts, updates, learning_rate))
        return real(model, batches[:11], device, 11, learning_rate)

    monkeypatch.setattr(extensions, "train", train)
    monkeypatch.setattr(chains, "train", train)
    monkeypatch.setattr(extensions, "search", lambda *_: torch.full((32,), 2.0))
    tuning = {"updates": 12, "batch": 1, "rate": 1e-3}
    excess = extensions.run("RoPE stretched", 0, "cpu", updates=12, count=1, tuning=tuning)["excess_loss"]
    ways = list(extensions.methods(torch.ones(32)))
    assert [*excess] == [f"{state} {name}" for name in ways for state in ("untuned", "tuned")]
    assert torch.equal(met[0][1], chains.sample_chains(12 * chains.BATCH_SIZE, 129, 0))
    assert met[0][2:] == (12, chains.LEARNING_RATE)
    assert len(met) == 1 + len(ways)
    for name, (frequencies, texts, *rest) in zip(ways, met[1:], strict=True):
        assert torch.equal(frequencies, extensions.methods(torch.full((32,), 2.0))[name](1024)[0])
        assert texts.shape == (12, 1025) and rest == [12, 1e-3]
        assert torch.equal(texts, met[1][1]) and not torch.equal(texts[:1, :129], met[0][1][:1])
    assert excess["untuned RoPE"] != excess["tuned RoPE"]


@pytest.mark.slow
def test_the_search_finds_factors_that_rise_and_are_no_worse_than_where_it_began():
    model = one_head()
    factors = extensions.search(model, "cpu", seed=0)
    assert factors.shape == (extensions.WIDTH // 2,)
    assert (factors.diff() >= 0).all() and factors.min() >= 1 and factors.max() <= extensions.FACTOR
