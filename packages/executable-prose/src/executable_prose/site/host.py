"""MkDocs, as far as we use what it does not document: what a newer version may change stands here alone."""

import contextlib
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markdown import Markdown
from mkdocs.commands import build
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page

from executable_prose import project
from executable_prose.rendering.page import place

if TYPE_CHECKING:
    from executable_prose.site.serve import Site


PLACES = (
    "config_file_path",
    "docs_dir",
    "plugins",
    "site_dir",
    "theme",
    "watch",
)  # and what pages are not of


def is_mkdocs(md: Markdown) -> bool:
    """Whether a converter is of MkDocs, and of none that stands for it."""
    return "mkdocs_extract_title" in md.treeprocessors


def current_page(config: MkDocsConfig) -> Page:
    """The page that MkDocs is at, which it tells plugins' own code alone."""
    return config._current_page  # type: ignore[return-value]


populate_page = build._populate_page  # as MkDocs has it


@contextlib.contextmanager
def populating(populate: Callable[..., None]) -> Iterator[None]:
    """Let MkDocs's `build` call this function for each page, in place of its own."""
    build._populate_page = populate
    try:
        yield
    finally:
        build._populate_page = populate_page


def make_page(page: Page, site: "Site") -> None:
    """Convert a page and write it, as MkDocs's `build` does for one after the other."""
    populate_page(page, site.config, site.files)
    excluded = page.file.inclusion.is_excluded()
    build._build_page(page, site.config, site.pages, site.nav, site.env, excluded=excluded)


def make_template(name: str, site: "Site") -> None:
    """Write a page of the theme's own, such as 404.html."""
    build._build_theme_template(name, site.env, site.files, site.config, site.nav)


class MkDocs:
    """The parts of a converter that MkDocs asks, once a page is made, for more than its HTML."""

    def __init__(self, md: Markdown) -> None:
        self.md = md
        self.links = md.treeprocessors["relpath"]
        self.anchors = md.treeprocessors["mkdocs_extract_anchors"]
        self.title = md.treeprocessors["mkdocs_extract_title"]
        self.raw = md.preprocessors["mkdocs_raw_html"]

    def settings(self) -> str:
        """The configuration as it was loaded, but for where things lie."""
        config = self.links.config
        plugins = {name: dict(getattr(each, "config", {})) for name, each in config.plugins.items()}
        known = {name: value for name, value in config.items() if name not in PLACES} | {"plugins": plugins}
        text = Path(config.config_file_path).read_text(encoding="utf-8")
        return text + json.dumps(known, default=_described)

    def answers(self) -> dict[str, Any]:
        return {
            "contents": self.md.toc_tokens,
            "title": self.title.title,
            "anchors": sorted(self.anchors.present_anchor_ids | self.raw.present_anchor_ids),
            "links": {file.src_uri: anchors for file, anchors in self.links.links_to_anchors.items()},
        }

    def restore(self, answers: dict[str, Any]) -> None:
        """Let the parts answer as they did when the page was made."""
        self.md.toc_tokens = answers["contents"]
        self.title.title = answers["title"]
        self.anchors.present_anchor_ids = set(answers["anchors"])
        file = self.links.files.get_file_from_path
        self.links.links_to_anchors = {file(uri): anchors for uri, anchors in answers["links"].items()}


def _described(value):
    """What JSON has no form for: an object by its class and what Python shows of it, but for its address."""
    return dict(value) if isinstance(value, Mapping) else re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


class Warnings(logging.Filter):
    """What MkDocs says of links. It names a bad link's page but not its line: add it."""

    BAD_LINK = re.compile(r"Doc file '(?P<page>[^']+)' contains a(?:n \w+)? link '(?P<link>[^']+)'")

    def filter(self, record: logging.LogRecord) -> bool:
        if found := self.BAD_LINK.search(record.getMessage()):
            lab = f"{project.settings().labs}/{Path(found['page']).stem}.py"
            files = [f"docs/{found['page']}", *[lab] * (project.ROOT / lab).is_file()]
            where = place([f"({found['link']}"], files)
            record.msg, record.args = f"{where}: {record.getMessage()}", ()
        return True


class Count(logging.Handler):
    """How many warnings MkDocs and its plugins have given."""

    count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += 1


WARNINGS = Count(logging.WARNING)
logging.getLogger("mkdocs").addHandler(WARNINGS)
logging.getLogger("mkdocs.structure.pages").addFilter(Warnings())
