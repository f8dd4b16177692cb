"""What the regimes share, in which far text is worth something: chains.py and ciphers.py.

One decoder for all encodings, trained on texts of TRAINED tokens and asked about texts of ASKED, as it is
and with a window, with nothing retrained.
"""

import copy
import math

import torch

from experiments.encodings import Added, make
from experiments.language import losses
from snippets.block import Decoder, Encoding

DIM, HEADS, LAYERS, CLIP = 64, 4, 2, 32
TRAINED, ASKED = 128, 1024
BATCH, UPDATES, RATE = 8, 6000, 3e-3
WINDOWS = (32, 64, 128, ASKED)  # tokens seen, the one that asks included; the last hides nothing
LONG = " on long texts"  # after the name of an encoding: trained at ASKED, on as many tokens


def decoder(name, vocabulary, seed):
    """A decoder whose weights, but for those of its encoding, are the same for every encoding."""
    torch.manual_seed(seed)
    made = Decoder(Encoding(), vocabulary, DIM, HEADS, LAYERS, scale=DIM**0.5)
    made.encoding = clamped() if name == "learned" else make(name, DIM, HEADS, ASKED, CLIP)
    return made


def clamped():
    """A learned table that gives every place past its end the last row, which was trained."""
    from snippets.learned import AddLearned

    table = AddLearned(TRAINED, DIM)
    encoding = Added(lambda x, at: table(x, at.clamp(max=TRAINED - 1)))
    encoding.table = table
    return encoding


def windowed(encoding, window):
    """The same encoding, of the same numbers; no key is seen that stands so many places back or farther."""

    def bias(at, keys):
        plain = encoding.bias(at, keys)
        far = at[:, None, :, None] - keys[:, None, None, :] >= window
        plain = torch.zeros((), device=at.device) if plain is None else plain
        return plain.masked_fill(far, -math.inf)

    narrow = copy.copy(encoding)
    narrow.bias = bias
    return narrow


def sizes(method):
    """The name of its encoding, texts in a batch, and their length: as many tokens for every method."""
    name = method.removesuffix(LONG)
    times = 1 if name == method else ASKED // TRAINED
    return name, BATCH // times, TRAINED * times


def train(model, batches, updates, device):
    """Learn from batches of texts, each once."""
    model.to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, updates, pct_start=0.1)
    for texts in batches:
        loss = losses(model, texts.to(device)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model.eval()


def by_window(model, measure):
    """What is measured of a model with each window at test time."""
    encoding, found = model.encoding, {}
    for window in WINDOWS:
        model.encoding = windowed(encoding, window)
        found[str(window)] = measure(model)
    model.encoding = encoding
    return found
