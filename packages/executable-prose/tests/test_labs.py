"""A lab: its cells, its page, its notebooks, when it runs again, and what stops the build."""

import json
import re
from urllib.parse import unquote

import nbformat
import pytest
from bs4 import BeautifulSoup
from mkdocs.exceptions import Abort

from executable_prose import labs
from executable_prose.errors import BuildFault
from prose_testing.fixtures import build_here
from prose_testing.lab import PROJECT  # noqa: F401 - read by the fixture `lively`


@pytest.fixture
def built(lively, known, monkeypatch):
    """A function that builds the site as the files are and gives the page of the lab, parsed."""

    def built():
        known.invalidate()
        build_here(lively, known)
        return BeautifulSoup(lively.page("labs/scaling/index.html"), "html.parser")

    return built


@pytest.fixture
def soup(built):
    return built()


def test_the_cells_stand_on_the_page_in_their_order_with_the_solution_below_the_hints(soup):
    text = soup.get_text()
    order = [
        "Lab: scale",
        "import torch",
        "2.0 <",
        "return x\n",
        "check_half(yours)",
        "passed =",
        "wrong, 2.0",
    ]
    order += ["Hint 1", "Divide by", "A solution", "return x / 2", "right", "import matplotlib", "The end."]
    assert [words for words in order if words not in text] == []
    places = [text.index(words) for words in order]
    assert places == sorted(places)


def test_prose_of_a_lab_is_prose_of_the_page(soup):
    assert soup.select_one("h1").get_text().startswith("Lab: scale")
    assert soup.select_one("p math")
    assert soup.select_one("a[href='../../#scaling']")
    hint = next(each for each in soup.select("details") if each.summary.text == "Hint 1")
    assert hint.strong.text == "two"


def test_solution_and_check_are_folded_and_starter_and_figure_are_not(soup):
    folded = {each.summary.text: each for each in soup.select("details")}
    assert set(folded) == {"What the check tries", "Hint 1", "A solution"}
    assert not any(each.has_attr("open") for each in folded.values())
    assert folded["A solution"].select_one(".printed").text == "right\n"
    figure = soup.select_one("figure svg.figure")
    assert figure["aria-label"] == "A line that falls."
    assert not figure.find_parent("details")


def downloads(soup):
    return {
        link["download"]: json.loads(unquote(link["href"].partition(",")[2]))
        for link in soup.select("a[download]")
    }


def test_the_page_offers_both_notebooks_whole(soup):
    found = downloads(soup)
    assert set(found) == {"scaling.ipynb", "scaling-solution.ipynb"}
    for notebook in found.values():
        nbformat.validate(notebook)
        sources = [cell["source"] for cell in notebook["cells"]]
        files = ["judge.py", "scale.py", "scaling.toml", "scaling.py"]
        assert [source.partition("\n")[0] for source in sources[1:5]] == [f"%%writefile {f}" for f in files]
        assert "def judge(yours, x):" in sources[1] and "def scaled(x):" in sources[2]
        assert "You return x." in sources[3]
        assert sources[4].endswith('\n# %% tags=["solution"]\ndef half(x):\n    return x / 2')
        assert "from judge import judge\nfrom scale import scaled\n" in sources[5]
        assert "pip install torch==2.1 matplotlib==3.1\n" in sources[0]
    tags = {name: [c["metadata"].get("tags") for c in found[name]["cells"]] for name in found}
    assert ["starter"] in tags["scaling.ipynb"] and ["solution"] not in tags["scaling.ipynb"]
    assert ["solution"] in tags["scaling-solution.ipynb"] and ["starter"] not in tags[
        "scaling-solution.ipynb"
    ]


def test_links_of_a_notebook_lead_to_the_site_and_hints_are_for_jupyter(soup):
    first = downloads(soup)["scaling.ipynb"]["cells"][0]["source"]
    assert "[home](http://127.0.0.1:8000/#scaling)" in first
    assert "[elsewhere](https://example.org/a.md)" in first
    assert "<http://127.0.0.1:8000/labs/scaling/>" in first
    assert "markdown=" not in json.dumps(downloads(soup))


