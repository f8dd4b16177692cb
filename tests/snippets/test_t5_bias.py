"""t5_bias.py against exact arithmetic and other libraries, and inside attention."""

import math
import random

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention
from torch.testing import assert_close

from snippets.attention import attention, scaled_dot_product
from snippets.t5_bias import T5Bias, t5_bias, t5_bias_by_offset, t5_buckets
from tests.peers import peer
from tests.snippets.common import EXACT, NO_INTEGERS, filled, refusals

OFFSETS = torch.arange(-1200, 1201)
MODES = pytest.mark.parametrize("bidirectional", [False, True])


def exact_bucket(offset, buckets, max_distance, bidirectional):
    """The definition in whole numbers, without a logarithm that could round."""
    first = 0
    distance = max(-offset, 0)
    if bidirectional:
        buckets //= 2
        first = buckets if offset > 0 else 0
        distance = abs(offset)
    near = buckets // 2
    if distance < near:
        return first + distance
    far = buckets - near
    bucket = near  # the next begins where (distance/near)^far >= (max_distance/near)^(bucket+1-near)
    while bucket < buckets - 1 and (
        distance**far * near ** (bucket + 1 - near) >= max_distance ** (bucket + 1 - near) * near**far
    ):
        bucket += 1
    return first + bucket


# --- what the sources say


@MODES
@pytest.mark.parametrize(
    ("buckets", "max_distance"), [(32, 128), (4, 3), (8, 20), (12, 50), (20, 100), (32, 256), (64, 1000)]
)
def test_buckets_are_exact(buckets, max_distance, bidirectional):
    made = t5_buckets(OFFSETS, buckets, max_distance, bidirectional).tolist()
    assert made == [exact_bucket(n, buckets, max_distance, bidirectional) for n in OFFSETS.tolist()]


def test_two_causal_buckets_are_the_query_and_all_before_it():
    assert t5_buckets(torch.tensor([-9, -1, 0, 1]), 2, 5, False).tolist() == [1, 1, 0, 0]


@pytest.mark.claim(
    "t5-last-bucket-starts-early",
    "With T5's default of 32 buckets and maximum distance 128, the last bucket starts at distance 113 if "
    "the buckets are unidirectional, and at 91 in each direction if they are bidirectional.",
)
def test_the_last_bucket_starts_before_max_distance():
    before = -torch.arange(2000)
    for bidirectional, last, start in ((False, 31, 113), (True, 15, 91)):
        bucket = t5_buckets(before, bidirectional=bidirectional)
        assert (bucket == last).nonzero()[0].item() == start
        assert bucket.max() == last
    assert (t5_buckets(-before) == 31).nonzero()[0].item() == 91


@MODES
@pytest.mark.parametrize(("buckets", "max_distance"), [(32, 128), (64, 1000), (32, 4096)])
def test_shared_buckets_get_wider_as_their_number_counts_the_logarithm(buckets, max_distance, bidirectional):
    side = buckets // 2 if bidirectional else buckets
    near, distances = side // 2, torch.arange(4 * max_distance)
    widths = t5_buckets(-distances, buckets, max_distance, bidirectional).bincount()[near:-1]
    assert (widths.diff() >= -1).all() and widths[-1] > 4 * widths[0]  # a token less by rounding
    ends = widths.cumsum(0) + near
    steps = (ends / near).log() / math.log(max_distance / near) * (side - near)
    assert_close(steps, torch.arange(1.0, len(steps) + 1), rtol=0, atol=0.5)


def test_near_distances_have_a_bucket_each():
    assert t5_buckets(-torch.arange(18), bidirectional=False).tolist() == [*range(17), 16]
    assert t5_buckets(-torch.arange(10)).tolist() == [*range(9), 8]
    assert t5_buckets(torch.arange(10)).tolist() == [0, *range(17, 25), 24]


