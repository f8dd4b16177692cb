"""A result depends on the skeletons of modules and on the functions that ran, and on no other code."""

import ast
import itertools
import shutil

import pytest

from tests.weave.conftest import move
from tests.weave.projects import REAL
from tools import mutants
from weave import entries, provenance, results
from weave.worker import Worker

SAMPLE = (
    "in_a_transformer.every_encoding",
    "relative.shift_trick",
    "rope.score_by_offset",
    "sinusoidal.in_a_model",
    "lab-rope_layouts",
)


def changed(before, after):
    return {name for name in before | after if before.get(name) != after.get(name)}


@pytest.mark.parametrize("stem", ["learned", "alibi", pytest.param("rope", marks=pytest.mark.slow)])
def test_a_mutant_changes_one_part_of_its_file(stem):
    text = (REAL / "snippets" / f"{stem}.py").read_text(encoding="utf-8")
    before = provenance.parts(text)
    some = itertools.islice(mutants.mutants_of(stem, text), 100)
    parts = [changed(before, provenance.parts(mutant.source)) for mutant in some]
    assert len(parts) == 100 and {len(names) for names in parts} == {1}


TEXT = '''
"""Words."""
import math

BASE = 2


@print
def outer(x=BASE):
    """Words."""

    def inner():
        """Words."""
        return math.pi

    return inner()


def plain(x):
    """Words."""
    return x


class Thing:
    """Words."""

    size = 3

    def method(self):
        return self.size

    @property
    def twice(self):
        return 1

    @twice.setter
    def twice(self, value):
        self.value = value


if BASE:
    def under():
        return 1
'''


@pytest.mark.parametrize(
    ("was", "becomes", "part"),
    [
        ("math.pi", "math.e", "outer"),
        ("return self.size", "return 4", "Thing.method"),
        ("return 1\n\n    @twice", "return 2\n\n    @twice", "Thing.twice"),
        ("self.value = value", "pass", "Thing.twice"),
        ("def under():\n        return 1", "def under():\n        return 2", ""),
        ("BASE = 2", "BASE = 3", ""),
        ("x=BASE", "x=2", ""),
        ("@print\n", "", {"", "outer"}),
        ("def plain(x)", "def plain(x=2)", "plain"),
        ("def plain(x)", "def sum(x)", {"", "plain", "sum"}),
        ("def plain(x)", "def math(x)", {"", "plain", "math"}),
        ("size = 3", "size = 4", ""),
        ("def method", "def other", None),
        ("Words.", "Other words.", None),
        ("\n\n\n", "\n# a comment\n\n\n\n", None),
    ],
)
def test_what_changes_which_part(was, becomes, part):
    assert was in TEXT
    found = changed(provenance.parts(TEXT), provenance.parts(TEXT.replace(was, becomes)))
    if part is not None:
        assert found == (part if isinstance(part, set) else {part})
    else:
        assert found == ({"", "Thing.method", "Thing.other"} if "def" in was else set())


def test_a_new_function_is_a_part_of_its_own_and_of_no_other():
    new = TEXT + "\n\ndef other(x=plain):\n    from math import tau as outer\n    return outer\n"
    assert changed(provenance.parts(TEXT), provenance.parts(new)) == {"other"}


def gutted(text, ran):
    """The text, with each function that did not run made to raise."""
    tree = ast.parse(text)

    def gut(scope, prefix):
        for node in scope.body:
            if isinstance(node, ast.ClassDef):
                gut(node, f"{prefix}{node.name}.")
            elif isinstance(node, provenance.FUNCTIONS) and prefix + node.name not in ran:
                node.body = [ast.parse("raise AssertionError('it did not run')").body[0]]

    gut(tree, "")
    return ast.unparse(tree)


def without_what_did_not_run(folder, outcome, worker):
    """What an exhibit gives once every function that it did not run raises."""
    texts = {file: (folder / file).read_text(encoding="utf-8") for file in outcome.modules}
    for file, text in texts.items():
        if file not in outcome.files:
            (folder / file).write_text(gutted(text, outcome.functions.get(file, ())), encoding="utf-8")
    try:
        (again,) = worker.run([outcome.name])
        return again
    finally:
        for file, text in texts.items():
            (folder / file).write_text(text, encoding="utf-8")


def names(request):
    return [*results.exhibit_names(), *results.lab_names()] if request == "all" else SAMPLE


@pytest.mark.parametrize("which", ["a sample", pytest.param("all", marks=pytest.mark.slow)])
def test_code_that_did_not_run_has_no_say(tmp_path, monkeypatch, which):
    """Each exhibit gives the same bytes although all that it did not run raises."""
    wanted = names(which)
    for room in entries.ROOMS:
        shutil.copytree(REAL / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(REAL / "requirements.txt", tmp_path)
    for read in "docs", "measurements":  # the tour, what makes figures live, and what was timed
        shutil.copytree(REAL / read, tmp_path / read)
    move(monkeypatch, tmp_path.resolve())
    worker = Worker()
    for outcome in list(worker.run(list(wanted))):
        assert not outcome.failure, outcome
        if outcome.functions is None:  # all of its code counts
            continue
        again = without_what_did_not_run(tmp_path, outcome, worker)
        assert again.result == outcome.result, again.failure or outcome.name
    worker.close()
