"""Bounds: a number behind "at least" or "never above", or before "or more", is rounded to its safe side."""

import re
from decimal import Decimal

from executable_prose.project import DOCS
from executable_prose.rendering.inline import BOUND, formatted
from executable_prose.syntax import VALUE

NOT = re.compile(r"\b(?:no|not|none|nor|never|nowhere|neither|cannot)\b", re.I)  # turns a comparison round
LARGER = "more|larger|greater|higher|longer|later|farther|further|bigger|wider|steeper|louder|better|stronger"
SMALLER = "less|fewer|smaller|lower|shorter|earlier|closer|nearer|narrower|quieter|weaker|worse"
SOME = r"(?: [\w’'-]+){0,4} ?$"  # words between a bound and its number
BEFORE = (  # what is said, the safe side, and whether a "not" makes it the other
    (rf"\bat least{SOME}", "down", False),
    (rf"\b(?:at most|at best|up to|all but){SOME}", "up", False),
    (rf"\b(?:{LARGER}) than{SOME}", "down", True),
    (rf"\b(?:{SMALLER}) than{SOME}", "up", True),
    (r"\b(?:above|over|beyond|exceeds?) (?:an? )?$", "down", True),
    (r"\b(?:below|under|within) (?:an? )?$", "up", True),
)
AFTER = (
    (r"(?: [\w’'-]+){0,2} (?:or (?:more|above|better|longer|larger)\b|at least$)", "down"),
    (r"(?: [\w’'-]+){0,2} (?:or (?:less|fewer|below|shorter|smaller)\b|at (?:most|best)$)", "up"),
)
CLAUSE = re.compile(r"[.;:!?|()–]")  # what ends one
ELSE = {"down": "up", "up": "down"}


def said(text):
    """A piece of a paragraph in words: another value as #, formulas and code as x, no links and marks."""
    text = re.sub(r"^\s*```.*$", "|", re.sub(VALUE, "#", text), flags=re.M)
    text = re.sub(r"\$[^$]*\$|(?<!`)`[^`#]+`", "x", text)
    return " ".join(re.sub(r"\]\([^)]*\)|[*\[\]]|`#![^`]*`", "", text).split())


def safe_side(before, after):
    """To which side a value between these words may be rounded, "up" or "down"; None where it is no bound."""
    before, after = CLAUSE.split(f"{said(before)} ")[-1], CLAUSE.split(f" {said(after)}")[0]
    if re.search(r"\bbetween $", before) or (re.match(r" to #", after) and not before.endswith("from ")):
        return "down"  # the lower end of a range, which is said first
    if re.search(r"(?:\bbetween # and|(?<!from )# to) $", before):
        return "up"
    before = re.sub(r"(?:#,? (?:(?:and|or) )?)+$", "", before).rsplit(",", 1)[-1]  # at least # and this
    sides = {}
    for words, side, turned in BEFORE:
        for found in re.finditer(words, before):
            sides[found.start()] = ELSE[side] if turned and NOT.search(before[: found.start()]) else side
    behind = (side for words, side in AFTER if re.match(words, after.split(",")[0]))
    return sides[max(sides)] if sides else next(behind, None)


def unsafe(text, result):
    """Line and fault of each value that stands for a bound and is, or may come to be, on its wrong side."""
    for match in re.finditer(VALUE, text):
        start = text.rfind("\n\n", 0, match.start()) + 1
        before, after = text[start : match.start()], text[match.end() :].partition("\n\n")[0]
        side = safe_side(before, after)
        exhibit, _, key = match[1].rpartition(".")
        if not side or isinstance(value := result(exhibit)["values"][key], str):
            continue
        how = match[2] or ""
        shown, bound = formatted(result, match[1], how), BOUND.fullmatch(how)
        number = Decimal(re.sub("[,%]", "", shown)) / (100 if "%" in shown else 1)
        exact = Decimal(repr(value))
        wrong = number > exact if side == "down" else number < exact
        if wrong or (how and isinstance(value, float) and (not bound or bound["direction"] != side)):
            sentence = f"…{said(before)[-80:]} {shown} {said(after)[:40]}…"
            why = "on the wrong side" if wrong else "on the right side by chance"
            wanted = f"{bound['how'] if bound else how} {side}"
            says = f"{sentence!r} shows {shown} for {value!r}, {why}: write `#!val {match[1]} {wanted}`"
            yield f"{text.count(chr(10), 0, match.start()) + 1}: {says}"


