"""relative_logits.py against its formula, against Inkling in transformers, and beside its relatives."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from snippets.attention import attention, scaled_dot_product
from snippets.clipped_bias import clipped_bias
from snippets.relative_logits import RelativeLogits, clip_norm, relative_logits
from snippets.shaw import shaw_scores
from tests.peers import peer
from tests.snippets.common import (
    EXACT,
    SEEDS,
    filled,
    places,
    random,
    refusals,
)

HEADS, PROFILES, EXTENT = 3, 4, 5
POSITIONS = places(-40, 40)


def layer(dim=6, heads=HEADS, profiles=PROFILES, extent=EXTENT, max_norm=None):
    return filled(RelativeLogits(dim, heads, profiles, extent, max_norm))


def states_and_bank(queries, *leading, profiles=PROFILES, extent=EXTENT):
    return random(*leading, queries, profiles), random(profiles, extent)


# --- what the source says


@pytest.mark.parametrize("max_norm", [None, 1.5])
@pytest.mark.parametrize("extent", [1, 3, 50])
def test_every_entry_is_its_formula(extent, max_norm):
    made, x = layer(extent=extent, max_norm=max_norm), random(4, 6)
    i, j = [0, 3, 3, -7], [1, 0, 9, 3, -6, -9]
    bias = made(x, torch.tensor(i), torch.tensor(j))
    weight = made.project.weight.unflatten(0, (HEADS, PROFILES))
    for h in range(HEADS):
        for a, query in enumerate(i):
            state = [sum((weight[h, c, n] * x[a, n]).item() for n in range(6)) for c in range(PROFILES)]
            if max_norm:
                state = [s * made.scale[h, c].item() for c, s in enumerate(state)]
                length = math.hypot(*state)
                state = [s * min(1, max_norm / length) for s in state]
            for b, key in enumerate(j):
                distance, expected = query - key, 0.0
                if 0 <= distance < extent:
                    expected = sum(s * made.bank[c, distance].item() for c, s in enumerate(state))
                assert bias[h, a, b].item() == pytest.approx(expected, abs=1e-12)


def test_a_bank_begins_small_and_a_scale_at_one():
    made = RelativeLogits(8, 2, 16, 1000, max_norm=8.0)
    assert made.bank.std().item() == pytest.approx(0.02, rel=0.05)
    assert (made.scale == 1).all()
    assert RelativeLogits(8, 2, 16, 1000).scale is None


# --- other libraries


@pytest.mark.claim(
    "relative-logits-agree-with-peers",
    "The bias of the snippet's relative logits equals that of Inkling and of Inkling-2 in transformers, to "
    "1e-12 in float64.",
)
@pytest.mark.parametrize("name", ["inkling", "inkling2"])
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (7, 7), (1, 30), (4, 9), (30, 30)])
@pytest.mark.parametrize(("heads", "profiles", "extent"), [(1, 1, 1), (3, 4, 8), (2, 16, 100)])
def test_agrees_with_inkling(name, queries, keys, heads, profiles, extent, same_as):
    kind = f"{name.capitalize()}RelativeLogits"
    theirs = getattr(peer(f"transformers.models.{name}.modeling_{name}"), kind)(profiles, extent)
    states, bank = states_and_bank(queries, 2, heads, profiles=profiles, extent=extent)
    theirs.proj.data = bank
    i, j = torch.arange(keys - queries, keys), torch.arange(keys)
    made, expected = relative_logits(states, bank, i, j), theirs(states.transpose(1, 2), i, j)
    assert_close(made, expected, **EXACT)
    same_as(f"transformers.models.{name}.modeling_{name}.{kind}", made, expected)


@pytest.mark.parametrize("max_norm", [0.5, 8.0])
@pytest.mark.parametrize("size", [0.1, 1.0, 100.0])
def test_states_are_scaled_and_clipped_as_inkling_2_does(size, max_norm, same_as):
    made = layer(max_norm=max_norm).float()
    kind = peer("transformers.models.inkling2.modeling_inkling2").Inkling2ScaledL2Clip
    theirs, x = kind(HEADS, PROFILES, max_norm), size * torch.randn(2, 5, 6)
    theirs.scale.data = made.scale.data
    expected = theirs(made.project(x).unflatten(-1, (HEADS, PROFILES)))
    states = made.states(x).transpose(1, 2)
    assert_close(states, expected, rtol=1e-5, atol=1e-6)
    same_as("transformers.models.inkling2.modeling_inkling2.Inkling2ScaledL2Clip", states, expected)


# --- its relatives


@pytest.mark.claim(
    "relative-logits-have-shaw-as-a-case",
    "Let the states be the queries divided by the square root of their width, and let the bank be Shaw's "
    "key table (first the row for the query's own position, then one row per step back, with the last row "
    "repeated from the clip on). Then relative logits are what that table adds to the scores of all keys "
    "that are not later than the query and within the extent.",
)
@settings(max_examples=30)
@given(SEEDS, POSITIONS, POSITIONS, st.integers(0, 8), st.integers(1, 30), st.sampled_from([1, 4, 64]))
def test_a_bank_that_is_the_table_of_keys_mixed_by_the_query_is_shaw(seed, i, j, clip, extent, dim):
    torch.manual_seed(seed)
    q, k, table = random(2, len(i), dim), random(2, len(j), dim), random(2 * clip + 1, dim)
    bank = table[clip - torch.arange(extent).clamp(max=clip)].T
    made = relative_logits(q / math.sqrt(dim), bank, i, j)
    expected = shaw_scores(q, k, table, i, j) - scaled_dot_product(q, k)
    distance = i[:, None] - j
    near = ((distance >= 0) & (distance < extent)).expand_as(made)
    assert_close(made[near], expected[near], **EXACT)
    assert (made[~near] == 0).all()


@pytest.mark.claim(
    "relative-logits-of-equal-states-are-a-number-by-distance",
    "If all tokens have the same states, relative logits are one number per head and distance, as in the "
    "clipped bias with zeros for later keys and for distances from the extent on.",
)
@settings(max_examples=20)
@given(SEEDS, POSITIONS, POSITIONS, st.integers(1, 9), st.integers(1, 6))
def test_equal_states_make_a_number_by_distance(seed, i, j, extent, profiles):
    torch.manual_seed(seed)
    states, bank = states_and_bank(1, HEADS, profiles=profiles, extent=extent)
    table = torch.zeros(2 * extent + 1, HEADS, dtype=torch.float64)
    for distance in range(extent):
        table[extent - distance] = states[:, 0] @ bank[:, distance]
    made = relative_logits(states.expand(-1, len(i), -1), bank, i, j)
    assert_close(made, clipped_bias(i, j, table), **EXACT)


# --- what holds for every size


@pytest.mark.claim(
    "relative-logits-end-at-the-extent",
    "Relative logits are exactly zero for later keys and for keys that are extent or more tokens back.",
)
@pytest.mark.parametrize("extent", [1, 2, 9, 70])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_is_zero_for_all_keys_that_the_bank_does_not_reach(extent, dtype):
    states, bank = states_and_bank(1, HEADS, extent=extent)
    i, j = torch.tensor([100]), torch.arange(200)
    made = relative_logits(states.to(dtype), bank.to(dtype), i, j)
    reached = (j <= 100) & (j > 100 - extent)
    assert (made[..., ~reached] == 0).all()
    assert (made[..., reached] != 0).all()


@pytest.mark.claim(
    "relative-logits-lie-in-the-span-of-the-bank",
    "Whatever the tokens, relative logits as functions of distance are weighted sums of the bank's "
    "profiles: those of any number of tokens and heads span no more dimensions than there are profiles.",
)
@pytest.mark.parametrize("profiles", [1, 4, 16])
def test_all_mixtures_lie_in_the_span_of_the_profiles(profiles):
    made = layer(dim=32, profiles=profiles, extent=40)
    bias = made(random(50, 32), torch.full((50,), 39), torch.arange(40)).flatten(0, 1)
    assert torch.linalg.matrix_rank(bias) == profiles
    assert torch.linalg.matrix_rank(torch.cat((bias, made.bank.flip(1)))) == profiles


@settings(max_examples=15)
@given(SEEDS, st.floats(0.1, 10))
def test_a_factor_of_the_states_is_one_of_the_bias(seed, factor):
    torch.manual_seed(seed)
    (states, bank), at = states_and_bank(6, HEADS), torch.arange(6)
    made = relative_logits(factor * states, bank, at, at)
    assert_close(made, factor * relative_logits(states, bank, at, at), **EXACT)


def test_decoding_with_a_cache_gives_the_rows_of_the_whole():
    made, x, at = layer(), random(2, 9, 6), torch.arange(9)
    whole = made(x, at, at)
    for n in range(9):
        one = made(x[:, [n]], at[[n]], at[: n + 1])
        assert_close(one, whole[..., [n], : n + 1], **EXACT)


def test_heads_may_be_left_out():
    (states, bank), at = states_and_bank(5, HEADS), torch.arange(5)
    for head, made in zip(states, relative_logits(states, bank, at, at), strict=True):
        assert_close(relative_logits(head, bank, at, at), made, **EXACT)


def test_in_attention_the_order_of_earlier_tokens_matters():
    made, x, at = layer(extent=9), random(6, 6), torch.arange(6)
    q, k, v = random(3, HEADS, 6, 4)
    order = [2, 0, 1, 3, 4, 5]
    bias = made(x, at, at)
    output = attention(q, k, v, bias, causal=True)[0][:, -1]
    moved = attention(q, k[:, order], v[:, order], bias, causal=True)[0][:, -1]
    assert (moved - output).abs().max() > 0.01


@settings(max_examples=25)
@given(SEEDS, st.floats(0.01, 10), st.sampled_from([torch.float64, torch.float32, torch.bfloat16]))
def test_no_vector_is_longer_than_most_and_shorter_ones_stay(seed, max_norm, dtype):
    torch.manual_seed(seed)
    vectors = (random(20, 1).exp() * random(20, 5)).to(dtype)
    made, length = clip_norm(vectors, max_norm), vectors.double().norm(dim=-1)
    assert made.dtype == dtype
    assert (made.double().norm(dim=-1) <= max_norm * (1 + 4 * torch.finfo(dtype).eps)).all()
    short = length < max_norm * (1 - 1e-6)
    assert torch.equal(made[short], vectors[short])
    assert_close(
        torch.nn.functional.cosine_similarity(made.double(), vectors.double()),
        torch.ones(20).double(),
        rtol=0,
        atol=4e-5,
    )


@pytest.mark.parametrize("max_norm", [0.01, 1.98828125, 7.3])
def test_a_vector_as_long_as_most_stays_bit_for_bit(max_norm):
    vectors = torch.tensor([[max_norm, 0.0], [0.0, -max_norm]], dtype=torch.float64)
    assert torch.equal(clip_norm(vectors, max_norm), vectors)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_states_are_scaled_and_clipped_in_float32(dtype):
    made, x = layer(max_norm=0.7).to(dtype), random(9, 6).to(dtype)
    states = made.project(x).unflatten(-1, (HEADS, PROFILES)).float()
    expected = clip_norm(states * made.scale.float(), 0.7).to(dtype)
    assert torch.equal(made.states(x), expected.transpose(0, 1))
    assert torch.equal(clip_norm(x, 0.7), clip_norm(x.float(), 0.7).to(dtype))


def test_a_vector_of_zeros_stays_and_has_a_gradient():
    zeros = torch.zeros(1, 3, requires_grad=True)
    clip_norm(zeros, 1.0).sum().backward()
    assert torch.equal(zeros.grad, torch.ones(1, 3))


# --- memory


# --- dtypes, gradients, modules


def test_autocast_gives_a_narrow_bias():
    made, x, at = layer(max_norm=2.0).float(), torch.randn(6, 6), torch.arange(6)
    with torch.autocast("cpu", torch.bfloat16):
        bias = made(x, at, at)
    assert bias.dtype == torch.bfloat16
    assert_close(bias.float(), made(x, at, at), rtol=0.05, atol=0.05)


# --- what is refused, and in which words


AT = torch.arange(3)


@refusals
def test_refuses():
    good, bank = torch.zeros(2, 3, 4), torch.zeros(4, 5)
    for states in (torch.zeros(4), torch.tensor(0.0), torch.zeros(3, 0), torch.zeros(3, 4).long()):
        got = f"{states.dtype} {tuple(states.shape)}"
        message = f"states must be floating and (..., queries, profiles), got {got}"
        yield message, relative_logits, states, bank, AT, AT
        yield message, clip_norm, states, 1.0
    for wrong in (
        *(torch.zeros(shape) for shape in ((3, 5), (5, 4), (4, 0), (4,), (2, 4, 5), ())),
        bank.double(),
        bank.long(),
    ):
        got = f"{wrong.dtype} {tuple(wrong.shape)}"
        yield f"bank must be torch.float32 (4, extent), got {got}", relative_logits, good, wrong, AT, AT
    for max_norm in (0, -1.0, math.nan):
        yield f"max_norm must be above 0, got {max_norm}", clip_norm, good, max_norm
        yield f"max_norm must be above 0, got {max_norm}", RelativeLogits, 4, 2, 3, 5, max_norm
    for sizes in ((0, 2, 3, 5), (4, 0, 3, 5), (4, 2, 0, 5), (4, 2, 3, -1)):
        got = "{}, {}, {} and {}".format(*sizes)
        yield f"dim, heads, profiles and extent must be at least 1, got {got}", RelativeLogits, *sizes
    for shape in ((3, 5), (6,), ()):
        x = torch.zeros(shape).double()
        yield f"x must be (..., queries, 6), got {shape}", lambda x: layer()(x, AT, AT), x
    for i, j, fits in (
        (AT[:2], AT, "(2,) and (3,)"),
        (AT[None], AT[None], "(1, 3) and (1, 3)"),
        (AT.expand(2, 3), AT.expand(2, 3), "(2, 3) and (2, 3)"),
    ):
        yield (
            f"query and key positions must match scores of shape (2, 3, 3), got {fits}",
            relative_logits,
            good,
            bank,
            i,
            j,
        )
    for i, j in ((AT[0], AT), (AT, AT[0]), (AT[None], AT)):
        got = f"{tuple(i.shape)} and {tuple(j.shape)}"
        message = f"positions must be (..., queries) and (..., keys), got {got}"
        yield message, relative_logits, good, bank, i, j


def test_the_smallest_bank_has_one_number():
    made = RelativeLogits(dim=1, heads=1, profiles=1, extent=1)
    assert made.bank.shape == (1, 1)
    assert made(torch.ones(1, 1), AT[:1], AT[:1]).item() == pytest.approx(
        (made.bank * made.project.weight).item()
    )
