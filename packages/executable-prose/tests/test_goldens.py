"""A golden file forgives rounding and nothing else."""

import pytest

from executable_prose import goldens
from executable_prose.goldens import alike


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("gap 1.000", "gap 1.0005", True),
        ("gap 1.000", "gap 1.002", False),
        ("error 2e-16", "error -4e-13", True),
        ("a 1", "b 1", False),
        ("n 4096", "n 4096", True),
        ("n 4096", "n 4097", False),
        ("p 1", "p 1.0002", True),
        ("same", "0.29 apart", False),
        ("1 2", "1", False),
    ],
)
def test_a_golden_file_forgives_rounding_and_nothing_else(old, new, same):
    assert alike(old, new) is same


def test_a_golden_file_is_written_where_more_than_rounding_changed(tmp_path):
    result = {"output": "a line\n", "values": {"end": 2.0}}
    goldens.write(tmp_path, "lines.rising", result)
    goldens.write(tmp_path, "lines.falling", result)
    part = "a line\n---\nend = 2.0\n"
    assert goldens.read(tmp_path, "lines") == {"lines.falling": part, "lines.rising": part}
    goldens.write(tmp_path, "lines.rising", result | {"values": {"end": 2.0001}})
    assert goldens.read(tmp_path, "lines")["lines.rising"] == part
    goldens.write(tmp_path, "lines.rising", result | {"values": {"end": 2.1}})
    assert goldens.read(tmp_path, "lines")["lines.rising"] == part.replace("2.0", "2.1")
