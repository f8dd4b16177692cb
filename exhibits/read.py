"""Figures and tables of the chapter on content-dependent positions."""

import matplotlib.pyplot as plt
import torch
from executable_prose.figures.live import Live, Slider

from snippets.alibi import alibi_bias, alibi_slopes
from snippets.attention import SelfAttention, scaled_dot_product
from snippets.cope import CopeScores, cope_scores
from snippets.forgetting import forgetting_bias, wall_scores
from snippets.path_attention import path_scores
from snippets.relative_logits import relative_logits
from snippets.rope import apply_rope, rope_tables
from snippets.shaw import shaw_scores
from snippets.xpos import xpos_decay

WORDS = ["It", "rained", ".", "We", "left", ".", "Nobody", "cared"]
STOPS = torch.tensor([word == "." for word in WORDS])
# Layers in the default configurations of Transformers 5.23.0: the number of
# recurrent layers, the number of layers with attention, and whether the
# latter rotate queries and keys.
HYBRIDS = {
    "granitemoehybrid": (32, 0, None),
    "jamba": (28, 4, False),
    "kimi_linear": (21, 6, False),
    "minimax": (16, 16, True),
    "nemotron_h": (1, 1, False),
    "olmo_hybrid": (24, 8, True),
    "qwen3_5_text": (24, 8, True),
    "qwen3_next": (36, 12, True),
    "recurrent_gemma": (18, 8, True),
    "zamba2": (45, 9, False),
}
# The same in the configurations of released checkpoints, which the
# bibliography lists. None: not verified.
RELEASES = {
    "granitemoehybrid": {"Granite 4.0 H Small": (36, 4, False)},
    "jamba": {"Jamba v0.1": (28, 4, False)},
    "kimi_linear": {
        "Kimi Linear 48B": (20, 7, False),
        "Kimi K3": (69, 24, False),
    },
    "minimax": {"MiniMax-Text-01": (70, 10, True)},
    "nemotron_h": {
        "Nemotron-H 56B": (54, 10, False),
        "Nemotron 3 Nano 30B": (23, 6, False),
    },
    "olmo_hybrid": {"Olmo Hybrid 7B": (24, 8, False)},
    "qwen3_5_text": {"Qwen3.5 27B": (48, 16, True)},
    "qwen3_next": {"Qwen3-Next 80B": None},
    "recurrent_gemma": {"RecurrentGemma 2B": (18, 8, True)},
    "zamba2": {"Zamba2 2.7B": (45, 9, False)},
}


def _name_words(ax):
    """Label the axis of positions with the words."""
    ax.set_xticks(range(len(WORDS)), WORDS)


def doors():
    """Two rows of eight squares, one square per word. The last word listens.

    Above, all doors are ajar, and squares are paler the farther back they
    are. Below, the door after the second full stop is almost shut: the
    squares of all words before it are nearly white, and the two words after
    it have full colour.
    """
    ajar = torch.full((len(WORDS),), 0.8)
    shut = torch.where(STOPS.roll(1), 0.1, 0.95)
    fig, axes = plt.subplots(2, 1, figsize=(4.4, 2.3), sharex=True)
    named = zip(
        axes,
        ("all doors ajar", "doors shut after full stops"),
        (ajar, shut),
        strict=True,
    )
    for ax, name, gates in named:
        left = forgetting_bias(gates.log())[-1].exp().tolist()
        for place, loud in enumerate(left):
            ax.bar(place, 1, width=0.8, color="C2", alpha=loud)
            ax.bar(place, 1, width=0.8, fill=False, edgecolor="gray")
        ax.set_title(name, loc="left")
        ax.set_yticks([])
        ax.tick_params(length=0)
        ax.spines[["left", "bottom"]].set_visible(False)
    _name_words(axes[1])
    return fig


