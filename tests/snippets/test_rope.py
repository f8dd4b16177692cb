"""rope.py against its formula in complex numbers, against other libraries, and in attention."""

import cmath
import itertools
import math
import random as numbers

import mpmath
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from snippets.attention import attention
from snippets.rope import (
    apply_rope,
    half_to_interleaved,
    interleaved_to_half,
    rope_frequencies,
    rope_tables,
)
from snippets.sinusoidal import sinusoidal_encoding
from tests.peers import peer
from tests.peers.turned import ROPE
from tests.snippets.common import EXACT, SEEDS, random, refusals, vectors

LAYOUTS = ["interleaved", "half"]
every_layout = pytest.mark.parametrize("layout", LAYOUTS)

PAIRS = st.integers(1, 20) | st.sampled_from([32, 64, 128])
BASES = st.floats(1.5, 1e7)
POSITIONS = st.integers(-10_000, 10_000)


def turn(x, positions, frequencies, layout):
    return apply_rope(x, *rope_tables(positions, frequencies, torch.float64), layout)


def rope(x, positions, layout="interleaved", base=10000.0):
    """All channels of vectors (..., dim) turned, each vector at a position of its own."""
    positions = torch.as_tensor(positions).expand(x.shape[:-1])
    frequencies = rope_frequencies(x.shape[-1], base)
    turned = turn(x.reshape(-1, x.shape[-1]), positions.reshape(-1), frequencies, layout)
    return turned.view(x.shape)


def channels(p, pairs, layout):
    return (2 * p, 2 * p + 1) if layout == "interleaved" else (p, p + pairs)


def slowly(x, positions, frequencies, layout):
    """The definition, one complex number at a time, for x of (tokens, dim)."""
    turned = x.tolist()
    for row, position in zip(turned, positions.tolist(), strict=True):
        for p, frequency in enumerate(frequencies.tolist()):
            a, b = channels(p, len(frequencies), layout)
            point = complex(row[a], row[b]) * cmath.exp(1j * position * frequency)
            row[a], row[b] = point.real, point.imag
    return torch.tensor(turned, dtype=torch.float64)


def permutation(dim):
    """Which interleaved channel each half channel is."""
    return [*range(0, dim, 2), *range(1, dim, 2)]


# --- what the sources say


