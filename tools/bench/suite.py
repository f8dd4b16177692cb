"""How long `make test` takes, in a new clone of the last commit and after some edits."""

import random
import re
import statistics
import sys
import tempfile
from pathlib import Path

from builds import ROOT, SEED, functions, run, show


def times(project):
    """A line for each run; of edits the tests of trained results tell."""
    command = ["make", "test", "--old-file", ".venv/test"]
    show("`make test`, whole", run(command, project).seconds, 210)
    seconds = []
    for function in random.Random(SEED).sample(list(functions(project)), 5):
        file = project / function.file
        text = file.read_text(encoding="utf-8")
        file.write_text(function.edited(text), encoding="utf-8")
        done = run(command, project, may_fail=True)
        seconds.append(done.seconds)
        ran = re.findall(r"\d+ (?:exhibits ran|failed|passed)", done.said)
        if not any("passed" in each for each in ran):
            sys.exit(f"`make test` ended before its tests:\n{done.said}")
        show(f"after an edit of {function.name}", seconds[-1], note=f"{function.file}, {', '.join(ran)}")
        file.write_text(text, encoding="utf-8")
        run(command, project)
    show("the median of these", statistics.median(seconds), 60)


def bench():
    with tempfile.TemporaryDirectory(prefix="bench ", ignore_cleanup_errors=True) as folder:
        project = Path(folder) / "guide"
        run(["git", "clone", "--quiet", ROOT, project], ROOT)
        (project / ".venv").symlink_to(ROOT / ".venv")
        times(project)
