"""Whether pytest runs a test, as far as the text of its file tells: a test that never runs holds no claim."""

import ast
import fnmatch
from pathlib import Path

from executable_prose import project, symbols
from executable_prose.memo import cached

SKIPS = ("skip", "skipif", "xfail", "importorskip")  # of pytest
SKIPS_OF_UNITTEST = ("skipIf", "skipUnless", "skipTest", "expectedFailure")
NO_FOLDERS = ("*.egg", ".*", "_darcs", "build", "CVS", "dist", "node_modules", "venv", "{arch}")
DEFINITIONS = (ast.AsyncFunctionDef, ast.FunctionDef, ast.ClassDef)


def never_runs(path: Path, text: str, name: str) -> str | None:
    """Why pytest does not run a test of this file, or does not heed it, and what to do; None if it runs."""
    parts = path.relative_to(project.ROOT).parts[:-1]
    if missed := [part for part in parts if any(fnmatch.fnmatch(part, each) for each in NO_FOLDERS)]:
        return f"pytest passes over folders named {missed[0]!r}: rename it"
    if conftest := _ignored_by(path):
        return f"collect_ignore in {conftest} names its file: take it out there"
    scope = symbols.table(text)
    for part in name.split("."):
        bound, scope = scope[part]["bound"], scope[part]["within"]
        if len(bound) > 1:
            lines = ", ".join(map(str, bound))
            return f"{part!r} gets a value more than once, in lines {lines}: give each a name of its own"
    return _passed_over(text).get(name)


def _ignored_by(path):
    """The conftest.py whose collect_ignore or collect_ignore_glob names a file or a folder around it."""
    around = [path, *path.parents]
    for folder in around[1 : around.index(project.ROOT) + 1]:
        conftest = folder / "conftest.py"
        text = conftest.read_text(encoding="utf-8") if conftest.is_file() else ""
        for statement in ast.parse(text).body if "collect_ignore" in text else ():
            if "collect_ignore" in ast.unparse(statement):
                names = [node.value for node in ast.walk(statement) if isinstance(node, ast.Constant)]
                if any(each.match(str(folder / str(name))) for name in names for each in around):
                    return conftest.relative_to(project.ROOT).as_posix()
    return None


@cached
def _passed_over(text: str) -> dict[str, str]:
    """Why pytest passes over tests of a file, by their names."""
    tree = ast.parse(text)
    values = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return dict(_reasons(tree, "", _of_scope(tree, values), values))


def _reasons(scope, prefix, around, values):
    """The functions and classes that are passed over, with what is wrong about them or what is around."""
    for node in scope.body:
        if isinstance(node, DEFINITIONS):
            why = around or _of_name(node) or _of_decorators(node, values)
            is_class = isinstance(node, ast.ClassDef)
            why = why or (_of_scope(node, values) if is_class else _of_body(node))
            if why:
                yield prefix + node.name, why
            if is_class:
                yield from _reasons(node, f"{prefix}{node.name}.", why, values)


def _of_name(node):
    if not isinstance(node, ast.ClassDef):
        return None if node.name.startswith("test") else _unnamed(node, "test")
    if any("TestCase" in ast.unparse(base) for base in node.bases):
        return None
    made = [each.name for each in node.body if isinstance(each, DEFINITIONS)]
    if made_by := {"__init__", "__new__"}.intersection(made):
        return f"pytest collects no class with {min(made_by)}: use a fixture"
    return None if node.name.startswith("Test") else _unnamed(node, "Test")


def _unnamed(node, start):
    return f"pytest collects what is named {start}…, and not {node.name!r}: rename it"


def _of_decorators(node, values):
    for decorator in node.decorator_list:
        if why := _skipping(decorator, values):
            return why
        if "fixture" in _names(decorator):
            return "it is a fixture: put the claim on a test"
        if "parametrize" in _names(decorator) and any(map(_is_empty, _given(decorator, values))):
            return "it is parametrized with no case: give it one"
    return None


def _given(decorator, values):
    cases = [each.value for each in decorator.keywords if each.arg == "argvalues"] or decorator.args[1:2]
    return [values.get(each.id, each) if isinstance(each, ast.Name) else each for each in cases]


def _is_empty(node):
    return isinstance(node, (ast.List, ast.Tuple, ast.Set)) and not node.elts


def _of_scope(scope, values):
    """What a file or a class says of all its tests: `pytestmark`, `__test__`, and a call that skips them."""
    for node in scope.body:
        if isinstance(node, (*DEFINITIONS, ast.Import, ast.ImportFrom)):
            continue
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        names = {ast.unparse(target).rpartition(".")[2] for target in targets if target}
        if "__test__" in names:
            return f"line {node.lineno} sets __test__: take that away"
        if ("pytestmark" in names or _calls(node)) and (why := _skipping(node, values)):
            return why
    return None


def _calls(node):
    """Whether a statement calls what skips a whole file, or gives a name what that returns."""
    call = getattr(node, "value", None)
    return isinstance(call, ast.Call) and not _names(call.func).isdisjoint(("skip", "importorskip"))


def _of_body(function):
    """What ends a test before it is at its end, whatever it finds."""
    for node in function.body[:-1]:
        if isinstance(node, ast.Return):
            return f"it returns at line {node.lineno}: take that away"
    for node in function.body:
        if isinstance(node, (ast.Expr, ast.Raise)) and (why := _skipping(node, {})):
            return why
    return None


def _skipping(node, values):
    """That an expression skips a test, or lets it fail, by itself or by a value that the file names."""
    known = [values[name] for name in _names(node) if name in values]
    for each in (node, *known):
        if found := _names(each).intersection((*SKIPS, *SKIPS_OF_UNITTEST)):
            return f"{min(found)} stands in line {each.lineno}: take it or the claim away"
    return None


def _names(node):
    """The last parts of the names in an expression."""
    parts = ast.walk(node)
    return {getattr(part, "attr", getattr(part, "id", None)) for part in parts} - {None}
