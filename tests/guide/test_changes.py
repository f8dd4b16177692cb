"""CHANGES.md is true of the history, its feed is Atom, and pages of files say what was fixed."""

import re
from collections import Counter
from datetime import datetime
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest
from bs4 import BeautifulSoup

from executable_prose.errors import BuildFault
from guide import changes, copies, heads
from guide.changes_page import as_markdown
from tests.rows import each_of

SITE = "https://someone.github.io/guide/"
ATOM = f"{{{changes.ATOM}}}"


def by_name():
    return {file.rpartition("/")[2]: file for file in heads.files()}


# What it says of our files


def test_each_entry_names_files_whose_code_changed_on_its_date():
    files, versions = by_name(), copies.versions()
    assert changes.entries()
    gone = {name for each in changes.entries() if each.kind == "Removed" for name in each.names}
    assert gone.isdisjoint(files)
    for each in changes.entries():
        for name in {*each.names} - gone:
            assert name in files, f"{each}: there is no {name}"
            dates = {known["date"] for known in versions.get(files[name], [])}
            dates.add(heads.HEAD.match(heads.read(files[name]))["date"])
            assert each.date in dates, f"{each}: the code of {name} did not change on that day"


def test_the_date_in_each_head_has_an_entry():
    """Who changes code says what that means to those who copied it, if only that it is the same."""
    said = {(name, each.date) for each in changes.entries() for name in each.names}
    for name, file in by_name().items():
        date = heads.HEAD.match(heads.read(file))["date"]
        assert (name, date) in said, f"CHANGES.md says nothing of {name} on {date}"


def test_each_file_was_added_on_the_day_of_its_first_code():
    added = {(name, each.date) for each in changes.entries() if each.kind == "Added" for name in each.names}
    versions = copies.versions()
    for name, file in by_name().items():
        if file in versions:
            assert (name, versions[file][-1]["date"]) in added, name


# How it is read


TEXT = """\
# Changes

Words.

## 2026-02-02

- Fixed half.py, other.py: one
  goes on,
  and on.
- Added half.py: two.

## 2026-01-01

- Same half.py: three.
"""


@pytest.fixture
def written(here):
    def written(text=TEXT):
        here.write({"CHANGES.md": ""})
        (here.root / "CHANGES.md").write_text(text, encoding="utf-8")
        return here

    return written


def test_entries_are_read_with_lines_that_go_on(written):
    written()
    assert [tuple(each) for each in changes.entries()] == [
        ("2026-02-02", "Fixed", ["half.py", "other.py"], "one goes on, and on."),
        ("2026-02-02", "Added", ["half.py"], "two."),
        ("2026-01-01", "Same", ["half.py"], "three."),
    ]
    assert [each.words for each in changes.fixes_of("other.py")] == ["one goes on, and on."]
    assert changes.fixes_of("none.py") == []


@each_of(
    ("was", "now", "says"),
    [
        ("- Added", "- Mended", "'## date' or '- Kind file.py: words', one of ('Fixed', 'Changed',"),
        ("- Added half.py:", "- Added half:", "got '- Added half: two.' (at CHANGES.md:10)"),
        ("- Added", "* Added", "got '* Added half.py: two.' (at CHANGES.md:10)"),
        (": two.", ":", "(at CHANGES.md:10)"),
        ("## 2026-01-01", "## 2026-03-01", "before 2026-02-02, got 2026-03-01 (at CHANGES.md:12)"),
        ("## 2026-01-01", "## 2026-02-02", "before 2026-02-02, got 2026-02-02 (at CHANGES.md:12)"),
        ("## 2026-02-02", "## February", "got '## February' (at CHANGES.md:5)"),
        ("## 2026-01-01", "## January", "got '## January' (at CHANGES.md:12)"),
        ("- Added half.py:", "- Fixed half.py, other.py:", "one entry for a date, a kind and files (at"),
    ],
)
def test_what_is_no_entry_is_refused_with_its_line(written, was, now, says):
    assert TEXT.count(was) == 1
    written(TEXT.replace(was, now))
    with pytest.raises(changes.ChangesError) as caught:
        changes.entries()
    assert says in str(caught.value)


# The feed


