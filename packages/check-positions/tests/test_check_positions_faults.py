"""check_positions.py finds faults that were reported in public threads, and names their causes."""

import pytest

from check_positions.checker import check_rotation
from findings import failing, one, turning
from snippets.rope import rope_frequencies
from snippets.sinusoidal import sinusoidal_encoding

ROPE = turning(rope_frequencies(16, base=10000))
SETTINGS = {"rope_type": "default", "rope_theta": 10_000.0}


def add_sinusoids(x, at):
    return x + sinusoidal_encoding(at, x.shape[-1])


# --- a rotation


@pytest.mark.parametrize(
    ("rotate", "length", "words"),
    [
        (lambda x, at: ROPE(x, at.clamp(max=1199)), 2048, "positions from 1200 on are rotated as 1199 is"),
        (lambda x, at: ROPE(x, at.clamp(max=69_999)), 131_072, "positions from 70000 on"),
        (lambda x, at: ROPE(x, at.clamp(max=2046)), 2048, "positions from 2047 on are rotated as 2046 is"),
        (lambda x, at: ROPE(x, at.clamp(max=39)), 64, "positions from 40 on are rotated as 39 is"),
        (lambda x, at: ROPE(x, at % 4096), 8192, "position 4096 is rotated as position 0 is"),
        (lambda x, at: ROPE(x, at % 3000), 8192, "position 3000 is rotated as position 0 is"),
        (lambda x, at: ROPE(x, at.where(at < 1500, 0)), 2048, "position 1500 is rotated as position 0 is"),
        (lambda x, at: ROPE(x, 4095 - at), 4096, "position 0 is rotated by 4095"),
        (lambda x, at: add_sinusoids(x, at.clamp(max=1199)), 2048, "add the same vector"),
        (lambda x, at: add_sinusoids(x, at % 512), 2048, "add the same vector"),
    ],
)
def test_positions_that_repeat_or_run_backwards_fail_one_check(rotate, length, words):
    findings = check_rotation(rotate, 16, length=length)
    assert words in one(findings, "positions_in_order").found
    assert failing(findings) - {"offsets_alone"} == {"positions_in_order"}


def test_positions_before_a_clamped_one_are_read():
    findings = check_rotation(lambda x, at: ROPE(x, at.clamp(max=1199)), 16, settings=SETTINGS, length=2048)
    assert one(findings, "as_configured").verdict == "passes"
    assert one(findings, "positions_in_order").where == "position 1200"


@pytest.mark.parametrize("begin", [1, 2, 256, -1])
@pytest.mark.parametrize("factor", [1.0, 1.2])
def test_positions_that_begin_elsewhere_are_read_and_nothing_fails(begin, factor):
    rope = turning(rope_frequencies(16, base=10000), factor=factor)
    findings = check_rotation(lambda x, at: rope(x, at + begin), 16, layout="half", length=8192)
    assert not failing(findings)
    assert one(findings, "reading").found.endswith(f"positions begin at {begin}")
    assert one(findings, "as_configured").verdict == "passes"


@pytest.mark.parametrize(
    ("apart", "words"), [(1, "keys stand 1 positions further"), (-2, "keys stand 2 positions back")]
)
def test_keys_at_other_positions_than_queries_fail(apart, words):
    findings = check_rotation(ROPE, 16, rotate_keys=lambda x, at: ROPE(x, at + apart), settings=SETTINGS)
    assert failing(findings) == {"keys_as_queries"}
    assert words in one(findings, "keys_as_queries").found
    assert not failing(check_rotation(ROPE, 16, rotate_keys=ROPE, settings=SETTINGS))
