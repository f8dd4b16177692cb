"""Find a symbol's source text in a Python file."""

import ast
from typing import NamedTuple, TypedDict

from executable_prose import project
from executable_prose.execution.memo import cached


class Source(NamedTuple):
    file: str
    first: int
    lines: list[str]
    says: str = ""  # the first paragraph of its docstring


class Symbol(TypedDict):
    kind: str  # of its node in the syntax tree
    first: int
    last: int
    column: int
    says: str
    within: "dict[str, Symbol]"


class SymbolError(Exception):
    """There is no such file or symbol; the message says what there is."""


def find(file: str, symbol: str | None = None) -> Source:
    """The source of `symbol` (`function`, `Class.method` or a constant), or of the whole file."""
    path = project.ROOT / file
    if not path.is_file():
        raise SymbolError(f"no file {file}")
    text = path.read_text(encoding="utf-8")
    try:
        scope = table(text)
    except SyntaxError as error:
        raise SymbolError(f"{error.msg} (at {file}:{error.lineno})") from None
    lines = text.splitlines()
    if symbol is None:
        return Source(file, 1, lines)
    for part in symbol.split("."):
        if part not in scope:
            raise SymbolError(f"no symbol {symbol!r} in {file}; it has {', '.join(scope) or 'none'}")
        found, scope = scope[part], scope[part]["within"]
    block = lines[found["first"] - 1 : found["last"]]
    return Source(file, found["first"], [line[found["column"] :] for line in block], found["says"])


@cached
def table(text: str) -> dict[str, Symbol]:
    """Every symbol of a file's text by its name: kind, lines, column, docstring, and the symbols within."""
    return _table(ast.parse(text))


def _table(scope):
    return {name: _entry(node) for node in getattr(scope, "body", []) for name in _names(node)}


def _entry(node):
    return {
        "kind": type(node).__name__,
        "first": min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))]),
        "last": node.end_lineno,
        "column": node.col_offset,
        "says": _first_paragraph(node),
        "within": _table(node),
    }


def _first_paragraph(node):
    """Of the docstring, in one line."""
    documented = isinstance(node, (ast.AsyncFunctionDef, ast.FunctionDef, ast.ClassDef))
    return " ".join(((documented and ast.get_docstring(node)) or "").split("\n\n")[0].split())


def _names(node):
    if isinstance(node, (ast.AsyncFunctionDef, ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]
