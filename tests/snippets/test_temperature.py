"""temperature.py against its formulas and models of transformers, and what it makes of relative models."""

import math
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from snippets.alibi import alibi_bias, alibi_slopes
from snippets.attention import attention, scaled_dot_product
from snippets.decoding import KeyValueCache, attention_mask, document_positions, move_positions
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from snippets.temperature import (
    log_temperature,
    power_temperature,
    scale_queries,
    ssmax_temperature,
)
from tests.peers import peer
from tests.snippets.common import EXACT, SEEDS, random, refusals

HEADS, DIM = 3, 8
HIDDEN = -math.inf


def stepped(positions, length=8, strength=0.5, first=1):
    return log_temperature(positions, length, strength, first=first, steps=True)


def smooth(positions, length=8, strength=0.5, first=1):
    return log_temperature(positions, length, strength, first=first, steps=False)


def power(positions, length=8, power=0.5, first=1):
    return power_temperature(positions, length, power, first=first)


def ssmax(positions):
    return ssmax_temperature(positions, torch.tensor([0.5]))[..., 0, :]


FORMS = {"steps": stepped, "smooth": smooth, "power": power, "ssmax": ssmax}
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def far(length, most=1_000_000):
    """Positions from 0 to most: all near ones, all multiples of length, and those beside them."""
    steps = torch.arange(0, most + 1, length)
    beside = [steps + by for by in (-2, -1, 0, 1)]
    at = torch.cat((torch.arange(3000), *beside, torch.randint(most, (1000,)), torch.tensor([most])))
    return at[(at >= 0) & (at <= most)].unique()


