"""clipped_bias.py against its formula, and inside attention."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from snippets.clipped_bias import ClippedBias, clipped_bias
from tests.snippets.common import filled, refusals

# --- what it is


@pytest.mark.parametrize("max_distance", [0, 1, 4, 50])
@pytest.mark.parametrize("queries", [[0], [300], [3, 4, 5], [7, 2]])
def test_every_entry_is_its_formula(queries, max_distance):
    keys, table = [*range(9), 60, 600], torch.randn(2 * max_distance + 1, 3)
    made = clipped_bias(torch.tensor(queries), torch.tensor(keys), table)
    assert made.shape == (3, len(queries), len(keys))
    for row, i in enumerate(queries):
        for column, j in enumerate(keys):
            offset = min(max(j - i, -max_distance), max_distance)
            assert torch.equal(made[:, row, column], table[offset + max_distance])


def test_agrees_with_an_embedding_of_clipped_offsets():
    bias, i, j = filled(ClippedBias(5, 20)), torch.arange(40, 90), torch.arange(70)
    offsets = torch.clamp(j - i[:, None], -20, 20)
    expected = torch.nn.functional.embedding(offsets + 20, bias.table).permute(2, 0, 1)
    assert torch.equal(bias(i, j), expected)


# --- what holds for every size


@pytest.mark.claim(
    "clipped-bias-shares-beyond",
    "In the clipped bias, all keys at or beyond the maximum distance on one side of a query share one "
    "entry of the table, and the next smaller distance has another entry.",
)
@given(st.integers(1, 200), st.integers(0, 10**6), st.integers(-500, 500), st.integers(1, 12))
def test_beyond_max_distance_all_keys_of_a_side_are_alike(max_distance, beyond, at, heads):
    bias, i = filled(ClippedBias(heads, max_distance)), torch.tensor([at])
    for side in (-1, 1):
        edge, far = bias(i, at + side * torch.tensor([max_distance, max_distance + beyond])).unbind(-1)
        assert torch.equal(edge, far)
        assert (edge != bias(i, i + side * (max_distance - 1))[..., 0]).all()


def test_every_offset_within_max_distance_has_a_number_of_its_own():
    row = filled(ClippedBias(1, 6))(torch.tensor([0]), torch.arange(-6, 7)).flatten()
    assert len(set(row.tolist())) == 13


# --- gradients, dtypes, compilation, modules


def test_gradients_count_how_often_an_offset_is_met():
    bias, i = filled(ClippedBias(3, max_distance=2)), torch.arange(10)
    (grad,) = torch.autograd.grad(bias(i, i).sum(), bias.table)
    met = torch.tensor([36, 9, 10, 9, 36], dtype=torch.float64)  # 8 + 7 + ... + 1 on either side
    assert torch.equal(grad, met[:, None].expand(5, 3))


def test_a_new_table_says_nothing():
    assert (ClippedBias(4, 2)(torch.arange(9), torch.arange(9)) == 0).all()


# --- what is refused, and in which words


@refusals
def test_refuses():
    for bad in (0, -3):
        yield f"heads must be at least 1, got {bad}", ClippedBias, bad, 4
        yield f"max_distance must be at least 1, got {bad}", ClippedBias, 4, bad
    for shape in ((), (3,), (0, 2), (4, 2), (1, 3, 2)):  # without a middle
        message = f"table must be (2 max_distance + 1, heads), got {shape}"
        yield message, clipped_bias, torch.arange(2), torch.arange(2), torch.zeros(shape)
