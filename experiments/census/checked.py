"""The rows of a drawn sample beside what two readings of the source say: what is right, wrong, unknown."""

import json
import math

from experiments.census.joined import are_close
from experiments.census.rows import RESULTS, UNSURE, row_of

Z = 1.96  # of a normal distribution, for 95 of 100


def sample():
    return json.loads((RESULTS / "census_sample.json").read_text("utf-8"))["models"]


def checked():
    """{fact: [(model, what is stated, what was read, right)]}, right None where nothing is stated."""
    found = {}
    for kind, given in sample().items():
        row = row_of(kind)
        for name, read in given["read"].items():
            if name in row.facts:
                stated = row.value(name)
                right = None if stated in UNSURE else are_close(stated, read)
                found.setdefault(name, []).append((kind, stated, read, right))
            elif read not in ("no", []):  # left out because nothing turns, or nothing attends
                found.setdefault(name, []).append((kind, "left out", read, None))
    return found


def interval(wrong, of):
    """Wilson's interval of 95 % for a share."""
    if not of:
        return 0.0, 1.0
    share, z = wrong / of, Z**2 / of
    middle = (share + z / 2) / (1 + z)
    half = Z * math.sqrt(share * (1 - share) / of + z / (4 * of)) / (1 + z)
    return max(middle - half, 0.0), min(middle + half, 1.0)
