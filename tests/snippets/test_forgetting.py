"""forgetting.py against its formulas and x-transformers, and beside ALiBi and xPos, which are cases of it."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.testing import assert_close

from experiments.measure import peak_bytes
from snippets.alibi import alibi_bias, alibi_slopes
from snippets.attention import attention, scaled_dot_product
from snippets.forgetting import ForgetGates, forgetting_bias, wall_scores
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from snippets.xpos import apply_xpos, xpos_decay, xpos_tables
from tests.peers import peer
from tests.snippets.common import EXACT, SEEDS, filled, random, refusals

HEADS, KEY_HEADS, DIM = 4, 2, 6


def gates(*shape, size=1.0):
    """Log gates, of sizes that differ much."""
    return -size * torch.rand(shape, dtype=torch.float64) ** 3


def vectors(queries, keys, *leading, heads=HEADS):
    """q, k and log gates of each channel."""
    q, k = random(*leading, HEADS, queries, DIM), random(*leading, heads, keys, DIM)
    return q, k, gates(*leading, HEADS, keys, DIM)


def fox(log_gates, queries=None):
    return forgetting_bias(log_gates, queries, torch.float64)


def fox_attends(q, k, v, log_gates, hidden=None):
    bias = fox(log_gates, q.shape[-2])
    return attention(q, k, v, bias if hidden is None else bias.masked_fill(hidden, -math.inf))[0]


def wall_attends(q, k, v, log_gates, hidden=None):
    bias = None if hidden is None else torch.zeros(hidden.shape).double().masked_fill(hidden, -math.inf)
    return attention(q, k, v, bias, score=lambda q, k: wall_scores(q, k, log_gates, block=3))[0]


# what attends, with the axes that its gates have behind that of tokens
every_way = pytest.mark.parametrize(
    ("attends", "channels"), [(fox_attends, ()), (wall_attends, (DIM,))], ids=["fox", "wall"]
)


# --- what the sources say


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (6, 6), (1, 7), (3, 7)])
def test_every_bias_is_the_sum_of_the_log_gates_between(queries, keys):
    log_gates = gates(HEADS, keys)
    made = fox(log_gates, queries)
    for h in range(HEADS):
        for a in range(queries):
            i = keys - queries + a  # the last query is the last token
            for j in range(keys):
                expected = math.fsum(log_gates[h, j + 1 : i + 1].tolist()) if j <= i else -math.inf
                assert made[h, a, j].item() == pytest.approx(expected, abs=1e-12)


def test_all_tokens_are_queries_if_no_number_is_given():
    log_gates = gates(HEADS, 5)
    assert torch.equal(forgetting_bias(log_gates), forgetting_bias(log_gates, 5))


@pytest.mark.parametrize("block", [1, 2, 3, 7, 64])
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (7, 7), (1, 8), (4, 9), (8, 8)])
@pytest.mark.parametrize("key_heads", [1, 2, 4])
def test_every_score_of_wall_is_its_formula(queries, keys, block, key_heads):
    q, k, log_gates = vectors(queries, keys, heads=key_heads)
    made = wall_scores(q, k, log_gates, block)
    for h in range(HEADS):
        for a in range(queries):
            i = keys - queries + a
            for j in range(keys):
                if j > i:
                    assert made[h, a, j] == -math.inf
                    continue
                products = q[h, a] * k[h * key_heads // HEADS, j]
                kept = log_gates[h, j + 1 : i + 1].sum(0).exp()
                assert made[h, a, j].item() == pytest.approx(
                    math.fsum((products * kept).tolist()) / math.sqrt(DIM), abs=1e-12
                )


@pytest.mark.parametrize("bias", [0.0, 5.0, -2.5])
@pytest.mark.parametrize("channels", [None, 5])
def test_gates_are_sigmoids_of_what_the_layer_learns(channels, bias):
    made, x = filled(ForgetGates(8, HEADS, channels, bias)), random(2, 3, 8)
    rows = HEADS * (channels or 1)
    open_by = torch.stack([x @ made.weight[n] + made.bias[n] for n in range(rows)], -1).sigmoid()
    expected = open_by.log().unflatten(-1, (HEADS, -1)).transpose(1, 2)
    assert_close(made(x), expected if channels else expected[..., 0], **EXACT)
    started = ForgetGates(64, HEADS, channels, bias)
    assert (started.bias == bias).all()
    assert started.weight.std().item() == pytest.approx(0.02, rel=0.2)


def test_gates_begin_as_open_as_the_docstring_says():
    x = torch.zeros(1, 8)
    assert_close(ForgetGates(8, HEADS)(x).exp(), torch.full((HEADS, 1), 0.5))
    assert (ForgetGates(8, HEADS, bias=5.0)(x).exp() > 0.99).all()


# --- other libraries


@pytest.mark.claim(
    "forgetting-agrees-with-x-transformers",
    "The snippet's gates and bias equal those of x-transformers' DataDependentAlibi for keys that are not "
    "later than the query, to 1e-12 in float64.",
)
@pytest.mark.parametrize("tokens", [1, 2, 9, 60])
@pytest.mark.parametrize("heads", [1, 5])
def test_agrees_with_x_transformers(heads, tokens, same_as):
    theirs = peer("x_transformers.x_transformers").DataDependentAlibi(dim=8, heads=heads).double()
    made, x = ForgetGates(8, heads, bias=5.0).double(), random(2, tokens, 8)
    linear = theirs.to_forget_gates[0]
    assert torch.equal(linear.bias, made.bias)  # where it starts
    torch.nn.init.normal_(linear.bias)
    made.weight.data, made.bias.data = linear.weight.data, linear.bias.data
    seen = torch.ones(tokens, tokens).tril() > 0
    bias, expected = fox(made(x)), theirs(x)
    assert_close(bias[..., seen], expected[..., seen], **EXACT)
    same_as("x_transformers.DataDependentAlibi", bias[..., seen], expected[..., seen])


@pytest.mark.filterwarnings("ignore:flex_attention called")
@pytest.mark.parametrize("queries", [1, 5, 40])
def test_flex_attention_gives_the_same_by_sums(queries):
    q, k, v = random(3, 2, HEADS, 40, 16)
    q, log_gates = q[..., 40 - queries :, :], gates(2, HEADS, 40)
    sums, first = log_gates.cumsum(-1), 40 - queries
    mask = create_block_mask(lambda b, h, i, j: j <= i + first, None, None, queries, 40, device="cpu")

    def score_mod(score, b, h, i, j):
        return score + sums[b, h, i + first] - sums[b, h, j]

    made = flex_attention(q, k, v, score_mod, mask)
    assert_close(made, fox_attends(q, k, v, log_gates), **EXACT)


# --- its relatives


@pytest.mark.claim(
    "forgetting-has-alibi-as-a-case",
    "If every token of a head has the same gate, whose logarithm is minus the head's slope, FoX's bias "
    "is ALiBi's.",
)
@pytest.mark.parametrize("heads", [1, 3, 8])
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (9, 9), (2, 300)])
def test_equal_gates_of_a_head_make_alibi(queries, keys, heads):
    slopes, at = alibi_slopes(heads).double(), torch.arange(keys)
    made = fox(-slopes[:, None].expand(heads, keys), queries)
    assert_close(made, alibi_bias(at[keys - queries :], at, slopes, torch.float64), **EXACT)


@pytest.mark.claim(
    "wall-has-xpos-as-a-case",
    "If every token has the same gate in each channel, equal to xPos's decay over one position, Wall's "
    "scores of q and k rotated by RoPE are xPos's scores.",
)
@pytest.mark.parametrize("block", [1, 4, 64])
@pytest.mark.parametrize(("dim", "tokens"), [(2, 1), (4, 9), (16, 100)])
def test_equal_gates_of_a_channel_make_the_decay_of_xpos(dim, tokens, block):
    q, k, at = random(tokens, dim), random(tokens, dim), torch.arange(tokens)
    log_gates = (xpos_decay(dim).log() / 512).repeat_interleave(2).expand(tokens, dim)
    q_tables, k_tables = (
        xpos_tables(at, dim, role, centre=tokens // 2, dtype=torch.float64) for role in ("query", "key")
    )
    later = torch.ones(tokens, tokens).triu(1) > 0
    expected = scaled_dot_product(apply_xpos(q, *q_tables), apply_xpos(k, *k_tables))
    tables = rope_tables(at, rope_frequencies(dim, base=10000), dtype=torch.float64)
    turned = (apply_rope(x, *tables, layout="interleaved") for x in (q, k))
    made = wall_scores(*turned, log_gates, block)
    assert_close(made, expected.masked_fill(later, -math.inf), **EXACT)
    scales = [torch.hypot(*pair).repeat_interleave(2, -1) for pair in (q_tables, k_tables)]
    expected = scaled_dot_product(q * scales[0], k * scales[1])  # the decay alone
    assert_close(wall_scores(q, k, log_gates, block), expected.masked_fill(later, -math.inf), **EXACT)


@pytest.mark.claim(
    "wall-multiplies-where-fox-adds",
    "If all channels of a token have the same gate, Wall's scores are those of plain attention times the "
    "product of the gates from the token after the key up to the query; FoX adds the logarithm of that "
    "product.",
)
@settings(max_examples=25)
@given(SEEDS, st.integers(1, 20), st.integers(1, 9))
def test_gates_alike_in_all_channels_multiply_the_score(seed, tokens, block):
    torch.manual_seed(seed)
    q, k, _ = vectors(tokens, tokens)
    each = gates(HEADS, tokens)
    made = wall_scores(q, k, each[..., None].expand(HEADS, tokens, DIM), block)
    seen, plain = torch.ones(tokens, tokens).tril() > 0, scaled_dot_product(q, k)
    assert_close(made[:, seen], (plain * fox(each).exp())[:, seen], **EXACT)
    assert (made[:, ~seen] == -math.inf).all()


@pytest.mark.claim(
    "forgetting-open-gates-are-no-encoding",
    "If all gates are 1, FoX's bias is zero for all keys that are not later than the query, and Wall's "
    "scores are those of plain causal attention.",
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_open_gates_change_nothing(dtype):
    q, k, log_gates = (x.to(dtype) for x in vectors(9, 9))
    later = torch.ones(9, 9).triu(1) > 0
    assert torch.equal(
        forgetting_bias(torch.zeros(HEADS, 9)), torch.zeros(HEADS, 9, 9).masked_fill(later, -math.inf)
    )
    plain = scaled_dot_product(q, k).masked_fill(later, -math.inf)
    assert_close(wall_scores(q, k, torch.zeros_like(log_gates), block=4), plain)


@pytest.mark.claim(
    "wall-forgets-to-zero",
    "In FoX, a gate of 0 takes all weight from the keys before it, whatever q and k are. In Wall, it sets "
    "the scores of these keys to 0, and each of them keeps the weight that a score of 0 has.",
)
@pytest.mark.parametrize("closed", [1, 4, 8])
@pytest.mark.parametrize("block", [1, 3, 64])
def test_what_a_closed_gate_does(closed, block):
    q, k, channels = vectors(9, 9)
    log_gates = gates(HEADS, 9)
    log_gates[:, closed], channels[:, closed] = -math.inf, -math.inf
    weights = attention(100 * q, k, k, fox(log_gates))[1]
    assert (weights[:, closed:, :closed] == 0).all()
    scores = wall_scores(q, k, channels, block)
    assert (scores[:, closed:, :closed] == 0).all()
    assert (scores.softmax(-1)[:, closed:, :closed] > 0).all()
    seen = torch.ones(9, 9).tril() > 0
    assert scores[:, seen].isfinite().all()
    assert (scores[:, closed:, closed:][:, seen[closed:, closed:]] != 0).all()


# --- what holds for every size


@pytest.mark.claim(
    "forgetting-knows-what-lies-between",
    "FoX's bias for a key depends on the gates of the tokens after the key, up to and including the "
    "query: each of these gates changes it. The gate of the key itself, the gates before it and those "
    "after the query leave it bit-for-bit unchanged.",
)
@settings(max_examples=25)
@given(SEEDS, st.integers(0, 6), st.integers(0, 6))
def test_only_the_gates_between_matter(seed, a, b):
    torch.manual_seed(seed)
    j, i = min(a, b), max(a, b)
    log_gates = gates(7)
    bias = fox(log_gates)[i, j]
    for t in range(7):
        other = log_gates.clone()
        other[t] -= 0.5
        between = j < t <= i
        assert (fox(other)[i, j] - bias).item() == pytest.approx(-0.5 * between, abs=1e-12 * between)


@pytest.mark.claim(
    "forgetting-falls-with-distance",
    "For each query, FoX's bias is 0 at the query's own token and never increases from a key to the key "
    "before it.",
)
@settings(max_examples=25)
@given(SEEDS, st.integers(1, 60), st.sampled_from([1e-3, 1.0, 1e3]))
def test_bias_never_rises_with_distance(seed, tokens, size):
    torch.manual_seed(seed)
    for dtype in (torch.float32, torch.float64):
        bias = forgetting_bias(gates(tokens, size=size), dtype=dtype)
        assert (bias.diagonal() == 0).all()
        assert (bias.tril().diff(dim=-1)[torch.ones(tokens, tokens - 1).tril(-1) > 0] >= 0).all()


@pytest.mark.claim(
    "forgetting-moves-with-its-text",
    "Tokens before a text, whatever their gates, change neither FoX's bias nor Wall's scores among its "
    "tokens by more than rounding.",
)
@settings(max_examples=20)
@given(SEEDS, st.integers(1, 9), st.integers(1, 9), st.integers(1, 5))
def test_what_stands_before_a_text_changes_nothing(seed, before, tokens, block):
    torch.manual_seed(seed)
    q, k, log_gates = vectors(before + tokens, before + tokens)
    q, text = q[:, before:], log_gates[:, before:]
    assert_close(fox(log_gates[..., 0])[:, before:, before:], fox(text[..., 0]), **EXACT)
    moved = wall_scores(q, k, log_gates, block)[..., before:]
    assert_close(moved, wall_scores(q, k[:, before:], text, block), **EXACT)


def test_the_gate_of_the_first_token_does_nothing():
    q, k, log_gates = vectors(5, 5)
    other = log_gates.clone()
    other[:, 0] = -7.0
    assert torch.equal(fox(other[..., 0]), fox(log_gates[..., 0]))
    assert torch.equal(wall_scores(q, k, other), wall_scores(q, k, log_gates))


# --- decoding, padding, packing


@pytest.mark.claim(
    "forgetting-decodes-with-a-cache",
    "In FoX and in Wall, one or more new queries against cached keys and log gates get the same outputs "
    "as in the whole text at once.",
)
@every_way
def test_decoding_with_a_cache_gives_the_rows_of_the_whole(attends, channels):
    q, k, v = random(3, 2, HEADS, 9, DIM)
    log_gates = gates(2, HEADS, 9, *channels)
    whole = attends(q, k, v, log_gates)
    for new in (1, 2, 4):
        for keys in range(new, 10):
            rows = slice(keys - new, keys)
            part = attends(q[:, :, rows], k[:, :, :keys], v[:, :, :keys], log_gates[:, :, :keys])
            assert_close(part, whole[:, :, rows], **EXACT)


@pytest.mark.claim(
    "wall-decodes-with-faded-keys",
    "If all cached keys are multiplied by the gates of each new token, the plain scaled dot products of "
    "that token's query with the cached keys are Wall's scores.",
)
def test_a_cache_may_keep_faded_keys_in_place_of_old_gates():
    q, k, log_gates = vectors(30, 30)
    whole, cached = wall_scores(q, k, log_gates, block=4), k[:, :0]
    for n in range(30):
        cached = torch.cat((cached * log_gates[:, [n]].exp(), k[:, [n]]), 1)
        assert_close(scaled_dot_product(q[:, [n]], cached), whole[:, [n], : n + 1], **EXACT)


@every_way
def test_tokens_that_are_dropped_leave_their_gates_to_the_next_that_is_kept(attends, channels):
    q, k, v = random(3, HEADS, 9, DIM)
    log_gates, places = gates(HEADS, 9, *channels), [0, 1, 5, 6, 8]
    hidden = torch.ones(9, 9) > 0
    hidden[:, places] = False
    expected = attends(q, k, v, log_gates, hidden)[:, places]
    sums = log_gates.cumsum(1)[:, places]
    left = torch.cat((log_gates[:, :1], sums.diff(dim=1)), 1)
    made = attends(*(x[:, places] for x in (q, k, v)), left)
    assert_close(made, expected, **EXACT)


# --- digits


@pytest.mark.claim(
    "forgetting-keeps-its-digits",
    "With log gates sampled uniformly from -1 to 0, FoX's bias for the last tokens of a text of 8,192 "
    "tokens has a relative error below a millionth in float32; differences of float32 prefix sums have "
    "relative errors of a thousandth and more at some entries.",
)
@pytest.mark.parametrize("seed", range(5))
def test_sums_from_the_query_back_keep_their_digits(seed):
    torch.manual_seed(seed)
    log_gates = -torch.rand(1, 8192)
    exact = fox(log_gates.double(), 64)
    known = exact.isfinite() & (exact != 0)

    def off(bias):
        return ((bias - exact) / exact)[known].abs().max()

    assert off(forgetting_bias(log_gates, 64)) < 1e-6
    sums = log_gates.cumsum(-1)
    assert off(sums[:, -64:, None] - sums[:, None]) > 1e-3


@pytest.mark.claim(
    "wall-does-not-overflow",
    "For the last tokens of a text of 4,096 tokens, with log gates sampled from -20 to 0, the snippet's "
    "Wall scores in float32 are within a hundred-thousandth of those in float64, whereas exponentials of "
    "prefix sums become infinite or zero.",
)
@pytest.mark.parametrize("size", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("queries", [1, 70])
def test_long_texts_do_not_overflow(queries, size):
    q, k = torch.randn(2, queries, 8), torch.randn(2, 4096, 8)
    log_gates = -size * torch.rand(2, 4096, 8)
    exact = wall_scores(q.double(), k.double(), log_gates.double())
    made = wall_scores(q, k, log_gates)
    assert_close(made.double(), exact, rtol=0, atol=1e-5)
    if size == 20:
        sums = log_gates.cumsum(-2)
        assert (k * (-sums).exp()).isinf().any()
        assert (q * sums[:, -queries:].exp() == 0).all()


@settings(max_examples=25)
@given(SEEDS, st.integers(1, 40), st.integers(1, 50), st.sampled_from([0.1, 1.0, 30.0, 1e4]))
def test_the_size_of_blocks_changes_no_score(seed, tokens, block, size):
    torch.manual_seed(seed)
    q, k, _ = vectors(tokens, tokens)
    log_gates = gates(HEADS, tokens, DIM, size=size)
    assert_close(wall_scores(q, k, log_gates, block), wall_scores(q, k, log_gates), **EXACT)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_gates_are_summed_in_float32(dtype):
    log_gates = gates(HEADS, 300).to(dtype)
    assert torch.equal(forgetting_bias(log_gates), forgetting_bias(log_gates.float()))
    narrow = forgetting_bias(log_gates, 9, dtype)
    assert narrow.dtype == dtype
    assert torch.equal(narrow, forgetting_bias(log_gates, 9).to(dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_scores_are_those_of_float32_rounded(dtype):
    q, k, log_gates = (x.to(dtype) for x in vectors(90, 90))
    expected = wall_scores(q.float(), k.float(), log_gates.float(), block=9)
    assert expected.dtype == torch.float32
    for its_gates in (log_gates, log_gates.float(), log_gates.double()):
        made = wall_scores(q, k, its_gates, block=9)
        assert made.dtype == dtype
        assert torch.equal(made, expected.to(dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("channels", [None, 5])
def test_log_gates_of_a_layer_are_float32_at_least(dtype, channels):
    made, x = ForgetGates(8, HEADS, channels, bias=9.0).to(dtype), random(3, 8).to(dtype)
    logits = (x @ made.weight.T + made.bias).float()
    expected = logits.sigmoid().log().unflatten(-1, (HEADS, -1)).transpose(0, 1)
    assert made(x).dtype == torch.float32
    assert_close(made(x), expected if channels else expected[..., 0], rtol=1e-2, atol=1e-6)
    with torch.autocast("cpu", torch.bfloat16):
        assert made(x).dtype == torch.float32


# --- memory, gradients, modules


@pytest.mark.parametrize(("heads", "tokens"), [(2, 256), (8, 200)])
def test_the_memory_of_the_bias_is_the_one_it_states(heads, tokens):
    log_gates = -torch.rand(heads, tokens)
    stated = (8 * heads + 1) * tokens**2
    assert 0.9 * stated < peak_bytes(lambda: forgetting_bias(log_gates)) < 1.03 * stated


@pytest.mark.parametrize(("tokens", "dim", "block"), [(512, 32, 16), (512, 64, 64), (1024, 64, 32)])
def test_the_memory_of_walls_scores_is_about_the_one_it_states(tokens, dim, block):
    q, k = torch.randn(2, 2, tokens, dim)
    log_gates = -torch.rand(2, tokens, dim)
    stated = 8 * 2 * dim * tokens * (block + tokens / block)
    assert 0.8 * stated < peak_bytes(lambda: wall_scores(q, k, log_gates, block)) < 1.2 * stated


def test_gradients_are_finite_where_a_gate_is_closed():
    q, k, log_gates = vectors(5, 5)
    log_gates[:, 2] = -math.inf
    log_gates.requires_grad_()
    wall_scores(q, k, log_gates, block=2).exp().sum().backward()
    fox(log_gates[..., 0]).exp().sum().backward()
    assert log_gates.grad.isfinite().all()


# --- what is refused, and in which words


@refusals
def test_refuses():
    q, k, log_gates = torch.zeros(2, 3, 4), torch.zeros(2, 5, 4), torch.zeros(2, 5, 4)
    for wrong in (torch.zeros(2, 3).long(), torch.tensor(0.0), torch.ones(2, 3) > 0):
        got = f"{wrong.dtype} {tuple(wrong.shape)}"
        yield f"log_gates must be floating and (..., keys), got {got}", forgetting_bias, wrong
    for wrong in (log_gates.long(), torch.zeros(4), torch.tensor(0.0)):
        got = f"{wrong.dtype} {tuple(wrong.shape)}"
        yield f"log_gates must be floating and (..., keys, dim), got {got}", wall_scores, q, k, wrong
    for shape in ((2, 3, 4), (2, 5, 3), (1, 5, 4), (5, 4), (2, 2, 5, 4), (2, 5)):
        yield f"log_gates must be (2, 5, 4), got {shape}", wall_scores, q, k, torch.zeros(shape)
    for most, got in ((0.25, "0.25"), (math.nan, "nan"), (math.inf, "inf"), (1e-6, "1e-06")):
        wrong = log_gates.clone()
        wrong[1, 2, 3] = most
        yield f"log_gates must be 0 or less, got {got}", forgetting_bias, wrong
        yield f"log_gates must be 0 or less, got {got}", wall_scores, q, k, wrong
    for queries in (-1, 6):
        yield f"queries must be 0 to 5, got {queries}", forgetting_bias, log_gates[..., 0], queries
    yield "6 queries need as many keys, got 5", wall_scores, torch.zeros(2, 6, 4), k, log_gates
    yield "k must be as wide as q, 4, got 3", wall_scores, q, k[..., :3], log_gates
    many = torch.zeros(2, 5, 6, 3, 4)  # two axes before the heads, which are six
    for shape in ((2, 5, 4), (2, 5, 0), (2, 3, 6), (3, 5, 6), (3, 1, 6), (1, 2, 6), (1, 2, 5, 6)):
        have = (*shape, 5, 4)
        message = "k must have the leading axes of q, (2, 5, 6, 3, 4), or 1, or fewer heads that divide its"
        yield f"{message}, got {have}", wall_scores, many, torch.zeros(have), log_gates[0, 0]
    for block in (0, -3):
        yield f"block must be at least 1, got {block}", wall_scores, q, k, log_gates, block
    for sizes in ((0, 2, 3), (4, 0, 3), (4, 2, 0), (-1, 2, None)):
        got = "{}, {} and {}".format(*sizes)
        yield f"dim, heads and channels must be at least 1, got {got}", ForgetGates, *sizes
    for shape in ((3, 5), (8,), ()):
        message = f"x must be (..., tokens, 8), got {shape}"
        yield message, lambda x: ForgetGates(8, 2)(x), torch.zeros(shape)


@pytest.mark.parametrize(
    "leading", [(), (6,), (3,), (5, 2), (1, 1), (2, 5, 6), (1, 5, 2), (2, 1, 1), (1, 1, 3)]
)
def test_keys_may_have_fewer_heads_and_axes_of_one(leading):
    q, k, log_gates = random(2, 5, 6, 3, 4), random(*leading, 5, 4), -random(2, 5, 6, 5, 4).abs()
    whole = k.repeat_interleave(6 // leading[-1], -3) if leading else k
    assert_close(
        wall_scores(q, k, log_gates), wall_scores(q, whole.expand(2, 5, 6, 5, 4), log_gates), **EXACT
    )


def test_the_smallest_layer_has_one_gate():
    made = ForgetGates(dim=1, heads=1, channels=1)
    assert made(torch.ones(1, 1)).item() == pytest.approx((made.weight + made.bias).sigmoid().log().item())
    assert wall_scores(torch.ones(1, 1), torch.ones(1, 1), torch.zeros(1, 1), block=1).item() == 1
