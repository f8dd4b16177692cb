"""sinusoidal.py against its formula, against other libraries, and for what the guide says of it."""

import math
import random
from functools import partial
from types import SimpleNamespace

import mpmath
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from snippets.sinusoidal import (
    AddSinusoidal,
    shift_matrix,
    sinusoidal_encoding,
    sinusoidal_encoding_t2t,
    sinusoidal_frequencies,
)
from tests.peers import peer
from tests.snippets.common import refusals

DIMS = (st.integers(1, 40) | st.sampled_from([64, 256])).map(lambda pairs: 2 * pairs)
BASES = st.floats(1.5, 1e7)
POSITIONS = st.integers(-10_000, 10_000)
LAYOUTS = ["interleaved", "sin_cos", "cos_sin"]


def encode(positions, dim, base=10000.0):
    return sinusoidal_encoding(torch.as_tensor(positions), dim, base, torch.float64)


def shift(offsets, dim, base=10000.0):
    return shift_matrix(torch.as_tensor(offsets), dim, base, torch.float64)


def interleaved(halves):
    """[s0 s1 ... c0 c1 ...] as [s0 c0 s1 c1 ...]."""
    return halves.unflatten(-1, (2, -1)).mT.flatten(-2)


# --- what the sources say


@pytest.mark.parametrize("encoding", [sinusoidal_encoding, sinusoidal_encoding_t2t])
@pytest.mark.parametrize(("dim", "base"), [(4, 10000.0), (6, 10000.0), (10, 500.0), (64, 0.5)])
def test_every_entry_is_its_formula(encoding, dim, base):
    positions = [0, 1, 2, 7, 100, 4095, -3]
    made = encoding(torch.tensor(positions), dim, base, torch.float64)
    for row, position in enumerate(positions):
        for p in range(dim // 2):
            if encoding is sinusoidal_encoding:
                angle, sin, cos = position / base ** (2 * p / dim), 2 * p, 2 * p + 1
            else:
                angle, sin, cos = position * base ** (-p / (dim / 2 - 1)), p, dim // 2 + p
            accuracy = 1e-15 * (1 + 8 * abs(angle))
            assert made[row, sin].item() == pytest.approx(math.sin(angle), abs=accuracy)
            assert made[row, cos].item() == pytest.approx(math.cos(angle), abs=accuracy)


def test_dim_2_is_one_hand_of_one_radian_per_position():
    assert encode(3, 2).tolist() == pytest.approx([math.sin(3), math.cos(3)], abs=1e-15)


def test_wavelengths_grow_by_one_factor_from_2_pi_to_just_short_of_2_pi_base():
    wavelengths = 2 * math.pi / sinusoidal_frequencies(512)
    assert wavelengths[0].item() == pytest.approx(2 * math.pi)
    assert wavelengths[-1].item() == pytest.approx(2 * math.pi * 10000 ** (1 - 2 / 512))
    factors = wavelengths[1:] / wavelengths[:-1]
    assert_close(factors, torch.full_like(factors, 10000 ** (2 / 512)))


def test_frequencies_are_float64_and_radians_per_position():
    frequencies = sinusoidal_frequencies(8, base=16.0)
    assert frequencies.dtype == torch.float64
    assert frequencies.tolist() == pytest.approx([1, 1 / 2, 1 / 4, 1 / 8], rel=1e-15)


def test_the_slowest_hand_of_tensor2tensor_turns_at_exactly_one_over_base():
    for dim in (4, 8, 512):
        for base in (10000.0, 100.0):
            sine = sinusoidal_encoding_t2t(torch.tensor(1), dim, base, torch.float64)[dim // 2 - 1]
            assert math.asin(sine.item()) == pytest.approx(1 / base, rel=1e-14)


@pytest.mark.claim(
    "sinusoidal-t2t-differs",
    "tensor2tensor's sinusoidal encoding differs from the paper's formula in layout and in frequencies: "
    "for 4 or more channels no reordering of channels turns one into the other.",
)
@pytest.mark.parametrize("dim", [4, 6, 8, 10, 64, 130, 512])
def test_tensor2tensor_differs_from_the_paper_in_layout_and_frequencies(dim):
    positions = torch.tensor([1, 10, 100])
    paper = encode(positions, dim)
    t2t = sinusoidal_encoding_t2t(positions, dim, dtype=torch.float64)
    assert (interleaved(t2t) - paper).abs().max() > 0.01
    assert (t2t.sort(-1).values - paper.sort(-1).values).abs().max() > 0.01
    assert_close(interleaved(t2t)[:, :2], paper[:, :2])  # only the fastest hand is the same


# --- exactness


def test_positions_up_to_and_beyond_a_million_are_exact():
    positions = [1, 999, 131_071, 999_983, 1_000_000, 16_777_217, 1_000_000_007]
    double = encode(positions, 128)
    single = sinusoidal_encoding(torch.tensor(positions), 128)
    with mpmath.workdps(50):
        for row, position in enumerate(positions):
            for p in range(64):
                angle = position / mpmath.power(10000, mpmath.mpf(2 * p) / 128)
                for column, wave in ((2 * p, mpmath.sin), (2 * p + 1, mpmath.cos)):
                    exact = float(wave(angle))
                    accuracy = 1e-15 + 4e-16 * position
                    assert double[row, column].item() == pytest.approx(exact, abs=accuracy)
                    if position < 10_000_000:  # then all that is lost is the cast
                        assert single[row, column].item() == pytest.approx(exact, abs=3.1e-8)


def test_float32_angles_would_be_6_hundredths_off_near_position_1_000_000():
    positions, frequencies = torch.arange(990_000, 1_010_000)[:, None], sinusoidal_frequencies(128)
    rounded = (positions.float() * frequencies.float()).double()
    error = (rounded.cos() - (positions * frequencies).cos()).abs()
    assert error.max().item() == pytest.approx(0.061, abs=0.001)


def test_results_are_float32_unless_another_dtype_is_asked_for():
    for positions in (torch.arange(3), torch.arange(3.0), torch.arange(3.0).double()):
        assert sinusoidal_encoding(positions, 4).dtype == torch.float32
        assert sinusoidal_encoding_t2t(positions, 4).dtype == torch.float32
        assert shift_matrix(positions, 4).dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_narrow_dtype_costs_its_own_rounding_and_no_more(dtype):
    positions = torch.tensor([0, 257, 2049, 1_000_000])
    exact = encode(positions, 32)
    for function in (sinusoidal_encoding, sinusoidal_encoding_t2t, shift_matrix):
        made = function(positions, 32, dtype=dtype)
        assert made.dtype == dtype
        assert torch.equal(made, function(positions, 32, dtype=torch.float64).to(dtype))
    made = sinusoidal_encoding(positions, 32, dtype=dtype).double()
    assert (made - exact).abs().max() <= torch.finfo(dtype).eps / 2


def test_fractional_positions_lie_between_whole_ones():
    assert encode(0.5, 2).tolist() == pytest.approx([math.sin(0.5), math.cos(0.5)])


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 3)])
def test_positions_may_have_any_shape(shape):
    positions = torch.randint(0, 100, shape)
    assert sinusoidal_encoding(positions, 6).shape == (*shape, 6)
    assert sinusoidal_encoding_t2t(positions, 6).shape == (*shape, 6)
    assert shift_matrix(positions, 6).shape == (*shape, 6, 6)
    flat = sinusoidal_encoding(positions.flatten(), 6)
    assert torch.equal(sinusoidal_encoding(positions, 6), flat.view(*shape, 6))


