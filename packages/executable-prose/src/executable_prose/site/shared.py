"""What all pages of a build share."""

import functools
import threading
from typing import Any

from markdown import Markdown
from mkdocs.config.defaults import MkDocsConfig

from executable_prose import project
from executable_prose.execution.recorder import Listener
from executable_prose.execution.results import Results, Seen
from executable_prose.project import Digests
from executable_prose.site import page_cache


class Build:
    """The results, who hears which files a page opens, and what MkDocs knows of the site.

    Who starts a build hands one to its pages, by the configuration of the Markdown extension; a server has
    one for all that it builds.
    """

    def __init__(self, results: Results | None = None) -> None:
        self.results = results or Results()
        self.listener = Listener()
        self.host: Any = None  # MkDocs's configuration and files, for pages that it leaves to a plugin
        self.lock = threading.Lock()
        self._used: set[tuple[str, str | None]] = set()

    def begin(self) -> None:
        """Start another attempt: forget what the last one used, and read the files again."""
        self.results.invalidate()
        self._used.clear()

    def uses(self, files: Digests) -> None:
        """Record the digests that files had when they were used."""
        with self.lock:
            self._used.update(files.items())

    def files(self) -> Digests:
        """Return the files that pages and results were made with, besides modules of exhibits."""
        with self.lock:
            return self.results.files() | dict(self._used)

    def changed(self) -> list[str]:
        """Return the files that differ from what this build used."""
        now = Seen()
        return sorted({name for name, found in self._used | self.results.states() if now[name] != found})

    def converted(self, text: str, md: Markdown) -> str:
        """Return the HTML of a page's text, made or as it is stored."""
        return page_cache.converted(text, md, self)

    def into(self, config: MkDocsConfig) -> MkDocsConfig:
        """Hand this build to the pages of a configuration of MkDocs."""
        config.mdx_configs.setdefault(project.ENGINE.name, {})["build"] = self
        if "mkdocs-jupyter" in config.plugins:  # whose step of nbconvert is made by nbconvert alone
            from executable_prose.site import notebooks  # not above: it needs nbconvert

            notebooks.prepare(self)
        return config


@functools.cache
def alone() -> Build:
    """The build of this process, for a host that starts one by itself: `mkdocs build`, Zensical."""
    return Build()
