"""Each file to copy says where it is from, and the date in its head is that of its code."""

import json
import os
import re
import subprocess
import time

import pytest

from executable_prose import labs, project, symbols
from executable_prose.execution import provenance
from executable_prose.site import markdown_copies
from guide import changes, copies, heads
from tests.rows import each_of

SITE = "https://someone.github.io/guide"
HEAD = "# SPDX-License-Identifier: 0BSD\n# From The executable guide to positional encoding, {}\n"
TODAY = time.strftime("%Y-%m-%d")


def test_the_date_in_each_head_is_that_of_the_last_change_of_the_code():
    known = copies.dates() if copies.versions() else None
    assert known, "the dates are in the history, which is not here whole: git fetch --unshallow"
    heads_now = {file: heads.HEAD.match(heads.read(file)) for file in heads.files()}
    wrong = {file: known[file] for file, head in heads_now.items() if not head or head["date"] != known[file]}
    assert not wrong, "`make dates` writes them"
    assert {head["origin"] for head in heads_now.values()} == {heads.GUIDE}


def test_the_listing_of_a_symbol_has_no_head():
    for file in heads.files():
        for name in symbols.table(heads.read(file)):
            assert not heads.HEAD.match("\n".join(symbols.find(file, name).lines) + "\n"), name


# What counts as a change


CODE = '"""Words."""\n\n\ndef one(x):\n    """Words."""\n    return x + 1  # words\n'
ALIKE = {
    "a head": HEAD.format("2020-01-01") + CODE,
    "another head": f"# From {SITE}/, 2020-01-01\n{CODE}",
    "ends of lines": CODE.replace("\n", "\r\n"),
    "a byte order mark": CODE,
    "comments": CODE.replace("# words", "# other words"),
    "docstrings": CODE.replace("Words", "Other words"),
    "no docstrings": "def one(x):\n    return x + 1\n",
    "layout": CODE.replace("x + 1", "(\n        x\n        + 1\n    )"),
}
OTHER = {
    "a number": CODE.replace("1", "2"),
    "a name": CODE.replace("one", "two"),
    "a statement": CODE + "TWO = 2\n",
    "a default": CODE.replace("(x)", "(x=1)"),
    "a string that is no docstring": CODE.replace("x + 1", '"Words."'),
}


def test_code_is_a_change_and_comments_docstrings_and_layout_are_none():
    assert [kind for kind, text in ALIKE.items() if provenance.parts(text) != provenance.parts(CODE)] == []
    assert [kind for kind, text in OTHER.items() if provenance.parts(text) == provenance.parts(CODE)] == []


# The history


def git(folder, *command, date="2026-01-01"):
    who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    dates = {"GIT_AUTHOR_DATE": f"{date}T23:30:00-0500", "GIT_COMMITTER_DATE": "2026-06-01T12:00:00+0000"}
    subprocess.run(
        ["git", *command], cwd=folder, check=True, capture_output=True, env=os.environ | who | dates
    )


@pytest.fixture
def written(here):
    """A function that writes the code of a file, and commits it, if a date is given."""
    git(here.root, "init", "--quiet", "--initial-branch", "main")

    def written(text, date=None, file="snippets/half.py"):
        here.write({file: ""})
        (here.root / file).write_text(text, encoding="utf-8")
        if date:
            git(here.root, "add", file)
            git(here.root, "commit", "--quiet", "--no-gpg-sign", "--message", "A change", date=date)

    return written


def days(file="snippets/half.py"):
    return [each["date"] for each in copies.versions().get(file, [])]


# Days of January 2026 with what was committed; the days of its versions, the newest first.
HISTORIES = {
    "words are no version": ({1: "X = 1\n", 2: "X = 1  # X\n", 3: "X = 2\n", 4: '"""W"""\nX = 2\n'}, [3, 1]),
    "code that has come back": ({1: "X = 1\n", 2: "X = 2\n", 3: "X = 1\n"}, [3, 2, 1]),
    "a date before that of older code": ({2: "X = 1\n", 1: "X = 2\n"}, [2, 2]),
    "text that was no Python": ({1: "X = 1\n", 2: "X = (\n", 3: "X = 1\n"}, [1]),
}


