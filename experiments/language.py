"""Does a model stay good past the length that it was trained on? Loss by position on real text.

A small decoder learns to predict the next byte in windows of 128 and is then asked about every
position in windows of 1024, from files that it has never seen. Every encoding meets the same initial
weights, the same windows in the same order and the same number of updates.

How much of the text before does it use? The last bytes of windows from all held-out files are asked for
again and again, with more and more of the bytes before them.
"""

import torch
from torch.nn.functional import cross_entropy

from experiments import corpus
from experiments.encodings import make
from snippets.block import Decoder, Encoding

DIM, HEADS, LAYERS, CLIP = 64, 4, 2, 32
TRAINED, ASKED, BIN = 128, 1024, 16  # lengths, and the positions that one figure is the mean of
BATCH, UPDATES, RATE = 16, 500, 3e-3
WINDOWS = 64  # of ASKED bytes, the same for every model
FAR, EACH = 16, 3  # the last bytes of a window; windows of a held-out file
CONTEXTS = (16, 32, 64, 128, 256, 512, ASKED - FAR)  # bytes read before those


def decoder(name, seed):
    """A decoder whose weights, but for those of its encoding, are the same for every encoding."""
    torch.manual_seed(seed)
    made = Decoder(Encoding(), corpus.VOCABULARY, DIM, HEADS, LAYERS, scale=DIM**0.5)
    made.encoding = make(name, DIM, HEADS, ASKED, CLIP)
    return made


def losses(model, windows):
    """The loss at each position: (batch, length - 1)."""
    ids = windows[:, :-1]
    positions = torch.arange(ids.shape[1], device=ids.device)[None]
    scores, _ = model(ids, positions, torch.ones_like(positions))
    loss = cross_entropy(scores.flatten(0, 1), windows[:, 1:].flatten(), reduction="none")
    return loss.view(ids.shape)


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
    return torch.cat([losses(model, part.to(device)).cpu() for part in windows.split(4)]).mean(0)


def binned(loss):
    """Means over bins of BIN positions, as numbers."""
    return [round(each.item(), 4) for each in loss.unflatten(0, (-1, BIN)).mean(-1)]


@torch.no_grad()
def by_context(model, windows, device):
    """The mean loss of the last FAR bytes of each window, for each number of bytes read before them."""
    found = {}
    for context in CONTEXTS:
        parts = windows[:, -(context + FAR) :].split(4 * ASKED // (context + FAR))
        loss = torch.cat([losses(model, part.to(device))[:, -FAR:].mean(-1) for part in parts])
        found[str(context)] = [round(each, 3) for each in loss.tolist()]
    return found


def examined(model, windows, device):
    """The size of a model, and its loss by position."""
    return {
        "parameters": sum(each.numel() for each in model.parameters()),
        "encoding_parameters": sum(each.numel() for each in model.encoding.parameters()),
        "loss": binned(by_position(model, windows, device)),
    }


def run(method, seed, device, updates=UPDATES, count=WINDOWS, each=EACH):
    """Train one model and ask it about the held-out windows."""
    model = train(decoder(method, seed), seed, device, updates)
    far = corpus.spread(corpus.corpus()[1], each, ASKED).flatten(0, 1)
    return examined(model, held_out(count), device) | {"far": by_context(model, far, device)}


def provenance():
    return {"corpus": corpus.provenance()}
