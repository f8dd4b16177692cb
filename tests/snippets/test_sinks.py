"""sinks.py against its formula, against three models of transformers, and first tokens in a cache."""

import math
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.attention.flex_attention import AuxRequest, flex_attention
from torch.testing import assert_close

from snippets.alibi import alibi_bias, alibi_slopes
from snippets.attention import attention, scaled_dot_product
from snippets.decoding import KeyValueCache, attention_mask, keep_slots, move_positions
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from snippets.sinks import apply_sink_gate, cache_slots_to_keep, sink_softmax, window_mask_with_first_tokens
from tests.peers import peer
from tests.snippets.common import EXACT, SEEDS, random, refusals

BATCH, HEADS, QUERIES, KEYS, DIM = 2, 3, 4, 6, 8
HIDDEN = -math.inf


def scores_and_sinks(*, hide=0.3, size=3.0):
    """Scores with some keys hidden, none for all, and a sink for each head."""
    scores = size * random(BATCH, HEADS, QUERIES, KEYS)
    hidden = torch.rand(scores.shape) < hide
    hidden[..., 0] = False
    return scores.masked_fill(hidden, HIDDEN), size * random(HEADS)


def by_gate(scores, v, sinks):
    """The output as a kernel would give it, and then the gate."""
    blind = scores.isneginf().all(-1, keepdim=True)
    output = scores.masked_fill(blind, 0).softmax(-1).masked_fill(blind, 0) @ v
    return apply_sink_gate(output, scores.logsumexp(-1), sinks)


# --- what the source says


def test_every_weight_is_its_formula():
    scores, sinks = scores_and_sinks()
    made = sink_softmax(scores, sinks)
    for b in range(BATCH):
        for h in range(HEADS):
            for i in range(QUERIES):
                row = [math.exp(a) for a in scores[b, h, i].tolist()]
                for j, each in enumerate(row):
                    expected = each / (math.exp(sinks[h].item()) + sum(row))
                    assert made[b, h, i, j].item() == pytest.approx(expected, abs=1e-14)


def test_every_gate_is_its_formula():
    output, logsumexp, sinks = random(HEADS, QUERIES, DIM), random(HEADS, QUERIES), random(HEADS)
    made = apply_sink_gate(output, logsumexp, sinks)
    for h in range(HEADS):
        for i in range(QUERIES):
            gate = 1 / (1 + math.exp(sinks[h].item() - logsumexp[h, i].item()))
            assert_close(made[h, i], gate * output[h, i], **EXACT)


@pytest.mark.claim(
    "sinks-are-one-key-more",
    "Softmax with a learned sink gives the same output as plain attention with one additional key whose "
    "score is the sink and whose value is zero.",
)
@settings(max_examples=20)
@given(SEEDS, st.floats(0.1, 30))
def test_a_sink_is_one_more_key_whose_value_is_zero(seed, size):
    torch.manual_seed(seed)
    scores, sinks = scores_and_sinks(size=size)
    v = random(BATCH, HEADS, KEYS, DIM)
    more = torch.cat((scores, sinks[:, None, None].expand(*scores.shape[:-1], 1)), -1)
    expected = more.softmax(-1) @ torch.cat((v, torch.zeros(BATCH, HEADS, 1, DIM)), -2)
    assert_close(sink_softmax(scores, sinks) @ v, expected, **EXACT)


