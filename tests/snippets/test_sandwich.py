"""sandwich.py against its formula and the sinusoidal encoding, and inside attention."""

import mpmath
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing import assert_close

from snippets import sandwich
from snippets.attention import attention
from snippets.sandwich import sandwich_bias
from snippets.sinusoidal import sinusoidal_encoding
from tests.peers import peer
from tests.snippets.common import places, refused
from tests.snippets.fitness import NoFloat64

HEADS = st.integers(1, 40)
DIMS = st.integers(1, 40).map(lambda pairs: 2 * pairs)
POSITIONS = places(-5000, 5000)


def accuracy(heads, dim=128):
    """What the float32 sum of dim products may be off by in the head that multiplies it by most."""
    return 3e-7 * dim / 2 * heads / 8


# --- what the sources say


@pytest.mark.parametrize(("heads", "dim"), [(1, 128), (3, 64), (12, 128), (8, 2), (16, 6)])
@pytest.mark.parametrize("queries", [[0], [3, 4, 5], [7, 2], [131_072]])
def test_every_entry_is_its_formula(queries, heads, dim):
    keys = [*range(7), 150, 100_000]
    made = sandwich_bias(torch.tensor(queries), torch.tensor(keys), heads, dim)
    assert made.shape == (heads, len(queries), len(keys))
    for row, i in enumerate(queries):
        for column, j in enumerate(keys):
            waves = [mpmath.cos((i - j) / mpmath.power(10000, 2 * p / dim)) for p in range(dim // 2)]
            for h in range(heads):
                expected = float(mpmath.fsum(waves) / (8 * (h + 1) / heads))
                assert made[h, row, column].item() == pytest.approx(expected, abs=accuracy(heads, dim))


@pytest.mark.claim(
    "sandwich-is-the-sinusoidal-dot-product",
    "The Sandwich bias is the dot product of two sinusoidal encodings, divided by 8 h / heads in head h.",
)
@pytest.mark.parametrize("heads", [1, 3, 8, 12, 40])
@pytest.mark.parametrize("dim", [2, 6, 64, 128, 512])
def test_is_the_dot_product_of_sinusoidal_encodings_scaled_per_head(dim, heads):
    i, j = torch.randint(0, 5000, (5,)), torch.randint(0, 5000, (9,))
    vectors = [sinusoidal_encoding(positions, dim, dtype=torch.float64) for positions in (i, j)]
    products = vectors[0] @ vectors[1].mT
    ratios = torch.tensor([8 * h / heads for h in range(1, heads + 1)]).double()
    expected = products / ratios[:, None, None]
    assert_close(sandwich_bias(i, j, heads, dim).double(), expected, rtol=0, atol=accuracy(heads, dim))


def test_agrees_with_attention_gym(same_as):
    module = peer("attn_gym.mods")
    i, j = torch.randint(0, 60, (5,)), torch.randint(0, 60, (9,))
    for heads in (1, 3, 8, 12):
        modify = module.generate_sandwich_bias(heads, 60)
        theirs = modify(0.0, None, torch.arange(heads)[:, None, None], i[:, None], j)
        assert_close(sandwich_bias(i, j, heads), theirs, rtol=1e-4, atol=1e-4)
        same_as("attn_gym.mods.generate_sandwich_bias", sandwich_bias(i, j, heads), theirs)


# --- what holds for every size


@given(POSITIONS, HEADS, DIMS)
def test_a_key_at_the_query_gets_the_most(i, heads, dim):
    bias = sandwich_bias(i, torch.cat((i[:1], torch.randint(-9000, 9000, (50,)))), heads, dim)[:, 0]
    most = torch.tensor([dim / 2 * heads / (8 * h) for h in range(1, heads + 1)])
    assert_close(bias[:, 0], most, rtol=1e-5, atol=0)
    assert (bias <= most[:, None] * (1 + 1e-5)).all()


@given(POSITIONS, POSITIONS, st.integers(-10_000, 10_000), HEADS)
def test_shifting_all_positions_changes_no_more_than_rounding(i, j, shift, heads):
    moved = sandwich_bias(i + shift, j + shift, heads)
    assert_close(moved, sandwich_bias(i, j, heads), rtol=0, atol=2 * accuracy(heads))


@given(POSITIONS, POSITIONS, HEADS)
def test_is_symmetric_and_hides_nothing(i, j, heads):
    bias = sandwich_bias(i, j, heads)
    assert bias.isfinite().all()
    assert_close(bias, sandwich_bias(j, i, heads).mT, rtol=0, atol=2 * accuracy(heads))


@given(POSITIONS, st.integers(2, 40))
def test_later_heads_are_the_first_one_divided_by_their_number(i, heads):
    bias = sandwich_bias(i, i, heads)
    ratios = torch.arange(1, heads + 1)[:, None, None]
    assert_close(bias * ratios, bias[:1].expand_as(bias), rtol=1e-6, atol=1e-6)


@pytest.mark.claim(
    "sandwich-falls-with-the-logarithm-then-rises",
    "With sinusoids of width 32 to 768, the mean of the Sandwich bias over each doubling of the distance "
    "falls from 2 to 16,383 tokens, nearly linearly in the logarithm of the distance up to 4,095, and "
    "then rises. From one distance to the next, the bias also rises at some steps before that.",
)
@pytest.mark.parametrize("heads", [1, 8, 12])
@pytest.mark.parametrize("dim", [32, 64, 128, 256, 768])
def test_falls_with_the_logarithm_of_the_distance_not_steadily_and_then_rises(heads, dim):
    row = sandwich_bias(torch.tensor([0]), torch.arange(2**15), heads, dim)[0, 0].double()
    means = torch.stack([row[2**n : 2 ** (n + 1)].mean() for n in range(1, 15)])
    assert (means[:13].diff() < 0).all()
    assert torch.corrcoef(torch.stack((means[:11], torch.arange(11.0).double())))[0, 1] < -0.99
    assert means[13] > means[12]
    assert (row[:4096].diff() > 0).any()


def test_of_128_channels_it_is_first_below_zero_where_the_docstring_says():
    distances = torch.arange(2**19).double()
    sums = sum((distances * 10000 ** (-2 * p / 128)).cos() for p in range(64))
    means = [sums[2**n : 2 ** (n + 1)].mean() for n in range(19)]
    below = next(n for n, mean in enumerate(means) if mean < 0)
    first = (sums < 0).nonzero()[0].item()
    said = " ".join(sandwich.__doc__.split())
    assert f"first below zero at distance {first:,}, " in said
    ends = f"from {2**below:,} to {2 ** (below + 1) - 1:,}."
    assert f"doubling of the distance is first below zero {ends}" in said
    assert "From 16,384 on, that mean varies between -2 and 1." in said
    assert all(-2 < mean < 1 for mean in means[14:]) and min(means[:14]) == means[13] < -2
    made = sandwich_bias(torch.tensor([0]), torch.arange(first + 1), heads=8)[0, 0]
    assert (made[:-1] > 0).all() and made[-1] < 0


def test_a_head_may_get_more_than_the_sum_itself():
    at = torch.arange(9)
    bias = sandwich_bias(at, at, heads=16, dim=64)
    assert_close(bias[[0, 1, -1], 0, 0], 32 * torch.tensor([2.0, 1.0, 1 / 8]))


# --- in attention


def test_a_constant_for_all_keys_changes_nothing():
    q, k, v = torch.randn(3, 3, 6, 8)
    bias = sandwich_bias(torch.arange(6), torch.arange(6), 3)
    from_zero = bias - bias[:, :1, :1]  # 0 at the query, as others have it
    assert_close(attention(q, k, v, from_zero)[0], attention(q, k, v, bias)[0], rtol=0, atol=1e-5)


# --- dtypes, devices


def test_products_are_float32_whatever_the_dtype():
    i, j = torch.randint(0, 5000, (2, 9))
    assert torch.equal(sandwich_bias(i, j, 3, dtype=torch.float64), sandwich_bias(i, j, 3).double())


def test_of_a_device_without_float64_none_is_asked():
    with FakeTensorMode(), NoFloat64():  # which lets no product be of two devices
        made = sandwich_bias(torch.arange(3), torch.arange(5), 2, device="meta")
    assert made.is_meta and made.shape == (2, 3, 5)


# --- what is refused, and in which words


@pytest.mark.parametrize("dim", [0, -2, 1, 7])
def test_refuses_a_dim_that_is_not_made_of_pairs(dim):
    refused(f"dim must be even and at least 2, got {dim}", sandwich_bias, *[torch.arange(2)] * 2, 2, dim)
