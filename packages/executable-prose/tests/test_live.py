"""Live figures as the build makes them: what is exported, and what is refused with which words."""

import math

import matplotlib.pyplot as plt
import pytest
import torch
from bs4 import BeautifulSoup

from executable_prose import Choice, Live, Order, Slider
from executable_prose.figures import live_graph, live_html, svg


@pytest.fixture(scope="module", autouse=True)
def style():
    svg.prepare()


@pytest.fixture
def picture():
    """Makes a Live of a function whose "line" moves a line, and exports it."""

    def make(function, controls=None, moves=None, **words):
        fig, ax = plt.subplots()
        (line,) = ax.plot([0, 1], [0, 1])
        ax.set(xlim=(0, 10), ylim=(0, 2))
        given = Live(
            function, controls or {"base": Slider("base", 1, 9, 4)}, **{"says": "", "call": ""} | words
        )
        given.moves = moves(ax) if moves else {"line": line}
        return live_graph.drawn(fig, given, "a")["live"]

    yield make
    plt.close("all")


def straight(base):
    return {"line": torch.stack((torch.arange(2.0), torch.arange(2.0) * base), -1)}


def test_an_axis_leads_from_numbers_to_places_in_the_picture(picture):
    move = picture(straight)["moves"]["line"]
    assert move["x"][2:] == [False, 0, 10]
    assert move["x"][1] > 0 > move["y"][1], "the picture counts downwards"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{a} {b:,} {c} {g} {h} {i}", "4 1,234,567.8 -0.5 0.0137 1000000 word"),
        ("{a:.0f} of {b:,.0f}", "4 of 1,234,568"),
        ("{c:,.1f}", "\N{MINUS SIGN}0.5"),
        ("{c:,.0f} {e:.1f} {e:.2f} {f:,.2f}", "\N{MINUS SIGN}1 0.3 0.25 0.00"),
        ("{c:.1f}", "-0.5"),
        ("{g:.2f down} {g:.2f up} {g:.4f down} {g:.4f up}", "0.01 0.02 0.0137 0.0137"),
        ("{c:,.0f down} {c:,.0f up} {f:.2f up} {b:,.0f down}", "\N{MINUS SIGN}1 0 0.00 1,234,567"),
        ("{a|none|one|more}, {d|none|one|more}", "more, one"),
    ],
)
def test_words_are_filled(text, wanted):
    numbers = {"a": 4.0, "b": 1234567.8, "c": -0.5, "d": 1, "e": 0.25, "f": -0.001, "g": 0.0137, "h": 1e6}
    assert live_html.fill(text, numbers | {"i": "word"}) == wanted


def by_branch(base):
    return straight(base if base > 5 else -base)


def by_number(base):
    return straight(math.log(base))


def unlisted(base):
    return {"line": torch.stack((torch.arange(2.0), torch.erf(torch.arange(2.0) * base)), -1)}


@pytest.mark.parametrize(
    ("function", "how", "message"),
    [
        (by_branch, {}, "'line' at base=9 .* takes another way there"),
        (by_number, {}, "'line' at base=1 .* or makes a number of a control"),
        (unlisted, {}, "OPERATIONS of graph.js has no 'erf'"),
        (lambda base: {"line": torch.zeros(3) * base}, {}, r"line, has the shape \(3,\), not \(points, 2\)"),
        (lambda base: {"other": base}, {}, "nothing is returned for line"),
        (straight, {"says": "{bass:.0f}"}, "cannot fill '{bass:.0f}': .* of base"),
        (straight, {"says": "{base:d}"}, "cannot fill '{base:d}'"),
        (straight, {"says": "{base:,.1f out}"}, "cannot fill '{base:,.1f out}'"),
        (straight, {"call": "f({base:.1f})"}, "the code rounds '{base:.1f}': write {base}, the number"),
        (straight, {"texts": {"line": "{base:.0f}"}}, "texts names line, which is no text"),
    ],
)
def test_a_function_that_cannot_move_the_figure_is_refused(picture, function, how, message):
    with pytest.raises(svg.FigureError, match=message):
        picture(function, **how)


@pytest.mark.parametrize(
    ("control", "message"),
    [
        (Slider("base", 1, 9, 10.0), "'base' must go from low to high"),
        (Slider("base", 1, 9, 4, step=0), "'base' must go from low to high"),
        (Slider("base", 1, 2048, 4, log=True), "'base' .* stops at numbers of three digits"),
        (Slider("base", 1, 9, 4, drag="point"), "'base' is dragged by 'point', which does not move"),
        (Slider("base", 1, 9, 4, shows="{base:.0f}"), "cannot fill '{base:.0f}': .* of value"),
        (Choice("base", ("a",), "b"), "'base' starts with 'b'"),
        (Order("base", ("a",)), "'base' needs two cards or more, no two with the same words"),
        (Order("base", ("a", "b", "a")), "'base' needs two cards or more, no two with the same words"),
        (Choice("base", tuple("abcdefghijklmnopq"), "a"), "there are 17 combinations"),
    ],
)
def test_a_control_that_makes_no_sense_is_refused(picture, control, message):
    with pytest.raises(svg.FigureError, match=message):
        picture(straight, {"base": control})


