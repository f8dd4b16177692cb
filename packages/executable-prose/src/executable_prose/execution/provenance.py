"""Which parts of a module decided a result: the functions that ran, which recorder.py notes, and the rest.

A run without chance depends on the code that it executes and on the data that it reads. So a module counts
by its skeleton, which importing it executes (imports, constants, decorators, class bodies), and by those of
its functions that ran. Comments, docstrings and layout do not count.

A result can also depend on a function that did not run: `inspect.signature(f)`, `f.__defaults__`,
`hasattr(module, "f")`. So the names matter that occur in code that ran. If a function's name occurs, its head
counts; if a name occurs that looks functions up (`getattr`, `vars`), the heads of all functions count; and
if one occurs that inspects code (`__doc__`, `dis`), whole files count.
"""

import ast
import builtins
import contextlib
import cProfile
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from executable_prose import project
from executable_prose.memo import cached

Code = dict[str, dict[str, str]]  # by file, by part: the digest
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
HEADS = "()"  # the part with the heads of all functions at the top level of a module
HEAD = "{}()"  # the part with the head of one of them
EXISTS = "{}?"  # the part that says that there is one of this name
# Names that look up functions whose own names need not occur.
SEARCHING = {
    *("getattr", "hasattr", "dir", "globals", "locals", "eval", "exec", "attrgetter", "methodcaller"),
    *(".__globals__", ".modules", ".getattr_static", ".get_objects", ".get_referrers", ".get_referents"),
    # Code that goes on if there is no such name.
    *("ImportError", "ModuleNotFoundError", "AttributeError", "NameError", "Exception", "BaseException"),
    *("except:", "import *", "__getattr__"),
}
PURE = ("float", "frozenset", "int", "range", "slice", "tuple")  # which only make a value
# Names that inspect code: bytecode, docstrings, line numbers.
READING = re.compile(
    r"dis|pydoc|doctest|help|symtable|marshal|cloudpickle|dill|trace|tracemalloc|faulthandler|unittest|cmd|vars"
    r"|\.?(?:__doc__|__code__|__dict__|co_\w+|getdoc|\w*lineno|getsource\w*|getcomments|getmembers|getclosurevars)"
    r"|\.?(?:getframeinfo|getinnerframes|getouterframes|currentframe|stack|walk_tb|walk_stack|settrace|LogRecord)"
    r"|\.?(?:isgeneratorfunction|iscoroutinefunction|isasyncgenfunction|catch_warnings)"
)


@cached
def parts(text: str) -> dict[str, str]:
    """Digests of a module's text: of its skeleton, named "", and of each function, by qualified name.

    A function at the top of the module counts whole: a new one is no part of the skeleton. Of a decorated
    one, of a method, and of one that hides something else of its name, the skeleton has the head. What is
    defined under a condition stays there. Two definitions of one name count together.
    """
    return _parts(ast.parse(text), keep_order=True)


def _parts(tree, keep_order):
    functions = dict[str, list[ast.stmt]]()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS)) and ast.get_docstring(node) is not None:
            del node.body[0]
    _take_plain(tree, functions)
    _take_bodies(tree, "", functions)
    _leave_marks(tree, keep_order)
    return {"": _digest([tree])} | {name: _digest(nodes) for name, nodes in functions.items()}


@cached
def heads(text: str) -> dict[str, str]:
    """Digests of the heads of the functions that are not part of the skeleton: of each, and of all."""
    functions: dict[str, list[Any]] = {}
    _take_plain(ast.parse(text), functions)
    found = {}
    for name, (function,) in functions.items():
        function.body = []
        found[HEAD.format(name)] = _digest([function])
    exist = {EXISTS.format(name): "" for name in functions}
    return {**found, **exist, HEADS: _digest([*found.items()])}


@cached
def mentions(text: str) -> dict[str, list[str]]:
    """The names that occur in each part of a module: variables, attributes (with a dot), names in strings.

    A name that is only imported has a question mark; where it is used, the names in its import count, too.
    Docstrings do not count.
    """
    tree, functions = ast.parse(text), dict[str, list[ast.stmt]]()
    origins = {name: words for node in ast.walk(tree) for name, words in _origins(node)}
    _take_plain(tree, functions)
    _take_bodies(tree, "", functions)
    named = {"": [node for node in tree.body if not isinstance(node, Mark)]} | functions
    return {name: sorted(_mentioned(nodes, origins)) for name, nodes in named.items()}


def counted_heads(mentioned: Collection[str]) -> Callable[[str], bool] | None:
    """Return a predicate for the heads that count if code with these names ran; None if whole files count."""
    if any(map(READING.fullmatch, mentioned)):
        return None
    if not SEARCHING.isdisjoint(mentioned):
        return HEADS.__eq__
    imported = {name for name in mentioned if name == EXISTS.format(name[:-1])}
    return (imported | {HEAD.format(name.removeprefix(".")) for name in mentioned}).__contains__


