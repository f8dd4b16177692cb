"""What attends: attention, a cache and its masks, and the decoder that has every encoding."""

from functools import partial

import torch
from torch import nn

from snippets import attention, block, decoding, sinks, temperature
from tests.snippets.fitness import Case

HEADS, KEY_HEADS, WIDTH = 6, 3, 8


def positions(batch, tokens):
    return torch.arange(tokens).repeat(batch, 1)


def documents(batch, tokens):
    return (torch.randint(0, 2, (batch, tokens)).cummax(-1).values,)


def places(batch, tokens):
    """Positions of queries and of more keys, and their documents."""
    at = positions(batch, tokens + 2)
    (of,) = documents(batch, tokens + 2)
    return at[:, 2:], at, of[:, 2:], of


def vectors(batch, tokens, heads=KEY_HEADS):
    q, k = torch.randn(batch, HEADS, tokens, WIDTH), torch.randn(batch, heads, tokens + 2, WIDTH)
    return q, k, torch.randn_like(k)


def attended(batch, tokens):
    return *vectors(batch, tokens), decoding.attention_mask(*places(batch, tokens))


def biased(batch, tokens):
    return *attended(batch, tokens), torch.randn(HEADS, tokens, tokens + 2)


def cached(batch, tokens):
    _, k, v = vectors(batch, tokens)
    _, at, _, of = places(batch, tokens)
    return k, v, at, of


def parts(cache):
    return cache.k, cache.v, cache.positions, cache.documents


def one_more(k, v, at, of):
    cache = decoding.KeyValueCache(k, v, at, of)
    more = k[..., -1:, :], v[..., -1:, :], at[..., -1:] + 1, of[..., -1:]
    return parts(cache.extend(*more).first(4))


def written(k, v, at, of):
    cache = decoding.pad_cache(decoding.KeyValueCache(k, v, at, of), 20)
    decoding.write_slots(
        cache,
        torch.arange(3, 4, device=k.device),
        *(x[..., -1:, :] for x in (k, v)),
        at[..., -1:],
        of[..., -1:],
    )
    return parts(cache)


def dropped(k, v, at, of, places):
    return parts(decoding.keep_slots(decoding.KeyValueCache(k, v, at, of), places))


def some(batch, tokens):
    return *cached(batch, tokens), torch.randint(0, tokens + 2, (batch, 3))


def shifted(k, v, at, of, positions):
    turn = lambda k, by: k * (1 + by[..., None, :, None]).to(k)  # noqa: E731
    return parts(decoding.move_positions(decoding.KeyValueCache(k, v, at, of), positions, turn))


def elsewhere(batch, tokens):
    return *cached(batch, tokens), positions(batch, tokens + 2) - 3


def masked(at, keys, of, key_of):
    mod = decoding.flex_attention_mask(at, keys, of, key_of, window=3)
    i, j = (torch.arange(x.shape[-1], device=x.device) for x in (at, keys))
    return mod(torch.zeros_like(i[:1]), None, i[:, None], j)


def scored(by_distance, at, keys):
    mod = decoding.flex_bias(by_distance, at, keys)
    i, j = (torch.arange(x.shape[-1], device=x.device) for x in (at, keys))
    one = torch.zeros_like(i[:1])
    return mod(torch.zeros(1, device=at.device), one, one, i[:, None], j)


def by_distance(batch, tokens):
    at = positions(batch, tokens + 2)
    return torch.randn(HEADS, 20), at[:, 2:], at


class Attends(nn.Module):
    """SelfAttention: its output and, as one, its weights."""

    def __init__(self, **options):
        super().__init__()
        self.attention, self.options = attention.SelfAttention(HEADS * WIDTH, HEADS), options

    def forward(self, x):
        output, weights = self.attention(x, **self.options)
        return torch.cat((output, weights.transpose(-2, -3).flatten(-2)), -1)


def nearness(q, k):
    return -(q[..., None, :] - k[..., None, :, :]).square().sum(-1)


class OneBlock(nn.Module):
    """A block as Decoder calls it, with no encoding."""

    def __init__(self):
        super().__init__()
        self.block, self.encoding = block.Block(HEADS * WIDTH, HEADS), block.Encoding()

    def forward(self, x, at, of):
        mask = block.additive_mask(decoding.attention_mask(at, at, of, of), None, x.dtype)
        x, (k, v) = self.block(x, self.encoding, at, at, at, mask)
        return torch.cat((x, *(kept.transpose(1, 2).flatten(-2) for kept in (k, v))), -1)


