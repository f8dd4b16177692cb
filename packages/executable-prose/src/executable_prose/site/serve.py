"""Serve the site while it is written. The page that somebody reads is made first, all others after it.

    python -m executable_prose serve

takes what `mkdocs serve` takes and is that, with two parts replaced: MkDocs makes the whole site, with all
that it shows, before it answers. Here a page is made when it is requested, with the results that it shows.
All other results follow in a process of low priority, and the other pages after that: the search index needs
them, and what is wrong on them is told.
"""

import contextlib
import functools
import html
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import jinja2
from mkdocs import __main__, utils
from mkdocs.commands import serve
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import Abort, ConfigurationError
from mkdocs.livereload import LiveReloadServer
from mkdocs.structure.files import InclusionLevel, get_files, set_exclusions
from mkdocs.structure.nav import get_navigation
from mkdocs.structure.pages import Page
from watchdog.observers.api import BaseObserver
from watchdog.observers.polling import PollingEmitter
from watchdog.utils.dirsnapshot import EmptyDirectorySnapshot

from executable_prose import input_checks, project
from executable_prose.command import temporary
from executable_prose.execution import results
from executable_prose.site import assets, host, process
from executable_prose.site.shared import Build

WATCH = 0.3  # seconds between two looks at the files
READ = ("GET", "HEAD")  # what a reader may ask
REST = 2  # seconds that the other pages wait for the one that is read
log = logging.getLogger("mkdocs")


class Site:
    """The site as the files are now, made page by page; what MkDocs's `build` does, in other order."""

    lock = threading.Lock()  # of all sites: pages are made one by one

    def __init__(self, config: MkDocsConfig, shared: Build) -> None:
        if why := input_checks.fault():
            raise Abort(why)
        with self.lock:
            shared.results.invalidate()
        self.shared = shared
        config.watch += [str(folder) for folder in _folders() if folder.is_dir()]
        self.config = config.plugins.on_config(shared.into(config))
        self.config.plugins.on_pre_build(config=config)
        self.files = get_files(config)
        self.env = config.theme.get_env()
        templates = project.ROOT / ".cache" / "templates"
        templates.mkdir(parents=True, exist_ok=True)
        self.env.bytecode_cache = jinja2.FileSystemBytecodeCache(str(templates))
        self.files.add_files_from_theme(self.env, config)
        self.files = config.plugins.on_files(self.files, config=config)
        shared.host = self
        set_exclusions(self.files, config)
        nav = get_navigation(self.files, config)
        self.nav = config.plugins.on_nav(nav, config=config, files=self.files)
        for page in Path(config.site_dir).rglob("*.html"):  # as it was before, or of a page that is gone
            page.unlink()
        self.files.copy_static_files(dirty=True, inclusion=InclusionLevel.is_in_serve)
        assets.write(Path(config.site_dir))
        self.pages = self.files.documentation_pages(inclusion=InclusionLevel.is_in_serve)
        for file in self.pages:
            (file.page or Page(None, file, config)).read_source(config)  # the navigation shows its title
        self._due = {file.dest_uri: file for file in self.pages}
        self._read = threading.Event()  # whether somebody has read a page
        self._closed = False
        self._results: subprocess.Popen | None = None  # the process that brings them up to date
        self._starting = threading.Lock()
        threading.Thread(target=self._make_the_rest, daemon=True).start()

    def ask(self, address: str) -> None:
        """Make the page of an address below the site's, if there is one and it is due."""
        for uri in (address, f"{address}index.html", f"{address}/index.html"):
            if uri in self._due:
                self._make(uri)
                self._read.set()

    def close(self) -> None:
        """Make nothing more."""
        with self._starting:
            self._closed = True
        self._read.set()
        if self._results:
            self._results.kill()
            self._results.wait()

    def _make(self, uri):
        """Make a page; if it cannot be made, return a page that says why."""
        with self.lock:
            file = self._due.pop(uri, None)
            if not file:  # another reader has waited for it
                return
            try:
                host.make_page(file.page, self)
            except Exception as error:  # whatever it is, the writer reads it where the page would be
                log.error(error)
                text = f"<!doctype html><title>Error</title><pre>{html.escape(str(error), quote=False)}</pre>"
                utils.write_file(text.encode(), file.abs_dest_path)

    def _make_the_rest(self):
        self._read.wait(REST)
        with self.lock:  # the page that somebody waits for is made
            left = f"{len(self._due)} of {len(self.pages)} pages"
        log.info(f"{left} are still to be made; the results that they show come first")
        self._run_the_rest()
        for file in self.pages:
            if self._closed:
                return
            self._make(file.dest_uri)
        for template in self.config.theme.static_templates:
            host.make_template(template, self)
        for file in self.pages:
            level = self.config.validation.links.anchors
            file.page.validate_anchor_links(files=self.files, log_level=level)
        self.config.plugins.on_post_build(config=self.config)
        log.info("All pages are made")

    def _run_the_rest(self):
        """Bring the results on all pages up to date."""
        with self._starting:
            if self._closed:
                return
            command = [sys.executable, "-m", "executable_prose", "results", results.BACKGROUND]
            self._results = subprocess.Popen(
                command, cwd=project.ROOT, stdin=subprocess.PIPE, start_new_session=True
            )
        self._results.wait()


