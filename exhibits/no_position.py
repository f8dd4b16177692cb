"""What the chapter on models without positions shows, and on counting."""

import itertools
import math

import matplotlib.pyplot as plt
import torch

from exhibits._drawing import name_lines
from snippets.attention import SelfAttention, attention, scaled_dot_product
from snippets.cope import CopeScores, cope_scores
from snippets.rope import apply_rope, rope_frequencies, rope_tables

WORDS = ["It", "rained", ".", "We", "left", ".", "Nobody", "cared"]


def ink():
    """Eight squares in a row. The first is full of colour; each further one
    is paler than the one before, and the last ones look alike.
    """
    fig, ax = plt.subplots(figsize=(4.4, 1.3))
    for place in range(1, 9):
        ax.bar(place, 1, width=0.7, color="C0", alpha=1 / place)
        ax.bar(place, 1, width=0.7, fill=False, edgecolor="gray")
    ax.set_xticks([1, 8], ["first word", "later words"])
    ax.set_yticks([])
    ax.tick_params(length=0)
    ax.spines[["left", "bottom"]].set_visible(False)
    return fig


def running_mean():
    tokens = 5
    flat = torch.zeros(tokens, 1)  # equal scores: every key counts the same
    values = torch.zeros(tokens, 1)
    values[0] = 1.0  # the start mark carries a one
    seen = attention(flat, flat, values, causal=True)[0].flatten()
    whole = attention(flat, flat, values)[0].flatten()
    print("place  with mask  without")
    for place in range(tokens):
        print(f"{place + 1:>5}{seen[place]:>11.2f}{whole[place]:>9.2f}")
    return {"tokens": tokens}


def _layer(seed):
    torch.manual_seed(seed)
    return SelfAttention(16, 4).double().requires_grad_(False)


def _rotate(x):
    tokens, dim = x.shape[-2:]
    w = rope_frequencies(dim)
    tables = rope_tables(torch.arange(tokens), w, x.dtype)
    return apply_rope(x, *tables, "half")


def orders():
    x = torch.randn(5, 16, dtype=torch.float64)
    layers = [_layer(0), _layer(1)]
    stacks = {
        "one NoPE layer": [None],
        "two NoPE layers": [None, None],
        "RoPE, then NoPE": [_rotate, None],
    }
    print("different last outputs")
    found = {}
    for name, stack in stacks.items():
        seen = []
        for order in itertools.permutations(range(4)):
            y = x[[*order, 4]]
            for layer, rotate in zip(layers, stack, strict=False):
                y = y + layer(y, rotate=rotate, causal=True)[0]
            if not any((y[-1] - z).abs().max() < 1e-4 for z in seen):
                seen.append(y[-1])
        found[name] = len(seen)
        print(f"  {name:<17}{len(seen):>4}")
    return {
        "orders": math.factorial(4),
        "one": found["one NoPE layer"],
        "two": found["two NoPE layers"],
    }


def distinct_places():
    """Three lines on logarithmic scales: how many different values of one
    over the place there are. float32 keeps a straight line; float16 and
    bfloat16 bend away from it, bfloat16 first.
    """
    tokens = 16_384
    exact = 1 / torch.arange(1, tokens + 1, dtype=torch.float64)
    shown = torch.logspace(1, math.log10(tokens), 40).long() - 1
    fig, ax = plt.subplots()
    count, twin = {}, {}
    for dtype, line in (
        (torch.float32, ":"),
        (torch.float16, "--"),
        (torch.bfloat16, "-"),
    ):
        name = str(dtype).removeprefix("torch.")
        kept = exact.to(dtype).double()
        new = torch.cat([torch.ones(1), (kept[1:] != kept[:-1]).double()])
        count[name] = new.cumsum(0)
        twin[name] = (new == 0).double().argmax().item()
        ax.loglog(shown + 1, count[name][shown], line, label=name)
    ax.set_xlabel("places")
    ax.set_ylabel("different values")
    name_lines(ax)
    return fig, {
        "tokens": tokens,
        "bfloat16": twin["bfloat16"],
        "float16": twin["float16"],
        "kept": count["bfloat16"][-1],
        "kept16": count["float16"][-1],
    }


