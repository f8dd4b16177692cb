"""What encodings have in common that are added to tokens: sinusoids, learned rows, and either with a gate."""

import copy
from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from snippets.embed import Embed, packed_positions, padded_positions
from snippets.gated_encoding import AddGated
from snippets.learned import AddLearned, learned_encoding
from snippets.sinusoidal import AddSinusoidal, sinusoidal_encoding
from tests.snippets.common import random, refused

DIM, ROWS = 6, 1001


class Added(NamedTuple):
    make: object  # the module
    encoding: object  # what it adds, in float64: of itself, x and positions
    learned: list  # what it has learned, by name
    slack: int = 0  # how many roundings what it adds may be off
    least: int = 1  # the axes of x


def waves(positions):
    return sinusoidal_encoding(positions, DIM, dtype=torch.float64)


def learned():
    module = AddLearned(ROWS, DIM)
    torch.nn.init.normal_(module.table)
    return module


def gated(encode):
    module = AddGated(DIM, encode)
    torch.nn.init.normal_(module.weight)
    torch.nn.init.normal_(module.bias)
    return module


def gate(add, x):
    return torch.sigmoid((x.double() * add.weight.double()).sum(-1) + add.bias.double())[..., None]


METHODS = {
    "sinusoidal": Added(lambda: AddSinusoidal(DIM), lambda add, x, at: waves(at), []),
    "learned": Added(learned, lambda add, x, at: add.table[at].double(), ["table"]),
    "gated sinusoids": Added(
        lambda: gated(waves), lambda add, x, at: gate(add, x) * waves(at), ["weight", "bias"], 16, 2
    ),
    "gated rows": Added(
        lambda: gated(torch.nn.Embedding(ROWS, DIM)),
        lambda add, x, at: gate(add, x) * add.encode.weight[at].double(),
        ["weight", "bias", "encode.weight"],
        16,
        2,
    ),
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


def close(made, expected):
    assert_close(made, expected, rtol=0, atol=1e-12)


# --- positions


@every_method
def test_every_token_gets_the_encoding_of_its_position(method):
    x, add = random(2, 3, 5, DIM), method.make().double()
    for each in (x, x[0], x[0, 0]):
        leading = each.shape[:-2]
        some = {(), leading, (1,) * len(leading), (1, *leading[1:]), (*leading[:-1], 1)}
        for rows in some if leading else {()}:
            positions = torch.randint(0, ROWS, (*rows, 5))
            close(add(each, positions), each + method.encoding(add, each, positions))
    if method.least == 1:
        close(add(x[0, 0, 0], torch.tensor(3)), x[0, 0, 0] + method.encoding(add, x, torch.tensor(3)))


@pytest.mark.claim(
    "learned-decoding-equals-whole",
    "With sinusoids, a learned table and gated encodings, embedding a text token by token, each at its "
    "own position, gives exactly the same vectors as embedding the whole text.",
)
@every_method
def test_decoding_token_by_token_gives_what_the_whole_gives(method):
    x, add = random(2, 9, DIM), method.make().double()
    steps = [add(x[:, [n]], torch.tensor([n])) for n in range(9)]
    assert torch.equal(torch.cat(steps, dim=1), add(x, torch.arange(9)))


@pytest.mark.claim(
    "learned-padded-and-packed-as-alone",
    "With sinusoids and with a learned table, and with positions that are counted from the first token of "
    "each text, left-padded and packed tokens get exactly the same vectors as alone; with gated "
    "encodings, up to rounding.",
)
@every_method
@given(st.integers(0, 40), st.lists(st.integers(1, 9), min_size=1, max_size=5))
def test_left_padding_and_packing_keep_every_token_at_its_position(method, padding, lengths):
    add, texts = method.make().double(), [random(tokens, DIM) for tokens in lengths]
    alone = [add(text, torch.arange(len(text))) for text in texts]
    mask = torch.tensor([0] * padding + [1] * lengths[0])
    padded = add(torch.cat([random(padding, DIM), texts[0]]), padded_positions(mask))
    same = close if method.slack else lambda made, expected: assert_close(made, expected, rtol=0, atol=0)
    same(padded[padding:], alone[0])
    documents = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))
    same(add(torch.cat(texts), packed_positions(documents)), torch.cat(alone))


