"""What RoPE and xPos have in common: tables made once, and the turning of queries or keys by them."""

import itertools
import math
from typing import NamedTuple

import pytest
import torch
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves

from snippets.attention import attention
from snippets.benchmark import peak_bytes
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from snippets.xpos import apply_xpos, xpos_tables
from tests.snippets.common import EXACT, random, refused
from tests.snippets.fitness import Whole


class Turned(NamedTuple):
    tables: object  # of positions and a number of channels
    apply: object
    last: str = "pairs"  # what the refusals say of the tables' last axis, for 6 channels
    most: str = ", 1 to 3 pairs"


def by_rope(layout, rest=0):
    def tables(positions, dim, **options):
        return rope_tables(positions, rope_frequencies(dim - rest, base=10000), **options)

    def apply(x, cos, sin, **options):
        return apply_rope(x, cos, sin, layout, **options)

    return Turned(tables, apply)


def by_xpos(role):
    return Turned(
        lambda positions, dim, **options: xpos_tables(positions, dim, role, 9, **options), apply_xpos, "3", ""
    )


METHODS = {
    "rope, half": by_rope("half"),
    "rope, interleaved": by_rope("interleaved"),
    "rope, half, partial": by_rope("half", rest=2),
    "rope, interleaved, partial": by_rope("interleaved", rest=2),
    "xpos, query": by_xpos("query"),
    "xpos, key": by_xpos("key"),
}
PAIRS = {  # of queries and of keys
    "rope, half": [METHODS["rope, half"]] * 2,
    "rope, interleaved": [METHODS["rope, interleaved"]] * 2,
    "xpos": [METHODS["xpos, query"], METHODS["xpos, key"]],
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


def turn(method, x, positions, **options):
    return method.apply(x, *method.tables(positions, x.shape[-1], dtype=torch.float64), **options)


# --- tables


@every_method
def test_the_cut_loses_no_bit(method):
    """Rows of a table made once, in any order, are the tables of these positions; so is a narrower cast."""
    positions = torch.randint(0, 999, (2, 50))
    for dtype in (torch.float32, torch.float64):
        all_rows = method.tables(torch.arange(1000), 8, dtype=dtype)
        for made, rows in zip(method.tables(positions, 8, dtype=dtype), all_rows, strict=True):
            assert made.dtype == dtype
            assert torch.equal(made, rows[positions])
    exact = method.tables(positions, 8, dtype=torch.float64)
    for made, wide in zip(method.tables(positions, 8), exact, strict=True):
        assert torch.equal(made, wide.float())


# --- positions and the axis of heads


@every_method
@pytest.mark.parametrize("rows", [(), (1,), (2,)])
def test_all_heads_of_a_row_share_its_positions(method, rows):
    x, positions = random(2, 3, 5, 8), torch.randint(0, 99, (*rows, 5))
    made = turn(method, x, positions)
    swapped = turn(method, x.transpose(1, 2), positions, heads_axis=-2)
    assert torch.equal(swapped, made.transpose(1, 2))
    for row, own in enumerate(positions.expand(2, 5)):
        assert_close(turn(method, x[row], own), made[row], **EXACT)
        assert torch.equal(
            turn(method, x[row].transpose(0, 1), own, heads_axis=-2), made[row].transpose(0, 1)
        )
        for head in range(3):
            assert_close(turn(method, x[row, head], own), made[row, head], **EXACT)


@every_method
@pytest.mark.parametrize("shape", [(4, 6), (0, 6), (2, 0, 6), (0, 3, 6), (2, 3, 4, 6), (2, 1, 3, 4, 6)])
def test_with_one_row_of_positions_x_may_have_any_leading_shape(method, shape):
    x = random(*shape)
    made = turn(method, x, torch.arange(shape[-2]))
    assert made.shape == x.shape
    for place in itertools.product(*map(range, shape[:-2])):
        assert_close(made[place], turn(method, x[place], torch.arange(shape[-2])), **EXACT)


# --- dtypes, strides, devices, gradients


@every_method
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_the_arithmetic_is_float32_at_least(method, dtype):
    x, positions = torch.randn(2, 3, 50, 8).to(dtype), torch.arange(50)
    made = method.apply(x, *method.tables(positions, 8))
    assert made.dtype == dtype
    assert torch.equal(made, method.apply(x.float(), *method.tables(positions, 8)).to(dtype))
    assert torch.equal(made, turn(method, x, positions))  # wider tables are cast


@pytest.mark.parametrize("name", ["rope, interleaved", "xpos, query"])
def test_pairs_that_lie_together_are_not_copied(name):
    x, method = torch.randn(3, 10, 50, 12), METHODS[name]
    tables = method.tables(torch.arange(50), 12)
    heads_last = x.transpose(1, 2).contiguous().transpose(1, 2)
    for near in (x, heads_last, x[:, 1:]):
        assert peak_bytes(lambda near=near: method.apply(near, *tables)) < 1.5 * near.nbytes


@every_method
def test_the_result_is_where_x_is(method):
    assert turn(method, torch.empty(3, 4, device="meta"), torch.arange(3)).device.type == "meta"


@every_method
def test_gradients(method):
    x = random(2, 3, 6).requires_grad_()
    tables = method.tables(torch.tensor([0, 100, 700]), 6, dtype=torch.float64)
    inputs = x, *(table.requires_grad_() for table in tables)
    assert torch.autograd.gradcheck(method.apply, inputs)
    assert torch.autograd.gradgradcheck(method.apply, inputs)


@every_method
def test_in_a_graph_no_number_is_complex_and_x_keeps_its_dtype(method):
    x, tables = torch.randn(3, 4, 6).bfloat16(), method.tables(torch.arange(4), 6)
    program = torch.export.export(Whole(method.apply), (x, *tables))
    made = [v for v in tree_leaves([node.meta.get("val") for node in program.graph.nodes]) if v is not None]
    assert made and not any(tensor.is_complex() for tensor in made)
    assert_close(program.module()(x, *tables), method.apply(x, *tables))


# --- in attention


@pytest.mark.claim(
    "rope-padding",
    "With RoPE or xPos and with padding masked, a left-padded text gets the same outputs as alone, "
    "whether its positions start at zero or also count the padding. So does each of two texts that are "
    "packed into one sequence and masked from each other.",
)
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize(("dim", "tokens", "pads"), [(8, 5, 3), (2, 1, 1), (64, 7, 40)])
def test_left_padding_and_packing_give_what_each_text_gives_alone(pair, dim, tokens, pads):
    q, k, v = random(3, 2, tokens, dim)
    places = torch.arange(tokens)

    def attend(q, k, v, positions, bias):
        q, k = (turn(method, x, positions) for method, x in zip(pair, (q, k), strict=True))
        return attention(q, k, v, bias, causal=True)[0]

    alone = attend(q, k, v, places, None)
    hidden = torch.zeros(pads + tokens, pads + tokens, dtype=torch.float64)
    hidden[:, :pads] = -math.inf
    padded_qkv = [torch.cat((random(2, pads, dim), part), 1) for part in (q, k, v)]
    from_zero = torch.cat((torch.zeros(pads, dtype=torch.long), places))
    for positions in (from_zero, torch.arange(pads + tokens)):  # only offsets count
        padded = attend(*padded_qkv, positions, hidden)
        assert_close(padded[:, pads:], alone, **EXACT)

    apart = torch.full((2 * tokens, 2 * tokens), -math.inf, dtype=torch.float64)
    apart[:tokens, :tokens] = apart[tokens:, tokens:] = 0
    both = [torch.cat((part, part.flip(0)), 1) for part in (q, k, v)]
    packed = attend(*both, places.repeat(2), apart)
    assert_close(packed[:, :tokens], alone, **EXACT)
    assert_close(packed[:, tokens:], alone.flip(0), **EXACT)


# --- what is refused, and in which words


@every_method
@pytest.mark.parametrize("shape", [(), (2, 1, 4), (2, 3, 4), (1, 2, 3, 4)])
def test_refuses_positions_that_have_an_axis_of_heads_or_none(method, shape):
    message = f"positions must be (tokens,) or (batch, tokens), got {shape}"
    refused(message, method.tables, torch.zeros(shape).long(), 6)


@every_method
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int64])
def test_refuses_coarse_tables(method, dtype):
    message = "must be float32 or float64, got"
    refused(f"dtype {message} {dtype}", method.tables, torch.arange(4), 6, dtype=dtype)
    x, (cos, sin) = torch.zeros(4, 6), method.tables(torch.arange(4), 6)
    refused(f"cos {message} {dtype}", method.apply, x, cos.to(dtype), sin)
    refused(f"sin {message} {dtype}", method.apply, x, cos, sin.to(dtype))