def faults(text):
    """What RFC 4287 forbids, of what a feed like ours could do wrong; the sections are in brackets."""
    root = ElementTree.fromstring(text)
    if root.tag != f"{ATOM}feed":
        yield "the document is no feed (2)"
    for parent in [root, *root.iter(f"{ATOM}entry")]:
        count = Counter(child.tag.removeprefix(ATOM) for child in parent)
        for tag in ("id", "title", "updated"):
            if count[tag] != 1:
                yield f"{count[tag]} of {tag} (4.1.1, 4.1.2)"
        if not count["author"] and not root.findall(f"{ATOM}author"):
            yield "nobody is the author (4.1.1)"
        if (
            parent is not root
            and not count["content"]
            and not parent.findall(f"{ATOM}link[@rel='alternate']")
        ):
            yield "neither content nor an alternate (4.1.2)"
        if count["content"] > 1:
            yield "two contents (4.1.2)"
        links = Counter((link.get("rel"), link.get("type")) for link in parent.findall(f"{ATOM}link"))
        if any(number > 1 for number in links.values()):
            yield "two links of one kind and type (4.1.1, 4.1.2)"
    for link in root.iter(f"{ATOM}link"):
        if urlsplit(link.get("href", "")).scheme != "https":
            yield "a link that leads nowhere by itself (4.2.7.1)"
    for name in root.iter(f"{ATOM}author"):
        if len(name.findall(f"{ATOM}name")) != 1:
            yield "an author without a name (3.2.1)"
    ids = [each.text for each in root.iter(f"{ATOM}id")]
    if not all(urlsplit(each).scheme for each in ids) or len({*ids}) != len(ids):
        yield "an id that is none, or no one's own (4.2.6)"
    for each in root.iter(f"{ATOM}updated"):
        if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", each.text) or not datetime.fromisoformat(
            each.text
        ):
            yield "a date that is none of RFC 3339 (3.3)"
    for each in root.iter(f"{ATOM}content"):
        if each.get("type") != "text" or len(each):
            yield "text that is none (4.1.3.3)"
    if any(not child.get("term") for child in root.iter(f"{ATOM}category")):
        yield "a category without a term (4.2.2.1)"


@pytest.mark.parametrize("site", [SITE, ""])
def test_the_feed_is_atom(tmp_path, site):
    changes.write(tmp_path, site)
    text = (tmp_path / changes.FEED).read_text("utf-8")
    assert list(faults(text)) == []
    root = ElementTree.fromstring(text)
    assert len(root.findall(f"{ATOM}entry")) == len(changes.entries())
    assert root.find(f"{ATOM}updated").text == f"{changes.entries()[0].date}T00:00:00Z"
    addresses = [link.get("href") for link in root.iter(f"{ATOM}link")]
    assert all(address.startswith(SITE) for address in addresses)
    assert bool(addresses) == bool(site)


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("<title>.*?</title>", ""),
        ("<author>.*?</author>", ""),
        ("<content.*?</content>|<link rel=.alternate.*?>", ""),
        ("urn:uuid:", ""),
        ("urn:uuid:[0-9a-f-]+", "urn:uuid:1"),
        ("T00:00:00Z", ""),
        ('href="https:', 'href="'),
        (' term="[^"]*"', ""),
        (' type="text"', ' type="xhtml"'),
        ("<name>.*?</name>", ""),
        ('rel="self" type="application/atom.xml"', 'rel="alternate" type="text/html"'),
    ],
)
def test_what_atom_forbids_is_seen(tmp_path, was, now):
    changes.write(tmp_path, SITE)
    text = (tmp_path / changes.FEED).read_text("utf-8")
    damaged = re.sub(was, now, text, flags=re.S)
    assert damaged != text and list(faults(damaged))


def test_an_entry_keeps_its_id_where_its_words_and_the_site_change(written, tmp_path):
    def ids(site):
        changes.write(tmp_path, site)
        return re.findall("<id>(.*)</id>", (tmp_path / changes.FEED).read_text("utf-8"))

    written()
    before = ids(SITE)
    written(TEXT.replace("three", "four"))
    assert len(before) == 4 and ids("") == before


def test_words_are_text_in_the_feed(written, tmp_path):
    written(TEXT.replace("two.", "a < b & `c`."))
    changes.write(tmp_path, "")
    root = ElementTree.parse(tmp_path / changes.FEED).getroot()
    assert "a < b & `c`." in [each.text for each in root.iter(f"{ATOM}content")]


def test_without_entries_there_is_no_feed(here, tmp_path):
    changes.write(tmp_path, SITE)
    assert not (tmp_path / changes.FEED).exists()


# Pages


def test_the_page_has_each_entry_below_its_date_and_leads_to_its_files(written, page):
    here = written()
    here.write({"docs/reference/half.md": "# Half\n", "docs/files.md": "# Files\n"})
    html = BeautifulSoup(page("# Changes\n\n```changes\n```", "changes.md"), "html.parser")
    assert [each.text.rstrip("¶") for each in html.select("h2")] == ["2026-02-02", "2026-01-01"]
    items = [(item.text, [link["href"] for link in item.select("a")]) for item in html.select("li")]
    assert items == [
        ("Fixed half.py, other.py: one goes on, and on.", ["reference/half.md", "files.md"]),
        ("Added half.py: two.", ["reference/half.md"]),
        ("Same half.py: three.", ["reference/half.md"]),
    ]
    assert "feed" not in html.text


def test_the_plain_list_has_the_same_entries(written):
    written()
    assert [line for lines in as_markdown("`{}`".format) for line in lines if line] == [
        "## 2026-02-02",
        "- **Fixed** `half.py`, `other.py`: one goes on, and on.",
        "- **Added** `half.py`: two.",
        "## 2026-01-01",
        "- **Same** `half.py`: three.",
    ]


def test_a_mistake_in_the_list_stops_the_page_with_both_places(written, page):
    written(TEXT.replace("- Added", "- Mended"))
    with pytest.raises(BuildFault, match=r"docs/changes\.md:3: expected .* \(at CHANGES\.md:10\)"):
        page("# Changes\n\n```changes\n```", "changes.md")