def shrinking():
    """Two lines on logarithmic scales: the size of what an untrained
    attention layer gives out falls with the place behind a causal mask and is
    level without one. They meet at the last place, which sees all.
    """
    tokens, texts = 256, 48
    x = torch.randn(texts, tokens, 32)
    torch.manual_seed(0)
    layer = SelfAttention(32, 4).requires_grad_(False)
    fig, ax = plt.subplots()
    size = {}
    for causal, line, name in (
        (True, "-", "causal mask"),
        (False, "--", "no mask"),
    ):
        output = layer(x, causal=causal)[0]
        size[name] = output.square().mean((0, 2)).sqrt()
        shown = torch.logspace(0, math.log10(tokens), 40).long().unique() - 1
        ax.loglog(shown + 1, size[name][shown], line, label=name)
    ax.set_xlabel("place")
    ax.set_ylabel("size of the output")
    name_lines(ax)
    causal = size["causal mask"]
    return fig, {
        "texts": texts,
        "early": 4,
        "late": tokens,
        "fall": causal[3] / causal[-1],
        "root": math.sqrt(tokens / 4),
    }


def dilution():
    """Two curves over the number of keys: the weight of one key that leads
    all others by a fixed score falls towards zero. If the lead grows with the
    logarithm of the length, the weight does not fall.
    """
    lead, trained = 8.0, 1024
    keys = torch.logspace(1, 6, 50)
    fixed = 1 / (1 + (keys - 1) * math.exp(-lead))
    grown = lead * keys.log() / math.log(trained)
    growing = 1 / (1 + (keys - 1) * (-grown).exp())
    fig, ax = plt.subplots()
    ax.semilogx(keys, fixed, label="the same lead")
    ax.semilogx(keys, growing, "--", label="lead ∝ log\nof the length")
    ax.axvline(trained, color="gray", linestyle=":")
    ax.set_xlabel("keys")
    ax.set_ylabel("weight of the leading key")
    ax.set_ylim(0, 1.05)
    name_lines(ax)
    return fig, {
        "lead": lead,
        "trained": trained,
        "start": 1 / (1 + (trained - 1) * math.exp(-lead)),
        "end": fixed[-1],
        "keys": keys[-1],
    }


def layer_plans(layers=12):
    """Three rows of twelve cells, one a layer. In each row three filled cells
    alternate with an empty one; the filled ones are labelled with the span
    that they see, which differs between the rows.
    """
    plans = {
        "llama4": "its chunk",
        "smollm3": "all",
        "cohere2": "a window",
    }
    uses_rope = [(layer + 1) % 4 != 0 for layer in range(layers)]
    fig, ax = plt.subplots(figsize=(4.4, 1.9))
    tops = [0.0, -1.6, -3.2]
    for top, rotated in zip(tops, plans.values(), strict=True):
        for layer, rope in enumerate(uses_rope):
            face = "C0" if rope else "none"
            ax.add_patch(
                plt.Rectangle((layer, top), 0.9, 0.8, fc=face, ec="C0")
            )
        spans = f"RoPE sees {rotated}, NoPE sees all"
        ax.text(0, top - 0.1, spans, va="top")
    ax.set_yticks([top + 0.4 for top in tops], list(plans))
    ax.set_xticks([0.45, 3.45, 7.45, 11.45], [1, 4, 8, 12])
    ax.set_xlim(-0.1, layers)
    ax.set_ylim(-3.9, 0.9)
    ax.set_xlabel("layer")
    ax.tick_params(length=0)
    ax.spines[["left", "bottom"]].set_visible(False)
    return fig, {"every": 4}


