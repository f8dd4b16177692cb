"""What functions made of text outlives the process, and is forgotten when it may be wrong."""

import json
import re

import pytest

from weave import kept as kept_


@pytest.fixture
def process(monkeypatch, tmp_path):
    """Begin as a new process would; it returns the decorator and a function that ends the process."""
    monkeypatch.setattr(kept_, "FILE", tmp_path / "texts.json")

    def begin():
        store = kept_.Store(kept_.FILE)
        monkeypatch.setattr(kept_, "_known", lambda: store)
        return kept_.kept, store.save

    return begin


def count(asked):
    """A function of text that notes what it was asked."""

    def words(text):
        asked.append(text)
        return [text.count(" ") + 1, text]

    return words


def test_a_result_is_made_once_for_all_processes(process):
    asked = []
    for _ in range(3):
        kept, end = process()
        words = kept(count(asked))
        assert words("one two") == words("one two") == [2, "one two"]
        assert words("one") == [1, "one"]
        end()
    assert asked == ["one two", "one"]


def test_a_changed_file_of_the_package_forgets_everything(process, monkeypatch):
    asked = []
    for state in ("before", "after", "before"):
        monkeypatch.setattr(kept_, "STATE", state)
        kept, end = process()
        kept(count(asked))("one")
        end()
    assert asked == ["one", "one"]  # and an edit taken back finds its results again


def test_the_state_is_that_of_the_code_and_of_what_colours_it(monkeypatch, tmp_path):
    assert kept_._state() == kept_.STATE  # read with the code itself, whatever is edited afterwards
    monkeypatch.setattr(kept_, "__file__", str(tmp_path / "kept.py"))
    code = tmp_path / "symbols.py"
    code.write_text("x = 1\n")
    before = kept_._state()
    code.write_text("x = 2\n")
    assert kept_._state() != before
    code.write_text("x = 1\n")
    assert kept_._state() == before
    monkeypatch.setattr(kept_.pygments, "__version__", "0")
    assert kept_._state() != before


def test_a_damaged_result_is_made_again(process):
    kept, end = process()
    assert kept(count([]))("one two") == [2, "one two"]
    end()
    whole = kept_.FILE.read_text()
    for damaged in (
        whole.replace("[2,", "[3,"),
        re.sub(r"\[.*\]", "[]", whole),
        re.sub(r"\[.*\]", "7", whole),
    ):
        assert damaged != whole
        kept_.FILE.write_text(damaged)
        kept, end = process()
        assert kept(count([]))("one two") == [2, "one two"]
        end()
        assert kept_.FILE.read_text() == whole


def test_a_moved_project_keeps_its_results_where_it_is(here):
    known = kept_._known()
    assert known.file == kept_.FILE
    assert known.file.is_relative_to(here.root)
    assert known.stored == {}


def test_a_damaged_file_is_made_again(process):
    for damage in ("", "{", "7", '["a"]'):
        kept_.FILE.write_text(damage)
        kept, end = process()
        assert kept(count([]))("one") == [1, "one"]
        end()
        assert len(json.loads(kept_.FILE.read_bytes())) == 1


def test_what_was_asked_for_last_stays(process, monkeypatch):
    monkeypatch.setattr(kept_, "LIMIT", 2)
    asked = []
    for text in ("one", "two", "three"):
        kept, end = process()
        words = kept(count(asked))
        words("one")
        words(text)
        end()
    kept, _ = process()
    words = kept(count(asked))
    words("one"), words("three"), words("two")
    assert asked == ["one", "two", "three", "two"]


def test_an_error_is_raised_each_time(process):
    kept, _ = process()
    asked = []

    @kept
    def refuse(text):
        asked.append(text)
        raise ValueError(text)

    for _ in range(2):
        with pytest.raises(ValueError, match="one"):
            refuse("one")
    assert asked == ["one", "one"]


def test_nothing_new_writes_nothing(process):
    _, end = process()
    end()
    assert not kept_.FILE.exists()
