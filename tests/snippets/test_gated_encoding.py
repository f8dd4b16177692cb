"""gated_encoding.py against its definition, and with the encodings that it gates."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from snippets.gated_encoding import AddGated, gated_encoding
from snippets.sinusoidal import sinusoidal_encoding
from tests.snippets.common import EXACT, SEEDS, random, refusals


def waves(positions):
    return sinusoidal_encoding(positions, 6, dtype=torch.float64)


def layer(encode=waves):
    add = AddGated(6, encode).double()
    torch.nn.init.normal_(add.weight)
    torch.nn.init.normal_(add.bias)
    return add


# --- what it is


@given(SEEDS)
def test_every_entry_is_its_formula(seed):
    torch.manual_seed(seed)
    x, encoding, weight, bias = random(2, 5, 6), random(2, 5, 6), random(6), random()
    made = gated_encoding(x, encoding, weight, bias)
    shared = gated_encoding(x, encoding[0], weight, bias)
    for row in range(2):
        for t in range(5):
            total = bias.item() + sum(weight[d].item() * x[row, t, d].item() for d in range(6))
            gate = 1 / (1 + math.exp(-total))
            assert_close(made[row, t], gate * encoding[row, t], **EXACT)
            assert_close(shared[row, t], gate * encoding[0, t], **EXACT)


def test_the_module_adds_what_the_function_makes():
    x, add, at = random(2, 5, 6), layer(), torch.randint(0, 900, (2, 5))
    assert torch.equal(add(x, at), x + gated_encoding(x, waves(at), add.weight, add.bias))


def test_at_first_every_token_takes_one_half():
    x, at = random(2, 5, 6), torch.arange(5)
    assert_close(AddGated(6, waves).double()(x, at), x + waves(at) / 2, **EXACT)


# --- what holds for every text


@given(SEEDS, st.integers(0, 10_000))
def test_the_gate_lies_between_zero_and_one_and_knows_no_position(seed, position):
    torch.manual_seed(seed)
    x, weight, bias = random(6).expand(2, 6), random(6), random()
    gates = gated_encoding(x, torch.ones_like(x), weight, bias)
    assert gates.min() > 0 and gates.max() < 1
    assert (gates == gates[0, 0]).all()
    at = torch.tensor([0, position])
    assert_close(gated_encoding(x, waves(at), weight, bias), gates * waves(at), **EXACT)


@given(SEEDS, st.integers(1, 9))
def test_later_tokens_and_the_length_change_nothing(seed, length):
    torch.manual_seed(seed)
    x, add = random(9, 6), layer()
    whole = add(x, torch.arange(9))
    assert_close(add(x[:length], torch.arange(length)), whole[:length], **EXACT)


def test_positions_divided_by_the_length_would_change_with_every_token():
    five, six = torch.arange(5) / 5, torch.arange(6) / 6
    assert (five[1:] != six[1:5]).all()


@pytest.mark.parametrize("factor", [torch.log, torch.sigmoid, torch.sqrt])
def test_torch_takes_no_plain_number_for_a_length_factor(factor):
    with pytest.raises(TypeError):
        factor(5)


def test_a_closed_gate_leaves_a_token_without_a_place():
    x, add = random(6).expand(4, 6).clone(), layer()
    add.bias.data.fill_(-1000)
    assert torch.equal(add(x, torch.arange(4)), x)
    add.bias.data.fill_(1000)
    assert_close(add(x, torch.arange(4)), x + waves(torch.arange(4)), **EXACT)


# --- gradients


def test_every_parameter_gets_a_gradient_from_the_start():
    add = AddGated(6, torch.nn.Embedding(5, 6))
    (add(torch.randn(2, 5, 6), torch.arange(5)) * torch.randn(2, 5, 6)).sum().backward()
    for name, parameter in add.named_parameters():
        assert (parameter.grad != 0).all(), name


# --- what is refused, and in which words


@refusals
def test_refuses():
    for dim in (0, -2):
        yield f"dim must be at least 1, got {dim}", AddGated, dim, waves
    for weight, bias in (((6, 1), ()), ((), ()), ((6,), (1,)), ((6,), (6,))):
        message = f"weight must be (dim,) and bias (), got {weight} and {bias}"
        given = [torch.zeros(each) for each in ((5, 6), (5, 6), weight, bias)]
        yield message, gated_encoding, *given


def test_takes_one_channel():
    assert AddGated(1, waves).weight.shape == (1,)
