"""Commands that the documentation names and that no other test starts: each runs in a copy of the project."""

import os
import shlex
import shutil
import subprocess
import sys

import pytest

from executable_prose import project
from tests.bench import builds

SOURCE = "packages/executable-prose/src"
COMMANDS = {
    "python -m experiments.census qwen3": "rotation",
    "python experiments/configurations.py gptj": "",
    "python experiments/dialects.py transformers-5": "",
    "python -m executable_prose claims": "",
    "python tests/bench rivals order": "sphinx-gallery, the same exhibits",
}


@pytest.fixture(scope="module")
def project_copy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("a copy")  # with a space in its name
    builds.copy(folder)
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_documented_command_runs(command, project_copy):
    path = os.pathsep.join(map(str, (project_copy, project_copy / SOURCE)))
    done = subprocess.run(
        [sys.executable, *shlex.split(command)[1:]],
        cwd=project_copy,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert COMMANDS[command] in done.stdout


NEAR = "must be one that is known, got 'nonesuch'"
HELP = (0, "usage: ")
REFUSED = {
    "guide.copies --help": HELP,
    "guide.copies nonesuch": (2, "unrecognized arguments: nonesuch"),
    "experiments.fresh nonesuch": (2, "unrecognized arguments: nonesuch"),
    "experiments --jobs 0": (2, "--jobs must be at least 1, got 0"),
    "experiments --device nonesuch": (2, "--device must be one that is here, got 'nonesuch'"),
    "experiments nonesuch": (2, "no experiment nonesuch"),
    "experiments.census --json": (2, "--json must stand beside a model"),
    "experiments.census qwen3 --again bert": (2, "--again must stand without a model, got 'qwen3'"),
    "experiments.census --again nonesuch": (2, "invalid choice: 'nonesuch'"),
    "guide.math_font --help": HELP,
    "guide.math_font nonesuch": (2, "unrecognized arguments: nonesuch"),
    "guide.text_fonts nonesuch": (2, "unrecognized arguments: nonesuch"),
    "experiments.alarms nonesuch": (2, f"model_type {NEAR}"),
    "experiments.alarms --all": (2, "unrecognized arguments: --all"),
    "tests.power rope nonesuch": (2, f"snippet {NEAR}: such as 'alibi'"),
    "tests.power ropes": (2, "got 'ropes': did you mean 'rope'?"),
    "tests.mutants nonesuch --accept": (2, f"snippet {NEAR}"),
    "tests.mutants rope --jobs 0": (2, "--jobs must be at least 1, got 0"),
    "experiments.configurations nonesuch": (2, f"model_type {NEAR}"),
    "experiments.configurations --help": HELP,
    "experiments.dialects nonesuch": (2, "invalid choice: 'nonesuch'"),
    "tests/bench nonesuch": (2, "invalid choice: 'nonesuch'"),
    "tests/bench speed nonesuch": (2, f"snippet {NEAR}"),
    "tests/bench rivals nonesuch": (2, f"chapter {NEAR}"),
    "tests/bench builds nonesuch": (2, "expected no more than builds, got nonesuch"),
    "executable_prose results --force": (1, "expected --background or nothing, got '--force'"),
}
BY_DAY = ("guide.copies --help", "experiments.alarms --all")


@pytest.mark.parametrize(
    "command", [pytest.param(each, marks=[] if each in BY_DAY else pytest.mark.slow) for each in REFUSED]
)
def test_what_a_command_does_not_know_is_refused_and_nothing_is_written(command, own_copy):
    code, words = REFUSED[command]
    before = {path: path.stat().st_mtime_ns for path in own_copy.rglob("*") if path.suffix != ".pyc"}
    what, *typed = shlex.split(command)
    done = subprocess.run(
        [sys.executable, *([what] if "/" in what else ["-m", what]), *typed],
        cwd=own_copy,
        env=os.environ | {"PYTHONPATH": os.pathsep.join((".", SOURCE)), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == code, done.stderr[-2000:]
    assert words in done.stdout + done.stderr and "Traceback" not in done.stderr, done.stderr[-2000:]
    after = {path: path.stat().st_mtime_ns for path in own_copy.rglob("*") if path.suffix != ".pyc"}
    assert after == before


@pytest.fixture(scope="module")
def own_copy(tmp_path_factory):
    """What commands need of the project, without its history."""
    folder = tmp_path_factory.mktemp("refused")
    unwanted = shutil.ignore_patterns("__pycache__", "node_modules")
    for name in ("exhibits", "experiments", "guide", "labs", "snippets", "tests", SOURCE):
        shutil.copytree(project.ROOT / name, folder / name, ignore=unwanted)
    (folder / "docs").mkdir()
    for file in ("mkdocs.yml", "pyproject.toml", "requirements.txt", "CHANGES.md", "docs/dialects.toml"):
        shutil.copy(project.ROOT / file, folder / file)
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    return folder
