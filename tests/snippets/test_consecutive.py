"""Functions for consecutive positions: the same bits, the same gradients, and no atomic additions."""

import importlib
from functools import partial

import pytest
import torch
from torch.testing import assert_close

from tests.snippets.consecutive import PAIRS, compiled_additions, eager_additions, run

every_pair = pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
same_bits = pytest.mark.parametrize(
    "pair", [pytest.param(pair, id=name) for name, pair in PAIRS.items() if pair.bits]
)
SIZES = (0, 0), (0, 2), (1, 1), (1, 9), (2, 3), (3, 30), (29, 29)


def at(queries, keys, device=None):
    positions = torch.arange(keys, device=device)
    return positions[keys - queries :], positions


def both(pair, queries, keys, device=None):
    """The function for consecutive positions, and the one for any, of the same tensors."""
    return partial(pair.fast, queries, keys), partial(pair.any, *at(queries, keys, device))


@pytest.fixture(params=["as on a CPU", "as on a GPU"])
def path(request, monkeypatch):
    """Each of the two paths, where a file has two."""
    if request.param == "as on a GPU":
        for name in {pair.of.__module__ for pair in PAIRS.values()}:
            module = importlib.import_module(name)
            if hasattr(module, "_looks_up"):
                monkeypatch.setattr(module, "_looks_up", lambda x: False)


@every_pair
@pytest.mark.parametrize(("queries", "keys"), SIZES)
def test_gives_what_the_function_for_any_positions_gives_and_its_gradients(path, pair, queries, keys):
    inputs = [each.double() for each in pair.make(queries, keys)]
    ours, theirs = (run(call, inputs) for call in both(pair, queries, keys))
    assert_close(ours, theirs, rtol=0, atol=1e-10)


@same_bits
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_has_the_bits_of_the_function_for_any_positions(path, pair, dtype):
    for queries, keys in SIZES:
        inputs = [each.to(dtype) for each in pair.make(queries, keys)]
        ours, theirs = (call(*inputs) for call in both(pair, queries, keys))
        assert torch.equal(ours, theirs) and ours.dtype == theirs.dtype


@every_pair
def test_no_gradient_adds_atomically_for_each_query_and_key(pair):
    queries, keys = pair.large
    inputs = pair.make(queries, keys)
    ours, theirs = both(pair, queries, keys, "meta")
    assert eager_additions(ours, inputs, queries * keys) == []
    assert eager_additions(theirs, inputs, queries * keys), "which this test would find"


@pytest.mark.slow
@every_pair
@pytest.mark.parametrize("dynamic", [False, True])
def test_nor_does_a_compiled_one(pair, dynamic):
    queries, keys = pair.large
    inputs = [each.double() for each in pair.make(queries, keys)]
    ours, theirs = both(pair, queries, keys)
    found, made = compiled_additions(ours, inputs, queries * keys, dynamic)
    assert found == []
    assert_close(made, run(theirs, inputs))
    assert compiled_additions(theirs, inputs, queries * keys, dynamic)[0], "which this test would find"
