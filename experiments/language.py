"""Does a model stay good past the length that it was trained on? The loss on real text.

A small decoder learns to predict the next byte in windows of TRAIN_LENGTH, and is then evaluated at every
position of windows of EVAL_LENGTH, from files that it has never seen. Every encoding gets the same initial
weights, the same windows in the same order and the same number of updates.

How much of the context does it use? The last bytes of windows from all held-out files are predicted again and
again, with more and more of the bytes before them.
"""

import torch

from experiments import corpus
from experiments.models import decoder, next_token_losses, train

TRAIN_LENGTH, EVAL_LENGTH, BIN = 128, 1024, 16  # the last: positions in one mean
BATCH_SIZE, UPDATES, LEARNING_RATE = 16, 500, 3e-3
WINDOWS = 64  # of EVAL_LENGTH bytes, the same for every model
SCORED, WINDOWS_PER_FILE = 16, 3  # the last bytes of a window, and the windows of a held-out file
CONTEXTS = (16, 32, 64, 128, 256, 512, EVAL_LENGTH - SCORED)  # bytes before those


def byte_decoder(name, seed):
    """A decoder of bytes whose weights, but for those of its encoding, are the same for every encoding."""
    return decoder(name, corpus.VOCABULARY, seed, EVAL_LENGTH)


def shuffle(windows, generator):
    """The bytes of each window in a random order."""
    order = torch.rand(windows.shape, generator=generator).argsort(-1)
    return windows.gather(-1, order)


def training_windows(seed, updates, batch_size=BATCH_SIZE, length=TRAIN_LENGTH, shuffled=False):
    """A batch of random windows for each update, in an order that the seed decides."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(updates):
        windows = corpus.windows(corpus.corpus()[0], batch_size, length + 1, generator)
        yield (shuffle(windows, generator) if shuffled else windows,)


def trained(model, seed, device, updates, shuffled=False):
    """Train on random windows of the corpus, in an order that the seed decides."""
    batches = training_windows(seed, updates, shuffled=shuffled)
    return train(model, batches, device, updates, LEARNING_RATE)


def heldout_windows(count=WINDOWS, shuffled=False):
    """The windows in which every model is evaluated at each position: (count, EVAL_LENGTH + 1)."""
    generator = torch.Generator().manual_seed(0)
    windows = corpus.windows(corpus.corpus()[1], count, EVAL_LENGTH + 1, generator)
    return shuffle(windows, generator) if shuffled else windows


def windows_of_each_file(count=WINDOWS_PER_FILE):
    """Windows of every held-out file that is long enough: (windows, EVAL_LENGTH)."""
    return corpus.spread(corpus.corpus()[1], count, EVAL_LENGTH).flatten(0, 1)


@torch.no_grad()
def loss_by_position(model, windows, device):
    """The mean loss at each position, over the windows: (length - 1,), on the CPU."""
    parts = windows.split(4)
    return torch.cat([next_token_losses(model, part.to(device)).cpu() for part in parts]).mean(0)


@torch.no_grad()
def loss_by_context(model, windows, device):
    """The mean loss of the last SCORED bytes of each window, for each number of bytes before them."""
    found = {}
    for context in CONTEXTS:
        parts = windows[:, -(context + SCORED) :].split(4 * EVAL_LENGTH // (context + SCORED))
        losses = [next_token_losses(model, part.to(device))[:, -SCORED:].mean(-1) for part in parts]
        found[str(context)] = [round(each, 3) for each in torch.cat(losses).tolist()]
    return found


def evaluate(model, windows, device):
    """The size of a model, and its loss by position."""
    losses = loss_by_position(model, windows, device).unflatten(0, (-1, BIN)).mean(-1)
    return {
        "parameters": sum(each.numel() for each in model.parameters()),
        "encoding_parameters": sum(each.numel() for each in model.encoding.parameters()),
        "loss_by_position": [round(each.item(), 4) for each in losses],
    }


def run(method, seed, device, updates=UPDATES, count=WINDOWS, each=WINDOWS_PER_FILE):
    """Train one model and evaluate it on the held-out windows."""
    model = trained(byte_decoder(method, seed), seed, device, updates)
    by_context = loss_by_context(model, windows_of_each_file(each), device)
    return evaluate(model, heldout_windows(count), device) | {"loss_by_context": by_context}


def provenance():
    return {"corpus": corpus.provenance()}