class Watch(PollingEmitter):
    """Looks at a folder that is away for a while as at an empty one, and goes on; at no bytecode."""

    def __init__(self, *how: Any, **more: Any) -> None:
        super().__init__(*how, listdir=_listed, **more)
        take = self._take_snapshot

        def snapshot():
            try:
                return take()
            except OSError:
                return EmptyDirectorySnapshot()

        self._take_snapshot = snapshot


def _listed(folder):
    with os.scandir(folder) as entries:
        return [entry for entry in entries if entry.name != "__pycache__"]


class Server(LiveReloadServer):
    """MkDocs's server, which makes a page before it answers for it."""

    site: Site | None = None
    again = False  # whether to start again once it has ended

    def __init__(self, builder: Callable[[], None], **how: Any) -> None:
        def rebuild():
            try:
                builder()
            except (
                ConfigurationError,
                OSError,
            ) as error:  # MkDocs would show where in its code it was raised
                raise Abort(f"Error: {error}") from None

        super().__init__(rebuild, **how)
        self.observer = BaseObserver(Watch, timeout=WATCH)  # type: ignore[assignment]

        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self):
        """Make the site again when a file changes that it is made of and that MkDocs does not watch."""
        known = {}
        while True:
            time.sleep(WATCH)
            files = self.site.shared.files() | process.files() if self.site and self._watched_paths else {}
            now = {name: _state(name) for name in files if not self._is_watched(name)}
            new = [name for name in now.keys() - known.keys() if project.digest(name) != files[name]]
            if new or any(known.get(name, state) != state for name, state in now.items()):
                with self._rebuild_cond:
                    self._want_rebuild = True
                    self._rebuild_cond.notify_all()
            known = now

    def _is_watched(self, name):
        return any(map((project.ROOT / name).is_relative_to, self._watched_paths))

    def server_bind(self) -> None:
        try:
            super().server_bind()
        except (OSError, OverflowError) as error:
            why = f"cannot serve at {self.url}: {getattr(error, 'strerror', None) or error}"
            raise SystemExit(
                f"{why}; elsewhere: python -m executable_prose serve --dev-addr 127.0.0.1:8001"
            ) from None

    def serve_request(self, environ: dict[str, Any], start_response: Callable) -> Iterable[bytes]:
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
    def renew(cls, shared: Build, config: MkDocsConfig, **_: object) -> None:
        """Every page is due again. Code that has changed needs another process."""
        if changed := [name for name, known in process.files().items() if project.digest(name) != known]:
            log.info(f"{changed[0]} changed, which the site's own code is or reads: starting again")
            cls.again = True
            raise KeyboardInterrupt
        before = cls.site  # kept until the next is there: Python 3.11 hands other threads what it takes apart
        if before:
            before.close()
        cls.site = Site(config, shared)


def _folders():
    """What decides pages besides docs/."""
    settings = project.settings()
    rooms = (*settings.rooms, *settings.tests)
    return [project.ROOT / room for room in rooms if room]


def _state(name):
    """What of a file, or of what there is of it (see project.digest), is not the same after a change."""
    if "//" not in name:
        with contextlib.suppress(OSError):
            state = (project.ROOT / name).stat()
            return state.st_mtime_ns, state.st_size, state.st_ino
    return project.digest(name)


def _refused(environ):
    """Why a request is none that a reader makes, as HTTP says it, else None."""
    if environ["REQUEST_METHOD"] not in READ:
        return "405 Method Not Allowed"
    return "400 Bad Request" if "\0" in environ["PATH_INFO"] else None


def main(*arguments: str) -> None:
    """The command `serve`."""
    process.watch()
    shared = Build(results.Results(lazy=True))
    serve.build, serve.LiveReloadServer = functools.partial(Server.renew, shared), Server  # type: ignore[misc, assignment]
    with temporary("serve-") as folder:
        tempfile.tempdir = str(folder)  # MkDocs leaves a site there when a signal comes early
        try:
            __main__.cli(["serve", *arguments])
        except SystemExit:
            if not Server.again:
                raise
        finally:
            if Server.site:
                Server.site.close()
    if Server.again:
        os.execv(sys.executable, [sys.executable, "-m", project.ENGINE.name, "serve", *arguments])
