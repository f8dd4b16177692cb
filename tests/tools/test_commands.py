"""Commands that the documentation names and that no other test starts: each runs in a copy of the project."""

import os
import shlex
import subprocess
import sys

import pytest

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
