"""Figures and tables of the chapter on attention biases."""

import math
import warnings

import matplotlib.pyplot as plt
import torch
from executable_prose import Live, Slider
from torch.nn.functional import scaled_dot_product_attention

from exhibits import _loss_by_context
from exhibits._drawing import name_lines
from experiments.language import CONTEXTS
from snippets.alibi import alibi_bias, alibi_bias_symmetric, alibi_slopes
from snippets.clipped_bias import clipped_bias
from snippets.fire import FireBias
from snippets.kerple import kerple_log_bias, kerple_power_bias
from snippets.sandwich import sandwich_bias

# Small enough to do without torch.compile, which torch would have.
warnings.filterwarnings("ignore", "flex_attention called without")

SHARE = 0.95  # of the attention, in the figures of reach


def _fire_line(heads, drop, **options):
    """Return FIRE with a network set by hand: a head gives -drop * input."""
    fire = FireBias(heads, hidden=1, **options).requires_grad_(False)
    for parameter, value in zip(
        fire.mlp.parameters(), (1, 0, -drop, 0), strict=True
    ):
        parameter.fill_(value)
    return fire


def _one(value):
    """Return the same number as a parameter of a single head."""
    return torch.tensor([float(value)])


def _by_distance(bias, count):
    """Return a bias of one head as a function of the distance, from 0 on.

    bias takes query and key positions. The query is at the last of `count`
    positions, and the bias is shifted to zero at distance 0.
    """
    query, keys = torch.tensor([count - 1]), torch.arange(count)
    row = bias(query, keys)[0, 0].flip(-1).double()
    return row - row[0]


def ears():
    """Bars centred on a line, like a sound recording, that show how loud each
    word in the hall is for you at the right end.

    The nearest word is the loudest, and each word to its left is softer. The
    first word, at the left end, is orange.
    """
    words, slopes = 60, alibi_slopes(8)
    listener, keys = torch.tensor([words]), torch.arange(words)

    def listen(ears):
        slope = slopes.index_select(0, (ears - 1).long()[None])
        fall = alibi_bias(listener, keys, slope)[0, 0].double()
        loud = (fall - fall[-1]).exp()
        return {
            "up": loud[1:],
            "down": -loud[1:],
            "first up": loud[:1],
            "first down": -loud[:1],
            "heard": (loud >= 0.1).sum(),
            "lost": loud[0] < 0.1,
        }

    live = _ears_live(listen, words)
    made, moves = live.start(), live.moves
    fig, ax = plt.subplots(figsize=(4.4, 1.6))
    for name, color, at in (
        ("up", "C0", keys[1:]),
        ("down", "C0", keys[1:]),
        ("first up", "C1", keys[:1]),
        ("first down", "C1", keys[:1]),
    ):
        moves[name] = ax.bar(at, made[name], width=0.6, color=color)
    ax.axhline(0, color="gray", lw=0.6)
    ax.set(xlim=(-1.5, words + 2), ylim=(-1.05, 1.05), yticks=[])
    ax.set_xticks([0, words], ["first word", "you"])
    ax.tick_params(length=0)
    ax.spines[["left", "bottom"]].set_visible(False)
    return fig, {"words": words}, live


def _ears_live(listen, words):
    ears = Slider("ears, from poor to good", 1, 8, 3, shows="{value:.0f}")
    return Live(
        listen,
        {"ears": ears},
        says=f"These ears hear {{heard:.0f}} of {words} words. {{lost|They "
        "hear the first word too.|The first word is lost on them.}",
        tolerance=1e-9,
    )


