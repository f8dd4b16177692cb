"""One thing of the recipe of chains is another, and all else is as it was."""

import pytest
import torch

from experiments import chains, recent, recipes, regimes
from experiments.runs import plan
from tests.rows import each_of

METHODS = [method.split(", ") for method in plan()["recipes"]["methods"]]
AT = torch.arange(regimes.TRAINED)[None]


def loudness(encoding):
    return encoding.embed(torch.zeros(1, regimes.TRAINED, regimes.DIM), AT).square().mean().sqrt().item()


def test_each_method_is_one_of_chains_or_of_today_with_one_change():
    known = {*plan()["chains"]["methods"], *plan()["recent"]["methods"]}
    for name, change in METHODS:
        assert name in known
        assert change.startswith("rate ") or change in {
            *recipes.TABLES,
            *("long", "quiet", "loud", "near", "in each layer"),
        }


@each_of(("name", "change"), [("sinusoidal", "quiet"), ("learned", "loud")])
def test_what_is_added_is_as_loud_as_the_tokens_and_of_the_same_form(name, change):
    model, plain = recipes.begun(name, change, 0), regimes.decoder(name, chains.STATES, 0)
    tokens = (model.scale * model.tokens.weight).square().mean().sqrt().item()
    assert loudness(model.encoding) == pytest.approx(tokens, rel=1e-3)
    assert abs(loudness(plain.encoding) - tokens) > tokens / 2
    x = torch.zeros(1, regimes.TRAINED, regimes.DIM)
    mine, theirs = model.encoding.embed(x, AT), plain.encoding.embed(x, AT)
    assert torch.nn.functional.cosine_similarity(mine, theirs, dim=-1).min() > 0.9999
    x = torch.randn_like(x)
    assert torch.allclose(model.encoding.embed(x, AT) - x, mine, atol=1e-5)


def test_the_threshold_of_fire_is_a_quarter_of_the_trained_length():
    near, plain = recipes.begun("FIRE", "near", 0), regimes.decoder("FIRE", chains.STATES, 0)
    assert (near.encoding.make.init_L, plain.encoding.make.init_L) == (32, 512)


def test_each_layer_has_tables_of_its_own():
    for name in ("Shaw", "Transformer-XL"):
        model = recipes.begun(name, "in each layer", 0)
        first, second = (list(block.encoding.parameters()) for block in model.blocks)
        assert first and not list(model.encoding.parameters())
        assert all(one is not other for one, other in zip(first, second, strict=True))


def test_the_usual_recipe_is_that_of_chains():
    texts = chains.draw(96, 33, seed=0)
    mine = regimes.decoder("T5", chains.STATES, 0)
    theirs = regimes.decoder("T5", chains.STATES, 0)
    recipes.train(mine, texts.split(8), 12, "cpu", regimes.RATE, 1)
    regimes.train(theirs, texts.split(8), 12, "cpu")
    for one, other in zip(mine.parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-6)


@pytest.mark.parametrize(
    ("method", "told"),
    [
        ("none, rate 0.012", (12, 0.012, 1)),
        ("T5, table x10", (12, regimes.RATE, 10)),
        ("RoPE, long", (48, regimes.RATE, 1)),
        ("window and none, rate 0.001", (12, 0.001, 1)),
    ],
)
def test_a_method_says_what_is_changed(monkeypatch, method, told):
    met, real = [], recipes.train

    def train(model, batches, updates, device, rate, table):
        met.append((updates, rate, table))
        assert len(batches) == updates
        return real(model, batches[:11], 11, device, rate, table)

    monkeypatch.setattr(recipes, "train", train)
    assert [*recipes.run(method, 0, "cpu", updates=12, count=1)["above"]] == ["1024"]
    assert met == [told]


def test_a_table_takes_steps_that_are_as_much_larger():
    texts = chains.draw(96, 33, seed=0)
    moved = {}
    for table in (1, 10):
        model = regimes.decoder("T5", chains.STATES, 0)
        recipes.train(model, texts.split(8), 12, "cpu", regimes.RATE, table)
        moved[table] = next(model.encoding.parameters()).abs().mean().item()
    assert moved[10] > 5 * moved[1]


def test_today_is_begun_as_in_recent():
    mine, theirs = recipes.begun("window and none", "long", 1), recent.begun("window and none", 1)
    assert type(mine.blocks[0].encoding) is type(theirs.blocks[0].encoding)
    assert mine.blocks[0].encoding.bias(AT, AT).isneginf().any()