# --- what the sources say


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize(("length", "strength"), [(1, 0.1), (7, 0.3), (8192, 0.1), (128000, 1.0)])
def test_every_factor_is_its_formula(length, strength, first):
    at = far(length)[::97]
    made = (
        log_temperature(at, length, strength, first=first, steps=True),
        log_temperature(at, length, strength, first=first, steps=False),
        power_temperature(at, length, strength, first=first),
    )
    for place, i in enumerate(at.tolist()):
        n = i + first
        assert made[0][place].item() == pytest.approx(1 + strength * math.log(1 + n // length), rel=1e-6)
        assert made[1][place].item() == pytest.approx(1 + strength * math.log(max(1, n / length)), rel=1e-6)
        assert made[2][place].item() == pytest.approx((1 + n / length) ** strength, rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_every_factor_of_ssmax_is_its_formula(dtype):
    at, scale = far(1000)[::31], torch.rand(HEADS, dtype=dtype)
    made = ssmax_temperature(at, scale)
    assert made.dtype == dtype and made.shape == (HEADS, len(at))
    expected = [[s * math.log(i + 1) for i in at.tolist()] for s in scale.tolist()]
    near = {"rtol": 4 * torch.finfo(dtype).eps, "atol": 0}
    assert_close(made.double(), torch.tensor(expected, dtype=torch.float64), **near)


@pytest.mark.claim(
    "ssmax-keeps-the-largest-weight",
    "If one score exceeds all others, which are equal, by a fixed gap, plain softmax gives it less and "
    "less weight as keys are added. With SSMax, its weight tends to one if gap times scale is above one: "
    "if the product is two or more, the weight rises with every key; if it is just above one, the weight "
    "first falls and then rises. If the product is below one, the weight tends to zero.",
)
@pytest.mark.parametrize("gap", [2.0, 2.5, 4.0])
def test_ssmax_is_a_power_of_the_number_of_keys(gap):
    plain, scaled = [], []
    for n in (2, 3, 4, 10, 100, 1000, 10_000):
        scores = torch.zeros(n).double()
        scores[0] = gap
        factor = ssmax_temperature(torch.tensor([n - 1]), torch.ones(1).double()).item()
        weights = (factor * scores).softmax(-1)
        assert_close(weights, n**scores / (n**scores).sum(), **EXACT)
        plain.append(scores.softmax(-1)[0].item())
        scaled.append(weights[0].item())
    assert plain == sorted(plain, reverse=True) and scaled == sorted(scaled)


@pytest.mark.claim(
    "ssmax-keeps-the-largest-weight",
    "If one score exceeds all others, which are equal, by a fixed gap, plain softmax gives it less and "
    "less weight as keys are added. With SSMax, its weight tends to one if gap times scale is above one: "
    "if the product is two or more, the weight rises with every key; if it is just above one, the weight "
    "first falls and then rises. If the product is below one, the weight tends to zero.",
)
@pytest.mark.parametrize(("gap", "scale"), [(1.05, 1.0), (2.1, 0.5), (0.95, 1.0), (1.9, 0.5)])
def test_ssmax_has_its_limit_at_a_product_of_one(gap, scale):
    many = torch.tensor([2, 4, 10, 30, 10**3, 10**6, 10**12, 10**18])
    factors = ssmax_temperature(many - 1, torch.tensor([scale]).double())[0]
    weights = 1 / (1 + (many.double() - 1) * (-factors * gap).exp())
    if gap * scale > 1:
        assert (weights[:4].diff() < 0).all() and (weights[4:].diff() > 0).all() and weights[-1] > 0.85
    else:
        assert (weights.diff() < 0).all() and weights[-1] < 0.15


# --- other libraries


def of_mistral(name, length):
    modeling = peer(f"transformers.models.{name}.modeling_{name}")
    at = far(length)
    expected = modeling.get_llama_4_attn_scale(at[None], 0.1, length)[0, 0, :, 0]
    yield at, expected, f"{modeling.__name__}.get_llama_4_attn_scale"


def of_beam(length):
    modeling = peer("transformers.models.beam.modeling_beam")
    at = far(length)
    expected = modeling.compute_attention_scaling(at[None])[0, 0, :, 0]
    yield at, expected, f"{modeling.__name__}.compute_attention_scaling"


def llama4(**more):
    sizes = {"vocab_size": 50, "hidden_size": 8, "intermediate_size": 8, "intermediate_size_mlp": 8}
    sizes |= {"num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 8, "num_hidden_layers": 1}
    sizes |= {"num_local_experts": 2, "pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0} | more
    without_rope = [0] * sizes["num_hidden_layers"]
    config = peer("transformers").Llama4TextConfig(**sizes, no_rope_layers=without_rope)
    config._attn_implementation = "eager"
    return config


def asked(modeling, layer, *inputs, **options):
    """A layer of transformers is called: what its attention gets of the query, in one channel."""
    seen = []

    def noted(layer, q, k, v, *_, **__):
        seen.append(q[0, 0, :, 0])
        return q.transpose(1, 2).contiguous(), None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(modeling, "eager_attention_forward", noted)
        layer(*inputs, **options)
    return seen[0]


def of_llama_4(length):
    modeling = peer("transformers.models.llama4.modeling_llama4")
    layer = modeling.Llama4TextAttention(llama4(floor_scale=length), 0)
    layer.q_proj.weight.copy_(torch.eye(8))
    for begin in (0, 7 * length - 60, 60 * length - 60, 999_900):
        past = SimpleNamespace(get_seq_length=lambda _, n=begin: n, update=lambda k, v, _: (k, v))
        q = asked(modeling, layer, torch.ones(1, 101, 8), None, None, past)
        yield torch.arange(begin, begin + 101), q, f"{modeling.__name__}.Llama4TextAttention"


def of_inkling_2(length):
    modeling = peer("transformers.models.inkling2.modeling_inkling2")
    sizes = {"hidden_size": 8, "num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 8, "d_rel": 2}
    sizes |= {"num_hidden_layers": 1, "layer_types": ["hybrid"], "rel_extent": 4}
    config = peer("transformers").Inkling2TextConfig(**sizes, log_scaling_n_floor=length)
    config._attn_implementation = "eager"
    layer = modeling.Inkling2FullAttention(config, 0)
    for parameter in layer.parameters():
        torch.nn.init.ones_(parameter)
    every = far(length)
    for at in every[torch.randperm(len(every))[:1000]].split(100):
        x, none = torch.ones(1, len(at), 8), torch.zeros_like(at)
        plain, q = (asked(modeling, layer, x, x, x, None, position_ids=i[None]) for i in (none, at))
        yield at, q / plain, f"{modeling.__name__}.Inkling2FullAttention"


MODELS = {  # whom to ask, and how their formula is called here
    "llama4": (of_llama_4, partial(log_temperature, first=1, steps=True)),
    "ministral3": (partial(of_mistral, "ministral3"), partial(log_temperature, first=0, steps=True)),
    "mistral4": (partial(of_mistral, "mistral4"), partial(log_temperature, first=0, steps=True)),
    "inkling2": (of_inkling_2, partial(log_temperature, first=1, steps=False)),
    "beam": (of_beam, partial(power_temperature, first=1)),
}
ASKED = [(name, n) for name in MODELS for n in ([2048] if name == "beam" else [16, 8192, 10_000, 128_000])]


@pytest.mark.claim(
    "temperature-agrees-with-peers",
    "The snippet's factors equal those of Llama 4, Ministral 3, Mistral 4, Inkling-2 and Beam in "
    "transformers to 1e-6, at positions up to a million, including multiples of the length and the "
    "positions next to them.",
)
@pytest.mark.parametrize(("name", "length"), ASKED)
@torch.no_grad()
def test_factors_are_those_of_models(name, length, same_as):
    theirs, ours = MODELS[name]
    for at, expected, called in theirs(length):
        made = ours(at, length, 0.1)
        assert_close(made, expected, rtol=1e-6, atol=0)
        same_as(called, made, expected)


@pytest.mark.claim(
    "llama-4-counts-padding",
    "Llama 4 in transformers computes its factors from the index in the padded sequence: with left "
    "padding that changes the factors, the correct mask and the correct positions, its output differs "
    "from its output for the text alone. Without the factors, the two are the same.",
)
@pytest.mark.parametrize("tuned", [True, False])
@torch.no_grad()
def test_llama_4_counts_padding(tuned):
    torch.manual_seed(0)
    config = llama4(num_hidden_layers=2, floor_scale=4, attn_scale=2.0, attn_temperature_tuning=tuned)
    model = peer("transformers").Llama4ForCausalLM(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    ids, pad = torch.randint(1, 50, (1, 9)), 3
    mask = torch.tensor([[0] * pad + [1] * 9])
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    row = torch.cat((ids.new_zeros(1, pad), ids), 1)
    padded = model(row, attention_mask=mask, position_ids=positions).logits[:, pad:]
    alone = model(ids, position_ids=positions[:, pad:]).logits
    if tuned:
        assert (padded - alone).abs().max() > 1e-3
    else:
        assert_close(padded, alone, rtol=1e-4, atol=1e-4)


# --- what holds for every size


@pytest.mark.claim(
    "temperature-below-the-length-changes-nothing",
    "Below the length, both logarithmic forms are exactly one, and multiplying queries by them changes no "
    "bit; from the length on, the stepped form changes only at multiples of the length. The power form "
    "changes all queries, except the first if it counts as zero.",
)
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("length", [1, 2, 9, 8192])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_below_the_length_logarithms_change_nothing(length, first, dtype):
    at = torch.arange(3 * length)
    below = at + first < length
    q = random(1, HEADS, len(at), 2).to(dtype)
    for form in (stepped, smooth):
        made = form(at, length, 0.1, first)
        assert (made[below] == 1).all()
        assert torch.equal(scale_queries(q, made)[..., below, :], q[..., below, :])
    steps, grown = stepped(at, length, 0.1, first), smooth(at, length, 0.1, first)
    assert (steps[~below] > 1).all() and (grown[at + first > length] > 1).all()
    assert (grown[at + first == length] == 1).all()
    changes = steps.diff() != 0
    assert torch.equal(changes, (at[1:] + first) % length == 0)
    powers = power(at, length, 0.1, first)
    assert (powers[1 - first :] > 1).all() and (powers[0] == 1) == (first == 0)


@every_form
def test_factors_never_fall_and_are_finite(form):
    at = torch.logspace(0, 12, 500, dtype=torch.float64).long().unique()
    made = form(torch.cat((torch.zeros(1).long(), at)))
    assert made.isfinite().all() and (made.diff() >= 0).all()


@pytest.mark.parametrize("length", [10_000, 3, 128_000])
def test_steps_are_right_beyond_what_float32_counts(length):
    k = 3_000_000_000 // length
    at = torch.tensor([k * length - 1, k * length])
    below, here = log_temperature(at, length, 1e4, first=0, steps=True).tolist()
    assert below == pytest.approx(1 + 1e4 * math.log(k), rel=1e-6)
    assert here == pytest.approx(1 + 1e4 * math.log(k + 1), rel=1e-6)


@pytest.mark.claim(
    "temperature-starts-matter",
    "Counting from zero instead of one moves every step of the factors to the next token.",
)
@pytest.mark.parametrize("length", [2, 10, 8192])
def test_what_the_first_token_counts_as_moves_every_step(length):
    at = torch.arange(5 * length)
    assert torch.equal(stepped(at[1:], length, first=0), stepped(at[:-1], length, first=1))
    assert torch.equal(smooth(at[1:], length, first=0), smooth(at[:-1], length, first=1))
    assert torch.equal(power(at[1:], length, first=0), power(at[:-1], length, first=1))
    differ = stepped(at, length, first=0) != stepped(at, length, first=1)
    assert at[differ].tolist() == [k * length - 1 for k in range(1, 6)]


# --- what becomes of relative models


def turn(x, at):
    return apply_rope(x, *rope_tables(at, rope_frequencies(DIM, base=10000), torch.float64), "half")


def by_rope(q, k, i, j):
    return scaled_dot_product(turn(q, i), turn(k, j))


def by_alibi(q, k, i, j):
    return scaled_dot_product(q, k) + alibi_bias(i, j, alibi_slopes(HEADS), dtype=torch.float64)


SCORES = {"rope": by_rope, "alibi": by_alibi}


def attend(scores, form, q, k, v, i, j, seen):
    """The output with factors of a form, if one is given."""
    q = scale_queries(q, form(i).double()) if form else q
    return scores(q, k, i, j).masked_fill(~seen, HIDDEN).softmax(-1) @ v


@pytest.mark.claim(
    "temperature-knows-places",
    "With factors of any form, the output of a model with RoPE or ALiBi changes when all positions are "
    "shifted by the same number and the shift changes its factors. Without factors, it stays the same.",
)
@every_form
@pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES)
@settings(max_examples=10)
@given(seed=SEEDS, by=st.integers(9, 100_000))
def test_moving_all_positions_changes_what_comes_out(scores, form, seed, by):
    torch.manual_seed(seed)
    (q, k, v), at = random(3, HEADS, 12, DIM), torch.arange(12)
    seen = at <= at[:, None]
    plain = attend(scores, None, q, k, v, at, at, seen)
    assert_close(attend(scores, None, q, k, v, at + by, at + by, seen), plain, rtol=0, atol=1e-8)
    made = attend(scores, form, q, k, v, at, at, seen)
    other = attend(scores, form, q, k, v, at + by, at + by, seen)
    assert (form(at + by) != form(at)).all()
    assert (made - other)[:, 1:].abs().amax((0, 2)).min() > 1e-6  # the first query sees one key alone


@every_form
def test_scores_move_by_the_ratio_of_factors(form):
    (q, k), at = random(2, HEADS, 12, DIM), torch.arange(1, 13)
    near, far = (by_rope(scale_queries(q, form(i).double()), k, i, i) for i in (at, at + 500))
    assert_close(far / near, (form(at + 500) / form(at)).double()[:, None].expand_as(near), rtol=1e-6, atol=0)


@pytest.mark.claim(
    "temperature-takes-padding-for-text",
    "Left padding that is counted as tokens changes the output of a model with RoPE and factors, wherever "
    "it changes a factor; with positions counted from the start of each document, the output is that for "
    "the text alone. The same holds for documents packed into one sequence.",
)
@every_form
def test_padding_and_packing_want_positions_of_documents(form):
    documents = torch.tensor([0] * 5 + [1] * 12 + [2] * 12)  # padding, and two texts
    (q, k, v), row = random(3, HEADS, 29, DIM), torch.arange(29)
    at = document_positions(documents)
    seen = attention_mask(row, row, documents, documents)
    made = attend(by_rope, form, q, k, v, at, at, seen)
    counted = attend(by_rope, form, q, k, v, row, row, seen)
    plain = attend(by_rope, None, q, k, v, at, at, seen)
    assert_close(attend(by_rope, None, q, k, v, row, row, seen), plain, rtol=0, atol=1e-9)
    for text in (slice(5, 17), slice(17, 29)):
        own = torch.arange(12)
        alone = attend(by_rope, form, *(x[:, text] for x in (q, k, v)), own, own, own <= own[:, None])
        assert_close(made[:, text], alone, rtol=0, atol=1e-9)
        other = form(row[text]) != form(own)
        assert other.any()
        apart = (counted[:, text] - alone).abs().amax((0, 2))
        assert (apart[other & (own > 0)] > 1e-6).all()  # the first query sees one key alone
        assert (apart[~other] < 1e-9).all()


@pytest.mark.claim(
    "temperature-is-not-in-the-cache",
    "Only the queries contain the factors: after the keys of a cache are moved by RoPE, the next query "
    "gets the same output as if the text had been processed at the new positions, if its factor is that "
    "of its new position.",
)
@every_form
def test_a_cache_that_is_moved_needs_no_other_turn(form):
    (q, k, v), at = random(3, 1, HEADS, 12, DIM), torch.arange(12)[None]
    cache = KeyValueCache(turn(k, at), v, at, torch.zeros_like(at))
    cache = move_positions(cache, at + 40, turn)
    here = torch.tensor([[52]])
    query = turn(scale_queries(q[..., -1:, :], form(here).double()), here)
    made, _ = attention(query, cache.k, cache.v)
    fresh = scale_queries(q[..., -1:, :], form(here).double())
    expected = by_rope(fresh, k, here, at + 40).softmax(-1) @ v
    assert_close(made, expected, rtol=0, atol=1e-9)
    stale = by_rope(scale_queries(q[..., -1:, :], form(here - 40).double()), k, here, at + 40).softmax(-1) @ v
    assert (made - stale).abs().max() > 1e-6


@every_form
def test_before_or_after_rope_makes_no_difference(form):
    q, at = random(2, HEADS, 12, DIM), torch.arange(12)
    factors = form(at).double()
    assert_close(turn(scale_queries(q, factors), at), scale_queries(turn(q, at), factors), **EXACT)


# --- queries times factors


def test_every_query_is_multiplied_by_its_factor():
    q = random(2, HEADS, 5, DIM)
    for factors in (random(5), random(1, 5), random(2, 5)):
        made = scale_queries(q, factors)
        for b in range(2):
            for n in range(5):
                own = factors.expand(2, 5)[b, n]
                assert_close(made[b, :, n], own * q[b, :, n], **EXACT)
    for shape in ((2, HEADS, 5), (1, HEADS, 5), (2, 1, 5), (1, 1, 5)):
        factors = random(*shape)
        assert_close(scale_queries(q, factors), factors[..., None] * q, **EXACT)
    factors = random(HEADS, 5)  # of each head, where there is no batch
    assert_close(scale_queries(q[0], factors), factors[..., None] * q[0], **EXACT)
    assert_close(scale_queries(q[0], factors[0]), factors[0, :, None] * q[0], **EXACT)
    scale = ssmax_temperature(torch.arange(5)[None], torch.rand(HEADS).double())
    assert_close(scale_queries(q, scale), scale[..., None] * q, **EXACT)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_queries_are_multiplied_in_float32(dtype):
    q, factors = random(HEADS, 50, DIM).to(dtype), 1 + torch.rand(50)
    made = scale_queries(q, factors)
    assert made.dtype == dtype
    assert torch.equal(made, (q.float() * factors[:, None]).to(dtype))
    assert not torch.equal(made, q * factors[:, None].to(dtype))


@every_form
def test_positions_below_0_that_nobody_reads_count_as_0(form):
    at = torch.tensor([[-7, -1, 0, 3]])
    made = torch.vmap(form)(at)
    assert torch.equal(made, form(at.clamp(min=0))) and made.isfinite().all()


# --- what is refused, and in which words


AT = torch.arange(3)


@refusals
def test_refuses():
    for form in FORMS.values():
        for least in (-1, -300):
            hint = "(0 is the first token; use 0 for padding as well)"
            got = f"positions must be at least 0, got {least} {hint}"
            yield got, form, torch.tensor([[0, least], [5, 1]])
        yield "positions must be (..., queries), got ()", form, torch.tensor(3)
    for form in (stepped, smooth, power):
        for length in (0, -5):
            yield f"length must be at least 1, got {length}", form, AT, length
        for first in (-1, 2, 0.5):
            yield f"first must be 0 or 1, got {first}", form, AT, 8, 0.1, first
    for scale in (torch.tensor(0.5), torch.zeros(1, 3), AT):
        got = f"{scale.dtype} {tuple(scale.shape)}"
        yield f"scale must be floating and (heads,), got {got}", ssmax_temperature, AT, scale
    q, one = torch.zeros(2, 3, 4, 5), torch.zeros(4)
    for wrong in (torch.zeros(4, 5), torch.tensor(0.0), q.long()):
        got = f"{wrong.dtype} {tuple(wrong.shape)}"
        yield f"q must be floating and (..., heads, queries, dim), got {got}", scale_queries, wrong, one
    shapes = (
        (),
        (1,),
        (5,),
        (3, 4),
        (2, 1),
        (2, 3),
        (2, 4, 4),
        (3, 3, 4),
        (2, 3, 1),
        (2, 3, 4, 5),
        (1, 2, 3, 4),
    )
    for wrong in (*map(torch.zeros, shapes), one.long()):
        got = f"{wrong.dtype} {tuple(wrong.shape)}"
        want = "factors must be floating and (4,), (2, 4) or (2, 3, 4)"
        yield f"{want}, got {got}", scale_queries, q, wrong
