"""Make pages in two processes: this one from the first page on, a fork of it from the last page on.

They meet in the cache of pages. What the fork cannot make is left to this process, which tells why.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator

from mkdocs.structure.files import Files

from executable_prose import memo
from executable_prose.execution.sandbox import end_with_parent
from executable_prose.site import host
from executable_prose.site.shared import Build

NEW = 2  # pages that were not in the cache, before a fork is worth while; then all results are there
FORKS = sys.platform == "linux" and (os.cpu_count() or 1) > 1  # libraries of macOS do not bear it


@contextlib.contextmanager
def in_two_processes(shared: Build) -> Iterator[None]:
    """While MkDocs builds, let a fork make the last pages."""
    fork = 0

    def populate(page, config, files, *how):
        nonlocal fork
        if FORKS and not fork and shared.new_pages == NEW:
            fork = os.fork() or _make_the_last(config, files)
        host.populate_page(page, config, files, *how)

    with host.populating(populate):
        try:
            yield
        finally:
            if fork:
                os.kill(fork, signal.SIGKILL)
                os.waitpid(fork, 0)


def _make_the_last(config, files: Files):
    """The body of the fork."""
    try:
        end_with_parent()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        for file in reversed(files.documentation_pages()):
            if file.page and file.page.content is not None:  # this one was made before the fork
                break
            if file.page and file.src_uri.endswith(".md"):
                with contextlib.suppress(Exception, SystemExit):
                    host.populate_page(file.page, config, files)
        memo.save()
    finally:
        os._exit(0)
