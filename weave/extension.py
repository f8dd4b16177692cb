"""The Markdown extension: where what a page may say beyond Markdown is read.

CONTRIBUTING.md has all that it may say. Directives stand on lines of their own; values, claims and formulas
within sentences. Levels are `??? level-basic "Basic: …"` blocks (pymdownx.details).
"""

import decimal
import functools
import html
import itertools
import logging
import math
import posixpath
import re
import sys
import traceback
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from urllib.parse import unquote

import yaml
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.postprocessors import Postprocessor
from markdown.preprocessors import Preprocessor
from markdown.treeprocessors import Treeprocessor
from markdown.util import AMP_SUBSTITUTE, HTML_PLACEHOLDER_RE, AtomicString
from math_core import LatexError, LatexToMathML
from mkdocs.utils import meta

from weave import glossary, pages, project
from weave.claims import ClaimError, registry
from weave.directives import FENCES, code
from weave.errors import TooLong, WeaveError, within
from weave.prose import Made, Prose, unseen
from weave.results import Results, Unavailable

VALUE = r"(?<!`)`#!val\s+([^\s`]+)(?:\s+([^`]*?))?\s*`(?!`)"
NAMELESS = (
    r"(?<!`)`(#!(?:val|value|claim|minute)s?(?:\s[^`]*)?)`(?!`)"  # what neither is, and was meant to be
)
CLAIM = r"(?<!`)`#!claim\s+([^`]+?)\s*`(?!`)"
BOUND = re.compile(r"(?:(?P<how>\S+)\s+)?(?P<direction>up|down)")  # a format, rounded to one side
ROUNDED = {"up": decimal.ROUND_CEILING, "down": decimal.ROUND_FLOOR}
RESULTS = Results()  # one for all pages of a build, and for all builds of a server
# What sources and addresses call a level, and what readers do.
LEVELS = {
    "layman": "In plain words",
    "basic": "Basic",
    "intermediate": "Intermediate",
    "advanced": "Advanced",
}
LIMIT = 60  # processor seconds to read a page
WIDEST = 99  # digits or letters of a value
BIBLIOGRAPHY = "bibliography.md"  # titles of others, in which no word is ours
IDEA = "the-idea"  # the section of a chapter whose levels the table of contents names
OPEN = ("layman", "basic")  # how deep a page is open for a reader who has not chosen


class WeaveExtension(Extension):
    """Register the parts; see the module's docstring for what they read."""

    config = {
        "repository": ["", "address of the repository, to link files on its main branch"],
        "site": ["", "address of the home page, for the links in notebooks"],
        "data": [False, "whether weave/build.py writes the data of figures"],
    }

    def extendMarkdown(self, md):
        addresses = {name: self.getConfig(name).rstrip("/") for name in ("repository", "site")}
        addresses["data"] = self.getConfig("data")
        md.weave = Page(md, addresses)
        # Before the fences of SuperFences (25), after normalized white space (30).
        md.preprocessors.register(Directives(md), "weave", 28)
        # Before inline code (190).
        md.inlinePatterns.register(Value(VALUE, md), "weave-value", 195)
        md.inlinePatterns.register(ClaimMark(CLAIM, md), "weave-claim", 194)
        md.inlinePatterns.register(Minutes("`#!minutes`", md), "weave-minutes", 193)
        md.inlinePatterns.register(Nameless(NAMELESS, md), "weave-nameless", 192)
        # With the table of contents, which gives headings their ids first, and before MkDocs, which
        # collects what links may lead to: both have 5. Before links are resolved (0).
        md.treeprocessors.register(Levels(md), "weave-levels", 5)
        md.treeprocessors.register(Terms(md), "weave-terms", 5)
        md.treeprocessors.register(Ids(md), "weave-ids", 4)
        md.treeprocessors.register(Links(md), "weave-links", 3)
        md.treeprocessors.register(Dollars(md), "weave-dollars", 2)
        # Before what is kept from Markdown is put back (30).
        md.postprocessors.register(Prose(md), "weave-prose", 35)
        md.postprocessors.register(Mathematics(md), "weave-math", -10)
        md.postprocessors.register(Marks(md), "weave-marks", -11)
        md.convert = functools.partial(_convert, md)


