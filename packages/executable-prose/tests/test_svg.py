"""A matplotlib figure becomes inline SVG that follows the palette."""

import re
import xml.etree.ElementTree as ElementTree

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt
import numpy
import pytest

from executable_prose.figures import svg
from executable_prose.figures.standalone import standalone
from executable_prose.rendering.directives.code import described

SEARCHED_NOT = " data-search-exclude"


@pytest.fixture(autouse=True)
def house_style():
    svg.prepare()
    yield
    plt.close("all")
    matplotlib.rcdefaults()
    for name in svg.MAPS:
        matplotlib.colormaps.unregister(name)


def draw():
    """A line with markers that leaves the axes, bars, words."""
    figure, axes = plt.subplots()
    axes.plot([0, 1.23456, 2], [0, 1, 9], marker="o", label="a <b> & c")
    axes.axhline(0.5, color="gray")
    axes.bar([0, 1], [1, 2], color="C3")
    axes.set(ylim=(0, 3), xlabel="offset", ylabel="θ up")
    axes.legend()
    return figure


def drawn(figure, name="chapter.thing", alternative="What it shows."):
    shown = described(svg.to_svg(figure, name), alternative)
    assert shown.count(SEARCHED_NOT) == 1
    return shown.replace(SEARCHED_NOT, "")  # which is HTML and no XML


def elements(text, tag):
    return [element for element in ElementTree.fromstring(text).iter() if element.tag == tag]


def test_every_colour_is_a_variable_of_the_sites_style_sheet():
    text = drawn(draw())
    assert not re.search(
        r"#[0-9a-fA-F]{3,8}\b(?!\))|rgb\(|hsl\(", re.sub(r'(href="|url\()#[\w.-]+', "", text)
    )
    used = set(re.findall(r"var\((--\w+)\)", text))
    assert {"--blue", "--purple", "--muted"} <= used <= set(svg.ROLES.values())


@pytest.mark.parametrize(
    ("color", "role"),
    [("black", "--ink"), ("white", "--paper"), ("gray", "--muted"), ("C0", "--blue"), ("C1", "--orange")],
)
def test_matplotlibs_ordinary_names_are_the_roles(color, role):
    figure, axes = plt.subplots()
    axes.axis("off")
    axes.plot([0, 1], color=color)
    assert f"stroke:var({role})" in drawn(figure)


@pytest.mark.parametrize("draw_with", ["plot", "bar", "text", "hatch"])
def test_a_colour_outside_the_palette_is_refused(draw_with):
    figure, axes = plt.subplots()
    if draw_with == "plot":
        axes.plot([0, 1], color="red")
    elif draw_with == "bar":
        axes.bar([0], [1], color="#ff0000")
    elif draw_with == "text":
        axes.text(0, 0, "x", color="red")
    else:
        axes.bar([0], [1], color="red", hatch="/")
    with pytest.raises(svg.FigureError, match="the colour #ff0000, which has no place in both themes"):
        drawn(figure)


@pytest.mark.parametrize("name", svg.MAPS)
def test_images_may_use_the_two_colour_maps_and_stay_images(name):
    figure, axes = plt.subplots()
    axes.imshow(numpy.eye(3), cmap=name)
    (image,) = elements(drawn(figure), "image")
    assert image.attrib["href"].startswith("data:image/png;base64,")


def test_an_image_in_another_colour_map_is_refused():
    figure, axes = plt.subplots()
    axes.imshow(numpy.eye(3), cmap="viridis")
    with pytest.raises(svg.FigureError, match="colour map 'viridis'; expected amount or signed"):
        drawn(figure)


def test_the_data_are_what_is_drawn():
    figure, axes = plt.subplots(1, 3)
    axes[0].plot([0, 1], [2, 0.5], label="falling\nline")
    axes[0].scatter([3], [4])
    axes[0].axhline(7)
    axes[1].bar(["a"], [5])
    axes[1].barh([2], [6])
    axes[2].imshow(numpy.array([[8, 9]]))
    assert svg.data(figure).splitlines() == [
        "panel,kind,name,x,y,value",
        "1,line,falling line,0,2",
        "1,line,falling line,1,0.5",
        "1,mark,,3,4",
        "2,bar,,0,5",
        "2,bar,,6,2",
        "3,cell,,0,0,8",
        "3,cell,,1,0,9",
    ]


def test_ids_carry_the_figures_name_and_every_reference_leads_to_one():
    text = drawn(draw(), name="chapter.thing")
    ids = re.findall(r'\bid="([^"]+)"', text)
    references = re.findall(r'(?:href="#|url\(#)([^")]+)', text)
    assert len(ids) == len(set(ids))
    assert set(ids) == set(references)
    assert all(id.startswith("chapter.thing-") for id in ids)
    assert not set(ids) & set(re.findall(r'\bid="([^"]+)"', drawn(draw(), name="chapter.other")))


def test_what_leaves_the_axes_is_clipped():
    text = drawn(draw())
    (clip,) = elements(text, "clipPath")
    assert [child.tag for child in clip] == ["rect"]
    assert f'clip-path="url(#{clip.attrib["id"]})"' in text


def test_hatching_has_its_pattern():
    figure, axes = plt.subplots()
    axes.bar([0], [1], hatch="//", color="C0")
    text = drawn(figure)
    (pattern,) = elements(text, "pattern")
    assert f"fill:url(#{pattern.attrib['id']})" in text
    assert pattern.find("rect").attrib["fill"] == "var(--blue)"


