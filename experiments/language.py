"""Does a model stay good past the length that it was trained on? Loss by position on real text.

A small decoder learns to predict the next byte in windows of 128 and is then asked about every
position in windows of 1024, from files that it has never seen. Every encoding meets the same initial
weights, the same windows in the same order and the same number of updates.
"""

import torch
from torch.nn.functional import cross_entropy

from experiments import corpus
from experiments.encodings import SNIPPETS, alike, switch
from snippets.block import Decoder, Encoding

DIM, HEADS, LAYERS, CLIP = 64, 4, 2, 32
TRAINED, ASKED, BIN = 128, 1024, 16  # lengths, and the positions that one figure is the mean of
BATCH, UPDATES, RATE = 16, 500, 3e-3
WINDOWS = 64  # of ASKED bytes, the same for every model

METHODS = SNIPPETS
SEEDS = range(3)
ENCODINGS = switch(DIM, HEADS, ASKED, CLIP)


def decoder(name, seed):
    """A decoder whose weights, but for those of its encoding, are the same for every encoding."""
    torch.manual_seed(seed)
    made = Decoder(Encoding(), corpus.VOCABULARY, DIM, HEADS, LAYERS, scale=DIM**0.5)
    made.encoding = alike(ENCODINGS[name]())
    return made


def losses(model, windows):
    """The loss at each position: (batch, length - 1)."""
    ids = windows[:, :-1]
    positions = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
    scores, _ = model(ids, positions, torch.ones_like(ids))
    return cross_entropy(scores.mT, windows[:, 1:], reduction="none")


def shuffle(windows, generator):
    """The bytes of each window in a random order."""
    order = torch.rand(windows.shape, generator=generator).argsort(-1)
    return windows.gather(-1, order)


def train(model, seed, device, updates, length=TRAINED, batch=BATCH, rate=RATE, shuffled=False):
    """Learn from random windows of the corpus, in an order that the seed decides."""
    model.to(device).train()
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, updates, pct_start=0.1)
    for _ in range(updates):
        windows = corpus.windows(corpus.corpus()[0], batch, length + 1, generator)
        if shuffled:
            windows = shuffle(windows, generator)
        loss = losses(model, windows.to(device)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model.eval()


def held_out(count=WINDOWS, shuffled=False):
    """The windows that every model is asked about: (count, ASKED + 1)."""
    generator = torch.Generator().manual_seed(0)
    windows = corpus.windows(corpus.corpus()[1], count, ASKED + 1, generator)
    return shuffle(windows, generator) if shuffled else windows


@torch.no_grad()
def by_position(model, windows, device):
    """The mean loss at each position, over the windows: (length - 1,), on the CPU."""
    return torch.stack([losses(model, window[None].to(device))[0] for window in windows]).mean(0).cpu()


def binned(loss):
    """Means over bins of BIN positions, as numbers."""
    return [round(each.item(), 4) for each in loss.unflatten(0, (-1, BIN)).mean(-1)]


def run(method, seed, device, updates=UPDATES, count=WINDOWS, shuffled=False):
    """Train one model and ask it about the held-out windows."""
    model = train(decoder(method, seed), seed, device, updates, shuffled=shuffled)
    return {
        "parameters": sum(each.numel() for each in model.parameters()),
        "encoding_parameters": sum(each.numel() for each in model.encoding.parameters()),
        "loss": binned(by_position(model, held_out(count, shuffled), device)),
    }


def provenance():
    return {"corpus": corpus.provenance()}
