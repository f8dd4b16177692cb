"""Exhibits of the census, from experiments/results/census.json."""

from collections import Counter

import matplotlib.pyplot as plt

from experiments.census.checked import checked, interval
from experiments.census.checked import sample as sample_of
from experiments.census.joined import NEAR
from experiments.census.rows import (
    FIELDS,
    UNSURE,
    census,
    composites,
    digest,
    plan,
    row_of,
    rows,
    words,
)

FAR = 32_768
TOKENS, WINDOW = 48, 8  # what test_census.py holds the instrument to
PART = "part of each head"
KINDS = {  # how a model knows of order, the first that fits; its colour
    "turns": "C1",
    "scores": "C2",
    "input": "C0",
    "none": "black",
    "unsure": "gray",
}


def _read(*what):
    return [row for row in rows() if row.reads in what]


def _attending(*what):
    return [row for row in _read(*what) if row.value("attention") == "yes"]


def _turning():
    return [row for row in _read("text") if row.value("rotation") == "yes"]


def _known(row, name):
    """A list that is known and not empty, or none."""
    value = row.value(name)
    return value if isinstance(value, list) else []


def _kind(row):
    """The first mark that a model was seen to have, of any text model."""
    asked = ("rotation", "biased", "in_score", "added")
    if row.value("attention") != "yes":
        return "none" if row.value("attention") == "no" else "unsure"
    turns, biased, mixed, added = (row.value(name) for name in asked)
    if turns == "yes":
        return "turns"
    if biased in ("linear", "table") or mixed == "yes":
        return "scores"
    if added in ("learned", "fixed", "convolution"):
        return "input"
    unsure = {turns, biased, mixed, added} & set(UNSURE)
    return "unsure" if unsure else "none"


def compass():
    """A field of dots, one for each kind of program that reads text. About
    half have the colour of needles that turn, fewer that of marks added at
    the start, and a few that of rules for distances.
    """
    names = {
        "turns": "needles that turn",
        "input": "marks added at the start",
        "scores": "rules for distances",
        "none": "none of these",
        "unsure": "not clear",
    }
    counts = Counter(_kind(row) for row in _read("text"))
    fig, ax = plt.subplots(figsize=(4.4, 4.6))
    first, across = 0, 18
    for kind, name in names.items():
        spots = range(first, first + counts[kind])
        x, y = [n % across for n in spots], [-(n // across) for n in spots]
        label = f"{counts[kind]}: {name}"
        ax.plot(x, y, "o", ms=7, color=KINDS[kind], label=label)
        first += counts[kind]
    ax.set_aspect("equal")
    ax.axis("off")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0), frameon=False)
    of_ten = round(10 * counts["turns"] / counts.total())
    return fig, dict(counts) | {"all": counts.total(), "of_ten": of_ten}


def counts():
    attention = Counter(row.value("attention") for row in rows())
    measured = sum(row.measured for row in rows())
    return {
        "version": census()["transformers"],
        "digest": digest(),
        "types": len(census()["models"]),
        "composites": len(composites()),
        "leaves": len(rows()),
        "measured": measured,
        "unmeasured": len(rows()) - measured,
        "text": len(_read("text")),
        "attending": attention["yes"],
        "without": attention["no"],
        "by_default": sum(row.no_attention_by_default for row in rows()),
        "filled": sum(bool(row.filled) for row in rows()),
        "declared": sum(_only_declared(row) for row in rows()),
    }


def _only_declared(row):
    rotation = row.facts.get("rotation", {})
    return (rotation.get("value"), rotation.get("witness")) == (
        "yes",
        "declared",
    )


def switches():
    print("| Model | The source code rotates if | By default |")
    print("|---|---|---|")
    says = {True: "it does", False: "it does not", None: "unknown"}
    found = [row for row in rows() if row.switches]
    for row in found:
        for condition, holds in row.switches.items():
            print(f"| `{row.kind}` | `{condition}` | {says[holds]} |")
    off = [row for row in found if not any(row.switches.values())]
    return {"models": len(found), "off": len(off)}


def limits():
    return {"tokens": TOKENS, "window": WINDOW, "near": NEAR}


