"""What all biases of families/biases.py have in common; what is a method's own stands in its own file."""

import copy
import math

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention
from torch.testing import assert_close

from snippets.attention import attention
from tests.snippets.common import refused
from tests.snippets.families.biases import BIASES, HEADS

WIDE, NARROW = torch.float64, (torch.float16, torch.bfloat16)
every_bias = pytest.mark.parametrize("bias", BIASES.values(), ids=BIASES)


@pytest.mark.claim(
    "fire-decodes-with-a-cache",
    "Computed token by token, with only the keys so far, the FIRE bias has the same rows as for the whole "
    "text: a row depends on the position of its own query, not on how long the text becomes.",
)
@every_bias
def test_decoding_with_a_cache_gives_the_rows_of_the_whole(bias):
    made, positions = bias.make(HEADS, WIDE), torch.arange(150)
    whole = made(positions, positions)
    for n in (*range(9), 100, 149):
        assert_close(made(positions[[n]], positions[: n + 1]), whole[:, [n], : n + 1], **bias.near)


# --- in attention


@every_bias
def test_is_the_mask_of_scaled_dot_product_attention(bias):
    q, k, v = torch.randn(3, 2, HEADS, 6, 8, dtype=WIDE)
    mask = bias.make(HEADS, WIDE)(torch.arange(6), torch.arange(6))
    weights = (q @ k.mT / math.sqrt(8) + mask).softmax(-1)
    assert_close(scaled_dot_product_attention(q, k, v, attn_mask=mask), weights @ v)
    assert_close(attention(q, k, v, mask)[0], weights @ v)
    assert (weights.triu(1).count_nonzero() == 0) == bias.causal
    causal = attention(q, k, v, mask, causal=True)[1]
    assert torch.equal(causal, causal.tril())


@every_bias
@pytest.mark.parametrize("rows", [1, 2])
def test_positions_of_rows_make_a_mask_for_the_fused_kernel(bias, rows):
    q, k, v = torch.randn(3, 2, HEADS, 6, 8)
    at = torch.arange(6).expand(rows, 6)
    with torch.no_grad(), sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        made = scaled_dot_product_attention(q, k, v, attn_mask=bias.make(HEADS, torch.float32)(at, at))
    assert made.isfinite().all()


@every_bias
def test_packed_texts_get_what_they_get_alone(bias):
    q, k, v = torch.randn(3, HEADS, 32, 16, dtype=WIDE)
    made = bias.make(HEADS, WIDE)
    positions, text = torch.cat((torch.arange(3), torch.arange(29))), torch.tensor([0] * 3 + [1] * 29)
    whole = made(positions, positions).masked_fill(text[:, None] != text, -math.inf)
    packed = attention(q, k, v, whole)[0]
    for part in (slice(0, 3), slice(3, 32)):
        alone = made(positions[part], positions[part])
        expected = attention(q[:, part], k[:, part], v[:, part], alone)[0]
        assert_close(packed[:, part], expected, **bias.near)


# --- gradients, dtypes, modules, devices


@every_bias
@pytest.mark.parametrize("dtype", NARROW)
def test_a_narrow_dtype_costs_its_own_rounding_and_no_more(bias, dtype):
    i, j = torch.tensor([4, 257, 4000]), torch.arange(0, 5000, 7)
    narrow = bias.make(HEADS, dtype)
    wide = copy.deepcopy(narrow).float() if bias.learned else bias.make(HEADS, torch.float32)
    made = narrow(i, j)
    assert made.dtype == dtype
    assert torch.equal(made, wide(i, j).to(dtype))


# --- what is refused


@every_bias
@pytest.mark.parametrize("heads", [0, -3])
def test_refuses_too_few_heads(bias, heads):
    at, fire = torch.arange(2), bias.snippet == "fire"
    names, got = ("heads and hidden", f"{heads} and 32") if fire else ("heads", heads)
    refused(f"{names} must be at least 1, got {got}", lambda: bias.make(heads, WIDE)(at, at))
    assert bias.make(1, WIDE)(at, at).shape == (1, 2, 2)


@every_bias
@pytest.mark.parametrize(
    ("queries", "keys"), [((), (2,)), ((2,), ()), ((3, 2), (2,)), ((2,), (3, 2)), ((3, 2), (1, 2))]
)
def test_refuses_positions_that_would_have_to_be_stretched(bias, queries, keys):
    message = f"positions must be (..., queries) and (..., keys), got {queries} and {keys}"
    positions = torch.zeros(queries).long(), torch.zeros(keys).long()
    refused(message, bias.make(HEADS, WIDE), *positions)
