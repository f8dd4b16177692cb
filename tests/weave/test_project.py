"""What counts as a file of the project, and what its digest is."""

import sys

import pytest

from weave import project


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("snippets/a.py", "snippets/a.py"),
        ("snippets/../exhibits/b.json", "exhibits/b.json"),
        ("not/there/yet", "not/there/yet"),
        ("snippets/__pycache__/a.pyc", None),
        (".cache/weave/x.json", None),
        ("docs/.hidden/a", None),
        ("../elsewhere.py", None),
    ],
)
def test_a_file_is_named_from_the_projects_folder_or_is_not_the_projects(here, path, name):
    assert project.relative(here.root / path) == name
    assert project.relative(bytes(here.root / path)) == name
    assert project.relative(str(here.root / path)) == name


def test_a_virtual_environment_in_the_project_is_not_the_projects(here, monkeypatch):
    monkeypatch.setattr(sys, "prefix", str(here.root / "env"))
    assert project.relative(here.root / "env" / "lib" / "torch.py") is None
    assert project.relative(here.root / "environment.py") == "environment.py"


def test_the_digest_of_a_file_is_that_of_its_bytes(here):
    here.write({"a": "one", "b": "one", "c": "two"})
    assert project.digest("a") == project.digest("b") != project.digest("c")


def test_what_is_not_a_file_has_no_digest(here):
    assert project.digest("docs") is None
    assert project.digest("none") is None
    assert project.digest("none/") is None
    assert project.digest("docs/claims.md/") is None


def test_the_digest_of_a_folder_is_that_of_the_names_in_it(here):
    here.write({"data/b.txt": "1", "data/a.txt": "2"})
    before = project.digest("data/")
    here.write({"data/a.txt": "other", "data/.hidden": "", "data/__pycache__/a.pyc": ""})
    assert project.digest("data/") == before
    here.write({"data/c.txt": ""})
    assert project.digest("data/") != before


def test_the_projects_own_folder_has_a_digest(here):
    before = project.digest("./")
    here.write({"new": ""})
    assert project.digest("./") not in (before, None)