def _convert(md, text):
    page = md.weave
    RESULTS.visit(page.path(), text)
    try:
        with within(LIMIT):
            return pages.converted(text, md, RESULTS, WARNINGS)
    except (RecursionError, TooLong) as error:
        nested = isinstance(error, RecursionError)
        why = "this is nested too deep" if nested else f"this takes more than {LIMIT} seconds to read"
        raise WeaveError(f"{page.where(*_read(error))}: {why}: simplify it, or take it apart") from None


def _read(error):
    """The lines of a page that were read when an error was raised, the last first."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    texts = [frame.f_locals.get(name) for frame in reversed(frames) for name in ("data", "text", "block")]
    lines = [line.strip() for text in texts if isinstance(text, str) for line in text.split("\n")]
    return [line for line in lines if len(line) > 1]


class Page:
    """The page being converted: where it is, and on which line a piece of its text stands."""

    def __init__(self, md, addresses):
        self.addresses = addresses
        self._md = md
        self._ids = 0
        self._named = set()
        self._lines = 0
        self._files = []
        self._brought = []  # text that directives have brought, and on which line
        self.shown = {}  # exhibit or lab -> result
        self.top = []  # lines of Markdown for below the title

    def begin(self, lines):
        """Remember how many lines there are: the builder has taken some away at the front."""
        self._lines = len("\n".join(lines).rstrip().split("\n"))
        if lines[0].rstrip() == "---":
            line, why = _front_matter_fault("\n".join(lines))
            raise WeaveError(f"{self.at(line)}: this front matter is not `name: value` in YAML: {why}")
        taken = self._taken()
        if taken and re.match(r"\s*[\w-]+:", taken[0]):
            raise WeaveError(
                f"docs/{self.path()}:1: {taken[0]!r} would be taken for front matter and not be shown: "
                "begin with a heading, or put it between lines of ---"
            )
        for name, value in meta.get_data("\n".join([*taken, ""]))[1].items():
            where = f"docs/{self.path()}:{1 + next(n for n, each in enumerate(taken) if name in each)}"
            if name == "template":
                raise WeaveError(f"{where}: all pages have the template overrides/main.html")
            if name in ("title", "description") and not isinstance(value, str):
                raise WeaveError(f"{where}: the {name} is {value!r}, which is no text: put it in quotes")

    def _taken(self):
        """The lines that the builder has taken away at the front."""
        lines = (project.DOCS / self.path()).read_text(encoding="utf-8").rstrip().split("\n")
        return lines[: len(lines) - self._lines]

    @functools.cached_property
    def claims(self):
        """The registry of claims, read once a page."""
        return registry()

    def result(self, name):
        """The result of an exhibit or a lab, which the page shows."""
        self.shown[name] = RESULTS.get(name)
        return self.shown[name]

    def shows(self, file):
        """Remember that text of this file of the project stands on the page."""
        self._files.append(file)

    def brings(self, line, text):
        """Remember the text that a directive on this line brings to the page's own."""
        self._brought.append((line, text))

    def fresh_id(self, kind):
        """An id that no other box of the page has."""
        self._ids += 1
        return f"{kind}-{self._ids}"

    def first(self, name):
        """Whether this name is asked for the first time on the page."""
        known = name in self._named
        self._named.add(name)
        return not known

    def path(self):
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
        raise WeaveError("weave cannot tell which page it is on: build with MkDocs or Zensical")

    def at(self, line):
        """The place of a line counted, from 1, in what the builder handed over."""
        return f"docs/{self.path()}:{line + len(self._taken())}"

    def where(self, *texts):
        """The place where a piece of the page's text, the first that is there, first stands."""
        files = [f"docs/{self.path()}", *self._files]
        if (place := _place(texts, files)) != files[0]:
            return place
        brought = (self.at(line) for text in texts for line, whole in self._brought if text in whole)
        return next(brought, place)

    @staticmethod
    def minutes(text):
        """How long a page's text takes to read, prose only; formulas and addresses count as a word each."""
        text = re.sub(r"```python.*?```", "", text, flags=re.S)
        text = re.sub(r"\$\$.*?\$\$|\$[^$]+\$|\]\([^)]*\)", " x ", text, flags=re.S)
        return max(1, round(len(re.findall(r"[^\W\d_][\w’'-]*", text)) / 200))

    def up(self):
        """The way from this page, as it stands in the site, to its root."""
        # Zensical takes links for those of the source, and itself goes up from the folder of a page.
        folder = not self.path().endswith("index.md") and "zensical" not in sys.modules
        return "../" * (self.path().removesuffix("index.md").count("/") + folder)

    def to(self, target):
        """A link from this page to another file of docs/."""
        return posixpath.relpath(target, posixpath.dirname(self.path()) or ".")