def test_a_bound_is_rounded_to_its_safe_side(gives):
    shown = re.compile(r"^( *)````markdown.*?^\1````", re.M | re.S)  # how a directive is written
    faults = []
    for path in sorted(DOCS.rglob("*.md")):
        text = shown.sub(lambda fence: "\n" * fence[0].count("\n"), path.read_text(encoding="utf-8"))
        faults += [f"docs/{path.relative_to(DOCS)}:{fault}" for fault in unsafe(text, gives)]
    assert not faults, "\n".join(faults)


def test_a_bound_is_told_by_its_words(subtests):
    for sentence, side in [
        ("It is at least V.", "down"),
        ("It differs by more than V nats.", "down"),
        ("No model comes above V, which is little.", "up"),
        ("None falls below V.", "down"),
        ("It never comes closer than V.", "down"),
        ("It is closer than V.", "up"),
        ("They are up to a good V apart.", "up"),
        ("Each loses no more than V.", "up"),
        ("Each loses no less than V.", "down"),
        ("It lies within V of the other.", "up"),
        ("Within the text it is V.", None),
        ("(A correlation of at least *V*.)", "down"),
        ("Each changes by V or more.", "down"),
        ("Each changes by V nats or less.", "up"),
        ("It has a skill of V at best, where zero is a guess.", "up"),
        ("Of these, V have at most ten.", None),
        ("It is between V and `#!val a.b.d .2f`.", "down"),
        ("It is between `#!val a.b.d .2f` and V.", "up"),
        ("They rise by V to `#!val a.b.d .2f`.", "down"),
        ("They rise by `#!val a.b.d .2f` to V.", "up"),
        ("It falls from `#!val a.b.d .2f` to V.", None),
        ("They win by at least `#!val a.b.d .2f` and V.", "down"),
        ("It is at least as good. Then it is V.", None),
        ("At least the first, which is V.", None),
        ("It is V.", None),
    ]:
        with subtests.test(sentence=sentence):
            before, _, after = sentence.partition("V")
            assert safe_side(before, after) == side


def test_a_bound_on_the_wrong_side_would_be_found(subtests):
    values = {"c": 1.2966, "share": 0.125, "big": 1234.6, "minus": -1.35}
    values |= {"tiny": 3.3e-16, "count": 96, "name": "e"}
    for line, fault in [
        (
            "at least `#!val a.b.c .2f`",
            "2: '…Title at least 1.30 …' shows 1.30 for 1.2966, on the wrong side: write `#!val a.b.c "
            ".2f down`",
        ),
        ("at most `#!val a.b.c .2f`", "by chance: write `#!val a.b.c .2f up`"),
        ("at most `#!val a.b.c .2f down`", "on the wrong side: write `#!val a.b.c .2f up`"),
        ("at most `#!val a.b.share .0%`", "shows 12% for 0.125, on the wrong side"),
        ("at least `#!val a.b.big ,.0f`", "shows 1,235 for 1234.6, on the wrong side"),
        ("at most `#!val a.b.minus .1f`", "shows -1.4 for -1.35, on the wrong side"),
        ("at most `#!val a.b.tiny .0e`", "shows 3e-16 for 3.3e-16, on the wrong side"),
        ("at least `#!val a.b.count .0e`", "shows 1e+02 for 96, on the wrong side"),
        ("at least `#!val a.b.c .2f down`", None),
        ("at least `#!val a.b.c`", None),
        ("at most `#!val a.b.count`", None),
        ("at most `#!val a.b.name`", None),
        ("`#!val a.b.c .2f`", None),
    ]:
        with subtests.test(line=line):
            faults = list(unsafe(f"Title\n{line}\n", lambda exhibit: {"values": values}))
            assert len(faults) == bool(fault) and all(fault in each for each in faults)
