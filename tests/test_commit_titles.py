"""The titles of new commits are checked, in a whole clone and in a shallow one."""

import subprocess

import pytest

from tests import commit_titles


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("Add a test for titles", []),
        ("Say what a title is", ["must begin with a verb"]),
        ("fix the title", ["must begin with a verb"]),
        ("Fix " + "x" * 69, ["at most 72 characters, got 73"]),
        ("[docs] Fix it", ["must begin with a verb"]),
    ],
)
def test_what_is_wrong_with_a_title_is_said(title, words):
    found = commit_titles.problems_of(title)
    assert len(found) == len(words)
    assert all(word in each for word, each in zip(words, found, strict=True))


def test_a_clone_without_the_first_commit_checks_its_last(tmp_path):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@x"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    for title in ("Say one", "Add two"):
        subprocess.run([*git, "commit", "--quiet", "--allow-empty", "-m", title], check=True)
    assert commit_titles.titles(tmp_path) == ["Add two"]


def test_titles_of_this_history_pass():
    assert commit_titles.main() is False
