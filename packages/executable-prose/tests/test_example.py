"""The example of the README, built and tested as its reader would."""

import json
import re
import shutil
import subprocess
import sys

import pytest
from bs4 import BeautifulSoup

from prose_testing.projects import PACKAGE

EXAMPLE, README = PACKAGE / "example", PACKAGE / "README.md"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("of another") / "site"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns(".cache", "site", "__pycache__"))
    return folder


def run(site, *command):
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=site, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def built(site):
    said = run(site, "executable_prose", "build")
    assert "3 exhibits ran, 0 cached" in said
    return site / "site"


def soup(built, page=""):
    return BeautifulSoup((built / page / "index.html").read_text(encoding="utf-8"), "html.parser")


def test_a_page_has_its_numbers_its_figure_and_its_claim(built):
    page = soup(built)
    assert [each.text for each in page.select(".number")] == ["3", "18.8%"]
    assert page.select_one("svg.figure")["aria-label"].startswith("The sum of three sines is nearly square")
    assert page.select_one("a.claim")["href"] == "claims/#square-is-odd"
    assert soup(built, "claims").select_one("#square-is-odd").text.startswith("The wave at")


def test_a_figure_moves_by_files_that_the_build_brings(built):
    page = soup(built, "moving")
    script = page.select_one("script[type=module]")["src"]
    assert (built / "moving" / script).resolve().is_file() and (built / "assets" / "figures.css").is_file()
    data = json.loads(page.select_one("figure[data-live] script").string)
    assert data["controls"]["shift"]["step"] == 0.05


@pytest.mark.slow
def test_an_edit_runs_what_it_concerns(built, site):
    file = site / "examples" / "first.py"
    file.write_text(file.read_text(encoding="utf-8").replace("(3, 30, 300)", "(3, 30)"), encoding="utf-8")
    said = run(site, "executable_prose", "results")
    assert re.findall(r"^ +ran .* (\S+)$", said, re.M) == ["first.more_terms"]
    shutil.copy(EXAMPLE / "examples" / "first.py", file)


@pytest.mark.slow
def test_its_own_tests_pass_with_the_plugin(site):
    assert " passed" in run(site, "pytest", "tests", "-q", "-p", "no:cacheprovider")
    assert "held by tests/test_shapes.py" in run(site, "executable_prose", "claims")


def test_the_readme_configures_as_the_example_does():
    told = README.read_text(encoding="utf-8")
    fences = dict(re.findall(r"```(yaml|toml)\n(.*?)```", told, re.S))
    plain = lambda text: {" ".join(line.partition("#")[0].split()) for line in text.splitlines()}  # noqa: E731
    assert plain(fences["yaml"]) <= plain((EXAMPLE / "mkdocs.yml").read_text(encoding="utf-8"))
    keys = re.compile(r"^(\w+) =", re.M)
    assert keys.findall(fences["toml"]) == keys.findall(
        (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")
    )