@pytest.mark.parametrize(
    ("moves", "message"),
    [
        (lambda ax: ax.title, r"for 'line', text, has the shape \(2, 2\), not \(2,\)"),
        (lambda ax: ax.spines["left"], "'line' is a Spine; what moves is a line, points, bars, image, text"),
        (
            lambda ax: ax.imshow([[[1.0] * 3]], cmap="gray"),
            "'line' must have one of the colour maps amount and signed",
        ),
        (lambda ax: [ax.set_yscale("symlog"), ax.lines[0]][1], "scale 'symlog'"),
    ],
)
def test_what_cannot_move_is_refused(picture, moves, message):
    with pytest.raises(svg.FigureError, match=message):
        picture(straight, moves=lambda ax: {"line": moves(ax)})


def test_the_build_writes_the_words_of_texts():
    fig, ax = plt.subplots()
    live = Live(lambda base: {"rows": base - 4}, {"base": Slider("base", 1, 9, 4)}, "", "")
    live.moves["at"], live.texts["at"] = ax.text(0, 0, ""), "{rows||one|more}"
    made = live_graph.drawn(fig, live, "a")
    assert 'data-artist="at-0"' in made["figure"] and "\N{NO-BREAK SPACE}</text>" in made["figure"]
    assert made["live"]["moves"]["at"] == {"kind": "text"}, "no place is given: it stays"


def test_a_choice_has_a_graph_for_each_option(picture):
    def chosen(kind):
        return straight(torch.tensor(2.0 if kind == "double" else 1.0))

    made = picture(chosen, {"kind": Choice("kind", ("single", "double"), "single")})
    assert set(made["graphs"]) == {"single", "double"}


def reversed_line(order):
    return {"line": torch.stack((torch.arange(3.0, dtype=order.dtype), order), -1), "last": order[-1]}


def test_cards_stop_in_every_order_of_them():
    cards = {"order": Order("words", ("a", "b", "c"))}
    stops = [values for (values,) in live_graph.stops(cards, 40)]
    assert all(sorted(values) == [0, 1, 2] for values in stops) and stops[0] == [2, 1, 0]
    assert len(set(map(tuple, stops))) == 6


def test_cards_are_told_as_words_and_their_function_gets_one_tensor(picture):
    controls = {"order": Order("words", ("a", "b", "c"))}
    made = picture(reversed_line, controls, says="Now {order}, at last {last:.0f}.", call="f({order})")
    assert made["controls"] == {"order": {"label": "words", "cards": ("a", "b", "c")}}
    assert live_html.fill(made["says"], made["values"]) == "Now a b c, at last 2."
    assert made["graphs"][""]["inputs"] == 1
    live = Live(reversed_line, controls | {"base": Slider("base", 1, 9, 4)}, "")
    assert live.words({"order": [1, 2, 0], "base": 3}) == {"order": "b c a", "base": 3}


def test_cards_stand_above_the_picture_and_are_words_without_scripts():
    order = {"label": "the <words>", "cards": ("a", "<b>")}
    live = {"controls": {"order": order}, "says": "", "call": "", "title": "", "values": {}}
    shown = BeautifulSoup(live_html.cards("chapter.figure", live), "html.parser").span
    assert shown["role"] == "group" and shown["id"] == "chapter.figure.order"
    assert shown["aria-label"] == "the <words>"
    assert [(card.text, card.has_attr("disabled")) for card in shown("button")] == [
        ("a", True),
        ("<b>", True),
    ]
    below = live_html.shown("chapter.figure", live)
    assert "<button" not in below and "<details" not in below, (
        "neither cards again nor code that is not there"
    )


def test_the_controls_stand_in_the_page(picture):
    controls = {
        "base": Slider("a base", 1, 1e6, 1e4, log=True, shows="{value:,.0f} words"),
        "kind": Choice("a kind", ("<a>", "b"), "b"),
        "many": Choice("one of many", tuple("cdefg"), "d"),
    }
    made = picture(
        lambda base, kind, many: straight(base), controls, says="Base {base:,.0f}, {kind}.", call="f()"
    )
    shown = live_html.shown("chapter.figure", made)
    assert '<label for="chapter.figure.base">a base</label>' in shown
    assert 'min="0" max="6" step="any" value="4" aria-valuetext="10,000 words"' in shown
    assert 'aria-label="Play: a base"' in shown
    assert '<button type="button" value="&lt;a&gt;" aria-pressed="false">&lt;a&gt;</button>' in shown
    assert '<select id="chapter.figure.many"><option>c</option><option selected>d</option>' in shown
    assert '<p class="says" aria-live="polite">Base 10,000, b.</p>' in shown
    shown = live_html.shown("chapter.figure", made | {"call": "f({base})"})
    assert "<summary>The code that gives this</summary>" in shown and "<code>f(10000)</code>" in shown
