"""A build in which nothing changed reads and parses each file of data once."""

import json
import subprocess
import sys

import pytest

from executable_prose import project

# How often each project file is opened, apart from the look by which the build sees that it has not changed.
COUNT = """
import collections, json, sys
from executable_prose import project, reading

opened = collections.Counter()

def hear(event, arguments):
    if event == "open" and arguments[1] != reading.REUSED and isinstance(arguments[0], str):
        name = project.relative(arguments[0])
        frame = sys._getframe(1)
        while frame and frame.f_code is not project.digest.__code__:
            frame = frame.f_back
        if name and not frame:
            opened[name] += 1

sys.addaudithook(hear)
"""
AFTER_PAGES = """
from pathlib import Path
from executable_prose import registry
from executable_prose.execution.results import Results
from executable_prose.site import markdown_copies

site = Path(sys.argv[1])
for page in project.DOCS.rglob("*.md"):
    (site / page.relative_to(project.DOCS)).parent.mkdir(parents=True, exist_ok=True)
registry.load(project.settings().additions)
markdown_copies.write(site, Results(lazy=True))
for add in registry.ADDED.built:
    add(site)
"""
WHOLE = """
from executable_prose.site import build
if build.main(sys.argv[1]):
    sys.exit("the site cannot be built")
"""


def is_data(name):
    """Pages and templates are read by the host, too."""
    ours = not name.startswith(("docs/llms.txt", "docs/assets/", "docs/notebooks/", "lab/"))
    return name == "CHANGES.md" or (ours and name.endswith((".json", ".toml", ".txt", ".csv")))


def reads(code, folder):
    """How often each file of data is opened by a process that runs this code."""
    command = [sys.executable, "-c", f"{COUNT}{code}\nprint(json.dumps(opened))", folder]
    done = subprocess.run(command, cwd=project.ROOT, capture_output=True, text=True, check=True)
    opened = json.loads(done.stdout.splitlines()[-1])
    return {name: count for name, count in opened.items() if is_data(name)}


KNOWN = {
    "CHANGES.md",
    "docs/broken/register.toml",
    "experiments/results/census.json",
    "experiments/results/speed.json",
}


@pytest.mark.slow
def test_copies_and_data_of_all_pages_read_each_file_of_data_once(tmp_path):
    found = reads(AFTER_PAGES, tmp_path)
    assert found.keys() >= KNOWN
    assert {name: count for name, count in found.items() if count > 1} == {}


@pytest.mark.slow
def test_a_whole_build_reads_each_file_of_data_once(tmp_path):
    found = [reads(WHOLE, tmp_path / "site") for _ in range(2)][1]
    assert found.keys() >= KNOWN
    assert {name: count for name, count in found.items() if count > 1} == {}