@pytest.mark.claim(
    "sinks-have-two-forms",
    "Dropping the sink's column after the softmax, and multiplying the output of plain softmax by the "
    "sigmoid of its logsumexp minus the sink, give the same output: to 1e-12 in float64, and up to "
    "rounding in narrower dtypes.",
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("size", [0.1, 3.0, 100.0])
@pytest.mark.parametrize("per_query", [False, True])
def test_both_forms_give_the_same_output(dtype, size, per_query):
    scores, sinks = (each.to(dtype) for each in scores_and_sinks(size=size))
    v = random(BATCH, HEADS, KEYS, DIM).to(dtype)
    sinks = (size * random(BATCH, HEADS, QUERIES)).to(dtype) if per_query else sinks
    made, other = sink_softmax(scores, sinks) @ v, by_gate(scores, v, sinks)
    assert made.dtype == other.dtype == dtype
    exact = sink_softmax(scores.double(), sinks.double()) @ v.double()
    for each in (made, other):
        assert_close(each.double(), exact, rtol=0, atol=max(1e-12, 16 * torch.finfo(dtype).eps))


# --- other libraries


def layer(sinks, groups=1):
    """What eager attention of transformers reads of its layer."""
    return SimpleNamespace(sinks=sinks, num_key_value_groups=groups, training=False)


@pytest.mark.claim(
    "sinks-agree-with-peers",
    "Attention with the snippet's sinks equals that of gpt-oss in transformers to 1e-12 in float64, and "
    "that of Granite-SWA and Inkling-2, which compute the softmax in float32 at most, to 1e-6.",
)
@pytest.mark.parametrize(("heads", "groups"), [(1, 1), (4, 1), (6, 3)])
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (5, 5), (1, 30), (7, 20)])
@pytest.mark.parametrize("name", ["gpt_oss", "granite_swa", "inkling2"])
def test_attends_as_models_of_transformers(name, queries, keys, heads, groups, same_as):
    modeling = peer(f"transformers.models.{name}.modeling_{name}")
    q, k = random(2, heads, queries, DIM), random(2, heads // groups, keys, DIM)
    v, scale = torch.randn_like(k), DIM**-0.5
    of_query = name == "inkling2"  # which has a sink for each query
    sinks = 2 * (random(2, heads, queries) if of_query else random(heads))
    seen = window_mask_with_first_tokens(torch.arange(keys - queries, keys), torch.arange(keys), 8, 1)
    mask = torch.zeros(seen.shape).double().masked_fill(~seen, HIDDEN)
    more = {"sinks": sinks[..., None]} if of_query else {}
    expected, weights = modeling.eager_attention_forward(
        layer(sinks, groups), q, k, v, mask, scaling=scale, **more
    )
    k, v = (each.repeat_interleave(groups, 1) for each in (k, v))
    scores = q @ k.mT * scale + mask
    near = EXACT if name == "gpt_oss" else {"rtol": 0, "atol": 1e-6}
    made = sink_softmax(scores, sinks)
    if name != "granite_swa":  # whose weights are those of plain softmax
        assert_close(made, weights, **near)
    made, gated = made @ v, by_gate(scores, v, sinks)
    assert_close(made, expected.transpose(1, 2), **near)
    assert_close(gated, expected.transpose(1, 2), **near)
    same_as(
        f"transformers.models.{name}.modeling_{name}.eager_attention_forward", made, expected.transpose(1, 2)
    )


@pytest.mark.filterwarnings("ignore:flex_attention called")
def test_gates_what_flex_attention_gives():
    """A kernel that keeps no weights, and returns the logarithm of the sum."""
    q, k, v = torch.randn(3, 2, HEADS, 20, 16)
    sinks, at = torch.randn(HEADS), torch.arange(20)
    seen = window_mask_with_first_tokens(at, at, 4, 2)
    seen[5] = False

    def hide(score, b, h, i, j):
        return torch.where(seen[i, j], score, HIDDEN)

    output, more = flex_attention(q, k, v, score_mod=hide, return_aux=AuxRequest(lse=True))
    scores = scaled_dot_product(q, k).masked_fill(~seen, HIDDEN)
    made = apply_sink_gate(output, more.lse, sinks)
    assert_close(made, sink_softmax(scores, sinks) @ v)
    assert (made[..., 5, :] == 0).all()


# --- what holds for every size


@pytest.mark.claim(
    "sinks-of-minus-infinity-are-none",
    "With a sink of minus infinity, the weights are those of plain softmax.",
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("size", [0.1, 3.0, 100.0])
def test_a_sink_of_minus_infinity_is_none(dtype, size):
    scores = scores_and_sinks(size=size)[0].to(dtype)
    none = torch.full((HEADS,), HIDDEN, dtype=dtype)
    exact = torch.promote_types(dtype, torch.float32)
    assert_close(sink_softmax(scores, none), scores.to(exact).softmax(-1).to(dtype))
    output, logsumexp = torch.randn(HEADS, QUERIES, DIM, dtype=dtype), torch.randn(HEADS, QUERIES)
    assert torch.equal(apply_sink_gate(output, logsumexp, none), output)


@pytest.mark.claim(
    "sinks-take-the-rest",
    "With a finite sink, the weights of the keys sum to less than one. The remaining weight goes to the "
    "sink; if the sink is far above the scores, it gets nearly all of the weight.",
)
@settings(max_examples=20)
@given(SEEDS, st.floats(-10, 10))
def test_the_sink_takes_the_rest(seed, by):
    torch.manual_seed(seed)
    scores, sinks = scores_and_sinks()
    total = sink_softmax(scores, sinks + by).sum(-1)
    assert ((total > 0) & (total < 1)).all()
    assert_close(total, torch.sigmoid(scores.logsumexp(-1) - sinks[:, None] - by), **EXACT)
    assert (sink_softmax(scores, sinks + 100).sum(-1) < 1e-12).all()


@pytest.mark.claim(
    "sinks-see-what-is-added-to-all-scores",
    "Adding a number to all scores of a query changes no weight of plain softmax, but changes every "
    "weight of softmax with a finite sink.",
)
@settings(max_examples=20)
@given(SEEDS, st.floats(0.1, 5), st.sampled_from([-1, 1]))
def test_a_sink_lies_at_a_height(seed, by, sign):
    torch.manual_seed(seed)
    scores, sinks = scores_and_sinks(hide=0)
    assert_close((scores + sign * by).softmax(-1), scores.softmax(-1), **EXACT)
    changed = sink_softmax(scores + sign * by, sinks) - sink_softmax(scores, sinks)
    assert (changed * sign > 0).all()
    assert_close(sink_softmax(scores + by, sinks + by), sink_softmax(scores, sinks), **EXACT)


@pytest.mark.claim(
    "sinks-tell-two-forms-of-alibi-apart",
    "ALiBi's bias, which depends on the distance, and BLOOM's, which depends only on the key, give the "
    "same weights with plain softmax, and different weights with a finite sink.",
)
def test_a_sink_tells_the_two_forms_of_alibi_apart():
    at, slopes = torch.arange(12), alibi_slopes(HEADS).double()
    scores, sinks = random(HEADS, 12, 12), random(HEADS)
    of_distance = scores + alibi_bias(at, at, slopes, dtype=torch.float64)
    of_key = (scores + slopes[:, None, None] * at).masked_fill(at > at[:, None], HIDDEN)
    assert_close(of_key.softmax(-1), of_distance.softmax(-1), **EXACT)
    apart = sink_softmax(of_key, sinks) - sink_softmax(of_distance, sinks)
    assert (apart[:, 1:, 0].abs() > 1e-6).all()  # of all queries but the first, to which both add nothing


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("per_query", [False, True])
def test_huge_numbers_do_not_overflow(dtype, per_query):
    huge = 0.9 * torch.finfo(dtype).max
    shape = (HEADS, QUERIES) if per_query else (HEADS,)
    none, v = torch.zeros(HEADS, QUERIES, KEYS, dtype=dtype), torch.ones(HEADS, KEYS, DIM, dtype=dtype)
    for score, sink, total in ((huge, 0, 1), (0, huge, 0), (-huge, huge, 0), (huge, -huge, 1), (-huge, 0, 0)):
        sinks = torch.full(shape, float(sink), dtype=dtype)
        made = sink_softmax(none + score, sinks)
        assert_close(made.sum(-1).float(), torch.full((HEADS, QUERIES), float(total)), rtol=0, atol=0.01)
        assert_close(by_gate(none + score, v, sinks), made @ v, rtol=0, atol=0.02)
    for both in (huge, -huge):
        made = sink_softmax(none + both, torch.full(shape, both, dtype=dtype))
        assert_close(made, torch.full_like(none, 1 / (KEYS + 1)))


def test_a_query_that_sees_no_key_gets_zeros_and_finite_gradients():
    scores, sinks = scores_and_sinks()
    scores[0, 1, 2], scores[1, 0] = HIDDEN, HIDDEN
    sinks[0] = HIDDEN  # and in one of them no sink either
    v = random(BATCH, HEADS, KEYS, DIM)
    blind = scores.isneginf().all(-1)
    inputs = [each.requires_grad_() for each in (scores, sinks)]
    weights = sink_softmax(*inputs)
    assert weights.isfinite().all() and (weights[blind] == 0).all() and (weights.sum(-1)[~blind] > 0).all()
    (weights.square().sum() + (weights @ v).sum()).backward()
    assert all(each.grad.isfinite().all() for each in inputs)
    output, logsumexp = random(BATCH, HEADS, QUERIES, DIM), scores.detach().logsumexp(-1)
    output[blind] = math.nan  # as some kernels have it
    inputs = [each.detach().requires_grad_() for each in (output, logsumexp, sinks)]
    made = apply_sink_gate(*inputs)
    assert made.isfinite().all() and (made[blind] == 0).all()
    made.square().sum().backward()
    assert all(each.grad.isfinite().all() for each in inputs)


@pytest.mark.parametrize("shape", [(1, HEADS, QUERIES), (BATCH, 1, QUERIES), (BATCH, HEADS, 1), (1, 1, 1)])
def test_axes_of_sinks_may_be_1(shape):
    (scores, _), sinks = scores_and_sinks(), random(*shape)
    whole = sinks.expand(BATCH, HEADS, QUERIES)
    assert torch.equal(sink_softmax(scores, sinks), sink_softmax(scores, whole))
    output, logsumexp = random(BATCH, HEADS, QUERIES, DIM), random(BATCH, HEADS, QUERIES)
    expected = apply_sink_gate(output, logsumexp, whole)
    assert torch.equal(apply_sink_gate(output, logsumexp, sinks), expected)


def test_a_sink_of_each_head_is_one_for_each_of_its_queries():
    scores, sinks = scores_and_sinks()
    whole = sinks[None, :, None].expand(BATCH, HEADS, QUERIES)
    assert torch.equal(sink_softmax(scores, sinks), sink_softmax(scores, whole))
    square, sinks = random(QUERIES, QUERIES, KEYS), random(QUERIES)  # as many heads as queries
    made = sink_softmax(square, sinks)
    assert torch.equal(made, sink_softmax(square, sinks[:, None].expand(-1, QUERIES)))
    assert not torch.equal(made, sink_softmax(square, sinks.expand(QUERIES, -1)))


def test_decoding_with_a_cache_gives_the_rows_of_the_whole():
    q, k = random(2, HEADS, 9, DIM)
    at, sinks = torch.arange(9), random(HEADS)
    hidden = at > at[:, None]
    whole = sink_softmax(scaled_dot_product(q, k).masked_fill(hidden, HIDDEN), sinks)
    for n in range(9):
        one = sink_softmax(scaled_dot_product(q[:, [n]], k[:, : n + 1]), sinks)
        assert_close(one, whole[:, [n], : n + 1], **EXACT)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_numbers_are_computed_in_float32(dtype):
    scores, sinks = (each.to(dtype) for each in scores_and_sinks())
    assert torch.equal(sink_softmax(scores, sinks), sink_softmax(scores.float(), sinks.float()).to(dtype))
    assert torch.equal(sink_softmax(scores, sinks.double()), sink_softmax(scores, sinks))
    output, logsumexp = random(HEADS, QUERIES, DIM).to(dtype), random(HEADS, QUERIES).float()
    expected = apply_sink_gate(output.float(), logsumexp, sinks.float()).to(dtype)
    assert torch.equal(apply_sink_gate(output, logsumexp, sinks), expected)


# --- first tokens


@pytest.mark.parametrize("window", [1, 2, 5, 100])
@pytest.mark.parametrize("first", [0, 1, 4, 50])
def test_every_key_is_seen_by_its_rule(window, first):
    i, j = [0, 3, 30, 7], [0, 1, 3, 4, 5, 6, 7, 8, 28, 29, 30, 31]
    made = window_mask_with_first_tokens(torch.tensor(i), torch.tensor(j), window, first)
    for a, query in enumerate(i):
        for b, key in enumerate(j):
            near = query - window < key <= query
            assert made[a, b].item() == (near or (key < first and key <= query))


@pytest.mark.parametrize("window", [1, 3])
def test_without_first_tokens_it_is_visible_of_decoding(window):
    at, one = torch.arange(9), torch.zeros(9).long()
    assert torch.equal(
        window_mask_with_first_tokens(at, at, window, 0), attention_mask(at, at, one, one, window=window)
    )


def test_in_packed_rows_each_document_keeps_its_own_first_tokens():
    at, of = torch.tensor([0, 1, 2, 3, 0, 1, 2, 3]), torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])
    seen = window_mask_with_first_tokens(at, at, 1, 1) & attention_mask(at, at, of, of)
    alone = window_mask_with_first_tokens(at[:4], at[:4], 1, 1)
    assert torch.equal(seen, torch.block_diag(alone, alone).bool())


