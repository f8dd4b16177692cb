"""alibi.py against its formula, the authors' slopes and other libraries, and inside attention."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.attention.flex_attention import flex_attention
from torch.testing import assert_close

from snippets.alibi import alibi_bias, alibi_bias_symmetric, alibi_slopes
from snippets.attention import SelfAttention, attention
from tests.peers import peer
from tests.snippets.common import places, refused
from tests.snippets.fitness import NoFloat64

INF = math.inf
BOTH = [alibi_bias, alibi_bias_symmetric]
SLOPES = st.integers(1, 40).map(alibi_slopes)
POSITIONS = places(-5000, 5000)


def authors_slopes(heads):
    """Of a power of two a geometric row from its own ratio; else of two powers, spliced."""
    power = 2 ** math.floor(math.log2(heads))
    first = 2 ** -(2 ** -(math.log2(power) - 3))
    slopes = [first ** (n + 1) for n in range(power)]
    return slopes if power == heads else slopes + authors_slopes(2 * power)[::2][: heads - power]


# --- what the sources say


def test_slopes_of_8_heads_are_those_of_the_paper():
    assert alibi_slopes(8).tolist() == [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]


def test_slopes_of_16_heads_are_those_of_the_paper():
    assert_close(alibi_slopes(16), torch.tensor([2 ** (-n / 2) for n in range(1, 17)]), rtol=1e-7, atol=0)


def test_slopes_of_12_heads_splice_those_of_8_and_of_16():
    spliced = [*alibi_slopes(8).tolist(), *alibi_slopes(16)[[0, 2, 4, 6]].tolist()]
    assert alibi_slopes(12).tolist() == spliced


@pytest.mark.claim(
    "alibi-slopes-are-those-of-the-authors-code",
    "For every number of heads from 1 to 199, alibi_slopes gives the slopes of the authors' code, to "
    "the rounding of float32.",
)
def test_slopes_of_any_number_of_heads_are_those_of_the_authors_code():
    for heads in range(1, 200):
        assert_close(alibi_slopes(heads), torch.tensor(authors_slopes(heads)), rtol=1e-7, atol=0)


@pytest.mark.claim(
    "alibi-one-formula-holds-for-powers-of-two-only",
    "Up to 64 heads, the slopes 2^(-8h/heads) are those of ALiBi's released code exactly where the "
    "number of heads is a power of two; elsewhere some head's slope is off by more than 0.1.",
)
def test_one_geometric_row_is_right_for_powers_of_two_only():
    for heads in range(1, 65):
        row = torch.tensor([2 ** (-8 * n / heads) for n in range(1, heads + 1)])
        gap = (alibi_slopes(heads) - row).abs().max()
        assert gap < 1e-7 if heads.bit_count() == 1 else gap > 0.1


@pytest.mark.parametrize("heads", range(1, 34))
def test_heads_forget_at_rates_of_their_own(heads):
    slopes = alibi_slopes(heads)
    assert slopes.shape == (heads,)
    assert slopes.dtype == torch.float32
    assert slopes.min() >= 2**-8 and slopes.max() < 1
    assert len(set(slopes.tolist())) == heads


@pytest.mark.parametrize("heads", [1, 3, 8])
@pytest.mark.parametrize("queries", [[0], [9], [3, 4, 5], [0, 1, 2, 3, 4, 5, 6], [7, 2]])
def test_every_entry_is_its_formula(heads, queries):
    keys = list(range(7))
    given = torch.tensor(queries), torch.tensor(keys), alibi_slopes(heads)
    causal, symmetric = alibi_bias(*given), alibi_bias_symmetric(*given)
    assert torch.equal(alibi_bias(*given, torch.float64), causal.double())  # counted in float32
    assert causal.shape == symmetric.shape == (heads, len(queries), 7)
    for h, slope in enumerate(authors_slopes(heads)):
        for row, i in enumerate(queries):
            for j in keys:
                expected = -slope * (i - j) if j <= i else -INF
                assert causal[h, row, j].item() == pytest.approx(expected, rel=2e-7)
                assert symmetric[h, row, j].item() == pytest.approx(-slope * abs(i - j), rel=2e-7)


# --- other libraries


def test_agrees_with_x_transformers(same_as):
    module = peer("x_transformers.x_transformers")
    for heads in (1, 2, 3, 8, 12, 20, 40):
        theirs = module.AlibiPositionalBias(heads)
        i, j = torch.randint(0, 3000, (5,)), torch.randint(0, 3000, (9,))
        slopes = alibi_slopes(heads)
        ours, expected = alibi_bias_symmetric(i, j, slopes), theirs.forward_custom_pos(i, j)
        assert torch.equal(ours, expected)
        same_as("x_transformers.AlibiPositionalBias", ours, expected)
        i, j = torch.arange(4, 7), torch.arange(7)
        assert torch.equal(alibi_bias_symmetric(i, j, slopes), theirs(3, 7))


@pytest.mark.claim(
    "attention-gym-uses-the-formula-for-powers-of-two",
    "attention-gym's generate_alibi_bias has the slopes 2^(-8h/heads) for every number of heads up to 64, "
    "so they equal those of the released code only for powers of two.",
)
def test_attention_gym_uses_one_geometric_row_for_any_number_of_heads():
    generate = peer("attn_gym.mods").generate_alibi_bias
    for heads in range(1, 65):
        h, zero, one = torch.arange(heads), torch.tensor(0), torch.tensor(1)
        slopes = generate(heads)(torch.zeros(heads), zero, h, one, zero).neg()
        assert_close(slopes, 2 ** (-8 * (h + 1) / heads))
        apart = (slopes - alibi_slopes(heads)).abs().max()
        assert apart < 1e-6 if heads.bit_count() == 1 else apart > 0.1


def bloom(heads, tokens):
    module = peer("transformers.models.bloom.modeling_bloom")
    return module.build_alibi_tensor(torch.ones(1, tokens), heads, torch.float32)


def mpt(heads, tokens):
    module = peer("transformers.models.mpt.modeling_mpt")
    return module.build_mpt_alibi_tensor(heads, tokens)


@pytest.mark.claim(
    "alibi-key-only-form-is-equal-under-softmax",
    "Under a causal mask, the bias slope * j of the key alone, which BLOOM and MPT use in transformers, "
    "gives the same attention weights as -slope * (i - j), up to float32 rounding: at most 6e-8 for each "
    "token of the text and for ten more.",
)
@pytest.mark.parametrize("peer", [bloom, mpt])
@pytest.mark.parametrize("heads", [1, 2, 3, 4, 6, 8, 12, 16, 20, 40])
def test_a_bias_of_the_key_alone_differs_by_a_constant_per_query(peer, heads, same_as):
    theirs, positions = peer(heads, 50), torch.arange(50)
    assert theirs.shape == (heads, 1, 50)
    ours = alibi_bias(positions, positions, alibi_slopes(heads))
    shift = alibi_slopes(heads)[:, None, None] * (positions - theirs.new_tensor(49 * (peer is mpt)))[:, None]
    seen = ours > -INF
    assert_close((ours + shift)[seen], theirs.expand_as(ours)[seen], rtol=1e-5, atol=1e-6)
    hidden = theirs.masked_fill(~seen, -INF)
    assert_close(ours.softmax(-1), hidden.softmax(-1), rtol=0, atol=2e-6)
    same_as(f"transformers.models.{peer.__name__} (its softmax)", ours.softmax(-1), hidden.softmax(-1))
    for tokens in (1, 50, 300):
        positions, content = torch.arange(tokens), torch.randn(heads, tokens, tokens)
        ours = alibi_bias(positions, positions, alibi_slopes(heads))
        hidden = peer(heads, tokens).masked_fill(ours.isneginf(), -INF)
        gap = ((content + ours).softmax(-1) - (content + hidden).softmax(-1)).abs().max()
        assert gap <= 6e-8 * (tokens + 10)


@pytest.mark.claim(
    "alibi-distance-form-is-more-accurate-in-bfloat16",
    "If only the bias is rounded to bfloat16, and contents are equal, -slope * (i - j) gives attention "
    "weights more than ten times closer to the exact ones than slope * j does, in the head with the "
    "largest error, for the last of 4,096 tokens and eight heads.",
)
def test_the_distance_form_is_the_more_accurate_one_in_bfloat16():
    i, j = torch.tensor([4095]), torch.arange(4096)
    exact = alibi_bias(i, j, alibi_slopes(8)).double().softmax(-1)
    by_key = (alibi_slopes(8)[:, None, None] * j).bfloat16()
    by_distance = alibi_bias(i, j, alibi_slopes(8), torch.bfloat16)
    errors = [(bias.double().softmax(-1) - exact).abs().sum(-1).max() for bias in (by_key, by_distance)]
    assert errors[0] > 10 * errors[1]


# --- what holds for every size


@given(POSITIONS, SLOPES)
def test_a_step_away_costs_the_slope(i, slopes):
    for direction, function in ((-1, alibi_bias), (-1, alibi_bias_symmetric), (1, alibi_bias_symmetric)):
        bias = function(i[:1], i[:1] + direction * torch.arange(20), slopes)[:, 0]
        falls = bias[:, :-1] - bias[:, 1:]
        assert (bias[:, 0] == 0).all()
        assert_close(falls, slopes[:, None].expand_as(falls), rtol=1e-4, atol=0)


@pytest.mark.claim(
    "alibi-bias-is-causal-here",
    "alibi_bias hides every later key with -inf and no other key, and alibi_bias_symmetric hides no key: "
    "in float16 up to a distance of 65,504, in bfloat16 and wider dtypes at any distance.",
)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@given(POSITIONS, POSITIONS, SLOPES, st.sampled_from([0, 1, 55_504, 10**9]))
def test_later_keys_are_hidden_and_no_others(dtype, i, j, slopes, gap):
    i = i + (min(gap, 55_504) if dtype == torch.float16 else gap)  # 55,504 and the 10,000 between positions
    later = (j > i[:, None]).expand(len(slopes), -1, -1)
    causal, symmetric = alibi_bias(i, j, slopes, dtype), alibi_bias_symmetric(i, j, slopes, dtype)
    assert torch.equal(causal.isneginf(), later)
    assert torch.equal(causal[~later], symmetric[~later])
    assert symmetric.isfinite().all()
    assert alibi_bias_symmetric(i[:1], i[:1] + 10**9, slopes, torch.float16).isneginf().all()


@pytest.mark.claim(
    "alibi-formula-unmasked-favours-the-last-key",
    "With equal contents and without a mask, the formula -slope * (i - j) makes every query give the most "
    "attention to the last key of the text.",
)
def test_without_a_mask_the_formula_draws_every_query_to_the_end():
    for tokens, heads in itertools.product((1, 2, 9, 500), (1, 3, 8, 40)):
        i, slopes = torch.arange(tokens), alibi_slopes(heads)
        formula = slopes[:, None, None] * (i - i[:, None])
        assert (formula.softmax(-1).argmax(-1) == tokens - 1).all()
        assert (alibi_bias(i, i, slopes).softmax(-1).argmax(-1) == i).all()


@pytest.mark.claim(
    "alibi-attention-beyond-a-distance-is-bounded",
    "Under ALiBi with slope m, if no key's content score is more than s from zero, the keys more "
    "than n steps back get at most exp(2 s - m (n + 1)) of the attention, however long the text.",
)
@given(st.integers(1, 2000), st.integers(0, 300), st.floats(0, 5), SLOPES)
def test_little_attention_goes_beyond_a_distance(tokens, n, most, slopes):
    bias = alibi_bias(torch.tensor([tokens - 1]), torch.arange(tokens), slopes, torch.float64)[:, 0]
    distance = torch.arange(tokens).flip(0)
    worst = torch.where(distance > n, most, -most)
    for scores in (worst, most * (2 * torch.rand(tokens) - 1)):
        beyond = (bias + scores).softmax(-1)[:, distance > n].sum(-1)
        bound = torch.exp(2 * most - slopes.double() * (n + 1))
        assert (beyond <= bound * (1 + 1e-5)).all()


@pytest.mark.claim(
    "symmetric-bias-cannot-tell-a-text-from-its-mirror-image",
    "An attention layer with the symmetric ALiBi bias, no mask and no other positions gives a reversed "
    "text the same outputs in reversed order.",
)
@pytest.mark.parametrize("tokens", [3, 7, 8, 60])
@pytest.mark.parametrize(("dim", "heads"), [(4, 1), (6, 3), (16, 4), (64, 8)])
def test_under_the_symmetric_bias_a_mirrored_text_gives_mirrored_outputs(dim, heads, tokens):
    attend, i = SelfAttention(dim, heads).double(), torch.arange(tokens)
    bias = alibi_bias_symmetric(i, i, alibi_slopes(heads), torch.float64)
    x = torch.randn(tokens, dim, dtype=torch.float64)
    forwards, backwards = attend(x, bias=bias)[0], attend(x.flip(0), bias=bias)[0]
    assert_close(backwards, forwards.flip(0), rtol=0, atol=1e-12)
    assert (attend(x.roll(1, 0), bias=bias)[0] - forwards.roll(1, 0)).abs().max() > 1e-4
    causal = [attend(text, bias=bias, causal=True)[0] for text in (x, x.flip(0))]
    assert (causal[1] - causal[0].flip(0)).abs().max() > 1e-4


@given(POSITIONS, POSITIONS, SLOPES)
def test_the_symmetric_bias_is_symmetric(i, j, slopes):
    assert torch.equal(alibi_bias_symmetric(i, j, slopes), alibi_bias_symmetric(j, i, slopes).mT)


# --- in attention


def test_the_causal_bias_is_the_symmetric_one_behind_a_mask():
    (q, k, v), i = torch.randn(3, 2, 4, 6, 8), torch.arange(6)
    causal, symmetric = (function(i, i, alibi_slopes(4)) for function in BOTH)
    assert_close(attention(q, k, v, symmetric, causal=True), attention(q, k, v, causal))


@pytest.mark.claim(
    "alibi-in-flex-attention-needs-the-slopes-only",
    "flex_attention with a score_mod that holds one slope per head gives the same result as attention "
    "with the full symmetric ALiBi bias.",
)
@pytest.mark.filterwarnings("ignore:flex_attention called")
@pytest.mark.parametrize(("heads", "tokens"), [(1, 1), (6, 16), (3, 7), (12, 200)])
def test_flex_attention_gets_the_same_from_the_slopes(heads, tokens):
    q, k, v = torch.randn(3, 2, heads, tokens, 8)
    i, slopes = torch.arange(tokens), alibi_slopes(heads)
    made = flex_attention(q, k, v, score_mod=lambda score, b, h, i, j: score - slopes[h] * (i - j).abs())
    assert_close(made, attention(q, k, v, alibi_bias_symmetric(i, i, slopes))[0])


# --- memory


# --- the slopes, which the caller holds


def test_slopes_decide_where_the_bias_is():
    with NoFloat64():
        here, there = torch.arange(3), alibi_slopes(3, device="meta")
    assert there.is_meta
    for function in BOTH:
        assert function(here, here, there).is_meta
        with pytest.raises(NotImplementedError, match="meta"):  # nothing can be brought from there
            function(here.to("meta"), here.to("meta"), alibi_slopes(3))


@pytest.mark.parametrize(
    ("slopes", "got"),
    [
        (torch.tensor(0.5), "torch.float32 ()"),
        (torch.zeros(0), "torch.float32 (0,)"),
        (torch.ones(2, 1), "torch.float32 (2, 1)"),
        (torch.ones(2).long(), "torch.int64 (2,)"),
    ],
)
def test_refuses_slopes_that_are_not_one_for_each_head(slopes, got):
    at = torch.arange(2)
    for function in BOTH:
        refused(f"slopes must be floating and (heads,), got {got}", function, at, at, slopes)
        refused("slopes must be those of alibi_slopes, got 8", function, at, at, 8)