def out_of_earshot():
    """Eight bars along a long text, one for each attention head (a pair of
    ears in a long hall). All begin at the right end; even the longest leaves
    most of the text empty.
    """
    count = 4096
    bias = alibi_bias(
        torch.tensor([count - 1]), torch.arange(count), alibi_slopes(8)
    )
    share = bias[:, 0].double().softmax(-1).flip(-1).cumsum(-1)
    reach = (share < SHARE).sum(-1) + 1
    fig, ax = plt.subplots(figsize=(4.4, 1.9))
    ax.barh(range(8), count, color="gray", alpha=0.2)
    ax.barh(range(8), reach, left=count - reach, color="C0")
    ax.set(xlim=(0, count), ylim=(7.6, -0.6))
    ax.set_yticks([0, 7], ["poor ears", "good ears"])
    ax.set_xticks([0, count], ["first word", "you"])
    ax.tick_params(length=0)
    chances = _loss_by_context.chances("ALiBi")["ALiBi"]
    return fig, {
        "words": count,
        "share": SHARE,
        "most": reach.max(),
        "near": chances[CONTEXTS.index(_loss_by_context.NEAR)],
        "far": chances[-1],
    }


def by_hand():
    slope = alibi_slopes(8)[0].item()
    scores = torch.tensor([2.0, 1.0, 0.0, 1.5])
    bias = alibi_bias(torch.tensor([3]), torch.arange(4), alibi_slopes(8))[
        0, 0
    ]
    before, after = scores.softmax(-1), (scores + bias).softmax(-1)
    print("word   score    bias   sum weight")
    for j, word in enumerate(("the", "dog", "bites", "back")):
        numbers = (
            f"{scores[j]:>5.1f}{bias[j]:>8.1f}{scores[j] + bias[j]:>6.1f}"
        )
        print(f"{word:<7}{numbers}{after[j]:>7.2f}")
    return {"slope": slope, "before": before[0], "after": after[0]}


def alibi_heads():
    """Line chart of the bias by distance: eight straight lines that fall,
    each labelled with its slope. The line of the first head falls steeply,
    and that of the last head hardly falls.
    """
    tokens, heads = 16, 8
    at = torch.arange(tokens)
    bias = alibi_bias(at, at, alibi_slopes(heads))
    fig, ax = plt.subplots(figsize=(4.4, 3.2))
    for head in range(heads):
        row = bias[head, -1].flip(-1)  # of the last query, nearest first
        ax.plot(
            row,
            "C2",
            linewidth=1.2,
            label=f"head {head + 1}: 1/{2 ** (head + 1)}",
        )
    ax.set_xlabel("distance to the key (positions)")
    ax.set_ylabel("bias")
    name_lines(ax)
    return fig, {
        "heads": heads,
        "tokens": tokens,
        "steepest": bias[0, -1, 0],
        "gentlest": bias[-1, -1, 0],
    }


def families():
    """Line chart of six biases that fall with the distance. ALiBi falls along
    a straight line, the clipped bias stops falling, the others fall more and
    more slowly, and Sandwich has ripples.
    """
    count, table = 513, torch.linspace(-6, 0, 65)[:, None]
    table = torch.cat([table, table[:-1].flip(0)])  # 64 steps on each side
    fire = _fire_line(1, 14, init_L=512.0)
    curves = {
        "ALiBi": lambda q, k: alibi_bias_symmetric(q, k, alibi_slopes(8))[
            5:6
        ],
        "KERPLE, power": lambda q, k: kerple_power_bias(
            q, k, _one(0.7), _one(0.45)
        ),
        "clipped": lambda q, k: clipped_bias(q, k, table),
        "KERPLE, log": lambda q, k: kerple_log_bias(q, k, _one(2), _one(0.5)),
        "FIRE": fire,
        "Sandwich": lambda q, k: sandwich_bias(q, k, 8)[3:4],
    }
    lines = ("-", "--", "-.", "-", ":", "-")
    fig, ax = plt.subplots(figsize=(4.4, 3.3))
    rows = {}
    for (name, bias), line in zip(curves.items(), lines, strict=True):
        rows[name] = _by_distance(bias, count)
        ax.plot(rows[name], line, color="C2", linewidth=1.2, label=name)
    ax.set_xlabel("distance (positions)")
    ax.set_ylabel("bias (zero at distance 0)")
    name_lines(ax)
    wave = rows["Sandwich"]
    rise = (wave[1:] > wave[:-1]).nonzero()[0].item() + 1
    return fig, {"slope": alibi_slopes(8)[5], "first_rise": rise}


