"""A comparison without `assert` checks nothing: no test file has one."""

import ast

from executable_prose.project import ROOT
from tests.rows import each_of

FILES = [path for of in ("tests", "packages/executable-prose/tests") for path in (ROOT / of).rglob("*.py")]


def unchecked(source):
    """The lines whose whole statement is a comparison, a boolean operation or an arithmetic one.

    ruff reports `a == b` alone, but not `a == b and c > d`.
    """
    results = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp)
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, results)
    ]


def test_no_test_compares_without_asserting():
    found = {
        str(path.relative_to(ROOT)): lines
        for path in FILES
        if "node_modules" not in path.parts and (lines := unchecked(path.read_text("utf-8")))
    }
    assert len(FILES) > 100 and found == {}


@each_of("statement", ["a == b", "f(a) and a > b", "f(a) or b", "not a", "a - b"])
def test_such_a_statement_is_found(statement):
    assert unchecked(f"def test():\n    x = 1\n    {statement}\n") == [3]
    assert unchecked(f"def test():\n    assert {statement}\n    f({statement})\n    x = {statement}\n") == []
