"""Which parts of a module decided a result: the functions that ran, which recorder.py notes, and the rest.

A run without chance depends on the code that it executes and on the data that it reads. So a module counts
by its skeleton, which importing it executes (imports, constants, decorators, class bodies), and by those of
its functions that ran. Comments, docstrings and layout do not count.
"""

import ast
import builtins
import hashlib
import json
from collections import Counter

from weave.cached import cached

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@cached
def parts(text):
    """Digests of a module's text: of its skeleton, named "", and of each function, by qualified name.

    A function at the top of the module counts whole: a new one is no part of the skeleton. Of a decorated
    one, of a method, and of one that hides something else of its name, the skeleton has the head. What is
    defined under a condition stays there. Two definitions of one name count together.
    """
    tree, functions = ast.parse(text), {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS)) and ast.get_docstring(node) is not None:
            del node.body[0]
    _take_plain(tree, functions)
    _take_bodies(tree, "", functions)
    return {"": _digest([tree])} | {name: _digest(nodes) for name, nodes in functions.items()}


def _take_plain(tree, functions):
    names = Counter(dir(builtins))
    for statement in tree.body:
        alone = isinstance(statement, (ast.ClassDef, *FUNCTIONS))
        for node in [statement] if alone else ast.walk(statement):
            names.update(_bound(node))
    for node in list(tree.body):
        if isinstance(node, FUNCTIONS) and not node.decorator_list and names[node.name] == 1:
            functions[node.name] = [node]
            tree.body.remove(node)


def _bound(node):
    """The names that a statement or an expression itself gives something to."""
    if isinstance(node, (ast.ClassDef, *FUNCTIONS)):
        return [node.name]
    if isinstance(node, ast.alias):
        return [(node.asname or node.name).partition(".")[0]]
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        return [node.id]
    return []


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
