"""Within an experiment all methods begin with the same weights, but for those of their encoding."""

import torch

from experiments import generator, language, layers, recipes, teaching, translator
from experiments.chain_models import chain_decoder
from experiments.runs import plan
from tests.rows import each_of

# For each experiment, the model of a method and a seed before its training.
BEGUN = {
    "teaching": teaching.taught_decoder,
    "chains": chain_decoder,
    "recipes": lambda method, seed: recipes.changed_decoder(*method.split(", ", 1), seed),
    "layers": layers.layered_decoder,
    "generator": generator.byte_decoder,
    "translator": translator.translator,
}
PLAIN = {
    "teaching": language.byte_decoder,
    "generator": generator.byte_decoder,
    "translator": translator.translator,
}


def methods(experiment):
    return teaching.ENCODINGS if experiment == "teaching" else plan()[experiment]["methods"]


def plain(experiment, seed):
    """The model without positions: most experiments have those of chains."""
    if experiment in PLAIN:
        return PLAIN[experiment]("none", seed)
    return chain_decoder("none", seed)


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