def mass_by_distance():
    """Line chart of the fraction of the attention against the number of
    nearest keys, on a logarithmic scale: eight S-shaped curves, evenly
    spaced, with the steepest head on the left and the one with the smallest
    slope on the right.
    """
    count, heads = 4096, 8
    bias = alibi_bias(
        torch.tensor([count - 1]), torch.arange(count), alibi_slopes(heads)
    )
    mass = bias[:, 0].double().softmax(-1).flip(-1).cumsum(-1)
    reach = (mass < SHARE).sum(-1)
    fig, ax = plt.subplots()
    shown = torch.logspace(0, math.log10(count), 36).long().unique() - 1
    for head in range(heads):
        ax.semilogx(
            shown + 1,
            mass[head, shown],
            color="C2",
            linewidth=1,
        )
    ax.set_xlim(0.2, count)
    for head, place in ((0, 0.22), (7, 420)):
        ax.text(place, 0.39, f"head {head + 1}", va="center")
    ax.axhline(SHARE, color="gray", linestyle="--", linewidth=0.8)
    ax.minorticks_off()
    ax.set_xlabel("number of nearest keys")
    ax.set_ylabel("fraction of the attention")
    return fig, {
        "share": SHARE,
        "count": count,
        "steepest": reach[0] + 1,
        "gentlest": reach[-1] + 1,
    }


def slopes():
    """Three rows of dots on a logarithmic scale of slopes: eight evenly
    spaced dots; twelve dots for the released code, closer together on the
    right; and twelve evenly spaced dots for the formula, four of which match
    the code.
    """
    naive = 2 ** (-8 * torch.arange(1, 13) / 12)
    released = alibi_slopes(12)
    rows = {
        "8 heads": alibi_slopes(8),
        "12, released": released,
        "12, formula": naive,
    }
    fig, ax = plt.subplots(figsize=(4.4, 1.7))
    for y, row in enumerate(rows.values()):
        ax.semilogx(row, [-y] * len(row), "C2o", markersize=4)
    ax.set_yticks([0, -1, -2], list(rows))
    ax.set_ylim(-2.5, 0.5)
    ax.minorticks_off()
    ax.set_xticks([2**-8, 2**-4, 1 / 2], ["1/256", "1/16", "1/2"])
    ax.set_xlabel("slope")
    common = sum(bool((released - x).abs().min() < 1e-6) for x in naive)
    return fig, {
        "heads": len(released),
        "steepest_released": released.max(),
        "steepest_formula": naive.max(),
        "common": common,
        "apart": (released - naive).abs().max(),
    }


def kerple_forms():
    """Two line charts of the bias by distance. On the left, logarithms
    flatten out. On the right, one power flattens out too, one is a straight
    line, and one starts flat and falls more and more steeply.
    """
    count = 129
    fig, axes = plt.subplots(1, 2, figsize=(4.4, 2.7), sharey=True)
    for r1, r2, line in ((1, 1, "-"), (2, 0.1, "--"), (2, 1, ":")):
        row = _by_distance(
            lambda q, k, r=(r1, r2): kerple_log_bias(q, k, *map(_one, r)),
            count,
        )
        axes[0].plot(row, line, label=f"{r1}, {r2}")
    for r1, r2, line in ((1, 0.5, "-"), (0.1, 1, "--"), (0.002, 2, ":")):
        row = _by_distance(
            lambda q, k, r=(r1, r2): kerple_power_bias(q, k, *map(_one, r)),
            count,
        )
        axes[1].plot(row, line, label=f"{r1}, {r2}")
    for ax, title in zip(axes, ("log", "power"), strict=True):
        ax.set_title(title)
        ax.set_xlabel("distance (positions)")
        ax.set_ylim(-16, 0.5)
        ax.legend(title="r₁, r₂", loc="lower left")
    axes[0].set_ylabel("bias")
    return fig


