"""Exhibits of one module run in forks of a process that has imported it."""

import json
import subprocess
import sys

import pytest

from executable_prose.execution.exhibit_process import FORKS
from prose_testing.projects import Project

pytestmark = pytest.mark.skipif(not FORKS, reason="there is no fork")
FILES = {
    "exhibits/__init__.py": "",
    "snippets/__init__.py": "",
    "exhibits/shared.py": """
        import os
        import random
        from pathlib import Path

        from snippets.used import double

        AT_IMPORT = random.random()
        TEXT = Path(__file__).with_name("data.txt").read_text()


        def first():
            os.environ["LEFT"] = "by the first"
            return {"process": os.getppid(), "chance": random.random(), "import": AT_IMPORT}


        def second():
            return {"process": os.getppid(), "chance": random.random(), "left": os.environ.get("LEFT", "")}


        def third():
            return {"doubled": double(2)}
        """,
    "exhibits/data.txt": "text",
    "exhibits/killing.py": """
        import os
        import signal
        import tempfile


        def parent():
            if "/chapter-" in tempfile.gettempdir():
                os.kill(os.getppid(), signal.SIGKILL)
            return {"a": 2}


        def other():
            return {"a": 1}
        """,
    "exhibits/failing.py": """
        import os

        if os.environ:
            raise ValueError("at import")


        def one():
            pass


        def two():
            pass
        """,
    "snippets/used.py": "def double(x):\n    return 2 * x\n\n\ndef unused():\n    pass\n",
}
MAIN = "import os; os.cpu_count = lambda: 1; from executable_prose.execution.process_pool import main; main()"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A function that runs exhibits, one at a time, and gives their outcomes by name."""
    project = Project(tmp_path_factory.mktemp("chapters").resolve(), files=FILES)

    def run(*names):
        worker = subprocess.Popen(
            [sys.executable, "-c", MAIN],
            cwd=project.root,
            env=project.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        print(json.dumps(names), file=worker.stdin, flush=True)
        outcomes = {made["name"]: made for made in (json.loads(worker.stdout.readline()) for _ in names)}
        worker.communicate()
        return outcomes

    return run


def values(outcome):
    assert not outcome["failure"], outcome["failure"]
    return outcome["result"]["values"]


def test_exhibits_of_a_module_have_its_imports_and_nothing_of_each_other(run):
    outcomes = run("shared.first", "shared.second")
    first, second = values(outcomes["shared.first"]), values(outcomes["shared.second"])
    assert first["process"] == second["process"]
    assert first["chance"] == second["chance"] != first["import"]
    assert second["left"] == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["shared.first", "shared.third"])
def test_each_gives_and_uses_what_it_does_alone(run, name):
    alone, together = run(name)[name], run("shared.first", "shared.second", "shared.third")
    for outcome in (alone, together[name]):
        outcome.pop("seconds")
        outcome["result"]["values"].pop("process", None)
    assert alone == together[name]
    assert together["shared.third"]["functions"]["snippets/used.py"] == ["double"]
    assert "exhibits/data.txt" in together["shared.second"]["files"]


def test_exhibits_run_alone_when_the_process_that_they_share_dies(run):
    outcomes = run("killing.parent", "killing.other")
    assert values(outcomes["killing.parent"]) == {"a": 2}
    assert values(outcomes["killing.other"]) == {"a": 1}


def test_each_tells_why_its_module_cannot_be_imported(run):
    for outcome in run("failing.one", "failing.two").values():
        assert outcome["failure"] == "ValueError: at import (at exhibits/failing.py:4)"