class Directives(Preprocessor):
    """Replace each directive by the HTML that it stands for."""

    FENCE = re.compile(r"^(?P<indent>\s*)(?P<fence>`{3,}|~{3,})\s*(?P<kind>[\w-]*)(?P<rest>[^`]*)$")
    LISTING = re.compile(r'^(?P<indent>\s*)--8<--\s+"(?P<file>[^"@]+)(?:@(?P<symbol>[^"]+))?"\s*$')
    MISPLACED = re.compile(
        rf"^\s*((>|[-*+]|\d+[.)])\s+)*(;*-+8<-+|(`{{3,}}|~{{3,}})\s*({'|'.join(FENCES)})\b)", re.I
    )
    SHOWN = ("markdown", "md")  # fences that show how a directive is written

    def run(self, lines):
        self.md.weave.begin(lines)
        made, number = [], 0
        while number < len(lines):
            if fence := self.FENCE.match(lines[number]):
                end = self._end(lines, number, fence)
                if fence["kind"] not in self.SHOWN:
                    self._refuse_within(lines, number + 1, end)
                if fence["kind"] in FENCES:
                    body = [line.removeprefix(fence["indent"]) for line in lines[number + 1 : end]]
                    made += self._make(FENCES[fence["kind"]], fence, number + 1, fence["rest"].strip(), body)
                else:
                    made += lines[number : end + 1]
                number = end
            elif listing := self.LISTING.match(lines[number]):
                made += self._make(code.listing, listing, number + 1, listing["file"], listing["symbol"])
            elif self.MISPLACED.match(lines[number]):
                where, text = self.md.weave.at(number + 1), lines[number].strip()
                raise WeaveError(f"{where}: {text!r} must stand on lines of its own, its file in quotes")
            else:
                made.append(lines[number])
            number += 1
        title = next((n for n, line in enumerate(made, 1) if line.startswith("# ")), 0)
        return [*made[:title], "", *self.md.weave.top, "", *made[title:]] if self.md.weave.top else made

    def _refuse_within(self, lines, start, end):
        """A fence shows what is in it as it stands."""
        for number in range(start, end):
            if self.MISPLACED.match(lines[number]):
                where, text = self.md.weave.at(number + 1), lines[number].strip()
                raise WeaveError(
                    f"{where}: {text!r} would be shown as it stands: take away the fence around it, "
                    'as in --8<-- "snippets/name.py@symbol" on a line of its own '
                    "(only a ```markdown fence shows how it is written)"
                )

    def _end(self, lines, start, fence):
        """The number of the line that closes a fence."""
        close = re.compile(rf"^\s*{fence['fence'][0]}{{{len(fence['fence'])},}}\s*$")
        for number in range(start + 1, len(lines)):
            if close.match(lines[number]):
                return number
        raise WeaveError(f"{self.md.weave.at(start + 1)}: the block that begins here is never closed")

    def _make(self, directive, match, line, *arguments):
        """The lines that stand for a directive; its HTML is kept from Markdown."""
        try:
            parts = directive(self.md.weave, *arguments)
        except (code.DirectiveError, Unavailable) as error:
            raise WeaveError(f"{self.md.weave.at(line)}: {error}") from None
        placed = [""]
        for part in parts:
            if isinstance(part, str):
                if why := unseen(part):
                    raise WeaveError(f"{self.md.weave.at(line)}: what is shown here may hold no {why}")
                text = [self.md.htmlStash.store(Made(part))]
            else:
                text = part
                self.md.weave.brings(line, "\n".join(part))
            placed += [*(match["indent"] + line for line in text), ""]
        return placed


