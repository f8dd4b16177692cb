"""Models on Markov chains, whose optimal loss is known at every position:
excess loss by position and by window, what was predicted, and what came.
The kept results of experiments/chains.py.
"""

import math
import tomllib
from itertools import combinations

import matplotlib.pyplot as plt
import torch

from exhibits._drawing import COLORS, centred, name_lines
from exhibits._on_chains import (
    ENDS,
    MIDDLES,
    cell,
    excess_loss,
    heads,
    in_training_lengths,
    key,
    mean_excess,
    methods,
    optimal_loss,
    reach,
    runs,
    verdict,
)
from experiments import chain_models as models
from experiments import chains
from experiments import tasks as puzzles
from experiments.chain_models import BY_LAYER, EVAL_LENGTH, TRAIN_LENGTH
from experiments.intervals import (
    LEVEL,
    SEEN,
    compare,
    could_be_seen,
)
from experiments.models import CLIP, DIM, LAYERS
from experiments.runs import PLAN, plan

DRAWN = (
    *("none", "RoPE", "learned", "sinusoidal"),
    *("T5", "ALiBi", "KERPLE", "DeBERTa"),
)
SIMULATED, ALIKE = 500, ("RoPE", "T5", "KERPLE", "FIRE")
OUTCOMES = {True: "held", False: "failed", None: "open"}
KNOWN = "tasks"  # an earlier round of it was known before these runs
WITHOUT = [name for name in methods() if name not in BY_LAYER]


def _predictions():
    """Of each experiment its name, whether the entry is part of the stop
    rule, and the entry.
    """
    path = PLAN.with_name("predictions.toml")
    told = tomllib.loads(path.read_text(encoding="utf-8"))
    return [
        (experiment, kind == "stop", entry)
        for experiment, kinds in told.items()
        for kind, entries in kinds.items()
        for entry in entries
    ]


def _losses(experiment, entry):
    """Of both sides of a prediction: excess loss, or the fraction of wrong
    answers of a task, (seeds, 1).
    """
    return [
        _wrong_answers(**entry[side])
        if experiment == "tasks"
        else excess_loss(**{"experiment": experiment} | entry[side])
        for side in ("less", "more")
    ]


def _wrong_answers(method, task, end):
    column = puzzles.EVAL_LENGTHS.index(end)
    found = runs("tasks", method)
    right = [[run["accuracy"][task][column]] for run in found]
    return 1 - torch.tensor(right)


def expected():
    """Predictions, written before any run was trained, and outcomes."""
    print("| Predicted | Outcome | Difference (nats) | Detectable |")
    print("|---|---|--:|--:|")
    counts = dict.fromkeys(OUTCOMES.values(), 0)
    for experiment, stop, entry in _predictions():
        less, more = _losses(experiment, entry)
        found = compare(less, more)
        says = f"*Stop rule.* {entry['says']}" if stop else entry["says"]
        outcome = OUTCOMES[found.better(entry["by"])]
        if experiment == KNOWN:
            outcome += ", known"
        elif not stop:
            counts[outcome] += 1
        nats = f"{found.gain:+.2f} ({found.low:+.2f} to {found.high:+.2f})"
        seen = could_be_seen(torch.atleast_2d(more - less))
        cells = f"{experiment}: {says}", outcome, nats, f"{seen:.2f}"
        print("|", " | ".join(cells), "|")
    return counts | {"sure": LEVEL, "chance": SEEN}


