"""What crosses a module has types, and they agree."""

import ast
import subprocess
import sys

import pytest

from executable_prose import project

SOURCES = sorted(project.ENGINE.rglob("*.py"))


def functions(scope):
    """The public functions of a module, and the public methods of its classes with what makes them."""
    for node in scope.body:
        if isinstance(node, ast.ClassDef):
            yield from functions(node)
        elif isinstance(node, ast.FunctionDef) and (node.name == "__init__" or node.name[0] != "_"):
            yield node


def bare(function):
    """What of a function has no type: its parameters, and `return`."""
    told = function.args
    every = [*told.posonlyargs, *told.args, *told.kwonlyargs, *filter(None, (told.vararg, told.kwarg))]
    named = [each.arg for each in every if not each.annotation and each.arg not in ("self", "cls")]
    return named + ["return"] * (function.returns is None)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(project.ENGINE).as_posix())
def test_what_is_public_has_types(path):
    found = functions(ast.parse(path.read_text(encoding="utf-8")))
    assert not {function.name: names for function in found if (names := bare(function))}


# Reading torch's own types takes as long as all else, and few modules of the engine use them: by night.
WITHOUT_TORCH = """
[[tool.mypy.overrides]]
module = ["torch", "torch.*"]
follow_imports = "skip"
"""


def test_the_types_agree(request, tmp_path):
    engine = project.ENGINE.parents[1]
    told = (engine / "pyproject.toml").read_text(encoding="utf-8")
    told += "" if request.config.getoption("--cold") else WITHOUT_TORCH
    (tmp_path / "mypy.toml").write_text(told.replace("$MYPY_CONFIG_FILE_DIR", engine.as_posix()))
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(project.ROOT / ".cache" / "mypy-engine")]
    command += ["--config-file", str(tmp_path / "mypy.toml")]
    done = subprocess.run(command, cwd=engine, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
