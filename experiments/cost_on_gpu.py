"""What does each encoding cost on one GPU? Time and memory of attention with it, in three ways.

    python -m experiments cost --device cuda

    mask       the bias, or all scores, handed to torch's scaled_dot_product_attention as a mask
    rule       flex_attention, compiled, which computes the bias of a pair where it needs it
    written    attention written out, which makes all scores
    decoding   one new token with a cache, in whichever of the first two ways there is

Each is timed forward and with its backward pass, in bfloat16. A row is kept as soon as it is measured.
"""

import datetime
import json
import statistics
import time
from functools import partial

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

from experiments.encodings import switch
from experiments.measure import peak_bytes, processor
from experiments.runs import written
from snippets.alibi import alibi_slopes
from snippets.block import Encoding, additive_mask
from snippets.rope import rope_frequencies

BATCH, HEADS, WIDTH, CLIP = 2, 16, 64, 64
LENGTHS, CACHE = (2048, 8192), 8192
WARM, TURNS = 3, 10  # calls before those that are timed, and these
FILE = "cost_on_gpu.json"
FULL = "out of memory"


class TransformersRope(Encoding):
    """RoPE by transformers, with tables in the dtype of queries and keys."""

    def tables(self, positions):
        angles = torch.outer(positions[0], rope_frequencies(WIDTH, base=10000).to(positions.device))
        return torch.cat((angles, angles), -1).cos(), torch.cat((angles, angles), -1).sin()

    def rotate(self, x, tables, role):
        from transformers.models.llama.modeling_llama import rotate_half

        cos, sin = (each.to(x) for each in tables)
        return x * cos + rotate_half(x) * sin


class TransformersT5(Encoding):
    """T5's bias by transformers."""

    def __init__(self):
        from transformers import T5Config
        from transformers.models.t5.modeling_t5 import T5Attention

        super().__init__()
        config = T5Config(d_model=HEADS * WIDTH, d_kv=WIDTH, num_heads=HEADS, is_decoder=True)
        self.layer = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)

    def parameters(self, recurse=True):
        return self.layer.relative_attention_bias.parameters()

    def bias(self, query_positions, key_positions):
        queries, keys = query_positions.shape[1], key_positions.shape[1]
        return self.layer.compute_bias(queries, keys, past_seen_tokens=keys - queries)


def encodings(keys):
    """How to make each encoding that acts within attention, and two of transformers, by name."""
    ours = switch(HEADS * WIDTH, HEADS, keys + 1, CLIP)
    before = ("sinusoidal", "learned")  # are added to what comes into attention
    within = {name: make for name, make in ours.items() if name not in before}
    return within | {"RoPE, transformers": TransformersRope, "T5, transformers": TransformersT5}


