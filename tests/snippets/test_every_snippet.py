"""Rules for every snippet: it stands alone, fits the page, names its source and has no state."""

import ast
import doctest
import importlib
import io
import json
import shutil
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(path for path in (ROOT / "snippets").glob("*.py") if path.name != "__init__.py")
# What a file may import besides torch and the standard library: to draw takes a library that draws.
ALSO = {"visualize": ["matplotlib.axes", "matplotlib.colors", "matplotlib.figure"]}
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


def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def nodes(path, *kinds):
    return [node for node in ast.walk(tree_of(path)) if isinstance(node, kinds)]


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
def test_imports_only_torch_the_standard_library_and_what_it_may(path):
    for node in nodes(path, ast.Import, ast.ImportFrom):
        absolute = isinstance(node, ast.Import) or node.level == 0
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
        assert absolute, f"line {node.lineno}: relative import"
        for name in names:
            top = name.partition(".")[0]
            allowed = top == "torch" or top in sys.stdlib_module_names or name in ALSO.get(path.stem, [])
            assert allowed, f"line {node.lineno}: {name}"


def test_whoever_may_import_more_is_a_snippet_that_does():
    for name, modules in ALSO.items():
        imported = {node.module for node in nodes(ROOT / "snippets" / f"{name}.py", ast.ImportFrom)}
        assert set(modules) <= imported


@every_snippet
def test_no_line_is_wider_than_the_page(path):
    wide = [n for n, line in enumerate(path.read_text().splitlines(), 1) if len(line) > 80]
    assert not wide, f"lines {wide} have more than 80 columns"


@every_snippet
def test_the_docstring_says_in_a_sentence_what_it_is_and_where_it_comes_from(path):
    docstring = ast.get_docstring(tree_of(path))
    assert docstring.partition("\n\n")[0].rstrip().endswith(".")
    assert "\nSource: " in docstring


@every_snippet
def test_whatever_a_reader_calls_is_documented(path):
    defined = [n for n in tree_of(path).body if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    public = [node for node in defined if not node.name.startswith("_")]
    assert public
    assert not [node.name for node in public if not ast.get_docstring(node)]


@every_snippet
def test_docstrings_hold_no_escape_by_accident(path):
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    for token in tokens:
        if token.type == tokenize.STRING and token.string.lower().lstrip("rbuf")[:3] == '"""':
            assert "\\" not in token.string or token.string[0] in "rR", f"line {token.start[0]}"


@every_snippet
def test_the_examples_in_docstrings_give_what_they_show(path):
    module = importlib.import_module(f"snippets.{path.stem}")
    finder = doctest.DocTestFinder(exclude_empty=True)
    examples = [test for test in finder.find(module) if test.examples]
    assert examples, "no example with real numbers"
    for test in examples:
        said = io.StringIO()
        failed = doctest.DocTestRunner().run(test, out=said.write).failed
        assert not failed, said.getvalue()


@every_snippet
def test_holds_no_state_outside_objects(path):
    for node in tree_of(path).body:
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)):
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # the docstring
        assert isinstance(node, ast.Assign), f"line {node.lineno}: only definitions and constants"
        constant = ast.literal_eval(node.value)  # raises for anything that is made by a call
        hash(constant)  # and for what could be changed: a list, a dict, a set
    assert not nodes(path, ast.Global, ast.Nonlocal)


@every_snippet
def test_caches_nothing(path):
    text = path.read_text()
    assert "cache(" not in text
    assert "@cache" not in text
    for function in nodes(path, ast.FunctionDef):
        for default in [*function.args.defaults, *filter(None, function.args.kw_defaults)]:
            mutable = isinstance(default, (ast.List, ast.Dict, ast.Set, ast.Call))
            assert not mutable, f"line {default.lineno}: a default that every call would share"
        if function.name == "__init__":
            continue
        for node in ast.walk(function):
            kept = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
            assert not kept, f"line {node.lineno}: kept from one call to the next"


@every_snippet
def test_prints_nothing(path):
    calls = [n.lineno for n in nodes(path, ast.Call) if getattr(n.func, "id", "") == "print"]
    assert not calls, f"lines {calls}"