@pytest.mark.parametrize(
    ("name", "old", "new", "runs"),
    [
        ("snippets/scale.py", "2.0", "3.0", {"lab-scaling", "lines.rising"}),
        ("labs/judge.py", "wrong,", "not so,", {"lab-scaling"}),
        ("labs/scaling.py", "The end.", "It ends.", {"lab-scaling"}),
        ("exhibits/words.py", "seven", "six", {"words.spoken"}),
        ("labs/scaling.toml", "You return", "You give back", {"lab-scaling"}),
    ],
)
def test_an_edit_runs_the_labs_that_use_it(ask, files, name, old, new, runs):
    files.edit(name, old, new)
    assert ask() == runs


def test_the_page_shows_what_an_edit_changed(built, files):
    files.edit("snippets/scale.py", "2.0", "3.0")
    text = built().get_text()
    assert "3.0 <" in text and "2.0 <" not in text


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        (
            "labs/scaling.py",
            'print(scaled(1.0), "<")',
            "print([][0])",
            "lab 'scaling' failed: IndexError: list index out of range (at labs/scaling.py:12), "
            "in the cell at labs/scaling.py:7",
        ),
        (
            "labs/judge.py",
            "print(",
            "raise ValueError(",
            "lab 'scaling' failed: ValueError: right (at labs/judge.py:2), in the cell at labs/scaling.py:30",
        ),
        (
            "labs/scaling.py",
            "    return x\n",
            "    return {}\n",
            "(at labs/scaling.py:42), in the cell at labs/scaling.py:40",
        ),
        (
            "labs/scaling.py",
            "plt.plot([half(2.0), 0])",
            "plt.plot([float(half(2.0)), 0])\nplt.figure()",
            "lab 'scaling' failed: a cell draws one figure, this one draws 2 (at labs/scaling.py:40), "
            "in the cell at labs/scaling.py:40",
        ),
        (
            "labs/scaling.py",
            ' alt="A line that falls."',
            "",
            "lab 'scaling' failed: it draws a figure, so it needs alt=\"…\"",
        ),
        (
            "labs/scaling.py",
            "\nplt.plot([half(2.0), 0])\n",
            "\n",
            "lab 'scaling' failed: it draws no figure, and has alt=\"…\"",
        ),
        (
            "labs/scaling.py",
            "passed = check_half(half)",
            "half(2.0)",
            "lab 'scaling' failed: it ends in a value that a notebook would show",
        ),
        (
            "labs/scaling.py",
            "def half(x):\n    return x / 2",
            "def half(x:\n    return x / 2",
            "lab 'scaling' failed: SyntaxError: '(' was never closed (scaling.py, line 20) "
            "(at labs/scaling.py:20), in the cell at labs/scaling.py:20",
        ),
    ],
    ids=["cell", "file", "starter", "two figures", "no alt", "no figure", "value", "syntax"],
)
def test_what_goes_wrong_in_a_cell_stops_the_build_with_its_place(built, files, log, name, old, new, said):
    files.edit(name, old, new)
    with pytest.raises(Abort):
        built()
    assert "docs/labs/scaling.md:5: lab 'scaling' failed: " in log.getvalue()
    assert said in log.getvalue()


# Cells


@pytest.fixture
def lab(here):
    """A function that writes a lab and reads its cells."""

    def lab(text):
        here.write({"labs/trial.py": text})
        return labs.cells("trial")

    return lab


def test_cells_know_what_and_where_they_are(lab):
    first, second = lab(
        '# %% [markdown]\n# Text\n#\n#     more\n\n# %% tags=["judge"] alt="A \\"b\\"."\n\n\nx = 1\n\n'
    )
    assert first == (True, "", "", 2, ["Text", "", "    more"])
    assert second == (False, "judge", 'A "b".', 9, ["x = 1"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\n", "a lab begins with a cell, '# %% [markdown]' (at labs/trial.py:1)"),
        ("", "a lab begins with a cell, '# %% [markdown]' (at labs/trial.py:1)"),
        ('# %%\nx = 1\n# %% tags=["check", "judge"]\ny = 1\n', "(at labs/trial.py:3)"),
        ('# %% tags=["chek"]\ny = 1\n', 'one of tags=["starter"], tags=["solution"], tags=["judge"]'),
        ("# %% tags=['starter']\ny = 1\n", "got \"# %% tags=['starter']\" (at labs/trial.py:1)"),
        ('# %% tags="starter"\ny = 1\n', "(at labs/trial.py:1)"),
        ('# %% tags=[{"a": 1}]\ny = 1\n', "(at labs/trial.py:1)"),
        ('# %% alt=["A"]\ny = 1\n', "(at labs/trial.py:1)"),
        ("# %%\n# only\n\n    # words\n", "expected code, the cell has only comments (at labs/trial.py:1)"),
        ("# %% title\ny = 1\n", "got '# %% title' (at labs/trial.py:1)"),
        ('# %% title="A"\ny = 1\n', "(at labs/trial.py:1)"),
        ("# %%\n\n# %%\nx = 1\n", "the cell is empty (at labs/trial.py:1)"),
        ("# %% [markdown]\n# a\nb\n", "a line of prose begins with '# ' (at labs/trial.py:3)"),
    ],
)
def test_a_file_that_is_no_lab_is_refused(lab, text, said):
    with pytest.raises(labs.LabError, match=re.escape(said)):
        lab(text)