class Minutes(InlineProcessor):
    """How long the page takes to read, prose only, at 200 words a minute."""

    def handleMatch(self, match, data):
        text = (project.DOCS / self.md.weave.path()).read_text(encoding="utf-8")
        return str(Page.minutes(text)), match.start(0), match.end(0)


class Value(InlineProcessor):
    """A number that an exhibit returned, as the page wants it formatted."""

    def handleMatch(self, match, data):
        try:
            text = formatted(self.md.weave.result, match[1], match[2] or "")
        except (Unavailable, ValueError) as error:
            raise WeaveError(f"{self.md.weave.where(match[0], match[1])}: {error}") from None
        if why := unseen(text):
            raise WeaveError(f"{self.md.weave.where(match[0], match[1])}: a value may hold no {why}")
        element = ElementTree.Element("span", {"class": "value", "title": f"computed by exhibits/{match[1]}"})
        number = re.fullmatch(r"(?P<sign>[+-]?)(?P<digits>[\d.,_]+%?)(?:e(?P<power>[+-]\d+))?", text)
        if number:
            text = number["sign"].replace("-", "−") + number["digits"]
        if number and number["power"]:
            text += " × 10"
            raised = ElementTree.SubElement(element, "sup")
            raised.text = AtomicString(str(int(number["power"])).replace("-", "−"))
        if number:
            element.set("class", "value number")
        element.text = AtomicString(text)
        return element, match.start(0), match.end(0)


def formatted(result, name, how):
    """A value `module.exhibit.key` as a page wants it; `result` gives what an exhibit gave.

    After the format, `up` or `down` keeps a bound on its safe side: at most .13 up, at least .12 down.
    """
    exhibit, _, key = name.rpartition(".")
    values = result(exhibit)["values"]
    if key not in values:
        known = ", ".join(values) or "none"
        raise Unavailable(f"exhibit {exhibit!r} returns no value {key!r}; it returns {known}")
    if isinstance(values[key], str) and not how:
        return values[key]
    try:
        if any(int(size) > WIDEST for size in re.findall(r"\d+", how)):
            raise ValueError(f"expected at most {WIDEST} digits or letters")
        if bound := BOUND.fullmatch(how):
            return _rounded(values[key], **bound.groupdict())
        return format(values[key], how)
    except ValueError as error:
        text = f"value {name!r} is {values[key]!r}, which {how!r} cannot format: {error}"
        raise ValueError(text) from None


def _rounded(value, how, direction):
    """A number in a format, exactly on one side of it or equal."""
    if not how:
        raise ValueError(f"expected the digits to keep before {direction!r}, as in '.2f {direction}'")
    if isinstance(value, (bool, str)) or not math.isfinite(value):
        raise ValueError(f"only a finite number can be rounded {direction}")
    with decimal.localcontext(rounding=ROUNDED[direction]):
        return format(decimal.Decimal(repr(value)), f"z{how}")  # z: a zero has no sign


class ClaimMark(InlineProcessor):
    """A small mark that links a sentence to the claim that a test holds."""

    def handleMatch(self, match, data):
        try:
            claims = self.md.weave.claims
        except ClaimError as error:
            raise WeaveError(f"{self.md.weave.where(match[0], match[1])}: {error}") from None
        if match[1] not in claims:
            raise WeaveError(
                f"{self.md.weave.where(match[0], match[1])}: no test holds the claim {match[1]!r}"
            )
        statement = claims[match[1]].statement
        mark = ElementTree.Element(
            "a", {"class": "claim", "href": f"{self.md.weave.to('claims.md')}#{match[1]}"}
        )
        if self.md.weave.first(match[1]):  # what the claims page links back to
            mark.set("id", f"states-{match[1]}")
        mark.set("title", statement)
        mark.set("aria-label", f"Tested claim: {statement}")
        mark.text = AtomicString("tested")
        return mark, match.start(0), match.end(0)


