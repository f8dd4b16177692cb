"""Within an experiment all methods begin with the same weights, but for those of their encoding."""

import torch

from experiments import chains, generator, language, layers, recent, recipes, regimes, teaching, translator
from experiments.runs import plan
from tests.rows import each_of

# Of each experiment: a model of a method or change, and of a seed, before its training.
BEGUN = {
    "teaching": teaching.decoder,
    "recent": recent.begun,
    "recipes": lambda method, seed: recipes.begun(*method.split(", "), seed),
    "layers": layers.begun,
    "generator": generator.decoder,
    "translator": translator.translator,
}
PLAIN = {"teaching": language.decoder, "generator": generator.decoder, "translator": translator.translator}


def methods(experiment):
    names = teaching.ENCODINGS if experiment == "teaching" else plan()[experiment]["methods"]
    return [name for name in names if not name.endswith(regimes.LONG)]


def plain(experiment, seed):
    """The model without positions: most experiments have those of chains."""
    if experiment in PLAIN:
        return PLAIN[experiment]("none", seed)
    return regimes.decoder("none", chains.STATES, seed)


def outside(model):
    """The weights of a model without those of its encodings, whichever layer has them."""
    named = {key.replace(".block.", "."): value for key, value in model.state_dict().items()}
    parts = ("encoding", "source", "target")
    return {key: value for key, value in named.items() if not set(parts) & set(key.split("."))}


@each_of("experiment", BEGUN)
def test_outside_the_encoding_the_weights_are_those_of_every_encoding(experiment):
    first, other = (outside(plain(experiment, seed)) for seed in (3, 2))
    assert len(first) > 10 and not torch.equal(other["tokens.weight"], first["tokens.weight"])
    for method in methods(experiment):
        weights = outside(BEGUN[experiment](method, 3))
        assert weights.keys() == first.keys()
        assert all(torch.equal(weights[key], first[key]) for key in first), method