def by_gates():
    """Two lines that show, for each of eight words, the factor on its weight
    when the last word attends to it.

    With ALiBi, the line rises smoothly from the first word to the last. With
    gates, the words of the last sentence keep almost all of their weight, and
    there is a deep step at each full stop.
    """
    query, keys = torch.tensor([len(WORDS) - 1]), torch.arange(len(WORDS))
    level = alibi_bias(query, keys, torch.tensor([0.25]))[0, 0]

    def heard(stop, word):
        gates = torch.where(STOPS, stop, word).float()
        left = forgetting_bias(gates.log())[-1].exp()
        line = torch.stack((keys.double(), left.double()), 1)
        return {"gates": line, "last": left[3], "first": left[0]}

    live = Live(
        heard,
        {
            "stop": Slider("gate of a full stop", 0.01, 1, 0.2, step=0.01),
            "word": Slider("gate of other words", 0.01, 1, 0.95, step=0.01),
        },
        says="A fraction of {last:.2f} is left of “We”, and {first:.2f} of "
        "“It”.",
        call="import torch\n"
        "from forgetting import forgetting_bias\n\n"
        f"stops = torch.tensor({STOPS.tolist()})\n"
        "gates = torch.where(stops, {stop}, {word})\n"
        "left = forgetting_bias(gates.log())[-1].exp()\n"
        "left[3]\n"
        "left[0]",
        draws={"gates": "left"},
        tolerance=1e-6,
    )
    made = live.start()
    fig, ax = plt.subplots(figsize=(4.4, 2.9))
    ax.plot(keys, level.exp(), ":", color="gray", label="ALiBi")
    (live.moves["gates"],) = ax.plot(*made["gates"].T, "C2o-", label="gates")
    _name_words(ax)
    ax.set_ylim(0, 1.05)
    ax.set_ylabel("fraction left for “cared”")
    ax.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1))
    return fig, {"last": made["last"], "first": made["first"]}, live


def mixed():
    """A line that shows the weighted sum of three profiles, plotted against
    the distance from a query back to a key. The profiles are a peak at
    distance one, a fall from the query on and a slow rise. Beyond a dotted
    line, the sum is zero.
    """
    extent, query = 12, 15
    back = torch.arange(extent)
    bank = torch.stack(
        ((back == 1).float(), (-back / 2).exp(), back / (extent - 1))
    )
    here, keys = torch.tensor([query]), torch.arange(query + 1)
    # Each profile with weight one; a token adds them up with its weights.
    rows = relative_logits(torch.eye(3)[:, None], bank, here, keys)[:, 0]

    def added(peak, near, far):
        taken = torch.stack((peak, near, far))[:, None]
        bias = (taken * rows.double().flip(-1)).sum(0)
        line = torch.stack((keys.double(), bias), 1)
        return {"bias": line, "one": bias[1], "beyond": bias[extent]}

    live = Live(
        added,
        {
            "peak": Slider(
                "weight of “one back”", -3, 3, 3, 0.1, shows="{value:.1f}"
            ),
            "near": Slider(
                "weight of “near”", -3, 3, 0.5, 0.1, shows="{value:.1f}"
            ),
            "far": Slider(
                "weight of “far”", -3, 3, 0, 0.1, shows="{value:.1f}"
            ),
        },
        says="At distance one, {one:.2f} is added to the score; from the "
        "extent on, {beyond:.0f}.",
        call="import torch\n"
        "from relative_logits import relative_logits\n\n"
        f"back = torch.arange({extent})\n"
        "one = (back == 1).float()\n"
        f"bank = torch.stack((one, (-back / 2).exp(), back / {extent - 1}))\n"
        "state = torch.tensor([[{peak}, {near}, {far}]]).float()\n"
        f"at = torch.tensor([{query}]), torch.arange({query + 1})\n"
        "bias = relative_logits(state, bank, *at)[0].flip(0)\n"
        "bias[1]\n"
        f"bias[{extent}]",
        draws={"bias": "bias"},
        tolerance=1e-6,
    )
    made = live.start()
    fig, ax = plt.subplots(figsize=(4.4, 2.9))
    for n, name in enumerate(("one back", "near", "far")):
        ax.plot(back, bank[n], "--", color=f"C{n}", linewidth=1, label=name)
    (live.moves["bias"],) = ax.plot(*made["bias"].T, "C3.-", label="sum")
    ax.axvline(extent - 0.5, color="gray", linestyle=":")
    ax.set_ylim(-6.2, 6.2)
    ax.set_xticks(range(0, query + 1, 3))
    ax.set_xlabel("distance from the key to the query (tokens)")
    ax.set_ylabel("bias added to the score")
    ax.legend(ncols=4, loc="lower center", bbox_to_anchor=(0.45, 1))
    values = {"profiles": len(bank), "extent": extent, "one": made["one"]}
    return fig, values, live


