"""Every exhibit prints and returns what is committed in goldens/, one file per chapter."""

import re

import pytest

from executable_prose import goldens
from executable_prose.execution.results import Results, exhibit_names
from executable_prose.figures.standalone import standalone
from executable_prose.project import DOCS, ROOT
from tests.exhibits.common import GOLDENS

PICTURE = ROOT / ".github" / "who-bit-whom.svg"


def test_exhibits_give_what_the_golden_files_say(golden, subtests):
    assert exhibit_names()
    for name in exhibit_names():
        with subtests.test(name):
            golden(name, GOLDENS)


@pytest.mark.slow
def test_each_exhibit_gives_alone_what_it_gives_beside_others(subtests):
    """A build forks exhibits from a process that has imported their chapter."""
    known, alone = Results(), Results(lazy=True)
    for name in exhibit_names():
        with subtests.test(name):
            (outcome,) = alone.run([name])
            assert outcome.result == known.get(name)
    alone.close()


def test_the_golden_files_have_the_parts_of_exhibits_and_nothing_else(request):
    names = {*exhibit_names()}
    for file in GOLDENS.iterdir():
        known = goldens.read(GOLDENS, file.stem)
        now = goldens.page({name: part for name, part in known.items() if name in names})
        if request.config.getoption("--rewrite-goldens"):
            file.write_text(now, encoding="utf-8") if now else file.unlink()
        else:
            assert now and file.read_text(encoding="utf-8") == now, f"`make goldens` writes {file.name}"


def test_the_picture_of_the_readme_is_the_figure_of_the_front_page(gives, request):
    now = standalone(gives("front.who_bit_whom")["figure"]) + "\n"
    if request.config.getoption("--rewrite-goldens"):
        PICTURE.write_text(now, encoding="utf-8")
    assert PICTURE.read_text(encoding="utf-8") == now, "`make goldens` writes it"


def test_every_exhibit_is_on_a_page():
    text = "".join(path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md"))
    shown = set(re.findall(r"(?:exhibit |#!val )(\w+\.\w+)", text))
    assert [name for name in exhibit_names() if name not in shown] == []
