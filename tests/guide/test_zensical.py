"""What this site adds is the same from Zensical, which succeeds Material for MkDocs."""

import pytest

from prose_testing.projects import MATERIAL, Project
from prose_testing.successor import Both
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
def both(tmp_path_factory, additions):
    return Both(Project(tmp_path_factory.mktemp("zensical"), MATERIAL, files=FILES, additions=additions))


@each_of(
    ("name", "what", "count"),
    [
        ("index.html", "details.level-basic#the-idea-basic[open]", 1),
        ("index.html", "details.from-basic > details", 3),
        ("index.html", "details .beside pre", 4),
        ("index.html", ".place a", 4),
        ("reference/scale/index.html", ".place a[download='scale.py']", 1),
        ("changes/index.html", "li:has(> strong)", 1),
    ],
)
def test_a_page_has_the_same_from_both(both, name, what, count):
    both.check(what, count, page=name)