@cached
def measured_parts(text: str) -> dict[str, str]:
    """The parts of a module for stored measurements: without messages of errors and order of functions."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            node.exc.args, node.exc.keywords = [], []
    return _parts(ast.parse(ast.unparse(tree)), keep_order=False)


@contextlib.contextmanager
def watching() -> Iterator[dict[str, set[str]]]:
    """Record which functions of the project run in this thread: their names by file, when the block ends."""
    ran: dict[str, set[str]] = {}
    with cProfile.Profile(subcalls=False, builtins=False) as profile:
        yield ran
    for entry in profile.getstats():
        if file := project.relative(getattr(entry.code, "co_filename", os.devnull)):
            ran.setdefault(file, set()).add(entry.code.co_qualname.partition(".<locals>")[0])


def code_of(ran: Mapping[str, Collection[str] | None], texts: Mapping[str, str] | None = None) -> Code:
    """Return the digests of what a measurement ran, which is stored with it.

    Args:
        ran: The functions that ran, by file; "" stands for what importing the file executes, and None for the
            whole file.
        texts: The texts that were imported, by file, if they may have been edited since.
    """
    found = {}
    for file, names in sorted(ran.items()):
        parts = measured_parts(texts[file]) if texts else parts_now(file)
        found[file] = {name: parts[name] for name in sorted(parts if names is None else names & parts.keys())}
    return found


def changed(code: Code, folder: str = "") -> list[str]:
    """Return what a measurement ran that is different now.

    Of a file in the folder its functions are named, or else the file.
    """
    found: list[str] = []
    for file, known in code.items():
        now, named = parts_now(file), folder and file.startswith(f"{folder}/")
        different = [name for name, digest in known.items() if now.get(name) != digest]
        found += [name if named and name and name in now else file for name in different]
    return list(dict.fromkeys(found))


def parts_now(file: str) -> dict[str, str]:
    """Return `measured_parts` of a file of the project; nothing of one that cannot be read."""
    with contextlib.suppress(OSError, SyntaxError):
        return measured_parts((project.ROOT / file).read_text(encoding="utf-8"))
    return {}


def _take_plain(tree, functions):
    names = Counter(dir(builtins))
    for statement in tree.body:
        alone = isinstance(statement, (ast.ClassDef, *FUNCTIONS))
        for node in [statement] if alone else ast.walk(statement):
            names.update(_bound(node))
    for node in list(tree.body):
        if isinstance(node, FUNCTIONS) and names[node.name] == 1 and not _runs(node):
            functions[node.name] = [node]
            tree.body[tree.body.index(node)] = Mark(node.name)


class Mark(ast.stmt):
    """Stands where a function was taken out of a module."""

    _fields = ("name",)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


def _leave_marks(tree, keep_order):
    """Keep the marks of functions that importing the module may call, for there the order matters."""
    named = {node.id for each in tree.body for node in ast.walk(each) if isinstance(node, ast.Name)}
    kept = named if keep_order else set()
    tree.body = [each for each in tree.body if not isinstance(each, Mark) or each.name in kept]


def _runs(function):
    """Whether its definition runs other code: a decorator, or a call in a default or an annotation."""
    head = [function.args, function.returns] if function.returns else [function.args]
    calls = [node for part in head for node in ast.walk(part) if isinstance(node, ast.Call)]
    return function.decorator_list or any(ast.unparse(call.func) not in PURE for call in calls)


def _bound(node):
    """The names that a statement or an expression itself gives something to."""
    if isinstance(node, (ast.ClassDef, *FUNCTIONS)):
        return [node.name]
    if isinstance(node, ast.alias):
        return [(node.asname or node.name).partition(".")[0]]
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        return [node.id]
    return []


def _origins(node):
    """The names that an import binds, each with the parts of the imported name."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            words = f"{getattr(node, 'module', None) or ''}.{alias.name}".split(".")
            yield (alias.asname or alias.name.partition(".")[0]), [*filter(None, words)]


def _mentioned(nodes, origins):
    found, texts = set(), []
    for node in (each for top in nodes for each in ast.walk(top)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found |= {node.id, *origins.get(node.id, ())}
        elif isinstance(node, ast.Attribute):
            found.add(f".{node.attr}")
        elif isinstance(node, ast.ImportFrom):
            found |= {"import *" if each.name == "*" else EXISTS.format(each.name) for each in node.names}
        elif isinstance(node, ast.ExceptHandler) and node.type is None:
            found.add("except:")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.append(node.value)
    code = {"eval", "exec", "compile"} & found  # else a text that is more than a name is for people
    names = (re.findall(r"\w+", text) for text in texts if code or re.fullmatch(r"[\w.]+", text))
    return found.union(*names)


def _take_bodies(scope, prefix, functions):
    for node in scope.body:
        if isinstance(node, ast.ClassDef):
            _take_bodies(node, f"{prefix}{node.name}.", functions)
        elif isinstance(node, FUNCTIONS):
            functions.setdefault(prefix + node.name, []).extend(node.body)
            node.body = []


def _digest(nodes):
    return hashlib.sha256(json.dumps(_bare(nodes)).encode()).hexdigest()[:16]


def _bare(node):
    """A syntax tree as lists, the same under every Python: without what is empty."""
    if isinstance(node, list):
        return [_bare(each) for each in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = [(name, _bare(value)) for name, value in ast.iter_fields(node) if value not in (None, [])]
    return [type(node).__name__, *fields]
