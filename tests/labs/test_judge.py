"""What the judge of the labs says, one test a sentence."""

import math
import sys
from collections import OrderedDict

import pytest
import torch

from labs import judge as judging
from labs.judge import judge, right_and_wrong
from tests.rows import each_of

X = torch.tensor([1.0, -2.0, 3.0])
CASES = {"three numbers": (X,), "a matrix": (torch.arange(6.0).reshape(2, 3),)}
MISTAKES = [
    (lambda x: x, "You return x itself."),
    (lambda x: x**2, "You square x."),
    (lambda x: x.mT, "You transpose."),
    (lambda x: 2 * x.sum(), "You add up."),
]


def twice(x):
    return 2 * x


@pytest.fixture
def said(capsys):
    """A function that gives the verdict and the words, the line breaks taken out."""

    def said(yours, right=twice, cases=CASES, mistakes=MISTAKES, **how):
        verdict = judge(yours, right, cases, mistakes, **how)
        text = capsys.readouterr().out
        assert all(len(line) <= 60 for line in text.splitlines())
        assert text.endswith("\n") and text.startswith("Right." if verdict else "Not yet.")
        return verdict, " ".join(text.split())

    return said


def named(function, name="yours"):
    function.__name__ = name
    return function


@each_of(
    ("yours", "words"),
    [
        (twice, "Right. `twice` agrees with the reference: three numbers; a matrix."),
        (lambda x: x + 0, "Not yet. You return x itself."),
        (lambda x: x * x, "Not yet. You square x."),
        (lambda x: (x + x).sum(), "Not yet. You add up."),
        (lambda x: x.double(), "Not yet. You return x itself."),  # whatever its dtype
        (  # a mistake must fit every case
            lambda x: x if x.ndim == 1 else 2 * x,
            "Not yet. For three numbers, `yours` returns 1 at index [0]; expected 2. 3 of 3 numbers "
            "differ. Right so far: a matrix. All numbers are 0.5 times what they should be.",
        ),
    ],
)
def test_what_is_right_is_right_and_a_typical_mistake_is_named(said, yours, words):
    yours = yours if yours is twice else named(yours)
    assert said(yours) == (yours is twice, words)


def test_rounding_is_right(said):
    assert said(lambda x: x * 2 * (1 + 1e-6))[0]
    assert not said(lambda x: x * 2 * (1 + 1e-3))[0]
    assert said(lambda x: x * 2 * (1 + 1e-3), tolerance=1e-2)[0]


def test_a_mistake_that_is_right_on_these_cases_is_not_blamed(said):
    words = said(lambda x: (2 * x).double(), mistakes=[(twice, "You are right.")])[1]
    assert words == (
        "Not yet. For three numbers, `<lambda>` returns the right numbers, but as torch.float64; "
        "expected torch.float32."
    )


@each_of("nothing", [None, ..., (X, None), [...]])
def test_nothing_returned(said, nothing):
    assert said(named(lambda x: nothing)) == (
        False,
        "Not yet. `yours` returns nothing yet. Compute the result and `return` it.",
    )


def test_an_error_is_explained_with_the_line_of_the_function(said):
    def below(x):
        return x[9]

    def multiplies(x):
        y = x @ x
        return y @ y

    def raises(x):
        raise KeyError

    def calls(x):
        return below(x)

    for yours, error, line in (
        (multiplies, "RuntimeError: ", "return y @ y"),
        (raises, "KeyError: no message.", "raise KeyError"),
        (calls, "IndexError: ", "return below(x)"),
    ):
        verdict, words = said(yours)
        assert not verdict
        assert words.startswith(f"Not yet. For three numbers, `{yours.__name__}` raises {error}")
        assert words.endswith(f"It occurs in the line `{line}`.")


def test_a_function_that_changes_its_input_is_told_so(said):
    def yours(x):
        x *= 2
        return x

    before = X.clone()
    assert said(yours)[1] == (
        "Not yet. For three numbers, `yours` modifies its input tensor. "
        "Create a new tensor instead: the caller still needs the original."
    )
    assert torch.equal(X, before)


def test_inputs_may_be_nested_and_a_change_in_them_is_seen(said):
    def yours(parts):
        parts["a"][0].add_(1)
        return parts["a"][0] - 1

    assert "modifies its input" in said(yours, lambda p: p["a"][0] + 0, {"a part": ({"a": [X]},)}, [])[1]


def test_a_change_that_the_reference_makes_too_is_wanted(said):
    def fill(x):
        x.fill_(1.0)
        return x

    assert said(fill, fill)[0]


