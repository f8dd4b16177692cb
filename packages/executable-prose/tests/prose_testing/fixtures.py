"""The engine at work in a temporary folder, without building a site."""

import functools
import gc
import io
import logging
import re
import shutil
import signal
import sys
import types
import weakref

import markdown
import pytest
from bs4 import BeautifulSoup
from markdown.treeprocessors import Treeprocessor
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.utils import meta

from executable_prose import memo, outcome, project
from executable_prose.errors import BuildFault
from executable_prose.execution import results
from executable_prose.registry import ADDED, Files
from executable_prose.rendering import directives  # noqa: F401
from executable_prose.site import process
from executable_prose.site.shared import Build
from prose_testing.projects import ADDRESSES, ENGINE, EXHIBITS, FILES, RESULTS, Folder, Project

# What is imported and collected stays, and need not be looked through for garbage; the rest seldom.
gc.disable()
gc.set_threshold(50_000, 20, 50)

# What a script starts in the background ignores interrupts, as would the programs that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish():
    gc.enable()
    gc.freeze()


class Hook:
    """An audit hook that ends with its listener, where Python itself would keep it until the process ends.

    Each hook costs time whenever a file is opened, and these tests build a hundred sites in a process. As
    `__call__` is looked up on the type, each has a type of its own, and adds no frame to those that are seen.
    """

    ended = []

    @classmethod
    def add(cls, method):
        hook = cls.ended.pop() if cls.ended else cls._new()
        hook.__call__ = types.MethodType(method.__func__, weakref.proxy(method.__self__))
        weakref.finalize(method.__self__, hook.end).atexit = False

    @classmethod
    def _new(cls):
        hook = type("Hook", (cls,), {})
        hook.add_to_python(hook())
        return hook

    @classmethod
    def end(cls):
        cls.__call__ = {}.get  # takes both arguments, and does nothing
        cls.ended.append(cls)

    add_to_python = staticmethod(sys.addaudithook)


@pytest.fixture(autouse=True, scope="session")
def hooks_end():
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(sys, "addaudithook", Hook.add)
        yield


def move(monkeypatch, folder):
    """Let the engine, in this process, take a folder for the project."""
    places = {"ROOT": folder, "DOCS": folder / "docs", "CACHE": folder / ".cache" / "executable_prose"}
    if (folder / ENGINE).is_dir():
        places["ENGINE"] = folder / ENGINE
    for name, place in places.items():
        monkeypatch.setattr(project, name, place)
    monkeypatch.setattr(process.OWN_READS, "files", {})  # as if this process were watched
    monkeypatch.setattr(process.OWN_READS, "ran_program", False)
    monkeypatch.setattr(process, "LOADED", {})
    monkeypatch.setattr(process, "_SEEN", {*sys.modules})
    monkeypatch.setattr(process.RecordedEnviron, "by_site", set())
    texts = folder / ".cache" / "texts.json"
    monkeypatch.setattr(memo, "FILE", texts)
    monkeypatch.setattr(memo, "_store", functools.cache(lambda: memo.Store(texts)))