@pytest.mark.parametrize("history", HISTORIES)
def test_the_versions_of_a_file_are_those_of_its_code_by_the_author_s_dates(written, history):
    texts, versions = HISTORIES[history]
    for day, text in texts.items():
        written(text, f"2026-01-0{day}")
    written("Y = 1\n", "2026-01-05", "snippets/other.py")
    assert days() == [f"2026-01-0{day}" for day in versions]
    assert copies.dates() == {"snippets/half.py": days()[0], "snippets/other.py": "2026-01-05"}


def test_code_that_nobody_has_committed_is_of_today(written):
    written("X = 1\n", "2026-01-01")
    written("X = 1  # words\n")
    assert copies.dates() == {"snippets/half.py": "2026-01-01"}
    written("X = 2\n")
    assert copies.dates() == {"snippets/half.py": TODAY}


def test_a_history_that_is_cut_off_or_of_others_is_none(written, here, tmp_path_factory, monkeypatch):
    written("X = 1\n", "2026-01-01")
    written("X = 2\n", "2026-01-02")
    cut = tmp_path_factory.mktemp("cut") / "clone"
    git(cut.parent, "clone", "--quiet", "--depth", "1", here.root.as_uri(), cut.name)
    monkeypatch.setattr(project, "ROOT", cut)
    assert (cut / "snippets/half.py").is_file() and copies.versions() == {}
    with pytest.raises(SystemExit, match="git fetch --unshallow"):
        copies.main()
    git(cut, "fetch", "--quiet", "--unshallow")
    assert days() == ["2026-01-02", "2026-01-01"]
    monkeypatch.setattr(project, "ROOT", here.root / "snippets")
    assert copies.versions() == {}
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(project, "ROOT", here.root)
    assert copies.versions() == {}


def test_the_command_writes_the_dates_and_the_heads_that_lack(written, here):
    written("X = 1\n", "2026-01-01")
    written(HEAD.format("2026-01-09") + "Y = 1\n", "2026-01-02", "snippets/other.py")
    copies.main()
    assert heads.read("snippets/half.py") == HEAD.format("2026-01-01") + "X = 1\n"
    before = {file: heads.read(file) for file in heads.files()}
    git(here.root, "commit", "--quiet", "--all", "--no-gpg-sign", "--message", "Heads", date="2026-01-07")
    copies.main()
    assert {file: heads.read(file) for file in heads.files()} == before


# What the site hands out


def test_what_the_site_hands_out_names_the_site():
    text = heads.read("snippets/rope.py")
    named = heads.handed_out(text, SITE)
    assert named.startswith(f"# SPDX-License-Identifier: 0BSD\n# From {SITE}/, 20")
    assert named == heads.handed_out(text, f"{SITE}/")
    assert named.split("\n")[2:] == text.split("\n")[2:]


@each_of("site", ["", "http://127.0.0.1:8000/", "https://a b/", "https://a/\nimport os\n#"])
def test_an_address_that_others_cannot_use_is_not_named(site):
    text = heads.read("snippets/rope.py")
    assert heads.handed_out(text, site) == text


def test_what_has_no_head_is_handed_out_as_it_is():
    for text in ("X = 1\n", "", f"X = '{heads.GUIDE}'\n", "\n" + heads.read("snippets/rope.py")):
        assert heads.handed_out(text, SITE) == text


def test_a_notebook_writes_files_that_name_the_site():
    made = json.loads(labs.notebook("tour", True, f"{SITE}/"))
    written = ["".join(cell["source"]) for cell in made["cells"] if "".join(cell["source"])[:2] == "%%"]
    assert written
    for text in written:
        assert re.match(rf"%%writefile \w+\.py\n# SPDX.*\n# From {SITE}/, 20", text), text[:200]


def test_the_copy_of_a_page_names_the_site_and_has_the_changes(monkeypatch):
    monkeypatch.setenv("SITE_URL", f"{SITE}/")
    copy = markdown_copies.Copy(None)  # no page here shows a result
    text = copy.page(project.DOCS / "reference/rope.md")
    assert heads.handed_out(heads.read("snippets/rope.py"), SITE).partition("\n\n\n")[0] in text
    listed = copy.page(project.DOCS / "changes.md")
    for each in changes.entries():
        assert f"- **{each.kind}** `{each.names[0]}`" in listed and each.words in listed
