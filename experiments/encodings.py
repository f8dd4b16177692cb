"""Every encoding of the guide behind one switch, for snippets/block.py.

Each has a function of its own, which imports what it needs, so that a new one changes nothing that
an old result was made with.
"""

import functools
import re
from typing import NamedTuple

from torch import Tensor, nn

from experiments.runs import plan
from snippets.block import Encoding
from snippets.rope import apply_rope, rope_frequencies, rope_tables


class Sizes(NamedTuple):
    dim: int
    heads: int
    length: int  # rows of the learned table
    clip: int  # the distance, or the count, from which on a table has one row for all

    @property
    def width(self):
        return self.dim // self.heads


def make(name, dim, heads, length, clip):
    """The encoding of that name: "RoPE" is made by rope, "clipped bias" by clipped_bias."""
    return globals()[re.sub(r"\W", "_", name.lower())](Sizes(dim, heads, length, clip))


def switch(dim, heads, length, clip):
    """How to make each encoding of the guide, by name."""
    names = plan()["language"]["methods"]
    return {name: functools.partial(make, name, dim, heads, length, clip) for name in names}


class Added(Encoding):
    def __init__(self, add):
        super().__init__()
        self.add = add

    def embed(self, x, positions):
        return self.add(x, positions)


class Rope(Encoding):
    def __init__(self, frequencies: Tensor, temperature=1.0):
        super().__init__()
        # A buffer is right here: nothing is cast to bfloat16 or begun on meta.
        # Where frequencies are kept otherwise: the page of rope.py.
        self.register_buffer("frequencies", frequencies, persistent=False)
        self.temperature = temperature

    def tables(self, positions):
        cos, sin = rope_tables(positions, self.frequencies)
        return self.temperature * cos, self.temperature * sin

    def rotate(self, x, tables, role):
        return apply_rope(x, *tables, "half")


class Biased(Encoding):
    def __init__(self, make):
        super().__init__()
        self.make = make

    def bias(self, query_positions, key_positions):
        return self.make(query_positions, key_positions)


class Scored(Encoding):
    def __init__(self, scores):
        super().__init__()
        self.scores = scores

    def score(self, q, k, query_positions, key_positions):
        return self.scores(q, k, query_positions, key_positions)


class Counted(Scored):  # by rows: it takes no positions
    def score(self, q, k, query_positions, key_positions):
        return self.scores(q, k)


def none(sizes):
    return Encoding()


def sinusoidal(sizes):
    from snippets.sinusoidal import AddSinusoidal

    return Added(AddSinusoidal(sizes.dim))


def learned(sizes):
    from snippets.learned import AddLearned

    return Added(AddLearned(sizes.length, sizes.dim))


def rope(sizes):
    return Rope(rope_frequencies(sizes.width, base=10000))


def xpos(sizes):
    from snippets.xpos import apply_xpos, xpos_tables

    half = sizes.length / 16  # of the trained length, of which the learned table has eight times as many rows

    class Xpos(Encoding):
        def tables(self, positions):
            roles = ("query", "key")
            return {
                role: xpos_tables(positions, sizes.width, role, centre=0, scale_base=half) for role in roles
            }

        def rotate(self, x, tables, role):
            return apply_xpos(x, *tables[role])

    return Xpos()


def alibi(sizes):
    from snippets.alibi import alibi_bias, alibi_slopes

    return Biased(lambda at, keys: alibi_bias(at, keys, alibi_slopes(sizes.heads, at.device)))


def t5(sizes):
    from snippets.t5_bias import T5Bias

    return Biased(T5Bias(sizes.heads, bidirectional=False))


def clipped_bias(sizes):
    from snippets.clipped_bias import ClippedBias

    return Biased(ClippedBias(sizes.heads, sizes.clip))


def kerple(sizes):
    from snippets.kerple import KerpleLog

    return Biased(KerpleLog(sizes.heads))


def fire(sizes):
    from snippets.fire import FireBias

    return Biased(FireBias(sizes.heads))


def sandwich(sizes):
    from snippets.sandwich import sandwich_bias

    return Biased(lambda at, keys: sandwich_bias(at, keys, sizes.heads))


def shaw(sizes):
    from snippets.shaw import shaw_scores

    class Shaw(Encoding):  # its second table, for values, has no door
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(nn.init.xavier_uniform_(Tensor(2 * sizes.clip + 1, sizes.width)))

        def score(self, q, k, query_positions, key_positions):
            return shaw_scores(q, k, self.table, query_positions, key_positions)

    return Shaw()


def deberta(sizes):
    from snippets.deberta import DebertaScores

    return Scored(DebertaScores(sizes.dim, sizes.heads, sizes.clip))


def transformer_xl(sizes):
    from snippets.transformer_xl import TransformerXLScores

    return Counted(TransformerXLScores(sizes.dim, sizes.heads))


def cope(sizes):
    from snippets.cope import CopeScores

    return Counted(CopeScores(sizes.width, sizes.clip))
