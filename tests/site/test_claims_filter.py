"""The list of claims and the register of faults, as a reader narrows them."""

import pytest

pytestmark = pytest.mark.browser

# The texts of what can be seen: one question, as the page has thousands of paragraphs.
SHOWN = """(what) => [...document.querySelectorAll(what)].filter((each) => each.checkVisibility()).map(
  (each) => each.innerText)"""


def test_claims_can_be_narrowed_to_those_with_some_words(visit):
    page = visit("claims/").page
    field, told = page.locator(".filter"), page.locator(".counted")
    before = told.inner_text()
    field.fill("rope OFFSET")
    texts = page.evaluate(SHOWN, "article p:has(> strong), article p:has(> a[href^='#']:first-child)")
    assert texts and all("rope" in text.lower() and "offset" in text.lower() for text in texts)
    assert told.inner_text().endswith(" with these words.")
    headings = page.locator("article h2").count()
    assert len(page.evaluate(SHOWN, "article h2")) < headings
    field.fill("")
    assert told.inner_text() == before
    assert len(page.evaluate(SHOWN, "article h2")) == headings


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

    field.fill("srcIndex <")  # of a message, in no title
    assert shown.count() == 1 and "srcIndex < srcSelectDimSize" in more.inner_text()
    assert told.inner_text() == f"{all_rows} entries, 1 with these words."
    assert page.locator(".register h3:visible").count() == 1
    field.fill("")

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


def test_a_row_of_the_register_leads_to_its_entry(visit):
    page = visit("guide/broken/").page
    page.locator(".register p a", has_text="Left padding counted as positions").click()
    page.wait_for_url("**/broken/batches/#padding-counted")
    assert page.locator("h2#padding-counted").is_visible()
