"""Every lab: its solution passes, its check teaches, its notebooks run anywhere."""

import ast
import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
import venv

import jupytext
import nbformat
import pytest
import yaml

from executable_prose import labs
from executable_prose.project import DOCS, ROOT, settings
from tests.docs.test_prose import typed_numbers
from tests.labs.rehearsal import Rehearsal
from tests.rows import each_of

LABS = labs.names()
HOME = "https://example.org/guide/"
every_lab = pytest.mark.parametrize("name", LABS)


def read(path):
    return tomllib.loads((ROOT / path).read_text(encoding="utf-8"))


def mistakes(name):
    """Every (step, was, now, says) that the checks of a lab are to know."""
    for step, listed in read(labs.mistakes(name)).items():
        for was, way in [(each["was"], way) for each in listed for way in each["ways"]]:
            for now in [way["now"]] if isinstance(way["now"], str) else way["now"]:
                yield step, was, now, way["says"]


def wrong(name):
    """Every (was, now, says) of more wrong answers; says is "" where the check has no words for one."""
    listed = read(f"tests/labs/{name}.toml")["wrong"]
    return [(each["was"], way["now"], way.get("says", "")) for each in listed for way in each["ways"]]


@pytest.fixture(scope="module")
def solved():
    """A function that gives a lab run with its solutions, once for all tests."""
    done = {}
    return lambda name: done.get(name) or done.setdefault(name, Rehearsal(name))


def prose(name):
    return "\n\n".join(cell.text for cell in labs.cells(name) if cell.prose)


def test_there_are_labs():
    assert LABS


@every_lab
def test_every_check_accepts_the_solution(solved, name):
    assert solved(name).verdicts
    for passed, said in solved(name).verdicts:
        assert passed is True and said.startswith("Right."), said


@every_lab
def test_every_check_says_what_the_starter_lacks(name):
    for passed, said in Rehearsal(name, left_out="solution").verdicts:
        assert passed is False and said.startswith("Not yet."), said
        assert len(said.split()) >= 8, "say what is missing"


LONG = {"check_reach", "attend_step"}  # some ten seconds each


@pytest.mark.parametrize(
    ("name", "step"),
    [
        pytest.param(name, step, id=f"{name}-{step}", marks=pytest.mark.slow if step in LONG else ())
        for name in LABS
        for step in read(labs.mistakes(name))
    ],
)
def test_every_mistake_is_told_from_the_solution_and_from_all_others(solved, subtests, name, step):
    listed = [mistake for mistake in mistakes(name) if mistake[0] == step]
    assert listed
    for _, was, now, says in listed:
        words = " ".join(says.split())

        def named(said, words=words):
            return words in said and "Two things." not in said

        with subtests.test(mistake=now):
            said = solved(name).with_mistake(was, now, step, named)
            assert said and named(said[-1]), f"{says!r} expected, not {said}"


@pytest.mark.slow
@every_lab
def test_no_wrong_answer_passes(solved, subtests, name):
    for was, now, says in wrong(name):
        words = " ".join(says.split())
        with subtests.test(answer=now):
            said = solved(name).with_mistake(was, now, until=lambda said, words=words: words in said)
            assert said and words in said[-1], f"{words!r} expected, not {said}"


def test_most_wrong_answers_get_words():
    answers = [answer for name in LABS for answer in wrong(name)]
    assert len(answers) >= 120
    assert sum(bool(says) for *_, says in answers) >= 2 / 3 * len(answers)


