"""Prose: its numbers are computed, its plain words are plain, its levels are whole."""

import re
import tomllib

import textstat
import yaml

from executable_prose import glossary
from executable_prose.claims import citations, registry, unstated
from executable_prose.project import DOCS, ROOT
from guide.levels import LEVELS

PAGES = sorted(DOCS.rglob("*.md"))
CHAPTERS = sorted((DOCS / "guide").glob("*.md"))

# What a digit may belong to in a sentence without being a result.
NAMES = re.compile(
    r"\b(?:19|20)\d\d\b"  # years of publication
    r"|\b[Ss]ections? \d+(?:\.\d+)*(?:(?:, | and )\d+(?:\.\d+)*)*"
    r"|\b(?:[Tt]ables?|[Ff]igures?|[Ee]quations?|[Aa]lgorithms?) \d+(?: and \d+)?"
    r"|\b(?:lemma|proposition) \d+|\bappendi(?:x|ces) [A-Z]\.\d(?: to [A-Z]\.\d)?"
    r"|\b(?:float|bfloat)\d+\b|\bWikiText-103\b|\btensor2tensor\b|\bM2M100\b|\bGPT-\d\b|\b5-gram\b|\bT5\b|\b\d-?D\b"
    r"|\b(?:Llama|Ministral|Gemma|EXAONE|V-JEPA|Ideogram) \d(?:\.\d)?\b|\b(?:Inkling|Phi)-\d\b"
    r"|\bLFM\d\b|\bDeepSeek V\d\b|\bQwen\d(?:\.\d)?(?:-VL)?\b|\bDINOv\d\b|\bSwin V\d\b"
    r"|\b(?:AIMv|Idefics|SD|FLUX\.)\d\b|\b(?:ERNIE|Wan) \d\.\d\b"
    r"|\barXiv:[\d.]+|\bdoi:\S+|\bversion [\d.]+"
)


def prose(path):
    """The lines of a page that are sentences, with everything computed or coded blanked."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"\A---\n.*?\n---\n", lambda m: "\n" * m[0].count("\n"), text, flags=re.S)
    for computed in (
        r"^( *)```(?:mermaid|python).*?^\1```",
        r"^ *```.*?$",  # the line of a directive; its body is a caption, and prose
        r"^ *--8<--.*?$",
        r"\$\$.*?\$\$",
        r"\$[^$]+\$",
        r"`[^`]+`",
        r"\]\([^)]*\)",
        r"<[^>]+>",
        r"https?://\S+",
    ):
        text = re.sub(computed, lambda m: "\n" * m[0].count("\n"), text, flags=re.S | re.M)
    return text.splitlines()


def typed_numbers(path):
    lines = enumerate(prose(path), 1)
    return [f"{path.name}:{n}: {line.strip()}" for n, line in lines if re.search(r"\d", NAMES.sub("", line))]


def test_no_number_in_a_sentence_is_typed():
    typed = [line for path in PAGES if path.name != "bibliography.md" for line in typed_numbers(path)]
    assert typed == [], "make it a value of an exhibit: `#!val module.function.key`"


def test_a_typed_number_would_be_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("The norm is 8.\n\nIn float32, section 3.5 of 2017, `#!val a.b.c` and $d = 4$.\n")
    assert typed_numbers(page) == ["page.md:1: The norm is 8."]


def test_a_page_has_a_title_and_a_description_for_search(subtests):
    for path in [p for p in PAGES if p.name != "index.md"]:
        with subtests.test(page=path.stem):
            front = re.match(r"---\n(.*?)\n---\n", path.read_text(encoding="utf-8"), flags=re.S)
            said = yaml.safe_load(front[1])  # MkDocs itself passes over what is no YAML
            assert said["title"]
            assert len(said["description"].split()) >= 5


def levels(path):
    """(level, text) of every level block of a chapter's idea, in order; its title says which level it is."""
    text = (
        path.read_text(encoding="utf-8")
        .partition("\n## How it works { #the-idea }\n")[2]
        .partition("\n## ")[0]
    )
    names = "|".join(f'{level} "{name}' for level, name in LEVELS.items())
    block = re.compile(rf"^\?\?\?\+? level-({names}): [^\"]+\"\n((?:(?:    .*)?\n)+)", re.M)
    return [(match[1].split()[0], match[2]) for match in block.finditer(text)]


