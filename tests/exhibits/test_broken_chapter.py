"""The figures and tables of the chapter on released faults, beside what they are made of."""

import json

from executable_prose.project import ROOT
from guide.register import entries


def test_one_layout_gives_one_score_and_two_give_many(returned):
    spread = returned("broken.one_offset")
    assert spread["one_layout"] < 1e-4 and spread["two_layouts"] > 1


def test_faults_hide_until_the_text_is_longer_than_they_are(returned):
    told = returned("broken.where_faults_hide")
    assert (told["window"], told["selection"], told["rounding"]) == (64 + 1, 256 + 1, 2)
    assert told["rounding_first"] < 1e-4 < 1e-2 < told["rounding_last"]
    assert min(told["window_last"], told["selection_last"]) > 0.05


def test_the_listing_of_two_lines_fails_as_its_caption_says(printed):
    lines = [line.split()[:2] for line in printed("broken.two_lines") if not line.startswith(" ")]
    assert lines[:3] == [["fails", "norm_kept"], ["fails", "one_layout"], ["fails", "offsets_alone"]]
    assert "fails" not in [head for head, *_ in lines[3:]]


def test_every_entry_is_counted_by_its_check(printed, returned):
    counts = [int(row.split("|")[2]) for row in printed("broken.found_by")[2:]]
    told = returned("broken.found_by")
    assert sum(counts) == told["entries"] == len(entries()) >= 30 and len(counts) == told["checks"]


def test_the_table_of_mutants_is_what_was_measured(printed, returned):
    known = json.loads((ROOT / "experiments" / "results" / "power.json").read_text("utf-8"))
    rows = [row.split("|")[1:4] for row in printed("broken.power")[2:] if "`" in row]
    assert [(int(all_), int(found)) for _, all_, found in rows] == [
        (told["silent"], told["found"]) for told in known.values()
    ]
    total = returned("broken.power")
    assert total["found"] == sum(told["found"] for told in known.values()) > total["silent"] / 2


def test_the_table_of_alarms_has_a_row_for_each_kind_and_counts_models(printed, returned):
    told = returned("broken.alarms")
    rows = [row for row in printed("broken.alarms")[2:] if "**" in row]
    assert {row.split("**")[1] for row in rows} == {"defect", "limit"}
    assert (
        told["alarms"]
        == told["defect"] + told["limit"]
        == sum(row.split("|")[1].count(",") + 1 for row in rows)
    )
    assert told["silent"] + told["alarms"] == told["asked"] >= 120
