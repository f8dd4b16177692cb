"""What a page can say, and what becomes of it."""

import re
from urllib.parse import unquote

import pytest

from executable_prose import registry
from executable_prose.errors import BuildFault
from executable_prose.figures import mermaid
from executable_prose.figures.mermaid import DiagramError
from prose_testing.projects import EXHIBITS

BOX = '??? note "A box"\n\n    '


@pytest.fixture(autouse=True)
def drawing(monkeypatch):
    def render(source):
        if "flowchart" not in source:
            raise DiagramError("no flowchart")
        return f"<svg>{len(source.splitlines())} lines</svg>"

    monkeypatch.setattr(mermaid, "render", render)


def placed(directive):
    """The directive at the top of a page, in a box, in a box's list, in a list."""
    indented = [directive.replace("\n", "\n" + " " * n) for n in (4, 8)]
    return [
        f"Before.\n\n{directive}\n\nAfter.",
        f"Before.\n{directive}\nAfter.",
        f"{BOX}Before.\n\n    {indented[0]}\n\n    After.",
        f"{BOX}- Item.\n\n        {indented[1]}\n",
        f"1.  Item.\n\n    {indented[0]}\n",
    ]


PLACES = ["plain", "without blank lines", "in a box", "in a list of a box", "in a list"]


def everywhere(directive):
    return pytest.mark.parametrize("text", placed(directive), ids=PLACES)


# Exhibits


@everywhere("```exhibit lines.rising\nThe **caption** of $x^2$,\nwith `#!val lines.rising.end .2f`.\n```")
def test_an_exhibit_is_its_figure_with_caption_and_folded_code(soup, text):
    html = soup(text)
    assert html.select_one("svg.figure")["aria-label"] == "It rises."
    caption = html.select_one("figure figcaption")
    assert html.select_one("figure svg.figure")
    assert caption.strong.text == "caption"
    assert caption.math
    assert caption.select_one("span.value").text == "0.62"
    code = html.select_one("details.code")
    assert not code.has_attr("open")
    assert code.select_one("pre code").text == "def rising():\n    'It rises.'\n"
    assert code.select_one(".place").text == "exhibits/lines.py, lines 1 to 2, link"
    assert html.select_one(code.select_one(".place a")["href"]).name == "figure"
    assert not html.find_all(string=re.compile("///|exhibit lines|```"))


@everywhere("```exhibit words.spoken\n```")
def test_an_exhibit_that_only_prints_is_what_it_printed_and_its_code(soup, text):
    html = soup(text)
    assert html.select_one(".printed pre code").text == "one < two\n  three\n"
    assert "print('one < two')" in html.text
    assert not html.select_one("svg")


@pytest.mark.parametrize(
    ("path", "up"), [("index.md", ""), ("guide/a.md", "../../"), ("labs/index.md", "../")]
)
def test_a_figure_offers_what_the_build_writes_of_it(soup, monkeypatch, path, up):
    monkeypatch.setenv("FIGURE_DATA", "true")
    html = soup("```exhibit lines.rising\nA caption.\n```\n\n```exhibit lines.both\n```", path)
    taken, bare = html.select("details.code")
    assert taken.summary.text.startswith("Take it") and "PNG" in taken.summary["title"]
    assert taken.select_one("p")["class"] == ["take"], "first of all"
    assert {link.text: link["href"] for link in taken.select(".take a")} == {
        "SVG": f"{up}data/lines.rising.svg",
        "PNG": f"{up}data/lines.rising.png",
        "CSV": f"{up}data/lines.rising.csv",
        "Embed": f"{up}embed/lines.rising/#embed",
        "Cite": f"{up}embed/lines.rising/#cite",
    }
    assert not bare.select("a"), "without a caption, nothing has the id of the figure"


def test_a_figure_without_data_offers_no_table(soup, monkeypatch):
    monkeypatch.setenv("FIGURE_DATA", "true")
    html = soup("```exhibit lines.both show=figure\nA caption.\n```")
    assert [link.text for link in html.select(".take a")] == ["SVG", "PNG", "Embed", "Cite"]


