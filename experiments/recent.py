"""The chains of chains.py, with what is done today so that a model reads texts longer than it was trained on.

    window and none        RoPE and a window in the first layer, no positions in the second, which sees all
    sharper                the same model, its second layer asked with a temperature that grows with place
    scattered places       RoPE, trained at places drawn at random from ASKED and put in order
    larger base            RoPE with BASE
    dropped                RoPE, then some more updates without it
    forgetting             gates of FoX, and no positions
    relative logits        Inkling's, up to CLIP back
    RoPE on long texts     trained at the length that is asked about: what such a model can come to

In the first layer a model can find what came before each state, in the second whether that was the present
one. Only the first needs to know order.
"""

import torch
from torch import nn

from experiments.chains import STATES, TEXTS, asked, asked_about, by_band, draw
from experiments.chains import provenance as provenance
from experiments.encodings import Rope
from experiments.regimes import ASKED, CLIP, DIM, HEADS, TRAINED, UPDATES, decoder, sizes, train, windowed
from snippets.block import Encoding
from snippets.forgetting import ForgetGates, forgetting_bias
from snippets.relative_logits import RelativeLogits
from snippets.rope import rope_frequencies
from snippets.temperature import log_temperature

BASE = 500_000.0
MORE = 600  # updates without positions, after UPDATES with them
AGAIN = 1000  # added to the seed of the texts of those updates
PROFILES = 8
STRENGTH = 0.1  # of the temperature: that of the models that have it


class Layer(nn.Module):
    """A block with an encoding of its own, whatever the others have."""

    def __init__(self, block, encoding):
        super().__init__()
        self.block, self.encoding = block, encoding

    def forward(self, x, encoding, tables, at, keys, mask, past=None):
        own = self.encoding
        reads = hasattr(own, "read")
        bias = own.read(self.block.norms[0](x), at) if reads else own.bias(at, keys)
        mask = mask if bias is None else mask + bias
        return self.block(x, own, own.tables(at), at, keys, mask, past)


class Gated(Encoding):
    """What is added to scores depends on what the queries are made of, by gates of FoX."""

    def __init__(self):
        super().__init__()
        self.gates = ForgetGates(DIM, HEADS)

    def read(self, x, at):
        return forgetting_bias(self.gates(x))


class Mixed(Encoding):
    """What is added to scores depends on what the queries are made of, by Inkling's profiles."""

    def __init__(self):
        super().__init__()
        self.logits = RelativeLogits(DIM, HEADS, PROFILES, CLIP)

    def read(self, x, at):
        return self.logits(x, at, at)


class Sharper(Encoding):
    """No positions, but a temperature: nothing changes before the trained length."""

    def tables(self, positions):
        return log_temperature(positions, TRAINED, STRENGTH, first=1, steps=False)

    def rotate(self, x, tables, role):
        return x * tables[:, None, :, None] if role == "query" else x


class Scattered(Rope):
    """RoPE; in training, places keep their order and are drawn from ASKED."""

    def tables(self, positions):
        if self.training:
            drawn = torch.randperm(ASKED)[: positions.shape[-1]].sort().values
            positions = drawn[None].to(positions.device)
        return super().tables(positions)


def layered(model, encodings):
    """The model with an encoding for each layer, and none for all."""
    blocks = zip(model.blocks, encodings, strict=True)
    model.blocks = nn.ModuleList(Layer(block, encoding) for block, encoding in blocks)
    return model


def rope(base=10000):
    return Rope(rope_frequencies(DIM // HEADS, base))


def window_and_none():
    return windowed(rope(), CLIP), Encoding()


def scattered_places():
    return Scattered(rope_frequencies(DIM // HEADS, base=10000))


def larger_base():
    return rope(BASE)


def forgetting():
    return Gated(), Gated()


def relative_logits():
    return Mixed(), Mixed()


ENCODINGS = {
    "window and none": window_and_none,
    "scattered places": scattered_places,
    "larger base": larger_base,
    "forgetting": forgetting,
    "relative logits": relative_logits,
}


def begun(name, seed):
    """The decoder before its training. Weights are those of chains.py, but for those of its encoding."""
    model = decoder("RoPE" if name in ("dropped", "RoPE") else "none", STATES, seed)
    made = ENCODINGS[name]() if name in ENCODINGS else model.encoding
    if isinstance(made, tuple):
        return layered(model, made)
    model.encoding = made
    return model


def run(method, seed, device, updates=UPDATES, more=MORE, count=TEXTS):
    """Train one model and ask how far it is from the best possible, as it is and, if it can be, sharper."""
    name, batch, length = sizes(method)
    texts = draw(updates * batch, length + 1, seed)
    model = train(begun(name, seed), texts.split(batch), updates, device)
    if name == "dropped":
        model.encoding = Encoding()
        texts = draw(more * batch, length + 1, AGAIN + seed)
        model = train(model, texts.split(batch), more, device)
    found = {str(ASKED): by_band(asked_about(model, asked(count), device))}
    if name == "window and none":
        model.blocks[-1].encoding = Sharper()
        found["sharper"] = by_band(asked_about(model, asked(count), device))
    return {"above": found}
