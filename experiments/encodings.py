"""Every encoding of the guide behind one switch, for snippets/block.py."""

from torch import Tensor, nn

from snippets import (
    alibi,
    clipped_bias,
    cope,
    deberta,
    fire,
    kerple,
    learned,
    rope,
    sandwich,
    shaw,
    sinusoidal,
    t5_bias,
    transformer_xl,
    xpos,
)
from snippets.block import Encoding

# The files that each encoding uses and the others do not.
SNIPPETS = {
    "none": (),
    "sinusoidal": (sinusoidal,),
    "learned": (learned,),
    "RoPE": (rope,),
    "xPos": (xpos,),
    "ALiBi": (alibi,),
    "T5": (t5_bias,),
    "clipped bias": (clipped_bias,),
    "KERPLE": (kerple,),
    "FIRE": (fire,),
    "Sandwich": (sandwich,),
    "Shaw": (shaw,),
    "DeBERTa": (deberta,),
    "Transformer-XL": (transformer_xl,),
    "CoPE": (cope,),
}


class Added(Encoding):
    def __init__(self, add):
        super().__init__()
        self.add = add

    def embed(self, x, positions):
        return self.add(x, positions)


class Rope(Encoding):
    def __init__(self, frequencies: Tensor, temperature=1.0):
        super().__init__()
        self.register_buffer("frequencies", frequencies, persistent=False)
        self.temperature = temperature

    def rotate(self, x, positions, role):
        turned = rope.apply_rope(x, positions[:, None], self.frequencies, "half")
        return self.temperature * turned


class Xpos(Encoding):
    def rotate(self, x, positions, role):
        return xpos.apply_xpos(x, positions[:, None], role, centre=0)


class Biased(Encoding):
    def __init__(self, make):
        super().__init__()
        self.make = make

    def bias(self, query_positions, key_positions):
        return self.make(query_positions, key_positions)


class Alike(Encoding):
    """The bias of one row for all: in batches whose rows have the same positions."""

    def __init__(self, biased):
        super().__init__()
        self.biased = biased

    def bias(self, query_positions, key_positions):
        return self.biased.bias(query_positions[:1], key_positions[:1])


class Scored(Encoding):
    def __init__(self, scores):
        super().__init__()
        self.scores = scores

    def score(self, q, k, query_positions, key_positions):
        return self.scores(q, k, query_positions, key_positions)


class Counted(Scored):  # by rows: it takes no positions
    def score(self, q, k, query_positions, key_positions):
        return self.scores(q, k)


class ShawKeys(Encoding):  # Shaw's second table, for values, has no door
    def __init__(self, clip, width):
        super().__init__()
        self.table = nn.Parameter(nn.init.xavier_uniform_(Tensor(2 * clip + 1, width)))

    def score(self, q, k, query_positions, key_positions):
        return shaw.shaw_scores(q, k, self.table, query_positions, key_positions)


def switch(dim, heads, length, clip):
    """How to make each encoding, by name.

    length is the rows of the learned table; clip the distance, or the count,
    from which on a method with a table of distances or counts has one row for all.
    """
    width = dim // heads

    def alibi_of_heads(query_positions, key_positions):
        return alibi.alibi_bias(query_positions, key_positions, heads)

    def sandwich_of_heads(query_positions, key_positions):
        return sandwich.sandwich_bias(query_positions, key_positions, heads)

    return {
        "none": Encoding,
        "sinusoidal": lambda: Added(sinusoidal.AddSinusoidal(dim)),
        "learned": lambda: Added(learned.AddLearned(length, dim)),
        "RoPE": lambda: Rope(rope.rope_frequencies(width)),
        "xPos": Xpos,
        "ALiBi": lambda: Biased(alibi_of_heads),
        "T5": lambda: Biased(t5_bias.T5Bias(heads, bidirectional=False)),
        "clipped bias": lambda: Biased(clipped_bias.ClippedBias(heads, clip)),
        "KERPLE": lambda: Biased(kerple.KerpleLog(heads)),
        "FIRE": lambda: Biased(fire.FireBias(heads)),
        "Sandwich": lambda: Biased(sandwich_of_heads),
        "Shaw": lambda: ShawKeys(clip, width),
        "DeBERTa": lambda: Scored(deberta.DebertaScores(dim, heads, clip)),
        "Transformer-XL": lambda: Counted(transformer_xl.TransformerXLScores(dim, heads)),
        "CoPE": lambda: Counted(cope.CopeScores(width, clip)),
    }


def alike(encoding):
    """The same encoding, quicker where all rows of a batch have the same positions."""
    return Alike(encoding) if isinstance(encoding, Biased) else encoding