class Scores(nn.Module):
    """What a decoder gives for a text and then for its last token again, with what it has kept."""

    def __init__(self):
        super().__init__()
        self.decoder = block.Decoder(block.Encoding(), 11, HEADS * WIDTH, HEADS, layers=2)

    def forward(self, ids, at, of):
        whole, past = self.decoder(ids, at, of)
        last, _ = self.decoder(ids[:, -1:], at[:, -1:] + 1, of[:, -1:], past)
        return torch.cat((whole, last), 1)


def inputs(batch, tokens):
    return torch.randn(batch, tokens, HEADS * WIDTH), positions(batch, tokens), *documents(batch, tokens)


def ids(batch, tokens):
    return torch.randint(0, 11, (batch, tokens)), *inputs(batch, tokens)[1:]


def seen_and_bias(batch, tokens):
    return decoding.attention_mask(*places(batch, tokens)), torch.randn(HEADS, tokens, tokens + 2)


def scores(batch, tokens):
    return torch.randn(batch, HEADS, tokens, tokens + 2), torch.randn(HEADS)


def summed(batch, tokens):
    rows = batch, HEADS, tokens
    return torch.randn(*rows, WIDTH), torch.randn(rows), torch.randn(rows)


def far(batch, tokens):
    return (torch.randint(0, 300, (batch, tokens)),)


def factored(*heads):
    """Queries, and factors for them."""
    return lambda batch, tokens: (
        torch.randn(batch, HEADS, tokens, WIDTH),
        torch.rand(batch, *heads, tokens),
    )


def temperatures():
    of = temperature.log_temperature
    for steps, first in ((True, 1), (False, 0)):
        yield Case(of, partial(of, length=20, strength=0.1, first=first, steps=steps), far)
    of = temperature.power_temperature
    yield Case(of, partial(of, length=20, power=0.1, first=1), far)
    of = temperature.ssmax_temperature
    yield Case(of, of, lambda *n: (*far(*n), torch.rand(HEADS)))
    of = temperature.scale_queries
    yield from (Case(of, of, factored(*heads)) for heads in ((), (HEADS,)))


CASES = [
    Case(attention.scaled_dot_product, attention.scaled_dot_product, lambda *n: vectors(*n, HEADS)[:2]),
    Case(attention.attention, attention.attention, lambda *n: (*vectors(*n, HEADS), biased(*n)[-1])),
    Case(attention.attention, partial(attention.attention, causal=True), lambda *n: vectors(*n, HEADS)),
    *(
        Case(attention.SelfAttention, partial(Attends, **options), lambda *n: inputs(*n)[:1])
        for options in ({}, {"causal": True}, {"rotate": torch.neg, "score": nearness})
    ),
    Case(decoding.document_positions, decoding.document_positions, documents),
    Case(decoding.attention_mask, decoding.attention_mask, places),
    Case(decoding.attention_mask, partial(decoding.attention_mask, causal=False, window=3), places),
    Case(decoding.KeyValueCache, lambda: one_more, cached),
    Case(decoding.keep_slots, dropped, some),
    Case(decoding.move_positions, shifted, elsewhere),
    Case(decoding.write_slots, written, cached),
    Case(decoding.attend, decoding.attend, attended),
    Case(decoding.attend, decoding.attend, biased),
    Case(decoding.flex_attention_mask, masked, places),
    Case(decoding.flex_bias, scored, by_distance),
    Case(sinks.sink_softmax, sinks.sink_softmax, scores),
    Case(sinks.sink_softmax, sinks.sink_softmax, lambda *n: (scores(*n)[0], summed(*n)[1])),
    Case(sinks.apply_sink_gate, sinks.apply_sink_gate, summed),
    Case(sinks.apply_sink_gate, sinks.apply_sink_gate, lambda *n: (*summed(*n)[:2], torch.randn(HEADS))),
    Case(
        sinks.window_mask_with_first_tokens,
        partial(sinks.window_mask_with_first_tokens, window=3, num_first=2),
        lambda *n: places(*n)[:2],
    ),
    *temperatures(),
    Case(block.additive_mask, block.additive_mask, seen_and_bias),
    Case(block.Block, OneBlock, inputs),
    Case(block.Decoder, Scores, ids),
]
