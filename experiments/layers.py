"""Which layer of the models of chains.py needs order, and which breaks on long texts?

Two methods are new here, and have RoPE in the first layer:

    window + RoPE layer   a window in the first layer, RoPE in the second
    RoPE + NoPE layer     no window, and no positions in the second

With these, RoPE in both layers and "window + NoPE layer" of chains.py, the effects of the window and of the
layer without positions are distinguished.

A patch changes the encoding of one layer at test time, with nothing retrained:

    no positions   the layer has no positions, and sees all
    shifted        to its queries every key seems one position farther back than it is
    32, 128        it sees no more than so many states
"""

from experiments.chain_models import (
    EVAL_LENGTH,
    STATES,
    TRAIN_LENGTH,
    chain_decoder,
    in_each_layer,
    rope,
    window_and_nope,
)
from experiments.chains import EVAL_TEXTS, UPDATES, evaluate, trained
from experiments.chains import provenance as provenance
from experiments.encodings import Counted
from experiments.models import CLIP, HEADS, decoder, windowed
from snippets.block import Encoding

BY_LAYER = {
    "window + NoPE layer": lambda: window_and_nope(HEADS),
    "window + RoPE layer": lambda: (windowed(rope(), CLIP), rope()),
    "RoPE + NoPE layer": lambda: (rope(), Encoding()),
}


class Shifted(Encoding):
    """Another encoding, to whose queries each key seems to stand one position farther back than it does."""

    def __init__(self, encoding):
        super().__init__()
        self.encoding = encoding

    def tables(self, positions):
        return {"query": self.encoding.tables(positions + 1), "key": self.encoding.tables(positions)}

    def rotate(self, x, tables, role):
        return self.encoding.rotate(x, tables[role], role)

    def bias(self, query_positions, key_positions):
        return self.encoding.bias(query_positions + 1, key_positions)

    def score(self, q, k, query_positions, key_positions):
        return self.encoding.score(q, k, query_positions + 1, key_positions)


def patches(encoding):
    """What a layer can have instead of its encoding, by name. What counts rows has no positions to shift."""
    found = {"no positions": Encoding(), "shifted": Shifted(encoding)}
    if isinstance(encoding, Counted):
        del found["shifted"]
    return found | {str(window): windowed(encoding, window) for window in (CLIP, TRAIN_LENGTH)}


def layered_decoder(name, seed):
    """The decoder before training. Its weights outside the encoding are those of chains.py."""
    if name in BY_LAYER:
        return in_each_layer(decoder("none", STATES, seed, EVAL_LENGTH), BY_LAYER[name]())
    return chain_decoder(name, seed)


def split_by_layer(model):
    """The same model, whose layers can be patched one by one: each holds the encoding of all."""
    encoding, model.encoding = model.encoding, Encoding()
    return in_each_layer(model, [encoding] * len(model.blocks))


def run(method, seed, device, updates=UPDATES, count=EVAL_TEXTS):
    """Train one model, and evaluate it as it is and with each patch of each layer."""
    model = trained(layered_decoder(method, seed), seed, device, updates)
    if method not in BY_LAYER:
        model = split_by_layer(model)
    found = {str(EVAL_LENGTH): evaluate(model, device, count)}
    for name, layer in zip(("first", "second"), model.blocks, strict=True):
        own = layer.encoding
        for patch, encoding in patches(own).items():
            layer.encoding = encoding.to(device)
            found[f"{name} {patch}"] = evaluate(model, device, count)
        layer.encoding = own
    return {"excess_loss": found}
