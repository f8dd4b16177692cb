"""Whole pages, cached from one build to the next.

A page is made again unless all that decided it is the same: its text, the configuration, Python, the engine
and the libraries, every result on it, every file that was opened or looked up while it was made, and what
the process had of the project by then (process.py).
"""

import contextlib
import functools
import hashlib
import json
import locale
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict
from urllib.parse import quote

from markdown import Markdown

from executable_prose import libraries, project
from executable_prose.outcome import Unavailable
from executable_prose.project import Digests
from executable_prose.site import host, process

if TYPE_CHECKING:
    from executable_prose.site.shared import Build


class Entry(TypedDict):
    key: str  # digest of its text and of what makes pages
    files: Digests  # that were opened
    variables: process.Variables  # of the environment
    shown: dict[str, str]  # exhibit or lab -> digest of its result
    html: str
    answers: dict[str, Any]  # of MkDocs


def converted(text: str, md: Markdown, build: "Build") -> str:
    """The HTML of a page's text, which is not cached if MkDocs warns, a program runs or a host is asked.

    Nor is it cached in a process that was not watched from its start, as `mkdocs build` is.
    """
    make = type(md).convert
    if not host.is_mkdocs(md):
        return make(md, text)
    mkdocs, page = host.MkDocs(md), md.page
    build.host = mkdocs.links
    if not process.is_watched():
        return make(md, text)
    results = build.results
    file = project.ROOT / ".cache" / "pages" / f"{quote(page.path(), safe='')}.json"
    around = [sys.version, list(sys.flags), time.tzname, locale.setlocale(locale.LC_ALL), Path.cwd().name]
    key = _digest([page.path(), page.text, text, around, _code(), mkdocs.settings(), str(project.settings())])
    if entry := _load(file, key, results):
        mkdocs.restore(entry["answers"])
        return entry["html"]
    before = host.WARNINGS.count
    listener = build.listener
    with listener.listening() as files, process.recording_variables() as names:
        html = make(md, text)
    build.new_pages += 1
    files |= process.files()
    build.uses(files)
    ran_program = listener.ran_program or process.OWN_READS.ran_program
    if host.WARNINGS.count == before and not ran_program:
        files |= {name: results.digest(name) for name in _folders()}
        entry = Entry(
            key=key,
            files=files,
            variables=process.variables(sorted(names | process.RecordedEnviron.by_site)),
            shown={name: _digest(result) for name, result in page.shown.items()},
            html=html,
            answers=mkdocs.answers(),
        )
        project.store(file, entry)
    return html


def _load(file, key, results):
    """The stored page if it is current, else None."""
    with contextlib.suppress(OSError, KeyError, Unavailable):  # KeyError: none, or of another version
        entry = project.stored(file)
        if (
            entry["key"] == key
            and process.variables(entry["variables"]) == entry["variables"]
            and all(results.digest(name) == found for name, found in entry["files"].items())
            and all(_digest(results.get(name)) == found for name, found in entry["shown"].items())
        ):
            return entry
    return None


def _folders():
    """Those of which the engine and MkDocs ask whether a file is there: nobody hears that."""
    for room in ("docs", project.settings().labs):
        for folder in (project.ROOT / room, *(project.ROOT / room).rglob("*/")):
            yield folder.relative_to(project.ROOT).as_posix() + project.VISIBLE


@functools.cache
def _code():
    """The state of what makes pages, as it is when this process makes the first."""
    files = sorted(project.ENGINE.rglob("*.py"))
    return [libraries.installed(), [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]]


def _digest(value):
    return hashlib.sha256(json.dumps(value, default=str).encode()).hexdigest()
