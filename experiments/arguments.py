"""What a tool is called with. Whatever it does not know is refused before anything is measured or written."""

import argparse
import difflib
from collections.abc import Collection


def parser(document: str) -> argparse.ArgumentParser:
    """A parser whose help is the docstring of a tool."""
    return argparse.ArgumentParser(
        description=document, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )


def none(document: str) -> None:
    """Refuse all arguments but --help."""
    parser(document).parse_args()


def names(document: str, what: str, known: Collection[str]) -> list[str]:
    """The names that a tool is called with, each of which must be known."""
    own = parser(document)
    own.add_argument("names", nargs="*", metavar=what)
    given = own.parse_args().names
    check(own, what, given, known)
    return given


def check(own: argparse.ArgumentParser, what: str, given: list[str], known: Collection[str]) -> None:
    """End the process if a name is not known."""
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"such as {sorted(known)[0]!r}"
            own.error(f"{what} must be one that is known, got {name!r}: {hint}")