def distances():
    """The excess loss of each encoding: by position in the text, and at the
    end with a window. Lowest at the end first.
    """
    asked = [(end, EVAL_LENGTH) for end in ENDS]
    asked.append((EVAL_LENGTH, TRAIN_LENGTH))
    print("| Method |", " | ".join(heads()), f"| window {TRAIN_LENGTH} |")
    print("|---" + "|--:" * len(asked) + "|")
    best = [f"{optimal_loss()[end]:.2f}" for end in ENDS]
    print("| *optimal loss* |", " | ".join(best), "||")
    for name in _lowest_first():
        print(f"| {name} |", _cells(name, asked), "|")
    for seen in (TRAIN_LENGTH, reach(TRAIN_LENGTH)):
        cells = _cells("count", [(end, seen) for end in ENDS])
        print(f"| *counting, last {seen}* |", cells, "||")
    values = {}
    for name in WITHOUT:
        for end, window in (*asked, *_windows()):
            seen = "all" if window == EVAL_LENGTH else window
            found = mean_excess(name, end, window)
            values[f"{key(name)}_{seen}_{end}"] = found.gain
    for seen in (TRAIN_LENGTH, reach(TRAIN_LENGTH)):
        found = mean_excess("count", EVAL_LENGTH, seen)
        values[f"count_{seen}_{EVAL_LENGTH}"] = found.gain
    return values | _in_words(values) | _sizes()


def windows():
    """Excess loss of each encoding at the end, by how many states each layer
    sees there; with all states seen, how many others have a higher one by
    the rule, and which are not distinguishable.
    """
    narrow = " | ".join(f"{window}" for _, window in _windows())
    print("| Method |", narrow, "| Beats | Not distinguishable from |")
    print("|---" + "|--:" * len(_windows()) + "|--:|---|")
    for name in _lowest_first():
        others = {
            other: compare(
                excess_loss(name, EVAL_LENGTH),
                excess_loss(other, EVAL_LENGTH),
            ).better()
            for other in WITHOUT
            if other != name
        }
        beaten = [*others.values()].count(True)
        level = [other for other, better in others.items() if better is None]
        level = ", ".join(level) or "–"
        print(f"| {name} |", _cells(name, _windows()), f"| {beaten}", end="")
        print(f" | {level} |")
    for label, far in (
        ("within one window", lambda window: window),
        ("within both windows", reach),
    ):
        cells = _cells("count", [(e, far(seen)) for e, seen in _windows()])
        print(f"| *counting, {label}* | {cells} |||")
    return {"pairs": len([*combinations(WITHOUT, 2)])}


def _windows():
    """What is measured of each: the end, with windows narrower than
    training."""
    narrow = [seen for seen in chains.WINDOWS if seen < TRAIN_LENGTH]
    return [(EVAL_LENGTH, seen) for seen in sorted(narrow, reverse=True)]


def _lowest_first():
    """The encodings, by their excess loss at the end."""
    return sorted(WITHOUT, key=lambda e: mean_excess(e, EVAL_LENGTH).gain)


def _cells(name, asked):
    return " | ".join(cell(mean_excess(name, *each)) for each in asked)


def _in_words(values):
    """What the text says besides: what is won by what a window hides, half
    intervals, and what the design could have seen.
    """
    told = {"reach": reach(TRAIN_LENGTH)}
    for name in ("alibi", "t5", "sinusoidal", "learned"):
        seen = values[f"{name}_{TRAIN_LENGTH}_{EVAL_LENGTH}"]
        told[f"{name}_uses"] = seen - values[f"{name}_all_{EVAL_LENGTH}"]
    for name in ("RoPE", "none", "DeBERTa"):
        found = mean_excess(name, EVAL_LENGTH)
        told[f"{key(name)}_half"] = found.high - found.gain
    ends = [excess_loss(name, EVAL_LENGTH) for name in WITHOUT]
    seen = [could_be_seen(a - b) for a, b in combinations(ends, 2)]
    return told | {"seen_least": min(seen), "seen_most": max(seen)}


def verdicts():
    """How two compare far out, in words that the rule decides."""
    return {
        f"{key(one)}_{key(other)}": verdict(one, other)
        for one in WITHOUT
        for other in (*WITHOUT, "count")
        if one != other
    }