def one_row():
    row = row_of("smollm3")
    print(f"{row.cls}, line {row.line} of {row.file}")
    for said in words(row):
        print(" ", said)


def layouts():
    """Bar charts of model types with RoPE. Most have the half layout and few
    the interleaved one; most rotate whole heads, and some a part of each.
    """
    pairs, shares = Counter(), Counter()
    for row in _turning():
        if layout := _known(row, "layout"):
            pairs[" and ".join(layout)] += 1
        if share := _known(row, "share"):
            shares["whole heads" if share == [1.0] else PART] += 1
    fig, axes = plt.subplots(2, figsize=(4.4, 2.4))
    bars = zip(axes, (pairs, shares), ("C0", "C1"), strict=True)
    for ax, counts, color in bars:
        names, values = zip(*reversed(counts.most_common()), strict=True)
        ax.bar_label(ax.barh(names, values, color=color), padding=3)
        ax.set_xlim(0, 1.15 * len(_turning()))
        ax.set_xticks([])
        ax.spines["bottom"].set_visible(False)
    return fig, {
        "turning": len(_turning()),
        "half": pairs["half"],
        "interleaved": pairs["interleaved"],
        "layouts": pairs.total(),
        "whole": shares["whole heads"],
        "part": shares[PART],
    }


def bases():
    """Scatter plot of measured against declared RoPE bases, from ten thousand
    to a hundred million. Almost all dots lie on the diagonal; a few, with the
    names of their model types, lie below or above it.
    """
    both = [row for row in rows() if row.seen.get("base")]
    both = [row for row in both if row.said.get("base")]
    agree = [row for row in both if row.facts["base"]["agrees"]]
    spots = Counter(base for row in agree for base in row.said["base"])
    fig, ax = plt.subplots(figsize=(4.4, 3.6))
    ax.plot([4e3, 3e8], [4e3, 3e8], color="gray", linewidth=0.6)
    for base, count in spots.items():
        size = 4 + 2 * count**0.5
        ax.plot(base, base, "o", ms=size, color="C1", alpha=0.6)
        if count > 5:
            ax.text(1.6 * base, base / 2, count, color="C1")
    off = [row for row in both if row not in agree]
    for n, row in enumerate(off):
        said = [
            base for base in row.said["base"] if base not in row.seen["base"]
        ]
        spot = said[0], row.seen["base"][-1]
        ax.plot(*spot, "o", ms=5, color="C3")
        shift = (-6, 11 * (n % 2) - 4)
        style = {"textcoords": "offset points", "color": "C3", "ha": "right"}
        ax.annotate(row.kind, spot, shift, **style)
    ax.set(xscale="log", yscale="log")
    ax.set(xlabel="declared RoPE base", ylabel="measured RoPE base")
    return fig, {"agree": len(agree), "asked": len(both), "off": len(off)}


def _plans():
    """Models that read text, by their layers: (depth, bare, near)."""
    plans = {}
    for row in _read("text"):
        bare, near = _known(row, "bare"), _known(row, "windows")
        whole = row.layers and max([*bare, *near], default=0) < row.layers
        if whole and (bare or near):  # layers with attention alone
            turns = row.value("rotation") == "yes"
            still = tuple(bare) if turns else tuple(range(row.layers))
            plan = row.layers, still, tuple(near)
            plans.setdefault(plan, []).append(row.kind)
    return plans


