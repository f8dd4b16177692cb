"""decoding.py: whatever the method, a cache, padding, packing and rollback change no result."""

import collections
import copy
import itertools
import math
import types
import warnings
from functools import partial
from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._dynamo.utils import counters
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention
from torch.testing import assert_close

from snippets.alibi import alibi_bias, alibi_slopes
from snippets.attention import attention, scaled_dot_product
from snippets.decoding import (
    KeyValueCache,
    attend,
    attention_mask,
    document_positions,
    flex_attention_mask,
    flex_bias,
    keep_slots,
    move_positions,
    pad_cache,
    write_slots,
)
from snippets.embed import packed_positions, padded_positions
from snippets.learned import AddLearned
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from snippets.rope_scaling import dynamic_ntk, yarn, yarn_attention_factor
from snippets.sinusoidal import AddSinusoidal
from snippets.xpos import apply_xpos, xpos_tables
from tests.peers import peer
from tests.snippets.common import EXACT, random, refusals, refused
from tests.snippets.families.biases import BIASES
from tests.snippets.families.scores import DIM, HEADS, SCORES, WIDTH, called

INF = math.inf


# --- every method of the guide, at the place where it enters


class Method(NamedTuple):
    embed: object = None  # (x, positions) -> x
    turn: object = None  # (q or k, positions, role) -> q or k
    bias: object = None  # (query positions, key positions) -> bias
    score: object = None  # (q, k, query positions, key positions) -> scores
    values: object = None  # (weights, query positions, key positions) -> what the output gains


def learned(length):
    table = AddLearned(length, WIDTH).double().requires_grad_(False)
    table.table.normal_()
    return Method(embed=table)


