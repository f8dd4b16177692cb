"""Every live figure, in the browser: it has the numbers that torch gives, wherever its controls stand."""

import functools
import gzip
import importlib
import itertools
import json
import math
import re
import statistics
import time
from urllib.parse import parse_qs, urlsplit

import pytest
import torch
from built import SITE
from firefox import Firefox
from visits import DESKTOP, PHONE, ask

from executable_prose.execution.run_exhibit import seed
from executable_prose.figures import live_graph, svg
from executable_prose.figures.live_html import fill

pytestmark = pytest.mark.browser

STOPS = 20  # at random at least, besides the ends
FRAMES, ROUNDS = 8, 3  # that are timed, and how often: the best of each counts
ROUNDING = 0.006  # of a coordinate in the picture, in points
SLOWER, FRAME = 4, 50  # times, and milliseconds that a frame may take then
TOUCH = 44  # pixels
SCRIPT = 5000  # bytes, compressed

FIGURE = re.compile(r'<figure\b[^>]*\bdata-live="([^"]+)"')

# What the figure shows: as it is, and after its controls were set in each of these ways.
SHOWN = """async ([name, settings]) => {
  const figure = document.querySelector(`figure[data-live="${name}"]`);
  const numbers = (mark) => ["x", "y"].map((axis) => Number(mark.getAttribute(axis)));
  const pixels = async (href) => {
    const image = Object.assign(new Image(), { src: href });
    await image.decode();
    const { naturalWidth: width, naturalHeight: height } = image;
    const context = new OffscreenCanvas(width, height).getContext("2d");
    context.drawImage(image, 0, 0);
    return [...context.getImageData(0, 0, width, height).data];
  };
  const read = async (group) => [group.dataset.artist, {
    d: group.querySelector(":scope > path")?.getAttribute("d"),
    marks: [...group.querySelectorAll("use:not([visibility=hidden])")].map(numbers),
    text: [...group.querySelectorAll("text")].map((text) => [text.textContent, ...numbers(text)])[0],
    pixels: group.tagName === "image" ? await pixels(group.getAttribute("href")) : null,
  }];
  const shown = [];
  for (const values of [null, ...settings]) {
    for (const [key, value] of Object.entries(values ?? {})) figure.set(key, value);
    if (values) figure.draw();
    shown.push({
      made: Object.entries(figure.made ?? {}).map(([key, x]) => [key, x.shape, [...x.data].map(String)]),
      artists: Object.fromEntries(await Promise.all([...figure.querySelectorAll("[data-artist]")].map(read))),
      says: figure.querySelector(".says").textContent,
      call: figure.querySelector(".live code")?.textContent ?? "",
    });
  }
  return shown;
}"""
READY = "() => [...document.querySelectorAll('figure[data-live]')].every((figure) => figure.set)"
MOVED = "(name) => Boolean(document.querySelector(`figure[data-live='${name}']`).made)"
# Whether the picture is still what the file says, as a reader without scripts sees it.
AS_BUILT = """async (name) => {
  const file = new DOMParser().parseFromString(await (await fetch(location)).text(), "text/html");
  const [built, now] = [file, document].map((page) => page.querySelector(`figure[data-live="${name}"] svg`));
  return built.outerHTML === now.outerHTML;
}"""
# What of the figure's text lies under the mark that opens its code.
UNDER_THE_MARK = """([name, open]) => {
  const figure = document.querySelector(`figure[data-live="${name}"]`);
  for (const fold of figure.querySelectorAll("details")) fold.open = open;
  const mark = figure.nextElementSibling.querySelector("summary").getBoundingClientRect();
  const texts = document.createTreeWalker(figure, NodeFilter.SHOW_TEXT), under = [];
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    if (!text.parentElement.checkVisibility()) continue;
    for (const { 0: word, index } of text.data.matchAll(/\\S+/g)) {
      const range = document.createRange();
      range.setStart(text, index);
      range.setEnd(text, index + word.length);
      const met = [...range.getClientRects()].some((box) =>
        box.left < mark.right && box.right > mark.left && box.top < mark.bottom && box.bottom > mark.top);
      if (met) under.push(word);
    }
  }
  return mark.width ? under : ["there is no mark"];
}"""
# How wide what is drawn is and how high, what of the figure's box is empty, and sizes of its text.
ROOM = """(name) => {
  const figure = document.querySelector(`figure[data-live="${name}"]`), svg = figure.querySelector("svg");
  const [picture, controls] = [svg, figure.querySelector(".live")].map((one) => one.getBoundingClientRect());
  const scale = Math.abs(svg.getScreenCTM().a), texts = [...svg.querySelectorAll("text")];
  const sizes = texts.map((text) => parseFloat(getComputedStyle(text).fontSize) * scale);
  const box = figure.getBoundingClientRect(), beside = controls.left >= picture.right;
  return { wide: picture.width, high: picture.height, least: Math.min(...sizes), most: Math.max(...sizes),
           hole: beside ? box.bottom - picture.bottom : controls.top - picture.bottom };
}"""
TIMES = """([name, settings]) => {
  const figure = document.querySelector(`figure[data-live="${name}"]`);
  return settings.map((values) => {
    const began = performance.now();
    for (const [key, value] of Object.entries(values)) figure.set(key, value);
    figure.draw();
    figure.getBoundingClientRect();
    return performance.now() - began;
  });
}"""