@each_of(
    ("yours", "words"),
    [
        (lambda x: (2 * x)[None], "returns the shape (1, 3); expected (3,)."),
        (
            lambda x: (2 * x).int(),
            "returns the right numbers, but as torch.int32; expected torch.float32.",
        ),
        (lambda x: (3 * x).double(), "returns torch.float64; expected torch.float32."),
        (lambda x: [2.0], "returns a result of type list; expected a tensor."),
        (lambda x: 3, "returns a result of type int; expected a tensor."),
        (lambda x: "x", "returns a result of type str; expected a tensor."),
        (lambda x: 2 * x + (x == 3), "returns 7 at index [2]; expected 6. 1 of 3 numbers differ."),
        (lambda x: 2 * x / (x != 3), "returns inf at index [2]; expected 6. 1 of 3 numbers differ."),
        (lambda x: torch.full_like(x, math.nan), "returns nan at index [0]; expected 2. 3 of 3 numbers"),
    ],
)
def test_the_first_difference_is_shown(said, yours, words):
    verdict, text = said(named(yours))
    assert not verdict
    assert text.startswith(f"Not yet. For three numbers, `yours` {words}")


@each_of(
    ("right", "wrong", "words"),
    [
        (0.5, 0.25, "returns 0.25; expected 0.5."),
        (0.5, "half", "returns a result of type str; expected a number."),
        (0.5, X, "returns a result of type Tensor; expected a number."),
        ("half", "interleaved", "returns 'interleaved'; expected 'half'."),
        ("half", 1, "returns 1; expected 'half'."),
        (True, False, "returns 0; expected 1."),
        ((1, 2), [1, 2], "returns a result of type list and length 2; expected a tuple of 2."),
        ((1, 2), (1, 2, 3), "returns a result of type tuple and length 3; expected a tuple of 2."),
        ((1, 2), 1, "returns a result of type int; expected a tuple of 2."),
        ((1, 2), X.sum(), "returns a result of type Tensor; expected a tuple of 2."),
        ((1, 2), X, "returns a result of type Tensor; expected a tuple of 2."),
        (
            (1, X),
            (1, -X),
            "returns, in part 1, -1 at index [0]; expected 1. 3 of 3 numbers differ. "
            "All numbers are -1 times what they should be.",
        ),
        ({"q": X}, {"k": X}, "returns nothing under the key 'q'."),
        ({"q": X}, {"q": X[:2]}, "returns, in part 'q', the shape (2,); expected (3,)."),
        (
            {"q": X},
            {"q": X.double()},
            "returns, in part 'q', the right numbers, but as torch.float64; expected torch.float32.",
        ),
        (651.9, 651.9009, "returns 651.9009; expected 651.9."),
        (
            torch.tensor([651.9], dtype=torch.float64),
            torch.tensor([651.9009], dtype=torch.float64),
            "returns 651.9009 at index [0]; expected 651.9. 1 of 1 numbers differ.",
        ),
    ],
)
def test_results_may_be_numbers_text_and_collections(said, right, wrong, words):
    case = {"nothing given": ()}
    assert said(lambda: right, lambda: right, case, [])[0]
    verdict, text = said(named(lambda: wrong), lambda: right, case, [], tolerance=1e-6)
    assert not verdict
    assert text == f"Not yet. For nothing given, `yours` {words}"


def test_a_dictionary_may_be_an_ordered_one_and_a_number_a_tensor_of_one(said):
    for yours, right in ((OrderedDict(q=X), {"q": X}), (torch.tensor([0.5]), 0.5)):
        assert said(lambda yours=yours: yours, lambda right=right: right, {"nothing": ()}, [])[0]


@each_of("right", [torch.tensor([0.0, math.inf, -math.inf, math.nan]), torch.zeros(2), X[:0]])
def test_infinities_and_zeros_are_compared_as_they_are(said, right):
    assert said(lambda: right.clone(), lambda: right, {"nothing": ()}, [])[0]
    if len(right):
        assert not said(lambda: right.nan_to_num(posinf=9.0) + 1, lambda: right, {"nothing": ()}, [])[0]


def test_a_function_is_tried_as_the_lab_says(said):
    def call(function, start, times):
        for _ in range(times):
            start = function(start)
        return start

    assert said(twice, cases={"three steps": (X, 3)}, mistakes=[], call=call)[0]
    assert said(lambda x: x * x, cases={"three steps": (X, 3)}, call=call)[1] == "Not yet. You square x."


def test_a_mistake_that_cannot_take_a_case_is_passed_over(said):
    def raises(x):
        raise ValueError

    mistakes = [(raises, "You raise."), (lambda x: -x, "You turn the sign.")]
    assert said(lambda x: -x, mistakes=mistakes)[1] == "Not yet. You turn the sign."


def test_who_stops_as_a_mistake_does_hears_of_it(said):
    cases = {"a matrix": (torch.ones(2, 3),)}
    mistakes = [(lambda x: x @ x[0, 0], "You multiply by a number."), (lambda x: x @ x, "You square it.")]
    words = said(lambda x: x @ x + 1, cases=cases, mistakes=mistakes)[1]
    assert "raises RuntimeError: " in words and words.endswith(" You square it.")


