"""Ten files at work, each alone in a folder: what a copy has to do in someone else's attention layer.

python -I tests/copied.py FOLDER

FOLDER has a folder for each of USES, with the copied file in it and nothing else. The code here is written
from the docstrings.
"""

import importlib
import math
import sys
from pathlib import Path

import torch
from torch.nn.functional import scaled_dot_product_attention
from torch.testing import assert_close

BATCH, HEADS, KEY_HEADS, TOKENS, DIM = 2, 4, 2, 12, 16
PADDING, CACHED = 5, 9  # in the first row; tokens that are read before the others


class Use(torch.nn.Module):
    """An attention layer's inside, without positions: an encoding overrides what it changes."""

    scale = None

    def __init__(self, copied):
        super().__init__()
        self.copied = copied

    def turn(self, x, at, role):
        return x

    def bias(self, q, k, at, keys):
        return q.new_zeros(())

    def forward(self, q, k, v, at, keys, seen):
        mask = self.bias(q, k, at, keys).masked_fill(~seen[:, None], -math.inf).to(q.dtype)
        return scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=self.scale, enable_gqa=True)


class Sinusoidal(Use):
    def turn(self, x, at, role):
        return self.copied.AddSinusoidal(DIM)(x, at[:, None])


class Learned(Use):
    def __init__(self, copied):
        super().__init__(copied)
        self.add = copied.AddLearned(TOKENS, DIM)

    def turn(self, x, at, role):
        return self.add(x, at[:, None])


class Rope(Use):
    def __init__(self, copied):
        super().__init__(copied)
        self.frequencies = copied.rope_frequencies(DIM, base=10000)

    def turn(self, x, at, role):
        return self.copied.apply_rope(x, *self.copied.rope_tables(at, self.frequencies), "half")


class RopeScaling(Use):
    def turn(self, x, at, role):
        slower = self.copied.yarn(10000.0 ** -(torch.arange(0, DIM, 2) / DIM), 4.0, 4096)
        angles = (at[..., None] * slower)[:, None]
        even, odd = x.float().chunk(2, -1)
        turned = even * angles.cos() - odd * angles.sin(), odd * angles.cos() + even * angles.sin()
        return torch.cat(turned, -1).to(x.dtype)


class Xpos(Use):
    def turn(self, x, at, role):
        return self.copied.apply_xpos(x, *self.copied.xpos_tables(at, DIM, role, centre=0))


class Alibi(Use):
    def bias(self, q, k, at, keys):
        return self.copied.alibi_bias(at, keys, self.copied.alibi_slopes(HEADS, q.device), q.dtype)


class T5Bias(Use):
    def __init__(self, copied):
        super().__init__(copied)
        self.learned = copied.T5Bias(HEADS, bidirectional=False)

    def bias(self, q, k, at, keys):
        return self.learned(at, keys)


class Fire(T5Bias):
    def __init__(self, copied):
        Use.__init__(self, copied)
        self.learned = copied.FireBias(HEADS)


class Shaw(Use):
    scale = 0.0  # its scores hold those of q and k

    def __init__(self, copied):
        super().__init__(copied)
        self.learned = copied.ShawTables(DIM, clip=4)

    def bias(self, q, k, at, keys):
        return self.learned(q, k, at, keys)


class Decoding(Use):
    def forward(self, q, k, v, at, keys, seen):
        return self.copied.attend(q, k, v, seen)


USES = {
    "sinusoidal": Sinusoidal,
    "learned": Learned,
    "rope": Rope,
    "rope_scaling": RopeScaling,
    "xpos": Xpos,
    "alibi": Alibi,
    "t5_bias": T5Bias,
    "fire": Fire,
    "shaw": Shaw,
    "decoding": Decoding,
}


def positions():
    """Of rows as long as each other, the first with padding on its left; and what each token may see."""
    real = torch.arange(TOKENS) >= torch.tensor([[PADDING], [0]])
    at = (real.cumsum(-1) - 1).clamp(min=0)
    return at, real[:, :, None].eq(real[:, None]) & (at[:, None] <= at[:, :, None])


def check(use):
    """AssertionError unless it does what is wanted, each in the words of its name."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(BATCH, n, TOKENS, DIM, generator=generator) for n in (HEADS, KEY_HEADS, KEY_HEADS))
    at, seen = positions()
    turned = use.turn(q, at, "query"), use.turn(k, at, "key"), v, at, at, seen
    whole = use(*turned)
    assert whole.shape == q.shape

    def grouped_queries():
        k, v = (x.repeat_interleave(HEADS // KEY_HEADS, 1) for x in turned[1:3])
        assert_close(use(turned[0], k, v, at, at, seen), whole)

    def left_padding():
        alone = [x[:1, :, PADDING:] for x in (q, k, v)]
        place = torch.arange(TOKENS - PADDING)[None]
        alone = use.turn(alone[0], place, "query"), use.turn(alone[1], place, "key"), alone[2]
        assert_close(use(*alone, place, place, place[..., None] >= place), whole[:1, :, PADDING:])

    def cached_decoding():
        kept = use.turn(k[:, :, :CACHED], at[:, :CACHED], "key")
        for n in range(CACHED, TOKENS):
            now = at[:, n : n + 1]
            kept = torch.cat((kept, use.turn(k[:, :, n : n + 1], now, "key")), -2)
            row = use.turn(q[:, :, n : n + 1], now, "query")
            made = use(row, kept, v[:, :, : n + 1], now, at[:, : n + 1], seen[:, n : n + 1, : n + 1])
            assert_close(made, whole[:, :, n : n + 1])

    def bfloat16_autocast():
        with torch.autocast("cpu", torch.bfloat16):
            halves = [use.turn(x.bfloat16(), at, role) for x, role in ((q, "query"), (k, "key"))]
            made = use(*halves, v.bfloat16(), at, at, seen)
        assert made.dtype == torch.bfloat16
        assert_close(made.float(), whole, rtol=0, atol=0.05)

    def compiles():
        torch.compiler.reset()
        assert_close(torch.compile(layer, fullgraph=True, backend="eager")(q, k, v, at, seen), whole)

    def exports():
        program = torch.export.export(layer, (q, k, v, at, seen))
        assert_close(program.module()(q, k, v, at, seen), whole)

    layer = Layer(use)
    for each in (grouped_queries, left_padding, cached_decoding, bfloat16_autocast, compiles, exports):
        each()


class Layer(torch.nn.Module):
    def __init__(self, use):
        super().__init__()
        self.use = use

    def forward(self, q, k, v, at, seen):
        q, k = self.use.turn(q, at, "query"), self.use.turn(k, at, "key")
        return self.use(q, k, v, at, at, seen)


def main(folder):
    for name, use in USES.items():
        (file,) = (folder / name).iterdir()
        sys.path.insert(0, str(file.parent))
        copied = importlib.import_module(name)
        sys.path.pop(0)
        assert Path(copied.__file__) == file
        check(use(copied))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
