"""What functions made of text outlives the process, and is forgotten when it may be wrong."""

import cProfile
import importlib.metadata
from pathlib import Path

import pytest

from executable_prose import claims, libraries, memo, project, symbols
from executable_prose.execution import provenance
from executable_prose.figures import mermaid
from executable_prose.rendering.directives import code


@pytest.fixture
def process(monkeypatch, tmp_path):
    """Begin as a new process would; it returns the decorator and a function that ends the process."""
    monkeypatch.setattr(memo, "FILE", tmp_path / "texts.json")

    def begin():
        store = memo.Store(memo.FILE)
        monkeypatch.setattr(memo, "_store", lambda: store)
        return memo.cached, store.save

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
        cached, end = process()
        words = cached(count(asked))
        assert words("one two") == words("one two") == [2, "one two"]
        assert words("one") == [1, "one"]
        end()
    assert asked == ["one two", "one"]


def test_a_changed_file_forgets_what_its_functions_made(process, monkeypatch):
    asked = []
    for state in ("before", "after", "before"):
        monkeypatch.setattr(memo, "_state", lambda file, state=state: [state])
        cached, end = process()
        cached(count(asked))("one")
        end()
    assert asked == ["one", "one"]  # and an edit taken back finds its results again


def test_the_state_is_that_of_the_code_and_of_the_libraries(monkeypatch, tmp_path):
    code = tmp_path / "symbols.py"
    code.write_text("x = 1\n")
    before = memo._state(code)
    code.write_text("x = 2\n")
    assert memo._state(code) != before
    code.write_text("x = 1\n")
    assert memo._state(code) == before
    version = importlib.metadata.version
    for library in libraries.WRITE:
        with monkeypatch.context() as context:
            context.setattr(
                importlib.metadata,
                "version",
                lambda name, library=library: "0" if name == library else version(name),
            )
            assert memo._state(code) != before


@pytest.mark.parametrize(
    ("function", "texts"),
    [
        (code._coloured, ["def f(): return 1\n"]),
        (claims._marked, ["a.py", '@pytest.mark.claim("a-b", "It is.")\ndef test_a(): pass\n']),
        (mermaid.draw, ["flowchart LR\n  accTitle: A\n  accDescr: B\n  a --> b\n"]),
        (provenance.parts, ["def f(): return 1\n"]),
        (symbols.table, ["def f(): return 1\n"]),
    ],
)
def test_what_is_cached_uses_no_other_file_of_ours(function, texts):
    profile = cProfile.Profile(builtins=False)
    profile.runcall(function.__wrapped__, *texts)
    files = {each.code.co_filename for each in profile.getstats() if not isinstance(each.code, str)}
    ours = {file for file in files if Path(file).is_relative_to(project.ENGINE)}
    assert ours == {function.__wrapped__.__code__.co_filename}


def test_what_is_cached_is_known(process):
    cached, _ = process()
    words = cached(count([]))
    assert not words.is_known("one")
    words("one")
    assert words.is_known("one")


def test_a_moved_project_keeps_its_results_where_it_is(here):
    known = memo._store()
    assert known.file == memo.FILE
    assert known.file.is_relative_to(here.root)
    assert known.results == {}


def test_a_damaged_file_is_made_again(process):
    cached, end = process()
    cached(count([]))("one")
    end()
    for damage in ("", "{", "7", '["a"]', memo.FILE.read_text().replace("one", "two")):
        memo.FILE.write_text(damage)
        cached, end = process()
        assert cached(count([]))("one") == [1, "one"]
        end()
        assert len(project.stored(memo.FILE)) == 1


def test_what_was_asked_for_last_stays(process, monkeypatch):
    monkeypatch.setattr(memo, "LIMIT", 2)
    asked = []
    for text in ("one", "two", "three"):
        cached, end = process()
        words = cached(count(asked))
        words("one")
        words(text)
        end()
    cached, _ = process()
    words = cached(count(asked))
    words("one"), words("three"), words("two")
    assert asked == ["one", "two", "three", "two"]


def test_what_two_processes_made_at_once_stays(process):
    asked = []
    first, end_first = process()
    first(count(asked))("one")
    second, end_second = process()
    second(count(asked))("two")
    end_first(), end_second()
    cached, _ = process()
    words = cached(count(asked))
    words("one"), words("two")
    assert asked == ["one", "two"]


def test_an_error_is_raised_each_time(process):
    cached, _ = process()
    asked = []

    @cached
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
    assert not memo.FILE.exists()
