"""What does each layer of a model of chains need? Two more models, and patches of trained ones.

    window and RoPE     RoPE in both layers, the first sees as far as in recent.py
    RoPE and none       RoPE in the first layer, which sees all, no positions in the second

With these, RoPE in both layers and "window and none" of recent.py, window and bare layer are told apart.

A patch changes what one layer is told of positions, at test time, with nothing retrained:

    nothing      it is told nothing, and sees all
    shifted      to its queries every key seems one place farther back than it is
    32, 128      it sees no more than so many states
"""

from experiments.chains import STATES, TEXTS, asked, asked_about, by_band, draw
from experiments.chains import provenance as provenance
from experiments.encodings import Counted
from experiments.recent import layered, rope, window_and_none
from experiments.regimes import ASKED, BATCH, CLIP, TRAINED, UPDATES, decoder, train, windowed
from snippets.block import Encoding

LAYERED = {
    "window and none": window_and_none,
    "window and RoPE": lambda: (windowed(rope(), CLIP), rope()),
    "RoPE and none": lambda: (rope(), Encoding()),
}


class Shifted(Encoding):
    """Another encoding, to whose queries each key seems to stand one place farther back than it does."""

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
    """What a layer can have instead of its encoding, by name. Who counts rows takes no places to shift."""
    found = {"nothing": Encoding(), "shifted": Shifted(encoding)}
    if isinstance(encoding, Counted):
        del found["shifted"]
    return found | {str(window): windowed(encoding, window) for window in (CLIP, TRAINED)}


def begun(name, seed):
    """The decoder before its training. Weights are those of chains.py, but for those of its encoding."""
    if name in LAYERED:
        return layered(decoder("none", STATES, seed), LAYERED[name]())
    return decoder(name, STATES, seed)


def parted(model):
    """The same model, whose layers can be patched one by one: each holds the encoding of all."""
    encoding, model.encoding = model.encoding, Encoding()
    return layered(model, [encoding] * len(model.blocks))


def run(method, seed, device, updates=UPDATES, count=TEXTS):
    """Train one model; how far it is from the best possible, as it is and with each patch of each layer."""
    texts = draw(updates * BATCH, TRAINED + 1, seed)
    model = train(begun(method, seed), texts.split(BATCH), updates, device)
    if method not in LAYERED:
        model = parted(model)
    found = {str(ASKED): by_band(asked_about(model, asked(count), device))}
    for name, layer in zip(("first", "second"), model.blocks, strict=True):
        own = layer.encoding
        for patch, encoding in patches(own).items():
            layer.encoding = encoding.to(device)
            found[f"{name} {patch}"] = by_band(asked_about(model, asked(count), device))
        layer.encoding = own
    return {"above": found}
