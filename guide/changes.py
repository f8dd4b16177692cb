"""CHANGES.md: what changed in the files that people copy, for a page and a feed."""

import re
import uuid
from typing import NamedTuple
from xml.etree import ElementTree

from executable_prose import project
from executable_prose.reading import parsed

FILE = "CHANGES.md"
FEED = "changes.xml"
TITLE = "Changes to the files that people copy"
AUTHOR = "The contributors to the executable guide to positional encoding"
KINDS = ("Fixed", "Changed", "Added", "Same", "Removed")
DAY = re.compile(r"## (\d{4}-\d\d-\d\d)")
ENTRY = re.compile(rf"- (?P<kind>{'|'.join(KINDS)}) (?P<names>\w+\.py(?:, \w+\.py)*): (?P<words>.+)")
ATOM = "http://www.w3.org/2005/Atom"
ElementTree.register_namespace("", ATOM)


class ChangesError(Exception):
    """CHANGES.md cannot be read; the message says what is wrong, and where."""


class Entry(NamedTuple):
    date: str
    kind: str
    names: list[str]
    words: str

    @property
    def id(self):
        """The same wherever the site is, and however the words are put."""
        return _id(f"{self.date} {self.kind} {self.names}")


def entries():
    """All of them, as they stand; none where there is no such file."""
    path = project.ROOT / FILE
    return parsed(_entries, path) if path.is_file() else []


def _entries(text):
    found, date, known = [], "", set()
    for number, line in _joined(text):
        if day := DAY.fullmatch(line):
            if date and day[1] >= date:
                raise ChangesError(f"expected a date before {date}, got {day[1]} (at {FILE}:{number})")
            date = day[1]
        elif line.startswith("## ") or (date and line):
            if not (read := ENTRY.fullmatch(line)):
                forms = "'## date' or '- Kind file.py: words'"
                raise ChangesError(f"expected {forms}, one of {KINDS}, got {line!r} (at {FILE}:{number})")
            found.append(Entry(date, read["kind"], read["names"].split(", "), read["words"]))
            if found[-1].id in known:
                raise ChangesError(f"expected one entry for a date, a kind and files (at {FILE}:{number})")
            known.add(found[-1].id)
    return found


def _joined(text):
    """Each line with its number and those below it that go on."""
    number = 1
    for line in re.sub(r"\n  +(?=\S)", "\v", text).split("\n"):
        yield number, line.replace("\v", " ")
        number += 1 + line.count("\v")


def fixes_of(name):
    """What was fixed in a file, the newest first."""
    return [each for each in entries() if each.kind == "Fixed" and name in each.names]


def page_of(name):
    """The page of a file, relative to docs/ and without the end of its name."""
    page = f"reference/{name.removesuffix('.py')}"
    return page if (project.DOCS / f"{page}.md").is_file() else "files"


def write(folder, site):
    """The entries as Atom (RFC 4287); with links, if the site has an address."""
    if found := entries():
        (folder / FEED).write_text(_feed(found, site), encoding="utf-8")


def _feed(found, site):
    root = ElementTree.Element(f"{{{ATOM}}}feed")

    def add(parent, tag, text=None, **attributes):
        element = ElementTree.SubElement(parent, f"{{{ATOM}}}{tag}", attributes)
        element.text = text
        return element

    add(root, "id", _id(FILE))
    add(root, "title", TITLE)
    add(root, "updated", _time(found[0].date))
    add(add(root, "author"), "name", AUTHOR)
    if site:
        add(root, "link", rel="self", type="application/atom+xml", href=f"{site}{FEED}")
        add(root, "link", rel="alternate", type="text/html", href=f"{site}changes/")
    for each in found:
        entry = add(root, "entry")
        add(entry, "id", each.id)
        add(entry, "title", f"{each.kind}: {', '.join(each.names)}")
        add(entry, "updated", _time(each.date))
        add(entry, "category", term=each.kind)
        add(entry, "content", each.words, type="text")
        if site:
            add(entry, "link", rel="alternate", type="text/html", href=f"{site}{page_of(each.names[0])}/")
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _id(name):
    return uuid.uuid5(uuid.NAMESPACE_URL, f"{AUTHOR}: {name}").urn


def _time(date):
    return f"{date}T00:00:00Z"
