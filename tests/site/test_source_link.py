"""The link to the repository, which only the published site has, asks nobody for anything."""

import shutil

import pytest
from bs4 import BeautifulSoup

from executable_prose.project import ROOT
from prose_testing.projects import MATERIAL, Project

ADDRESS = "https://github.com/example/guide"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    theme = f"{MATERIAL}  custom_dir: templates\n"
    trial = Project(tmp_path_factory.mktemp("source"), theme=theme, files={"docs/index.md": "# Home\n"})
    shutil.copytree(ROOT / "guide/templates", trial.root / "templates")
    trial.environment |= {"REPOSITORY_URL": ADDRESS}
    done = trial.run("mkdocs", "build", "--strict")
    assert done.code == 0, done.output
    return BeautifulSoup(trial.page(), "html.parser")


def test_it_leads_to_the_repository_and_names_it(page):
    links = page.select(".md-source")
    assert links
    for link in links:
        assert link["href"] == ADDRESS and link["title"]
        assert "GitHub" in link.text
        assert link.select_one("svg")


def test_no_script_takes_it_for_its_own(page):
    assert not page.select("[data-md-component=source]")