@pytest.mark.parametrize(("dim", "base"), [(2, 10000.0), (6, 0.5), (10, 500.0), (128, 5e5)])
def test_frequencies_are_their_formula(dim, base):
    made = rope_frequencies(dim, base)
    assert made.dtype == torch.float64
    assert made.tolist() == pytest.approx([base ** (-2 * p / dim) for p in range(dim // 2)])
    assert made[0] == 1


def test_frequencies_are_on_the_device_that_is_asked_for():
    assert rope_frequencies(6, base=10000, device="meta").is_meta


@pytest.mark.claim(
    "frequencies-are-made-off-meta",
    'In a model created under torch.device("meta"), frequencies stored as a plain attribute stay on meta '
    "after to_empty, and frequencies stored as a buffer contain whatever was in memory. Created with "
    'device="cpu", or in forward, they are correct.',
)
def test_frequencies_of_a_model_begun_on_meta_are_made_on_the_cpu_or_in_forward():
    class Turned(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.plain = rope_frequencies(6, base=10000)
            self.register_buffer("buffer", rope_frequencies(6, base=10000))
            self.here = rope_frequencies(6, base=10000, device="cpu")

        def forward(self):
            return rope_frequencies(6, base=10000)

    right = rope_frequencies(6, base=10000)
    with torch.device("meta"):
        model = Turned()
    memory = torch.full_like(right, 7.0)  # what to_empty happens to find
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(torch, "empty_like", lambda *_, **__: memory)
        model.to_empty(device="cpu")
    assert model.plain.is_meta
    assert torch.equal(model.buffer, memory)
    for made in (model.here, model()):
        assert torch.equal(made, right)


@every_layout
@pytest.mark.parametrize(("dim", "pairs"), [(2, 1), (6, 3), (8, 2), (9, 4), (64, 32)])
def test_every_pair_is_turned_as_a_complex_number(layout, dim, pairs):
    x, frequencies = random(8, dim), rope_frequencies(2 * pairs, 500.0)
    positions = torch.tensor([0, 1, 2, 7, 100, 4095, 7, -3])
    made = turn(x, positions, frequencies, layout)
    assert_close(made, slowly(x, positions, frequencies, layout), **EXACT)


def test_a_quarter_turn_by_hand():
    x, positions = torch.tensor([[3.0, 5.0, 7.0, 11.0]]).double(), torch.tensor([1])
    quarter_and_half = torch.tensor([math.pi / 2, math.pi], dtype=torch.float64)
    made = turn(x, positions, quarter_and_half, "interleaved")
    assert made[0].tolist() == pytest.approx([-5, 3, -7, -11])
    made = turn(x, positions, quarter_and_half, "half")
    assert made[0].tolist() == pytest.approx([-7, -5, 3, -11])


def test_the_matrix_of_the_paper():
    x, position, dim = random(6), 5, 6
    matrix = torch.zeros(dim, dim, dtype=torch.float64)
    for i in range(1, dim // 2 + 1):  # the paper counts from 1
        angle = position * 10000 ** (-2 * (i - 1) / dim)
        cos, sin = math.cos(angle), math.sin(angle)
        block = slice(2 * i - 2, 2 * i)
        matrix[block, block] = torch.tensor([[cos, -sin], [sin, cos]], dtype=torch.float64)
    assert_close(rope(x, position), matrix @ x, **EXACT)


@given(SEEDS, PAIRS, BASES, POSITIONS, POSITIONS)
def test_the_score_is_the_sum_over_pairs_of_the_definition(seed, pairs, base, i, j):
    for layout in LAYOUTS:
        q, k = vectors(seed, 2, 2 * pairs)
        expected = 0.0
        for p in range(pairs):
            a, b = channels(p, pairs, layout)
            both = complex(q[a], q[b]) * complex(k[a], k[b]).conjugate()
            expected += (both * cmath.exp(1j * (i - j) * base ** (-2 * p / (2 * pairs)))).real
        made = rope(q, i, layout, base) @ rope(k, j, layout, base)
        assert made.item() == pytest.approx(expected, abs=1e-9)


# --- other libraries, their arithmetic with our float64 angles, and their angles as well


def cases(library):
    draw = numbers.Random(library.where)
    for _ in range(8):
        batch, heads, tokens = draw.randint(1, 3), draw.randint(1, 4), draw.randint(1, 40)
        dim = 2 * library.share * draw.randint(2, 12)
        positions = torch.randint(0, 700, (batch, tokens))
        if not library.rows_differ:
            positions = positions[:1].expand(batch, tokens)
        yield random(batch, heads, tokens, dim), positions, dim // library.share
    for width in (4, 128):  # some divide by width - 2
        yield random(1, 2, 3, width * library.share), torch.randint(0, 700, (1, 3)), width


def turned_by(rotary, x, tables):
    turned, again = rotary.turn(x, x, *tables)
    assert torch.equal(turned, again)
    return turned


every_library = pytest.mark.parametrize("library", ROPE, ids=[library.name for library in ROPE])


@pytest.mark.claim(
    "rope-peers",
    "apply_rope agrees with transformers' Llama and GPT-NeoX (both half) and with transformers' GPT-J, "
    "rotary-embedding-torch and x-transformers (all interleaved): to 1e-12 with equal angles, and to the "
    "rounding of their float32 angles when they compute their own.",
)
@every_library
def test_other_libraries_turn_alike_by_the_same_angles(library, same_as):
    for x, positions, width in cases(library):
        rotary, frequencies = library.rotary(x.shape[-1], library.base), rope_frequencies(width, library.base)
        expected = turned_by(rotary, x, rotary.exact(positions[..., None] * frequencies))
        made = turn(x, positions, frequencies, library.layout)
        assert_close(made, expected, **EXACT)
        same_as(f"{library.where} (by our angles)", made, expected)


@pytest.mark.claim(
    "rope-peers",
    "apply_rope agrees with transformers' Llama and GPT-NeoX (both half) and with transformers' GPT-J, "
    "rotary-embedding-torch and x-transformers (all interleaved): to 1e-12 with equal angles, and to the "
    "rounding of their float32 angles when they compute their own.",
)
@every_library
def test_other_libraries_turn_alike_by_angles_of_their_own(library, same_as):
    for x, positions, width in cases(library):
        rotary = library.rotary(x.shape[-1], library.base)
        expected = turned_by(rotary, x, rotary.tables(x, positions))
        made = turn(x, positions, rope_frequencies(width, library.base), library.layout)
        # a float32 frequency is good to 5e-7, so that an angle is off by position times that
        accuracy = (1e-6 + 6e-7 * positions[:, None, :, None]) * x.abs().max()
        assert ((expected - made).abs() <= accuracy).all()
        same_as(f"{library.where} (by its own)", made, expected)


# --- what holds for every size


@pytest.mark.claim(
    "rope-keeps-norm",
    "RoPE preserves the length of every channel pair, and therefore of the whole vector.",
)
@given(SEEDS, PAIRS, BASES, POSITIONS)
def test_turning_keeps_the_length_of_every_pair(seed, pairs, base, position):
    x = vectors(seed, 2 * pairs)
    for layout in LAYOUTS:
        turned = rope(x, position, layout, base)
        for p in range(pairs):
            pair = list(channels(p, pairs, layout))
            assert turned[pair].norm().item() == pytest.approx(x[pair].norm().item())
        assert turned.norm().item() == pytest.approx(x.norm().item())


@pytest.mark.claim(
    "rope-depends-on-offset-only",
    "For fixed q and k, rotated in the same layout, the RoPE score depends on the two positions only "
    "through their offset.",
)
@given(SEEDS, PAIRS, BASES, POSITIONS, POSITIONS, st.integers(0, 1_000_000))
def test_the_score_of_a_q_and_a_k_depends_on_the_offset_alone(seed, pairs, base, i, j, shift):
    q, k = vectors(seed, 2, 2 * pairs)
    for layout in LAYOUTS:
        score = rope(q, i, layout, base) @ rope(k, j, layout, base)
        moved = rope(q, i + shift, layout, base) @ rope(k, j + shift, layout, base)
        at_zero = q @ rope(k, j - i, layout, base)
        assert moved.item() == pytest.approx(score.item(), abs=1e-7)
        assert at_zero.item() == pytest.approx(score.item(), abs=1e-9)


@pytest.mark.claim(
    "rope-sign",
    "The score of q rotated by m and k rotated by n equals that of unrotated q and k rotated by n - m, "
    "and that of q rotated by m - n and unrotated k. With unrotated q and k rotated by m - n, the score "
    "is different in general, and the same if q equals k.",
)
@pytest.mark.parametrize("dim", [2, 6, 64, 128])
@pytest.mark.parametrize(("m", "n"), [(3, 10), (0, 1), (4000, 17)])
def test_the_key_turns_by_its_position_less_that_of_the_query_and_not_the_reverse(dim, m, n):
    apart = []
    for q, k in random(30, 2, dim):
        score = rope(q, m) @ rope(k, n)
        assert_close(q @ rope(k, n - m), score, rtol=0, atol=1e-10)
        assert_close(rope(q, m - n) @ k, score, rtol=0, atol=1e-10)
        apart.append(abs(q @ rope(k, m - n) - score).item())
        assert_close(q @ rope(q, m - n), rope(q, m) @ rope(q, n), rtol=0, atol=1e-10)
    assert min(apart) > 1e-6
    assert math.fsum(apart) / 30 > 0.1


@pytest.mark.claim(
    "rope-no-factor",
    "The RoPE score is not the plain score times a function of the offset: orthogonal q and k may get a "
    "nonzero score, and the ratio to the plain score at one offset differs between pairs of vectors.",
)
@pytest.mark.parametrize("dim", [2, 4, 64, 128])
@pytest.mark.parametrize("offset", [1, 3, 50, 1000])
def test_the_score_is_no_product_of_the_plain_score_and_a_function_of_the_offset(dim, offset):
    q, k = torch.eye(dim, dtype=torch.float64)[:2]
    assert q @ k == 0
    assert (q @ rope(k, offset)).item() == pytest.approx(-math.sin(offset))
    ratios = [((a @ rope(b, offset)) / (a @ b)).item() for a, b in random(5, 2, dim)]
    assert max(ratios) - min(ratios) > 0.1


@pytest.mark.claim(
    "rope-no-forced-decay",
    "RoPE does not force scores to decay with distance: at every even width from 2 to 512, a query and "
    "the key that matches it best d positions back have their highest score at that distance, for d = 0, "
    "1, 50 and 199 alike, and even the score of two all-ones vectors rises at more than a quarter of the "
    "steps up to distance 199.",
)
def test_at_every_width_the_score_may_rise_with_distance_and_peak_anywhere():
    distances = torch.arange(200)
    for dim in range(2, 513, 2):
        q = random(dim)
        for chosen in (0, 1, 50, 199):
            k = rope(q, chosen)  # what q sees best so many tokens back
            scores = rope(k.expand(200, dim), -distances) @ q
            assert scores.argmax() == chosen, (dim, chosen)
        ones = torch.ones(200, dim, dtype=torch.float64)
        rises = (rope(ones, -distances) @ ones[0]).diff() > 0
        assert rises.double().mean() > 1 / 4, dim


@pytest.mark.claim(
    "rope-random-spread",
    "The RoPE scores of independent q and k with independent standard normal channels have the same "
    "standard deviation at distances from 0 to 10,000.",
)
@every_layout
@pytest.mark.parametrize(("dim", "base"), [(2, 10000.0), (6, 500.0), (64, 10000.0), (128, 5e5)])
def test_random_scores_spread_alike_at_every_distance(dim, base, layout):
    q, k = random(2, 20_000, dim)
    for distance in (0, 1, 1000, 10_000):
        scores = (q * rope(k, distance, layout, base)).sum(-1) / math.sqrt(dim)
        assert scores.std().item() == pytest.approx(1, abs=0.03)


@pytest.mark.claim(
    "rope-of-ones-is-sinusoidal",
    "The RoPE score of two vectors of ones is twice the inner product of the sinusoidal "
    "encodings of their positions.",
)
@given(PAIRS, BASES, POSITIONS, POSITIONS)
def test_the_score_of_ones_is_twice_the_product_of_sinusoidal_encodings(pairs, base, m, n):
    ones = torch.ones(2 * pairs, dtype=torch.float64)
    positions = torch.tensor([m, n])
    pe = sinusoidal_encoding(positions, 2 * pairs, base, dtype=torch.float64)
    for layout in LAYOUTS:
        score = rope(ones, m, layout, base) @ rope(ones, n, layout, base)
        assert score.item() == pytest.approx(2 * (pe[0] @ pe[1]).item(), abs=1e-8)


@pytest.mark.claim(
    "rope-is-a-fourier-sum",
    "For given q and k the RoPE score at query position m and key position n is the sum over the pairs p "
    "of |q_p| |k_p| cos((m - n) w_p + a_p), where a_p is the angle from k_p to q_p.",
)
@given(SEEDS, PAIRS, BASES, POSITIONS, POSITIONS)
def test_the_score_is_a_sum_of_one_cosine_a_pair(seed, pairs, base, m, n):
    q, k = vectors(seed, 2, 2 * pairs)
    for layout in LAYOUTS:
        total = 0
        for p, w in enumerate(rope_frequencies(2 * pairs, base).tolist()):
            (qx, qy), (kx, ky) = (x[list(channels(p, pairs, layout))].tolist() for x in (q, k))
            angle = math.atan2(qy, qx) - math.atan2(ky, kx)
            total += math.hypot(qx, qy) * math.hypot(kx, ky) * math.cos((m - n) * w + angle)
        score = rope(q, m, layout, base) @ rope(k, n, layout, base)
        assert total == pytest.approx(score.item(), abs=1e-8)


def bound(q, k, distances, base=10000.0):
    """Equation 37 of RoFormer for each distance, and the partial sums |S_j| in it."""
    turns = torch.outer(distances.double(), rope_frequencies(len(q), base))
    sums = torch.polar(torch.ones_like(turns), turns).cumsum(-1).abs()
    h = torch.view_as_complex(q.view(-1, 2)) * torch.view_as_complex(k.view(-1, 2)).conj()
    steps = torch.cat((h, torch.zeros(1, dtype=h.dtype))).diff().abs()
    return steps.max() * sums.sum(-1), sums


@pytest.mark.claim(
    "rope-bound-holds",
    "No RoPE score exceeds the bound of RoFormer, equation 37.",
)
@given(SEEDS, PAIRS, BASES, POSITIONS)
def test_no_score_exceeds_the_bound_of_the_paper(seed, pairs, base, distance):
    q, k = vectors(seed, 2, 2 * pairs)
    most, _ = bound(q, k, torch.tensor([distance]), base)
    assert abs(rope(q, distance, base=base) @ k) <= most.item() + 1e-9


@pytest.mark.claim(
    "rope-bound-is-loose",
    "For 100 pairs of normally distributed q and k at each width of 64, 128, 256 and 512 channels, the "
    "bound of RoFormer, equation 37, exceeds |q| |k|, which bounds the score without any position, at "
    "every distance up to 4096. Among 100 pairs with 8 channels, there are some for which it does not.",
)
def test_for_random_vectors_the_bound_is_looser_than_one_that_knows_no_position():
    distances = torch.arange(4097)
    for dim in (64, 128, 256, 512):
        _, sums = bound(*random(2, dim), distances)
        least = sums.sum(-1).min()
        for q, k in random(100, 2, dim):
            most, _ = bound(q, k, distances[:1])  # the first factor is the same at every distance
            assert most / sums[0].sum() * least > q.norm() * k.norm(), dim
    looser = [(bound(q, k, distances)[0] > q.norm() * k.norm()).all().item() for q, k in random(100, 2, 8)]
    assert {*looser} == {True, False}


@pytest.mark.claim(
    "rope-bound-rises",
    "For 8, 16, 32, 64, 128, 256 and 512 channels, the mean of the partial sums in RoFormer's bound falls "
    "overall (at distance 1000 it is less than half of its value at distance 0) but rises at more than a "
    "third of the steps up to that distance. With base 10,000, its averages over the distances from 8,192 "
    "to 16,383 and over each of the four doublings that follow agree to within a tenth.",
)
def test_the_bound_falls_on_the_whole_and_not_step_by_step():
    drawn = torch.Generator().manual_seed(0)
    for dim in (8, 16, 32, 64, 128, 256, 512):
        ones = torch.ones(dim, dtype=torch.float64)
        mean = bound(ones, ones, torch.arange(1001))[1].mean(-1)
        assert mean[1000] < mean[0] / 2, dim
        assert (mean.diff() > 0).double().mean() > 1 / 3, dim
        far = [torch.randint(2**n, 2 ** (n + 1), (400,), generator=drawn) for n in range(13, 18)]
        level = torch.stack([bound(ones, ones, each)[1].mean() for each in far])
        assert level.max() < 1.1 * level.min(), (dim, level)


@pytest.mark.claim(
    "rope-slow-pairs-meet-unseen-angles",
    "In a causal model trained on texts of n tokens, each pair with a wavelength of at least 2 n has, at "
    "every offset from n to 2 n - 1, an angle that it has at no offset below n.",
)
@given(PAIRS, BASES, st.integers(1, 200))
def test_beyond_the_trained_length_slow_pairs_stand_at_angles_never_seen(pairs, base, trained):
    frequencies = rope_frequencies(2 * pairs, base)
    slow = frequencies[2 * math.pi / frequencies >= 2 * trained]
    seen = torch.outer(torch.arange(trained).double(), slow)
    later = torch.outer(torch.arange(trained, 2 * trained).double(), slow)
    apart = later[:, None] - seen  # (later, seen, slow)
    to_nearest_turn = (apart / (2 * math.pi)).round() * 2 * math.pi
    assert ((apart - to_nearest_turn).abs() > slow / 2).all()


@pytest.mark.claim(
    "rope-group",
    "Rotating by a and then by b equals rotating by a + b, and rotating by -a undoes rotating by a.",
)
@given(SEEDS, PAIRS, BASES, POSITIONS, POSITIONS)
def test_turns_add_up_and_come_undone(seed, pairs, base, a, b):
    x = vectors(seed, 2 * pairs)
    for layout in LAYOUTS:
        twice = rope(rope(x, a, layout, base), b, layout, base)
        assert_close(twice, rope(x, a + b, layout, base), rtol=0, atol=1e-9)
        back = rope(rope(x, a, layout, base), -a, layout, base)
        assert_close(back, x, **EXACT)


@given(SEEDS, PAIRS, POSITIONS)
def test_turning_is_linear(seed, pairs, position):
    x, y = vectors(seed, 2, 2 * pairs)
    for layout in LAYOUTS:
        both = rope(2 * x - 3 * y, position, layout)
        assert_close(both, 2 * rope(x, position, layout) - 3 * rope(y, position, layout), **EXACT)


@every_layout
def test_nothing_turns_at_position_0_and_one_radian_at_1(layout):
    x = random(3, 8)
    assert torch.equal(rope(x, 0, layout), x)
    pair = torch.tensor([1.0, 0.0]).double()
    assert rope(pair, 1, layout).tolist() == pytest.approx([math.cos(1), math.sin(1)])


@pytest.mark.claim(
    "rope-layouts-permutation",
    "The two layouts of RoPE differ by one fixed reordering of the channels: even ones first, then odd ones.",
)
@given(SEEDS, PAIRS, BASES, POSITIONS)
def test_the_layouts_differ_by_a_reordering_of_channels(seed, pairs, base, position):
    x, order = vectors(seed, 2 * pairs), permutation(2 * pairs)
    made = rope(x[order], position, "half", base)
    assert_close(made, rope(x, position, "interleaved", base)[order], **EXACT)


def test_the_wrong_layout_is_far_off_and_says_nothing():
    x = random(16, 64)
    positions = torch.arange(16)
    assert (rope(x, positions, "half") - rope(x, positions)).abs().max() > 1


@pytest.mark.claim(
    "rope-wrong-layout-is-silent",
    "With two or more channel pairs, rotating both q and k in the wrong layout raises no error, and the "
    "scores remain a function of the offset, but a different one. With one pair, the layouts are the "
    "same.",
)
@pytest.mark.parametrize("dim", [2, 4, 6, 64, 128])
def test_the_wrong_layout_for_both_still_depends_on_the_offset_alone_but_gives_other_scores(dim):
    for q, k in random(10, 2, dim):
        apart = []
        for offset in (1, 7, 50):
            right, wrong = (rope(q, offset, layout) @ k for layout in LAYOUTS)
            assert rope(q, offset + 100, "half") @ rope(k, 100, "half") == pytest.approx(wrong.item())
            apart.append(abs(right - wrong).item())
        assert max(apart) > 0.1 if dim > 2 else max(apart) < 1e-12
        assert_close(q @ k, rope(q, 9, "half") @ rope(k, 9, "half"), **EXACT)  # as at equal positions


@pytest.mark.claim(
    "rope-mixed-layouts",
    "With two or more channel pairs, if q is rotated in one layout and k in the other, the score depends "
    "on more than the offset.",
)
@pytest.mark.parametrize("dim", [4, 6, 64, 128])
def test_different_layouts_for_q_and_k_break_the_dependence_on_the_offset_alone(dim):
    for q, k in random(10, 2, dim):
        scores = [(rope(q, a) @ rope(k, a + 7, "half")).item() for a in (0, 10, 100)]
        assert max(scores) - min(scores) > 0.1


@pytest.mark.claim(
    "rope-partial",
    "Partial rotary rotates the first channels as if there were no others and leaves the other channels "
    "unchanged.",
)
@every_layout
@pytest.mark.parametrize(("dim", "width"), [(11, 6), (3, 2), (64, 16), (128, 126), (9, 8)])
def test_partial_rotary_turns_the_first_channels_as_if_they_were_alone(layout, dim, width):
    x, positions, frequencies = random(2, 3, 5, dim), torch.arange(5), rope_frequencies(width, base=10000)
    made = turn(x, positions, frequencies, layout)
    alone = turn(x[..., :width], positions, frequencies, layout)
    assert_close(made[..., :width], alone, **EXACT)
    assert torch.equal(made[..., width:], x[..., width:])


def test_a_quarter_of_16_channels_turns_at_1_and_a_hundredth():
    assert rope_frequencies(16 // 4, base=10000).tolist() == pytest.approx([1, 0.01])


def test_two_settings_in_one_process_do_not_mix():
    x = random(5, 8)
    first = rope(x, torch.arange(5))
    assert not torch.equal(rope(x, torch.arange(5), base=100.0), first)
    assert not torch.equal(rope(x, torch.arange(1, 6)), first)
    assert torch.equal(rope(x, torch.arange(5)), first)


# --- positions


def test_positions_divided_are_frequencies_divided():
    x, positions = random(9, 8), torch.arange(9)
    frequencies = rope_frequencies(8, base=10000)
    made = turn(x, positions / 4.0, frequencies, "half")
    assert_close(made, turn(x, positions, frequencies / 4, "half"), **EXACT)


@pytest.mark.claim(
    "rope-exact-to-a-million",
    "At positions up to 1,000,000, a float32 vector of 2 to 256 channels between -1 and 1 is rotated with "
    "an error of at most 3e-7.",
)
@every_layout
def test_positions_up_to_a_million_are_exact(layout):
    positions = torch.tensor([1, 999, 131_071, 999_983, 1_000_000])
    x = torch.rand(5, 128, dtype=torch.float64) * 2 - 1
    frequencies = rope_frequencies(128, base=10000)
    double = turn(x, positions, frequencies, layout)
    single = turn(x.float(), positions, frequencies, layout)
    with mpmath.workdps(40):
        for row, position in enumerate(positions.tolist()):
            for p in range(64):
                a, b = channels(p, 64, layout)
                angle = position * mpmath.power(10000, mpmath.mpf(-2 * p) / 128)
                point = mpmath.mpc(x[row, a].item(), x[row, b].item()) * mpmath.expj(angle)
                exact = [float(point.real), float(point.imag)]
                accuracy = 1e-15 + 6e-16 * position
                assert double[row, [a, b]].tolist() == pytest.approx(exact, abs=accuracy)
                assert single[row, [a, b]].tolist() == pytest.approx(exact, abs=3e-7)
    for dim, base in ((2, 10000.0), (128, 10000.0), (128, 5e5), (256, 500.0)):
        x, frequencies = torch.rand(300, dim, dtype=torch.float64) * 2 - 1, rope_frequencies(dim, base)
        positions = torch.randint(0, 1_000_001, (300,))
        double, single = (turn(part, positions, frequencies, layout) for part in (x, x.float()))
        assert (double - single).abs().max() < 3e-7 - 1e-15 - 6e-16 * 1_000_000


@pytest.mark.claim(
    "rope-float32-angles",
    "With base 10,000 and frequencies and angles rounded to float32, an all-ones vector of 128 channels "
    "is off by more than 0.01 in at least one channel after rotation, at every position from 999,500 to "
    "1,000,499; around each smaller power of ten, down to 1,000, it is off by less on average. With "
    "float64 angles, it is off by less than 3e-7.",
)
def test_float32_angles_would_be_a_hundredth_off_near_a_million():
    frequencies = rope_frequencies(128, base=10000)

    def worst(positions):
        x = torch.ones(len(positions), 128)
        exact = turn(x.double(), positions, frequencies, "half")
        rounded = positions[:, None] * frequencies.float()
        cos, sin = rounded.cos(), rounded.sin()
        by_float32 = torch.cat((cos - sin, sin + cos), -1).double()
        ours = turn(x, positions, frequencies, "half")
        assert (ours - exact).abs().max() < 3e-7
        return (by_float32 - exact).abs().amax(-1)

    off = [worst(torch.arange(10**n - 500, 10**n + 500)) for n in range(3, 7)]
    assert all(less.mean() < more.mean() / 5 for less, more in itertools.pairwise(off))
    assert off[-1].min() > 0.01


# --- in attention


@pytest.mark.claim(
    "rope-cache",
    "Decoding token by token with a cache of rotated keys gives the same outputs as the whole text at "
    "once, also with fewer key heads than query heads.",
)
@pytest.mark.parametrize("kv_heads", [4, 2, 1])
@pytest.mark.parametrize(("dim", "width"), [(8, 8), (9, 4), (2, 2), (64, 64)])
@every_layout
def test_decoding_with_a_cache_gives_the_rows_of_the_whole(layout, dim, width, kv_heads):
    q, k, v = random(2, 4, 9, dim), random(2, kv_heads, 9, dim), random(2, kv_heads, 9, dim)
    frequencies, group = rope_frequencies(width, base=10000), 4 // kv_heads

    def attend(q, k, v):
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        return attention(q, k, v, causal=True)[0]

    turned_k = turn(k, torch.arange(9), frequencies, layout)
    whole = attend(turn(q, torch.arange(9), frequencies, layout), turned_k, v)
    cache = k[:, :, :0]
    for n in range(9):
        now = torch.tensor([n])
        new = turn(k[:, :, n : n + 1], now, frequencies, layout)
        cache = torch.cat((cache, new), 2)
        part = attend(turn(q[:, :, n : n + 1], now, frequencies, layout), cache, v[:, :, : n + 1])
        assert_close(part, whole[:, :, n : n + 1], **EXACT)


@pytest.mark.claim(
    "rope-not-on-values",
    "If q and k are rotated, shifting a whole text leaves the output of attention unchanged; if v is "
    "rotated as well, the output changes.",
)
@pytest.mark.parametrize("dim", [2, 8, 64, 128])
@pytest.mark.parametrize("causal", [False, True])
@every_layout
def test_turning_v_as_well_would_make_the_output_depend_on_where_the_text_stands(layout, causal, dim):
    for move in (1, 100, 10_000):
        q, k, v = random(3, 5, dim)

        def attend(start, turn_v, q=q, k=k, v=v):
            positions = torch.arange(start, start + 5)
            q, k, turned = (rope(part, positions, layout) for part in (q, k, v))
            return attention(q, k, turned if turn_v else v, causal=causal)[0]

        assert_close(attend(0, False), attend(move, False), rtol=0, atol=1e-9)
        assert (attend(0, True) - attend(move, True)).abs().max() > 0.1


# --- checkpoints


@pytest.mark.parametrize(("heads", "dim", "width"), [(1, 2, 2), (4, 8, 8), (2, 9, 4), (3, 8, 6)])
def test_conversion_moves_rows_as_the_layouts_say(heads, dim, width):
    weight, bias = random(heads * dim, 5), random(heads * dim)
    made = interleaved_to_half(weight, heads, width)
    made_bias = interleaved_to_half(bias, heads, width)
    for head in range(heads):
        for row in range(dim):
            source = permutation(width)[row] if row < width else row
            assert torch.equal(made[head * dim + row], weight[head * dim + source])
            assert made_bias[head * dim + row] == bias[head * dim + source]


@given(st.integers(1, 5), st.integers(1, 6), st.integers(0, 5), SEEDS)
def test_conversion_there_and_back_changes_nothing(heads, pairs, rest, seed):
    weight, width = vectors(seed, heads * (2 * pairs + rest), 3), 2 * pairs
    there = interleaved_to_half(weight, heads, width)
    assert torch.equal(half_to_interleaved(there, heads, width), weight)
    back = half_to_interleaved(weight, heads, width)
    assert torch.equal(interleaved_to_half(back, heads, width), weight)


def test_all_channels_turn_unless_told_otherwise():
    weight = random(16, 3)
    for convert in (interleaved_to_half, half_to_interleaved):
        assert torch.equal(convert(weight, 2), convert(weight, 2, 8))


@pytest.mark.claim(
    "rope-conversion",
    "With two or more rotated pairs, reordering the rows of the q and k projections, of their biases and "
    "of a norm after them gives the same scores in the other layout, also with fewer key heads and for "
    "partial rotary. If the norm is not reordered, the scores differ.",
)
@pytest.mark.parametrize("width", [8, 4])
@pytest.mark.parametrize(("heads", "kv_heads", "dim"), [(4, 2, 8), (1, 1, 9), (6, 1, 64), (3, 3, 8)])
def test_a_converted_checkpoint_gives_the_same_scores(width, heads, kv_heads, dim):
    x, positions, frequencies = random(3, 6, 10), torch.arange(6), rope_frequencies(width, base=10000)
    wq, bq = random(heads * dim, 10), random(heads * dim)
    wk, bk = random(kv_heads * dim, 10), random(kv_heads * dim)
    norm = random(dim)  # as of a norm of q between the projection and the turning

    def scores(wq, bq, wk, bk, norm, layout):
        q = (x @ wq.mT + bq).unflatten(-1, (heads, dim)).transpose(1, 2) * norm
        k = (x @ wk.mT + bk).unflatten(-1, (kv_heads, dim)).transpose(1, 2)
        q = turn(q, positions, frequencies, layout)
        k = turn(k, positions, frequencies, layout).repeat_interleave(heads // kv_heads, 1)
        return q @ k.mT

    expected = scores(wq, bq, wk, bk, norm, "interleaved")
    wq, bq = (interleaved_to_half(part, heads, width) for part in (wq, bq))
    wk, bk = (interleaved_to_half(part, kv_heads, width) for part in (wk, bk))
    without_norm = scores(wq, bq, wk, bk, norm, "half")
    norm = interleaved_to_half(norm, 1, width)
    assert_close(scores(wq, bq, wk, bk, norm, "half"), expected, rtol=0, atol=1e-11)
    assert (without_norm - expected).abs().max() > 0.1
    assert (scores(wq, bq, wk, bk, norm, "interleaved") - expected).abs().max() > 0.1


def test_conversion_keeps_dtype_and_device():
    for weight in (torch.arange(8).half(), torch.empty(8, 3, device="meta")):
        made = half_to_interleaved(interleaved_to_half(weight, 2), 2)
        assert (made.dtype, made.device) == (weight.dtype, weight.device)


# --- dtypes, strides, gradients, compilation


@every_layout
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_narrow_dtype_costs_its_own_rounding_and_no_more(layout, dtype):
    x = (torch.rand(4, 32) * 2 - 1).to(dtype)
    positions = torch.tensor([0, 257, 2049, 1_000_000])
    frequencies = rope_frequencies(32, base=10000)
    exact = turn(x.double(), positions, frequencies, layout)
    made = turn(x, positions, frequencies, layout)
    assert made.dtype == dtype
    eps = torch.finfo(dtype).eps  # no entry exceeds the square root of 2, whose rounding is eps / 2
    assert (made - exact).abs().max() <= eps / 2 + 3e-7


def test_in_bfloat16_neighbours_beyond_256_still_differ():
    x = torch.ones(2, 64, dtype=torch.bfloat16)
    made = turn(x, torch.tensor([256, 257]), rope_frequencies(64, base=10000), "half")
    assert (made[0] - made[1]).abs().max() > 0.5


@pytest.mark.claim(
    "rope-bf16-angles",
    "With angles in bfloat16 and base 10,000, shifting a normally distributed q at position 7 and k at "
    "position 2, of 2 to 128 channels, together by 1000 positions changes their score by more than 0.3 of "
    "its standard deviation on average over 100 pairs of q and k; with float64 angles, by less than 1e-9.",
)
@pytest.mark.parametrize("dim", [2, 8, 64, 128])
def test_bfloat16_angles_would_break_the_dependence_on_the_offset_alone(dim):
    def score(q, k, shift, dtype):
        both = torch.tensor([[shift + 7], [shift + 2]]).to(dtype)
        angles = (both * rope_frequencies(dim, base=10000).to(dtype)).double()
        turned_q = turn(q[None], torch.tensor([1]), angles[0], "half")
        turned_k = turn(k[None], torch.tensor([1]), angles[1], "half")
        return (turned_q @ turned_k.mT).item()

    changes = []
    for q, k in random(100, 2, dim):
        assert score(q, k, 0, torch.float64) == pytest.approx(score(q, k, 1000, torch.float64), abs=1e-9)
        changes.append(abs(score(q, k, 0, torch.bfloat16) - score(q, k, 1000, torch.bfloat16)))
    assert math.fsum(changes) / 100 > 0.3 * math.sqrt(dim)  # the deviation of a score is sqrt(dim)


@every_layout
def test_the_gradient_is_turned_back(layout):
    x, g, positions = random(5, 8).requires_grad_(), random(5, 8), torch.arange(5)
    (grad,) = torch.autograd.grad(rope(x, positions, layout), x, g)
    assert_close(grad, rope(g, -positions, layout), **EXACT)


@pytest.mark.slow
def test_frequencies_compile_into_one_graph():
    torch.compiler.reset()
    compiled = torch.compile(rope_frequencies, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(12, 500.0), rope_frequencies(12, 500.0))


# --- what is refused, and in which words


@refusals
def test_refuses():
    at = torch.arange(2)
    for dim in (0, -2, 1, 7):
        yield f"dim must be even and at least 2, got {dim}", rope_frequencies, dim, 1e4
    for base in (0.0, -1.0, math.inf, math.nan):
        yield f"base must be a positive number, got {base}", rope_frequencies, 4, base
    for shape in ((), (0,), (1, 2), (2, 1)):
        yield (
            f"frequencies must be (pairs,), at least one pair, got {shape}",
            rope_tables,
            at,
            torch.zeros(shape),
        )
    for dtype in (torch.bfloat16, torch.float16, torch.int64):
        yield f"frequencies must be float32 or float64, got {dtype}", rope_tables, at, torch.ones(2).to(dtype)
    for layout in ("", "Half", "neox", None, True):
        message = f"layout must be 'interleaved' or 'half', got {layout!r}"
        yield message, turn, torch.zeros(2, 4), at, torch.ones(2), layout
    for convert in (interleaved_to_half, half_to_interleaved):
        for rows, heads in ((6, 4), (6, 0), (6, -1), (2, 4), (0, 1)):
            yield (
                f"the rows of weight must be a positive multiple of heads, {heads}, got {rows}",
                convert,
                torch.zeros(rows, 3),
                heads,
            )
        message = "the rows of weight must be a positive multiple of heads, 1, got 0"
        yield message, convert, torch.tensor(1.0), 1
        for width in (0, -2, 3, 10):
            yield f"rotary_dim must be even, 2 to 8, got {width}", convert, torch.zeros(16, 3), 2, width
        yield "rotary_dim must be even, 2 to 7, got 7", convert, torch.zeros(14, 3), 2
        yield "rotary_dim must be even, 2 to 1, got 1", convert, torch.zeros(2, 3), 2


# --- tables of others


@pytest.mark.claim(
    "rope-tables-of-float32",
    "The cosines and sines of float32 products of positions and w, where w is 1 / base ** (arange(0, dim, "
    "2) / dim) in float32, equal the tables of transformers' Llama bit for bit.",
)
@pytest.mark.parametrize(("dim", "base"), [(64, 10_000.0), (64, 500_000.0), (128, 1e6), (96, 10_000.0)])
def test_float32_tables_are_those_of_transformers(dim, base):
    rope = {"rope_type": "default", "rope_theta": base}
    config = peer("transformers").LlamaConfig(hidden_size=dim, num_attention_heads=1, rope_parameters=rope)
    theirs = peer("transformers.models.llama.modeling_llama").LlamaRotaryEmbedding(config)
    positions = torch.cat((torch.arange(9000), torch.arange(100_000, 131_072, 77)))
    w = 1 / base ** (torch.arange(0, dim, 2).float() / dim)
    made = [f(positions.float()[..., None] * w) for f in (torch.cos, torch.sin)]
    for ours, doubled in zip(made, theirs(torch.zeros(1), positions[None]), strict=True):
        assert torch.equal(torch.cat((ours, ours), -1), doubled[0])
    exact = rope_tables(positions, rope_frequencies(dim, base))
    far = [(ours - table).abs().amax(-1) for ours, table in zip(made, exact, strict=True)]
    assert all(gap[:100].max() < 2e-5 and gap[-100:].max() > 1e-3 for gap in far)  # they differ far out


@pytest.mark.parametrize("layout", LAYOUTS)
def test_of_doubled_tables_the_first_half_is_right_and_the_whole_is_refused_unless_part_turns(layout):
    positions, x = torch.arange(5), random(2, 5, 16)
    for pairs in (8, 6, 4):
        cos, sin = rope_tables(positions, rope_frequencies(2 * pairs, base=10000), torch.float64)
        doubled = [torch.cat((table, table), -1) for table in (cos, sin)]
        halves = [table[..., :pairs] for table in doubled]
        expected = apply_rope(x, cos, sin, layout)
        assert torch.equal(apply_rope(x, *halves, layout), expected)
        if 2 * pairs > 8:
            with pytest.raises(ValueError, match=f"1 to 8 pairs, got \\(5, {2 * pairs}\\)"):
                apply_rope(x, *doubled, layout)
        else:  # as the docstring says, no shape tells
            assert (apply_rope(x, *doubled, layout) - expected).abs().max() > 0.1


@pytest.mark.peer
def test_of_tables_whose_columns_stand_side_by_side_every_second_is_right():
    transformers, cohere = peer("transformers"), peer("transformers.models.cohere.modeling_cohere")
    turn = cohere.CohereRotaryEmbedding(transformers.CohereConfig(hidden_size=64, num_attention_heads=4))
    positions, x = torch.arange(20)[None], random(1, 4, 20, 16)
    cos, sin = turn(x.float(), positions)
    expected, _ = cohere.apply_rotary_pos_emb(x.float(), x.float(), cos, sin)
    made = apply_rope(x.float(), cos[..., ::2], sin[..., ::2], "interleaved")
    assert_close(made, expected, rtol=0, atol=1e-5)
