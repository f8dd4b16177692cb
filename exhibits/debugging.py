"""Figures and examples of the chapter on debugging: checks for the positions
of a model, and mistakes made on purpose.
"""

import math

import matplotlib.pyplot as plt
import torch
from matplotlib.image import AxesImage
from torch.nn.functional import (
    cross_entropy,
    dropout,
    one_hot,
    scaled_dot_product_attention,
)

from exhibits._drawing import name_lines
from snippets.alibi import alibi_bias, alibi_bias_symmetric, alibi_slopes
from snippets.attention import SelfAttention, attention
from snippets.diagnostics import (
    attention_mass,
    extrapolation_skill,
    min_row_distance,
    row_similarity,
    shift_invariance_error,
)
from snippets.embed import padded_positions
from snippets.rope import (
    apply_rope,
    interleaved_to_half,
    rope_frequencies,
    rope_tables,
)
from snippets.sinusoidal import (
    AddSinusoidal,
    sinusoidal_encoding,
    sinusoidal_frequencies,
)
from snippets.visualize import attention_heads

DIM = 64


def _gap(got, wanted):
    """Return the root mean square difference over the spread of wanted."""
    spread = (wanted - wanted.mean()).square().mean().sqrt()
    return (got - wanted).square().mean().sqrt() / spread


def _spread(rows):
    """Return the root mean square distance of the rows from their mean."""
    return (rows - rows.mean(0)).square().sum(-1).mean().sqrt()


def _sinusoids(count, dim=DIM):
    return sinusoidal_encoding(torch.arange(count), dim, dtype=torch.float64)


def _rotated(x, y, layout, key_layout=None):
    """Return RoPE scores of fixed queries and keys as a function."""
    w = rope_frequencies(x.shape[-1], base=10000)

    def score(i, j):
        q = apply_rope(x, *rope_tables(i, w, x.dtype), layout)
        tables = rope_tables(j, w, y.dtype)
        return q @ apply_rope(y, *tables, key_layout or layout).mT

    return score


def shifted_by_hand():
    """Two rows of two small grids of numbers. Top: the scores of RoPE at
    positions 0 to 3 and at 10 to 13 are the same numbers. Bottom: those of
    an added table are different numbers.
    """
    q, k = torch.randn(2, 1, 8, dtype=torch.float64).expand(2, 4, 8)
    table = torch.randn(14, 8, dtype=torch.float64)
    scores = {
        "RoPE": _rotated(q, k, "half"),
        "table": lambda i, j: (q + table[i]) @ (k + table[j]).mT,
    }
    fig, axes = plt.subplots(2, 2, figsize=(4.4, 4.1))
    for row, (name, score) in zip(axes, scores.items(), strict=True):
        for ax, start in zip(row, (0, 10), strict=True):
            places = torch.arange(start, start + 4)
            numbers = score(places, places)
            ax.imshow(numbers, cmap="signed", vmin=-12, vmax=12)
            for i in range(4):
                for j in range(4):
                    text = f"{numbers[i, j]:.1f}"
                    ax.text(j, i, text, ha="center", va="center")
            ax.set_xticks(range(4), places.tolist())
            ax.set_yticks(range(4), places.tolist())
            ax.set_title(name)
        row[0].set_ylabel("query position")
    for ax in axes[1]:
        ax.set_xlabel("key position")
    places = torch.arange(4)
    return fig, {
        name: shift_invariance_error(score, places, shifts=[10])
        for name, score in scores.items()
    }


def relativity():
    x, y = torch.randn(2, DIM, DIM, dtype=torch.float64)
    table = torch.randn(200, DIM, dtype=torch.float64)
    positions = torch.arange(DIM)
    scores = {
        "RoPE": _rotated(x, y, "half"),
        "ALiBi": lambda i, j: x @ y.mT + alibi_bias(i, j, alibi_slopes(1))[0],
        "table added": lambda i, j: (x + table[i]) @ (y + table[j]).mT,
        "equal rows added": lambda i, j: (x + 1 + 0 * i[:, None]) @ y.mT,
    }
    for name, score in scores.items():
        print(f"{name:<18}{shift_invariance_error(score, positions):.0e}")


