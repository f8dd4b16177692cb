"""What counts as a file of the project, and what its digest is."""

import json
import subprocess
import sys
import sysconfig

import pytest

from executable_prose import project
from prose_testing.projects import FILES, Project


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("snippets/a.py", "snippets/a.py"),
        ("snippets/../exhibits/b.json", "exhibits/b.json"),
        ("not/there/yet", "not/there/yet"),
        ("snippets/__pycache__/a.pyc", None),
        (".cache/executable_prose/x.json", None),
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


def test_a_link_in_the_project_is_the_projects_wherever_it_leads(here, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "data.txt"
    outside.write_text("one")
    (here.root / "exhibits" / "data.txt").symlink_to(outside)
    assert project.relative(outside) is None
    assert project.relative(here.root / "exhibits" / "data.txt") == "exhibits/data.txt"
    before = project.digest("exhibits/data.txt")
    outside.write_text("two")
    assert project.digest("exhibits/data.txt") not in (before, None)


def test_a_link_to_the_project_leads_to_its_files(here, tmp_path_factory):
    other = tmp_path_factory.mktemp("other") / "name"
    other.symlink_to(here.root)
    assert project.relative(other / "snippets" / "a.py") == "snippets/a.py"


@pytest.mark.parametrize("above", [0, 1])
def test_a_project_inside_a_virtual_environment_has_files_of_its_own(here, monkeypatch, above):
    prefix = [here.root, here.root.parent][above]
    monkeypatch.setattr(sys, "prefix", str(prefix))
    libraries = sysconfig.get_path("purelib", vars={"base": str(prefix)})
    assert project.relative(f"{libraries}/torch.py") is None
    assert project.relative(here.root / "snippets" / "a.py") == "snippets/a.py"


@pytest.mark.slow
def test_exhibits_run_in_a_project_that_is_its_own_virtual_environment(tmp_path):
    """The layout of `python -m venv .`"""
    home = Project(tmp_path.resolve(), files={n: FILES[n] for n in FILES if n.startswith("exhibits/")})
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home.root], check=True)
    libraries = sysconfig.get_path("purelib", vars={"base": str(home.root), "platbase": str(home.root)})
    (home.root / libraries / "real.pth").write_text(sysconfig.get_path("purelib"))
    python = sysconfig.get_path("scripts", vars={"base": str(home.root)}) + "/python"
    ask = "import json; from executable_prose.execution.run_exhibit import run; "
    ask += "print(json.dumps(vars(run('words.spoken'))))"
    done = subprocess.run(
        [python, "-c", ask], cwd=home.root, env=home.environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["result"]["output"] == "seven < eight\n"
    assert set(outcome["modules"]) == {"exhibits/__init__.py", "exhibits/words.py", "torch.py"}


def test_the_digest_of_a_file_is_that_of_its_bytes(here):
    here.write({"a": "one", "b": "one", "c": "two"})
    assert project.digest("a") == project.digest("b") != project.digest("c")


def test_what_is_not_a_file_has_no_digest(here):
    assert project.digest("docs") is None
    assert project.digest("none") is None
    assert project.digest("none//") is None
    assert project.digest("docs/claims.md//") is None


def test_the_digest_of_a_folder_is_that_of_the_names_in_it(here):
    here.write({"data/b.txt": "1", "data/a.txt": "2"})
    before = project.digest("data//")
    here.write({"data/a.txt": "other", "data/__pycache__/a.pyc": ""})
    assert project.digest("data//") == before
    here.write({"data/c.txt": ""})
    assert project.digest("data//") != before


def test_the_projects_own_folder_has_a_digest(here):
    before = project.digest(".//")
    here.write({"new": ""})
    assert project.digest(".//") not in (before, None)
