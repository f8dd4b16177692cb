"""Functions for consecutive positions: the same bits, the same gradients, and no atomic additions."""

from functools import partial

import pytest
import torch
from torch.testing import assert_close

from experiments.measure import peak_bytes
from snippets.shaw import shaw_scores_consecutive
from tests.snippets.consecutive import HEADS, PAIRS, compiled_additions, eager_additions, run
from tests.snippets.fitness import CHECKS, all_cases, called, words

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


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    for name in {pair.of.__module__ for pair in PAIRS.values()}:
        monkeypatch.setattr(f"{name}._on_cpu", lambda x: False)


@pytest.fixture(params=["as on a CPU", "as on a GPU"])
def path(request):
    """Each of the two paths."""
    if request.param == "as on a GPU":
        request.getfixturevalue("as_on_a_gpu")


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
    assert bool(eager_additions(ours, inputs, queries * keys)) != pair.eager
    assert eager_additions(theirs, inputs, queries * keys), "which this test would find"


@pytest.mark.slow
@every_pair
@pytest.mark.parametrize("dynamic", [False, True])
def test_nor_does_a_compiled_one(as_on_a_gpu, pair, dynamic):
    queries, keys = pair.large
    inputs = [each.double() for each in pair.make(queries, keys)]
    ours, theirs = both(pair, queries, keys)
    found, made, held = compiled_additions(ours, inputs, queries * keys, dynamic)
    assert found == []
    assert_close(made, run(theirs, inputs))
    assert held <= 3 * HEADS * queries * keys, "nothing larger than the scores of a batch"
    assert compiled_additions(theirs, inputs, queries * keys, dynamic)[0], "which this test would find"


FUNCTIONS = {pair.of for pair in PAIRS.values()}
SLOW = {"compile": pytest.mark.slow, "export": pytest.mark.slow}
ON_A_CPU = [
    pytest.param(case, word, id=f"{case.of.__name__}-{word}", marks=SLOW.get(word, ()))
    for case in all_cases()
    if case.of in FUNCTIONS
    for word in words(case.of)
    if word not in ("mps", "no sync")  # whose device is none
]


@pytest.mark.parametrize(("case", "word"), ON_A_CPU)
def test_the_path_of_a_gpu_is_fit_for_what_it_says(as_on_a_gpu, case, word):
    CHECKS[word](called(case), *case[2:])


def test_the_memory_of_shaw_scores_is_what_it_states(as_on_a_gpu):
    q, k, table = torch.randn(4, 256, 16), torch.randn(4, 256, 16), torch.randn(9, 16)
    peak = peak_bytes(partial(shaw_scores_consecutive, q, k, table))
    assert 3.9 < peak / (4 * 4 * 256 * 256) < 4.2
