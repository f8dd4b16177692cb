"""shaw.py against its formula, against other code, and for what the guide says of it."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from experiments.measure import peak_bytes
from snippets.attention import SelfAttention, attention, scaled_dot_product
from snippets.shaw import ShawTables, shaw_scores, shaw_values
from tests.peers.scores import wav2vec2_bert
from tests.snippets.common import EXACT, SEEDS, filled, random, refusals


def tables(dim=4, clip=2):
    return filled(ShawTables(dim, clip))


def attend(shaw, q, k, v, query_positions, key_positions, **options):
    """Output with both terms, and weights."""
    at = query_positions, key_positions
    output, weights = attention(q, k, v, score=lambda q, k: shaw(q, k, *at), **options)
    return output + shaw.values(weights, *at), weights


def self_attend(shaw, q, k, v, positions, **options):
    return attend(shaw, q, k, v, positions, positions, **options)


# --- what the sources say


def test_every_score_and_every_value_is_its_formula():
    clip, dim = 2, 3
    shaw = tables(dim, clip)
    q, k, weights = random(4, dim), random(5, dim), random(4, 5)
    query_positions, key_positions = torch.tensor([0, 3, 3, -7]), torch.tensor([1, 0, 9, 4, -6])
    scores = shaw(q, k, query_positions, key_positions)
    values = shaw.values(weights, query_positions, key_positions)
    for a, i in enumerate(query_positions.tolist()):
        total = [0.0] * dim
        for b, j in enumerate(key_positions.tolist()):
            row = max(-clip, min(clip, j - i)) + clip
            products = [q[a, c].item() * (k[b, c] + shaw.key_table[row, c]).item() for c in range(dim)]
            assert scores[a, b].item() == pytest.approx(math.fsum(products) / math.sqrt(dim))
            for c in range(dim):
                total[c] += weights[a, b].item() * shaw.value_table[row, c].item()
        assert values[a].tolist() == pytest.approx(total)


@pytest.mark.parametrize("clip", [0, 1, 3, 50])
@pytest.mark.parametrize("leading", [(), (3,), (2, 3)])
def test_agrees_with_a_vector_for_every_pair(clip, leading):
    shaw = tables(4, clip)
    q, k, v = random(*leading, 6, 4), random(*leading, 9, 4), random(*leading, 9, 4)
    query_positions, key_positions = torch.randint(0, 20, (6,)), torch.randint(0, 20, (9,))
    rows = (key_positions - query_positions[:, None]).clamp(-clip, clip) + clip
    pairs = k[..., None, :, :] + shaw.key_table[rows]  # queries x keys x dim
    weights = (torch.einsum("...id,...ijd->...ij", q, pairs) / 2).softmax(-1)
    pairs = v[..., None, :, :] + shaw.value_table[rows]
    expected = torch.einsum("...ij,...ijd->...id", weights, pairs)
    made = attend(shaw, q, k, v, query_positions, key_positions)
    assert_close(made, (expected, weights), **EXACT)


def test_a_key_after_the_query_has_a_row_after_the_middle():
    table = torch.arange(5.0)[:, None]
    scores = shaw_scores(torch.ones(1, 1), torch.zeros(5, 1), table, torch.tensor([10]), torch.arange(8, 13))
    assert scores.tolist() == [[0, 1, 2, 3, 4]]


def test_the_tables_have_two_rows_per_step_and_one_for_the_token_itself():
    shaw = ShawTables(dim=64, clip=16)
    assert sum(p.numel() for p in shaw.parameters()) == 2 * (2 * 16 + 1) * 64
    bound = math.sqrt(6 / (33 + 64))
    for table in shaw.parameters():
        assert 0.95 * bound < table.abs().max() <= bound


# --- other libraries


@pytest.mark.claim(
    "shaw-agrees-with-peer",
    "The snippet's term between queries and Shaw's key table equals that of transformers' "
    "Wav2Vec2-BERT, to 1e-12 in float64.",
)
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (7, 7), (30, 30), (4, 9)])
@pytest.mark.parametrize(("dim", "clip"), [(8, 1), (8, 3), (8, 8), (1, 0), (5, 2), (64, 50)])
def test_agrees_with_wav2vec2_bert(queries, keys, dim, clip, same_as):
    shaw = tables(dim, clip)
    q, k = random(2, 3, queries, dim), random(2, 3, keys, dim)
    expected = wav2vec2_bert(shaw.key_table, clip)(q, k)
    made = shaw(q, k, torch.arange(queries), torch.arange(keys)) - scaled_dot_product(q, k)
    assert_close(made, expected, **EXACT)
    same_as("transformers.models.wav2vec2_bert.modeling_wav2vec2_bert", made, expected)


# --- memory


class Largest(TorchDispatchMode):
    """The size of the largest tensor that any operation gives back, and what sums are made in."""

    elements = 0
    summed_in = None

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        made = function(*arguments, **(options or {}))
        if function is torch.ops.aten.scatter_add.default:
            self.summed_in = made.dtype
        for part in made if isinstance(made, (tuple, list)) else (made,):
            if isinstance(part, torch.Tensor):
                self.elements = max(self.elements, part.untyped_storage().nbytes() // 4)
        return made


@pytest.mark.claim(
    "shaw-memory",
    "With 2 or more heads in float32, and at least as many tokens as a head has channels and as the table "
    "has rows, no tensor in the snippet's attention with Shaw's tables, forward or backward, takes more "
    "bytes than the scores, while a vector of the channels of one head for each pair of tokens takes "
    "(channels of a head) / heads times as many. With one head, the offsets take twice as many bytes as "
    "the scores, and with fewer tokens than rows, the products with the rows take more than the scores.",
)
@pytest.mark.parametrize("heads", [2, 3, 8])
@pytest.mark.parametrize(
    ("tokens", "dim", "clip"), [(96, 64, 8), (64, 32, 1), (128, 128, 40), (33, 32, 16), (81, 9, 40)]
)
def test_no_tensor_is_as_large_as_queries_x_keys_x_dim(heads, tokens, dim, clip):
    at = torch.arange(tokens)

    def largest(function):
        with Largest() as seen:
            function().sum().backward()
        return seen.elements

    def ours(heads, clip):
        q, k, v = (torch.randn(heads, tokens, dim, requires_grad=True) for _ in range(3))
        return largest(lambda: self_attend(ShawTables(dim, clip), q, k, v, at)[0])

    table, rows = ShawTables(dim, clip).key_table, (at - at[:, None]).clamp(-clip, clip) + clip
    assert largest(lambda: 1 * table[rows]) == tokens * tokens * dim
    assert ours(heads, clip) == heads * tokens * tokens  # one number for each head and pair
    assert ours(1, clip) == 2 * tokens * tokens  # an index of 8 bytes
    assert ours(heads, tokens) == heads * tokens * (2 * tokens + 1)


@pytest.mark.parametrize("dim", [16, 256])
def test_the_memory_that_scores_take_is_the_one_they_state_at_any_width(dim):
    heads, queries, keys = 4, 300, 400
    q, k, table = (torch.randn(*shape, dim) for shape in ((heads, queries), (heads, keys), (17,)))
    i, j = torch.arange(queries), torch.arange(keys)
    scores, rows = 4 * heads * queries * keys, 8 * queries * keys
    small = 4 * heads * queries * (dim + 17)  # the scaled q, and its product with each row
    assert peak_bytes(lambda: shaw_scores(q, k, table, i, j)) <= 1.02 * (3 * scores + rows + small)


# --- what holds for every size


@pytest.mark.claim(
    "shaw-clip",
    "With Shaw's tables, all keys at or beyond the clip on one side of a query share a row, and every "
    "smaller distance has a row of its own.",
)
@settings(max_examples=15)
@given(SEEDS, st.integers(0, 5), st.integers(0, 1000))
def test_beyond_the_clip_every_distance_is_the_same(seed, clip, farther):
    torch.manual_seed(seed)
    shaw, q, k = tables(4, clip), random(1, 4), random(1, 4).expand(4, 4)
    near, far = torch.tensor([-clip, clip]), torch.tensor([-clip - farther, clip + farther])
    at = torch.tensor([50])
    scores = shaw(q, k, at, 50 + torch.cat([near, far]))
    assert_close(scores[:, 2:], scores[:, :2], **EXACT)
    weights = random(1, 2)
    assert_close(shaw.values(weights, at, 50 + far), shaw.values(weights, at, 50 + near), **EXACT)


@pytest.mark.claim(
    "shaw-clip",
    "With Shaw's tables, all keys at or beyond the clip on one side of a query share a row, and every "
    "smaller distance has a row of its own.",
)
@pytest.mark.parametrize("clip", [1, 3, 16])
@pytest.mark.parametrize("dim", [1, 4, 64])
def test_within_the_clip_every_distance_is_its_own(dim, clip):
    shaw, q, every = tables(dim, clip), random(1, dim), torch.arange(2 * clip + 1)
    scores = shaw(q, torch.zeros(len(every), dim).double(), torch.tensor([clip]), every)[0]
    gaps = (scores[:, None] - scores + torch.eye(len(every)) * 9).abs()
    assert gaps.min() > 1e-6
    values = shaw.values(torch.eye(len(every)).double(), torch.full_like(every, clip), every)
    assert torch.equal(values, shaw.value_table)


@pytest.mark.claim(
    "shaw-clip-zero-blind",
    "With a clip of zero and no mask, Shaw's tables leave the attention weights the same as without "
    "positions, and shuffled tokens get shuffled outputs.",
)
@pytest.mark.parametrize("dim", [1, 4, 64])
@pytest.mark.parametrize("tokens", [2, 6, 33])
def test_with_clip_zero_the_weights_know_no_position(tokens, dim):
    shaw, at = tables(dim, 0), torch.arange(tokens)
    q, k, v = random(3, 2, tokens, dim)
    output, weights = self_attend(shaw, q, k, v, at)
    assert_close(weights, attention(q, k, v)[1], **EXACT)
    order = torch.randperm(tokens)
    moved = self_attend(shaw, *(part[:, order] for part in (q, k, v)), at)[0]
    assert_close(moved, output[:, order], **EXACT)


@pytest.mark.claim(
    "clip-is-blind-in-one-layer-only",
    "With Shaw's tables in the scores, swapping two tokens that are both beyond the clip on one side of a "
    "query leaves the query's output unchanged in one layer. In two layers with random weights the output "
    "changes, unless the clip is zero and there is no mask.",
)
@pytest.mark.parametrize("clip", [0, 1, 3, 9])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("dim", "heads"), [(4, 1), (8, 2), (64, 4)])
def test_one_layer_is_blind_beyond_the_clip_and_two_are_not(dim, heads, causal, clip):
    at, x = torch.arange(12), random(12, dim)
    swapped = x[[1, 0, *range(2, 12)]]  # both are 10 or more before the last token
    layers = [SelfAttention(dim, heads).double() for _ in range(2)]
    shaw = [tables(dim // heads, clip) for _ in range(2)]

    def through(x, depth):
        for layer, each in list(zip(layers, shaw, strict=True))[:depth]:
            x = x + layer(x, score=lambda q, k, each=each: each(q, k, at, at), causal=causal)[0]
        return x[-1]

    assert_close(through(swapped, 1), through(x, 1), **EXACT)
    change = (through(swapped, 2) - through(x, 2)).abs().max()
    assert change > 1e-5 if clip or causal else change < 1e-12


def test_weights_that_sum_to_one_pass_a_constant_row_on():
    shaw, at = tables(4, 3), torch.arange(6)
    shaw.value_table.data[:] = torch.tensor([1.0, -2.0, 0.5, 7.0])
    weights = random(2, 6, 6).softmax(-1)
    assert_close(shaw.values(weights, at, at), shaw.value_table[:1].expand(2, 6, 4), **EXACT)


def test_in_attention_the_order_of_tokens_matters():
    shaw, at = tables(), torch.arange(6)
    q, k, v = random(3, 6, 4)
    order = [3, 0, 5, 1, 4, 2]
    moved = self_attend(shaw, q[order], k[order], v[order], at)[0]
    assert (moved - self_attend(shaw, q, k, v, at)[0][order]).abs().max() > 0.01


# --- dtypes, gradients, compilation, modules


def test_many_small_weights_of_a_narrow_dtype_are_not_lost():
    at, table = torch.arange(4096), torch.ones(1, 1, dtype=torch.bfloat16)
    weights = torch.full((1, 4096), 1 / 4096, dtype=torch.bfloat16)
    with Largest() as seen:  # summed one by one in bfloat16 they would stop at 1/8
        assert shaw_values(weights, table, at[:1], at).item() == 1
    assert seen.summed_in == torch.float32


# --- what is refused, and in which words


@refusals
def test_refuses():
    q, at = torch.zeros(3, 4), torch.arange(3)
    for shape in ((4, 4), (0, 4), (5, 3), (4,), (1, 5, 4)):
        message = f"a table must be (2 clip + 1, 4), got {shape}"
        yield message, shaw_scores, q, q, torch.zeros(shape), at, at
        if shape[-1] == 4:
            yield message, shaw_values, torch.zeros(3, 3), torch.zeros(shape), at, at
    message = "a table must be (2 clip + 1, 1), got ()"
    yield message, shaw_values, torch.zeros(3, 3), torch.tensor(0.0), at, at
    for dim, clip in ((0, 1), (-1, 1), (4, -1)):
        yield f"dim must be 1 or more and clip 0 or more, got {dim} and {clip}", ShawTables, dim, clip
