"""Texts in which length matters: what was expected before anything was
trained, and what came. The kept results of experiments/chains.py.
"""

import math
import re
import tomllib
from functools import cache
from itertools import combinations

import matplotlib.pyplot as plt
import torch

from exhibits._drawing import COLORS, centred, name_lines
from experiments import chains, ciphers
from experiments import recent as modern
from experiments import regimes as models
from experiments import tasks as puzzles
from experiments.intervals import (
    LEVEL,
    ONE_SEED,
    SEEN,
    compare,
    could_be_seen,
)
from experiments.runs import PLAN, load, plan

TRAINED, ASKED = models.TRAINED, models.ASKED
ENDS = [end for _, end in chains.BANDS if end >= TRAINED]
MIDDLES = [end / math.sqrt(2) for end in ENDS]
RULES = ("best", "count")  # that are not trained
DRAWN = (
    *("none", "RoPE", "learned", "sinusoidal"),
    *("T5", "ALiBi", "KERPLE", "DeBERTa"),
)
OUTCOMES = {True: "held", False: "failed", None: "open"}
NEARER = "has a lower excess loss than"
FARTHER = "has a higher excess loss than"
UNTOLD = "is not distinguishable from"


def _methods(regime="chains"):
    return plan()[regime]["methods"]


@cache
def _runs(regime, method):
    return load(regime, method=method)[method]


def _measured(regime, method, at, window=ASKED, task=None):
    """Losses: of chains beyond the best possible, (seeds, texts); of ciphers
    (seeds, files, windows); of a task the share of wrong answers, (seeds, 1).
    A rule, which has no seeds: (texts,).
    """
    if task:
        column = puzzles.LENGTHS.index(at)
        found = _runs(regime, method)
        right = [[run["accuracy"][task][column]] for run in found]
        return 1 - torch.tensor(right)
    if method == "best":
        return torch.zeros(chains.TEXTS)
    if method == "count":
        return torch.tensor(_counting(window)[str(at)])
    kind = "far" if regime == "ciphers" else "above"
    runs = _runs(regime, method)
    found = [run[kind][str(window)][str(at)] for run in runs]
    found = torch.tensor(found, dtype=torch.float64)
    if regime == "ciphers":
        return found.unflatten(-1, (-1, ciphers.EACH))
    return found


@cache
def _counting(window):
    """By band, for each text: what is lost by counting in so many states."""
    texts = chains.asked()
    chances = chains.counted(texts, window).log()
    return chains.by_band(chains.above(chances, texts))


@cache
def _best():
    """By band, the best possible loss on average over the texts."""
    by_band = chains.by_band(chains.floor(chains.asked()))
    return {int(end): sum(row) / len(row) for end, row in by_band.items()}


def _expected():
    """Of each regime its name, whether the entry is part of the stop rule,
    and the entry.
    """
    path = PLAN.with_name("predictions.toml")
    told = tomllib.loads(path.read_text(encoding="utf-8"))
    return [
        (regime, kind == "stop", entry)
        for regime, kinds in told.items()
        for kind, entries in kinds.items()
        for entry in entries
    ]


def _was_asked(regime, entry):
    """Whether there are runs of all that the entry names."""
    return all(
        side["method"] in (*RULES, *plan()[side["regime"]]["methods"])
        for side in _sides(regime, entry)
    )


def _sides(regime, entry):
    return [{"regime": regime} | entry[side] for side in ("less", "more")]


def _both(regime, entry):
    return [_measured(**side) for side in _sides(regime, entry)]


def expected():
    """What was expected before anything was trained, and what came: a row
    for each that was asked, those of the stop rule first.
    """
    print("| Expected | Came | Difference, nats | Could be seen |")
    print("|---|---|--:|--:|")
    words = (*OUTCOMES.values(), ONE_SEED, "not_asked")
    counts = dict.fromkeys(words, 0)
    for regime, stop, entry in _expected():
        if not _was_asked(regime, entry):
            counts["not_asked"] += 1
            continue
        less, more = _both(regime, entry)
        found = compare(less, more)
        says = f"*Stop rule.* {entry['says']}" if stop else entry["says"]
        outcome = found.verdict(OUTCOMES, entry["by"])
        counts[outcome] += not stop
        nats, seen = f"{found.gain:+.2f}", "–"
        if outcome == ONE_SEED:
            outcome = f"open: {ONE_SEED}"
        else:
            nats += f" ({found.low:+.2f} to {found.high:+.2f})"
            values = torch.atleast_2d(more - less)
            seen = f"{could_be_seen(values):.2f}"
        cells = (f"{regime}: {says}", outcome, nats, seen)
        print("|", " | ".join(cells), "|")
    counts["single"] = counts.pop(ONE_SEED)
    return counts | {"sure": LEVEL, "chance": SEEN}