def test_an_exhibit_without_a_caption_has_none(soup):
    assert not soup("```exhibit lines.rising\n\n```").select("figcaption")


def test_only_output_to_copy_has_a_copy_button(soup):
    kept, copied = (soup(f"```exhibit lines.both show={show}\n```") for show in ("output", "copy"))
    assert kept.select_one(".printed")["class"] == ["no-copy", "printed"]
    assert copied.select_one(".printed")["class"] == ["printed"]
    assert copied.select_one(".printed").get_text() == kept.select_one(".printed").get_text()


def test_show_chooses_what_an_exhibit_shows(soup):
    figure = soup("```exhibit lines.both show=figure\n```")
    still = soup("```exhibit lines.both show=still\nThe **caption**.\n```")
    output = soup("```exhibit lines.both show=output\n```")
    assert figure.select_one("svg.figure")
    assert not figure.select_one(".printed")
    assert figure.select_one("details.code") and not still.select_one("details.code")
    assert still.select_one("figure svg.figure") and still.select_one("figcaption strong")
    assert output.select_one(".printed").text == "also printed\n"
    assert not output.select_one("svg.figure")


def test_a_printed_table_is_a_table(soup):
    html = soup("```exhibit words.table show=table\nThe **caption**.\n```")
    assert [cell.text for cell in html.select("table td")] == ["one", "2"]
    assert html.select_one("td em")
    assert html.select_one("figcaption").text.strip() == "The caption."
    assert html.select_one("details.code pre code").text == "def table():\n    pass\n"


def test_code_to_change_is_a_program_with_what_it_printed_and_one_script(soup):
    names = ("words.spoken", "words.table")
    html = soup("\n\n".join(f"```exhibit {name} show=editable\nThe **caption**.\n```" for name in names))
    first, second = html.select("figure .editable")
    assert [first.textarea.text, second.textarea.text] == ["print('one < two')", "pass"]
    assert first.textarea["rows"] == "1"
    assert first.select_one(".printed code").text == "one < two\n  three\n"
    assert [each.text.strip() for each in html.select("figcaption")] == ["The caption."] * 2
    assert [each["src"] for each in html.select("script")] == ["assets/editable.js"]


# Listings


class Paged(registry.Files):
    """Snippets have pages of their own, and name the site where they are handed out."""

    def page(self, file):
        return f"reference/{file[9:-3]}.md" if file.startswith("snippets/") else None

    def handed_out(self, text, site):
        return f"{text}  # from {site}"


@pytest.fixture
def paged(monkeypatch):
    monkeypatch.setattr(registry.ADDED, "files", Paged())


@everywhere('--8<-- "snippets/scale.py@scaled"')
def test_a_listing_is_the_source_under_its_place(soup, text):
    html = soup(text, "guide/scaling.md")
    assert html.select_one("pre code").text == "def scaled(x):\n    return BASE * x\n"
    place = html.select_one("p.place")
    assert place.text == "snippets/scale.py, lines 4 to 5"
    assert not place.a
    assert html.select_one("pre .k, pre .kn"), "it is not highlighted"


def test_of_a_docstring_a_listing_shows_the_first_paragraph(here, soup):
    said = '    """All\n    of it.\n\n    Units.\n    """\n'
    code = f'class Scale:\n{said}\n    def __call__(self, x):\n        """Brief."""\n        return x\n'
    here.write({"snippets/scale.py": code})
    html = soup('--8<-- "snippets/scale.py@Scale"')
    short = said.replace('.\n\n    Units.\n    """', '."""')
    assert html.select_one("pre code").text == code.replace(said, short)
    assert html.select_one("p.place").text == "snippets/scale.py, lines 1 to 10; more in the docstring"


def test_a_listing_of_a_file_is_the_whole_file(soup):
    assert soup('--8<-- "snippets/scale.py"').select_one("pre code").text == EXHIBITS["snippets/scale.py"]