def _positions(gates):
    """Return CoPE's positions of the keys for a query at the last key."""
    logits = torch.where(gates > 0, 100.0, -100.0)[:, None]
    rows = len(gates) + 2
    table = 1000.0 * torch.arange(rows)[:, None]  # position p scores 1000 p
    scores = cope_scores(torch.ones(1, 1), logits, table)
    return ((scores - logits.T) / 1000).flatten()


def cope_positions():
    """Two staircase lines that show the position of each word of three short
    sentences, relative to the last word. If every word counts, each word is a
    step of its own. If only full stops count, all words of a sentence are on
    one step.
    """
    every = _positions(torch.ones(len(WORDS)))
    stops = _positions(torch.tensor([word == "." for word in WORDS]))
    fig, ax = plt.subplots()
    place = range(len(WORDS))
    ax.step(place, every, "--", where="mid")
    ax.text(2.6, every[2], "every word counts", color="C0")
    ax.step(place, stops, where="mid")
    ax.text(0, stops[0] + 0.2, "only full stops count", color="C1")
    _name_words(ax)
    ax.set_ylabel("position relative to the last word")
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
    other[2] = 3 * q[0]  # a token that the gate of this query counts
    print("position term of the first key")
    print(f"  unchanged             {position_score(k):+.4f}")
    print(f"  two tokens swapped    {position_score(swapped):+.4f}")
    print(f"  one token replaced    {position_score(other):+.4f}")
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

    def unmasked(keys):  # the mistake: gates include later keys
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
    print(f"  masked before gates    {right:.2f}")
    print(f"  masked after gates     {wrong:.2f}")
    return {"right": right, "wrong": wrong}


def in_a_layer():
    layer = SelfAttention(dim=64, heads=4)
    cope = CopeScores(dim=16, rows=32)  # each head is 16 wide
    x = torch.randn(2, 100, 64)  # two sequences of 100 tokens

    output, weights = layer(x, score=cope)
    print(tuple(output.shape), tuple(weights.shape))
    print("attention to later tokens:", weights.triu(1).sum().item())


def cost():
    heads, tokens, dim, rows = 12, 2048, 64, 64
    mib = heads * tokens * 4 / 2**20
    print(f"table (parameters)    {rows * dim:>9,}")
    print(f"products with rows    {mib * rows:>5.0f} MiB")
    print(f"positions of all keys {mib * tokens:>5.0f} MiB")
    return {
        "heads": heads,
        "tokens": tokens,
        "rows": rows,
        "dim": dim,
        "table": rows * dim,
    }


