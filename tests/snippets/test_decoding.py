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
    document_positions,
    flex_bias,
    flex_visible,
    visible,
    with_room,
    write,
)
from snippets.embed import packed_positions, padded_positions
from snippets.learned import AddLearned
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from snippets.rope_scaling import dynamic_ntk
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
        seen = visible(positions, kept.positions, documents, kept.documents)
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
    "With any encoding of the guide, decoding with a cache in which each key keeps its position gives "
    "what the whole text gives at once, in whichever pieces the tokens come.",
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
    room = with_room(prompt, places=9)
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
        write(self.room, torch.arange(self.used, self.used + new[2].shape[-1]), *new)
        return self.room


@pytest.mark.claim(
    "left-padding-changes-nothing",
    "With any encoding of the guide, a text that is padded on the left gets the outputs that it gets "
    "alone, at its prompt and at each token after it, if positions count from its first token and no "
    "token sees padding.",
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
    "With any encoding of the guide, texts packed into one row get the outputs that each gets alone, if "
    "positions begin anew with each text and no token sees another text.",
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
    "Speculative decoding: tokens that are guessed at once get the outputs of decoding one by one, and "
    "after the rejected ones are dropped from the cache nothing of them is left, with any encoding of the "
    "guide.",
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
    "CoPE and Transformer-XL count rows: right padding, or rejected tokens left in the cache, between a "
    "text's tokens changes their outputs, though no token sees it. Methods that are given positions get "
    "the same outputs.",
)
@pytest.mark.parametrize("seed", range(4))
def test_methods_that_count_rows_need_unbroken_texts(seed):
    torch.manual_seed(seed)
    assert {name for name in METHODS if gap(name) > 0.001} == COUNTING


# --- what goes wrong


@pytest.mark.claim(
    "wrong-start-hurts-absolute-only",
    "If positions count the padding too, outputs change with sinusoidal and learned positions; with the "
    "relative encodings of the guide they stay the same, FIRE up to its threshold, as long as prompt and "
    "cache count alike.",
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
    "If the positions of new tokens begin at zero again while the cache holds the text before them, the "
    "outputs change with every encoding of the guide that is given positions.",
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
    "With dynamic NTK a cache of keys that were turned when they came differs from the whole text once "
    "that is longer than the trained length; keys that are cached unturned and turned at each step, by the "
    "frequencies of that step, do not.",
)
@pytest.mark.parametrize("trained", [2, 6, 11, 12, 40])
def test_dynamic_ntk_needs_keys_that_are_turned_when_they_are_used(trained):
    q, k, v = random(3, 1, 1, 12, DIM)
    plain = rope_frequencies(DIM)

    def turned(x, positions, length):
        tables = rope_tables(positions, dynamic_ntk(plain, 2.0, trained, length), x.dtype)
        return apply_rope(x, *tables, "half")

    at, documents = torch.arange(12), torch.ones(12, dtype=torch.int64)
    seen = visible(at, at, documents, documents)
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
    "xPos needs one centre for all queries and keys that meet: with any one centre the outputs are the "
    "same, within the range of the number format, and a cache of keys scaled about another centre than the "
    "query changes them.",
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
    "torch's is_causal=True without a mask lets tokens see padding on their left and the texts before them "
    "in a packed row, and gives all but the first text other outputs than alone.",
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
    "In torch 2.13 on a CPU, a mask together with is_causal=True is an error in one kernel of "
    "scaled_dot_product_attention, and applied without a word, both of them, in another.",
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
    made = visible(i, j, a, b, causal, window)
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
        seen = visible(positions, positions, documents, documents, causal)
        assert seen.diagonal(dim1=-2, dim2=-1).all()


def test_without_causal_packed_texts_see_all_of_themselves():
    layer, texts = Layer("rope half"), random(2, 3, WIDTH)
    documents = torch.tensor([[0, 0, 0, 1, 1, 1]])
    positions = document_positions(documents)
    q, k, v = layer.project(texts.flatten(0, 1)[None], positions)
    made = attend(q, k, v, visible(positions, positions, documents, documents, causal=False))
    for n in range(2):
        part = layer.project(texts[[n]], positions[:, :3])
        assert_close(made[..., 3 * n : 3 * n + 3, :], attention(*part)[0], **EXACT)