@pytest.mark.claim(
    "t5-one-bucket-is-never-used",
    "Of T5's 32 bidirectional buckets, bucket 16 is used by no offset; with unidirectional buckets, all "
    "32 are used. The same holds for 4, 6, 64 and 80 buckets and the middle bucket of each.",
)
@pytest.mark.parametrize(("buckets", "max_distance"), [(32, 128), (4, 8), (6, 50), (64, 1000), (80, 128)])
def test_of_bidirectional_buckets_one_is_never_used(buckets, max_distance):
    used = set(t5_buckets(OFFSETS, buckets, max_distance).tolist())
    assert used == set(range(buckets)) - {buckets // 2}
    back = t5_buckets(OFFSETS, buckets, max_distance, bidirectional=False)
    assert set(back.tolist()) == set(range(buckets))


@pytest.mark.claim(
    "t5-causal-is-no-mask",
    "T5's causal buckets put every later key into bucket 0, the query's own, so that later keys still "
    "have to be masked.",
)
@pytest.mark.parametrize(("buckets", "max_distance"), [(32, 128), (2, 5), (7, 20), (80, 2000)])
def test_causal_buckets_give_all_later_keys_the_bucket_of_the_query(buckets, max_distance):
    assert (t5_buckets(torch.arange(100_000), buckets, max_distance, bidirectional=False) == 0).all()


@MODES
@pytest.mark.parametrize("queries", [[0], [300], [3, 4, 5], [7, 2]])
def test_every_entry_is_its_formula(queries, bidirectional):
    keys, table = [*range(7), 150, 600], torch.randn(32, 3)
    by_offset = t5_bias_by_offset(table, bidirectional=bidirectional)
    made = t5_bias(torch.tensor(queries), torch.tensor(keys), by_offset)
    assert made.shape == (3, len(queries), len(keys))
    for row, i in enumerate(queries):
        for column, j in enumerate(keys):
            bucket = exact_bucket(j - i, 32, 128, bidirectional)
            assert torch.equal(made[:, row, column], table[bucket])


# --- other libraries


def hugging_face(offsets, buckets, max_distance, bidirectional):
    module = peer("transformers.models.t5.modeling_t5")
    return module.T5Attention._relative_position_bucket(offsets, bidirectional, buckets, max_distance)


def x_transformers(offsets, buckets, max_distance, bidirectional):
    module = peer("x_transformers.x_transformers")
    function = module.RelativePositionBias._relative_position_bucket
    return function(offsets, not bidirectional, buckets, max_distance)


NAMES = {
    hugging_face: "transformers.models.t5.modeling_t5.T5Attention",
    x_transformers: "x_transformers.RelativePositionBias",
}


@pytest.mark.claim(
    "t5-agrees-with-peers",
    "The snippet's T5 buckets are those of transformers and of x-transformers at every offset from -1200 "
    "to 1200, in both modes, for the default and 25 randomly sampled settings.",
)
@pytest.mark.parametrize("peer", NAMES)
@MODES
def test_buckets_are_those_of_other_libraries(peer, bidirectional, same_as):
    draw = random.Random(peer.__name__)
    settings = [(32, 128)] + [(2 * draw.randint(2, 40), draw.randint(50, 2000)) for _ in range(25)]
    for buckets, max_distance in settings:
        ours = t5_buckets(OFFSETS, buckets, max_distance, bidirectional)
        theirs = peer(OFFSETS, buckets, max_distance, bidirectional)
        assert torch.equal(ours, theirs)
        same_as(NAMES[peer], ours, theirs)


@MODES
def test_weights_of_hugging_face_give_its_bias(bidirectional):
    module = peer("transformers.models.t5.modeling_t5")
    config = module.T5Config(
        num_heads=5,
        d_model=8,
        is_decoder=not bidirectional,
        relative_attention_num_buckets=16,
        relative_attention_max_distance=40,
    )
    theirs = module.T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    ours = T5Bias(5, 16, 40, bidirectional)
    ours.load_state_dict({"table": theirs.relative_attention_bias.weight})
    positions = torch.arange(120)
    assert torch.equal(ours(positions, positions), theirs.compute_bias(120, 120)[0])
    cached = theirs.compute_bias(3, 60, past_seen_tokens=57)[0]
    assert torch.equal(ours(positions[57:60], positions[:60]), cached)


@MODES
def test_weights_of_x_transformers_give_its_bias(bidirectional):
    module = peer("x_transformers.x_transformers")
    theirs = module.RelativePositionBias(scale=1.0, causal=not bidirectional, heads=4)
    ours = T5Bias(4, bidirectional=bidirectional)
    ours.load_state_dict({"table": theirs.relative_attention_bias.weight})
    assert torch.equal(ours(torch.arange(150, 200), torch.arange(200)), theirs(50, 200))


@pytest.mark.claim(
    "t5-no-scale",
    "T5 does not divide scores by the square root of the head width: transformers' layer gives the same "
    "output as the snippet's bias added to unscaled dot products, and a different one from the bias added "
    "to scaled dot products.",
)
@MODES
@pytest.mark.parametrize(("heads", "dim"), [(2, 4), (1, 2), (3, 64)])
def test_a_layer_of_hugging_face_adds_the_bias_to_unscaled_scores(heads, dim, bidirectional):
    module = peer("transformers.models.t5.modeling_t5")
    config = module.T5Config(num_heads=heads, d_model=8, d_kv=dim, is_decoder=not bidirectional)
    config._attn_implementation = "eager"
    theirs = module.T5Attention(config, has_relative_attention_bias=True, layer_idx=0).double().eval()
    for weight in theirs.parameters():
        torch.nn.init.normal_(weight)
    ours = T5Bias(heads, bidirectional=bidirectional).double()
    x, i = torch.randn(1, 7, 8, dtype=torch.float64), torch.arange(7)
    ours.load_state_dict({"table": theirs.relative_attention_bias.weight})
    expected = theirs(x)[0]

    def layer(score):
        q, k, v = (
            part(x).unflatten(-1, (heads, dim)).transpose(1, 2) for part in (theirs.q, theirs.k, theirs.v)
        )
        return theirs.o(attention(q, k, v, ours(i, i), score=score)[0].transpose(1, 2).flatten(-2))

    assert_close(layer(lambda q, k: q @ k.mT), expected, rtol=0, atol=1e-11)
    assert (layer(scaled_dot_product) - expected).abs().max() > 0.1


@pytest.mark.claim(
    "t5-layers-share-a-table",
    "In transformers' T5, one table of biases serves all layers of a stack: an encoder and a decoder with "
    "1, 3 or 6 layers each have 2 tables in total, and cross-attention has none.",
)
@pytest.mark.parametrize("layers", [1, 3, 6])
def test_all_layers_of_a_stack_share_one_table(layers):
    module = peer("transformers.models.t5.modeling_t5")
    config = module.T5Config(num_heads=2, d_model=8, d_kv=4, d_ff=8, num_layers=layers, vocab_size=10)
    names = [name for name, _ in module.T5Model(config).named_parameters() if "relative" in name]
    place = "block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    assert names == [f"encoder.{place}", f"decoder.{place}"]


# --- what holds for every size


@MODES
@given(st.integers(2, 30), st.integers(1, 500))
def test_farther_keys_never_have_an_earlier_bucket(bidirectional, half, max_distance):
    assume(max_distance > half)
    for direction in (-1, 1):
        bucket = t5_buckets(direction * torch.arange(1, 700), 2 * half, max_distance, bidirectional)
        assert (bucket.diff() >= 0).all()
        assert bucket.min() >= 0 and bucket.max() < 2 * half
        assert (bucket[max_distance - 1 :] == bucket[-1]).all()


def test_directions_have_buckets_of_their_own():
    i = torch.arange(150)
    bias = filled(T5Bias(3))(i, i)
    assert not (bias == bias.mT)[:, ~torch.eye(150, dtype=torch.bool)].any()


# --- in attention


def test_t5_adds_it_to_scores_that_are_not_scaled():
    q, k, v = torch.randn(3, 2, 3, 6, 8, dtype=torch.float64)
    bias = filled(T5Bias(3))(torch.arange(6), torch.arange(6))
    expected = (q @ k.mT + bias).softmax(-1) @ v
    assert_close(scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=1.0), expected, **EXACT)
    assert_close(attention(q, k, v, bias, score=lambda q, k: q @ k.mT)[0], expected, **EXACT)


