"""check_positions.py on models, their starts, their layers and as a command."""

import functools
import json
import math
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from check_positions import checker as check_positions
from check_positions.checker import (
    Layer,
    check_layers,
    check_model,
    check_start,
    check_transformers,
    main,
    read_layers,
    small_config,
)
from findings import failing, one, proportional, turning, verdicts
from snippets.block import Decoder, Encoding
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from tests.peers import peer
from tests.snippets.common import refused

VOCABULARY = 40


class Tiny(nn.Module):
    """Two layers of attention and a cache; a fault overrides one of its methods."""

    def __init__(self, width=32):
        super().__init__()
        made = torch.Generator().manual_seed(0)
        draw = functools.partial(torch.randn, generator=made)
        self.tokens = nn.Parameter(draw(VOCABULARY, width))
        self.project = nn.ParameterList([draw(width, 3 * width) / 4 for _ in range(2)])

    def own_positions(self, ids, mask, done):
        """What it counts for itself."""
        rows = torch.arange(done, done + ids.shape[1])
        return rows.expand(len(ids), -1)

    def embed(self, ids, at):
        return self.tokens[ids]

    def turn(self, x, at):
        cos, sin = rope_tables(at, rope_frequencies(x.shape[-1], base=10000))
        return apply_rope(x[:, None], cos, sin, "half")[:, 0]

    def seen(self, at, keys, mask, order):
        """(batch, queries, keys): order is that of rows, of queries and of keys."""
        rows, columns = order
        seen = (rows[:, None] >= columns).expand(len(at), -1, -1)
        return seen if mask is None else seen & (mask[:, None, :] | (rows[:, None] == columns))

    def forward(self, ids, mask=None, positions=None, cache=None):
        done = cache[0].shape[1] if cache is not None else 0
        at = self.own_positions(ids, mask, done) if positions is None else positions
        at = self.placed(at, mask, done)
        keys_at = at if cache is None else torch.cat((cache[0], at), 1)
        rows = torch.arange(done, done + ids.shape[1]), torch.arange(done + ids.shape[1])
        seen = self.seen(at, keys_at, mask, rows)
        x, kept = self.embed(ids, at), [keys_at]
        for n, project in enumerate(self.project):
            q, k, v = (x @ project / x.shape[-1] ** 0.5).chunk(3, -1)
            q, k = self.turn(q, at), self.turn(k, at)
            if cache is not None:
                k, v = torch.cat((cache[2 * n + 1], k), 1), torch.cat((cache[2 * n + 2], v), 1)
            kept += [k, v]
            scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~seen, -math.inf)
            x = x + scores.softmax(-1) @ v
        return x @ self.tokens.T, tuple(kept)

    def placed(self, at, mask, done):
        return at


class Packs(Tiny):
    """A position of 0 begins another document."""

    def seen(self, at, keys, mask, order):
        seen = super().seen(at, keys, mask, order)
        if mask is not None:
            return seen
        own = (keys == 0).cumsum(1)
        return seen & (own[:, -at.shape[1] :, None] == own[:, None, :])


class Bigram(Tiny):
    def turn(self, x, at):
        return x

    def seen(self, at, keys, mask, order):
        return torch.eye(len(order[1]))[None, -len(order[0]) :].expand(len(at), -1, -1) > 0


class Unordered(Tiny):
    """No positions, all keys seen."""

    def turn(self, x, at):
        return x

    def seen(self, at, keys, mask, order):
        return torch.ones(len(at), len(order[0]), len(order[1])).bool()


class Peeks(Tiny):
    def seen(self, at, keys, mask, order):
        if mask is None:
            return torch.ones(len(at), len(order[0]), len(order[1])).bool()
        return mask[:, None, :].expand(-1, len(order[0]), -1)


class Decided(Tiny):
    """Padding anywhere moves every row: not seen by turns, so a table is added."""

    def embed(self, ids, at):
        return self.tokens[ids] + torch.sin(at[..., None] * rope_frequencies(64, base=10000).float())

    def placed(self, at, mask, done):
        return at + 3 if mask is not None and not mask.all() else at


class Counts(Tiny):
    """Padding is seen as any token is."""

    def seen(self, at, keys, mask, order):
        return super().seen(at, keys, None, order)


class Forgets(Tiny):
    """Padding is seen once there is a cache."""

    def seen(self, at, keys, mask, order):
        rows, columns = order
        return super().seen(at, keys, mask if len(rows) == len(columns) else None, order)


class Restarts(Tiny):
    """With a cache its own positions begin anew."""

    def own_positions(self, ids, mask, done):
        return super().own_positions(ids, mask, 0)


class TopLeft(Tiny):
    """A causal mask without the cache's offset, where more than one token comes."""

    def seen(self, at, keys, mask, order):
        rows, columns = order
        if len(rows) > 1:
            return super().seen(at, keys, None, (rows - rows[0], columns))
        return super().seen(at, keys, mask, order)


