"""fire.py against its formula and against what it can imitate, and inside attention."""

import copy
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from snippets.attention import attention
from snippets.fire import FireBias
from snippets.kerple import kerple_log_bias
from tests.snippets.common import EXACT, places, refusals

INF = math.inf
POSITIONS = places(0, 400)


def layer(heads=3, **options):
    torch.manual_seed(0)
    return FireBias(heads, **options).double()


def line(heads, **options):
    """One whose network gives each head -share: what is then seen is the input alone."""
    module = layer(heads, hidden=1, **options)
    with torch.no_grad():
        for parameter, value in zip(module.mlp.parameters(), (1, 0, -1, 0), strict=True):
            parameter.fill_(value)
    return module


def shares(module, i, j):
    return -module(i, j)[0]


# --- what the sources say


@pytest.mark.parametrize("c", [0.1, 2.0])
@pytest.mark.parametrize("multiplier", [1.0, 0.25, -0.25])
@pytest.mark.parametrize("queries", [[0], [300], [3, 4, 5], [7, 2, 20]])
def test_every_entry_is_its_formula(queries, multiplier, c):
    module, keys = layer(3, hidden=4, c=c, init_L=24.0), [*range(9), 60, 290]
    with torch.no_grad():
        module.L_multiplier.fill_(multiplier)
    made = module(torch.tensor(queries), torch.tensor(keys))
    assert made.shape == (3, len(queries), len(keys))
    w1, b1, w2, b2 = (parameter.tolist() for parameter in module.mlp.parameters())
    c, reach = module.c.item(), abs(multiplier * 24.0)
    for h in range(3):
        for row, i in enumerate(queries):
            for column, j in enumerate(keys):
                if j > i:
                    assert made[h, row, column] == -INF
                    continue
                share = math.log(1 + c * (i - j)) / (math.log(1 + c * max(reach, i)) + 1e-6)
                inner = [max(w1[n][0] * share + b1[n], 0) for n in range(4)]
                expected = b2[h] + math.fsum(w2[h][n] * inner[n] for n in range(4))
                assert made[h, row, column].item() == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_the_sign_of_c_and_of_the_multiplier_means_nothing():
    module, i = layer(), torch.arange(0, 1000, 99)
    expected = module(i, i)
    with torch.no_grad():
        module.c.neg_()
        module.L_multiplier.neg_()
    assert torch.equal(module(i, i), expected)


def test_new_parameters_are_those_of_the_released_code():
    module = FireBias(heads=5)
    assert module.c.item() == pytest.approx(0.1)
    assert module.L_multiplier.item() * module.init_L == 512


def test_is_its_own_network_on_the_shares():
    module, i = layer(4), torch.arange(600, 640)
    share = shares(line(1), i, i[:5]).tril()
    expected = module.mlp(share[..., None]).movedim(-1, 0)
    assert_close(module(i, i[:5])[:, 5:], expected[:, 5:], **EXACT)


# --- what the input of the network is


