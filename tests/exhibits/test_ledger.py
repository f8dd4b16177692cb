"""The ledger: what every exhibit prints and returns is what is committed in goldens/, a file a chapter.

Numbers with a point or a power of ten may differ by one in a thousand or by 1e-6, which covers another
machine's arithmetic; whole numbers and all other text must be the same. `make goldens` writes the
ledger anew, for review.
"""

import math
import re

import pytest

from tests.exhibits.common import GOLDENS, HEADING, ledger
from weave.figures import standalone
from weave.project import DOCS, ROOT
from weave.results import exhibit_names

PICTURE = ROOT / ".github" / "six-orders.svg"
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
WHOLE = re.compile(r"[-+]?\d+")
RELATIVE, ABSOLUTE = 1e-3, 1e-6


def entry(result):
    """An exhibit's part of the ledger: what it printed, then its values by name."""
    values = [f"{key} = {value!r}\n" for key, value in result["values"].items()]
    return result["output"] + ("---\n" if values else "") + "".join(values)


def page(parts):
    """A chapter's file of the ledger."""
    return "".join(f"{HEADING}{name}\n{part}" for name, part in sorted(parts.items()))


def differences(golden, now):
    """The lines that differ by more than rounding."""
    if golden.count("\n") != now.count("\n"):
        return [f"{golden.count(chr(10))} lines became {now.count(chr(10))}"]
    pairs = zip(golden.splitlines(), now.splitlines(), strict=True)
    return [f"{old!r} became {new!r}" for old, new in pairs if not alike(old, new)]


def alike(old, new):
    """Whether two lines differ at most in the last digits of their numbers."""
    # White space may differ: a number's sign or power of ten can change its width.
    texts = [NUMBER.sub("#", line).split() for line in (old, new)]
    numbers = zip(*(NUMBER.findall(line) for line in (old, new)), strict=True) if texts[0] == texts[1] else ()
    return texts[0] == texts[1] and all(a == b or close(a, b) for a, b in numbers)


def close(old, new):
    """Whether two numbers differ at most in their last digits; a whole one has none to spare."""
    whole = WHOLE.fullmatch(old) and WHOLE.fullmatch(new)
    return not whole and math.isclose(float(old), float(new), rel_tol=RELATIVE, abs_tol=ABSOLUTE)


@pytest.mark.parametrize("name", exhibit_names())
def test_an_exhibit_gives_what_the_ledger_says(name, gives, request):
    chapter, now = name.partition(".")[0], entry(gives(name))
    if request.config.getoption("--rewrite-goldens"):
        file = GOLDENS / f"{chapter}.txt"
        file.write_text(page(ledger(chapter) | {name: now}), encoding="utf-8")
    golden = ledger(chapter)
    assert name in golden, f"goldens/{chapter}.txt has no {name}: `make goldens` writes it"
    changed = differences(golden[name], now)
    assert not changed, f"{name} gives other numbers: {changed}; if that is right, run `make goldens`"


def test_the_ledger_has_the_parts_of_exhibits_and_nothing_else(request):
    for file in GOLDENS.iterdir():
        now = page({name: part for name, part in ledger(file.stem).items() if name in exhibit_names()})
        if request.config.getoption("--rewrite-goldens"):
            file.write_text(now, encoding="utf-8") if now else file.unlink()
        else:
            assert now and file.read_text(encoding="utf-8") == now, f"`make goldens` writes {file.name}"


def test_the_picture_of_the_readme_is_the_figure_of_the_front_page(gives, request):
    now = standalone(gives("front.six_orders")["figure"]) + "\n"
    if request.config.getoption("--rewrite-goldens"):
        PICTURE.write_text(now, encoding="utf-8")
    assert PICTURE.read_text(encoding="utf-8") == now, "`make goldens` writes it"


def test_every_exhibit_is_on_a_page():
    text = "".join(path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md"))
    unused = [
        name for name in exhibit_names() if not re.search(rf"(exhibit |#!val ){re.escape(name)}\b", text)
    ]
    assert not unused


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("gap 1.000", "gap 1.0005", True),
        ("gap 1.000", "gap 1.002", False),
        ("error 2e-16", "error -4e-13", True),
        ("a 1", "b 1", False),
        ("n 4096", "n 4096", True),
        ("n 4096", "n 4097", False),
        ("p 1", "p 1.0002", True),
        ("same", "0.29 apart", False),
        ("1 2", "1", False),
    ],
)
def test_the_ledger_forgives_rounding_and_nothing_else(old, new, same):
    assert alike(old, new) is same