def rope(layout, pairs=DIM // 2):
    frequencies = rope_frequencies(2 * pairs, base=50.0)
    return Method(turn=lambda x, at, role: apply_rope(x, *rope_tables(at, frequencies, x.dtype), layout))


def xpos(centre=3):
    def turn(x, at, role):
        tables = xpos_tables(at, DIM, role, centre, base=50.0, scale_base=8.0, dtype=x.dtype)
        return apply_xpos(x, *tables)

    return Method(turn=turn)


def by_bias(name):
    return Method(bias=BIASES[name].make(HEADS, torch.float64))


def by_scores(name):
    made = SCORES[name].make()
    score = lambda q, k, i, j: called(SCORES[name], made, i, j)(q, k)  # noqa: E731
    return Method(score=score, values=getattr(made, "values", None))


METHODS = {
    "none": Method,
    "sinusoidal": lambda: Method(embed=AddSinusoidal(WIDTH, base=50.0)),
    "learned": lambda: learned(12),
    "rope interleaved": lambda: rope("interleaved"),
    "rope half": lambda: rope("half"),
    "rope partial": lambda: rope("half", pairs=2),
    "xpos": xpos,
    **{name: partial(by_bias, name) for name in BIASES},
    **{name: partial(by_scores, name) for name in SCORES},
}
COUNTING = {name for name in SCORES if not SCORES[name].positions}  # they count rows
ABSOLUTE = {"sinusoidal", "learned"}
every_method = pytest.mark.parametrize("name", METHODS)


def close(name):
    return BIASES[name].near if name in BIASES else EXACT


class Layer:
    """One causal attention layer with random weights, run by decoding.py."""

    def __init__(self, name):
        self.method = METHODS[name]()
        self.weights = random(3, WIDTH, WIDTH) / 5

    def project(self, x, positions):
        x = self.method.embed(x, positions) if self.method.embed else x
        q, k, v = ((x @ w).unflatten(-1, (HEADS, DIM)).transpose(-2, -3) for w in self.weights)
        if self.method.turn:
            q = self.method.turn(q, positions, "query")
            k = self.method.turn(k, positions, "key")
        return q, k, v

    def __call__(self, x, positions, documents, past=None):
        """The output of the new tokens, and the cache with them."""
        q, k, v = self.project(x, positions)
        new = (k, v, positions, documents)
        kept = past.extend(*new) if past else KeyValueCache(*new)
        seen = attention_mask(positions, kept.positions, documents, kept.documents)
        at = positions, kept.positions
        bias = self.method.bias(*at) if self.method.bias else None
        if self.method.score:
            bias = self.method.score(q, kept.k, *at)
        scale = 0.0 if self.method.score else None
        output = attend(q, kept.k, kept.v, seen, bias, scale)
        if self.method.values:
            each = torch.eye(kept.k.shape[-2], dtype=q.dtype)  # values that show the weights
            weights = attend(q, kept.k, each.expand(*kept.k.shape[:-1], -1), seen, bias, scale)
            output = output + self.method.values(weights, *at)
        return output.transpose(-2, -3).flatten(-2), kept

    def alone(self, x):
        """The output for one text from its first to its last token, by attention.py."""
        at = torch.arange(len(x))
        q, k, v = (part[0] for part in self.project(x[None], at[None]))
        bias = self.method.bias(at, at) if self.method.bias else None
        score = scaled_dot_product
        if self.method.score:
            score = lambda q, k: self.method.score(q, k, at, at)  # noqa: E731
        output, weights = attention(q, k, v, bias, causal=True, score=score)
        if self.method.values:
            output = output + self.method.values(weights, at, at)
        return output.transpose(-2, -3).flatten(-2)


def counted(start, stop):
    return torch.arange(start, stop)[None], torch.ones(1, stop - start, dtype=torch.int64)


# --- what holds for every method


@every_method
def test_the_whole_text_at_once_is_attention_as_it_is_defined(name):
    layer, x = Layer(name), random(7, WIDTH)
    assert_close(layer(x[None], *counted(0, 7))[0][0], layer.alone(x), **close(name))


@pytest.mark.claim(
    "cached-equals-full",
    "With any encoding of the guide, decoding with a cache in which each key keeps its position gives the "
    "same result as processing the whole text at once, in whichever pieces the tokens come.",
)
@pytest.mark.claim(
    "cope-decodes-with-a-cache",
    "With CoPE, one or more new queries against cached keys get the same result as in the whole text.",
)
@every_method
@pytest.mark.parametrize("pieces", [[7], [1] * 7, [4, 1, 1, 1], [3, 4], [1, 2, 4], [1], [5, 1, 6], [1] * 12])
def test_decoding_with_a_cache_gives_the_rows_of_the_whole(name, pieces):
    layer, x = Layer(name), random(sum(pieces), WIDTH)
    start, past, made = 0, None, []
    for tokens in pieces:
        stop = start + tokens
        output, past = layer(x[None, start:stop], *counted(start, stop), past)
        made.append(output[0])
        start = stop
    assert_close(torch.cat(made), layer.alone(x), **close(name))


@pytest.mark.parametrize("name", sorted(set(METHODS) - COUNTING))
def test_a_static_cache_gives_what_a_growing_one_gives(name):
    """Two texts, one padded; and the places that are not yet written hold what would be seen."""
    layer, x = Layer(name), random(2, 8, WIDTH)
    documents = torch.tensor([[1] * 8, [0, 0, *[1] * 6]])
    positions = document_positions(documents)
    expected, _ = layer(x, positions, documents)
    made, (output, prompt) = [], layer(x[:, :5], positions[:, :5], documents[:, :5])
    room = pad_cache(prompt, slots=9)
    for unused in (room.k, room.v):
        unused[..., 5:, :] = 1e6
    for tokens in (slice(5, 7), slice(7, 8)):
        made.append(
            layer(x[:, tokens], positions[:, tokens], documents[:, tokens], Written(room, tokens.start))[0]
        )
    assert_close(torch.cat((output, *made), 1)[documents == 1], expected[documents == 1], **close(name))
    assert room.k.shape[-2] == 9


class Written:
    """A cache with room, extended as a growing one is: by what it returns."""

    def __init__(self, room, used):
        self.room, self.used = room, used

    def extend(self, *new):
        write_slots(self.room, torch.arange(self.used, self.used + new[2].shape[-1]), *new)
        return self.room


@pytest.mark.claim(
    "left-padding-changes-nothing",
    "With any encoding in this guide, a left-padded text gets the same outputs as it gets alone, for its "
    "prompt and for each token after it, provided that positions count from its first token and no token "
    "attends to padding.",
)
@every_method
@pytest.mark.parametrize("width", [6, 7, 12])
def test_left_padded_texts_get_what_they_get_alone(name, width):
    layer, texts = Layer(name), [random(tokens, WIDTH) for tokens in (8, 5, 3)]
    prompts = [6, 3, 1]  # two more tokens each
    rows, documents = random(3, width, WIDTH), torch.zeros(3, width, dtype=torch.int64)
    for row, text, tokens in zip(range(3), texts, prompts, strict=True):
        rows[row, width - tokens :] = text[:tokens]
        documents[row, width - tokens :] = 1
    positions = document_positions(documents)
    output, past = layer(rows, positions, documents)
    made = [output]
    for step in range(2):
        new = torch.stack([text[n + step] for text, n in zip(texts, prompts, strict=True)])[:, None]
        positions = positions[:, -1:] + 1
        output, past = layer(new, positions, documents[:, -1:], past)
        made.append(output)
    made = torch.cat(made, 1)
    for row, text in enumerate(texts):
        assert_close(made[row, -len(text) :], layer.alone(text), **close(name))


@pytest.mark.claim(
    "packing-changes-nothing",
    "With any encoding in this guide, texts packed into one sequence get the same outputs as each gets "
    "alone, provided that positions restart with each text and no token attends to another text.",
)
@every_method
@pytest.mark.parametrize("lengths", [[3, 1, 5], [1, 1], [12, 2, 12], [1] * 9])
def test_packed_texts_get_what_they_get_alone(name, lengths):
    layer, texts = Layer(name), [random(tokens, WIDTH) for tokens in lengths]
    documents = torch.arange(7, 7 + len(lengths)).repeat_interleave(torch.tensor(lengths))[None]
    output, _ = layer(torch.cat(texts)[None], document_positions(documents), documents)
    for made, text in zip(output[0].split(lengths), texts, strict=True):
        assert_close(made, layer.alone(text), **close(name))


@pytest.mark.claim(
    "rollback-leaves-no-trace",
    "In speculative decoding with any encoding in this guide, draft tokens that are processed together "
    "get the same outputs as in token-by-token decoding, and once the rejected ones are dropped from the "
    "cache, nothing of them remains.",
)
@every_method
@pytest.mark.parametrize("right", range(5))
def test_rejected_guesses_leave_no_trace(name, right):
    layer, x, wrong = Layer(name), random(8, WIDTH), random(4 - right, WIDTH)
    whole, read = layer.alone(x), 3 + right
    _, prompt = layer(x[None, :3], *counted(0, 3))
    guess = torch.cat([x[3:read], wrong])[None]
    output, longer = layer(guess, *counted(3, 7), prompt)
    assert_close(output[0, :right], whole[3:read], **close(name))
    made, _ = layer(x[None, read:], *counted(read, 8), longer.first(read))
    assert_close(made[0], whole[read:], **close(name))
    made, _ = layer(x[None, 3:], *counted(3, 8), prompt)  # the shorter one is as it was
    assert_close(made[0], whole[3:], **close(name))


def gap(name):
    """Two rows, of which one has a token in its middle that does not belong to it; how far it is off."""
    layer, x = Layer(name), random(2, 6, WIDTH)
    documents = torch.ones(2, 4, dtype=torch.int64)
    documents[1, 3] = 0
    positions = torch.tensor([[0, 1, 2, 3], [0, 1, 2, 0]])
    _, past = layer(x[:, :4], positions, documents)
    output, _ = layer(x[:, 4:], torch.tensor([[4, 5], [3, 4]]), torch.ones_like(documents[:, :2]), past)
    whole = layer.alone(x[0])
    assert_close(output[0], whole[4:], **close(name))
    return (output[1] - layer.alone(x[1, [0, 1, 2, 4, 5]])[3:]).abs().max()


@every_method
def test_a_row_may_hold_strangers_between_its_tokens_unless_rows_are_counted(name):
    assert gap(name) > 0.001 if name in COUNTING else gap(name) < close(name)["atol"]


@pytest.mark.claim(
    "counting-rows-needs-unbroken-texts",
    "CoPE and Transformer-XL count keys instead of using position ids: right padding or rejected tokens "
    "left in the cache between a text's tokens change its outputs, even though no token attends to them. "
    "Methods that are given positions get the same outputs.",
)
@pytest.mark.parametrize("seed", range(4))
def test_methods_that_count_rows_need_unbroken_texts(seed):
    torch.manual_seed(seed)
    assert {name for name in METHODS if gap(name) > 0.001} == COUNTING


# --- what goes wrong


@pytest.mark.claim(
    "wrong-start-hurts-absolute-only",
    "If positions also count the padding, the outputs change with sinusoidal and learned positions. With "
    "the relative encodings in this guide they stay the same (for FIRE, up to its threshold), provided "
    "that prompt and cache count in the same way.",
)
@every_method
@pytest.mark.parametrize("padding", [1, 3, 50, 1000])
def test_counting_the_padding_changes_absolute_methods_only(name, padding):
    layer, x = Layer(name), random(6, WIDTH)
    if name == "fire":
        layer.method.bias.init_L = 1005.0
        layer.method.bias.L_multiplier.data.fill_(1.0)
    elif name == "learned":
        layer.method = learned(1006)
    positions, documents = counted(0, 6)
    moved, _ = layer(x[None], positions + padding, documents)
    apart = (moved[0] - layer.alone(x)).abs().max()
    assert apart > 0.01 if name in ABSOLUTE else apart < max(1e-11, close(name)["atol"])


def test_fire_knows_the_place_beyond_its_threshold():
    layer, x = Layer("fire"), random(6, WIDTH)
    positions, documents = counted(0, 6)
    far, _ = layer(x[None], positions + 50, documents)
    assert (far[0] - layer.alone(x)).abs().max() > 0.001


@pytest.mark.claim(
    "restarted-cache-hurts-every-method",
    "If the positions of new tokens restart at zero while the cache still contains the text before them, "
    "the outputs change with every encoding in this guide that is given positions.",
)
@every_method
@pytest.mark.parametrize("before", [1, 4, 10])
def test_positions_that_restart_during_decoding_change_every_method_that_reads_them(name, before):
    layer, x = Layer(name), random(before + 2, WIDTH)
    layer.method = layer.method._replace(values=None)
    _, past = layer(x[None, :before], *counted(0, before))
    zero, document = counted(0, 2)
    q, k, v = layer.project(x[None, before:], zero)
    kept = past.extend(k, v, zero, document)
    seen = torch.ones(1, 2, before + 2, dtype=torch.bool)
    seen[..., 0, before + 1] = False  # causal by index, as most code has it
    bias = layer.method.bias(zero, kept.positions) if layer.method.bias else None
    if bias is not None:
        bias = bias.nan_to_num(neginf=0.0)  # what a bias hides is not the point here
    if layer.method.score:
        bias = layer.method.score(q, kept.k, zero, kept.positions)
    output = attend(q, kept.k, kept.v, seen, bias, 0.0 if layer.method.score else None)
    right, _ = layer(x[None, before:], *counted(before, before + 2), past)
    apart = (output.transpose(-2, -3).flatten(-2) - right).abs().max()
    assert apart < 1e-12 if name in COUNTING | {"none"} else apart > 1e-3


@pytest.mark.claim(
    "dynamic-ntk-needs-unrotated-keys",
    "With dynamic NTK, once a text is longer than the training length, a cache of keys that were rotated "
    "on arrival gives a different output from processing the whole text at once. Keys that are cached "
    "without rotation and rotated at each step with the frequencies of that step give the same output.",
)
@pytest.mark.parametrize("trained", [2, 6, 11, 12, 40])
def test_dynamic_ntk_needs_keys_that_are_turned_when_they_are_used(trained):
    q, k, v = random(3, 1, 1, 12, DIM)
    plain = rope_frequencies(DIM, base=10000)

    def turned(x, positions, length):
        tables = rope_tables(positions, dynamic_ntk(plain, 2.0, trained, length), x.dtype)
        return apply_rope(x, *tables, "half")

    at, documents = torch.arange(12), torch.ones(12, dtype=torch.int64)
    seen = attention_mask(at, at, documents, documents)
    whole = attend(turned(q, at, 12), turned(k, at, 12), v, seen)[..., -1, :]
    last = slice(11, 12)
    late = attend(turned(q[..., last, :], at[last], 12), turned(k, at, 12), v, seen[last])
    assert_close(late[..., 0, :], whole, **EXACT)
    early = torch.cat([turned(k[..., [n], :], at[[n]], n + 1) for n in range(12)], -2)
    stale = attend(turned(q[..., last, :], at[last], 12), early, v, seen[last])
    apart = (stale[..., 0, :] - whole).abs().max()
    assert apart > 0.001 if trained < 12 else apart < 1e-12


@pytest.mark.claim(
    "xpos-centre-must-stay",
    "xPos needs a single centre for all queries and keys that interact. The outputs are the same for any "
    "such centre, within the range of the number format, but a cache of keys scaled about a different "
    "centre from the query's changes them.",
)
def test_xpos_needs_one_centre_for_all_that_meet():
    layer, x = Layer("xpos"), random(6, WIDTH)
    _, past = layer(x[None, :5], *counted(0, 5))
    right, _ = layer(x[None, 5:], *counted(5, 6), past)
    assert_close(right[0, 0], layer.alone(x)[5], **EXACT)
    elsewhere = copy.copy(layer)
    for centre in (-100, 0, 2, 4, 40, 1000):
        elsewhere.method = xpos(centre)
        assert_close(elsewhere.alone(x), layer.alone(x), **EXACT)
        moved, _ = elsewhere(x[None, 5:], *counted(5, 6), past)
        assert (moved - right).abs().max() > 0.01


@pytest.mark.claim(
    "is-causal-ignores-cache-and-padding",
    "torch's is_causal=True without a mask lets tokens attend to padding on their left and to the earlier "
    "texts in a packed sequence, and all texts but the first get different outputs from those that they "
    "get alone.",
)
@pytest.mark.parametrize("lengths", [(3, 3), (1, 1), (1, 9, 2)])
def test_is_causal_alone_sees_padding_and_other_texts(lengths):
    layer, texts = Layer("rope half"), [random(tokens, WIDTH) for tokens in lengths]
    documents = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))[None]
    q, k, v = layer.project(torch.cat(texts)[None], document_positions(documents))
    torchs = scaled_dot_product_attention(q, k, v, is_causal=True)[0].transpose(-2, -3).flatten(-2)
    first, *others = torchs.split(lengths)
    assert_close(first, layer.alone(texts[0]), **EXACT)
    for made, text in zip(others, texts[1:], strict=True):
        assert ((made - layer.alone(text)).abs().amax(-1) > 0.001).all()


@pytest.mark.claim(
    "sdpa-mask-and-is-causal",
    "In torch 2.13 on a CPU, one kernel of scaled_dot_product_attention raises an error if it gets a mask "
    "together with is_causal=True; another kernel silently applies both.",
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("tokens", [4, 130])
def test_a_mask_and_is_causal_together_are_an_error_in_one_kernel_only(tokens, dtype):
    q, k, v = random(3, 1, HEADS, tokens, DIM).to(dtype)
    mask = torch.ones(tokens, tokens, dtype=torch.bool)
    mask[:, 1] = False
    with sdpa_kernel(SDPBackend.MATH), pytest.raises(RuntimeError, match="is_causal"):
        scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=True)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        made = scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=True)
    assert_close(made, scaled_dot_product_attention(q, k, v, attn_mask=mask.tril()), **EXACT)


# --- tokens that are dropped, and tokens that move


