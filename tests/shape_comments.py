"""Shape comments that cannot lie.

    scores = q @ k.mT  # (..., queries, keys)

Readers see a comment. While the tests run, the package is imported through this
module and every trailing comment that opens with a parenthesis is an assertion:

- after an assignment it holds the target, after `return` the value returned; one
  shape for a tuple is the shape of each element, several shapes, separated by
  commas, are those of the elements in turn;
- after a parameter that has a line to itself it holds the argument. That is
  tested when the function returns, so that a ValueError for a shape that does not
  fit comes first: what a function lets through, it must have said that it takes.
  An argument that is None has no shape;
- an axis is a whole number, a name, or arithmetic on these, such as dim/2. A name
  is a whole number in the function or in self; failing that, its first use in
  that call fixes its size. Arithmetic needs names that are known by then;
- a leading `...` is any number of axes, not the same ones at every mention.

A comment of this form in any other place, or one that cannot be read, stops the
import: what looks checked is checked. Under torch.compile the assertions vanish.
"""

import ast
import importlib.abc
import importlib.machinery
import io
import re
import sys
import tokenize
from functools import cache

import torch

SHAPES = re.compile(r"#\s*(\([^()]*\)(?:,\s*\([^()]*\))*)")
ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv)
off = torch.compiler.is_compiling


@cache
def parse_shape(text):
    """["...", "heads", "dim/2"] from "(..., heads, dim/2)"; SyntaxError if it is no shape."""
    axes = [axis.strip() for axis in text.strip("()").split(",")]
    if axes[-1] == "":  # () or a trailing comma
        axes.pop()
    for place, axis in enumerate(axes):
        if axis == "..." and place == 0:
            continue
        for node in ast.walk(ast.parse(axis, mode="eval").body):
            whole = isinstance(node, ast.Constant) and type(node.value) is int
            allowed = (ast.Name, ast.Load, ast.BinOp, *ARITHMETIC)
            if not whole and not isinstance(node, allowed):
                raise SyntaxError(f"{axis!r} is not an axis")
    return axes


@cache
def split(shapes):
    """["(2)", "(3, 4)"] from "(2), (3, 4)"; a comment that is none stays whole, to be refused."""
    return [shapes] if shapes.startswith("#") else re.findall(r"\([^()]*\)", shapes)


@cache
def arithmetic(axis):
    """The names in an axis, and its code."""
    names = {node.id for node in ast.walk(ast.parse(axis)) if isinstance(node, ast.Name)}
    return names, compile(axis, axis, "eval")


def known_size(name, scope, seen):
    """The whole number that a name stands for, or None."""
    for value in (scope.get(name), getattr(scope.get("self"), name, None), seen.get(name)):
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def check_shape(value, shape, scope, seen, where):
    """AssertionError unless value has the shape that the comment at `where` states."""
    said = f"{where}: the comment says {shape}, the value is a {type(value).__name__}"
    assert hasattr(value, "shape"), said
    sizes = tuple(value.shape)
    said = f"{where}: the comment says {shape}, the value is {sizes}"
    axes = parse_shape(shape)
    if axes[:1] == ["..."]:
        axes = axes[1:]
        assert len(sizes) >= len(axes), said
        sizes = sizes[len(sizes) - len(axes) :]
    assert len(sizes) == len(axes), said
    for axis, size in zip(axes, sizes, strict=True):
        if axis.isidentifier():
            known = known_size(axis, scope, seen)
            stated = seen.setdefault(axis, size) if known is None else known
        else:
            names, code = arithmetic(axis)
            known = {name: known_size(name, scope, seen) for name in names}
            unknown = sorted(name for name in names if known[name] is None)
            assert not unknown, f"{said}; {', '.join(unknown)} is not known there"
            stated = eval(code, {"__builtins__": {}}, known)
        assert stated == size, f"{said}; {axis} is {stated}"


def check(value, shapes, scope, seen, where):
    """Check a value, or each element of a tuple, against one shape or one for each."""
    shapes = split(shapes)
    if len(shapes) == 1:
        for element in value if isinstance(value, (tuple, list)) else (value,):
            check_shape(element, shapes[0], scope, seen, where)
        return
    count = len(value) if isinstance(value, (tuple, list)) else 1
    assert count == len(shapes), f"{where}: {len(shapes)} shapes for {count} values"
    for element, shape in zip(value, shapes, strict=True):
        check_shape(element, shape, scope, seen, where)


