"""path_attention.py against its products, one by one, and beside RoPE. No pinned package has it."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize
from torch.testing import assert_close

from snippets.attention import attention, scaled_dot_product
from snippets.path_attention import PathProjection, path_keys, path_scores
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from tests.snippets.common import EXACT, SEEDS, filled, random, refusals

HEADS, KEY_HEADS, DIM = 4, 2, 6


def tokens_of(tokens, *leading, key_heads=HEADS, dim=DIM):
    """q, k, w and beta."""
    k, w = random(2, *leading, key_heads, tokens, dim)
    beta = 2 * torch.rand(*leading, key_heads, tokens, dtype=torch.float64)
    return random(*leading, HEADS, tokens, dim), k, w, beta


def later_hidden(scores):
    return scores.masked_fill(torch.ones_like(scores).triu(1) > 0, -math.inf)


def seen(tokens):
    return torch.ones(tokens, tokens).tril() > 0


def part(given, rows):
    """The tokens of these rows, of q, k, w and beta."""
    return *(x[..., rows, :] for x in given[:-1]), given[-1][..., rows]


def attends(q, k, v, w, beta, hidden=None, block=3):
    bias = None if hidden is None else torch.zeros(hidden.shape).double().masked_fill(hidden, -math.inf)
    return attention(q, k, v, bias, score=lambda q, k: path_scores(q, k, w, beta, block=block))[0]


# --- what the source says


@pytest.mark.parametrize("block", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("tokens", [1, 6, 7, 9])
@pytest.mark.parametrize("key_heads", [1, 2, 4])
def test_every_score_is_the_product_of_its_turns(tokens, block, key_heads):
    q, k, w, beta = tokens_of(tokens, key_heads=key_heads)
    made = path_scores(q, k, w, beta, block=block)
    eye = torch.eye(DIM, dtype=torch.float64)
    for h in range(HEADS):
        of = h * key_heads // HEADS
        unit = [each / math.sqrt(math.fsum((each**2).tolist())) for each in w[of]]
        turns = [eye - beta[of, t] * torch.outer(unit[t], unit[t]) for t in range(tokens)]
        for i in range(tokens):
            for j in range(tokens):
                expected, key = -math.inf, k[of, j]
                if j <= i:
                    for turn in turns[j + 1 : i + 1]:
                        key = turn @ key
                    expected = (q[h, i] @ key).item() / math.sqrt(DIM)
                assert made[h, i, j].item() == pytest.approx(expected, abs=1e-12)


@settings(max_examples=25)
@given(SEEDS, st.integers(1, 40), st.integers(0, 9), st.integers(1, 50))
def test_the_size_of_blocks_changes_nothing(seed, tokens, before, block):
    torch.manual_seed(seed)
    q, k, w, beta = tokens_of(tokens)
    cached = random(HEADS, before, DIM)
    made = path_scores(q, k, w, beta, cached, block)
    assert_close(made, path_scores(q, k, w, beta, cached), **EXACT)
    assert_close(path_keys(k, w, beta, cached, block), path_keys(k, w, beta, cached), **EXACT)


def test_directions_are_brought_to_length_one_and_no_direction_turns_nothing():
    q, k, w, beta = tokens_of(9)
    made = path_scores(q, k, w, beta)
    assert_close(path_scores(q, k, 1000 * w, beta), made, **EXACT)
    assert_close(path_scores(q, k, -w, beta), made, **EXACT)
    w[:, 4] = 0
    closed = beta.clone()
    closed[:, 4] = 0
    assert_close(path_scores(q, k, w, beta), path_scores(q, k, w, closed), **EXACT)


def test_a_layer_learns_directions_of_few_numbers_and_strengths_from_0_to_2():
    made, x = filled(PathProjection(8, HEADS, DIM, rank=2)), random(3, 5, 8)
    w, beta = made(x)
    assert w.shape == (3, HEADS, 5, DIM) and beta.shape == (3, HEADS, 5)
    for h in range(HEADS):
        rows = made.widen.weight[h * DIM : (h + 1) * DIM]
        assert_close(w[:, h], x @ made.narrow.weight.T @ rows.T, **EXACT)
        logits = x @ made.strength.weight[h] + made.strength.bias[h]
        assert_close(beta[:, h], 2 / (1 + (-logits).exp()), **EXACT)
    assert torch.linalg.matrix_rank(w.transpose(1, 2).flatten(2).flatten(0, 1)) == 2
    assert PathProjection(8, HEADS, DIM).narrow.out_features == 32


# --- its relatives


@pytest.mark.claim(
    "path-without-strength-is-no-encoding",
    "If beta is 0 for all tokens, PaTH's scores are those of plain causal attention.",
)
@pytest.mark.parametrize("tokens", [1, 9, 70])
def test_no_strength_is_no_encoding(tokens):
    q, k, w, beta = tokens_of(tokens)
    made = path_scores(q, k, w, torch.zeros_like(beta), block=8)
    assert_close(made, later_hidden(scaled_dot_product(q, k)), **EXACT)
    assert_close(path_keys(k, w, torch.zeros_like(beta), block=8), k, **EXACT)


@pytest.mark.claim(
    "path-has-rope-as-a-case",
    "If beta is 2 and tokens alternate between two directions in the plane of one channel pair, half an "
    "angle apart, PaTH's scores between the tokens with the second direction are those of a RoPE in which "
    "only this pair rotates, by the whole angle per position, and positions count only these tokens.",
)
@pytest.mark.parametrize("angle", [0.01, 1.0, 2.5])
@pytest.mark.parametrize("dim", [2, 4])
@pytest.mark.parametrize("block", [1, 3, 64])
def test_two_reflections_are_a_turn_of_rope(angle, dim, block):
    q, k, w, beta = tokens_of(80, dim=dim)
    w.zero_()
    w[:, 0::2, 0] = 1
    w[:, 1::2, 0], w[:, 1::2, 1] = math.cos(angle / 2), -math.sin(angle / 2)
    made = path_scores(q, k, w, torch.full_like(beta, 2), block=block)[:, 1::2, 1::2]
    frequencies = torch.tensor([angle, 0.0][: dim // 2], dtype=torch.float64)
    tables = rope_tables(torch.arange(40), frequencies, dtype=torch.float64)
    turned = (apply_rope(x[:, 1::2], *tables, layout="interleaved") for x in (q, k))
    assert_close(made, later_hidden(scaled_dot_product(*turned)), rtol=0, atol=1e-11)


def test_the_frequencies_of_rope_are_such_angles():
    assert rope_frequencies(2, base=10000).tolist() == [1.0]


@pytest.mark.claim(
    "path-equal-reflections-tell-even-from-odd",
    "If beta is 2 and all tokens have the same direction, PaTH's scores are the plain scores at even "
    "distances, and the scores of keys reflected once at odd distances.",
)
@pytest.mark.parametrize("tokens", [1, 2, 9, 70])
def test_a_reflection_twice_is_none(tokens):
    q, k, w, beta = tokens_of(tokens)
    w = w[:, :1].expand_as(w)
    made = path_scores(q, k, w, torch.full_like(beta, 2), block=8)
    unit = normalize(w, dim=-1)
    mirrored = k - 2 * (k * unit).sum(-1, keepdim=True) * unit
    distance = torch.arange(tokens)[:, None] - torch.arange(tokens)
    expected = torch.where(distance % 2 == 0, scaled_dot_product(q, k), scaled_dot_product(q, mirrored))
    assert_close(made, later_hidden(expected), **EXACT)


# --- what holds for every size


@pytest.mark.claim(
    "path-never-lengthens",
    "PaTH's transforms never make a key longer; if beta is 2 or 0 at each token, all keys keep their length.",
)
@settings(max_examples=25)
@given(SEEDS, st.integers(1, 60))
def test_no_turn_makes_a_key_longer(seed, tokens):
    torch.manual_seed(seed)
    _, k, w, beta = tokens_of(tokens)
    length = k.norm(dim=-1)
    assert (path_keys(k, w, beta, block=8).norm(dim=-1) <= length + 1e-12).all()
    assert_close(path_keys(k, w, 2 * (beta > 1).double(), block=8).norm(dim=-1), length, **EXACT)


@pytest.mark.claim(
    "path-wipes-out",
    "A token whose beta is 1 removes from all keys before it their component along its direction: at that "
    "token, a query that points in this direction has a score of 0 with these keys.",
)
@settings(max_examples=20)
@given(SEEDS, st.integers(1, 12))
def test_a_strength_of_one_wipes_out_a_direction(seed, tokens):
    torch.manual_seed(seed)
    q, k, w, beta = tokens_of(tokens)
    q[:, -1], beta[:, -1] = 3 * w[:, -1], 1
    made = path_scores(q, k, w, beta, block=4)[:, -1]
    assert_close(made[:, :-1], torch.zeros_like(made[:, :-1]), **EXACT)
    assert (made[:, -1] != 0).all()


@pytest.mark.claim(
    "path-knows-the-order-between",
    "PaTH's score depends on each of the tokens after the key up to and including the query, and on their "
    "order. The transforms of the key's own token, of tokens before it and of tokens after the query "
    "change no score by more than rounding.",
)
@settings(max_examples=20)
@given(SEEDS, st.integers(0, 6), st.integers(0, 6))
def test_what_lies_between_matters_and_its_order_does(seed, a, b):
    torch.manual_seed(seed)
    j, i = min(a, b), max(a, b)
    q, k, w, beta = tokens_of(7)
    beta = 0.5 + beta / 2

    def score(w, beta):
        return path_scores(q, k, w, beta, block=3)[:, i, j]

    known = score(w, beta)
    for t in range(7):
        other, strength = w.clone(), beta.clone()
        other[:, t], strength[:, t] = random(HEADS, DIM), 1.7
        gap = (score(other, strength) - known).abs()
        assert (gap > 1e-9).all() if j < t <= i else (gap < 1e-12).all()
    if i - j > 1:
        order = torch.arange(7)
        order[[j + 1, i]] = order[[i, j + 1]]
        assert (score(w[:, order], beta[:, order]) - known).abs().max() > 1e-9


@pytest.mark.claim(
    "path-moves-with-its-text",
    "Tokens before a text change PaTH's scores among its tokens by no more than rounding.",
)
@settings(max_examples=20)
@given(SEEDS, st.integers(1, 9), st.integers(1, 9), st.integers(1, 5))
def test_what_stands_before_a_text_changes_nothing(seed, before, tokens, block):
    torch.manual_seed(seed)
    every = tokens_of(before + tokens)
    text = path_scores(*part(every, slice(before, None)), block=block)
    assert_close(path_scores(*every, block=block)[:, before:, before:], text, **EXACT)


# --- decoding, padding, packing


@pytest.mark.claim(
    "path-decodes-with-turned-keys",
    "With the keys that path_keys returns as the cache, one or more new tokens get the scores that they "
    "have in the whole text. The scores of a single new token are the plain scaled dot products with the "
    "keys that path_keys returns after it.",
)
@pytest.mark.parametrize("block", [1, 2, 64])
@pytest.mark.parametrize("new", [1, 2, 4])
@pytest.mark.parametrize("key_heads", [1, 4])
def test_decoding_with_turned_keys_gives_the_rows_of_the_whole(key_heads, new, block):
    every = tokens_of(9, 2, key_heads=key_heads)
    whole, cached = path_scores(*every), None
    for start in range(0, 9, new):
        q, *turns = part(every, slice(start, start + new))
        end = start + q.shape[-2]
        made = path_scores(q, *turns, cached, block)
        assert_close(made, whole[..., start:end, :end], **EXACT)
        cached = path_keys(*turns, cached, block)
        assert_close(cached, path_keys(*(x[..., :end, :] for x in every[1:3]), every[3][..., :end]), **EXACT)
        repeated = cached.repeat_interleave(HEADS // key_heads, -3)
        assert_close(scaled_dot_product(q[..., -1:, :], repeated), whole[..., end - 1 : end, :end], **EXACT)


def test_keys_that_are_dropped_leave_no_gap():
    every, kept = tokens_of(9), [0, 2, 5]
    whole = path_scores(*every)
    _, *old = part(every, slice(0, 6))
    cached = path_keys(*old)[:, kept]
    made = path_scores(*part(every, slice(6, 9)), cached)
    assert_close(made, whole[:, 6:, [*kept, 6, 7, 8]], **EXACT)


def test_each_key_head_serves_as_many_heads_in_order():
    for key_heads in (1, 2, 4):
        q, k, w, beta = tokens_of(9, 2, key_heads=key_heads)
        q = q.mT.contiguous().mT  # as a projection gives it, not in one piece
        each = HEADS // key_heads
        repeated = (x.repeat_interleave(each, 1) for x in (k, w, beta))
        assert_close(path_scores(q, k, w, beta, block=4), path_scores(q, *repeated, block=4), **EXACT)


def test_heads_and_texts_may_be_left_out():
    q, k, w, beta = tokens_of(7, 2)
    made = path_scores(q, k, w, beta, block=3)
    for text in range(2):
        assert_close(path_scores(q[text], k[text], w[text], beta[text], block=3), made[text], **EXACT)
        alone = path_scores(q[text, 1], k[text, 1], w[text, 1], beta[text, 1], block=3)
        assert_close(alone, made[text, 1], **EXACT)


@pytest.mark.parametrize("cached", [None, 0, 5])
def test_there_may_be_no_token(cached):
    q, k, w, beta = tokens_of(0)
    old = None if cached is None else random(HEADS, cached, DIM)
    assert path_scores(q, k, w, beta, old).shape == (HEADS, 0, cached or 0)
    keys = path_keys(k, w, beta, old)
    assert keys.shape == (HEADS, cached or 0, DIM)


# --- digits


@pytest.mark.claim(
    "path-keeps-its-digits",
    "In float32, with blocks of 64 or fewer tokens, PaTH's scores of 2,048 random tokens are within a "
    "ten-thousandth of those in float64.",
)
@pytest.mark.parametrize("strength", [None, 2.0])
@pytest.mark.parametrize("block", [1, 16, 64])
def test_long_texts_keep_their_digits(block, strength):
    q, k, w = torch.randn(3, 1, 2048, 32)
    beta = 2 * torch.rand(1, 2048) if strength is None else torch.full((1, 2048), strength)
    exact = path_scores(*(x.double() for x in (q, k, w, beta)))
    made = path_scores(q, k, w, beta, block=block)
    near = seen(2048)
    assert (made - exact)[:, near].abs().max() < 1e-4
    assert (made[:, ~near] == -math.inf).all()


def test_small_blocks_keep_more_digits_where_directions_are_nearly_one():
    q, k, w = torch.randn(3, 1, 2048, 32)
    w = torch.zeros_like(w)
    w[..., 0], w[:, 1::2, 1] = 1, -0.005
    beta, near = torch.full((1, 2048), 2.0), seen(2048)
    exact = path_scores(*(x.double() for x in (q, k, w, beta)), block=1)
    small, whole = (
        (path_scores(q, k, w, beta, block=block) - exact)[:, near].abs().max() for block in (4, 2048)
    )
    assert 10 * small < whole


@pytest.mark.claim(
    "path-cache-in-bfloat16-drifts",
    "Transformed one token at a time with beta = 2, 1,024 random cached keys end within a ten-thousandth "
    "of the exact keys if they are stored in float32. If they are stored in bfloat16, at least one of "
    "their entries is off by more than a tenth.",
)
def test_keys_that_are_rounded_at_each_step_drift():
    k, w = torch.randn(2, 1, 1024, 32)
    beta = torch.full((1, 1024), 2.0)
    exact = path_keys(k.double(), w.double(), beta.double())
    off = {}
    for dtype in (torch.float32, torch.bfloat16):
        cached = None
        for n in range(1024):
            cached = path_keys(k[:, [n]], w[:, [n]], beta[:, [n]], cached).to(dtype)
        off[dtype] = (cached - exact).abs().max()
    assert off[torch.float32] < 1e-4
    assert off[torch.bfloat16] > 0.1


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_inputs_are_turned_in_float32(dtype):
    q, k, w, beta = (x.to(dtype) for x in tokens_of(90))
    cached = random(HEADS, 5, DIM).to(dtype)
    wide = path_scores(*(x.float() for x in (q, k, w, beta, cached)), block=9)
    for its_beta, old in ((beta, cached), (beta.float(), cached.float())):
        made = path_scores(q, k, w, its_beta, old, block=9)
        assert made.dtype == dtype
        assert torch.equal(made, wide.to(dtype))
    keys = path_keys(k, w, beta, cached, block=9)
    assert keys.dtype == torch.float32
    assert torch.equal(keys, path_keys(*(x.float() for x in (k, w, beta, cached)), block=9))
    assert path_keys(*tokens_of(4)[1:]).dtype == torch.float64
    assert PathProjection(8, 2, 3).to(dtype)(random(4, 8).to(dtype))[1].dtype == torch.float32


# --- memory, gradients, modules


def test_gradients_are_finite_without_a_direction():
    q, k, w, beta = tokens_of(5)
    w[:, 2] = 0
    w.requires_grad_()
    path_scores(q, k, w, beta).exp().sum().backward()
    assert w.grad.isfinite().all()


# --- what is refused, and in which words


@refusals
def test_refuses():
    q, k, w, beta = torch.zeros(6, 3, 4), torch.zeros(2, 3, 4), torch.zeros(2, 3, 4), torch.zeros(2, 3)
    for wrong in (torch.zeros(4), torch.tensor(0.0), torch.zeros(2, 3, 0), k.long()):
        got = f"{wrong.dtype} {tuple(wrong.shape)}"
        message = f"k must be floating and (..., tokens, dim), got {got}"
        yield message, path_scores, q, wrong, w, beta
        yield message, path_keys, wrong, w, beta
    for wrong in (*map(torch.zeros, ((3, 4), (2, 3, 3), (2, 2, 4), (1, 3, 4), (1, 2, 3, 4), ())), w.long()):
        message = f"w must be floating and (2, 3, 4), got {wrong.dtype} {tuple(wrong.shape)}"
        yield message, path_scores, q, k, wrong, beta
        yield message, path_keys, k, wrong, beta
    for wrong in (*map(torch.zeros, ((3,), (2, 2), (6, 3), (2, 3, 1))), beta.long()):
        message = f"beta must be floating and (2, 3), got {wrong.dtype} {tuple(wrong.shape)}"
        yield message, path_scores, q, k, w, wrong
        yield message, path_keys, k, w, wrong
    for wrong, count in (((2, 5, 3), 5), ((6, 5, 4), 5), ((5, 4), 5), ((4,), 0), ((1, 2, 5, 4), 5)):
        message = f"cached_keys must be floating and (2, {count}, 4), got torch.float32 {wrong}"
        yield message, path_scores, q, k, w, beta, torch.zeros(wrong)
        yield message, path_keys, k, w, beta, torch.zeros(wrong)
    message = "cached_keys must be floating and (2, 3, 4), got torch.int64 (2, 3, 4)"
    yield message, path_keys, k, w, beta, k.long()
    for wrong in (
        *map(torch.zeros, ((3, 3, 4), (6, 3, 3), (6, 2, 4), (3, 4), (2, 6, 3, 4), (1, 3, 4))),
        q.long(),
    ):
        got = f"{wrong.dtype} {tuple(wrong.shape)}"
        wanted = "floating-point of shape (2, 3, 4), as k, or with a multiple of k's heads"
        yield f"q must be {wanted}, got {got}", path_scores, wrong, k, w, beta
    message = "q must be floating-point of shape (0, 3, 4), as k, or with a multiple of k's heads, "
    none = torch.zeros(0, 3, 4)
    yield f"{message}got torch.float32 (6, 3, 4)", path_scores, q, none, none, torch.zeros(0, 3)
    for number, got in ((-0.25, "-0.25 to 0"), (2.5, "0 to 2.5"), (math.nan, "nan to nan")):
        wrong = beta.clone()
        wrong[1, 2] = number
        yield f"beta must be 0 to 2, got {got}", path_scores, q, k, w, wrong
        yield f"beta must be 0 to 2, got {got}", path_keys, k, w, wrong
    for block in (0, -3):
        yield f"block must be at least 1, got {block}", path_scores, q, k, w, beta, None, block
        yield f"block must be at least 1, got {block}", path_keys, k, w, beta, None, block
    for sizes in ((0, 2, 3, 5), (4, 0, 3, 5), (4, 2, 0, 5), (4, 2, 3, -1)):
        got = "{}, {}, {} and {}".format(*sizes)
        yield f"dim, heads, width and rank must be at least 1, got {got}", PathProjection, *sizes
    for shape in ((3, 5), (8,), ()):
        message = f"x must be (..., tokens, 8), got {shape}"
        yield message, lambda x: PathProjection(8, 2, 3)(x), torch.zeros(shape)


def test_the_ends_of_the_range_are_taken_and_the_smallest_sizes():
    one = torch.ones(1, 1)
    for beta in (0.0, 2.0):
        assert path_scores(one, one, one, torch.tensor([beta]), block=1).item() == 1
    w, beta = PathProjection(dim=1, heads=1, width=1, rank=1)(one)
    assert w.shape == (1, 1, 1) and beta.shape == (1, 1)