def fire_two_queries():
    """Line chart of FIRE's input by distance: three curves that rise. The
    curves of queries at 100 and 500 coincide; that of a query at 4000 stays
    below them.
    """
    L, distance = 512, 100
    fire = _fire_line(1, 1, init_L=float(L))
    fig, ax = plt.subplots()
    share = {}
    for query, line, color in ((4000, "-", 1), (500, "-", 0), (100, ":", 2)):
        keys = torch.arange(max(0, query - 500), query + 1)
        row = -fire(torch.tensor([query]), keys)[0, 0]
        share[query] = -fire(
            torch.tensor([query]), torch.tensor([query - distance])
        ).item()
        ax.plot(
            (query - keys).flip(0),
            row.flip(0),
            line,
            color=f"C{color}",
            linewidth=3 if line == ":" else 1.6,
            label=f"query at {query}",
        )
    ax.axvline(distance, color="gray", linestyle="--", linewidth=0.8)
    ax.set_xlabel("distance (positions)")
    ax.set_ylabel("input of the network")
    name_lines(ax)
    return fig, {
        "L": L,
        "distance": distance,
        "near": share[500],
        "nearer": share[100],
        "far": share[4000],
    }


def _reach(row):
    """Return, for each length of text, how many nearest keys get SHARE of
    the attention if all contents are equal. row is the bias by distance.
    """
    mass = row.exp().cumsum(-1)
    return torch.searchsorted(mass, SHARE * mass) + 1