def rows_alike():
    """Four square grids of the similarity of each pair of rows.

    Sinusoids: a bright diagonal, with ripples that get weaker away from it.
    Random rows: only the diagonal. Ramp: two bright and two dark quarters.
    Clamped table: the diagonal, and a bright square where the last row
    repeats.
    """
    count, known = 48, 30
    places = torch.arange(count)
    rows = {
        "sinusoids": _sinusoids(count),
        "random rows": torch.randn(count, DIM),
        "ramp": places[:, None] * torch.randn(DIM),
        "clamped": torch.randn(known, DIM)[places.clamp(max=known - 1)],
    }
    fig, axes = plt.subplots(2, 2, figsize=(4.4, 4.4))
    for ax, (name, encoding) in zip(axes.flat, rows.items(), strict=True):
        similarity = row_similarity(encoding)
        ax.imshow(similarity, cmap="signed", vmin=-1, vmax=1)
        ax.set_title(
            f"{name}\nmin. distance {min_row_distance(encoding):.2f}"
        )
    for ax in axes[1]:
        ax.set_xlabel("position")
    for ax in axes[:, 0]:
        ax.set_ylabel("position")
    names = ("sinusoids", "random", "ramp", "clamped")
    margins = map(min_row_distance, rows.values())
    values = dict(zip(names, margins, strict=True))
    return fig, {"count": count, "known": known, **values}


def ramp_wins():
    count = 256
    places = torch.arange(float(count), dtype=torch.float64)
    noise = torch.randn(count, DIM, dtype=torch.float64)
    kinds = {
        "sinusoids": _sinusoids(count),
        "thousandth": _sinusoids(count) / 1000,
        "random": noise,
        "ramp": places[:, None] * torch.randn(DIM),
        "constant": torch.ones(count, DIM, dtype=torch.float64),
    }
    far = (places[:, None] - places).abs().flatten()
    values = {}
    print("            straightness  min. distance")
    for name, rows in kinds.items():
        apart = torch.cdist(rows, rows).flatten()
        straight = torch.corrcoef(torch.stack((far, apart)))[0, 1]
        margin = min_row_distance(rows)
        print(f"{name:<12}{straight:12.2f}{margin:15.3f}")
        values[f"margin_{name}"] = margin
        if name != "constant":  # it has no correlation
            values[f"straight_{name}"] = straight
    return values


def far_shifts():
    """Line chart of the shift-invariance error against the shift, both axes
    logarithmic.

    With angles in float64 the error stays near rounding. With angles in
    bfloat16 it is far above that from the first shift on, and rises. With
    positions rounded to bfloat16 it stays near rounding for shifts up to 128
    and then jumps.
    """
    q, k = torch.randn(2, 16, DIM)
    w = rope_frequencies(DIM, base=10000)

    def turned(x, angles):
        a, b = x.unflatten(-1, (2, -1)).unbind(-2)
        sin, cos = angles.double().sin(), angles.double().cos()
        return torch.cat((a * cos - b * sin, a * sin + b * cos), -1).float()

    def exact(x, p):
        return apply_rope(x, *rope_tables(p, w), "half")

    def rounded_positions(x, p):
        return turned(x, p.bfloat16()[:, None].double() * w)

    def rounded_angles(x, p):
        return turned(x, p[:, None].bfloat16() * w.bfloat16())

    shifts = [2**n for n in range(16)]
    places = torch.arange(16)
    fig, ax = plt.subplots(figsize=(4.4, 2.9))
    values = {}
    for turn, name, style in (
        (rounded_angles, "bfloat16 angles", ":"),
        (rounded_positions, "bfloat16 positions", "--"),
        (exact, "float64 angles", "-"),
    ):

        def score(i, j, turn=turn):
            return turn(q, i) @ turn(k, j).mT

        errors = [shift_invariance_error(score, places, [s]) for s in shifts]
        ax.loglog(shifts, errors, style, label=name)
        values[turn.__name__] = errors[-1]
        values[f"{turn.__name__}_at_128"] = errors[7]
    ax.set_xlabel("shift of all positions")
    ax.set_ylabel("shift-invariance error")
    ax.legend(loc="lower right", bbox_to_anchor=(1, 0.14))
    return fig, {"shift": shifts[-1], "near": shifts[7], **values}