def pytest_generate_tests(metafunc):
    if "name" in metafunc.fixturenames:
        found = live_figures()
        metafunc.parametrize("where, name", found, ids=[name for _, name in found], scope="module")


def live_figures():
    """(page, name) of each."""
    known = {path: SITE.file(path).read_text("utf-8") for path in SITE.pages} if SITE.exists else {}
    return [(path, name) for path in known for name in FIGURE.findall(known[path])]


@pytest.fixture(scope="module")
def lively(visits, origin, built, where):
    """The page of a figure, loaded once for the tests of all its figures, with every fold open."""
    with visits.lend(origin + built.base) as visit:
        page = visit.go(where).page
        page.wait_for_function(READY)
        visit.ask("openAll")
        yield page


@functools.cache
def exhibited(name):
    """What makes the figure live, from the exhibit itself."""
    svg.prepare()
    seed()
    module, _, function = name.partition(".")
    returned = getattr(importlib.import_module(f"exhibits.{module}"), function)()
    return next(part for part in returned if type(part).__name__ == "Live")


def sent(where, name):
    """What the page knows of it."""
    return json.loads(SITE.soup(where).select_one(f'figure[data-live="{name}"] script').string)


def settings(live):
    """Values of all controls: with each choice every other control at its ends, and all of them at random."""
    moved, choices = live_graph.inputs(live), live_graph.combinations(live)
    return [
        dict(zip(moved, values, strict=True)) | chosen
        for number, chosen in enumerate(choices)
        for values in live_graph.stops(moved, math.ceil(STOPS / len(choices)), seed=number + 1)
    ]


def test_the_first_picture_is_the_one_that_was_built(lively, name):
    """A script that has nothing to do changes nothing."""
    assert lively.evaluate(AS_BUILT, name)


@pytest.mark.claim(
    "live-figures-have-the-numbers-of-torch",
    "The numbers of every interactive figure come from the files of this guide: at every setting of its "
    "controls, they are those that its function returns in torch, within a stated tolerance.",
)
def test_the_figure_has_the_numbers_of_torch(lively, report, where, name):
    report(where, disagreements(lively.evaluate, where, name), name)


def disagreements(evaluate, where, name):
    """Where the figure, open in a browser that evaluates functions, is not what torch says."""
    live, moves = exhibited(name), sent(where, name)["moves"]
    (_, start, built), *moved = seen(evaluate, name)
    problems = [f"as built: {each}" for each in misplaced(moves, start, built, built, live)]
    for values, expected, shown in moved:
        faults = [*far_off(expected, shown, live), *misplaced(moves, expected, shown, built, live)]
        faults += misnamed(values, shown, live)
        problems += [f"at {values}: {fault}" for fault in faults]
    return problems[:10]


def seen(evaluate, name):
    """As built and at each stop: the values of all controls, what torch gives and what the figure shows."""
    live = exhibited(name)
    asked = settings(live)
    for values, shown in zip([None, *asked], evaluate(SHOWN, [name, asked]), strict=True):
        tensors = {
            key: value if isinstance(value, str) else torch.tensor(value, dtype=torch.float64)
            for key, value in (values or {}).items()
        }
        yield values, live.function(**tensors) if values else live.start(), shown


