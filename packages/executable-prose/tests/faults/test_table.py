"""Every fault of the table stops the build with its place and what to do, and harms neither site nor caches.

All builds are made in this process by the code of the command `build`, with one process for exhibits.
"""

import contextlib
import re

import pytest

from executable_prose.errors import BuildFault
from prose_testing import faults as table
from prose_testing.built import check_fault

TABLE = {
    f"{kind}: {name}": line
    for kind in ("DIRECTIVES", "PROSE", "MARKUP", "EXHIBITS", "CLAIMS", "LITTER", "LABS", "CONFIGURATION")
    for name, line in getattr(table, kind).items()
}
BY_DAY = (
    # By each way in which an exception could be lost: a fence, a sentence, a postprocessor, MkDocs itself.
    "DIRECTIVES: exhibit unknown",
    "DIRECTIVES: value of no key",
    "DIRECTIVES: formula that is none",
    "PROSE: link to no heading",
    "PROSE: script",
    "PROSE: not UTF-8",
    "MARKUP: a reference to nothing",
    "MARKUP: an element never closed",
    "MARKUP: signs that are text",
    "EXHIBITS: raises",
    "EXHIBITS: draws wider than a page",
    "CLAIMS: a test that is skipped",
    "LITTER: index.md~ beside pages",
    "LABS: raises",
)


def parameters():
    return [
        pytest.param(*line[:1], line[1:], id=name, marks=[] if name in BY_DAY else pytest.mark.slow)
        for name, line in TABLE.items()
    ]


@pytest.mark.parametrize(("changes", "words"), parameters())
def test_a_fault_is_told_and_harms_nothing(site, capfd, changes, words):
    check_fault(site, capfd, changes, words)


# Which no page says by itself: the stand-in for results, or MkDocs once all pages are read, has other words.
BUILT = (
    *("DIRECTIVES: exhibit unknown", "DIRECTIVES: exhibit of no module", "DIRECTIVES: value of no exhibit"),
    *(
        "PROSE: byte order mark",
        "PROSE: link to no heading",
        "PROSE: link from the root",
        "PROSE: title that runs a script",
    ),
)


def read_pages():
    """The text of each page of the table, and the words for which it is refused, if it is."""
    pages = {f"PAGES: {name}": line for name, line in table.PAGES.items()}
    for name, (changes, *words) in (TABLE | pages).items():
        if name.startswith(("DIRECTIVES", "PROSE", "MARKUP", "PAGES")) and name not in BUILT:
            text = f"# Trial\n\n{changes}" if isinstance(changes, str) else changes.get("docs/attempt.md")
            if isinstance(text, str) and (isinstance(changes, str) or len(changes) == 1):
                late = [pytest.mark.slow] if name.endswith("too many arrows") else []
                yield pytest.param(text, words, id=name, marks=late)


@pytest.mark.parametrize(("text", "words"), list(read_pages()))
def test_a_page_is_refused_while_it_is_read(soup, text, words):
    with pytest.raises(BuildFault) if words else contextlib.nullcontext() as fault:
        soup(text, "attempt.md")
    said = " ".join(str(fault.value).split()) if words else ""
    assert [word for word in words if " ".join(word.split()) not in said] == [], said


def test_after_all_faults_the_site_is_as_it_was_and_nothing_runs(site, capfd):
    published = site.site()
    capfd.readouterr()
    assert site.build() == (0, "")
    assert not re.findall(r"^ +ran", capfd.readouterr().err, re.M)
    assert site.site() == published
    assert not list(site.root.glob(".site-*"))


def test_the_table_has_at_least_sixty_lines():
    assert len(TABLE) >= 60