class Nameless(InlineProcessor):
    """Refuse a value, a claim or the minutes that nothing above has read."""

    def handleMatch(self, match, data):
        where, forms = self.md.weave.where(match[0]), "#!val module.exhibit.key, #!claim id or #!minutes"
        raise WeaveError(f"{where}: {match[1].strip()!r} names nothing: expected {forms}")


class Levels(Treeprocessor):
    """Give each level an id that links can name, and open those for a reader who has not chosen.

    What follows the level in plain words stands in a box, which levels.js closes for those who stop there;
    a `??? from-advanced` box it opens for those who ask for all.
    """

    def run(self, root):
        self._walk(root, "", {})
        for box in [root, *root.iter("details")]:
            self._pair(box)
        plain = next(
            (n for n, child in enumerate(root) if child.get("id", "").endswith("-layman")), len(root)
        )
        if rest := root[plain + 1 :]:
            del root[plain + 1 :]
            box = ElementTree.SubElement(root, "details", {"class": "from-basic", "open": "open"})
            ElementTree.SubElement(box, "summary").text = "For those who build such programs"
            box.extend(rest)

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
            elif element.get("class") == "abstract":
                element.set("data-search-exclude", "")  # on all pages much the same words
            self._walk(element, heading, seen)

    def _known(self, kind, level):
        if level not in LEVELS:
            where = self.md.weave.where(f"{kind}-{level}")
            raise WeaveError(f"{where}: unknown level {level!r}; the levels are {', '.join(LEVELS)}")

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


class Terms(Treeprocessor):
    """Link a term of the glossary to its meaning, at its first use in a section or a level.

    Up to the end of the level in plain words, and on the front page, that is the plain one.
    """

    SENTENCES = ("p", "li", "td", "em", "strong")
    AROUND = ("div", "figure", "figcaption", "details", "ul", "ol", "table", "tbody", "tr")

    def run(self, root):
        if self.md.weave.path() == glossary.FILE:
            for entry in root.iter("dt"):
                entry.text = entry.text.split(",")[0]  # other forms are for finding it
                entry.set("id", glossary.identifier(entry.text))
        elif self.md.weave.path() != BIBLIOGRAPHY and (known := glossary.terms()):
            self.words, self.forms = glossary.pattern(known)
            self.plain = self.md.weave.path() == "index.md" or any(
                "level-layman" in each.get("class", "") for each in root
            )
            self._walk(root, set())

    def _walk(self, parent, met):
        for element in list(parent):
            if element.tag == "h2":
                met.clear()
            elif element.tag in (*self.SENTENCES, *self.AROUND) and element.get("class") != "answer":
                inner = set() if "level-" in element.get("class", "") else met
                self.plain = self.plain and element.get("class") != "from-basic"  # all that follows
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
                link.set("title", term.plain if self.plain else term.meaning)
                link.set("href", f"{self.md.weave.to(glossary.FILE)}#{term.id}")
                link.text, link.tail = AtomicString(word[0]), text[word.end() :]
                setattr(element, part, text[: word.start()])
                parent.insert(0 if part == "text" else list(parent).index(element) + 1, link)
                self._mark(parent, "tail", link, met)
                return


class Ids(Treeprocessor):
    """Refuse an id that the page has twice: links lead to the first alone."""

    def run(self, root):
        known = set()
        for element in root.iter():
            name = element.get("id", "")
            if name in known:
                where = self.md.weave.where(f"#{name}", name)
                raise WeaveError(f"{where}: the page has the id {name!r} twice: give one of them another")
            known |= {name} - {""}


