"""What a site adds to what its pages can say.

A module that pyproject.toml names (`additions = "parts"`) is imported before the first page is read, and
registers its own:

    @directive("parts")
    def parts(page, argument, body):
        return ["<p>HTML</p>", ["# Lines of Markdown"]]

    @parts.as_text
    def _(copy, argument, body):
        return ["Lines for the page's copy in plain Markdown."]
"""

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from executable_prose import project

Parts = Sequence[str | list[str]]  # HTML as text, Markdown as lists of lines
Shown = Callable[[Any, str, list[str]], Parts]  # of a Page, the argument and the body
Told = Callable[[Any, str, list[str]], list[str]]  # of a Copy, the same two
Built = Callable[[Path], object]  # of the folder of a site once its pages are made


class Directive:
    """A fence: what its page shows, and what stands for that in the page's copy in plain Markdown."""

    def __init__(self, shown: Shown) -> None:
        self.shown = shown
        self.told: Told | None = None  # in a copy it stands as it was written

    def as_text(self, told: Told) -> Told:
        self.told = told
        return told


class Files:
    """How a site hands its files out: as they are, and on no page of their own, unless it says otherwise."""

    def page(self, file: str) -> str | None:
        """The page that shows all of a file, relative to docs/; None if there is none."""

    def handed_out(self, text: str, site: str) -> str:
        """The text of a file as a site at this address hands it out."""
        return text


class Additions:
    """All that is registered."""

    def __init__(self) -> None:
        self.directives: dict[str, Directive] = {}
        self.files = Files()
        self.built: list[Built] = []


ADDED = Additions()


def directive(name: str) -> Callable[[Shown], Directive]:
    """Let a fence of this name become what the function gives: HTML as text, Markdown as lists of lines."""

    def register(shown):
        ADDED.directives[name] = Directive(shown)
        return ADDED.directives[name]

    return register


def built(function: Built) -> Built:
    """Call a function with the folder of a site once its pages are made."""
    ADDED.built.append(function)
    return function


def files(kind: type[Files]) -> type[Files]:
    """Let a class say how the site hands its files out."""
    ADDED.files = kind()
    return kind


def load(module: str) -> None:
    """Let a site's own module, which lies in the project, register what it adds."""
    if module:
        project.on_path()
        importlib.import_module(module)
