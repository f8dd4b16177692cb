"""The page that lists all files: nothing is left out, and the archive has the same bytes each time."""

import io
import time
import zipfile
from types import SimpleNamespace

import pytest
import yaml
from bs4 import BeautifulSoup

from executable_prose import project
from executable_prose.rendering.directives.code import DirectiveError
from guide import additions, heads
from guide.files_page import archive, files
from guide.reference import groups

SNIPPETS = sorted(f"snippets/{path.name}" for path in (project.ROOT / "snippets").glob("[!_]*.py"))
SITE = "https://someone.github.io/guide/"
PAGE = SimpleNamespace(
    to=lambda target: target.removeprefix("reference/"),
    up=lambda: "../",
    addresses={"site": SITE, "data": True},
)


def rows():
    (made,) = files.shown(PAGE, "", [])
    found = BeautifulSoup(made, "html.parser").select("tr[data-words]")
    return {row.a.text.removesuffix(".py"): row for row in found}


def test_every_snippet_has_a_line_with_its_own_words_and_length():
    found = rows()
    assert sorted(f"snippets/{name}.py" for name in found) == SNIPPETS
    for name, row in found.items():
        text = (project.ROOT / f"snippets/{name}.py").read_text("utf-8")
        does, _, _, length, *_ = (cell.text for cell in row.find_all("td"))
        assert row.a["href"] == f"../reference/{name}/"
        assert " ".join(text.split('"""')[1].split()).startswith(does)
        assert int(length) == len(text.splitlines())
        assert len(row["data-words"]) > 40 and "Copy the file" not in row["data-words"]


def test_a_line_names_the_models_that_use_its_method_and_the_page_its_groups():
    used = {name: row.find_all("td")[1].text for name, row in rows().items()}
    assert used["rope"] == "Llama, Mistral, Qwen3" and used["shaw"] == "wav2vec2-BERT"
    assert used["sinks"] == "gpt-oss" and used["fire"] == used["benchmark"] == ""
    (made,) = files.shown(PAGE, "", [])
    heads = [head["id"] for head in BeautifulSoup(made, "html.parser").select("tr.group > th")]
    assert heads == [title.lower().replace(" ", "-") for title in groups()]


def test_the_speed_is_the_best_beside_copying_and_the_range_beside_the_fastest(monkeypatch):
    def row(what, story, copies, *ratios, older=()):
        peers = [{"forward": abs(ratio), "less": "much" if ratio < 0 else None} for ratio in ratios]
        work = {"what": what, "size": "", "story": story}
        return work | {"copies": {"forward": copies}, "peers": peers, "older": older}

    asked = {"alibi": [row("a", "held", 2.0, 0.5, older=["x"])]}
    asked["rope"] = [
        row("a", "anew", 0.1, 9.0),  # not as it is used
        row("a", "held", 5.0, 0.4, 0.5, -3.0),
        row("b", "anew", 3.0, 1.25, 1.0),
        row("c", "anew", 4.0, -0.1),
    ]
    monkeypatch.setattr("guide.reference.speed", lambda snippet: (None, asked.get(snippet, [])))
    cells = {name: [cell.text for cell in row.find_all("td")[-2:]] for name, row in rows().items()}
    assert cells["rope"] == ["3.0", "0.50 to 1.25"]
    assert cells["alibi"] == ["2.0*", "0.50"]
    assert cells["xpos"] == ["", ""]


@pytest.mark.parametrize("site", [SITE, ""])
def test_the_archive_holds_the_files_as_they_are_handed_out_and_its_bytes_never_change(monkeypatch, site):
    made = archive(heads.files(), site)
    with zipfile.ZipFile(io.BytesIO(made)) as packed:
        assert packed.namelist() == SNIPPETS
        for file, name in zip(sorted(heads.files()), packed.namelist(), strict=True):
            text = packed.read(name).decode()
            assert text == heads.read(file).replace(f"From {heads.GUIDE}", f"From {site or heads.GUIDE}", 1)
    monkeypatch.setattr(time, "time", lambda: 2e9)
    monkeypatch.setattr("sys.platform", "win32")
    assert archive(reversed(heads.files()), site) == made


def test_the_page_leads_to_the_archive():
    (made,) = files.shown(PAGE, "", [])
    assert '<a href="../snippets.zip">' in made


def test_a_file_that_is_in_the_navigation_and_not_there_is_refused(monkeypatch):
    monkeypatch.setattr("guide.reference.groups", lambda: {"Lost": ["nobody"]})
    with pytest.raises(DirectiveError, match=r"no file snippets/nobody\.py"):
        files.shown(PAGE, "", [])


def test_the_file_to_cite_has_the_address_the_version_and_the_date_of_the_site():
    dated = additions.cited({"SOURCE_DATE_EPOCH": "86400", "SITE_URL": "https://example.org/guide/"})
    known = yaml.safe_load(dated)
    assert known["version"] == known["date-released"] == "1970-01-02"
    assert known["url"] == "https://example.org/guide/" and known["cff-version"] == "1.2.0"
    assert additions.cited({"SITE_URL": "http://127.0.0.1:8000/"}) == heads.read("CITATION.cff")
