"""The built site as files: its pages, their parsed HTML, and where an address in them leads."""

import os
import re
from functools import cached_property
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit
from xml.etree import ElementTree

DIRECTORY = Path(os.environ.get("SITE_DIR", Path(__file__).parents[2] / "site"))
MISSING = f"no built site in {DIRECTORY.name}/ - build the site first: make build"
NOT_FOUND = "404.html"
LEVELS = ("layman", "basic", "intermediate", "advanced")


ANCHOR = re.compile(r"""<\w[^<>]*?\sid=["']?([^"'\s>]+)|<a\s[^<>]*?\bname=["']?([^"'\s>]+)""")


class BuiltSite:
    """A folder of HTML. A page is named by its path in the site: "" for home, "guide/rope/"."""

    def __init__(self, root):
        self.root = Path(root)
        self._soups, self._anchors = {}, {}

    @property
    def exists(self):
        return (self.root / "sitemap.xml").is_file()

    @cached_property
    def locations(self):
        """The full addresses in the sitemap, home page first; none if the site knows no address."""
        tree = ElementTree.parse(self.root / "sitemap.xml")
        locations = [node.text.strip() for node in tree.iterfind(".//{*}loc") if node.text]
        return sorted(locations, key=lambda location: (len(location.split("/")), location))

    @cached_property
    def url(self):
        """`site_url`: the home page's address, which is the shortest."""
        return min(self.locations, key=len, default="http://nowhere.invalid/")

    @property
    def base(self):
        return urlsplit(self.url).path

    @cached_property
    def pages(self):
        if not self.locations:
            return sorted({*self.html_files()} - {NOT_FOUND}, key=lambda path: (path.count("/"), path))
        return [unquote(location.removeprefix(self.url)) for location in self.locations]

    @cached_property
    def chapters(self):
        """Pages with level blocks; not parsed, as this is asked whenever tests are collected."""
        block = re.compile(r"<details\b[^>]*\blevel-")
        return [p for p in self.pages if block.search(self.file(p).read_text(encoding="utf-8"))]

    @cached_property
    def samples(self):
        """Pages that together show the whole template: each has a part that no smaller page has."""
        seen, found = set(), set()
        for path in sorted([*self.pages, NOT_FOUND], key=lambda path: self.file(path).stat().st_size):
            template = Template()
            template.feed(
                re.sub(r"<article\b.*</article>", "", self.file(path).read_text("utf-8"), flags=re.S)
            )
            if template.parts - seen:
                found.add(path)
            seen |= template.parts
        return found

    def file(self, path):
        name = path + "index.html" if not path or path.endswith("/") else path
        return self.root / name

    def soup(self, path):
        from bs4 import BeautifulSoup  # not needed to collect the tests of other folders

        if path not in self._soups:
            html = self.file(path).read_text(encoding="utf-8")
            self._soups[path] = BeautifulSoup(html, "html.parser")
        return self._soups[path]

    @cached_property
    def apart(self):
        """Pages for other sites and for the classroom, in which nobody navigates."""
        return [
            f"{file.parent.relative_to(self.root).as_posix()}/"
            for file in self.root.glob("embed/*/index.html")
        ] + ["slides/"]

    def html_files(self):
        """Every page in the folder, in the sitemap or not, named as above, but those apart."""
        files = sorted(file.relative_to(self.root) for file in self.root.rglob("*.html"))
        names = [re.sub(r"(^|/)index\.html$", r"\1", file.as_posix()) for file in files]
        return [name for name in names if name not in self.apart]

    def anchors(self, path):
        """Names of places in a page, without parsing it: a link may lead to any page."""
        if path not in self._anchors:
            named = ANCHOR.findall(self.file(path).read_text(encoding="utf-8"))
            self._anchors[path] = {unescape(id or name) for id, name in named} | {"", "top"}
        return self._anchors[path]

    def resolve(self, reference, path):
        """(file path in the site or None when it is on another host, fragment)."""
        here = urljoin(self.url, path)
        target, _, fragment = urljoin(here, reference.strip()).partition("#")
        target = target.partition("?")[0]
        if not target.startswith(self.url):
            return None, fragment
        return unquote(target.removeprefix(self.url)), unquote(fragment)


# Attributes of the template that are another on each page; that they have a value is all that counts.
OF_THE_PAGE = {"href", "id", "for", "title", "aria-label", "aria-labelledby"}
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


class Template(HTMLParser):
    """What rules and styles tell elements beside the article by: names and attributes, from the body down.

    A parser of its own, as one that builds a tree takes seconds for all pages.
    """

    def __init__(self):
        super().__init__()
        self.parts, self._open = set(), []

    def handle_starttag(self, tag, attrs):
        values = str([(name, bool(value) if name in OF_THE_PAGE else value) for name, value in attrs])
        if tag == "body" or self._open:
            above = self._open[-1][1] if self._open else ""
            here = f"{above} > {tag} {'' if tag == 'body' else values}"
            self.parts.add(here)
            if tag not in VOID:
                self._open.append((tag, here))

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_data(self, data):
        if data.strip():
            self.parts |= {f"{here} has words" for _, here in self._open}

    def handle_endtag(self, tag):
        """What was not closed itself ends with what it is in."""
        for place in range(len(self._open) - 1, -1, -1):
            if self._open[place][0] == tag:
                del self._open[place:]
                return


SITE = BuiltSite(DIRECTORY)
