"""What a run gave."""

from dataclasses import dataclass, field
from typing import Any, TypedDict

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
