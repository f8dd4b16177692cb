"""What does each encoding cost? Time and memory against length, beside no encoding.

Ratios hold only between what was measured together. So there is one run, "all": in each round every
method at every length has its turn. It measures one thread of the CPU, whatever device others train on.

    own        what the encoding itself computes: vectors to add, rotated q and k, the bias, or the scores
    forward    one block: attention that makes all scores, and the network after it
    training   the same with the gradients of everything learned and of the input
    decoding   the block for one new token with a cache
    kernel     attention alone, by torch's own function, which need not make the scores
"""

import torch
from torch.nn.functional import scaled_dot_product_attention

from experiments.encodings import switch
from experiments.measure import keep_memory, peak_bytes, processor, seconds
from snippets.block import Block, Encoding, additive_mask

DIM, HEADS, CLIP = 256, 4, 64
LENGTHS = (256, 512, 1024, 2048)
CACHES = (1024, 2048, 4096, 8192)  # decoding: tokens in the cache
ROUNDS, PARTS = 6, 3  # parts of the rounds that each give a time, so that their spread is known

ENCODINGS = switch(DIM, HEADS, max(CACHES) + 1, CLIP)
DOORS = ("embed", "rotate", "bias", "score")


class Ways:
    """The ways to spend time on one encoding at one length, each a function without arguments."""

    def __init__(self, name, length):
        torch.manual_seed(0)
        self.block, self.encoding = Block(DIM, HEADS), ENCODINGS[name]()
        self.x = torch.randn(1, length, DIM, requires_grad=True)
        self.q, self.k, self.v = torch.randn(3, 1, HEADS, length, DIM // HEADS)
        self.positions = torch.arange(length)[None]
        self.seen = torch.ones(1, length, length, dtype=torch.bool).tril()
        self.upstream = torch.randn(1, length, DIM)
        self.token = torch.randn(1, 1, DIM)

    def doors(self):
        """The doors that the encoding uses; for none that of the scores, to compare with."""
        used = [door for door in DOORS if getattr(type(self.encoding), door) is not getattr(Encoding, door)]
        return used or ["score"]

    @torch.no_grad()
    def own(self):
        encoding, at = self.encoding, self.positions
        work = {
            "embed": lambda: encoding.embed(self.x, at),
            "rotate": self.turned,
            "bias": lambda: encoding.bias(at, at),
            "score": lambda: encoding.score(self.q, self.k, at, at),
        }
        return [work[door]() for door in self.doors()]

    def turned(self):
        encoding, tables = self.encoding, self.encoding.tables(self.positions)
        return encoding.rotate(self.q, tables, "query"), encoding.rotate(self.k, tables, "key")

    def through(self, x, at, keys, seen, past=None):
        mask = additive_mask(seen, self.encoding.bias(at, keys))
        x = self.encoding.embed(x, at)
        return self.block(x, self.encoding, self.encoding.tables(at), at, keys, mask, past)

    def whole(self):
        """What comes out for each token, and all keys and values."""
        return self.through(self.x, self.positions, self.positions, self.seen)

    @torch.no_grad()
    def forward(self):
        return self.whole()[0]

    def training(self):
        leaves = [self.x, *self.block.parameters(), *self.encoding.parameters()]
        return torch.autograd.grad(self.whole()[0], leaves, self.upstream, allow_unused=True)

    @torch.no_grad()
    def decoding(self):
        length = self.positions.shape[1]
        at, keys = torch.tensor([[length]]), torch.arange(length + 1)[None]
        seen = torch.ones(1, 1, length + 1, dtype=torch.bool)
        return self.through(self.token, at, keys, seen, (self.k, self.v))[0]

    @torch.no_grad()
    def kernel(self):
        encoding, at = self.encoding, self.positions
        q, k = self.turned()
        if "score" in self.doors() and type(encoding) is not Encoding:
            bias, scale = encoding.score(q, k, at, at), 0.0
        else:
            bias, scale = encoding.bias(at, at), None
        if bias is None:
            return scaled_dot_product_attention(q, k, self.v, is_causal=True)
        mask = additive_mask(self.seen, bias)
        return scaled_dot_product_attention(q, k, self.v, attn_mask=mask, scale=scale)


PLAN = {"own": LENGTHS, "forward": LENGTHS, "training": LENGTHS, "decoding": CACHES, "kernel": LENGTHS}


def encodings(plan, rounds, seed):
    """Seconds and bytes of each part of the plan, by method and then by length."""
    ways = {
        (part, name, length): getattr(Ways(name, length), part)
        for part, lengths in plan.items()
        for name in ENCODINGS
        for length in lengths
    }
    space = {name: peak_bytes(way) for name, way in ways.items()}
    time = seconds(ways, rounds, PARTS, seed)
    return {
        part: {
            "lengths": list(lengths),
            "seconds": {name: [time[part, name, n] for n in lengths] for name in ENCODINGS},
            "bytes": {name: [space[part, name, n] for n in lengths] for name in ENCODINGS},
        }
        for part, lengths in plan.items()
    }


def run(method, seed, device, plan=PLAN, rounds=ROUNDS):
    """Measure everything. plan says how long texts are in each part."""
    keep_memory()
    return {"width": DIM, "heads": HEADS, "rounds": rounds, "encodings": encodings(plan, rounds, seed)}


def provenance():
    return {"device": "cpu", "processor": processor(), "threads": 1}