@everywhere('--8<-- "snippets/scale.py@scaled"')
def test_a_listing_is_linked_to_the_page_of_its_file_and_as_it_is_handed_out(paged, soup, text):
    html = soup(text, "guide/scaling.md")
    assert html.select_one("p.place a")["href"] == "../reference/scale.md"
    assert html.select_one("pre code").text.endswith("return BASE * x  # from http://127.0.0.1:8000\n")
    assert not soup('--8<-- "exhibits/words.py@spoken"').select("p.place a"), "it has no page"


def test_on_its_own_page_a_file_is_there_to_download(paged, soup):
    html = soup('--8<-- "snippets/scale.py"', "reference/scale.md")
    link = html.select_one(".place a[download]")
    assert html.select_one(".place").text == "snippets/scale.py, 5 lines, download"
    assert link["download"] == "scale.py"
    shown = html.select_one("pre code").text
    assert unquote(link["href"].partition(",")[2]) == shown
    assert shown == EXHIBITS["snippets/scale.py"].rstrip() + "  # from http://127.0.0.1:8000\n"


def test_a_listing_of_a_file_that_lacks_its_page_is_refused(paged, here, refusal):
    here.write({"snippets/new.py": "x = 1\n"})
    message = "docs/index.md:3: the listing links to docs/reference/new.md, which is not there"
    assert refusal('# Title\n\n--8<-- "snippets/new.py"') == message


# Diagrams


@everywhere("```mermaid\nflowchart LR\n  A --> B\n```")
def test_a_diagram_is_drawn_in_its_place(soup, text):
    html = soup(text)
    assert html.select_one("div.diagram svg").text == "2 lines"
    assert "flowchart" not in html.text


# Claims


def test_the_list_of_claims_says_where_each_is_stated_and_what_holds_it(here, soup):
    here.write({"docs/guide/a.md": "Stated `#!claim it-doubles`."})
    html = soup("# Claims\n\n```claims\n```\n", "claims.md")
    assert html.select_one("details.chapter > p#it-doubles.held").text.startswith('It "doubles" & more.')
    assert html.select_one("p a")["href"] == "guide/a.md#states-it-doubles"
    test = html.select_one("details.code")
    assert test.summary.text == "test_a"
    assert "tests/test_scale.py, line 2" in test.text
    assert test.pre.text.endswith("def test_a(): pass\n")


def test_a_claim_is_listed_under_each_chapter_and_its_tests_once(here, soup):
    here.write({"docs/guide/a.md": "Stated `#!claim it-doubles`.", "docs/guide/b.md": "`#!claim it-doubles`"})
    html = soup("# Claims\n\n```claims\n```\n", "claims.md")
    assert html.select_one(".counted").text == "1 claims, 1 tests."
    folds = html.select("details.chapter > summary")
    assert [fold.h2.text for fold in folds] == ["guide/a.md", "guide/b.md"]
    assert [fold.span.text for fold in folds] == ["1 claim", "1 claim"]
    links = [link["href"] for link in html.select("p a")]
    assert links == [
        "guide/a.md#states-it-doubles",
        "guide/b.md#states-it-doubles",
        "#it-doubles",
        "guide/b.md#states-it-doubles",
    ]
    assert len(html.select("details.code")) == 1


def test_a_claim_that_no_page_states_is_refused(here, refusal):
    message = "docs/claims.md:3: no page states the claim 'it-doubles' of tests/test_scale.py:2"
    assert refusal("# Claims\n\n```claims\n```\n", "claims.md") == message


def test_a_claim_that_no_test_holds_is_refused_by_the_list_too(here, refusal):
    here.write({"docs/guide/a.md": "Stated `#!claim it-doubles` `#!claim it-trebles`."})
    message = "docs/claims.md:3: no test holds the claim 'it-trebles' of docs/guide/a.md"
    assert refusal("# Claims\n\n```claims\n```\n", "claims.md") == message


def test_the_list_names_a_page_that_cannot_be_read_where_that_is_wrong(here, refusal):
    here.write({"docs/guide/a.md": "# A\n\nStated `#!claim it-doubles`.\n\n```text\n"})
    message = "docs/claims.md:3: docs/guide/a.md:5: the block that begins here is never closed"
    assert refusal("# Claims\n\n```claims\n```\n", "claims.md") == message


