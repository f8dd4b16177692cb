"""attention.py against its formula and torch's own, and what attention knows of order."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention
from torch.testing import assert_close

from snippets.attention import SelfAttention, attention, scaled_dot_product
from snippets.sinusoidal import sinusoidal_encoding
from tests.snippets.common import EXACT, SEEDS, random, refusals

INF = math.inf
SIZES = st.sampled_from([(4, 1), (6, 3), (16, 4), (30, 2)])  # dim, heads
ORDERS = st.integers(2, 9).flatmap(lambda tokens: st.permutations(range(tokens)))


def layer(seed, dim=16, heads=4):
    torch.manual_seed(seed)
    made = SelfAttention(dim, heads).double()
    for weight in made.parameters():  # large enough for weights that are far from uniform
        torch.nn.init.normal_(weight, std=dim**-0.5)
    return made


def positions_of(tokens, dim):
    return sinusoidal_encoding(torch.arange(tokens), dim, dtype=torch.float64)


def nearness(q, k):
    return -torch.cdist(q, k)


def far_apart(a, b):
    return (a - b).abs().max() > 0.01


def not_equal(a, b):
    return (a - b).abs().max() > 1e-6


def is_new(order):
    return list(order) != sorted(order)


# --- what the sources say


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (3, 3), (1, 4), (2, 5)])
def test_every_entry_is_its_formula(queries, keys, biased, causal):
    q, k, v = random(queries, 3), random(keys, 3), random(keys, 2)
    bias = random(queries, keys) if biased else None
    output, weights = attention(q, k, v, bias, causal)
    for i in range(queries):
        scores = []
        for j in range(keys):
            score = math.fsum(q[i, c].item() * k[j, c].item() for c in range(3)) / math.sqrt(3)
            score += bias[i, j].item() if biased else 0
            hidden = causal and j > i + keys - queries  # the last query stands at the last key
            scores.append(-INF if hidden else score)
        total = math.fsum(math.exp(score) for score in scores)
        for j in range(keys):
            assert weights[i, j].item() == pytest.approx(math.exp(scores[j]) / total, abs=1e-15)
        for c in range(2):
            mean = math.fsum(weights[i, j].item() * v[j, c].item() for j in range(keys))
            assert output[i, c].item() == pytest.approx(mean, abs=1e-14)


def test_weights_are_a_mean():
    _, weights = attention(random(2, 4, 5, 8), random(2, 4, 7, 8), random(2, 4, 7, 8))
    assert weights.min() > 0
    assert_close(weights.sum(-1), torch.ones(2, 4, 5, dtype=torch.float64))


# --- torch's own


@pytest.mark.parametrize("leading", [(), (2, 3)])
@pytest.mark.parametrize("bias_leading", [None, (), (1, 3), (2, 1)])
def test_agrees_with_scaled_dot_product_attention(leading, bias_leading):
    if bias_leading and not leading:
        leading = (2, 3)
    q, k, v = random(*leading, 5, 8), random(*leading, 7, 8), random(*leading, 7, 4)
    bias = None if bias_leading is None else random(*bias_leading, 5, 7)
    mask = None if bias is None else bias.expand(*leading, 5, 7)
    expected = scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert_close(attention(q, k, v, bias)[0], expected, **EXACT)


def test_causal_agrees_with_torch_where_queries_and_keys_are_equally_many():
    q, k, v = random(3, 2, 4, 6, 8)
    expected = scaled_dot_product_attention(q, k, v, is_causal=True)
    assert_close(attention(q, k, v, causal=True)[0], expected, **EXACT)


@pytest.mark.claim(
    "is-causal-is-top-left",
    "With one query and a cache, torch's is_causal=True attends to the first key only, because "
    "its mask is aligned to the first query and the first key.",
)
@pytest.mark.parametrize("keys", [2, 4, 7, 300])
def test_causal_is_aligned_to_the_last_key_and_torch_to_the_first(keys):
    for queries in range(2, min(keys, 5)):
        q, k, v = random(1, 1, queries, 8), random(1, 1, keys, 8), random(1, 1, keys, 8)
        torchs = scaled_dot_product_attention(q, k, v, is_causal=True)
        first = torch.ones(queries, keys, dtype=torch.bool).tril()
        assert_close(torchs, scaled_dot_product_attention(q, k, v, attn_mask=first), **EXACT)
    q, k, v = random(1, 1, 1, 8), random(1, 1, keys, 8), random(1, 1, keys, 8)
    torchs = scaled_dot_product_attention(q, k, v, is_causal=True)
    assert_close(torchs, v[..., :1, :], **EXACT)
    ours, weights = attention(q, k, v, causal=True)
    assert weights.min() > 0
    assert_close(ours, scaled_dot_product_attention(q, k, v), **EXACT)
    assert far_apart(ours, torchs)


@pytest.mark.parametrize("causal", [False, True])
def test_the_layer_agrees_with_multi_head_attention(causal):
    ours = layer(0, dim=12, heads=3)
    theirs = torch.nn.MultiheadAttention(12, 3, bias=False, batch_first=True).double()
    theirs.in_proj_weight.data.copy_(ours.project.weight)
    theirs.out_proj.weight.data.copy_(ours.merge.weight)
    x = random(2, 5, 12)
    mask = torch.ones(5, 5, dtype=torch.bool).triu(1) if causal else None
    expected, weights = theirs(x, x, x, attn_mask=mask, average_attn_weights=False)
    made = ours(x, causal=causal)
    assert_close(made[0], expected, **EXACT)
    assert_close(made[1], weights, **EXACT)


# --- what attention knows of order


@pytest.mark.claim(
    "attention-is-equivariant",
    "Without a mask and without positions, self-attention is permutation-equivariant: permuting "
    "the tokens permutes the output rows in the same way and changes nothing else.",
)
@given(SEEDS, SIZES, ORDERS)
def test_permuted_tokens_give_permuted_outputs(seed, size, order):
    first, second, x = layer(seed, *size), layer(seed + 1, *size), random(len(order), size[0])
    one, moved = first(x)[0], first(x[order])[0]
    assert_close(moved, one[order], **EXACT)
    assert_close(second(moved)[0], second(one)[0][order], **EXACT)


@pytest.mark.claim(
    "attention-weights-permute",
    "Without a mask and without positions, permuting the tokens permutes the rows and the columns of the "
    "attention weights: A becomes P A P^T, which is not the same matrix as before.",
)
@given(SEEDS, SIZES, ORDERS)
def test_permuted_tokens_give_permuted_weights_and_not_the_same(seed, size, order):
    attend, x = layer(seed, *size), random(len(order), size[0])
    before, after = attend(x)[1], attend(x[order])[1]
    move = torch.eye(len(order), dtype=torch.float64)[order]
    assert_close(after, move @ before @ move.mT, **EXACT)
    assert not_equal(after, before) == is_new(order)


@pytest.mark.claim(
    "pooled-output-is-invariant",
    "Without a mask and without positions, the sum, the mean and the maximum of the output over the tokens "
    "are the same for every order of the tokens.",
)
@given(SEEDS, SIZES, ORDERS)
def test_a_pooled_output_is_the_same_for_every_order(seed, size, order):
    attend, x = layer(seed, *size), random(len(order), size[0])
    for pool in (torch.mean, torch.sum, torch.amax):
        assert_close(pool(attend(x[order])[0], 0), pool(attend(x)[0], 0), **EXACT)


@pytest.mark.claim(
    "repeats-matter",
    "Attention without positions depends on more than the set of tokens: repeating one token changes the "
    "output of another.",
)
@given(SEEDS, SIZES, st.integers(2, 9))
def test_a_repeated_token_counts_twice(seed, size, tokens):
    attend, x = layer(seed, *size), random(tokens, size[0])
    once, twice = attend(x)[0], attend(torch.cat([x, x[-1:]]))[0]
    assert not_equal(once[0], twice[0])


@pytest.mark.claim(
    "identical-tokens-uniform",
    "Attention among identical tokens is uniform because they are identical, not because "
    "positions are missing: different tokens without positions get unequal weights.",
)
@given(SEEDS, SIZES, st.integers(2, 30))
def test_weights_are_uniform_among_identical_tokens_only(seed, size, tokens):
    attend, token = layer(seed, *size), random(1, size[0])
    same, different = token.expand(tokens, -1), random(tokens, size[0])
    uniform = torch.full((size[1], tokens, tokens), 1 / tokens, dtype=torch.float64)
    assert_close(attend(same)[1], uniform, **EXACT)
    assert not_equal(attend(different)[1], uniform)
    assert not_equal(attend(same + positions_of(tokens, size[0]))[1], uniform)


@pytest.mark.claim(
    "sum-with-positions-is-still-orderless",
    "The sum over all tokens of token plus position vector is the same for every order of the tokens: "
    "without attention, or another step that is not a sum, added positions carry no information about the "
    "order.",
)
@given(SEEDS, SIZES, ORDERS)
def test_a_sum_of_tokens_and_positions_does_not_know_the_order(seed, size, order):
    torch.manual_seed(seed)
    x, positions = random(len(order), size[0]), positions_of(len(order), size[0])
    assert_close((x[order] + positions).sum(0), (x + positions).sum(0), **EXACT)


@pytest.mark.claim(
    "positions-break-equivariance",
    "With sinusoidal position vectors added to the tokens, attention distinguishes orders: the outputs of "
    "permuted tokens are not the permuted outputs, and the pooled output changes.",
)
@given(SEEDS, SIZES, ORDERS)
def test_added_positions_make_attention_tell_orders_apart(seed, size, order):
    attend, x, positions = layer(seed, *size), random(len(order), size[0]), positions_of(len(order), size[0])
    before, after = attend(x + positions)[0], attend(x[order] + positions)[0]
    assert not_equal(after, before[order]) == is_new(order)
    assert not_equal(after.mean(0), before.mean(0)) == is_new(order)


@pytest.mark.claim(
    "one-causal-layer-sees-a-multiset",
    "In one causal self-attention layer without positions, the last token's output is the same "
    "for every order of the tokens before it, though it changes when one of them is repeated.",
)
@given(SEEDS, SIZES, ORDERS)
def test_in_one_causal_layer_the_last_token_sees_a_multiset(seed, size, order):
    attend, n = layer(seed, *size), len(order)
    x = random(n + 1, size[0])

    def last(x):
        return attend(x, causal=True)[0][-1]

    assert_close(last(x[[*order, n]]), last(x), **EXACT)
    assert not_equal(last(x[[0, *order, n]]), last(x))


@pytest.mark.claim(
    "two-causal-layers-see-order",
    "In two stacked causal self-attention layers without positions, the last token's output "
    "changes with the order of the tokens before it; without the causal mask it does not.",
)
@given(SEEDS, SIZES, ORDERS)
def test_in_two_causal_layers_the_last_token_sees_the_order(seed, size, order):
    first, second, n = layer(seed, *size), layer(seed + 1, *size), len(order)
    x = random(n + 1, size[0])

    def last(x, causal):
        x = x + first(x, causal=causal)[0]
        return second(x, causal=causal)[0][-1]

    assert not_equal(last(x[[*order, n]], True), last(x, True)) == is_new(order)
    assert_close(last(x[[*order, n]], False), last(x, False), **EXACT)


@pytest.mark.claim(
    "nope-mean-of-a-start-mark-is-one-over-the-place",
    "A causal head that attends equally to all tokens that it can see outputs 1/t at position t, if the "
    "first token's value is one and all others are zero; without the mask, it outputs the same at every "
    "position.",
)
def test_an_even_head_behind_a_causal_mask_reports_the_place():
    flat, values = torch.zeros(500, 1, dtype=torch.float64), torch.zeros(500, 1, dtype=torch.float64)
    values[0] = 1
    place = torch.arange(1, 501, dtype=torch.float64)[:, None]
    assert_close(attention(flat, flat, values, causal=True)[0], 1 / place, **EXACT)
    assert_close(attention(flat, flat, values)[0], torch.full_like(place, 1 / 500), **EXACT)


@pytest.mark.claim(
    "nope-outputs-shrink-with-the-place",
    "Under a causal mask, a head that attends equally to independent values of variance one gives outputs "
    "of variance 1/t at position t.",
)
@pytest.mark.parametrize("shape", ["normal", "coin", "uniform"])
def test_even_means_of_independent_values_shrink_with_the_place(shape):
    flat, values = torch.zeros(1, 64, 1, dtype=torch.float64), random(4000, 64, 1)
    if shape == "coin":
        values = values.sign()
    elif shape == "uniform":
        values = 12**0.5 * (torch.rand_like(values) - 0.5)
    output = attention(flat, flat, values, causal=True)[0].squeeze(-1)
    place = torch.arange(1, 65, dtype=torch.float64)
    assert_close(output.square().mean(0) * place, torch.ones_like(place), rtol=0.15, atol=0)


@pytest.mark.claim(
    "nope-fixed-lead-loses-to-length",
    "A key whose score exceeds the n - 1 equal scores of all other keys by s gets the weight 1 / (1 + (n "
    "- 1) exp(-s)), which falls towards zero as n grows.",
)
@pytest.mark.parametrize("lead", [-3, 0, 0.5, 5, 9])
def test_a_fixed_lead_is_worth_less_among_more_keys(lead):
    weights = []
    for keys in (1, 2, 10, 1000, 1_000_000):
        scores = torch.zeros(1, keys, dtype=torch.float64)
        scores[0, 0] = lead
        q, k = torch.ones(1, 1, dtype=torch.float64), scores.mT
        weights.append(attention(q, k, k)[1][0, 0].item())
        assert weights[-1] == pytest.approx(1 / (1 + (keys - 1) * math.exp(-lead)), rel=1e-12)
    assert weights == sorted(weights, reverse=True)
    assert weights[-1] < 0.01


@pytest.mark.claim(
    "late-position-misses-its-layer-only",
    "Position vectors added after the first layer come too late for that layer only: without a mask, "
    "shuffling the tokens does not change the pooled output of the first layer, and changes that of the "
    "second.",
)
@given(SEEDS, SIZES, ORDERS)
def test_positions_added_after_a_layer_reach_the_next(seed, size, order):
    first, second, x = layer(seed, *size), layer(seed + 1, *size), random(len(order), size[0])
    positions = positions_of(len(order), size[0])
    after_one = [first(tokens)[0] + positions for tokens in (x, x[order])]
    after_two = [second(tokens)[0] for tokens in after_one]
    assert_close(after_one[0].mean(0), after_one[1].mean(0), **EXACT)
    assert not_equal(after_two[0].mean(0), after_two[1].mean(0)) == is_new(order)


# --- where positions enter


def test_bias_is_added_to_the_scores():
    q, k, v = random(3, 2, 4, 6, 8)
    bias = random(4, 6, 6)
    expected = (q @ k.mT / math.sqrt(8) + bias).softmax(-1)
    output, weights = attention(q, k, v, bias)
    assert_close(weights, expected, **EXACT)
    assert_close(output, expected @ v, **EXACT)


def test_bias_of_the_layer_is_one_for_each_head():
    attend, x, bias = layer(0), random(2, 5, 16), torch.zeros(4, 5, 5, dtype=torch.float64)
    bias[1, :, 2] = -INF
    plain, biased = attend(x)[1], attend(x, bias=bias)[1]
    assert_close(plain[:, [0, 2, 3]], biased[:, [0, 2, 3]], **EXACT)
    assert (biased[:, 1, :, 2] == 0).all()


def test_rotate_turns_q_and_k_and_not_v():
    attend, x = layer(0), random(2, 5, 16)
    mix = torch.linalg.qr(random(4, 4)).Q  # any one rotation for q and k leaves their scores
    seen = []

    def turn(vectors):
        seen.append(vectors)
        return vectors @ mix

    assert_close(attend(x, rotate=turn), attend(x), **EXACT)
    q, k, v = attend.project(x).unflatten(-1, (3, 4, 4)).movedim(-2, 1).unbind(-2)
    assert len(seen) == 2
    assert torch.equal(seen[0], q)
    assert torch.equal(seen[1], k)

    def by_position(vectors):
        return vectors * torch.arange(5.0)[:, None]

    turned = attention(by_position(q), by_position(k), v)
    assert_close(attend(x, rotate=by_position)[1], turned[1], **EXACT)


def test_score_takes_the_place_of_the_dot_product():
    q, k, v = random(3, 2, 4, 6, 8)
    bias = random(6, 6)
    expected = (nearness(q, k) + bias).softmax(-1)
    assert_close(attention(q, k, v, bias, score=nearness)[1], expected, **EXACT)
    attend, x = layer(0), random(2, 5, 16)
    assert far_apart(attend(x, score=nearness)[1], attend(x)[1])
    by_hand = attend(x, score=lambda q, k: q @ k.mT / 2)  # each head is 4 wide
    assert_close(by_hand, attend(x), **EXACT)


def test_causal_hides_the_future_under_any_bias_and_score():
    q, k, v = random(3, 5, 8)
    _, weights = attention(q, k, v, random(5, 5), True, lambda q, k: q @ k.mT + 100)
    assert torch.equal(weights, weights.tril())
    assert (weights.tril() > 0).sum() == 15


def test_decoding_with_a_cache_gives_the_rows_of_the_whole():
    q, k, v = random(3, 2, 6, 8)
    whole = attention(q, k, v, causal=True)[0]
    for new in (1, 2, 3):
        for keys in range(new, 7):
            part = attention(q[:, keys - new : keys], k[:, :keys], v[:, :keys], causal=True)[0]
            assert_close(part, whole[:, keys - new : keys], **EXACT)


# --- queries that see nothing


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_query_that_may_see_no_key_gets_zeros_as_in_torch(dtype):
    q, k, v = torch.randn(3, 1, 1, 3, 8).to(dtype)
    bias = torch.tensor([[0, 0, 0], [-INF, -INF, -INF], [-INF, 0, -INF]]).to(dtype)
    output, weights = attention(q, k, v, bias)
    assert (weights[..., 1, :] == 0).all()
    assert (output[..., 1, :] == 0).all()
    assert_close(output[..., 2, :], v[..., 1, :])
    torchs = scaled_dot_product_attention(q, k, v, attn_mask=bias)
    assert_close(output, torchs, rtol=0, atol=8 * torch.finfo(dtype).eps)


def test_a_query_that_may_see_no_key_has_no_gradient():
    q, k, v = random(3, 3, 8).requires_grad_().unbind(0)
    bias = torch.zeros(3, 3, dtype=torch.float64)
    bias[1] = -INF
    bias.requires_grad_()
    for part in torch.autograd.grad(attention(q, k, v, bias)[0].sum(), (q, k, v, bias)):
        assert part.isfinite().all()
    (grad,) = torch.autograd.grad(attention(q, k, v, bias)[0].sum(), q)
    assert (grad[1] == 0).all()
    assert (grad[0] != 0).all()


def test_what_is_not_a_number_is_not_hidden():
    q, k, v = random(3, 3, 8)
    q[1] = math.nan
    assert attention(q, k, v)[0][1].isnan().all()


# --- dtypes, gradients, compilation, modules


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_output_and_weights_have_the_dtype_of_v(dtype):
    exact = random(3, 2, 6, 8)
    bias = random(6, 6)
    q, k, v = exact.to(dtype)
    for given_bias in (bias.to(dtype), bias.float()):  # float32 biases are kept while it matters
        output, weights = attention(q, k, v, given_bias, causal=True)
        assert output.dtype == weights.dtype == dtype
        expected = attention(*exact, bias, causal=True)[0]
        assert (output - expected).abs().max() < 16 * torch.finfo(dtype).eps


# --- what is refused, and in which words


@refusals
def test_refuses():
    q, k, v = torch.zeros(2, 4), torch.zeros(3, 5), torch.zeros(4, 5)
    yield "k must be as wide as q, 4, got 5", scaled_dot_product, q, k
    yield "k must be as wide as q, 4, got 5", scaled_dot_product, q[None], k[None]
    yield "k must be as wide as q, 4, got 5", attention, q, k, v[:3]
    yield "v must have as many tokens as k, 3, got 4", attention, q, k[:, :4], v
    message = "with causal, k must have 3 tokens or more, one per query, got 2"
    yield message, partial(attention, causal=True), torch.zeros(3, 4), q, q
    for dtype in (torch.int64, torch.bool):  # values have a mean, and a bias is no mask
        got = f"must have a floating-point dtype, got {dtype}"
        yield f"v {got}", attention, q, q, torch.ones(2, 4).to(dtype)
        yield f"bias {got}", attention, q, q, q, torch.ones(2, 2).to(dtype)
    q = torch.zeros(2, 8, 3, 4)
    for shape in ((2, 2, 3, 4), (3, 8, 3, 4), (4, 3, 4), (1, 2, 2, 3, 4)):
        other, want = torch.zeros(shape), "{0} must have the leading axes of {1}, or 1, got {2}; "
        want += "for grouped queries, repeat_interleave the heads of {0}"
        yield want.format("k", (2, 8, 3, 4), shape), scaled_dot_product, q, other
        yield want.format("k", (2, 8, 3, 4), shape), attention, q, other, q
        yield want.format("v", (2, 8, 3, 3), shape), attention, q, q, other
    q, k = torch.zeros(6, 2, 4), torch.zeros(6, 3, 4)
    for shape in ((), (3,), (1, 3), (2, 1), (3, 2), (2, 2, 3), (5, 2, 3), (1, 1, 2, 3), (4, 1, 2, 3)):
        yield f"bias must fit scores of (6, 2, 3), got {shape}", attention, q, k, k, torch.zeros(shape)
    for dim, heads in ((8, 3), (8, 0), (8, -2), (0, 1), (4, 8)):
        yield f"dim must be a multiple of heads, got {dim} and {heads}", SelfAttention, dim, heads
    for shape in ((16,), (5, 15), (2, 16, 5)):
        yield f"x must be (..., tokens, 16), got {shape}", lambda x: layer(0)(x), torch.zeros(shape)
    for place, name in enumerate("qkv"):
        given = [torch.zeros(3, 4) for _ in range(3)]
        given[place] = torch.zeros(4)
        message = f"{name} must be (..., tokens, dim), got (4,)"
        yield message, attention, *given
        yield message, partial(attention, score=lambda q, k: torch.zeros(3, 3)), *given
        if place < 2:
            yield message, scaled_dot_product, *given[:2]


def test_takes_the_smallest_layer_and_fewer_keys_than_queries_if_not_causal():
    assert SelfAttention(1, 1).merge.weight.shape == (1, 1)
    attention(torch.zeros(3, 4), torch.zeros(2, 4), torch.zeros(2, 4))


def test_keys_of_grouped_queries_are_repeated_as_torch_does_it():
    q, k, v = random(2, 8, 3, 4), random(2, 2, 5, 4), random(2, 2, 5, 4)
    repeated = (each.repeat_interleave(4, -3) for each in (k, v))
    expected = scaled_dot_product_attention(q, k, v, enable_gqa=True)
    assert_close(attention(q, *repeated)[0], expected, **EXACT)


@pytest.mark.parametrize("shape", [(2, 8, 5, 4), (2, 1, 5, 4), (1, 8, 5, 4), (8, 5, 4), (1, 5, 4), (5, 4)])
def test_keys_and_values_may_be_one_for_all(shape):
    q, k, v = random(2, 8, 3, 4), random(*shape), random(*shape)
    every = k.expand(2, 8, 5, 4), v.expand(2, 8, 5, 4)
    for made, expected in zip(attention(q, k, v), attention(q, *every), strict=True):
        assert_close(made, expected, **EXACT)
    assert_close(scaled_dot_product(k, q), k @ q.mT / 2, **EXACT)


def test_float16_scores_overflow_no_sooner_than_those_of_torch():
    q = torch.full((1, 1, 2, 32), 50.0, dtype=torch.float16)  # 80,000 before the scaling
    v = random(1, 1, 2, 32).half()
    expected = scaled_dot_product_attention(q, q, v)
    assert expected.isfinite().all()
    assert_close(attention(q, q, v)[0], expected)
