"""The table of all models, and its data for programs."""

import csv
import json
import re

from bs4 import BeautifulSoup

from experiments.census.rows import FIELDS, census, digest, rows
from guide import census as page


class Page:
    @staticmethod
    def up():
        return "../"


def table():
    return BeautifulSoup("".join(page.table.shown(Page, "", [])), "html.parser")


def test_each_model_has_a_row_with_an_address_of_its_own_and_a_way_to_its_code():
    links = table().select("p > a[id]")
    assert sorted(link["id"] for link in links) == sorted(row.kind for row in rows())
    at = f"https://github.com/huggingface/transformers/blob/v{census()['transformers']}/src/transformers/models/"
    for row, link in zip(
        sorted(rows(), key=lambda row: row.kind), sorted(links, key=lambda a: a["id"]), strict=True
    ):
        if row.file:
            assert re.fullmatch(re.escape(at) + r"[\w/]+\.py#L\d+", link["href"]), row.kind


def test_each_choice_finds_a_row_and_each_row_can_be_chosen():
    found = table()
    kinds = {name: value.split("|") for name, value in found.select_one(".counted").attrs.items()
             if name.startswith("data-") and name != "data-filter"}  # fmt: skip
    assert len(kinds) == 9
    for name, choices in kinds.items():
        held = {
            value for row in found.select("p[data-input]:not(.counted)") for value in row[name].split("|")
        }
        assert held <= set(choices), name
        assert set(choices) - held <= {"series"}, name
    narrowed = found.select('p[data-nope-layers="NoPE layers"]')
    assert {row.a["id"] for row in narrowed} >= {"smollm3", "cohere2", "llama4_text"}
    assert "qwen3" not in {row.a["id"] for row in narrowed}


def test_the_data_hold_what_the_table_holds(tmp_path):
    page.write(tmp_path)
    told = json.loads((tmp_path / "data/census.json").read_text("utf-8"))
    assert (told["transformers"], told["digest"]) == (census()["transformers"], digest())
    known = {name for row in told["models"].values() for name in (*row, *row["facts"])}
    assert known - {"class", "source"} <= set(told["fields"]) >= set(FIELDS)
    assert told["models"]["smollm3"]["facts"]["bare"]["value"] == list(range(3, 36, 4))
    with (tmp_path / "data/census.csv").open(encoding="utf-8", newline="") as file:
        sheet = {row["model"]: row for row in csv.DictReader(file)}
    assert sheet.keys() == told["models"].keys() == {row.kind for row in rows()}
    assert sheet["smollm3"]["bare"] == "3 7 11 15 19 23 27 31 35"
    assert (sheet["smollm3"]["base"], sheet["smollm3"]["base_agrees"]) == ("2000000", "yes")
    assert sheet["bloom"]["biased"] == "linear"
    for row in told["models"].values():
        for fact in row["facts"].values():
            assert (fact["value"] is None) == (fact["status"] in ("unknown", "disputed"))


def test_the_copy_in_markdown_has_each_model_and_each_field():
    assert len(page.table.told(None, "", [])) == len(rows())
    assert len(page.fields.told(None, "", [])) == len(page.OF_A_ROW | FIELDS)