def distances():
    """How far each method is from the best possible: by place in the text,
    and at the end with a window. Nearest at the end first.
    """
    asked = [(end, ASKED) for end in ENDS] + [(ASKED, TRAINED)]
    heads = [f"{end // 2} to {end:,}" for end in ENDS]
    print("| Method |", " | ".join(heads), f"| window {TRAINED} |")
    print("|---" + "|--:" * len(asked) + "|")
    best = [f"{loss:.2f}" for end, loss in _best().items() if end in ENDS]
    print("| *best, loss* |", " | ".join(best), "||")
    for name in _nearest_first():
        print(f"| {name} |", _cells(name, asked), "|")
    for seen in (TRAINED, _reach(TRAINED)):
        cells = _cells("count", [(end, seen) for end in ENDS])
        print(f"| *counting, last {seen}* |", cells, "||")
    values = {}
    for name in _methods():
        for end, window in (*asked, *_windows()):
            seen = "all" if window == ASKED else window
            found = _distance(name, end, window)
            values[f"{_key(name)}_{seen}_{end}"] = found.gain
    for seen in (TRAINED, _reach(TRAINED)):
        found = _distance("count", ASKED, seen)
        values[f"count_{seen}_{ASKED}"] = found.gain
    return values | _in_words(values) | _sizes()


def _reach(window):
    """How many states reach the end where each layer sees so many."""
    return models.LAYERS * (window - 1) + 1


def windows():
    """Excess loss of each method at the end, by how many states each layer
    sees there; with all states seen, how many others have a higher one by
    the rule, and which are not distinguishable.
    """
    narrow = " | ".join(f"{window}" for _, window in _windows())
    print("| Method |", narrow, "| Beats | Level with |")
    print("|---" + "|--:" * len(_windows()) + "|--:|---|")
    for name in _nearest_first():
        others = [e for e in _methods() if e != name]
        worse = sum(_verdict(name, e) == NEARER for e in others)
        level = [e for e in others if _verdict(name, e) == UNTOLD]
        level = ", ".join(level) or "none of them"
        print(f"| {name} |", _cells(name, _windows()), "|", worse, end="")
        print(f" | {level} |")
    for label, far in (
        ("as many states", lambda window: window),
        ("as far as the layers reach", _reach),
    ):
        cells = _cells("count", [(e, far(seen)) for e, seen in _windows()])
        print(f"| *counting, {label}* | {cells} |||")
    return {"pairs": len([*combinations(_methods(), 2)])}


def _windows():
    """What is asked of each: the end, with windows narrower than training."""
    narrow = [seen for seen in models.WINDOWS if seen < TRAINED]
    return [(ASKED, seen) for seen in sorted(narrow, reverse=True)]


def _key(name):
    return re.sub(r"\W+", "_", name.lower())


@cache
def _nearest_first():
    """The methods, by how far they are from the best possible at the end."""
    return sorted(_methods(), key=lambda e: _distance(e, ASKED).gain)


def _cells(name, asked):
    found = [_distance(name, *each) for each in asked]
    return " | ".join(f"{e.gain:.2f} ±{e.high - e.gain:.2f}" for e in found)


def _in_words(values):
    """What the text says besides: what is won by what a window hides, half
    intervals, and what the design could have seen.
    """
    told = {"reach": _reach(TRAINED)}
    for name in ("alibi", "t5", "sinusoidal", "learned"):
        seen = values[f"{name}_{TRAINED}_{ASKED}"]
        told[f"{name}_uses"] = seen - values[f"{name}_all_{ASKED}"]
    for name in ("RoPE", "none", "DeBERTa"):
        found = _distance(name, ASKED)
        told[f"{_key(name)}_half"] = found.high - found.gain
    ends = [_measured("chains", name, ASKED) for name in _methods()]
    seen = [could_be_seen(a - b) for a, b in combinations(ends, 2)]
    return told | {"seen_least": min(seen), "seen_most": max(seen)}