def far_off(expected, shown, live):
    """Numbers that are not those of torch."""
    for key, shape, data in shown["made"]:
        if shape != list(expected[key].shape):
            yield f"{key} is {shape}, not {list(expected[key].shape)}"
        elif not (far := apart(data, expected[key])) <= live.tolerance:
            yield f"{key} is {far:.3g} from torch's, tolerance {live.tolerance:g}"


def apart(data, wanted):
    """The largest difference between numbers of the page, as text, and a tensor."""
    made = torch.tensor([float(each.replace("Infinity", "inf")) for each in data], dtype=torch.float64)
    wanted = wanted.double().flatten()
    return torch.where(made == wanted, 0, (made - wanted).abs()).max().item()


def misplaced(moves, expected, shown, built, live):
    """What does not stand in the picture where the axes have the numbers."""
    for key, move in moves.items():
        if key not in expected:
            continue  # a text that stays in its place
        parts = [part for name, part in shown["artists"].items() if re.fullmatch(rf"{key}-\d+", name)]
        given, wanted = stands(move["kind"], parts), places(move, expected[key].tolist())
        room = 8 if move["kind"] == "image" else ROUNDING + 1e3 * live.tolerance
        if move["kind"] == "text":  # the words keep their place beside the point
            first = places(move, live.start()[key].tolist())
            words = stands("text", [built["artists"][f"{key}-0"]])
            wanted = [w + at - begin for w, at, begin in zip(wanted, words, first, strict=True)]
        if shown is built and move["kind"] == "line":
            continue  # matplotlib leaves out points that nobody would see
        if len(given) != len(wanted):
            yield f"{key} has {len(given)} numbers in the picture, not {len(wanted)}"
        elif given and (far := max(abs(a - b) for a, b in zip(given, wanted, strict=True))) > room:
            yield f"{key} lies {far:.3g} from its place in the picture"


def stands(kind, parts):
    """Coordinates of an artist in the picture; of an image how strong each cell is, below zero if blue."""
    if kind == "text":
        return parts[0]["text"][1:]
    if kind == "bars":
        return [_path(part["d"])[5] for part in parts]
    if kind == "image":
        red, _green, blue, strength = (parts[0]["pixels"][n::4] for n in range(4))
        return [a if r > b else -a for r, b, a in zip(red, blue, strength, strict=True)]
    return _path(parts[0]["d"]) if parts[0]["d"] else list(itertools.chain(*parts[0]["marks"]))


def _path(d):
    return [float(number) for number in re.findall(r"-?[\d.]+", d)]


def places(move, numbers):
    """The same of what torch gives."""
    if move["kind"] == "bars":
        return [_place(move["y"], number) for number in numbers]
    if move["kind"] == "image":
        low, high = move["limits"]
        rows = numbers[::-1] if move["upwards"] else numbers
        shares = [min(max((number - low) / (high - low), 0), 1) for number in itertools.chain(*rows)]
        return [255 * (2 * share - 1 if move["map"] == "signed" else -share) for share in shares]
    rows = [row for row in ([numbers] if move["kind"] == "text" else numbers) if all(map(math.isfinite, row))]
    return [_place(move["xy"[n]], number) for row in rows for n, number in enumerate(row)]


def _place(axis, number):
    start, slope, log = axis[:3]
    return start + slope * (math.log10(number) if log else number)


def misnamed(values, shown, live):
    """Words that do not say what is seen; they round, so they are compared with the figure's own numbers."""
    numbers = {key: float(data[0]) for key, _, data in shown["made"] if key not in live.moves}
    words = {key: shown["artists"][f"{key}-0"]["text"][0] for key in live.texts}
    for text, said in [
        (live.says, shown["says"].removesuffix(" Part of it lies outside the picture.")),
        (live.call, shown["call"]),
        *((live.texts[key], words[key]) for key in words),
    ]:
        if (wanted := fill(text, live.words(values) | numbers)) != said:
            yield f"it says {said!r}, not {wanted!r}"


FILLED = (
    "{a} {a:,} {a:.0f} {a:,.1f} {a:.2f} {a:.2f up} {a:.2f down} {a:,.1f up} {a:,.0f down} {word} "
    "{count|none|one|more}"
)


