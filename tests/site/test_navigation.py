"""The list of pages beside the text: all of its links can be seen and touched."""

import pytest

pytestmark = pytest.mark.browser

# Of each link in the window, what lies over it: at its middle and at its ends, a pixel inside.
OVER = """() => {
  const room = document.querySelector('.md-sidebar--primary .md-sidebar__scrollwrap').getBoundingClientRect();
  const links = [...document.querySelectorAll('.md-nav--primary a.md-nav__link')].filter((link) => {
    const box = link.getBoundingClientRect();
    const seen = link.checkVisibility({ visibilityProperty: true });
    return seen && box.top >= room.top && box.bottom <= room.bottom;
  });
  return [links.length, links.flatMap((link) => {
    const { left, right, top, bottom } = link.getBoundingClientRect();
    const [x, y] = [(left + right) / 2, (top + bottom) / 2];
    const points = [[left + 1, y], [x, top + 1], [x, bottom - 1]];
    return points.map(([x, y]) => document.elementFromPoint(x, y)).filter((over) => !link.contains(over))
      .map((over) => `${over?.className} over ${link.textContent.trim()}`);
  })];
}"""


@pytest.mark.parametrize("where", ["guide/census/", "guide/rope/", "glossary/"])
@pytest.mark.parametrize("width", [1280, 1440])
def test_nothing_lies_over_a_link_of_the_sidebar(visit, where, width):
    page = visit(where).page
    page.set_viewport_size({"width": width, "height": 900})
    name = page.locator(".md-nav--primary > .md-nav__title")
    assert name.count() == 1 and not name.is_visible(), "the header beside it says it"
    for share in (0, 0.5, 1):
        page.evaluate(
            """(share) => {
              const list = document.querySelector('.md-sidebar--primary .md-sidebar__scrollwrap');
              list.scrollTop = share * (list.scrollHeight - list.clientHeight);
            }""",
            share,
        )
        links, over = page.evaluate(OVER)
        assert links > 3
        assert over == []


def test_the_list_of_hits_is_a_stop_of_the_keyboard_only_while_it_is_seen(visit):
    page = visit("glossary/").page
    hits = page.locator(".md-search__scrollwrap")
    focused = "(each) => { each.focus(); return document.activeElement === each; }"
    assert not hits.evaluate(focused)
    page.locator("[data-md-component=search-query]").focus()
    page.wait_for_function(f"(each) => ({focused})(each)", arg=hits.element_handle())
