"""Whole pages, cached from one build to the next.

A page is made again unless all that decided it is the same: its text, the configuration, weave and the
libraries, every project file that was opened while it was made, and every result on it.
"""

import contextlib
import functools
import hashlib
import importlib.metadata
import json
import sys
from pathlib import Path

from weave import project
from weave.recorder import Listener
from weave.worker import Unavailable

LIBRARIES = ("mkdocs", "Markdown", "pymdown-extensions", "Pygments", "math-core", "mermaidx", "novasvg")
ASKED = ("docs", "labs")  # folders of which weave and MkDocs ask whether a file is there; nobody hears that
LISTENER = Listener()
BUILD = None  # the configuration and the files of the build, for pages that MkDocs leaves to a plugin


class MkDocs:
    """The parts of a converter that MkDocs asks, once a page is made, for more than its HTML."""

    def __init__(self, md):
        self.md = md
        self.links = md.treeprocessors["relpath"]
        self.anchors = md.treeprocessors["mkdocs_extract_anchors"]
        self.title = md.treeprocessors["mkdocs_extract_title"]
        self.raw = md.preprocessors["mkdocs_raw_html"]

    def settings(self):
        """The configuration; that of extensions also as it was read, for it may name the environment."""
        config = self.links.config
        file = Path(config.config_file_path).read_text(encoding="utf-8")
        return [file, config.mdx_configs, config.use_directory_urls]

    def answers(self):
        return {
            "contents": self.md.toc_tokens,
            "title": self.title.title,
            "anchors": sorted(self.anchors.present_anchor_ids | self.raw.present_anchor_ids),
            "links": {file.src_uri: anchors for file, anchors in self.links.links_to_anchors.items()},
        }

    def restore(self, answers):
        """Let the parts answer as they did when the page was made."""
        self.md.toc_tokens = answers["contents"]
        self.title.title = answers["title"]
        self.anchors.present_anchor_ids = set(answers["anchors"])
        file = self.links.files.get_file_from_path
        self.links.links_to_anchors = {file(uri): anchors for uri, anchors in answers["links"].items()}


def converted(text, md, results, warnings):
    """The HTML of a page's text. A page is not cached if `warnings.count` grows while it is made."""
    make = type(md).convert
    if "mkdocs_extract_title" not in md.treeprocessors:
        return make(md, text)
    global BUILD
    mkdocs, page = MkDocs(md), md.weave
    BUILD = mkdocs.links
    file = project.ROOT / ".cache" / "pages" / f"{page.path().replace('/', '.')}.json"
    key = _digest([text, sys.version, _code(), mkdocs.settings()])
    if entry := _load(file, key, results):
        mkdocs.restore(entry["answers"])
        return entry["html"]
    before = warnings.count
    with LISTENER.listening() as files:
        html = make(md, text)
    if warnings.count == before:
        files |= {name: results.digest(name) for name in _folders()}
        shown = {name: _digest(result) for name, result in page.shown.items()}
        entry = {"key": key, "files": files, "shown": shown, "html": html, "answers": mkdocs.answers()}
        project.store(file, entry)
    return html


def _load(file, key, results):
    """The stored page if it is current, else None."""
    with contextlib.suppress(OSError, KeyError, Unavailable):  # KeyError: of another weave, or there is none
        entry = project.stored(file)
        if (
            entry["key"] == key
            and all(results.digest(name) == found for name, found in entry["files"].items())
            and all(_digest(results.get(name)) == found for name, found in entry["shown"].items())
        ):
            return entry
    return None


def _folders():
    for room in ASKED:
        for folder in (project.ROOT / room, *(project.ROOT / room).rglob("*/")):
            yield f"{folder.relative_to(project.ROOT).as_posix()}/"


@functools.cache
def _code():
    """The state of what makes pages, as it is when this process makes the first."""
    versions = [importlib.metadata.version(name) for name in LIBRARIES]
    files = sorted(Path(__file__).parent.rglob("*.py"))
    return [versions, [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]]


def _digest(value):
    return hashlib.sha256(json.dumps(value, default=str).encode()).hexdigest()
