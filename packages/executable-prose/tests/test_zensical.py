"""The same mkdocs.yml builds with Zensical, which succeeds Material for MkDocs, and nothing is lost."""

import re

import pytest

from prose_testing.projects import FILES, MATERIAL, Project
from prose_testing.successor import Both

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
def both(tmp_path_factory):
    files = FILES | NOTEBOOKS | {"docs/index.md": PAGE}
    return Both(Project(tmp_path_factory.mktemp("zensical"), MATERIAL, files=files))


@pytest.fixture
def project(both):
    return both.project


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
def test_a_page_has_the_same_from_both(both, what, count):
    both.check(what, count)


def test_the_list_of_claims_is_the_same_from_both(both):
    assert all(page.select_one("#scaling-scales") for page in both.pages("claims/index.html"))
    both.check("details", page="claims/index.html")


def test_without_the_plugin_a_link_to_a_notebook_leads_to_its_source(both, project):
    _, page = both.pages("walk/index.html")
    assert page.find("a", string="Read it")["href"] == "../notebooks/walk.py"
    assert (project.root / "site/notebooks/walk.py").is_file()


def test_an_edited_snippet_reaches_the_page(project):
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
def test_an_error_stops_it_with_page_line_and_cause(project, text, message):
    page = project.root / "docs" / "trial.md"
    page.write_text(f"---\ntitle: Trial\n---\n\n# Trial\n\n{text}\n")
    try:
        done = project.run("zensical", "build")
    finally:
        page.unlink()
    assert done.code != 0
    assert re.search(rf"BuildFault: docs/trial\.md:7: {re.escape(message)}", done.output)
