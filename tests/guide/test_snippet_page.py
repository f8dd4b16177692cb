"""The page of a snippet: its calls, its file, its peers, its speed."""

import json
import textwrap
from urllib.parse import unquote

import pytest
from bs4 import BeautifulSoup

from executable_prose.execution.provenance import measured_parts
from guide import heads

SNIPPET = '''
    """Halving."""

    import torch


    def halved(x):  # (tokens)
        """Half of x < 2.

        x may be
        large.

        Args:
            x: A number, `x < 2`,
                or a whole one.
            y: No parameter.

        Returns:
            The half: half of x.

        Raises:
            ValueError: If x is
                no number.

        Example:
            >>> halved(2)
            1.0

            >>> halved(4)
            2.0

        It ends.
        """
        return x / 2


    class Halve(torch.nn.Module):
        """Halves."""

        def __init__(self, deep):
            """ValueError: deep below 0."""

        def forward(self, x):
            return halved(x)

        def _hidden(self):
            return self


    def _private():
        pass
    '''
ROW = {
    "snippet": "half",
    "what": "halved",
    "size": "(2, 4096)",
    "story": "anew",
    "microseconds": {"forward": 1234.5, "backward": 7.0, "compiled": 50.0},
    "copies": {"forward": 2.04, "backward": 1.0, "compiled": 1.12},
    "peers": [
        {"name": "slow", "less": None, "forward": 0.1, "backward": 0.2, "compiled": 0.3, "memory": 1.0},
        {"name": "quick", "less": None, "forward": 0.954, "backward": 0.3, "compiled": 0.4, "memory": 1.0},
        {"name": "coarse", "less": "digits", "forward": 0.5, "backward": 0.1, "compiled": 2.5, "memory": 1.0},
    ],
}
HELD = ROW | {"story": "held", "copies": {"forward": 3.0}, "microseconds": {"forward": 9.0}, "peers": []}
MACHINE = {
    "cpu": "A CPU",
    "system": "Linux x86",
    "torch": "2.13",
    "compiler": "g++",
    "date": "2026-01-02",
    "method": "In turns.",
}
RAN = {"snippets/half.py": {"halved": measured_parts(textwrap.dedent(SNIPPET))["halved"]}}
SPEED = {
    "machine": MACHINE,
    "code": {"halved": RAN, "another": RAN},
    "rows": [ROW, HELD, ROW | {"snippet": "other", "what": "another"}],
}
PEERS = '{"half": {"some_peer.halve": 3.2e-7, "some_peer.same": 0.0}}'


@pytest.fixture
def halving(here, soup):
    """A function that converts the reference page of a snippet."""
    results = {
        "experiments/results/peers.json": PEERS,
        "experiments/results/speed.json": json.dumps(SPEED),
        "requirements-test.txt": "some-peer==1.2\n",
    }
    here.write({"snippets/half.py": SNIPPET, **results})
    return lambda: soup("Prose.\n\n```reference snippets/half.py\n```", "reference/half.md")


def test_a_reference_lists_what_is_public_with_its_signature(halving):
    html = halving()
    assert [heading.code.text for heading in html.select("h3")] == ["halved", "Halve"]
    signatures = [box.text for box in html.select("div.highlight code")][:2]
    assert signatures[0] == "def halved(x):  # (tokens)\n"
    assert signatures[1].split("\n") == [
        "class Halve(torch.nn.Module):",
        "",
        "    def __init__(self, deep):",
        "",
        "    def forward(self, x):",
        "",
    ]


def test_a_reference_has_the_docstrings_whole_and_those_of_methods_after_their_names(halving):
    html = halving()
    calls = [[html.select("h3")[n], *html.select("h3")[n].find_next_siblings()] for n in (0, 1)]
    (_, _, sentence, body, *_), (_, _, whole, method, *_) = calls
    assert sentence.text == "Half of x < 2."
    assert "data-search-exclude" in body.attrs
    parts = body.find_all(True, recursive=False)
    shown = [(part.get("class"), " ".join(part.text.split())) for part in parts if part.name == "p"]
    titles = [(["section"], title) for title in ("Args", "Returns", "Raises", "Example")]
    words, half, end = ((None, text) for text in ("x may be large.", "The half: half of x.", "It ends."))
    assert shown == [words, *titles[:2], half, *titles[2:], end]
    arguments, raises = (
        [[each.text for each in part.find_all(name)] for name in ("dt", "dd")] for part in body.select("dl")
    )
    assert arguments == [["x", "y"], ["A number, x < 2, or a whole one.", "No parameter."]]
    assert raises == [["ValueError"], ["If x is no number."]]
    assert [code.text for code in body.select("dd code")] == ["x < 2"]
    examples = [part.pre.text for part in body.select(".printed")]
    assert examples == [">>> halved(2)\n1.0\n", ">>> halved(4)\n2.0\n"]
    assert (whole.text, method.text) == ("Halves.", "__init__: ValueError: deep below 0.")
    assert method.code.text == "__init__"


