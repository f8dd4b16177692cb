"""Levels: what the guide makes of its four depths."""

import re

from guide import levels
from prose_testing.fixtures import StubResults, build_here
from prose_testing.projects import BARE

LEVEL = '??? level-basic "Basic"\n\n    '
LEVELS = "\n".join(
    f'??? level-{level} "{level.title()}"\n\n    Text of {level}.\n'
    for level in ("layman", "basic", "intermediate", "advanced")
)


def test_all_that_follows_the_layman_level_stands_in_one_open_box(soup):
    html = soup(f"# Page\n\n{LEVELS}\n## After\n\nWords.")
    assert [child.name for child in html.find_all(recursive=False)] == ["h1", "details", "details"]
    box = html.select_one("details.from-basic[open]")
    assert box.find("summary").text == "For those who build such programs"
    assert [part.name for part in box.find_all(recursive=False)] == ["summary", *["details"] * 3, "h2", "p"]
    assert not soup("# Page\n\nWords.").select("details")


def test_each_level_has_an_id_of_its_section(soup):
    html = soup(f"# Page\n\n{LEVELS}\n## The idea\n\n{LEVELS}")
    ids = [details["id"] for details in html.select("details[class*=level-]")]
    assert ids == [
        f"{section}-{level}"
        for section in ("page", "the-idea")
        for level in ("layman", "basic", "intermediate", "advanced")
    ]


def test_the_basic_level_is_open(soup):
    text = f"# Page\n\n{LEVELS}".replace("??? level-adv", "???+ level-adv")
    opened = [d["id"] for d in soup(text).select("details[class*=level-]") if d.has_attr("open")]
    assert opened == ["page-basic"]


def test_no_two_levels_share_an_id(soup):
    ids = [
        details["id"] for details in soup(f"# Page\n\n{LEVELS}\n{LEVELS}").select("details[class*=level-]")
    ]
    assert len(set(ids)) == 8


def test_a_heading_inside_a_level_names_nothing_outside_it(soup):
    inside = '    ## Inside\n\n    ??? level-advanced "A"\n\n        x\n'
    text = f'# Page\n\n??? level-basic "B"\n\n{inside}\n{LEVELS}'
    ids = [details["id"] for details in soup(text).select("details[class*=level-]")]
    assert ids[:3] == ["page-basic", "inside-advanced", "page-layman"]


def test_a_level_before_any_heading_has_an_id(soup):
    assert soup(LEVELS).details["id"] == "layman"


def test_an_unknown_level_is_refused(refusal):
    message = "docs/index.md:3: unknown level 'basics'; the levels are layman, basic, intermediate, advanced"
    assert refusal('# Page\n\n??? level-basics "B"\n\n    x\n') == message
    assert refusal('# Page\n\n??? from-basics "B"\n\n    x\n') == message


def test_a_level_inside_a_fence_that_shows_it_is_left_alone(soup):
    html = soup("# Page\n\n```markdown\n??? level-none\n\n    x\n```\n\nAfter.")
    assert html.select_one("pre code").text == "??? level-none\n\n    x\n"
    assert html.find("p", string="After.")


def test_an_id_that_a_page_has_twice_is_refused(refusal):
    text = '# Page\n\n## One {: #same-basic }\n\n## Same\n\n??? level-basic "B"\n\n    Text.'
    assert refusal(text).startswith("docs/index.md:3: the page has the id 'same-basic' twice: give")


def test_the_table_of_contents_names_the_levels_of_the_idea(here, additions):
    here.configure(BARE, additions)
    here.write({"docs/index.md": f"# Home\n\n## The idea\n\n{LEVELS}\n## See it\n\n{LEVELS}"})
    here.write({"theme/main.html": "{{ page.toc }}|{{ page.content }}"})
    for again in range(2):  # then it is from the cache of pages
        build_here(here, StubResults({}))
        page = (here.root / "site" / "index.html").read_text(encoding="utf-8")
        named = re.findall(r"([\w ]+) - #((?:the-idea|see-it)-\w+)", page)
        named = [(words.strip(), anchor) for words, anchor in named]
        assert named == [(words, f"the-idea-{name}") for name, words in levels.LEVELS.items()], again


def test_sections_before_the_idea_stand_in_a_box_and_keep_full_meanings(here, soup):
    here.write({"docs/glossary.md": "Query, queries\n:   What a word *looks for*.\n:   A vector.\n"})
    story = '??? level-layman "x"\n\n    A query.\n\nAfter.'
    html = soup(f"# Page\n\nLede.\n\n## At a glance\n\nA query.\n\n## The idea\n\n{story}", "guide/a.md")
    box = html.select_one("div.at-a-glance")
    assert [child.name for child in box.find_all(recursive=False)] == ["h2", "p"]
    assert [a["title"] for a in html.select("a.term")] == ["A vector.", "What a word looks for."]
    assert html.select_one("h2#the-idea").find_previous_sibling("div") == box
    assert not soup(f"# Page\n\n## The idea\n\n{story}", "guide/a.md").select(".at-a-glance")


# Listings


def test_a_listing_stands_in_one_box_with_the_text_that_leads_to_it(soup):
    listing = '--8<-- "snippets/scale.py@scaled"'
    for text in (
        f"One.\n\nTwo.\n\n{listing}\n\nAfter.",
        f"{LEVEL}One.\n\n    Two.\n\n    {listing}\n\n    After.",
    ):
        html = soup(text)
        prose, code = html.select_one(".beside").find_all("div", recursive=False)
        assert [p.text for p in prose.select("p")] == ["One.", "Two."]
        assert [code.p["class"], code.pre.text] == [["place"], "def scaled(x):\n    return BASE * x\n"]
        assert "After." not in html.select_one(".beside").text
        assert re.findall("One|Two|scaled|After", html.text) == ["One", "Two", "scaled", "After"]
    assert not soup(f"# A title\n\n{listing}").select(".beside")


# The glossary


def test_up_to_the_end_of_plain_words_a_term_has_its_plain_meaning(here, soup):
    known = "Query, queries\n:   What a word\n    *looks for*.\n:   A vector.\n\nHead\n:   One.\n"
    here.write({"docs/glossary.md": known})
    text = "# Page\n\nA query.\n\n" + "".join(
        f'??? level-{level} "x"\n\n    A query.\n\n' for level in ("layman", "basic")
    )
    text += "## After\n\nA query, a head."
    plain, full = "What a word looks for.", "A vector."

    def titles(path, text):
        return [a["title"] for a in soup(text, path).select("a.term")]

    assert titles("guide/a.md", text) == [plain, plain, full, "One."]
    assert titles("index.md", "A query, a head.") == [plain, "One."]
    assert titles("guide/a.md", "A query.") == [full]
    assert titles("guide/a.md", "Copy this query:\n{ .answer }") == [], "whoever copies reads no further"


def test_each_level_explains_its_terms_itself(here, soup):
    here.write({"docs/glossary.md": "Query, queries\n:   What a token asks.\n"})
    text = LEVEL + "A query.\n\n" + LEVEL + "Queries and a query.\n\nA query."
    assert [link.text for link in soup(text).select("a.term")] == ["query", "Queries", "query"]


def test_code_in_a_table_may_break_at_its_joints_and_elsewhere_nowhere(soup):
    html = soup("# Page\n\nA `rope_scaling`.\n\n| Key | In |\n|---|---|\n| `rope_scaling.factor` | a `b` |\n")
    assert str(html.select_one("td code")) == "<code>rope_<wbr/>scaling.<wbr/>factor</code>"
    assert html.select_one("p code").text == "rope_scaling" and len(html.select("wbr")) == 2
