"""Code that a reference page shows for pasting runs as it stands there, beside copies of the snippets."""

import re
import shutil
import subprocess
import sys

import pytest

from weave import symbols
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