def test_a_reference_lists_former_names_where_links_to_them_lead(halving, here):
    here.write({"snippets/half.py": f"{SNIPPET}\n\n    Halver = Halve\n    mid = halved\n"})
    html = halving()
    assert [heading.code.text for heading in html.select("h3")] == ["halved", "Halve"]
    (line,) = (each for each in html.select("p") if each.text.startswith("Former names"))
    assert line.text.endswith("release: Halver (now Halve), mid (now halved).")
    assert [line.select_one(f"#{name}").text for name in ("halver", "mid")] == ["Halver", "mid"]


def test_a_docstring_s_own_code_keeps_its_lines(halving, here):
    here.write(
        {"snippets/half.py": SNIPPET.replace("x may", "    a < b\n                c\n\n        x may")}
    )
    assert halving().select(".printed")[0].pre.text == "a < b\n    c\n"


def test_a_reference_says_of_copies_what_was_fixed_since_below_its_title(halving, here, soup):
    assert not halving().select(".warning")
    here.write({"docs/changes.md": "# Changes\n"})
    here.write(
        {"CHANGES.md": "## 2026-02-02\n\n- Fixed half.py: it gave `x`.\n- Fixed other.py: not this.\n"}
    )
    html = soup("# Half\n\nProse.\n\n```reference snippets/half.py\n```", "reference/half.md")
    assert [each.name for each in html.find_all(True, recursive=False)][:3] == ["h1", "details", "p"]
    box = html.select_one("details.warning")
    assert box.summary.text == "Fixed on 2026-02-02: copies from before give wrong numbers"
    assert [item.text for item in box.select("li")] == ["2026-02-02: it gave x."]
    assert box.select_one("p a")["href"] == "../changes.md"
    assert not {"open"} & set(box.attrs)


@pytest.mark.parametrize(
    ("site", "named"),
    [("https://a.org/guide/", "https://a.org/guide/"), ("http://127.0.0.1:8000/", heads.GUIDE)],
)
def test_a_reference_hands_out_a_file_that_names_the_site(halving, here, page, monkeypatch, site, named):
    text = (here.root / "snippets/half.py").read_text(encoding="utf-8")
    head = "# SPDX-License-Identifier: 0BSD\n# From The executable guide to positional encoding, 2026-01-01\n"
    (here.root / "snippets/half.py").write_text(head + text, encoding="utf-8")
    monkeypatch.setenv("SITE_URL", site)
    html = BeautifulSoup(page("```reference snippets/half.py\n```", "reference/half.md"), "html.parser")
    shown = html.select("div.highlight code")[-1].text
    assert shown == head.replace(heads.GUIDE, named) + text
    assert unquote(html.select_one("a[download]")["href"].partition(",")[2]) == shown


def test_a_reference_has_a_table_of_what_each_function_supports_and_no_sentence(halving, here):
    assert "Supported features" not in halving().text
    listed = "Supports autocast, vmap;\n        no host-device sync.\n\n        Args:"
    other = '"""Halves.\n\n        Supports vmap.\n        """\n\n        def __init__'
    text = SNIPPET.replace("Args:", listed, 1).replace('"""Halves."""\n\n        def __init__', other)
    here.write({"snippets/half.py": text, "docs/files.md": "# All files\n"})
    html = halving()
    table = html.select("table")[0]
    rows = [[cell.text for cell in row.select("th, td")] for row in table.select("tr")]
    assert rows == [
        ["Function", "autocast", "vmap", "no host–device sync"],
        ["halved", "✓", "✓", "✓"],
        ["Halve", "–", "✓", "–"],
    ]
    assert "Supports" not in "".join(part.text for part in html.select("section"))


def test_a_reference_has_the_whole_file_to_download(halving, here):
    html, text = halving(), (here.root / "snippets/half.py").read_text()
    assert html.select("div.highlight code")[-1].text == text
    assert html.select_one("a[download]")["download"] == "half.py"


def test_a_reference_names_the_peers_their_versions_and_the_largest_differences(halving):
    table = halving().select("table")[0]
    rows = [[cell.text for cell in row.select("td")] for row in table.select("tr")[1:]]
    assert rows == [["some_peer.halve", "1.2", "3 × 10−7"], ["some_peer.same", "1.2", "none"]]