class Attention:
    """Attention with one encoding over one text, or of its last queries, on a device."""

    def __init__(self, name, queries, keys, device, dtype):
        self.name = name
        self.encoding = encodings(keys)[name]().to(device)
        if self.scores():  # its tables are multiplied by queries and keys
            for parameter in self.encoding.parameters():
                parameter.data = parameter.data.to(dtype)
        torch.manual_seed(0)
        make = partial(torch.randn, device=device, dtype=dtype)
        self.q = make(BATCH, HEADS, queries, WIDTH)
        self.k, self.v = (make(BATCH, HEADS, keys, WIDTH) for _ in range(2))
        self.keys = torch.arange(keys, device=device)[None]
        self.at = self.keys[:, keys - queries :]
        self.seen = self.at[..., None] >= self.keys[:, None]
        self.rules = {"none": None, "RoPE": None, "ALiBi": self.slope(device)}

    def scores(self):
        """Whether the encoding computes the scores, and is no bias."""
        return type(self.encoding).score is not Encoding.score

    def slope(self, device):
        """ALiBi's bias as a rule."""
        slopes, ahead = alibi_slopes(HEADS, device), self.keys.shape[1] - self.at.shape[1]
        return lambda score, b, h, i, j: score - slopes[h] * (ahead + i - j)

    def turned(self):
        rotate, tables = self.encoding.rotate, self.encoding.tables
        return rotate(self.q, tables(self.at), "query"), rotate(self.k, tables(self.keys), "key")

    def mask(self):
        q, k = self.turned()
        if self.scores():
            scores = self.encoding.score(q, k, self.at, self.keys)
            return scaled_dot_product_attention(q, k, self.v, additive_mask(self.seen, scores), scale=0.0)
        bias = self.encoding.bias(self.at, self.keys)
        if bias is None and self.at.shape == self.keys.shape:
            return scaled_dot_product_attention(q, k, self.v, is_causal=True)
        mask = additive_mask(self.seen, bias if bias is None else bias.to(q), q.dtype)
        return scaled_dot_product_attention(q, k, self.v, mask)

    def written(self):
        q, k = self.turned()
        scores = self.encoding.score(q, k, self.at, self.keys)
        bias = self.encoding.bias(self.at, self.keys)
        mask = additive_mask(self.seen, bias if bias is None else bias.to(scores), scores.dtype)
        return (scores + mask).softmax(-1).to(self.v) @ self.v

    def rule(self):
        """Make the mask of blocks, which serves all layers, and return the function that is timed."""
        queries, keys = self.at.shape[1], self.keys.shape[1]
        ahead = keys - queries
        blocks = create_block_mask(
            lambda b, h, i, j: ahead + i >= j, None, None, queries, keys, device=self.keys.device
        )
        attend = torch.compile(flex_attention, dynamic=False) if self.q.is_cuda else flex_attention

        def call():
            return attend(*self.turned(), self.v, score_mod=self.rules[self.name], block_mask=blocks)

        return call

    def ways(self):
        """Each way to make it, as a function without arguments."""
        found = {"mask": self.mask, "written": self.written}
        has_rule = self.name in self.rules and self.q.is_cuda  # elsewhere flex_attention has no gradient
        return found | ({"rule": self.rule()} if has_rule else {})

    def training(self, way):
        """The gradients of all that goes in, by one of the ways."""
        leaves = [each.requires_grad_() for each in (self.q, self.k, self.v, *self.encoding.parameters())]
        made = way()
        return torch.autograd.grad(made, leaves, torch.ones_like(made), allow_unused=True)


def seconds(way, device):
    """The median of the turns; on a GPU the time between two events of its stream."""
    times = []
    for _ in range(WARM + TURNS):
        if device.type == "cuda":
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            way()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) / 1000)
        else:
            start = time.perf_counter()
            way()
            times.append(time.perf_counter() - start)
    return float(f"{statistics.median(times[WARM:]):.3g}")


def most_bytes(way, device):
    """The most bytes at one time that a call takes, its result included."""
    if device.type != "cuda":
        return peak_bytes(way)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    way()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def row(attention, name, way, device):
    """What one way takes: seconds and bytes forward, and seconds with the backward pass of a whole text."""
    found = {
        "method": attention.name,
        "way": name,
        "queries": attention.at.shape[1],
        "keys": attention.keys.shape[1],
    }
    try:
        with torch.no_grad():
            found |= {"forward": seconds(way, device), "bytes": most_bytes(way, device)}
        if found["queries"] > 1:
            found["training"] = seconds(partial(attention.training, way), device)
    except torch.OutOfMemoryError:
        found["failed"] = FULL
    return found


def rows(device, dtype, lengths, cache):
    """Measure each encoding at each length, and decoding one token; yield a row for each way."""
    for name in encodings(cache):
        for queries, keys in (*((length, length) for length in lengths), (1, cache)):
            attention = Attention(name, queries, keys, device, dtype)
            for way, function in attention.ways().items():
                if way != "written" or queries > 1:
                    yield row(attention, way, function, device)


def main(device, folder, dtype=torch.bfloat16, lengths=LENGTHS, cache=CACHE):
    """Measure everything and keep each row in the folder as soon as it is there."""
    device = torch.device(device)
    made = {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else processor(),
        "torch": torch.__version__,
        "date": datetime.date.today().isoformat(),
        "dtype": str(dtype).removeprefix("torch."),
        "batch": BATCH,
        "heads": HEADS,
        "width": WIDTH,
        "rows": [],
    }
    folder.mkdir(parents=True, exist_ok=True)
    for each in rows(device, dtype, lengths, cache):
        made["rows"].append(each)
        (folder / FILE).write_text(written(made) + "\n", encoding="utf-8")
        print(json.dumps(each))