@pytest.mark.parametrize("keys", range(8))
@pytest.mark.parametrize(("first", "last"), [(0, 0), (2, 3), (0, 4), (4, 0), (9, 9)])
def test_the_first_and_the_last_places_are_kept_each_once(keys, first, last):
    made = cache_slots_to_keep(keys, first, last)
    expected = [n for n in range(keys) if n < first or n >= keys - last]
    assert made.dtype == torch.int64 and made.tolist() == expected


def turn(k, by):
    return apply_rope(k, *rope_tables(by, rope_frequencies(DIM, base=10000), torch.float64), "half")


def streamed(q, k, v, first, window):
    """One token after another with a cache of first + window - 1 keys: outputs, what was turned where."""
    at = torch.zeros(1, 0).long()
    cache = KeyValueCache(k[..., :0, :], v[..., :0, :], at, at)
    outputs = []
    for n in range(q.shape[-2]):
        places = cache_slots_to_keep(cache.positions.shape[-1], first, window - 1)
        cache = move_positions(keep_slots(cache, places), torch.arange(len(places)), turn)
        here, one = torch.tensor([[len(places)]]), slice(n, n + 1)
        cache = cache.extend(turn(k[..., one, :], here), v[..., one, :], here, torch.zeros_like(here))
        outputs.append(attention(turn(q[..., one, :], here), cache.k, cache.v)[0])
    return torch.cat(outputs, -2), cache


