"""Within an experiment all methods begin with the same weights, but for those of their encoding."""

import torch

from experiments import chains, generator, language, layers, recent, recipes, regimes, teaching, translator
from experiments.runs import plan
from tests.rows import each_of


def methods(experiment):
    return plan()[experiment]["methods"]


def of_chains(seed):
    return regimes.decoder("none", chains.STATES, seed)


# Of each experiment: a model without positions of a seed, and all models of that seed.
STARTS = {
    "teaching": (
        lambda seed: language.decoder("none", seed),
        lambda seed: [teaching.decoder(name, seed) for name in teaching.ENCODINGS],
    ),
    "recent": (
        of_chains,
        lambda seed: [
            recent.begun(name, seed) for name in methods("recent") if not name.endswith(regimes.LONG)
        ],
    ),
    "recipes": (
        of_chains,
        lambda seed: [recipes.begun(*name.split(", "), seed) for name in methods("recipes")],
    ),
    "layers": (of_chains, lambda seed: [layers.begun(name, seed) for name in methods("layers")]),
    "generator": (
        lambda seed: generator.decoder("none", seed),
        lambda seed: [generator.decoder(name, seed) for name in methods("generator")],
    ),
    "translator": (
        lambda seed: translator.translator("none", seed),
        lambda seed: [translator.translator(name, seed) for name in methods("translator")],
    ),
}


def outside(model):
    """The weights of a model without those of its encodings, whichever layer has them."""
    named = {key.replace(".block.", "."): value for key, value in model.state_dict().items()}
    parts = ("encoding", "source", "target")
    return {key: value for key, value in named.items() if not set(parts) & set(key.split("."))}


@each_of(("experiment", "start"), STARTS.items(), ids=lambda row: row[0])
def test_outside_the_encoding_the_weights_are_those_of_every_encoding(experiment, start):
    plain, models = start
    first = outside(plain(3))
    assert len(first) > 10
    for made in models(3):
        weights = outside(made)
        assert weights.keys() == first.keys()
        assert all(torch.equal(weights[key], first[key]) for key in first)
    other = outside(plain(2))
    assert not torch.equal(other["tokens.weight"], first["tokens.weight"])