def test_a_causal_table_hides_nothing_until_it_is_masked():
    q, k, v = torch.randn(3, 3, 6, 8, dtype=torch.float64)
    bias = filled(T5Bias(3, bidirectional=False))(torch.arange(6), torch.arange(6))
    assert (attention(q, k, v, bias)[1] > 0).all()
    _, weights = attention(q, k, v, bias, causal=True)
    assert torch.equal(weights, weights.tril())


# --- memory


# --- gradients, dtypes, compilation, modules


@MODES
def test_gradients_count_how_often_a_bucket_is_met(bidirectional):
    bias, i = filled(T5Bias(3, bidirectional=bidirectional)), torch.arange(200)
    (grad,) = torch.autograd.grad(bias(i, i).sum(), bias.table)
    met = t5_buckets(i - i[:, None], bidirectional=bidirectional).flatten().bincount(minlength=32)
    assert torch.equal(grad, met.double()[:, None].expand(32, 3))


def test_a_new_table_says_nothing():
    assert (T5Bias(4)(torch.arange(9), torch.arange(9)) == 0).all()


# --- what is refused, and in which words


@refusals
def test_refuses():
    for buckets in (-2, 0, 2, 3, 7, 33):  # which two directions cannot share
        message = f"buckets must be even and 4 or more, got {buckets}"
        yield message, t5_buckets, OFFSETS, buckets
        yield message, T5Bias, 2, buckets
        if buckets >= 0:
            yield message, t5_bias_by_offset, torch.zeros(buckets, 2)
    for buckets in (-2, 0, 1):
        message = f"buckets must be 2 or more, got {buckets}"
        yield message, t5_buckets, OFFSETS, buckets, 128, False
        yield message, T5Bias, 2, buckets, 128, False
    for both, most in ((True, 8), (False, 16)):  # which leave nothing to share
        for far in (most, 1, 0, -5):
            message = f"max_distance must be more than {most}, got {far}"
            yield message, t5_buckets, OFFSETS, 32, far, both
            yield message, T5Bias, 2, 32, far, both
    for shape in ((), (32,), (1, 32, 2)):
        yield f"table must be (buckets, heads), got {shape}", t5_bias_by_offset, torch.zeros(shape)
    for shape in ((), (257,), (3, 0), (3, 256), (1, 3, 257)):  # without a middle
        message = f"bias_by_offset must be (heads, 2 max_distance + 1), got {shape}"
        yield message, t5_bias, OFFSETS, OFFSETS, torch.zeros(shape)
    for offsets, got in NO_INTEGERS:
        whole = "integer tensors (uint8, int8, int16, int32 or int64)"
        yield f"offsets must be {whole}, got {got}", t5_buckets, offsets


def test_takes_the_least_distance_that_leaves_something_to_share():
    for both, most in ((True, 8), (False, 16)):
        assert t5_buckets(OFFSETS, 32, most + 1, both).max() == 31


def test_t5_has_128_for_its_largest_distance():
    table = torch.arange(32.0)[:, None]
    made = t5_bias_by_offset(table)
    assert torch.equal(made, t5_bias_by_offset(table, max_distance=128))
    assert not torch.equal(made, t5_bias_by_offset(table, max_distance=129)[:, 1:-1])
