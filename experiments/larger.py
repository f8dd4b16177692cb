"""Does what chains.py and recent.py find hold for a model four times as large?

Twice as wide, with twice as many heads, so that each head is as wide as before. All else is the same.
"""

import torch

from experiments.chains import STATES, TEXTS, asked, asked_about, by_band, draw
from experiments.chains import provenance as provenance
from experiments.encodings import make
from experiments.recent import layered, window_and_none
from experiments.regimes import ASKED, BATCH, CLIP, DIM, HEADS, LAYERS, TRAINED, UPDATES, train
from snippets.block import Decoder, Encoding

TIMES = 2


def decoder(name, seed):
    torch.manual_seed(seed)
    dim, heads = TIMES * DIM, TIMES * HEADS
    made = Decoder(Encoding(), STATES, dim, heads, LAYERS, scale=dim**0.5)
    if name == "window and none":
        return layered(made, window_and_none())
    made.encoding = make(name, dim, heads, ASKED, CLIP)
    return made


def run(method, seed, device, updates=UPDATES, count=TEXTS):
    """Train one model and ask how far it is from the best possible."""
    texts = draw(updates * BATCH, TRAINED + 1, seed)
    model = train(decoder(method, seed), texts.split(BATCH), updates, device)
    parameters = sum(each.numel() for each in model.parameters())
    return {
        "parameters": parameters,
        "above": {str(ASKED): by_band(asked_about(model, asked(count), device))},
    }
