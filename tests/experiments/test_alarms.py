"""What the checker says of models (alarms.json) and of mutants (power.json), and that it still does."""

import json
import tomllib

import pytest
import transformers

from executable_prose.project import ROOT
from experiments import alarms
from tests import power

KNOWN = json.loads(alarms.RESULT.read_text(encoding="utf-8"))
TOLD = KNOWN["models"]
ROWS = tomllib.loads((ROOT / "experiments" / "alarms.toml").read_text(encoding="utf-8"))["alarm"]


def failed(told):
    return sorted(check for check, verdict in told.items() if verdict == "fails")


@pytest.mark.claim(
    "no-alarm-is-unexplained",
    "Every check that fails on a model type of transformers in the stored results is explained by a named "
    "defect or a named limit.",
)
def test_every_alarm_is_explained_and_nothing_else():
    fails = {kind: failed(told) for kind, told in TOLD.items() if isinstance(told, dict)}
    explained = {kind: sorted(row["checks"]) for row in ROWS for kind in row["models"]}
    assert explained == {kind: checks for kind, checks in fails.items() if checks}


def test_each_explanation_says_what_it_is():
    assert {row["kind"] for row in ROWS} == {"defect", "limit"}
    assert all(len(row["why"].split()) > 8 for row in ROWS)


def test_the_models_are_those_of_the_pinned_library():
    assert KNOWN["transformers"] == transformers.__version__, "make it again: python experiments/alarms.py"
    assert set(KNOWN["models"]) >= set(alarms.model_types())


def test_many_were_asked():
    asked = [told for told in TOLD.values() if isinstance(told, dict)]
    assert len(asked) >= 120


@pytest.mark.parametrize(
    "kind", ["llama", *(pytest.param(each, marks=pytest.mark.slow) for each in ("vjepa2", "moshi"))]
)
def test_a_model_gets_the_verdicts_that_are_kept(kind):
    assert alarms.check_in_process(kind) == TOLD[kind]


def test_a_model_that_cannot_be_built_says_why():
    assert "no_such_model" in alarms.check_in_process("no_such_model")


@pytest.mark.slow
def test_mutants_of_one_file_are_found_as_is_kept():
    kept = json.loads(power.RESULT.read_text(encoding="utf-8"))
    assert kept.keys() == power.FILES.keys()
    assert all(told["found"] + len(told["missed"]) == told["silent"] for told in kept.values())
    kept["alibi"].pop("code")
    assert power.count_detected("alibi") == kept["alibi"]


def test_a_file_that_fails_by_itself_is_refused(monkeypatch):
    source = (ROOT / "snippets" / "alibi.py").read_text(encoding="utf-8")
    broken = source.replace("-steps / below", "-2 * steps / below")
    assert broken != source
    monkeypatch.setattr(power, "ROOT", ROOT)
    assert power.run_checks("alibi", broken)[1], "the checker has to see the wrong slopes"
