"""Runs are kept whole, one by one, and belong to the code that ran."""

import json
import shutil
import signal
import subprocess
import sys
import time

import pytest

from executable_prose import project
from experiments import runs
from experiments.__main__ import announced
from experiments.current import carry_out, is_current
from experiments.runs import Run
from tests.rows import each_of

# An experiment that takes no time, beside the code that carries experiments out.
TOY = '''
"""Words."""
import functools
import time

from experiments.encodings import make

STEP = 0.1


class Counts:
    def up(self):
        return count()

    def down(self):
        return 0


@functools.cache
def count(start=1):
    def more():
        if start < 0:
            raise ValueError(f"start must be 0 or more, got {start}")
        return start + 1

    return more()


def unused():
    return 1


def run(method, seed, device, pause=0.0):
    time.sleep(pause)
    make(method, 8, 2, 4, 4)
    return {"seed": seed, "count": Counts().up()}
'''
PLAN = """
[toy]
methods = ["none", "RoPE", "T5"]
seeds = 2
smoke = {}
"""
TRAIN = [sys.executable, "-m", "experiments", "--jobs", "1"]


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A copy of the code that runs depend on, free to be changed, with an experiment of its own."""
    for name in ("experiments", "snippets", "packages"):
        ignored = shutil.ignore_patterns("results", "__pycache__", "tests")
        shutil.copytree(project.ROOT / name, tmp_path / name, ignore=ignored)
    (tmp_path / "experiments" / "toy.py").write_text(TOY)
    (tmp_path / "experiments" / "plan.toml").write_text(PLAN)
    monkeypatch.setattr(project, "ROOT", tmp_path)
    monkeypatch.setattr(runs, "PLAN", tmp_path / "experiments" / "plan.toml")
    monkeypatch.syspath_prepend(tmp_path)
    runs.plan.cache_clear()
    yield tmp_path
    runs.plan.cache_clear()


def made(run, folder):
    run.keep(folder, carry_out(run, "cpu", {}))
    return runs.kept(run, folder)


def stale_after(project, file, was, now):
    """The methods whose results are no longer current once the file is changed."""
    kept = [run for run in runs.runs("toy") if run.seed == 0]
    for run in kept:
        made(run, project / "kept")
        assert is_current(run, project / "kept", {})
    path = project / file
    text = path.read_text(encoding="utf-8")
    assert was in text
    path.write_text(text.replace(was, now, 1), encoding="utf-8")
    return {run.method for run in kept if not is_current(run, project / "kept", {})}


EVERY = {"none", "RoPE", "T5"}
NEW = """def fourier(sizes):
    from snippets.fourier import FourierEncoding

    return Added(FourierEncoding(1, sizes.dim, 8, 8, 1.0))


