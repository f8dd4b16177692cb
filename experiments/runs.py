"""Training runs and their stored results: one file per experiment, with an entry per run and its provenance.

An experiment is a module of this folder with run(method, seed, device, **sizes), which returns numbers;
plan.toml says of each its methods and seeds. Here nothing of it is imported: to show results takes their
files only.
"""

import json
import os
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

RESULTS = Path(__file__).resolve().parent / "results"
PLAN = Path(__file__).resolve().parent / "plan.toml"


class Run(NamedTuple):
    experiment: str
    method: str
    seed: int

    @property
    def name(self):
        slug = re.sub(r"[^a-z0-9]+", "-", self.method.lower()).strip("-")
        return f"{self.experiment}/{slug}-{self.seed}"

    def path(self, folder):
        return folder / f"{self.experiment}.json"

    def keep(self, folder, made):
        """Store the result of a run. The file is replaced as a whole, by one process at a time."""
        from filelock import FileLock  # not at the top: what this module imports is part of each result's key

        path = self.path(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_suffix(".lock")):
            entries = stored(path) | {key(self): made}
            aside = path.with_suffix(f".{os.getpid()}")
            aside.write_text(written(dict(sorted(entries.items()))) + "\n", encoding="utf-8")
            aside.replace(path)


@cache
def plan():
    """What is run, by experiment."""
    return tomllib.loads(PLAN.read_text(encoding="utf-8"))


def runs(experiment):
    """Every run of an experiment, seed by seed."""
    planned = plan()[experiment]
    return [
        Run(experiment, method, seed) for seed in range(planned["seeds"]) for method in planned["methods"]
    ]


def key(run):
    """The name of a run's entry in the file of its experiment."""
    return run.name.rpartition("/")[2]


def stored(path):
    """Return the entries of a file of results; none if there is no such file."""
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is not a file of results: {error}; restore it or remove it") from None


def kept(run, folder):
    """Return the stored entry of a run."""
    return _entry(stored(run.path(folder)), run)


def _entry(entries, run):
    if key(run) not in entries:
        raise FileNotFoundError(f"no result {run.name}: make experiments makes it")
    return entries[key(run)]


def load(experiment, folder=RESULTS, method=None):
    """Return the stored results: a dictionary from method to one result per seed, in the order of the plan.

    Args:
        method: Return the results of this method alone.
    """
    found, entries = {}, stored(folder / f"{experiment}.json")
    for run in runs(experiment):
        if method in (None, run.method):
            found.setdefault(run.method, []).append(_entry(entries, run)["result"])
    return found


def made_with(experiment, folder=RESULTS):
    """Return the provenance of the stored results, one entry per run."""
    entries = stored(folder / f"{experiment}.json")
    return [_entry(entries, run)["made_with"] for run in runs(experiment)]


def written(value, indent=""):
    """As JSON: an entry to a line, but numbers side by side, and what is short on one line."""
    flat = json.dumps(value)
    if not isinstance(value, (dict, list, tuple)) or len(flat) <= 100 or is_numbers(value):
        return flat
    inner = indent + " "
    if isinstance(value, dict):
        before, after = "{}"
        parts = [f"{json.dumps(key)}: {written(each, inner)}" for key, each in value.items()]
    else:
        before, after = "[]"
        parts = [written(each, inner) for each in value]
    lines = f",\n{inner}".join(parts)
    return f"{before}\n{inner}{lines}\n{indent}{after}"


def is_numbers(value):
    return isinstance(value, (list, tuple)) and all(isinstance(each, (int, float)) for each in value)
