"""local_global.py against its definition, and inside attention."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from snippets.local_global import LocalGlobal, local_global_index, local_global_scores
from snippets.shaw import shaw_scores
from tests.snippets.common import EXACT, places, random, refusals

POSITIONS = places(-40, 40)


def layer(dim=4, window=2, width=3, far_buckets=3):
    return LocalGlobal(dim, window, width, far_buckets).double()


# --- what it is


def by_definition(q, k, local_table, global_table, at_query, at_key, width):
    window, rings = len(local_table) // 2, global_table.shape[1]
    scores = torch.zeros(len(q), len(k), dtype=q.dtype)
    for row, i in enumerate(at_query.tolist()):
        for column, j in enumerate(at_key.tolist()):
            if abs(j - i) <= window:
                vector = local_table[j - i + window]
            else:
                ring = min((abs(j - i) - window - 1) // width, rings - 1)
                vector = global_table[1 if j > i else 0, ring]
            scores[row, column] = q[row] @ (k[column] + vector) / math.sqrt(len(vector))
    return scores


@given(POSITIONS, POSITIONS, st.integers(0, 4), st.integers(1, 5), st.integers(1, 4))
def test_every_score_is_its_formula(i, j, window, width, rings):
    q, k, bias = random(len(i), 4), random(len(j), 4), layer(4, window, width, rings)
    tables = bias.local_table, bias.global_table
    assert_close(bias(q, k, i, j), by_definition(q, k, *tables, i, j, width), **EXACT)


def test_rows_in_order_of_the_offset():
    rows = local_global_index(torch.tensor([0]), torch.arange(-8, 9), window=1, width=2, far_buckets=3)
    before, near, after = [5, 5, 5, 4, 4, 3, 3], [0, 1, 2], [6, 6, 7, 7, 8, 8, 8]
    assert rows.tolist() == [before + near + after]
    assert rows.dtype == torch.int64


def test_with_one_ring_it_is_shaw_with_another_order_of_rows():
    q, k, at = random(2, 3, 9, 4), random(2, 3, 9, 4), torch.arange(9)
    both = layer(4, 2, 7, far_buckets=1)
    table = torch.cat((both.global_table[0], both.local_table, both.global_table[1]))
    assert_close(both(q, k, at, at), shaw_scores(q, k, table, at, at), **EXACT)


# --- what holds for every size


@given(st.integers(0, 5), st.integers(1, 5), st.integers(1, 4))
def test_near_offsets_have_rows_of_their_own_and_each_far_bucket_holds_width_distances(window, width, rings):
    far = window + width * rings + 3
    rows = local_global_index(torch.tensor([0]), torch.arange(-far, far + 1), window, width, rings)[0]
    count = torch.bincount(rows, minlength=2 * window + 1 + 2 * rings).tolist()
    ring = [width] * (rings - 1) + [width + 3]
    assert count == [1] * (2 * window + 1) + ring + ring


@given(st.integers(1, 10**9))
def test_the_last_ring_holds_all_the_rest(beyond):
    rows = local_global_index(torch.tensor([0]), torch.tensor([-9 - beyond, 9 + beyond]), 2, 3, 3)
    assert rows.tolist() == [[7, 10]]


def test_every_row_that_an_offset_uses_gets_a_gradient():
    both, at = layer(4, 2, 3, 3), torch.arange(12)
    scores = both(random(12, 4), random(12, 4), at, at)
    for name, grad in zip(
        ("local", "global"), torch.autograd.grad(scores.sum(), both.parameters()), strict=True
    ):
        assert (grad != 0).all(), name


def test_offsets_that_are_shifted_twice_put_every_key_from_the_query_on_into_one_row():
    window, offsets = 3, torch.arange(-8, 9)
    twice = (offsets + window).clamp(-window, window) + window
    assert twice[offsets >= 0].unique().tolist() == [2 * window]
    once = local_global_index(torch.tensor([0]), offsets, window, 9, 1)[0]
    assert len(once[(offsets >= 0) & (offsets <= window)].unique()) == window + 1


def test_offsets_that_are_clipped_first_never_reach_the_global_table():
    both, offsets, zero = layer(1, 2, 3, 3), torch.arange(-12, 13), torch.tensor([0])
    q, k = random(1, 1), random(25, 1)
    clipped = both(q, k, zero, offsets.clamp(-2, 2))
    (grad,) = torch.autograd.grad(clipped.sum(), both.global_table)
    assert (grad == 0).all()
    (grad,) = torch.autograd.grad(both(q, k, zero, offsets).sum(), both.global_table)
    assert (grad != 0).all()


# --- gradients, dtypes, compilation, modules


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_scores_have_the_dtype_of_q_and_positions_stay_exact(dtype):
    both, at = layer(1, 1, 300, 3).to(dtype), torch.tensor([0, 256, 257, 301, 302, 601, 602])
    made = both(torch.ones(7, 1, dtype=dtype), torch.zeros(7, 1, dtype=dtype), at, at)
    assert made.dtype == dtype
    rows = local_global_index(at[:1], at, 1, 300, 3)[0].tolist()
    assert rows == [1, 6, 6, 6, 7, 7, 8]
    table = torch.cat((both.local_table, both.global_table.flatten(0, 1))).flatten()
    assert torch.equal(made[0], table[rows])


def test_both_tables_start_with_vectors_of_length_one_on_average():
    both = LocalGlobal(64, 100, 3, 100)
    for table in both.parameters():
        assert table.square().sum(-1).mean().item() == pytest.approx(1, rel=0.05)


# --- what is refused, and in which words


@refusals
def test_refuses():
    q, at = torch.zeros(2, 4), torch.arange(2)
    for sizes in ((-1, 3, 3), (2, 0, 3), (2, -1, 3), (2, 3, 0)):
        message = "window must be at least 0, width and far_buckets at least 1, got {}, {} and {}"
        yield message.format(*sizes), LocalGlobal, 4, *sizes
        yield message.format(*sizes), local_global_index, at, at, *sizes
    for dim in (0, -4):
        yield f"dim must be at least 1, got {dim}", LocalGlobal, dim, 2, 3, 3
    local, rings = torch.zeros(5, 4), torch.zeros(2, 3, 4)
    for shape in ((5,), (0, 4), (4, 4), (5, 3), (5, 1), (1, 5, 4)):
        message = f"local_table must be (2 window + 1, 4), got {shape}"
        yield message, local_global_scores, q, q, torch.zeros(shape), rings, at, at, 3
    for shape in ((3, 4), (1, 3, 4), (3, 3, 4), (2, 3, 1), (1, 2, 3, 4)):
        message = f"global_table must be (2, far_buckets, 4), got {shape}"
        yield message, local_global_scores, q, q, local, torch.zeros(shape), at, at, 3
