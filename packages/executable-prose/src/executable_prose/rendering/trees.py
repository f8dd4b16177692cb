"""What is done to a page once Markdown has read it: terms are linked, values in code are refused."""

import re
import xml.etree.ElementTree as ElementTree

from markdown.treeprocessors import Treeprocessor
from markdown.util import AtomicString

from executable_prose import glossary
from executable_prose.errors import BuildFault


class Terms(Treeprocessor):
    """Link a term of the glossary to its meaning, at its first use on a page, and in each of its levels.

    What stands in a box may be closed: a term that is met only there is linked again outside.

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
            if element.tag in (*self.SENTENCES, *self.AROUND) and element.get("class") != "answer":
                inner = met
                if element.tag == "details":
                    inner = set() if "level-" in element.get("class", "") else set(met)
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


class Indented(Treeprocessor):
    """Refuse a value, a claim or the minutes in code that is code by its indentation alone."""

    MARK = re.compile(r"`\s*#!\s*(?:val|claim|minute).*", re.I)

    def run(self, root: ElementTree.Element) -> None:
        for block in root.iter("pre"):
            if found := self.MARK.search("".join(block.itertext())):
                why = "these lines are code, for they are indented by four columns: indent them less"
                raise BuildFault(
                    f"{self.md.page.where(found[0])}: {why}, or show them in a ```markdown fence"
                )