def barcode():
    """One line for each layer pattern, with the first layer at the left. A
    layer is thin if it has an attention window and thick if it has full
    attention, and it has another colour if it does not rotate queries. In
    most lines, every fourth to sixth layer is thick.
    """

    def by_share(each):
        (layers, still, near), names = each
        return -len(still) / layers, -len(near) / layers, names

    plans = sorted(_plans().items(), key=by_share)
    looks = {  # does it turn, is it near
        (True, False): ("C1", 5.0, "rotation, full"),
        (True, True): ("C1", 1.2, "rotation, window"),
        (False, False): ("C0", 5.0, "no rotation, full"),
        (False, True): ("C0", 1.2, "no rotation, window"),
    }
    lines = {look: ([], []) for look in looks}
    for n, ((layers, still, near), _) in enumerate(plans):
        for layer in range(layers):
            x, y = lines[layer not in still, layer in near]
            x += [layer, layer + 0.7, None]
            y += [n, n, None]
    fig, ax = plt.subplots(figsize=(4.4, 0.16 * len(plans) + 0.8))
    for look, (color, width, label) in looks.items():
        style = {"color": color, "linewidth": width, "label": label}
        ax.plot(*lines[look], solid_capstyle="butt", **style)
    names = [f"{n[0]} +{len(n) - 1}".removesuffix(" +0") for _, n in plans]
    ax.set_yticks(range(len(plans)), names)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(plans) - 0.4, -0.6)
    ax.set_xlabel("layer (from 0)")
    fig.legend(
        ncols=2, handlelength=1.2, columnspacing=1, loc="outside upper center"
    )
    return fig, {
        "plans": len(plans),
        "models": sum(len(names) for _, names in plans),
        "windowed": sum(bool(near) * len(n) for (_, _, near), n in plans),
    }


def tables():
    """Stacked bars for text, vision and audio models: how many model types
    add a learned table, a fixed table or a convolution before the first
    layer. The fraction with a learned table is largest in vision models.
    """
    groups = {
        "text": ("text",),
        "vision": ("pictures", "films"),
        "audio": ("sound",),
    }
    colors = {"learned": "C0", "fixed": "C1", "convolution": "C2"}
    names = {"learned": "learned table", "fixed": "fixed table"}
    fig, ax = plt.subplots(figsize=(4.4, 1.9))
    told, left = {}, dict.fromkeys(groups, 0)
    for what in groups.values():
        told[f"{what[0]}"] = len(_attending(*what))
    for value, color in colors.items():
        for what in groups.values():
            found = [row.value("added") for row in _attending(*what)]
            told[f"{value}_{what[0]}"] = found.count(value)
        counts = [told[f"{value}_{what[0]}"] for what in groups.values()]
        ax.barh([*groups], counts, left=[*left.values()], color=color)
        left = {
            group: left[group] + count
            for group, count in zip(groups, counts, strict=True)
        }
        ax.plot([], [], "s", color=color, label=names.get(value, value))
    ax.invert_yaxis()
    ax.set_xlabel("model types with attention")
    place = {"loc": "lower center", "bbox_to_anchor": (0.4, 1.0)}
    ax.legend(ncols=3, frameon=False, handletextpad=0, **place)
    return fig, told


def far():
    """Scatter plot of the largest declared RoPE base against the declared
    context length. A horizontal row of dots lies at base ten thousand and
    extends far to the right.
    """
    said = [row.said for row in rows() if "context" in row.said]
    said = [each for each in said if "base" in each]
    spots = Counter((each["context"], max(each["base"])) for each in said)
    fig, ax = plt.subplots(figsize=(4.4, 3.2))
    for (context, base), count in spots.items():
        color = "C3" if base == 10_000 and context >= FAR else "C1"
        size = 3 + 2 * count**0.5
        ax.plot(context, base, "o", ms=size, alpha=0.6, color=color)
    ax.axvline(FAR, color="gray", linewidth=0.6)
    ax.set(xscale="log", yscale="log", ylabel="largest declared RoPE base")
    ax.set_xlabel("declared context length (tokens)")
    old = [each for each in said if each["base"] == [10_000.0]]
    return fig, {
        "said": len(said),
        "far": FAR,
        "old": len(old),
        "old_far": sum(each["context"] >= FAR for each in old),
    }


def left_out():
    print("| Model | Layers without rotation | Declared | Released |")
    print("|---|---|---|---|")
    found = [row for row in _turning() if _known(row, "bare")]
    for row in found:
        bare = row.value("bare")
        which = f"{plan(bare, row.layers)}: {', '.join(map(str, bare))}"
        said = "yes" if row.said.get("bare") else "no"
        released = row.dates.get("released", "–")[0]
        print(f"| `{row.kind}` | {which} | {said} | {released} |")
    silent = sum("bare" not in row.said for row in found)
    unknown = [row for row in _turning() if row.value("bare") in UNSURE]
    return {
        "models": len(found),
        "silent": silent,
        "unknown": len(unknown),
        "turning": len(_turning()),
    }