def _sizes():
    best = optimal_loss()
    return {
        "trained": TRAIN_LENGTH,
        "evaluated": EVAL_LENGTH,
        "times": EVAL_LENGTH // TRAIN_LENGTH,
        "states": models.STATES,
        "texts": chains.EVAL_TEXTS,
        "updates": chains.UPDATES,
        "batch": chains.BATCH_SIZE,
        "width": DIM,
        "layers": LAYERS,
        "seeds": plan()["chains"]["seeds"],
        "narrow": min(chains.WINDOWS),
        "best_within": best[TRAIN_LENGTH],
        "best_far": best[EVAL_LENGTH],
    }


def _over_positions(name, window=EVAL_LENGTH):
    """The mean excess loss and its interval, in each band."""
    found = [mean_excess(name, end, window)[:3] for end in ENDS]
    return torch.tensor(found).T


def floor():
    """Line chart of loss against position, from half the training length to
    eight times that length. The optimal loss, a thick gray line, falls all
    the way. Two broken gray lines fall less and less: the counting predictor
    limited to as many states as in training, and limited to nearly twice as
    many. DeBERTa ends just above the optimum, KERPLE near the longer limit,
    three encodings near the shorter limit, and the learned table well above
    it. RoPE rises steeply
    to the line of the model without positional encoding, far above all
    others; with a window, a dashed line, it ends near the shorter limit.
    """
    fig, ax = plt.subplots(figsize=(4.4, 3.5))
    best = torch.tensor([optimal_loss()[end] for end in ENDS])
    lines = {name: (name, EVAL_LENGTH, "-") for name in DRAWN}
    lines |= {
        f"counting, last {TRAIN_LENGTH}": ("count", TRAIN_LENGTH, "--"),
        f"counting, last {reach(TRAIN_LENGTH)}": (
            *("count", reach(TRAIN_LENGTH)),
            "-.",
        ),
        f"RoPE, window {TRAIN_LENGTH}": ("RoPE", TRAIN_LENGTH, "--"),
    }
    for label, (name, window, style) in lines.items():
        gain, low, high = _over_positions(name, window)
        color = COLORS.get(name, "gray")
        ax.plot(MIDDLES, best + gain, style, color=color, label=label)
        if name in COLORS:
            band = MIDDLES, best + low, best + high
            ax.fill_between(*band, color=color, alpha=0.2, lw=0)
    ax.plot(MIDDLES, best, color="gray", lw=4, label="optimal")
    in_training_lengths(ax)
    ax.set_ylabel("loss (nats)")
    ax.set_ylim(bottom=1)
    name_lines(ax, centred)
    return fig


def chances():
    """Five lines that show the probability, in percent, that was typically
    given to the right symbol, plotted against the position in the text.

    The line “best possible” rises from end to end, and that of DeBERTa’s
    encoding rises just below it. The dashed line “short memory” is level.
    The line “no positions” is level and far lower. That of RoPE begins next
    to the best lines and falls to the line without positions.
    """
    lines = {
        "best": ("best possible", "-", "gray"),
        "DeBERTa": ("DeBERTa", "-", COLORS["DeBERTa"]),
        "count": ("short memory", "--", "gray"),
        "none": ("no positions", "-", COLORS["none"]),
        "RoPE": ("RoPE", "-", COLORS["RoPE"]),
    }
    fig, ax = plt.subplots(figsize=(4.4, 3.1))
    values = {}
    for name, (label, style, color) in lines.items():
        probabilities = [
            math.exp(
                -optimal_loss()[end]
                - excess_loss(name, end, _seen(name)).mean()
            )
            for end in ENDS
        ]
        percent = [100 * each for each in probabilities]
        ax.plot(MIDDLES, percent, style, color=color, label=label)
        values[f"{key(name)}_near"] = probabilities[0]
        values[f"{key(name)}_far"] = probabilities[-1]
    in_training_lengths(ax)
    ax.set(ylim=(0, 32), ylabel="probability (%)")
    name_lines(ax)
    return fig, values