def test_a_reference_without_peers_says_so(halving, here):
    here.write({"experiments/results/peers.json": "{}"})
    html = halving()
    assert len(html.select("table")) == 1
    assert "know no implementation by other people" in html.text


def test_a_reference_says_how_fast_it_is_beside_its_peers_and_on_which_machine(halving):
    html = halving()
    rows = [[cell.text for cell in row.select("td")] for row in html.select("table")[1].select("tr")[1:]]
    assert rows == [
        ["halved, (2, 4096)", "nothing", "1,234", "2.0, compiled 1.1", "quick", "0.95", "0.30", "0.40"],
        ["", "", "", "", "coarse (does less)", "0.50", "0.10", "2.50"],
        ["halved, (2, 4096)", "tables", "9", "3.0", "–", "–", "–", "–"],
    ]
    assert "2026-01-02 with torch 2.13 on one thread of A CPU (Linux x86)" in html.text
    assert "In turns." in html.select_one("details.note").text


@pytest.mark.parametrize(
    ("was", "now", "says"),
    [
        ("x / 2", "x * 0.5", "measured before halved changed"),
        ("import torch", "import torch as torch", ""),  # nothing that ran
        ("x is\n", "x must be\n", ""),
        ("def halved(x)", "def half(x)", "measured before snippets/half.py changed"),
    ],
)
def test_a_reference_says_of_a_speed_that_it_is_older_than_its_code(halving, here, was, now, says):
    text = (here.root / "snippets/half.py").read_text(encoding="utf-8")
    assert text.count(was) == 1
    here.write({"snippets/half.py": text.replace(was, now)})
    html = halving()
    assert html.select("table")[1].select_one("td").text == f"halved, (2, 4096){says and ' †'}"
    assert (f"†: {says}." in html.text) == bool(says)


def test_a_reference_says_where_nothing_could_be_compiled(halving, here):
    says = "There was no C++ compiler, so nothing was compiled."
    assert says not in halving().text
    without = SPEED | {"machine": MACHINE | {"compiler": None}}
    here.write({"experiments/results/speed.json": json.dumps(without)})
    assert says in halving().text


def has_speed(element):
    return element.name == "h2" and element.text.startswith("Speed")


def test_a_reference_that_was_not_timed_has_no_speed(halving, here):
    assert halving().find(has_speed)
    here.write({"experiments/results/speed.json": "{}"})
    assert not halving().find(has_speed)


HALF = "snippets/half.py"


@pytest.mark.parametrize(
    ("path", "file", "results", "message"),
    [
        ("reference/half.md", "snippets/none.py", PEERS, "no file snippets/none.py"),
        (
            "reference/idle.md",
            "snippets/idle.py",
            PEERS,
            "snippets/idle.py has nothing that a reader could call",
        ),
        ("index.md", HALF, PEERS, f"the reference of {HALF} belongs on docs/reference/half.md"),
        ("reference/half.md", HALF, "{", "experiments/results/peers.json cannot be read: Expecting"),
        ("reference/half.md", HALF, '{"half": {"who.x": 0}}', "requirements-test.txt pins no 'who'"),
    ],
)
def test_a_reference_that_cannot_be_made_is_refused(here, halving, refusal, path, file, results, message):
    halving()
    here.write({"experiments/results/peers.json": results, "snippets/idle.py": "IDLE = 1\n"})
    assert refusal(f"# Title\n\n```reference {file}\n```", path).startswith(f"docs/{path}:3: {message}")


# Listings of snippets on other pages


@pytest.mark.parametrize("before", ["", '??? level-basic "Basic"\n\n    ', "1.  Item.\n\n    "])
def test_a_listing_is_linked_to_the_page_of_its_snippet(soup, before):
    html = soup(f'{before}--8<-- "snippets/scale.py@scaled"', "guide/scaling.md")
    assert html.select_one("p.place").text == "snippets/scale.py, lines 4 to 5"
    assert html.select_one("p.place a")["href"] == "../reference/scale.md"
    assert not soup('--8<-- "exhibits/words.py@spoken"').select("p.place a")


def test_a_listing_of_a_snippet_that_lacks_its_page_is_refused(here, refusal):
    here.write({"snippets/new.py": "x = 1\n"})
    message = "docs/index.md:3: the listing links to docs/reference/new.md, which is not there"
    assert refusal('# Title\n\n--8<-- "snippets/new.py"') == message
