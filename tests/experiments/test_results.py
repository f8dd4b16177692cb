"""The stored results belong to the current code and record how they were made."""

import pytest

from experiments.current import is_current
from experiments.runs import RESULTS, key, plan, runs, stored

BY_EXPERIMENT = {name: runs(name) for name in plan()}
MADE_WITH = {"code", "sizes", "seconds", "device", "machine", "python", "torch"}
each_experiment = pytest.mark.parametrize("experiment", BY_EXPERIMENT)


@pytest.mark.claim(
    "evidence-belongs-to-its-code",
    "Each stored result was made by the same project code that would make it now, or by functions that "
    "were rewritten since then without changing a bit.",
)
@each_experiment
def test_each_result_was_made_by_the_current_code(experiment):
    stale = [run.name for run in BY_EXPERIMENT[experiment] if not is_current(run, RESULTS, {})]
    assert stale == [], "these results are missing or were made by other code: run `make experiments`"


@each_experiment
def test_each_file_has_exactly_the_planned_runs(experiment):
    entries = stored(RESULTS / f"{experiment}.json")
    planned = BY_EXPERIMENT[experiment]
    assert list(entries) == sorted(map(key, planned))
    assert {name: (made["method"], made["seed"]) for name, made in entries.items()} == {
        key(run): (run.method, run.seed) for run in planned
    }


@each_experiment
def test_each_result_records_how_it_was_made(experiment):
    for name, made in stored(RESULTS / f"{experiment}.json").items():
        assert set(made["made_with"]) >= MADE_WITH, name
        if experiment in ("language", "shuffled", "variants"):
            assert set(made["made_with"]["corpus"]) == {"train_bytes", "held_out_bytes", "sha256"}, name


def test_each_file_belongs_to_an_experiment():
    trained = {
        path.stem for path in RESULTS.glob("*.json") if '"made_with"' in path.read_text(encoding="utf-8")
    }
    assert trained == {*plan()}


def test_what_is_trained_is_trained_with_three_seeds():
    """But for cost, whose ratios have to come from one run."""
    for name in set(plan()) - {"cost"}:
        assert plan()[name]["seeds"] >= 3
