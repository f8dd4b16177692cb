"""Figures of the chapter on NoPE (no positional encoding)."""

import itertools
import math

import matplotlib.pyplot as plt
import torch
from executable_prose import Live, Slider

from exhibits import _loss_by_context, evidence
from exhibits._drawing import name_lines
from snippets.attention import SelfAttention, attention
from snippets.block import Block, Encoding, additive_mask
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from snippets.sinks import sink_softmax
from snippets.temperature import log_temperature, power_temperature


def bowls():
    """Two bowls of water, each with one cup of ink in it: the bowl of one
    word and the bowl of the next word, which is a little paler.
    """
    most = 40
    places = torch.arange(most + 1)
    flat = torch.zeros(most + 1, 1, dtype=torch.float64)  # all count alike
    cups = (places == 0).double()[:, None]  # the first word pours ink

    def pour(word):
        def seen(last):
            hidden = torch.where(places < last, 0.0, -math.inf)[None]
            return attention(flat[:1], flat, cups, bias=hidden)[0]

        return {
            "this": seen(word),
            "next": seen(word + 1),
            "water": word - 1,
            "parts": word + 1,
        }

    live = _bowls_live(pour, most)
    made, moves = live.start(), live.moves
    fig, axes = plt.subplots(1, 2, figsize=(4.4, 1.9))
    turn = torch.linspace(0, math.pi, 60)
    rim = torch.stack((turn.cos(), -turn.sin()), 1)
    for ax, name in zip(axes, ("this", "next"), strict=True):
        bowl = plt.Polygon(rim, closed=True, fill=False, color="gray")
        ax.add_patch(bowl)
        moves[name] = ax.imshow(
            made[name],
            extent=(-1, 1, -1, 0),
            vmin=0,
            vmax=1,
            clip_path=bowl,
        )
        ax.set(xlim=(-1.1, 1.1), ylim=(-1.05, 0.1), aspect="equal")
        ax.axis("off")
    moves["name"] = axes[0].text(0, 0.1, "", ha="center", va="bottom")
    axes[1].text(0, 0.1, "the next word", ha="center", va="bottom")
    return fig, live


def _bowls_live(pour, most):
    return Live(
        pour,
        {"word": Slider("words so far", 1, most, 3)},
        says="One cup of ink and {water:.0f} of water. The next word's bowl "
        "is paler by one part in {parts:.0f}.",
        texts={"name": "word {word:.0f}"},
        tolerance=1e-9,
    )


def bare():
    """Two rows of dots along an axis of probabilities: in each row, one dot
    for each positional encoding, and a larger black dot for none.

    At the training length, the black dot has the lowest probability. Far
    beyond that length, two other dots are far lower, and two more are about
    as low.
    """
    read = {
        "training length": _loss_by_context.NEAR,
        "far beyond": _loss_by_context.LONG,
    }
    fig, ax = plt.subplots(figsize=(4.4, 1.8))
    for row, before in enumerate(read.values()):
        losses = _loss_by_context.losses(before)
        at = {n: 100 * (-each.mean()).exp() for n, each in losses.items()}
        none = at.pop("none")
        ax.scatter([*at.values()], [-row] * len(at), color="gray")
        ax.scatter(none, -row, s=90, color="black")
        if row == 0:
            ax.text(none, 0.22, "no positions", ha="center")
    ax.set(ylim=(-1.4, 0.6))
    ax.set_xlabel("typical probability of the right letter (%)")
    ax.set_yticks([0, -1], read)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    told = evidence.verdicts()
    return fig, {
        "marks": len(at),
        "all": len(losses),
        "beaten_far": told["worse"],
        "alike_far": told["alike"],
    }


def running_mean():
    tokens = 5
    flat = torch.zeros(tokens, 1)  # equal scores: every key counts the same
    values = torch.zeros(tokens, 1)
    values[0] = 1.0  # the start mark carries a one
    seen = attention(flat, flat, values, causal=True)[0].flatten()
    whole = attention(flat, flat, values)[0].flatten()
    print("position  with mask  without mask")
    for place in range(tokens):
        print(f"{place + 1:>8}{seen[place]:>11.2f}{whole[place]:>14.2f}")
    return {"tokens": tokens}


def _layer(seed):
    torch.manual_seed(seed)
    return SelfAttention(16, 4).double().requires_grad_(False)


def _rotate(x):
    tokens, dim = x.shape[-2:]
    w = rope_frequencies(dim, base=10000)
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
    print("different outputs at the last token")
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


class Local(Encoding):
    """RoPE in a sliding window that includes the token itself."""

    def __init__(self, width, base, window):
        super().__init__()
        self.frequencies, self.window = rope_frequencies(width, base), window

    def tables(self, positions):
        return rope_tables(positions, self.frequencies)

    def rotate(self, x, tables, role):
        return apply_rope(x, *tables, "half")

    def bias(self, query_positions, key_positions):
        back = query_positions[..., :, None] - key_positions[..., None, :]
        return torch.where(back < self.window, 0.0, -math.inf)[:, None]


