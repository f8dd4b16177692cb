"""transformer_xl.py against its formula, against XLNet, and for what the guide says of it."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from snippets.attention import attention, scaled_dot_product
from snippets.transformer_xl import (
    TransformerXLScores,
    distance_encodings,
    relative_shift,
    transformer_xl_scores,
)
from tests.peers import peer
from tests.snippets.common import EXACT, SEEDS, filled, heads_of, random, refusals


def layer(dim=8, heads=2):
    return filled(TransformerXLScores(dim, heads))


# --- what the sources say


@pytest.mark.claim(
    "transformer-xl-four-terms",
    "Transformer-XL's score is (q.k + q.WR + u.k + v.WR) / sqrt(dim), where R encodes how far the key is "
    "behind the query: the snippet equals the four terms written out, to 1e-12.",
)
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (4, 4), (1, 6), (3, 7)])
@pytest.mark.parametrize(("width", "heads"), [(8, 2), (4, 1), (12, 4), (64, 1)])
def test_every_score_is_its_formula(width, heads, queries, keys):
    dim = width // heads
    score = layer(width, heads)
    q, k = heads_of(queries, heads=heads, dim=dim), heads_of(keys, heads=heads, dim=dim)
    made = score(q, k)
    for head in range(heads):
        project = score.project.weight[dim * head : dim * head + dim]
        u, v = score.u[head], score.v[head]
        for a in range(queries):
            i = keys - queries + a  # the last query stands at the last key
            for j in range(keys):
                if j > i:
                    assert made[head, a, j] == -math.inf
                    continue
                angles = [(i - j) * 10000 ** (-2 * p / width) for p in range(width // 2)]
                waves = [math.sin(x) for x in angles] + [math.cos(x) for x in angles]
                row = project @ torch.tensor(waves, dtype=torch.float64)
                key = k[head, j]
                content, distance = q[head, a] @ key, q[head, a] @ row
                total = (content + distance + u @ key + v @ row) / math.sqrt(dim)
                assert made[head, a, j].item() == pytest.approx(total.item(), abs=1e-12)


def test_rows_are_sines_and_then_cosines_from_the_farthest_to_the_nearest():
    rows = distance_encodings(300, 6, torch.float64)
    for row, distance in ((0, 299), (1, 298), (298, 1), (299, 0)):
        angles = [distance * 10000 ** (-2 * p / 6) for p in range(3)]
        expected = [math.sin(x) for x in angles] + [math.cos(x) for x in angles]
        assert rows[row].tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_narrow_dtype_costs_its_own_rounding_and_no_more(dtype):
    exact, made = distance_encodings(1024, 64, torch.float64), distance_encodings(1024, 64, dtype)
    assert made.dtype == dtype
    assert (made - exact).abs().max() < 1e-4 + torch.finfo(dtype).eps / 2


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (1, 5), (5, 5), (3, 8)])
def test_the_shift_takes_every_distance_to_its_key(queries, keys):
    columns = torch.arange(keys - 1, -1, -1).expand(2, queries, keys)  # column c: distance
    shifted = relative_shift(columns)
    i = torch.arange(keys - queries, keys)[:, None]
    distances = (i - torch.arange(keys)).expand(2, queries, keys)
    seen = distances >= 0
    assert torch.equal(shifted[seen], distances[seen])


@pytest.mark.claim(
    "transformer-xl-shift-garbage",
    "At keys after the query, the relative shift leaves a zero and then numbers that belong to the next "
    "query's row; these have to be hidden.",
)
@pytest.mark.parametrize(("queries", "keys"), [(3, 4), (1, 1), (5, 5), (2, 9), (1, 3)])
def test_beside_what_the_shift_is_for_stands_what_belongs_to_the_next_query(queries, keys):
    x = torch.arange(12).view(3, 4) + 10
    expected = [[12, 13, 0, 14], [15, 16, 17, 0], [18, 19, 20, 21]]
    assert relative_shift(x).tolist() == expected
    x = torch.arange(1, queries * keys + 1).view(queries, keys)
    made = relative_shift(x)
    for a in range(queries):
        right = keys - queries + a + 1  # as many keys are not after the query
        assert torch.equal(made[a, :right], x[a, keys - right :])
        if right < keys:
            assert made[a, right] == 0
            assert torch.equal(made[a, right + 1 :], x[a + 1, : keys - right - 1])


@pytest.mark.claim(
    "transformer-xl-needs-the-shift",
    "Transformer-XL's scores without the shift are right for the last query and wrong for each query "
    "before it.",
)
@pytest.mark.parametrize(("width", "heads"), [(8, 2), (4, 1), (64, 4)])
@pytest.mark.parametrize("tokens", [2, 5, 20])
def test_multiplying_by_rows_without_a_shift_is_another_thing(tokens, width, heads):
    dim, score = width // heads, layer(width, heads)
    q, k = (heads_of(tokens, heads=heads, dim=dim) for _ in range(2))
    rows = (
        score.project(distance_encodings(tokens, width, torch.float64))
        .unflatten(-1, (heads, dim))
        .transpose(0, 1)
    )
    naive = ((q + score.u[:, None]) @ k.mT + (q + score.v[:, None]) @ rows.mT) / math.sqrt(dim)
    gaps = (naive - score(q, k)).tril().abs()
    assert gaps[:, -1].max() < 1e-12  # the last query needs no shift
    assert gaps[:, :-1].amax((0, 2)).min() > 0.01  # and each before it does


def test_u_and_v_start_near_zero():
    score = TransformerXLScores(2048, 2)
    for weight in (score.u, score.v):
        assert weight.std().item() == pytest.approx(0.02, rel=0.1)
    assert not torch.equal(score.u, score.v)


# --- other libraries


def xlnet(heads, dim, width):
    modeling = peer("transformers.models.xlnet.modeling_xlnet")
    config = modeling.XLNetConfig(d_model=width, n_head=heads, dropout=0.0)
    assert config.d_head == dim
    return filled(modeling.XLNetRelativeAttention(config))


def test_rows_agree_with_xlnet(same_as):
    modeling = peer("transformers.models.xlnet.modeling_xlnet")
    frequencies = 1 / 10000 ** (torch.arange(0, 16, 2, dtype=torch.float64) / 16)
    distances = torch.arange(99, -1, -1, dtype=torch.float64)
    expected = modeling.XLNetModel.positional_embedding(distances, frequencies)
    made = distance_encodings(100, 16, torch.float64)
    assert_close(made, expected[:, 0], **EXACT)
    same_as("transformers.models.xlnet.modeling_xlnet.XLNetModel (rows)", made, expected[:, 0])


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (5, 5), (3, 8)])
def test_the_shift_agrees_with_xlnet_which_has_columns_for_both_directions(queries, keys):
    modeling = peer("transformers.models.xlnet.modeling_xlnet")
    x = random(2, 3, queries, queries + keys)  # distances keys, ..., 1 - queries
    other = modeling.XLNetRelativeAttention
    expected = other.rel_shift_bnij(x, klen=keys)
    seen = torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)
    assert torch.equal(relative_shift(x[..., 1 : keys + 1])[..., seen], expected[..., seen])
    turned = other.rel_shift(x.permute(2, 3, 0, 1), klen=keys).permute(2, 3, 0, 1)
    assert torch.equal(turned, expected)


@pytest.mark.claim(
    "transformer-xl-agrees-with-xlnet",
    "With the parameters of transformers' XLNet attention and keys after the query hidden, the snippet "
    "gives the same attention weights and outputs as XLNet, to 1e-12 in float64.",
)
@pytest.mark.claim(
    "transformer-xl-both-directions-are-xlnet-bi",
    "With causal=False, the snippet gives the same attention weights and outputs as transformers' XLNet "
    "in both directions, which is XLNet's default, to 1e-12 in float64.",
)
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (6, 6), (4, 9)])
@pytest.mark.parametrize(("heads", "dim"), [(2, 4), (1, 2), (4, 16)])
def test_attention_agrees_with_xlnet(heads, dim, queries, keys, causal, same_as):
    width = heads * dim
    theirs = xlnet(heads=heads, dim=dim, width=width)
    score = TransformerXLScores(width, heads, causal).double()
    score.u.data.copy_(theirs.r_w_bias)
    score.v.data.copy_(theirs.r_r_bias)
    score.project.weight.data.copy_(theirs.r.permute(1, 2, 0).flatten(0, 1))
    q, k, v = (heads_of(tokens, 3, heads=heads, dim=dim) for tokens in (queries, keys, keys))
    output, weights = attention(q, k, v, score=score)

    distances = torch.arange(keys, -queries, -1, dtype=torch.float64)
    angles = distances[:, None] * 10000 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    rows = torch.cat((angles.sin(), angles.cos()), -1)[:, None].expand(-1, 3, -1)
    hidden = torch.ones(queries, keys, dtype=torch.float64).triu(keys - queries + 1)
    expected, expected_weights = theirs.rel_attn_core(
        *(part.permute(2, 0, 1, 3) for part in (q, k, v)),
        torch.einsum("ibh,hnd->ibnd", rows, theirs.r),
        attn_mask=hidden[:, :, None, None] if causal else None,
        output_attentions=True,
    )
    assert_close(output, expected.permute(1, 2, 0, 3), **EXACT)
    name = "transformers.models.xlnet.modeling_xlnet.XLNetRelativeAttention"
    same_as(name, output, expected.permute(1, 2, 0, 3))
    assert_close(weights, expected_weights.permute(2, 3, 0, 1), **EXACT)


def test_xlnet_has_both_directions_by_default_with_rows_for_later_keys():
    modeling = peer("transformers.models.xlnet.modeling_xlnet")
    model = modeling.XLNetModel(modeling.XLNetConfig(vocab_size=7, d_model=8, n_head=2, n_layer=1, d_inner=8))
    assert model.attn_type == "bi"
    rows = model.relative_positional_encoding(3, 8)[:, 0]  # the first, distance keys, is never used
    assert_close(rows[1:], distance_encodings(8, 8, later=2))


@settings(max_examples=15)
@given(SEEDS, st.integers(1, 5), st.integers(0, 4))
def test_both_directions_differ_for_later_keys_only(seed, queries, more):
    torch.manual_seed(seed)
    score, (q, k) = layer(), (heads_of(queries, 3), heads_of(queries + more, 3))
    causal = score(q, k)
    score.causal = False
    both = score(q, k)
    assert both.isfinite().all()
    assert_close(both.where(causal.isfinite(), -math.inf), causal, **EXACT)


def test_rows_of_later_keys_are_those_of_earlier_ones_with_other_sines():
    rows = distance_encodings(6, 8, torch.float64, later=3)
    assert_close(rows[:6], distance_encodings(6, 8, torch.float64), **EXACT)
    turned = torch.tensor([-1.0] * 4 + [1.0] * 4).double()
    assert_close(rows[6:], rows[[4, 3, 2]] * turned, **EXACT)


# --- what holds for every size


@settings(max_examples=15)
@given(SEEDS, st.integers(1, 5), st.integers(1, 5))
def test_a_score_depends_on_the_distance_and_not_on_the_place(seed, tokens, memory):
    torch.manual_seed(seed)
    score, q, k = layer(), heads_of(tokens), heads_of(tokens)
    alone = score(q, k)
    behind = score(q, torch.cat([heads_of(memory), k], -2))
    assert_close(behind[..., memory:], alone, **EXACT)
    same = score(q[..., :1, :].expand(q.shape), k[..., :1, :].expand(k.shape))
    for offset in range(tokens):
        diagonal = same.diagonal(-offset, -2, -1)
        assert_close(diagonal, diagonal[..., :1].expand(diagonal.shape), **EXACT)


def test_without_what_is_learned_it_is_the_scaled_dot_product():
    score, q, k = layer(), heads_of(5), heads_of(5)
    for weight in score.parameters():
        torch.nn.init.zeros_(weight)
    assert_close(score(q, k).exp(), scaled_dot_product(q, k).exp().tril(), **EXACT)


# --- memory, decoding, padding, packing


@pytest.mark.claim(
    "transformer-xl-memory-is-exact",
    "In Transformer-XL, two layers that process a text in segments and store the inputs of each layer for "
    "all earlier tokens give the same outputs as for the whole text at once, to 1e-12.",
)
@pytest.mark.parametrize("lengths", [(3, 3, 3), (1, 5, 3), (8, 1), (1,) * 9])
@pytest.mark.parametrize(("width", "heads"), [(8, 2), (4, 1), (64, 4)])
def test_segments_with_all_states_kept_give_what_the_whole_gives(width, heads, lengths):
    weights, x = random(2, 3, width, width) / math.sqrt(2 * width), random(9, width)
    scores = [layer(width, heads), layer(width, heads)]

    def one_layer(depth, x, memory):
        seen = torch.cat([memory, x])
        q, k, v = (
            (given @ weight).unflatten(-1, (heads, -1)).transpose(0, 1)
            for given, weight in zip((x, seen, seen), weights[depth], strict=True)
        )
        return x + attention(q, k, v, score=scores[depth])[0].transpose(0, 1).flatten(1)

    def two_layers(x, memory):
        inner = one_layer(0, x, memory[0])
        kept = torch.cat([memory[0], x]), torch.cat([memory[1], inner])
        return one_layer(1, inner, memory[1]), kept

    nothing = (x[:0], x[:0])
    whole, memory, parts = two_layers(x, nothing)[0], nothing, []
    for segment in x.split(lengths):
        part, memory = two_layers(segment, memory)
        parts.append(part)
    assert_close(torch.cat(parts), whole, **EXACT)
    alone = torch.cat([two_layers(segment, nothing)[0] for segment in x.split(lengths)])
    assert (alone - whole).abs().max() > 0.01


# --- dtypes, gradients, compilation, modules


def test_layers_may_share_u_and_v():
    first, second = layer(), layer()
    second.u, second.v = first.u, first.v
    both = torch.nn.ModuleList([first, second])
    assert len(list(both.parameters())) == 4
    q, k = heads_of(5), heads_of(5)
    score = second(q, k)
    first.u.data.add_(1)
    assert not torch.equal(second(q, k), score)


# --- what is refused, and in which words


@refusals
def test_refuses():
    for width in (0, -2, 1, 7):
        yield f"width must be even and at least 2, got {width}", distance_encodings, 3, width
    for dim, heads in ((8, 3), (8, 0), (0, 1), (3, 3), (-8, 2), (4, 8)):
        message = f"dim must be even and a multiple of heads, got {dim} and {heads}"
        yield message, TransformerXLScores, dim, heads
    for dtype in (torch.int64, torch.bool):
        yield f"dtype must be a floating dtype, got {dtype}", distance_encodings, 3, 4, dtype
    for name, place, shape, want in (
        ("k", 1, (2, 5, 3), (2, 5, 4)),
        ("k", 1, (4, 5, 4), (2, 5, 4)),
        ("k", 1, (3, 2, 5, 4), (2, 5, 4)),
        ("rows", 2, (2, 4, 4), (2, 5, 4)),
        ("rows", 2, (5, 4), (2, 5, 4)),
        ("u", 3, (4,), (2, 4)),
        ("u", 3, (1, 4), (2, 4)),
        ("v", 4, (2, 1), (2, 4)),
    ):
        given = [torch.zeros(each) for each in ((2, 3, 4), (2, 5, 4), (2, 5, 4), (2, 4), (2, 4))]
        given[place] = torch.zeros(shape)
        yield f"{name} must be {want}, got {shape}", transformer_xl_scores, *given


def test_takes_the_least_width_and_the_smallest_layer():
    assert distance_encodings(3, 2).shape == (3, 2)
    assert TransformerXLScores(2, 1).u.shape == (1, 2)
