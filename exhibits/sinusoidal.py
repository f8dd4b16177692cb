"""Figures and tables of the chapter on sinusoidal encoding."""

import math
from inspect import signature
from itertools import pairwise

import matplotlib.pyplot as plt
import torch
from executable_prose import Choice, Live, Slider
from torch.nn.functional import cosine_similarity, cross_entropy

from exhibits._drawing import name_lines
from snippets.block import Block
from snippets.fourier import FourierEncoding, fourier_features
from snippets.sinusoidal import (
    AddSinusoidal,
    shift_matrix,
    sinusoidal_encoding,
    sinusoidal_encoding_t2t,
    sinusoidal_frequencies,
)

UPDATES = 300  # of the heads that are trained to look back


def _encode(count, dim, base=10000.0):
    """Return the encodings of positions 0 to count - 1, in float64."""
    return sinusoidal_encoding(
        torch.arange(count), dim, base, dtype=torch.float64
    )


def turned():
    """Two clocks with three hands each, and below them a line of words.

    The left clock is that of the first word. The right clock is that of a
    word a few steps on. Its longest hand has gone round and is almost back
    where it began, and the other hands point elsewhere.
    """
    words, dim, base = 45, 6, 100.0
    reach = torch.tensor([0.95, 0.75, 0.5], dtype=torch.float64)

    def walk(word):
        place = word - 1
        row = sinusoidal_encoding(place, dim, base, torch.float64)
        hands = row.view(-1, 2)  # of each the sine and the cosine
        tips = reach[:, None] * hands
        lines = torch.stack((torch.zeros_like(tips), tips), 1)
        back = hands[0, 1] > math.cos(math.radians(20))
        return {
            **{f"hand {n}": line for n, line in enumerate(lines)},
            "dot": torch.stack((word, 0 * word))[None],
            "back": torch.where(place == 0, 2, back),
        }

    live = _turned_live(walk, words)
    first = walk(torch.tensor(1.0, dtype=torch.float64))
    made, moves = live.start(), live.moves
    fig, axes = plt.subplot_mosaic(
        [["first", "this"], ["text", "text"]],
        figsize=(4.4, 2.7),
        height_ratios=(5, 1),
    )
    for name, clock in (("first", first), ("this", made)):
        ax = axes[name]
        ax.add_patch(plt.Circle((0, 0), 1, fill=False, color="gray"))
        for n in range(3):
            (hand,) = ax.plot(
                *clock[f"hand {n}"].T, f"C{n}", lw=4 - n / 2, zorder=2 + n
            )
            if name == "this":
                moves[f"hand {n}"] = hand
        ax.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), aspect="equal")
        ax.axis("off")
    axes["first"].set_title("the first word")
    moves["title"] = axes["this"].text(0, 1.15, "", ha="center", va="bottom")
    text = axes["text"]
    text.plot([1, words], [0, 0], color="gray")
    moves["dot"] = text.scatter(*made["dot"].T, s=110, c="black", zorder=3)
    text.set(xlim=(0, words + 1), ylim=(-1, 1), xlabel="words of the text")
    text.set(xticks=[1, 15, 30, 45], yticks=[])
    text.spines[["left", "bottom"]].set_visible(False)
    text.tick_params(length=0)
    return fig, live


def _turned_live(walk, words):
    return Live(
        walk,
        {"word": Slider("walk along the text", 1, words, 7, drag="dot")},
        says="{back|The fast hand has moved on.|The fast hand is almost back "
        "where it began. The slower hands still tell this word from the "
        "first.|The clock at its start.}",
        texts={"title": "word {word:.0f}"},
        tolerance=1e-12,
    )


