"""All stored training runs as one table: a row for each measured number, FIELDS as columns."""

import csv
import io
from statistics import fmean

from experiments.runs import RESULTS, key, plan, runs, stored

FIELDS = {
    "experiment": "the module in `experiments/` that made the run",
    "method": "the positional encoding; after a comma, what else was changed in training",
    "seed": "of the initial weights and of the order of the training data",
    "measure": "`excess_loss`, `loss_by_position` and `loss_by_context` are in nats; `accuracy`, `exact` and "
    "`mirrored` are fractions",
    "setting": "the task, or the change at test time: a window (1024: none), a patch, a context extension",
    "at": "the end of a band of positions, the start of a bin, the bytes of context or the evaluation length",
    "value": "the mean over the texts of the evaluation",
    "seconds": "the time of the run, including the evaluation",
    "device": "`cpu`: one thread of a processor; `cuda`: one NVIDIA H200; both did other work as well",
    "torch": "the version of PyTorch",
}
MEASURES = ("excess_loss", "loss_by_position", "loss_by_context", "accuracy", "exact", "mirrored")
PLACES = {  # of lists: tasks.EVAL_LENGTHS, and bins of language.BIN positions; all other lists are of texts
    "accuracy": (32, 64, 128, 256),
    "loss_by_position": range(0, 1024, 16),
}


def rows():
    """The rows of the table, as dictionaries."""
    found = []
    for experiment in plan():
        entries = stored(RESULTS / f"{experiment}.json")
        for run in runs(experiment):
            entry = entries[key(run)]
            same = {"experiment": experiment, "method": run.method, "seed": run.seed}
            made_with = {name: entry["made_with"][name] for name in ("seconds", "device", "torch")}
            found += [same | number | made_with for number in _numbers(entry["result"])]
    return found


def _numbers(result):
    for measure in MEASURES:
        if measure in result:
            for setting, at, value in _leaves(result[measure], PLACES.get(measure)):
                yield {"measure": measure, "setting": setting, "at": at, "value": value}


def _leaves(value, places, path=()):
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _leaves(each, places, (*path, name))
    elif not isinstance(value, list):
        yield " ".join(path), "", value
    elif places:
        yield from ((" ".join(path), at, each) for at, each in zip(places, value, strict=False))
    else:
        yield " ".join(path[:-1]), path[-1], round(fmean(value), 4)


def as_csv():
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows())
    return text.getvalue()
