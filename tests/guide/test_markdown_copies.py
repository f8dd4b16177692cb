"""The plain Markdown copies of pages: listings as they are, and what directives show."""

import re
from types import SimpleNamespace

import pytest

from executable_prose import project
from executable_prose.site import markdown_copies
from guide import changes, heads, reference
from tests.rows import each_of

SNIPPETS = heads.files()
PAGES = {
    file: project.DOCS / file.replace("snippets", "reference").replace(".py", ".md") for file in SNIPPETS
}


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.delenv("SITE_URL", raising=False)
    return tmp_path


@pytest.fixture
def results(gives):
    """What exhibits give, as the site is built."""
    return SimpleNamespace(get=gives)


@pytest.fixture
def copied(site, results):
    """A function that makes the copy of a page."""

    def copied(path):
        text = markdown_copies.Copy(results).page(path)
        return markdown_copies.linked(path, text, markdown_copies.folder(path))

    return copied


@each_of("file", SNIPPETS)
def test_the_copy_of_a_file_has_its_code_its_model_its_peers_and_its_fixes(copied, file):
    text, name = copied(PAGES[file]), file.removeprefix("snippets/").removesuffix(".py")
    assert f"````python\n{heads.read(file).rstrip()}\n````\n" in text, "with each blank line"
    model = project.ROOT / f"snippets/in_a_model/{name}.py"
    assert ("## In a model\n" in text) == model.is_file()
    assert not model.is_file() or model.read_text("utf-8").rstrip() in text
    peers = text.partition("## Checked against\n")[2]
    assert all(f"| `{peer}` | {version} |" in peers for peer, version, _ in reference.peers(name))
    assert reference.peers(name) or "know no implementation by other people" in peers
    assert ("## Speed\n" in text) == bool(reference.speed(name)[1])
    fixes = changes.fixes_of(f"{name}.py")
    assert ("copies from before give wrong numbers" in text) == bool(fixes)
    assert all(f"- {fix.date}: {fix.words}" in text for fix in fixes)
    assert not fixes or "[Changes](../../changes/) lists" in text


def test_the_copy_of_all_files_names_each_with_what_it_is_and_links_to_it(copied):
    text = copied(project.DOCS / "files.md")
    listed = re.findall(r"^- \[(\w+\.py)\]\(\.\./reference/(\w+)/\): (.+)$", text, re.M)
    assert sorted(f"snippets/{name}" for name, *_ in listed) == sorted(SNIPPETS)
    for name, page, says in listed:
        assert name == f"{page}.py" and says == reference.sentence(f"snippets/{name}")
    assert "```files" not in text


def test_in_one_file_of_all_pages_links_go_from_the_root(site, results):
    markdown_copies.write(site, results)
    whole = (site / "llms-full.txt").read_text("utf-8")
    assert "- [rope.py](reference/rope/): " in whole
    assert "\n\n\n" in whole, "listings keep their blank lines"


def test_no_directive_is_left_in_a_copy_and_prose_has_no_gaps(site, results):
    for path in sorted(project.DOCS.rglob("*.md")):
        text = markdown_copies.Copy(results).page(path)
        assert "\n\n\n" not in re.sub(r"^(`{3,}).*?^\1$", "a listing", text, flags=re.M | re.S), path
        assert not re.search(r"^```(?:exhibit|lab|reference|changes|claims|files)\b", text, re.M), path
