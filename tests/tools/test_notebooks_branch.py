"""The branch of notebooks: the same commit for the same sources, and all that pages link to."""

import re
import subprocess
from importlib.metadata import metadata

import pytest

from executable_prose import labs
from executable_prose.project import settings
from executable_prose.rendering.directives.lab import offer
from tools import notebooks_branch

SITE = "https://someone.github.io/guide/"


def git(folder, *command):
    return subprocess.run(["git", *command], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def remote(tmp_path_factory):
    folder = tmp_path_factory.mktemp("remote")
    git(folder, "init", "--quiet", "--bare")
    return folder


def test_the_same_sources_give_the_same_commit_without_history(remote):
    commits = []
    for _ in range(2):
        notebooks_branch.push(str(remote), SITE)
        commits.append(git(remote, "log", "--format=%H", labs.BRANCH).split())
    assert commits[0] == commits[1] and len(commits[0]) == 1
    text = git(remote, "show", f"{labs.BRANCH}:tour.ipynb")
    assert text == labs.notebook("tour", True, SITE)


def test_where_the_repository_is_elsewhere_or_not_set_the_file_is_in_the_link():
    for repository in ("", "https://elsewhere.org/someone/guide"):
        made = offer("tour", {"site": SITE, "repository": repository})
        assert "data:application/x-ipynb" in made and "colab" not in made and "binder" not in made


def test_what_pages_link_to_is_what_is_published():
    linked = set()
    for name in labs.notebooks():
        made = offer(name, {"site": SITE, "repository": "https://github.com/someone/guide"})
        assert "data:" not in made and len(made) < 1500
        assert re.search(r"https://colab.research.google.com/github/someone/guide/blob/notebooks/\w", made)
        assert re.search(r"https://mybinder.org/v2/gh/someone/guide/notebooks\?labpath=\w", made)
        assert "https://raw.githubusercontent.com/someone/guide/notebooks/" in made
        linked |= set(re.findall(r"(?:/notebooks/|labpath=)([\w-]+\.ipynb)\"", made))
    assert linked | {"README.md", "requirements.txt", "runtime.txt"} == set(notebooks_branch.files(SITE))


def test_binder_is_told_a_python_that_the_pins_support():
    told = re.fullmatch(r"python-3\.(\d+)\n", notebooks_branch.files(SITE)["runtime.txt"])[1]
    for package in settings().notebooks.needs:
        oldest = re.fullmatch(r">=\s*3\.(\d+)", metadata(package)["Requires-Python"])[1]
        assert int(told) >= int(oldest), package
