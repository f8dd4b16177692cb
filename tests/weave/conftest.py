"""weave at work in a temporary folder, without building a site."""

import functools

import markdown
import pytest
from markdown.treeprocessors import Treeprocessor
from mkdocs.config import load_config
from mkdocs.utils import meta

from tests.weave.projects import ADDRESSES, FILES, Folder, Project
from weave import cached, extension, project, results


def move(monkeypatch, folder):
    """Let weave, in this process, take a folder for the project."""
    places = {"ROOT": folder, "DOCS": folder / "docs", "CACHE": folder / ".cache" / "weave"}
    for name, place in places.items():
        monkeypatch.setattr(project, name, place)
    texts = folder / ".cache" / "texts.json"
    monkeypatch.setattr(cached, "FILE", texts)
    monkeypatch.setattr(cached, "_store", functools.cache(lambda: cached.Store(texts)))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder that weave, in this process, takes for the project, with the least that a page needs."""
    here = Folder(tmp_path.resolve())
    here.write({"docs/claims.md": "# Claims\n"})
    here.configure("theme: mkdocs\n")
    for name in ADDRESSES:
        monkeypatch.delenv(name, raising=False)
    move(monkeypatch, here.root)
    return here


@pytest.fixture(scope="module")
def lively(tmp_path_factory):
    """A project whose exhibits run, for `results.Results` in this process."""
    lively = Project(tmp_path_factory.mktemp("lively").resolve(), files=FILES)
    with pytest.MonkeyPatch.context() as monkeypatch:
        move(monkeypatch, lively.root)
        monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        yield lively


class StubResults:
    """Results without running anything."""

    def __init__(self, known):
        self.known = known
        self.digest = functools.cache(project.digest)

    def visit(self, page, text):
        pass

    def get(self, name):
        if name not in self.known:
            raise results.Unavailable(f"unknown exhibit {name!r}")
        return {"figure": None, "output": "", "values": {}} | self.known[name]


@pytest.fixture
def page(here, monkeypatch):
    """A function that converts the text of a page as MkDocs does, in the folder of `here`."""
    config = None

    def convert(text, path="index.md", **exhibits):
        nonlocal config
        known = {name.replace("__", "."): result for name, result in exhibits.items()}
        monkeypatch.setattr(extension, "RESULTS", StubResults(known))
        here.write({f"docs/{path}": text})
        config = config or load_config(str(here.root / "mkdocs.yml"))
        md = markdown.Markdown(extensions=config.markdown_extensions, extension_configs=config.mdx_configs)
        owner = Treeprocessor(md)
        owner.file = type("File", (), {"src_uri": path})
        md.treeprocessors.register(owner, "the page, as MkDocs leaves it", -100)
        source = (here.root / "docs" / path).read_text(encoding="utf-8")
        return md.convert(meta.get_data(source)[0])

    return convert