def none(sizes)"""


@each_of(
    ("file", "was", "now", "whose"),
    [
        ("experiments/toy.py", "Words.", "Other words.", set()),
        ("experiments/toy.py", "STEP = 0.1", "STEP = 0.1  # a remark\n", set()),
        ("experiments/toy.py", "STEP = 0.1", "STEP = 0.2", EVERY),
        ("experiments/toy.py", "return count()", "return count() + 0", EVERY),
        ("experiments/toy.py", "return start + 1", "return start + 2", EVERY),
        ("experiments/toy.py", "start must be", "the start must be", set()),
        ("experiments/toy.py", "raise ValueError", "raise KeyError", EVERY),
        ("experiments/toy.py", "return 0", "return 2", set()),
        ("experiments/toy.py", "def down(self)", "def down(self, by=1)", EVERY),
        ("experiments/toy.py", "def unused():\n    return 1", "def unused(by=1):\n    return by", set()),
        ("experiments/encodings.py", "T5Bias(sizes.heads", "T5Bias(2 * sizes.heads", {"T5"}),
        ("experiments/encodings.py", "re.sub(", "re.sub(r'x', 'x', '') or re.sub(", EVERY),
        ("snippets/rope.py", "return base **", "return 1 * base **", {"RoPE"}),
        ("snippets/t5_bias.py", "class T5Bias(", "WORDS = 1\n\n\nclass T5Bias(", {"T5"}),
        ("snippets/alibi.py", "return ", "return 0 + ", set()),
        ("experiments/runs.py", 'indent + " "', 'indent + "  "', set()),
        ("experiments/current.py", "round(", "int(", set()),
        ("experiments/plan.toml", '"none",', '"none", "fourier",', set()),
    ],
)
def test_a_result_belongs_to_the_code_that_ran_and_to_no_other(toy, file, was, now, whose):
    before = (toy / file).read_text(encoding="utf-8")
    stale = stale_after(toy, file, was, now)
    (toy / file).write_text(before, encoding="utf-8")
    assert stale == whose


def test_a_new_encoding_runs_and_leaves_all_results_current(toy):
    assert stale_after(toy, "experiments/encodings.py", "def none(sizes)", NEW) == set()
    code = made(Run("toy", "fourier", 0), toy / "kept")["made_with"]["code"]
    assert {"fourier", "make"} < set(code["experiments/encodings.py"])


def test_a_run_notes_all_that_it_ran_whatever_ran_before_it(toy):
    """Nothing that an earlier run imported or cached is used again."""
    first, *_, last = (made(run, toy / "kept")["made_with"]["code"] for run in runs.runs("toy")[::3])
    assert first == last
    assert list(first["experiments/toy.py"]) == ["", "Counts.up", "count", "run"]
    assert not any(file.startswith("packages") for file in first)


def test_a_worker_that_outlives_an_edit_says_which_code_it_ran(toy):
    """The edit comes while the run goes on."""
    edit = (
        "import pathlib; path = pathlib.Path(__file__); path.write_text(path.read_text() + '\\nLATER = 1\\n')"
    )
    path = toy / "experiments" / "toy.py"
    path.write_text(TOY.replace("    time.sleep(pause)\n", f"    {edit}\n"))
    run = Run("toy", "none", 0)
    made(run, toy / "kept")
    assert not is_current(run, toy / "kept", {})
    path.write_text(path.read_text().replace("\nLATER = 1\n", ""))
    assert is_current(run, toy / "kept", {})


def test_what_measures_time_is_watched_in_a_smoke_run_only(toy):
    path = toy / "experiments" / "toy.py"
    # From Python 3.12 on, cProfile is a tool of sys.monitoring.
    watching = 'sys.monitoring.get_tool(2) if hasattr(sys, "monitoring") else sys.getprofile()'
    text = TOY.replace("import time", "import sys\nimport time")
    path.write_text(text.replace('{"seed": seed,', f'{{"watched": bool({watching}),'))
    run = Run("toy", "none", 0)
    watched, alone = carry_out(run, "cpu", {}), carry_out(run, "cpu", {}, {"pause": 0.01})
    assert watched["made_with"]["code"] == alone["made_with"]["code"]
    assert watched["result"]["watched"] and not alone["result"]["watched"]


def test_a_result_is_current_for_its_code_and_its_sizes(toy):
    run = Run("toy", "none", 0)
    kept = made(run, toy)
    assert is_current(run, toy, {})
    assert not is_current(run, toy, {"pause": 0.1})
    kept["made_with"]["code"]["experiments/toy.py"] = {"run": "other"}
    run.keep(toy, kept)
    assert not is_current(run, toy, {})


@pytest.mark.parametrize(
    "content",
    [b"", b'{"none-0": {', b"[]", b"[1]", b"null", b"\xff", b'{"none-0": {"made_with": {"sizes": {}}}}'],
)
def test_a_broken_file_has_no_results(tmp_path, content):
    run = Run("language", "none", 0)
    run.path(tmp_path).write_bytes(content)
    assert not is_current(run, tmp_path, {})


def test_a_broken_file_is_not_overwritten(tmp_path):
    run = Run("language", "none", 0)
    run.path(tmp_path).write_text("{")
    with pytest.raises(
        ValueError, match=r"language\.json is not a file of results: .*; restore it or remove it"
    ):
        run.keep(tmp_path, {})
    assert run.path(tmp_path).read_text() == "{"


def test_processes_that_store_results_at_the_same_time_lose_none(tmp_path):
    code = (
        "import sys; from pathlib import Path; from experiments.runs import Run;"
        "[Run('toy', sys.argv[1], seed).keep(Path(sys.argv[2]), {}) for seed in range(20)]"
    )
    command = [sys.executable, "-c", code]
    both = [subprocess.Popen([*command, name, tmp_path], cwd=project.ROOT) for name in ("a", "b")]
    assert [process.wait() for process in both] == [0, 0]
    assert len(runs.stored(tmp_path / "toy.json")) == 40


def test_a_missing_result_says_how_to_make_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no result language/none-0: make experiments makes it"):
        runs.load("language", tmp_path)


def test_what_will_be_made_is_said_and_how_long_it_takes_by_what_is_kept(toy):
    wanted, folder = runs.runs("toy"), toy / "kept"
    assert [*announced(wanted[:2], folder)] == ["toy, never made: none 0, RoPE 0"]
    for run, took in zip(wanted, (60, 240), strict=False):
        run.keep(folder, {"made_with": {"seconds": took}})
    wanted[2].keep(folder, {})
    said = "toy, about 10 minutes of one processor: T5 0, none 1, RoPE 1, T5 1"
    assert [*announced(wanted[2:], folder)] == [said]
    assert [*announced([], folder)] == []


def test_results_are_read_without_what_trains():
    """Neither torch nor the code of any experiment."""
    code = (
        "import sys; from experiments.runs import load, made_with; load('tasks'); made_with('tasks');"
        "trains = ('experiments', 'snippets', 'torch');"
        "print(*(name for name in sys.modules if name.partition('.')[0] in trains))"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=project.ROOT, capture_output=True, text=True, check=True
    )
    assert told.stdout.split() == ["experiments", "experiments.runs"]


@each_of(
    "value",
    [
        {},
        {"a": [1, 2.5, -3], "b": {"c": "x", "d": None}, "e": []},
        {"texts": ["[1,\n2]", "ä"], "mixed": [1, "a"], "deep": [[1, 2], [3]]},
        [{"a": True}],
        "text",
    ],
)
def test_what_is_written_can_be_read_again(value):
    assert json.loads(runs.written(value)) == value


def test_numbers_stand_side_by_side_and_what_is_long_in_lines():
    numbers, word = list(range(100)), 60 * "x"
    text = runs.written({"a": numbers, "b": [word, word, [1, {"c": 2}]]})
    assert text == f'{{\n "a": {numbers},\n "b": [\n  "{word}",\n  "{word}",\n  [1, {{"c": 2}}]\n ]\n}}'


@pytest.mark.slow
def test_what_ended_before_a_kill_is_kept_and_the_rest_made_afterwards(toy):
    path = toy / "experiments" / "toy.py"
    path.write_text(TOY.replace("pause=0.0", "pause=0.3"))
    results = toy / "experiments" / "results"
    process = subprocess.Popen(TRAIN, cwd=toy, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until, path = time.monotonic() + 120, results / "toy.json"
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    process.communicate()
    early = runs.stored(path)
    assert process.returncode != 0 and early
    again = subprocess.run(TRAIN, cwd=toy, capture_output=True, text=True, check=True)
    found = int(again.stdout.split()[0])
    assert f"{found} of 6 results are current" in again.stdout and 6 > found >= len(early)
    after = runs.stored(path)
    assert early.items() <= after.items()
    assert sorted(made["seed"] for made in after.values()) == [0, 0, 0, 1, 1, 1]
    third = subprocess.run(TRAIN, cwd=toy, capture_output=True, text=True, check=True)
    assert "6 of 6 results are current, 0 to make" in third.stdout


def test_an_unknown_experiment_is_named_with_those_that_there_are():
    told = subprocess.run(
        [sys.executable, "-m", "experiments", "langauge"], cwd=project.ROOT, capture_output=True, text=True
    )
    assert told.returncode == 2 and "no experiment langauge; there are language, shuffled" in told.stderr


@pytest.mark.slow
def test_two_workers_of_a_dask_scheduler_take_the_runs_and_a_second_call_finds_them_made(tmp_path):
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        address = cluster.scheduler_address.removeprefix("tcp://")
        command = [sys.executable, "-m", "experiments", "shuffled", "--smoke", "--device", "cpu"]
        command += ["--dask", address, "--folder", str(tmp_path)]
        calls = [
            subprocess.run(command, cwd=project.ROOT, check=True, capture_output=True, text=True).stdout
            for _ in range(2)
        ]
    made, found = calls
    assert "0 of 12 results are current" in made and "12 of 12 results are current" in found
    assert len(runs.stored(tmp_path / "shuffled.json")) == 12 == made.count("made shuffled/")
