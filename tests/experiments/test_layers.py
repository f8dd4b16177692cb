"""What a patch changes in one layer of a model of chains, and what it leaves alone."""

import torch

from experiments import chains, layers
from experiments.chain_models import EVAL_LENGTH, chain_decoder, rope
from experiments.chains import evaluation_texts, model_excess_loss
from experiments.runs import plan
from snippets.block import Encoding
from tests.rows import each_of

TEXTS = evaluation_texts(1)[:, :80]
METHODS = plan()["layers"]["methods"]


def split(name):
    model = layers.layered_decoder(name, 0).eval()
    return model if name in layers.BY_LAYER else layers.split_by_layer(model)


def excess(model):
    return model_excess_loss(model, TEXTS, "cpu")


@each_of("name", METHODS)
def test_split_by_layer_a_model_predicts_what_it_did(name):
    whole = excess(layers.layered_decoder(name, 0).eval())
    model = split(name)
    assert type(model.encoding) is Encoding and len(model.blocks) == 2
    assert torch.equal(excess(model), whole)


def test_models_begin_as_those_of_chains():
    for name in METHODS:
        other = chain_decoder("window + NoPE layer" if name in layers.BY_LAYER else name, 0)
        mine = dict(layers.layered_decoder(name, 0).named_parameters())
        for key, value in other.named_parameters():
            assert torch.equal(mine[key], value)


@each_of(("name", "windows"), [("window + RoPE layer", True), ("RoPE + NoPE layer", False)])
def test_the_window_and_the_layer_without_positions_are_each_there_alone(name, windows):
    first, second = (block.encoding for block in split(name).blocks)
    at = torch.arange(80)[None]
    bias = first.bias(at, at)
    assert (bias is not None and bias.isneginf().any().item()) == windows
    q = torch.randn(1, 4, 80, 16)
    assert not torch.equal(first.rotate(q, first.tables(at), "query"), q)
    assert torch.equal(second.rotate(q, second.tables(at), "query"), q) != windows


def test_a_shift_is_that_of_all_query_positions():
    at = torch.arange(9)[None]
    q, k = torch.randn(2, 1, 4, 9, 16)
    for name in ("RoPE", "T5", "ALiBi"):
        plain = layers.layered_decoder(name, 0).encoding
        moved = layers.Shifted(plain)
        tables = plain.tables(at + 1)
        assert torch.equal(moved.rotate(q, moved.tables(at), "query"), plain.rotate(q, tables, "query"))
        assert torch.equal(moved.rotate(k, moved.tables(at), "key"), plain.rotate(k, plain.tables(at), "key"))
        bias = plain.bias(at + 1, at)
        assert bias is None or torch.equal(moved.bias(at, at), bias)


def test_a_shift_adds_the_same_to_all_scores_of_a_query_with_alibi_and_moves_the_others():
    for name, unmoved in (("ALiBi", True), ("none", True), ("RoPE", False), ("T5", False)):
        model = split(name)
        if name == "T5":  # its table starts at zero
            torch.nn.init.normal_(next(model.blocks[0].encoding.parameters()))
        plain = excess(model)
        model.blocks[0].encoding = layers.Shifted(model.blocks[0].encoding)
        assert torch.allclose(excess(model), plain, atol=1e-5) == unmoved, name


def test_each_patch_is_of_one_layer_and_is_removed_again(monkeypatch):
    met = []

    def model_excess_loss(model, texts, device):
        met.append([block.encoding for block in model.blocks])
        return torch.zeros(len(texts), EVAL_LENGTH)

    monkeypatch.setattr(chains, "model_excess_loss", model_excess_loss)
    monkeypatch.setattr(layers, "trained", lambda model, *_: model.eval())
    for name in ("RoPE", "Transformer-XL"):
        met.clear()
        found = layers.run(name, 0, "cpu", updates=1, count=1)["excess_loss"]
        kinds = ["no positions", "shifted", "32", "128"]
        kinds = [each for each in kinds if each != "shifted" or name == "RoPE"]
        assert [*found] == ["1024", *(f"{layer} {e}" for layer in ("first", "second") for e in kinds)]
        plain = met[0]
        for number, (first, second) in enumerate(met[1:]):
            patched, other = (first, second) if number < len(kinds) else (second, first)
            own = number >= len(kinds)
            assert other is plain[not own] and patched is not plain[own]
        assert type(met[1][0]) is Encoding
    at = torch.arange(200)[None]
    for window in (32, 128):
        hidden = layers.patches(rope())[str(window)].bias(at, at).isneginf()[0, 0]
        assert torch.equal(hidden, at.T - at >= window)