class Learned(Tiny):
    def embed(self, ids, at):
        table = torch.randn(2000, 32, generator=torch.Generator().manual_seed(9))
        return self.tokens[ids] + table[at]

    def turn(self, x, at):
        return x


class Window(Tiny):
    """A window that has one key more once there is a cache."""

    width, more = 30, 1

    def seen(self, at, keys, mask, order):
        rows, columns = order
        width = self.width + (self.more if len(rows) < len(columns) else 0)
        return super().seen(at, keys, mask, order) & (rows[:, None] - columns < width)


class RightWindow(Window):
    more = 0


class FromTwo(Tiny):
    """Its own positions begin at 2, as RoBERTa's, which learns a table."""

    embed = Learned.embed

    def own_positions(self, ids, mask, done):
        return super().own_positions(ids, mask, done) + 2


def without_cache(model):
    return lambda *given: (model(*given)[0], None)


def checked(model, **options):
    return check_model(model, VOCABULARY, weights=model.parameters(), **options)


class Rotary(Encoding):
    def tables(self, positions):
        return rope_tables(positions, rope_frequencies(8, base=10000))

    def rotate(self, x, tables, role):
        return apply_rope(x, *tables, "half")


def plain():
    return Decoder(Rotary(), VOCABULARY, dim=16, heads=2, layers=2)


def decoder():
    torch.manual_seed(0)
    made = plain()
    check_positions.scale_up_weights(made)
    return made


def calls(made):
    """A Decoder of block.py, which wants documents in place of a mask, as check_model calls a model."""

    def model(ids, mask, positions, cache):
        done = cache[1].shape[1] if cache else 0
        many = ids.shape[1]
        if positions is None:
            positions = torch.arange(done, done + many).expand(len(ids), -1)
        documents = torch.ones_like(ids) if mask is None else mask[:, -many:].long()
        return made(ids, positions, documents, cache)

    return model


# --- right models


def test_nothing_fails_of_a_right_model():
    findings = checked(Packs(), packs=True, moves=True, limits={"a window": 30, "another": 40})
    told = verdicts(findings)
    assert told.pop("begins") == "reads"
    assert set(told.values()) == {"passes"}
    assert set(told) == {
        "finite", "same_twice", "alone_in_batch", "alone_as_padded", "alone_as_packed", "moved_as_here",
        "no_peeking", "whole_as_steps", "whole_as_chunks", "past_limits", "padded_as_steps",
    }  # fmt: skip
    assert one(findings, "past_limits").found.endswith("with 48 tokens, beyond a window 30, another 40")


def test_nothing_fails_of_a_decoder_of_block():
    made = decoder()
    findings = check_model(calls(made), VOCABULARY, weights=made.parameters(), moves=True)
    told = verdicts(findings)
    assert not failing(findings)
    assert (told["whole_as_steps"], told["alone_as_padded"], told["alone_as_packed"]) == (
        "passes",
        "passes",
        "no promise",
    )


def test_weights_are_as_they_were_and_say_how_far_rounding_goes():
    model = Tiny()
    before = [each.detach().clone() for each in model.parameters()]
    moved = one(checked(model), "whole_as_steps").tolerance
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert moved > one(check_model(model, VOCABULARY), "whole_as_steps").tolerance > 0


def test_what_is_not_promised_is_read_off():
    told = {each.check: each for each in checked(Learned())}
    assert told["moved_as_here"].verdict == "no promise"
    assert told["alone_as_packed"].verdict == "no promise"
    assert told["moved_as_here"].found.startswith("no, ")
    told = {each.check: each for each in checked(Packs())}
    assert (told["alone_as_packed"].verdict, told["moved_as_here"].verdict) == ("reads", "reads")


def test_positions_that_begin_elsewhere_are_found_and_used():
    findings = checked(FromTwo())
    assert one(findings, "begins").found == "at 2"
    assert not failing(findings)


# --- each fault is found


@pytest.mark.parametrize(
    ("model", "check", "options", "words"),
    [
        (lambda *given: (0 * Tiny()(*given)[0] / 0, None), "finite", {}, "Are all logits finite? no"),
        (
            lambda *given: (torch.dropout(Tiny()(*given)[0], 0.1, True), None),
            "same_twice",
            {},
            "dropout that is still on",
        ),
        (Peeks(), "no_peeking", {}, "a mask that is not causal"),
        (Decided(), "alone_in_batch", {}, "any() of a mask"),
        (Counts(), "alone_as_padded", {}, "a mask that ignores it"),
        (Tiny(), "alone_as_packed", {"packs": True}, "without a mask between documents"),
        (Learned(), "moved_as_here", {"moves": True}, "or a table"),
        (Restarts(), "whole_as_steps", {}, "first at token 12"),
        (TopLeft(), "whole_as_chunks", {}, "first at token 5"),
        (Window(), "past_limits", {"limits": {"window": 30}}, "with 38 tokens, beyond window 30"),
    ],
)
def test_a_fault_of_a_model_is_found_by_its_check(model, check, options, words):
    found = one(check_model(model, VOCABULARY, **options), check)
    assert found.verdict == "fails"
    assert words in str(found)


