"""What this site adds is the same from Zensical, which succeeds Material for MkDocs."""

import pytest
from bs4 import BeautifulSoup

from prose_testing.projects import MATERIAL, Project
from tests.rows import each_of

LEVELS = "\n".join(
    f'??? level-{level} "{level.title()}"\n\n    Of it.\n\n    --8<-- "snippets/scale.py@scaled"\n'
    for level in ("layman", "basic", "intermediate", "advanced")
)
FILES = {
    "snippets/scale.py": "def scaled(x):\n    return 2 * x\n",
    "docs/index.md": f"# Scaling\n\nSee [how](#the-idea-basic).\n\n## The idea\n\n{LEVELS}",
    "docs/reference/scale.md": '# Scale\n\n--8<-- "snippets/scale.py"\n',
    "docs/changes.md": "# Changes\n\n```changes\n```\n",
    "docs/files.md": "# Files\n",
    "CHANGES.md": "# Changes\n\n## 2026-02-02\n\n- Fixed scale.py: it gave `x`.\n",
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory, additions):
    """A function that gives a page of both sites, parsed."""
    project = Project(tmp_path_factory.mktemp("zensical"), MATERIAL, files=FILES, additions=additions)
    for command in (["mkdocs", "build", "--strict", "--site-dir", "mkdocs-site"], ["zensical", "build"]):
        done = project.run(*command)
        assert done.code == 0, done.output

    def pages(name):
        for site in ("mkdocs-site", "site"):
            # Zensical reads this mark itself, and Material's search plugin does.
            text = (
                project.page(name, site)
                .replace(' data-search-exclude=""', "")
                .replace(" data-search-exclude", "")
            )
            yield BeautifulSoup(text, "html.parser").select_one("article, main")

    return pages


@each_of(
    ("name", "what", "count"),
    [
        ("index.html", "details.level-layman#the-idea-layman[open]", 1),
        ("index.html", "details.from-basic > details", 3),
        ("index.html", "details .beside pre", 4),
        ("index.html", ".place a", 4),
        ("reference/scale/index.html", ".place a[download='scale.py']", 1),
        ("changes/index.html", "li:has(> strong)", 1),
    ],
)
def test_a_page_has_the_same_from_both(pages, name, what, count):
    mkdocs, zensical = (page.select(what) for page in pages(name))
    assert len(mkdocs) == count
    assert [str(element) for element in mkdocs] == [str(element) for element in zensical]