def test_two_sentences_for_one_claim_are_refused(here, refusal):
    other = EXHIBITS["tests/test_scale.py"].replace("more", "less")
    here.write({"tests/test_zoom.py": other, "docs/guide/a.md": "Stated `#!claim it-doubles`."})
    message = "tests/test_zoom.py:2 states claim 'it-doubles' in other words than tests/test_scale.py:2"
    assert refusal("# Claims\n\n```claims\n```\n", "claims.md") == f"docs/claims.md:3: {message}"
    assert refusal("# A\n\nText\n`#!claim it-doubles`.", "guide/a.md") == f"docs/guide/a.md:4: {message}"


def inline(mark):
    texts = [
        f"A sentence {mark} ends.",
        f"{BOX}A sentence {mark} ends.",
        f"- An item {mark}",
        f"| a | b |\n|---|---|\n| x | {mark} |\n",
        f"{BOX}| a | b |\n    |---|---|\n    | x | {mark} |\n",
        f"**bold {mark}**",
        f"> quoted {mark}",
        f'??? note "Titled {mark}"\n\n    Text.\n',
        f"Note.[^1]\n\n[^1]: A note {mark}.\n",
    ]
    return pytest.mark.parametrize(
        "text",
        texts,
        ids=["text", "box", "list", "table", "table of a box", "bold", "quote", "title", "note"],
    )


@inline("`#!claim it-doubles`")
def test_a_claim_mark_links_to_the_claim(soup, text):
    mark = soup(text, "guide/scaling.md").select_one("a.claim")
    assert mark["href"] == "../claims.md#it-doubles"
    assert mark["title"] == 'It "doubles" & more.'
    assert mark["aria-label"] == 'Tested claim: It "doubles" & more.'
    assert mark.text


# Values


@inline("`#!val lines.rising.end .2f`")
def test_a_value_is_the_number_as_the_page_wants_it(soup, text):
    assert soup(text).select_one("span.value").text == "0.62"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("lines.rising.end", "0.61803"),
        ("lines.rising.end .0f", "1"),
        ("lines.rising.end +.1f", "+0.6"),
        ("lines.rising.tiny .1e", "−2.5 × 10<sup>−7</sup>"),
        ("lines.rising.tiny", "−2.5 × 10<sup>−7</sup>"),
        ("lines.rising.tiny .0f", "0"),
        ("lines.rising.big .1e", "1.5 × 10<sup>12</sup>"),
        ("lines.rising.big ,.0f", "1,500,000,000,000"),
        ("lines.rising.share .0%", "25%"),
        ("lines.rising.count", "12"),
        ("lines.rising.count 04d", "0012"),
        ("lines.rising.yes", "True"),
        ("words.spoken.method", "one-three"),
        ("words.spoken.name", "e"),
        ("lines.rising.end\n.2f", "0.62"),
        ("lines.rising.end .2f down", "0.61"),
        ("lines.rising.end .2f up", "0.62"),
        ("lines.rising.end .0% down", "61%"),
        ("lines.rising.end +.1f up", "+0.7"),
        ("lines.rising.end\n.4f down", "0.6180"),
        ("lines.rising.end .5f up", "0.61803"),
        ("lines.rising.tiny .1f down", "−0.1"),
        ("lines.rising.tiny .1f up", "0.0"),
        ("lines.rising.tiny .0e down", "−3 × 10<sup>−7</sup>"),
        ("lines.rising.tiny .0e up", "−2 × 10<sup>−7</sup>"),
        ("lines.rising.big ,.0f up", "1,500,000,000,000"),
        ("lines.rising.share .1f up", "0.3"),
        ("lines.rising.share .0% down", "25%"),
        ("lines.rising.count .0f up", "12"),
    ],
)
def test_a_number_is_typeset_and_a_text_left_alone(soup, value, shown):
    assert soup(f"It is `#!val {value}`.").select_one("span.value").decode_contents() == shown


