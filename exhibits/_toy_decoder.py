"""A rotation and a decoder, small enough to read, with room for a fault."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import rms_norm

from snippets.check_positions import check_model

DIM, HEADS, WIDTH, VOCABULARY = 16, 2, 32, 50


class Memory(NamedTuple):
    """What a layer keeps of tokens, and which of them are real."""

    k: Tensor  # (batch, heads, tokens, dim)
    v: Tensor  # the same
    places: Tensor  # (batch, tokens), -1 for padding at the left
    real: Tensor  # (batch, tokens)

    def plus(self, k, v, places, real):
        k, v = torch.cat((self.k, k), 2), torch.cat((self.v, v), 2)
        places = torch.cat((self.places, places), 1)
        return Memory(k, v, places, torch.cat((self.real, real), 1))

    def latest(self, count):
        k, v = self.k[:, :, -count:], self.v[:, :, -count:]
        return Memory(k, v, self.places[:, -count:], self.real[:, -count:])

    @property
    def length(self):
        return self.k.shape[2]

    @property
    def next_place(self):  # (batch, 1)
        before = torch.full((len(self.k), 1), -1)
        return torch.cat((before, self.places), 1)[:, -1:] + 1


def empty(batch):
    none = torch.empty(batch, HEADS, 0, DIM)
    places = torch.empty(batch, 0, dtype=torch.int64)
    return Memory(none, none, places, places.bool())


def angles(positions, dim=DIM, base=10_000.0):
    """(..., tokens, dim / 2), of positions (..., tokens)."""
    steps = torch.arange(0, dim, 2) / dim
    return positions[..., None].float() * base**-steps


def turned(x, positions, angles=angles, layout="half"):
    """Rotate x (..., heads, tokens, dim) by positions (..., tokens)."""
    angle = angles(positions, x.shape[-1]).unsqueeze(-3)
    cos, sin = angle.cos(), angle.sin()
    if layout == "interleaved":
        a, b = x[..., ::2], x[..., 1::2]
        return torch.stack(
            (a * cos - b * sin, b * cos + a * sin), -1
        ).flatten(-2)
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


def frequencies(dim=DIM, base=10_000.0):
    """(dim / 2), as libraries keep them, in float32."""
    return 1.0 / base ** (torch.arange(0, dim, 2).float() / dim)


def turned_by(x, positions, frequencies, factor=1.0):
    """By these frequencies, of as many pairs as there are; the rest stays."""
    wide = 2 * len(frequencies)
    some, rest = x[..., :wide], x[..., wide:]
    out = turned(some, positions, lambda p, _: p[..., None] * frequencies)
    return torch.cat((out * factor, rest), dim=-1).to(x.dtype)


def visible(memory, queries, window=None):
    """(batch, 1, queries, keys); the queries are the last of the keys."""
    slots = torch.arange(memory.length)
    ago = slots[-queries:, None] - slots
    near = (ago >= 0) & (ago < (window or memory.length))
    return near & memory.real[:, None, None, :]


def look(q, memory, shown=None, window=None):
    """What the queries, the last tokens, read: the like of q."""
    if shown is None:
        shown = visible(memory, q.shape[2], window)
    scores = q @ memory.k.mT / q.shape[-1] ** 0.5
    return scores.masked_fill(~shown, -1e9).softmax(-1) @ memory.v


def behind(count, q):
    """Positions of queries that follow `count` tokens: (batch, queries)."""
    return (count + torch.arange(q.shape[2])).expand(len(q), -1)


def counted(ids, real, memory):
    """Positions (batch, tokens), of each row's real tokens."""
    return memory.next_place + real.cumsum(-1) - 1


def attend(layer, q, k, v, places, real, cache):
    """Rotate, cache and attend: what a layer does, and exhibits replace."""
    q, k = turned(q, places), turned(k, places)
    cache[layer] = cache[layer].plus(k, v, places, real)
    return look(q, cache[layer])


def decoder(attend=attend, place=counted, start=None, layers=2):
    """model(ids, mask, positions, cache) -> (logits, cache), weights fixed.

    place(ids, real, memory) counts positions where none are given;
    start(positions) is what is added to the embeddings.
    """
    made = torch.Generator().manual_seed(0)

    def weights(*shape):
        return torch.randn(*shape, generator=made) * shape[-2] ** -0.5

    table = weights(VOCABULARY, WIDTH) * VOCABULARY**0.5
    inward = [1.5 * weights(3, WIDTH, WIDTH) for _ in range(layers)]
    outward = [weights(WIDTH, WIDTH) for _ in range(layers)]

    def model(ids, mask=None, positions=None, cache=None):
        batch, tokens = ids.shape
        cache = list(cache or [empty(batch)] * layers)
        real = (
            torch.ones_like(ids) if mask is None else mask[:, -tokens:]
        ).bool()
        if positions is None:
            positions = place(ids, real, cache[0])
        x = table[ids] + (0 if start is None else start(positions))
        for n in range(layers):
            q, k, v = (
                (rms_norm(x, (WIDTH,)) @ w)
                .unflatten(-1, (HEADS, DIM))
                .transpose(1, 2)
                for w in inward[n]
            )
            out = attend(n, q, k, v, positions, real, cache)
            x = x + out.transpose(1, 2).flatten(-2) @ outward[n]
        return rms_norm(x, (WIDTH,)) @ table.T, cache

    model.weights = (table, *inward, *outward)
    return model


def server(place, start=None):
    """A decoder that counts positions itself, whatever it is given."""
    inner = decoder(place=place, start=start)

    def model(ids, mask=None, positions=None, cache=None):
        return inner(ids, mask, None, cache)

    model.weights = inner.weights
    return model


def check_decoder(attend, **promises):
    """What the checker says of a decoder with this attention."""
    model = decoder(attend)
    return check_model(model, VOCABULARY, weights=model.weights, **promises)


def check_server(place, start=None):
    """What the checker says of a server that counts like this."""
    model = server(place, start)
    return check_model(model, VOCABULARY, weights=model.weights)
