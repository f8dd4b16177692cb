"""A page is made once, and again when anything that decided it has changed."""

import os
import shutil

import markdown
import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

from executable_prose import libraries
from executable_prose.execution.recorder import Listener
from executable_prose.site import ahead, page_cache, process
from executable_prose.site.shared import Build
from prose_testing.fixtures import StubResults, build_here
from prose_testing.projects import BARE, PACKAGE

FILES = {
    "docs/index.md": """
        # Home

        Up to `#!val lines.rising.end`, it doubles `#!claim it-doubles`. See [more](more.md#part) and a query.

        ## A part

        Text.
        """,
    "docs/more.md": '# More of it\n\n--8<-- "tests/shown.py"\n\n## Part\n\nMore.\n',
    "docs/plain.md": "# Plain\n\nText.\n",
    "docs/claims.md": "# Claims {: #it-doubles }\n",
    "docs/glossary.md": "# Glossary\n\nQuery\n:   What is asked.\n",
    "tests/shown.py": "x = 1\n",
    "tests/test_it.py": '@pytest.mark.claim("it-doubles", "It doubles.")\ndef test_a(): pass\n',
    "theme/main.html": "{{ page.title }}|{{ page.toc }}|{{ page.content }}",
}
ALL = {"index.md", "more.md", "plain.md", "claims.md", "glossary.md"}


@pytest.fixture
def made(here, monkeypatch):
    """A function that builds the site and says which pages were made; and the site's bytes."""
    here.write(FILES)
    here.configure(BARE)
    texts = {}
    convert = markdown.Markdown.convert

    def noted(md, text):
        texts[md.treeprocessors["relpath"].file.src_uri] = text
        return convert(md, text)

    monkeypatch.setattr(markdown.Markdown, "convert", noted)
    here.end = 2.0

    def made():
        texts.clear()
        results = StubResults({"lines.rising": {"values": {"end": here.end}}})
        build_here(here, results)
        return set(texts)

    assert made() == ALL
    return made


def site(here):
    return {path: path.read_bytes() for path in (here.root / "site").rglob("*.html")}


def test_a_page_is_made_once_and_is_the_same_again(here, made, log):
    before = site(here)
    title, contents, _ = before[here.root / "site/more/index.html"].split(b"|", 2)
    assert title == b"More of it" and b"#part" in contents
    assert made() == set()
    assert site(here) == before
    assert "WARNING" not in log.getvalue()


@pytest.mark.parametrize(
    ("file", "was", "becomes", "concerned"),
    [
        ("docs/plain.md", "Text.", "Other text.", {"plain.md"}),
        ("docs/plain.md", "# Plain", "---\nglossary: false\n---\n\n# Plain", {"plain.md"}),
        ("tests/shown.py", "1", "2", {"more.md"}),
        ("tests/test_it.py", "It doubles.", "It trebles.", {"index.md"}),
        (
            "docs/glossary.md",
            "asked",
            "sought",
            {"glossary.md", "index.md", "more.md", "plain.md", "claims.md"},
        ),
        ("mkdocs.yml", "permalink: true", "permalink: false", ALL),
        ("snippets/new.py", "", "x = 1", set()),
        ("tests/test_new.py", "", "x = 1", {"index.md"}),
        ("docs/new.md", "", "# New\n", ALL | {"new.md"}),
    ],
)
def test_an_edit_makes_the_pages_that_it_concerns(here, made, file, was, becomes, concerned):
    if was:
        here.edit(file, was, becomes)
    else:
        here.write({file: becomes})
    assert made() == concerned
    assert made() == set()


def test_another_result_makes_the_pages_that_show_it(here, made):
    here.end = 3.0
    assert made() == {"index.md"}
    assert b">3.0<" in (here.root / "site/index.html").read_bytes()


def test_other_code_and_other_libraries_make_all_pages(made, monkeypatch):
    code, installed = page_cache._code(), libraries.installed()
    assert any(name.startswith("mkdocs-") for name in installed)
    with monkeypatch.context() as context:
        context.setattr(libraries, "installed", lambda: installed[1:])
        assert page_cache._code.__wrapped__() != code
    monkeypatch.setattr(page_cache, "_code", lambda: "other code")
    assert made() == ALL


def test_the_environment_may_be_in_the_configuration(made, monkeypatch):
    monkeypatch.setenv("SITE_URL", "https://example.org")
    assert made() == ALL


def test_what_is_wrong_with_a_link_is_said_each_time(here, made, log):
    here.edit("docs/plain.md", "Text.", "See [it](/rooted/).")
    here.edit("docs/more.md", "More.\n", "See [it](index.md#nowhere).")
    for again in ({"plain.md", "more.md"}, {"plain.md"}):
        log.seek(log.truncate(0))
        assert made() == again
        assert "docs/plain.md:3: Doc file 'plain.md' contains an absolute link '/rooted/'" in log.getvalue()
        assert "does not contain an anchor '#nowhere'" in log.getvalue()


@pytest.mark.parametrize(
    "damage",
    [lambda _, text=text: text for text in (b"", b"{", b"[]", b"{}", b"\xff\xfe")]
    + [lambda data: data.replace(b"it doubles", b"it halves")],
)
def test_an_entry_that_cannot_be_read_is_made_again(here, made, damage):
    path = here.root / ".cache/pages/index.md.json"
    path.write_bytes(damage(path.read_bytes()))
    assert made() == {"index.md"}
    assert made() == set()


def test_what_another_thread_opens_is_not_the_pages(here, made):
    """A server watches all folders while it makes pages."""
    from threading import Thread

    with Listener().listening() as files:
        thread = Thread(target=(here.root / "docs/index.md").read_text)
        thread.start()
        thread.join()
        (here.root / "docs/more.md").read_text()
    assert {name for name in files if not name.startswith(str(PACKAGE))} == {"docs/more.md"}


def test_what_one_listener_reads_for_a_digest_is_no_input_for_another(here, made):
    """Else a page whose code lists a folder depends on the size and time of each file in it."""
    first, other = Listener(), Listener()
    with first.listening() as files, other.listening() as others:
        list((here.root / "docs").glob("*.md"))
    assert {"docs//"} <= files.keys() & others.keys()
    assert "docs//*" not in {*files, *others}


def test_a_process_that_nobody_watches_stores_no_page(here, made, monkeypatch):
    """As `mkdocs build`: nobody knows what it had read before."""
    (here.root / ".cache/pages/index.md.json").unlink()
    monkeypatch.setattr(process.OWN_READS, "files", None)
    assert made() == ALL
    assert not (here.root / ".cache/pages/index.md.json").exists()


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="there is no fork to wait for")
def test_two_processes_make_the_pages_that_one_makes(here, made, monkeypatch):
    alone = site(here)
    shutil.rmtree(here.root / ".cache/pages")
    fork = os.fork

    def wait():
        child = fork()
        if child:
            os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        return child

    monkeypatch.setattr(os, "fork", wait)
    monkeypatch.setattr(ahead, "FORKS", True)
    shared = Build(StubResults({"lines.rising": {"values": {"end": here.end}}}))
    config = load_config(str(here.root / "mkdocs.yml"), site_dir=str(here.root / "site"))
    with ahead.in_two_processes(shared):
        build(shared.into(config))
    assert site(here) == alone
    assert shared.new_pages == ahead.NEW
