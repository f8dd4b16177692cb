"""Imports of the engine form no circle: not of modules, late ones included; not of folders, not in types."""

import ast
import graphlib

import pytest

from executable_prose import project

SOURCES = project.ENGINE.parent


def name(path):
    return ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")


MODULES = {name(path): path for path in project.ENGINE.rglob("*.py")}


def imported(tree, types):
    """The engine's modules that a module imports when it runs, and with `types` those for types alone."""
    for node in tree.body if isinstance(tree, ast.Module) else ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not types:
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(project.ENGINE.name):
            for each in node.names:
                whole = f"{node.module}.{each.name}"
                yield whole if whole in MODULES else node.module
        yield from imported(node, types)


def graph(types, part):
    """What the parts of the engine import of one another; `part` says to which a module belongs."""
    found = {}
    for module, path in MODULES.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found.setdefault(part(module), set()).update(map(part, imported(tree, types)))
    return {part: others - {part} for part, others in found.items()}


def folder(module):
    """The folder in src/executable_prose/ in which a module stands; a module beside them counts by itself."""
    return ".".join(module.split(".")[:2])


def check(arrows):
    graphlib.TopologicalSorter(arrows).prepare()  # raises CycleError, which names the circle


def test_no_import_leads_back():
    modules = graph(types=False, part=str)
    check(modules)
    assert len(modules) > 40 and modules["executable_prose.site.build"]


def test_no_folder_needs_itself():
    folders = graph(types=True, part=folder)
    check(folders)
    named = {"execution", "figures", "rendering", "site"}
    assert {f"executable_prose.{each}" for each in named} <= folders.keys()
    assert folders["executable_prose.rendering"] >= {"executable_prose.execution", "executable_prose.labs"}


def test_a_circle_of_folders_is_named():
    arrows = graph(types=True, part=folder)
    arrows["executable_prose.figures"].add("executable_prose.site")
    with pytest.raises(graphlib.CycleError, match="nodes are in a cycle") as raised:
        check(arrows)
    assert {"executable_prose.figures", "executable_prose.site"} <= set(raised.value.args[1])