def cope_in_tiles(tokens=301, dim=16, rows=24, tile=32):
    q, k, v = torch.randn(3, tokens, dim, dtype=torch.float64)
    table = torch.randn(rows, dim, dtype=torch.float64)
    outputs, largest = [], 0
    for first in range(0, tokens, tile):  # a block of queries
        own = q[first : first + tile]
        i = torch.arange(first, first + len(own))[:, None]
        by_row = own @ table.T  # (block, rows), for all its tiles
        step = by_row.diff(append=by_row[:, -1:])
        counted = total = own.new_zeros(len(own), 1)
        most, mix = counted - torch.inf, own * 0
        for start in range(first, -1, -tile):  # backwards from the queries
            j = torch.arange(start, min(start + tile, tokens))
            scores = own @ k[j].T / dim**0.5
            scores = scores.masked_fill(j > i, -torch.inf)
            p = scores.sigmoid().flip(-1).cumsum(-1).flip(-1) + counted
            counted = p[:, :1]  # the sum of the gates so far
            p = p.clamp(max=rows - 1)
            low = p.long()
            at_p = by_row.gather(1, low) + (p - low) * step.gather(1, low)
            scores = scores + at_p
            new = scores.amax(1, True).maximum(most)
            old, weights = (most - new).exp(), (scores - new).exp()
            total = total * old + weights.sum(1, True)
            mix, most = mix * old + weights @ v[j], new
            largest = max(largest, scores.numel())
        outputs.append(mix / total)
    whole = cope_scores(q, k, table).softmax(-1) @ v
    same = (torch.cat(outputs) - whole).abs().max().item() < 1e-11
    print("the same outputs to 1e-11:", same)
    return {
        "tokens": tokens,
        "same": same,
        "largest": largest,
        "all": tokens**2,
    }


def shaw_in_a_bank():
    clip, extent, width = 2, 5, 16
    table = torch.randn(2 * clip + 1, width)
    q, k, at = torch.randn(1, width), torch.zeros(8, width), torch.arange(8)
    row = clip - torch.arange(extent).clamp(max=clip)  # distance 0 first
    mixed = relative_logits(q / width**0.5, table[row].T, at[-1:], at)[0]
    shaw = shaw_scores(q, k, table, at[-1:], at)[0]
    print("distance  ", *(f"{n:>5}" for n in at.tolist()))
    for name, terms in (("Shaw", shaw), ("bank", mixed)):
        shown = (f"{term:5.2f}" for term in terms.flip(0).tolist())
        print(f"{name:<10}", *shown)
    apart = (mixed - shaw).abs().flip(0)
    return {
        "clip": clip,
        "extent": extent,
        "within": apart[:extent].max(),
        "beyond": apart[extent:].min(),
    }


def special_cases():
    tokens, dim, heads = 12, 8, 4
    slopes, at = alibi_slopes(heads).double(), torch.arange(tokens)
    gates = (-slopes)[:, None].expand(heads, tokens)
    bias = forgetting_bias(gates, dtype=torch.float64)
    alibi = alibi_bias(at, at, slopes).expand_as(bias)
    seen = torch.ones(tokens, tokens).tril() > 0

    q, k = torch.randn(2, tokens, dim, dtype=torch.float64)
    zeta = xpos_decay(dim).repeat_interleave(2)  # (dim)
    wall = wall_scores(q, k, (zeta.log() / 512).expand(tokens, dim))
    places = at[:, None].double()
    far_q, far_k = q * zeta ** (places / 512), k * zeta ** (-places / 512)
    decay = scaled_dot_product(far_q, far_k)

    angle = 0.3  # of one pair; two PaTH tokens for each position of RoPE
    steps = torch.tensor([0.0, -angle / 2], dtype=torch.float64).repeat(
        tokens
    )
    ways = torch.stack((steps.cos(), steps.sin()), -1)
    twice = torch.full((2 * tokens,), 2.0, dtype=torch.float64)
    pair_q, pair_k = q[:, :2], k[:, :2]
    both = (each.repeat_interleave(2, 0) for each in (pair_q, pair_k))
    path = path_scores(*both, ways, twice)[1::2, 1::2]
    tables = rope_tables(
        at, torch.tensor([angle], dtype=torch.float64), torch.float64
    )
    rotated = (apply_rope(each, *tables, "half") for each in (pair_q, pair_k))
    rope = scaled_dot_product(*rotated)

    apart = {
        "PaTH": (path - rope)[seen].abs().max(),
        "FoX": (bias - alibi)[:, seen].abs().max(),
        "Wall": (wall - decay)[seen].abs().max(),
    }
    print("equal gates at all tokens       difference")
    print(f"  one for each head: ALiBi      {apart['FoX']:.0e}")
    print(f"  one for each channel: xPos    {apart['Wall']:.0e}")
    print("two reflections")
    print(f"  alternating, one pair: RoPE   {apart['PaTH']:.0e}")
    return {**apart, "tokens": tokens}


