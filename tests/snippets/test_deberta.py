"""deberta.py against its formula, against transformers, and for what the guide says of it."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from snippets.attention import SelfAttention, attention
from snippets.deberta import DebertaScores, deberta_scores, log_buckets
from tests.peers import peer
from tests.snippets.common import EXACT, SEEDS, filled, heads_of, random, refusals

NEAR = {"rtol": 0, "atol": 1e-6}  # transformers keeps the scale in float32


def layer(dim=8, heads=2, span=3, max_distance=None):
    return filled(DebertaScores(dim, heads, span, max_distance), std=0.5)


def attend(score, q, k, v, positions, **options):
    return attention(q, k, v, score=lambda q, k: score(q, k, positions, positions), **options)


# --- what the sources say


@pytest.mark.parametrize("span", [1, 2, 5])
def test_every_score_is_its_formula(span):
    q, k = heads_of(4), heads_of(5)
    key_rows, query_rows = heads_of(2 * span), heads_of(2 * span)
    query_positions, key_positions = torch.tensor([0, 3, 3, -7]), torch.tensor([1, 0, 9, 4, -6])
    made = deberta_scores(q, k, key_rows, query_rows, query_positions, key_positions)
    for head in range(2):
        for a, i in enumerate(query_positions.tolist()):
            for b, j in enumerate(key_positions.tolist()):
                row = max(0, min(2 * span - 1, i - j + span))
                total = q[head, a] @ k[head, b]
                total += q[head, a] @ key_rows[head, row]
                total += query_rows[head, row] @ k[head, b]
                expected = total.item() / math.sqrt(3 * 4)
                assert made[head, a, b].item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("left_out", ["key_rows", "query_rows"])
def test_one_term_alone_is_that_term_and_its_own_scale(left_out):
    q, k, at = heads_of(4), heads_of(4), torch.arange(4)
    rows = {"key_rows": heads_of(6), "query_rows": heads_of(6)}
    nothing = torch.zeros(2, 6, 4, dtype=torch.float64)
    zeros, alone = (
        deberta_scores(q, k, *(rows | {left_out: instead}).values(), at, at) for instead in (nothing, None)
    )
    assert_close(alone, zeros * math.sqrt(3 / 2), **EXACT)


def test_the_farthest_key_after_the_query_has_the_first_row():
    rows, nothing = torch.arange(6.0)[None, :, None], torch.zeros(1, 6, 1)
    q, k = torch.ones(1, 1, 1), torch.zeros(1, 9, 1)
    scores = deberta_scores(q, k, rows, nothing, torch.tensor([20]), torch.arange(16, 25))
    expected = torch.tensor([5.0, 5, 5, 4, 3, 2, 1, 0, 0]) / math.sqrt(3)
    assert_close(scores[0, 0], expected)


@pytest.mark.claim(
    "deberta-shared-projections-from-version-two",
    "In transformers, with both position terms, DeBERTa's version 1 learns a table of 2 span rows and, in "
    "each layer, two projections of the table; version 2 with share_att_key and with norm_rel_ebd set to "
    "layer_norm learns only the table and the scale and shift of a norm.",
)
@pytest.mark.parametrize(("dim", "heads", "layers", "span"), [(32, 2, 3, 16), (64, 4, 1, 8)])
def test_from_version_two_on_the_table_has_no_projections_of_its_own(dim, heads, layers, span):
    sizes = {
        "hidden_size": dim,
        "num_attention_heads": heads,
        "num_hidden_layers": layers,
        "intermediate_size": 8,
        "vocab_size": 9,
        "max_position_embeddings": span,
    }
    learned = []
    for version in ("deberta", "deberta_v2"):
        module = peer(f"transformers.models.{version}.modeling_{version}")
        name = "Deberta" if version == "deberta" else "DebertaV2"
        later = {"share_att_key": True, "position_buckets": span, "norm_rel_ebd": "layer_norm"}
        counts = []
        for options in ({}, {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}):
            options = options | (later if options and version == "deberta_v2" else {})
            model = getattr(module, f"{name}Model")(getattr(module, f"{name}Config")(**sizes, **options))
            counts.append(sum(p.numel() for p in model.parameters()))
        learned.append(counts[1] - counts[0])
    table, biases = 2 * span * dim, dim * layers  # version 1's query projection has a bias
    assert learned == [table + 2 * dim * dim * layers + biases, table + 2 * dim]


@pytest.mark.claim(
    "deberta-last-term",
    "In the position-to-content term, transformers and the snippet use the offset i - j, as in the "
    "content-to-position term; the paper's j - i gives different scores.",
)
@pytest.mark.parametrize(("span", "tokens"), [(1, 2), (3, 5), (8, 5), (8, 40)])
def test_the_last_term_of_the_paper_is_another_thing(span, tokens):
    q, k, key_rows, query_rows = (heads_of(count) for count in (tokens, tokens, 2 * span, 2 * span))
    at = torch.arange(tokens)
    made = deberta_scores(q, k, key_rows, query_rows, at, at)

    def scores(other):
        rows = (at[:, None] - at + span).clamp(0, 2 * span - 1)
        turned = (other * (at[:, None] - at) + span).clamp(0, 2 * span - 1)
        c2p = torch.einsum("hid,hijd->hij", q, key_rows[:, rows])
        p2c = torch.einsum("hjd,hijd->hij", k, query_rows[:, turned])
        return (q @ k.mT + c2p + p2c) / math.sqrt(12)

    assert_close(made, scores(1), **EXACT)
    assert (made - scores(-1)).abs().max() > 0.5


@pytest.mark.claim(
    "deberta-scale",
    "DeBERTa divides the sum of its three terms by the square root of 3 dim, which gives scores of "
    "unit variance for independent entries of mean zero and unit variance.",
)
@pytest.mark.parametrize("coins", [False, True])
@pytest.mark.parametrize("dim", [8, 64, 65, 256])
def test_three_terms_over_the_root_of_three_dim_have_unit_variance(dim, coins):
    at = torch.arange(200)
    q, k, *rows = (heads_of(200, dim=dim, heads=4) for _ in range(4))
    if coins:
        q, k, *rows = (part.sign() for part in (q, k, *rows))
    scores = deberta_scores(q, k, *rows, at, at)
    assert scores.std().item() == pytest.approx(1, rel=0.05)
    content = q @ k.mT / math.sqrt(3 * dim)
    nothing = torch.zeros_like(rows[0])
    assert_close(deberta_scores(q, k, nothing, nothing, at, at), content, **EXACT)


def test_the_table_starts_as_small_as_its_projections():
    score = DebertaScores(768, 12, 512)
    assert score.table.shape == (1024, 768)
    assert score.table.std().item() == pytest.approx(0.02, rel=0.01)
    assert score.project_key.bias is None
    assert score.project_query.bias is None


# --- buckets


@pytest.mark.claim(
    "deberta-buckets",
    "With span 256 and maximum distance 512, DeBERTa's log buckets keep distances up to 128 unchanged, "
    "and map 200 to 169, 400 to 233, and 511 and all larger distances to 255, in the same way on both "
    "sides.",
)
def test_buckets_of_the_released_models():
    distances = torch.tensor([0, 1, 128, 129, 200, 300, 400, 505, 506, 511, 512, 9999])
    expected = [0, 1, 128, 129, 169, 207, 233, 254, 255, 255, 255, 255]
    assert log_buckets(distances, 256, 512).tolist() == expected
    assert log_buckets(-distances, 256, 512).tolist() == [-bucket for bucket in expected]


@pytest.mark.parametrize(("span", "max_distance"), [(256, 512), (4, 4), (8, 50), (32, 128)])
def test_every_bucket_is_its_formula(span, max_distance):
    middle, far = span // 2, max_distance - 1
    for distance in range(-2 * max_distance, 2 * max_distance):
        steps = min(abs(distance), far)
        if steps > middle and steps < far:
            part = math.log(steps / middle) / math.log(far / middle)
            bucket = middle + math.ceil(part * (middle - 1))
        else:
            bucket = steps if steps <= middle else span - 1
        made = log_buckets(torch.tensor(distance), span, max_distance)
        assert made.item() == math.copysign(bucket, distance)
        assert made.dtype == torch.int64


@given(st.integers(2, 40), st.integers(2, 600))
def test_buckets_rise_to_the_last_and_stay_there(half, more):
    span, max_distance = 2 * half, half + more
    distances = torch.arange(3 * max_distance)
    made = log_buckets(distances, span, max_distance)
    assert (made.diff() >= 0).all()
    assert (made[max_distance - 1 :] == span - 1).all()
    assert torch.equal(made[: half + 1], distances[: half + 1])
    assert torch.equal(log_buckets(-distances, span, max_distance), -made)


@pytest.mark.parametrize(
    ("span", "max_distance"), [(256, 512), (4, 4), (8, 50), (32, 128), (64, 512), (256, 1024)]
)
def test_buckets_agree_with_transformers_as_far_as_it_bounds_them(span, max_distance, same_as):
    modeling = peer("transformers.models.deberta_v2.modeling_deberta_v2")
    distances = torch.arange(1 - max_distance, max_distance)
    expected = modeling.make_log_bucket_position(distances, span, max_distance).long()
    made = log_buckets(distances, span, max_distance)
    assert torch.equal(made, expected)
    same_as("transformers.models.deberta_v2.modeling_deberta_v2.make_log_bucket_position", made, expected)


@pytest.mark.claim(
    "deberta-transformers-counts-on",
    "Beyond the maximum distance, transformers' log buckets keep growing, so with span 256 and maximum "
    "distance 512, a key 512 or more after the query has row 0 there and row 1 in the snippet; up to 511 "
    "they agree.",
)
def test_transformers_counts_on_where_microsoft_stops():
    modeling = peer("transformers.models.deberta_v2.modeling_deberta_v2")
    far = torch.tensor([-600, -512, 512, 600])
    near = torch.arange(-511, 512)
    assert torch.equal(modeling.make_log_bucket_position(near, 256, 512).long(), log_buckets(near, 256, 512))
    theirs = modeling.make_log_bucket_position(far, 256, 512).long()
    assert theirs.tolist() == [-270, -256, 256, 270]
    rows = (theirs + 256).clamp(0, 511), (log_buckets(far, 256, 512) + 256).clamp(0, 511)
    assert [row.tolist() for row in rows] == [[0, 0, 511, 511], [1, 1, 511, 511]]


# --- other libraries


def transformers_layer(span, buckets, share=False, terms=("c2p", "p2c")):
    modeling = peer("transformers.models.deberta_v2.modeling_deberta_v2")
    config = modeling.DebertaV2Config(
        hidden_size=8,
        num_attention_heads=2,
        relative_attention=True,
        pos_att_type=list(terms),
        max_relative_positions=span,
        position_buckets=buckets,
        share_att_key=share,
    )
    return filled(modeling.DisentangledSelfAttention(config), std=0.5).eval()


@pytest.mark.claim(
    "deberta-last-term",
    "In the position-to-content term, transformers and the snippet use the offset i - j, as in the "
    "content-to-position term; the paper's j - i gives different scores.",
)
@pytest.mark.claim(
    "deberta-agrees-with-transformers",
    "The snippet's DeBERTa scores equal those of version 2 in transformers, with buckets (below their "
    "maximum distance) and without, with shared and with separate projections, up to the rounding of its "
    "float32 scale.",
)
@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize(
    ("span", "buckets", "tokens"),
    [(3, -1, 13), (20, -1, 1), (20, -1, 60), (30, 8, 13), (30, 8, 30), (40, 4, 40), (512, 256, 512)],
)
def test_scores_agree_with_transformers(span, buckets, tokens, share, same_as):
    theirs = transformers_layer(span, buckets, share)
    rows = buckets if buckets > 0 else span
    table = random(2 * rows, 8)
    q, k = heads_of(tokens, 3), heads_of(tokens, 3)
    flat = q.flatten(0, 1), k.flatten(0, 1)
    position = theirs.disentangled_attention_bias(*flat, None, table, 3)
    expected = position.unflatten(0, (3, 2)) + q @ k.mT / math.sqrt(12)

    def heads(project):
        return project(table).unflatten(-1, (2, 4)).transpose(0, 1)

    key_rows = heads(theirs.key_proj if share else theirs.pos_key_proj)
    query_rows = heads(theirs.query_proj if share else theirs.pos_query_proj)
    at, far = torch.arange(tokens), span if buckets > 0 else None
    made = deberta_scores(q, k, key_rows, query_rows, at, at, far)
    assert_close(made, expected, **NEAR)
    same_as("transformers.models.deberta_v2.modeling_deberta_v2.DisentangledSelfAttention", made, expected)


@pytest.mark.claim(
    "deberta-single-terms",
    "With only one positional term, content to position or position to content, the snippet's layer gives "
    "the same result as transformers' DeBERTa with that pos_att_type; it divides by the square root of 2 "
    "dim.",
)
@pytest.mark.parametrize("terms", [("c2p", "p2c"), ("c2p",), ("p2c",)])
@pytest.mark.parametrize(("span", "buckets"), [(4, -1), (30, 8)])
def test_a_layer_agrees_with_transformers(span, buckets, terms):
    theirs = transformers_layer(span, buckets, terms=terms)
    for name, weight in theirs.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.zeros_(weight)
    rows, far = (buckets, span) if buckets > 0 else (span, None)
    score = filled(DebertaScores(8, 2, rows, far, terms), std=0.5)
    attend = SelfAttention(8, 2).double()
    for term, ours, their in (
        ("c2p", score.project_key, "pos_key_proj"),
        ("p2c", score.project_query, "pos_query_proj"),
    ):
        assert (ours is None) == (term not in terms)
        if ours is not None:
            ours.weight.data.copy_(getattr(theirs, their).weight)
    projections = theirs.query_proj, theirs.key_proj, theirs.value_proj
    attend.project.weight.data.copy_(torch.cat([part.weight for part in projections]))
    attend.merge.weight.data.copy_(torch.eye(8))
    x, at = random(3, 11, 8), torch.arange(11)
    seen = torch.ones(3, 1, 11, 11)
    expected = theirs(x, seen, output_attentions=True, rel_embeddings=score.table)
    made = attend(x, score=lambda q, k: score(q, k, at, at))
    assert_close(made, expected, **NEAR)


def test_transformers_counts_from_key_to_query_too():
    modeling = peer("transformers.models.deberta_v2.modeling_deberta_v2")
    q = random(1, 5, 4)
    at = torch.arange(5)
    assert torch.equal(modeling.build_relative_position(q, q)[0], at[:, None] - at)


# --- what holds for every size


@settings(max_examples=15)
@given(SEEDS, st.integers(1, 5), st.integers(0, 1000))
def test_beyond_the_span_every_distance_is_the_same(seed, span, farther):
    torch.manual_seed(seed)
    score, q, k = layer(span=span), heads_of(1), heads_of(1).expand(2, 4, 4)
    steps = torch.tensor([span, -span + 1, span + farther, -span - farther])
    scores = score(q, k, torch.tensor([50]), 50 + steps)
    assert_close(scores[..., 2], scores[..., 0], **EXACT)
    assert_close(scores[..., 3], scores[..., 1], **EXACT)


def test_it_sees_both_directions_and_tells_them_apart():
    score, at = layer(), torch.arange(5)
    q, k = heads_of(1).expand(2, 5, 4), heads_of(1).expand(2, 5, 4)
    scores = score(q, k, at, at)
    assert scores.isfinite().all()
    assert (scores - scores.mT).abs().amax((-2, -1)).min() > 0.01


# --- dtypes, gradients, compilation, modules


def test_layers_may_share_the_table():
    first, second = layer(), layer()
    second.table = first.table
    assert len(list(torch.nn.ModuleList([first, second]).parameters())) == 5
    (q, k), at = random(2, 2, 5, 4), torch.arange(5)
    score = second(q, k, at, at)
    first.table.data.add_(1)
    assert not torch.equal(second(q, k, at, at), score)


# --- what is refused, and in which words


@refusals
def test_refuses():
    q, at = torch.zeros(2, 5, 4), torch.arange(5)
    for span, far in ((2, 9), (5, 9), (15, 64), (0, 9), (8, 5), (8, 0), (-4, 9)):
        message = f"span must be even, at least 4 and below 2 max_distance - 2, got {span} and {far}"
        yield message, log_buckets, at, span, far
        if span > 0:
            rows = torch.zeros(2, 2 * span, 4)
            yield message, deberta_scores, q, q, rows, rows, at, at, far
            yield message, DebertaScores, 8, 2, span, far
    for sizes in ((8, 3, 4), (8, 0, 4), (0, 1, 4), (8, 2, 0)):
        message = "dim must be a multiple of heads and span at least 1, got {}, {} and {}"
        yield message.format(*sizes), DebertaScores, *sizes
    for terms in ((), ("c2c",), ("c2p", "p2p"), "c2p"):
        message = f"terms must be 'c2p', 'p2c' or both, got {tuple(terms)}"
        yield message, partial(DebertaScores, terms=terms), 8, 2, 4
    message = "key_rows or query_rows must be given, got None"
    yield message, deberta_scores, q, q, None, None, at, at
    for name, place, shape, want in (
        ("k", 1, (2, 5, 3), (2, 5, 4)),
        ("k", 1, (3, 5, 4), (2, 5, 4)),
        ("key_rows", 2, (2, 5, 4), (2, 4, 4)),
        ("key_rows", 2, (6, 4), "(heads, 2 * span, dim)"),
        ("query_rows", 3, (2, 4, 4), (2, 6, 4)),
        ("query_rows", 3, (1, 6, 4), (2, 6, 4)),
    ):
        given = [torch.zeros(each) for each in ((2, 3, 4), (2, 5, 4), (2, 6, 4), (2, 6, 4))]
        given[place] = torch.zeros(shape)
        yield f"{name} must be {want}, got {shape}", deberta_scores, *given, at[:3], at
        if shape == (6, 4):  # and where they alone are given
            given[2:] = None, given[2]
            yield f"query_rows must be {want}, got {shape}", deberta_scores, *given, at[:3], at


def test_takes_the_smallest_layer_and_spreads_the_smallest_buckets():
    assert DebertaScores(1, 1, 1).table.shape == (2, 1)
    assert log_buckets(torch.arange(6), 8, 6).tolist() == [0, 1, 2, 3, 4, 7]


def test_buckets_of_small_integers_are_int64():
    distances = torch.arange(-128, 128)
    expected = log_buckets(distances, 64, 100)
    assert torch.equal(log_buckets(distances.to(torch.int8), 64, 100), expected)
    assert log_buckets(distances[128:].to(torch.uint8), 64, 100).dtype == torch.int64