# Title, lede, perhaps the answer with its code and how to check one's own, perhaps the results; the story;
# what it mends and what one needs; and nothing else.
HEAD = re.compile(
    r"# .+\n\n(?:.+\n)+\{ \.lede \}\n\n"
    r"(?:(?:.+\n)+\{ \.answer \}\n\n```python\n(?s:.*?)\n```\n\n(?:\*\*Is yours right\?\*\* (?:.+\n)+\n)?)?"
    r"(?:## (?:At a glance|How to decide|Results|Symptoms|The register)\n\n(?s:.*?))?"
    r"## How it works \{ #the-idea \}\n\n"
    r"\?\?\? level-layman (?:.*\n)(?:(?:    .*)?\n)+"
    r"\*\*(?:This chapter solves|Read first:|Prerequisites:)\*\* (?:.+\n)+\{ \.needs \}\n\n"
    r"\?\?\? level-basic "
)


def test_a_chapter_is_led_into_once_and_tells_its_idea_at_all_four_levels_in_order(subtests):
    """And no sentence waits for what a fold hides."""
    for path in CHAPTERS:
        with subtests.test(chapter=path.stem):
            text = path.read_text(encoding="utf-8")
            assert HEAD.match(text[text.index("\n# ") + 1 :])
            assert [level for level, _ in levels(path)] == list(LEVELS)
            assert not re.findall(r".*:\n\s*\?\?\? .*", text)


def plain(text):
    """The sentences of a level without directives, formulas and marks."""
    text = re.sub(r"```\w+.*?$|```|`#![^`]+`|\*\*?", "", text, flags=re.M)
    return re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)


# Words of the trade that a newcomer cannot know.
JARGON = re.compile(
    r"\b(?:attention|batch|bias|bucket|cache|causal|channel|checkpoint|cosine|decoder|dimension|embedding|encoder|"
    r"equivarian\w+|fine-tun\w+|frequency|gradient|hyperparameter|invarian\w+|layer|logit|loss|matrix|multiset|norm|"
    r"offset|padding|parameter|permutation|projection|query|scalar|sequence|softmax|tensor|token|Transformer|vector|"
    r"wavelength)s?\b",
    re.I,
)


def in_plain_words(path):
    """What those read who stay in plain words: the front page, or a chapter's lede and its story."""
    text = path.read_text(encoding="utf-8")
    if path.name != "index.md":
        lede = re.search(r"^# .*\n\n(.*?)\n\{ \.lede \}$", text, re.M | re.S)
        text = f"{lede[1]} {dict(levels(path))['layman']}"
    # Front matter is not on the page, and a link is no term.
    return plain(re.sub(r"^---.*?^---$|\[[^\]]+\]\([^)]*\)", "", text, flags=re.M | re.S))


def test_each_entry_of_the_glossary_is_a_term_with_its_meaning_on_the_next_line():
    _, *entries = (DOCS / glossary.FILE).read_text(encoding="utf-8").split("\n# ")[1].split("\n\n")
    entries = [entry for entry in entries[1:] if not entry.startswith("#")]
    assert [entry for entry in entries if not re.match(r".+\n:   ", entry)] == []
    assert len(entries) == len(glossary.terms())


def test_a_word_of_the_glossary_in_plain_words_has_a_plain_meaning(subtests):
    words, forms = glossary.pattern(glossary.terms())
    for path in [DOCS / "index.md", *CHAPTERS]:
        with subtests.test(page=path.stem):
            for word in words.finditer(in_plain_words(path)):
                meaning = forms[word[1].lower()].plain
                assert not JARGON.findall(meaning), f"{word[1]}: {meaning!r}"
                assert textstat.flesch_kincaid_grade(meaning) <= 9, f"Reading level: {word[1]}: {meaning!r}"


