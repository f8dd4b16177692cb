"""Nothing is shipped that the page of licences does not name."""

import base64
import hashlib
import re
from importlib.metadata import files

import pytest

from executable_prose.project import DOCS, ENGINE

pytestmark = pytest.mark.browser
WRITTEN = {".csv", ".html", ".md", ".png"}  # by the build, of what docs/ holds
LISTS = {
    ".executable-prose-site",
    "changes.xml",
    "llms-full.txt",
    "search/search_index.json",
    "sitemap.xml",
    "sitemap.xml.gz",
}
LISTS |= {"data/broken.json", "data/census.json", "snippets.zip", "CITATION.cff"}


def digest(file):
    return base64.urlsafe_b64encode(hashlib.sha256(file.read_bytes()).digest()).rstrip(b"=").decode()


def test_every_file_is_ours_or_the_themes(built):
    theirs = {each.hash.value for each in files("mkdocs-material") if each.hash}
    styles = {
        each.name for each in files("mkdocs-material") if each.suffix == ".css"
    }  # of which we keep a part
    others = [
        name
        for file in built.root.rglob("*")
        if file.is_file() and file.suffix not in WRITTEN
        and not (DOCS / (name := file.relative_to(built.root).as_posix())).exists()
        and name not in LISTS and not (file.suffix == ".svg" and file.parent.name == "data")
        and digest(file) not in theirs
        and not (ENGINE / name).exists() and file.name not in styles
    ]  # fmt: skip
    assert others == []
    assert not (built.root / "assets/javascripts/lunr").exists(), "stemmers under licences that are not named"


def test_the_search_is_that_of_npm(built):
    """As `npm pack minisearch@7.2.0` brings it, in `dist/es/index.js`."""
    served = (built.root / "assets/minisearch.mjs").read_bytes()
    assert (
        hashlib.sha256(served).hexdigest()
        == "0393b3ba253b809d5e55707c7b0875ef9b518a296a006c6739b28876e154edb3"
    )
    assert "MiniSearch 7.2.0" in built.soup("licences/").select_one("article").get_text()
    assert not (built.root / "assets/javascripts/workers").exists()


def test_every_set_of_icons_is_named(built):
    sets = {"fontawesome": "Font Awesome", "material": "Material Design Icons"}
    config = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    parts = [path.read_text(encoding="utf-8") for path in (DOCS.parent / "guide/templates").rglob("*.html")]
    used = set(re.findall(r"\b(fontawesome|material|octicons|simple)/[\w-]+", "\n".join([config, *parts])))
    said = built.soup("licences/").select_one("article").get_text()
    assert used and all(sets[each] in said for each in used)