def turn_on(name):
    """What move_positions takes for keys of that method."""
    method = xpos(centre=0) if name == "xpos" else METHODS[name]()  # an offset has no centre
    return method.turn and (lambda k, offsets: method.turn(k, offsets, "key"))


def at_new_places(name):
    """What two tokens get of a cache that was moved, of one made there, and of both caches k and v."""
    layer, x = Layer(name), random(2, 6, WIDTH)
    documents = torch.tensor([[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1]])
    old = torch.tensor([[0, 1, 2, 3], [0, 1, 0, 1]])
    new = torch.tensor([[0, 4, 5, 6, 7, 8], [3, 1, 2, 5, 8, 9]])
    _, past = layer(x[:, :4], old, documents[:, :4])
    _, there = layer(x[:, :4], new[:, :4], documents[:, :4])
    past = move_positions(past, new[:, :4], turn_on(name))
    assert torch.equal(past.positions, there.positions) and torch.equal(past.documents, there.documents)
    ours, theirs = (layer(x[:, 4:], new[:, 4:], documents[:, 4:], each)[0] for each in (past, there))
    return (ours, theirs), (past.k, there.k), (past.v, there.v)


@pytest.mark.claim(
    "moved-keys-are-those-of-the-new-place",
    "In one layer, with every encoding in this guide except the two that are added to the embeddings, a "
    "cache that is moved to new positions gives the same outputs, up to rounding, as a cache computed at "
    "those positions. Keys of RoPE and xPos are rotated further by how far their token moves; keys of all "
    "other encodings stay as they are.",
)
@pytest.mark.parametrize("name", sorted(set(METHODS) - ABSOLUTE))
def test_a_moved_cache_is_one_that_was_made_there(name):
    for ours, theirs in at_new_places(name):
        assert_close(ours, theirs, **close(name))
    assert (turn_on(name) is None) == (not name.startswith(("rope", "xpos")))


@pytest.mark.claim(
    "added-positions-do-not-move",
    "Sinusoidal and learned positions enter both keys and values: at other positions, both are different, "
    "and a cache that only gets new position ids gives different outputs from a cache computed at those "
    "positions.",
)
@pytest.mark.parametrize("name", sorted(ABSOLUTE))
def test_a_cache_with_added_positions_cannot_be_moved(name):
    for ours, theirs in at_new_places(name):
        assert (ours - theirs).abs().max() > 0.01


@pytest.mark.claim(
    "a-dropped-token-is-a-hidden-one",
    "In one layer, with every encoding in this guide that is given positions, dropping tokens from the "
    "cache gives later tokens the same outputs as hiding those tokens. CoPE and Transformer-XL, which "
    "count keys, give the outputs of a text that never contained the dropped tokens.",
)
@every_method
def test_dropped_tokens_are_as_hidden_as_those_of_another_document(name):
    layer, x = Layer(name), random(1, 9, WIDTH)
    places, last = torch.tensor([0, 3, 4, 6]), slice(7, 9)
    _, past = layer(x[:, :7], *counted(0, 7))
    made, _ = layer(x[:, last], *counted(7, 9), keep_slots(past, places))
    if name in COUNTING:
        expected = layer.alone(x[0, [*places, 7, 8]])[None, 4:]
    else:
        past.documents = torch.full_like(past.documents, 7).index_fill(-1, places, 1)
        expected, _ = layer(x[:, last], *counted(7, 9), past)
    assert_close(made, expected, **close(name))


def reading(layers, x, positions, past=None):
    """Layers one after another, each with a cache: what they make of tokens, and the caches."""
    documents, caches = torch.ones_like(positions), []
    for layer, old in zip(layers, past or [None] * len(layers), strict=True):
        output, cache = layer(x, positions, documents, old)
        x = x + output
        caches.append(cache)
    return x, caches


def apart(ours, theirs):
    """How far keys or values of each layer are off, whichever more."""
    pairs = zip(ours, theirs, strict=True)
    return [max((a.k - b.k).abs().max().item(), (a.v - b.v).abs().max().item()) for a, b in pairs]


@pytest.mark.claim(
    "a-text-moves-whole",
    "With RoPE, if all cached keys of a text are rotated further by one offset, every layer's cache is as "
    "if the text had been processed at the shifted positions, and decoding continues in the same way.",
)
@pytest.mark.parametrize("name", ["rope half", "rope interleaved", "rope partial"])
@pytest.mark.parametrize("offset", [-40, 1, 1000])
def test_a_text_that_moves_whole_is_as_if_read_there(name, offset):
    layers, x, at = [Layer(name) for _ in range(3)], random(1, 9, WIDTH), torch.arange(50, 59)[None]
    _, past = reading(layers, x[:, :7], at[:, :7])
    past = [move_positions(each, at[:, :7] + offset, turn_on(name)) for each in past]
    whole, there = reading(layers, x, at + offset)
    assert max(apart(past, [each.first(7) for each in there])) < 1e-11
    assert_close(reading(layers, x[:, 7:], at[:, 7:] + offset, past)[0], whole[:, 7:], rtol=0, atol=1e-11)


@pytest.mark.claim(
    "what-was-seen-stays-in-the-cache",
    "With RoPE, if earlier tokens are dropped from the cache and the keys of the other tokens are rotated "
    "back, keys and values of the first layer equal those of the shortened text processed from scratch. "
    "If a chunk that was processed alone is rotated to its position in the whole text, they equal those "
    "of the whole text. Keys and values of later layers match neither, because they were computed from "
    "the tokens that were visible at the time.",
)
@pytest.mark.parametrize("name", ["rope half", "rope interleaved", "rope partial"])
@pytest.mark.parametrize("first", [0, 1, 4])
@pytest.mark.parametrize("dropped", [1, 5])
def test_later_layers_keep_what_was_seen(name, first, dropped):
    layers, x, turn = [Layer(name) for _ in range(3)], random(1, 14, WIDTH), turn_on(name)
    places = torch.cat((torch.arange(first), torch.arange(first + dropped, 14)))
    at = torch.arange(len(places))
    _, past = reading(layers, x, torch.arange(14)[None])
    past = [move_positions(keep_slots(each, places), at, turn) for each in past]
    _, shortened = reading(layers, x[:, places], at[None])
    one, *later = apart(past, shortened)
    assert one < 1e-12 and min(later) > 0.001

    _, whole = reading(layers, x, torch.arange(14)[None])
    _, chunk = reading(layers, x[:, first + dropped :], torch.arange(14 - first - dropped)[None])
    chunk = [move_positions(each, torch.arange(first + dropped, 14), turn) for each in chunk]
    last = torch.arange(first + dropped, 14)
    one, *later = apart(chunk, [keep_slots(each, last) for each in whole])
    assert one < 1e-12 and min(later) > 0.001


DISTANCES = ("alibi", "t5", "t5 looking back", "clipped", "kerple log", "kerple power", "sandwich")


@pytest.mark.claim(
    "a-gap-is-left-or-closed",
    "With RoPE, xPos and the biases in this guide that depend only on distance, a query that continues "
    "from the last position keeps its scores after tokens in the middle are dropped. If the gap is "
    "closed, in the query's position too, keys after the gap keep their scores, and keys before it get "
    "the scores of their new, smaller distance.",
)
@pytest.mark.parametrize("name", ["rope half", "rope interleaved", "rope partial", "xpos", *DISTANCES])
def test_scores_with_and_without_a_gap(name):
    layer, x = Layer(name), random(1, 9, WIDTH)
    places = torch.tensor([0, 1, 2, 6, 7])
    _, past = layer(x[:, :8], *counted(0, 8))

    def scores(cache, at):
        q, _, _ = layer.project(x[:, 8:], torch.tensor([[at]]))
        found = q @ cache.k.mT
        bias = layer.method.bias and layer.method.bias(torch.tensor([[at]]), cache.positions)
        return found if bias is None else found + bias

    before = scores(past, 8)[..., places]
    left = keep_slots(past, places)
    assert_close(scores(left, 8), before, **close(name))
    closed = scores(move_positions(left, torch.arange(5), turn_on(name)), 5)
    assert_close(closed[..., 3:], before[..., 3:], **close(name))
    differ = (closed - before)[..., :3].abs().amax((0, 1, 2)) > 1e-4
    assert differ.all() or name == "clipped"  # which has one number for all that are far
    near, _ = layer.project(x[:, :3], torch.arange(3, 6)[None])[1:]
    far = KeyValueCache(near, near, torch.arange(3, 6)[None], torch.ones(1, 3).long())
    assert_close(closed[..., :3], scores(far, 8), **close(name))


def errors_of_turns(store, step, turns):
    """How far keys are off that are stored after each turn, and once turned; by pairs, and all."""
    frequencies = rope_frequencies(64, base=10000)

    def turn(k, at):
        dtype = torch.promote_types(k.dtype, torch.float32)
        return apply_rope(k, *rope_tables(at, frequencies, dtype), "half")

    k, at = random(4, 256, 64), torch.arange(256) + turns * step
    first = again = store(turn(k, at))
    for _ in range(turns):
        again = store(turn(again, torch.full_like(at, -step)))
    true, once = turn(k, at - turns * step), store(turn(first, torch.full_like(at, -turns * step)))
    length = lambda x: x.unflatten(-1, (2, -1)).square().sum((0, 1, 2))  # noqa: E731
    by_pair = (length(again - true) / length(true)).sqrt()
    share = [((found - true).norm() / true.norm()).item() for found in (again, once, store(true))]
    return by_pair, *share


