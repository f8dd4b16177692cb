"""Every method of the guide: what it does at the steps of one attention.

A method says what it does where it does something; all else is attention as
it is without positions. An entry of METHODS is all that a new method needs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from snippets.alibi import alibi_bias, alibi_slopes
from snippets.attention import scaled_dot_product
from snippets.axial_rope import (
    apply_axial_rope,
    axial_frequencies,
    axial_rope_tables,
)
from snippets.clipped_bias import ClippedBias
from snippets.cope import CopeScores
from snippets.deberta import DebertaScores
from snippets.fire import FireBias
from snippets.forgetting import ForgetGates, forgetting_bias
from snippets.fourier import FourierEncoding
from snippets.gated_encoding import AddGated
from snippets.kerple import KerpleLog
from snippets.learned import AddLearned
from snippets.local_global import LocalGlobal
from snippets.mrope import mrope_tables, pair_axes
from snippets.path_attention import PathProjection, path_scores
from snippets.relative_logits import RelativeLogits
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from snippets.rope_scaling import yarn, yarn_attention_factor
from snippets.sandwich import sandwich_bias
from snippets.shaw import ShawTables
from snippets.sinks import sink_softmax
from snippets.sinusoidal import AddSinusoidal, sinusoidal_encoding
from snippets.sinusoidal_2d import axial_sinusoids
from snippets.swin_bias import SwinBias
from snippets.t5_bias import T5Bias
from snippets.temperature import log_temperature, scale_queries
from snippets.transformer_xl import TransformerXLScores
from snippets.vit_table import AddGridTable, position_index
from snippets.xpos import apply_xpos, xpos_tables


class Sizes(NamedTuple):
    width: int
    heads: int
    length: int  # rows of a learned table
    threshold: float = 512.0  # from which place on FIRE and queries count

    @property
    def dim(self):
        return self.width // self.heads


@dataclass
class Method:
    """What it does at each step; a step that it leaves alone has a default.

    x is (tokens, width), q, k and v are (heads, tokens, dim), scores and
    weights (heads, queries, keys). at is where the tokens stand.
    """

    module: nn.Module | None = None  # what it learns
    add: Callable = lambda x, at: x
    turn: Callable = lambda x, at, role: x  # role is "query" or "key"
    score: Callable = lambda q, k, x, at: scaled_dot_product(q, k)
    # later keys have -inf
    weigh: Callable = lambda scores: scores.softmax(-1)
    take: Callable = lambda weights, v, at: weights @ v


class Steps(NamedTuple):
    x: Tensor
    q: Tensor
    k: Tensor
    v: Tensor
    scores: Tensor  # as the method gives them, before later keys are hidden
    weights: Tensor
    output: Tensor


def attend(method: Method, x: Tensor, at: Tensor, heads: int) -> Steps:
    """A causal attention in which a token's vector, as it comes in, is its
    query, its key and its value, cut into heads.
    """
    x = method.add(x, at)
    v = x.unflatten(-1, (heads, -1)).transpose(0, 1)
    q, k = (method.turn(v, at, role) for role in ("query", "key"))
    scores = method.score(q, k, x, at)
    later = scores.new_ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    weights = method.weigh(scores.masked_fill(later, -torch.inf))
    return Steps(x, q, k, v, scores, weights, method.take(weights, v, at))


def _drawn(module):
    """The same, with numbers in tables that start at zero and say nothing."""
    for table in module.parameters():
        if not table.any():
            nn.init.normal_(table)
    return module


def _added(module):
    return Method(module, add=module)


def _biased(bias, module=None):
    def score(q, k, x, at):
        return scaled_dot_product(q, k) + bias(at, at)

    return Method(module, score=score)


def _learned_bias(module):
    return _biased(_drawn(module), module)


def _rotated(frequencies, factor=1.0):
    def turn(x, at, role):
        tables = rope_tables(at, frequencies, x.dtype)
        return apply_rope(x, *(factor * table for table in tables), "half")

    return Method(turn=turn)


def _rope(sizes):
    return _rotated(rope_frequencies(sizes.dim, base=10000))


def _axial(sizes):
    def turn(x, at, role):
        w = axial_frequencies(sizes.dim, "each", base=100)
        return apply_axial_rope(x, *axial_rope_tables(at, w, x.dtype), "half")

    return Method(turn=turn)


def _mrope(sizes):
    pairs = sizes.dim // 2
    sections = [pairs - 2 * (pairs // 3), pairs // 3, pairs // 3]

    def turn(x, at, role):
        w = rope_frequencies(sizes.dim, base=10000)
        axes = pair_axes(sections, "interleaved")
        return apply_rope(x, *mrope_tables(at, w, axes, x.dtype), "half")

    return Method(turn=turn)


def _xpos(sizes):
    def turn(x, at, role):
        tables = xpos_tables(at, x.shape[-1], role, centre=0, dtype=x.dtype)
        return apply_xpos(x, *tables)

    return Method(turn=turn)


def _sandwich(sizes):
    return _biased(lambda i, j: sandwich_bias(i, j, sizes.heads))


def _swin(sizes):
    return _learned_bias(SwinBias(sizes.heads, (sizes.length, 8)))


def _alibi(sizes):
    slopes = alibi_slopes(sizes.heads)
    return _biased(lambda i, j: alibi_bias(i, j, slopes))


def _yarn(sizes, factor=4.0):
    plain = rope_frequencies(sizes.dim, base=10000)
    slower = yarn(plain, factor, sizes.length)
    return _rotated(slower, yarn_attention_factor(factor))


def _gated(sizes):
    def encode(at):
        return sinusoidal_encoding(at, sizes.width)

    return _added(_drawn(AddGated(sizes.width, encode)))


def _fourier(sizes):
    encode = FourierEncoding(2, sizes.width, 16, 16, gamma=3)
    return Method(encode, add=lambda x, at: x + encode(at.to(x.dtype)))


def _sinusoidal_2d(sizes):
    def add(x, at):
        waves = axial_sinusoids(
            *(at, sizes.width),
            order=(0, 1),
            layout="interleaved",
            base=10000,
            dtype=x.dtype,
        )
        return x + waves

    return Method(add=add)


def _vit_table(sizes):
    grid = (sizes.length, 8)
    table = AddGridTable(grid, sizes.width, extra=1, convention="bicubic")

    def add(x, at):
        return x + table.table[position_index(at, grid, extra=1)]

    return Method(_drawn(table), add=add)


def _shaw(sizes):
    shaw = ShawTables(sizes.dim, clip=16)

    def take(weights, v, at):
        return weights @ v + shaw.values(weights, at, at)

    return Method(
        shaw, score=lambda q, k, x, at: shaw(q, k, at, at), take=take
    )


def _transformer_xl(sizes):
    scores = TransformerXLScores(sizes.width, sizes.heads)
    return Method(scores, score=lambda q, k, x, at: scores(q, k))


def _deberta(sizes):
    scores = DebertaScores(sizes.width, sizes.heads, span=512)
    return Method(scores, score=lambda q, k, x, at: scores(q, k, at, at))


def _cope(sizes):
    scores = _drawn(CopeScores(sizes.dim, rows=64))
    return Method(scores, score=lambda q, k, x, at: scores(q, k))


def _local_global(sizes):
    scores = LocalGlobal(sizes.dim, window=4, width=4, far_buckets=4)
    return Method(scores, score=lambda q, k, x, at: scores(q, k, at, at))


def _relative_logits(sizes):
    relative = RelativeLogits(sizes.width, sizes.heads, 16, sizes.length)

    def score(q, k, x, at):
        return scaled_dot_product(q, k) + relative(x, at, at)

    return Method(relative, score=score)


def _forgetting(sizes):
    gates = ForgetGates(sizes.width, sizes.heads)

    def score(q, k, x, at):
        bias = forgetting_bias(gates(x), dtype=x.dtype)
        return scaled_dot_product(q, k) + bias

    return Method(gates, score=score)


def _path(sizes):
    turns = PathProjection(sizes.width, sizes.heads, sizes.dim)
    return Method(
        turns, score=lambda q, k, x, at: path_scores(q, k, *turns(x))
    )


def _temperature(sizes):
    def turn(x, at, role):
        if role == "key":
            return x
        start = int(sizes.threshold)
        factors = log_temperature(at, start, 0.1, first=1, steps=False)
        return scale_queries(x, factors)

    return Method(turn=turn)


def _sinks(sizes):
    sinks = nn.ParameterList([torch.randn(sizes.heads)])
    return Method(sinks, weigh=lambda scores: sink_softmax(scores, sinks[0]))


class Entry(NamedTuple):
    name: str
    chapter: str
    make: Callable[[Sizes], Method]  # with new random numbers in each call
    axes: int = 1  # coordinates of a place


# By snippet, each beside its relatives.
METHODS = {
    "none": Entry("no positions", "no-position.md", lambda _: Method()),
    "sinusoidal": Entry(
        *("sinusoidal", "sinusoidal.md"),
        lambda sizes: Method(add=AddSinusoidal(sizes.width)),
    ),
    "sinusoidal_2d": Entry(
        "sinusoidal, 2-D", "images.md", _sinusoidal_2d, axes=2
    ),
    "learned": Entry(
        *("learned table", "learned.md"),
        lambda sizes: _added(AddLearned(sizes.length, sizes.width)),
    ),
    "vit_table": Entry("table, 2-D", "images.md", _vit_table, axes=2),
    "fourier": Entry("Fourier", "sinusoidal.md", _fourier, axes=2),
    "gated_encoding": Entry("gated", "learned.md", _gated),
    "rope": Entry("RoPE", "rope.md", _rope),
    "rope_scaling": Entry("YaRN", "long-context.md", _yarn),
    "xpos": Entry("xPos", "long-context.md", _xpos),
    "axial_rope": Entry("axial RoPE", "images.md", _axial, axes=2),
    "mrope": Entry("M-RoPE", "images.md", _mrope, axes=3),
    "alibi": Entry("ALiBi", "bias.md", _alibi),
    "kerple": Entry(
        *("KERPLE", "bias.md"),
        lambda sizes: _learned_bias(KerpleLog(sizes.heads)),
    ),
    "fire": Entry(
        *("FIRE", "bias.md"),
        lambda sizes: _learned_bias(
            FireBias(sizes.heads, init_L=sizes.threshold)
        ),
    ),
    "sandwich": Entry("Sandwich", "bias.md", _sandwich),
    "t5_bias": Entry(
        *("T5", "relative.md"),
        lambda sizes: _learned_bias(T5Bias(sizes.heads)),
    ),
    "clipped_bias": Entry(
        *("clipped bias", "relative.md"),
        lambda sizes: _learned_bias(ClippedBias(sizes.heads, 128)),
    ),
    "swin_bias": Entry("Swin", "images.md", _swin, axes=2),
    "relative_logits": Entry("relative logits", "read.md", _relative_logits),
    "shaw": Entry("Shaw", "relative.md", _shaw),
    "local_global": Entry("local, global", "relative.md", _local_global),
    "transformer_xl": Entry("Transformer-XL", "relative.md", _transformer_xl),
    "deberta": Entry("DeBERTa", "relative.md", _deberta),
    "cope": Entry("CoPE", "read.md", _cope),
    "forgetting": Entry("forget gates", "read.md", _forgetting),
    "path_attention": Entry("PaTH", "read.md", _path),
    "temperature": Entry("temperature", "no-position.md", _temperature),
    "sinks": Entry("sinks", "no-position.md", _sinks),
}
