"""Test the directive of the register: the index, an entry, and the errors for an invalid entry."""

import json
import shutil

import pytest
import torch
from bs4 import BeautifulSoup

from executable_prose import project
from executable_prose.registry import ADDED
from executable_prose.rendering.directives.code import DirectiveError
from guide import register
from snippets.check_positions import check_attention, check_rotation, check_transformers
from snippets.rope import apply_rope, rope_frequencies, rope_tables

ROW = """
[[entry]]
id = "a-fault"
exhibit = "broken_start.a_fault"
stage = "start"
title = "A bug <of> ours"
symptom = "It prints `nan`."
messages = ["error: a < b"]
libraries = ["one", "other"]
check = "finite"
hides = "Never."
cause = "None."
fix = "None."
threads = [
    { name = "who/what#3", date = "2026-01-02", version = "1.2" },
    { name = "who/what#4", date = "2026-01-03" },
]
stands = "No."
learn = "guide/rope.md#layouts"
"""


class Page:
    """As much of a page as the directive asks for."""

    def __init__(self, path):
        self._path = path

    def path(self):
        return self._path

    def up(self):
        return "../../"

    def to(self, target):
        return f"../{target}"


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """A project with these rows, and with the pages and files of this one."""
    (tmp_path / "snippets").symlink_to(project.ROOT / "snippets")
    file = tmp_path / register.FILE
    shutil.copytree(project.DOCS, tmp_path / "docs", ignore=shutil.ignore_patterns(file.name), symlinks=True)
    monkeypatch.setattr(project, "ROOT", tmp_path)
    return file.write_text


def shown(asked="", path="broken/start.md"):
    return ADDED.directives["register"].shown(Page(path), asked, [])


@pytest.mark.parametrize(
    "text, said",
    [
        ("[[entry]", "docs/broken/register.toml cannot be read: "),
        (ROW + ROW, "docs/broken/register.toml has 2 entries 'a-fault'"),
        (ROW.replace('fix = "None."\n', 'how = "So."\n'), "entry a-fault lacks fix, has how"),
        (
            ROW.replace('"start"', '"stop"'),
            "entry a-fault: stage must be one of conversion, .*, got 'stop'",
        ),
        (
            ROW.replace("who/what#3", "what#3"),
            "entry a-fault: thread must be owner/repo#number, got .*'what#3'",
        ),
    ],
    ids=["no TOML", "twice", "fields", "stage", "thread"],
)
def test_a_row_that_is_wrong_is_named(rows, text, said):
    rows(text)
    with pytest.raises(DirectiveError, match=said):
        shown()


def test_an_entry_that_is_not_there_and_one_on_another_page_are_named(rows):
    rows(ROW)
    with pytest.raises(DirectiveError, match="has no entry 'other'; it has a-fault"):
        shown("other")
    with pytest.raises(DirectiveError, match=r"entry a-fault belongs on docs/broken/start\.md"):
        shown("a-fault", "broken/images.md")


def test_an_entry_tells_all_that_its_row_has(rows):
    rows(ROW)
    ((heading, *lines),) = shown("a-fault")
    text = "\n".join(lines)
    assert heading == "## A bug <of> ours {: #a-fault }"
    assert "**Symptom.** It prints `nan`. `error: a < b`" in text
    assert "[what#3](https://github.com/who/what/issues/3), 2026-01-02, 1.2; [what#4]" in text
    assert "**Find it in your model.** `positions check path/to/model`." in text
    assert "`finite` of [check_positions.py](../reference/check_positions.md)" in text
    assert "[RoPE (rotary position embedding)](../guide/rope.md#layouts)" in text


def test_each_entry_has_the_call_that_asks_its_check(tmp_path):
    def rotate(x, positions):
        return apply_rope(x, *rope_tables(positions, rope_frequencies(16, base=1e4)), "half")

    def attend(q, k, v, queries, keys):
        hidden = queries[:, None] < keys
        return (q @ k.mT).masked_fill(hidden, -torch.inf).softmax(-1) @ v

    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", "num_hidden_layers": 2}))
    settings = {"rope_type": "default", "rope_theta": 1e4}
    findings = check_rotation(rotate, 16, settings=settings, float64=False)
    findings += check_rotation(lambda x, at: rotate(x, torch.arange(8000)[at]), 16)
    assert {*register.OF_A_ROTATION} <= {each.check for each in findings}
    assert {*register.OF_AN_ATTENTION} <= {each.check for each in check_attention(attend, 16, causal=True)}
    assert {*register.OF_A_MODEL} <= {each.check for each in check_transformers(tmp_path)} | {"past_limits"}
    own = (project.ROOT / register.OWN).read_text("utf-8")
    assert [e.id for e in register.entries() if e.check not in register.COMMANDS and e.check not in own] == []


def test_a_check_of_the_page_says_so(rows):
    rows(ROW.replace('"finite"', '"own_check"'))
    assert "`own_check` of this page (`exhibits/_image_checks.py`)" in "\n".join(shown("a-fault")[0])


def test_the_index_has_each_entry_with_what_its_filter_asks_for(rows):
    rows(ROW + ROW.replace('"a-fault"', '"b-fault"').replace('"other"', '"third"'))
    index = BeautifulSoup(shown(path="guide/broken.md")[0], "html.parser")
    told = index.select_one(".counted")
    assert told.text.startswith("2 entries, ") and told["data-library"] == "one"  # what two entries have
    first = index.select_one("p[data-library]:not(.counted)")
    assert first["data-library"] == "one|other" and first["data-stage"] in told["data-stage"].split("|")
    assert first.a["href"] == "../../broken/start/#a-fault" and first.a.text == "A bug <of> ours"
    assert first.select_one(".more[hidden]").text.split() == ["It", "prints", "nan.", "error:", "a", "<", "b"]
    assert len(index.select("h3 a")) == len(register.STAGES)


def test_plain_text_has_the_index_and_the_entry(rows):
    rows(ROW)
    told = ADDED.directives["register"].told
    assert told(None, "", []) == ["- [A bug <of> ours](broken/start.md#a-fault): It prints `nan`."]
    assert told(None, "a-fault", [])[0] == "## A bug <of> ours"


def test_programs_get_all_rows(rows, tmp_path):
    rows(ROW)
    register.write(tmp_path)
    (row,) = json.loads((tmp_path / "data/broken.json").read_text("utf-8"))
    assert row["address"] == "broken/start/#a-fault" and row["threads"][1] == {
        "name": "who/what#4",
        "date": "2026-01-03",
    }
    assert set(row) == set(register.Entry.__dataclass_fields__) | {"address"}
