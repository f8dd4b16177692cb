"""The small decoder of the experiments, its loss, and the training of every model."""

import copy
import math

import torch
from torch.nn.functional import cross_entropy

from experiments.encodings import Added, make
from snippets.block import Decoder, Encoding

DIM, HEADS, LAYERS, CLIP = 64, 4, 2, 32


def decoder(name, vocabulary, seed, table_rows, heads=HEADS, layers=LAYERS):
    """A decoder with the encoding of that name; all its other weights depend on the seed and the sizes alone.

    Args:
        table_rows: Rows of the learned table, and the length that a fade is made for.
    """
    torch.manual_seed(seed)
    made = Decoder(Encoding(), vocabulary, DIM, heads, layers, scale=DIM**0.5)
    made.encoding = make(name, DIM, heads, table_rows, CLIP)
    return made


def clamped_table(rows):
    """A learned table of so many rows; every position past its end gets the last one, which was trained."""
    from snippets.learned import AddLearned

    table = AddLearned(rows, DIM)
    encoding = Added(lambda x, positions: table(x, positions.clamp(max=rows - 1)))
    encoding.table = table
    return encoding


def windowed(encoding, window):
    """The same encoding with the same parameters; a query sees no key at this distance or farther."""

    def bias(query_positions, key_positions):
        plain = encoding.bias(query_positions, key_positions)
        hidden = query_positions[:, None, :, None] - key_positions[:, None, None, :] >= window
        plain = torch.zeros((), device=query_positions.device) if plain is None else plain
        return plain.masked_fill(hidden, -math.inf)

    narrow = copy.copy(encoding)
    narrow.bias = bias
    return narrow


def logits(model, tokens):
    """The logits of the token after each of these: (batch, length) to (batch, length, vocabulary)."""
    positions = torch.arange(tokens.shape[1], device=tokens.device)[None]
    return model(tokens, positions, torch.ones_like(positions))[0]


def next_token_losses(model, texts):
    """The loss at each position, in nats: (batch, length - 1)."""
    scores = logits(model, texts[:, :-1])
    losses = cross_entropy(scores.flatten(0, 1), texts[:, 1:].flatten(), reduction="none")
    return losses.view(len(texts), -1)


def mean_loss(model, texts):
    return next_token_losses(model, texts).mean()


def train(model, batches, device, updates, learning_rate, loss=mean_loss):
    """Train a model on each batch once, with AdamW and OneCycleLR; returns it in evaluation mode.

    Args:
        batches: Yields a tuple of tensors for each update.
        loss: Takes the model and the tensors of a batch, and returns a scalar.
    """
    model.to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), learning_rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, learning_rate, updates, pct_start=0.1)
    for batch in batches:
        value = loss(model, *(each.to(device) for each in batch))
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        schedule.step()
    return model.eval()
