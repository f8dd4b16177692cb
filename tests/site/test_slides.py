"""The slides of the lesson: pictures that an <img> shows, and room for all on each."""

import links
import pytest

pytestmark = pytest.mark.browser


def test_slides_show_their_pictures_have_room_and_lead_somewhere(visits, origin, built, report):
    report("slides/", links.page(built, "slides/"), "links")
    with visits.lend(f"{origin}/guide-base/") as visit:
        visit.go("slides/").settle()
        widths = visit.page.evaluate("[...document.images].map((each) => each.naturalWidth)")
        assert len(widths) > 5 and set(widths) == {640}, "an <img> shows the files that people take away"
        visit.fit((1280, 720))
        high = visit.page.evaluate(
            "[...document.querySelectorAll('section')].map((each) => each.offsetHeight)"
        )
        assert set(high) == {720}
        visit.fit((360, 740))
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= 360
        assert visit.problems == []