def test_its_words_are_filled_as_the_build_fills_them(visit, played):
    """One of the two fills them in the file, the other when a control moves."""
    page = visit(played[0]).page
    numbers = [0, 1, -0.001, 0.29, 0.005, 0.0137, -0.25, 2.675, 21.3, 99.995, -6.7, 999.96, 1234567.891, 1e6]
    values = [{"a": float(a), "count": n % 4, "word": "RoPE"} for n, a in enumerate(numbers)]
    asked = """async ([text, all]) => {
      const { src } = document.querySelector("script[src*='site.js']");
      const { fill } = await import(new URL("live.js", src));
      return all.map((values) => fill(text, values));
    }"""
    assert page.evaluate(asked, [FILLED, values]) == [fill(FILLED, each) for each in values]


@pytest.mark.parametrize("window", [(1440, 900), (390, 844)], ids=["laptop", "phone"])
def test_the_mark_that_opens_the_code_lies_on_no_text(lively, report, where, name, window):
    resize(lively, window)
    under = [word for open in (True, False) for word in lively.evaluate(UNDER_THE_MARK, [name, open])]
    resize(lively, DESKTOP)
    report(where, under, name)


def test_on_a_laptop_it_is_large_and_its_controls_leave_no_hole(lively, name):
    resize(lively, (1440, 900))
    lively.evaluate("document.querySelectorAll('.live details').forEach((fold) => { fold.open = false; })")
    room = lively.evaluate(ROOM, name)
    resize(lively, DESKTOP)
    first = not exhibited(name).call  # the first screen, which shows no code, speaks louder
    assert 640 <= room["wide"] <= (860 if first else 760) and room["high"] <= 540 and room["hole"] < 150, room
    assert room["least"] >= 12 and room["most"] <= (28 if first else 16), room


def test_in_plain_words_it_offers_no_code(lively, name):
    code = lively.locator(f'figure[data-live="{name}"] .live code')
    lively.evaluate("document.querySelectorAll('.live details').forEach((fold) => { fold.open = true; })")
    plain = lively.evaluate(
        f"""Boolean(document.querySelector('.level-layman figure[data-live="{name}"]'))"""
    )
    assert code.is_visible() == bool(exhibited(name).call and not plain)


@pytest.fixture(scope="session")
def firefox():
    with Firefox() as browser:
        yield browser


@pytest.mark.slow
def test_in_firefox_too_it_has_the_numbers_of_torch(firefox, origin, built, report, where, name):
    firefox.open(origin + built.base + where)
    while not firefox.evaluate(READY):
        time.sleep(0.05)
    report(where, disagreements(firefox.evaluate, where, name), name)


@pytest.mark.slow
def test_a_frame_is_fast_on_a_slow_processor(lively, name):
    assert frame(lively, name) <= FRAME


def frame(page, name):
    """Milliseconds from a control to the picture, with the processor slowed."""
    timed = settings(exhibited(name))[:FRAMES]
    devtools = page.context.new_cdp_session(page)
    devtools.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
    times = page.evaluate(TIMES, [name, timed * ROUNDS])
    devtools.send("Emulation.setCPUThrottlingRate", {"rate": 1})  # other tests lend this page, too
    return statistics.median(min(times[n :: len(timed)]) for n in range(len(timed)))


def test_what_is_dragged_moves_its_control(lively, where, name):
    begin(lively, name)
    picture = lively.locator(f'figure[data-live="{name}"] svg')
    picture.evaluate("(picture) => picture.scrollIntoView({ block: 'center', behavior: 'instant' })")
    for key, control in sent(where, name)["controls"].items():
        if control.get("drag"):
            slider = lively.locator(f'[id="{name}.{key}"]')
            before, whole = slider.input_value(), picture.bounding_box()
            part = picture.locator(f'[data-artist="{control["drag"]}-0"]').bounding_box()
            here = _middle(part)
            lively.mouse.move(*here)
            lively.mouse.down()
            sides = zip(here, _middle(whole), (whole["width"], whole["height"]), strict=True)
            lively.mouse.move(*(at + math.copysign(side / 4, to - at) for at, to, side in sides))
            lively.mouse.up()
            assert slider.input_value() != before, key


