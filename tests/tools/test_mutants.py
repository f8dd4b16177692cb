"""The verdict on mutants, without making any: what survives needs a reason, and no reason is left over."""

import json
import subprocess
import sys

import pytest

from tools import mutants
from tools.mutants import Mutant, difference, read_reasons, verdict
from weave import project


def mutant(now="a - b"):
    return Mutant("rope.turn", "a + b", now, 1, "")


def dead(count):
    return [(mutant(f"dead {n}"), "a test") for n in range(count)]


WHY = {("rope.turn", "a + b", "a - b", 1): "b is 0 there"}


def test_all_is_well_if_every_survivor_has_its_reason():
    assert list(verdict([*dead(20), (mutant(), "")], WHY)) == []
    assert list(verdict(dead(20), {})) == []


def test_a_survivor_without_a_reason_is_shown_as_the_file_wants_it():
    (wrong,) = verdict([*dead(20), (mutant(), "")], {})
    assert 'in = "rope.turn"\nwas = "a + b"\nnow = "a - b"\nwhy = ""' in wrong


def test_a_reason_must_not_outlive_its_mutant():
    (wrong,) = verdict([*dead(20), (mutant(), "a test")], WHY)
    assert "rope.turn | a + b | a - b | 1" in wrong
    (wrong,) = verdict(dead(20), WHY)
    assert "rope.turn | a + b | a - b | 1" in wrong


def test_of_a_hundred_five_may_survive():
    reasons = {("rope.turn", "a + b", f"alive {n}", 1): "why" for n in range(6)}
    alive = [(mutant(f"alive {n}"), "") for n in range(6)]
    assert list(verdict(dead(95) + alive[:5], dict(list(reasons.items())[:5]))) == []
    assert list(verdict(dead(94) + alive, reasons)) == ["6 of 100 survive, more than 5%"]


def test_the_difference_is_the_lines_that_changed():
    before = "def f(a):\n    b = (\n        a + 1\n    )\n    return b\n"
    assert difference(before, before.replace("+", "-")) == ("a + 1", "a - 1")
    assert difference(before, before.replace("(\n        a + 1\n    )", "None")) == (
        "b = ( a + 1 )",
        "b = None",
    )


def test_reasons_come_back_as_they_are_printed(tmp_path):
    path = tmp_path / "reasons.toml"
    twice = Mutant("rope.turn", 'f"{a}"', "π", 2, "")
    path.write_text(mutant().as_toml("one") + "\n" + twice.as_toml("two"), encoding="utf-8")
    assert read_reasons(path) == {mutant().change: "one", twice.change: "two"}
    for wrong in (mutant().as_toml(""), mutant().as_toml("one") + mutant().as_toml("two")):
        path.write_text(wrong, encoding="utf-8")
        with pytest.raises(AssertionError):
            read_reasons(path)


def test_every_reason_is_about_code_that_stands():
    for name, was, _, _ in read_reasons():
        snippet = mutants.ROOT / "snippets" / f"{name.partition('.')[0]}.py"
        lines = snippet.read_text(encoding="utf-8").splitlines()
        assert was in " ".join(line.strip() for line in lines), f"{name}: {was}"


@pytest.mark.slow
def test_an_outcome_depends_on_all_that_decides_it(tmp_path):
    """The tests are asked in a process of their own, as the mutants are: forks of one without pytest."""
    ask = """if True:
        import json, sys
        from pathlib import Path
        from tools import mutants
        source = Path("snippets/alibi.py").read_text(encoding="utf-8")
        print(json.dumps(mutants.baseline("alibi", source, Path(sys.argv[1]))[1]))
    """
    used = json.loads(subprocess.check_output([sys.executable, "-c", ask, tmp_path], cwd=mutants.ROOT))
    assert used.keys() >= {
        "experiments/measure.py",
        "measurements/peers.json",
        "snippets/alibi.py",
        "snippets/attention.py",
        "tests/conftest.py",
        "tests/peers/__init__.py",
        "tests/remembered.py",
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