@pytest.fixture(autouse=True, scope="module")
def plain():
    """Without what other sites have registered in this process."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        known = ADDED.directives
        own = {name: known[name] for name in ("claims", "exhibit", "lab", "mermaid")}
        for name, value in {"directives": own, "files": Files(), "built": []}.items():
            monkeypatch.setattr(ADDED, name, value)
        yield


@pytest.fixture(scope="session")
def additions():
    """What the sites of these tests add to the engine: a module, or nothing."""
    return ""


@pytest.fixture
def here(tmp_path, monkeypatch, additions):
    """A folder that the engine, in this process, takes for the project, with the least that a page needs."""
    here = Folder(tmp_path.resolve())
    here.write({"docs/claims.md": "# Claims\n"})
    here.configure("theme: mkdocs\n", additions)
    for name in ADDRESSES:
        monkeypatch.delenv(name, raising=False)
    move(monkeypatch, here.root)
    return here


@pytest.fixture(scope="module")
def lively(request, tmp_path_factory, additions):
    """A project whose exhibits run, for `results.Results` in this process; a module may bring its files."""
    files = getattr(request.module, "PROJECT", FILES)
    root = tmp_path_factory.mktemp("lively").resolve()
    lively = Project(root, files=files, additions=additions)
    with pytest.MonkeyPatch.context() as monkeypatch:
        move(monkeypatch, lively.root)
        monkeypatch.setenv("TMPDIR", str(lively.temporary))
        monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        for name in ADDRESSES:
            monkeypatch.delenv(name, raising=False)
        yield lively


@pytest.fixture(scope="module")
def known(lively):
    """One Results for all tests, as a server has one for all builds: the worker starts once."""
    known = results.Results()
    known.refresh()
    yield known
    known.close()


@pytest.fixture
def ask(known, capfd):
    """A function that brings all results up to date and says which ran."""

    def ask():
        capfd.readouterr()
        known.invalidate()
        known.refresh()
        said = capfd.readouterr().err
        ran = set(re.findall(r"^ +ran +[\d.]+ s +(\S+)", said, re.M))
        if ran:
            count = len(results.exhibit_names() + results.lab_names())
            assert f"{len(ran)} exhibits ran, {count - len(ran)} cached" in said
        return ran

    ask()
    return ask


@pytest.fixture
def files(lively):
    """The project, whose exhibits, labs, snippets and engine are as before once the test has ended."""
    rooms = [
        room for room in ("exhibits", "labs", "snippets", "executable_prose") if (lively.root / room).is_dir()
    ]
    for room in rooms:
        shutil.copytree(lively.root / room, lively.root / ".before" / room)
    yield lively
    for room in rooms:
        shutil.rmtree(lively.root / room)
        shutil.move(lively.root / ".before" / room, lively.root / room)


@pytest.fixture
def log():
    """What MkDocs says, as a stream of text: pytest's own `caplog` would listen to torch in every test."""
    handler = logging.StreamHandler(io.StringIO())
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    logging.getLogger("mkdocs").addHandler(handler)
    yield handler.stream
    logging.getLogger("mkdocs").removeHandler(handler)


def build_here(folder, results):
    """Build the site of a folder in this process, which takes it for the project."""
    config = load_config(str(folder.root / "mkdocs.yml"), site_dir=str(folder.root / "site"))
    build(Build(results).into(config))


class StubResults:
    """Results without running anything."""

    def __init__(self, known):
        self.known = known
        self.digest = functools.cache(project.digest)

    def visit(self, page, text):
        pass

    def get(self, name):
        if name not in self.known:
            raise outcome.Unavailable(f"unknown exhibit {name!r}")
        return {"figure": None, "output": "", "values": {}} | self.known[name]


@pytest.fixture
def page(here):
    """A function that converts the text of a page as MkDocs does, in the folder of `here`."""
    config = None

    def convert(text, path="index.md", **exhibits):
        nonlocal config
        known = {name.replace("__", "."): result for name, result in exhibits.items()}
        here.write({f"docs/{path}": text})
        config = Build(StubResults(known)).into(config or load_config(str(here.root / "mkdocs.yml")))
        md = markdown.Markdown(extensions=config.markdown_extensions, extension_configs=config.mdx_configs)
        owner = Treeprocessor(md)
        owner.file = type("File", (), {"src_uri": path})
        md.treeprocessors.register(owner, "the page, as MkDocs leaves it", -100)
        source = (here.root / "docs" / path).read_text(encoding="utf-8")
        return md.convert(meta.get_data(source)[0])

    return convert


@pytest.fixture
def soup(here, page):
    """A function that converts a page and parses it."""
    here.write(EXHIBITS)

    def soup(text, path="index.md"):
        return BeautifulSoup(page(text, path, **RESULTS), "html.parser")

    return soup


@pytest.fixture
def refusal(soup):
    """A function that says why a page is refused."""

    def refusal(text, path="index.md"):
        with pytest.raises(BuildFault) as error:
            soup(text, path)
        return str(error.value)

    return refusal