def verdicts():
    """How two compare far out, in words that the rule decides."""
    plain = _methods()
    pairs = {
        f"{_key(one)}_{_key(other)}": _verdict(one, other)
        for one in plain
        for other in (*plain, "count")
        if one != other
    }
    windows = {
        f"{_key(name)}_windowed": _verdict(name, name, narrow=TRAINED)
        for name in plain
    }
    return pairs | windows


def _verdict(one, other, end=ASKED, narrow=None):
    """Whether the one is nearer to the best possible than the other; what
    counts sees as much as was trained.
    """
    seen = narrow or (TRAINED if other == "count" else ASKED)
    found = compare(
        _measured("chains", one, end), _measured("chains", other, end, seen)
    )
    return found.verdict({True: NEARER, False: FARTHER, None: UNTOLD})


def _distance(name, end, window=ASKED, regime="chains"):
    found = _measured(regime, name, end, window)
    return compare(_measured("chains", "best", end), found)


def _sizes():
    best = _best()
    return {
        "trained": TRAINED,
        "asked": ASKED,
        "times": ASKED // TRAINED,
        "states": chains.STATES,
        "texts": chains.TEXTS,
        "updates": models.UPDATES,
        "batch": models.BATCH,
        "width": models.DIM,
        "layers": models.LAYERS,
        "seeds": plan()["chains"]["seeds"],
        "narrow": min(models.WINDOWS),
        "best_within": best[TRAINED],
        "best_far": best[ASKED],
    }


def alphabet():
    """What far text is worth where each window has an alphabet of its own, to
    a model that was trained at the full length.
    """
    (entry,) = (
        entry
        for regime, stop, entry in _expected()
        if stop and regime == "ciphers"
    )
    found = compare(*_both("ciphers", entry))
    near = _measured("ciphers", **entry["more"])
    return {
        "far": entry["less"]["at"],
        "near": entry["more"]["at"],
        "asked": entry["by"],
        "gain": found.gain,
        "low": found.low,
        "high": found.high,
        "loss": near.mean(),
    }


def _over_places(name, window=ASKED, regime="chains"):
    """The distance from the best possible and its interval, in each band."""
    found = [_distance(name, end, window, regime)[:3] for end in ENDS]
    return torch.tensor(found).T


def _in_trained_lengths(ax):
    """The axis of places in the text, from the trained length on."""
    ax.axvline(TRAINED, color="gray", ls=":")
    ax.set_xscale("log", base=2)
    ax.minorticks_off()
    times = [f"{end // 2 // TRAINED} to {end // TRAINED}" for end in ENDS[1:]]
    ax.set_xticks(MIDDLES, ["trained", *times])
    ax.set_xlabel("position (multiples of the training length)")
    ax.set_xlim(right=MIDDLES[-1])


def floor():
    """Loss over the position, from half the training length to eight times
    it. The optimal loss, a thick gray line, falls all the way. Two broken
    gray ones fall less and less: counting in the last stretch as long as
    training, and in one nearly twice as long. DeBERTa ends just above the
    optimum, KERPLE near the longer count, three encodings near the shorter
    one or above it. RoPE rises steeply and meets the line of no positional
    encoding, far above all; with a window, dashed, it ends near the shorter
    count.
    """
    fig, ax = plt.subplots(figsize=(4.4, 3.5))
    best = torch.tensor([_best()[end] for end in ENDS])
    lines = {name: (name, ASKED, "-") for name in DRAWN}
    reach = _reach(TRAINED)
    lines |= {
        f"counting, last {TRAINED}": ("count", TRAINED, "--"),
        f"counting, last {reach}": ("count", reach, "-."),
        f"RoPE, window {TRAINED}": ("RoPE", TRAINED, "--"),
    }
    for label, (name, window, style) in lines.items():
        gain, low, high = _over_places(name, window)
        color = COLORS.get(name, "gray")
        ax.plot(MIDDLES, best + gain, style, color=color, label=label)
        band = MIDDLES, best + low, best + high
        if name in COLORS:
            ax.fill_between(*band, color=color, alpha=0.2, lw=0)
    ax.plot(MIDDLES, best, color="gray", lw=4, label="optimal")
    _in_trained_lengths(ax)
    ax.set_ylabel("loss (nats)")
    ax.set_ylim(bottom=1)
    name_lines(ax, centred)
    return fig


