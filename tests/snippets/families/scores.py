"""The scores: one line for each module that takes the place of the scaled dot product."""

from collections.abc import Callable
from typing import NamedTuple

import torch

from snippets.cope import CopeScores
from snippets.deberta import DebertaScores
from snippets.local_global import LocalGlobal
from snippets.shaw import ShawTables
from snippets.transformer_xl import TransformerXLScores

HEADS, DIM = 4, 6


class Scores(NamedTuple):
    snippet: str
    make: Callable  # a module for q and k of HEADS heads, each DIM wide
    learned: dict  # shapes by name, as a checkpoint has them
    positions: bool = True  # takes those of queries and keys
    lends: bool = True  # k may lack leading axes of q, or have 1


def filled(kind, *sizes):
    """A module whose numbers are not those it starts with."""

    def make(dtype=torch.float64):
        module = kind(*sizes)
        for parameter in module.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
        return module.to(dtype)

    return make


def called(scores, made, i, j):
    """The score for attention of tokens at these positions."""
    return (lambda q, k: made(q, k, i, j)) if scores.positions else made


WIDTH = HEADS * DIM
DEBERTA = {"table": (8, WIDTH), **{f"project_{of}.weight": (WIDTH, WIDTH) for of in ("key", "query")}}
XL = {"u": (HEADS, DIM), "v": (HEADS, DIM), "project.weight": (WIDTH, WIDTH)}

SCORES = {
    "shaw": Scores("shaw", filled(ShawTables, DIM, 2), dict.fromkeys(["key_table", "value_table"], (5, DIM))),
    "deberta": Scores("deberta", filled(DebertaScores, WIDTH, HEADS, 4), DEBERTA, lends=False),
    "deberta in buckets": Scores("deberta", filled(DebertaScores, WIDTH, HEADS, 4, 9), DEBERTA, lends=False),
    "transformer-xl": Scores("transformer_xl", filled(TransformerXLScores, WIDTH, HEADS), XL, False, False),
    "cope": Scores("cope", filled(CopeScores, DIM, 5), {"table": (5, DIM)}, positions=False),
    "local and global": Scores(
        "local_global",
        filled(LocalGlobal, DIM, 2, 3, 3),
        {"local_table": (5, DIM), "global_table": (2, 3, DIM)},
    ),
}