def _positions(gates):
    """The positions of the keys for a query at the last of them."""
    logits = torch.where(gates > 0, 100.0, -100.0)[:, None]
    rows = len(gates) + 2
    table = 1000.0 * torch.arange(rows)[:, None]  # position p scores 1000 p
    scores = cope_scores(torch.ones(1, 1), logits, table)
    return ((scores - logits.T) / 1000).flatten()


def cope_positions():
    """Two staircases over the words of three short sentences. Counting words,
    every word is a step of its own; counting full stops, all words of a
    sentence stand on one step.
    """
    every = _positions(torch.ones(len(WORDS)))
    stops = _positions(torch.tensor([word == "." for word in WORDS]))
    fig, ax = plt.subplots()
    place = range(len(WORDS))
    ax.step(place, every, "--", where="mid")
    ax.text(2.6, every[2], "count every word", color="C0")
    ax.step(place, stops, where="mid")
    ax.text(0, stops[0] + 0.2, "count full stops", color="C1")
    # Two rows of words, which would else touch.
    ax.set_xticks(
        place, ["\n" * (n % 2) + word for n, word in enumerate(WORDS)]
    )
    ax.set_ylabel("position seen from the end")
    return fig, {
        "first_by_words": every[0],
        "first_by_stops": stops[0],
        "last_by_stops": stops[-1],
    }


def between():
    torch.manual_seed(2)
    q, k, table = torch.randn(1, 4), torch.randn(6, 4), torch.randn(9, 4)

    def position_score(keys):
        content = scaled_dot_product(q, keys)
        return (cope_scores(q, keys, table) - content)[0, 0].item()

    swapped, other = k[[0, 2, 1, 3, 4, 5]], k.clone()
    other[2] = 3 * q[0]  # a token that this query counts
    print("what the first key gets for its position")
    print(f"  as it is              {position_score(k):+.4f}")
    print(f"  two between swapped   {position_score(swapped):+.4f}")
    print(f"  one between replaced  {position_score(other):+.4f}")
    return {
        "as_it_is": position_score(k),
        "swapped": position_score(swapped),
        "replaced": position_score(other),
    }


def leak():
    q, k, other = torch.randn(3, 8, 4)
    table = torch.randn(9, 4)
    other[:6] = k[:6]  # only the last two keys differ
    by_row = q @ table.T

    def unmasked(keys):  # the mistake: gates see the keys that come later
        gates = scaled_dot_product(q, keys).sigmoid()
        p = gates.flip(-1).cumsum(-1).flip(-1).clamp(max=8)
        low, part = p.long(), p.frac()
        high = (low + 1).clamp(max=8)
        mean = (1 - part) * by_row.gather(-1, low)
        return mean + part * by_row.gather(-1, high)

    past = torch.ones(6, 6).tril() > 0
    right = cope_scores(q, k, table) - cope_scores(q, other, table)
    wrong = unmasked(k) - unmasked(other)
    right, wrong = (
        change[:6, :6][past].abs().max() for change in (right, wrong)
    )
    print("largest change of an earlier score")
    print(f"  gates behind the mask  {right:.2f}")
    print(f"  gates without a mask   {wrong:.2f}")
    return {"right": right, "wrong": wrong}


def in_a_layer():
    layer = SelfAttention(dim=64, heads=4)
    cope = CopeScores(dim=16, rows=32)  # each head is 16 wide
    x = torch.randn(2, 100, 64)  # two texts of 100 tokens

    output, weights = layer(x, score=cope)
    print(tuple(output.shape), tuple(weights.shape))
    print("attention to later tokens:", weights.triu(1).sum().item())


def cost():
    heads, tokens, dim, rows = 12, 2048, 64, 64
    mib = heads * tokens * 4 / 2**20
    print(f"table (parameters)    {rows * dim:>9,}")
    print(f"scores of the rows    {mib * rows:>5.0f} MiB")
    print(f"positions of all keys {mib * tokens:>5.0f} MiB")
    return {
        "heads": heads,
        "tokens": tokens,
        "rows": rows,
        "dim": dim,
        "table": rows * dim,
    }
