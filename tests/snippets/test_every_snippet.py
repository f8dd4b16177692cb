"""Every snippet stands alone, shows true examples, and lacks nothing that tests/lacking.py lists."""

import ast
import doctest
import importlib
import inspect
import io
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from guide import changes
from tests.lacking import ALSO, former_names, lacking

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(path for path in (ROOT / "snippets").glob("*.py") if path.name != "__init__.py")
every_snippet = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)

# Run by a fresh interpreter for all files, each alone in a folder: the import of torch takes
# seconds. What the project has imported or put on the path is not there. The files that may import
# more come last, when nobody else can profit from what was imported, each after its libraries and
# all that these import on their part.
RUN_ALONE = """
import contextlib, importlib, io, json, os, pathlib, runpy, sys, traceback
import torch
also = json.loads(sys.argv[1])
said = {}
for path in sorted(map(pathlib.Path, sys.argv[2:]), key=lambda path: path.stem in also):
    os.chdir(path.parent)
    for module in also.get(path.stem, []):
        importlib.import_module(module)
    known = set(sys.modules)
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        try:
            runpy.run_path(str(path), run_name=path.stem)
        except BaseException:
            traceback.print_exc()
    mine = {name.partition(".")[0] for name in set(sys.modules) - known}
    outside = mine - set(sys.stdlib_module_names) - {"torch"}
    said[path.stem] = [out.getvalue(), sorted(outside)]
print(json.dumps(said))
"""


@pytest.fixture(scope="session")
def said_alone(tmp_path_factory):
    """What each file printed, and what it imported, alone in an empty folder."""
    copies = [shutil.copy(path, tmp_path_factory.mktemp(path.stem)) for path in FILES]
    command = [sys.executable, "-I", "-c", RUN_ALONE, json.dumps(ALSO), *map(str, copies)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_there_are_snippets():
    assert {"attention", "sinusoidal"} <= {path.stem for path in FILES}


@every_snippet
def test_runs_alone_and_says_nothing(path, said_alone):
    assert said_alone[path.stem] == ["", []]


@every_snippet
def test_the_method_lacks_nothing(path):
    missing = list(lacking(path.stem))
    assert not missing, "\n".join([f"{path.stem} lacks, in the order in which to work:", *missing])


def test_whoever_may_import_more_is_a_snippet_that_does():
    for name, modules in ALSO.items():
        tree = ast.parse((ROOT / "snippets" / f"{name}.py").read_text(encoding="utf-8"))
        imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert set(modules) <= imported


FORMER = [
    (path.stem, former, present)
    for path in FILES
    for former, present in former_names(ast.parse(path.read_text(encoding="utf-8"))).items()
]


@pytest.mark.parametrize(("name", "former", "present"), FORMER, ids=[former for _, former, _ in FORMER])
def test_a_former_name_is_the_new_one_and_a_change_names_both(name, former, present):
    module = importlib.import_module(f"snippets.{name}")
    assert getattr(module, former) is getattr(module, present)
    assert getattr(module, present).__name__ == present
    assert "\n\n# Former names, kept until the next release.\n" in inspect.getsource(module)
    said = [each.words for each in changes.entries() if each.kind == "Changed" and f"{name}.py" in each.names]
    assert any({f"`{former}`", f"`{present}`"} <= set(re.findall(r"`\w+`", words)) for words in said)


@every_snippet
def test_the_examples_in_docstrings_give_what_they_show(path):
    module = importlib.import_module(f"snippets.{path.stem}")
    finder = doctest.DocTestFinder(exclude_empty=True)
    examples = [test for test in finder.find(module) if test.examples]
    for test in examples:
        said = io.StringIO()
        failed = doctest.DocTestRunner().run(test, out=said.write).failed
        assert not failed, said.getvalue()


def test_private_functions_of_one_name_and_signature_are_the_same_in_every_file():
    written = {}
    for path in FILES:
        source = path.read_text(encoding="utf-8")
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("_"):
                texts = written.setdefault((node.name, ast.unparse(node.args)), {})
                texts.setdefault(ast.get_source_segment(source, node), []).append(path.stem)
    differ = {name: list(texts.values()) for (name, _), texts in written.items() if len(texts) > 1}
    assert not differ, differ
