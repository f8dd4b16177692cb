"""Models with an encoding in each layer: what a layer sees, and what is held fixed."""

import pytest
import torch

from experiments import chain_models, chains
from experiments.chain_models import STATES, TRAIN_LENGTH, chain_decoder
from experiments.models import CLIP, DIM
from snippets.block import Encoding
from snippets.forgetting import forgetting_bias

TEXTS = chains.evaluation_texts(2)[:, :200]


def scores(model, texts):
    at = torch.arange(texts.shape[1])[None]
    with torch.no_grad():
        return model(texts, at, torch.ones_like(at))[0]


def other_state(position):
    """The texts with another state at this position."""
    other = TEXTS.clone()
    other[:, position] = (other[:, position] + 1) % STATES
    return other


def test_a_window_is_in_the_first_layer_and_no_positions_in_the_second():
    model = chain_decoder("window + NoPE layer", 0).eval()
    layer, late = model.blocks[0], []
    layer.register_forward_hook(lambda module, given, result: late.append(result[0]))
    whole = [scores(model, texts) for texts in (TEXTS, other_state(20))]
    moved = (late[0] - late[1]).abs().amax((0, -1)) > 1e-6
    assert moved[20 : 20 + CLIP].all() and not moved[20 + CLIP :].any()
    assert ((whole[0] - whole[1]).abs().amax((0, -1)) > 1e-6)[20:].all(), "the second layer sees all"
    assert type(model.blocks[1].encoding) is Encoding


def test_the_temperature_changes_nothing_within_the_training_length():
    model = chain_decoder("window + NoPE layer", 0).eval()
    plain = scores(model, TEXTS)
    model.blocks[-1].encoding = chain_models.LogTemperature()
    moved = (scores(model, TEXTS) - plain).abs().amax((0, -1))
    assert (moved[:TRAIN_LENGTH] == 0).all() and (moved[TRAIN_LENGTH:] > 0).all()
    q, at = torch.ones(1, 2, 2, 4), torch.tensor([[0, 8 * TRAIN_LENGTH - 1]])
    temperature = chain_models.LogTemperature()
    scaled = temperature.rotate(q, temperature.tables(at), "query")[0, 0, :, 0]
    assert scaled.tolist() == pytest.approx([1, 1 + chain_models.STRENGTH * torch.tensor(8.0).log().item()])
    assert torch.equal(temperature.rotate(q, temperature.tables(at), "key"), q)


def test_each_layer_has_forget_gates_of_its_own_that_are_trained():
    model = chain_decoder("forget gates", 0)
    one, two = (layer.encoding.gates for layer in model.blocks)
    assert one is not two
    x = torch.randn(1, 7, DIM)
    assert torch.equal(model.blocks[0].encoding.read(x, None), forgetting_bias(one(x)))
    before = [each.clone() for each in (*one.parameters(), *two.parameters())]
    chains.trained(model, 0, "cpu", updates=11)
    after = (*one.parameters(), *two.parameters())
    assert all((old != new).any() for old, new in zip(before, after, strict=True))


def test_relative_logits_are_zero_beyond_their_extent():
    encoding = chain_decoder("relative logits", 0).blocks[0].encoding
    at = torch.arange(60)
    bias = encoding.read(torch.randn(1, 60, DIM), at)
    far = at[:, None] - at >= CLIP
    assert (bias[..., far] == 0).all() and (bias[..., ~far & (at[:, None] >= at)] != 0).any()


def test_only_the_window_below_a_nope_layer_is_evaluated_with_a_temperature():
    found = chains.run("window + NoPE layer", 0, "cpu", updates=11, count=1)["excess_loss"]
    assert list(found) == ["1024", "temperature"]
    assert found["1024"]["128"] == found["temperature"]["128"]
    assert found["1024"]["512"] != found["temperature"]["512"]
