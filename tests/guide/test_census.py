"""The table of all models, and its data for programs."""

import csv
import json
import re
import tomllib

from bs4 import BeautifulSoup

from executable_prose.project import ROOT
from experiments.census.rows import FIELDS, census, digest, row_of, rows, words
from guide import census as page

MARKS = ("rotation", "added", "biased", "in_score")


class Page:
    @staticmethod
    def up():
        return "../"


def table():
    return BeautifulSoup("".join(page.table.shown(Page, "", [])), "html.parser")


def test_each_model_has_a_row_with_an_address_of_its_own_and_a_way_to_its_code():
    links = table().select("tr > th[scope=row] > a[id]")
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
             if name.startswith("data-") and name not in ("data-filter", "data-named")}  # fmt: skip
    assert len(kinds) == 9
    for name, choices in kinds.items():
        held = {value for row in found.select("tr[data-input]") for value in row[name].split("|")}
        assert held <= set(choices), name
        assert set(choices) - held <= {"series"}, name
    narrowed = found.select('tr[data-nope-layers="NoPE layers"]')
    assert {row.a["id"] for row in narrowed} >= {"smollm3", "cohere2", "llama4_text"}
    assert "qwen3" not in {row.a["id"] for row in narrowed}


CELLS = {
    "qwen2": ["RoPE", "half", "10,000", "", "", "32,768", "2024-07-15"],
    "llama4_text": ["RoPE in 36 of 48 layers", "interleaved", "500,000", "", "8,192 in 36 of 48 layers",
                    "131,072", "2025-04-05"],
    "gemma3_text": ["RoPE", "half", "10,000, 1,000,000", "", "4,096 in 22 of 26 layers", "131,072",
                    "2025-03-25"],
    "gptj": ["partial RoPE", "interleaved", "10,000", "", "", "2,048", "2021-06-04"],
    "bloom": ["linear bias", "", "", "", "", "", "2022-11-09"],
    "t5": ["bias table", "", "", "", "", "", "2019-10-23"],
    "whisper": ["fixed table", "", "", "", "", "448", "2022-12-06"],
    "mamba": ["no attention", "", "", "", "", "", "2023-12-01"],
}  # fmt: skip


def test_the_columns_say_how_positions_enter_and_the_last_one_all_that_is_known():
    found = table()
    heads = [each.text for each in found.select("thead th")]
    assert heads == [*page.COLUMNS, "All facts"]
    for kind, cells in CELLS.items():
        row = found.find(id=kind).find_parent("tr")
        assert [each.text for each in row.find_all("td")[:-1]] == cells, kind
        assert row.select_one("details p").text.startswith("; ".join(words(row_of(kind))))
    assert "Used by Qwen2, Qwen2.5," in found.find(id="qwen2").find_parent("tr").text


def test_a_cell_of_what_is_unknown_is_not_empty():
    unknown = [row for row in rows() if row.value("layout") in ("unknown", "disputed")]
    assert len(unknown) > 50 and {page._cells(row)[1] for row in unknown} == {page.OPEN}
    nothing = [row for row in rows() if {row.value(name) for name in MARKS} == {"unknown"}]
    assert len(nothing) > 50 and {page._cells(row)[0] for row in nothing} == {"unknown"}


def test_names_of_released_models_are_of_types_that_have_a_row():
    named = tomllib.loads((ROOT / page.NAMES).read_text("utf-8"))["names"]
    assert named.keys() <= {row.kind for row in rows()}
    every = [name for names in named.values() for name in names]
    assert len(every) == len({*every}) > 40


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