def test_the_layman_level_reads_easily_without_formulas_code_and_words_that_the_glossary_lacks(subtests):
    words, _ = glossary.pattern(glossary.terms())
    for path in CHAPTERS:
        with subtests.test(chapter=path.stem):
            text = dict(levels(path))["layman"]
            assert "$" not in text
            assert "show=code" not in text and "--8<--" not in text
            assert [word for word in JARGON.findall(plain(text)) if not words.search(word)] == []
            grade = textstat.flesch_kincaid_grade(" ".join(plain(text).split()))
            assert grade <= 9, f"Reading level: US grade {grade:.1f} in plain words, wanted 9 or below"


def test_no_level_repeats_a_sentence_of_another(subtests):
    for path in CHAPTERS:
        with subtests.test(chapter=path.stem):
            seen = {}
            for level, text in levels(path):
                for sentence in re.split(r"(?<=[.?!:])\s+", " ".join(plain(text).split())):
                    if len(sentence.split()) >= 5:
                        assert seen.setdefault(sentence, level) == level, (
                            f"{seen[sentence]} says it too: {sentence}"
                        )


def test_every_claim_is_held_by_a_test_and_stated_on_a_page():
    assert not unstated(registry(), citations())
    assert not set(citations()) - set(registry())


def test_every_reference_has_a_year_and_an_address():
    text = (DOCS / "bibliography.md").read_text(encoding="utf-8")
    papers = re.findall(r'<span id="(\w+)"></span>(.*?)(?=\n\n|\Z)', text.split("## Code")[0], flags=re.S)
    for id, entry in papers:
        year = re.search(r"\((\d{4})\)", entry)
        assert year and id.endswith(year[1]), id
        assert re.search(r"\(https://(?:arxiv\.org/abs|doi\.org|openreview\.net)/\S+\)", entry), id


def first_years():
    """For each paper that was on arXiv before its venue's year, the year of its number there."""
    text = (DOCS / "bibliography.md").read_text(encoding="utf-8")
    papers = re.findall(
        r'<span id="(\w+?)(\d{4})"></span>(.*?)(?=\n\n|\Z)', text.split("## Code")[0], flags=re.S
    )
    numbers = ((name + year, year, re.search(r"arXiv:(\d\d)\d\d\.", entry)) for name, year, entry in papers)
    return {id: f"20{number[1]}" for id, year, number in numbers if number and f"20{number[1]}" < year}


def test_a_paper_that_was_on_arxiv_earlier_says_so():
    text = " ".join((DOCS / "bibliography.md").read_text(encoding="utf-8").split())
    first = first_years()
    assert first["su2024"] == "2021" == first["press2022"]
    for id, year in first.items():
        entry = text.split(f'<span id="{id}">')[1].split("<span")[0]
        assert f"first on arXiv in {year}" in entry, id


def test_where_a_chapter_lists_its_papers_it_says_when_each_was_first():
    first, lacking = first_years(), []
    for path in CHAPTERS:
        for row in re.findall(r"^\| Papers? \|.*$", path.read_text(encoding="utf-8"), flags=re.M):
            named = [id for id in first if f"bibliography.md#{id})" in row]
            lacking += [f"{path.name}: {id}" for id in named if f"#{id}) (first in {first[id]})" not in row]
    assert lacking == []


def test_where_the_table_of_methods_names_a_paper_it_says_when_it_was_first():
    methods = tomllib.loads((ROOT / "docs" / "guide" / "choosing.toml").read_text(encoding="utf-8"))["method"]
    named = "".join(row["paper"] + "\n" for row in methods)
    assert {"su2024", "press2022"} <= {id for id in first_years() if f"#{id})" in named}
    for id, year in first_years().items():
        assert f"#{id})" not in named or f"#{id}) (first in {year})\n" in named, id


def test_every_reference_is_cited():
    ids = re.findall(r'<span id="([\w-]+)">', (DOCS / "bibliography.md").read_text(encoding="utf-8"))
    text = "".join(path.read_text(encoding="utf-8") for path in PAGES)
    assert [id for id in ids if f"bibliography.md#{id})" not in text] == []
    assert len(set(ids)) == len(ids)
