"""Code that a page shows for pasting runs as it stands there, beside copies of the snippets."""

import ast
import json
import re
import shutil
import subprocess
import sys

import pytest

from weave import symbols
from weave.directives import FENCES
from weave.project import DOCS, ROOT

SHOWN = re.compile(r"^```(?:python\n(.*?)^```|exhibit (\w+)\.(\w+) show=code)$", re.M | re.S)
PAGES = [page for page in sorted((DOCS / "reference").glob("*.md")) if SHOWN.search(page.read_text("utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_is_pasted_from_a_reference_page_runs_and_prints_what_the_page_shows(page, tmp_path):
    for file in (ROOT / "snippets").glob("[!_]*.py"):
        shutil.copy(file, tmp_path)
    pasted, prints = "", ""
    for code, module, function in SHOWN.findall(page.read_text("utf-8")):
        pasted += code
        if function:
            source = symbols.find(f"exhibits/{module}.py", function)
            pasted += "\n".join([*source.lines, f"{function}()", ""])
            golden = ROOT / "tests" / "exhibits" / "goldens" / f"{module}.{function}.txt"
            prints += golden.read_text("utf-8")
    assert "snippets" not in pasted, "a reader has the files, not the package"
    (tmp_path / "pasted.py").write_text(pasted, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "pasted.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == prints


# The answer at the top of a chapter: all in one interpreter, since to import torch takes seconds.
ANSWERS = {
    page.stem: code
    for page in sorted((DOCS / "guide").glob("*.md"))
    for code in re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
}
RUN_ALL = """
import json, sys
import torch
for chapter, code in json.load(sys.stdin).items():
    torch.manual_seed(0)
    made = {}
    exec(compile(code, chapter, "exec"), made)
    assert made["output"].double().isfinite().all(), chapter
"""


def test_the_answers_of_chapters_run_beside_the_snippets(tmp_path):
    for file in (ROOT / "snippets").glob("[!_]*.py"):
        shutil.copy(file, tmp_path)
    command, given = [sys.executable, "-c", RUN_ALL], json.dumps(ANSWERS)
    done = subprocess.run(command, cwd=tmp_path, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_other_listing_is_typed_into_a_page():
    run = [page for page in PAGES for code, *_ in SHOWN.findall(page.read_text("utf-8")) if code]
    run += [DOCS / "guide" / f"{chapter}.md" for chapter in ANSWERS]
    typed = []
    for page in DOCS.rglob("*.md"):
        begun = re.findall(r"^ *(?:```|~~~)(\w*)", page.read_text("utf-8"), re.M)[::2]
        typed += [page for kind in begun if kind not in {"mermaid", *FENCES}]
    assert sorted(typed) == sorted(run)


@pytest.mark.parametrize("chapter", ANSWERS)
def test_an_answer_fits_its_box_and_links_to_all_files_that_it_takes(chapter):
    text, code = (DOCS / "guide" / f"{chapter}.md").read_text("utf-8"), ANSWERS[chapter]
    before = text.partition("```python")[0]
    taken = {node.module for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom)}
    for file in taken - {"torch.nn.functional"}:
        assert f"[`{file}.py`](../reference/{file}.md)" in before
    assert max(map(len, code.splitlines())) <= 80
