"""The same mkdocs.yml builds with Zensical, which succeeds Material for MkDocs, and nothing is lost."""

import re

import pytest
from bs4 import BeautifulSoup

from prose_testing.projects import FILES, MATERIAL, Project

WALK = """
    # %% [markdown]
    # # A walk

    # %%
    from snippets.scale import scaled

    print(scaled(1.0))
    """
NOTEBOOKS = {
    "docs/walk.md": "# Walks\n\n[Read it](notebooks/walk.py)\n",
    "docs/notebooks/walk.py": WALK,
    "requirements.txt": "matplotlib==3.1\ntorch==2.1\n",
}
PAGE = FILES["docs/index.md"].replace(
    "# Scaling\n",
    "# Scaling\n\n        $$\n        \\frac{a}{b}\n        $$\n\n        See [how](#the-idea).\n",
)
PAGE += '\n## The idea\n\n??? note "A line"\n\n    It rises.\n'


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return Project(
        tmp_path_factory.mktemp("zensical"), MATERIAL, files=FILES | NOTEBOOKS | {"docs/index.md": PAGE}
    )


@pytest.fixture(scope="module")
def sites(project):
    """A function that gives a page of both sites, parsed."""
    for command in (["mkdocs", "build", "--strict", "--site-dir", "mkdocs-site"], ["zensical", "build"]):
        done = project.run(*command)
        assert done.code == 0, done.output

    def pages(name="index.html"):
        for site in ("mkdocs-site", "site"):
            # Zensical reads this mark itself, and Material's search plugin does.
            text = (
                project.page(name, site)
                .replace(' data-search-exclude=""', "")
                .replace(" data-search-exclude", "")
            )
            yield BeautifulSoup(text, "html.parser").select_one("article, main")

    return pages


@pytest.mark.parametrize(
    ("what", "count"),
    [
        ("figure svg.figure text", None),
        ("figure figcaption math", 1),
        ("details.code pre", None),
        (".printed pre", 1),
        ("span.value", 1),
        ("a.claim", 1),
        (".place a", 1),
        (".diagram svg[role=img] title", 1),
        (".formula math[display=block] mfrac", 1),
        ("details.note", 2),
    ],
)
def test_a_page_has_the_same_from_both(sites, what, count):
    mkdocs, zensical = (page.select(what) for page in sites())
    assert mkdocs
    assert count is None or len(mkdocs) == count
    assert [str(element) for element in mkdocs] == [str(element) for element in zensical]


def test_the_list_of_claims_is_the_same_from_both(sites):
    mkdocs, zensical = sites("claims/index.html")
    assert mkdocs.select_one("#scaling-scales")
    assert zensical.select_one("#scaling-scales")
    assert [str(e) for e in mkdocs.select("details")] == [str(e) for e in zensical.select("details")] != []


def test_without_the_plugin_a_link_to_a_notebook_leads_to_its_source(project, sites):
    _, page = sites("walk/index.html")
    assert page.find("a", string="Read it")["href"] == "../notebooks/walk.py"
    assert (project.root / "site/notebooks/walk.py").is_file()


def test_an_edited_snippet_reaches_the_page(project, sites):
    project.edit("snippets/scale.py", "2.0", "3.0")
    try:
        done = project.run("zensical", "build")
        assert done.ran() == {"lines.rising", "lab-walk"}
        assert ">3.00<" in project.page()
    finally:
        project.edit("snippets/scale.py", "3.0", "2.0")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("`#!val lines.rising.start`", "exhibit 'lines.rising' returns no value 'start'"),
        (r"$\frac{a}$", "bad TeX in "),
        ("```mermaid\nflowchart LR\n```", "the diagram cannot be drawn"),
    ],
)
def test_an_error_stops_it_with_page_line_and_cause(project, sites, text, message):
    page = project.root / "docs" / "trial.md"
    page.write_text(f"---\ntitle: Trial\n---\n\n# Trial\n\n{text}\n")
    try:
        done = project.run("zensical", "build")
    finally:
        page.unlink()
    assert done.code != 0
    assert re.search(rf"BuildFault: docs/trial\.md:7: {re.escape(message)}", done.output)