def shape_comments(source):
    """{line: "(..., dim)"} for each comment that follows code and states a shape."""
    found = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        trails = token.line[: token.start[1]].strip()
        if token.type == tokenize.COMMENT and trails and re.match(r"#\s*\(", token.string):
            match = SHAPES.match(token.string)
            found[token.start[0]] = match[1] if match else token.string
    return found


class Instrument(ast.NodeTransformer):
    """Put an assertion wherever a shape comment stands."""

    def __init__(self, comments, path):
        self.comments = comments
        self.path = path
        self.used = set()
        self.parameters = []  # of the function being visited: (name, line)

    def assertion(self, value, line):
        self.used.add(line)
        where = f"{self.path}:{line}"
        call = f"check({value}, {self.comments[line]!r}, locals(), _shapes_seen, {where!r})"
        return f"if not _shapes.off(): _shapes.{call}"

    def parameter_assertions(self):
        for name, line in self.parameters:
            given = f"_shapes_given[{name!r}]"
            yield f"if {given} is not None:\n    {self.assertion(given, line)}"

    def visit_FunctionDef(self, node):
        outside, used = self.parameters, set(self.used)
        self.parameters = self.stated_parameters(node)
        self.generic_visit(node)
        if not isinstance(node.body[-1], ast.Return):
            node.body += statements(self.parameter_assertions(), node.body[-1])
        if self.used != used:
            given = ", ".join(f"{name!r}: {name}" for name, _ in self.parameters)
            start = 0 if ast.get_docstring(node) is None else 1  # a docstring must stay first
            prepare = ["_shapes_seen = {}", f"_shapes_given = {{{given}}}"]
            node.body[start:start] = statements(prepare, node)
        self.parameters = outside
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def stated_parameters(self, node):
        every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        lines = [parameter.end_lineno for parameter in every]
        return [
            (parameter.arg, line)
            for parameter, line in zip(every, lines, strict=True)
            if line in self.comments and lines.count(line) == 1 and line < node.body[0].lineno
        ]

    def visit_Return(self, node):
        checks = list(self.parameter_assertions())
        if node.end_lineno in self.comments and node.value is not None:
            checks.append(self.assertion("_shapes_result", node.end_lineno))
        if not checks:
            return node
        before, after = statements(["_shapes_result = None", "return _shapes_result"], node)
        before.value = node.value or before.value
        return [before, *statements(checks, node), after]

    def visit_Assign(self, node):
        if node.end_lineno not in self.comments or node.value is None:
            return node
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        return [node, *statements([self.assertion(ast.unparse(target), node.end_lineno)], node)]

    visit_AnnAssign = visit_AugAssign = visit_Assign


def statements(lines, place):
    """Statements from their source, as if they stood where the node `place` stands."""
    parsed = ast.parse("\n".join(lines)).body
    for node in (node for statement in parsed for node in ast.walk(statement)):
        ast.copy_location(node, place)
    return parsed


def instrument(source, path):
    """The syntax tree of source with its shape comments as assertions."""
    comments = shape_comments(source)
    for line, shapes in comments.items():
        try:
            for shape in split(shapes):
                parse_shape(shape)
        except SyntaxError as error:
            raise SyntaxError(f"{path}:{line}: cannot read the shape {shapes}: {error}") from None
    instrument = Instrument(comments, path)
    tree = instrument.visit(ast.parse(source, path))
    if lost := sorted(set(comments) - instrument.used):
        raise SyntaxError(f"{path}:{lost[0]}: a shape stands where nothing checks it")
    return tree


class Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname):  # neither reads nor writes bytecode
        path = self.get_filename(fullname)
        tree = instrument(self.get_data(path).decode(), path)
        return compile(tree, path, "exec", dont_inherit=True)

    def exec_module(self, module):
        module._shapes = sys.modules[__name__]
        module._shapes_seen = {}
        super().exec_module(module)


class Finder(importlib.abc.MetaPathFinder):
    def __init__(self, package):
        self.package = package

    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] != self.package:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = Loader(spec.loader.name, spec.loader.path)
        return spec


def install(package):
    """Check the shape comments of a package that nothing has imported yet."""
    if package in sys.modules:
        raise RuntimeError(f"{package} was imported before its shape comments could be checked")
    sys.meta_path.insert(0, Finder(package))
