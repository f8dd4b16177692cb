"""The list of claims, as a reader narrows it."""

import pytest

pytestmark = pytest.mark.browser


def test_claims_can_be_narrowed_to_those_with_some_words(visit):
    page = visit("claims/").page
    field, told = page.locator(".filter"), page.locator(".counted")
    before = told.inner_text()
    field.fill("rope OFFSET")
    shown = page.locator("article p:has(> strong):visible, article p:has(> a[href^='#']:first-child):visible")
    texts = shown.all_inner_texts()
    assert texts and all("rope" in text.lower() and "offset" in text.lower() for text in texts)
    assert told.inner_text().endswith(" with these words.")
    assert page.locator("article h2:visible").count() < page.locator("article h2").count()
    field.fill("")
    assert told.inner_text() == before
    assert page.locator("article h2:visible").count() == page.locator("article h2").count()