@pytest.mark.claim(
    "small-turns-are-lost-in-rounding",
    "Keys in bfloat16 or float16 that are rotated back 256 times, by one position each time, end more "
    "than thirty times as far from their true values as keys that are rotated once by the same total. In "
    "steps of 512 positions each, the error is more than five times that of a single rotation, but less "
    "than half that of the steps of one position. In bfloat16, after the steps of one position, pairs "
    "that rotate by less than a thousandth of a radian per position are off by more than half of their "
    "rotation.",
)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_turning_again_and_again_adds_up(dtype):
    pairs, ones, once, fresh = errors_of_turns(lambda x: x.to(dtype), 1, 256)
    _, far, far_once, _ = errors_of_turns(lambda x: x.to(dtype), 512, 256)
    assert ones > 30 * once and 5 * far_once < far < ones / 2
    assert fresh < once < 1.5 * fresh
    if dtype == torch.bfloat16:
        slow = rope_frequencies(64, base=10000) < 1e-3
        turned = 256 * rope_frequencies(64, base=10000)[slow]
        assert slow.any() and (pairs[slow] > turned / 2).all()


def in_bits(bits):
    def store(x):
        blocks = x.float().unflatten(-1, (-1, 32))
        scale = blocks.abs().amax(-1, keepdim=True) / (2 ** (bits - 1) - 1)
        return ((blocks / scale).round() * scale).flatten(-2)

    return store


@pytest.mark.claim(
    "quantised-keys-are-quantised-anew",
    "Keys quantised to eight or four bits, with one scale per 32 numbers, can be dequantised, rotated and "
    "quantised again: after one rotation the error is between 1.2 and 1.6 times that of quantisation "
    "alone; after 16 rotations by 512 positions it is more than 2.5 times.",
)
@pytest.mark.parametrize("bits", [8, 4])
def test_quantised_keys_are_turned_and_quantised_again(bits):
    _, _, once, fresh = errors_of_turns(in_bits(bits), 512, 1)
    assert 1.2 * fresh < once < 1.6 * fresh
    _, often, _, fresh = errors_of_turns(in_bits(bits), 512, 16)
    assert often > 2.5 * fresh


@pytest.mark.claim(
    "keys-are-turned-on-as-they-were-turned",
    "A key that was rotated with YaRN's frequencies and attention factor becomes the key of its new "
    "position if it is rotated further with the same frequencies and without the factor. With the factor, "
    "each further rotation multiplies its length by the factor again. With other frequencies, the result "
    "is a different key; examples are those of RoPE itself for this key, and those of another length for "
    "a key of dynamic NTK.",
)
@pytest.mark.parametrize("turns", [1, 3])
def test_keys_are_turned_on_by_what_they_were_turned_by(turns):
    plain, at = rope_frequencies(16, base=10000), torch.arange(300, 320)
    frequencies, factor = yarn(plain, 4.0, 64), yarn_attention_factor(4.0)
    k = random(2, 20, 16)

    def turn(k, at, frequencies, factor=1.0):
        return apply_rope(k, *(factor * table for table in rope_tables(at, frequencies, k.dtype)), "half")

    def by(*settings):
        cache = KeyValueCache(turned, turned, at, torch.ones_like(at))
        for n in range(turns):
            cache = move_positions(cache, at - 7 * n - 7, lambda k, offsets: turn(k, offsets, *settings))
        return cache.k

    turned, true = (turn(k, each, frequencies, factor) for each in (at, at - 7 * turns))
    assert_close(by(frequencies), true, **EXACT)
    assert_close(by(frequencies, factor), true * factor**turns, **EXACT)
    assert (by(plain) - true).abs().max() > 0.1
    longer, shorter = (dynamic_ntk(plain, 2.0, 64, length) for length in (320, 100))
    factor = 1.0
    turned, true = (turn(k, each, longer) for each in (at, at - 7 * turns))
    assert_close(by(longer), true, **EXACT)
    assert (by(shorter) - true).abs().max() > 0.01


@pytest.mark.claim(
    "latents-do-not-turn",
    "In DeepSeek-V3 as implemented in transformers, a text processed at other positions has the same "
    "cached latents in each layer, and its one cached key per token rotates further like any RoPE key. "
    "Such a cache can be moved, and the next token gets the same output as with a cache computed at the "
    "new positions.",
)
@pytest.mark.parametrize("offset", [-30, 1, 500])
@pytest.mark.parametrize("interleaved", [True, False])
def test_a_cache_of_latents_moves_by_its_turned_keys(offset, interleaved):
    transformers = peer("transformers")
    config = transformers.DeepseekV3Config(
        vocab_size=32,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=3,
        first_k_dense_replace=3,
        num_attention_heads=2,
        num_key_value_heads=2,
        q_lora_rank=8,
        kv_lora_rank=6,
        qk_rope_head_dim=8,
        qk_nope_head_dim=4,
        v_head_dim=4,
        rope_interleave=interleaved,
    )
    model = transformers.DeepseekV3Model(config).double().eval()
    ids, at = torch.randint(32, (1, 8)), torch.arange(40, 48)[None]
    frequencies = rope_frequencies(8, config.rope_parameters["rope_theta"])

    @torch.no_grad()
    def read(tokens, start=0, past=None):
        places = at[:, tokens] + start
        return model(ids[:, tokens], position_ids=places, past_key_values=past, use_cache=True)

    here, there = (read(slice(7), start).past_key_values for start in (0, offset))
    for layer, other in zip(here.layers, there.layers, strict=True):
        latents, keys = layer.keys, layer.values
        assert latents.shape[-1] == 6 and keys.shape[-1] == 8
        cache = KeyValueCache(keys, latents, at[:, :7], torch.ones(1, 7).long())
        turn = lambda k, by: apply_rope(k, *rope_tables(by, frequencies, k.dtype), "half")  # noqa: E731
        cache = move_positions(cache, at[:, :7] + offset, turn)
        assert_close(cache.v, other.keys, rtol=0, atol=1e-5)
        assert_close(cache.k, other.values, rtol=0, atol=1e-5)
        assert (keys - other.values).abs().max() > 0.01
        layer.values = cache.k
    ours, theirs = (read(slice(7, 8), offset, past).last_hidden_state for past in (here, there))
    assert_close(ours, theirs, rtol=0, atol=1e-4)


@pytest.mark.claim(
    "pictures-move-with-the-text",
    "With Qwen2-VL's three-axis positions, as implemented in transformers, one offset for all three axes "
    "rotates the keys of text and images as plain RoPE does; an offset on a single axis does not.",
)
@pytest.mark.parametrize("offset", [-5, 1, 300])
def test_one_offset_for_three_axes_is_a_turn_of_rope(offset):
    theirs = peer("transformers.models.qwen2_vl.modeling_qwen2_vl")
    config = peer("transformers").Qwen2VLTextConfig(
        hidden_size=32,
        num_attention_heads=2,
        num_key_value_heads=2,
        rope_parameters={"rope_type": "default", "rope_theta": 100.0, "mrope_section": [2, 3, 3]},
    )
    rotary, k = theirs.Qwen2VLRotaryEmbedding(config), random(1, 2, 7, 16)
    frequencies = rope_frequencies(16, 100.0)
    text = torch.arange(10, 12).expand(3, 2)
    picture = torch.tensor([[12, 12, 12, 12], [12, 12, 13, 13], [12, 13, 12, 13]])
    at = torch.cat((text, picture, torch.full((3, 1), 14)), -1)[:, None]

    def turned(at):
        cos, sin = rotary(k, at)
        return apply_rope(k, cos[..., :8], sin[..., :8], "half")

    by = torch.full((1, 7), offset)
    turn = lambda k, by: apply_rope(k, *rope_tables(by, frequencies, k.dtype), "half")  # noqa: E731
    row = torch.arange(7)[None]
    cache = KeyValueCache(turned(at), k, row, row)
    ours = move_positions(cache, row + by, turn).k
    assert_close(ours, turned(at + offset), rtol=0, atol=1e-4)
    for axis in range(3):
        alone = at.clone()
        alone[axis] += offset
        assert (ours - turned(alone)).abs().max() > 0.01


@pytest.mark.parametrize("rows", [(), (1,), (2,), (3, 2)])
def test_kept_takes_keys_at_their_places(rows):
    """In any order, for all rows or for each, where positions may be one row for all."""
    k, v = random(*rows, HEADS, 6, DIM), random(*rows, HEADS, 6, 5)
    for shared in {rows, (1,) * len(rows)}:
        positions, documents = (torch.randint(9, (*shared, 6)) for _ in "pd")
        cache = KeyValueCache(k, v, positions, documents)
        for leading in {(), shared, rows, (1,) * len(rows)}:
            places = torch.rand(*leading, 6).argsort(-1)[..., :4]
            new = keep_slots(cache, places.to(torch.uint8))
            assert new.positions.shape == (*torch.broadcast_shapes(shared, leading), 4)
            for row in itertools.product(*map(range, rows)):
                at = places.expand(*rows, 4)[row]
                assert torch.equal(new.k[row], k[row][:, at]) and torch.equal(new.v[row], v[row][:, at])
                for made, old in ((new.positions, positions), (new.documents, documents)):
                    assert torch.equal(made.expand(*rows, 4)[row], old.expand(*rows, 6)[row][at])
    assert keep_slots(cache, torch.zeros(0).long()).k.shape == (*rows, HEADS, 0, DIM)
    with pytest.raises(RuntimeError, match="out of bounds"):
        keep_slots(cache, torch.tensor([6]))


@pytest.mark.parametrize("rows", [(), (1,), (2,), (3, 2)])
def test_moved_tells_how_far_each_token_moves(rows):
    k, told = random(*rows, HEADS, 6, DIM), []
    for shared in {rows, (1,) * len(rows)}:
        at = torch.randint(9, (*shared, 6))
        cache = KeyValueCache(k, k + 1, at.to(torch.uint8), at > 3)
        for leading in {(), shared, rows, (1,) * len(rows)}:
            new = torch.randint(9, (*leading, 6), dtype=torch.uint8)  # offsets below 0 are not wrapped
            made = move_positions(cache, new, lambda k, by: told.append(by) or k + 2)
            assert torch.equal(told[-1], new.long() - at)
            assert torch.equal(made.k, k + 2) and made.v is cache.v
            each = torch.broadcast_shapes(shared, leading)
            assert torch.equal(made.positions, new.expand(*each, 6))
            assert torch.equal(made.documents, (at > 3).expand(*each, 6))
            assert move_positions(cache, new, None).k is k
    assert torch.equal(cache.positions, at)