@each_of(
    ("name", "was", "now"),
    [
        (
            "compare_encodings",
            "return (back - plain).norm() / plain.norm()",
            "return float((back - plain).norm() / plain.norm())",
        ),
        ("compare_encodings", "return beyond / within", "return (beyond / within).item()"),
        (
            "compare_encodings",
            "return visible_change(here, moved) / visible_change(here, traded)",
            "return float(visible_change(here, moved) / visible_change(here, traded))",
        ),
        (
            "cached_decoding",
            "return scores.softmax(-1) @ v, (k, v, at, of)",
            "return [scores.softmax(-1) @ v, (k, v, at, of)]",
        ),
        (
            "cached_decoding",
            "return (real.cumsum(-1) - 1).clamp(min=0)",
            "return real.cumsum(-1) - real.int()",
        ),
        (
            "rope_layouts",
            "converted = dict(layer)",
            "from collections import OrderedDict; converted = OrderedDict(layer)",
        ),
        (
            "rope_from_scratch",
            "return base ** (-2 * pair / dim)",
            "return 1 / base ** (torch.arange(0, dim, 2).double() / dim)",
        ),
        (
            "rope_from_scratch",
            "cos, sin = angle.cos(), angle.sin()",
            "turned = torch.polar(torch.ones_like(angle), angle) * torch.complex(x, y)\n"
            "    return turned.real, turned.imag",
        ),
        (
            "rope_from_scratch",
            "first, second = x[..., 0::2], x[..., 1::2]",
            "pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)))\n"
            "    turned = pairs * torch.polar(torch.ones_like(angles), angles)\n"
            "    return torch.view_as_real(turned).flatten(-2).to(x.dtype)",
        ),
        (
            "rope_from_scratch",
            "first, second = x[..., 0::2], x[..., 1::2]",
            "blocks = [[angles.cos(), -angles.sin()], [angles.sin(), angles.cos()]]\n"
            "    blocks = torch.stack([torch.stack(row, -1) for row in blocks], -2)\n"
            "    whole = torch.stack([torch.block_diag(*each) for each in blocks])\n"
            "    return (whole @ x.double()[..., None])[..., 0].to(x.dtype)",
        ),
        (
            "rope_from_scratch",
            "first, second = x[..., 0::2], x[..., 1::2]",
            "angles = angles.repeat_interleave(2, dim=-1)\n"
            "    partner = torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).flatten(-2)\n"
            "    return (x * angles.cos() + partner * angles.sin()).to(x.dtype)",
        ),
        (
            "rope_from_scratch",
            "first, second = x[..., 0::2], x[..., 1::2]",
            "angles = angles.repeat(1, 2)\n"
            "    x = torch.cat((x[..., 0::2], x[..., 1::2]), dim=-1)\n"
            "    a, b = x.chunk(2, dim=-1)\n"
            "    x = (x * angles.cos() + torch.cat((-b, a), dim=-1) * angles.sin()).float()\n"
            "    return x.unflatten(-1, (2, -1)).mT.flatten(-2)",
        ),
        (
            "rope_from_scratch",
            "angles = positions[:, None] * compute_frequencies(x.shape[-1], base)",
            "angles = torch.outer(positions.float(), compute_frequencies(x.shape[-1], base).float())",
        ),
        (
            "rope_from_scratch",
            "return rotate(q, q_positions) @ rotate(k, k_positions).T",
            "return torch.einsum('id,jd->ij', rotate(q, q_positions + 7), rotate(k, k_positions + 7))",
        ),
        (
            "rope_from_scratch",
            "return torch.cat((weight[0::2], weight[1::2]))",
            "return weight.reshape(-1, 2, weight.shape[1]).transpose(0, 1).reshape(weight.shape)",
        ),
        (
            "rope_from_scratch",
            "positions = torch.arange(start, start + len(q))",
            "positions = torch.arange(len(q)) + cache[1].shape[0]",
        ),
    ],
)
def test_what_is_right_in_other_words_is_accepted(solved, name, was, now):
    assert solved(name).with_mistake(was, now) == []


def test_a_plain_number_is_right_until_zero_is_divided_by_zero(solved):
    end = "gap.square().mean().sqrt()"
    (said,) = solved("compare_encodings").with_mistake(end, f"{end}.item()")
    assert "`relativity` raises ZeroDivisionError: plain numbers cannot be divided by zero." in said


@every_lab
def test_each_step_knows_five_mistakes_or_more_and_each_once(name):
    listed = list(mistakes(name))
    for step in {step for step, *_ in listed}:
        assert len({says for of, _, _, says in listed if of == step}) >= 5, step
    edits = [(was, now) for was, now, _ in wrong(name)] + [(was, now) for _, was, now, _ in listed]
    assert len(set(edits)) == len(edits)


