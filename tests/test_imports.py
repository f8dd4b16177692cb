"""The one rule of imports: CONTRIBUTING.md says which folder may import which."""

import ast

import pytest

from executable_prose.project import ROOT

ENGINE = "executable_prose"
MAY_IMPORT = {
    "snippets": set(),
    "experiments": {"snippets", ENGINE},
    "exhibits": {"experiments", "snippets", ENGINE},
    "labs": {"snippets"},
    "guide": {"experiments", "snippets", ENGINE},
}
OURS = {*MAY_IMPORT, ENGINE, "tests"}


def imported(path):
    """The folders of ours that a file imports from, with the line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
        yield from ((name.partition(".")[0], node.lineno) for name in names)


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_a_folder_imports_only_what_stands_below_it(folder):
    allowed = MAY_IMPORT[folder] | {folder}
    paths = sorted((ROOT / folder).rglob("*.py"))
    assert paths
    for path in paths:
        for name, line in imported(path):
            assert name in allowed or name not in OURS, f"{path.relative_to(ROOT)}:{line} imports {name}"
