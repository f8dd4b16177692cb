"""The list of claims and the register of faults, as a reader narrows them."""

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

# The texts of what can be seen: one question, as the page has thousands of paragraphs.
ERROR = "IndexError: index out of range in self " + "x" * 10_000
SHOWN = """(what) => [...document.querySelectorAll(what)].filter((each) => each.checkVisibility()).map(
  (each) => each.innerText)"""


def test_claims_can_be_narrowed_to_those_with_some_words(visit):
    page = visit("claims/").page
    field, told = page.locator(".filter"), page.locator(".counted")
    before, order = told.inner_text(), page.locator("article").inner_text()
    folds = page.locator("details.chapter")
    assert folds.count() > 20 and page.locator("details.chapter[open]").count() == 0
    field.fill("rope OFFSET")
    expect(told).to_have_text(re.compile(r" with these words\.$"))
    texts = page.evaluate(SHOWN, "article p.held, article p:has(> a[href^='#']:first-child)")
    assert len(texts) > 3 and all("rope" in text.lower() and "offset" in text.lower() for text in texts)
    assert page.evaluate(SHOWN, "article h2") == []
    field.fill("")
    expect(told).to_have_text(before)
    assert page.locator("article").inner_text() == order


def test_a_link_to_a_claim_opens_its_fold_with_and_without_scripts(visit):
    for javascript in (True, False):
        page = visit("claims/#evidence-rope-by-recipe", javascript=javascript).page
        claim = page.locator("p#evidence-rope-by-recipe")
        expect(claim).to_be_visible()
        expect(claim).to_be_in_viewport()
        assert page.locator("details.chapter[open]").count() == 1


def test_the_register_can_be_narrowed_by_words_of_an_error_and_by_choices(visit):
    page = visit("guide/broken/").page
    field, told, rows = (
        page.locator(".filter[type=search]"),
        page.locator(".counted"),
        page.locator(".register p:not(.counted)"),
    )
    before, all_rows = told.inner_text(), rows.count()
    stage, library = page.get_by_label("Only one stage"), page.get_by_label("Only one library")
    shown = page.locator(".register p:not(.counted):visible")
    more = page.locator(".register .more:visible")
    assert shown.count() == all_rows > 50 and more.count() == 0

    field.fill("srcSelectDimSize")  # of a message, in no title
    expect(told).to_have_text(re.compile(r"with these words\.$"))
    assert shown.count() < all_rows and "srcIndex < srcSelectDimSize" in more.first.inner_text()
    assert page.locator(".register h3:visible").count() == 0
    field.fill("")
    expect(told).to_have_text(before)

    stage.select_option("Images and video")
    of_images = shown.count()
    assert 5 < of_images < all_rows and page.locator(".register h3:visible").count() == 1
    library.select_option("timm")
    assert 0 < shown.count() < of_images and all("timm" in text for text in shown.all_inner_texts())
    assert told.inner_text().endswith(f", {shown.count()} of these.")
    page.locator("article h2", has_text="Validation of the checker").wait_for()  # the filter stops here
    stage.select_option("")
    library.select_option("")
    assert told.inner_text() == before and shown.count() == all_rows and more.count() == 0


@pytest.mark.parametrize(
    ("where", "words", "first"),
    [
        (
            "guide/broken/",
            "output is garbage after 4096 tokens",
            "LongRoPE switches its factors in the middle",
        ),
        ("guide/broken/", "131072", "YaRN's factor applied again"),
        ("guide/broken/", "gibberish after conversion", "Key weights permuted with the wrong number"),
        (
            "guide/broken/",
            "IndexError: index out of range in self " + "x" * 10_000,
            "max_position_embeddings is 514",
        ),
    ],
)
def test_rows_are_found_by_what_people_type(visit, where, words, first):
    page = visit(where).page
    told = page.locator(".counted").inner_text()
    page.locator(".filter[type=search]").fill(words)
    expect(page.locator(".counted")).not_to_have_text(told)
    texts = page.evaluate(SHOWN, ".register p:not(.counted)")
    assert any(text.startswith(first) for text in texts[:3]), texts[:3]


@pytest.mark.parametrize("words", ["zzzzzz", "🙂", "<b>zz</b>", "موضع"])
def test_words_that_no_row_has_leave_all_of_them(visit, words):
    page = visit("guide/broken/").page
    rows = page.locator(".register p:not(.counted)").count()
    page.locator(".filter[type=search]").fill(words)
    expect(page.locator(".counted")).to_have_text(f"{rows} entries, 0 with these words, so all are shown.")
    assert page.locator(".register p:not(.counted):visible").count() == rows


def test_a_row_of_the_register_leads_to_its_entry(visit):
    page = visit("guide/broken/").page
    page.locator(".register p a", has_text="Left padding counted as positions").click()
    page.wait_for_url("**/broken/batches/#padding-counted")
    assert page.locator("h2#padding-counted").is_visible()
