"""What readers change and run prints the numbers of the files that they copy."""

import ast
import inspect
import re

import pytest
import torch

from exhibits import in_plain_python
from snippets.alibi import alibi_bias, alibi_slopes
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from snippets.sinusoidal import sinusoidal_encoding
from tests.rows import each_of

ROUNDED = 0.005 + 1e-9  # to two places
PROGRAMS = dict(inspect.getmembers(in_plain_python, inspect.isfunction))


@pytest.fixture
def numbers(capsys):
    """Of each line that a program prints, the numbers."""

    def printed(program):
        program()
        return [
            [float(x) for x in re.findall(r"-?[\d.]+", line)] for line in capsys.readouterr().out.splitlines()
        ]

    return printed


def test_sinusoidal(numbers):
    lines = numbers(in_plain_python.sinusoidal)
    positions = torch.tensor([int(position) for position, *_ in lines])
    rows = torch.tensor([row for _, *row in lines], dtype=torch.float64)
    assert rows.shape == (5, 6)
    assert (rows - sinusoidal_encoding(positions, 6, dtype=torch.float64)).abs().max() <= ROUNDED


def test_rope(numbers):
    lines = numbers(in_plain_python.rope)
    assert len(lines) == 4
    given = torch.tensor([[2.0, 1, 2, 1], [1, 2, 1, 2]], dtype=torch.float64)
    for m, n, score in lines:
        tables = rope_tables(torch.tensor([m, n]).long(), rope_frequencies(4, base=10_000), torch.float64)
        query, key = apply_rope(given, *tables, "interleaved")
        assert abs(score - (query @ key).item()) <= ROUNDED


EXERCISE = inspect.getsource(in_plain_python.rope_exercise)
FREQUENCY, ROTATION = "[1 for pair", "return x * cos(angle), y * sin(angle)"


@each_of(
    ("frequency", "rotation", "one", "two"),
    [
        ("1", ROTATION, "All pairs", "Each new number"),
        ("base ** (-pair / dim)", ROTATION, "A factor two", "Each"),
        ("base ** (2 * pair / dim)", ROTATION, "A minus sign", "Each"),
        ("pair", "return y, x", "Not yet: [0, 1] is wrong.", "Not yet: [5, 10] is wrong."),
        (
            "base ** (-2 * pair / dim)",
            "return x * cos(angle) + y * sin(angle), y * cos(angle) - x * sin(angle)",
            "Right.",
            "Look at the signs: you rotate clockwise.",
        ),
        (
            "1 / base ** (2 * pair / dim)",
            "return x * cos(angle) + y * sin(angle), x * sin(angle) + y * cos(angle)",
            "Right.",
            "Look at the signs: the arrow grows.",
        ),
        (
            "base ** (-2 * pair / dim)",
            "z = (x + 1j * y) * (cos(angle) + 1j * sin(angle)); return z.real, z.imag",
            "Right.",
            "Right.",
        ),
    ],
)
def test_rope_exercise_names_the_mistake(capsys, frequency, rotation, one, two):
    assert EXERCISE.count(FREQUENCY) == EXERCISE.count(ROTATION) == 1
    code = EXERCISE.replace(FREQUENCY, f"[{frequency} for pair").replace(ROTATION, rotation)
    space = {}
    exec(code, space)
    space["rope_exercise"]()
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"Step one. {one}") and second.startswith(f"Step two. {two}")


def test_rope_exercise_accepts_the_numbers_of_the_snippet():
    cos, sin = (torch.tensor([[x]], dtype=torch.float64) for x in (0.6, 0.8))
    turned = apply_rope(torch.tensor([[10.0, 5]], dtype=torch.float64), cos, sin, "interleaved")
    assert [round(x, 4) for x in turned.flatten().tolist()] == [2, 11]
    assert [round(x, 4) for x in rope_frequencies(4, base=10_000).tolist()] == [1, 0.01]


def test_alibi(numbers):
    scores, weights = (torch.tensor(line, dtype=torch.float64) for line in numbers(in_plain_python.alibi))
    slopes = alibi_slopes(8)[:1]
    assert slopes.item() == 0.5
    biased = torch.tensor([2, 1, 0, 1.5]) + alibi_bias(torch.tensor([3]), torch.arange(4), slopes)[0, 0]
    assert (scores - biased).abs().max() <= ROUNDED
    assert (weights - biased.double().softmax(-1)).abs().max() <= ROUNDED


@each_of("name", PROGRAMS)
def test_a_program_imports_what_the_page_has_and_is_short(name):
    tree = ast.parse(inspect.getsource(PROGRAMS[name]))
    imported = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert {getattr(node, "module", "json") for node in imported} <= {"math", "json"}
    assert len(tree.body[0].body) > 1 and len(inspect.getsource(PROGRAMS[name]).splitlines()) <= 50