@pytest.mark.claim(
    "fire-input-stays-between-zero-and-one",
    "The input of FIRE's network is at least 0 and less than 1 for every query and every key before it, "
    "however long the text.",
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@given(POSITIONS, POSITIONS, st.floats(0.001, 100), st.floats(1, 600))
def test_the_share_lies_between_0_and_1_at_any_length(dtype, i, j, c, init_L):
    module = line(1, c=c, init_L=init_L).to(dtype)
    for factor in (1, 1000, 1_000_000):
        share = shares(module, i * factor, j * factor)
        share = share[share.isfinite()]
        assert (share >= 0).all() and (share < 1).all()
    assert (shares(module, i, i).diagonal() == 0).all()


def test_the_first_key_of_a_far_query_is_at_1():
    share = shares(line(1), torch.tensor([512, 5000, 1_000_000]), torch.tensor([0]))
    assert_close(share, torch.ones_like(share), rtol=0, atol=1e-6)
    assert shares(line(1), torch.tensor([511]), torch.tensor([0])).item() < 0.9999


@given(st.integers(1, 400))
def test_the_share_grows_with_the_distance(i):
    share = shares(line(1, init_L=50.0), torch.tensor([i]), torch.arange(i + 1)).flatten()
    assert (share.diff() < 0).all()


@pytest.mark.claim(
    "fire-is-relative-up-to-L",
    "For queries up to position L, the FIRE bias depends only on the offset.",
)
@given(st.data(), st.sampled_from([1, 24, 512, 3000]), st.floats(0.01, 5))
def test_shifting_all_positions_changes_nothing_up_to_L(data, L, c):
    i = data.draw(st.integers(0, L))
    shift = data.draw(st.integers(0, L - i) | st.just(L - i))
    module, j = layer(init_L=float(L), c=c), torch.arange(i + 1)
    i = torch.tensor([i])
    assert_close(module(i + shift, j + shift), module(i, j), **EXACT)


@pytest.mark.claim(
    "fire-depends-on-the-query-beyond-L",
    "Beyond position L, the same nonzero distance becomes a smaller input to FIRE's network the later the "
    "position of the query, so its bias is not a function of the offset.",
)
@pytest.mark.parametrize("L", [1, 5, 512, 10_000])
@pytest.mark.parametrize("c", [0.01, 0.1, 1.0, 5.0])
def test_beyond_L_the_same_distance_is_a_smaller_share(c, L):
    module = line(1, c=c, init_L=float(L))
    for distance in (1, 10, 100, 5000):
        first = max(L, distance)
        i = first + torch.tensor([0, 1, 2, 10, 1000, 100_000])
        near = shares(module, i, i - distance).diagonal()
        assert (near.diff() < 0).all()
        assert near[0] - near[-1] > 1e-4


# --- what it can imitate


@pytest.mark.claim(
    "fire-contains-kerple-up-to-L",
    "For queries up to position L, a FIRE bias with a linear network can equal KERPLE's logarithmic bias "
    "exactly, if the heads share one r2.",
)
@pytest.mark.parametrize("L", [1, 100, 700])
@pytest.mark.parametrize("shared", [0.01, 0.7, 5.0])
def test_with_a_linear_network_it_is_kerple_up_to_L(shared, L):
    i, r1 = torch.arange(L + 1), torch.tensor([0.01, 0.3, 2.0, 5.0], dtype=torch.float64)
    r2 = torch.full_like(r1, shared)
    module = line(4, c=shared, init_L=float(L))
    with torch.no_grad():
        module.c.copy_(r2[0])
        module.mlp[2].weight.copy_(-r1[:, None] * (math.log1p(shared * L) + 1e-6))
    made, later = module(i, i), i > i[:, None]
    expected = kerple_log_bias(i, i, r1, r2)
    assert_close(made[:, ~later], expected[:, ~later], rtol=1e-12, atol=1e-12)


def test_with_a_small_c_as_well_it_is_alibi_up_to_L():
    i, slopes = torch.arange(100), torch.tensor([0.5, 0.125]).double()
    module = line(2, c=1e-4, init_L=100.0)
    with torch.no_grad():
        module.mlp[2].weight.copy_(-slopes[:, None] * 100 * (1 + 1e-4))
    made, later = module(i, i), i > i[:, None]
    expected = -slopes[:, None, None] * (i[:, None] - i).abs()
    assert_close(made[:, ~later], expected[:, ~later], rtol=0.01, atol=0)


# --- what holds for every size


@given(POSITIONS, POSITIONS)
def test_later_keys_are_hidden_and_no_others(i, j):
    later = (j > i[:, None]).expand(3, -1, -1)
    assert torch.equal(layer()(i, j).isneginf(), later)


# --- gradients, dtypes, compilation, modules


def test_every_parameter_learns_and_hidden_keys_teach_nothing():
    module, i = layer(init_L=5.0), torch.arange(9)
    values = torch.randn(9, 4, dtype=torch.float64)
    q, k = torch.randn(2, 3, 9, 4, dtype=torch.float64)
    attention(q, k, values, module(i, i))[0].square().sum().backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_parameters_are_widened_before_anything_is_counted(dtype):
    narrow = layer(init_L=500.0)
    narrow.L_multiplier.data.fill_(1 + 2**-7)  # times 500 it needs more digits than bfloat16 has
    narrow = narrow.to(dtype)
    wide = copy.deepcopy(narrow).float()
    i, j = torch.tensor([4, 257, 5000]), torch.arange(0, 600, 7)
    made = narrow(i, j)
    assert made.dtype == dtype
    assert torch.equal(made, wide(i, j).to(dtype))


# --- what is refused, and in which words


@refusals
def test_refuses():
    for heads, hidden in ((0, 32), (-3, 32), (2, 0), (2, -1)):
        yield f"heads and hidden must be at least 1, got {heads} and {hidden}", FireBias, heads, hidden
    for bad in (0.0, -1.0, INF, math.nan):
        yield f"c and init_L must be positive, got {bad} and 512.0", FireBias, 2, 32, bad
        yield f"c and init_L must be positive, got 0.1 and {bad}", FireBias, 2, 32, 0.1, bad