@pytest.mark.parametrize(
    "line",
    ["import snippets.scale", "from snippets import scale", "    from snippets.a import b", "import labs"],
)
def test_an_import_that_a_notebook_could_not_have_is_refused(lab, line):
    lab(f"# %% [markdown]\n# a\n\n# %%\nif True:\n    pass\n{line}\n")
    with pytest.raises(labs.LabError, match=re.escape(f"got {line!r} (at labs/trial.py:7)")):
        labs.files("trial")


def test_a_notebook_without_a_version_to_ask_for_is_refused(here, lab):
    lab("# %% [markdown]\n# # A\n")
    here.write({"requirements.txt": "matplotlib==1\n"})
    with pytest.raises(labs.LabError, match=re.escape("expected a line 'torch==…'")):
        labs.notebook("trial", True, "")


SOLVED = '# %% tags=["solution"]\ndef half(x):\n    return x / 2\n'


@pytest.mark.parametrize(
    ("mistakes", "said"),
    [
        (
            '[[half]]\nwas = "x / 3"\nways = []\n',
            ":1: expected 'x / 3' once in the solution of half",
        ),
        (
            '\n[[half]]\nwas = "x"\nways = [{now = "y", says = "A."}]\n',
            ":2: expected 'x' once in the solution of half, got it 2",
        ),
        ('[[half]]\nwas = "x / 2"\nnow = "x"\n', ":1: a mistake has was and ways, got was, now"),
        ('\n[[half]]\nwas = "x / 2"\nways = [{now = "x"}]\n', ":2: a way has now and says, got now"),
        ("[[third]]\n", ": expected [[function]] of a solution, got 'third'"),
        ("half = 2\n", ": expected [[function]] of a solution, got 'half'"),
        ("[[half]\n", ": Expected"),
    ],
)
def test_a_mistake_that_is_no_edit_of_a_solution_is_refused(here, lab, mistakes, said):
    lab(SOLVED)
    here.write({"labs/trial.toml": mistakes})
    with pytest.raises(labs.LabError, match=re.escape(f"labs/trial.toml{said}")):
        labs.check_mistakes("trial")


def test_mistakes_that_are_edits_are_taken_and_no_file_of_them_is_needed(here, lab):
    lab(SOLVED)
    labs.check_mistakes("trial")
    mistakes = '[[half]]\nwas = "x / 2"\nways = [{now = ["x", "2"], says = "A."}, {now = "", says = "B."}]\n'
    here.write({"labs/trial.toml": mistakes * 2})
    labs.check_mistakes("trial")


def test_only_files_of_cells_are_labs(here):
    here.write({"labs/judge.py": "x = 1\n", "labs/b.py": "# %%\nx = 1\n", "labs/a.py": "# %%\nx = 1\n"})
    assert labs.names() == ["a", "b"]


def test_a_page_that_names_no_lab_is_refused(page):
    with pytest.raises(BuildFault, match=re.escape("docs/index.md:3: no file labs/gone.py")):
        page("# A\n\n```lab gone\n```\n")


def test_bad_mathematics_in_a_lab_is_found_in_its_file(here, page):
    here.write(
        {
            "labs/trial.py": "# %% [markdown]\n# # A\n#\n# So $\\frac{a}$.\n",
            "requirements.txt": "torch==1\nmatplotlib==1\n",
        }
    )
    with pytest.raises(BuildFault, match=re.escape("labs/trial.py:4: bad TeX")):
        page(
            "```lab trial\n```\n",
            **{"lab-trial": {"solved": [{"output": "", "figure": None}], "started": [""]}},
        )