def begin(page, name):
    """Set every control to its start."""
    controls = exhibited(name).controls
    page.evaluate(TIMES, [name, [{key: control.start for key, control in controls.items()}]])


def _middle(box):
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


CARDS = '[id="{}.{}"].cards'


@pytest.fixture(scope="module")
def dealt():
    """(page, name of a figure, key of its cards, how many they are) of a figure with cards."""
    for where, name in live_figures():
        for key, control in sent(where, name)["controls"].items():
            if "cards" in control:
                return where, name, key, len(control["cards"])
    pytest.fail("no figure has cards")


@pytest.fixture
def row(visit, dealt):
    """A row of cards on a page that is opened for this test alone: what it says, and what the figure has."""
    where, name, key, _ = dealt

    def dealt_on(**how):
        page = visit(where, **how).page
        page.wait_for_function(READY)
        cards = page.locator(CARDS.format(name, key))
        cards.evaluate("(row) => row.scrollIntoView({ block: 'center', behavior: 'instant' })")
        return page, cards

    def order(page):
        """As the eye has it, as the keyboard meets it, and as the address keeps it."""
        cards = page.locator(CARDS.format(name, key)).locator("button")
        boxes = sorted((each.bounding_box()["x"], each.inner_text()) for each in cards.all())
        asked = parse_qs(urlsplit(page.url).query).get(f"{name}.{key}", [None])[0]
        return [text for _, text in boxes], cards.all_inner_texts(), asked

    return dealt_on, order


def says(page, name):
    return page.locator(f'figure[data-live="{name}"] .says').inner_text()


def test_a_card_that_is_dragged_changes_places_with_the_one_below_it(row, dealt):
    dealt_on, order = row
    page, cards = dealt_on()
    first, last = (_middle(cards.locator("button").nth(n).bounding_box()) for n in (0, dealt[3] - 1))
    words, before = cards.locator("button").all_inner_texts(), says(page, dealt[1])
    page.mouse.move(*first)
    page.mouse.down()
    page.mouse.move(*last, steps=8)
    held = _middle(cards.locator(".held").bounding_box())
    assert held == pytest.approx(last, abs=2), "it stays below the pointer"
    page.mouse.up()
    swapped = [words[-1], *words[1:-1], words[0]]
    assert order(page) == (swapped, swapped, ",".join(map(str, [dealt[3] - 1, *range(1, dealt[3] - 1), 0])))
    assert says(page, dealt[1]) != before and not cards.locator(".held").count()
    page.reload()
    page.wait_for_function(READY)
    assert order(page)[0] == swapped, "the address keeps it"


def test_a_finger_drags_a_card_and_scrolls_no_page(row, dealt):
    dealt_on, order = row
    page, cards = dealt_on(window="phone")
    first, last = (_middle(cards.locator("button").nth(n).bounding_box()) for n in (0, dealt[3] - 1))
    words, top = cards.locator("button").all_inner_texts(), page.evaluate("scrollY")
    devtools = page.context.new_cdp_session(page)
    for kind, share in (("touchStart", 0), *(("touchMove", n / 8) for n in range(1, 9)), ("touchEnd", 1)):
        at = [
            {"x": a + share * (b - a), "y": y}
            for a, b, y in [(first[0], last[0], first[1])]
            if kind != "touchEnd"
        ]
        devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": at})
    assert order(page)[0] == [words[-1], *words[1:-1], words[0]]
    assert page.evaluate("scrollY") == top


def test_a_tap_and_arrow_keys_move_a_card_which_keeps_the_focus(row, dealt):
    dealt_on, order = row
    page, cards = dealt_on()
    words = cards.locator("button").all_inner_texts()
    cards.locator("button").first.click()
    assert order(page)[0] == [words[1], words[0], *words[2:]]
    page.keyboard.press("ArrowLeft")
    assert order(page) == (words, words, None), "as it began, which no address need keep"
    page.keyboard.press("ArrowLeft")
    assert order(page)[0] == [words[-1], *words[1:-1], words[0]], "round the end"
    page.keyboard.press("Enter")
    assert order(page)[0] == words
    assert page.evaluate("document.activeElement.textContent") == words[0]


