"""A translator of dates, from German to American English.

An encoder reads "21. November 2026", a decoder writes "November 21, 2026". In
four styles, from "21.11.26" on, day and month are swapped, zeros are dropped
and numbers become names. Each digit is a token, so that nothing but order tells
a day from a month.

Every encoding of position meets the same initial weights and the same dates in
the same order. What it writes for dates never trained on is right only if all
of it is.
"""

import babel
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from experiments.dates import (
    END,
    LONGEST,
    PAD,
    START,
    STYLES,
    batch,
    items,
    mirrored,
    tokens,
    vocabulary,
)
from experiments.encodings import Biased, make
from experiments.models import train
from snippets.alibi import alibi_bias_symmetric, alibi_slopes
from snippets.block import Block, Encoding, additive_mask
from snippets.decoding import attention_mask, document_positions
from snippets.t5_bias import T5Bias

DIM, HEADS, LAYERS, CLIP = 64, 4, 2, 16
BATCH_SIZE, UPDATES, LEARNING_RATE = 32, 500, 3e-3
HELD_OUT, MIRRORED, SHOWN = 400, 200, 8  # dates translated, and kept


HALVES = {  # method: encoding of the encoder, of the decoder; of others the same
    "RoPE in the encoder only": ("RoPE", "none"),
    "RoPE in the decoder only": ("none", "RoPE"),
}


def decoding(name):
    return make(name, DIM, HEADS, LONGEST, CLIP)


def encoding(name):
    """A decoder looks back. An encoder looks both ways: for that T5 has a form
    of its own, and ALiBi one that is not in its paper."""
    if name == "T5":
        return Biased(T5Bias(HEADS))
    if name == "ALiBi":
        slopes = alibi_slopes(HEADS)
        return Biased(lambda at, keys: alibi_bias_symmetric(at, keys, slopes.to(at.device)))
    return decoding(name)


class Look(nn.Module):
    """Cross-attention, added to x. It is told no positions."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(dim)
        self.query = nn.Linear(dim, dim, bias=False)
        self.project = nn.Linear(dim, 2 * dim, bias=False)
        self.merge = nn.Linear(dim, dim, bias=False)

    def forward(self, x, memory, seen):
        """x (batch, queries, dim) looks at memory (batch, keys, dim).

        The new x and the weights, (batch, heads, queries, keys).
        """
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in (
                self.query(self.norm(x)),
                *self.project(memory).chunk(2, -1),
            )
        )
        scores = q @ k.mT / q.shape[-1] ** 0.5
        scores = scores.masked_fill(~seen[:, None], -torch.inf)
        weights = scores.softmax(-1)
        each = (weights @ v).transpose(1, 2).flatten(-2)
        return x + self.merge(each), weights


class Translator(nn.Module):
    """An encoder of whole blocks, and a decoder that looks at it after each.

    source and target are the encodings of position of the two.
    """

    def __init__(self, size, dim=DIM, heads=HEADS, layers=LAYERS):
        super().__init__()
        self.source, self.target = Encoding(), Encoding()
        self.tokens = nn.Embedding(size, dim)
        nn.init.normal_(self.tokens.weight, std=dim**-0.5)
        self.readers = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.writers = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.looks = nn.ModuleList(Look(dim, heads) for _ in range(layers))
        self.norms = nn.ModuleList([nn.LayerNorm(dim), nn.LayerNorm(dim)])

    def enter(self, ids, encoding, causal):
        """What a stack begins with, x (batch, tokens, dim), and what each of
        its blocks is told of positions."""
        documents = (ids != PAD).long()  # padding is a document of its own
        positions = document_positions(documents)
        pairs = positions, positions, documents, documents
        scale = self.tokens.embedding_dim**0.5
        x = encoding.embed(scale * self.tokens(ids), positions)
        bias, tables = encoding.bias(*pairs[:2]), encoding.tables(positions)
        mask = additive_mask(attention_mask(*pairs, causal=causal), bias)
        return x, (encoding, tables, positions, positions, mask)

    def encode(self, ids):
        """German ids (batch, keys) to their memory, (batch, keys, dim)."""
        x, told = self.enter(ids, self.source, causal=False)
        for block in self.readers:
            x, _ = block(x, *told)
        return self.norms[0](x)

    def decode(self, ids, memory, source):
        """English ids (batch, queries) to scores of the token after each,
        (batch, queries, vocabulary), and the last look's weights."""
        x, told = self.enter(ids, self.target, causal=True)
        there = (source != PAD)[:, None].expand(-1, ids.shape[1], -1)
        for block, look in zip(self.writers, self.looks, strict=True):
            x, _ = block(x, *told)
            x, weights = look(x, memory, there)
        return self.norms[1](x) @ self.tokens.weight.T, weights

    def forward(self, source, target):
        return self.decode(target, self.encode(source), source)


