"""The glossary: its terms, explained where a page first uses one.

docs/glossary.md is a list of definitions. A term's line may name other forms of it, which are
found too; the plural with s need not be named. Of two definitions the first is for those who read
in plain words:

    Query, queries
    :   What a word looks for.
    :   The vector with which a token asks. It is compared with every key.
"""

import functools
import re
from collections.abc import Iterable
from typing import NamedTuple

from executable_prose import project

FILE = "glossary.md"
ENTRY = re.compile(r"^(?P<forms>\w.*)\n:   (?P<meanings>(?:.*\n)+?)(?=\n|\Z)", re.M)
MARKS = re.compile(r"\[([^\]]+)\]\([^)]*\)|[*`$]")


class Term(NamedTuple):
    id: str
    forms: list[str]
    plain: str  # as text, what it means in plain words
    meaning: str


def terms() -> list[Term]:
    """Every term of the glossary; none without a glossary."""
    file = project.DOCS / FILE
    return _terms(file.read_text(encoding="utf-8") if file.is_file() else "")


@functools.lru_cache(maxsize=4)
def _terms(text):
    found = []
    for entry in ENTRY.finditer(text + "\n"):
        forms = [form.strip() for form in entry["forms"].split(",")]
        meanings = [
            MARKS.sub(lambda mark: mark[1] or "", " ".join(meaning.split()))
            for meaning in entry["meanings"].split("\n:   ")
        ]
        found.append(Term(identifier(forms[0]), forms, meanings[0], meanings[-1]))
    return found


def identifier(name: str) -> str:
    """The id of a term on the glossary page."""
    return re.sub(r"\W+", "-", name.lower()).strip("-")


def pattern(known: Iterable[Term]) -> tuple[re.Pattern[str], dict[str, Term]]:
    """A regular expression that finds any of the terms as a whole word, and a map from forms to terms."""
    forms = {form.lower(): term for term in known for form in term.forms}
    longest = sorted(forms, key=len, reverse=True)
    return re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, longest))})s?(?![\w-])", re.I), forms
