"""A small site that is built in this process, with one process for exhibits, fault by fault."""

import contextlib
import logging
import os

import pytest

from executable_prose import input_checks
from executable_prose.execution import results
from executable_prose.site import build
from executable_prose.site.shared import Build
from prose_testing.faults import PLACE
from prose_testing.fixtures import move
from prose_testing.lab import PROJECT
from prose_testing.projects import Project


class Site(Project):
    """A project that is built in this process."""

    def build(self):
        """The exit code of `python -m executable_prose build`, and what it says that is not the exit code."""
        log = logging.getLogger("mkdocs")
        handlers = log.handlers.copy()
        try:
            code = input_checks.fault() or build.make(self.root / "site", build=self.shared)
        except SystemExit as ended:
            code = ended.code
        finally:
            log.handlers = handlers  # without those of MkDocs's command
            for said in logging.getLogger("mkdocs.commands.build").filters:  # else it says nothing twice
                said.msgs.clear()
        return (code, "") if isinstance(code, int) else (1, code)

    def apply(self, changes):
        """Write the files of a line of the table; what they were before."""
        if isinstance(changes, str):
            changes = {"docs/attempt.md": f"# Trial\n\n{changes}"}
        before = {}
        for name, new in changes.items():
            path = self.root / name
            before[path] = path.read_bytes() if path.is_file() else None
            path.parent.mkdir(parents=True, exist_ok=True)
            if callable(new):
                new(path)
            elif isinstance(new, tuple):
                self.edit(name, *new)
            elif new is None:
                path.unlink()
            else:
                path.write_bytes(new if isinstance(new, bytes) else new.encode())
        return before

    def restore(self, before):
        for path, content in before.items():
            if content is None:
                path.unlink(missing_ok=True)
                with contextlib.suppress(OSError):  # others are in it
                    path.parent.rmdir()
            else:
                path.write_bytes(content)

    def kept(self):
        """The results that the store has of what is whole."""
        return {path.name: path.read_bytes() for path in self.entries()}


@pytest.fixture(scope="module")
def site(tmp_path_factory, additions):
    site = Site(tmp_path_factory.mktemp("faulty").resolve(), files=PROJECT, additions=additions)
    known = results.Results()
    with pytest.MonkeyPatch.context() as patch:
        move(patch, site.root)
        patch.chdir(site.root)
        patch.setenv("TMPDIR", str(site.temporary))
        for name in build._environment():  # which the build sets
            patch.setenv(name, os.environ.get(name, ""))
            patch.delenv(name)
        site.shared = Build(known)
        assert site.build() == (0, "")
        yield site
        known.close()


def check_fault(site, capfd, changes, words):
    """The changes stop the build with these words, or without words do not; site and caches stay whole."""
    published, kept = site.site(), site.kept()
    before = site.apply(changes)
    capfd.readouterr()
    try:
        code, said = site.build()
    finally:
        site.restore(before)
    said = " ".join((said + "".join(capfd.readouterr())).split())
    assert code == bool(words), said
    assert [word for word in words if " ".join(word.split()) not in said] == [], said
    assert "Traceback" not in said
    assert PLACE not in words or said.count(PLACE) == 1, said
    assert kept.items() <= site.kept().items()
    if code:
        assert site.site() == published
    else:
        assert site.build() == (0, "")
