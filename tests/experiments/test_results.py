"""The committed results are those of the code as it is, and say what they were made with."""

import json

import pytest

from experiments.current import is_current
from experiments.runs import RESULTS, plan, runs

WANTED = [run for name in plan() for run in runs(name)]


@pytest.mark.claim(
    "evidence-belongs-to-its-code",
    "Each kept result was made by the code of the project's own that would make it now",
)
@pytest.mark.parametrize("run", WANTED, ids=[run.name for run in WANTED])
def test_each_result_was_made_by_the_code_as_it_is(run):
    assert is_current(run, RESULTS, {}), f"{run.name} is missing or was made by other code: make experiments"


def test_no_result_is_left_over():
    assert {path for path in RESULTS.rglob("*") if path.is_file()} == {run.path(RESULTS) for run in WANTED}


@pytest.mark.parametrize("run", WANTED, ids=[run.name for run in WANTED])
def test_each_result_says_what_it_was_made_with(run):
    kept = json.loads(run.path(RESULTS).read_text(encoding="utf-8"))
    assert (kept["method"], kept["seed"]) == (run.method, run.seed)
    made_with = kept["made_with"]
    assert {"code", "sizes", "seconds", "device", "machine", "python", "torch"} <= set(made_with)
    if run.experiment in ("language", "shuffled", "variants"):
        assert set(made_with["corpus"]) == {"train_bytes", "held_out_bytes", "sha256"}


def test_what_is_trained_is_trained_with_three_seeds():
    """But for cost, whose ratios have to come from one run, and three of which no figure is made."""
    for name in set(plan()) - {"cost", "ciphers", "larger", "recipes"}:
        assert plan()[name]["seeds"] >= 3