@every_lab
def test_a_lab_says_what_for_how_long_and_what_is_needed(name):
    cells = labs.cells(name)
    first, last = cells[0].text, cells[-1].text
    assert cells[0].prose and first.startswith("# Lab: ")
    for word in ("Goal", "Time", "You need"):
        assert re.search(rf"^\*\*{word}\.\*\* \S", first, re.M), word
    assert re.search(r"\]\(\.\./guide/\w", first.partition("**You need.**")[2]), "name a chapter"
    assert cells[-1].prose and re.search(r"^## What you can do now$", last, re.M)
    assert "](../" in last, "link back"
    assert len(re.findall(r"^# ", prose(name), re.M)) == 1


@every_lab
def test_each_step_has_a_starter_a_solution_a_check_and_hints(name):
    cells = labs.cells(name)
    steps = [cell.tag for cell in cells if cell.tag]
    assert re.fullmatch(r"((starter )+(solution )+(judge )+check )+", " ".join([*steps, ""])), steps
    hints = re.findall(r'<details markdown="1"><summary>Hint \d</summary>\n\n', prose(name))
    assert len(hints) >= 3
    assert prose(name).count("<details") == prose(name).count("\n\n</details>") == len(hints)
    checked = [
        re.fullmatch(r"passed = check_\w+\((\w+)\)", cell.lines[-1]) for cell in cells if cell.tag == "check"
    ]
    assert [found[1] for found in checked] == list(read(labs.mistakes(name)))


@every_lab
def test_no_step_begins_in_the_cell_of_the_hints_before_it(name):
    """A page folds the solution below the hints, and above what follows in another cell."""
    for cell in labs.cells(name):
        if cell.prose and "<details" in cell.text:
            assert "\n## " not in cell.text.partition("<details")[2], cell.text


def functions(cell):
    return {node.name: ast.unparse(node.args) for node in ast.parse(cell.text).body if hasattr(node, "args")}


@every_lab
def test_a_starter_and_its_solution_are_called_alike(name):
    found = {"starter": {}, "solution": {}}
    for cell in labs.cells(name):
        if cell.tag in found:
            found[cell.tag] |= functions(cell)
    public = {key: value for key, value in found["solution"].items() if not key.startswith("_")}
    assert found["starter"].items() <= public.items()


@every_lab
def test_no_number_in_a_sentence_is_typed(name, tmp_path):
    text = re.sub(r"^```.*?^```$|<summary>Hint \d</summary>", "", prose(name), flags=re.M | re.S)
    (tmp_path / f"{name}.md").write_text(text, encoding="utf-8")
    assert typed_numbers(tmp_path / f"{name}.md") == [], "print it by a cell"


@every_lab
def test_nothing_is_said_that_only_the_site_understands(name):
    for sign in (r"`#!", r"^--8<--", r"^(!!!|\?\?\?)", r"\{:", r"^```(exhibit|mermaid|lab)"):
        assert not re.search(sign, prose(name), re.M), sign


@every_lab
def test_code_and_output_fit_a_phone_or_nearly(solved, name):
    code = [line for cell in labs.cells(name) if not cell.prose for line in cell.lines]
    assert [line for line in code if len(line) > 78] == []
    printed = "\n".join(solved(name).printed)
    assert [line for line in printed.splitlines() if len(line) > 60] == []


@every_lab
def test_a_lab_has_its_page_and_a_row_in_the_list(name):
    text = (DOCS / "labs" / f"{name}.md").read_text(encoding="utf-8")
    _, front, body = text.split("---\n", 2)
    assert body.split()[:3] == ["```lab", name, "```"]
    title = yaml.safe_load(front)["title"]
    row = f"| [{title}]({name}.md) |"
    assert row in (DOCS / "labs" / "index.md").read_text(encoding="utf-8"), "docs/labs/index.md lacks its row"


@every_lab
def test_a_chapter_sends_its_readers_to_the_lab(name):
    chapters = (DOCS / "guide").glob("*.md")
    links = any(f"](../labs/{name}.md" in path.read_text(encoding="utf-8") for path in chapters)
    assert links, f"no chapter in docs/guide/ links to ../labs/{name}.md"


