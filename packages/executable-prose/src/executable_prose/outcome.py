"""What a run gave."""

import ast
import contextlib
from dataclasses import dataclass, field
from typing import Any, TypedDict

from executable_prose import project

Value = bool | int | float | str


class Given(TypedDict):  # by a cell of a lab
    output: str
    figure: str | None  # as SVG


class Result(TypedDict, total=False):  # an exhibit has the first three always, a lab the last two alone
    figure: str | None  # as SVG
    output: str
    values: dict[str, Value]
    data: str  # as CSV, what the figure shows
    live: dict[str, Any]  # what the page needs to move it, see live_graph.drawn
    solved: list[Given]  # of each cell
    started: list[str]  # what each prints with the starters


class Unavailable(Exception):
    """There is no such result, or it cannot be made; the message says which and why."""


class ExhibitError(Exception):
    """The exhibit ran, but what it returned cannot be shown."""


class CellError(Exception):
    """A cell of a lab raised; `cell` is where the cell stands."""

    def __init__(self, cell: str) -> None:
        super().__init__(cell)
        self.cell = cell


def definition(name: str) -> str:
    """Where exhibit `module.function` or lab `lab-name` is defined."""
    settings, lab = project.settings(), name.removeprefix("lab-")
    if lab != name:
        return f"{settings.labs}/{lab}.py"
    module, _, function = name.partition(".")
    file = f"{settings.examples}/{module}.py"
    with contextlib.suppress(OSError, SyntaxError, ValueError):
        for node in ast.parse((project.ROOT / file).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name == function:
                return f"{file}:{node.lineno}"
    return file


@dataclass
class Outcome:
    """What an exhibit or a lab gave or why it failed, and what it used (see recorder.py)."""

    name: str
    result: Result | None = None
    failure: str = ""
    files: dict[str, str | None] = field(default_factory=dict)  # project.Digests
    modules: dict[str, str] = field(default_factory=dict)  # the digest of each
    functions: dict[str, list[str]] | None = None
    seconds: float = 0.0
