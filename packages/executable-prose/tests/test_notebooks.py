"""Notebooks on their pages, by mkdocs-jupyter: what stands there, when they run again, what stops a build."""

import pytest
from bs4 import BeautifulSoup
from jupyter_client.kernelspec import NoSuchKernel
from mkdocs.exceptions import Abort

from prose_testing.fixtures import build_here
from prose_testing.projects import FILES

WALK = """
    # %% [markdown]
    # # A walk
    #
    # Scale $x^2$, see [home](../index.md#scaling).

    # %%
    from snippets.scale import scaled

    print(scaled(1.0), "<")

    # %% [markdown]
    # ## The way down

    # %% alt="A line that falls."
    import matplotlib.pyplot as plt

    plt.plot([scaled(2.0), 0])
    plt.show()
    """

PLUGIN = """\
  - mkdocs-jupyter:
      include: ["notebooks/*.py"]
      ignore: ["*.md"]
      execute: !ENV [EXECUTE_NOTEBOOKS, false]
      allow_errors: false
      cache: false
"""
PROJECT = FILES | {
    "docs/notebooks/walk.py": WALK,
    "requirements.txt": "matplotlib==3.1\ntorch==2.1\n",
}


@pytest.fixture
def built(lively, known, monkeypatch):
    """A function that builds the site as the files are and gives the page of the notebook, parsed."""
    monkeypatch.delenv("EXECUTE_NOTEBOOKS", raising=False)
    monkeypatch.chdir(lively.root)
    monkeypatch.setenv("JUPYTER_PATH", "")  # where the build adds a folder
    lively.configure("")
    lively.edit("mkdocs.yml", "plugins: []", f"plugins:\n{PLUGIN}")
    lively.edit("mkdocs.yml", "\nplugins", "\ntheme:\n  name: null\n  custom_dir: theme\nplugins")

    def built():
        known.invalidate()
        build_here(lively, known)
        return BeautifulSoup(lively.page("notebooks/walk/index.html"), "html.parser")

    return built


def test_a_notebook_stands_on_its_page_with_what_it_gave(built):
    page = built()
    assert page.select_one("p math msup")
    assert page.select_one("a[href='../../#scaling']")
    assert page.select_one(".highlight span").text == "from"
    assert page.select_one(".printed").text.strip() == "2.0 <"
    assert page.select_one("figure svg[role=img]")["aria-label"] == "A line that falls."
    assert page.select_one("h2#the-way-down")
    assert len(page.select("#code-7, #printed-7, #code-15")) == 3
    assert [link["download"] for link in page.select("a[download]")] == ["walk.ipynb"]
    assert not page.select("style, script[src], .jp-Notebook")


def test_a_notebook_runs_again_when_a_snippet_changed_and_not_otherwise(built, ask, files):
    built()
    assert ask() == set()
    files.edit("snippets/scale.py", "SCALE = 2.0", "SCALE = 3.0")
    assert built().select_one(".printed").text.strip() == "3.0 <"
    files.edit("snippets/scale.py", '"""x, scaled."""', '"""x, otherwise explained."""')
    assert ask() == set()


@pytest.fixture
def edit(files):
    """A function that edits the notebook until the test has ended."""
    yield lambda old, new: files.edit("docs/notebooks/walk.py", old, new)
    files.write({"docs/notebooks/walk.py": WALK})


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        (
            'print(scaled(1.0), "<")',
            "1 / 0",
            "ZeroDivisionError: division by zero (at docs/notebooks/walk.py:9)",
        ),
        ("$x^2$", r"$\frac{x$", "docs/notebooks/walk.py:4: bad TeX in"),
        (
            "../index.md#scaling",
            "../nowhere.md",
            "docs/notebooks/walk.py:4: the link '../nowhere.md' leads to no",
        ),
        ('alt="A line that falls."', "", "it draws a figure, so it needs alt="),
    ],
)
def test_what_cannot_be_made_stops_the_build_with_its_line(built, edit, log, was, now, said):
    edit(was, now)
    with pytest.raises(Abort):
        built()
    assert said in log.getvalue()


def test_an_anchor_that_is_not_there_is_told_with_its_line(built, edit, log):
    edit("#scaling", "#nothing")
    built()
    assert "docs/notebooks/walk.py:4: Doc file 'notebooks/walk.py' contains a link" in log.getvalue()


def test_an_option_that_the_plugin_does_not_have_is_told(built, lively, log):
    lively.edit("mkdocs.yml", "      allow_errors: false\n", "      allow_error: false\n")
    built()
    assert "Unrecognised configuration name: allow_error" in log.getvalue()


def test_a_kernel_that_is_missing_stops_the_build(built, lively, monkeypatch):
    monkeypatch.setenv("EXECUTE_NOTEBOOKS", "true")
    lively.edit("mkdocs.yml", "      allow_errors: false\n", "      kernel_name: nobody\n")
    with pytest.raises(NoSuchKernel, match="No such kernel named nobody"):
        built()


@pytest.mark.slow
def test_what_a_kernel_prints_is_held_to_what_stands_on_the_page(built, edit, monkeypatch, log):
    monkeypatch.setenv("EXECUTE_NOTEBOOKS", "true")
    edit('"<")', '"in Jupyter" if "get_ipython" in globals() else "on the page")')
    with pytest.raises(Abort):
        built()
    assert r"walk.py:7: Jupyter printed '2.0 in Jupyter\n', the build '2.0 on the page\n'" in log.getvalue()
