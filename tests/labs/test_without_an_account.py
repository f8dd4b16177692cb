"""What a lab's page says of working without any account, done in an empty environment."""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from executable_prose import labs
from executable_prose.project import settings
from executable_prose.rendering.directives.lab import offer
from tests.labs.test_every_lab import HOME, printed, texts

LAB = labs.names()[0]
TOKEN = "token"


@pytest.fixture(scope="module")
def told():
    """The commands that the page names, in their order."""
    return re.findall(r"<code>(.+?)</code>", offer(LAB, {"site": HOME, "repository": ""}))


def test_the_page_names_two_commands(told):
    (install, packages), (start, file) = (line.split(maxsplit=2)[1:] for line in told)
    assert (install, start) == ("install", "lab") and {*settings().notebooks.needs, "jupyterlab"} == set(
        packages.split()
    )
    assert file in texts(LAB)


@pytest.fixture(scope="module")
def environment(tmp_path_factory, told):
    """Where an empty environment has what the first command installs, with the pins of the notebooks."""
    folder = tmp_path_factory.mktemp("account")
    subprocess.run([sys.executable, "-m", "venv", folder / "empty"], check=True)
    (folder / "pins").write_text("\n".join(labs.needed()), encoding="utf-8")
    for file, text in texts(LAB).items():
        (folder / file).write_text(text, encoding="utf-8")
    settings = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "JUPYTER"))}
    settings |= {
        "PATH": f"{folder / 'empty' / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "PIP_CONSTRAINT": str(folder / "pins"),
        "JUPYTER_TOKEN": TOKEN,
    }
    subprocess.run(shlex.split(told[0]), cwd=folder, env=settings, check=True)
    yield folder, settings
    shutil.rmtree(folder / "empty")


@pytest.mark.slow
def test_the_solution_runs_where_only_what_the_page_names_is_installed(environment):
    folder, settings = environment
    solution = f"{LAB}-solution.ipynb"
    convert = ["jupyter", "nbconvert", "--to", "notebook", "--execute", "--output", "ran.ipynb", solution]
    subprocess.run(convert, cwd=folder, env=settings, check=True)
    said = [words for _, words in printed((folder / "ran.ipynb").read_text(encoding="utf-8"), "check")]
    assert said and all(words.startswith("Right.") for words in said)


@pytest.mark.slow
def test_the_command_that_the_page_names_opens_the_notebook(environment, told):
    folder, settings = environment
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    unseen = ["--no-browser", "--allow-root", f"--port={port}"]
    with subprocess.Popen([*shlex.split(told[1]), *unseen], cwd=folder, env=settings) as server:
        try:
            file = shlex.split(told[1])[-1]
            served = json.loads(_page(f"http://127.0.0.1:{port}/api/contents/{file}?token={TOKEN}"))
            assert [cell["source"] for cell in served["content"]["cells"]] == [
                cell["source"] for cell in json.loads(texts(LAB)[file])["cells"]
            ]
            assert "JupyterLab" in _page(f"http://127.0.0.1:{port}/lab/tree/{file}?token={TOKEN}")
        finally:
            server.terminate()


def _page(address):
    """What a server gives that may yet be starting."""
    for _ in range(60):
        try:
            with urllib.request.urlopen(address, timeout=30) as answer:
                return answer.read().decode()
        except urllib.error.URLError as error:
            refused = error
            time.sleep(1)
    raise refused