def decoding():
    """Line chart of the relative difference between each token decoded with
    a cache and the same token in one pass.

    In correct code the difference is zero. With restarted positions it is
    above zero throughout, and with a mask that starts at the first key it is
    several times as large.
    """
    prompt, tokens = 8, 40
    q, k, v = torch.randn(3, tokens, DIM, dtype=torch.float64)
    w, places = rope_frequencies(DIM, base=10000), torch.arange(tokens)

    def turn(x, p):
        return apply_rope(x, *rope_tables(p, w, x.dtype), "half")

    whole, _ = attention(turn(q, places), turn(k, places), v, causal=True)
    restarted = places.where(places < prompt, 0)  # each new token counts as 0
    cached, wrong = turn(k, places), turn(k, restarted)
    steps = range(prompt, tokens)
    gaps = {
        "correct": [],
        "positions restarted": [],
        "mask without offset": [],
    }
    for t in steps:
        one, to = slice(t, t + 1), slice(t + 1)
        right, _ = attention(turn(q[one], places[one]), cached[to], v[to])
        query = turn(q[one], restarted[one])
        zero, _ = attention(query, wrong[to], v[to])
        # is_causal: the first query of the call sees only the first key
        first = scaled_dot_product_attention(
            turn(q[one], places[one])[None, None],
            cached[to][None, None],
            v[to][None, None],
            is_causal=True,
        )[0, 0]
        for name, got in zip(gaps, (right, zero, first), strict=True):
            gaps[name].append(_gap(got, whole[one]).item())
    fig, ax = plt.subplots(figsize=(4.4, 2.7))
    for (name, line), style in zip(
        gaps.items(), ["-", "--", ":"], strict=True
    ):
        ax.plot(steps, line, style, label=name.replace(" ", "\n", 1))
    ax.set_xlabel("position of the token")
    ax.set_ylabel("relative difference")
    ax.set_ylim(-0.3, None)
    name_lines(ax)
    right, zero, first = (sum(line) / len(line) for line in gaps.values())
    return fig, {
        "right": max(gaps["correct"]),
        "restarted": zero,
        "lowest_restarted": min(gaps["positions restarted"]),
        "no_offset": first,
        "lowest_no_offset": min(gaps["mask without offset"]),
    }


def who_looks_where():
    """Line chart of the mean attention weight against the distance back;
    negative distances are later tokens.

    Correct ALiBi falls steeply from distance zero on and is zero for later
    tokens. Equal weights fall more slowly. With the wrong sign the line is
    below that of equal weights at small distances and above it at large
    ones. Without the mask it falls on both sides.
    """
    tokens, reach = 32, 31
    p = torch.arange(tokens)
    steps = p[:, None] - p
    seen = steps >= 0
    right = alibi_bias(p, p, alibi_slopes(4))[0]
    flipped = (-right).masked_fill(~seen, -math.inf)
    both = alibi_bias_symmetric(p, p, alibi_slopes(4))[0]
    fig, ax = plt.subplots(figsize=(4.4, 3.0))
    back = range(-reach, reach + 1)
    near = slice(reach, reach + 4)
    values = {}
    for word, name, bias, style in (
        ("right", "correct", right, "-"),
        ("sign", "wrong sign", flipped, "--"),
        ("mask", "no mask", both, "-."),
    ):
        mass, even = attention_mass(bias.softmax(-1), steps, seen, reach)
        ax.plot(back, mass, style, label=name)
        values[f"{word}_ahead"] = mass[:reach].sum()
        values[f"{word}_near"] = mass[near].sum() / even[near].sum()
    ax.plot(back, even, ":", color="gray", label="equal weights")
    ax.set_xlabel("distance back (positions)")
    ax.set_ylabel("mean attention weight")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    return fig, {"near": 4, **values}