def test_two_settings_in_one_process_do_not_mix():
    first = sinusoidal_encoding(torch.arange(5), 8)
    assert not torch.equal(sinusoidal_encoding(torch.arange(5), 8, base=100.0), first)
    assert torch.equal(sinusoidal_encoding(torch.arange(5), 8), first)


# --- other libraries


def gptj(positions, dim, base):
    module = peer("transformers.models.gptj.modeling_gptj")
    return module.create_sinusoidal_positions(positions, dim)


def roformer(positions, dim, base):
    module = peer("transformers.models.roformer.modeling_roformer")
    embedding = module.RoFormerSinusoidalPositionalEmbedding(positions, dim)
    return embedding.create_weight()


def x_transformers(positions, dim, base):
    module = peer("x_transformers.x_transformers")
    embedding = module.ScaledSinusoidalEmbedding(dim, theta=base)
    scaled = embedding(torch.zeros(1, positions, dim)).detach()
    return scaled / embedding.scale.detach()


def vibevoice(positions, dim, base):
    module = peer("transformers.models.vibevoice.modeling_vibevoice")
    config = SimpleNamespace(frequency_embedding_size=dim, diffusion_max_period=base)
    return module.VibeVoiceDiffusionHeadSinusoidalEmbedding(config)(torch.arange(positions))


