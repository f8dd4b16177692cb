"""The results of this site depend on the code that ran, and on no other."""

import ast
import itertools
import shutil

import pytest

from executable_prose import project
from executable_prose.execution import provenance, results
from executable_prose.execution.process_pool import Worker
from executable_prose.project import ROOT
from prose_testing.fixtures import move
from tests import mutants

SAMPLE = ("in_a_transformer.every_encoding", "rope.score_by_offset", "lab-rope_layouts")


@pytest.mark.parametrize(
    "stem", ["alibi", *(pytest.param(stem, marks=pytest.mark.slow) for stem in ("learned", "rope"))]
)
def test_a_mutant_changes_one_part_of_its_file(stem):
    text = (ROOT / "snippets" / f"{stem}.py").read_text(encoding="utf-8")
    before = provenance.parts(text)
    some = itertools.islice(mutants.mutants_of(stem, text), 100)
    parts = [before.items() ^ provenance.parts(mutant.source).items() for mutant in some]
    assert len(parts) == 100 and all(len({name for name, _ in part}) == 1 for part in parts)


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
    for room in (*project.settings().rooms, "docs"):  # where the tour is
        shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "requirements.txt"):
        shutil.copy(ROOT / file, tmp_path)
    move(monkeypatch, tmp_path.resolve())
    worker = Worker()
    for outcome in list(worker.run(list(wanted))):
        assert not outcome.failure, outcome
        if outcome.functions is None:  # all of its code counts
            continue
        again = without_what_did_not_run(tmp_path, outcome, worker)
        assert again.result == outcome.result, again.failure or outcome.name
    worker.close()