def window():
    """Line chart, on logarithmic scales, of how many nearest keys get most of
    the attention, against the length of the text. The two lines of ALiBi
    become flat. The lines for Sandwich, for KERPLE's logarithm and without a
    bias go on rising.
    """
    count = 32_768
    curves = {
        "no bias": lambda q, k: torch.zeros(1, len(q), len(k)),
        "Sandwich": lambda q, k: sandwich_bias(q, k, 8)[7:8],
        "KERPLE, log": lambda q, k: kerple_log_bias(q, k, _one(1), _one(1)),
        "ALiBi 1/256": lambda q, k: alibi_bias(q, k, alibi_slopes(8))[7:8],
        "ALiBi 1/16": lambda q, k: alibi_bias(q, k, alibi_slopes(8))[3:4],
    }
    shown = torch.logspace(4, 15, 34, base=2).long() - 1
    fig, ax = plt.subplots(figsize=(4.4, 3))
    reach = {}
    for (name, bias), line in zip(
        curves.items(), (":", "-.", "--", "-", "-"), strict=True
    ):
        reach[name] = _reach(_by_distance(bias, count))
        color = "black" if name == "no bias" else "C2"
        ax.loglog(
            shown + 1, reach[name][shown], line, color=color, label=name
        )
    ax.minorticks_off()
    ax.set_xlabel("number of keys")
    ax.set_ylabel(f"nearest keys for {SHARE:.0%}")
    name_lines(ax)
    gentle, log = reach["ALiBi 1/256"], reach["KERPLE, log"]
    return fig, {
        "share": SHARE,
        "count": count,
        "alibi": gentle[-1],
        "alibi_early": gentle[count // 8 - 1],
        "log": log[-1],
        "log_early": log[count // 8 - 1],
        "sandwich_first": _reach(
            _by_distance(lambda q, k: sandwich_bias(q, k, 8)[:1], count)
        ).max(),
    }


def sandwich_octaves():
    """Step chart of the mean bias by distance; each step doubles the
    distance. Up to some four thousand tokens, the steps go down along a
    dashed straight line. Then they leave the line, reach the lowest step, and
    go up. The band from the smallest to the largest value of a step is wide.
    """
    doublings = 17
    starts = 2 ** torch.arange(doublings)
    distance = torch.arange(2**doublings)
    row = sandwich_bias(torch.tensor([0]), distance, 8)[0, 0].double()
    steps = [row[start : 2 * start] for start in starts]
    mean = torch.stack([step.mean() for step in steps])
    straight = slice(3, 12)  # from 8 tokens on, to 4,096
    drop = (mean[11] - mean[3]) / 8
    fig, ax = plt.subplots(figsize=(4.4, 2.9))
    edges = [*starts, 2**doublings]
    for bound in (torch.amin, torch.amax):
        heights = [bound(step, 0) for step in steps]
        ax.stairs(heights, edges, baseline=None, color="gray")
    ax.stairs(
        mean,
        edges,
        baseline=None,
        color="C2",
        linewidth=2,
        label="Sandwich, mean",
    )
    middle = (starts * 2**0.5)[straight.start :]
    line = mean[3] + drop * torch.arange(len(middle))
    ax.plot(middle, line, "--", color="black", label="logarithm")
    ax.set_xscale("log", base=2)
    ax.set_xticks(
        [2**n for n in (0, 4, 8, 12, 16)], [1, 16, 256, 4096, 65536]
    )
    ax.minorticks_off()
    ax.set_ylim(-25, 66)
    ax.set_xlabel("distance (positions)")
    ax.set_ylabel("bias")
    ax.legend()
    return fig, {
        "drop": -drop,
        "begin": starts[3],
        "end": starts[12],
        "lowest": mean.min(),
        "from": starts[mean.argmin()],
        "to": 2 * starts[mean.argmin()] - 1,
        "after": mean[mean.argmin() + 1],
        "near": 4096,
        "at_near": row[4096],
        "far": 24_000,
        "at_far": row[24_000],
        "last_from": starts[-1],
        "last": mean[-1],
        "slowest": 2 * math.pi * 10000 ** (126 / 128),
    }


def lead_needed():
    """Line chart of the lead in score that one key needs to get half of the
    attention, by its distance. For the steepest of ALiBi's slopes, the line
    rises sharply at once, and for the smallest slope later; for KERPLE it
    rises slowly, and without a bias it is flat.
    """
    count = 4096
    curves = {
        "ALiBi 1/2": (
            lambda q, k: alibi_bias(q, k, alibi_slopes(8))[:1],
            "-",
        ),
        "ALiBi 1/256": (
            lambda q, k: alibi_bias(q, k, alibi_slopes(8))[7:8],
            "-",
        ),
        "KERPLE, log": (
            lambda q, k: kerple_log_bias(q, k, _one(1), _one(1)),
            "--",
        ),
        "no bias": (lambda q, k: torch.zeros(1, len(q), len(k)), ":"),
    }
    fig, ax = plt.subplots(figsize=(4.4, 2.9))
    shown = torch.logspace(0, math.log10(count - 1), 34).long().unique()
    lead = {}
    for name, (bias, line) in curves.items():
        row = _by_distance(bias, count)
        others = row.exp().sum() - row.exp()
        lead[name] = others.log() - row
        color = "black" if name == "no bias" else "C2"
        ax.semilogx(shown, lead[name][shown], line, color=color, label=name)
    ax.set_ylim(0, 40)
    ax.minorticks_off()
    ax.set_xlabel("distance of the key (positions)")
    ax.set_ylabel("lead in score needed")
    name_lines(ax)
    far = count - 1
    return fig, {
        "far": far,
        "alibi": lead["ALiBi 1/256"][far],
        "steep": lead["ALiBi 1/2"][far],
        "log": lead["KERPLE, log"][far],
        "none": lead["no bias"][far],
    }


def without_the_mask():
    tokens, here = 9, 4
    i, slope = torch.arange(tokens), alibi_slopes(8)[0]
    later = torch.ones(tokens, tokens).triu(1) > 0
    formula = -slope * (i[:, None] - i)
    for name, bias in (
        ("causal mask and bias", formula.masked_fill(later, -math.inf)),
        ("formula, no mask", formula),
        (
            "symmetric, no mask",
            alibi_bias_symmetric(i, i, alibi_slopes(8))[0],
        ),
    ):
        row = bias[here].softmax(-1)
        cells = " ".join(f"{weight:.2f}"[1:] for weight in row)
        print(f"{name}:\n  {cells}")
    return {
        "here": here,
        "tokens": tokens,
        "leak": formula.softmax(-1)[here, here + 1 :].sum(),
        "last": formula.softmax(-1)[here, -1],
    }


def key_only():
    tokens, slope = 4096, alibi_slopes(8)[:, None]
    back = torch.arange(tokens).flip(0)  # distances from the last query
    exact = (-slope.double() * back).softmax(-1)
    print("slope  key form  distance form")
    errors = {}
    for head in (0, 3, 7):
        here = slope[head]
        forms = (here * torch.arange(tokens), -here * back)
        rows = [form.bfloat16().double().softmax(-1) for form in forms]
        off = [(row - exact[head]).abs().sum() / 2 for row in rows]
        print(f"1/{1 / here.item():<5.0f}{off[0]:>8.4f}{off[1]:>15.4f}")
        errors[head] = off
    return {
        "tokens": tokens,
        "by_key": errors[7][0],
        "by_distance": errors[7][1],
    }


def kernels():
    i, one = torch.arange(50), _one(1).double()
    forms = [kerple_log_bias(i, i, one, one)[0]]
    forms += [kerple_power_bias(i, i, one, n * one)[0] for n in (2, 3)]
    # an orthonormal basis of the weights that sum to zero
    ones_first = torch.eye(50, dtype=torch.float64)
    ones_first[:, 0] = 1
    zero_sums = torch.linalg.qr(ones_first).Q[:, 1:]
    print("                log   square     cube")
    for name, change in (
        ("bias", lambda k: k),
        ("+ 1,000,000", lambda k: k + 1e6),
        ("zero sums", lambda k: zero_sums.mT @ k @ zero_sums),
    ):
        least = [torch.linalg.eigvalsh(change(k)).min() for k in forms]
        log, square, cube = [0.0 if abs(x) < 1e-6 else x for x in least]
        print(f"{name:<11}{log:>8.2f}{square:>9.1f}{cube:>9.0f}")


def two_ways():
    from torch.nn.attention.flex_attention import flex_attention

    q, k, v = torch.randn(3, 1, 12, 64, 16)
    i, slopes = torch.arange(64), alibi_slopes(12)

    bias = alibi_bias(i, i, alibi_slopes(12))  # (12, 64, 64), causal already
    through_mask = scaled_dot_product_attention(q, k, v, attn_mask=bias)

    def alibi(score, batch, head, query, key):
        score = score - slopes[head] * (query - key)
        return torch.where(key <= query, score, -math.inf)

    # slow without compilation; in a model, torch.compile(flex_attention)
    through_score = flex_attention(q, k, v, score_mod=alibi)
    gap = (through_mask - through_score).abs().max()
    print(f"same output: {gap < 1e-5}")
    print(f"numbers in the bias: {bias.numel():,}; slopes: {len(slopes)}")


def cost():
    heads, tokens = 12, 2048
    fire = sum(p.numel() for p in FireBias(heads).parameters())
    bias = heads * tokens * tokens * 4 / 2**20
    hidden = 32 * tokens * tokens * 4 / 2**20
    print("             parameters  MiB of bias")
    for name, learned in (
        ("ALiBi", 0),
        ("Sandwich", 0),
        ("KERPLE", 2 * heads),
        ("FIRE", fire),
        ("clipped at 128", (2 * 128 + 1) * heads),
    ):
        print(f"{name:<15}{learned:>8,}{bias:>13.0f}")
    print(f"FIRE, hidden layer: {hidden:>16.0f}")
    return {"heads": heads, "tokens": tokens, "bias": bias, "hidden": hidden}


def early_tokens():
    context = 100
    short, long = 512, 3072
    return {
        "context": context,
        "short": short,
        "long": long,
        "in_short": context / short,
        "in_long": context / long,
    }