def m2m_100(positions, dim, base):
    module = peer("transformers.models.m2m_100.modeling_m2m_100")
    return module.M2M100SinusoidalPositionalEmbedding.get_embedding(positions, dim)


def musicgen(positions, dim, base):
    module = peer("transformers.models.musicgen.modeling_musicgen")
    return module.MusicgenSinusoidalPositionalEmbedding.get_embedding(positions, dim)


def whisper(positions, dim, base):
    module = peer("transformers.models.whisper.modeling_whisper")
    return module.sinusoids(positions, dim, base)


PEERS = {
    "gptj": (gptj, sinusoidal_encoding, "sin_cos", False),
    "roformer": (roformer, sinusoidal_encoding, "sin_cos", False),
    "x_transformers": (x_transformers, sinusoidal_encoding, "sin_cos", True),
    "vibevoice": (vibevoice, sinusoidal_encoding, "cos_sin", True),
    "m2m_100": (m2m_100, sinusoidal_encoding_t2t, "sin_cos", False),
    "musicgen": (musicgen, sinusoidal_encoding_t2t, "cos_sin", False),
    "whisper": (whisper, sinusoidal_encoding_t2t, "sin_cos", True),
}

NAMES = {
    "gptj": "transformers.models.gptj.modeling_gptj.create_sinusoidal_positions",
    "roformer": "transformers.models.roformer.modeling_roformer.RoFormerSinusoidalPositionalEmbedding",
    "x_transformers": "x_transformers.ScaledSinusoidalEmbedding",
    "vibevoice": "transformers.models.vibevoice.modeling_vibevoice.VibeVoiceDiffusionHeadSinusoidalEmbedding",
    "m2m_100": "transformers.models.m2m_100.modeling_m2m_100.M2M100SinusoidalPositionalEmbedding",
    "musicgen": "transformers.models.musicgen.modeling_musicgen.MusicgenSinusoidalPositionalEmbedding",
    "whisper": "transformers.models.whisper.modeling_whisper.sinusoids",
}


@pytest.mark.claim(
    "sinusoidal-agrees-with-peers",
    "The paper's encoding agrees with transformers' GPT-J, RoFormer and VibeVoice and with "
    "x-transformers, and tensor2tensor's encoding agrees with transformers' M2M100, MusicGen and Whisper, "
    "each in its own layout, to the rounding of their float32 angles.",
)
@pytest.mark.parametrize("peer", PEERS)
def test_other_libraries_give_the_same_numbers(peer, same_as):
    theirs, ours, layout, takes_base = PEERS[peer]
    draw = random.Random(peer)
    sizes = [(draw.randint(1, 700), 2 * draw.randint(2, 150)) for _ in range(12)]
    for tokens, dim in [*sizes, (1, 4), (700, 1024)]:
        base = draw.choice([10000.0, 500.0, 1e6]) if takes_base else 10000.0
        expected = theirs(tokens, dim, base).double()
        made = ours(torch.arange(tokens), dim, base, torch.float64, layout)
        # a float32 frequency is good to 5e-7, so that an angle is off by position times that
        accuracy = 1e-7 + 6e-7 * torch.arange(tokens, dtype=torch.float64)[:, None]
        assert expected.shape == made.shape
        assert ((expected - made).abs() <= accuracy).all()
        same_as(NAMES[peer], made, expected)


# --- what holds for every size


@pytest.mark.claim(
    "sinusoidal-norm-is-constant",
    "Every sinusoidal position vector has the same length, the square root of dim / 2.",
)
@given(POSITIONS, DIMS, BASES)
def test_every_position_vector_has_the_same_norm(position, dim, base):
    assert encode(position, dim, base).norm().item() == pytest.approx(math.sqrt(dim / 2))


