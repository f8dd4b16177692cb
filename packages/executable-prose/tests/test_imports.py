"""No module of the engine imports itself by way of others, not even late."""

import ast
import graphlib

from executable_prose import project

SOURCES = project.ENGINE.parent


def name(path):
    return ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")


MODULES = {name(path): path for path in project.ENGINE.rglob("*.py")}


def imported(tree):
    """The engine's modules that a module imports when it runs: what is for types alone does not count."""
    for node in tree.body if isinstance(tree, ast.Module) else ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(project.ENGINE.name):
            for each in node.names:
                whole = f"{node.module}.{each.name}"
                yield whole if whole in MODULES else node.module
        yield from imported(node)


def test_no_import_leads_back():
    trees = {module: ast.parse(path.read_text(encoding="utf-8")) for module, path in MODULES.items()}
    graph = {module: set(imported(tree)) - {module} for module, tree in trees.items()}
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle
    assert len(graph) > 40 and graph["executable_prose.site.build"]
