"""The decoders that are trained on Markov chains, with one encoding for all layers or one for each.

window + NoPE layer    RoPE and a window of CLIP in the first layer; no positions in the second
forget gates           FoX's gates in each layer, and no positions
relative logits        Inkling's, up to CLIP back, in each layer

In the first layer a model can find what came before each state, in the second whether that was the present
one. Only the first needs to know order.
"""

from torch import nn

from experiments.encodings import Rope
from experiments.models import CLIP, DIM, HEADS, LAYERS, clamped_table, decoder, windowed
from snippets.block import Encoding
from snippets.forgetting import ForgetGates, forgetting_bias
from snippets.relative_logits import RelativeLogits
from snippets.rope import rope_frequencies
from snippets.temperature import log_temperature

STATES = 16
TRAIN_LENGTH, EVAL_LENGTH = 128, 1024
PROFILES = 8  # of relative logits
STRENGTH = 0.1  # of the temperature: that of the models that have it
ROPE_BASE, LARGE_BASE = 10_000.0, 500_000.0


class LayerWithEncoding(nn.Module):
    """A block with an encoding of its own, whatever the others have."""

    def __init__(self, block, encoding):
        super().__init__()
        self.block, self.encoding = block, encoding

    def forward(self, x, encoding, tables, query_positions, key_positions, mask, past=None):
        own = self.encoding
        reads = hasattr(own, "read")
        bias = (
            own.read(self.block.norms[0](x), query_positions)
            if reads
            else own.bias(query_positions, key_positions)
        )
        mask = mask if bias is None else mask + bias
        return self.block(x, own, own.tables(query_positions), query_positions, key_positions, mask, past)


class ForgetGated(Encoding):
    """The bias of a score depends on the content of the tokens between, by FoX's gates."""

    def __init__(self, heads):
        super().__init__()
        self.gates = ForgetGates(DIM, heads)

    def read(self, x, positions):
        return forgetting_bias(self.gates(x))


class WithRelativeLogits(Encoding):
    """The bias of a score depends on the content of the query, by Inkling's profiles."""

    def __init__(self, heads):
        super().__init__()
        self.logits = RelativeLogits(DIM, heads, PROFILES, CLIP)

    def read(self, x, positions):
        return self.logits(x, positions, positions)


class LogTemperature(Encoding):
    """No positions, but a temperature that grows with them past the training length, and is 1 before."""

    def tables(self, positions):
        return log_temperature(positions, TRAIN_LENGTH, STRENGTH, first=1, steps=False)

    def rotate(self, x, tables, role):
        return x * tables[:, None, :, None] if role == "query" else x


def in_each_layer(model, encodings):
    """The model with an encoding for each layer, and none for all."""
    blocks = zip(model.blocks, encodings, strict=True)
    model.blocks = nn.ModuleList(LayerWithEncoding(block, encoding) for block, encoding in blocks)
    return model


def rope(heads=HEADS, base=ROPE_BASE):
    return Rope(rope_frequencies(DIM // heads, base))


def window_and_nope(heads):
    return windowed(rope(heads), CLIP), Encoding()


def forget_gates(heads, layers=LAYERS):
    return [ForgetGated(heads) for _ in range(layers)]


def relative_logits(heads, layers=LAYERS):
    return [WithRelativeLogits(heads) for _ in range(layers)]


BY_LAYER = {
    "window + NoPE layer": window_and_nope,
    "forget gates": forget_gates,
    "relative logits": relative_logits,
}


def chain_decoder(name, seed, heads=HEADS, layers=LAYERS):
    """A decoder before training. Its weights outside the encoding depend on the seed and the sizes."""
    if name in BY_LAYER:
        plain = decoder("none", STATES, seed, EVAL_LENGTH, heads, layers)
        return in_each_layer(plain, BY_LAYER[name](heads))
    if name == "learned":
        model = decoder("none", STATES, seed, EVAL_LENGTH, heads, layers)
        model.encoding = clamped_table(TRAIN_LENGTH)
        return model
    return decoder(name, STATES, seed, EVAL_LENGTH, heads, layers)