@pytest.mark.claim(
    "sinusoidal-dot-depends-on-offset-only",
    "The dot product of two sinusoidal position vectors depends only on the distance between "
    "the positions: it is the sum of cos(distance * w) over the dim / 2 frequencies w.",
)
@given(POSITIONS, st.integers(-10_000, 10_000), DIMS, BASES)
def test_the_dot_product_is_a_function_of_the_distance(position, offset, dim, base):
    dot = encode(position, dim, base) @ encode(position + offset, dim, base)
    cosines = (math.cos(offset * base ** (-2 * p / dim)) for p in range(dim // 2))
    assert dot.item() == pytest.approx(math.fsum(cosines), abs=1e-10)


@pytest.mark.claim(
    "sinusoidal-shift-is-linear",
    "Shifting a sinusoidal position vector by a fixed offset is multiplication by one matrix, the same at "
    "every position: M_k PE(p) = PE(p + k), also for negative and fractional offsets.",
)
@given(POSITIONS, st.one_of(POSITIONS, st.floats(-1000, 1000)), DIMS, BASES)
def test_one_matrix_moves_every_position_by_the_same_offset(position, offset, dim, base):
    offset = torch.tensor(offset, dtype=torch.float64)
    moved = shift(offset, dim, base) @ encode(position, dim, base)
    assert_close(moved, encode(position + offset, dim, base), rtol=0, atol=1e-10)


def test_one_matrix_moves_positions_around_a_million():
    positions = torch.arange(999_000, 1_000_000)
    moved = encode(positions, 128) @ shift(517, 128).mT
    assert_close(moved, encode(positions + 517, 128), rtol=0, atol=1e-8)


@pytest.mark.claim(
    "sinusoidal-shift-is-a-rotation",
    "The matrix that shifts sinusoidal position vectors by an offset is a rotation, and its transpose is "
    "the matrix of the opposite offset.",
)
@given(POSITIONS, DIMS, BASES)
def test_a_shift_is_a_rotation(offset, dim, base):
    matrix = shift(offset, dim, base)
    assert_close(matrix @ matrix.mT, torch.eye(dim, dtype=torch.float64), rtol=0, atol=1e-14)
    assert torch.linalg.det(matrix).item() == pytest.approx(1)
    assert_close(matrix.mT, shift(-offset, dim, base), rtol=0, atol=1e-15)


@given(st.integers(-1000, 1000), st.integers(-1000, 1000), DIMS)
def test_shifts_compose_as_their_offsets_add(a, b, dim):
    assert_close(shift(a, dim) @ shift(b, dim), shift(a + b, dim), rtol=0, atol=1e-11)


def test_a_shift_by_nothing_changes_nothing():
    assert torch.equal(shift_matrix(torch.tensor(0), 6), torch.eye(6))


@pytest.mark.claim(
    "sinusoidal-steps-have-equal-length-not-equal-direction",
    "For the same k, the steps PE(p + k) - PE(p) have the same length at every p, but none of the 100 "
    "steps after the first has the direction of the first. At dim 64, the steps from 0 to 5 and from 10 "
    "to 15 are nearly perpendicular.",
)
@pytest.mark.parametrize("dim", [2, 6, 64, 128, 512])
def test_equal_steps_are_equally_long_and_point_elsewhere(dim):
    vectors = encode(torch.arange(1100), dim)
    for k in (1, 5, 100, 1000):
        steps = vectors[k:] - vectors[:-k]
        lengths = steps.norm(dim=-1)
        assert_close(lengths, lengths[:1].expand_as(lengths), rtol=1e-11, atol=0)
        assert (torch.cosine_similarity(steps[:1], steps[1:101]) < 1 - 1e-6).all()
    if dim == 64:
        first, second = vectors[5] - vectors[0], vectors[15] - vectors[10]
        assert abs(torch.cosine_similarity(first, second, dim=0)) < 0.06


@pytest.mark.claim(
    "sinusoidal-not-additive",
    "PE(a) + PE(b) is not PE(a + b): at dims 64, 128, 512 and 1,024, the gap is at least 0.94 times the "
    "norm of PE(a + b) for all positions a and b below 100. With a single channel pair, the gap can be "
    "small: below 0.1 for positions 1 and 24.",
)
@pytest.mark.parametrize("dim", [64, 128, 512, 1024])
def test_encodings_do_not_add_as_their_positions_do(dim):
    vectors = encode(torch.arange(199), dim)
    a = torch.arange(100)
    sums = vectors[:100, None] + vectors[None, :100]
    gaps = (sums - vectors[a[:, None] + a]).norm(dim=-1) / math.sqrt(dim / 2)  # the norm of every row
    assert gaps.min() > (0.95 if dim >= 128 else 0.94)
    assert (encode(1, 2) + encode(24, 2) - encode(25, 2)).norm() < 0.1


@pytest.mark.claim(
    "sinusoidal-dot-is-not-monotone",
    "The dot product of sinusoidal position vectors falls up to distance 3 but does not fall steadily "
    "after that: for 2 to 1,024 dims it rises at more than a tenth of the first 299 steps. At dim 64 it "
    "rises from distance 5 to 6, and is 9.08 at distance 128 but 11.32 at 256.",
)
@pytest.mark.parametrize("dim", [2, 6, 64, 128, 512, 1024])
@pytest.mark.parametrize("base", [500.0, 10000.0, 1e6])
def test_similarity_does_not_fall_steadily_with_distance(dim, base):
    dots = encode(torch.arange(300), dim, base) @ encode(0, dim, base)
    assert (dots[1:4] < dots[:3]).all()
    assert (dots.diff() > 0).double().mean() > 0.1
    if (dim, base) == (64, 10000.0):
        assert (dots[1:6] < dots[:5]).all()
        assert dots[6] > dots[5]
        assert dots[[128, 256]].tolist() == pytest.approx([9.08, 11.32], abs=0.005)


@pytest.mark.claim(
    "sinusoidal-positions-are-distinct",
    "At dim 64, no two of the positions 0 to 1,000,000 have encodings that are closer together than those "
    "of neighbouring positions, whose distance is 1.47.",
)
def test_a_million_positions_keep_their_distance():
    origin, nearest = encode(0, 64), math.inf
    for start in range(1, 1_000_001, 50_000):  # the distance is a function of the offset alone
        gaps = (encode(torch.arange(start, start + 50_000), 64) - origin).norm(dim=-1)
        nearest = min(nearest, gaps.min().item())
    assert nearest == pytest.approx((encode(1, 64) - origin).norm().item())
    assert nearest == pytest.approx(1.47, abs=0.005)


@pytest.mark.claim(
    "one-frequency-aliases",
    "One frequency is not enough: at 1 radian per position, the encodings of positions 0 and 710 differ "
    "by less than 0.0001, while those of neighbours differ by 0.96.",
)
def test_one_hand_alone_comes_back_to_where_it_was():
    assert (encode(710, 2) - encode(0, 2)).norm() < 1e-4
    assert (encode(1, 2) - encode(0, 2)).norm().item() == pytest.approx(0.96, abs=0.005)
    assert (encode(710, 64) - encode(0, 64)).norm() > 1.47


@pytest.mark.claim(
    "sinusoidal-projections-break-offset",
    "After projection by two general matrices W_q and W_k, the dot product of sinusoidal position vectors "
    "no longer depends only on the distance.",
)
@pytest.mark.parametrize("dim", [2, 6, 64, 512])
@pytest.mark.parametrize("offset", [0, 5, 100])
def test_general_projections_break_the_dependence_on_distance_alone(dim, offset):
    vectors = encode(torch.arange(300), dim)
    raw = (vectors @ vectors.mT).diagonal(offset)
    assert_close(raw, raw[:1].expand_as(raw))
    for _ in range(3):
        queries, keys = torch.randn(2, dim, dim, dtype=torch.float64) / math.sqrt(dim)
        projected = (vectors @ queries @ (vectors @ keys).mT).diagonal(offset)
        assert projected.max() - projected.min() > 0.1


@pytest.mark.claim(
    "bfloat16-positions-collide",
    "bfloat16 cannot represent 257: stored in bfloat16, position 257 becomes position 256, and float16 "
    "does the same to position 2049. Below these positions, both formats represent every whole number; "
    "from these positions on, they represent no odd one.",
)
def test_half_precision_positions_collide_and_are_refused():
    for dtype, position in ((torch.bfloat16, 257), (torch.float16, 2049)):
        positions = torch.tensor([position - 1, position])
        kept = positions.to(dtype)
        assert kept[0] == kept[1]
        same = sinusoidal_encoding(kept.float(), 64)  # what would have come out
        assert torch.equal(same[0], same[1])
        assert (encode(positions, 64)[0] - encode(positions, 64)[1]).norm() > 1
        with pytest.raises(ValueError, match=f"got {dtype}$"):
            sinusoidal_encoding(kept, 64)
        short = torch.arange(position)
        assert torch.equal(short.to(dtype).long(), short)
        odd = torch.arange(position, 65_000, 2)
        assert (odd.to(dtype).long() % 2 == 0).all()


# --- layouts and tables


@pytest.mark.parametrize("encoding", [sinusoidal_encoding, sinusoidal_encoding_t2t])
def test_layouts_are_orders_of_the_same_sines_and_cosines(encoding):
    at = torch.randint(0, 999, (2, 50))
    sin, cos = encoding(at, 8, layout="sin_cos").chunk(2, -1)
    assert torch.equal(encoding(at, 8, layout="cos_sin"), torch.cat((cos, sin), -1))
    assert torch.equal(encoding(at, 8, layout="interleaved"), interleaved(torch.cat((sin, cos), -1)))


def test_the_layout_of_a_source_is_the_one_if_none_is_given():
    at, x = torch.arange(9), torch.zeros(9, 8)
    for layout in LAYOUTS:
        made = AddSinusoidal(8, layout=layout)(x, at)
        assert torch.equal(made, sinusoidal_encoding(at, 8, layout=layout))
    assert torch.equal(sinusoidal_encoding(at, 8), sinusoidal_encoding(at, 8, layout="interleaved"))
    assert torch.equal(AddSinusoidal(8)(x, at), sinusoidal_encoding(at, 8))
    assert torch.equal(sinusoidal_encoding_t2t(at, 8), sinusoidal_encoding_t2t(at, 8, layout="sin_cos"))


@pytest.mark.parametrize("encoding", [sinusoidal_encoding, sinusoidal_encoding_t2t])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_of_a_table_that_was_made_once_lose_no_bit(encoding, dtype):
    positions = torch.randint(0, 999, (2, 50))
    for layout in LAYOUTS:
        table = encoding(torch.arange(1000), 8, 10_000.0, dtype, layout)
        assert torch.equal(table[positions], encoding(positions, 8, 10_000.0, dtype, layout))


# --- gradients


# --- what is refused, and in which words


ENCODINGS = sinusoidal_encoding, sinusoidal_encoding_t2t


@refusals
def test_refuses():
    at = torch.arange(3)
    for dim in (0, -2, 1, 7):
        message = f"dim must be even and at least 2, got {dim}"
        for function in (sinusoidal_encoding, shift_matrix):
            yield message, function, at, dim
        for function in (sinusoidal_frequencies, AddSinusoidal):
            yield message, function, dim
    for dim in (0, -2, 2, 3, 7):
        yield f"dim must be even and at least 4, got {dim}", sinusoidal_encoding_t2t, at, dim
    for base in (0.0, -1.0, math.inf, math.nan):
        message = f"base must be a positive number, got {base}"
        for function in (sinusoidal_frequencies, AddSinusoidal):
            yield message, function, 4, base
        for function in (*ENCODINGS, shift_matrix):
            yield message, function, at, 4, base
    for layout in ("", "half", "cos then sin", None, True):
        message = f"layout must be 'interleaved', 'sin_cos' or 'cos_sin', got {layout!r}"
        for function in ENCODINGS:
            yield message, partial(function, layout=layout), at, 4
        yield message, AddSinusoidal, 4, 10.0, layout


def test_the_base_of_the_paper_is_the_base_if_none_is_given():
    at = torch.arange(2000)
    for function in (*ENCODINGS, shift_matrix):
        assert torch.equal(function(at, 8), function(at, 8, 10_000.0))
        assert not torch.equal(function(at, 8), function(at, 8, 10_001.0))
