"""A file of data is parsed once, and again when it has changed; who listens hears of each use."""

import gc
import os

import pytest

from executable_prose import project, reading
from executable_prose.execution.recorder import Listener
from prose_testing.fixtures import Hook

PARSED = []


def words(*texts):
    PARSED.append(texts)
    return " ".join(texts).split()


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setattr(project, "ROOT", tmp_path)
    monkeypatch.setattr(reading, "_KNOWN", {})
    PARSED.clear()
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    return tmp_path


def changed(file, text):
    """Write a file so that its time differs, too, however coarse the clock of the disk is."""
    file.write_text(text)
    os.utime(file, ns=(0, file.stat().st_mtime_ns + 1))


def test_files_are_parsed_once_until_one_of_them_changes(here):
    files = here / "a", here / "b"
    first = reading.parsed(words, *files)
    assert first == ["a", "b"] and reading.parsed(words, *files) is first
    changed(files[1], "c")
    assert reading.parsed(words, *files) == ["a", "c"]
    changed(files[1], "b")
    assert reading.parsed(words, *files) == ["a", "b"]
    assert PARSED == [("a", "b"), ("a", "c"), ("a", "b")]


def test_each_parser_has_its_own_result(here):
    assert reading.parsed(words, here / "a") == ["a"]
    assert reading.parsed(str, here / "a") == "a"


def test_a_listener_hears_of_a_file_that_is_not_read_again(here):
    listener, heard = Listener(), []
    for _ in range(2):
        with listener.listening() as files:
            reading.parsed(words, here / "a", here / "b")
        heard.append(files)
    assert heard[0] == heard[1] == {name: project.digest(name) for name in ("a", "b")}
    assert len(PARSED) == 1


def test_the_hook_of_a_listener_ends_with_it_and_serves_the_next(here):
    listener = Listener()
    listener.hear()
    gc.collect()
    free = len(Hook.ended)
    del listener
    gc.collect()
    assert len(Hook.ended) == free + 1
    with Listener().listening() as files:
        (here / "a").read_text()
    assert files == {"a": project.digest("a")} and len(Hook.ended) <= free + 1


def test_a_file_that_is_missing_or_cannot_be_parsed_is_asked_for_each_time(here):
    listener = Listener()
    with listener.listening() as files, pytest.raises(FileNotFoundError):
        reading.parsed(words, here / "none")
    assert files == {"none": None}
    (here / "a").write_text("no number")
    for _ in range(2):
        with pytest.raises(ValueError, match="no number"):
            reading.parsed(int, here / "a")
    changed(here / "a", "7")
    assert reading.parsed(int, here / "a") == 7
    (here / "a").unlink()
    with pytest.raises(FileNotFoundError):
        reading.parsed(int, here / "a")