def walks_of_five():
    """Two lines: how alike the marks of two words are that are five steps
    apart, plotted against the word at which the five steps start.

    For the marks as first pinned on, the line is level. When a machine that
    has learned nothing mixes their numbers, the line swings, and at some
    words it falls below zero.
    """
    rows, walk, dim, shown = _encode(605, 64), 5, 64, 140
    query, key = torch.randn(2, dim, dim, dtype=torch.float64) / dim**0.5
    mixed = ((rows[:-walk] @ query) * (rows[walk:] @ key)).sum(-1)
    level = (rows[:-walk] * rows[walk:]).sum(-1)
    fig, ax = plt.subplots(figsize=(4.4, 2.2))
    ax.axhline(0, color="gray", lw=0.6)
    for line, color in ((mixed, "C3"), (level, "black")):
        ax.plot(range(1, shown + 1), line[:shown], color)
    ax.text(shown, 25, "as pinned on", ha="right", va="bottom")
    ax.text(shown, 14, "hands mixed", color="C3", ha="right", va="bottom")
    ax.set(yticks=[0], ylim=(-12, 30), ylabel="how alike")
    ax.set(
        xticks=[1, shown // 2, shown], xlabel="word at which the walk starts"
    )
    return fig, {
        "walk": walk,
        "apart": level.max() - level.min(),
        "opposed": (mixed < 0).double().mean(),
    }


def by_hand():
    dim, position = 4, 3
    print("pair   angle     sine   cosine")
    frequencies = sinusoidal_frequencies(dim).tolist()
    for pair, frequency in enumerate(frequencies, 1):
        angle = position * frequency
        sine, cosine = math.sin(angle), math.cos(angle)
        print(f"{pair:>4}  {angle:.4f}  {sine:7.4f}  {cosine:7.4f}")
    row = _encode(position + 1, dim)[position]
    print("vector:", "  ".join(f"{x:.4f}" for x in row))
    first, second = sinusoidal_frequencies(dim)
    return {"position": position, "hands": dim // 2, "factor": first / second}


def walk():
    """A circle with four lines from its centre, a grid of colours with one
    row framed, and below them four waves with a dot on each.

    Lines, frame and dots show one position. From one position to the next,
    the longest line rotates most, and its dot is on the wave with the
    shortest wavelength.
    """
    dim, base, places = 8, 100.0, 41
    reach = torch.tensor([0.95, 0.8, 0.65, 0.5], dtype=torch.float64)
    across = torch.tensor([0, dim, dim, 0, 0], dtype=torch.float64) - 0.5
    down = torch.tensor([-0.5, -0.5, 0.5, 0.5, -0.5], dtype=torch.float64)

    def show(place):
        row = sinusoidal_encoding(place, dim, base, torch.float64)
        hands = row.view(-1, 2)  # of each the sine and the cosine
        tips = reach[:, None] * hands
        lines = torch.stack((torch.zeros_like(tips), tips), 1)
        return {
            **{f"hand {n}": line for n, line in enumerate(lines)},
            "frame": torch.stack((across, place + down), 1),
            "dots": torch.stack((place.expand(4), hands[:, 0]), 1),
            **{f"sine_{n}": hand[0] for n, hand in enumerate(hands)},
        }

    live = _walk_live(show, places)
    made = live.start()
    fig, axes = plt.subplot_mosaic(
        [["clock", "grid"], ["waves", "waves"]],
        figsize=(4.4, 4.2),
        height_ratios=(5, 4),
    )
    clock, grid, waves = axes.values()
    clock.add_patch(plt.Circle((0, 0), 1, fill=False, color="gray"))
    grid.imshow(_encode(places, dim, base), cmap="signed", vmin=-1, vmax=1)
    between = torch.linspace(0, places - 1, 401)
    sines = sinusoidal_encoding(between, dim, base)[:, ::2]
    for n in range(4):
        (live.moves[f"hand {n}"],) = clock.plot(
            *made[f"hand {n}"].T, color=f"C{n}", linewidth=2.5
        )
        waves.plot(between, sines[:, n], color=f"C{n}", linewidth=1)
    clock.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), aspect="equal")
    clock.axis("off")
    (live.moves["frame"],) = grid.plot(
        *made["frame"].T, "black", clip_on=False
    )
    grid.set(xlabel="dimension", ylabel="position")
    live.moves["dots"] = waves.scatter(
        *made["dots"].T, s=40, c=["C0", "C1", "C2", "C3"], zorder=3
    )
    waves.set(xlabel="position", ylabel="sine of each pair")
    return fig, {"base": base, "hands": dim // 2}, live


def _walk_live(show, places):
    return Live(
        show,
        {"place": Slider("position", 0, places - 1, 6, drag="dots")},
        says="At position {place:.0f} the four pairs have the sines "
        "{sine_0:,.2f}, {sine_1:,.2f}, {sine_2:,.2f} and {sine_3:,.2f}.",
        call="import torch\n"
        "from sinusoidal import sinusoidal_encoding\n\n"
        "row = sinusoidal_encoding(torch.tensor({place}), 8, base=100)\n"
        "row[::2]  # the sines",
        draws={"dots": "row[::2]"},
        tolerance=1e-12,
    )


def simpler_marks():
    place, short, long = 500, 10, 1000
    print(f"number     position {place} is {place}")
    print(f"fraction   a step is {1 / short} of {short} words,")
    print(f"           and {1 / long} of {long}")
    for here in (511, 512):
        flips = (here ^ (here + 1)).bit_count()
        print(f"binary     {here} to {here + 1} flips {flips} of 10 digits")


def sum_by_hand():
    """Three rows of coloured cells with numbers: the vector of a token, the
    vector of a position, and their sum.
    """
    token = torch.tensor([0.5, -0.3, 0.8, 0.1])
    position = sinusoidal_encoding(torch.tensor(3), 4)
    rows = torch.stack([token, position, token + position])
    fig, ax = plt.subplots(figsize=(4.4, 1.7))
    ax.imshow(rows, cmap="signed", vmin=-1.8, vmax=1.8)
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            ax.text(j, i, f"{value:+.2f}", ha="center", va="center")
    ax.set_yticks(range(3), ["“cat”", "+ position 3", "= layer input"])
    ax.set_xlabel("dimension")
    ax.set_xticks(range(4))
    return fig


def heatmap():
    """Heat map, with positions downward and dimensions across.

    The leftmost columns change from row to row; further right the stripes
    grow longer, and the rightmost columns hardly change at all.
    """
    fig, ax = plt.subplots(figsize=(4.4, 3.2))
    ax.imshow(_encode(64, 64), cmap="signed", vmin=-1, vmax=1)
    ax.set_xlabel("dimension")
    ax.set_ylabel("position")
    return fig


def chosen_positions():
    """Four rows of coloured cells, the encodings of positions 0, 1, 10 and 50
    over 64 dimensions.

    On the right, all four rows alternate between zero and one; they differ
    mainly on the left.
    """
    chosen = [0, 1, 10, 50]
    fig, ax = plt.subplots(figsize=(4.4, 1.7))
    ax.imshow(_encode(51, 64)[chosen], cmap="signed", vmin=-1, vmax=1)
    for line in range(1, len(chosen)):
        ax.axhline(line - 0.5, color="white", linewidth=4)
    ax.set_yticks(range(len(chosen)), [f"position {each}" for each in chosen])
    ax.set_xlabel("dimension")
    return fig


def fast_and_slow():
    """Line chart of three sine waves against position, from dimensions 0, 8
    and 16 of 64, with a short, a medium and a long wavelength.
    """
    encoding = _encode(66, 64)
    fig, ax = plt.subplots()
    for dimension, line in ((0, ":"), (8, "--"), (16, "-")):
        ax.plot(encoding[:, dimension], line, label=f"{dimension}")
    ax.set_xlabel("position")
    ax.legend(
        title="dimension",
        ncols=3,
        loc="lower center",
        bbox_to_anchor=(0.5, 1),
    )
    return fig


def spectrum():
    """Line chart of the wavelengths of all pairs, on a logarithmic scale: a
    straight line that rises. A dashed line marks the length of a text; about
    half of the pairs have longer wavelengths.
    """
    base = signature(sinusoidal_frequencies).parameters["base"].default

    def waves(width, base, tokens):
        lengths = 2 * math.pi / sinusoidal_frequencies(int(width), base)
        pairs = torch.arange(len(lengths), dtype=torch.float64)
        ends = torch.tensor([0.0, 255.0], dtype=torch.float64)
        return {
            "waves": torch.stack((pairs, lengths), 1),
            "text": torch.stack((ends, tokens.expand(2)), 1),
            "words": torch.stack((ends[0], tokens)),
            "pairs": torch.tensor(len(lengths)),
            "longer": (lengths > tokens).sum(),
            "longest": lengths[-1],
        }

    live = _spectrum_live(waves, base)
    made = live.start()
    fig, ax = plt.subplots()
    (live.moves["waves"],) = ax.plot(*made["waves"].T)
    (live.moves["text"],) = ax.plot(*made["text"].T, "--", color="gray")
    live.moves["words"] = ax.text(*made["words"], "", va="bottom")
    ax.set_yscale("log")
    ax.set_ylim(3, 1e7)
    ax.set_xlabel("pair")
    ax.set_ylabel("wavelength (positions)")
    wavelengths = made["waves"][:, 1]
    values = {
        "dim": 512,
        "tokens": 512,
        "pairs": len(wavelengths),
        "longer": made["longer"],
        "ratio": wavelengths[1] / wavelengths[0],
        "longest": made["longest"],
        "printed_end": 2 * math.pi * base,
    }
    return fig, values, live


def _spectrum_live(waves, base):
    return Live(
        waves,
        {
            "base": Slider("base", 100, 1e6, base, log=True),
            "tokens": Slider("positions in a text", 100, 1e5, 512, log=True),
            "width": Choice("width", ("64", "128", "256", "512"), "512"),
        },
        says="With base {base:,} and width {width}, the longest wavelength "
        "is {longest:,.0f} positions, and {longer:.0f} of {pairs:.0f} pairs "
        "do not complete a full rotation within {tokens:,} positions.",
        call="import math\n"
        "from sinusoidal import sinusoidal_frequencies\n\n"
        "frequencies = sinusoidal_frequencies({width}, base={base})\n"
        "waves = 2 * math.pi / frequencies.double()\n"
        "waves[-1], (waves > {tokens}).sum(), len(waves)",
        draws={"waves": "waves"},
        texts={"words": "{tokens:,} positions"},
        tolerance=1e-6,
    )


def similarity_to_one():
    """Line chart of similarity against position: a peak of one in the middle,
    and ripples on both sides.
    """
    last, dim = 200, 128

    def compare(reference):
        one = sinusoidal_encoding(reference, dim, dtype=torch.float64)
        # every row has the length sqrt(dim / 2)
        similarity = _encode(last + 1, dim) @ one / (dim / 2)
        ends = torch.tensor([0.0, 1.0], dtype=torch.float64)
        return {
            "similarity": torch.stack(
                (torch.arange(last + 1), similarity), 1
            ),
            "reference line": torch.stack((reference.expand(2), ends), 1),
            "itself": one @ one / (dim / 2),
            "least": similarity.amin(),
        }

    live = _similarity_to_one_live(compare, last, dim)
    made = live.start()
    fig, ax = plt.subplots()
    (live.moves["similarity"],) = ax.plot(*made["similarity"].T)
    (live.moves["reference line"],) = ax.plot(
        *made["reference line"].T, "--", color="gray"
    )
    ax.set_ylim(0, 1.04)
    ax.set_xlabel("position")
    ax.set_ylabel("cosine similarity")
    right = made["similarity"][last // 2 :, 1]
    rise = (right[1:] > right[:-1]).nonzero()[0].item() + 1
    return fig, {"dim": dim, "first_rise": rise}, live


def _similarity_to_one_live(compare, last, dim):
    return Live(
        compare,
        {
            "reference": Slider(
                "position", 0, last, last // 2, drag="reference line"
            )
        },
        says="The similarity to position {reference} is {itself:.0f} there "
        "and nowhere less than {least:.2f down}.",
        call="import torch\n"
        "from sinusoidal import sinusoidal_encoding\n\n"
        f"rows = sinusoidal_encoding(torch.arange({last + 1}), {dim})\n"
        f"similarity = rows @ rows[{{reference}}] / {dim // 2}\n"
        "similarity[{reference}], similarity.min()",
        draws={"similarity": "similarity"},
        tolerance=1e-9,
    )


def similarity_matrix():
    """Square heat map, strongest along the diagonal, with parallel stripes
    that get weaker away from it.
    """
    dim = 64
    encoding = _encode(64, dim)
    similarity = encoding @ encoding.T / (dim / 2)
    fig, ax = plt.subplots(figsize=(4.4, 3.1))
    ax.imshow(similarity, cmap="signed", vmin=-1, vmax=1, aspect=1)
    ax.set_xlabel("position")
    ax.set_ylabel("position")
    return fig, {"dim": dim}


def steps():
    """Points around a circle with an arrow from each to the next. All arrows
    are equally long, and each points in a different direction.
    """
    dim, offset, start = 64, 5, 10
    encoding = _encode(start + offset + 1, dim)
    fig, ax = plt.subplots(figsize=(4.4, 2.6))
    ax.add_patch(plt.Circle((0, 0), 1, fill=False, color="gray"))
    for position, (here, there) in enumerate(pairwise(encoding[:7, :2])):
        arrow = {"arrowstyle": "->", "color": "C1"}
        ax.annotate("", there.tolist(), here.tolist(), arrowprops=arrow)
        ax.text(*(1.16 * here), str(position), ha="center", va="center")
    ax.set_aspect("equal")
    ax.set_xlim(-1.3, 1.3)
    ax.set_ylim(-1.3, 1.3)
    ax.text(0, 0, "dimensions\n0 and 1", ha="center", va="center")
    ax.axis("off")
    first = encoding[offset] - encoding[0]
    second = encoding[start + offset] - encoding[start]
    return fig, {
        "dim": dim,
        "offset": offset,
        "start": start,
        "end": start + offset,
        "length": first.norm(),
        "other_length": second.norm(),
        "cosine": cosine_similarity(first, second, dim=0),
    }


def two_coordinates():
    """Two square heat maps of the similarity of each pixel to the one in the
    middle.

    On the left, with separate sinusoids for rows and columns, a strong cross
    reaches the edges. On the right, with newly initialised Fourier features,
    a round spot gets weaker towards its edge.
    """
    side, gamma, features = 33, 4.0, 4096
    line = torch.arange(side)
    pixels = torch.cartesian_prod(line, line)
    apart = sinusoidal_encoding(pixels, 64).flatten(1)
    torch.manual_seed(0)
    fourier = FourierEncoding(2, 64, features, 32, gamma)
    drawn = fourier_features(pixels, fourier.frequencies.detach())
    fig, axes = plt.subplots(1, 2, figsize=(4.4, 2.3), sharey=True)
    values = {"features": features, "gamma": gamma}
    values |= {"straight": 5, "down": 3, "across": 4}
    names = {"apart": "sinusoids", "together": "Fourier features"}
    for ax, name, rows in zip(axes, names, (apart, drawn), strict=True):
        middle = rows[len(rows) // 2]
        map_ = cosine_similarity(middle, rows, dim=1).view(side, side)
        ax.imshow(map_, cmap="signed", vmin=-1, vmax=1)
        ax.set_title(names[name])
        ax.set_xlabel("column")
        at = side // 2
        values[f"{name}_straight"] = map_[at, at + 5].item()
        values[f"{name}_slanted"] = map_[at + 3, at + 4].item()
    axes[0].set_ylabel("row")
    return fig, values


def shift_is_linear():
    encoding = _encode(1000, 128)
    start = encoding[200:800]
    print("offset   largest error over 600 positions, one matrix for all")
    for offset in (1, 7, 100, -3):
        shift = shift_matrix(torch.tensor(offset), 128, dtype=torch.float64)
        error = start @ shift.T - encoding[200 + offset : 800 + offset]
        print(f"{offset:>6}   {error.abs().max():.0e}")


def dot_products():
    encoding = _encode(600, 64)
    query, key = torch.randn(2, 64, 64, dtype=torch.float64) / 8
    raw = encoding @ encoding.T
    projected = (encoding @ query) @ (encoding @ key).T
    print("positions                      0, 5  50, 55 500, 505")
    for name, scores in (
        ("without projections", raw),
        ("with random projections", projected),
    ):
        three = (f"{scores[p, p + 5]:8.3f}" for p in (0, 50, 500))
        print(f"{name:<26}", *three)


def four_terms():
    x, y = torch.randn(2, 64, 64)
    p = sinusoidal_encoding(torch.arange(64), 64)
    query, key = torch.randn(2, 64, 64) / 8
    terms = {
        "word to word": (x @ query) @ (y @ key).T,
        "word to position": (x @ query) @ (p @ key).T,
        "position to word": (p @ query) @ (y @ key).T,
        "position to position": (p @ query) @ (p @ key).T,
    }
    for name, term in terms.items():
        print(f"{name:<22}{term.square().mean().sqrt():.2f}")
    whole = ((x + p) @ query) @ ((y + p) @ key).T
    error = (sum(terms.values()) - whole).abs().max()
    print(f"their sum and the score: {error:.0e} apart")


def adding_is_appending():
    words, positions = torch.randn(10, 64).double(), _encode(10, 64)
    weight = torch.randn(64, 64).double()

    added = (words + positions) @ weight
    appended = torch.cat([words, positions], 1) @ torch.cat([weight, weight])
    print(f"largest difference: {(added - appended).abs().max():.0e}")


def wider():
    """Return how much larger a block gets with an eighth or as much more."""
    dim, heads = 512, 8
    sizes = {
        extra: sum(
            each.numel() for each in Block(dim + extra, heads).parameters()
        )
        for extra in (0, dim // 8, dim)
    }
    return {
        "dim": dim,
        "extra": dim // 8,
        "some": sizes[dim // 8] / sizes[0],
        "as_much": sizes[dim] / sizes[0],
    }


def pulled_apart():
    """Print how often the best fit to a sum of word and position is right."""
    words, places, sums = 1000, 512, 4096
    values = {"words": words, "places": places}
    print("width  word  position  word removed")
    for dim in (64, 256, 1024):
        vocabulary = torch.randn(words, dim)
        encoding = sinusoidal_encoding(torch.arange(places), dim)
        word = torch.randint(words, (sums,))
        place = torch.randint(places, (sums,))
        found = vocabulary[word] + encoding[place]
        nearest = torch.cdist(found, vocabulary).argmin(-1)
        left = found - vocabulary[nearest]
        right = [
            (told == asked).float().mean().item()
            for told, asked in (
                (nearest, word),
                ((found @ encoding.T).argmax(-1), place),
                ((left @ encoding.T).argmax(-1), place),
            )
        ]
        a, b, c = right
        print(f"{dim:>5}{a:6.0%}{b:10.0%}{c:14.0%}")
        names = ("word", "place", "alone")
        values |= {
            f"{name}_{dim}": share
            for name, share in zip(names, right, strict=True)
        }
    return values


def not_additive():
    a, b, dim = 3, 7, 128
    encoding = _encode(a + b + 1, dim)
    gap = (encoding[a] + encoding[b] - encoding[a + b]).norm()
    return {
        "a": a,
        "b": b,
        "dim": dim,
        "gap": gap,
        "norm": encoding[a].norm(),
    }


def margins():
    """Line chart of the smallest distance to another position, one line for
    each of four numbers of dimensions.

    With two dimensions, the line soon falls almost to zero. The more
    dimensions, the later the line falls; with 64 it is flat to the end.
    """
    count = 200_000
    shown = torch.logspace(0, math.log10(count - 1), 200).long().unique() - 1
    fig, ax = plt.subplots()
    nearest = {}
    for dim, line in ((64, "-"), (8, "--"), (4, "-."), (2, ":")):
        turns = torch.arange(1, count)[:, None] * sinusoidal_frequencies(dim)
        gap = (2 - 2 * turns.cos()).sum(-1).sqrt() / math.sqrt(dim / 2)
        nearest[dim] = gap.cummin(0).values
        label = f"{dim} dim."
        ax.loglog(shown + 1, nearest[dim][shown], line, label=label)
    ax.minorticks_off()
    ax.set_xlabel("largest position compared")
    ax.set_ylabel("smallest distance / norm")
    name_lines(ax)
    early = nearest[2][:1000]
    return fig, {
        "twin": early.argmin().item() + 1,
        "gap": early[-1],
        "dim": 64,
        "count": count,
        "wide_gap": nearest[64][-1],
    }


def scale():
    dim = 512
    position = sinusoidal_encoding(torch.tensor(0), dim).norm()
    print(f"a position                       {position:7.2f}")
    for scheme, deviation, factor in (
        ("deviation 0.02, no factor", 0.02, 1.0),
        ("deviation 1/√d, times √d", dim**-0.5, dim**0.5),
        ("deviation 1, times √d", 1.0, dim**0.5),
    ):
        tokens = torch.randn(1000, dim) * deviation * factor
        print(f"a token, {scheme:<25}{tokens.norm(dim=-1).mean():6.2f}")
    return {"dim": dim}


def beside_learned():
    """Two heat maps on one colour scale: the sinusoidal encoding in strong
    colours, and a newly initialised learned table that is almost blank.
    """
    deviation = 0.02
    learned = torch.nn.Embedding(32, 32)
    torch.nn.init.normal_(learned.weight, std=deviation)
    fig, axes = plt.subplots(1, 2, figsize=(4.4, 2.6), sharey=True)
    for ax, title, table in (
        (axes[0], "sinusoidal", _encode(32, 32)),
        (axes[1], "learned, before training", learned.weight.detach()),
    ):
        ax.imshow(table, cmap="signed", vmin=-1, vmax=1)
        ax.set_title(title)
        ax.set_xlabel("dimension")
    axes[0].set_ylabel("position")
    ratio = _encode(32, 32).norm() / learned.weight.norm()
    return fig, {"deviation": deviation, "ratio": ratio}


def read_by_zeros():
    layer = AddSinusoidal(dim=4)
    table = layer(torch.zeros(3, 4), positions=torch.arange(3))
    print(table)


def two_layouts():
    """Two heat maps of the same size. In the paper's convention, the stripes
    of sines and cosines alternate; in that of tensor2tensor, they are in two
    separate halves.
    """
    dim, far = 32, 1000
    conventions = {
        "paper": sinusoidal_encoding,
        "tensor2tensor": sinusoidal_encoding_t2t,
    }
    fig, axes = plt.subplots(1, 2, figsize=(4.4, 2.4), sharey=True)
    for ax, (name, encode) in zip(axes, conventions.items(), strict=True):
        ax.imshow(
            encode(torch.arange(48), dim), cmap="signed", vmin=-1, vmax=1
        )
        ax.set_title(name)
        ax.set_xlabel("dimension")
    axes[0].set_ylabel("position")
    paper = sinusoidal_encoding(torch.tensor(far), dim)
    halves = torch.cat([paper[0::2], paper[1::2]])
    apart = halves - sinusoidal_encoding_t2t(torch.tensor(far), dim)
    hands = apart.unflatten(0, (2, dim // 2)).norm(dim=0)
    return fig, {"dim": dim, "far": far, "apart": hands.max()}


def in_a_model():
    embed = torch.nn.Embedding(1000, 64)
    torch.nn.init.normal_(embed.weight, std=64**-0.5)
    add_positions = AddSinusoidal(dim=64)

    ids = torch.randint(1000, (2, 10))  # two sequences of ten tokens
    positions = torch.arange(ids.shape[1], device=ids.device)
    x = add_positions(embed(ids) * math.sqrt(64), positions)

    next_id = torch.randint(1000, (2, 1))  # decoding: one more token each
    position = torch.tensor([ids.shape[1]], device=ids.device)
    step = add_positions(embed(next_id) * math.sqrt(64), position)
    print(tuple(x.shape), tuple(step.shape))


def coarse_positions():
    print("first position that equals the one before it:")
    for dtype in (torch.float16, torch.bfloat16):
        counted = torch.arange(4096).to(dtype)
        twin = (counted[1:] == counted[:-1]).nonzero()[0].item() + 1
        print(f"  {str(dtype).removeprefix('torch.'):<9}{twin:>5}")
    positions, speeds = (
        torch.arange(8192)[:, None],
        sinusoidal_frequencies(128),
    )
    coarse = positions.bfloat16() * speeds.bfloat16()
    error = (coarse.double().sin() - (positions * speeds).sin()).abs().max()
    print(f"largest error of a sine from bfloat16 angles: {error:.2f}")


def beyond_training():
    """Line chart of the attention weight on the previous token by position,
    for two heads.

    Up to position 64, the training length, both lines stay at one. Beyond it,
    the line of the trained head falls and rises irregularly, while that of
    the head that was constructed by hand stays at one.
    """
    trained, tested = 64, 256
    encoding = sinusoidal_encoding(torch.arange(tested), 64)
    heads = [_train_to_look_back(encoding[:trained], n) for n in range(3)]
    found = torch.stack([_looks_back(encoding, *head) for head in heads])
    step_back = 80 * shift_matrix(torch.tensor(-1), 64)
    written = _looks_back(encoding, step_back, torch.eye(64))
    fig, ax = plt.subplots(figsize=(4.4, 2.9))
    ax.axvspan(0, trained, color="gray", alpha=0.2, linewidth=0)
    queries = range(1, tested)  # position 0 has no previous token
    ax.plot(queries, found[0], color="C1", linewidth=1, label="trained")
    ax.plot(queries, written, color="C0", label="constructed\nby hand")
    ax.text(trained, 0.02, " training length", va="bottom")
    ax.set_ylim(0)
    ax.set_xlabel("position")
    ax.set_ylabel("weight on previous token")
    name_lines(ax)
    return fig, {
        "trained": trained,
        "tested": tested - 1,
        "heads": len(heads),
        "updates": UPDATES,
        "inside": found[:, : trained - 1].min(),
        "outside": found[:, trained - 1 :].mean(),
        "lowest_outside": found[:, trained - 1 :].min(),
        "written": written.min(),
    }


def _train_to_look_back(encoding, seed):
    """Return the query and key matrices of one head, trained to find the
    previous token by positions alone.
    """
    generator = torch.Generator().manual_seed(seed)
    query, key = (torch.randn(2, 64, 64, generator=generator) / 16).unbind()
    query, key = query.requires_grad_(), key.requires_grad_()
    optimizer = torch.optim.Adam([query, key], lr=0.01)
    for _ in range(UPDATES):
        loss = cross_entropy(
            _causal_scores(encoding, query, key)[1:],
            torch.arange(len(encoding) - 1),
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return query.detach(), key.detach()


def _causal_scores(encoding, query, key):
    scores = (encoding @ query.T) @ (encoding @ key.T).T / 8
    return scores.masked_fill(torch.ones_like(scores).triu(1) > 0, -math.inf)


def _looks_back(encoding, query, key):
    """Return the weight of each position on the one before it."""
    return _causal_scores(encoding, query, key).softmax(-1).diagonal(-1)
