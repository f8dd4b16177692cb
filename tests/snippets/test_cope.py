"""cope.py against its formula, against x-transformers, and for what the guide says of it."""

import math

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from snippets.attention import scaled_dot_product
from snippets.cope import CopeScores, cope_scores
from tests.peers import peer
from tests.peers.scores import cope_peer
from tests.snippets.common import EXACT, SEEDS, filled, random, refusals


def layer(dim=4, rows=4):
    return filled(CopeScores(dim, rows))


# --- what the sources say


@pytest.mark.parametrize("rows", [1, 2, 3, 20])
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (5, 5), (1, 6), (3, 7)])
def test_every_score_is_its_formula(queries, keys, rows):
    score, q, k = layer(rows=rows), random(queries, 4), random(keys, 4)
    made = score(q, k)
    for a in range(queries):
        i = keys - queries + a  # the last query stands at the last key
        logits = [(q[a] @ k[t]).item() / 2 for t in range(keys)]
        gates = [1 / (1 + math.exp(-logit)) for logit in logits]
        for j in range(keys):
            if j > i:
                assert made[a, j] == -math.inf
                continue
            p = min(math.fsum(gates[j : i + 1]), rows - 1)
            below, above = math.floor(p), math.ceil(p)
            mean = (1 - p + below) * score.table[below] + (p - below) * score.table[above]
            assert made[a, j].item() == pytest.approx(logits[j] + (q[a] @ mean).item(), abs=1e-12)


@pytest.mark.claim(
    "cope-open-gates-count-tokens",
    "If all gates are open, CoPE's position of a key is its distance from the query plus one, as far as "
    "the table reaches.",
)
@pytest.mark.parametrize("rows", [1, 2, 9, 60])
@pytest.mark.parametrize("tokens", [1, 6, 50])
def test_open_gates_count_every_token(tokens, rows):
    q, k = torch.ones(tokens, 1), torch.full((tokens, 1), 100.0)
    counted = cope_scores(q, k, 1000 * torch.arange(float(rows))[:, None]) - 100
    distance = torch.arange(tokens)[:, None] - torch.arange(tokens)
    seen = distance >= 0
    assert torch.equal(counted[seen], 1000 * (distance[seen] + 1).clamp(max=rows - 1).float())


@pytest.mark.claim(
    "cope-counts-sentences",
    "If the gates open only at the ends of sentences, CoPE's position of a key is the number of sentence "
    "ends from the key to the query, as far as the table reaches.",
)
@given(st.lists(st.booleans(), min_size=1, max_size=30), st.integers(1, 12))
@example([False, True, False, False, True, False, True], 9)
def test_gates_of_one_kind_of_token_count_those_only(ends, rows):
    k = (200 * torch.tensor(ends).float() - 100)[:, None]  # a token may end a sentence
    counted = cope_scores(torch.ones(1, 1), k, 1000 * torch.arange(float(rows))[:, None]) - k.mT
    expected = [1000 * min(sum(ends[key:]), rows - 1) for key in range(len(ends))]
    assert counted.tolist() == [expected]


@pytest.mark.claim(
    "cope-far-positions-share-the-last-row",
    "CoPE gives all keys whose position is that of the table's last row, or beyond it, the same "
    "positional score.",
)
@given(SEEDS, st.integers(1, 12))
def test_positions_from_the_last_row_on_are_one(seed, rows):
    torch.manual_seed(seed)
    score, q, k = layer(rows=rows), random(1, 4), random(30, 4)
    position = scaled_dot_product(q, k).sigmoid().flip(-1).cumsum(-1).flip(-1)
    counted = (score(q, k) - scaled_dot_product(q, k))[position >= rows - 1]
    assert len(counted) > 1
    assert_close(counted, (q @ score.table[-1]).expand_as(counted), **EXACT)


@pytest.mark.claim(
    "cope-starts-as-plain-attention",
    "With its table at zero, as initialised, CopeScores gives the scores of plain causal attention, bit "
    "for bit.",
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("queries", "keys", "dim"), [(1, 1, 1), (5, 5, 4), (2, 9, 64), (70, 70, 4)])
def test_the_table_starts_at_zero_and_then_adds_nothing(queries, keys, dim, dtype):
    score, q, k = CopeScores(dim, 9).to(dtype), random(queries, dim).to(dtype), random(keys, dim).to(dtype)
    assert (score.table == 0).all()
    later = torch.ones(queries, keys).triu(keys - queries + 1) > 0
    assert torch.equal(score(q, k), scaled_dot_product(q, k).masked_fill(later, -math.inf))


# --- other libraries


@pytest.mark.parametrize("rows", [1, 2, 5, 64])
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (9, 9), (4, 30)])
def test_agrees_with_x_transformers(queries, keys, rows, same_as):
    score = layer(rows=rows)
    q, k = random(2, 3, queries, 4), random(2, 3, keys, 4)
    expected = cope_peer(score.table, heads=3)(q, k)
    assert_close(score(q, k), expected, **EXACT)
    same_as("x_transformers.CoPE", score(q, k), expected)


