"""In plain words, Basic, Intermediate, Advanced: what the depth control and the blocks do."""

import re

import levels
import pytest

pytestmark = pytest.mark.browser

HOW = [("light", "desktop"), ("dark", "phone")]


@pytest.fixture(params=HOW, ids="-".join)
def how(request):
    theme, window = request.param
    return {"theme": theme, "window": window}


@pytest.fixture
def chapters(built):
    """The first chapters in the site, two of them where there are two."""
    if not built.chapters:
        pytest.fail("no page of the site has details[class*=level-]", pytrace=False)
    return built.chapters[0], built.chapters[-1]


def test_some_pages_have_levels(built):
    assert built.chapters, "no page of the site has details[class*=level-]"


def test_no_reader_meets_another_name_of_a_level(built):
    """Its name in sources is left in classes, addresses and what a control sends."""
    code = re.compile(r'[\w-]+-layman\b|\blevel=layman\b|\bvalue="?layman\b')
    files = [
        file for file in built.root.rglob("*") if file.suffix in (".html", ".json", ".md", ".txt", ".xml")
    ]
    assert len(files) > 2 * len(built.pages)
    told = [file for file in files if "layman" in code.sub("", file.read_text(encoding="utf-8").lower())]
    assert told == []


def test_blocks_are_well_formed(built, report, chapter):
    report(chapter, levels.blocks_are_well_formed(built.soup(chapter)), "HTML")


@pytest.mark.parametrize("width", [320, 360, 390, 600, 768, 1000, 1280, 1440])
def test_the_control_has_room_for_its_names(visit, report, chapters, width):
    page = visit(chapters[0])
    page.page.set_viewport_size({"width": width, "height": 844})
    report(chapters[0], levels.control(page), f"{width} px")


@pytest.mark.parametrize("level", ["layman", "advanced"])
def test_choice_is_remembered(visit, report, chapters, how, level):
    first, last = chapters
    page = visit(first, **how)
    problems = levels.remembered(page, first, last if last != first else "", level)
    report(first, problems + page.problems, *how.values())


def test_level_in_the_address(visit, report, chapters, how):
    first, last = chapters
    page = visit("", **how)
    problems = levels.asked_in_address(page, first, last)
    report(first, problems + page.problems, *how.values())


def test_a_choice_keeps_the_place(visit, report, chapters, how):
    page = visit(chapters[-1], **how)
    report(chapters[-1], levels.keeps_the_place(page) + page.problems, *how.values())


@pytest.mark.slow
def test_a_chapter_at_basic_is_a_handout_of_ten_sheets_at_most(visit, chapter):
    page = visit(f"{chapter}?level=basic").page
    page.emulate_media(media="print")
    sheets = re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))
    assert 1 < len(sheets) <= 10


def test_heading_is_not_covered(visit, report, chapters, how):
    page = visit(chapters[0], **how)
    report(chapters[0], levels.shows_the_heading(page) + page.problems, *how.values())


def test_nonsense_in_storage(visit, report, chapters, how):
    page = visit(chapters[0], **how)
    problems = levels.survives_nonsense_in_storage(page, chapters[0])
    report(chapters[0], problems + page.problems, *how.values())


def test_deep_links(visit, report, chapters, how):
    page = visit(chapters[0], **how)
    problems = levels.deep_links(page, chapters[0])
    report(chapters[0], problems + page.problems, *how.values())


def test_search_hits(built, visit, report, chapters, how):
    chapter, word = _chapter_with_rare_word(built)
    page = visit("", **how)
    problems = levels.search_hit_in_address(page, chapter, word)
    problems += levels.search_dialog(page, chapter, word)
    report(chapter, problems + page.problems, *how.values())


def _chapter_with_rare_word(built):
    for chapter in built.chapters:
        word = levels.word_only_in(built, chapter)
        if word:
            return chapter, word
    pytest.fail("no word of the site stands in one advanced block only", pytrace=False)


def test_keyboard(visit, report, chapters, how):
    page = visit(chapters[0], **how)
    report(chapters[0], levels.keyboard(page, chapters[0]) + page.problems, *how.values())


def test_printing_changes_nothing(visit, report, chapters):
    page = visit(chapters[0])
    report(chapters[0], levels.printing_changes_nothing(page) + page.problems, "print")


def test_paper_says_what_is_folded(visit, chapters):
    page = visit(chapters[0]).page
    page.emulate_media(media="print")
    said = page.evaluate(
        """[...document.querySelectorAll("details[class*=level-]")].map((block) => {
          const after = getComputedStyle(block.querySelector("summary"), "::after");
          return [block.open, after.content.includes("folded")];
        })"""
    )
    assert {opened for opened, _ in said} == {True, False}
    assert all(folded is not opened for opened, folded in said)
