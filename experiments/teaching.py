"""The two modules of the guide that are no paper's method, in the decoder of language.py.

A gate on sinusoids: each token decides how much of its position it takes. And local and global
distances: each near distance has its row, distant ones share the rows of buckets.
"""

import torch

from experiments import language
from experiments.encodings import Added, Scored
from experiments.language import UPDATES, WINDOWS
from experiments.models import CLIP, DIM, HEADS
from snippets import gated_encoding, local_global, sinusoidal

NEAR, RING = 8, 8
RINGS = 1 + (CLIP - NEAR) // RING  # the last one is for all beyond CLIP
provenance = language.provenance


def gated():
    return Added(gated_encoding.AddGated(DIM, lambda at: sinusoidal.sinusoidal_encoding(at, DIM)))


def near_and_far():
    return Scored(local_global.LocalGlobal(DIM // HEADS, NEAR, RING, RINGS))


ENCODINGS = {"gated sinusoids": gated, "local and global": near_and_far}


def taught_decoder(name, seed):
    """The decoder of language.py; its weights, but for those of the encoding, are the same."""
    made = language.byte_decoder("none", seed)
    made.encoding = ENCODINGS[name]()
    return made


@torch.no_grad()
def gates(model):
    """How much of its position each byte takes, from 0 to 1."""
    add, tokens = model.encoding.add, model.scale * model.tokens.weight
    taken = torch.sigmoid(tokens @ add.weight + add.bias)
    return [round(each, 4) for each in taken.tolist()]


def run(method, seed, device, updates=UPDATES, count=WINDOWS):
    """Train one model and evaluate it on the held-out windows, as language.py does."""
    model = language.trained(taught_decoder(method, seed), seed, device, updates)
    found = language.evaluate(model, language.heldout_windows(count), device)
    return found | ({"gates": gates(model)} if method == "gated sinusoids" else {})
