"""xpos.py against its formula in complex numbers, against other libraries, and in attention."""

import cmath
import itertools
import math
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from snippets.attention import attention
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from snippets.xpos import apply_xpos, xpos_decay, xpos_tables
from tests.peers.turned import XPOS
from tests.snippets.common import EXACT, SEEDS, random, refusals, vectors

ROLES = ["query", "key"]
every_role = pytest.mark.parametrize("role", ROLES)

PAIRS = st.integers(1, 20) | st.sampled_from([32, 64, 128])
POSITIONS = st.integers(0, 4000)


def turn(x, positions, role, centre, **options):
    return apply_xpos(x, *xpos_tables(positions, x.shape[-1], role, centre, **options, dtype=torch.float64))


def turned_by_rope(x, positions, base):
    tables = rope_tables(positions, rope_frequencies(x.shape[-1], base), torch.float64)
    return apply_rope(x, *tables, "interleaved")


def xpos(x, position, role, centre=0, **options):
    """One vector (dim,) at one position."""
    return turn(x[None], torch.tensor([position]), role, centre, **options)[0]


def decay(p, dim, gamma=0.4):
    return (2 * p / dim + gamma) / (1 + gamma)


# --- what the sources say


@pytest.mark.parametrize(("dim", "gamma"), [(2, 0.4), (6, 0.4), (64, 0.4), (10, 3.0)])
def test_decays_are_their_formula(dim, gamma):
    made = xpos_decay(dim, gamma)
    assert made.dtype == torch.float64
    assert made.tolist() == pytest.approx([decay(p, dim, gamma) for p in range(dim // 2)])


@pytest.mark.claim(
    "xpos-fast-pairs-fade-most",
    "In xPos, the faster a pair rotates, the faster its part of the score decays with distance.",
)
@pytest.mark.parametrize("dim", [2, 4, 6, 64, 256])
@pytest.mark.parametrize("gamma", [0.4, 0.01, 3.0])
def test_the_fastest_pair_fades_most_and_no_pair_grows(dim, gamma):
    made = xpos_decay(dim, gamma)
    assert made[0].item() == pytest.approx(gamma / (1 + gamma))
    assert (made.diff() > 0).all()
    assert made[-1] < 1
    x = torch.ones(dim, dtype=torch.float64)
    before = x.unflatten(-1, (-1, 2)).norm(dim=-1)
    for distance in (1, 100, 5000):
        left = xpos(x, distance, "query", gamma=gamma).unflatten(-1, (-1, 2)).norm(dim=-1) / before
        assert (left.diff() > 0).all()  # from the fastest pair to the slowest
        assert left.max() < 1


@pytest.mark.parametrize("options", [{}, {"base": 500.0, "gamma": 1.0, "scale_base": 64.0}])
@pytest.mark.parametrize("centre", [0, 50, 12.5])
@every_role
def test_every_pair_is_turned_and_scaled_as_a_complex_number(role, centre, options):
    dim, positions = 6, [0, 1, 2, 7, 100, 1000, 7]
    base, gamma, scale_base = {"base": 1e4, "gamma": 0.4, "scale_base": 512.0, **options}.values()
    x = random(7, dim)
    made = turn(x, torch.tensor(positions), role, centre, **options)
    for row, position in enumerate(positions):
        for p in range(dim // 2):
            power = (position - centre) / scale_base * (1 if role == "query" else -1)
            angle = cmath.exp(1j * position * base ** (-2 * p / dim))
            point = complex(*x[row, 2 * p : 2 * p + 2]) * angle * decay(p, dim, gamma) ** power
            expected = [point.real, point.imag]
            assert made[row, 2 * p : 2 * p + 2].tolist() == pytest.approx(expected, rel=1e-10)


@given(SEEDS, PAIRS, POSITIONS, POSITIONS, st.integers(-2000, 2000))
def test_the_score_is_the_sum_over_pairs_of_the_definition(seed, pairs, i, j, centre):
    q, k = vectors(seed, 2, 2 * pairs)
    expected, size = 0.0, 1.0
    for p in range(pairs):
        both = complex(*q[2 * p : 2 * p + 2]) * complex(*k[2 * p : 2 * p + 2]).conjugate()
        fading = decay(p, 2 * pairs) ** ((i - j) / 512)
        expected += (both * cmath.exp(1j * (i - j) * 10000 ** (-p / pairs))).real * fading
        size += abs(both) * fading
    made = xpos(q, i, "query", centre) @ xpos(k, j, "key", centre)
    assert made.item() == pytest.approx(expected, abs=1e-10 * size)


@pytest.mark.claim(
    "xpos-without-decay-is-rope",
    "xPos without decay is interleaved RoPE.",
)
@pytest.mark.parametrize("dim", [2, 8, 64, 128])
@pytest.mark.parametrize("base", [10000.0, 500.0])
def test_without_decay_it_is_rope(dim, base):
    x, positions = random(5, dim), torch.tensor([0, 1, 2, 700, 4000])
    expected = turned_by_rope(x, positions, base)
    for role in ROLES:
        made = turn(x, positions, role, centre=0, base=base, scale_base=1e15)
        assert_close(made, expected, rtol=0, atol=1e-10)


@pytest.mark.claim(
    "xpos-paper-has-no-512",
    "With the paper's formula zeta^n, a score decays in one token as far as it does in 512 tokens with "
    "torchscale's zeta^(n/512).",
)
@given(SEEDS, PAIRS, st.integers(0, 8))
def test_the_paper_fades_in_one_token_as_far_as_torchscale_in_512(seed, pairs, distance):
    x = vectors(seed, 2 * pairs)
    paper = xpos(x, distance, "query", scale_base=1).unflatten(-1, (-1, 2)).norm(dim=-1)
    torchscale = xpos(x, 512 * distance, "query").unflatten(-1, (-1, 2)).norm(dim=-1)
    expected = x.unflatten(-1, (-1, 2)).norm(dim=-1) * xpos_decay(2 * pairs) ** distance
    assert_close(paper, expected, rtol=1e-10, atol=0)
    assert_close(torchscale, expected, rtol=1e-10, atol=0)


# --- other libraries


@pytest.mark.parametrize("name", XPOS)
@pytest.mark.parametrize(("tokens", "dim"), [(1, 4), (2, 64), (7, 6), (600, 32)])
def test_other_libraries_give_the_same_with_their_centre(name, tokens, dim, same_as):
    q, k = torch.randn(2, 2, 3, tokens, dim)
    rotary, positions, centre = XPOS[name](dim), torch.arange(tokens), tokens // 2
    theirs = rotary.turn(q, k, *rotary.tables(q, positions[None]))
    for expected, x, role in zip(theirs, (q, k), ROLES, strict=True):
        made = turn(x, positions, role, centre)
        # a float32 frequency is good to 5e-7, so that an angle is off by position times that
        accuracy = (2e-6 + 6e-7 * positions[:, None]) * x.abs().max() * 2
        assert ((expected - made).abs() <= accuracy).all()
        same_as(f"{name.replace('-', '_')}.RotaryEmbedding (use_xpos)", made, expected)


# --- what holds for every size


@pytest.mark.claim(
    "xpos-centre-cancels",
    "The xPos score of a query and a key does not depend on their centre, as long as it is "
    "the same for both.",
)
@given(SEEDS, PAIRS, POSITIONS, POSITIONS, st.integers(-1000, 1000), st.integers(-1000, 1000))
def test_the_centre_cancels_in_the_score(seed, pairs, i, j, one, other):
    q, k = vectors(seed, 2, 2 * pairs)
    scores = [xpos(q, i, "query", centre) @ xpos(k, j, "key", centre) for centre in (one, other)]
    growth = max(1.0, decay(0, 2) ** ((i - j) / 512)) * q.norm() * k.norm()
    assert abs(scores[0] - scores[1]) <= 1e-11 * growth


@given(SEEDS, PAIRS, st.integers(0, 500), st.integers(0, 500), st.integers(0, 10_000))
def test_the_score_depends_on_the_offset_alone(seed, pairs, i, j, shift):
    q, k = vectors(seed, 2, 2 * pairs)
    score = xpos(q, i, "query") @ xpos(k, j, "key")
    moved = xpos(q, i + shift, "query", shift) @ xpos(k, j + shift, "key", shift)
    assert moved.item() == pytest.approx(score.item(), abs=1e-8)


@given(SEEDS, PAIRS, POSITIONS)
def test_query_and_key_scales_are_inverse(seed, pairs, position):
    x = vectors(seed, 2 * pairs)
    scaled = [xpos(x, position, role, 100).unflatten(-1, (-1, 2)).norm(dim=-1) for role in ROLES]
    pair = x.unflatten(-1, (-1, 2)).norm(dim=-1)
    assert_close(scaled[0] * scaled[1], pair**2, rtol=1e-10, atol=0)


@pytest.mark.claim(
    "xpos-causal-only",
    "The scale of an xPos score falls with distance for keys before the query and grows with "
    "distance for keys after it.",
)
@pytest.mark.parametrize("dim", [2, 6, 64, 128])
def test_a_bound_of_the_score_falls_for_keys_before_the_query_and_grows_for_those_after(dim):
    ones = torch.ones(dim, dtype=torch.float64)
    bounds = []
    for offset in (-2000, -512, -10, -1, 0, 1, 10, 512, 2000):  # query less key
        q = xpos(ones, 5000 + offset, "query", 5000).unflatten(-1, (-1, 2)).norm(dim=-1)
        k = xpos(ones, 5000, "key", 5000).unflatten(-1, (-1, 2)).norm(dim=-1)
        bounds.append((q * k).sum().item())
    assert all(before > after for before, after in itertools.pairwise(bounds))
    assert bounds[4] == pytest.approx(dim)
    assert bounds[0] > 2 * dim > dim > 2 * bounds[-1]


# --- in attention


def attend(q, k, v, centre, q_positions, k_positions, **options):
    q = turn(q, q_positions, "query", centre)
    return attention(q, turn(k, k_positions, "key", centre), v, causal=True, **options)[0]


@pytest.mark.claim(
    "xpos-cached-centre",
    "With cached xPos keys, decoding gives the same outputs as the whole text at once if the centre stays "
    "the same, and different outputs if it moves.",
)
@pytest.mark.parametrize("dim", [2, 8, 64])
def test_decoding_with_a_cache_of_scaled_keys_needs_a_centre_that_stays(dim):
    q, k, v = random(3, 2, 600, dim)
    positions = torch.arange(600)
    whole = attend(q, k, v, 300, positions, positions)
    cached = turn(k, positions, "key", 0)
    for n, apart in ((1, 1e-5), (99, 1e-3), (599, 1e-2)):
        now, last = positions[n : n + 1], q[:, n : n + 1]
        same = turn(last, now, "query", 0)
        moved = turn(last, now, "query", (n + 1) // 2)
        keys, values, expected = cached[:, : n + 1], v[:, : n + 1], whole[:, n : n + 1]
        assert_close(attention(same, keys, values, causal=True)[0], expected, **EXACT)
        assert (attention(moved, keys, values, causal=True)[0] - expected).abs().max() > apart


# --- dtypes, gradients, compilation


@every_role
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_narrow_dtype_costs_its_own_rounding_and_no_more(role, dtype):
    x = (torch.rand(4, 32) * 2 - 1).to(dtype)
    positions = torch.tensor([999_000, 999_257, 1_000_000, 1_000_300])
    exact = turn(x.double(), positions, role, 999_700)
    made = turn(x, positions, role, 999_700)
    assert made.dtype == dtype
    bound = exact.abs() * torch.finfo(dtype).eps / 2 + 3e-6
    assert ((made - exact).abs() <= bound).all()


def test_float16_holds_4500_positions_from_the_centre_and_float32_36000():
    for dtype, far in ((torch.float16, 4500), (torch.float32, 36_000), (torch.bfloat16, 36_000)):
        x, positions = torch.tensor([[1.0, 0.0]]).to(dtype), torch.tensor([far])
        assert turn(x, positions, "key", 0).isfinite().all()
        assert turn(x, -positions, "query", 0).isfinite().all()
        beyond = torch.tensor([far + far // 50])
        assert not turn(x, beyond, "key", 0).isfinite().all()


@pytest.mark.slow
def test_decays_compile_into_one_graph():
    torch.compiler.reset()
    compiled = torch.compile(xpos_decay, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(12, 0.5), xpos_decay(12, 0.5))


# --- what is refused, and in which words


@refusals
def test_refuses():
    at = torch.arange(2)
    for dim in (0, 1, 7):
        yield f"dim must be even and at least 2, got {dim}", xpos_decay, dim
        yield f"dim must be even and at least 2, got {dim}", xpos_tables, at, dim, "key", 0
    for name, value in itertools.product(("base", "gamma", "scale_base"), (0.0, -1.0, math.inf, math.nan)):
        message = f"{name} must be a positive number, got {value}"
        yield message, partial(xpos_tables, **{name: value}), at, 4, "key", 0
    for role in ("", "k", "Query", None):
        yield f"role must be 'query' or 'key', got {role!r}", xpos_tables, at, 4, role, 0


@every_role
def test_any_positive_base_will_do(role):
    x, positions = random(5, 8), torch.arange(5)
    expected = turned_by_rope(x, positions, 0.5)
    assert_close(turn(x, positions, role, 0, base=0.5, scale_base=1e15), expected, **EXACT)
