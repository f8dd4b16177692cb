"""The scores: one line for each module that takes the place of the scaled dot product."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch

from snippets.cope import CopeScores, cope_scores, cope_scores_compiled
from snippets.deberta import (
    DebertaScores,
    deberta_scores,
    deberta_scores_consecutive,
    log_buckets,
)
from snippets.forgetting import ForgetGates, forgetting_bias, wall_scores
from snippets.local_global import (
    LocalGlobal,
    local_global_index,
    local_global_scores,
    local_global_scores_consecutive,
)
from snippets.path_attention import PathProjection, path_keys, path_scores
from snippets.relative_logits import RelativeLogits, clip_norm, relative_logits
from snippets.shaw import (
    ShawTables,
    shaw_scores,
    shaw_scores_consecutive,
    shaw_values,
    shaw_values_consecutive,
)
from snippets.transformer_xl import (
    TransformerXLScores,
    relative_shift,
    transformer_xl_scores,
)
from tests.snippets.fitness import Case

HEADS, DIM = 6, 8


class Scores(NamedTuple):
    snippet: str
    make: Callable  # a module for q and k of HEADS heads, each DIM wide
    positions: bool = True  # takes those of queries and keys
    lends: bool = True  # k may lack leading axes of q, or have 1


def filled(kind, *sizes):
    """A module whose numbers are not those it starts with."""

    def make(dtype=torch.float64):
        module = kind(*sizes)
        for parameter in module.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
        return module.to(dtype)

    make.kind = kind
    return make


def called(scores, made, i, j):
    """The score for attention of tokens at these positions."""
    return (lambda q, k: made(q, k, i, j)) if scores.positions else made


WIDTH = HEADS * DIM
SCORES = {
    "shaw": Scores("shaw", filled(ShawTables, DIM, 2)),
    "deberta": Scores("deberta", filled(DebertaScores, WIDTH, HEADS, 4), lends=False),
    "deberta in buckets": Scores("deberta", filled(DebertaScores, WIDTH, HEADS, 4, 9), lends=False),
    "transformer-xl": Scores("transformer_xl", filled(TransformerXLScores, WIDTH, HEADS), False, False),
    "cope": Scores("cope", filled(CopeScores, DIM, 5), positions=False),
    "local and global": Scores("local_global", filled(LocalGlobal, DIM, 2, 3, 3)),
}


# --- what each supports, as test_fitness.py asks


class Shares(torch.nn.Module):
    """Later keys as zero, for minus infinity has no gradient, and what is added to the output."""

    def __init__(self, scores):
        super().__init__()
        self.scores = scores

    def forward(self, q, k, *positions):
        weights = self.scores(q, k, *positions).sigmoid()
        if hasattr(self.scores, "values"):
            return torch.cat((weights, self.scores.values(weights, *positions)), -1)
        return weights


def shares(scores):
    return Shares(scores.make(torch.float32))


def vectors(heads, *shapes, place=True):
    """q, fewer or as many heads of k, tensors of these shapes, and positions."""

    def make(batch, tokens):
        q, k = torch.randn(batch, HEADS, tokens, DIM), torch.randn(batch, heads, tokens + 2, DIM)
        at = torch.randint(0, 30, (batch, tokens)), torch.randint(0, 30, (batch, tokens + 2))
        return q, k, *(torch.randn(shape) for shape in shapes), *(at if place else ())

    return make


def weights(batch, tokens):
    q, k, *given = vectors(HEADS, (11, DIM))(batch, tokens)
    return (q @ k.mT).softmax(-1), *given


def weights_alone(*shapes):
    """Without positions, and tensors of these shapes."""

    def make(batch, tokens):
        q, k, *given = vectors(HEADS, *shapes, place=False)(batch, tokens)
        return (q @ k.mT).softmax(-1), *given

    return make


def xl_rows(batch, tokens):
    q, k = vectors(3, place=False)(batch, tokens)
    return q, k, torch.randn(HEADS, tokens + 2, DIM), *torch.randn(2, HEADS, DIM)


def places(batch, tokens):
    return torch.randint(0, 30, (batch, tokens)), torch.randint(0, 30, (batch, tokens + 2))


def mixing(*shape):
    """What each query mixes from a bank by, if a shape is given a bank, and positions."""

    def make(batch, tokens):
        of_heads = (HEADS,) if shape else ()
        states = torch.randn(batch, *of_heads, tokens, DIM)
        return states, *(torch.randn(shape) for _ in shape[:1]), *places(batch, tokens)

    return make


def gates(*channels):
    """Log gates of all tokens, for each head or for its channels too."""
    return lambda batch, tokens: (-torch.rand(batch, HEADS, tokens + 2, *channels),)


def faded(heads):
    return lambda *sizes: (*vectors(heads, place=False)(*sizes), *gates(DIM)(*sizes))


class Turns(torch.nn.Module):
    """PathProjection: its w and, as one more channel, its beta."""

    def __init__(self):
        super().__init__()
        self.turns = PathProjection(DIM, HEADS, 5, 3)

    def forward(self, x):
        w, beta = self.turns(x)
        return torch.cat((w, beta[..., None]), -1)


def turning(heads, *shapes):
    """k, w, beta and keys of a cache, behind tensors of these heads."""

    def make(batch, tokens):
        k, w = torch.randn(2, batch, heads, tokens, DIM)
        before = [torch.randn(batch, many, tokens, DIM) for many in shapes]
        return *before, k, w, 2 * torch.rand(batch, heads, tokens), torch.randn(batch, heads, 3, DIM)

    return make


CASES = [
    *(
        Case(scores.make.kind, partial(shares, scores), vectors(heads, place=scores.positions))
        for scores in SCORES.values()
        for heads in (HEADS, 3)
    ),
    Case(shaw_scores, shaw_scores, vectors(3, (11, DIM))),
    Case(shaw_values, shaw_values, weights),
    *(
        Case(shaw_scores_consecutive, shaw_scores_consecutive, vectors(3, (rows, DIM), place=False))
        for rows in (1, 11, 41)
    ),
    *(
        Case(shaw_values_consecutive, shaw_values_consecutive, weights_alone((rows, DIM)))
        for rows in (1, 11, 41)
    ),
    Case(relative_logits, relative_logits, mixing(DIM, 12)),
    Case(clip_norm, partial(clip_norm, max_norm=2.0), lambda *sizes: mixing()(*sizes)[:1]),
    *(
        Case(RelativeLogits, partial(RelativeLogits, DIM, HEADS, 3, 12, most), mixing())
        for most in (None, 0.5)
    ),
    *(Case(forgetting_bias, partial(forgetting_bias, queries=queries), gates()) for queries in (None, 3)),
    *(
        Case(wall_scores, partial(wall_scores, block=block), faded(heads))
        for block, heads in ((4, HEADS), (64, 3))
    ),
    *(
        Case(
            ForgetGates,
            partial(ForgetGates, DIM, HEADS, channels),
            lambda *sizes: (torch.randn(*sizes, DIM),),
        )
        for channels in (None, 5)
    ),
    *(
        Case(path_scores, partial(path_scores, block=block), turning(heads, HEADS))
        for block, heads in ((3, 3), (64, HEADS))
    ),
    *(Case(path_keys, partial(path_keys, block=block), turning(HEADS)) for block in (3, 64)),
    Case(PathProjection, Turns, lambda *sizes: (torch.randn(*sizes, DIM),)),
    Case(log_buckets, partial(log_buckets, span=8, max_distance=20), lambda *sizes: places(*sizes)[:1]),
    Case(deberta_scores, deberta_scores, vectors(3, (HEADS, 10, DIM), (HEADS, 10, DIM))),
    Case(
        deberta_scores,
        partial(deberta_scores, max_distance=9),
        vectors(HEADS, (HEADS, 12, DIM), (HEADS, 12, DIM)),
    ),
    *(
        Case(
            deberta_scores_consecutive,
            partial(deberta_scores_consecutive, max_distance=far),
            vectors(heads, (HEADS, 12, DIM), (HEADS, 12, DIM), place=False),
        )
        for far, heads in ((None, 3), (9, HEADS))
    ),
    Case(relative_shift, relative_shift, lambda *sizes: (torch.randn(*sizes),)),
    Case(transformer_xl_scores, transformer_xl_scores, xl_rows),
    *(Case(of, of, vectors(3, (11, DIM), place=False)) for of in (cope_scores, cope_scores_compiled)),
    Case(local_global_index, partial(local_global_index, window=2, width=3, far_buckets=3), places),
    Case(
        local_global_scores,
        partial(local_global_scores, width=3),
        vectors(3, (11, DIM), (2, 4, DIM)),
    ),
    *(
        Case(
            local_global_scores_consecutive,
            partial(local_global_scores_consecutive, width=width),
            vectors(3, (11, DIM), (2, 4, DIM), place=False),
        )
        for width in (1, 3)
    ),
]