def beyond():
    """Line chart of loss against position for three heads. All are near zero
    up to position 48, the training length. Beyond it, the head that uses the
    offset stays near zero. The loss of the head whose table starts again
    rises part of the way, with a jump nearly to the loss of a guess at each
    new start. The loss of the head that clamps is far above that of a guess.
    """
    trained, tokens, words = 48, 192, 16
    ids = torch.randint(words, (48, tokens))
    places = torch.arange(tokens)
    table = torch.linalg.qr(torch.randn(trained, trained)).Q
    back = table[1:].mT @ table[:-1]  # takes each row to the one before it

    def by_rows(known):
        rows = table[known]
        return 20 * rows @ back @ rows.mT

    heads = {
        "clamped": by_rows(places.clamp(max=trained - 1)),
        "starts again": by_rows(places % trained),
        "offset": 20.0 * (places[:, None] - places == 1),
    }
    guess = math.log(words)
    fig, ax = plt.subplots(figsize=(4.4, 2.9))
    ax.axvspan(0, trained - 1, color="gray", alpha=0.2, linewidth=0)
    ax.axhline(guess, color="gray", linestyle="--", linewidth=1)
    ax.text(tokens, guess, "a guess ", ha="right", va="top")
    values = {}
    for (name, scores), style in zip(
        heads.items(), (":", "--", "-"), strict=True
    ):
        scores = scores.masked_fill(places[:, None] < places, -math.inf)
        chance = scores.softmax(-1) @ one_hot(ids, words).float() + 1e-3
        losses = cross_entropy(
            chance.log()[:, 1:].mT, ids[:, :-1], reduction="none"
        ).mean(0)
        label = name.replace(" ", "\n")
        ax.plot(places[1:], losses, style, linewidth=1.2, label=label)
        skill = extrapolation_skill(losses, trained - 1, guess, block=48)
        word = name.split()[-1]
        values[f"best_{word}"] = skill.max()
        values[f"worst_{word}"] = skill.min()
    ax.set_xlabel("position")
    ax.set_ylabel("loss (nats)")
    name_lines(ax)
    return fig, {"trained": trained, "block": 48, **values}


def wrong_speeds():
    """Line chart of the wavelengths of all channel pairs, on a logarithmic
    axis, with correct and with squared frequencies.

    Both lines rise. With squared frequencies the line is twice as steep, so
    that most pairs have wavelengths far longer than the text, whose length a
    dotted line marks.
    """
    tokens = 512
    right = sinusoidal_frequencies(DIM)
    squared = right**2  # from an i that counts dimensions by two
    fig, ax = plt.subplots(figsize=(4.4, 2.6))
    for speeds, style, name in (
        (squared, "--", "squared"),
        (right, "-", "correct"),
    ):
        ax.semilogy(2 * math.pi / speeds, style, label=name)
    ax.axhline(tokens, color="gray", linestyle=":")
    ax.text(0, 1.6 * tokens, f"{tokens} positions")
    ax.set_xlabel("channel pair")
    ax.set_ylabel("wavelength (positions)")
    name_lines(ax)
    angles = torch.arange(tokens)[:, None] * squared
    waves = torch.stack((angles.sin(), angles.cos()), -1).flatten(-2)

    def still(speeds):
        """Count pairs that rotate by less than 0.01 radians in all."""
        return (speeds * tokens < 0.01).sum()

    return fig, {
        "dim": DIM,
        "tokens": tokens,
        "pairs": len(right),
        "still": still(squared),
        "still_right": still(right),
        "gap": _gap(waves, _sinusoids(tokens)),
        "margin": min_row_distance(waves),
        "margin_right": min_row_distance(_sinusoids(tokens)),
    }


def read_by_zeros():
    texts, tokens, dim = 2, 3, 4
    zeros = torch.zeros(texts, tokens, dim)
    encoding = sinusoidal_encoding(torch.arange(tokens), dim)

    def rows_by_text(x):  # written for [tokens, texts, dim]
        return x + encoding[: x.shape[0], None]

    right = AddSinusoidal(dim)(zeros, torch.arange(tokens))
    broken = rows_by_text(zeros)
    margins = {}
    for name, out in (("right", right), ("broken", broken)):
        for number, text in enumerate(out):
            print(f"{name}, text {number}".replace("right", "correct"))
            for row in text:
                print("  ", "  ".join(f"{x:5.2f}" for x in row))
        margins[name] = min_row_distance(out[1])
    alone = rows_by_text(zeros[1:])[0]
    return {**margins, "company": _gap(broken[1], alone)}


