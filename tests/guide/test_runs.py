"""The table of all training runs on the site, and the list of its columns."""

import csv

from experiments.table import FIELDS
from guide import runs


class Page:
    @staticmethod
    def up():
        return "../"


def test_the_table_is_written_and_the_page_links_to_it_and_explains_each_column(tmp_path):
    runs.write(tmp_path)
    with (tmp_path / "data" / "runs.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(FIELDS) and len(rows) > 1000
    shown = "".join(runs.fields.shown(Page, "", []))
    assert 'href="../data/runs.csv"' in shown and "`" not in shown
    assert all(f"<li><code>{name}</code>: " in shown for name in FIELDS)
