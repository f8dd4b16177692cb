"""What prose may hold: no program, nothing that another host would send, no markup that is left as written.

What comes out of Markdown is read, whole, with the HTML that a page brings along. Of what directives and the
theme make, the ids alone are. site/csp.py has browsers hold the same line.
"""

import html.entities
import re
import unicodedata
from collections.abc import Callable
from html.parser import HTMLParser
from typing import NamedTuple, NoReturn
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element

from markdown.treeprocessors import Treeprocessor
from markdown.util import AMP_SUBSTITUTE, HTML_PLACEHOLDER_RE

from executable_prose.errors import BuildFault
from executable_prose.rendering import links
from executable_prose.rendering.leftovers import OPAQUE, leftover

ELEMENTS = {
    **dict.fromkeys(("script",), "what a page does stands in a script of docs/assets"),
    **dict.fromkeys(("style", "link"), "how a page looks stands in a style sheet of docs/assets"),
    **dict.fromkeys(("iframe", "frame", "frameset", "object", "embed", "applet"), "link to it"),
    **dict.fromkeys(("base", "meta"), "what holds for a whole page stands in the theme's main.html"),
}
WORDS = ("alt", "title", "aria-label")  # attributes that are shown and never followed
LOADED = ("src", "srcset", "poster", "background", "action", "formaction", "ping", "xlink:href")
FOLLOWED = ("a", "area")  # elements whose href waits for the reader
LINKS = ("href", "src", "srcset", "poster", "xlink:href")
RUNS = re.compile(r"(?:^|;)\s*(?:java|vb)script:", re.I)
# Signs of control, but for two that are Markdown's own by now, and those that turn the way text runs.
UNSEEN = re.compile(r"[\x00\x01\x04-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
STYLES = re.compile(r"url\((?!\s*['\"]?(?:#|data:))|image-set|@import|\\", re.I)
ESCAPED = re.compile("\x02(\\d+)\x03")  # a sign after a backslash, as Markdown keeps it until the end
ID = re.compile(r'\sid="([^"]+)"')

VOID = ("area", "br", "col", "hr", "img", "input", "source", "track", "wbr")
OPEN_ENDED = (  # elements that HTML lets end by themselves
    *("p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot", "colgroup", "caption"),
    *("option", "optgroup", "rt", "rp"),
)
WITHIN_LINES = (
    *("a", "abbr", "b", "bdi", "bdo", "br", "cite", "code", "data", "del", "dfn", "em", "i", "img", "ins"),
    *("kbd", "label", "mark", "math", "q", "s", "samp", "small", "span", "strong", "sub", "sup", "svg"),
    *("time", "tt", "u", "var", "wbr"),
)
SHOWS = ("code", "pre", "kbd", "samp", "tt", "var", "textarea", "math", "svg")  # what stands in them
SHOWN = re.compile(r"\b(?:arithmatex|value)\b")  # and in elements of these classes
Attributes = list[tuple[str, str | None]]


class Made(str):
    """HTML that a directive made, which Markdown leaves alone."""


class Opened(NamedTuple):
    tag: str
    source: str
    shows: bool


class Prose(Treeprocessor):
    """Refuse what may not occur in a page's prose, as it comes out of Markdown."""

    def run(self, root: Element) -> None:
        reader = Whole(self._refuse)
        whole = self.md.serializer(root)
        self._feed(reader, whole[whole.index(">") + 1 : whole.rindex("<")], raw=False)
        reader.end()
        names: set[str] = set()
        for name in reader.ids:
            if name in names:
                headings = ("".join(each.itertext()) for each in root.iter() if each.get("id") == name)
                words = [re.match(r"[\w ,.-]*", heading)[0].strip() for heading in headings]  # type: ignore[index]
                why = f"the page has the id {name!r} twice: give one of them another"
                self._refuse(why, f"#{name}", f'"{name}"', *words, name)
            names.add(name)
        for link in reader.links:
            if fault := links.fault(self.md.page, link, names | reader.names):
                written = link.value or ")"
                self._refuse(fault, f"({written}", f"]: {written}", link.source, link.value)

    def _feed(self, reader, text, raw):
        """Read a text with what Markdown has kept aside in it."""
        as_text = self.md.postprocessors["raw_html"].stash_to_string
        for number, part in enumerate(HTML_PLACEHOLDER_RE.split(text)):
            if number % 2 == 0:
                reader.raw = raw
                reader.feed(part.replace(AMP_SUBSTITUTE, "&"))
            elif isinstance(kept := self.md.htmlStash.rawHtmlBlocks[int(part)], Made):
                reader.pass_over(kept)
            else:
                self._feed(reader, as_text(kept), raw=True)

    def _refuse(self, why, *texts):
        raise BuildFault(f"{self.md.page.where(*filter(None, texts))}: {why}")


class Reader(HTMLParser):
    """Calls `refuse` with what is wrong, and with texts by which to locate it."""

    def __init__(self, refuse: Callable[..., NoReturn]) -> None:
        super().__init__(convert_charrefs=False)
        self._refuse = refuse

    def read(self, text: str) -> None:
        self.feed(text)
        self.close()

    def handle_data(self, text: str) -> None:
        if sign := UNSEEN.search(text):
            number = ord(sign[0])
            written = (f"&#{number};", f"&#x{number:x};", f"&#x{number:X};")
            self._refuse(f"prose may hold no {unseen(text)}", sign[0], *written)

    def handle_charref(self, name: str) -> None:
        Reader.handle_data(self, html.unescape(f"&#{name};"))

    def handle_starttag(self, tag: str, attributes: Attributes) -> None:
        source = self.get_starttag_text() or ""
        if tag in ELEMENTS:
            self._refuse(f"prose may hold no <{tag}>: {ELEMENTS[tag]}", source, f"<{tag}")
        for name, value in attributes:
            Reader.handle_data(self, value or "")
            if why := _fault(tag, name, value or ""):
                written = re.findall(r'"([^"]+)"', source)  # the value as it was escaped is one of these
                self._refuse(f"prose may hold no {why}", source, f"({value}", *written, value or name, name)

    def handle_comment(self, text: str) -> None:
        """Browsers and Python disagree where some of these end."""
        Reader(self._refuse).read(text)

    handle_decl = handle_pi = unknown_decl = handle_comment  # type: ignore[assignment]


class Whole(Reader):
    """Reads a whole page: refuses elements that do not end and markup in text, and collects ids and links."""

    def __init__(self, refuse: Callable[..., NoReturn]) -> None:
        super().__init__(refuse)
        self.raw = False  # whether this was HTML in the page
        self.ids: list[str] = []
        self.names: set[str] = set()  # what links may lead to besides
        self.links: list[links.Link] = []
        self._open: list[Opened] = []
        self._text: list[str] = []
        self._left: tuple[str, ...] = ()  # the first markup in text: HTML that does not end tells more

    def pass_over(self, made: str) -> None:
        """What a directive made."""
        self.ids += ID.findall(made)
        self._end_text()

    def end(self) -> None:
        self.close()
        self._check_closed(self._open, ())  # an open paragraph takes in the rest of the page
        self._end_text()
        if self._left:
            self._refuse(*self._left)

    def handle_starttag(self, tag: str, attributes: Attributes) -> None:
        super().handle_starttag(tag, attributes)
        given = {name: ESCAPED.sub(_sign, value or "") for name, value in attributes}
        self.ids += [given["id"]] if given.get("id") else []
        self.names |= {given.get("name", "")} if tag == "a" else set()
        source = self.get_starttag_text() or ""
        self.links += [
            links.Link(tag, name, given[name], source, self.raw) for name in LINKS if name in given
        ]
        for name, value in attributes:
            if name in WORDS:
                self._check_text(ESCAPED.sub(OPAQUE, value or ""))
        shows = tag in SHOWS or bool(SHOWN.search(given.get("class", "")))
        self._put(OPAQUE if shows or tag == "img" else "\n" if tag == "br" else "", tag)
        if tag not in VOID:
            self._open.append(Opened(tag, source, shows))

    def handle_startendtag(self, tag: str, attributes: Attributes) -> None:
        self.handle_starttag(tag, attributes)
        if tag in VOID:
            return
        opened = self._open.pop()
        if not any(each.tag in ("svg", "math") for each in (*self._open, opened)):
            why = f"<{tag}/> opens an element that nothing closes: write <{tag}></{tag}>"
            self._refuse(why, opened.source, f"<{tag}")

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        self._put("", tag)
        around = next((n for n in reversed(range(len(self._open))) if self._open[n].tag == tag), None)
        if around is None:
            self._refuse(f"</{tag}> closes no element: remove it, or open one", f"</{tag}>", f"</{tag}")
        self._check_closed(self._open[around + 1 :])
        del self._open[around:]

    def handle_data(self, text: str) -> None:
        super().handle_data(text)
        self._put(ESCAPED.sub(OPAQUE, text))

    def handle_charref(self, name: str) -> None:
        super().handle_charref(name)
        self._put(OPAQUE)

    def handle_entityref(self, name: str) -> None:
        if f"{name};" not in html.entities.html5:
            self._refuse(f"'&{name};' would be shown as it stands: HTML has no such sign", f"&{name}")
        self._put(OPAQUE if self.raw else html.unescape(f"&{name};"))

    def _put(self, text, tag=None):
        """Add to the text of a block; the tag of a block begins another."""
        if tag and tag not in WITHIN_LINES:
            self._end_text()
        if not any(each.shows for each in self._open):
            self._text.append(text)

    def _end_text(self):
        self._check_text("".join(self._text))
        self._text = []

    def _check_text(self, text):
        if not self._left and (found := leftover(text)):
            shown, why = found
            parts = sorted(re.split(rf"[\n{OPAQUE}]", shown), key=len, reverse=True)
            self._left = (why, shown, *parts)

    def _check_closed(self, opened, open_ended=OPEN_ENDED):
        for each in opened:
            if each.tag not in open_ended:
                why = f"<{each.tag}> is never closed, or too late: write </{each.tag}> where it ends"
                self._refuse(why, each.source, f"<{each.tag}")


def _sign(escaped):
    return chr(int(escaped[1]))


def unseen(text: str) -> str | None:
    """What a text has that nobody would see, and that may change how the rest is seen; None if nothing."""
    if not (found := UNSEEN.search(text)):
        return None
    name = unicodedata.name(found[0], "a control character")
    return f"sign that nobody sees, it has U+{ord(found[0]):04X} ({name}): write it as code would, escaped"


def _fault(tag, name, value):
    """What is wrong with an attribute, and what to do; None if nothing is."""
    if name.startswith("on"):
        return f"event handler, it has {name}=: let a script of docs/assets listen"
    if name == "srcdoc":
        return f"page within the page, it has {name}=: link to it"
    address = re.sub(r"[\x00-\x1f]", "", value).strip()  # as browsers read it
    if name == "href" and tag in FOLLOWED and address.lower().startswith("data:"):
        return f"page within a link, it has {value[:60]!r}: put the file into docs/ and link to it"
    if name not in WORDS and RUNS.search(address):
        return f"address that runs a script, it has {value!r}: let a script of docs/assets listen"
    loaded = name in LOADED or (name == "href" and tag not in FOLLOWED)
    if loaded and any(map(_elsewhere, address.split(",") if name == "srcset" else [address])):
        return f"<{tag}> from another host, it has {value!r}: put the file into docs/ and name it from there"
    if name not in (*WORDS, "href", *LOADED) and STYLES.search(value):
        looks = "how a page looks stands in a style sheet of docs/assets"
        return f"style that loads, it has {name}={value!r}: {looks}"
    return None


def _elsewhere(address):
    try:
        parts = urlsplit(address.strip().replace("\\", "/"))
    except ValueError:  # no address at all
        return True
    return bool(parts.netloc) or parts.scheme in ("http", "https", "ftp")
