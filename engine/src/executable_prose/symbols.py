"""Find a symbol's source text in a Python file."""

import ast
from typing import NamedTuple, TypedDict

from executable_prose import project
from executable_prose.execution.memo import cached

# What has names of its own.
SCOPES = (
    *(ast.AsyncFunctionDef, ast.FunctionDef, ast.ClassDef, ast.Lambda),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)


MOST = 5_000  # lines of a listing


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
    bound: list[int]  # the lines that give its name a value, in its scope
    alone: bool  # its lines are the symbol and nothing else, none of them further left than its first
    within: "dict[str, Symbol]"


class SymbolError(Exception):
    """There is no such file or symbol, or it cannot be listed; the message says why."""


def find(file: str, symbol: str | None = None) -> Source:
    """The source of `symbol` (`function`, `Class.method` or a constant), or of the whole file."""
    text = _text(file)
    lines = lines_of(text)
    if symbol is None:
        _refuse_what_is_too_long(file, lines)
    try:
        scope = table(text)
    except SyntaxError as error:
        raise SymbolError(f"{error.msg} (at {file}:{error.lineno})") from None
    if symbol is None:
        return Source(file, 1, lines)
    for part in symbol.split("."):
        if part not in scope:
            raise SymbolError(f"no symbol {symbol!r} in {file}; it has {', '.join(scope) or 'none'}")
        found, scope = scope[part], scope[part]["within"]
        _refuse_what_cannot_be_listed(part, found, file)
    block = lines[found["first"] - 1 : found["last"]]
    _refuse_what_is_too_long(f"{symbol!r} in {file}", block)
    return Source(file, found["first"], [line[found["column"] :] for line in block], found["says"])


def _text(file):
    path = project.ROOT / file
    if not path.is_file():
        raise SymbolError(f"no file {file}")
    if project.relative(path.resolve()) is None:
        raise SymbolError(f"{file} is hidden, or no file of the project: only what is public can be listed")
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise SymbolError(f"{file} is no text in UTF-8: only text can be listed")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _refuse_what_is_too_long(name, lines):
    if len(lines) > MOST:
        raise SymbolError(
            f"{name} has {len(lines):,} lines, and a listing at most {MOST:,}: list a part of it"
        )


def lines_of(text: str) -> list[str]:
    """The lines of a text as Python's parser counts them: no form feed and no U+2028 ends one."""
    return text.removesuffix("\n").split("\n") if text else []


def _refuse_what_cannot_be_listed(name, found, file):
    if len(found["bound"]) > 1:
        places = ", ".join(map(str, found["bound"]))
        raise SymbolError(
            f"{name!r} gets a value more than once, in lines {places} of {file}, and a listing shows one of "
            "them: give each a name of its own"
        )
    if not found["alone"]:
        raise SymbolError(
            f"{name!r} shares a line with other code, or a line of it stands further left than its first, "
            f"so that it cannot be listed by itself (at {file}:{found['first']})"
        )


@cached
def table(text: str) -> dict[str, Symbol]:
    """Every symbol of a file's text by its name, and what a listing of it needs to know."""
    return _table(ast.parse(text), lines_of(text))


def _table(scope, lines):
    body = getattr(scope, "body", [])
    bound = _bound(body)
    return {name: {**_entry(node, lines), "bound": bound[name]} for node in body for name in _names(node)}


def _entry(node, lines):
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
    return {
        "kind": type(node).__name__,
        "first": first,
        "last": node.end_lineno,
        "column": node.col_offset,
        "says": _first_paragraph(node),
        "alone": _is_alone(node, lines[first - 1 : node.end_lineno]),
        "within": _table(node, lines),
    }


def _is_alone(node, block):
    """Whether these lines, without their indentation, are this node: what is cut out is parsed again."""
    column = node.col_offset
    if not all(line[:column].isspace() for line in block if column and line.strip()):
        return False
    try:
        body = ast.parse("\n".join(["if 1:", *block] if column else block)).body
    except SyntaxError:
        return False
    return [ast.dump(each) for each in (body[0].body if column else body)] == [ast.dump(node)]


def _bound(scope):
    """The lines that give each name of a scope a value, under conditions and in loops, too."""
    lines, nodes = {}, list(scope)
    for node in nodes:
        for name in _given(node):
            lines.setdefault(name, []).append(node.lineno)
        nodes += [] if isinstance(node, SCOPES) else ast.iter_child_nodes(node)
    return {name: sorted(set(places)) for name, places in lines.items()}


def _given(node):
    if isinstance(node, ast.Name):
        return [] if isinstance(node.ctx, ast.Load) else [node.id]
    if isinstance(node, ast.alias):
        return [(node.asname or node.name).partition(".")[0]]
    is_named = (
        ast.AsyncFunctionDef,
        ast.FunctionDef,
        ast.ClassDef,
        ast.ExceptHandler,
        ast.MatchAs,
        ast.MatchStar,
    )
    return [node.name] if isinstance(node, is_named) and node.name else []


def _first_paragraph(node):
    """Of the docstring, in one line."""
    documented = isinstance(node, (ast.AsyncFunctionDef, ast.FunctionDef, ast.ClassDef))
    return " ".join(((documented and ast.get_docstring(node)) or "").split("\n\n")[0].split())


def _names(node):
    if isinstance(node, (ast.AsyncFunctionDef, ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]
