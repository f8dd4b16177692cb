"""Right rotations, and what findings say, for tests."""

import torch

from snippets.rope import apply_rope, rope_frequencies, rope_tables


def turning(frequencies, layout="half", factor=1.0):
    """A right rotation."""

    def rotate(x, positions):
        cos, sin = rope_tables(positions, frequencies)
        return apply_rope(x, cos * factor, sin * factor, layout)

    return rotate


def proportional(dim, base, share):
    """Frequencies of all pairs of a head, of which the last ones stand still."""
    w = rope_frequencies(dim, base)
    return w * (torch.arange(dim // 2) < int(share * dim) // 2)


def verdicts(findings):
    """The verdicts of each check, in one string where there are several."""
    told = {}
    for each in findings:
        told[each.check] = ", ".join([*filter(None, [told.get(each.check)]), each.verdict])
    return told


def failing(findings):
    return {each.check for each in findings if each.verdict == "fails"}


def one(findings, check):
    (found,) = [each for each in findings if each.check == check]
    return found