@each_of(
    ("yours", "words"),
    [
        (lambda x: -2 * x, "All numbers are -1 times what they should be."),
        (lambda x: 3 * x, "All numbers are 1.5 times what they should be."),
        (lambda x: 2 * x + 1, "All numbers are off by +1."),
        (lambda x: (2 * x).flip(-1), "The numbers are the right ones, but at the wrong indices."),
        (
            lambda x: (2 * x) / (x != 1),
            "All finite numbers are right. Infinities are at the wrong indices",
        ),
        (lambda x: (2 * x + 1) / (x != 1), ""),
        (lambda x: 2 * x.abs(), "All absolute values are right. Some signs are wrong."),
        (lambda x: len(x) * x + x, "but the multiple differs between cases: 2, 1.5."),
        (lambda x: 2 * x * (x / 0 - x / 0), "nan results from zero divided by zero,"),
        (lambda x: x * x + 7, ""),
    ],
)
def test_what_all_differences_have_in_common_is_said(said, yours, words):
    text = said(yours, mistakes=[])[1]
    assert words in text
    known = ("All numbers", "right ones", "nan results", "All finite", "All absolute", "All wrong numbers")
    assert bool(words) == any(each in text for each in known)


TABLE = torch.arange(1.0, 25.0).reshape(2, 3, 4)


@each_of(
    ("index", "words"),
    [
        ((..., slice(1, None, 2)), "All wrong numbers there have index 1, 3 on axis -1."),
        ((1,), "All wrong numbers there have index 1 on axis -3."),
        ((slice(None), 2), "All wrong numbers there have index 2 on axis -2."),
        ((1, 2), "All wrong numbers there have index 2 on axis -2."),
        ((TABLE % 5 == 0,), ""),
        ((...,), ""),
    ],
)
def test_a_part_that_has_all_that_is_wrong_is_named(said, index, words):
    wrong = TABLE.clone()
    wrong[index] = wrong[index] ** 2 + 1
    text = said(lambda: wrong, lambda: TABLE, {"a table": ()}, [])[1]
    assert text.endswith(words) and ("All wrong numbers" in text) == bool(words)


def test_a_long_part_is_cut_short(said):
    right = torch.ones(2, 20)
    wrong = right.cumsum(1)
    text = said(lambda: wrong, lambda: right, {"a table": ()}, [])[1]
    assert text.endswith("All wrong numbers there have index 1, 2, 3, 4, 5, ... on axis -1.")


def test_a_transposed_result_and_its_inverse_are_told(said):
    square = {"a square": (torch.tensor([[1.0, 2.0], [4.0, 8.0]]),)}
    wide = {"a matrix": (torch.tensor([[1.0, 2.0, 3.0], [4.0, 8.0, 9.0]]),)}
    for cases in (square, wide):
        words = said(lambda x: 2 * x.mT, cases=cases, mistakes=[])[1]
        assert words.endswith("It would be right if rows and columns were swapped.")
    assert said(lambda x: 1 / (2 * x), cases=square, mistakes=[])[1].endswith(
        "All numbers are the reciprocals of what they should be."
    )


LAB = """# %% [markdown]
# A lab.

# %% tags=["solution"]
def first(x):
    return x + ONE

# %% tags=["starter"]
def second(x):
    return x

# %% tags=["solution"]
def second(x):
    y = 2 * first(x)
    return y - ONE
"""
LISTED = """
[[second]]
was = "2 * first"
ways = [{ now = "first", says = "You do not double." }]

[[second]]
was = "y - ONE"
ways = [
    { now = ["y", "1 * y"], says = "You subtract nothing." },
    { now = "y + ONE", says = "You add." },
]
"""


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A lab of two steps beside the judge, whose learner has not done the first."""
    (tmp_path / "small.py").write_text(LAB, encoding="utf-8")
    (tmp_path / "small.toml").write_text(LISTED, encoding="utf-8")
    monkeypatch.setattr(judging, "__file__", str(tmp_path / "judge.py"))
    return {"ONE": 1.0, "first": lambda x: None}


def test_a_solution_and_its_mistakes_are_made_of_the_files_beside_the_judge(small):
    right, mistakes = right_and_wrong("small", "second", small)
    assert right(3.0) == 7.0
    assert [(wrong(3.0), says) for wrong, says in mistakes] == [
        (3.0, "You do not double."),
        (8.0, "You subtract nothing."),
        (8.0, "You subtract nothing."),
        (9.0, "You add."),
        (4.0, "Two things. First: You do not double. Then: You subtract nothing."),
        (5.0, "Two things. First: You do not double. Then: You add."),
        (4.0, "Two things. First: You subtract nothing. Then: You do not double."),
    ]
    assert small["first"](3.0) is None


def test_mistakes_need_not_be_made_together(small):
    assert len(right_and_wrong("small", "second", small, pairs=False)[1]) == 4


def test_the_file_needs_torch_only():
    from executable_prose.project import ROOT
    from tests.labs.test_every_lab import imports

    source = (ROOT / "labs" / "judge.py").read_text(encoding="utf-8")
    found = imports([{"cell_type": "code", "source": source}])
    assert found - sys.stdlib_module_names == {"torch"}
