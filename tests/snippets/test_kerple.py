"""kerple.py against its formulas, as a kernel, and inside attention."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from snippets.alibi import alibi_bias_symmetric, alibi_slopes
from snippets.attention import attention
from snippets.kerple import KerpleLog, KerplePower, kerple_log_bias, kerple_power_bias
from tests.snippets.common import places, refusals

BOTH = [kerple_log_bias, kerple_power_bias]
MODULES = [KerpleLog, KerplePower]
POSITIONS = places(-400, 400)
ABOVE_0 = st.floats(0.01, 5)
TO_2 = st.floats(0.01, 2)


def double(*values):
    return torch.tensor(values, dtype=torch.float64)


def centred(kernel):
    """The kernel between weights that sum to zero: what conditional definiteness is about."""
    tokens = kernel.shape[-1]
    centre = torch.eye(tokens, dtype=torch.float64) - 1 / tokens
    return centre @ kernel @ centre


# --- what the sources say


@pytest.mark.parametrize("queries", [[0], [300], [3, 4, 5], [7, 2]])
def test_every_entry_is_its_formula(queries):
    keys, r1, r2 = [*range(7), 150, 600], double(0.01, 1.5, 3), double(0.7, 0.01, 2)
    i, j = torch.tensor(queries), torch.tensor(keys)
    log, power = kerple_log_bias(i, j, r1, r2), kerple_power_bias(i, j, r1, r2)
    assert log.shape == power.shape == (3, len(queries), len(keys))
    for h, (a, b) in enumerate(zip(r1.tolist(), r2.tolist(), strict=True)):
        for row, query in enumerate(queries):
            for column, key in enumerate(keys):
                steps = abs(query - key)
                assert log[h, row, column].item() == pytest.approx(-a * math.log(1 + b * steps), rel=1e-14)
                assert power[h, row, column].item() == pytest.approx(-a * steps**b, rel=1e-14)


def test_new_parameters_are_spread_as_in_the_authors_code():
    for module, widths in ((KerpleLog(5000), (2, 1)), (KerplePower(5000), (1, 2))):
        for parameter, width in zip((module.r1, module.r2), widths, strict=True):
            assert 0 <= parameter.min() < 0.01 * width
            assert 0.99 * width < parameter.max() <= width
            assert parameter.mean().item() == pytest.approx(width / 2, rel=0.05)


@pytest.mark.claim(
    "kerple-power-one-is-alibi",
    "KERPLE's power form with exponent 1 and ALiBi's slopes is the symmetric ALiBi bias, bit for bit.",
)
@pytest.mark.parametrize("farthest", [10, 3000, 10_000_000])
def test_an_exponent_of_1_is_alibi(farthest):
    i, j = torch.randint(0, farthest, (50,)), torch.randint(0, farthest, (90,))
    for heads in (1, 2, 12, 40):
        made = kerple_power_bias(i, j, alibi_slopes(heads), torch.ones(heads))
        assert torch.equal(made, alibi_bias_symmetric(i, j, alibi_slopes(heads)))


def test_small_parameters_keep_their_precision():
    r1, r2 = torch.tensor([1.0]), torch.tensor([1e-6])
    made = kerple_log_bias(torch.tensor([1]), torch.tensor([0]), r1, r2)
    assert made.item() == pytest.approx(-math.log1p(1e-6), rel=1e-6)  # log(1 + r2) is 5 % off


# --- the kernels


@pytest.mark.claim(
    "kerple-is-conditionally-positive-definite",
    "KERPLE's logarithmic form, and its power form for exponents up to 2, are conditionally positive "
    "definite kernels of the positions, but not positive definite ones.",
)
@pytest.mark.parametrize(("function", "exponents"), [(kerple_log_bias, ABOVE_0), (kerple_power_bias, TO_2)])
@given(data=st.data(), r1=ABOVE_0)
def test_is_a_conditionally_positive_definite_kernel(function, exponents, data, r1):
    positions = data.draw(st.lists(st.integers(-400, 400), min_size=2, max_size=20).map(torch.tensor))
    kernel = function(positions, positions, double(r1), double(data.draw(exponents)))[0]
    assert torch.linalg.eigvalsh(centred(kernel)).min() > -1e-12 * kernel.abs().max() - 1e-12
    if kernel.any():
        assert torch.linalg.eigvalsh(kernel).min() < 0  # without the condition it is not definite


@pytest.mark.claim(
    "kerple-exponent-above-two-is-no-such-kernel",
    "With an exponent above 2, KERPLE's power form is not a conditionally positive definite kernel: on "
    "just three consecutive positions, the weights (1, -2, 1) give r1 (8 - 2 * 2^r2), which is negative.",
)
@given(ABOVE_0, st.floats(2.0001, 12))
def test_an_exponent_above_2_would_be_no_such_kernel(r1, exponent):
    positions, flat = torch.arange(3), double(1, -2, 1)
    kernel = kerple_power_bias(positions, positions, double(r1), double(exponent))[0]
    form = (flat @ kernel @ flat).item()
    assert form == pytest.approx(r1 * (8 - 2 * 2**exponent))
    assert form < 0
    assert torch.linalg.eigvalsh(centred(kernel)).min() < 0


@pytest.mark.claim(
    "kerple-constant-changes-nothing",
    "For the positions of one text there is a threshold: adding a larger constant makes KERPLE's "
    "logarithmic form, and its power form for exponents below 2, positive definite, and adding a smaller "
    "one does not. The constant leaves the output of attention unchanged, up to rounding.",
)
@pytest.mark.parametrize("function", BOTH)
@pytest.mark.parametrize("tokens", [2, 3, 30])
@pytest.mark.parametrize("r1", [0.01, 1.5, 100.0])
@pytest.mark.parametrize("r2", [0.01, 0.8, 1.9])
def test_a_constant_makes_it_positive_definite_and_leaves_attention_alone(function, tokens, r1, r2):
    positions = torch.arange(tokens)
    bias = function(positions, positions, double(r1), double(r2))
    least = -1 / torch.linalg.solve(bias[0], torch.ones_like(bias[0, 0])).sum()
    q, k, v = torch.randn(3, 1, tokens, 8, dtype=torch.float64)
    assert torch.linalg.eigvalsh(bias + 0.99 * least).min() < 0
    for constant in (1.01 * least, 100 * least):
        assert torch.linalg.eigvalsh(bias + constant).min() > 0
        made = attention(q, k, v, bias + constant)[0]
        assert_close(made, attention(q, k, v, bias)[0], rtol=0, atol=1e-15 * constant.item() + 1e-12)


@pytest.mark.claim(
    "kerple-no-constant-at-exponent-two",
    "At exponent 2, adding a constant never makes KERPLE's power form positive definite, not even on "
    "three consecutive positions, although it is conditionally positive definite there.",
)
@pytest.mark.parametrize("r1", [0.25, 1, 64])
def test_at_an_exponent_of_2_no_constant_helps(r1):
    positions = torch.arange(3)
    kernel = kerple_power_bias(positions, positions, double(r1), double(2))[0]
    flat, ones = double(1, -2, 1), double(1, 1, 1)
    assert flat @ kernel @ flat == flat @ ones == 0  # no constant reaches this direction
    assert flat @ kernel @ ones == -6 * r1  # which is tied to one that it does reach
    for constant in (0.0, 1e3 * r1, 1e6 * r1):
        assert torch.linalg.eigvalsh(kernel + constant).min() < 0


# --- what holds for every size


@pytest.mark.parametrize("function", BOTH)
@given(POSITIONS, POSITIONS, ABOVE_0, TO_2)
def test_is_symmetric_and_nowhere_above_0(function, i, j, r1, r2):
    bias = function(i, j, double(r1), double(r2))
    # Not bit for bit: torch rounds a power differently where it takes several at a time.
    assert_close(bias, function(j, i, double(r1), double(r2)).mT, rtol=1e-14, atol=0)
    assert torch.equal(bias == 0, (i[:, None] == j).expand_as(bias))
    assert (bias <= 0).all()


@pytest.mark.parametrize("function", BOTH)
@given(ABOVE_0, TO_2)
def test_falls_with_the_distance(function, r1, r2):
    row = function(torch.tensor([0]), torch.arange(500), double(r1), double(r2)).flatten()
    assert (row.diff() < 0).all()


@given(ABOVE_0, ABOVE_0)
def test_the_log_falls_ever_more_slowly(r1, r2):
    row = kerple_log_bias(torch.tensor([0]), torch.arange(500), double(r1), double(r2)).flatten()
    assert (row.diff().diff() > 0).all()


@pytest.mark.claim(
    "kerple-log-is-a-power-law-of-the-weights",
    "KERPLE's logarithmic form multiplies the weight of a key at distance d by (1 + r2 d)^(-r1) before "
    "the weights are normalised: a power law, where ALiBi has an exponential.",
)
@given(st.integers(0, 10_000), ABOVE_0, ABOVE_0)
def test_the_log_makes_a_power_law(distance, r1, r2):
    bias = kerple_log_bias(torch.tensor([distance]), torch.tensor([0]), double(r1), double(r2))
    assert bias.exp().item() == pytest.approx((1 + r2 * distance) ** -r1, rel=1e-10)


@pytest.mark.claim(
    "kerple-log-has-a-window-only-above-one",
    "For equal contents and r2 = 1 in a text of a million tokens, the nearest 100 keys get less than 0.4 "
    "of the attention under KERPLE's logarithmic form with r1 = 1, and more than 0.99 with r1 = 2.",
)
def test_how_far_the_log_reaches_depends_on_r1():
    bias = kerple_log_bias(torch.tensor([0]), torch.arange(1_000_000), double(1, 2), double(1, 1))
    near = bias.softmax(-1)[:, 0, :100].sum(-1)
    assert near[0] < 0.4
    assert near[1] > 0.99


# --- the limits of the parameters


@pytest.mark.claim(
    "kerple-parameters-are-put-back-into-their-range",
    "The KERPLE modules use 0.01 for any parameter below 0.01, and 2 for any exponent above 2.",
)
@pytest.mark.parametrize(
    ("kind", "function", "most"), [(KerpleLog, kerple_log_bias, 7.0), (KerplePower, kerple_power_bias, 2.0)]
)
def test_parameters_that_left_their_range_are_used_as_its_end(kind, function, most):
    module, i, r1, r2 = kind(4), torch.arange(5), [-3.0, 0.0, 0.5, 7.0], [0.5, -1.0, 0.001, 7.0]
    with torch.no_grad():
        module.r1.copy_(torch.tensor(r1))
        module.r2.copy_(torch.tensor(r2))
    used = torch.tensor([0.01, 0.01, 0.5, 7.0]), torch.tensor([0.5, 0.01, 0.01, most])
    assert torch.equal(module(i, i), function(i, i, *used))
    for parameter, value in ((module.r1, r1), (module.r2, r2)):  # and stay what they are
        assert torch.equal(parameter, torch.tensor(value))


@pytest.mark.parametrize(("kind", "function"), [*zip(MODULES, BOTH, strict=True)])
def test_a_parameter_beyond_its_limit_learns_what_the_limit_would(kind, function):
    module, i, limits = kind(2), torch.arange(5), torch.full((2, 2), 0.01, requires_grad=True)
    with torch.no_grad():
        module.r1.fill_(-1.0)
        module.r2.fill_(-1.0)
    module(i, i).sum().backward()
    (expected,) = torch.autograd.grad(function(i, i, *limits).sum(), limits)
    assert (expected != 0).all()
    assert torch.equal(torch.stack((module.r1.grad, module.r2.grad)), expected)


@pytest.mark.parametrize("kind", MODULES)
def test_layers_may_share_a_module(kind):
    module, i = kind(2), torch.arange(5)
    with torch.no_grad():
        module.r1.fill_(-1.0)
    first, second = module(i, i), module(i, i)
    (first + second).sum().backward()
    shared = module.r1.grad.clone()
    module.zero_grad()
    module(i, i).sum().backward()
    assert_close(shared, 2 * module.r1.grad)


# --- memory, modes


@pytest.mark.parametrize("function", BOTH)
@pytest.mark.parametrize("alone", [0, 1])
def test_one_of_the_parameters_may_be_a_batch_for_vmap(function, alone):
    i, r = torch.arange(9), list(torch.rand(2, 3, 4))
    r[1 - alone] = r[1 - alone][0]
    in_dims = tuple(0 if n == alone else None for n in range(2))
    made = torch.vmap(lambda *r: function(i, i, *r), in_dims)(*r)
    for n in range(3):
        one = [each[n] if place == alone else each for place, each in enumerate(r)]
        assert torch.equal(made[n], function(i, i, *one))


# --- gradients, dtypes, compilation, modules


@pytest.mark.parametrize("function", BOTH)
def test_wide_parameters_stay_wide(function):
    i, r = torch.arange(9), torch.rand(2, dtype=torch.float64)
    assert function(i, i, r, r).dtype == torch.float64
    assert function(i, i, r.float(), r.float()).dtype == torch.float32


# --- what is refused, and in which words


@refusals
def test_refuses_parameters_that_are_not_one_for_each_head():
    two, at = torch.zeros(2), torch.arange(2)
    pairs = [(torch.zeros(shape), torch.zeros(shape)) for shape in ((), (0,), (2, 1))]
    pairs += [(two, torch.zeros(3)), (two, torch.zeros(1)), (two, two.double()), (two.long(), two.long())]
    for r1, r2 in pairs:
        got = f"{r1.dtype} {tuple(r1.shape)} and {r2.dtype} {tuple(r2.shape)}"
        for function in BOTH:
            yield f"r1 and r2 must be floating and (heads,), got {got}", function, at, at, r1, r2
