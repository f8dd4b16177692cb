"""What all scores of families/scores.py have in common; what is a method's own stands in its own file."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from snippets.attention import SelfAttention, attention
from tests.snippets.common import EXACT, SEEDS, random, refused
from tests.snippets.families.scores import DIM, HEADS, SCORES, called

PLACED = {name: scores for name, scores in SCORES.items() if scores.positions}
every_score = pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES)
COUNTED = {name: scores for name, scores in SCORES.items() if not scores.positions}
STRICT = {name: scores for name, scores in SCORES.items() if not scores.lends}
every_placed = pytest.mark.parametrize("scores", PLACED.values(), ids=PLACED)


def vectors(queries, keys, *leading, heads=HEADS):
    return random(*leading, HEADS, queries, DIM), random(*leading, heads, keys, DIM)


def attend(scores, made, q, k, v, i, j, **options):
    """Attention by these scores; with what they add to the output, where they add something."""
    output, weights = attention(q, k, v, score=called(scores, made, i, j), **options)
    return output + made.values(weights, i, j) if hasattr(made, "values") else output


# --- decoding, padding, packing


@every_score
@pytest.mark.parametrize("causal", [False, True])
def test_left_padding_changes_nothing(scores, causal):
    made, (q, k, v) = scores.make(), random(3, 2, HEADS, 8, DIM)
    at = torch.tensor([[0, 0, 0, 0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5, 6, 7]])
    bias = torch.zeros(2, 1, 8, 8, dtype=torch.float64)
    bias[0, :, :, :3] = -math.inf
    padded = attend(scores, made, q, k, v, at, at, bias=bias, causal=causal)
    for row, start in ((0, 3), (1, 0)):
        place, parts = torch.arange(8 - start), (part[row, :, start:] for part in (q, k, v))
        alone = attend(scores, made, *parts, place, place, causal=causal)
        assert_close(padded[row, :, start:], alone, **EXACT)


@every_score
def test_packed_documents_are_as_they_are_alone(scores):
    made, (q, k, v) = scores.make(), random(3, HEADS, 8, DIM)
    documents, at = torch.tensor([0] * 3 + [1] * 5), torch.cat((torch.arange(3), torch.arange(5)))
    bias = torch.zeros(8, 8).double().masked_fill(documents != documents[:, None], -math.inf)
    packed = attend(scores, made, q, k, v, at, at, bias=bias)
    for part in (slice(0, 3), slice(3, 8)):
        alone = attend(scores, made, q[:, part], k[:, part], v[:, part], at[part], at[part])
        assert_close(packed[:, part], alone, **EXACT)


# --- in attention


@pytest.mark.claim(
    "cope-is-causal",
    "With cope_scores, changing later tokens changes no earlier output of attention.",
)
@every_score
@settings(max_examples=15)
@given(SEEDS, st.integers(1, 6))
def test_the_future_does_not_change_the_past(scores, seed, known):
    torch.manual_seed(seed)
    made, at, first = scores.make(), torch.arange(7), random(3, HEADS, 7, DIM)
    second = first.clone()
    second[..., known:, :] = 10 * random(3, HEADS, 7 - known, DIM)
    causal = scores.positions  # CoPE and Transformer-XL hide later keys themselves
    one, two = (attend(scores, made, *qkv, at, at, causal=causal) for qkv in (first, second))
    assert_close(two[..., :known, :], one[..., :known, :], **EXACT)


@every_score
def test_is_a_score_for_a_layer_of_attention(scores):
    layer, made, at = SelfAttention(HEADS * DIM, HEADS).double(), scores.make(), torch.arange(5)
    x, score = random(3, 5, HEADS * DIM), called(scores, made, at, at)
    output, weights = layer(x, score=score, causal=True)
    assert output.shape == x.shape
    assert torch.equal(weights, weights.tril())
    assert (weights - layer(x, causal=True)[1]).abs().max() > 0.01
    if not scores.positions:  # it counts rows, and hides later keys itself
        assert torch.equal(layer(x, score=score)[1], weights)


@every_score
@pytest.mark.parametrize("key_heads", [1, 2, 3])
def test_each_key_head_serves_as_many_heads_in_order(scores, key_heads):
    made, (i, j) = scores.make(), (torch.arange(2, 7), torch.arange(7))
    q, k = vectors(5, 7, 2, heads=key_heads)
    q = q.mT.contiguous().mT  # as a projection gives it, not in one piece
    score = called(scores, made, i, j)
    assert_close(score(q, k), score(q, k.repeat_interleave(HEADS // key_heads, -3)), **EXACT)
    assert_close(score(q[1], k[1]), score(q, k)[1], **EXACT)


# --- positions


@every_placed
def test_texts_of_a_batch_may_share_positions(scores):
    made, (q, k) = scores.make(), vectors(5, 7, 3)
    i, j = torch.randint(0, 30, (5,)), torch.randint(0, 30, (7,))
    expected = made(q, k, i.expand(3, 5), j.expand(3, 7))
    assert_close(made(q, k, i[None], j[None]), expected, **EXACT)
    assert_close(made(q, k, i, j), expected, **EXACT)


# --- dtypes, modules, devices


# --- what is refused


@every_score
def test_refuses_keys_of_another_width(scores):
    made, at = scores.make(), torch.arange(3)
    for leading in ((), (2,)):
        q, k = vectors(3, 3, *leading)
        message = f"k must be as wide as q, {DIM}, got 1"
        if not scores.lends:
            message = f"k must be {tuple(k.shape)}, got {tuple(k[..., :1].shape)}"
        refused(message, called(scores, made, at, at), q, k[..., :1])


@every_score
@pytest.mark.parametrize(
    "shape", [(2, 4, 3, DIM), (2, 0, 3, DIM), (3, 6, 3, DIM), (2, 12, 3, DIM), (4, 3, DIM), (1, 2, 6, 3, DIM)]
)
def test_refuses_keys_of_other_leading_axes_than_the_queries(scores, shape):
    q, at = random(2, HEADS, 3, DIM), torch.arange(3)
    message = f"k must have the leading axes of q, {tuple(q.shape)}, or 1, or fewer heads that divide its, "
    if not scores.lends:
        message = f"k must be {tuple(q.shape)}, "
    refused(f"{message}got {shape}", called(scores, scores.make(), at, at), q, random(*shape))


@every_score
@pytest.mark.parametrize("shape", [(2, 1, 5, DIM), (1, 6, 5, DIM), (6, 5, DIM), (1, 5, DIM), (5, DIM)])
def test_keys_may_be_one_for_all_or_are_refused(scores, shape):
    made, q, k = scores.make(), random(2, HEADS, 3, DIM), random(*shape)
    score = called(scores, made, torch.arange(2, 5), torch.arange(5))
    if scores.lends or shape[0] == 2:
        assert_close(score(q, k), score(q, k.expand(2, HEADS, 5, DIM)), **EXACT)
    else:
        wanted = (2, shape[-3], 5, DIM) if len(shape) > 2 else "(..., key_heads, keys, dim)"
        refused(f"k must be {wanted}, got {shape}", score, q, k)


@pytest.mark.parametrize("scores", COUNTED.values(), ids=COUNTED)
def test_refuses_queries_that_would_stand_before_the_first_key(scores):
    refused("3 queries need as many keys, got 2", scores.make(), *vectors(3, 2))


@pytest.mark.parametrize("scores", STRICT.values(), ids=STRICT)
def test_refuses_vectors_without_heads(scores):
    message = f"q must be (..., heads, queries, dim), got (5, {DIM})"
    at = torch.arange(5)
    refused(message, called(scores, scores.make(), at, at), random(5, DIM), random(5, DIM))


@every_placed
@pytest.mark.parametrize(
    ("queries", "keys"), [((), (7,)), ((5,), ()), ((2, 5), (7,)), ((5,), (2, 7)), ((2, 5), (1, 7))]
)
def test_refuses_positions_that_do_not_fit_each_other(scores, queries, keys):
    made, (q, k) = scores.make(), vectors(5, 7, 2)
    positions = torch.zeros(queries).long(), torch.zeros(keys).long()
    message = f"positions must be (..., queries) and (..., keys), got {queries} and {keys}"
    refused(message, made, q, k, *positions)
    if hasattr(made, "values"):
        refused(message, made.values, q @ k.mT, *positions)


@every_placed
@pytest.mark.parametrize(
    ("queries", "keys"),
    [
        ((1,), (7,)),
        ((5,), (1,)),
        ((7,), (5,)),
        ((3, 5), (3, 7)),
        ((1, 1), (1, 7)),
        ((2, 3, 5), (2, 3, 7)),
        ((2, 1, 5), (2, 1, 7)),
    ],
)
def test_refuses_positions_that_would_have_to_be_stretched(scores, queries, keys):
    made, (q, k) = scores.make(), vectors(5, 7, 2)
    positions = torch.zeros(queries).long(), torch.zeros(keys).long()
    message = f"query and key positions must match scores of shape (2, {HEADS}, 5, 7), "
    message += f"got {queries} and {keys}"
    refused(message, made, q, k, *positions)
    if hasattr(made, "values"):
        refused(message, made.values, q @ k.mT, *positions)


@every_placed
def test_refuses_a_batch_of_positions_for_scores_without_a_batch(scores):
    at = torch.zeros(1, 2).long()
    message = f"query and key positions must match scores of shape ({HEADS}, 2, 2), "
    message += "got (1, 2) and (1, 2)"
    refused(message, scores.make(), *vectors(2, 2), at, at)