@pytest.mark.parametrize(
    ("model", "found"),
    [
        (Peeks, {"no_peeking", "whole_as_steps", "whole_as_chunks", "padded_as_steps"}),
        (Decided, {"alone_in_batch", "alone_as_padded", "padded_as_steps"}),
        (Counts, {"alone_as_padded", "padded_as_steps"}),
        (Forgets, {"padded_as_steps"}),
        (Restarts, {"whole_as_steps"}),
        (TopLeft, {"whole_as_chunks", "alone_as_padded", "padded_as_steps"}),
    ],
)
def test_a_fault_fails_no_check_beside_its_own(model, found):
    assert failing(checked(model())) == found


def test_an_encoder_is_asked_nothing_about_what_comes_later():
    told = verdicts(checked(Peeks(), causal=False, limits={"window": 30}))
    assert "fails" not in told.values()
    assert not {"no_peeking", "whole_as_steps", "past_limits"} & set(told)


# --- what could not fail


@pytest.mark.claim(
    "no-verdict-without-power",
    "Four checks do not pass where they could not have failed: that of order, for a model that no order "
    "changes; that of prompts beyond a limit, for prompts within it; that of offsets, for an attention "
    "without positions; and that of hidden keys, for a window that no key exceeds.",
)
@pytest.mark.parametrize("model", [Bigram(), Unordered()], ids=["bigrams", "no positions"])
def test_a_model_without_order_has_no_power(model):
    findings = checked(model)
    assert (findings[-1].check, findings[-1].verdict) == ("order", "no power")
    assert findings[-1].found == "swapping two tokens changes no logit"


@pytest.mark.claim(
    "no-verdict-without-power",
    "Four checks do not pass where they could not have failed: that of order, for a model that no order "
    "changes; that of prompts beyond a limit, for prompts within it; that of offsets, for an attention "
    "without positions; and that of hidden keys, for a window that no key exceeds.",
)
def test_a_prompt_within_every_limit_has_no_power():
    found = one(checked(Tiny(), limits={"window": 4096}, longest=256), "past_limits")
    assert (found.verdict, found.found) == ("no power", "no prompt of 256 tokens exceeds window 4096")
    found = one(checked(RightWindow(), limits={"near": 30, "far": 4096}), "past_limits")
    assert found.verdict == "passes"
    assert found.found.endswith("beyond near 30; not exceeded: far 4096")


def test_a_model_without_a_cache_says_so():
    findings = check_model(without_cache(Tiny()), VOCABULARY, limits={"window": 30})
    for check in ("whole_as_steps", "whole_as_chunks", "past_limits"):
        found = one(findings, check)
        assert (found.verdict, found.found) == ("no power", "the model returns no cache")


def test_a_model_that_takes_no_positions_and_no_mask_says_what_it_was_given():
    right = Tiny()

    def model(ids, mask, positions, cache):
        if positions is not None or mask is not None:
            raise TypeError("unexpected keyword argument")
        return right(ids)

    findings = check_model(model, VOCABULARY)
    assert not failing(findings)
    found = one(findings, "begins")
    assert found.verdict == "no power"
    assert found.found == (
        "model must take ids (1, 24), mask None, positions (1, 24), no cache; "
        "it raised TypeError: unexpected keyword argument"
    )
    assert [each.verdict for each in findings if "unexpected" in each.found] == ["no power"] * 7


class Expands(Tiny):
    """Expands one row of its own positions over the batch and adds to it in place, which torch refuses."""

    def own_positions(self, ids, mask, done):
        return super().own_positions(ids, mask, done).add_(0)


def test_a_model_that_refuses_a_batch_is_asked_all_else():
    findings = checked(Expands())
    assert not failing(findings)
    told = [each for each in findings if each.check == "alone_in_batch"]
    assert [each.verdict for each in told] == ["no power", "passes"]
    assert told[0].question == "The model could not run a batch of three sequences:"
    assert "model must take ids (3, 24), mask None, positions None, no cache; it raised RuntimeError" in (
        told[0].found
    )
    assert one(findings, "whole_as_steps").verdict == "passes"


# --- bad input


@pytest.mark.parametrize(
    ("message", "model", "vocabulary"),
    [
        ("vocabulary must have 8 tokens, got 7", Tiny(), 7),
        ("vocabulary must have 8 tokens, got 3", Tiny(), torch.arange(3)),
        (
            "logits must be (1, 24, '...') for ids (1, 24), mask None, positions None, no cache, "
            "got (24, 1, 40)",
            lambda *given: (Tiny()(*given)[0].transpose(0, 1), None),
            VOCABULARY,
        ),
        (
            "logits must be (1, 24, '...') for ids (1, 24), mask None, positions None, no cache, got (1, 24)",
            lambda *given: (Tiny()(*given)[0][..., 0], None),
            VOCABULARY,
        ),
        ("model must return (logits, cache), got Tensor", lambda *given: Tiny()(*given)[0], VOCABULARY),
        (
            "model must take ids (1, 24), mask None, positions None, no cache; "
            "it raised IndexError: of range",
            None,
            VOCABULARY,
        ),
    ],
)
def test_what_is_no_model_is_refused(message, model, vocabulary):
    def raising(*given):
        raise IndexError("of range\nand more")

    refused(message, check_model, model or raising, vocabulary)


