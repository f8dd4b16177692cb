"""What FoX, Wall and PaTH have in common: the tokens between a query and a key decide about its score."""

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from torch.testing import assert_close

from snippets.decoding import attention_mask, document_positions
from tests.snippets.common import EXACT, random
from tests.snippets.test_forgetting import fox_attends, gates, wall_attends
from tests.snippets.test_path_attention import DIM, HEADS, attends, tokens_of


class Way(NamedTuple):
    attends: Callable  # of q, k, v, what each token has for those behind it, and what is hidden
    each: Callable  # of a number of tokens: what they have; the last tensor is 0 where nothing happens


WAYS = {
    "fox": Way(fox_attends, lambda tokens: (gates(HEADS, tokens),)),
    "wall": Way(wall_attends, lambda tokens: (gates(HEADS, tokens, DIM),)),
    "path": Way(attends, lambda tokens: tokens_of(tokens)[2:]),
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def drawn(way, tokens):
    return *random(3, HEADS, tokens, DIM), *way.each(tokens)


@every_way
def test_the_future_does_not_change_the_past(way):
    tokens, others = drawn(way, 7), drawn(way, 7)
    known = way.attends(*tokens)
    for n in range(1, 7):
        other = [torch.cat((x[:, :n], 9 * new[:, n:]), 1) for x, new in zip(tokens, others, strict=True)]
        other[-1][:, n:] /= 9  # a strength or a gate stays one
        assert_close(way.attends(*other)[:, :n], known[:, :n], **EXACT)


@pytest.mark.claim(
    "forgetting-alone-padded-or-packed",
    "With the keys of padding and of other documents hidden, each text gets the same result from FoX and "
    "from Wall as alone, whatever the gates of the hidden tokens.",
)
@pytest.mark.claim(
    "path-alone-padded-or-packed",
    "With the keys of padding and of other documents hidden, each text gets the same result from PaTH as "
    "alone.",
)
@every_way
def test_padded_and_packed_texts_get_what_they_get_alone(way):
    tokens = drawn(way, 12)
    for documents in ([0] * 4 + [1] * 8, [1] * 8 + [0] * 4, [5] * 3 + [1] * 2 + [7] * 6 + [9], [1] * 12):
        of = torch.tensor(documents)
        at = document_positions(of)
        made = way.attends(*tokens, ~attention_mask(at, at, of, of))
        for document in of.unique():
            mine = of == document
            assert_close(made[:, mine], way.attends(*(x[:, mine] for x in tokens)), **EXACT)


@every_way
def test_padding_between_the_tokens_of_a_text_has_gates_of_one_or_no_strength(way):
    tokens, real = drawn(way, 9), torch.tensor([1, 1, 0, 0, 1, 0, 1, 1, 1]) > 0
    alone, hidden = way.attends(*(x[:, real] for x in tokens)), ~real.expand(9, 9)
    assert (way.attends(*tokens, hidden)[:, real] - alone).abs().max() > 1e-3
    tokens[-1][:, ~real] = 0
    assert_close(way.attends(*tokens, hidden)[:, real], alone, **EXACT)