def hybrid():
    local = Local(width=16, base=10_000, window=8)
    plan = 3 * [local] + [Encoding()]  # the encoding of each layer
    blocks = [Block(dim=64, heads=4) for _ in plan]

    def run(x, positions, plan):
        seen = positions[:, None, :] <= positions[:, :, None]
        for block, kind in zip(blocks, plan, strict=False):
            mask = additive_mask(seen, kind.bias(positions, positions))
            tables = kind.tables(positions)
            x, _ = block(x, kind, tables, positions, positions, mask)
        return x

    x, at = torch.randn(1, 40, 64, requires_grad=True), torch.arange(40)[None]
    reach = {}
    for name, kinds in (
        ("windows only", plan[:3]),
        ("all layers", plan),
    ):
        (slope,) = torch.autograd.grad(run(x, at, kinds)[0, -1].sum(), x)
        reach[name] = (slope[0].abs().sum(-1) > 0).sum()
        print(f"{name:<14}last token depends on {reach[name]} tokens")
    apart = (run(x, at + 1000, plan) - run(x, at, plan)).abs().max()
    print(f"change if all positions move by 1,000: {apart:.0e}")
    return {
        "windows": reach["windows only"],
        "all": reach["all layers"],
        "apart": apart,
    }


def distinct_places():
    """Three lines on logarithmic scales: the number of different values of
    1/t up to each position t. The line of float32 is straight; float16 and
    bfloat16 bend away below it, bfloat16 first.
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
    ax.set_xlabel("position t")
    ax.set_ylabel("different values of 1/t")
    name_lines(ax)
    return fig, {
        "tokens": tokens,
        "bfloat16": twin["bfloat16"],
        "float16": twin["float16"],
        "kept": count["bfloat16"][-1],
        "kept16": count["float16"][-1],
    }


def shrinking():
    """Two lines on logarithmic scales: the root mean square of the output of
    an untrained attention layer, by position. With a causal mask it falls;
    without one it is level. They meet at the last position, which sees all.
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
    ax.set_xlabel("position")
    ax.set_ylabel("output (root mean square)")
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
    """Two curves of the weight of one key, against the number of keys. If its
    score exceeds all others by a constant, the weight falls towards zero. If
    this lead grows with the logarithm of the length, it does not fall.
    """
    lead, trained = 8.0, 1024
    keys = torch.logspace(1, 6, 50)
    fixed = 1 / (1 + (keys - 1) * math.exp(-lead))
    grown = lead * keys.log() / math.log(trained)
    growing = 1 / (1 + (keys - 1) * (-grown).exp())
    fig, ax = plt.subplots()
    ax.semilogx(keys, fixed, label="constant lead")
    ax.semilogx(keys, growing, "--", label="lead ∝ log\nof the length")
    ax.axvline(trained, color="gray", linestyle=":")
    ax.set_xlabel("number of keys")
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
    """Three rows of twelve cells, one row per model and one cell per layer.
    In each row, every fourth cell is empty (no RoPE) and the others are
    filled. A label below each row says what the layers with RoPE see: a chunk
    in llama4, all tokens in smollm3 and a window in cohere2.
    """
    plans = {
        "llama4": "a chunk",
        "smollm3": "all tokens",
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
        spans = f"RoPE layers see {rotated}, NoPE layers all tokens"
        ax.text(0, top - 0.1, spans, va="top")
    ax.set_yticks([top + 0.4 for top in tops], list(plans))
    ax.set_xticks([0.45, 3.45, 7.45, 11.45], [1, 4, 8, 12])
    ax.set_xlim(-0.1, layers)
    ax.set_ylim(-3.9, 0.9)
    ax.set_xlabel("layer")
    ax.tick_params(length=0)
    ax.spines[["left", "bottom"]].set_visible(False)
    return fig, {"every": 4}


def sink():
    """Three curves of the total weight of all keys, against the score of the
    best key. Without a sink, it is one everywhere. With a sink, it is low if
    no key fits and rises to nearly one; with the higher sink it rises later.
    """
    keys, best = 16, torch.linspace(-4, 12, 65)
    scores = torch.zeros(len(best), 1, 1, keys)
    scores[:, 0, 0, 0] = best
    scores[:, 0, 0, 1:] = -2.0
    fig, ax = plt.subplots(figsize=(4.4, 2.9))
    share = {}
    for height, line in ((-math.inf, ":"), (2.0, "-"), (6.0, "--")):
        weights = sink_softmax(scores, torch.tensor([height]))
        share[height] = weights.sum(-1).flatten()
        name = "no sink" if height < 0 else f"sink {height:.0f}"
        ax.plot(best, share[height], line, label=name)
    ax.set_ylim(0, 1.05)
    ax.set_xlabel("score of the best key")
    ax.set_ylabel("total attention weight of the keys")
    name_lines(ax)
    return fig, {"keys": keys, "low": share[2.0][0], "high": share[2.0][-1]}


def temperatures():
    """Four lines: the factor on the scores against the position (log axis).
    Llama 4 and Ministral 3 stay at one up to a length and then rise in steps;
    Inkling-2 rises later and smoothly; Beam, a power of the position, rises
    from the start and ends highest.
    """
    at = torch.logspace(0, 6, 90).long().unique()
    ways = {
        "Llama 4": log_temperature(at, 8192, 0.1, first=1, steps=True),
        "Ministral 3": log_temperature(at, 16384, 0.1, first=0, steps=True),
        "Inkling-2": log_temperature(at, 128_000, 0.1, first=1, steps=False),
        "Beam": power_temperature(at, 2048, 0.1, first=1),
    }
    fig, ax = plt.subplots(figsize=(4.4, 2.9))
    lines = ("-", "--", "-.", ":")
    for (name, factors), line in zip(ways.items(), lines, strict=True):
        ax.semilogx(at, factors, line, label=name)
    ax.set_xlabel("position")
    ax.set_ylabel("factor on the scores")
    name_lines(ax)
    return fig, {
        "last": at[-1],
        "least": min(factors[-1] for factors in ways.values()),
        "most": max(factors[-1] for factors in ways.values()),
    }