def test_a_small_vocabulary_is_enough():
    model = Tiny()
    assert not failing(check_model(model, torch.arange(8), weights=model.parameters()))


# --- starts


class Buffer(nn.Module):
    """A RoPE whose frequencies are in no checkpoint."""

    persistent = False

    def __init__(self):
        super().__init__()
        self.project = nn.Linear(4, 4)
        self.register_buffer("inv_freq", rope_frequencies(8, base=10000).float(), persistent=self.persistent)


class InCheckpoint(Buffer):
    persistent = True


class Drawn(nn.Module):
    """Numbers that are drawn anew and not saved."""

    def __init__(self):
        super().__init__()
        self.register_buffer("signs", torch.rand(9), persistent=False)


class Zeros(nn.Module):
    """Numbers that are 0 in no checkpoint, as a bias of a router."""

    def __init__(self):
        super().__init__()
        self.register_buffer("bias", torch.zeros(9), persistent=False)


class Unset(nn.Module):
    """What is nan from the beginning is no fault."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.full((3,), torch.nan), persistent=True)


class Counted(nn.Module):
    """Whole numbers in no checkpoint, as Swin's table of offsets."""

    def __init__(self):
        super().__init__()
        self.register_buffer("index", torch.arange(9), persistent=False)


def again(module):
    module.inv_freq.copy_(rope_frequencies(8, base=10000))


@pytest.mark.parametrize(
    ("build", "initialize", "verdict"),
    [
        (Buffer, None, "fails"),
        (Buffer, again, "passes"),
        (Buffer, lambda module: module.inv_freq.fill_(1), "fails"),
        (Counted, None, "fails"),
        (Zeros, None, "fails"),
        (Unset, None, "passes"),
        (InCheckpoint, None, "passes"),
        (plain, None, "passes"),
    ],
)
def test_a_start_on_meta_is_found_out(build, initialize, verdict):
    saved, meta = check_start(build, initialize)
    assert (saved.check, saved.verdict) == ("saved_and_loaded", "passes")
    assert (meta.check, meta.verdict) == ("started_on_meta", verdict)
    if verdict == "fails":
        assert meta.found in {f"no: {name}, not in the checkpoint" for name in ("inv_freq", "index", "bias")}


def test_numbers_that_are_drawn_anew_are_found_out():
    saved, _ = check_start(Drawn)
    assert saved.verdict == "fails"
    assert "signs, not in the checkpoint" in saved.found


def test_a_model_that_cannot_begin_on_meta_says_why():
    class Reads(nn.Module):
        def __init__(self):
            super().__init__()
            self.steps = int(torch.arange(3).max())

    found = check_start(Reads)[1]
    assert found.verdict == "no power"
    assert found.found.startswith("it could not be built so: ")


def test_what_builds_no_module_is_refused():
    def large():
        raise MemoryError("3 TiB")

    refused("build must return a module, got dict", check_start, dict)
    refused("build must return a module; it raised MemoryError: 3 TiB", check_start, large)


# --- layers


class TinyAttention(nn.Module):
    """Its queries are turned by rotate; by torch's kernel or by hand."""

    def __init__(self, rotate, kernel=True, dim=16):
        super().__init__()
        self.rotate, self.kernel = rotate, kernel
        self.project = nn.Linear(dim, 3 * dim)

    def forward(self, x):
        q, k, v = (each[:, None] for each in self.project(x).chunk(3, -1))
        at = torch.arange(x.shape[1])
        q, k = self.rotate(q, at), self.rotate(k, at)
        if self.kernel:
            return x + scaled_dot_product_attention(q, k, v)[:, 0]
        return x + ((q @ k.mT / 4).softmax(-1) @ v)[:, 0]


def layers_of(*rotations, kernel=True):
    torch.manual_seed(0)
    model = nn.Sequential(*(TinyAttention(each, kernel) for each in rotations))
    table = torch.randn(9, 16)
    return read_layers(model, lambda token: model(table[token].expand(1, 48, 16)))


def still(x, at):
    return x


def added(x, at):
    return x + torch.sin(at[:, None] * rope_frequencies(32, base=10000).float())


def scaled(x, at):
    return x * (1 + at[:, None] / 8)


