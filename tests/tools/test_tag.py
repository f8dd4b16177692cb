"""What is published has a tag for each date, and another one for further entries on that day."""

import os
import subprocess

import pytest

from executable_prose import project
from tools import tag


@pytest.fixture
def published(tmp_path, tmp_path_factory, monkeypatch):
    """A function that commits a list of changes and publishes it: the tag that it got, and all of them."""
    remote = tmp_path_factory.mktemp("remote")
    who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}

    def git(folder, *command):
        done = subprocess.run(
            ["git", *command], cwd=folder, check=True, capture_output=True, env=os.environ | who
        )
        return done.stdout.decode()

    git(remote, "init", "--quiet", "--bare")
    monkeypatch.setattr(project, "ROOT", tmp_path)
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")

    def published(*lines):
        (tmp_path / "CHANGES.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
        git(tmp_path, "add", "CHANGES.md")
        git(tmp_path, "commit", "--quiet", "--allow-empty", "--no-gpg-sign", "--message", "A change")
        made = tag.tag(str(remote))
        if made:
            assert git(remote, "rev-parse", made) == git(tmp_path, "rev-parse", "HEAD")
        return made, git(remote, "tag", "--list").split()

    return published


def test_each_date_gets_a_tag_and_further_entries_of_a_day_another(published):
    first, second = "- Added a.py: words.", "- Fixed a.py: words."
    assert published("## 2026-01-01", first) == ("2026-01-01", ["2026-01-01"])
    assert published("## 2026-01-01", first) == (None, ["2026-01-01"])
    assert published("## 2026-01-01", second, first)[0] == "2026-01-01.2"
    for n in range(3, 12):
        made, _ = published("## 2026-01-01", second, f"- Changed a.py: {n}.")
        assert made == f"2026-01-01.{n}"
    assert published("## 2026-01-01", second, "- Changed a.py: 11.")[0] is None
    made, known = published("## 2026-01-02", second, "## 2026-01-01", first)
    assert made == "2026-01-02" and len(known) == 12
