"""Commands that the documentation names and that no other test starts: each runs in a copy of the project."""

import os
import shlex
import shutil
import subprocess
import sys

import pytest

from executable_prose import project
from tools.bench import builds

COMMANDS = {
    "python -m census qwen3": "rotation",
    "python tools/configurations.py gptj": "",
    "python tools/dialects.py transformers-5": "",
    "python -m executable_prose claims": "",
    "python tools/bench rivals order": "sphinx-gallery, the same exhibits",
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
    path = os.pathsep.join(map(str, (project_copy, project_copy / "engine" / "src")))
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
    "census --json": (2, "--json must stand beside a model"),
    "census qwen3 --again bert": (2, "--again must stand without a model, got 'qwen3'"),
    "census --again nonesuch": (2, "invalid choice: 'nonesuch'"),
    "tools.tag": (2, "the following arguments are required: remote"),
    "tools.tag ''": (2, "remote must be the name or the address of a Git remote, got ''"),
    "tools.tag nonesuch": (1, "git ls-remote --tags --refs nonesuch"),
    "tools.tag origin more": (2, "unrecognized arguments: more"),
    "tools.tag --help": HELP,
    "tools.notebooks_branch ''": (2, "remote must be the name or the address of a Git remote, got ''"),
    "tools.notebooks_branch --force": (2, "the following arguments are required: remote"),
    "tools.math_font --help": HELP,
    "tools.math_font nonesuch": (2, "unrecognized arguments: nonesuch"),
    "tools.text_fonts nonesuch": (2, "unrecognized arguments: nonesuch"),
    "tools.bill nonesuch": (2, "unrecognized arguments: nonesuch"),
    "tools.alarms nonesuch": (2, f"model_type {NEAR}"),
    "tools.alarms --all": (2, "unrecognized arguments: --all"),
    "tools.power rope nonesuch": (2, f"snippet {NEAR}: such as 'alibi'"),
    "tools.power ropes": (2, "got 'ropes': did you mean 'rope'?"),
    "tools.mutants nonesuch --accept": (2, f"snippet {NEAR}"),
    "tools.mutants rope --jobs 0": (2, "--jobs must be at least 1, got 0"),
    "tools.configurations nonesuch": (2, f"model_type {NEAR}"),
    "tools.configurations --help": HELP,
    "tools.dialects nonesuch": (2, "invalid choice: 'nonesuch'"),
    "tools.new_method nonesuch more": (1, "NAME has to be a Python identifier"),
    "tools/bench nonesuch": (2, "invalid choice: 'nonesuch'"),
    "tools/bench speed nonesuch": (2, f"snippet {NEAR}"),
    "tools/bench rivals nonesuch": (2, f"chapter {NEAR}"),
    "tools/bench builds nonesuch": (2, "expected no more than builds, got nonesuch"),
    "executable_prose results --force": (1, "expected --background or nothing, got '--force'"),
}
BY_DAY = ("guide.copies --help", "tools.tag ''")


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
        env=os.environ | {"PYTHONPATH": os.pathsep.join((".", "engine/src")), "PYTHONDONTWRITEBYTECODE": "1"},
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
    packages = ("census", "exhibits", "experiments", "guide", "labs", "snippets", "tools")
    for room in (*packages, "engine/src", "measurements"):
        shutil.copytree(project.ROOT / room, folder / room, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("mkdocs.yml", "pyproject.toml", "requirements.txt", "CHANGES.md"):
        shutil.copy(project.ROOT / file, folder)
    shutil.copytree(project.ROOT / "locks", folder / "locks")
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    return folder
