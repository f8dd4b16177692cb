"""The libraries whose versions decide what a project's code gives, and what its pages are."""

import importlib.metadata
import sys
from pathlib import Path

from executable_prose import project

DRAW = ("matplotlib", "pillow", "kiwisolver", "contourpy")  # the pixels, layout and contours of figures
WRITE = ("mkdocs", "Markdown", "pymdown-extensions", "Pygments", "math-core", "mermaidx", "novasvg")


def computing() -> dict[str, str]:
    """The versions of what exhibits compute and draw with, and of this engine."""
    return _versions((*project.settings().libraries, *DRAW))


def writing() -> dict[str, str]:
    """The versions of what makes pages."""
    return _versions(WRITE)


def installed() -> list[str]:
    """The names of all distributions with their versions, as their folders have them."""
    folders = {Path(each) for each in sys.path if each.endswith("-packages")}
    return sorted(path.name for folder in folders for path in folder.glob("*.dist-info"))


def _versions(names):
    return {name: importlib.metadata.version(name) for name in names}
