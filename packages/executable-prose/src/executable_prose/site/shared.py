"""What all pages of a build share."""

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from markdown import Markdown
from mkdocs.config.defaults import MkDocsConfig

from executable_prose import project
from executable_prose.execution.recorder import Listener
from executable_prose.execution.results import Results, Seen
from executable_prose.project import Digests
from executable_prose.site import page_cache

Made = TypeVar("Made")


class Build:
    """The results, who hears which files a page opens, and what MkDocs knows of the site.

    Who starts a build hands one to its pages, by the configuration of the Markdown extension; a server has
    one for all that it builds.
    """

    def __init__(self, results: Results | None = None) -> None:
        self.results = results or Results()
        self.listener = Listener()
        self.host: Any = None  # MkDocs's configuration and files, for pages that it leaves to a plugin
        self.new_pages = 0  # that were made, and not taken from the cache
        self.lock = threading.Lock()
        self._used: set[tuple[str, str | None]] = set()
        self._once: dict[Callable, tuple[Any, Digests]] = {}

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

    def once(self, make: Callable[[], Made]) -> Made:
        """Return what `make` gives, made again only after a file that it used has changed.

        The files count for each page that asks.
        """
        if self.listener.files is None:
            return make()
        made, files = self._once.get(make, (None, None))
        if files is None or any(self.results.digest(name) != found for name, found in files.items()):
            with self.listener.apart() as files:
                made = make()
            self._once[make] = made, files
        self.listener.files |= files
        return made  # type: ignore[return-value]

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
