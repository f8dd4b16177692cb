"""What tests of exhibits know numbers by: golden files, and formulas written out, one number at a time."""

import math
import re
from pathlib import Path

import numpy as np

GOLDENS = Path(__file__).parent / "goldens"
NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")
ROUNDING, APART = 1e-12, 0.05  # of float64; what nobody takes for it


def numbers(line):
    """The numbers of a line."""
    return [float(each.replace(",", "")) for each in NUMBER.findall(line)]


def half_a_unit(shown, exact, digits):
    """Whether numbers are shown to so many digits after the point."""
    return np.allclose(shown, exact, rtol=0, atol=0.5 * 10**-digits + 1e-9)


def softmax(scores):
    powers = [math.exp(score) for score in scores]
    return [power / sum(powers) for power in powers]


def speeds(dim, base=10_000.0):
    """Radians a place, of each pair."""
    return [base ** (-2 * i / dim) for i in range(dim // 2)]


def waves(positions, dim, base=10_000.0):
    """Sines and cosines in turn: a row for each position."""
    return [[f(p * w) for w in speeds(dim, base) for f in (math.sin, math.cos)] for p in positions]


def likeness(distance, dim):
    """The product of two rows of sinusoids."""
    return sum(math.cos(distance * w) for w in speeds(dim))
