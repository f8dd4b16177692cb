"""What the search plugin is given of a page, and what readers are."""

import json
import re

import yaml
from material.plugins.search.plugin import Parser
from mkdocs.commands.build import build
from mkdocs.config import load_config

from weave import search
from weave.search import lean

PAGE = """
<h1 id="top">Rotation</h1>
<p>At <span class="arithmatex"><math><mi>m</mi><mo>=</mo><mn>3</mn></math></span> it turns.</p>
<figure><svg class="figure"><g><text>0.5</text></g></svg><figcaption>Turned once.</figcaption></figure>
<div id="box-1" data-search-exclude><pre><code><span class="k">def</span> f</code></pre></div>
<pre><code><span class="k">import</span> torch</code></pre>
<h2 id="limits">Its limits</h2>
<details data-search-exclude><summary>Code</summary><p>hidden</p></details>
<p>A <mark>marked</mark> word, and <main>more</main>.</p>
"""
# Boxes in boxes, as those of a live figure and of a lab's solution are.
NESTED = """
<h1 id="top">Rotation</h1>
<div><p>Before.</p><div class="live" data-search-exclude><div>first <div>second</div> third</div>fourth</div>
Within.</div>
<details class="success" data-search-exclude><details>fifth</details><h2 id="in">sixth</h2></details>
<div id="x" data-search-exclude><divider>seventh</divider></div><p>After.</p>
<div data-search-exclude>eighth
"""


def sections(content):
    parser = Parser()
    parser.feed(content)
    parser.close()
    return [(each.id, *("".join(part) for part in (each.title, each.text))) for each in parser.data]


def test_the_index_is_the_same_but_for_what_is_drawn():
    drawn = re.sub(r"<text>.*?</text>", "", PAGE)
    assert sections(lean(PAGE)) == sections(drawn)
    assert "0.5" in str(sections(PAGE)) and "import" in str(sections(lean(PAGE)))
    assert len(re.findall("<", lean(PAGE))) < 0.7 * len(re.findall("<", PAGE))


def test_what_is_excluded_is_so_with_all_that_it_holds():
    assert "third" in str(sections(NESTED)), "the plugin itself would see to it"
    searched = str(sections(lean(NESTED)))
    words = re.findall(r"\w+", re.sub(r"<[^>]*>", " ", NESTED))
    assert [word for word in words if word in searched] == ["Rotation", "Before", "Within", "After"]


def test_readers_get_all_of_a_page(tmp_path):
    settings = {"site_name": "Guide", "theme": "material", "plugins": ["search"], "hooks": [search.__file__]}
    (tmp_path / "mkdocs.yml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(PAGE, encoding="utf-8")
    build(load_config(str(tmp_path / "mkdocs.yml")))
    site = tmp_path / "site"
    assert "<text>0.5</text>" in (site / "index.html").read_text(encoding="utf-8")
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    assert "Turned once." in str(index) and "0.5" not in str(index)