# --- dtypes, devices, gradients, what is learned


@every_method
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_the_module_keeps_the_dtype_of_the_embeddings(method, dtype):
    x, positions, add = torch.randn(3, DIM).to(dtype), torch.tensor([256, 257, 1000]), method.make()
    for module in (add, copy.deepcopy(add).to(dtype)):
        made = module(x, positions)
        assert made.dtype == dtype
        expected = x + method.encoding(module, x, positions).to(dtype)
        assert_close(made, expected, rtol=0, atol=method.slack * torch.finfo(dtype).eps)
        assert not torch.equal(made[0] - x[0], made[1] - x[1])


@every_method
def test_the_module_follows_the_device_of_the_embeddings(method):
    add, x = method.make().to("meta"), torch.zeros(2, DIM, device="meta")
    assert add(x, torch.arange(2, device="meta")).device.type == "meta"
    if not isinstance(getattr(add, "encode", None), torch.nn.Embedding):  # nn.Embedding moves nothing
        assert add(x, torch.arange(2)).device.type == "meta"


# --- one layer for tokens and positions


@every_method
def test_embed_adds_any_encoding_to_scaled_tokens(method):
    tokens, add = torch.nn.Embedding(11, DIM), method.make()
    ids, at = torch.randint(0, 11, (2, 7)), torch.randint(0, 9, (2, 7))
    assert torch.equal(Embed(tokens, add, scale=3.0)(ids, at), add(tokens(ids) * 3, at))
    both = Embed(tokens, add)
    assert torch.equal(both(ids, at), add(tokens(ids), at))
    assert sorted(both.state_dict()) == sorted(["tokens.weight", *(f"add.{name}" for name in method.learned)])
    assert both.tokens.weight is tokens.weight  # as tying needs


# --- what is refused, and in which words


@every_method
def test_refuses_embeddings_that_do_not_fit(method):
    add, wanted = method.make(), "(..., tokens, 6)" if method.least == 2 else "(..., 6)"
    for x in (torch.zeros(2, DIM).long(), torch.zeros(2, DIM) + 0j):
        refused(f"x must have a floating-point dtype, got {x.dtype}", add, x, torch.arange(2))
    for shape in ((2, 5), (2, 1), (), *[(DIM,)] * (method.least - 1)):
        refused(f"x must be {wanted}, got {shape}", add, torch.zeros(shape), torch.arange(2))


@every_method
@pytest.mark.parametrize("shape", [(), (1,), (2,), (4,), (2, 1), (3, 2), (3, 3), (1, 2, 3), (1, 1, 3)])
def test_refuses_positions_that_would_have_to_be_stretched(method, shape):
    add, positions = method.make(), torch.zeros(shape).long()
    name, ends, rest = ("encoding", (DIM,), "last two") if method.least == 2 else ("positions", (), "last")
    for leading in ((2, 3), (5, 6, 7)):
        want = f"{(*leading[-1:], *ends)} or {(*leading, *ends)}, where any axis but the {rest} may be 1"
        message = f"{name} must be {want}, got {(*shape, *ends)}"
        refused(message, add, torch.zeros(*leading, DIM), positions)


def test_a_gate_passes_on_what_its_encoding_refuses():
    table = torch.nn.Parameter(torch.randn(9, DIM))
    add = AddGated(DIM, lambda positions: learned_encoding(positions, table))
    refused("positions must be 0 to 8, got 9 to 9", add, torch.zeros(2, 1, DIM), torch.tensor([9]))
