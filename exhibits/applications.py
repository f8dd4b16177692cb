"""Exhibits of the chapter on applications: the translator."""

from datetime import date, datetime

import matplotlib.pyplot as plt
import torch
from babel import Locale
from babel.core import get_cldr_version
from babel.dates import format_date, get_date_format

from exhibits._drawing import COLORS
from experiments import dates, generator, runs, translator
from snippets.sinusoidal import sinusoidal_encoding

BOUND = "upper bound without order"
BLIND = ("none", "RoPE in the decoder only")


def _mean(numbers):
    return sum(numbers) / len(numbers)


def _of(key):
    """What the kept runs say of one thing: method to a number a seed."""
    kept = runs.load("translator")
    return {name: [seed[key] for seed in kept[name]] for name in kept}


def two_orders():
    """Two rows of boxes, with a German date above and the English one below.

    Lines join words with the same meaning. The lines of the day and of the
    month cross.
    """
    rows = dates.texts(date(2026, 4, 3), "long")
    places = {}
    fig, ax = plt.subplots(figsize=(4.4, 1.9))
    for y, text in zip((1, 0), rows, strict=True):
        x = 0.0
        for word in text.split():
            width = 0.5 + 0.32 * len(word)
            name = word.strip(".,")
            places.setdefault(name, []).append((x + width / 2, y))
            color = {"3": "C1", "April": "C0"}.get(name, "gray")
            box = {"boxstyle": "round", "facecolor": color, "alpha": 0.25}
            ax.text(
                x + width / 2, y, word, ha="center", va="center", bbox=box
            )
            x += width
    for name, ((above, _), (below, _)) in places.items():
        color = {"3": "C1", "April": "C0"}.get(name, "gray")
        ax.plot([above, below], [0.78, 0.22], color=color, linewidth=2)
    ax.set_xlim(-0.2, 4.4)
    ax.set_ylim(-0.3, 1.3)
    ax.axis("off")
    return fig


def into_tokens():
    german, english = dates.texts(date(2026, 11, 21), "long")
    for text in (german, english):
        print("|".join(dates.tokens(text)))
    return {
        "kinds": len(dates.vocabulary()) - 3,
        "german": len(dates.tokens(german)),
        "english": len(dates.tokens(english)),
        "longest": dates.batch(dates.texts(date(2026, 11, 21), "full")).shape[
            1
        ],
    }


def in_four_styles():
    day = date(2026, 4, 3)
    for style in dates.STYLES:
        german, english = dates.texts(day, style)
        print(f"{style:<7} {german}\n{'':<7} {english}")


def _german(style):
    language = Locale.parse(dates.LANGUAGES[0])
    pattern = get_date_format(style, language)  # looked up once for all days
    for day in dates.DAYS:
        yield pattern.apply(date.fromordinal(day), language)


def same_bag():
    asked = "03.04.26"
    same = [
        text for text in _german("short") if sorted(text) == sorted(asked)
    ]
    for text in (asked, *(each for each in same if each != asked)):
        print(text, " from ", " ".join(sorted(text.replace(".", ""))))
        if text == same[4]:
            break
    print(f"and so on, {len(same)} dates in all")
    return {"dates": len(same)}


def exact_match():
    """Dot plot with a row for each encoding and a dot for each seed: the
    fraction of dates that are translated without a mistake.

    The dots of the two rows without positions in the encoder are far to the
    left of all others.
    """
    exact = _of("exact")
    order = sorted(exact, key=lambda name: _mean(exact[name]))
    fig, ax = plt.subplots(figsize=(4.4, 2.7))
    for row, name in enumerate(order):
        color = COLORS[name.split(" in ")[0]]
        ax.plot([0, max(exact[name])], [row, row], color=color, linewidth=1)
        ax.plot(
            exact[name],
            [row] * len(exact[name]),
            "o",
            color=color,
            markersize=4,
        )
    ax.set_yticks(range(len(order)), order)
    ax.set_xlim(0, 1.02)
    ax.set_xlabel("fraction of dates without a mistake")
    seeing = [
        each for name in order if name not in BLIND for each in exact[name]
    ]
    blind = [each for name in BLIND for each in exact[name]]
    return fig, {
        "methods": len(order),
        "seeds": len(runs.load("translator")["none"]),
        "asked": translator.HELD_OUT,
        "lowest_with": min(seeing),
        "highest_without": max(blind),
        "encoder_only": min(exact["RoPE in the encoder only"]),
        "decoder_only": max(exact["RoPE in the decoder only"]),
        "none": _mean(exact["none"]),
        "rope": min(exact["RoPE"]),
    }


