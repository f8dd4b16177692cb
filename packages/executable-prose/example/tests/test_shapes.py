"""The shapes are what the pages say."""

from pathlib import Path

import pytest
import torch
from waves.shapes import square

from executable_prose.execution.results import exhibit_names


@pytest.mark.claim(
    "square-is-odd", "The wave at −x is the wave at x, turned over, however many sines it has."
)
@pytest.mark.parametrize("terms", [1, 2, 7, 50])
def test_the_wave_is_odd(terms):
    x = torch.linspace(0, 3, 301, dtype=torch.float64)
    assert torch.allclose(square(-x, terms), -square(x, terms))


@pytest.mark.parametrize("name", exhibit_names())
def test_nothing_has_changed(name, golden):
    golden(name, Path(__file__).parent / "goldens")