# --- other libraries


def test_agrees_with_the_positions_of_transformers(to_ledger):
    utils = peer("transformers.generation.utils")
    mask = (torch.arange(9) >= torch.tensor([[0], [3], [8]])).long()
    self = types.SimpleNamespace(config=types.SimpleNamespace(is_encoder_decoder=False))
    theirs = utils.GenerationMixin._prepare_position_ids_for_generation(self, mask, {"attention_mask": mask})
    ours = document_positions(mask)
    to_ledger("transformers.generation.utils.GenerationMixin", ours * mask, theirs * mask)


def test_agrees_with_the_document_mask_of_attention_gym(to_ledger):
    masks = peer("attn_gym.masks")
    document_mask = peer("attn_gym.masks.document_mask")
    lengths = [3, 1, 5, 2]
    offsets = document_mask.length_to_offsets(lengths, "cpu")
    theirs = masks.generate_doc_mask_mod(masks.causal_mask, offsets)
    documents = torch.arange(4).repeat_interleave(torch.tensor(lengths))
    positions = document_positions(documents)
    i, j = torch.arange(11)[:, None], torch.arange(11)
    ours = visible(positions, positions, documents, documents)
    to_ledger("attn_gym.masks.generate_doc_mask_mod", ours, theirs(0, 0, i, j))


@pytest.mark.claim(
    "a-window-counts-the-token-itself",
    "With causal, a window of n lets a token see n keys, itself one of them, as sliding_window does in "
    "transformers' masks for Mistral, Gemma 3 and gpt-oss; that of ModernBERT, and the window_size that "
    "transformers hands to FlashAttention, say how many keys there are on a side beside the token.",
)
@pytest.mark.parametrize("window", [1, 2, 5, 40])
def test_windows_are_those_of_transformers(window, to_ledger):
    masks = peer("transformers.masking_utils")
    at, documents = torch.arange(20), torch.zeros(20, dtype=torch.int64)
    i, j = at[:, None], at
    for causal, theirs in (
        (True, masks.sliding_window_causal_mask_function(window)),
        (False, masks.sliding_window_bidirectional_mask_function(window - 1)),
    ):
        ours = visible(at, at, documents, documents, causal, window)
        to_ledger("transformers.masking_utils (sliding windows)", ours, torch.as_tensor(theirs(0, 0, i, j)))
        if causal:
            assert torch.equal(ours.sum(-1), (at + 1).clamp(max=window))
    flash = peer("transformers.modeling_flash_attention_utils")
    given = flash._process_flash_attention_kwargs(
        99, 99, True, sliding_window=window, supports_mapping=collections.defaultdict(bool, window_size=True)
    )
    left, _ = given["window_size"]
    assert torch.equal(visible(at, at, documents, documents, window=window), (i - left <= j) & (j <= i))


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
    seen = visible(at, at, one, one, causal=kind != "ModernBert", window=window)
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
        expected = visible(at, at, one, one, causal, window=2)
        assert torch.equal(visible(at.to(dtype), at.to(dtype), one, one, causal, window=2), expected)


@pytest.mark.parametrize("window", [0, -1])
def test_refuses_a_window_in_which_no_token_sees_itself(window):
    at = torch.arange(3)
    refused(f"window must be at least 1, got {window}", visible, at, at, at, at, window=window)


# --- flex_attention