def padding():
    tokens, pad = 10, 6
    layer = SelfAttention(DIM, heads=4).double().requires_grad_(False)
    words = torch.randn(tokens, DIM, dtype=torch.float64)
    padded = torch.cat((torch.zeros(pad, DIM, dtype=torch.float64), words))
    mask = torch.arange(tokens + pad) >= pad
    hide = torch.zeros(len(mask), len(mask), dtype=torch.float64)
    hide = hide.masked_fill(~mask, -math.inf)  # no query sees padding
    rows, w = _sinusoids(tokens + pad), rope_frequencies(DIM // 4, base=10000)

    def added(x, places, bias=None):
        return layer(x + rows[places], bias=bias, causal=True)[0]

    def turned(x, places, bias=None):
        tables = rope_tables(places, w, x.dtype)

        def rotate(each):
            return apply_rope(each, *tables, "half")

        return layer(x, rotate, bias, causal=True)[0]

    values = {}
    print("counted from    sinusoids   RoPE")
    for name, places in (
        ("first column", torch.arange(len(mask))),
        ("first word", padded_positions(mask)),
    ):
        alone = torch.arange(tokens)
        gaps = [
            _gap(run(padded, places, hide)[pad:], run(words, alone))
            for run in (added, turned)
        ]
        print(f"{name:<15}{gaps[0]:10.0e}{gaps[1]:7.0e}")
        word = name.split()[-1]
        values |= {f"added_{word}": gaps[0], f"rope_{word}": gaps[1]}
    return values


def layouts():
    heads, x = 4, torch.randn(16, DIM, dtype=torch.float64)
    wq, wk = torch.randn(2, DIM, DIM, dtype=torch.float64) / 8

    def scores(q, k, layout, key_layout=None):
        q, k = (
            (x @ weight.mT).unflatten(-1, (heads, -1)).transpose(0, 1)
            for weight in (q, k)
        )
        return _rotated(q, k, layout, key_layout)

    places = torch.arange(len(x))
    trained = scores(wq, wk, "interleaved")
    turned = [interleaved_to_half(weight, heads) for weight in (wq, wk)]
    mixed = scores(wq, wk, "interleaved", "half")
    values = {}
    print("             shift error  difference")
    for name, score in (
        ("trained", trained),
        ("other", scores(wq, wk, "half")),
        ("mixed", mixed),
        ("converted", scores(*turned, "half")),
    ):
        error = shift_invariance_error(score, places)
        gap = _gap(score(places, places), trained(places, places))
        print(f"{name:<12}{error:12.0e}{gap:12.0e}")
        values |= {f"error_{name}": error, f"gap_{name}": gap}
    return values


def _table(start, tokens, base, dtype, device):
    """Return cosines and sines of the angles, one row for each token."""
    places = torch.arange(start, start + tokens, device=device)
    speeds = rope_frequencies(DIM, base, device)
    angles = places[:, None].to(dtype) * speeds.to(dtype)
    return angles.cos(), angles.sin()


def _gap_of_table(read):
    """Return the relative difference of vectors rotated with a read table."""
    x, places = torch.randn(8, DIM).double(), torch.arange(1000, 1008)
    tables = rope_tables(places, rope_frequencies(DIM, base=10000), x.dtype)
    wanted = apply_rope(x, *tables, "half")
    try:
        cos, sin = read(places)
        a, b = x.chunk(2, dim=-1)
        turned = torch.cat((a * cos - b * sin, a * sin + b * cos), -1)
    except (IndexError, RuntimeError):
        return "an error"
    return _gap(turned, wanted)


def _cell(gap):
    if isinstance(gap, str):
        return f"{gap:>10}"
    return f"{gap:>10.0e}" if gap < 0.01 else f"{gap:>10.2f}"


def short_table():
    cpu = torch.device("cpu")
    ways = {
        "indexed": lambda part, p: part[p],
        "clamped": lambda part, p: part[p.clamp(max=len(part) - 1)],
        "sliced": lambda part, p: part[p[0] : p[-1] + 1],
    }
    values = {}
    print("   rows   indexed   clamped    sliced")
    for rows in (1008, 1004, 1001):
        table = _table(0, rows, 10_000.0, torch.float64, cpu)
        print(f"{rows:>7,}", end="")
        for name, way in ways.items():

            def read(places, way=way, table=table):
                return [way(part, places) for part in table]

            values[f"{name}_{rows}"] = gap = _gap_of_table(read)
            print(_cell(gap), end="")
        print()
    silent = {n: v for n, v in values.items() if not isinstance(v, str)}
    return {"tokens": 8, "first": 1000, **silent}


def kept_tables():
    now = {
        "start": 1000,
        "tokens": 8,
        "base": 10_000.0,
        "dtype": torch.float64,
        "device": torch.device("cpu"),
    }
    before = {
        "start": 0,
        "tokens": 1,
        "base": 500_000.0,
        "dtype": torch.bfloat16,
        "device": torch.device("meta"),  # it holds no numbers
    }
    calls = [*(now | {name: other} for name, other in before.items()), now]
    values = {}
    print("omitted    earlier   difference")
    for forgotten in (*before, "nothing"):

        def read(_, forgotten=forgotten):
            tables = {}
            for call in calls:
                key = tuple(call[name] for name in call if name != forgotten)
                if key not in tables:
                    tables[key] = _table(**call)
            return tables[key]

        other = str(before.get(forgotten, "")).removeprefix("torch.")
        gap = _gap_of_table(read)
        print(f"{forgotten:<11}{other:<10}{_cell(gap)}")
        if not isinstance(gap, str):
            values[forgotten] = gap
    return values


def drowned():
    tokens, dim = 16, 512
    words = torch.randn(tokens, dim, dtype=torch.float64)
    shuffled = torch.randperm(tokens)
    rows = _sinusoids(tokens, dim)
    layer = SelfAttention(dim, heads=8).double().requires_grad_(False)

    def pooled(x):
        x = x / x.square().mean(-1, keepdim=True).sqrt()  # as RMSNorm does
        return layer(x)[0].mean(0)

    print("   scale  strength   order effect")
    values = {}
    for name, scale in (("small", 0.02), ("plain", 1), ("large", dim**0.5)):
        x = scale * words
        strength = _spread(rows) / _spread(x)
        effect = _gap(pooled(x[shuffled] + rows), pooled(x + rows))
        print(f"{scale:>8.2f}{strength:10.3f}{effect:15.4f}")
        values |= {f"strength_{name}": strength, f"told_{name}": effect}
    return {"dim": dim, **values}


def same_again():
    x = torch.randn(8, DIM) + _sinusoids(8).float()
    layer = SelfAttention(DIM, heads=4).requires_grad_(False)

    def run(training):
        return layer(dropout(x, p=0.1, training=training))[0]

    values = {}
    for name, training in (("train", True), ("eval", False)):
        gap = _gap(run(training), run(training))
        print(f"model.{name + '()':<8} difference {gap:.2f}")
        values[name] = gap
    return values


WORDS = ["the", "old", "dog", "sleeps", "by", "the", "door"]


def _two_heads():
    """Return ALiBi's biases of a steep and a flat head, for the words."""
    places = torch.arange(len(WORDS))
    return alibi_bias(places, places, alibi_slopes(6))[[4, 3]]


def _on_the_page(figure, colors):
    """Return the figure as wide as a phone, in this page's colours."""
    figure.set_size_inches(4.4, 2.5)
    for image in figure.findobj(AxesImage):
        image.set_cmap(colors)
    return figure


def heads_with_words():
    """Two grids of attention weights between the words “the old dog sleeps
    by the door”. Both are empty above the diagonal. The first head gives most
    of its weight to the nearest words, the second to all earlier words.
    """
    content = torch.randn(2, len(WORDS), len(WORDS)) / 4
    weights = (content + _two_heads()).softmax(-1)
    return _on_the_page(attention_heads(weights, WORDS), "amount")


def biases_with_words():
    """The same two grids with biases instead of weights. Above the diagonal
    all cells are gray. The diagonal is clear. Below it, the cells of the
    first head get darker blue with distance; those of the second are pale.
    """
    colors = plt.colormaps["signed"].with_extremes(bad=(0.5, 0.5, 0.5, 0.3))
    return _on_the_page(attention_heads(_two_heads(), WORDS), colors)


def two_watches():
    """Two watches side by side. Both run; the minute hand of the watch on
    the right is five minutes behind.
    """
    fig, axes = plt.subplots(
        1, 2, figsize=(4.4, 2), subplot_kw={"aspect": "equal"}
    )
    for ax, late, title in zip(axes, (0, 5), ("ticks", "ticks"), strict=True):
        ax.add_patch(plt.Circle((0, 0), 1, fill=False, color="gray"))
        minutes = 10 * 60 + 10 - late  # ten past ten
        for turns, reach, color in (
            (minutes / 720, 0.5, "black"),
            (minutes / 60, 0.85, "C1" if late else "black"),
        ):
            angle = 2 * math.pi * turns
            ends = [reach * math.sin(angle), reach * math.cos(angle)]
            ax.plot([0, ends[0]], [0, ends[1]], color=color, linewidth=2)
        ax.set(xlim=(-1.05, 1.05), ylim=(-1.05, 1.05), title=title)
        ax.axis("off")
    return fig
