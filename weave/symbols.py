"""Find a symbol's source text in a Python file."""

import ast
import functools
from typing import NamedTuple

from weave.project import ROOT


class Source(NamedTuple):
    file: str
    first: int
    lines: list[str]


class SymbolError(Exception):
    """There is no such file or symbol; the message says what there is."""


def find(file, symbol=None):
    """The source of `symbol` (`function`, `Class.method` or a constant), or of the whole file."""
    path = ROOT / file
    if not path.is_file():
        raise SymbolError(f"no file {file}")
    text = path.read_bytes()
    try:
        scope = _parse(text)
    except SyntaxError as error:
        raise SymbolError(f"{error.msg} (at {file}:{error.lineno})") from None
    lines = text.decode().splitlines()
    if symbol is None:
        return Source(file, 1, lines)
    for part in symbol.split("."):
        known = {name: node for node in getattr(scope, "body", []) for name in _names(node)}
        if part not in known:
            raise SymbolError(f"no symbol {symbol!r} in {file}; it has {', '.join(known) or 'none'}")
        scope = known[part]
    first = min([scope.lineno, *(d.lineno for d in getattr(scope, "decorator_list", []))])
    block = lines[first - 1 : scope.end_lineno]
    return Source(file, first, [line[scope.col_offset :] for line in block])


@functools.lru_cache(maxsize=64)
def _parse(text):
    return ast.parse(text)


def _names(node):
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]