@every_method
def test_refuses_x_that_is_no_tokens_of_channels(method):
    tables = method.tables(torch.arange(2), 4)
    for shape in ((), (4,)):
        refused(f"x must be (..., tokens, dim), got {shape}", method.apply, torch.zeros(shape), *tables)
    message = "x must be (..., tokens, heads, dim), got (2, 4)"
    refused(message, method.apply, torch.zeros(2, 4), *tables, heads_axis=-2)
    for x in (torch.zeros(2, 4).long(), torch.zeros(2, 4) + 0j):
        refused(f"x must have a floating-point dtype, got {x.dtype}", method.apply, x, *tables)


@every_method
@pytest.mark.parametrize("axis", [-4, -1, 0, 1, 2, None])
def test_refuses_another_axis_of_heads(method, axis):
    x, tables = torch.zeros(2, 3, 4, 6), method.tables(torch.arange(4), 6)
    refused(f"heads_axis must be -3 or -2, got {axis!r}", method.apply, x, *tables, heads_axis=axis)


@every_method
@pytest.mark.parametrize(
    ("x", "axis", "shapes"),
    [
        ((2, 3, 4, 6), -3, [(1,), (5,), (2, 1), (2, 3), (3, 4), (2, 3, 4), (1, 1, 4)]),
        ((2, 4, 3, 6), -2, [(3,), (2, 3), (3, 4), (4, 3)]),
        ((3, 4, 6), -3, [(3,), (3, 4), (1, 4)]),
        ((3, 4, 6), -2, [(4,), (3, 4)]),
        ((4, 6), -3, [(6,), (1, 4)]),
        ((5, 2, 3, 4, 6), -3, [(3,), (5, 4), (1, 4), (5, 2, 4)]),
    ],
)
def test_refuses_tables_that_would_have_to_be_guessed(method, x, axis, shapes):
    tokens = x[-2 if axis == -3 else -3]
    batch = f" or ({x[0]} or 1, {tokens}, {method.last})" * (len(x) == 4)
    want = f"({tokens}, {method.last}){batch}{method.most}"
    for rows in shapes:
        table = torch.zeros(*rows, 3)
        message = f"with heads_axis {axis}, cos and sin must both be {want}, "
        message += f"got {(*rows, 3)} and {(*rows, 3)}"
        refused(message, method.apply, torch.zeros(x), table, table, heads_axis=axis)


@every_method
@pytest.mark.parametrize(("cos", "sin"), [(0, 0), (4, 4), (2, 3), (3, 2)])
def test_refuses_tables_of_other_pairs_or_unlike_each_other(method, cos, sin):
    message = f"with heads_axis -3, cos and sin must both be (4, {method.last}){method.most}, "
    message += f"got {(4, cos)} and {(4, sin)}"
    refused(message, method.apply, torch.zeros(4, 6), torch.zeros(4, cos), torch.zeros(4, sin))