def test_words_stay_words():
    words = ["".join(element.itertext()) for element in elements(drawn(draw()), "text")]
    assert "offset" in words
    assert "a <b> & c" in words


def test_tex_in_a_label_is_refused():
    figure, axes = plt.subplots()
    axes.set_xlabel(r"$\theta_i$")
    with pytest.raises(svg.FigureError, match=r"are TeX, whose small letters cannot be read; write Unicode"):
        drawn(figure)


@pytest.mark.parametrize("url", ["javascript:x()", "data:text/html,x", "file:///etc", "JAVASCRIPT:x()"])
def test_a_link_that_leads_to_no_page_is_refused(url):
    figure, axes = plt.subplots()
    axes.scatter([0], [0], urls=[url])
    with pytest.raises(svg.FigureError, match="expected a link to a page, got the url"):
        drawn(figure)


@pytest.mark.parametrize("url", ["https://example.org/a:b", "../order/#a"])
def test_an_artist_may_link_to_a_page(url):
    figure, axes = plt.subplots()
    axes.scatter([0], [0], urls=[url])
    assert [link.attrib["href"] for link in elements(drawn(figure), "a")] == [url]


def test_a_figure_of_too_many_points_is_refused():
    figure, axes = plt.subplots()
    axes.scatter(range(20_000), range(20_000))
    with pytest.raises(svg.FigureError, match=r"expected at most 500,000 characters of SVG, got .* fewer"):
        drawn(figure)


@pytest.mark.parametrize(
    ("base", "ends", "expected"),
    [
        (10, (0.001, 3000), ["0.001", "0.01", "0.1", "1", "10", "100", "1,000"]),
        (10, (2, 3), ["2", "3"]),
        (10, (1, 1e6), ["1", "10", "100", "1,000", "10,000", "1e5", "1e6"]),
        (10, (1e-8, 1e8), ["1e−8", "1e−6", "1e−4", "0.01", "1", "100", "10,000", "1e6", "1e8"]),
        (2, (1 / 2048, 1 / 2), ["1/2,048", "1/512", "1/128", "1/32", "1/8", "1/2"]),
        (2, (2**9, 2**21), ["512", "2,048", "8,192", "32,768", "131,072", "524,288", "2,097,152"]),
    ],
)
def test_numbers_at_a_logarithmic_axis_have_no_exponents(base, ends, expected):
    figure, axes = plt.subplots()
    axes.plot(ends, [0, 1])
    axes.set_xscale("log", base=base)
    axes.set(xlim=ends, yticks=[])
    assert [element.text for element in elements(drawn(figure), "text")] == expected


def test_zero_and_negative_numbers_at_a_symmetric_logarithmic_axis():
    figure, axes = plt.subplots()
    axes.plot([-100, 100], [0, 1])
    axes.set_xscale("symlog")
    axes.set_yticks([])
    words = [element.text for element in elements(drawn(figure), "text")]
    assert words == ["−100", "−10", "−1", "0", "1", "10", "100"]


def test_all_text_has_the_size_that_the_page_gives_it():
    figure, axes = plt.subplots()
    axes.plot([0, 1])
    axes.set_title("small", fontsize=5)
    axes.tick_params(labelsize=20)
    assert "font-size" not in drawn(figure)
    assert f"font-size:{svg.SIZE}px" in standalone(drawn(figure))


def test_a_narrow_figure_is_no_larger_than_others():
    figure, axes = plt.subplots(figsize=(3.4, 2))
    axes.plot([0, 1])
    assert 'viewBox="-36 0 316.8 144"' in drawn(figure)


def test_the_font_is_the_pages():
    assert "font-family" not in drawn(draw())


def test_the_page_decides_how_large_it_is():
    root = ElementTree.fromstring(drawn(draw()))
    assert not {"width", "height"} & set(root.attrib)
    assert root.attrib["viewBox"] == "0 0 316.8 194.4"


def test_it_is_an_image_with_a_text_alternative():
    root = ElementTree.fromstring(drawn(draw(), alternative='A "line" & <bars>.'))
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == 'A "line" & <bars>.'
    assert not root.findall(".//title")


def test_the_same_figure_is_the_same_bytes():
    assert drawn(draw()) == drawn(draw())


def test_no_number_has_more_than_two_decimals():
    geometry = [
        value
        for element in ElementTree.fromstring(drawn(draw())).iter()
        for key, value in element.attrib.items()
        if key in ("d", "x", "y", "transform", "points")
    ]
    assert any(re.search(r"\d\.\d\d\b", value) for value in geometry)
    assert not [value for value in geometry if re.search(r"\.\d{3}|\.0\b|\.\d0\b", value)]


def test_nothing_is_left_that_says_nothing():
    text = drawn(draw())
    assert not re.search(r"<metadata|<style|<!--|xmlns|<g>|<g />", text)
    assert len(list(ElementTree.fromstring(text).iter())) < 80


def test_a_line_of_many_points_is_simplified():
    figure, axes = plt.subplots()
    axes.plot(numpy.linspace(0, 1, 10_000), numpy.sin(numpy.linspace(0, 3, 10_000)))
    assert len(drawn(figure)) < 20_000


def test_every_role_is_set_for_both_themes():
    from executable_prose.project import DOCS

    sheet = (DOCS / "assets" / "site.css").read_text(encoding="utf-8")
    for role in svg.ROLES.values():
        assert len(re.findall(rf"{role}\s*:", sheet)) >= 2, f"{role} needs a value in light and in dark"
