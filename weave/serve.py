"""Serve the site while it is written. The page that somebody reads is made first, all others after it.

    python -m weave.serve

takes what `mkdocs serve` takes and is that, with two parts replaced: MkDocs makes the whole site, with all
that it shows, before it answers. Here a page is made when it is asked for, with the results that it shows.
All other results follow in a process of low priority, and the other pages after that: the search index needs
them, and what is wrong on them is told.
"""

import html
import logging
import subprocess
import sys
import threading
from pathlib import Path

import jinja2
from mkdocs import __main__, utils
from mkdocs.commands import build, serve
from mkdocs.exceptions import Abort, ConfigurationError
from mkdocs.livereload import LiveReloadServer
from mkdocs.structure.files import InclusionLevel, get_files, set_exclusions
from mkdocs.structure.nav import get_navigation
from mkdocs.structure.pages import Page
from watchdog.observers.api import BaseObserver
from watchdog.observers.polling import PollingEmitter
from watchdog.utils.dirsnapshot import EmptyDirectorySnapshot

from weave import extension, pages, project, texts
from weave.errors import in_a_line
from weave.results import Results

WATCH = 0.5  # seconds between two looks at the files
READ = ("GET", "HEAD")  # what a reader may ask
REST = 2  # seconds that the other pages wait for the one that is read
log = logging.getLogger("mkdocs")


class Site:
    """The site as the files are now, made page by page; what MkDocs's `build` does, in other order."""

    lock = threading.Lock()  # of all sites: pages are made one by one

    def __init__(self, config):
        if why := texts.fault():
            raise Abort(why)
        with self.lock:
            extension.RESULTS.invalidate()
        self.config = config.plugins.on_config(config)
        self.config.plugins.on_pre_build(config=config)
        self.files = get_files(config)
        self.env = config.theme.get_env()
        templates = project.ROOT / ".cache" / "templates"
        templates.mkdir(parents=True, exist_ok=True)
        self.env.bytecode_cache = jinja2.FileSystemBytecodeCache(str(templates))
        self.files.add_files_from_theme(self.env, config)
        self.files = config.plugins.on_files(self.files, config=config)
        pages.BUILD = self
        set_exclusions(self.files, config)
        self.nav = get_navigation(self.files, config)
        for page in Path(config.site_dir).rglob("*.html"):  # as it was before, or of a page that is gone
            page.unlink()
        self.files.copy_static_files(dirty=True, inclusion=InclusionLevel.is_in_serve)
        self.pages = self.files.documentation_pages(inclusion=InclusionLevel.is_in_serve)
        for file in self.pages:
            (file.page or Page(None, file, config)).read_source(config)  # the navigation shows its title
        self._due = {file.dest_uri: file for file in self.pages}
        self._read = threading.Event()  # whether somebody has read a page
        self._closed = False
        self._results = None  # the process that brings them up to date
        self._starting = threading.Lock()
        threading.Thread(target=self._make_the_rest, daemon=True).start()

    def ask(self, address):
        """Make the page of an address below the site's, if there is one and it is due."""
        for uri in (address, f"{address}index.html", f"{address}/index.html"):
            if uri in self._due:
                self._make(uri)
                self._read.set()

    def close(self):
        """Make nothing more."""
        with self._starting:
            self._closed = True
        self._read.set()
        if self._results:
            self._results.kill()
            self._results.wait()

    def _make(self, uri):
        """Make a page; in the place of one that cannot be made, say why."""
        with self.lock:
            file = self._due.pop(uri, None)
            if not file:  # another reader has waited for it
                return
            try:
                build._populate_page(file.page, self.config, self.files)
                excluded = file.inclusion.is_excluded()
                build._build_page(file.page, self.config, self.pages, self.nav, self.env, excluded=excluded)
            except Exception as error:  # whatever it is, the writer reads it where the page would be
                log.error(error)
                text = f"<!doctype html><title>Error</title><pre>{html.escape(str(error), quote=False)}</pre>"
                utils.write_file(text.encode(), file.abs_dest_path)

    def _make_the_rest(self):
        self._read.wait(REST)
        self._run_the_rest()
        for file in self.pages:
            if self._closed:
                return
            self._make(file.dest_uri)
        for template in self.config.theme.static_templates:
            build._build_theme_template(template, self.env, self.files, self.config, self.nav)
        for file in self.pages:
            level = self.config.validation.links.anchors
            file.page.validate_anchor_links(files=self.files, log_level=level)
        self.config.plugins.on_post_build(config=self.config)

    def _run_the_rest(self):
        """Bring the results on all pages up to date."""
        with self._starting:
            if self._closed:
                return
            command = [sys.executable, "-m", "weave.results", "--background"]
            self._results = subprocess.Popen(
                command, cwd=project.ROOT, stdin=subprocess.PIPE, start_new_session=True
            )
        self._results.wait()


class Watch(PollingEmitter):
    """Looks at a folder that is away for a while as at an empty one, and goes on."""

    def __init__(self, *how, **more):
        super().__init__(*how, **more)
        take = self._take_snapshot

        def snapshot():
            try:
                return take()
            except OSError:
                return EmptyDirectorySnapshot()

        self._take_snapshot = snapshot


class Server(LiveReloadServer):
    """MkDocs's server, which makes a page before it answers for it."""

    site = None

    def __init__(self, builder, **how):
        def rebuild():
            try:
                builder()
            except (
                ConfigurationError,
                OSError,
            ) as error:  # MkDocs would show where in its code it was raised
                raise Abort(f"Error: {error}") from None

        super().__init__(rebuild, **how)
        self.observer = BaseObserver(Watch, timeout=WATCH)

    def server_bind(self):
        try:
            super().server_bind()
        except OSError as error:
            why = f"cannot serve at {self.url}: {error.strerror}"
            raise SystemExit(f"{why}; elsewhere: python -m weave.serve --dev-addr 127.0.0.1:8001") from None

    def serve_request(self, environ, start_response):
        """Answer from the site as it is when the answer is there."""
        if why := _refused(environ):
            start_response(why, [("Content-Type", "text/plain"), ("Allow", ", ".join(READ))])
            return [why.encode()]
        address, heads = environ["PATH_INFO"].removeprefix(self.mount_path), []
        while True:
            site = self.site
            site.ask(address)
            body = super().serve_request(environ, lambda *head: heads.append(head))
            if site is self.site:
                start_response(*heads[-1])
                return body

    @classmethod
    def renew(cls, config, **_):
        """Every page is due again."""
        before = cls.site  # kept until the next is there: Python 3.11 hands other threads what it takes apart
        if before:
            before.close()
        cls.site = Site(config)


def _refused(environ):
    """Why a request is none that a reader makes, as HTTP says it, else None."""
    if environ["REQUEST_METHOD"] not in READ:
        return "405 Method Not Allowed"
    return "400 Bad Request" if "\0" in environ["PATH_INFO"] else None


def main():
    extension.RESULTS = Results(lazy=True)
    serve.build, serve.LiveReloadServer = Server.renew, Server
    try:
        with in_a_line():
            __main__.cli(["serve", *sys.argv[1:]])
    finally:
        if Server.site:
            Server.site.close()


if __name__ == "__main__":
    main()
