"""Claims: sentences that pages state and tests hold.

A test holds a claim by `@pytest.mark.claim("id", "The claim as a sentence.")`; a page
states it by `#!claim id` in backticks. Both are read from the text of the files.
"""

import ast
import re
from typing import NamedTuple

from weave import project
from weave.cached import cached

TITLE = re.compile(r"^title: (.+)$", re.M)
CITATION = re.compile(r"`#!claim\s+([\w-]+)\s*`")


class Test(NamedTuple):
    name: str
    file: str
    line: int


class Claim(NamedTuple):
    id: str
    statement: str
    tests: list[Test]


class ClaimError(Exception):
    """The registry contradicts itself; the message says where."""


def registry():
    """Every claim that a test holds, by id."""
    claims = {}
    for path in sorted((project.ROOT / "tests").rglob("test_*.py")):
        file = path.relative_to(project.ROOT).as_posix()
        for id, statement, name, line in _marked(file, path.read_text(encoding="utf-8")):
            test = Test(name, file, line)
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
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
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


def citations():
    """Where each claim is stated: id -> the pages, relative to docs/, in the order of the nav."""
    found = {}
    for page in in_order(path.relative_to(project.DOCS).as_posix() for path in project.DOCS.rglob("*.md")):
        for id in CITATION.findall((project.DOCS / page).read_text(encoding="utf-8")):
            pages = found.setdefault(id, [])
            if page not in pages:
                pages.append(page)
    return found


def in_order(pages):
    """Pages as the nav has them, those that it has not at the end."""
    file = project.ROOT / "mkdocs.yml"
    nav = file.read_text(encoding="utf-8").split() if file.is_file() else []
    return sorted(pages, key=lambda page: (nav.index(page) if page in nav else len(nav), page))


def title(path):
    """The title of a page, as its front matter has it."""
    found = TITLE.search((project.DOCS / path).read_text(encoding="utf-8"))
    return found[1] if found else path


def unstated(known, stated):
    """The claims of a registry that no page states."""
    return [claim for claim in known.values() if claim.id not in stated]
