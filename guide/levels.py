"""The four depths of a chapter: `??? level-basic "Basic: …"` boxes, in the order of LEVELS."""

import itertools
import re
import xml.etree.ElementTree as ElementTree

from markdown.extensions import Extension
from markdown.treeprocessors import Treeprocessor
from markdown.util import HTML_PLACEHOLDER_RE

from executable_prose import glossary
from executable_prose.errors import BuildFault
from guide.breaks import Breaks

# What sources and addresses call a level, and what readers do.
LEVELS = {
    "layman": "In plain words",
    "basic": "Basic",
    "intermediate": "Intermediate",
    "advanced": "Advanced",
}
IDEA = "the-idea"  # the section of a chapter whose levels the table of contents names
GLANCE = "at-a-glance"  # a box that nobody sees who stays in plain words
OPEN = ("basic",)  # how deep a page is open for a reader who has not chosen


class LevelsExtension(Extension):
    def extendMarkdown(self, md):
        # After the terms and before MkDocs collects what links may lead to: both have 5, too.
        md.treeprocessors.register(Levels(md), "guide-levels", 5)
        md.postprocessors.register(Breaks(md), "guide-breaks", 5)  # once stored HTML is in its place


class Levels(Treeprocessor):
    """Give each level an id that links can name, and open those for a reader who has not chosen.

    In plain words, and on the front page, a term of the glossary has its plain meaning.

    What follows the level in plain words stands in a box, which levels.js closes for readers who stop
    there; it opens a `??? from-advanced` box for readers who ask for everything. Sections before the idea
    stand in a box of their own, which the style sheet hides in plain words.
    """

    def run(self, root):
        self._walk(root, "", {})
        for box in [root, *root.iter("details")]:
            self._pair(box)
        plain = next((n for n, child in enumerate(root) if child.get("id", "").endswith("-layman")), None)
        if plain is not None:
            plain -= self._box_sections_before_the_idea(root)
        if plain is not None or self.md.page.path() == "index.md":
            self._put_plainly(root[: None if plain is None else plain + 1])
        if plain is not None and (rest := root[plain + 1 :]):
            del root[plain + 1 :]
            box = ElementTree.SubElement(root, "details", {"class": "from-basic", "open": "open"})
            ElementTree.SubElement(box, "summary").text = "For those who build such programs"
            box.extend(rest)

    @staticmethod
    def _box_sections_before_the_idea(root):
        """Put the sections before the idea into a box; return how many elements fewer there are."""
        heads = [n for n, child in enumerate(root) if child.tag == "h2"]
        idea = next((n for n in heads if root[n].get("id") == IDEA), None)
        if idea is None or heads[0] == idea:
            return 0
        box = ElementTree.Element("div", {"class": GLANCE})
        box.extend(root[heads[0] : idea])
        root[heads[0] : idea] = [box]
        return len(box) - 1

    @staticmethod
    def _put_plainly(elements):
        """Give terms of the glossary their meaning in plain words."""
        known = {term.id: term.plain for term in glossary.terms()}
        for element in (each for each in elements if each.get("class") != GLANCE):
            for link in element.iter("a"):
                if link.get("class") == "term":
                    link.set("title", known[link.get("href").partition("#")[2]])

    def _pair(self, parent):
        """Put a listing into one box with the text before it: they stand side by side where there is room."""
        text, after = [], list(parent)
        while after:
            child = after.pop(0)
            if child.get("class") == "place" and text:
                pair = ElementTree.Element("div", {"class": "beside"})
                parent.insert(list(parent).index(text[0]), pair)
                code = [child, *itertools.takewhile(self._is_box, after)]
                for side in (text, code):
                    ElementTree.SubElement(pair, "div").extend(side)
                    for element in side:
                        parent.remove(element)
            is_text = (
                child.tag in ("p", "ul", "ol") and not self._is_box(child) and child.get("class") is None
            )
            text = [*text, child] if is_text else []

    @staticmethod
    def _is_box(element):
        """Whether an element stands for HTML that a directive has made."""
        return element.tag == "p" and HTML_PLACEHOLDER_RE.fullmatch((element.text or "").strip())

    def _walk(self, parent, heading, seen):
        """A heading names what follows it in the same block, not what follows the block."""
        for element in parent:
            level = re.search(r"(?<!\S)(level|from)-(\S+)", element.get("class", ""))
            if re.fullmatch("h[1-6]", str(element.tag)):
                heading = element.get("id", "")
            elif element.tag == "details" and level:
                self._known(*level.groups())
                if level[1] == "level":
                    self._mark(element, level[2], f"{heading}-{level[2]}".strip("-"), seen)
            elif element.get("class") == "needs":
                element.set("data-search-exclude", "")  # on all pages much the same words
            self._walk(element, heading, seen)

    def _known(self, kind, level):
        if level not in LEVELS:
            where = self.md.page.where(f"{kind}-{level}")
            raise BuildFault(f"{where}: unknown level {level!r}; the levels are {', '.join(LEVELS)}")

    def _mark(self, element, level, name, seen):
        seen[name] = seen.get(name, 0) + 1
        element.set("id", name if seen[name] == 1 else f"{name}-{seen[name]}")
        if element.get("id") == f"{IDEA}-{level}":
            (idea,) = (part for page in self.md.toc_tokens for part in page["children"] if part["id"] == IDEA)
            words, deeper = LEVELS[level], idea["level"] + 1
            entry = idea | {"level": deeper, "id": name, "name": words, "html": words, "children": []}
            idea["children"].append(entry)
        element.attrib.pop("open", None)
        if level in OPEN:
            element.set("open", "open")