def by_style():
    """A table of encodings and styles."""
    styles, exact = dates.STYLES, _of("exact")
    at_best = {style: _best_from_a_bag(style) for style in styles}
    rows = {BOUND: [*at_best.values(), _mean(at_best.values())]}
    for name, seeds in _of("by_style").items():
        means = [_mean([seed[style] for seed in seeds]) for style in styles]
        rows[name] = [*means, _mean(exact[name])]
    print("| Encoding | " + " | ".join(styles) + " | all |")
    print("|---" * (len(styles) + 2) + "|")
    for name, shares in rows.items():
        cells = " | ".join(f"{100 * share:.0f}" for share in shares)
        print(f"| {name} | {cells} |")
    return {
        "dates": len(dates.DAYS),
        "of_short": at_best["short"],
        "of_full": at_best["full"],
        "of_all": rows[BOUND][-1],
        "none_full": rows["none"][-2],
    }


def _best_from_a_bag(style):
    """The fraction of dates that a function of the multiset of tokens can
    get right at most: one for each multiset."""
    kinds = {tuple(sorted(dates.tokens(text))) for text in _german(style)}
    return len(kinds) / len(dates.DAYS)


def translations():
    kept, shown = runs.load("translator"), ("none", "ALiBi", "RoPE")
    for place in range(translator.SHOWN // 2, translator.SHOWN):
        print(kept["none"][0]["translations"][place][0])
        for name in shown:
            _, said, right = kept[name][0]["translations"][place]
            verdict = "right" if said == right else "wrong"
            print(f"  {name:<6} {said:<22} {verdict}")


def wrong():
    """How many of the stored wrong translations by models without positions
    in the encoder are dates."""
    found = [
        _is_date(said, dates.STYLES[place % len(dates.STYLES)])
        for name, seeds in _of("translations").items()
        for seed in seeds
        for place, (_, said, right) in enumerate(seed)
        if name in BLIND and said != right
    ]
    return {"wrong": len(found), "dates": sum(found)}


def _is_date(text, style):
    """Whether a text is a date in a style of American English, but for the
    name of the day, which may be that of another date."""
    name, comma, rest = text.partition(", ")
    if style == "full" and comma and name.endswith("day"):
        text = rest
    forms = {"short": "%m/%d/%y", "medium": "%b %d, %Y"}
    try:
        day = datetime.strptime(text, forms.get(style, "%B %d, %Y")).date()
    except ValueError:
        return False
    return format_date(day, style, dates.LANGUAGES[1]).endswith(text)


def loudness():
    """Norms of two added encodings and of the tokens, at initialisation."""
    model = translator.translator("learned", 0).requires_grad_(False)
    scale = model.tokens.embedding_dim**0.5
    values = _beside(scale * model.tokens.weight, model.source)
    model = generator.byte_decoder("learned", 0).requires_grad_(False)
    of = _beside(model.scale * model.tokens.weight, model.encoding)
    return values | {f"generator_{key}": each for key, each in of.items()}


def _beside(tokens, learned):
    token = tokens.norm(dim=-1).mean()
    row = learned.add.table.norm(dim=-1).mean()
    waves = sinusoidal_encoding(torch.arange(9), tokens.shape[-1])
    wave = waves.norm(dim=-1).mean()
    return {
        "waves": wave / token,
        "quieter": token / row,
        "apart": wave / row,
    }


def looked():
    """Two heatmaps of attention weights, with the tokens of a German date as
    columns and those of the English date as rows. On the left, with RoPE,
    most rows have one dark cell, and the digits of day and year lie on two
    slanting lines. On the right, without positions, the weights of a digit
    are spread over several columns.
    """
    kept = runs.load("translator")
    fig, axes = plt.subplots(1, 2, figsize=(4.4, 3.9), sharey=True)
    share = {}
    for ax, name in zip(axes, ("RoPE", "none"), strict=True):
        look = kept[name][0]["looks"]
        source, target = look["source"], look["target"]
        percent = [list(map(int, row.split())) for row in look["percent"]]
        ax.imshow(torch.tensor(percent), cmap="amount", vmin=0, vmax=100)
        ax.set_xticks(range(len(source)), source, rotation=90)
        ax.set_yticks(range(len(target)), target)
        ax.tick_params(length=0)
        ax.set_title("no positions" if name == "none" else name)
        share[name] = _on_the_digit(source, target, percent)
    axes[0].set_ylabel("next token to write")
    return fig, {"rope": share["RoPE"], "none": share["none"]}


def _on_the_digit(source, target, percent):
    """The mean weight, from 0 to 1, that the digits of day and year to be
    written give to the same digits of the German text, which has each once.
    """
    found = []
    for row, token in zip(percent, target, strict=True):
        if token.isdigit():
            found.append(row[source.index(token)] / 100)
    return _mean(found)


def masks():
    """Three attention masks as grids. The encoder's mask is full except for
    the padding, which attends to itself alone; the decoder's is a triangle;
    that of cross-attention is full except for the padding.
    """
    model = translator.translator("none", 0)
    german, english = ("03.04.26", "03.04.2026"), ("4/3/26", "Apr 3, 2026")
    source = dates.batch(german)[:1]
    target = dates.batch(english, [dates.START])[:1, : len(english[0]) + 1]
    _, (*_, reads) = model.enter(source, model.source, causal=False)
    _, (*_, writes) = model.enter(target, model.target, causal=True)
    looks = (source != dates.PAD).expand(target.shape[1], -1)
    of_source = [*german[0], "–", "–"]
    of_target = ["▸", *english[0]]
    fig, axes = plt.subplots(1, 3, figsize=(4.4, 2.5))
    for ax, title, seen, rows, columns in (
        (axes[0], "encoder", reads[0, 0].isfinite(), of_source, of_source),
        (axes[1], "decoder", writes[0, 0].isfinite(), of_target, of_target),
        (axes[2], "cross-attention", looks, of_target, of_source),
    ):
        ax.imshow(seen, vmin=0, vmax=1.4)
        ax.set_xticks(range(len(columns)), columns)
        ax.set_yticks(range(len(rows)), rows)
        ax.tick_params(length=0)
        ax.set_title(title)
        ax.set_xlabel("key")
    axes[0].set_ylabel("query")
    return fig


def mirror_images():
    pairs = dict(dates.mirrored(10**6))
    for text in ("10.01.01", "10.01.01"[::-1]):
        print(f"{text}  is  {pairs[text]}")
    print("difference of the scores, in an untrained translator with")
    target = dates.batch(["10/10/01"], [dates.START])
    for name in ("ALiBi", "Shaw", "RoPE"):
        model = translator.translator(name, 0).double()
        source = dates.batch(["10.01.01"])
        gap = model(source, target)[0] - model(source.flip(-1), target)[0]
        print(f"  {name:<6} {gap.abs().max().item():.0e}")
    return {"texts": len(pairs), "share": len(pairs) / len(dates.DAYS)}


def mirrored():
    """Dot plot with a row for each encoding and a dot for each seed: the
    fraction of correct translations among dates that are another date if read
    backwards. The dots of ALiBi, which has a symmetric bias, do not pass the
    dashed line at one half, and neither do those of the two rows without
    positions.
    """
    found = _of("mirrored")
    order = sorted(found, key=lambda name: _mean(found[name]))
    bounded = (*BLIND, "ALiBi")
    fig, ax = plt.subplots(figsize=(4.4, 2.7))
    for row, name in enumerate(order):
        color = COLORS[name.split(" in ")[0]]
        ax.plot(found[name], [row] * len(found[name]), "o", color=color)
    ax.axvline(0.5, color="gray", linestyle="--")
    ax.set_yticks(range(len(order)), order)
    ax.set_xlim(0, 1.02)
    ax.set_xlabel("fraction of dates without a mistake")
    free = [
        each for name in order if name not in bounded for each in found[name]
    ]
    return fig, {
        "asked": translator.MIRRORED,
        "alibi": max(found["ALiBi"]),
        "others": min(free),
    }


def how_it_was_made():
    made = runs.made_with("translator")
    seconds = sorted(each["seconds"] for each in made)
    first = made[0]
    return {
        "runs": len(made),
        "seconds": seconds[len(seconds) // 2],
        "torch": first["torch"],
        "python": first["python"],
        "babel": first["babel"],
        "cldr": get_cldr_version(),
        "machine": first["machine"],
        "updates": translator.UPDATES,
        "batch": translator.BATCH_SIZE,
        "drawn": translator.UPDATES * translator.BATCH_SIZE,
        "layers": translator.LAYERS,
        "heads": translator.HEADS,
        "dim": translator.DIM,
        "parameters": runs.load("translator")["none"][0]["parameters"],
        "one_in": dates.HELD_OUT,
        "styles": len(dates.STYLES),
        "dates": len(dates.DAYS),
    }