def axes(x, at):
    turn = turning(rope_frequencies(8, base=10000))
    return torch.cat((turn(x[..., :8], at // 8), turn(x[..., 8:], at % 8)), -1)


def bent(x, at):
    return (x + at[:, None]).tanh()


ROTATIONS = {
    "half": (lambda: turning(rope_frequencies(16, base=10000)), {}),
    "interleaved": (lambda: turning(rope_frequencies(16, base=10000), "interleaved"), {}),
    "partial": (lambda: turning(rope_frequencies(8, base=10000)), {"partial_rotary_factor": 0.5}),
    "proportional": (
        lambda: turning(proportional(16, 1e4, 0.5)),
        {"rope_type": "proportional", "partial_rotary_factor": 0.5},
    ),
    "another base": (lambda: turning(rope_frequencies(16, 5e5)), {"rope_theta": 5e5}),
}


@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize(("rotate", "settings"), ROTATIONS.values(), ids=ROTATIONS)
def test_a_layer_that_turns_as_configured_passes_and_as_otherwise_fails(rotate, settings, kernel):
    rotate = rotate()
    layers = layers_of(rotate, rotate, kernel=kernel)
    assert [layer.kind for layer in layers] == ["turns", "turns"]
    right = {"rope_type": "default", "rope_theta": 1e4, **settings}
    (found,) = check_layers(layers, [right, right])
    assert found.verdict == "passes"
    for wrong in ({**right, "rope_theta": 3e4}, {**right, "partial_rotary_factor": 0.25}, None):
        (found,) = check_layers(layers, [right, wrong])
        assert (found.verdict, found.where) == ("fails", "layer 1")


EINSUMS = {  # queries, keys, the product
    "tokens first, as in XLNet": ("inbd", "jnbd", "bnij", (48, 2, 1, 16)),
    "heads first": ("bnid", "bnjd", "bnij", (1, 2, 48, 16)),
    "heads last": ("bind", "bjnd", "bnij", (1, 48, 2, 16)),
}


@pytest.mark.parametrize(("q", "k", "made", "shape"), EINSUMS.values(), ids=EINSUMS)
def test_scores_of_an_einsum_are_seen(q, k, made, shape):
    """Queries come out as (..., queries, dim) wherever their axes stand."""
    x = torch.randn(shape)
    with check_positions.AttentionWatch() as watch:
        scores = torch.einsum(f"{q},{k}->{made}", x, x)
        scores.softmax(-1)
    ((_, queries, seen),) = watch.seen
    assert torch.equal(seen, scores)
    assert torch.equal(queries @ queries.mT, scores)


@pytest.mark.parametrize("equation", ["bnij,bnij->bn", "...qd,...kd->...qk", "bnid,nd->bni", "ij,jk"])
def test_an_einsum_that_is_no_product_of_queries_and_keys_is_passed_over(equation):
    assert check_positions._summed_queries(equation, torch.randn(1), torch.randn(1)) is None


@pytest.mark.parametrize("axis", [None, 1], ids=["no batch", "tokens first"])
def test_places_of_any_stream_are_made_alike(axis):
    class OtherAttention(TinyAttention):
        def forward(self, x):
            x = x[None] if axis is None else x.transpose(0, 1)
            x = super().forward(x)
            return x[0] if axis is None else x.transpose(0, 1)

    torch.manual_seed(0)
    model, table = nn.Sequential(OtherAttention(still, True)), torch.randn(9, 48, 16)
    table = table if axis is None else table[:, :, None]
    (layer,) = read_layers(model, lambda token: model(table[token]))
    assert layer.kind == "still"


def test_each_kind_of_layer_is_named():
    layers = layers_of(still, added, scaled, axes, turning(rope_frequencies(16, base=10000)), bent)
    assert [layer.kind for layer in layers] == [
        "still",
        "adds",
        "scales",
        "turns on axes",
        "turns",
        "neither",
    ]
    assert [str(layer) for layer in layers[:4]] == ["still", "adds", "scales", "turns on axes"]
    assert str(layers[4]) == "half layout, 16 of 16 channels, default, rope_theta 10000"


def test_layers_beside_their_configuration():
    settings = {"rope_type": "default", "rope_theta": 1e4}
    layers = layers_of(still, added, scaled, axes, turning(rope_frequencies(16, base=10000)))
    told = check_layers(layers, [settings, {}, None, {}, settings])
    assert [each.verdict for each in told] == ["passes", "no promise", "reads"]
    assert told[1].found.startswith("layers 0 do not rotate, although no key of the configuration says so")
    assert told[2].found == "no rotation to compare in layers 1, 2, 3: adds, scales, turns on axes"
    (found,) = check_layers(layers_of(bent), [{}])
    assert found.verdict == "fails"
    (found,) = check_layers(layers_of(turning(rope_frequencies(16, base=10000))), [None])
    assert found.found.startswith("no, in layers 0: rotates: half layout")


def test_settings_for_another_number_of_layers_are_refused():
    refused(
        "settings must have 2 entries, one for each layer, got 1",
        check_layers,
        [Layer("still", torch.ones(2, 2))] * 2,
        [None],
    )


# --- models of transformers, and the command


LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "num_hidden_layers": 2,
    "vocab_size": 200,
    "rope_parameters": {"rope_type": "default", "rope_theta": 5e5},
}


def written(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(LLAMA | changes))
    return str(path)


def test_a_copy_alone_is_a_command(tmp_path):
    peer("transformers")
    copy = shutil.copy(check_positions.__file__, tmp_path)
    command = [sys.executable, "-I", copy, "transformers:" + written(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    lines = done.stdout.splitlines()
    assert "yes: half layout, 32 of 32 channels, default, rope_theta 500000" in " ".join(done.stdout.split())
    assert lines[-1].startswith("11 passes, ")


def test_the_command_gives_json(tmp_path, capsys):
    peer("transformers")
    assert main(["transformers:" + written(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {each["check"]: each["verdict"] for each in told}["layers_as_configured"] == "passes"
    keys = {"check", "verdict", "question", "expected", "found", "tolerance", "where", "cause"}
    assert set(told[0]) == keys


@pytest.mark.parametrize(
    ("model_type", "verdict"), [("llama", "passes"), ("gpt_neox", "passes"), ("cohere", "passes")]
)
def test_a_rotation_that_is_not_configured_fails_in_its_layers(model_type, verdict, tmp_path):
    transformers = peer("transformers")
    config = small_config(transformers.CONFIG_MAPPING[model_type](vocab_size=200), layers=2)
    model = transformers.AutoModelForCausalLM.from_config(config)
    layers = read_layers(model, lambda token: model(torch.full((1, 40), token)))
    right = dict(config.rope_parameters)
    assert [each.verdict for each in check_layers(layers, [right] * 2)] == [verdict]
    (found,) = check_layers(layers, [right, {**right, "rope_theta": 1e3}])
    assert (found.verdict, found.where) == ("fails", "layer 1")


def test_a_fault_in_a_library_is_found_through_its_configuration_alone(tmp_path, monkeypatch, capsys):
    """A LLaMA whose attention swaps pairs as in the interleaved layout, its table in the half layout."""
    modeling = peer("transformers.models.llama.modeling_llama")

    def swapped(x):
        return torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)

    monkeypatch.setattr(modeling, "rotate_half", swapped)
    assert main(["transformers:" + written(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert said.startswith("fails           layers_as_configured")


@pytest.mark.slow
def test_v_jepa_2_of_the_pinned_library_fails(tmp_path, capsys):
    peer("transformers").CONFIG_MAPPING["vjepa2"]().save_pretrained(tmp_path)
    assert main([f"transformers:{tmp_path}"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "layers_as_configured Does the rotation of each layer match its configuration? no" in said
    assert "queries depend on position, but by no rotation or added vector" in said


def test_a_folder_with_weights_is_loaded_as_it_is(tmp_path):
    transformers = peer("transformers")
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA))
    check_positions.scale_up_weights(model)
    model.save_pretrained(tmp_path)
    findings = check_transformers(tmp_path)
    assert not failing(findings)
    assert "started_on_meta" not in verdicts(findings)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("{}", "must be a config.json or a folder with one, of a model that transformers knows"),
        (
            "{}/no/config.json",
            "/no/config.json must be a config.json or a folder with one; it does not exist",
        ),
        ("{}/config.json", "must be a config.json or a folder with one, of a model that transformers knows"),
    ],
)
def test_without_a_configuration_there_is_nothing_to_ask(model, words, tmp_path, capsys):
    peer("transformers")
    if "config" in model and "no/" not in model:
        written(tmp_path, model_type="no_such_model")
    assert main(["transformers:" + model.format(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("check_positions.py: ")
    assert words in said


@pytest.mark.parametrize("error", [MemoryError("3 TiB"), RuntimeError("can't allocate memory")])
def test_a_model_too_large_for_memory_is_told(error, tmp_path, monkeypatch, capsys):
    modeling = peer("transformers.models.llama.modeling_llama")

    def large(self, config):
        raise error

    monkeypatch.setattr(modeling.LlamaForCausalLM, "__init__", large)
    assert main(["transformers:" + written(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert (
        said
        == f"check_positions.py: LlamaForCausalLM must be built, it raised {type(error).__name__}: {error}\n"
    )


MLA = {
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "q_lora_rank": None,
}
WINDOWLESS = {
    "hidden_size": 1536,
    "num_attention_heads": 12,
    "num_key_value_heads": 4,
    "num_hidden_layers": 12,
}
HYBRID = {"layer_types": 2 * [*["mamba"] * 5, "attention"], **WINDOWLESS}
PARTIAL = {  # what a configuration has of a file, and what its layers do
    "deepseek_v2, how many experts a token gets is missing": (
        {"model_type": "deepseek_v2", "num_hidden_layers": 3, "num_attention_heads": 8, **MLA},
        "yes: interleaved layout",
    ),
    "whisper, a pad token beyond the vocabulary": ({"model_type": "whisper", "vocab_size": 200}, "still"),
    "granitemoehybrid, whose Mamba layers have heads of their own": (
        {"model_type": "granitemoehybrid", "position_embedding_type": "nope", **HYBRID},
        "no rotation to compare in layers 0: still",
    ),
    "granitemoehybrid with RoPE": (
        {"model_type": "granitemoehybrid", "position_embedding_type": "rope", **HYBRID},
        "yes: half layout, 128 of 128 channels",
    ),
    "mamba2, without attention": ({"model_type": "mamba2", "num_hidden_layers": 2}, None),
    "zamba2, which fits with all heads alone": (
        {"model_type": "zamba2", "hidden_size": 320, "num_hidden_layers": 6, "n_mamba_heads": 8,
         "num_attention_heads": 8, "layers_block_type": [*["mamba"] * 4, "hybrid", "mamba"]},
        "",
    ),
    "hunyuan_v1_dense, dynamic with alpha": (
        {"model_type": "hunyuan_v1_dense", "hidden_size": 256, "head_dim": 64, "num_attention_heads": 4,
         "num_hidden_layers": 2, "rope_scaling": {"type": "dynamic", "alpha": 1000.0, "factor": 1.0}},
        "yes: half layout, 64 of 64 channels, default, rope_theta 1.2",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("config", "words"), PARTIAL.values(), ids=PARTIAL)
def test_the_command_asks_a_model_whose_file_leaves_much_out(config, words, tmp_path, capsys):
    peer("transformers")
    (tmp_path / "config.json").write_text(json.dumps(config))
    threads = torch.get_num_threads()
    assert main([f"transformers:{tmp_path}", "--json"]) == 0
    assert torch.get_num_threads() == threads
    told = json.loads(capsys.readouterr().out)
    layers = [each["found"] for each in told if each["check"] == "layers_as_configured"]
    assert not words if not layers else words in "; ".join(layers)
    assert {each["check"] for each in told} >= {"finite", "alone_as_padded", "saved_and_loaded"}


TINY_TEXT = {
    "num_hidden_layers": 4,
    "num_local_experts": 2,
    "intermediate_size": 64,
    "intermediate_size_mlp": 64,
}
TINY_TEXT |= {"hidden_size": 64, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32}


def test_a_model_of_texts_is_asked_of_a_file_that_has_pictures_too(tmp_path, capsys):
    peer("transformers")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama4", "text_config": TINY_TEXT}))
    assert main([f"transformers:{tmp_path}"]) == 0
    assert "a small random Llama4ForCausalLM" in " ".join(capsys.readouterr().out.split())


def test_a_hybrid_that_refuses_a_cache_is_asked_without_one(tmp_path, capsys):
    """Of a file without layer_types the library makes Mamba layers alone, and no cache for these."""
    peer("transformers")
    config = {"model_type": "granitemoehybrid", **HYBRID}
    config.pop("layer_types")
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert main([f"transformers:{tmp_path}", "--json"]) == 0
    told = {each["check"]: each for each in json.loads(capsys.readouterr().out)}
    for check in ("whole_as_steps", "whole_as_chunks"):
        assert told[check]["verdict"] == "no power"
        assert told[check]["found"].startswith("with a cache it raised ValueError: `get_seq_length`")
    assert told["alone_as_padded"]["verdict"] == "passes"


def test_rope_parameters_whose_keys_name_no_layers_say_nothing_of_any():
    of = peer("transformers").LlamaConfig(num_hidden_layers=2)
    one = {"rope_type": "default", "rope_theta": 1e4}
    of.layer_types, of.rope_parameters = ["near", "far"], {"main": one, "compress": one}
    assert check_positions._settings(of, 2) == [{}, {}]
    of.rope_parameters = {"near": one}
    assert check_positions._settings(of, 2) == [one, None]


def test_a_file_that_a_library_rejects_is_told_in_one_line(tmp_path, capsys):
    """Of a class of its own, which is no ValueError."""
    peer("transformers")
    (tmp_path / "config.json").write_text(
        json.dumps({"model_type": "gemma4_assistant", "text_config": {"hidden_size_per_layer_input": 256}})
    )
    assert main([f"transformers:{tmp_path}"]) == 2
    assert capsys.readouterr().err.startswith(f"check_positions.py: {tmp_path} must be a config.json")


def test_a_model_that_cannot_run_is_named_with_what_it_raised(tmp_path, monkeypatch, capsys):
    modeling = peer("transformers.models.llama.modeling_llama")

    def raising(*_):
        raise RuntimeError("shapes do not fit")

    monkeypatch.setattr(modeling, "rotate_half", raising)
    assert main(["transformers:" + written(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        "check_positions.py: LlamaForCausalLM must run, small and with random weights, "
        "it raised RuntimeError: shapes do not fit\n"
    )


def test_a_model_with_all_its_heads_is_built_only_if_it_is_not_too_large(tmp_path, monkeypatch, capsys):
    """Few heads fail here; with all of them it has more numbers than are allowed."""
    narrow = check_positions.small_config

    def small(config, layers=6, heads=4):
        made = narrow(config, layers, heads)
        made.num_key_value_heads = 3 if heads == 4 else made.num_key_value_heads
        return made

    monkeypatch.setattr(check_positions, "small_config", small)
    path = "transformers:" + written(tmp_path, num_attention_heads=8, num_key_value_heads=8)
    assert main([path]) == 0
    monkeypatch.setattr(check_positions, "LARGEST", 1)
    assert main([path]) == 2
    assert "LlamaForCausalLM must run, small and with random weights, it raised" in capsys.readouterr().err


@pytest.mark.parametrize("model", ["llama", "vllm:here", "transformers:"])
def test_another_library_is_refused(model, capsys):
    with pytest.raises(SystemExit) as caught:
        main([model])
    assert caught.value.code == 2
    assert f"model must begin with transformers:, got {model}" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"num_attention_heads": "4"},
        {"hidden_size": 65, "head_dim": None, "num_attention_heads": 4},
        {"num_hidden_layers": -1},
        {"num_key_value_heads": 0},
        {"num_key_value_heads": 3},
        {"vocab_size": 0},
        {"head_dim": 7},
        {"rope_parameters": {"rope_type": "nonesuch"}},
        {"rope_parameters": []},
        {"intermediate_size": -5},
        {"model_type": "gpt2", "n_embd": 65, "n_head": 4},
        {"model_type": "bert", "hidden_size": 65},
    ],
)
def test_a_configuration_that_cannot_be_built_ends_the_command_in_words(changes, tmp_path, capsys):
    peer("transformers")
    code = main(["transformers:" + written(tmp_path, **changes)])
    assert capsys.readouterr().err.startswith("check_positions.py: ") == (code == 2)


def test_whatever_a_model_raises_while_it_is_built_is_no_verdict(tmp_path, monkeypatch, capsys):
    def build(*_):
        raise RecursionError("too deep")

    monkeypatch.setattr(check_positions, "_small_model", build)
    peer("transformers")
    assert main(["transformers:" + written(tmp_path)]) == 2
    assert capsys.readouterr().err == "check_positions.py: RecursionError: too deep\n"


@pytest.mark.parametrize("version", ["4.56.2", "5.25.0", "5.25.0.dev0", "6.0.0"])
def test_another_version_of_transformers_is_refused(version, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(peer("transformers"), "__version__", version)
    assert main(["transformers:" + written(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"check_positions.py: transformers must be a version from 4.57 to 5.24, got {version}; "
        "install one of them: pip install 'transformers>=4.57,<5.25'\n"
    )


BASE, NEAR, LLAMA_3 = (
    {"rope_theta": 5e5},
    {"rope_type": "default", "rope_theta": 1e4},
    {"rope_type": "llama3"},
)
KINDS = ["sliding_attention", "full_attention"]
FOUR = {  # keys of transformers 4, and the rope_parameters of two layers that transformers 5 makes of them
    "no scaling": (BASE, [{"rope_type": "default", **BASE}] * 2),
    "a share": (
        BASE | {"partial_rotary_factor": 0.25},
        [{"rope_type": "default", "partial_rotary_factor": 0.25, **BASE}] * 2,
    ),
    "the former name of a kind": (
        BASE | {"rope_scaling": {"type": "linear", "factor": 2.0}},
        [{"rope_type": "linear", "type": "linear", "factor": 2.0, **BASE}] * 2,
    ),
    "the original length outside": (
        BASE | {"rope_scaling": LLAMA_3, "original_max_position_embeddings": 512},
        [LLAMA_3 | BASE | {"original_max_position_embeddings": 512}] * 2,
    ),
    "no original length": (
        BASE | {"rope_scaling": LLAMA_3},
        [LLAMA_3 | BASE | {"original_max_position_embeddings": 2048}] * 2,
    ),
    "Gemma 3": (
        BASE | {"rope_local_base_freq": 1e4, "layer_types": KINDS},
        [NEAR, {"rope_type": "default", **BASE}],
    ),
    "ModernBERT": (
        BASE | {"local_rope_theta": 1e4, "global_attn_every_n_layers": 2},
        [{"rope_type": "default", **BASE}, NEAR],
    ),
    "OLMo 3": (
        BASE | {"model_type": "olmo3", "rope_scaling": {"rope_type": "linear"}, "layer_types": KINDS},
        [{"rope_type": "default", **BASE}, {"rope_type": "linear", **BASE}],
    ),
    "no rotation": ({}, [{}, {}]),
}


@pytest.mark.parametrize(("keys", "settings"), FOUR.values(), ids=FOUR)
def test_keys_of_transformers_4_are_read_as_rope_parameters(keys, settings):
    config = SimpleNamespace(**{"model_type": "llama", "max_position_embeddings": 2048} | keys)
    assert check_positions._settings(config, 2) == settings


def test_without_transformers_the_command_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert main([f"transformers:{tmp_path}"]) == 2
    assert "transformers" in capsys.readouterr().err


def test_a_small_configuration_keeps_what_positions_depend_on():
    config = peer("transformers").CONFIG_MAPPING["gemma3_text"]()
    made = small_config(config)
    assert made.num_hidden_layers == 6
    assert made.rope_parameters == config.rope_parameters
    assert made.head_dim == config.head_dim
    assert made.sliding_window == 8
    assert set(made.layer_types) == set(config.layer_types)
    assert config.num_hidden_layers == 26