def test_a_cache_of_all_layers_is_kept_and_moved_at_once():
    frequencies, k = rope_frequencies(DIM, base=10000), random(4, 2, HEADS, 5, DIM)
    old, new = torch.tensor([[0, 0, 1, 2, 3], [0, 1, 2, 3, 4]]), torch.tensor([[0, 1, 2], [7, 8, 9]])

    def turn(k, by):
        return apply_rope(k, *rope_tables(by, frequencies, k.dtype), "half")

    def each(k, by):
        return torch.stack([turn(layer, by[0]) for layer in k])

    cache, places = KeyValueCache(k, k, old[None], old[None] * 0), torch.tensor([1, 2, 4])
    cache = move_positions(keep_slots(cache, places), new, each)
    assert cache.positions.tolist() == [new.tolist()]
    for n in range(4):
        alone = move_positions(keep_slots(KeyValueCache(k[n], k[n], old, old * 0), places), new, turn)
        assert torch.equal(cache.k[n], alone.k) and torch.equal(cache.v[n], alone.v)


def test_each_head_may_keep_keys_of_its_own():
    """Heads as an axis of texts, each with one head."""
    q, k, v = random(2, HEADS, 1, DIM), random(2, HEADS, 6, DIM), random(2, HEADS, 6, DIM)
    at = torch.arange(6).expand(2, HEADS, 6)
    cache = KeyValueCache(k[:, :, None], v[:, :, None], at, torch.ones_like(at))
    places = torch.rand(2, HEADS, 6).argsort(-1)[..., :3]
    cache, now = keep_slots(cache, places), torch.full((2, HEADS, 1), 6)
    seen = attention_mask(now, cache.positions, torch.ones_like(now), cache.documents)
    made = attend(q[:, :, None], cache.k, cache.v, seen)[:, :, 0]
    hidden = torch.full((2, HEADS, 1, 6), -INF).double().scatter(-1, places[:, :, None], 0.0)
    assert_close(made, attention(q, k, v, hidden)[0], **EXACT)


@refusals
def test_refuses_to_keep_and_to_move():
    whole = "a tensor of uint8 or int8 to int64"
    k, at = torch.zeros(2, 3, 4, 8), torch.arange(4)[None]
    layers, row = torch.zeros(3, 2, 1, 4, 8), torch.zeros(1, 1, 4).long()

    def keep(places):
        return keep_slots(KeyValueCache(k, k, at, at), places)

    def move(positions, turn=None):
        return move_positions(KeyValueCache(k, k, at, at), positions, turn)

    def keep_deep(places):
        return keep_slots(KeyValueCache(layers, layers, row, row), places)

    def move_deep(positions):
        return move_positions(KeyValueCache(layers, layers, row, row), positions, None)

    for wrong, got in (([0], "list"), (torch.zeros(4), "torch.float32"), (torch.ones(4) > 0, "torch.bool")):
        yield f"slots must be {whole}, got {got}", keep, wrong
        yield f"positions must be {whole}, got {got}", move, wrong
    may = "where any axis but the last may be 1 or missing, got"
    for shape in ((), (3, 2), (1, 1, 2)):
        yield f"slots must be (2, 'kept'), {may} {shape}", keep, torch.zeros(shape).long()
    for shape in ((), (3,), (1, 5), (3, 4), (1, 2, 4)):
        yield f"positions must be (2, 4), {may} {shape}", move, torch.zeros(shape).long()
    yield f"slots must be (3, 2, 'kept'), {may} (4, 1, 2)", keep_deep, row.expand(4, 1, 4)[..., :2]
    yield f"positions must be (3, 2, 4), {may} (4, 1, 4)", move_deep, row.expand(4, 1, 4)
    for message, turn in (
        ("k as (2, 3, 4, 8), got (2, 3, 4, 6)", lambda k, by: k[..., :6]),
        ("k as torch.float32, got torch.float64", lambda k, by: k.double()),
    ):
        yield f"rotate must give {message}", move, at, turn


# --- positions and masks


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(1, 4)), min_size=1, max_size=5))
def test_positions_count_from_zero_in_every_run(runs):
    runs = [run for n, run in enumerate(runs) if n == 0 or run[0] != runs[n - 1][0]]
    documents = torch.tensor([number for number, length in runs for _ in range(length)])
    want = [place for _, length in runs for place in range(length)]
    assert document_positions(documents).tolist() == want
    assert torch.equal(document_positions(documents), packed_positions(documents))


@given(st.integers(0, 5), st.integers(1, 5))
def test_a_padding_mask_is_a_document(padding, tokens):
    mask = torch.tensor([0] * padding + [1] * tokens)
    for given_mask in (mask, mask.bool(), mask.to(torch.uint8)):
        made = document_positions(given_mask)
        assert made.dtype == torch.int64
        assert torch.equal(made[padding:], padded_positions(mask)[padding:])


@given(st.integers(0, 10_000), st.booleans(), st.none() | st.integers(1, 5))
def test_visible_is_its_definition(seed, causal, window):
    generator = torch.Generator().manual_seed(seed)
    i, j = (torch.randint(4, (2, n), generator=generator) for n in (3, 5))
    a, b = (torch.randint(3, (2, n), generator=generator) for n in (3, 5))
    made = attention_mask(i, j, a, b, causal, window)
    for row in range(2):
        for query in range(3):
            for key in range(5):
                same = a[row, query] == b[row, key]
                early = j[row, key] <= i[row, query] or not causal
                near = window is None or abs(j[row, key] - i[row, query]) < window
                assert made[row, query, key] == (same and early and near)


def test_every_token_sees_itself_so_that_no_row_is_all_hidden():
    documents = torch.tensor([[0, 0, 1, 1, 2], [3, 4, 4, 4, 0]])
    positions = document_positions(documents)
    for causal in (True, False):
        seen = attention_mask(positions, positions, documents, documents, causal)
        assert seen.diagonal(dim1=-2, dim2=-1).all()


def test_without_causal_packed_texts_see_all_of_themselves():
    layer, texts = Layer("rope half"), random(2, 3, WIDTH)
    documents = torch.tensor([[0, 0, 0, 1, 1, 1]])
    positions = document_positions(documents)
    q, k, v = layer.project(texts.flatten(0, 1)[None], positions)
    made = attend(q, k, v, attention_mask(positions, positions, documents, documents, causal=False))
    for n in range(2):
        part = layer.project(texts[[n]], positions[:, :3])
        assert_close(made[..., 3 * n : 3 * n + 3, :], attention(*part)[0], **EXACT)


# --- other libraries


def test_agrees_with_the_positions_of_transformers(same_as):
    utils = peer("transformers.generation.utils")
    mask = (torch.arange(9) >= torch.tensor([[0], [3], [8]])).long()
    self = types.SimpleNamespace(config=types.SimpleNamespace(is_encoder_decoder=False))
    theirs = utils.GenerationMixin._prepare_position_ids_for_generation(self, mask, {"attention_mask": mask})
    ours = document_positions(mask)
    same_as("transformers.generation.utils.GenerationMixin", ours * mask, theirs * mask)


def test_agrees_with_the_document_mask_of_attention_gym(same_as):
    masks = peer("attn_gym.masks")
    document_mask = peer("attn_gym.masks.document_mask")
    lengths = [3, 1, 5, 2]
    offsets = document_mask.length_to_offsets(lengths, "cpu")
    theirs = masks.generate_doc_mask_mod(masks.causal_mask, offsets)
    documents = torch.arange(4).repeat_interleave(torch.tensor(lengths))
    positions = document_positions(documents)
    i, j = torch.arange(11)[:, None], torch.arange(11)
    ours = attention_mask(positions, positions, documents, documents)
    same_as("attn_gym.masks.generate_doc_mask_mod", ours, theirs(0, 0, i, j))


@pytest.mark.claim(
    "a-window-counts-the-token-itself",
    "With causal, a window of n lets a token attend to n keys, including its own, as sliding_window does "
    "in transformers' masks for Mistral, Gemma 3 and gpt-oss. ModernBERT's sliding_window, and the "
    "window_size that transformers passes to FlashAttention, give the number of keys on one side, not "
    "counting the token's own.",
)
@pytest.mark.parametrize("window", [1, 2, 5, 40])
def test_windows_are_those_of_transformers(window, same_as):
    masks = peer("transformers.masking_utils")
    at, documents = torch.arange(20), torch.zeros(20, dtype=torch.int64)
    i, j = at[:, None], at
    for causal, theirs in (
        (True, masks.sliding_window_causal_mask_function(window)),
        (False, masks.sliding_window_bidirectional_mask_function(window - 1)),
    ):
        ours = attention_mask(at, at, documents, documents, causal, window)
        same_as("transformers.masking_utils (sliding windows)", ours, torch.as_tensor(theirs(0, 0, i, j)))
        if causal:
            assert torch.equal(ours.sum(-1), (at + 1).clamp(max=window))
    flash = peer("transformers.modeling_flash_attention_utils")
    given = flash._process_flash_attention_kwargs(
        99, 99, True, sliding_window=window, supports_mapping=collections.defaultdict(bool, window_size=True)
    )
    left, _ = given["window_size"]
    assert torch.equal(
        attention_mask(at, at, documents, documents, window=window), (i - left <= j) & (j <= i)
    )


