"""The page that is being converted: where it is, and on which line a piece of its text stands."""

import difflib
import functools
import posixpath
import re
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, TypeVar

from markdown import Markdown

from executable_prose import project, syntax
from executable_prose.claims import Claim, registry
from executable_prose.errors import BuildFault
from executable_prose.outcome import Result
from executable_prose.rendering.leftovers import leftover

if TYPE_CHECKING:
    from executable_prose.execution.results import Results


Made = TypeVar("Made")
# Keys of front matter: of MkDocs, Material and this engine; and those whose text is shown.
KEYS = (
    *("title", "description", "template", "icon", "status", "subtitle", "hide", "search", "tags", "date"),
    *("authors", "comments", "social", "glossary"),
)
SPOKEN = ("title", "description", "subtitle")


class Addresses(TypedDict):
    repository: str
    site: str
    data: bool  # whether the build writes the data of figures


class Build(Protocol):
    """What a page needs of the build that it belongs to."""

    results: "Results"

    def converted(self, text: str, md: Markdown) -> str:
        """Return the HTML of a page's text, which may be stored."""

    def once(self, make: Callable[[], Made]) -> Made:
        """Return what `make` gives, which may be stored."""


class Page:
    """The page being converted: where it is, and on which line a piece of its text stands."""

    def __init__(self, md: Markdown, addresses: Addresses, build: Build) -> None:
        self.addresses = addresses
        self.build = build
        self._md = md
        self._ids = 0
        self._named: set[str] = set()
        self.text = ""  # of its file
        self._taken: list[str] = []  # the lines at its front that the builder has taken away
        self._files: list[str] = []
        self._brought: list[tuple[int, str]] = []  # text that directives have brought, and on which line
        self.shown: dict[str, Result] = {}  # exhibit or lab -> result
        self.top: list[str] = []  # lines of Markdown for below the title

    @functools.cached_property
    def said(self) -> dict[str, Any]:
        """What the page says of itself at its top."""
        return syntax.front_matter(self.text)[0]

    def begin(self, text: str) -> None:
        """Read the page's file, of which the builder hands over `text`."""
        self.text = (project.DOCS / self.path()).read_text(encoding="utf-8")
        lines = self.text.rstrip().split("\n")
        self._taken = lines[: len(lines) - len(text.rstrip().split("\n"))]

    def check_front_matter(self, text: str) -> None:
        """Refuse front matter that cannot be read, that nothing reads, or that `text` begins with still."""
        if text.split("\n")[0].rstrip() == "---":
            line, why = syntax.front_matter_fault(text)
            raise BuildFault(f"{self.at(line)}: this front matter is not `name: value` in YAML: {why}")
        taken = self._taken
        if taken and re.match(r"\s*[\w-]+:", taken[0]):
            raise BuildFault(
                f"docs/{self.path()}:1: {taken[0]!r} would be taken for front matter and not be shown: "
                "begin with a heading, or put it between lines of ---"
            )
        for name, value in syntax.front_matter("\n".join([*taken, ""]))[0].items():
            where = f"docs/{self.path()}:{1 + next(n for n, each in enumerate(taken) if name in each)}"
            if name == "template":
                raise BuildFault(f"{where}: all pages have the theme's template main.html")
            if name in SPOKEN and not isinstance(value, str):
                raise BuildFault(f"{where}: the {name} is {value!r}, which is no text: put it in quotes")
            if name in SPOKEN and (left := leftover(value)):
                raise BuildFault(f"{where}: in the {name}, {left[1]}")
            near = difflib.get_close_matches(str(name).lower(), KEYS, n=1, cutoff=0.8)
            if near and name not in KEYS:
                raise BuildFault(f"{where}: nothing reads {name!r}; did you mean {near[0]!r}?")
            if name == "glossary" and not isinstance(value, bool):
                raise BuildFault(f"{where}: glossary is true or false, got {value!r}")

    @functools.cached_property
    def claims(self) -> dict[str, Claim]:
        """The registry of claims, read once a build."""
        return self.build.once(registry)

    def result(self, name: str) -> Result:
        """The result of an exhibit or a lab, which the page shows."""
        self.shown[name] = self.build.results.get(name)
        return self.shown[name]

    def shows(self, file: str) -> None:
        """Remember that text of this file of the project stands on the page."""
        self._files.append(file)

    def brings(self, line: int, text: str) -> None:
        """Remember the text that a directive on this line brings to the page's own."""
        self._brought.append((line, text))

    def fresh_id(self, kind: str) -> str:
        """An id that no other box of the page has."""
        self._ids += 1
        return f"{kind}-{self._ids}"

    def first(self, name: str) -> bool:
        """Whether this is the first request for this name on the page."""
        known = name in self._named
        self._named.add(name)
        return not known

    def path(self) -> str:
        """Relative to docs/. MkDocs and Zensical each leave it in a processor of their own."""
        for processors, names in (
            (self._md.treeprocessors, ("file", "src_uri")),
            (self._md.preprocessors, ("page", "path")),
        ):
            for processor in processors:
                owner = getattr(processor, names[0], None)
                if hasattr(owner, names[1]):
                    path = getattr(owner, names[1])
                    return path if isinstance(path, str) else path()
        raise BuildFault("this page is of no builder that is known: build with MkDocs or Zensical")

    def at(self, line: int) -> str:
        """The line number, from 1, in the text that the builder handed over."""
        return f"docs/{self.path()}:{line + len(self._taken)}"

    def where(self, *texts: str) -> str:
        """Where the first of these texts that occurs on the page occurs first."""
        files = [f"docs/{self.path()}", *self._files]
        if (found := place(texts, files)) != files[0]:
            return found
        brought = (self.at(line) for text in texts for line, whole in self._brought if text in whole)
        return next(brought, found)

    @staticmethod
    def minutes(text: str) -> int:
        """How long a page's text takes to read, prose only; formulas and addresses count as a word each."""
        text = re.sub(r"```python.*?```", "", text, flags=re.S)
        text = re.sub(r"\$\$.*?\$\$|\$[^$]+\$|\]\([^)]*\)", " x ", text, flags=re.S)
        return max(1, round(len(re.findall(r"[^\W\d_][\w’'-]*", text)) / 200))

    def up(self) -> str:
        """The way from this page, as it stands in the site, to its root."""
        # Zensical takes links for those of the source, and itself goes up from the folder of a page.
        folder = not self.path().endswith("index.md") and "zensical" not in sys.modules
        return "../" * (self.path().removesuffix("index.md").count("/") + folder)

    def folder(self) -> str:
        """The folder in which browsers, once the site is built, take this page for standing."""
        if "zensical" in sys.modules:
            return posixpath.dirname(self.path())
        return self.path().removesuffix(".md").removesuffix("index")

    def to(self, target: str) -> str:
        """A link from this page to another file of docs/."""
        return posixpath.relpath(target, posixpath.dirname(self.path()) or ".")


CODE = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?^[ \t]*\1[ \t]*$|(?<!`)(`+)(?!`).*?(?<!`)\2(?!`)", re.M | re.S)


def place(texts: Iterable[str], files: list[str]) -> str:
    """Where the first of the texts that stands in one of the files first stands, else the first file.

    What stands in prose is meant before what stands in code.
    """
    wholes = {file: (project.ROOT / file).read_text(encoding="utf-8") for file in files}
    prose = {file: CODE.sub(lambda code: re.sub(r".", " ", code[0]), whole) for file, whole in wholes.items()}
    for text in texts:
        for file, whole in (*prose.items(), *wholes.items()):
            if (start := whole.find(text)) >= 0:
                return f"{file}:{whole.count(chr(10), 0, start) + 1}"
    return files[0]
