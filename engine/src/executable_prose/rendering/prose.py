"""What prose may hold: no program, and nothing that another host would send.

What directives and the theme make is not looked at. site/csp.py has browsers hold the same line.
"""

import re
import unicodedata
from collections.abc import Callable
from html.parser import HTMLParser
from typing import NoReturn
from urllib.parse import urlsplit

from markdown.postprocessors import Postprocessor
from markdown.util import AMP_SUBSTITUTE

from executable_prose.errors import BuildFault

ELEMENTS = {
    **dict.fromkeys(("script",), "what a page does stands in a script of docs/assets"),
    **dict.fromkeys(("style", "link"), "how a page looks stands in a style sheet of docs/assets"),
    **dict.fromkeys(("iframe", "frame", "frameset", "object", "embed", "applet"), "link to it"),
    **dict.fromkeys(("base", "meta"), "what holds for a whole page stands in overrides/main.html"),
}
WORDS = ("alt", "title", "aria-label")  # attributes that are shown and never followed
LOADED = ("src", "srcset", "poster", "background", "action", "formaction", "ping", "xlink:href")
FOLLOWED = ("a", "area")  # elements whose href waits for the reader
RUNS = re.compile(r"(?:^|;)\s*(?:java|vb)script:", re.I)
# Signs of control, but for two that are Markdown's own by now, and those that turn the way text runs.
UNSEEN = re.compile(r"[\x00\x01\x04-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
STYLES = re.compile(r"url\((?!\s*['\"]?(?:#|data:))|image-set|@import|\\", re.I)


class Made(str):
    """HTML that a directive made, which Markdown leaves alone."""


class Prose(Postprocessor):
    """Refuse what has no place in the HTML of a page's prose, while that of directives is still apart."""

    def run(self, text: str) -> str:
        as_text = self.md.postprocessors["raw_html"].stash_to_string
        for part in [text, *self.md.htmlStash.rawHtmlBlocks]:
            if not isinstance(part, Made):
                Reader(self._refuse).read(as_text(part).replace(AMP_SUBSTITUTE, "&"))
        return text

    def _refuse(self, why, *texts):
        raise BuildFault(f"{self.md.page.where(*texts)}: {why}")


class Reader(HTMLParser):
    """Calls `refuse` with what is wrong, and with texts by which to find its place."""

    def __init__(self, refuse: Callable[..., NoReturn]) -> None:
        super().__init__()
        self._refuse = refuse

    def read(self, text: str) -> None:
        self.feed(text)
        self.close()

    def handle_data(self, text: str) -> None:
        if sign := UNSEEN.search(text):
            number = ord(sign[0])
            written = (f"&#{number};", f"&#x{number:x};", f"&#x{number:X};")
            self._refuse(f"prose may hold no {unseen(text)}", sign[0], *written)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        source = self.get_starttag_text() or ""
        if tag in ELEMENTS:
            self._refuse(f"prose may hold no <{tag}>: {ELEMENTS[tag]}", source, f"<{tag}")
        for name, value in attributes:
            self.handle_data(value or "")
            if why := _fault(tag, name, value or ""):
                written = re.findall(r'"([^"]+)"', source)  # the value as it was escaped is one of these
                self._refuse(f"prose may hold no {why}", source, f"({value}", *written, value or name, name)

    def handle_comment(self, text: str) -> None:
        """Browsers and Python disagree where some of these end."""
        Reader(self._refuse).read(text)

    handle_decl = handle_pi = unknown_decl = handle_comment  # type: ignore[assignment]


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