@pytest.mark.claim(
    "streaming-bounds-distances-to-first-tokens",
    "With RoPE, in one attention, a cache of the first and last tokens, whose positions are made "
    "consecutive again at each step, gives the same outputs as a single pass in which each token attends "
    "to a window and to the first tokens, and in which no distance to a first token exceeds the number of "
    "cached tokens; the distances to the other tokens are those in the text.",
)
@pytest.mark.parametrize(("first", "window"), [(0, 1), (0, 3), (1, 1), (2, 3), (4, 6), (30, 5)])
def test_a_cache_that_closes_its_gaps_bounds_the_distance_to_first_tokens(first, window):
    q, k, v = random(3, 1, HEADS, 20, DIM)
    at = torch.arange(20)
    made, cache = streamed(q, k, v, first, window)
    near = turn(q, at) @ turn(k, at).mT
    far = turn(q, at.clamp(max=first + window - 1)) @ turn(k, at).mT
    scores = torch.where(at < first, far, near) / math.sqrt(DIM)
    seen = window_mask_with_first_tokens(at, at, window, first)
    expected = scores.masked_fill(~seen, HIDDEN).softmax(-1) @ v
    assert_close(made, expected, rtol=0, atol=1e-10)
    assert cache.positions.shape[-1] == min(20, first + window)
    assert seen.sum(-1).max() == min(20, first + window)
    if first and first + window < 20:  # the text's own distances give something else
        other = near.masked_fill(~seen, HIDDEN) / math.sqrt(DIM)
        assert (other.softmax(-1) @ v - made).abs().max() > 1e-3


