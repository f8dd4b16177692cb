"""What tests of many snippets begin with: numbers in float64, how close they have to be, and refusals."""

import pytest
import torch
from hypothesis import strategies as st

EXACT = {"rtol": 0, "atol": 1e-12}
SEEDS = st.integers(0, 10_000)
COUNTING = torch.uint8, torch.int8, torch.int16, torch.int32  # and int64, of which positions mostly are
NO_INTEGERS = (  # and what each is, in the words of the refusal
    (3, "int"),
    ([0, 1, 2], "list"),
    (torch.zeros(3), "torch.float32"),
    (torch.zeros(3).half(), "torch.float16"),
    (torch.zeros(3).bfloat16(), "torch.bfloat16"),
    (torch.zeros(3) + 0j, "torch.complex64"),
    (torch.ones(3) > 0, "torch.bool"),
    (torch.zeros(3, dtype=torch.uint16), "torch.uint16"),
)


def random(*shape):
    return torch.randn(shape, dtype=torch.float64)


def vectors(seed, *shape):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def heads_of(tokens, *leading, heads=2, dim=4):
    return random(*leading, heads, tokens, dim)


def filled(module, std=1.0):
    """With parameters that are not those it starts with."""
    for parameter in module.double().parameters():
        torch.nn.init.normal_(parameter, std=std)
    return module


def places(least, most):
    """Some positions, for hypothesis to draw."""
    return st.lists(st.integers(least, most), min_size=1, max_size=6).map(torch.tensor)


def refused(message, function, *arguments, **options):
    with pytest.raises(ValueError) as caught:
        function(*arguments, **options)
    assert str(caught.value) == message


def refusals(rows):
    """A test of each (message, function, *arguments) of a generator: so the function refuses these."""

    @pytest.mark.parametrize("row", list(rows()), ids=lambda row: row[0])
    def test(row):
        refused(*row)

    return test