# Of recent.py, what the figure shows, with the name of each line.
TODAY = {
    "window and none": "window, then none",
    "forgetting": "forgetting",
    "relative logits": "relative logits",
    "larger base": "RoPE, larger base",
}


def today():
    """How far from the best possible guess models are, over the place in the
    text, from the trained length to eight times it. RoPE, no positions and
    RoPE with a larger base rise far up, T5 a little. DeBERTa and three lines
    stay low all the way: a window below no positions, forgetting, and
    relative logits.
    """
    fig, ax = plt.subplots(figsize=(4.4, 2.7))
    older = "none", "RoPE", "T5", _nearest_first()[0]
    lines = {name: ("chains", name) for name in older}
    lines |= {label: ("recent", name) for name, label in TODAY.items()}
    for number, (label, (regime, name)) in enumerate(lines.items()):
        gain, low, high = _over_places(name, regime=regime)
        old = regime == "chains"
        color = "gray" if old else f"C{number - len(older)}"
        ax.plot(MIDDLES, gain, color=color, lw=1 if old else 2, label=label)
        ax.fill_between(MIDDLES, low, high, color=color, alpha=0.2, lw=0)
    _in_trained_lengths(ax)
    ax.set_ylabel("excess loss (nats)")
    ax.set_ylim(bottom=0)
    name_lines(ax)
    return fig


def recent():
    """How far from the best possible each method of today is, by place in the
    text; and whether it is surely nearer at the end than the nearest of the
    older ones.
    """
    nearest = _nearest_first()[0]
    heads = [f"{end // 2} to {end:,}" for end in ENDS]
    print("| Method |", " | ".join(heads), f"| At the end: {nearest} |")
    print("|---" + "|--:" * len(heads) + "|---|")
    nearest = _measured("chains", nearest, ASKED)
    rows = [(name, ASKED) for name in _methods("recent")]
    rows.insert(1, ("window and none", "sharper"))
    values = {}
    for name, window in rows:
        found = [_distance(name, end, window, "recent") for end in ENDS]
        cells = [f"{e.gain:.2f} ±{e.high - e.gain:.2f}" for e in found]
        far = _measured("recent", name, ASKED, window)
        words = {
            True: "nearer",
            False: "farther",
            None: "not distinguishable",
        }
        verdict = compare(far, nearest).verdict(words)
        said = name if window == ASKED else f"{name}, {window}"
        print(f"| {said} |", " | ".join(cells), f"| {verdict} |")
        key = said.lower().replace(", ", "_").replace(" ", "_")
        for end, each in zip(ENDS, found, strict=True):
            values[f"{key}_{end}"] = each.gain
        values[f"{key}_half"] = found[-1].high - found[-1].gain
    return values | {
        "window": models.CLIP,
        "base": modern.BASE,
        "more": modern.MORE,
        "strength": modern.STRENGTH,
        "rule": _asked_of("recent"),
    }


def _asked_of(regime):
    """The distance that the stop rule of a regime asks for, without sign."""
    (rule,) = (e for of, stop, e in _expected() if stop and of == regime)
    return abs(rule["by"])


def larger():
    """How far from the best possible five models are that are four times as
    large, by place in the text.
    """
    heads = [f"{end // 2} to {end:,}" for end in ENDS]
    print("| Method |", " | ".join(heads), "|")
    print("|---" + "|--:" * len(heads) + "|")
    values = {}
    for name in _methods("larger"):
        found = [_distance(name, end, regime="larger") for end in ENDS]
        print(f"| {name} |", " | ".join(f"{e.gain:.2f}" for e in found), "|")
        key = name.lower().replace(" ", "_")
        values[key] = found[-1].gain
    runs = [run["parameters"] for (run,) in load("larger").values()]
    return values | {"parameters": max(runs)}
