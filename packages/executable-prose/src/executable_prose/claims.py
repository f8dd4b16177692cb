"""Claims: sentences that pages state and tests hold.

A test holds a claim by `@pytest.mark.claim("id", "The claim as a sentence.")`; a page
states it by `#!claim id` in backticks. Both are read from the text of the files.
"""

import ast
import re
from collections.abc import Iterable
from typing import NamedTuple

from executable_prose import collection, input_checks, project, syntax
from executable_prose.memo import cached
from executable_prose.reading import parsed


class Test(NamedTuple):
    name: str
    file: str
    line: int


class Claim(NamedTuple):
    id: str
    statement: str
    tests: list[Test]


Stated = dict[str, list[str]]  # id of a claim -> the pages that state it


class ClaimError(Exception):
    """The registry contradicts itself, or a page cannot be read; the message says where."""


def registry() -> dict[str, Claim]:
    """Every claim that a test holds, by id."""
    claims: dict[str, Claim] = {}
    folders = [project.ROOT / folder for folder in project.settings().tests]
    for path in sorted({path for folder in folders for path in folder.rglob("test_*.py")}):
        file = path.relative_to(project.ROOT).as_posix()
        text = path.read_text(encoding="utf-8")
        for id, statement, name, line in _marked(file, text):
            test = Test(name, file, line)
            if why := collection.never_runs(path, text, name):
                raise ClaimError(f"{file}:{line}: this test of the claim {id!r} never runs: {why}")
            claim = claims.setdefault(id, Claim(id, statement, []))
            if statement != claim.statement:
                other = claim.tests[0]
                raise ClaimError(
                    f"{file}:{test.line} states claim {id!r} in other words than {other.file}:{other.line}"
                )
            claim.tests.append(test)
    return claims


@cached
def _marked(file, source):
    """Each claim mark of a test file, as [id, statement, name of the test, its line]."""
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise ClaimError(f"{error.msg} (at {file}:{error.lineno})") from None
    return [
        [id, statement, name, node.lineno]
        for name, node in _tests(tree.body)
        for id, statement in _marks(node, file)
    ]


def _tests(body, prefix=""):
    """Functions and classes with the names that symbols.find knows them by."""
    for node in body:
        if isinstance(node, (ast.AsyncFunctionDef, ast.FunctionDef, ast.ClassDef)):
            yield prefix + node.name, node
        if isinstance(node, ast.ClassDef):
            yield from _tests(node.body, f"{prefix}{node.name}.")


def _marks(node, file):
    """The (id, statement) of each claim mark on a test function."""
    for mark in node.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.claim":
            try:
                id, statement = (ast.literal_eval(argument) for argument in mark.args)
            except ValueError:
                place = f"{file}:{mark.lineno}"
                raise ClaimError(f"{place}: a claim takes an id and a sentence, as literals") from None
            yield id, statement


def citations() -> Stated:
    """Where each claim is stated: id -> the pages, relative to docs/, in the order of the nav."""
    found: Stated = {}
    for page in in_order(path.relative_to(project.DOCS).as_posix() for path in project.documents("*.md")):
        try:
            cited = syntax.cited((project.DOCS / page).read_text(encoding="utf-8"))
        except syntax.PageError as error:
            line, why = error.args
            raise ClaimError(f"docs/{page}:{line}: {why}") from None
        for id in cited:
            found.setdefault(id, []).append(page)
    return found


def by_page(stated: Stated) -> dict[str, list[str]]:
    """The claims that each page states, in the order of the nav."""
    pages = in_order({page for pages in stated.values() for page in pages})
    return {page: [id for id, places in stated.items() if page in places] for page in pages}


def in_order(pages: Iterable[str]) -> list[str]:
    """Pages as the nav has them, those that it has not at the end."""
    nav = [page for page, _ in project.pages_in_order()]
    return sorted(pages, key=lambda page: (nav.index(page) if page in nav else len(nav), page))


def title(path: str) -> str:
    """The title of a page, as its front matter has it, or its first heading."""
    return parsed(_title, project.DOCS / path) or path


def _title(text):
    said, rest = syntax.front_matter(text)
    heading = re.search(r"^# (.+)$", rest, re.M)
    return said.get("title") or (heading and heading[1])


def unstated(known: dict[str, Claim], stated: Stated) -> list[Claim]:
    """The claims of a registry that no page states."""
    return [claim for claim in known.values() if claim.id not in stated]


def main() -> str | int:
    """The command `claims`: every claim with its tests and its pages."""
    if why := input_checks.fault():
        return why
    try:
        known, stated = registry(), citations()
    except ClaimError as error:
        return str(error)
    for claim in known.values():
        tests = ", ".join(f"{test.file}:{test.line}" for test in claim.tests)
        print(f"{claim.id}: {claim.statement}\n    held by {tests}")
        print(f"    stated on {', '.join(stated.get(claim.id, ['no page']))}")
    lost = [
        f"no test holds the claim {id!r} of docs/{pages[0]}"
        for id, pages in stated.items()
        if id not in known
    ]
    lost += [f"no page states the claim {claim.id!r}" for claim in unstated(known, stated)]
    return "\n".join(lost) or 0
