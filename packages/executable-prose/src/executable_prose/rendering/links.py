"""Where a link of a page leads: MkDocs itself follows those of Markdown alone, and says no line."""

import difflib
import posixpath
import re
from collections.abc import Collection
from typing import NamedTuple
from urllib.parse import unquote

from executable_prose import project
from executable_prose.rendering.page import Page

SCHEMES = ("http", "https", "mailto")
MADE = re.compile(r"data/[\w.-]+\.csv|llms-full\.txt")  # by the build, beside pages


class Link(NamedTuple):
    tag: str
    attribute: str
    value: str
    source: str  # of the whole tag
    raw: bool  # in HTML, which MkDocs leaves as it is


def fault(page: Page, link: Link, ids: Collection[str]) -> str | None:
    """What is wrong about a link of a page with these ids, and what to do; None if it leads somewhere."""
    values = link.value.split(",") if link.attribute == "srcset" else [link.value]
    for value in (
        each.split()[0] if link.attribute == "srcset" and each.strip() else each for each in values
    ):
        if why := _fault(page, value.strip(), link, ids):
            return why
    return None


def _fault(page, value, link, ids):
    path, _, anchor = value.partition("#")
    path = unquote(path.partition("?")[0])
    if not value:
        return f"the {link.attribute} of <{link.tag}> is empty: name what it leads to"
    if found := re.match(r"([\w+.-]+):", path):
        return _unknown(value, found[1].lower())
    if not path and link.raw and anchor and unquote(anchor) not in {*ids, "top"}:
        return f"the link {value!r} leads to no id of this page"
    if not path or path.startswith("//") or (path.startswith("/") and not link.raw):
        return None
    if not link.raw:
        there = project.DOCS / posixpath.dirname(page.path()) / path
        return None if there.exists() else f"the link {value!r} leads to no file of docs/"
    if _is_published(posixpath.normpath(path[1:] if path[0] == "/" else posixpath.join(page.folder(), path))):
        return None
    better = "; in HTML, name it as it is found from the page's address" if path.endswith(".md") else ""
    return f"the link {value!r} leads to no page of the site and no file of docs/{better}"


def _unknown(value, scheme):
    """What is wrong about a link with a scheme, which is an address elsewhere."""
    if scheme in SCHEMES[:2] and not re.match(r"\w+://[^/]", value):
        return f"the link {value!r} names no host: write {scheme}://"
    near = difflib.get_close_matches(scheme, SCHEMES, n=1, cutoff=0.75)
    if near and scheme not in SCHEMES:
        return f"the link {value!r} has an unknown scheme; did you mean {near[0]!r}?"
    return None


def _is_published(path):
    """Whether the site has a page of this address, or a file of docs/ or of the engine."""
    file, page = project.DOCS / path, path.removesuffix("index.html")
    pages = (f"{page}.md", f"{page}.py", f"{page}/index.md", f"{page}/README.md")
    return path.split("/")[0] != ".." and (
        any((project.DOCS / each).is_file() for each in pages)
        or (file.is_file() and file.suffix != ".md")
        or (project.ENGINE / path).is_file()
        or bool(MADE.fullmatch(path))
    )
