"""What the chapter on evidence shows: the kept results of experiments/, which
`make experiments` makes. Nothing is trained here.
"""

import math
import string

import matplotlib.pyplot as plt
import torch
from executable_prose import Choice, Live

from exhibits import _loss_by_context, cost
from exhibits._drawing import COLORS, spaced
from exhibits._loss_by_context import LONG, NEAR
from experiments import language as models
from experiments import models as decoders
from experiments import tasks as puzzles
from experiments import teaching
from experiments import variants as changed
from experiments.intervals import LEVEL as SURE
from experiments.intervals import compare, interval
from experiments.runs import load, made_with
from snippets.alibi import alibi_slopes
from snippets.sinusoidal import sinusoidal_encoding
from snippets.t5_bias import t5_buckets

TRAINED, ASKED, BIN = models.TRAIN_LENGTH, models.EVAL_LENGTH, models.BIN
LENGTHS = puzzles.EVAL_LENGTHS
BANDS = {  # of positions, from and to
    "within": (16, TRAINED),
    "just past": (TRAINED, 2 * TRAINED),
    "far": (ASKED // 2, ASKED),
}
PAST = 256  # bytes read before, of which half were trained
COLUMNS = {  # of the table of all: of each the claim, and where its figure is
    "Within": ("evidence-every-encoding-helps-within", "#evidence-context"),
    "Past": ("evidence-who-stays-level", "#evidence-context"),
    "Far": ("evidence-who-stays-level", "#evidence-context"),
    "Recall": (
        "evidence-recall-breaks-with-rope",
        "guide/evidence.md#evidence-tasks",
    ),
    "Step": ("cost-of-training", "cost.md#cost-training"),
}
FAVOURED = 16  # keys that a head may prefer
SHOWN = (  # the experiments whose results stand on the page
    *("chains", "recipes", "depth", "layers", "extensions", "language"),
    *("shuffled", "teaching", "variants", "tasks", "cost", "short_texts"),
)
HIGH, LOW = 0.9, 0.05  # chances that a right guess may have had
ALL = "all encodings"  # what a reader may pick besides one
KINDS = dict.fromkeys(COLORS.values())  # the colours of encodings
WORDS = {  # of two losses, what the rule for better says of the first
    True: "has a lower loss than",
    False: "has a higher loss than",
    None: "is not distinguishable from",
}
SMOOTH = 4  # bins that a point of a line is the mean of


def _losses(experiment="language"):
    """For each method a tensor: (seeds, bins)."""
    return {
        name: torch.tensor([result["loss_by_position"] for result in results])
        for name, results in load(experiment).items()
    }


def _band(loss, band):
    """The mean loss of each seed over a band of positions: (seeds,)."""
    first, last = BANDS[band]
    return loss[:, first // BIN : last // BIN].mean(-1)


def _smooth(loss, bins=SMOOTH):
    """Means over neighbouring bins, and the middles of their positions."""
    means = loss.unflatten(-1, (-1, bins)).mean(-1)
    width = bins * BIN
    return torch.arange(means.shape[-1]) * width + width / 2, means


def _spread(values):
    """Half the distance between the lowest and the highest seed."""
    return (values.max() - values.min()) / 2


def nats():
    return {
        "high": HIGH,
        "low": LOW,
        "sure": -math.log(HIGH),
        "doubt": -math.log(LOW),
    }


def by_position():
    """Fifteen lines of loss against position, with the training length
    marked. Before the mark, the lines lie in one band; those without encoding
    and with the learned table are at its upper edge. After the mark, most
    lines are flat or rise a little; those of sinusoids and RoPE rise far
    above all other lines. The names are on the right, ordered by the loss at
    the end.
    """
    losses = _losses()
    options = (ALL, *losses)
    pictures = {option: _colored(losses, option) for option in options}
    means = {name: loss.mean(0) for name, loss in losses.items()}
    bands = {
        name: torch.stack([_band(loss, band).mean() for band in BANDS])
        for name, loss in losses.items()
    }
    bands[ALL] = torch.stack([*bands.values()]).mean(0)

    def pick(name):
        """The colours of one encoding or of all; the gray below stays."""
        within, _, far = bands[name]
        picked = torch.tensor(options.index(name))
        return pictures[name] | {
            "picked": picked,
            "within": within,
            "far": far,
        }

    ends = {name: _smooth(loss)[1][-1].item() for name, loss in means.items()}
    order = sorted(ends, key=ends.get)
    live = _by_position_live(pick, options, order)
    fig, ax = plt.subplots(figsize=(4.4, 4.4))
    ax.axvline(TRAINED, color="gray", ls=":")
    ax.plot(*_line(*means.values()).T, color="gray", lw=0.8)
    low, high = ax.get_ylim()
    places = spaced([ends[name] for name in order], (high - low) / 21)
    for name, place in zip(order, places, strict=True):
        line_to_name = [ASKED - 32, ASKED + 30], [ends[name], place]
        ax.plot(*line_to_name, color="gray", lw=0.4)
        ax.text(ASKED + 40, place, name, color="gray", va="center")
        live.moves[name] = ax.text(
            ASKED + 40, place, name, color=COLORS[name], va="center"
        )
    _draw_colored(ax, live)
    ax.set_xlim(0, ASKED * 1.42)
    ax.set_ylim(low, max(high, places[-1] + 0.05))
    ax.set_xticks([0, TRAINED, ASKED // 2, ASKED])
    ax.text(TRAINED + 16, ax.get_ylim()[1], "training length", va="top")
    ax.set_xlabel("position")
    ax.set_ylabel("loss (nats per byte)")
    return fig, {"smoothed": SMOOTH * BIN}, live


def _line(*losses):
    """One line through all, with a gap before each and after the last."""
    gap = torch.full((1, 2), math.inf)
    each = [torch.stack(_smooth(loss), 1) for loss in losses]
    return torch.cat([gap, *(part for e in each for part in (e, gap))])


def _colored(losses, option):
    """For each colour a line through the means of those that are picked, and
    one through the seeds of the one that is picked alone."""
    picked = [
        name for name in COLORS if name in losses and option in (name, ALL)
    ]
    means, seeds = {}, {}
    for kind in KINDS:
        means[kind] = [
            losses[name].mean(0) for name in picked if COLORS[name] == kind
        ]
        alone = COLORS.get(option) == kind
        seeds[f"{kind} seeds"] = losses[option] if alone else ()
    return {name: _line(*each) for name, each in (means | seeds).items()}


def _draw_colored(ax, live):
    made = live.start()
    for part, width in (("{} seeds", 0.6), ("{}", 1.2)):
        for kind in KINDS:
            name = part.format(kind)
            (live.moves[name],) = ax.plot(*made[name].T, kind, lw=width)


def _by_position_live(pick, options, order):
    return Live(
        pick,
        {"name": Choice("encoding", options, ALL)},
        says="With {name}, the mean loss is {within:.2f} within the training "
        "length and {far:.2f} far beyond it, on different bytes."
        "{picked|| The thin lines are its seeds.}",
        call="import torch\n"
        "from experiments.runs import load\n\n"
        'kept = load("language")\n'
        "runs = {picked|sum(kept.values(), [])|"
        + "|".join(f'kept["{name}"]' for name in options[1:])
        + "}\n"
        'loss = torch.tensor([run["loss_by_position"] for run in runs])'
        f"  # means over {BIN} positions\n"
        + "\n".join(
            f"loss[:, {first} // {BIN} : {last} // {BIN}].mean()"
            for first, last in (BANDS["within"], BANDS["far"])
        ),
        title="Code that reads these results, in the repository",
        texts={
            name: "{picked|"
            + "|".join(name * (each in (name, ALL)) for each in options)
            + "}"
            for name in order
        },
    )


def table():
    """Every encoding, the best far out first: each number with half the range
    over its seeds, or over the parts of the timing. It leads to its figure,
    and the head of its column to the test.
    """
    right, known = _accuracies(), _known()
    read = [_loss_by_context.losses(before) for before in (NEAR, PAST, LONG)]
    far = {name: loss.mean() for name, loss in read[-1].items()}
    learned = {
        name: results[0]["encoding_parameters"]
        for name, results in load("language").items()
    }
    heads = [
        f"[{word}](claims.md#{claim})" for word, (claim, _) in COLUMNS.items()
    ]
    print("| Encoding |", " | ".join(heads), "| Learned |")
    print("|---" + "|--:" * (len(heads) + 1) + "|")
    for name in sorted(far, key=far.get):
        cells = [_measure(losses[name]) for losses in read]
        recall = right[name]["recall"][:, -1]
        cells.append(_measure(recall) if known[name]["recall"] else None)
        cells.append(cost._step(name))
        linked = [
            "[not learned](guide/evidence.md#evidence-tasks)"
            if cell is None
            else f"[{cell[0]:.2f}]({place}) ±{cell[1]:.2f}"
            for cell, (_, place) in zip(cells, COLUMNS.values(), strict=True)
        ]
        print(f"| {name} |", " | ".join(linked), f"| {learned[name]:,} |")
    return _sizes() | _main_results()


def _measure(values):
    """The mean, and half the distance between lowest and highest."""
    return values.mean(), _spread(values)


def _sizes():
    parameters = load("language")["none"][0]["parameters"]
    return {
        "trained": TRAINED,
        "asked": ASKED,
        "windows": models.WINDOWS,
        "updates": models.UPDATES,
        "batch": models.BATCH_SIZE,
        "bytes": models.UPDATES * models.BATCH_SIZE * TRAINED,
        "seeds": len(load("language")["none"]),
        "layers": decoders.LAYERS,
        "heads": decoders.HEADS,
        "width": decoders.DIM,
        "clip": decoders.CLIP,
        "parameters": parameters,
        "near": NEAR,
        "past": PAST,
        "long": LONG,
        "level": len(_loss_by_context.level()),
        "little": _loss_by_context.LITTLE,
    }


def _main_results():
    """By how much the others beat none within, each in its worst seed."""
    near = _loss_by_context.losses(NEAR)
    gains = [(near["none"] - near[n]).min() for n in near if n != "none"]
    return {"least_gain": min(gains), "most_gain": max(gains)}


def _key(name):
    return name.lower().replace(" ", "_").replace("-", "_")


def _far():
    """For each method the losses of far bytes: (contexts, seeds, files,
    windows).
    """
    return {
        name: torch.tensor(
            [
                [
                    result["loss_by_context"][str(context)]
                    for result in results
                ]
                for context in models.CONTEXTS
            ]
        ).unflatten(-1, (-1, models.WINDOWS_PER_FILE))
        for name, results in load("language").items()
    }


def context():
    """Fifteen small line charts, one for each encoding: the change in the
    loss of the same bytes, relative to the loss with 64 bytes of context,
    plotted against the number of bytes of context. A band shows the 95 %
    interval. A dotted line marks the training length.
    """
    fig, axes = plt.subplots(
        5, 3, figsize=(4.4, 6.2), sharex=True, sharey=True
    )
    contexts, values = models.CONTEXTS, {}
    print("loss of the same bytes by the number of bytes of context")
    print(
        f"{'':<16}", *(f"{each:>6}" for each in contexts), "   gain", sep=""
    )
    fell = []
    for ax, (name, far) in zip(axes.flat, _far().items(), strict=True):
        known = far[contexts.index(NEAR)]
        changes = [interval(each - known) for each in far]
        mean, low, high = zip(*changes, strict=True)
        fell.append(mean[0])
        ax.plot(contexts, mean, color=COLORS[name], lw=1)
        ax.fill_between(contexts, low, high, color=COLORS[name], alpha=0.3)
        ax.axvline(TRAINED, color="gray", ls=":", lw=0.8)
        ax.axhline(0, color="gray", lw=0.4)
        ax.set_xscale("log", base=2)
        ax.set_xticks([contexts[0], TRAINED, contexts[-1]])
        ax.set_xticklabels([contexts[0], TRAINED, contexts[-1]])
        ax.set_title(name, loc="left")
        losses = "".join(f"{each.mean():6.2f}" for each in far)
        gain, least, most = -mean[-1], -high[-1], -low[-1]
        print(
            f"{name:<16}{losses}  {gain:+.3f} ({least:+.3f} to {most:+.3f})"
        )
        key = _key(name)
        values |= {f"{key}_loss": -gain}
        values |= {f"{key}_least": least, f"{key}_most": most}
        values |= {
            f"{key}_{n}": change
            for n, change in zip(contexts, mean, strict=True)
        }
    fig.supxlabel("bytes of context")
    fig.supylabel("change of the loss (nats per byte)")
    files, windows = far.shape[2:]
    return fig, values | {
        "files": files,
        "windows": windows,
        "bytes": files * windows * models.SCORED,
        "far": models.SCORED,
        "least_context": contexts[0],
        "within": NEAR,
        "near_gain": max(fell),
        "sure": SURE,
        "most_context": contexts[-1],
    }


def _compared(one, other, before):
    """One encoding beside another, on the same bytes."""
    far, at = _far(), models.CONTEXTS.index(before)
    return compare(far[one][at], far[other][at])


def verdicts():
    """Beside no positions, far out, in words that the rule decides; and how
    many are better, worse, or not distinguishable.
    """
    found = {
        _key(name): _compared(name, "none", LONG).verdict(WORDS)
        for name in load("language")
        if name != "none"
    }
    counts = {True: "better", False: "worse", None: "alike"}
    told = [*found.values()]
    return found | {counts[e]: told.count(word) for e, word in WORDS.items()}


def level():
    """How much the lines of encodings that do not degrade fall."""
    losses = _losses()
    falls = [
        (_band(losses[name], "within") - _band(losses[name], "far")).mean()
        for name in _loss_by_context.level()
    ]
    return {"least_fall": min(falls), "most_fall": max(falls)}


def variants():
    """RoPE with a window at test time, and xPos with a fade for other texts.

    Each beside RoPE or xPos as they are, on the same bytes.
    """
    near, far = _loss_by_context.losses(NEAR), _loss_by_context.losses(LONG)
    kept = {
        method: [result["loss_by_context"] for result in results]
        for method, results in load("variants").items()
    }

    def mean(runs, before):
        return torch.tensor([run[str(before)] for run in runs]).mean(-1)

    values = {"slower": changed.SLOWER, "narrowest": min(changed.WINDOWS)}
    for window in changed.WINDOWS:
        runs = [run[str(window)] for run in kept["RoPE with a window"]]
        within, loss = mean(runs, NEAR), mean(runs, LONG)
        better = sum(each.mean() < loss.mean() for each in far.values())
        values |= {
            f"{window}_within": (within - near["RoPE"]).mean(),
            f"{window}_cost": (loss - near["RoPE"]).mean(),
            f"{window}_loss": loss.mean(),
            f"{window}_better": int(better),
        }
    slow = kept["xPos with a slow fade"]
    costs = mean(slow, LONG) - mean(slow, NEAR)
    return values | {"slow_least": costs.min(), "slow_most": costs.max()}


def windows():
    """Four encodings, within the training length and with the most bytes
    before them, by how many are seen at test time; and a count of five bytes.
    """
    far = {f"{window:,}": (window, LONG) for window in changed.WINDOWS}
    asked = {"Within": (ASKED, NEAR)} | far
    print("| Encoding |", " | ".join(asked), "|")
    print("|---" + "|--:" * len(asked) + "|")
    counted, values = _kept("5-gram", changed.ORDER), {}
    for name in ("none", "sinusoidal", "learned", "RoPE"):
        cells = []
        for head, (window, before) in asked.items():
            loss = _kept(f"{name} with a window", window, before)
            mean, spread = _measure(loss.mean((1, 2)))
            where = "within" if head == "Within" else window
            values[f"{_key(name)}_{where}"] = mean
            cells.append(f"{mean:.2f} ±{spread:.2f}")
        print(f"| {name} |", " | ".join(cells), "|")
    mean, spread = _measure(counted.mean((1, 2)))
    print(f"| *{changed.ORDER}-gram* " + "| – " * len(far), end="")
    print(f"| {mean:.2f} ±{spread:.2f} |")
    return values | _beside_counts(counted) | {"counted": mean}


def _beside_counts(counted):
    """How many encodings are worse than the count, however many bytes stand
    before; and the lowest mean loss of any."""
    far = _far().values()
    worse = [
        all(compare(loss, counted).better() is False for loss in losses)
        for losses in far
    ]
    lowest = min(losses.mean((1, 2, 3)).min() for losses in far)
    return {"worse": sum(worse), "lowest": lowest, "order": changed.ORDER}


def _kept(method, *keys):
    """What variants.py kept: (seeds, files, windows), or (seeds, files) where
    one window of each file was read."""
    found = [run["loss_by_context"] for run in load("variants")[method]]
    for key in keys:
        found = [each[str(key)] for each in found]
    loss = torch.tensor(found)
    if method == "ALiBi both ways":
        return loss
    return loss.unflatten(-1, (-1, models.WINDOWS_PER_FILE))


def both_ways():
    """The loss of the same bytes with ALiBi in sliding and in adjacent
    windows, by the length of the windows.
    """
    lengths, values = changed.LENGTHS, {}
    heads = " | ".join(f"{length:,}" for length in lengths)
    print(f"| Windows | {heads} | Gain |")
    print("|---" + "|--:" * (len(lengths) + 1) + "|")
    for way, key in (("sliding", "sliding"), ("side by side", "side")):
        losses = [_kept("ALiBi both ways", way, each) for each in lengths]
        found = compare(losses[-1], losses[0])
        ends = f"{found.low:+.3f} to {found.high:+.3f}"
        cells = [f"{loss.mean():.3f}" for loss in losses]
        head = "adjacent" if key == "side" else key
        print(
            f"| {head} | {' | '.join(cells)} | {found.gain:+.3f} ({ends}) |"
        )
        values[f"{key}_gain"] = found.gain
        values |= {f"{key}_low": found.low, f"{key}_high": found.high}
    return values | {
        "shortest": lengths[0],
        "longest": lengths[-1],
        "files": losses[0].shape[1],
    }


def from_zero(updates=models.UPDATES):
    """How far a number gets that starts at zero and is always told to go the
    same way, and what that is worth as a bias."""
    reach = _reach(updates)
    times = math.exp(2 * reach)  # a near key up, a far one down
    return {
        "reach": reach,
        "growing": _reach(updates, power=1),
        "times": times,
        "alibi": math.ceil(
            2 * reach / alibi_slopes(decoders.HEADS)[0].item()
        ),
        "near": FAVOURED,
        "share_within": _share_of_near(times, TRAINED),
        "share_far": _share_of_near(times, ASKED),
    }


def _reach(updates, power=0):
    """With a gradient that grows with a power of the updates so far."""
    number = torch.nn.Parameter(torch.zeros(()))
    optimizer = torch.optim.AdamW([number], models.LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, models.LEARNING_RATE, updates, pct_start=0.1
    )
    for update in range(updates):
        number.grad = torch.tensor((update + 1.0) ** power)
        optimizer.step()
        schedule.step()
    return number.abs().item()


def _share_of_near(times, keys):
    """The weight on the nearest keys if each weighs so many times as much as
    one that is farther."""
    near = times * FAVOURED
    return near / (near + keys - FAVOURED)


def loudness():
    """At the start: how long what two encodings add is beside a token."""
    model = models.byte_decoder("learned", 0).requires_grad_(False)
    token = (model.scale * model.tokens.weight).norm(dim=-1).mean()
    row = model.encoding.add.table.norm(dim=-1).mean()
    waves = sinusoidal_encoding(torch.arange(TRAINED), decoders.DIM)
    wave = waves.norm(dim=-1).mean()
    return {
        "waves": wave / token,
        "quieter": token / row,
        "apart": wave / row,
    }


def fidelity():
    """What the paper, or its authors' code, has of each encoding, and what
    runs here. Every module is one for all layers.
    """
    half, clip = TRAINED // 2, decoders.CLIP
    place = torch.arange(TRAINED)
    buckets = t5_buckets(-place, bidirectional=False)
    last = (buckets == buckets.max()).nonzero()[0].item()
    threshold = models.byte_decoder("FIRE", 0).encoding.make.init_L
    rows = {
        "none": ("–", "–"),
        "sinusoidal": ("added to the tokens", "the same"),
        "learned": (
            "a row for each position in training",
            f"{ASKED:,} rows, of which {TRAINED} are trained",
        ),
        "RoPE": ("rotates all channels, in every layer", "the same"),
        "xPos": (
            "scale base 512 for training length 1,024; attention in blocks "
            "if texts are longer",
            f"scale base {half} for training length {TRAINED}; no blocks",
        ),
        "ALiBi": ("one set of slopes for all layers", "the same"),
        "T5": (
            "products of queries and keys not divided; one table for all "
            "layers",
            f"divided by the root of the width; the last bucket begins at "
            f"distance {last}, training length {TRAINED}",
        ),
        "clipped bias": ("no paper", f"clipped at distance {clip}"),
        "KERPLE": ("one module for all layers, in its code", "the same"),
        "FIRE": (
            "initial threshold: 512 tokens",
            "the same, which is "
            f"{threshold / TRAINED:.0f} times the training length",
        ),
        "Sandwich": ("a separate width", "the same: 128 channels"),
        "Shaw": (
            "a table for keys and a table for values in each layer; in base "
            "models, separate tables for each head",
            "one table for keys, for all layers and heads; clipped at "
            f"distance {clip}",
        ),
        "DeBERTa": (
            "bidirectional; projections in each layer; absolute positions "
            "added after the last layer",
            "causal; one pair of projections; no absolute positions; "
            f"clipped at distance {clip}",
        ),
        "Transformer-XL": (
            "attends to the previous segment, too; a projection in each "
            "layer",
            "no previous segment; one projection",
        ),
        "CoPE": (
            "a table in each layer, in its code",
            f"one table with {clip} rows",
        ),
    }
    print("| Encoding | The paper, or its code | Here |")
    print("|---|---|---|")
    for name, (theirs, ours) in rows.items():
        print(f"| {name} | {theirs} | {ours} |")
    return {"encodings": len(rows), "times": threshold / TRAINED}


def control():
    """What an encoding gains within, beside none: at most, on shuffled bytes;
    and RoPE on bytes in order.
    """
    ordered, shuffled = _losses(), _losses("shuffled")
    within = {name: _band(loss, "within") for name, loss in shuffled.items()}
    gains = [
        (within["none"] - loss).max()
        for name, loss in within.items()
        if name != "none"
    ]
    return {
        "largest_gain": max(gains),
        "gain_in_order": _band(ordered["none"], "within").mean()
        - _band(ordered["RoPE"], "within").mean(),
    }


def _accuracies():
    """For each method and task a tensor: (seeds, lengths)."""
    return {
        name: {
            task: torch.tensor([each["accuracy"][task] for each in results])
            for task in puzzles.TASKS
        }
        for name, results in load("tasks").items()
    }


def _known():
    """For each method and task whether each seed learned it."""
    return {
        name: {
            task: all(
                each["accuracy"][task][0] >= puzzles.LEARNED
                for each in results
            )
            for task in puzzles.TASKS
        }
        for name, results in load("tasks").items()
    }


def tasks():
    """Three grids of fractions of right answers, with a row for each encoding
    and a column for each length, the training length first. A row ends after
    the first column if the task was not learned. In copying, seven rows go
    on, and their fractions fall with length, least with KERPLE and ALiBi. In
    recall, fourteen rows go on, and the fractions of ALiBi, FIRE, KERPLE and
    Sandwich stay near one. In counting, fourteen rows go on, and their
    fractions fall with length, latest with CoPE.
    """
    found, known = _accuracies(), _known()
    fig, axes = plt.subplots(1, 3, figsize=(4.4, 4), sharey=True)
    for ax, task in zip(axes, puzzles.TASKS, strict=True):
        grid = torch.stack([found[name][task].mean(0) for name in found])
        grid[[not known[name][task] for name in found], 1:] = math.nan
        _draw_shares(ax, grid)
        ax.set_title(task, loc="left")
        ax.set_yticks(range(len(found)), found)
    fig.supxlabel("length")
    values = {
        f"{task}_{_key(name)}_{length}": share
        for name, tasks in found.items()
        for task, shares in tasks.items()
        for length, share in zip(LENGTHS, shares.mean(0), strict=True)
    }
    for task in puzzles.TASKS:
        values[f"{task}_known"] = sum(each[task] for each in known.values())
    return fig, values | _widest(found, known) | _of_tasks()


def _draw_shares(ax, grid):
    """A row for each encoding, a column for each length."""
    ax.imshow(grid, cmap="amount", vmin=0, vmax=1.6)
    for row, column in grid.isfinite().nonzero().tolist():
        cell = f"{grid[row, column]:.2f}".removeprefix("0")
        cell = cell.replace("1.00", "1")
        ax.text(column, row, cell, ha="center", va="center")
    ax.set_xticks(range(len(LENGTHS)), LENGTHS, rotation=90)
    ax.tick_params(length=0)


def _widest(found, known):
    """Where the seeds of a task that was learned lie farthest apart."""
    shares = [
        shares[:, column]
        for name, tasks in found.items()
        for task, shares in tasks.items()
        for column in range(len(LENGTHS))
        if known[name][task]
    ]
    widest = max(shares, key=_spread)
    return {"widest_least": widest.min(), "widest_most": widest.max()}


def _of_tasks():
    trained, longest = puzzles.LONGEST, max(LENGTHS)
    return {
        "trained": trained,
        "longest": longest,
        "twice": LENGTHS[1],
        "times": longest // trained,
        "copied": trained // 2,
        "asked": len(load("tasks")),
        "enough": puzzles.LEARNED,
        "updates": puzzles.UPDATES,
        "batch": puzzles.BATCH_SIZE,
        "texts": puzzles.EVAL_TEXTS,
        "guess_letter": 1 / puzzles.LETTERS,
        "guess_count": 1 / (puzzles.TICKS + 1),
        "letters": puzzles.LETTERS,
        "most": puzzles.TICKS,
    }


def provenance():
    """Environment of the stored results."""
    entries = [entry for name in SHOWN for entry in made_with(name)]
    for key in ("machine", "device", "python", "torch"):
        print(f"{key}:", ", ".join(sorted({entry[key] for entry in entries})))
    corpora = {e["corpus"]["sha256"] for e in entries if "corpus" in e}
    for digest in sorted(corpora):
        print("corpus:", digest[:16])
    corpus = next(e["corpus"] for e in entries if "corpus" in e)
    return {
        "runs": len(entries),
        "on_gpu": sum(entry["device"] == "cuda" for entry in entries),
        "minutes": sum(entry["seconds"] for entry in entries) / 60,
        "train_bytes": corpus["train_bytes"],
        "held_out_bytes": corpus["held_out_bytes"],
        "corpora": len(corpora),
    }


def gated():
    """Sinusoids as they are and behind a gate, and what the gate lets by."""
    gap = _beside("sinusoidal", "gated sinusoids")
    gates = torch.tensor(
        [result["gates"] for result in load("teaching")["gated sinusoids"]]
    )
    letters = sorted(
        string.ascii_lowercase,
        key=lambda letter: -gates[:, ord(letter)].sum(),
    )
    print("\nmean gate of a byte, by seed")
    for byte in ("\n", " ", *letters[:2], *letters[-2:]):
        taken = "".join(f"{each:6.2f}" for each in gates[:, ord(byte)])
        print(f"{byte!r:<21}{taken}")
    most = gates[:, [*map(ord, letters)]].max(-1).values
    over = gates[:, ord("\n")] - most
    return gap | {"over_min": over.min(), "over_max": over.max()}


def near_and_far():
    """Losses of Shaw's table of distances, and of one with far buckets."""
    gap = _beside("Shaw", "local and global")
    return gap | {
        "largest": max(map(abs, gap.values())),
        "near": teaching.NEAR,
        "ring": teaching.RING,
        "clip": decoders.CLIP,
        "rows": 2 * (teaching.NEAR + teaching.RINGS) + 1,
        "shaw_rows": 2 * decoders.CLIP + 1,
    }


def _beside(known, other):
    """Print the losses of each seed; by how much the other's are higher."""
    both = {
        known: _losses()[known],
        other: _losses("teaching")[other],
    }
    print(
        "loss, by seed      ", *(f"{band:>18}" for band in ("within", "far"))
    )
    for name, loss in both.items():
        cells = [
            "".join(f"{each:6.2f}" for each in _band(loss, band))
            for band in ("within", "far")
        ]
        print(f"{name:<20}{cells[0]} {cells[1]}")
    gaps = {
        band: _band(both[other], band) - _band(both[known], band)
        for band in ("within", "far")
    }
    return {
        f"{band}_{end}": getattr(gap, end)().item()
        for band, gap in gaps.items()
        for end in ("min", "max")
    }