def test_minutes_are_those_of_the_prose(soup):
    text = "`#!minutes` minutes. " + "word " * 700
    assert soup(text).text.startswith("4 minutes")
    pasted = "\n\n```python\n" + "pasted = 1\n" * 500 + "```\n"
    assert soup(text + pasted).text.startswith("4 minutes")


def test_a_page_may_cite_a_claim_twice_and_is_linked_to_once(soup):
    html = soup("First `#!claim it-doubles`, again `#!claim it-doubles`.")
    assert [mark.get("id") for mark in html.select("a.claim")] == ["states-it-doubles", None]


def test_a_mark_stays_with_the_word_before_it(soup):
    marks = soup("It *doubles*.\n`#!claim it-doubles`, also $x$ `#!claim it-doubles`").select("a.claim")
    assert [mark.previous_sibling for mark in marks] == [".\xa0", "\N{WORD JOINER}\xa0"]


# Mathematics


@pytest.mark.parametrize(
    "text",
    [r"Let $\frac{a}{b}$ be.", rf"{BOX}Let $\frac{{a}}{{b}}$ be.", r"| $\frac{a}{b}$ | b |" + "\n|--|--|"],
)
def test_a_formula_in_a_sentence_is_mathml(soup, text):
    html = soup(text)
    assert html.select_one("math mfrac")
    assert html.math.get("display") != "block"
    assert not html.find_all(string=re.compile(r"\\frac|\\\("))


def test_what_touches_a_formula_stays_on_its_line(soup):
    html = soup("Let ($a$, $b$), $c$-fold,\n$d$; *$e$*$f$ and\n$g$ be.")
    assert [span.text for span in html.select("span.whole")] == ["(a,", "b),", "c-fold,", "d;"]
    assert html.p.text == "Let (a, b), c-fold,\nd; ef and\ng be."


@pytest.mark.parametrize("text", [t for t in placed("$$\n\\sum_{i<n} x_i\n$$") if "Before.\n$$" not in t])
def test_a_formula_of_its_own_is_a_block(soup, text):
    formula = soup(text).select_one("div.formula")
    assert formula.math["display"] == "block"
    assert formula.select_one("munderover, munder")
    assert "<" in formula.math.text


def test_a_price_is_no_formula(soup):
    html = soup("It costs $5 or $6, and `$x$` and `$$` are code.\n\n    So is $$.\n")
    assert not html.select("math")
    assert [code.text for code in html.select("code")] == ["$x$", "$$", "So is $$.\n"]


# Boxes


def test_other_details_are_left_alone(soup):
    details = soup('# Page\n\n???+ note "Title"\n\n    Text.\n').details
    assert details.has_attr("open")
    assert not details.has_attr("id")


# Links


@pytest.mark.parametrize(
    "link",
    [
        "[a](reference/scale.md)",
        "[a](reference/scale.md#scale)",
        '[a](reference/scale.md "a title")',
        "[a](#page)",
        "[a](https://example.org/none.md)",
        "[a][b]\n\n[b]: reference/scale.md",
        "<someone@example.org>",
        "<https://example.org>",
        "[a](with%20space.md)",
        "[a](<with space.md>)",
        "[a](/rooted/)",
    ],
)
def test_a_link_that_leads_somewhere_is_left_alone(here, soup, link):
    here.write({"docs/with space.md": "# Space\n"})
    assert soup(f"# Page\n\nSee {link}").select_one("p a")["href"]


def test_links_are_relative_to_their_page(soup, refusal):
    assert soup("[a](scale.md)", "reference/other.md").a["href"] == "scale.md"
    assert "leads to no file" in refusal("[a](reference/scale.md)", "reference/other.md")


# Fences


@pytest.mark.parametrize("fence", ["````", "~~~"])
@pytest.mark.parametrize(
    "directive",
    [
        "```exhibit no.such\ncaption\n```",
        "```mermaid\nnonsense\n```",
        '--8<-- "no/such/file.py"',
        "`#!val no.such.value`",
        "`#!claim no-such`",
        "??? none\n\n    x",
        r"$\nonsense$",
    ],
)
def test_a_directive_inside_another_fence_is_left_alone(soup, fence, directive):
    html = soup(f"# Page\n\n{fence}markdown\n{directive}\n{fence}\n\nAfter.")
    assert html.select_one("pre code").text.strip() == directive
    assert html.find("p", string="After.")