def two_bases():
    found = [row for row in _turning() if len(_known(row, "base")) > 1]
    for row in found:
        bases = " and ".join(f"{base:,.0f}" for base in row.value("base"))
        print(f"{row.kind:<26}{bases}")
    return {"models": len(found)}


def sinks():
    found = [row.kind for row in rows() if row.value("sinks") == "yes"]
    print(*found, sep="\n")
    return {"models": len(found)}


def neighbours():
    turning = [row for row in rows() if row.value("rotation") == "yes"]
    at_scores = [
        row.kind for row in turning if "interleaved" in _known(row, "layout")
    ]
    of_weights = [row.kind for row in turning if "reordered" in row.facts]
    print("interleaved in the scores:", ", ".join(at_scores))
    print("interleaved in weights only:", ", ".join(of_weights))
    return {"scores": len(at_scores), "weights": len(of_weights)}


def differ():
    print("| Model | Fact | Measured | Declared |")
    print("|---|---|---|---|")
    found = 0
    for row in rows():
        for name, fact in row.facts.items():
            both = name in row.said and name in row.seen
            if fact["agrees"] is False and both:
                seen, said = _short(row.seen[name]), _short(row.said[name])
                print(f"| `{row.kind}` | {name} | {seen} | {said} |")
                found += 1
    return {"facts": found}


WORDS = {"unlike one": "unlike a rotation"}  # of kept results


def _short(value):
    if not isinstance(value, list):
        return WORDS.get(value, value)
    told = ", ".join(
        f"{each:,.6g}" if isinstance(each, float) else f"{each}"
        for each in value[:6]
    )
    more = f", … ({len(value)})" if len(value) > 6 else ""
    return told + more or "none"


TOLD = (
    *("agree", "differ", "measured", "declared", "source"),
    *("disputed", "unknown"),
)


def _told(fact):
    if fact["value"] in UNSURE:
        return fact["value"]
    if fact["agrees"] is None:
        return fact["witness"]
    return "agree" if fact["agrees"] else "differ"


def witnesses():
    print(f"| Fact | {' | '.join(TOLD)} |")
    print(f"|---|{'--:|' * len(TOLD)}")
    total = Counter()
    for name in FIELDS:
        found = [row for row in rows() if row.measured and name in row.facts]
        counts = Counter(_told(row.facts[name]) for row in found)
        print(f"| {name} | {' | '.join(str(counts[n]) for n in TOLD)} |")
        total += counts
    print(f"| **all** | {' | '.join(str(total[n]) for n in TOLD)} |")
    return dict(total) | {"all": total.total()}


def sample():
    print(
        "| Fact | Stated | Other than “no” | Wrong | Wrong, 95 % interval "
        "| Unknown or disputed |"
    )
    print("|---|--:|--:|--:|---|--:|")
    total = Counter()
    for name, cells in checked().items():
        rights = Counter(right for *_, right in cells)
        rights["said"] = sum(
            right is not None and stated not in ("no", [])
            for _, stated, _, right in cells
        )
        print(f"| {name} | {_row_of_sample(rights)} |")
        total += rights
    print(f"| **all** | {_row_of_sample(total)} |")
    said = total.pop("said")
    stated = total[True] + total[False]
    wrong = interval(total[False], stated)
    unknown = interval(total[None], total.total())
    return {
        "models": len(sample_of()),
        "said": said,
        "stated": stated,
        "wrong": total[False],
        "unknown": total[None],
        "asked": total.total(),
        "share": total[False] / stated,
        "low": wrong[0],
        "high": wrong[1],
        "unknown_low": unknown[0],
        "unknown_high": unknown[1],
    }


def _row_of_sample(rights):
    stated = rights[True] + rights[False]
    low, high = interval(rights[False], stated)
    between = f"{low:.1%} to {high:.1%}" if stated else "–"
    wrong, unknown = rights[False], rights[None]
    return f"{stated} | {rights['said']} | {wrong} | {between} | {unknown}"
