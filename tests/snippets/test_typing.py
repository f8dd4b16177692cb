"""What people copy is clean under mypy, strict, and under pyright, so that it is under theirs."""

import subprocess
import sys

import pytest

from executable_prose.project import ROOT


@pytest.mark.parametrize(
    "command", [["mypy", "--cache-dir", ".cache/mypy"], ["basedpyright", "--pythonpath", sys.executable]]
)
def test_all_snippets_are_clean(command):
    command = [sys.executable, "-m", *command]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
