"""rope_scaling.py against its formulas, against other libraries, and where paper and code differ."""

import math

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch.testing import assert_close

from snippets.rope import apply_rope, rope_frequencies, rope_tables
from snippets.rope_scaling import (
    dynamic_ntk,
    llama3,
    longrope,
    longrope_attention_factor,
    ntk_aware,
    ntk_by_parts,
    position_interpolation,
    proportional,
    yarn,
    yarn_attention_factor,
)
from tests.peers import peer
from tests.peers.turned import scaled
from tests.snippets.common import refusals

CLOSE = {"rtol": 1e-13, "atol": 0}
PAIRS = st.integers(2, 64) | st.just(128)
BASES = st.floats(1.5, 1e7)
FACTORS = st.floats(1, 64)
LENGTHS = st.integers(7, 1000) | st.integers(300, 1_000_000)  # in 7 tokens the fastest pair turns once

# each method with all that it needs but the frequencies, a factor and a length
METHODS = {
    "position_interpolation": lambda w, s=4, n=4096: position_interpolation(w, s),
    "ntk_aware": lambda w, s=4, n=4096: ntk_aware(w, s),
    "dynamic_ntk": lambda w, s=4, n=4096: dynamic_ntk(w, s, n, n + n // 2),
    "ntk_by_parts": lambda w, s=4, n=4096: ntk_by_parts(w, s, n),
    "llama3": lambda w, s=4, n=4096: llama3(w, s, n),
    "yarn": lambda w, s=4, n=4096: yarn(w, s, n),
    "longrope": lambda w, s=4, n=4096: longrope(w, torch.ones_like(w), s + torch.arange(w.numel()), n, n + 1),
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
EVERY = METHODS | {"proportional": lambda w: proportional(w, 0.25)}  # which stretches nothing
of_frequencies = pytest.mark.parametrize("method", EVERY.values(), ids=EVERY.keys())


def turn(x, positions, frequencies, layout):
    return apply_rope(x, *rope_tables(positions, frequencies, x.dtype), layout)


def turns(frequency, length):
    return length * frequency / (2 * math.pi)


# --- what the sources say, pair by pair


@given(PAIRS, BASES, FACTORS)
def test_position_interpolation_divides_every_frequency(pairs, base, factor):
    w = rope_frequencies(2 * pairs, base)
    assert position_interpolation(w, factor).tolist() == pytest.approx([f / factor for f in w.tolist()])


@pytest.mark.claim(
    "pi-divides-positions",
    "Position interpolation rotates every vector as RoPE does at the vector's position divided by the "
    "factor.",
)
@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize(("dim", "base", "factor"), [(2, 10000.0, 4), (8, 500.0, 1), (128, 5e5, 40.5)])
def test_position_interpolation_is_dividing_positions(dim, base, factor, layout):
    positions = torch.tensor([0, 1, 2, 7, 4095, 100_000, -3])
    x, w = torch.randn(7, dim).double(), rope_frequencies(dim, base)
    made = turn(x, positions, position_interpolation(w, factor), layout)
    assert_close(made, turn(x, positions.double() / factor, w, layout), rtol=0, atol=1e-9)


@pytest.mark.claim(
    "ntk-is-a-base",
    "NTK-aware scaling of a RoPE with at least two pairs equals a RoPE whose base is multiplied by "
    "factor^(dim/(dim-2)).",
)
@given(PAIRS, BASES, FACTORS)
def test_ntk_aware_is_a_change_of_base(pairs, base, factor):
    dim = 2 * pairs
    expected = rope_frequencies(dim, base * factor ** (dim / (dim - 2)))
    assert_close(ntk_aware(rope_frequencies(dim, base), factor), expected, rtol=1e-11, atol=0)


@pytest.mark.claim(
    "ntk-ends",
    "NTK-aware scaling leaves the frequency of the fastest pair unchanged and divides that of the slowest "
    "pair by the factor.",
)
@given(PAIRS, BASES, FACTORS)
def test_ntk_aware_leaves_the_fastest_and_slows_the_slowest_by_factor(pairs, base, factor):
    w = rope_frequencies(2 * pairs, base)
    made = ntk_aware(w, factor)
    assert made[0] == w[0]
    assert made[-1].item() == pytest.approx(w[-1].item() / factor, rel=1e-13)


@given(PAIRS, FACTORS, LENGTHS, st.integers(1, 1_000_000))
def test_dynamic_ntk_is_ntk_aware_by_the_factor_of_the_released_code(pairs, factor, original, length):
    w = rope_frequencies(2 * pairs, base=10000)
    by = max(1.0, factor * max(length, original) / original - (factor - 1))
    assert_close(dynamic_ntk(w, factor, original, length), ntk_aware(w, by), rtol=1e-11, atol=0)


@pytest.mark.claim(
    "dynamic-ntk-short-texts",
    "Dynamic NTK leaves every frequency unchanged up to the training length, and from the next token on "
    "lowers the frequencies of all pairs except the fastest.",
)
@given(PAIRS, BASES, FACTORS, LENGTHS)
def test_dynamic_ntk_changes_nothing_up_to_the_original_length(pairs, base, factor, trained):
    w = rope_frequencies(2 * pairs, base)
    for length in (1, trained - 1, trained):
        assert torch.equal(dynamic_ntk(w, factor, trained, length), w)
    longer = dynamic_ntk(w, factor, trained, trained + 1)
    assert longer[0] == w[0]
    assert (longer[1:] < w[1:]).all()


@pytest.mark.claim(
    "dynamic-ntk-code-differs",
    "At twice the training length, dynamic NTK with factor 2 divides the frequency of the slowest pair by "
    "3 in the released code and by 2 in the formula of YaRN's paper.",
)
@pytest.mark.parametrize("dim", [4, 16, 128])
@pytest.mark.parametrize("trained", [1, 100, 4096])
def test_dynamic_ntk_of_the_code_slows_by_3_where_the_paper_slows_by_2(dim, trained):
    w = rope_frequencies(dim, base=10000)
    code = dynamic_ntk(w, 2, trained, length=2 * trained)
    paper = ntk_aware(w, 2)
    assert (w[-1] / code[-1]).item() == pytest.approx(3)
    assert (w[-1] / paper[-1]).item() == pytest.approx(2)
    assert_close(dynamic_ntk(w, 1, trained, length=2 * trained), paper, **CLOSE)


@pytest.mark.claim(
    "by-parts-is-a-ramp-in-turns",
    "NTK-by-parts leaves the frequencies of pairs with beta or more rotations unchanged and divides those "
    "of pairs with alpha or fewer rotations by the factor. In between, the weight of the unchanged "
    "frequency is linear in the number of rotations.",
)
@given(PAIRS, BASES, FACTORS, LENGTHS, st.floats(0, 5), st.floats(0, 40))
def test_ntk_by_parts_is_the_ramp_of_the_paper(pairs, base, factor, length, alpha, wide):
    w, beta = rope_frequencies(2 * pairs, base), alpha + wide
    expected = []
    for f in w.tolist():
        r = turns(f, length)
        if r <= alpha:
            kept = 0.0
        elif r >= beta:
            kept = 1.0
        else:
            kept = (r - alpha) / (beta - alpha)
        expected.append((1 - kept) * f / factor + kept * f)
    made = ntk_by_parts(w, factor, length, alpha, beta)
    assert made.tolist() == pytest.approx(expected, rel=1e-9 if wide > 1e-3 else 1e-3)


def test_ntk_by_parts_without_a_ramp_is_a_step_that_slows_the_pair_on_it():
    w = rope_frequencies(8, base=10000)
    step = turns(w, 4096)[1].item()
    expected = w / torch.tensor([1, 4, 4, 4])
    assert_close(ntk_by_parts(w, 4, 4096, step, step), expected, **CLOSE)


def test_ntk_by_parts_has_the_alpha_and_beta_of_the_paper():
    w = rope_frequencies(128, base=10000)
    assert torch.equal(ntk_by_parts(w, 16, 4096), ntk_by_parts(w, 16, 4096, alpha=1, beta=32))


@pytest.mark.claim(
    "llama3-is-by-parts",
    "The wavelength-based scaling of Llama 3.1 is NTK-by-parts with alpha 1 and beta 4, and that of Llama "
    "4 Scout is NTK-by-parts with alpha and beta 1.",
)
@pytest.mark.parametrize(("factor", "high"), [(8, 4), (32, 4), (16, 1)])
@pytest.mark.parametrize(
    ("dim", "base", "length"), [(128, 5e5, 8192), (64, 5e5, 8192), (2, 10000.0, 8192), (256, 500.0, 300)]
)
def test_llama3_is_the_code_of_meta_written_by_wavelengths(factor, high, dim, base, length):
    w = rope_frequencies(dim, base)
    expected = []
    for f in w.tolist():
        wavelength = 2 * math.pi / f
        if wavelength < length / high:
            expected.append(f)
        elif wavelength > length:
            expected.append(f / factor)
        else:
            smooth = (length / wavelength - 1) / (high - 1)
            expected.append((1 - smooth) * f / factor + smooth * f)
    assert llama3(w, factor, length, high=high).tolist() == pytest.approx(expected, rel=1e-12)
    assert ntk_by_parts(w, factor, length, 1, high).tolist() == pytest.approx(expected, rel=1e-12)


@pytest.mark.claim(
    "llama3-counts",
    "With 64 pairs, base 500,000, factor 8 and 8192 tokens, the scaling of Llama 3.1 leaves the "
    "frequencies of 29 pairs unchanged, blends 6 and divides 29 by the factor.",
)
def test_llama3_leaves_29_of_64_pairs_blends_6_and_divides_29():
    w = rope_frequencies(128, 500_000.0)
    ratio = w / llama3(w)
    assert (ratio == 1).sum() == 29
    assert ((ratio - 8).abs() < 1e-12).sum() == 29
    assert ((ratio > 1) & (ratio < 8 - 1e-12)).sum() == 6


def by_pair_index(dim, base, factor, length, fast=32.0, slow=1.0, truncate=True):
    """The released YaRN as its own functions say it, in Python floats."""
    low, high = (dim * math.log(length / (n * 2 * math.pi)) / (2 * math.log(base)) for n in (fast, slow))
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    made = []
    for p in range(dim // 2):
        f = base ** (-2 * p / dim)
        slowed = min(max((p - low) / ((high - low) or 0.001), 0), 1)
        made.append(f / factor * slowed + f * (1 - slowed))
    return made


@given(PAIRS, st.floats(100, 1e6), FACTORS, st.integers(300, 100_000), st.booleans())  # no ramp backwards
@example(8, 10_000.0, 4.0, 100, True)  # no pair turns 32 times
@example(8, 100.0, 4.0, 100_000, True)  # every pair turns, the last 159 times
@example(8, 10.0, 4.0, 1000, False)  # and the ramp would end beyond all channels
def test_yarn_is_the_ramp_of_the_released_code(pairs, base, factor, length, truncate):
    made = yarn(rope_frequencies(2 * pairs, base), factor, length, truncate=truncate)
    expected = by_pair_index(2 * pairs, base, factor, length, truncate=truncate)
    assert made.tolist() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("fast", "slow"), [(32, 1), (16, 2), (8, 8), (64, 0.5)])
@pytest.mark.parametrize("truncate", [True, False])
def test_yarn_takes_other_ends_of_the_ramp(fast, slow, truncate):
    made = yarn(rope_frequencies(64, base=10000), 8, 4096, fast, slow, truncate)
    if fast > slow or truncate:
        assert made.tolist() == pytest.approx(by_pair_index(64, 1e4, 8, 4096, fast, slow, truncate))
    ratio = rope_frequencies(64, base=10000) / made
    assert ratio[0] == 1
    assert ratio[-1].item() == pytest.approx(8)


@pytest.mark.claim(
    "yarn-code-differs",
    "With dim 128, base 10,000, factor 16 and 4096 tokens, a middle pair has 3.0 times the frequency in "
    "YaRN's released code that it has in the paper; with dim 64 and factor 40, 4.3 times. Pairs with 32 "
    "or more rotations in training, and pairs with one rotation or less, have the same frequency in both, "
    "provided that training covers 7 tokens or more and the last pair does not complete a rotation.",
)
@pytest.mark.parametrize(("dim", "factor", "most"), [(128, 16, 3.0), (64, 40, 4.3)])
def test_yarn_of_the_code_slows_the_middle_less_than_yarn_of_the_paper(dim, factor, most):
    w = rope_frequencies(dim, base=10000)
    code, paper = yarn(w, factor, 4096), ntk_by_parts(w, factor, 4096)
    assert (code / paper).max().item() == pytest.approx(most, abs=0.05)
    turn = turns(w, 4096)
    assert torch.equal(code[turn < 0.5], paper[turn < 0.5])
    assert torch.equal(code[turn > 50], paper[turn > 50])


@pytest.mark.claim(
    "yarn-code-differs",
    "With dim 128, base 10,000, factor 16 and 4096 tokens, a middle pair has 3.0 times the frequency in "
    "YaRN's released code that it has in the paper; with dim 64 and factor 40, 4.3 times. Pairs with 32 "
    "or more rotations in training, and pairs with one rotation or less, have the same frequency in both, "
    "provided that training covers 7 tokens or more and the last pair does not complete a rotation.",
)
@given(PAIRS, BASES, FACTORS, LENGTHS, st.booleans())
def test_the_two_ramps_of_yarn_agree_where_they_end(pairs, base, factor, length, truncate):
    w = rope_frequencies(2 * pairs, base)
    turn = turns(w, length)
    ends = (turn >= 32 * (1 + 1e-9)) | (turn <= 1 - 1e-9)
    if turn[-1] < 1:  # as in every released model; else the ramp of the code can be cut or run backwards
        code = yarn(w, factor, length, truncate=truncate)
        assert_close(code[ends], ntk_by_parts(w, factor, length)[ends], rtol=1e-9, atol=0)


@pytest.mark.claim(
    "yarn-code-slows-less",
    "With unrounded ends of the ramp, and if the last pair does not complete a rotation, YaRN's code "
    "lowers the frequency of no pair more than its paper does.",
)
@given(PAIRS, BASES, FACTORS, LENGTHS)
def test_yarn_with_unrounded_ends_never_slows_a_pair_more_than_the_paper(pairs, base, factor, length):
    w = rope_frequencies(2 * pairs, base)
    slowest = yarn(w, factor, length, truncate=False)
    if turns(w[-1], length) < 1:  # else the released code lets the ramp end beyond the last pair
        assert (slowest >= ntk_by_parts(w, factor, length) * (1 - 1e-12)).all()


def test_yarn_keeps_every_pair_when_all_turn_often():
    w = rope_frequencies(16, 10.0)
    assert turns(w[-1], 1_000_000) > 32
    assert torch.equal(yarn(w, 4, 1_000_000), w)


@pytest.mark.claim(
    "yarn-ramp-backwards",
    "With dim 16, base 10 and a training length of 1,000,000 tokens, every pair completes so many "
    "rotations that no frequency needs to be lowered; the ramp of YaRN in transformers then runs "
    "backwards and divides every frequency by the factor. The same happens with dim 4, base 2 and 4096 "
    "tokens, and with dim 64, base 1.5 and 100,000 tokens.",
)
@pytest.mark.parametrize(
    ("dim", "base", "length"), [(16, 10.0, 1_000_000), (4, 2.0, 4096), (64, 1.5, 100_000)]
)
@pytest.mark.parametrize("factor", [2.0, 40.0])
def test_the_ramp_of_transformers_runs_backwards_when_all_pairs_turn_often(dim, base, length, factor):
    w = rope_frequencies(dim, base)
    assert turns(w, length).min() > 32
    theirs, _ = hf("yarn", dim, base, factor=factor, original_max_position_embeddings=length)
    assert_close(theirs, w / factor, **FLOAT32)


@pytest.mark.claim(
    "attention-factors",
    "YaRN's attention factor is 0.1 ln s + 1, and LongRoPE's is the square root of 1 + ln s / ln L; both "
    "are 1 for s = 1.",
)
def test_attention_factors_by_hand():
    assert yarn_attention_factor(1) == 1
    assert yarn_attention_factor(math.e) == pytest.approx(1.1)
    assert yarn_attention_factor(16) == pytest.approx(1.2773, abs=5e-5)
    assert longrope_attention_factor(1, 4096) == 1
    assert longrope_attention_factor(8, 2) == pytest.approx(2)
    assert longrope_attention_factor(4096, 4096) == pytest.approx(math.sqrt(2))
    assert longrope_attention_factor(32, 4096) == pytest.approx(1.190238, abs=5e-7)


@pytest.mark.claim(
    "longrope-switches",
    "LongRoPE divides the frequencies by its short factors up to the original length, and by its long "
    "factors from the next token on.",
)
@pytest.mark.parametrize("pairs", [1, 4, 64])
@pytest.mark.parametrize("trained", [1, 2, 4096])
def test_longrope_divides_by_the_factors_of_the_length(pairs, trained):
    w = rope_frequencies(2 * pairs, base=10000)
    short, long = 1 + torch.rand(pairs), 2 + 50 * torch.rand(pairs)
    for length in {1, trained - 1, trained} - {0}:
        assert_close(longrope(w, short, long, trained, length), w / short, **CLOSE)
    for length in (trained + 1, 100_000):
        assert_close(longrope(w, short, long, trained, length), w / long, **CLOSE)


@pytest.mark.claim(
    "longrope-start-tokens",
    "Unless all factors are one, leaving the first tokens unscaled, as in LongRoPE's paper, rotates these "
    "tokens, and no others, differently from the snippet; the exception is the token at position 0, which "
    "is not rotated.",
)
@pytest.mark.parametrize("first", [1, 2, 4, 9])
@pytest.mark.parametrize("pairs", [2, 4, 64])
def test_longrope_of_the_paper_leaves_the_first_tokens_and_ours_does_not(pairs, first):
    w, long = rope_frequencies(2 * pairs, base=10000), 1 + torch.arange(pairs, dtype=torch.float64)
    positions = torch.arange(10)
    x = torch.randn(10, 2 * pairs, dtype=torch.float64)
    ours = turn(x, positions, longrope(w, long, long, 5, 10), "half")
    unscaled = turn(x, positions, w, "half")
    paper = torch.where(positions[:, None] < first, unscaled, ours)
    assert_close(ours[first:], paper[first:], **CLOSE)
    assert torch.equal(ours[0], paper[0])
    assert ((ours[1:first] - paper[1:first]).abs().amax(dim=-1) > 0.001).all()


# --- what training has seen, and what a longer text asks for


def asked_for_more(frequencies, used, factor, length):
    """Which pairs reach a part of the circle that training has never entered."""
    seen, asked = turns(frequencies, length), turns(used, factor * length)
    return asked.clamp(max=1) > seen.clamp(max=1) * (1 + 1e-9)


@pytest.mark.claim(
    "rope-slow-pairs-meet-new-angles",
    "Beyond the training length, the pairs of an unchanged RoPE that did not complete a rotation in "
    "training, and only those, reach angles that they never had.",
)
@given(PAIRS, BASES, st.floats(1.01, 64), LENGTHS)
def test_a_longer_text_asks_slow_pairs_and_no_others_for_new_angles(pairs, base, factor, length):
    w = rope_frequencies(2 * pairs, base)
    assert torch.equal(asked_for_more(w, w, factor, length), turns(w, length) < 1 / (1 + 1e-9))


@pytest.mark.claim(
    "interpolation-asks-nothing-new",
    "Under position interpolation, NTK-by-parts with alpha at least 1, YaRN with beta_slow at least 1 and "
    "the scaling of Llama 3.1 with low at least 1, no pair reaches an angle outside the range that it had "
    "in training, up to factor times the training length; for YaRN, if the training length is at least 7 "
    "tokens.",
)
@given(PAIRS, BASES, FACTORS, LENGTHS, st.floats(1, 5), st.floats(0, 40))
def test_no_pair_is_asked_for_new_angles_by_what_interpolates_slow_pairs(
    pairs, base, factor, length, slow, wide
):
    w = rope_frequencies(2 * pairs, base)
    for used in (
        position_interpolation(w, factor),
        ntk_by_parts(w, factor, length, slow, slow + wide),
        llama3(w, factor, length),
        llama3(w, factor, length, slow, slow + wide),
        yarn(w, factor, length),
        yarn(w, factor, length, slow + wide, slow),
        yarn(w, factor, length, slow + wide, slow, truncate=False),
    ):
        assert not asked_for_more(w, used, factor, length).any()


def test_however_short_the_training_the_code_of_yarn_leaves_the_first_pair_as_it_is():
    w = rope_frequencies(16, base=10000)
    for length, asks in ((6, True), (7, False)):
        assert yarn(w, 4, length)[0] == w[0]
        assert asked_for_more(w, yarn(w, 4, length), 4, length)[0] == asks


@pytest.mark.claim(
    "ntk-asks-for-new-angles",
    "Up to factor times the training length, NTK-aware scaling by a factor above 1 brings every pair that "
    "did not complete a rotation in training, except the slowest, to angles that it never had.",
)
@given(PAIRS, BASES, st.floats(1.01, 64), LENGTHS)
def test_ntk_aware_asks_all_slow_pairs_but_the_last_for_new_angles(pairs, base, factor, length):
    w = rope_frequencies(2 * pairs, base)
    slow = turns(w, length) < 1 / (1 + 1e-6)
    more = asked_for_more(w, ntk_aware(w, factor), factor, length)
    assert torch.equal(more[:-1][slow[:-1]], slow[:-1][slow[:-1]])
    assert not more[-1]


# --- p-RoPE


@given(PAIRS, BASES, st.floats(0, 1) | st.sampled_from([0, 0.25, 0.29, 0.5, 1, 0.58, 1 - 2**-53]))
@example(100, 10_000.0, 0.29)  # 28.999999999999996
def test_proportional_turns_the_first_pairs_one_by_one(pairs, base, share):
    expected = []
    for p in range(pairs):
        turns_at_all = p + 1 <= share * pairs
        expected.append(base ** (-2 * p / (2 * pairs)) if turns_at_all else 0.0)
    made = proportional(rope_frequencies(2 * pairs, base), share)
    assert made.tolist() == pytest.approx(expected, rel=1e-12)


@pytest.mark.claim(
    "p-rope-still-channels",
    "Channels with frequency zero pass through apply_rope bit-for-bit unchanged, in both layouts, at "
    "positions up to a million and below zero. Their contribution to a score is the same, up to rounding, "
    "whatever the positions of query and key; that of the other channels is not.",
)
@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("dim", "share"), [(2, 0), (4, 0.5), (64, 0), (64, 0.25), (64, 0.75), (512, 0.25)])
def test_pairs_that_stand_still_do_not_hear_positions(layout, dtype, dim, share):
    places = torch.tensor([0, 1, 2, 7, 4095, 131_072, 999_999, 1_000_000, -1, -1_000_000])
    w = proportional(rope_frequencies(dim, base=10000), share)
    still = torch.cat((w, w)) == 0 if layout == "half" else w.repeat_interleave(2) == 0
    assert still.sum() == dim - 2 * int(share * dim / 2)
    q, k = torch.randn(2, dim, dtype=dtype)
    tables = rope_tables(places, w, torch.float32 if dtype == torch.bfloat16 else dtype)
    turned_q, turned_k = (apply_rope(x.expand(len(places), dim), *tables, layout) for x in (q, k))
    assert torch.equal(turned_q[:, still], q[still].expand(len(places), -1))
    assert torch.equal(turned_k[:, still], k[still].expand(len(places), -1))
    scores = (turned_q[:, None] * turned_k)[..., still].sum(-1)
    # A sum of the same numbers may round otherwise where another row of the tensor begins.
    assert_close(scores, scores[:1, :1].expand_as(scores))
    if share:
        moved = (turned_q[:, None] * turned_k)[..., ~still].double().sum(-1)
        assert moved.std() > 0.01


@pytest.mark.claim(
    "p-rope-is-not-partial",
    "With the same number of rotating pairs, every pair but the first has a higher frequency in p-RoPE "
    "than in partial rotation; the first has the same frequency in both. The frequencies of partial "
    "rotation are those of p-RoPE raised to the power of one over the fraction of rotating pairs.",
)
@given(st.integers(1, 32), st.sampled_from([2, 3, 4, 8]), BASES)
def test_p_rope_is_no_partial_rotation(turning, times, base):
    partial = rope_frequencies(2 * turning, base)
    whole = proportional(rope_frequencies(2 * turning * times, base), 1 / times)
    assert whole.count_nonzero() == turning
    assert_close(whole[:turning] ** times, partial, rtol=1e-9, atol=0)
    assert whole[0] == partial[0] == 1
    assert (whole[1:turning] > partial[1:]).all()


def test_with_layout_half_the_zeros_say_where_partners_are():
    x, w = torch.randn(16).double(), proportional(rope_frequencies(16, base=10000), 0.25)
    at = torch.tensor([3])
    whole, cut = (turn(x[None], at, frequencies, "half")[0] for frequencies in (w, w[:2]))
    changed, expected = whole != x, torch.zeros(16, dtype=torch.bool)
    expected[[0, 1, 8, 9]] = True
    assert torch.equal(changed, expected)
    assert torch.equal((cut != x).nonzero().flatten(), torch.arange(4))
    interleaved = [turn(x[None], at, frequencies, "interleaved") for frequencies in (w, w[:2])]
    assert torch.equal(*interleaved)  # neighbours are neighbours in both


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_proportional_and_interpolation_go_together_in_either_order(share):
    w = rope_frequencies(64, base=10000)
    one = position_interpolation(proportional(w, share), 4)
    assert torch.equal(one, proportional(position_interpolation(w, 4), share))


# --- other libraries


def hf(*given, **parameters):
    frequencies, factor = scaled(*given, **parameters)()
    return frequencies.double(), factor


SETTINGS = [(16, 10_000.0), (64, 10_000.0), (128, 500_000.0), (128, 150_000.0), (96, 1e6)]
every_setting = pytest.mark.parametrize(("dim", "base"), SETTINGS)
FLOAT32 = {"rtol": 2e-6, "atol": 0}  # they work in float32


@pytest.mark.claim(
    "scaling-agrees-with-peers",
    "Position interpolation, dynamic NTK, YaRN, the scaling of Llama 3.1, LongRoPE and p-RoPE agree with "
    "transformers within the rounding of float32 frequencies, where no ramp runs backwards.",
)
@every_setting
@pytest.mark.parametrize("factor", [1.0, 4.0, 40.0])
def test_transformers_agrees(dim, base, factor, same_as):
    w, original = rope_frequencies(dim, base), {"original_max_position_embeddings": 4096}
    theirs, attention_factor = hf("linear", dim, base, factor=factor)
    assert_close(position_interpolation(w, factor), theirs, **FLOAT32)
    same_as("transformers.modeling_rope_utils (linear)", position_interpolation(w, factor), theirs)
    assert attention_factor == 1
    for length in (100, 4096, 5000, 8192, 100_000):
        theirs, _ = hf("dynamic", dim, base, length, factor=factor)
        assert_close(dynamic_ntk(w, factor, 4096, length), theirs, **FLOAT32)
        same_as("transformers.modeling_rope_utils (dynamic)", dynamic_ntk(w, factor, 4096, length), theirs)
    for truncate in (True, False):
        theirs, attention_factor = hf("yarn", dim, base, factor=factor, truncate=truncate, **original)
        assert_close(yarn(w, factor, 4096, truncate=truncate), theirs, **FLOAT32)
        same_as("transformers.modeling_rope_utils (yarn)", yarn(w, factor, 4096, truncate=truncate), theirs)
        assert attention_factor == pytest.approx(yarn_attention_factor(factor))
    theirs, _ = hf("yarn", dim, base, factor=factor, beta_fast=20.0, beta_slow=3.0, **original)
    assert_close(yarn(w, factor, 4096, 20, 3), theirs, **FLOAT32)
    theirs, attention_factor = hf(
        "llama3", dim, base, factor=factor, low_freq_factor=1.0, high_freq_factor=4.0, **original
    )
    assert_close(llama3(w, factor, 4096), theirs, **FLOAT32)
    same_as("transformers.modeling_rope_utils (llama3)", llama3(w, factor, 4096), theirs)
    assert attention_factor == 1


@pytest.mark.claim(
    "scaling-agrees-with-peers",
    "Position interpolation, dynamic NTK, YaRN, the scaling of Llama 3.1, LongRoPE and p-RoPE agree with "
    "transformers within the rounding of float32 frequencies, where no ramp runs backwards.",
)
@every_setting
def test_transformers_agrees_on_longrope(dim, base, same_as):
    w, short = rope_frequencies(dim, base), 1 + torch.rand(dim // 2)
    long = 1 + 40 * torch.rand(dim // 2)
    parameters = {
        "factor": 32.0,
        "original_max_position_embeddings": 4096,
        "short_factor": short.tolist(),
        "long_factor": long.tolist(),
    }
    for length in (1, 4096, 4097, 100_000):
        theirs, attention_factor = hf("longrope", dim, base, length, **parameters)
        assert_close(longrope(w, short, long, 4096, length), theirs, **FLOAT32)
        same_as("transformers.modeling_rope_utils (longrope)", longrope(w, short, long, 4096, length), theirs)
        assert attention_factor == pytest.approx(longrope_attention_factor(32, 4096))


@pytest.mark.claim(
    "scaling-agrees-with-peers",
    "Position interpolation, dynamic NTK, YaRN, the scaling of Llama 3.1, LongRoPE and p-RoPE agree with "
    "transformers within the rounding of float32 frequencies, where no ramp runs backwards.",
)
@pytest.mark.parametrize(("dim", "base"), [(4, 10_000.0), (10, 500.0), (256, 1e7)])
@pytest.mark.parametrize("length", [512, 131_072])
def test_transformers_agrees_at_other_widths_and_lengths(dim, base, length, same_as):
    w, original = rope_frequencies(dim, base), {"original_max_position_embeddings": length}
    llama = {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    for factor in (1.5, 64.0):
        for kind, ours, parameters in (
            ("linear", position_interpolation(w, factor), {}),
            ("yarn", yarn(w, factor, length), original),
            ("yarn", yarn(w, factor, length, truncate=False), original | {"truncate": False}),
            ("llama3", llama3(w, factor, length), original | llama),
        ):
            theirs, _ = hf(kind, dim, base, factor=factor, **parameters)
            assert (
                (ours - theirs).abs() <= 4e-7 * w
            ).all()  # float32: frequencies and shares on the ramp are rounded
            same_as(f"transformers.modeling_rope_utils ({kind})", ours, theirs)


@pytest.mark.claim(
    "scaling-agrees-with-peers",
    "Position interpolation, dynamic NTK, YaRN, the scaling of Llama 3.1, LongRoPE and p-RoPE agree with "
    "transformers within the rounding of float32 frequencies, where no ramp runs backwards.",
)
@every_setting
@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.25, 0.29, 0.5, 0.7, 0.75, 1.0])
@pytest.mark.parametrize("factor", [1.0, 8.0])
def test_transformers_agrees_on_proportional(dim, base, share, factor, same_as):
    theirs, attention_factor = hf("proportional", dim, base, partial_rotary_factor=share, factor=factor)
    ours = position_interpolation(proportional(rope_frequencies(dim, base), share), factor)
    assert_close(ours, theirs, **FLOAT32)
    same_as("transformers.modeling_rope_utils (proportional)", ours, theirs)
    assert attention_factor == 1


@pytest.mark.claim(
    "p-rope-released",
    "With the defaults of transformers 5.23.0, the layers of Gemma 4 and LFM3 that attend to the whole "
    "text use p-RoPE, and those with a window do not; a quarter of the pairs rotate in Gemma 4 and half "
    "of the pairs in LFM3.",
)
@pytest.mark.parametrize(("model", "share"), [("Gemma4Text", 0.25), ("Lfm3", 0.5)])
def test_released_models_have_p_rope_in_layers_that_see_the_whole_text(model, share):
    module = f"transformers.models.{model.removesuffix('Text').lower()}"
    name = module.rpartition(".")[-1]
    config = getattr(peer(f"{module}.configuration_{name}"), f"{model}Config")()
    rotary = getattr(peer(f"{module}.modeling_{name}"), f"{model}RotaryEmbedding")(config)
    whole, near = (getattr(rotary, f"{kind}_attention_inv_freq").double() for kind in ("full", "sliding"))
    base = config.rope_parameters["full_attention"]["rope_theta"]
    expected = proportional(rope_frequencies(2 * len(whole), base), share)
    assert_close(whole, expected, **FLOAT32)
    assert (near > 0).all()


@every_setting
@pytest.mark.parametrize("factor", [1.0, 4.0, 40.0])
def test_lucidrains_agrees_on_ntk_aware(dim, base, factor, same_as):
    w = rope_frequencies(dim, base)
    module = peer("rotary_embedding_torch")
    theirs = module.RotaryEmbedding(dim, theta=base, theta_rescale_factor=factor).freqs.detach()
    assert_close(ntk_aware(w, factor), theirs.double(), **FLOAT32)
    same_as("rotary_embedding_torch.RotaryEmbedding (NTK-aware)", ntk_aware(w, factor), theirs)
    module = peer("x_transformers.x_transformers")
    theirs = module.RotaryEmbedding(dim, base=base, base_rescale_factor=factor).inv_freq
    assert_close(ntk_aware(w, factor), theirs.double(), **FLOAT32)
    same_as("x_transformers.RotaryEmbedding (NTK-aware)", ntk_aware(w, factor), theirs)


@pytest.mark.claim(
    "attention-factor-squares",
    "Multiplying the tables, or the rotated q and k, by YaRN's attention factor multiplies the scores by "
    "its square, as in transformers.",
)
@pytest.mark.parametrize(("dim", "factor"), [(32, 16), (4, 1.5), (128, 40)])
def test_the_attention_factor_multiplies_what_is_turned_as_in_transformers(dim, factor):
    transformers = peer("transformers")
    module = peer("transformers.models.llama.modeling_llama")
    config = transformers.LlamaConfig(
        hidden_size=dim,
        num_attention_heads=1,
        max_position_embeddings=int(4096 * factor),
        rope_parameters={
            "rope_type": "yarn",
            "rope_theta": 10_000.0,
            "factor": float(factor),
            "original_max_position_embeddings": 4096,
        },
    )
    q, k = torch.randn(2, 1, 1, 40, dim)
    positions = torch.arange(40)
    cos, sin = module.LlamaRotaryEmbedding(config)(q, positions[None])
    their_q, their_k = module.apply_rotary_pos_emb(q, k, cos, sin)
    w, times = yarn(rope_frequencies(dim, base=10000), factor, 4096), yarn_attention_factor(factor)
    our_q, our_k = (turn(x, positions, w, "half") for x in (q, k))
    assert_close(our_q * times, their_q, rtol=0, atol=1e-4)
    assert_close(our_k * times, their_k, rtol=0, atol=1e-4)
    assert_close(our_q @ our_k.mT * times**2, their_q @ their_k.mT, rtol=0, atol=2e-3)
    tables = [times * table for table in rope_tables(positions, w)]
    assert_close(apply_rope(q, *tables, "half"), our_q * times, rtol=0, atol=1e-5)
    wider = torch.cat((q, k), -1)  # of which half turns: the rest keeps its size
    turned = apply_rope(wider, *tables, "half")
    assert_close(turned, torch.cat((our_q * times, k), -1), rtol=0, atol=1e-5)


# --- what holds for every method


@pytest.mark.claim(
    "scaling-never-speeds-up",
    "No method here raises the frequency of a RoPE pair or changes which of two pairs has the higher "
    "frequency. For LongRoPE, this assumes factors that are at least one and do not decrease; the pairs "
    "that p-RoPE stops all have frequency zero, so none of them is higher.",
)
@every_method
@given(PAIRS, BASES, FACTORS, LENGTHS)
def test_no_pair_turns_faster_and_the_order_of_pairs_stays(method, pairs, base, factor, length):
    w = rope_frequencies(2 * pairs, base)
    made = method(w, factor, length)
    assert (made <= w * (1 + 1e-12)).all()
    assert (made > 0).all()
    assert (made.diff() < 0).all()


@pytest.mark.claim(
    "scaling-never-speeds-up",
    "No method here raises the frequency of a RoPE pair or changes which of two pairs has the higher "
    "frequency. For LongRoPE, this assumes factors that are at least one and do not decrease; the pairs "
    "that p-RoPE stops all have frequency zero, so none of them is higher.",
)
@given(PAIRS, BASES, st.floats(0, 1))
def test_p_rope_keeps_the_fastest_pairs_as_they_are_and_stops_the_rest(pairs, base, share):
    w = rope_frequencies(2 * pairs, base)
    made, turning = proportional(w, share), math.floor(share * pairs)
    assert torch.equal(made[:turning], w[:turning])
    assert (made[:turning].diff() < 0).all()
    assert (made[turning:] == 0).all()


@pytest.mark.parametrize(
    "method", [position_interpolation, ntk_aware, ntk_by_parts, yarn, llama3, dynamic_ntk]
)
def test_factor_1_changes_nothing(method):
    w = rope_frequencies(64, base=10000)
    rest = {position_interpolation: (), ntk_aware: (), dynamic_ntk: (4096, 4096)}.get(method, (4096,))
    assert_close(method(w, 1, *rest), w, **CLOSE)


@pytest.mark.claim(
    "dynamic-ntk-cache",
    "Once a text is longer than the training length, keys that dynamic NTK rotated when the text was one "
    "token shorter give different scores from keys rotated for the current length; up to the training "
    "length, they give the same scores.",
)
@pytest.mark.parametrize("dim", [4, 64, 128])
@pytest.mark.parametrize("trained", [8, 15])
def test_a_length_that_changes_leaves_cached_keys_at_the_wrong_angles(dim, trained):
    positions = torch.arange(16)
    for q, k in torch.randn(5, 2, 16, dim, dtype=torch.float64):

        def scores(at, cached_at, q=q, k=k):
            frequencies = rope_frequencies(dim, base=10000)
            w_q, w_k = (dynamic_ntk(frequencies, 2, trained, length) for length in (at, cached_at))
            turned = turn(k, positions, w_k, "half")
            return turn(q, positions, w_q, "half") @ turned.mT

        assert (scores(16, 15) - scores(16, 16)).abs().max() > 0.01
        assert torch.equal(scores(trained, trained - 1), scores(trained, trained))


@of_frequencies
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_dtype_of_the_frequencies_is_kept(method, dtype):
    made = method(rope_frequencies(64, base=10000).to(dtype))
    assert made.dtype == dtype
    assert_close(made.double(), method(rope_frequencies(64, base=10000)), rtol=1e-6, atol=0)


@of_frequencies
def test_frequencies_are_not_changed_in_place(method):
    w = rope_frequencies(64, base=10000)
    method(w)
    assert torch.equal(w, rope_frequencies(64, base=10000))


# --- what is refused, and in which words


@refusals
def test_refuses_frequencies_that_are_none():
    two = "ntk_aware", "dynamic_ntk", "yarn"  # which tell the slowest pair from the fastest
    for name, method in EVERY.items():
        for shape in ((), (0,), (1, 4), *[(1,)] * (name in two)):
            message = f"frequencies must be (pairs,), {1 + (name in two)} or more, got {shape}"
            yield message, method, torch.ones(shape)
        for dtype in (torch.bfloat16, torch.float16, torch.int64):
            yield f"frequencies must be float32 or float64, got {dtype}", method, torch.ones(4).to(dtype)


@refusals
def test_refuses():
    w = torch.tensor([1, 0.1, 0.01, 0.001], dtype=torch.float64)
    for factor in (0.5, 0, -2, math.inf, math.nan):
        message = f"factor must be at least 1, got {factor}"
        for method in (position_interpolation, ntk_aware):
            yield message, method, w, factor
        for method in (ntk_by_parts, llama3, yarn):
            yield message, method, w, factor, 4096
        yield message, dynamic_ntk, w, factor, 4096, 8192
        yield message, yarn_attention_factor, factor
        yield message, longrope_attention_factor, factor, 4096
    for share in (-0.1, 1.1, 25, math.inf, math.nan):
        yield f"share must be from 0 to 1, got {share}", proportional, w, share
    for length in (0, -1):
        message = f"length must be at least 1, got {length}"
        for method in (ntk_by_parts, llama3, yarn):
            yield f"original_{message}", method, w, 2, length
        yield f"original_{message}", dynamic_ntk, w, 2, length, 8
        yield f"original_{message}", longrope, w, w, w, length, 8
        yield message, dynamic_ntk, w, 2, 8, length
        yield message, longrope, w, w, w, 8, length
    yield "original_length must be at least 2, got 1", longrope_attention_factor, 2, 1
    for low, high in ((-1, 4), (5, 4), (1, math.inf), (math.nan, 4), (1, math.nan)):
        got = f"got {low} and {high}"
        ordered = "alpha and beta must satisfy 0 <= alpha <= beta"
        yield f"{ordered}, {got}", ntk_by_parts, w, 2, 4096, low, high
        yield f"low and high must satisfy 0 <= low <= high, {got}", llama3, w, 2, 4096, low, high
        ordered = "beta_slow and beta_fast must satisfy 0 < beta_slow <= beta_fast"
        yield f"{ordered}, {got}", yarn, w, 2, 4096, high, low
    yield f"{ordered}, got 0 and 4", yarn, w, 2, 4096, 4, 0
    for factors in ([1.0] * 4, *map(torch.ones, [(), (1,), (3,), (4, 1), (2, 4)])):
        got = "list" if isinstance(factors, list) else tuple(factors.shape)
        for both in ((factors, w), (w, factors)):
            message = f"short_factors and long_factors must be tensors of shape (4,), got {got}"
            yield message, longrope, w, *both, 4096, 8