def _seen(name):
    """How many states it sees: counting stands for a memory as long as a
    training text.
    """
    return TRAIN_LENGTH if name == "count" else EVAL_LENGTH


def today():
    """Line chart of excess loss against position, from the training length to
    eight times that length. The lines of RoPE and of no positions rise far,
    that of T5 a little. DeBERTa and three other methods stay low all the way:
    a window below a layer without positions, forget gates, and relative
    logits.
    """
    fig, ax = plt.subplots(figsize=(4.4, 2.7))
    older = "none", "RoPE", "T5", _lowest_first()[0]
    for number, name in enumerate((*older, *BY_LAYER)):
        gain, low, high = _over_positions(name)
        old = name in older
        color = "gray" if old else f"C{number - len(older)}"
        ax.plot(MIDDLES, gain, color=color, lw=1 if old else 2, label=name)
        ax.fill_between(MIDDLES, low, high, color=color, alpha=0.2, lw=0)
    in_training_lengths(ax)
    ax.set_ylabel("excess loss (nats)")
    ax.set_ylim(bottom=0)
    name_lines(ax)
    return fig


def recent():
    """The excess loss of methods of the last years, by position in the text;
    and whether at the end it is lower than that of the lowest encoding.
    """
    lowest = _lowest_first()[0]
    print("| Method |", " | ".join(heads()), f"| Compared with {lowest} |")
    print("|---" + "|--:" * len(ENDS) + "|---|")
    rows = [(name, EVAL_LENGTH) for name in BY_LAYER]
    rows.insert(1, ("window + NoPE layer", "temperature"))
    words = {True: "lower", False: "higher", None: "not distinguishable"}
    values = {}
    for name, window in rows:
        found = [mean_excess(name, end, window) for end in ENDS]
        far = excess_loss(name, EVAL_LENGTH, window)
        told = words[compare(far, excess_loss(lowest, EVAL_LENGTH)).better()]
        said = name if window == EVAL_LENGTH else f"{name}, {window}"
        print(f"| {said} |", " | ".join(map(cell, found)), f"| {told} |")
        for end, each in zip(ENDS, found, strict=True):
            values[f"{key(said)}_{end}"] = each.gain
        values[f"{key(said)}_half"] = found[-1].high - found[-1].gain
    return values | {"window": CLIP, "strength": models.STRENGTH}


def coverage():
    """How often the rule calls one of two methods better that do not differ,
    by the number of seeds, if seeds and texts vary as they did with each of
    four methods.
    """
    print("| Seeds per method |", " | ".join(ALIKE), "|")
    print("|---" + "|--:" * len(ALIKE) + "|")
    generator = torch.Generator().manual_seed(0)
    worst = 0.0
    for seeds in (2, 3, 5):
        wrong = [_wrongly_better(e, seeds, generator) for e in ALIKE]
        worst = max(worst, *wrong)
        print(f"| {seeds} |", " | ".join(f"{e:.1%}" for e in wrong), "|")
    return {"simulated": SIMULATED, "worst": worst, "level": LEVEL}


def _wrongly_better(method, seeds, generator):
    """In which fraction of simulated pairs of such methods one is better."""
    found = excess_loss(method, EVAL_LENGTH)
    by_seed, by_text = found.mean(1, keepdim=True), found.mean(0)
    rest = (found - by_seed - by_text + found.mean()).std()
    spread = by_seed.std(), rest
    shape = (SIMULATED, 2, seeds)
    normal = [
        torch.randn(*shape, texts, generator=generator) * each
        for texts, each in zip((1, len(by_text)), spread, strict=True)
    ]
    pairs = sum(normal) + by_text  # (pairs, 2, seeds, texts)
    verdicts = [compare(*pair).better() for pair in pairs.double()]
    return 1 - verdicts.count(None) / SIMULATED
