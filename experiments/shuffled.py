"""The control for language.py: the bytes of each window come in a random order, in training and after.

There is no order to know about, so that an encoding can only be in the way.
"""

from experiments import language
from experiments.encodings import SNIPPETS

METHODS = {name: SNIPPETS[name] for name in ("none", "sinusoidal", "RoPE", "ALiBi")}
SEEDS = language.SEEDS
provenance = language.provenance


def run(method, seed, device, **sizes):
    return language.run(method, seed, device, shuffled=True, **sizes)