@every_lab
def test_jupytext_reads_the_same_cells(name):
    text = (ROOT / labs.file(name)).read_text(encoding="utf-8")
    theirs = jupytext.reads(text, "py:percent").cells
    ours = labs.cells(name)
    assert [cell.source for cell in theirs] == [cell.text for cell in ours]
    assert [cell.cell_type == "markdown" for cell in theirs] == [cell.prose for cell in ours]
    assert [cell.metadata.get("tags", []) for cell in theirs] == [[c.tag] if c.tag else [] for c in ours]


# Notebooks


def texts(name):
    """The notebooks of a lab, exercise and solution, or of the tour, by the names of their files."""
    return {file: labs.notebook(name, solved, HOME) for file, solved, _ in labs.published(name)}


@pytest.fixture(scope="module", params=labs.notebooks())
def notebooks(request):
    return request.param, *texts(request.param).values()


def test_a_notebook_is_well_formed(notebooks):
    for text in notebooks[1:]:
        nbformat.validate(json.loads(text))


def tagged(text, tag):
    return [cell for cell in json.loads(text)["cells"] if tag in cell["metadata"].get("tags", ())]


@every_lab
def test_the_exercise_has_no_solution_and_the_solution_no_starter(name):
    exercise, solution = texts(name).values()
    assert tagged(exercise, "starter") and not tagged(exercise, "solution")
    assert tagged(solution, "solution") and not tagged(solution, "starter")
    assert len(tagged(exercise, "check")) == len(tagged(solution, "check")) > 0


def test_a_notebook_says_first_how_to_install_what_it_imports(notebooks):
    name = notebooks[0]
    pins = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    for text in notebooks[1:]:
        cells = json.loads(text)["cells"]
        (command,) = re.findall(r"^pip install (.+)$", cells[0]["source"], re.M)
        assert set(command.split()) <= set(pins)
        written = {cell["source"].split()[1].removesuffix(".py") for cell in cells if is_written(cell)}
        assert name not in LABS or {name, f"{name}.toml", "judge"} <= written
        installed = {package.partition("==")[0] for package in command.split()}
        assert imports(cells) <= installed | written | sys.stdlib_module_names


def is_written(cell):
    return cell["source"].startswith("%%writefile ")


def imports(cells):
    """The packages that the cells and the files that they write import."""
    found = set()
    for cell in cells:
        if cell["cell_type"] == "code" and not cell["source"].split("\n")[0].endswith(".toml"):
            for node in ast.walk(ast.parse(re.sub(r"\A%%writefile .*\n", "", cell["source"]))):
                if isinstance(node, ast.Import):
                    found |= {alias.name.partition(".")[0] for alias in node.names}
                if isinstance(node, ast.ImportFrom):
                    found.add(node.module.partition(".")[0])
    return found