@pytest.mark.claim(
    "a-window-counts-the-token-itself",
    "With causal, a window of n lets a token attend to n keys, including its own, as sliding_window does "
    "in transformers' masks for Mistral, Gemma 3 and gpt-oss. ModernBERT's sliding_window, and the "
    "window_size that transformers passes to FlashAttention, give the number of keys on one side, not "
    "counting the token's own.",
)
@pytest.mark.parametrize(
    ("kind", "sizes", "window"),
    [
        ("Mistral", {"sliding_window": 3}, 3),
        ("Gemma3Text", {"sliding_window": 3, "layer_types": ["sliding_attention"]}, 3),
        ("GptOss", {"sliding_window": 3, "layer_types": ["sliding_attention"]}, 3),
        ("ModernBert", {"local_attention": 4, "layer_types": ["sliding_attention"]}, 3),
    ],
)
def test_a_model_of_transformers_sees_what_its_window_says(kind, sizes, window):
    """A change of a token moves the outputs of one layer at exactly those that see it."""
    transformers = peer("transformers")
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=9,
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=4,
        pad_token_id=0,
        **sizes,
        **({"num_local_experts": 2, "num_experts_per_tok": 2} if kind == "GptOss" else {}),
    )
    config._attn_implementation = "eager"
    model = getattr(transformers, f"{kind}Model")(config).eval()
    ids, at, one = torch.tensor([[1, 2, 3, 4, 5, 6, 7]]), torch.arange(7), torch.ones(7, dtype=torch.int64)
    seen = attention_mask(at, at, one, one, causal=kind != "ModernBert", window=window)
    with torch.no_grad():
        before = model(ids).last_hidden_state[0]
        for key in range(7):
            changed = ids.clone()
            changed[0, key] = 8
            moved = (model(changed).last_hidden_state[0] - before).abs().amax(-1) > 0
            assert torch.equal(moved, seen[:, key])


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8])
def test_positions_of_a_narrow_dtype_do_not_wrap_round_in_a_window(dtype):
    most = torch.iinfo(dtype).max
    at, one = torch.tensor([0, 1, most - 1, most]), torch.ones(4, dtype=torch.int64)
    for causal in (True, False):
        expected = attention_mask(at, at, one, one, causal, window=2)
        assert torch.equal(attention_mask(at.to(dtype), at.to(dtype), one, one, causal, window=2), expected)


@pytest.mark.parametrize("window", [0, -1])
def test_refuses_a_window_in_which_no_token_sees_itself(window):
    at = torch.arange(3)
    refused(f"window must be at least 1, got {window}", attention_mask, at, at, at, at, window=window)


# --- flex_attention


