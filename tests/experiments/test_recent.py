"""Today's methods on chains, and a model four times as large: what layers see, and what is held fixed."""

import pytest
import torch

from experiments import chains, larger, recent, regimes
from experiments.runs import plan
from snippets.block import Encoding
from snippets.forgetting import forgetting_bias
from snippets.rope import rope_frequencies

TEXTS = chains.asked(2)[:, :200]


def scores(model, texts):
    at = torch.arange(texts.shape[1])[None]
    with torch.no_grad():
        return model(texts, at, torch.ones_like(at))[0]


def changed(model, place, texts=TEXTS):
    """Where scores change if the state at a place is another."""
    other = texts.clone()
    other[:, place] = (other[:, place] + 1) % chains.STATES
    return (scores(model, texts) - scores(model, other)).abs().amax((0, -1)) > 1e-6


def test_a_window_is_in_the_first_layer_and_no_positions_in_the_second():
    model = recent.begun("window and none", 0).eval()
    layer, late = model.blocks[0], []
    layer.register_forward_hook(lambda module, given, result: late.append(result[0]))
    other = TEXTS.clone()
    other[:, 20] = (other[:, 20] + 1) % chains.STATES
    for texts in (TEXTS, other):
        scores(model, texts)
    moved = (late[0] - late[1]).abs().amax((0, -1)) > 1e-6
    assert moved[20 : 20 + regimes.CLIP].all() and not moved[20 + regimes.CLIP :].any()
    assert changed(model, 20)[20:].all(), "the second layer sees all"
    assert type(model.blocks[1].encoding) is Encoding


def test_what_is_sharper_changes_nothing_within_the_trained_length():
    model = recent.begun("window and none", 0).eval()
    plain = scores(model, TEXTS)
    model.blocks[-1].encoding = recent.Sharper()
    moved = (scores(model, TEXTS) - plain).abs().amax((0, -1))
    assert (moved[: regimes.TRAINED] == 0).all() and (moved[regimes.TRAINED :] > 0).all()
    q, at = torch.ones(1, 2, 2, 4), torch.tensor([[0, 8 * regimes.TRAINED - 1]])
    turned = recent.Sharper().rotate(q, recent.Sharper().tables(at), "query")[0, 0, :, 0]
    assert turned.tolist() == pytest.approx([1, 1 + recent.STRENGTH * torch.tensor(8.0).log().item()])
    assert torch.equal(recent.Sharper().rotate(q, recent.Sharper().tables(at), "key"), q)


def test_places_are_scattered_in_training_alone_and_keep_their_order():
    encoding, plain = recent.scattered_places(), recent.rope()
    at = torch.arange(128)[None]
    cos, sin = encoding.train().tables(at)
    assert not torch.equal(cos, plain.tables(at)[0])
    places = (
        torch.atan2(sin[0, :, -1], cos[0, :, -1]) / plain.frequencies[-1]
    )  # the slowest turns less than once
    assert (places.diff() > 0.5).all() and places.min() >= 0 and 500 < places.max() < regimes.ASKED
    for mine, theirs in zip(encoding.eval().tables(at), plain.tables(at), strict=True):
        assert torch.equal(mine, theirs)


def test_the_larger_base_is_that_of_llama_3():
    width = regimes.DIM // regimes.HEADS
    assert torch.equal(recent.larger_base().frequencies, rope_frequencies(width, base=500_000))


def test_each_layer_forgets_by_gates_of_its_own_that_are_trained():
    model = recent.begun("forgetting", 0)
    one, two = (layer.encoding.gates for layer in model.blocks)
    assert one is not two
    x = torch.randn(1, 7, regimes.DIM)
    assert torch.equal(model.blocks[0].encoding.read(x, None), forgetting_bias(one(x)))
    before = [each.clone() for each in (*one.parameters(), *two.parameters())]
    regimes.train(model, chains.draw(44, 9, seed=0).split(4), 11, "cpu")
    after = (*one.parameters(), *two.parameters())
    assert all((old != new).any() for old, new in zip(before, after, strict=True))


def test_relative_logits_tell_nothing_apart_that_is_farther_than_their_extent():
    encoding = recent.begun("relative logits", 0).blocks[0].encoding
    at = torch.arange(60)
    bias = encoding.read(torch.randn(1, 60, regimes.DIM), at)
    far = at[:, None] - at >= regimes.CLIP
    assert (bias[..., far] == 0).all() and (bias[..., ~far & (at[:, None] >= at)] != 0).any()


def test_rope_is_dropped_after_its_training_for_texts_of_its_own(monkeypatch):
    met = []

    def train(model, batches, updates, device):
        met.append((type(model.encoding), updates, torch.cat([*batches])))
        return model.eval()

    monkeypatch.setattr(recent, "train", train)
    above = recent.run("dropped", 1, "cpu", updates=3, more=2, count=1)["above"]
    assert list(above) == ["1024"]
    (first, many, texts), (second, more, others) = met
    assert (first.__name__, many, second, more) == ("Rope", 3, Encoding, 2)
    assert torch.equal(texts, chains.draw(24, 129, 1)) and len(others) == 16
    recent.run("RoPE on long texts", 1, "cpu", updates=3, more=2, count=1)
    assert met[-1][2].shape == (3, 1025)


def test_only_the_window_with_no_positions_is_asked_twice():
    above = recent.run("window and none", 0, "cpu", updates=11, more=0, count=1)["above"]
    assert list(above) == ["1024", "sharper"]
    assert above["1024"]["128"] == above["sharper"]["128"] and above["1024"]["512"] != above["sharper"]["512"]


def test_the_larger_models_are_four_times_as_large_and_their_heads_as_wide():
    for name in plan()["larger"]["methods"]:
        model, plain = larger.decoder(name, 0), recent.begun(name, 0) if name == "window and none" else None
        plain = plain or regimes.decoder(name, chains.STATES, 0)
        sizes = [sum(e.numel() for e in each.parameters()) for each in (model, plain)]
        assert 3.8 < sizes[0] / sizes[1] < 4
    result = larger.run("window and none", 0, "cpu", updates=11, count=1)
    assert result["parameters"] == sum(e.numel() for e in larger.decoder("window and none", 0).parameters())
    assert [*result["above"]["1024"]] == [str(end) for _, end in chains.BANDS]