def test_links_of_a_notebook_lead_to_the_site(notebooks):
    for text in notebooks[1:]:
        prose = [cell["source"] for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
        links = re.findall(r"\]\(([^)]+)\)", re.sub(r"```.*?```|\$[^$]+\$|`[^`]+`", "", "\n".join(prose)))
        assert links
        for link in links:
            assert link.startswith("https://"), link
            if link.startswith(HOME):
                page = link.removeprefix(HOME).partition("#")[0].removesuffix("/") or "index"
                assert any((DOCS / f"{each}.md").is_file() for each in (page, f"{page}/index")), link


RUNNER = ROOT / "tests" / "labs" / "notebooks.py"
every_notebook = pytest.mark.parametrize("name", labs.notebooks())
one_by_day = pytest.mark.parametrize(
    "name",
    [LABS[0], *(pytest.param(name, marks=pytest.mark.slow) for name in labs.notebooks() if name != LABS[0])],
)


def passed(name):
    """The mark of notebooks that have passed: another one for other notebooks, pins, runner or Python."""
    files = (ROOT / "requirements.txt", ROOT / "requirements-test.txt", RUNNER)
    decides = [*texts(name).values(), sys.version, *(file.read_text(encoding="utf-8") for file in files)]
    return ROOT / ".cache" / "notebooks" / hashlib.sha256(json.dumps(decides).encode()).hexdigest()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A function that runs a command on notebooks, those of a lab in a folder; gives folders and errors."""
    apart = tmp_path_factory.mktemp("apart")
    # The project is installed here: what runs the notebooks must not find it.
    (apart / "sitecustomize.py").write_text(
        "import os, sys\nlacks = lambda path: not os.path.isdir(path + '/executable_prose')\n"
        "sys.path = [path for path in sys.path if lacks(path)]\n"
    )
    settings = {
        "PYTHONPATH": str(apart),
        "PYTHONSAFEPATH": "",
        "IPYTHONDIR": str(apart),
        "JUPYTER_CONFIG_DIR": str(apart),
        "JUPYTER_RUNTIME_DIR": str(apart),
        "JUPYTER_PLATFORM_DIRS": "1",
        "OMP_NUM_THREADS": "1",
    }

    def run(names, *command, python=sys.executable):
        folders = {name: tmp_path_factory.mktemp(name) for name in names}
        for name, folder in folders.items():
            for file, text in texts(name).items():
                (folder / file).write_text(text, encoding="utf-8")
        paths = [str(folder / file) for name, folder in folders.items() for file in texts(name)]
        command = [python, *command, *paths]
        done = subprocess.run(command, cwd=apart, env=os.environ | settings, capture_output=True, text=True)
        return folders, done.stderr

    return run


@one_by_day
def test_the_notebooks_run_in_an_empty_folder_without_the_project(run, request, name):
    if request.config.getoption("--cold") or not passed(name).exists():
        folders, errors = run([name], RUNNER)
        look(name, folders[name], errors)
        passed(name).parent.mkdir(parents=True, exist_ok=True)
        passed(name).touch()


@pytest.mark.slow
def test_a_notebook_that_needs_the_project_is_stopped(run, monkeypatch):
    cell = {"cell_type": "code", "source": "import executable_prose"}
    monkeypatch.setattr(labs, "notebook", lambda *_: json.dumps({"cells": [cell]}))
    assert "No module named 'executable_prose'" in run(["needy"], RUNNER)[1]


@pytest.mark.slow
@every_notebook
def test_the_notebooks_run_in_a_kernel(run, name):
    folders, errors = run([name], "-m", "nbconvert", "--to", "notebook", "--execute", "--inplace")
    look(name, folders[name], errors)


@pytest.fixture(scope="module")
def oldest():
    """A Python with the oldest torch that the notebooks say they run on, in an environment that is kept."""
    folder = ROOT / ".cache" / "torch" / settings().notebooks.oldest
    python, made = folder / "bin" / "python", folder / "made"
    if not made.exists():
        pins = (ROOT / "requirements.txt").read_text(encoding="utf-8")
        with_it = re.findall(r"^(?:matplotlib|ipykernel)==.+", pins, re.M)
        venv.create(folder, clear=True, with_pip=True)
        subprocess.run(
            [python, "-m", "pip", "install", "-q", f"torch=={settings().notebooks.oldest}", *with_it],
            check=True,
        )
        made.touch()
    return python


@pytest.mark.slow
def test_the_notebooks_run_on_the_oldest_torch_that_they_name(run, oldest):
    folders, errors = run(labs.notebooks(), RUNNER, python=oldest)
    for name, folder in folders.items():
        look(name, folder, errors)


def look(name, folder, errors):
    """What the checks in a lab's notebooks said, or the tour; a notebook that was stopped says nothing."""
    made = [(folder / file).read_text(encoding="utf-8") for file in texts(name)]
    if name not in LABS:
        assert all(said for source, said in printed(made[0]) if "print(" in source and "%%" not in source), (
            errors
        )
        return
    exercise, solution = ([said for _, said in printed(text, "check")] for text in made)
    assert exercise and all(words.startswith("Not yet.") for words in exercise), errors
    assert solution and all(words.startswith("Right.") for words in solution), errors
    assert not any((folder / room).is_dir() for room in ("snippets", "labs"))


def printed(text, tag=None):
    """The code of all cells, or of those with a tag, and what each printed."""
    for cell in tagged(text, tag) if tag else json.loads(text)["cells"]:
        if cell["cell_type"] == "code":
            said = (each["text"] for each in cell["outputs"] if each["output_type"] == "stream")
            yield "".join(cell["source"]), "".join("".join(each) for each in said)
