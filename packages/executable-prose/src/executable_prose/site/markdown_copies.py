"""A plain Markdown copy of each page, and all of them in one file, for programs that read.

What a directive shows stands in it as code, as text, or as the words that stand for a figure.
"""

import os
import posixpath
import re
from pathlib import Path

from executable_prose import labs, project, symbols, syntax
from executable_prose.execution.results import Results
from executable_prose.registry import ADDED
from executable_prose.rendering.inline import formatted
from executable_prose.rendering.page import Page

LINK = re.compile(
    r"\]\((?!\))(?:(?P<path>[^():#\s]+)\.(?P<end>md|py|json))?(?P<rest>(?:\?[\w=]+)?(?:#[\w-]+)?)\)"
)
ATTRIBUTES = re.compile(r" *\{:? *[.#][\w-]+(?: [^{}]*)?\}")
GAPS = re.compile(r"(^(`{3,}).*?^\2$)|\n{3,}", re.M | re.S)  # but for those of listings
NAME = "index.md"  # beside the page's own index.html


def write(site: Path, results: Results) -> None:
    """The copy of each page in its folder, and llms-full.txt in the order of llms.txt."""
    copy = Copy(results)
    texts = {path: copy.page(path) for path in project.documents("*.md", "notebooks/*.py")}
    for path, text in texts.items():
        file = site / folder(path) / NAME
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(linked(path, text, folder(path)), encoding="utf-8")
    listed = project.DOCS / "llms.txt"
    if listed.is_file():
        places = re.findall(r"^- \[.*?\]\((\S+?)/\)", listed.read_text(encoding="utf-8"), re.M)
        found = {folder(path) or ".": linked(path, text, "") for path, text in texts.items()}
        (site / "llms-full.txt").write_text("\n".join(map(found.get, places)), encoding="utf-8")  # type: ignore[arg-type]


def folder(path: Path) -> str:
    """The folder of the site in which a page stands."""
    return path.relative_to(project.DOCS).with_suffix("").as_posix().removesuffix("index").rstrip("/")


def linked(path: Path, text: str, start: str) -> str:
    """With links to pages of the site, as they are named from the folder `start`."""

    def link(match):
        if match["end"] == "json":  # a file of the site, not a page
            there = path.parent.relative_to(project.DOCS) / f"{match['path']}.json"
            return f"]({posixpath.relpath(there.as_posix(), start or '.')})"
        target = Path(os.path.normpath(path.parent / f"{match['path']}.md")) if match["path"] else path
        there = posixpath.relpath(folder(target) or ".", start or ".")
        return f"]({there}/{match['rest']})"

    return LINK.sub(link, text)


class Copy:
    """Makes copies of pages; directives ask it for results and for code."""

    def __init__(self, results: Results) -> None:
        self.results = results

    def page(self, path: Path) -> str:
        """The text of a page or a notebook."""
        if path.suffix == ".py":
            return "\n".join(self.cells(path.stem)).strip() + "\n"
        text = path.read_text(encoding="utf-8")
        plain = "\n".join(self.plain(syntax.front_matter(text)[1].split("\n")))
        plain = plain.replace(syntax.MINUTES, str(Page.minutes(text)))
        return GAPS.sub(lambda gap: gap[1] or "\n\n", plain).strip() + "\n"

    def plain(self, lines: list[str]) -> list[str]:
        """Lines of a page without what only the site understands."""
        made, number = list[str](), 0
        while number < len(lines):
            if box := syntax.BOX.match(lines[number]):
                end = _dedented(lines, number)
                title = box["title"] or box["kind"].capitalize()
                made += [f"### {title}" if box["kind"].startswith("level-") else f"**{title}**", ""]
                made += self.plain([each.removeprefix("    ") for each in lines[number + 1 : end]])
            else:
                block = syntax.at(lines, number)
                made += self._block(block)
                end = number + len(block.lines)
            number = end
        return made

    def _block(self, block):
        if block.kind is None:
            return [self.words(block.lines[0])]
        if block.kind == syntax.LISTED:
            return self.code(symbols.find(block.argument, block.symbol))
        known = ADDED.directives.get(block.kind)
        return known.told(self, block.argument, block.body) if known and known.told else block.lines

    def words(self, line: str) -> str:
        """A line of prose with its values, and without marks and attributes."""
        line = re.sub(syntax.VALUE, lambda value: formatted(self.results.get, value[1], value[2] or ""), line)
        return ATTRIBUTES.sub("", re.sub(rf" ?{syntax.CLAIM}", "", line))

    def cells(self, name: str) -> list[str]:
        """The cells of a lab or a notebook."""
        cells = (cell.lines if cell.prose else box("python", cell.lines) for cell in labs.cells(name))
        return [line for lines in cells for line in ["", *lines]]

    def code(self, source: symbols.Source) -> list[str]:
        """A listing under the file's name."""
        text = ADDED.files.handed_out("\n".join(source.lines), os.environ.get("SITE_URL", ""))
        return [f"`{source.file}`:", "", *box("python", text.split("\n"))]


def box(kind: str, lines: list[str]) -> list[str]:
    """Lines in a fence."""
    return [f"````{kind}", *lines, "````"]


def _dedented(lines, start):
    """The number of the first line after a box, whose lines stand four columns deeper."""
    after = (n for n in range(start + 1, len(lines)) if lines[n].strip() and not lines[n].startswith("    "))
    return next(after, len(lines))