class Links(Treeprocessor):
    """Refuse a link to a file that is not there; MkDocs itself says no line."""

    def run(self, root):
        for element in root.iter():
            link = element.get("href") or element.get("src") or ""
            link = html.unescape(link.replace(AMP_SUBSTITUTE, "&"))
            path = unquote(re.split("[?#]", link)[0])
            if not path or re.match(r"[\w+.-]+:|/", path):
                continue
            if not (project.DOCS / posixpath.dirname(self.md.weave.path()) / path).exists():
                where = self.md.weave.where(f"({link}", f"]: {link}", link)
                raise WeaveError(f"{where}: the link {link!r} leads to no file of docs/")


class Dollars(Treeprocessor):
    """Refuse a formula of its own that has no blank line before and after it: it would stay TeX."""

    def run(self, root):
        for element in root.iter():
            for text in (element.text, element.tail):
                if "$$" in (text or ""):
                    formula = text[text.index("$$") :].strip()
                    where = self.md.weave.where(formula, formula.split("\n")[0])
                    raise WeaveError(f"{where}: $$ must begin and end a paragraph of its own")


class Mathematics(Postprocessor):
    """Turn what arithmatex marks (its generic form) into MathML; what touches a formula stays on its line."""

    MARKED = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>([^\s<>]*)', re.S)
    CONVERTER = LatexToMathML(fancy_error=False)

    def run(self, text):
        parts, end = [], 0
        for match in self.MARKED.finditer(text):
            before = re.search(r"[^\s<>]*\Z", text[max(end, match.start() - 20) : match.start()])[0]
            parts += [text[end : match.start() - len(before)], self._convert(before, *match.groups()[1:])]
            end = match.end()
        return "".join([*parts, text[end:]])

    def _convert(self, before, kind, tex, after):
        tex = html.unescape(tex).strip()
        try:
            mathml = self.CONVERTER.convert_with_local_state(tex, displaystyle=kind == "[")
        except LatexError as error:
            where = self.md.weave.where(tex.split("\n")[0])
            raise WeaveError(f"{where}: bad TeX in {tex!r}: character {error}") from None
        if kind == "[":  # a wide formula scrolls in its own box
            return f'{before}<div class="formula">{mathml}</div>{after}'
        return f'<span class="whole">{before}{mathml}{after}</span>' if before or after else mathml


class Marks(Postprocessor):
    """Keep a mark on the line of the word or formula that it follows."""

    SPACE = re.compile(r'(?P<formula></math>(</span>)?)?\s+(?=<a [^>]*\bclass="claim")')

    def run(self, text):
        # Beside a formula, a no-break space alone does not hold.
        joined = "\\g<formula>\N{WORD JOINER}\N{NO-BREAK SPACE}"
        return self.SPACE.sub(lambda m: m.expand(joined if m["formula"] else "\N{NO-BREAK SPACE}"), text)


CODE = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?^[ \t]*\1[ \t]*$|(?<!`)(`+)(?!`).*?(?<!`)\2(?!`)", re.M | re.S)


def _place(texts, files):
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


def _front_matter_fault(text):
    """The line on which what should be front matter is not, and why."""
    if not (front := meta.YAML_RE.match(text)):
        return 1, "no second line of --- ends it, or it is empty"
    try:
        return 1, f"it is {type(yaml.safe_load(front[1])).__name__}"
    except Exception as error:  # YAML lets through what Python says of a date
        line = error.problem_mark.line + 2 if hasattr(error, "problem_mark") else 1
        return line, " ".join(str(getattr(error, "problem", None) or error).split())


class Warnings(logging.Filter):
    """What MkDocs says of links. It names a bad link's page but not its line: add it."""

    BAD_LINK = re.compile(r"Doc file '(?P<page>[^']+)' contains a(?:n \w+)? link '(?P<link>[^']+)'")
    count = 0

    def filter(self, record):
        self.count += 1
        if found := self.BAD_LINK.search(record.getMessage()):
            files = (f"docs/{found['page']}", f"labs/{Path(found['page']).stem}.py")
            place = _place([f"({found['link']}"], [file for file in files if (project.ROOT / file).is_file()])
            record.msg, record.args = f"{place}: {record.getMessage()}", ()
        return True


WARNINGS = Warnings()
logging.getLogger("mkdocs.structure.pages").addFilter(WARNINGS)
