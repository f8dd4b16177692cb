"""What a patch changes in one layer of a model of chains, and what it leaves alone."""

import torch

from experiments import chains, layers, recent, regimes
from experiments.chains import asked, asked_about
from experiments.runs import plan
from snippets.block import Encoding
from tests.rows import each_of

TEXTS = asked(1)[:, :80]
METHODS = plan()["layers"]["methods"]


def begun(name):
    model = layers.begun(name, 0).eval()
    return model if name in layers.LAYERED else layers.parted(model)


def above(model):
    return asked_about(model, TEXTS, "cpu")


@each_of("name", METHODS)
def test_with_an_encoding_to_each_layer_a_model_says_what_it_said(name):
    whole = above(layers.begun(name, 0).eval())
    model = begun(name)
    assert type(model.encoding) is Encoding and len(model.blocks) == 2
    assert torch.equal(above(model), whole)


def test_models_begin_as_those_of_chains_and_of_recent():
    for name in METHODS:
        if name in layers.LAYERED:
            other = recent.begun("window and none", 0)
        else:
            other = regimes.decoder(name, chains.STATES, 0)
        mine = dict(layers.begun(name, 0).named_parameters())
        for key, value in other.named_parameters():
            assert torch.equal(mine[key], value)


@each_of(("name", "windows"), [("window and RoPE", True), ("RoPE and none", False)])
def test_of_window_and_bare_layer_each_is_there_without_the_other(name, windows):
    first, second = (block.encoding for block in begun(name).blocks)
    at = torch.arange(80)[None]
    bias = first.bias(at, at)
    assert (bias is not None and bias.isneginf().any().item()) == windows
    q = torch.randn(1, 4, 80, 16)
    assert not torch.equal(first.rotate(q, first.tables(at), "query"), q)
    assert torch.equal(second.rotate(q, second.tables(at), "query"), q) != windows


def test_a_shift_is_that_of_all_places_of_queries():
    at = torch.arange(9)[None]
    q, k = torch.randn(2, 1, 4, 9, 16)
    for name in ("RoPE", "T5", "ALiBi"):
        plain = layers.begun(name, 0).encoding
        moved = layers.Shifted(plain)
        tables = plain.tables(at + 1)
        assert torch.equal(moved.rotate(q, moved.tables(at), "query"), plain.rotate(q, tables, "query"))
        assert torch.equal(moved.rotate(k, moved.tables(at), "key"), plain.rotate(k, plain.tables(at), "key"))
        bias = plain.bias(at + 1, at)
        assert bias is None or torch.equal(moved.bias(at, at), bias)


def test_a_shift_adds_the_same_to_all_scores_of_a_query_with_alibi_and_moves_the_others():
    for name, unmoved in (("ALiBi", True), ("none", True), ("RoPE", False), ("T5", False)):
        model = begun(name)
        if name == "T5":  # its table begins at nothing
            torch.nn.init.normal_(next(model.blocks[0].encoding.parameters()))
        plain = above(model)
        model.blocks[0].encoding = layers.Shifted(model.blocks[0].encoding)
        assert torch.allclose(above(model), plain, atol=1e-5) == unmoved, name


def test_each_patch_is_of_one_layer_and_is_taken_off_again(monkeypatch):
    met = []

    def asked_about(model, texts, device):
        met.append([block.encoding for block in model.blocks])
        return torch.zeros(len(texts), regimes.ASKED)

    monkeypatch.setattr(layers, "asked_about", asked_about)
    monkeypatch.setattr(layers, "train", lambda model, *_: model.eval())
    for name in ("RoPE", "Transformer-XL"):
        met.clear()
        above = layers.run(name, 0, "cpu", updates=1, count=1)["above"]
        kinds = ["nothing", "shifted", "32", "128"]
        kinds = [each for each in kinds if each != "shifted" or name == "RoPE"]
        assert [*above] == ["1024", *(f"{layer} {e}" for layer in ("first", "second") for e in kinds)]
        plain = met[0]
        for number, (first, second) in enumerate(met[1:]):
            patched, other = (first, second) if number < len(kinds) else (second, first)
            own = number >= len(kinds)
            assert other is plain[not own] and patched is not plain[own]
        assert type(met[1][0]) is Encoding
    at = torch.arange(200)[None]
    for window in (32, 128):
        hidden = layers.patches(recent.rope())[str(window)].bias(at, at).isneginf()[0, 0]
        assert torch.equal(hidden, at.T - at >= window)
