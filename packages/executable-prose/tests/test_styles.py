"""Style sheets without what no page can use."""

import pytest

from executable_prose.site import styles

NAMES = {"here", "there", "note"}


@pytest.mark.parametrize(
    ("sheet", "kept"),
    [
        (".here{a:b}.gone{a:b}", ".here{a:b}"),
        (".here,.gone{a:b}", ".here{a:b}"),
        (".here .gone,.there>.here{a:b}", ".there>.here{a:b}"),
        ("#gone{a:b}p{a:b}", "p{a:b}"),
        (".here:not(.gone,.lost){a:b}", ".here:not(.gone,.lost){a:b}"),
        (":is(.gone,.here) p{a:b}", ":is(.gone,.here) p{a:b}"),
        ("[dir=ltr] p,[dir=rtl] p{a:b}", "[dir=ltr] p{a:b}"),
        ("@media print{.gone{a:b}}@media print{.gone{a:b}p{a:b}}", "@media print{p{a:b}}"),
        ("@supports (a:b){@media print{.here{a:b}}}", "@supports (a:b){@media print{.here{a:b}}}"),
        ("@keyframes gone{from{a:b}to{a:b}}@font-face{src:url(a.woff2)}", None),
        ('@charset "UTF-8";p{content:"};{.gone"}', None),
        (":root{--x:url(\"data:image/svg+xml;charset=utf-8,<svg a='}'/>\")}", None),
        ("", None),
    ],
)
def test_a_rule_stays_if_some_element_may_have_its_names(sheet, kept):
    assert styles.without_unused(sheet, NAMES) == (sheet if kept is None else kept)


def test_a_language_from_right_to_left_keeps_its_rules():
    rule = "[dir=rtl] .here{a:b}"
    assert styles.without_unused(rule, {*NAMES, styles.RIGHT_TO_LEFT}) == rule


def test_a_site_keeps_what_its_pages_and_scripts_name(tmp_path):
    theme = tmp_path / "assets" / "stylesheets"
    theme.mkdir(parents=True)
    (tmp_path / "index.html").write_text('<p class="page" style="mask:var(--page)">')
    (tmp_path / "assets" / "own.js").write_text('element.classList.add("script");')
    (tmp_path / "assets" / "own.css").write_text("/* A word. */\np {\n  color: red; /* And one. */\n}\n")
    pictures = ':root{--page:url("a)b");--sheet:url(b);--gone:url(c);--colour:red}'
    (theme / "main.css").write_text(
        f"{pictures}.page{{mask:var(--sheet)}}.script{{a:b}}.gone{{mask:var(--gone)}}"
    )
    styles.shorten(tmp_path)
    kept = ':root{--page:url("a)b");--sheet:url(b);--colour:red}'
    assert (theme / "main.css").read_text() == f"{kept}.page{{mask:var(--sheet)}}.script{{a:b}}"
    assert (tmp_path / "assets" / "own.css").read_text() == "p {\ncolor: red; }\n"
