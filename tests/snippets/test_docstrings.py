"""Public docstrings have an imperative summary, and name all arguments and what is returned and raised."""

import re
import subprocess
import sys

from executable_prose.project import ROOT

FOLDERS = ["snippets", "packages/check-positions/src"]
GOOGLE = 'lint.pydocstyle.convention="google"'
# Magic methods and constructors add nothing to their class. pydoclint cannot see what a helper raises.
RUFF = [
    "ruff",
    "check",
    "--select",
    "D,D401",
    "--ignore",
    "D105,D107",
    "--config",
    GOOGLE,
    "--exclude",
    "in_a_model",
]
PYDOCLINT = [
    *("pydoclint.main", "--style=google", "--exclude=in_a_model", "--arg-type-hints-in-docstring=False"),
    *("--skip-checking-short-docstrings=False", "--skip-checking-raises=True", "--check-return-types=False"),
    *("--check-class-attributes=False", "--allow-init-docstring=True"),
]


def run(command):
    command = [sys.executable, "-m", *command, *FOLDERS]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


def test_docstrings_follow_the_convention():
    done = run(RUFF)
    assert done.returncode == 0, done.stdout + done.stderr


def test_public_docstrings_name_arguments_and_returns():
    done = run(PYDOCLINT)
    told = done.stdout + done.stderr
    found = re.findall(r"DOC\d+: \w+ `([^`]*)`.*", told)
    assert len(found) > 100, told  # private functions have one line, so it does run
    public = [name for name in found if not any(part.startswith("_") for part in name.split("."))]
    assert public == [], told