def flex(q, k, v, positions, documents, score_mod=None, **options):
    mask_mod = flex_attention_mask(positions, positions, documents, documents)
    tokens = q.shape[-2]
    block = create_block_mask(mask_mod, len(q), None, tokens, tokens, device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it was not compiled
        return flex_attention(q, k, v, score_mod=score_mod, block_mask=block, **options)


@pytest.mark.claim(
    "flex-agrees-with-sdpa",
    "ALiBi, T5's bias, the clipped bias, KERPLE and Sandwich need only one number per head and distance: "
    "flex_attention with these numbers gives the same outputs as scaled_dot_product_attention with a bias "
    "for each pair.",
)
@pytest.mark.parametrize("name", DISTANCES)
@pytest.mark.parametrize("tokens", [1, 7, 60])
def test_biases_that_read_distances_fit_flex_attention(name, tokens):
    bias = METHODS[name]().bias
    column = torch.arange(tokens)
    documents = torch.stack([column >= 2, column >= tokens - 3]).long()
    positions = document_positions(documents)
    q, k, v = random(3, 2, HEADS, tokens, DIM)
    expected = attend(
        q, k, v, attention_mask(positions, positions, documents, documents), bias(positions, positions)
    )
    by_distance = bias(column[-1:], column)[:, 0].flip(-1)
    made = flex(q, k, v, positions, documents, flex_bias(by_distance, positions, positions))
    assert_close(made, expected, **close(name))


@pytest.mark.parametrize("name", ["none", "rope half", "xpos", "sinusoidal"])
def test_what_enters_before_the_scores_needs_the_mask_only(name):
    layer, documents = Layer(name), torch.tensor([[0, 0, 1, 1, 1, 2]])
    positions = document_positions(documents)
    q, k, v = layer.project(random(1, 6, WIDTH), positions)
    expected = attend(q, k, v, attention_mask(positions, positions, documents, documents))
    assert_close(flex(q, k, v, positions, documents), expected, **EXACT)


def test_by_distance_is_nearest_first():
    row = alibi_bias(torch.tensor([9]), torch.arange(10), alibi_slopes(4))[:, 0].flip(-1)
    assert_close(row, -alibi_slopes(4)[:, None] * torch.arange(10))


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("window", [None, 1, 3])
def test_flex_visible_is_visible(window, causal):
    documents = torch.tensor([[0, 0, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 2, 2]])
    at = document_positions(documents)
    row, i, j = torch.arange(2)[:, None, None], torch.arange(7)[:, None], torch.arange(7)
    expected = attention_mask(at, at, documents, documents, causal, window)
    for positions in (at, at.to(torch.uint8)):
        mask_mod = flex_attention_mask(positions, positions, documents, documents, causal, window)
        assert torch.equal(mask_mod(row, None, i, j), expected)
    refused("window must be at least 1, got 0", flex_attention_mask, at, at, at, at, window=0)


@pytest.mark.claim(
    "flex-is-told-of-fewer-key-heads",
    "flex_attention with fewer key heads than query heads raises an error unless it is called with "
    "enable_gqa=True; with it, the output equals that of attend.",
)
@pytest.mark.parametrize("key_heads", [1, 2])
def test_flex_attention_with_fewer_key_heads_needs_enable_gqa(key_heads):
    documents = torch.tensor([[0, 0, 1, 1, 1, 1]])
    at, q, (k, v) = document_positions(documents), random(1, 4, 6, DIM), random(2, 1, key_heads, 6, DIM)
    with pytest.raises(ValueError, match="enable_gqa=True"):
        flex(q, k, v, at, documents)
    expected = attend(q, k, v, attention_mask(at, at, documents, documents))
    assert_close(flex(q, k, v, at, documents, enable_gqa=True), expected, **EXACT)


@pytest.mark.parametrize("name", ["none", "alibi"])
def test_one_row_of_positions_serves_every_text_of_flex_attention(name):
    documents = torch.tensor([[0, 0, 1, 1, 1, 1]])
    at, (q, k, v) = document_positions(documents), random(3, 3, HEADS, 6, DIM)
    bias = alibi_bias(at, at, alibi_slopes(HEADS), q.dtype) if name == "alibi" else None
    by_distance = -alibi_slopes(HEADS).double()[:, None] * torch.arange(6)
    score_mod = flex_bias(by_distance, at.to(torch.uint8), at.to(torch.uint8)) if name == "alibi" else None
    expected = attend(q, k, v, attention_mask(at, at, documents, documents), bias)
    assert_close(flex(q, k, v, at, documents, score_mod), expected, **EXACT)


def test_keys_that_the_mask_hides_need_no_distance_of_their_own():
    at = torch.tensor([[3, 4, 9]])
    score_mod = flex_bias(torch.tensor([[1.0, 5.0]]), at, at)
    scores = [score_mod(torch.tensor(10.0), 0, 0, i, j).item() for i, j in ((1, 0), (1, 1), (1, 2), (0, 2))]
    assert scores == [15, 11, 11, 11]
    with pytest.raises(IndexError):
        score_mod(torch.tensor(10.0), 0, 0, 2, 0)


# --- kernels, dtypes, gradients, compilation


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("batch", [(), (1,), (2,)])
def test_one_mask_serves_all_rows_or_each_has_its_own(batch, biased):
    q, k, v = random(2, HEADS, 3, DIM), random(2, HEADS, 4, DIM), random(2, HEADS, 4, 5)
    seen = torch.rand(*batch, 3, 4) < 0.5
    seen[..., 0] = True
    bias = random(HEADS, 3, 4) if biased else None
    hidden = torch.zeros(2, HEADS, 3, 4, dtype=torch.float64)
    hidden.masked_fill_(~seen[..., None, :, :], -INF)
    expected = attention(q, k, v, hidden if bias is None else hidden + bias)[0]
    assert_close(attend(q, k, v, seen, bias), expected, **EXACT)


RECIPES = [  # leading axes of q, of what is seen, of the bias, heads of k
    (batch, seen, bias, key_heads)
    for batch in ((), (1,), (3,), (2, 3))
    for seen in ((), (1,), batch)
    for bias in (None, (), (4,), (1, 4), (*batch, 4), (*batch, 1))
    for key_heads in (4, 2)
    if (seen in ((), batch) or len(batch) == 1) and len(bias or ()) <= len(batch) + 1
]


@pytest.mark.claim(
    "attend-takes-the-fused-kernel",
    "attend runs in torch's fused CPU kernel with or without batch axes in the mask and in the bias, with "
    "fewer key heads than query heads, and with unbatched queries. Its output matches the definition of "
    "attention.",
)
@pytest.mark.parametrize("queries", [1, 5])
@pytest.mark.parametrize(("batch", "seen", "bias", "key_heads"), dict.fromkeys(RECIPES))
def test_every_recipe_runs_in_the_fused_kernel(batch, seen, bias, key_heads, queries):
    q, k, v = random(*batch, 4, queries, DIM), *(random(*batch, key_heads, 5, DIM) for _ in "kv")
    seen = torch.rand(*seen, queries, 5) < 0.5
    seen[..., 0] = True
    bias = None if bias is None else random(*bias, queries, 5)
    with torch.no_grad(), sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        made = attend(q, k, v, seen, bias)
    hidden = torch.zeros(*batch, 4, queries, 5).double().masked_fill(~seen[..., None, :, :], -INF)
    k, v = (each.repeat_interleave(4 // key_heads, -3) for each in (k, v))
    assert_close(made, attention(q, k, v, hidden if bias is None else hidden + bias)[0], **EXACT)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("name", sorted(set(METHODS)))
def test_every_method_runs_in_the_fused_kernel_as_its_positions_come(name, rows):
    """Positions and documents for all texts, or for each: (1, tokens) or (3, tokens)."""
    layer, documents = Layer(name), torch.tensor([[0, 1, 1, 1, 2]]).expand(rows, 5)
    positions = document_positions(documents)
    q, k, v = layer.project(random(3, 5, WIDTH), positions)
    seen, method = attention_mask(positions, positions, documents, documents), layer.method
    with torch.no_grad(), sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        if method.score:
            made = attend(q, k, v, seen, method.score(q, k, positions, positions), scale=0.0)
        else:
            made = attend(q, k, v, seen, method.bias and method.bias(positions, positions))
    assert made.isfinite().all()


def test_a_bias_that_learns_or_values_of_another_width_take_another_kernel():
    q, seen = random(1, 2, 3, DIM), torch.ones(3, 3, dtype=torch.bool)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # why it is not available
        attend(q, q, q, seen, random(2, 3, 3))
        across = q.mT.contiguous().mT  # its last axis is not contiguous
        learned = random(2, 3, 3).requires_grad_()
        for k, v, bias in ((q, q, learned), (q, q[..., :5], None), (across, q, None), (q, across, None)):
            with pytest.raises(RuntimeError, match="No available kernel"):
                attend(q, k, v, seen, bias)


def test_what_autocast_casts_may_have_more_than_one_dtype():
    q, seen, bias = random(1, 2, 3, DIM), torch.ones(3, 3, dtype=torch.bool), random(2, 3, 3)
    given = q.float(), q.bfloat16(), q.float(), seen
    with torch.autocast("cpu", torch.bfloat16):
        for one in (None, bias.float(), bias.bfloat16()):
            assert attend(*given, one).dtype == torch.bfloat16
    kinds = torch.float32, torch.bfloat16, torch.float32
    refused(f"q, k and v must be of one dtype, got {kinds}", attend, *given)
    message = "bias must be of q's dtype, torch.float32, or float32, got torch.float64"
    refused(message, attend, *[q.float()] * 3, seen, bias)
    attend(*[q.bfloat16()] * 3, seen, bias.float())


def test_a_scale_of_zero_leaves_the_bias_alone():
    q, k, v, scores = random(2, 3, DIM), random(2, 4, DIM), random(2, 4, DIM), random(2, 3, 4)
    seen = torch.ones(3, 4, dtype=torch.bool)
    for backend in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION):
        with sdpa_kernel(backend):
            made = attend(q[None], k[None], v[None], seen, scores[None], scale=0.0)[0]
        assert_close(made, scores.softmax(-1) @ v, **EXACT)
    scaled = attend(q, k, v, seen, scale=0.3)
    assert_close(scaled, (0.3 * q @ k.mT).softmax(-1) @ v, **EXACT)


@pytest.mark.parametrize("key_heads", [1, 2, 4])
@pytest.mark.parametrize("biased", [False, True])
def test_a_key_head_serves_its_query_heads_in_turn(key_heads, biased):
    q, k, v = random(2, 4, 3, DIM), random(2, key_heads, 5, DIM), random(2, key_heads, 5, 6)
    seen, bias = torch.ones(3, 5, dtype=torch.bool).tril(2), random(4, 3, 5) if biased else None
    repeated = (each.repeat_interleave(4 // key_heads, -3) for each in (k, v))
    assert_close(attend(q, k, v, seen, bias), attend(q, *repeated, seen, bias), **EXACT)


def test_refuses_key_heads_that_cannot_be_shared_out():
    q, k, seen = torch.zeros(1, 4, 3, 8), torch.zeros(1, 3, 3, 8), torch.ones(3, 3, dtype=torch.bool)
    message = "k and v must have heads that divide the 4 of q, got"
    refused(f"{message} 3 and 3", attend, q, k, k, seen)
    refused(f"{message} 4 and 3", attend, q, q, k, seen)
    refused(f"{message} 8 and 8", attend, q, q.repeat(1, 2, 1, 1), q.repeat(1, 2, 1, 1), seen)


@pytest.mark.slow
def test_steps_with_a_static_cache_compile_into_one_graph_for_all():
    def step(q, k, v, at, documents, room):
        write_slots(room, at[0], k, v, at, documents)
        return attend(q, room.k, room.v, attention_mask(at, room.positions, documents, room.documents))

    torch.compiler.reset()
    counters.clear()
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    q, k, v = random(3, 1, HEADS, 7, DIM)
    prompt = KeyValueCache(k[..., :3, :], v[..., :3, :], *counted(0, 3))
    ours, other = pad_cache(prompt, 8), pad_cache(prompt, 8)
    for n in range(3, 7):
        new = (*(x[..., n : n + 1, :] for x in (q, k, v)), *counted(n, n + 1))
        assert_close(compiled(*new, ours), step(*new, other), **EXACT)
    assert counters["stats"]["unique_graphs"] == 1


# --- the cache keeps what it is given


def test_a_static_cache_begins_with_a_copy():
    k, v = random(2, 1, HEADS, 3, DIM)
    prompt = KeyValueCache(k, v, *counted(0, 3))
    room = pad_cache(prompt, 5)
    write_slots(room, torch.tensor([4, 3]), k[..., :2, :] + 1, v[..., :2, :] + 1, *counted(3, 5))
    assert torch.equal(room.k, torch.cat((k, k[..., [1, 0], :] + 1), -2))
    assert torch.equal(room.v, torch.cat((v, v[..., [1, 0], :] + 1), -2))
    assert room.positions.tolist() == [[0, 1, 2, 4, 3]] and room.documents.tolist() == [[1] * 5]
    with pytest.raises(IndexError):
        write_slots(room, torch.tensor([5]), k[..., :1, :], v[..., :1, :], *counted(5, 6))
    pad_cache(prompt, 3).k.zero_()
    assert prompt.k is k and prompt.k.abs().min() > 0
    refused("slots must be 3 or more, got 2", pad_cache, prompt, 2)


@pytest.mark.parametrize("texts", [(), (2,), (2, 3)])
def test_a_static_cache_has_as_many_axes_of_texts_as_what_it_is_given(texts):
    k = random(*texts, HEADS, 4, DIM)
    at = torch.arange(4).expand(*texts, 4)
    parts = [
        (k[..., rows, :], k[..., rows, :], at[..., rows], at[..., rows] + 1)
        for rows in (slice(3), slice(3, 4))
    ]
    room = pad_cache(KeyValueCache(*parts[0]), 4)
    write_slots(room, torch.tensor([3]), *parts[1])
    assert torch.equal(room.k, k) and torch.equal(room.v, k)
    assert torch.equal(room.positions, at) and torch.equal(room.documents, at + 1)


def test_a_padding_mask_may_be_the_documents_of_a_static_cache():
    k, at = random(1, HEADS, 2, DIM), torch.tensor([[0, 0]])
    room = pad_cache(KeyValueCache(k, k, at, torch.tensor([[False, True]])), 3)
    write_slots(
        room, torch.tensor([2]), k[..., :1, :], k[..., :1, :], at[:, :1].int() + 1, torch.tensor([[True]])
    )
    assert room.documents.tolist() == [[0, 1, 1]]


def test_a_cache_is_left_as_it_is():
    k, v = random(2, 1, HEADS, 3, DIM)
    positions, documents = torch.tensor([[5, 2, 9]]), torch.tensor([[1, 4, 7]])
    kept = KeyValueCache(k, v, positions, documents)
    longer = kept.extend(k + 1, v + 1, positions + 3, documents + 1)
    assert kept.k is k and kept.v is v and kept.positions is positions and kept.documents is documents
    for part, old, new, axis in (
        ("k", k, k + 1, -2),
        ("v", v, v + 1, -2),
        ("positions", positions, positions + 3, -1),
        ("documents", documents, documents + 1, -1),
    ):
        assert torch.equal(getattr(longer, part), torch.cat((old, new), axis))
        assert torch.equal(getattr(longer.first(2), part), old.narrow(axis, 0, 2))


def test_values_may_be_of_another_width_than_keys():
    positions, documents = counted(0, 3)
    kept = KeyValueCache(random(1, HEADS, 3, DIM), random(1, HEADS, 3, 5), positions, documents)
    assert kept.extend(kept.k, kept.v, positions, documents).v.shape == (1, HEADS, 6, 5)


@pytest.mark.parametrize("leading", [(), (2, 3)])
def test_a_cache_may_have_any_leading_axes(leading):
    k, at = random(*leading, HEADS, 3, DIM), torch.arange(3).expand(*leading, 3)
    longer = KeyValueCache(k, k, at, at).extend(k, k, at + 3, at)
    assert longer.k.shape == longer.v.shape == (*leading, HEADS, 6, DIM)
    assert longer.positions.shape == longer.documents.shape == (*leading, 6)
    assert torch.equal(longer.first(3).k, k)
    want, got = (*leading, "heads", 3, "dim"), (*leading, HEADS, 2, DIM)
    refused(f"k must be {want} for these positions, got {got}", KeyValueCache, k[..., :2, :], k, at, at)


# --- what is refused, and in which words


@refusals
def test_refuses_positions_and_documents():
    one, two, three = torch.zeros(1).long(), torch.zeros(2, 3), torch.zeros(3).long()
    names = "query positions", "key positions", "query documents", "key documents"
    both, whole = (attention_mask, flex_attention_mask), "uint8 or int8 to int64"
    no_integers = (
        ([0], "list"),
        (torch.zeros(1), "torch.float32"),
        (torch.zeros(1) + 0j, "torch.complex64"),
        (torch.zeros(1, dtype=torch.uint16), "torch.uint16"),
        (torch.zeros(1) > 0, "torch.bool"),
    )
    for wrong, got in no_integers:
        may_be_mask = got == "torch.bool"
        for place, name in enumerate(names[: 2 if may_be_mask else 4]):
            given = [one] * 4
            given[place] = wrong
            message = f"{name} must be a tensor of {'bool, ' if place > 1 else ''}{whole}, got {got}"
            for function in both:
                yield message, function, *given
            if place < 2:
                yield message, flex_bias, two, *given[:2]
        if not may_be_mask:
            message = f"documents must be a tensor of bool, {whole}, got {got}"
            yield message, document_positions, wrong
    for shape in ((), (2,), (1, 3)):
        message = f"positions and documents must be of one shape, got {shape} and (3,)"
        other, k = torch.zeros(shape).long(), torch.zeros(HEADS, 3, DIM)
        yield f"query {message}", attention_mask, other, three, three, three
        for function in both:
            yield f"key {message}", function, three, other, three, three
        yield f"key {message}", KeyValueCache, k, k, other, three
    message = "query positions and documents must be of one shape, got () and ()"
    yield message, attention_mask, one[0], one, one[0], one
    for shape in ((3,), (1, 2, 3)):
        message = f"by_distance must be (heads, distances), got {shape}"
        yield message, flex_bias, torch.zeros(shape), three[None], three[None]
    message = "positions must be ({0}, queries) and ({0}, keys), equal before the last axis, got {1} and {2}"
    for queries, keys in (((2, 3), (4, 5)), ((2, 3), (1, 5)), ((1, 3), (2, 5)), ((3,), (1, 5))):
        i, j = torch.zeros(queries).long(), torch.zeros(keys).long()
        yield message.format("...", queries, keys), attention_mask, i, j, i, j
        yield message.format("...", queries, keys), attention_mask, i, j, i, j, False
        yield message.format("batch", queries, keys), flex_attention_mask, i, j, i, j
        yield message.format("batch", queries, keys), flex_bias, two, i, j
    for shape in ((3,), (2, 2, 3)):  # flex_attention needs one axis of rows
        at = torch.zeros(shape).long()
        yield message.format("batch", shape, shape), flex_attention_mask, at, at, at, at
        yield message.format("batch", shape, shape), flex_bias, two, at, at


@refusals
def test_refuses_keys_and_values():
    at, k = torch.zeros(2, 3).long(), torch.zeros(2, 4, 3, 5)

    def extended(*given):
        return KeyValueCache(k, k, at, at).extend(*given)

    want = "must be (2, 'heads', 3, 'dim') for these positions"
    for shape in ((3, 4, 3, 5), (2, 4, 4, 5), (2, 3, 5), (2, 4, 3)):
        wrong = torch.zeros(shape)
        yield f"k {want}, got {shape}", KeyValueCache, wrong, k, at, at
        yield f"v {want}, got {shape}", KeyValueCache, k, wrong, at, at
        yield f"v {want}, got {shape}", extended, k, wrong, at, at
    want = "must be ('heads', 3, 'dim') for these positions"
    yield f"k {want}, got (3, 5)", KeyValueCache, k[0, 0], k[0], at[0], at[0]
    yield f"v {want}, got (3, 5)", KeyValueCache, k[0], k[0, 0], at[0], at[0]
    message = "v must be (2, 4, 3, 'dim'), as k, got {}"
    yield message.format((2, 1, 3, 5)), KeyValueCache, k, k[:, :1], at, at
    for other in (k[:1], k[:, :1]):  # nor of other texts, where positions are for all
        yield message.format(tuple(other.shape)), KeyValueCache, k, other, at[:1], at[:1]
    want = "must be (2, 4, 'keys', 5)"
    yield f"k {want}, got (1, 4, 3, 5)", extended, k[:1], k[:1], at[:1], at[:1]
    yield f"k {want}, got (2, 2, 3, 5)", extended, k[:, :2], k[:, :2], at, at
    yield f"k {want}, got (2, 4, 3, 1)", extended, k[..., :1], k, at, at
    yield f"v {want}, got (2, 4, 3, 1)", extended, k, k[..., :1], at, at
    for keys in (-1, 4):
        yield f"keys must be 0 to 3, got {keys}", lambda n: KeyValueCache(k, k, at, at).first(n), keys
    for layers, texts in itertools.product((1, 4), ((), (3,))):
        each, of = torch.zeros(layers, *texts, HEADS, 5, DIM), torch.zeros(*texts, 5).long()
        message = (
            f"k must be {(*texts, 'heads', 5, 'dim')} for these positions, got {tuple(each.shape)}: its "
            f"positions must be {(layers, *texts, 5)}, or 1 for an axis, of layers or texts, that shares them"
        )
        yield message, KeyValueCache, each, each, of, of


@refusals
def test_attend_refuses():
    q, seen = torch.zeros(2, 3, 4), torch.ones(3, 3, dtype=torch.bool)
    for place, name in enumerate("qkv"):
        given = [q] * 3
        given[place] = q[0]
        yield f"{name} must be (..., heads, tokens, dim), got (3, 4)", attend, *given, seen
    yield "k must be as wide as q, 4, got 5", attend, q, torch.zeros(2, 3, 5), q, seen
    for dtype in (torch.float32, torch.int64):
        yield f"mask must be bool, got {dtype}", attend, q, q, q, seen.to(dtype)
    for dtype in (torch.bool, torch.int64):  # which would show what is hidden
        yield f"bias must have a floating-point dtype, got {dtype}", attend, q, q, q, seen, seen.to(dtype)
    q, k, seen = torch.zeros(2, 4, 3, 8), torch.zeros(2, 2, 5, 8), torch.ones(3, 5, dtype=torch.bool)
    for shape in ((), (5,), (5, 3), (3, 3, 5), (2, 1, 3, 5), (3, 1)):
        message = "mask must be (2, 3, 5) or (3, 5), as q and k are read as (..., heads, tokens, dim), got "
        yield f"{message}{shape}", attend, q, k, k, torch.ones(shape, dtype=torch.bool)
    for shape in ((3, 2, 5, 8), (2, 5, 8)):
        yield f"k must be (2, 2, 5, 'dim'), got {shape}", attend, q, torch.zeros(shape), k, seen
    for shape in ((2, 2, 4, 8), (1, 2, 5, 8)):
        yield f"v must be (2, 2, 5, 'value_dim'), got {shape}", attend, q, k, torch.zeros(shape), seen
    for shape in ((3, 3, 5), (4, 3, 4), (4, 1, 5), (3, 4, 3, 5), (1, 2, 4, 3, 5), (5,), ()):
        message = "bias must be (2, 4, 3, 5), where any axis but the last two may be 1 or missing, got"
        yield f"{message} {shape}", attend, q, k, k, seen, torch.zeros(shape)
    for heads in (4, 2):  # a mask that fits heads on the other axis, as apply_rope allows
        q, k, seen = torch.zeros(2, 5, 4, 8), torch.zeros(2, 5, heads, 8), torch.ones(2, 5, 5) > 0
        read = "as q and k are read as (..., heads, tokens, dim), got (2, 5, 5)"
        yield f"mask must be (2, 4, {heads}) or (4, {heads}), {read}", attend, q, k, k, seen


def test_documents_may_be_a_mask():
    at, mask = torch.arange(2)[None], torch.ones(1, 2, dtype=torch.bool)
    assert torch.equal(attention_mask(at, at, mask, mask), torch.ones(1, 2, 2).tril() > 0)


@pytest.mark.parametrize("texts", [(), (3,)])
@pytest.mark.parametrize("layers", [1, 4])
def test_positions_that_keys_of_more_axes_are_told_of_would_do(layers, texts):
    k = torch.zeros(layers, *texts, HEADS, 5, DIM)
    for axes in itertools.product(*({1, n} for n in (layers, *texts))):
        would = torch.zeros(*axes, 5).long()
        assert KeyValueCache(k, k, would, would).k is k


@pytest.mark.parametrize("n", [0, 3])
def test_a_cache_may_keep_none_or_all(n):
    at, k = torch.arange(3), torch.zeros(2, 3, 4)
    assert KeyValueCache(k, k, at, at).first(n).positions.tolist() == [0, 1, 2][:n]


def test_one_row_of_positions_serves_every_text_of_a_cache():
    at, k = torch.arange(5)[None], random(3, HEADS, 5, DIM)
    kept = KeyValueCache(k, k, at, at * 0)
    more = random(3, HEADS, 2, DIM)
    for rows in (1, 3):
        new = (at[:, :2] + 5).expand(rows, 2)
        longer = kept.extend(more, more, new, new * 0)
        assert longer.positions.tolist() == [[0, 1, 2, 3, 4, 5, 6]] * rows
        assert longer.documents.shape == (rows, 7) and longer.k.shape == (3, HEADS, 7, DIM)
        assert longer.extend(more, more, new[:1], new[:1]).positions.shape == (rows, 9)
    room = pad_cache(longer, 9)
    write_slots(
        room, torch.tensor([7]), more[..., :1, :], more[..., :1, :], torch.tensor([[7]]), torch.tensor([[0]])
    )
    assert room.positions[:, :8].tolist() == [list(range(8))] * 3
    seen = attention_mask(at, kept.positions, at * 0, kept.documents)
    assert_close(attend(k, kept.k, kept.v, seen), attend(k, k, k, seen.expand(3, 5, 5)), **EXACT)
    want = "k must be ('any', 'heads', 5, 'dim') for these positions"
    refused(f"{want}, got (3, {HEADS}, 4, {DIM})", KeyValueCache, k[..., 1:, :], k, at, at)


def test_one_cache_may_hold_all_layers_and_positions_once():
    layers, at = random(4, 2, HEADS, 5, DIM), torch.tensor([[0, 0, 1, 2, 3], [0, 1, 2, 3, 4]])
    cache = KeyValueCache(layers, layers, at[None], at[None] * 0)
    new, place = random(4, 2, HEADS, 1, DIM), at[:, -1:] + 1
    longer = cache.extend(new, new, place[None], place[None] * 0)
    assert longer.positions.shape == (1, 2, 6)
    for n in range(4):
        alone = KeyValueCache(layers[n], layers[n], at, at * 0).extend(new[n], new[n], place, place * 0)
        assert torch.equal(torch.cat((cache.k[n], new[n]), -2), alone.k)
        assert torch.equal(longer.k[n], alone.k) and torch.equal(longer.positions[0], alone.positions)
