"""Every fault of the table stops the build with its place and what to do, and harms neither site nor caches.

All builds are made in this process by the code of `python -m weave.build`, with one process for exhibits.
"""

import contextlib
import logging
import os
import re

import pytest

from tests.faults import table
from tests.weave.conftest import move
from tests.weave.projects import Project
from tests.weave.test_labs import PROJECT
from weave import build, cards, extension, results, texts, twins

TABLE = {
    f"{kind}: {name}": line
    for kind in ("DIRECTIVES", "PROSE", "EXHIBITS", "LABS", "CONFIGURATION")
    for name, line in getattr(table, kind).items()
}
BY_DAY = (
    "DIRECTIVES: exhibit unknown",
    "PROSE: script",
    "PROSE: not UTF-8",
    "EXHIBITS: raises",
    "LABS: raises",
)


class Site(Project):
    """A project that is built in this process."""

    def build(self):
        """The exit code of `python -m weave.build`, and what it says that is not the exit code."""
        try:
            code = texts.fault() or build.build(self.root / "site")
        except SystemExit as ended:
            code = ended.code
        finally:
            logging.getLogger("mkdocs").handlers.clear()
            for said in logging.getLogger(
                "mkdocs.commands.build"
            ).filters:  # says nothing twice in one process
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
def site(tmp_path_factory):
    site = Site(tmp_path_factory.mktemp("faulty").resolve(), files=PROJECT)
    known = results.Results()
    with pytest.MonkeyPatch.context() as patch:
        move(patch, site.root)
        patch.chdir(site.root)
        patch.setenv("TMPDIR", str(site.temporary))
        for name in build._environment():  # which the build sets
            patch.setenv(name, os.environ.get(name, ""))
            patch.delenv(name)
        for module in (extension, twins, cards, build):
            patch.setattr(module, "RESULTS", known)
        assert site.build() == (0, "")
        yield site
        known.close()


def parameters():
    return [
        pytest.param(*line[:1], line[1:], id=name, marks=[] if name in BY_DAY else pytest.mark.slow)
        for name, line in TABLE.items()
    ]


@pytest.mark.parametrize(("changes", "words"), parameters())
def test_a_fault_is_told_and_harms_nothing(site, capfd, changes, words):
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
    assert kept.items() <= site.kept().items()
    if code:
        assert site.site() == published
    else:
        assert site.build() == (0, "")


def test_a_page_that_takes_too_long_is_told(site, capfd, monkeypatch):
    monkeypatch.setattr(extension, "LIMIT", 1)
    published, before = site.site(), site.apply(f"Text.\n\n{'[' * 60_000}\n")
    try:
        assert site.build()[0] == 1
    finally:
        site.restore(before)
    said = "docs/attempt.md:5: this takes more than 1 seconds to read: simplify it, or take it apart"
    assert said in "".join(capfd.readouterr())
    assert site.site() == published


def test_after_all_faults_the_site_is_as_it_was_and_nothing_runs(site, capfd):
    published = site.site()
    capfd.readouterr()
    assert site.build() == (0, "")
    assert not re.findall(r"^ +ran", capfd.readouterr().err, re.M)
    assert site.site() == published
    assert not list(site.root.glob(".site-*"))


def test_the_table_has_at_least_sixty_lines():
    assert len(TABLE) >= 60