# --- what is refused, and in which words


AT = torch.arange(3)


@refusals
def test_refuses():
    scores, sinks = torch.zeros(2, 3, 4, 5), torch.zeros(3)
    output, logsumexp = torch.zeros(2, 3, 4, 7), torch.zeros(2, 3, 4)
    for wrong in (torch.zeros(4, 5), torch.tensor(0.0), scores.long()):
        got = f"{wrong.dtype} {tuple(wrong.shape)}"
        message = f"scores must be floating and (..., heads, queries, keys), got {got}"
        yield message, sink_softmax, wrong, sinks
        message = f"output must be floating and (..., heads, queries, value_dim), got {got}"
        yield message, apply_sink_gate, wrong, logsumexp, sinks
    shapes = (4,), (1,), (0,), (), (3, 4), (2, 3), (1, 2, 3, 4), (2, 3, 5), (2, 4, 4), (3, 3, 4), (3, 1, 1)
    for wrong in (*map(torch.zeros, shapes), sinks.long(), sinks > 0):
        message = "sinks must be floating and (3,), or (2, 3, 4) where any axis may be 1, "
        message += f"got {wrong.dtype} {tuple(wrong.shape)}"
        yield message, sink_softmax, scores, wrong
        yield message, apply_sink_gate, output, logsumexp, wrong
    for wrong in (logsumexp[0], logsumexp[:1], logsumexp[..., None], logsumexp.long()):
        got = f"{wrong.dtype} {tuple(wrong.shape)}"
        message = f"logsumexp must be floating and (2, 3, 4), to match output, got {got}"
        yield message, apply_sink_gate, output, wrong, sinks
    away = " must be on cpu, as all else, got meta"
    yield "sinks" + away, sink_softmax, scores, sinks.to("meta")
    yield "sinks" + away, apply_sink_gate, output, logsumexp, sinks.to("meta")
    yield "logsumexp" + away, apply_sink_gate, output, logsumexp.to("meta"), sinks
    for window in (0, -1):
        yield f"window must be at least 1, got {window}", window_mask_with_first_tokens, AT, AT, window, 1
    yield "num_first must be at least 0, got -1", window_mask_with_first_tokens, AT, AT, 1, -1
    for i, j in ((AT[0], AT), (AT, AT[0]), (AT[None], AT)):
        got = f"{tuple(i.shape)} and {tuple(j.shape)}"
        yield (
            f"positions must be (..., queries) and (..., keys), got {got}",
            window_mask_with_first_tokens,
            i,
            j,
            1,
            1,
        )
    for numbers in ((-1, 0, 0), (0, -1, 0), (0, 0, -1)):
        got = "{}, {} and {}".format(*numbers)
        yield f"keys, num_first and num_last must be at least 0, got {got}", cache_slots_to_keep, *numbers