def test_an_address_that_asks_for_no_order_of_the_cards_is_refused(visit, dealt):
    where, name, key, _ = dealt
    for asked in ("0,0,1", "2", "x,y,z", "1,2,3", "0,1,2,3", ""):
        page = visit(f"{where}?{name}.{key}={asked}").page
        page.wait_for_function(READY)
        begin = sent(where, name)["controls"][key]["cards"]
        assert page.locator(CARDS.format(name, key)).locator("button").all_inner_texts() == begin
        assert page.locator(f'figure[data-live="{name}"]').evaluate("(figure) => figure.made ?? null") is None


def test_without_scripts_cards_are_words_and_the_picture_has_its_answer(visit, dealt):
    page = visit(dealt[0], javascript=False).page
    cards = page.locator(CARDS.format(*dealt[1:3]))
    assert cards.is_visible() and cards.locator("button:disabled").count() == dealt[3]
    assert page.locator(f'figure[data-live="{dealt[1]}"] svg').is_visible()


def test_controls_are_large_enough_for_a_finger(lively, report, where, name):
    resize(lively, PHONE)
    kinds = ".live :is(input, select, .sliders button, [role=group] button), .cards button"
    controls = lively.locator(f'figure[data-live="{name}"] :is({kinds})')
    small = [
        box for each in controls.all() if min((box := each.bounding_box())["width"], box["height"]) < TOUCH
    ]
    resize(lively, DESKTOP)
    report(where, [str(box) for box in small], name)


def resize(page, window):
    page.set_viewport_size(dict(zip(("width", "height"), window, strict=True)))


def test_the_address_keeps_what_was_set_by_keyboard(lively, where, name):
    begin(lively, name)
    for key in sent(where, name)["controls"]:
        control = lively.locator(f'[id="{name}.{key}"]')
        if control.evaluate("(control) => control.matches('input, select')"):
            control.press("End")
        else:
            control.locator("button").last.press("Enter")
    lively.evaluate("new Promise((done) => requestAnimationFrame(done))")
    says = lively.locator(f'figure[data-live="{name}"] .says')
    said = says.text_content()
    assert f"{name}." in lively.url
    lively.reload(wait_until="load")
    lively.wait_for_function(MOVED, arg=name)
    assert says.text_content() == said
    assert lively.locator(f'figure[data-live="{name}"] svg').is_visible()
    ask(lively, "openAll")  # for the next figure of the page


@pytest.fixture(scope="module")
def played():
    """(page, name) of a live figure that can be played."""
    return next((where, name) for where, name in live_figures() if SITE.soup(where).select(".live .play"))


def test_play_sweeps_once_and_comes_back(visit, played):
    where, name = played
    key, control = next(iter(sent(where, name)["controls"].items()))
    page = visit(where).page
    page.wait_for_function(READY)
    play = page.locator(f'figure[data-live="{name}"] .play')
    assert not play.is_visible(), "the reader asked for less motion"
    page.emulate_media(reduced_motion="no-preference")
    page.clock.install()
    seen = []
    page.expose_function("report", lambda value: seen.append(float(value)))
    page.evaluate(
        """(id) => {
          const slider = document.getElementById(id), told = new MutationObserver(() => report(slider.value));
          told.observe(slider, { attributeFilter: ["aria-valuetext"] });
        }""",
        f"{name}.{key}",
    )
    play.evaluate("(button) => button.click()")
    page.clock.run_for(6000)
    assert min(seen[:3]) == control["low"] and max(seen) == control["high"]
    assert seen[-1] == control["start"]
    assert name not in page.url


def test_a_strict_policy_stops_nothing_of_it(visits, origin, built, played):
    """Scripts of the site alone, none in the page; a picture that moves is data."""
    where, _ = played
    policy = "script-src 'self'; img-src 'self' data:"
    page = visits.browser.new_page()
    page.route(
        origin + built.base + where,
        lambda route: route.fulfill(
            response=(given := route.fetch()), headers=given.headers | {"content-security-policy": policy}
        ),
    )
    page.goto(origin + built.base + where)
    page.wait_for_function(READY)
    page.context.close()


@pytest.mark.parametrize("script", ["cards.js", "graph.js", "live.js"])
def test_its_scripts_are_small(script):
    assert len(gzip.compress((SITE.root / "assets" / script).read_bytes())) <= SCRIPT