def translator(method, seed):
    """A translator whose weights, but for those of its encodings, are the same
    for every method."""
    torch.manual_seed(seed)
    made = Translator(len(vocabulary()))
    source, target = HALVES.get(method, (method, method))
    made.source, made.target = encoding(source), decoding(target)
    return made


def batches(seed, updates):
    """Random dates, in an order that the seed decides."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(updates):
        german, english = zip(*items(BATCH_SIZE, False, generator), strict=True)
        yield batch(german), batch(english, [START], [END])


def translation_loss(model, source, target):
    scores, _ = model(source, target[:, :-1])
    return cross_entropy(scores.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD)


@torch.no_grad()
def translate(model, german, device):
    """The best next token, again and again until END: a text for each."""
    source = batch(german).to(device)
    memory = model.encode(source)
    ids = torch.full((len(german), 1), START, device=device)
    while ids.shape[1] < LONGEST and not (ids == END).any(-1).all():
        scores, _ = model.decode(ids, memory, source)
        ids = torch.cat((ids, scores[:, -1:].argmax(-1)), -1)
    said = []
    for row in ids.tolist():
        row = row[: row.index(END)] if END in row else row
        said.append("".join(vocabulary()[id] for id in row))
    return said


def fraction(right):
    return round(sum(right) / len(right), 4)


@torch.no_grad()
def looks(model, german, english, device):
    """Where the next token of the right translation is looked for, in percent:
    a line of whole numbers for each, the mean over the last layer's heads."""
    ids = batch([german]).to(device), batch([english], [START]).to(device)
    weights = 100 * model(*ids)[1][0].mean(0)  # (queries, keys)
    rows = weights.round().int().tolist()
    return {
        "source": tokens(german),
        "target": [*tokens(english), "end"],
        "percent": [" ".join(map(str, row)) for row in rows],
    }


def run(method, seed, device, updates=UPDATES, held_out=HELD_OUT):
    """Train one translator and count what it translates without a mistake."""
    model = translator(method, seed)
    train(model, batches(seed, updates), device, updates, LEARNING_RATE, translation_loss)

    def translated(dates):
        german, english = zip(*dates, strict=True)
        said = translate(model, german, device)
        right = [a == b for a, b in zip(said, english, strict=True)]
        return list(zip(german, said, english, strict=True)), right

    dates = items(held_out, True, torch.Generator().manual_seed(0))
    translations, right = translated(dates)
    by_style = {style: fraction(right[n :: len(STYLES)]) for n, style in enumerate(STYLES)}
    result = {
        "parameters": sum(each.numel() for each in model.parameters()),
        "exact": fraction(right),
        "by_style": by_style,
        "mirrored": fraction(translated(mirrored(MIRRORED))[1]),
        "translations": translations[:SHOWN],
    }
    if seed == 0:
        result["looks"] = looks(model, *dates[SHOWN - 1], device)
    return result


def provenance():
    return {"babel": babel.__version__}
