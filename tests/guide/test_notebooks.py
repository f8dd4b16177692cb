"""The branch of notebooks: all that pages link to."""

import re
from importlib.metadata import metadata

from executable_prose import labs
from executable_prose.project import settings
from executable_prose.rendering.directives.lab import offer
from guide import notebooks

SITE = "https://someone.github.io/guide/"


def test_a_folder_gets_the_files(tmp_path, monkeypatch):
    monkeypatch.setenv("SITE_URL", SITE)
    assert notebooks.main([str(tmp_path / "branch")]) == 0
    text = (tmp_path / "branch" / "tour.ipynb").read_text(encoding="utf-8")
    assert text == labs.notebook("tour", True, SITE)
    monkeypatch.delenv("SITE_URL")
    assert "expected a folder and the address of the site" in notebooks.main([str(tmp_path / "again")])


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
    assert linked | {"README.md", "requirements.txt", "runtime.txt"} == set(notebooks.files(SITE))


def test_binder_is_told_a_python_that_the_pins_support():
    told = re.fullmatch(r"python-3\.(\d+)\n", notebooks.files(SITE)["runtime.txt"])[1]
    for package in settings().notebooks.needs:
        oldest = re.fullmatch(r">=\s*3\.(\d+)", metadata(package)["Requires-Python"])[1]
        assert int(told) >= int(oldest), package
