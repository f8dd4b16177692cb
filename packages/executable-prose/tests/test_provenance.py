"""A result depends on the skeletons of modules and on the functions that ran, and on no other code."""

import pytest

from executable_prose.execution import provenance


def changed(before, after):
    return {name for name in before | after if before.get(name) != after.get(name)}


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
