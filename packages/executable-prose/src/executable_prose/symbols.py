"""Find a symbol's source text in a Python file."""

import ast
import io
import tokenize
from typing import NamedTuple, TypedDict

from executable_prose import project
from executable_prose.memo import cached

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
        _refuse_what_cannot_be_listed(part, found, file, lines)
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
    encoding = tokenize.detect_encoding(io.BytesIO(text.encode()).readline)[0]
    if file.endswith(".py") and encoding not in ("utf-8", "utf-8-sig"):
        raise SymbolError(f"{file} declares the encoding {encoding}: save it as UTF-8, without a declaration")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _refuse_what_is_too_long(name, lines):
    if len(lines) > MOST:
        raise SymbolError(
            f"{name} has {len(lines):,} lines, and a listing at most {MOST:,}: list a part of it"
        )


def lines_of(text: str) -> list[str]:
    """The lines of a text as Python's parser counts them: no form feed and no U+2028 ends one."""
    return text.removesuffix("\n").split("\n") if text else []


def _refuse_what_cannot_be_listed(name, found, file, lines):
    if len(found["bound"]) > 1:
        places = ", ".join(map(str, found["bound"]))
        raise SymbolError(
            f"{name!r} gets a value more than once, in lines {places} of {file}, and a listing shows one of "
            "them: give each a name of its own"
        )
    block = "\n".join(lines[found["first"] - 1 : found["last"]])
    if not _is_alone(block, found["column"]):
        raise SymbolError(
            f"{name!r} cannot be listed by itself: it shares a line with other code, or one of its lines or "
            f"strings reaches further left than its first line (at {file}:{found['first']})"
        )


@cached
def table(text: str) -> dict[str, Symbol]:
    """Every symbol of a file's text by its name, and what a listing of it needs to know."""
    return _table(ast.parse(text))


def _table(scope):
    body = [node for node in getattr(scope, "body", []) if not _adds_to_another(node)]
    bound = _bound(body)
    stars = bound.get("*", [])  # imports of everything
    return {
        name: {
            **_entry(node),
            "bound": bound.get(name, []) + [n for n in stars if n > node.lineno],
        }
        for node in body
        for name in _names(node)
    }


def _adds_to_another(node):
    """Whether a definition belongs to another of its name: an overload, or the setter of a property."""
    decorators = [ast.unparse(each) for each in getattr(node, "decorator_list", [])]
    setters = {f"{node.name}.{kind}" for kind in ("setter", "getter", "deleter")} if decorators else set()
    return any(each.rpartition(".")[2] == "overload" or each in setters for each in decorators)


def _entry(node):
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
    return {
        "kind": type(node).__name__,
        "first": first,
        "last": node.end_lineno,
        "column": node.col_offset,
        "says": _first_paragraph(node),
        "within": _table(node),
    }


@cached
def _is_alone(block, column):
    """Whether the lines of a symbol are it and nothing else, none of them further left than its first.

    What is listed is parsed again, without its indentation, and a string may be another one then.
    """
    lines = lines_of(block)
    if not all(line[:column].isspace() for line in lines if column and line.strip()):
        return False
    try:
        listed = ast.parse("\n".join(line[column:] for line in lines))
        found = ast.parse(f"if True:\n{block}").body[0] if column else listed
    except SyntaxError:
        return False
    return len(listed.body) == 1 and _code(listed.body[0]) == _code(found.body[0])


def code_of(text: str) -> str | None:
    """The syntax tree of a text as a string, without docstrings; None if it is not Python."""
    try:
        return _code(ast.parse(text))
    except SyntaxError:
        return None


def _code(tree):
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            del node.body[: ast.get_docstring(node) is not None]
    return ast.dump(tree)


def _bound(scope):
    """The lines that give each name of a scope a value; imports of everything under "*"."""
    lines, nodes = {}, list(scope)
    for node in nodes:
        for name in _given(node):
            lines.setdefault(name, []).append(node.lineno)
        nodes += _within(node)
    return {name: sorted(set(places)) for name, places in lines.items()}


def _within(node):
    """The nodes below one that can give a name of its scope a value."""
    if isinstance(node, ast.AnnAssign) and node.value is None:
        return []
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        shared = {name for each in ast.walk(node) if isinstance(each, ast.Global) for name in each.names}
        stores = (each for each in ast.walk(node) if isinstance(each, ast.Name) and each.id in shared)
        return [*node.decorator_list, node.args, *filter(None, [node.returns]), *stores]
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases, *node.keywords]
    if isinstance(node, ast.Lambda):
        return [node.args]
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        return [each.target for each in ast.walk(node) if isinstance(each, ast.NamedExpr)]
    return ast.iter_child_nodes(node)


def _given(node):
    if isinstance(node, ast.Name):
        return [] if isinstance(node.ctx, ast.Load) else [node.id]
    if isinstance(node, ast.alias):
        return [(node.asname or node.name).partition(".")[0]]
    if isinstance(node, ast.MatchMapping):
        return [node.rest] if node.rest else []
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
