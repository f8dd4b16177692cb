"""Each word that a docstring says after «Fit for», for each file of a family."""

import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest
import torch

from tests.snippets.fitness import CHECKS, SIZES, called, words

FAMILIES = [file.stem for file in sorted(Path(__file__).with_name("families").glob("*.py"))]
CASES = [
    case for name in FAMILIES for case in importlib.import_module(f"tests.snippets.families.{name}").CASES
]
FILES = sorted({case.of.__module__ for case in CASES})
SLOW = {"compile": pytest.mark.slow, "export": pytest.mark.slow}
CLAIMED = [
    pytest.param(case, word, id=f"{case.of.__name__}-{word}", marks=SLOW.get(word, ()))
    for case in CASES
    for word in words(case.of)
]


def takes_tensors(of):
    taken = inspect.signature(getattr(of, "forward", of)).parameters.values()
    return any(parameter.annotation is torch.Tensor for parameter in taken)


def test_no_file_says_what_no_family_checks():
    files = (Path(__file__).parents[2] / "snippets").glob("*.py")
    told = [file.stem for file in files if "Fit for" in file.read_text(encoding="utf-8")]
    lacking = [name for name in told if f"snippets.{name}" not in FILES]
    assert not lacking, f"Fit for: no case in tests/snippets/families/ checks what {lacking} say"


@pytest.mark.parametrize("file", FILES)
def test_every_docstring_says_what_it_is_fit_for(file):
    mine = vars(sys.modules[file]).values()
    public = {of for of in mine if inspect.isroutine(of) or inspect.isclass(of)}
    public = {of for of in public if of.__module__ == file and not of.__name__.startswith("_")}
    assert {case.of for case in CASES if case.of.__module__ == file} == set(filter(takes_tensors, public))
    for of in public:
        assert bool(words(of)) == takes_tensors(of), of.__name__
        assert set(words(of) or ()) <= set(CHECKS), of.__name__


# torch's own errors must do for these: trained results are bound to their code.
UNCHECKED = "additive_mask", "Block", "document_positions"
CHECKED = [case for case in CASES if case.of.__name__ not in UNCHECKED]


@pytest.mark.parametrize("case", CHECKED, ids=lambda case: case.of.__name__)
def test_too_few_axes_are_refused_in_its_own_words(case):
    """Each tensor, with fewer and fewer of its first axes: it may fit, or a ValueError says what would."""
    call, given = called(case), case.make(*SIZES[0])
    for place, tensor in enumerate(given):
        for axes in range(tensor.ndim):
            fewer = tensor[(0,) * (tensor.ndim - axes)]
            try:
                call(*given[:place], fewer, *given[place + 1 :])
            except ValueError as error:
                assert re.search(r" must .*, got (torch\.\w+ )?(\(|\d)", str(error)), error


@pytest.mark.parametrize(("case", "word"), CLAIMED)
def test_it_is_fit_for_what_it_says(case, word):
    CHECKS[word](called(case), *case[2:])