def test_ordinary_fences_and_code_are_highlighted_as_ever(soup):
    code = "`#!python f()` and ```three ticks``` in a line\n\n```ticks``` first"
    html = soup(f"```python\ndef f(): pass\n```\n\nand {code}")
    assert html.select_one(".highlight .k").text == "def"
    assert [code.text for code in html.select("p code")] == ["f()", "three ticks", "ticks"]


# Prose


@pytest.mark.parametrize(
    "text",
    [
        "`<script>x()</script>` and ``<p onclick='x()'>``",
        "```html\n<script>x()</script>\n<img src='https://example.org/a.png' onerror='x()'>\n```",
        "    <script>x()</script>",
        "[a](https://example.org) and <https://example.org> and <a@example.org>",
        '[a](https://example.org "javascript: on = 1")',
        '<p title="url(https://example.org) on javascript:x()">a</p>',
        '<details markdown="1"><summary>On scripts</summary>\n\nText.\n\n</details>',
        '<img alt="one" src="data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=">',
        "$a_{on} < b$ and a script, < b on=1 >",
        "\u05d0\u200f, e\u0301, \u200d, \ufb01, \u4e2d",
        "`[a](data:text/html,b)` and `&#x202e;`",
        '--8<-- "exhibits/words.py"',
        "```exhibit lines.rising\n```",
    ],
)
def test_prose_that_shows_or_names_such_things_is_left_alone(soup, text):
    assert soup(f"# Page\n\n{text}").text


@pytest.mark.parametrize("sign", ["\x00", "\x07", "\x1b", "\x9f", "\u202a", "\u202e", "\u2066", "\u2069"])
@pytest.mark.parametrize(
    "text", ["```exhibit a.b\n```", "`#!val a.b.word`", "```exhibit a.b show=table\n```"]
)
def test_what_nobody_sees_is_refused_in_what_exhibits_give(here, page, text, sign):
    here.write({"exhibits/a.py": "def b():\n    pass\n"})
    given = {"output": f"| a{sign} |\n|---|\n", "values": {"word": f"a{sign}"}}
    with pytest.raises(BuildFault, match=rf"^docs/index\.md:3: .* may hold no sign .*U\+{ord(sign):04X}"):
        page(f"# Page\n\n{text}\n", a__b=given)


def test_what_a_printed_table_holds_is_refused_with_the_line_of_its_directive(here, page):
    here.write({"exhibits/a.py": "def b():\n    pass\n"})
    given = {"output": "| a |\n|---|\n| <script>x()</script> |\n"}
    with pytest.raises(BuildFault, match=r"^docs/index\.md:5: prose may hold no <script>"):
        page("# Page\n\nText.\n\n```exhibit a.b show=table\n```\n", a__b=given)


def test_headings_of_the_same_words_have_ids_of_their_own(soup):
    assert {each["id"] for each in soup("# A\n\n## A\n\n## A\n").select("[id]")} == {"a", "a_1", "a_2"}


# Lines


FRONT = "---\ntitle: x\ndescription: y\n---\n"


@pytest.mark.parametrize(
    "front",
    ["", FRONT, FRONT + "\n\n", "---\ntitle: x\n...\n", "\n\n\n", "---\ntitle: x\n---   \n"],
    ids=["none", "front matter", "and blank lines", "dots", "blank lines", "trailing spaces"],
)
@pytest.mark.parametrize(
    "wrong",
    [
        "```exhibit no.such\n```",
        "`#!val no.such.value`",
        "`#!claim none`",
        "[a](none.md)",
        r"$\nonsense$",
        "```py",
    ],
    ids=["exhibit", "value", "claim", "link", "formula", "fence"],
)
def test_the_line_named_is_the_line_of_the_file(here, page, front, wrong):
    text = f"{front}# Page\n\nText.\n\n{wrong}\n"
    line = 1 + text[: text.index(wrong)].count("\n")
    with pytest.raises(BuildFault, match=rf"^docs/index\.md:{line}: "):
        page(text)


