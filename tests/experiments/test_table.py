"""The table of all training runs, and the main figure that is drawn from it alone."""

import csv
import shutil
import subprocess
import sys

import pytest

from exhibits import recipes
from experiments import language, main_figure, table, tasks
from experiments.runs import load, plan, runs


@pytest.fixture(scope="module")
def rows():
    return table.rows()


def test_every_run_is_in_the_table(rows):
    runs_of = {(row["experiment"], row["method"], row["seed"]) for row in rows}
    assert runs_of == {tuple(run) for name in set(plan()) - {"cost"} for run in runs(name)}
    assert all(row.keys() == table.FIELDS.keys() for row in rows)
    assert {row["measure"] for row in rows} == {*table.MEASURES}
    assert table.PLACES["accuracy"] == tasks.EVAL_LENGTHS
    assert [*table.PLACES["loss_by_position"]] == [*range(0, language.EVAL_LENGTH, language.BIN)]


def test_a_number_is_the_mean_over_the_texts_or_stands_at_its_place(rows):
    found = {tuple(row[name] for name in [*table.FIELDS][:6]): row["value"] for row in rows}
    kept = load("chains")["T5"][1]["excess_loss"]["64"]["512"]
    assert found["chains", "T5", 1, "excess_loss", "64", "512"] == pytest.approx(sum(kept) / 48, abs=1e-4)
    kept = load("tasks")["CoPE"][2]["accuracy"]["counting"]
    assert [found["tasks", "CoPE", 2, "accuracy", "counting", at] for at in tasks.EVAL_LENGTHS] == kept
    kept = load("language")["none"][0]["loss_by_position"]
    assert found["language", "none", 0, "loss_by_position", "", 32] == kept[2]
    assert found["translator", "T5", 0, "exact", "", ""] == load("translator")["T5"][0]["exact"]


def test_the_main_figure_is_drawn_from_the_table_alone(tmp_path):
    (tmp_path / "runs.csv").write_text(table.as_csv(), encoding="utf-8")
    shutil.copy(main_figure.__file__, tmp_path)
    command = [sys.executable, "-I", "main_figure.py", "runs.csv", "main_figure.svg"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert "<svg" in (tmp_path / "main_figure.svg").read_text(encoding="utf-8")
    with (tmp_path / "runs.csv").open(encoding="utf-8", newline="") as file:
        assert next(csv.reader(file)) == [*table.FIELDS]
    drawn = main_figure.draw(main_figure.read(tmp_path / "runs.csv"))
    shown, _ = recipes.by_recipe()
    for mine, theirs in zip(drawn.axes, shown.axes, strict=True):
        assert mine.get_title(loc="left") == theirs.get_title(loc="left")
        lines = [line for line in theirs.lines if len(line.get_xdata()) == 4]
        for line, other in zip(mine.lines, lines, strict=True):
            assert list(line.get_ydata()) == pytest.approx(list(other.get_ydata()), abs=1e-3)
            assert line.get_linestyle() == other.get_linestyle()
