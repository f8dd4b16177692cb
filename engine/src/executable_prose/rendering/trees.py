"""What is done to a page once Markdown has read it: terms of the glossary, and links that lead somewhere."""

import html
import posixpath
import re
import xml.etree.ElementTree as ElementTree
from urllib.parse import unquote

from markdown.treeprocessors import Treeprocessor
from markdown.util import AMP_SUBSTITUTE, AtomicString

from executable_prose import glossary, project
from executable_prose.errors import BuildFault


class Terms(Treeprocessor):
    """Link a term of the glossary to its meaning, at its first use in a section or a box.

    Not on a page whose front matter has `glossary: false`.
    """

    SENTENCES = ("p", "li", "td", "em", "strong")
    AROUND = ("div", "figure", "figcaption", "details", "ul", "ol", "table", "tbody", "tr")

    def run(self, root: ElementTree.Element) -> None:
        if self.md.page.path() == glossary.FILE:
            for entry in root.iter("dt"):
                entry.text = entry.text.split(",")[0]  # other forms are for finding it
                entry.set("id", glossary.identifier(entry.text))
        elif self.md.page.said.get("glossary", True) and (known := glossary.terms()):
            self.words, self.forms = glossary.pattern(known)
            self._walk(root, set())

    def _walk(self, parent, met):
        for element in list(parent):
            if element.tag == "h2":
                met.clear()
            elif element.tag in (*self.SENTENCES, *self.AROUND) and element.get("class") != "answer":
                inner = set() if "level-" in element.get("class", "") else met
                self._mark(element, "text", element, inner)
                self._walk(element, inner)
            self._mark(parent, "tail", element, met)

    def _mark(self, parent, part, element, met):
        """Link the terms not yet met in one piece of a parent's text: its own or an element's tail."""
        text = getattr(element, part)
        if not text or parent.tag not in self.SENTENCES:
            return
        for word in self.words.finditer(text):
            term = self.forms[word[1].lower()]
            if term.id not in met:
                met.add(term.id)
                link = ElementTree.Element("a", {"class": "term"})
                link.set("title", term.meaning)
                link.set("href", f"{self.md.page.to(glossary.FILE)}#{term.id}")
                link.text, link.tail = AtomicString(word[0]), text[word.end() :]
                setattr(element, part, text[: word.start()])
                parent.insert(0 if part == "text" else list(parent).index(element) + 1, link)
                self._mark(parent, "tail", link, met)
                return


class Ids(Treeprocessor):
    """Refuse an id that the page has twice: links lead to the first alone."""

    def run(self, root: ElementTree.Element) -> None:
        known: set[str] = set()
        for element in root.iter():
            name = element.get("id", "")
            if name in known:
                where = self.md.page.where(f"#{name}", name)
                raise BuildFault(f"{where}: the page has the id {name!r} twice: give one of them another")
            known |= {name} - {""}


class Links(Treeprocessor):
    """Refuse a link to a file that is not there; MkDocs itself says no line."""

    def run(self, root: ElementTree.Element) -> None:
        for element in root.iter():
            link = element.get("href") or element.get("src") or ""
            link = html.unescape(link.replace(AMP_SUBSTITUTE, "&"))
            path = unquote(re.split("[?#]", link)[0])
            if not path or re.match(r"[\w+.-]+:|/", path):
                continue
            if not (project.DOCS / posixpath.dirname(self.md.page.path()) / path).exists():
                where = self.md.page.where(f"({link}", f"]: {link}", link)
                raise BuildFault(f"{where}: the link {link!r} leads to no file of docs/")