def test_the_first_line_of_a_mark_that_is_broken_over_lines_is_named(refusal):
    assert refusal("# Page\n\n- x\n- y `#!val\n  no.such.value`").startswith("docs/index.md:")
    assert refusal("# Page\n\ny `#!val\nno.such.value`").startswith("docs/index.md:3:")


def test_the_page_is_named_where_it_lies(refusal):
    assert refusal("`#!claim none`", "guide/deep/page.md").startswith("docs/guide/deep/page.md:1: ")


def test_without_a_page_the_build_says_so(here):
    import markdown

    here.write({"docs/index.md": "x"})
    with pytest.raises(BuildFault, match="this page is of no builder that is known"):
        markdown.markdown("`#!claim none`", extensions=["executable_prose"])


# The glossary

GLOSSARY = """# Glossary

Query, queries
:   What a [token](index.md) *asks*,
    in $d$ numbers.

Attention head, head
:   One of several.
"""


@pytest.fixture
def explained(here, soup):
    """A function that converts a page of a guide with a glossary, and lists its links to terms."""
    here.write({"docs/glossary.md": GLOSSARY, "docs/guide/b.md": "# Another\n", "docs/index.md": "# Home\n"})
    return lambda text: [(a.text, a["href"], a["title"]) for a in soup(text, "guide/a.md").select("a.term")]


def test_a_term_is_linked_to_its_meaning_where_it_first_stands(explained):
    query = "../glossary.md#query", "What a token asks, in d numbers."
    head = "../glossary.md#attention-head", "One of several."
    found = explained("Two queries and *Query* one.\n\n- A **head**, attention heads and the query.")
    assert found == [("queries", *query), ("head", *head)]


def test_the_longest_term_is_found(explained):
    assert [text for text, *_ in explained("An attention head.")] == ["attention head"]


def test_a_term_is_linked_once_on_a_page_and_again_outside_of_a_box_or_in_a_level(explained):
    text = "A query.\n\n## One\n\nA query.\n\n### Part\n\nQueries.\n\n## Two\n\nQueries."
    assert [text for text, *_ in explained(text)] == ["query"]
    boxes = '??? note "x"\n\n    A query.\n\nThe query.\n\n??? level-basic "y"\n\n    Queries.'
    assert [text for text, *_ in explained(boxes)] == ["query", "query", "Queries"]


def test_titles_of_others_hold_no_word_of_ours(here, soup):
    here.write({"docs/glossary.md": GLOSSARY, "docs/index.md": "x"})
    text = "*A query.* 2024"
    assert soup(text, "papers.md").select("a.term")
    assert not soup(f"---\nglossary: false\n---\n{text}", "papers.md").select("a.term")


@pytest.mark.parametrize(
    "text",
    [
        "# A query",
        "| A query |\n|---|\n| x |",
        "A `query`.",
        "[A query](b.md)",
        "    a query",
        "Inquery, querying, key-query, query-key.",
        "$query$",
    ],
)
def test_what_is_no_word_of_a_sentence_is_left_alone(explained, text):
    assert explained(text) == []


def test_all_terms_of_a_sentence_are_found_and_its_text_is_kept(here, soup):
    here.write({"docs/glossary.md": GLOSSARY})
    html = soup("A query, *a head*, and **no** query or head.", "guide/a.md")
    assert html.p.text == "A query, a head, and no query or head."
    assert [a.text for a in html.select("a.term")] == ["query", "head"]


def test_the_glossary_itself_has_an_id_for_each_term(here, soup):
    here.write({"docs/index.md": "# Home\n"})
    html = soup(GLOSSARY, "glossary.md")
    assert [(term["id"], term.text) for term in html.select("dt")] == [
        ("query", "Query"),
        ("attention-head", "Attention head"),
    ]
    assert not html.select("a.term")


def test_without_a_glossary_nothing_is_linked(soup):
    assert not soup("A query.").select("a.term")
