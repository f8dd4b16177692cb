"""Every fault in what only this site has stops the build with its place and what to do, and harms nothing."""

import pytest

from prose_testing.built import check_fault, site  # noqa: F401
from prose_testing.faults import FENCE, PLACE, fence

TABLE = {
    "changes in no known form": (
        {"CHANGES.md": "# Changes\n\n## 2026-01-01\n\n- Mended a.py: it.\n"},
        "'- Kind file.py: words'",
        "at CHANGES.md:5",
    ),
    "changes shown in no known form": (
        {"CHANGES.md": "## January\n", "docs/attempt.md": f"# Trial\n\n{fence('changes')}"},
        PLACE,
        "at CHANGES.md:1",
    ),
    "reference of no file": (fence("reference snippets/none.py"), PLACE, "snippets/none.py"),
    "reference elsewhere": (fence("reference snippets/scale.py"), PLACE, "docs/attempt.md"),
    "reference without a name": (fence("reference"), PLACE),
    "files of a page without a snippet": (
        {
            "docs/attempt.md": f"# Trial\n\n{fence('files')}",
            "mkdocs.yml": ("plugins: []", "nav:\n  - Try:\n      - reference/none.md\nplugins: []"),
        },
        PLACE,
        "no file snippets/none.py",
    ),
    "files never closed": (f"{FENCE}files\n", PLACE, "never closed"),
    "files in a list": (f"- {FENCE}files\n", PLACE, "on lines of its own"),
    "level unknown": ('??? level-expert "Expert"\n\n    Text.\n', PLACE, "the levels are layman, basic"),
    "a heading of a level's id": (
        '## One {: #same-basic }\n\n## Same\n\n??? level-basic "Basic"\n\n    Text.\n',
        PLACE,
        "the id 'same-basic' twice",
    ),
}
BY_DAY = ("level unknown", "changes in no known form")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param(*line[:1], line[1:], id=name, marks=[] if name in BY_DAY else pytest.mark.slow)
        for name, line in TABLE.items()
    ],
)
def test_a_fault_is_told_and_harms_nothing(site, capfd, changes, words):  # noqa: F811
    check_fault(site, capfd, changes, words)