def what_lies_between():
    """Test how position terms depend on tokens between query and key."""
    tokens, dim = 8, 4
    x, other = torch.randn(2, tokens, dim, dtype=torch.float64)
    gate = torch.randn(dim, dtype=torch.float64)
    table = torch.randn(tokens + 1, dim, dtype=torch.float64)
    bank = torch.randn(dim, tokens, dtype=torch.float64)
    at = torch.arange(tokens)
    ways = {
        "Inkling's profiles": lambda x: relative_logits(x, bank, at, at),
        "FoX's gate": lambda x: forgetting_bias((x @ gate).sigmoid().log()),
        "PaTH's matrices": lambda x: path_scores(
            x, x, x, (x @ gate).sigmoid()
        ),
        "CoPE": lambda x: cope_scores(x, x, table) - scaled_dot_product(x, x),
    }
    swapped, replaced = x.clone(), x.clone()
    swapped[[3, 5]], replaced[4] = x[[5, 3]], other[4]
    print(
        "| Method | One token replaced | Two tokens swapped |\n|---|---|---|"
    )
    found = {}
    for name, way in ways.items():
        first, last = way(x)[-1, 0], (len(x) - 1, 0)
        moves = [(way(y)[last] - first).abs() for y in (replaced, swapped)]
        cells = ["changes" if move > 1e-6 else "same" for move in moves]
        print(f"| {name} | {cells[0]} | {cells[1]} |")
        key = name.split("'")[0].lower()
        found |= {f"{key}_replaced": moves[0], f"{key}_swapped": moves[1]}
    return found


def recurrence():
    tokens, dim = 10, 4
    q, k, v = torch.randn(3, tokens, dim, dtype=torch.float64)
    log_gates = torch.rand(tokens, dtype=torch.float64).log()

    state, steps = torch.zeros(dim, dim, dtype=torch.float64), []
    for t in range(tokens):  # token by token, with one stored matrix
        state = log_gates[t].exp() * state + torch.outer(k[t], v[t])
        steps.append(q[t] @ state)

    left = forgetting_bias(log_gates, dtype=torch.float64).exp()
    whole = (q @ k.T * left) @ v  # all at once, with a weight for each pair
    apart = (torch.stack(steps) - whole).abs().max()
    print(f"largest difference: {apart:.0e}")
    return {"apart": apart}


def _layers(found):
    """Return a cell of the table: numbers of layers, and the rotation."""
    if found is None:
        return "not verified"
    recurrent, attention, rotates = found
    told = {True: ", RoPE", False: ", **no RoPE**", None: ""}[rotates]
    return f"{recurrent} + {attention}{told}"


def hybrids():
    """Compare hybrid models, with recurrent layers and layers with attention,
    by the defaults of their classes and as they were released.
    """
    print("| Model type | By default | Checkpoint | Released |")
    print("|---|---|---|---|")
    verified = []
    for kind, found in HYBRIDS.items():
        first = f"`{kind}` | {_layers(found)}"
        for name, released in RELEASES[kind].items():
            print(f"| {first} | {name} | {_layers(released)} |")
            verified += [released] if released else []
            first = " | "
    return {
        "models": len(verified),
        "bare": sum(not rotates for *_, rotates in verified),
    }


def summaries():
    rate, query = 4, 13
    print("tokens       rotated as   true distance    used")
    for first in range(0, (query + 1) // rate * rate, rate):
        last = first + rate - 1
        print(
            f"{first:>3} to {last:<4}{first:>14}"
            f"{query - last:>8} to {query - first:<4}{query - first:>8}"
        )
    return {"rate": rate, "wide": 128, "query": query}