def flex(q, k, v, positions, documents, score_mod=None, **options):
    mask_mod = flex_visible(positions, positions, documents, documents)
    tokens = q.shape[-2]
    block = create_block_mask(mask_mod, len(q), None, tokens, tokens, device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it was not compiled
        return flex_attention(q, k, v, score_mod=score_mod, block_mask=block, **options)


DISTANCES = ("alibi", "t5", "t5 looking back", "clipped", "kerple log", "kerple power", "sandwich")


@pytest.mark.claim(
    "flex-agrees-with-sdpa",
    "ALiBi, T5's bias, the clipped bias, KERPLE and Sandwich need one number for each head and distance: "
    "through flex_attention with these numbers, outputs agree with a bias for each pair through "
    "scaled_dot_product_attention.",
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
        q, k, v, visible(positions, positions, documents, documents), bias(positions, positions)
    )
    by_distance = bias(column[-1:], column)[:, 0].flip(-1)
    made = flex(q, k, v, positions, documents, flex_bias(by_distance, positions, positions))
    assert_close(made, expected, **close(name))


@pytest.mark.parametrize("name", ["none", "rope half", "xpos", "sinusoidal"])
def test_what_enters_before_the_scores_needs_the_mask_only(name):
    layer, documents = Layer(name), torch.tensor([[0, 0, 1, 1, 1, 2]])
    positions = document_positions(documents)
    q, k, v = layer.project(random(1, 6, WIDTH), positions)
    expected = attend(q, k, v, visible(positions, positions, documents, documents))
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
    expected = visible(at, at, documents, documents, causal, window)
    for positions in (at, at.to(torch.uint8)):
        mask_mod = flex_visible(positions, positions, documents, documents, causal, window)
        assert torch.equal(mask_mod(row, None, i, j), expected)
    refused("window must be at least 1, got 0", flex_visible, at, at, at, at, window=0)


@pytest.mark.claim(
    "flex-is-told-of-fewer-key-heads",
    "flex_attention with fewer heads of keys than of queries raises an error unless it is called with "
    "enable_gqa=True; with it, it gives what attend gives.",
)
@pytest.mark.parametrize("key_heads", [1, 2])
def test_flex_attention_with_fewer_key_heads_needs_enable_gqa(key_heads):
    documents = torch.tensor([[0, 0, 1, 1, 1, 1]])
    at, q, (k, v) = document_positions(documents), random(1, 4, 6, DIM), random(2, 1, key_heads, 6, DIM)
    with pytest.raises(ValueError, match="enable_gqa=True"):
        flex(q, k, v, at, documents)
    expected = attend(q, k, v, visible(at, at, documents, documents))
    assert_close(flex(q, k, v, at, documents, enable_gqa=True), expected, **EXACT)


@pytest.mark.parametrize("name", ["none", "alibi"])
def test_one_row_of_positions_serves_every_text_of_flex_attention(name):
    documents = torch.tensor([[0, 0, 1, 1, 1, 1]])
    at, (q, k, v) = document_positions(documents), random(3, 3, HEADS, 6, DIM)
    bias = alibi_bias(at, at, alibi_slopes(HEADS), q.dtype) if name == "alibi" else None
    by_distance = -alibi_slopes(HEADS).double()[:, None] * torch.arange(6)
    score_mod = flex_bias(by_distance, at.to(torch.uint8), at.to(torch.uint8)) if name == "alibi" else None
    expected = attend(q, k, v, visible(at, at, documents, documents), bias)
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
    "attend runs in torch's fused kernel of the CPU with or without axes for a batch of the mask and of the "
    "bias, with fewer heads of keys and without a batch of queries, and gives attention as it is defined.",
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
    seen, method = visible(positions, positions, documents, documents), layer.method
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_attend_keeps_the_dtype(dtype):
    exact = random(3, 1, HEADS, 5, DIM)
    at, documents = torch.arange(5), torch.ones(5, dtype=torch.int64)
    seen = visible(at, at, documents, documents)
    for bias in (None, alibi_bias(at, at, alibi_slopes(HEADS), dtype)):
        made = attend(*exact.to(dtype), seen, bias)
        expected = attend(*exact, seen, None if bias is None else bias.double())
        assert made.dtype == dtype
        assert (made - expected).abs().max() < 16 * torch.finfo(dtype).eps


def test_gradients():
    q, k, v = (random(1, HEADS, 3, 4).requires_grad_() for _ in range(3))
    bias = random(HEADS, 3, 3).requires_grad_()
    seen = torch.ones(3, 3, dtype=torch.bool).tril()
    assert torch.autograd.gradcheck(lambda q, k, v, b: attend(q, k, v, seen, b), (q, k, v, bias))


def test_nothing_leaves_the_device():
    documents = torch.ones(2, 3, dtype=torch.int64, device="meta")
    positions = document_positions(documents)
    seen = visible(positions, positions, documents, documents)
    x = torch.zeros(2, HEADS, 3, DIM, device="meta")
    kept = KeyValueCache(x, x, positions, documents).extend(x, x, positions, documents)
    made = attend(x, x, x, seen)
    assert {t.device.type for t in (positions, seen, made, kept.k, kept.first(1).documents)} == {"meta"}


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
        write(room, at[0], k, v, at, documents)
        return attend(q, room.k, room.v, visible(at, room.positions, documents, room.documents))

    torch.compiler.reset()
    counters.clear()
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    q, k, v = random(3, 1, HEADS, 7, DIM)
    prompt = KeyValueCache(k[..., :3, :], v[..., :3, :], *counted(0, 3))
    ours, other = with_room(prompt, 8), with_room(prompt, 8)
    for n in range(3, 7):
        new = (*(x[..., n : n + 1, :] for x in (q, k, v)), *counted(n, n + 1))
        assert_close(compiled(*new, ours), step(*new, other), **EXACT)
    assert counters["stats"]["unique_graphs"] == 1


@pytest.mark.slow
def test_a_step_compiles_into_one_graph():
    def step(q, k, v, positions, documents):
        old = KeyValueCache(
            k[..., :3, :], v[..., :3, :], document_positions(documents[:, :3]), documents[:, :3]
        )
        kept = old.extend(k[..., 3:, :], v[..., 3:, :], positions, documents[:, 3:]).first(5)
        seen = visible(positions, kept.positions, documents[:, 3:], kept.documents)
        bias = alibi_bias(positions, kept.positions, alibi_slopes(HEADS), q.dtype)
        return attend(q, kept.k, kept.v, seen, bias), kept.positions

    torch.compiler.reset()
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    for documents in ([[0, 1, 1, 1, 1, 1]], [[1, 1, 1, 1, 1, 1]]):
        documents = torch.tensor(documents)
        positions = document_positions(documents)[:, 3:]
        q, k, v = random(1, HEADS, 3, DIM), random(1, HEADS, 6, DIM), random(1, HEADS, 6, DIM)
        assert_close(compiled(q, k, v, positions, documents), step(q, k, v, positions, documents), **EXACT)


@pytest.mark.slow
def test_flex_mods_compile_into_one_graph():
    documents = torch.tensor([[0, 1, 1, 1]])
    positions = document_positions(documents)
    row = random(HEADS, 4)

    def mods(score, i, j):
        seen = flex_visible(positions, positions, documents, documents)(0, 0, i, j)
        return flex_bias(row, positions, positions)(score, 0, 1, i, j), seen

    torch.compiler.reset()
    compiled = torch.compile(mods, fullgraph=True, backend="aot_eager")
    arguments = random(4, 4), torch.arange(4)[:, None], torch.arange(4)
    assert_close(compiled(*arguments), mods(*arguments))


# --- the cache keeps what it is given


def test_a_static_cache_begins_with_a_copy():
    k, v = random(2, 1, HEADS, 3, DIM)
    prompt = KeyValueCache(k, v, *counted(0, 3))
    room = with_room(prompt, 5)
    write(room, torch.tensor([4, 3]), k[..., :2, :] + 1, v[..., :2, :] + 1, *counted(3, 5))
    assert torch.equal(room.k, torch.cat((k, k[..., [1, 0], :] + 1), -2))
    assert torch.equal(room.v, torch.cat((v, v[..., [1, 0], :] + 1), -2))
    assert room.positions.tolist() == [[0, 1, 2, 4, 3]] and room.documents.tolist() == [[1] * 5]
    with pytest.raises(IndexError):
        write(room, torch.tensor([5]), k[..., :1, :], v[..., :1, :], *counted(5, 6))
    with_room(prompt, 3).k.zero_()
    assert prompt.k is k and prompt.k.abs().min() > 0
    refused("places must be 3 or more, got 2", with_room, prompt, 2)


@pytest.mark.parametrize("texts", [(), (2,), (2, 3)])
def test_a_static_cache_has_as_many_axes_of_texts_as_what_it_is_given(texts):
    k = random(*texts, HEADS, 4, DIM)
    at = torch.arange(4).expand(*texts, 4)
    parts = [
        (k[..., rows, :], k[..., rows, :], at[..., rows], at[..., rows] + 1)
        for rows in (slice(3), slice(3, 4))
    ]
    room = with_room(KeyValueCache(*parts[0]), 4)
    write(room, torch.tensor([3]), *parts[1])
    assert torch.equal(room.k, k) and torch.equal(room.v, k)
    assert torch.equal(room.positions, at) and torch.equal(room.documents, at + 1)


def test_a_padding_mask_may_be_the_documents_of_a_static_cache():
    k, at = random(1, HEADS, 2, DIM), torch.tensor([[0, 0]])
    room = with_room(KeyValueCache(k, k, at, torch.tensor([[False, True]])), 3)
    write(room, torch.tensor([2]), k[..., :1, :], k[..., :1, :], at[:, :1].int() + 1, torch.tensor([[True]]))
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


def test_a_cache_needs_no_batch():
    kept = KeyValueCache(random(HEADS, 3, DIM), random(HEADS, 3, DIM), torch.arange(3), torch.arange(3))
    assert kept.first(2).k.shape == (HEADS, 2, DIM)


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
    both, whole = (visible, flex_visible), "uint8 or int8 to int64"
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
        yield f"query {message}", visible, other, three, three, three
        for function in both:
            yield f"key {message}", function, three, other, three, three
        yield f"key {message}", KeyValueCache, k, k, other, three
    message = "query positions and documents must be of one shape, got () and ()"
    yield message, visible, one[0], one, one[0], one
    for shape in ((3,), (1, 2, 3)):
        message = f"by_distance must be (heads, distances), got {shape}"
        yield message, flex_bias, torch.zeros(shape), three[None], three[None]
    message = "positions must be ({0}, queries) and ({0}, keys), equal before the last axis, got {1} and {2}"
    for queries, keys in (((2, 3), (4, 5)), ((2, 3), (1, 5)), ((1, 3), (2, 5)), ((3,), (1, 5))):
        i, j = torch.zeros(queries).long(), torch.zeros(keys).long()
        yield message.format("...", queries, keys), visible, i, j, i, j
        yield message.format("...", queries, keys), visible, i, j, i, j, False
        yield message.format("batch", queries, keys), flex_visible, i, j, i, j
        yield message.format("batch", queries, keys), flex_bias, two, i, j
    for shape in ((3,), (2, 2, 3)):  # flex_attention needs one axis of rows
        at = torch.zeros(shape).long()
        yield message.format("batch", shape, shape), flex_visible, at, at, at, at
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
        yield f"seen must be bool, got {dtype}", attend, q, q, q, seen.to(dtype)
    for dtype in (torch.bool, torch.int64):  # which would show what is hidden
        yield f"bias must be of a floating dtype, got {dtype}", attend, q, q, q, seen, seen.to(dtype)
    q, k, seen = torch.zeros(2, 4, 3, 8), torch.zeros(2, 2, 5, 8), torch.ones(3, 5, dtype=torch.bool)
    for shape in ((), (5,), (5, 3), (3, 3, 5), (2, 1, 3, 5), (3, 1)):
        message = "seen must be (2, 3, 5) or (3, 5), as q and k are read as (..., heads, tokens, dim), got "
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
        yield f"seen must be (2, 4, {heads}) or (4, {heads}), {read}", attend, q, k, k, seen


def test_documents_may_be_a_mask():
    at, mask = torch.arange(2)[None], torch.ones(1, 2, dtype=torch.bool)
    assert torch.equal(visible(at, at, mask, mask), torch.ones(1, 2, 2).tril() > 0)


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
    room = with_room(longer, 9)
    write(
        room, torch.tensor([7]), more[..., :1, :], more[..., :1, :], torch.tensor([[7]]), torch.tensor([[0]])
    )
    assert room.positions[:, :8].tolist() == [list(range(8))] * 3
    seen = visible(at, kept.positions, at * 0, kept.documents)
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
