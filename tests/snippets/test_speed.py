"""Stored speeds, which `make bench` writes and pages show."""

import json

import pytest

from executable_prose.project import ROOT
from tests.bench import speed
from tests.peers import turned
from tests.peers.cases import HEADS, LARGE, cases

STORED = json.loads(speed.RESULTS.read_text(encoding="utf-8"))
ROWS = STORED["rows"]
SMALL = list(cases([(1, HEADS, 16)], (1, HEADS, 24), (1, HEADS, 1, 16, 3)))


def beside(story, what):
    """Each row of a story whose work begins so, with the peers that do the same."""
    rows = [row for row in ROWS if row["story"] == story and row["what"].startswith(what)]
    return [(row, [peer for peer in row["peers"] if not peer["less"]]) for row in rows]


@pytest.mark.peer
@pytest.mark.parametrize(("build", "size"), SMALL)
def test_all_that_is_timed_gives_the_same_numbers_and_was_timed(build, size):
    case = build(*size)
    stories = [(story, set(runs)) for story, runs, _ in case.stories()]
    for _, runs, _ in case.stories():
        speed.check_same(case, runs)
    what = case.what.replace("3 layers", "24 layers")
    kept = [row for row in ROWS if (row["snippet"], row["what"]) == (case.snippet, what)]
    found = [(row["story"], {"", *(peer["name"] for peer in row["peers"])}) for row in kept]
    sizes = 1 if case.layers > 1 else 2 + any(what == large(1, HEADS, 4).what for large in turned.LARGE)
    assert found == stories * sizes, "`make bench` writes it"


def test_it_says_where_when_and_how_it_was_measured():
    machine = {"cpu", "cores", "system", "python", "torch", "compiler", "date", "method"}
    assert set(STORED["machine"]) == machine and all(STORED["machine"].values())


def test_every_row_says_what_of_ours_ran():
    for row in ROWS:
        ran = STORED["code"][row["what"]]
        assert len(ran[f"snippets/{row['snippet']}.py"]) > 1
        assert any(file.startswith("tests/peers/") for file in ran)
        assert all((ROOT / file).is_file() for file in ran)


def test_every_column_of_every_row_is_a_number_above_zero():
    for row in ROWS:
        columns = set(row["microseconds"])
        assert {"forward"} <= columns <= {"forward", "backward", "compiled"}
        assert set(row["copies"]) == columns
        for peer in row["peers"]:
            assert set(peer) == {"name", "less", "memory", *columns}
            assert min(peer[column] for column in ("memory", *columns)) > 0


@pytest.mark.parametrize("column", ["forward", "backward", "compiled"])
def test_snippets_are_no_slower_than_peers_that_do_the_same(column):
    same = [
        (peer[column], row["what"], story, row["size"], peer["name"])
        for story in ("anew", "held")
        for row, peers in beside(story, "")
        for peer in peers
        if column in peer
    ]
    assert len(same) > 10
    assert not [each for each in same if each[0] > 1.1]


@pytest.mark.parametrize(("layout", "most", "near"), [("half", 1.5, 2.5), ("interleaved", 1.7, 3.7)])
def test_compiled_rope_takes_little_more_than_a_copy_in_a_large_model(layout, most, near):
    """What fits into caches is copied so fast that the arithmetic shows."""
    rows = [row for row, _ in beside("held", f"apply_rope, {layout}, q and k")]
    compiled = {row["size"]: row["copies"]["compiled"] for row in rows if "compiled" in row["copies"]}
    batch, heads, tokens, *_, dim = LARGE
    large = f"{batch} × {heads} × {tokens} × {dim}"
    assert compiled.pop(large) <= most
    assert max(compiled.values()) <= near


def test_decoding_with_rope_takes_less_time_than_with_the_code_of_llama():
    ((_, peers),) = beside("held", "apply_rope, half, q and k, one token")
    (ratio,) = [peer["forward"] for peer in peers if "LLaMA" in peer["name"]]
    assert ratio <= 0.8
