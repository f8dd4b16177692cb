"""The verdict on mutants: what survives is known or of a kind that no test can notice."""

import json
import re
import subprocess
import sys
from collections import Counter

import pytest

from executable_prose import project
from tests import mutants
from tests.mutants import SURVIVORS, Mutant, difference, mutants_of, updated_lines, verdict


def mutant(change="a [+ → -] b", number=1):
    return Mutant("rope.turn", change, number, "")


def dead(count):
    return [(mutant(f"[dead → {n}]"), "a test") for n in range(count)]


def alive(*changes):
    return [(mutant(change), "") for change in changes]


KNOWN = Counter(["rope.turn: a [+ → -] b"])


def test_all_is_well_if_every_survivor_is_known():
    assert list(verdict([*dead(20), *alive("a [+ → -] b")], KNOWN)) == []
    assert list(verdict(dead(20), KNOWN)) == list(verdict(dead(20), Counter())) == []


def test_a_new_survivor_is_named_with_its_change():
    (wrong,) = verdict([*dead(20), *alive("a [+ → -] b")], Counter())
    assert wrong.endswith("surviving_mutants.txt: rope.turn: a [+ → -] b")


def test_of_the_same_change_at_two_places_each_has_to_be_known():
    both = [*dead(50), (mutant(number=1), ""), (mutant(number=2), "")]
    assert len(list(verdict(both, KNOWN))) == 1
    assert list(verdict(both, KNOWN + KNOWN)) == []


def test_what_no_test_can_notice_need_not_be_known():
    kinds = (
        "nn.Linear(dim, dim, bias=[False → None])",
        "zip(have[:-2], shape, [strict=False → ])",
        "p = torch.arange(dim [// → /] 2, device=device)",
        "encoding(torch.arange([0 → 1]), dim)",
        'ax.set_facecolor("[none → NONE]")',
    )
    assert list(verdict([*dead(200), *alive(*kinds)], Counter())) == []
    assert [sum(bool(re.search(rule, kind)) for rule in mutants.RULES) for kind in kinds] == [1] * 5
    others = (
        "bias=[False → True]",
        "zip(have, want, [strict=True → ])",
        "p = torch.arange(dim [// → *] 2)",
        "end [// → /] 2",
        "row([0 → 1])",
        "x[0 → 1]",
    )
    assert len(list(verdict([*dead(200), *alive(*others)], Counter()))) == len(others)


def test_of_a_hundred_five_may_survive_known_or_not():
    changes = ["bias=[False → None]", *(f"[alive → {n}]" for n in range(5))]
    known = Counter(f"rope.turn: {change}" for change in changes)
    assert list(verdict(dead(95) + alive(*changes[:5]), known)) == []
    assert list(verdict(dead(94) + alive(*changes), known)) == ["6 of 100 survive, more than 5%"]


def test_the_difference_is_the_words_that_changed_within_their_line():
    before = "def f(alpha):\n    b = (\n        alpha.max() + 1  # (rows)\n    )  # all\n    return b\n"
    for was, now, difference_ in (
        ("+", "-", "alpha.max() [+ → -] 1"),
        ("+", "*", "alpha.max() [+ → *] 1"),
        ("1", "11", "alpha.max() + [1 → 11]"),
        ("alpha.max", "alpha.min", "[alpha.max → alpha.min]() + 1"),
        ("alpha.max() + ", "", "[alpha.max() + → ]1"),
        ("(\n        alpha.max() + 1  # (rows)\n    )", "None", "b = [( alpha.max() + 1 ) → None]"),
    ):
        assert difference(before, before.replace(was, now)) == difference_
    assert difference("a <= b", "a < b") == "a [<= → <] b"


def test_a_mutant_is_the_same_when_lines_around_it_move():
    text = "def f(a):\n    return a + 1\n"
    moved = "# words\n\n\ndef f(a):\n    a = abs(a)\n\n    return a + 1  # (rows)\n"
    made, after = ({each.line: each.key for each in mutants_of("rope", each)} for each in (text, moved))
    assert made.items() < after.items() and "rope.f: return a + [1 → 2]" in made


def test_what_is_accepted_takes_the_place_of_what_was_known_of_these_snippets():
    known = Counter(["rope.turn: b", "rope: c", "alibi.bias: a", "alibi.bias: a"])
    found = Counter(["rope.turn: d", "rope.turn: d"])
    assert updated_lines(known, found, ["rope", "shaw"]) == ["alibi.bias: a"] * 2 + ["rope.turn: d"] * 2
    assert updated_lines(known, Counter(), []) == sorted(known.elements())


def test_the_list_of_survivors_is_as_it_is_written_and_knows_snippets_alone():
    known = mutants.read_survivors()
    assert SURVIVORS.read_text(encoding="utf-8") == "".join(f"{line}\n" for line in sorted(known.elements()))
    snippets = {path.stem for path in (mutants.ROOT / "snippets").glob("*.py")}
    assert {line.partition(".")[0] for line in known} <= snippets
    assert all(re.fullmatch(r"[\w.]+: .*\[.* → .*\].*", line) for line in known)
    assert (
        mutants.survivors([(Mutant(*line.split(": ", 1), 1, ""), "") for line in known.elements()]) == known
    )


@pytest.mark.slow
def test_an_outcome_depends_on_all_that_decides_it(tmp_path):
    """The tests are asked in a process of their own, as the mutants are: forks of one without pytest."""
    ask = """if True:
        import json, sys
        from pathlib import Path
        from tests import mutants
        source = Path("snippets/alibi.py").read_text(encoding="utf-8")
        print(json.dumps(mutants.baseline("alibi", source, Path(sys.argv[1]))[1]))
    """
    used = json.loads(subprocess.check_output([sys.executable, "-c", ask, tmp_path], cwd=mutants.ROOT))
    assert used.keys() >= {
        "experiments/measure.py",
        "experiments/results/peers.json",
        "snippets/alibi.py",
        "snippets/attention.py",
        "tests/conftest.py",
        "tests/peers/__init__.py",
        "tests/shape_comments.py",
        "tests/snippets/common.py",
        "tests/snippets/conftest.py",
        "tests/snippets/families/biases.py",
        "tests/snippets/fitness.py",
        "tests/snippets/test_alibi.py",
        "tests/snippets/test_biases.py",
        "tests/snippets/test_every_snippet.py",
        "tests/snippets/test_fitness.py",
    }
    assert not any("test_rope" in file for file in used) and mutants.is_current("alibi", used)


def test_an_outcome_is_known_until_a_file_changes_or_a_test_is_new():
    used = {file: project.digest(file) for file in ("snippets/embed.py", "tests/snippets/common.py")}
    used |= {(file := project.relative(path)): project.digest(file) for path in mutants.tests_of("embed")}
    assert mutants.is_current("embed", used)
    for file in used:
        assert not mutants.is_current("embed", used | {file: "of another text"})
    assert not mutants.is_current("embed", used | {"tests/gone.py": "of what was there"})
    assert not mutants.is_current("embed", {"snippets/embed.py": used["snippets/embed.py"]})


@pytest.mark.parametrize(
    ("snippet", "files"), [("rope", "rope turned"), ("learned", "learned added"), ("embed", "added")]
)
def test_a_mutant_meets_what_methods_of_its_kind_have_in_common(snippet, files):
    names = {path.stem for path in mutants.tests_of(snippet)}
    assert names >= {"test_fitness", *(f"test_{name}" for name in files.split())}
