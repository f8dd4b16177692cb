"""The ledger of speed, which `make bench` writes and pages show."""

import json
from pathlib import Path

import pytest

from tests.peers import peer

ROOT = Path(__file__).resolve().parents[2]
LEDGER = json.loads((ROOT / "tests" / "snippets" / "goldens" / "speed.json").read_text(encoding="utf-8"))
ROWS = LEDGER["rows"]


def test_it_says_where_when_and_how_it_was_measured():
    assert set(LEDGER["machine"]) == {"cpu", "cores", "system", "python", "torch", "date", "method"}
    assert all(LEDGER["machine"].values())


def test_every_row_is_about_a_snippet_that_stands():
    stems = {path.stem for path in (ROOT / "snippets").glob("[!_]*.py")}
    assert {row["snippet"] for row in ROWS} <= stems


def test_every_snippet_that_can_be_timed_was():
    peer("transformers"), peer("attn_gym"), peer("rotary_embedding_torch"), peer("x_transformers")
    cases = peer("experiments.peers").CASES
    missing = {case(1, 8, 16).snippet for case in cases} - {row["snippet"] for row in ROWS}
    assert not missing, "`make bench` writes it"


def test_every_piece_of_work_was_measured_at_two_sizes():
    for what in {row["what"] for row in ROWS}:
        assert len({row["size"] for row in ROWS if row["what"] == what}) == 2, what


@pytest.mark.parametrize("way", ["forward_ratio", "backward_ratio"])
def test_no_snippet_is_slower_than_a_peer_that_does_the_same_work(way):
    same = [row for row in ROWS if row["peer"] and not row["peer_does_less"]]
    assert len(same) > 20
    slow = [row for row in same if (row[way] or 0) > 1.1]
    assert not slow


def test_rope_and_every_bias_were_held_against_a_copy():
    for row in ROWS:
        if row["snippet"] == "rope" or row["what"].endswith("_bias"):
            assert row["floor_multiple"] > 0