@pytest.mark.claim(
    "cope-unmasked-leaks",
    "If CoPE's gates are computed from unmasked scores, as x-transformers' CoPE does if it is given such "
    "scores, later tokens change the positions of earlier ones; with masked scores, they do not.",
)
@pytest.mark.parametrize("seed", range(5))
def test_x_transformers_leaks_the_future_if_its_logits_are_not_masked_before(seed):
    torch.manual_seed(seed)
    x_transformers = peer("x_transformers.x_transformers")
    theirs = x_transformers.CoPE(dim=4, heads=1, max_pos=9).double()
    torch.nn.init.normal_(theirs.pos_emb)
    q, k = random(1, 1, 7, 4), random(1, 1, 7, 4)
    other = k.clone()
    other[..., 5:, :] = random(2, 4)
    past = [theirs(q, scaled_dot_product(q, keys))[..., :5, :5].tril() for keys in (k, other)]
    assert (past[0] - past[1]).abs().max() > 0.1
    score = layer(rows=9)
    past = [score(q, keys)[..., :5, :5] for keys in (k, other)]
    assert torch.equal(*past)


# --- what holds for every size


@settings(max_examples=15)
@given(SEEDS, st.integers(1, 5))
def test_what_lies_before_a_key_does_not_move_it(seed, memory):
    torch.manual_seed(seed)
    score, q, k = layer(rows=9), random(2, 5, 4), random(2, 5, 4)
    behind = score(q, torch.cat([random(2, memory, 4), k], -2))
    assert_close(behind[..., memory:], score(q, k), **EXACT)


@pytest.mark.claim(
    "cope-position-at-most-distance",
    "Up to the table's last row, CoPE's positions increase with the distance, by less than one at each "
    "step, so they never exceed the distance plus one; for large scores, a step rounds to zero or one.",
)
@settings(max_examples=30)
@given(SEEDS, st.sampled_from([0.1, 1, 3, 100]), st.integers(1, 60))
def test_positions_rise_with_distance_and_never_faster_than_it(seed, size, tokens):
    torch.manual_seed(seed)
    q = torch.cat([size * random(1, 3), torch.ones(1, 1)], -1)
    k = torch.cat([random(tokens, 3), torch.zeros(tokens, 1)], -1)
    table = torch.zeros(100, 4, dtype=torch.float64)
    table[:, 3] = torch.arange(100)  # the score of position p is p
    p = (cope_scores(q, k, table) - scaled_dot_product(q, k))[0].flip(-1)
    steps = torch.cat([p[:1], p.diff()])
    edge = 1e-12 if size == 100 else 0
    assert (steps > -edge).all()
    assert (steps < 1 + edge).all()


@pytest.mark.claim(
    "cope-between-is-a-multiset",
    "CoPE's position of a key depends on which keys lie between it and the query, not on their order.",
)
@given(SEEDS, st.permutations(range(1, 6)))
def test_the_order_of_the_keys_between_does_not_matter_but_what_they_are_does(seed, between):
    torch.manual_seed(seed)
    score, q, k = layer(rows=9), random(1, 4), random(7, 4)
    assert_close(score(q, k[[0, *between, 6]])[0, 0], score(q, k)[0, 0], **EXACT)
    other = k.clone()
    other[2] = random(4)
    assert (score(q, other)[0, 0] - score(q, k)[0, 0]).abs() > 1e-6


# --- dtypes, gradients, compilation, modules


@pytest.mark.claim(
    "cope-counts-in-float32",
    "With inputs in bfloat16 and float16, cope_scores finds the correct one of 4,096 positions, although "
    "sums of as many ones in those formats lose count.",
)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("position", [1, 129, 257, 2049, 4095, 4096])
def test_a_narrow_dtype_still_counts_beyond_its_whole_numbers(position, dtype):
    tokens, table = 4096, torch.zeros(5000, 1, dtype=dtype)
    table[position] = 1
    q, k = torch.ones(1, 1, dtype=dtype), torch.full((tokens, 1), 50.0, dtype=dtype)
    found = cope_scores(q, k, table)[0] > 50
    assert found.nonzero().tolist() == [[tokens - position]]
    gates = torch.ones(tokens, dtype=dtype)
    assert gates.cumsum(-1).unique().numel() < tokens


def test_gradients_reach_the_keys_through_their_gates():
    score, q, k = layer(rows=9), random(1, 4), random(5, 4).requires_grad_()
    (grad,) = torch.autograd.grad(score(q, k)[0, 0], k)
    assert (grad.abs().amax(-1) > 0).all()


# --- what is refused, and in which words


@refusals
def test_refuses():
    q = torch.zeros(3, 4)
    for shape in ((0, 4), (9, 3), (4,), (1, 9, 4)):
        yield f"table must be (rows, 4), got {shape}", cope_scores, q, q, torch.zeros(shape)
    for dim, rows in ((0, 4), (4, 0), (-1, 4), (4, -1)):
        yield f"dim and rows must be at least 1, got {dim} and {rows}", CopeScores, dim, rows
