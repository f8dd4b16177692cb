"""Runs, and where their results are kept: one small file for each, with all that it was made with.

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
        return folder / f"{self.name}.json"

    def keep(self, folder, made):
        """Write what was made. The file appears whole or not at all."""
        path = self.path(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_suffix(f".{os.getpid()}")
        aside.write_text(written(made) + "\n", encoding="utf-8")
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


def kept(run, folder):
    try:
        return json.loads(run.path(folder).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"no result {run.name}: make experiments makes it") from error


def load(experiment, folder=RESULTS, method=None):
    """The kept results: a dictionary from method to what each seed gave, in the order of the plan.

    With a method those of that one alone, which takes less time.
    """
    found = {}
    for run in runs(experiment):
        if method in (None, run.method):
            found.setdefault(run.method, []).append(kept(run, folder)["result"])
    return found


def made_with(experiment, folder=RESULTS):
    """What the kept results were made with: a list, one entry for each run."""
    return [kept(run, folder)["made_with"] for run in runs(experiment)]


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
