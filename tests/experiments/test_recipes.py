"""Each change of the recipe, and another number of layers, leaves all else as it is in chains.py."""

import itertools
import tomllib

import pytest
import torch

from experiments import chains, depth, models, recipes
from experiments.chain_models import BY_LAYER, chain_decoder
from experiments.runs import PLAN
from snippets.rope import rope_frequencies
from tests.rows import each_of

DECLARED = tomllib.loads(PLAN.with_name("preregistration.toml").read_text(encoding="utf-8"))["grid"]
USUAL = {"heads": 4, "base": 10_000, "updates": 12, "learning_rate": chains.LEARNING_RATE}
CHANGES = {
    "one head": {"heads": 1},
    "step size 0.001": {"learning_rate": 0.001},
    "4x updates": {"updates": 48},
    "base 500,000": {"base": 500_000},
}
METHODS = [*itertools.product(DECLARED["encodings"], DECLARED["recipes"][1:]), ("RoPE", "base 500,000")]


@pytest.fixture
def trained(monkeypatch):
    """Nothing is trained or evaluated; what would have been: the model, the seed, and how."""
    met = []

    def train(model, seed, device, updates, learning_rate=chains.LEARNING_RATE):
        met.append((model, seed, {"updates": updates, "learning_rate": learning_rate}))
        return model.eval()

    for module in (recipes, depth):
        monkeypatch.setattr(module, "trained", train)
        monkeypatch.setattr(module, "evaluate", lambda model, device, count: (model, count))
    return met


@each_of(("name", "change"), METHODS)
def test_one_thing_is_changed_and_the_weights_outside_the_encoding_are_the_usual_ones(name, change, trained):
    found = recipes.run(f"{name}, {change}", 1, "cpu", updates=12, count=7)
    model, seed, how = trained.pop()
    assert found == {"excess_loss": {"1024": (model, 7)}} and seed == 1
    expected = USUAL | CHANGES[change]
    assert [getattr(block, "block", block).heads for block in model.blocks] == 2 * [expected["heads"]]
    assert how == {key: expected[key] for key in how}
    encoding = model.blocks[0].encoding if name in BY_LAYER else model.encoding
    if "RoPE" in name or "window" in name:
        frequencies = rope_frequencies(models.DIM // expected["heads"], expected["base"])
        assert torch.equal(encoding.frequencies, frequencies)
    mine, usual = model.state_dict(), chain_decoder(name, 1).state_dict()
    assert mine.keys() == usual.keys()
    assert all(torch.equal(mine[key], usual[key]) for key in mine if "encoding" not in key)
    texts = chains.evaluation_texts(2)[:, :40]
    assert models.logits(model, texts).shape == (2, 40, 16), "the encoding has as many heads"


LAYERS = [
    ("none, 3 layers", "none", 3, 1),
    ("T5, 4 layers", "T5", 4, 1),
    ("none, 4 layers, 4x updates", "none", 4, 4),
]


@each_of(("method", "name", "layers", "times"), LAYERS)
def test_a_method_names_the_number_of_layers(method, name, layers, times, trained):
    found = depth.run(method, 1, "cpu", updates=12, count=7)
    ((model, seed, how),) = trained
    trained.clear()
    assert found == {"excess_loss": {"1024": (model, 7)}} and seed == 1
    assert how == {key: USUAL[key] for key in how} | {"updates": 12 * times} and len(model.blocks) == layers
    assert type(model.encoding) is type(chain_decoder(name, 1).encoding)
