"""Timings that are older than their code are named, and the site is not published with them."""

import json

import pytest

from executable_prose import project
from executable_prose.execution import provenance
from experiments import fresh
from tests.rows import each_of

SNIPPET = """
def turned(x):
    if x < 0:
        raise ValueError("below 0")
    return x

def other():
    pass
"""


@pytest.fixture
def timed(tmp_path, monkeypatch):
    """A function that edits a snippet of which a piece of work and the cost of encodings were timed."""
    snippet, timings = tmp_path / "snippets" / "rope.py", tmp_path / fresh.SPEED
    for path in (snippet, timings):
        path.parent.mkdir(parents=True)
    snippet.write_text(SNIPPET)
    parts = provenance.measured_parts(SNIPPET)
    ran = {"snippets/rope.py": {name: parts[name] for name in ("", "turned")}}
    timings.write_text(json.dumps({"code": {"a turn": ran, "other work": {}}}))
    monkeypatch.setattr(fresh, "made_with", lambda experiment: [{"code": ran}])
    monkeypatch.setattr(project, "ROOT", tmp_path)

    def edit(was, now):
        assert was in SNIPPET
        snippet.write_text(SNIPPET.replace(was, now))

    return edit


@pytest.mark.parametrize(
    ("was", "now"), [("x\n", "x  # a remark\n"), ("below 0", "less than 0"), ("pass", "return 1")]
)
def test_timings_of_the_code_as_it_is_are_published(timed, capsys, was, now):
    timed(was, now)
    fresh.main()
    assert "every timing" in capsys.readouterr().out


@each_of(
    ("was", "now", "name"),
    [
        ("return x", "return -x", "turned"),
        ("x < 0", "x <= 0", "turned"),
        ("def turned", "def turn", "snippets/rope.py"),
        ("def other", "BASE = 2\n\ndef other", "snippets/rope.py"),
    ],
)
def test_older_timings_are_refused_each_with_what_has_changed(timed, was, now, name):
    timed(was, now)
    assert fresh.speed() == {"a turn": [name]} and fresh.cost() == ["snippets/rope.py"]
    with pytest.raises(SystemExit) as refused:
        fresh.main()
    lines = str(refused.value).splitlines()[1:]
    assert lines == [
        f"a turn ({fresh.SPEED}; make bench): {name}",
        "cost (make experiments): snippets/rope.py",
    ]


def test_a_file_that_is_gone_has_changed(timed):
    (project.ROOT / "snippets" / "rope.py").unlink()
    assert fresh.speed() == {"a turn": ["snippets/rope.py"]} and fresh.cost() == ["snippets/rope.py"]
