"""Every live figure, in the browser: it has the numbers that torch gives, wherever its controls stand."""

import gzip
import importlib
import itertools
import json
import math
import re
import statistics

import pytest
import torch
from built import SITE

from weave import export, figures
from weave.isolate import seed
from weave.live import fill

pytestmark = pytest.mark.browser

STOPS = 20  # at random, besides the ends
ROUNDING = 0.006  # of a coordinate in the picture, in points
SLOWER, FRAME = 4, 50  # times, and milliseconds that a frame may take then
TOUCH = 44  # pixels
SCRIPT = 5000  # bytes, compressed

# What the figure shows: as it is, or after its controls were set.
SHOWN = """async ([name, values]) => {
  const figure = document.querySelector(`figure[data-live="${name}"]`);
  for (const [key, value] of Object.entries(values ?? {})) figure.set(key, value);
  if (values) figure.draw();
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
    visible: group.getAttribute("visibility") !== "hidden",
    text: [...group.querySelectorAll("text")].map((text) => [text.textContent, ...numbers(text)])[0],
    pixels: group.tagName === "image" ? await pixels(group.getAttribute("href")) : null,
  }];
  return {
    made: Object.entries(figure.made ?? {}).map(([key, x]) => [key, x.shape, [...x.data].map(String)]),
    artists: Object.fromEntries(await Promise.all([...figure.querySelectorAll("[data-artist]")].map(read))),
    says: figure.querySelector(".says").textContent,
    call: figure.querySelector(".live code").textContent,
  };
}"""
HAS = "([name, what]) => Boolean(document.querySelector(`figure[data-live='${name}']`)[what])"
TIMES = """([name, all]) => {
  const figure = document.querySelector(`figure[data-live="${name}"]`);
  return all.map((values) => {
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
        metafunc.parametrize("where, name", found, ids=[name for _, name in found])


def live_figures():
    """(page, name) of each."""
    found = []
    for path in SITE.pages if SITE.exists else []:
        if "data-live=" in SITE.file(path).read_text(encoding="utf-8"):  # most pages need no parsing
            found += [(path, figure["data-live"]) for figure in SITE.soup(path).select("figure[data-live]")]
    return found


@pytest.fixture
def lively(visit):
    """A page whose figure has its script, which comes after the page has loaded."""

    def open_page(where, name, **how):
        page = visit(where, **how).page
        page.wait_for_function(HAS, arg=[name, "set"])
        return page

    return open_page


def exhibited(name):
    """What makes the figure live, from the exhibit itself."""
    figures.prepare()
    seed()
    module, _, function = name.partition(".")
    returned = getattr(importlib.import_module(f"exhibits.{module}"), function)()
    return next(part for part in returned if type(part).__name__ == "Live")


def sent(where, name):
    """What the page knows of it."""
    return json.loads(SITE.soup(where).select_one(f'figure[data-live="{name}"] script').string)


def settings(live, count):
    """Values of all controls: each at its ends, and at random."""
    moved = export.sliders(live)
    for chosen in export.combinations(live):
        for values in export.stops(moved, count, seed=1):
            yield dict(zip(moved, values, strict=True)) | chosen


@pytest.mark.claim(
    "live-figures-have-the-numbers-of-torch",
    "The numbers of every live figure are those that its function gives in torch, within a stated tolerance.",
)
def test_the_figure_has_the_numbers_of_torch(lively, report, where, name):
    live, moves, page = exhibited(name), sent(where, name)["moves"], lively(where, name)
    built = page.evaluate(SHOWN, [name, None])
    problems = [f"as built: {each}" for each in misplaced(moves, live.start(), built, built, live)]
    for values in settings(live, STOPS):
        tensors = {
            key: value if isinstance(value, str) else torch.tensor(value, dtype=torch.float64)
            for key, value in values.items()
        }
        expected, shown = live.function(**tensors), page.evaluate(SHOWN, [name, values])
        faults = [*far_off(expected, shown, live), *misplaced(moves, expected, shown, built, live)]
        faults += misnamed(values, expected, shown, live)
        problems += [f"at {values}: {fault}" for fault in faults]
    report(where, problems[:10], name)


def far_off(expected, shown, live):
    """Numbers that are not those of torch."""
    for key, shape, data in shown["made"]:
        wanted = expected[key].double()
        made = torch.tensor([float(each.replace("Infinity", "inf")) for each in data], dtype=torch.float64)
        if shape != list(wanted.shape):
            yield f"{key} is {shape}, not {list(wanted.shape)}"
        elif not torch.allclose(made.view(shape), wanted, rtol=0, atol=live.tolerance):
            far = (made.view(shape) - wanted).abs().max()
            yield f"{key} is {far:.3g} from torch's, tolerance {live.tolerance:g}"


def misplaced(moves, expected, shown, built, live):
    """What does not stand in the picture where the axes have the numbers."""
    for key, move in moves.items():
        parts = [part for name, part in shown["artists"].items() if re.fullmatch(rf"{key}-\d+", name)]
        given, wanted = stands(move["kind"], parts), places(move, expected[key].tolist())
        room = 8 if move["kind"] == "image" else ROUNDING + 1e3 * live.tolerance
        if move["kind"] == "text":  # the words keep their place beside the point
            first = places(move, live.start()[key].tolist())
            words = stands("text", [built["artists"][f"{key}-0"]])
            wanted = [w + at - begin for w, at, begin in zip(wanted, words, first, strict=bool(wanted))]
        if shown is built and move["kind"] == "line":
            continue  # matplotlib leaves out points that nobody would see
        if len(given) != len(wanted):
            yield f"{key} has {len(given)} numbers in the picture, not {len(wanted)}"
        elif given and (far := max(abs(a - b) for a, b in zip(given, wanted, strict=True))) > room:
            yield f"{key} lies {far:.3g} from its place in the picture"


def stands(kind, parts):
    """Coordinates of an artist in the picture; of an image how strong each cell is, below zero if blue."""
    if kind == "text":
        return parts[0]["text"][1:] if parts[0]["visible"] else []
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


def misnamed(values, expected, shown, live):
    """Words that do not say what is seen."""
    numbers = {key: tensor.item() for key, tensor in expected.items() if key not in live.moves}
    words = {key: shown["artists"][f"{key}-0"]["text"][0] for key in live.texts}
    for text, said in [
        (live.says, shown["says"].removesuffix(" Part of it lies outside the picture.")),
        (live.call, shown["call"]),
        *((live.texts[key], words[key]) for key in words),
    ]:
        if (wanted := fill(text, values | numbers)) != said:
            yield f"it says {said!r}, not {wanted!r}"


def test_the_first_picture_is_the_one_that_was_built(visit, where, name):
    """A script that has nothing to do changes nothing."""
    figure = f'figure[data-live="{name}"] svg'
    with_scripts, without = visit(where), visit(where, javascript=False)
    with_scripts.settle()
    first, built = (
        each.page.locator(figure).evaluate("(svg) => svg.outerHTML") for each in (with_scripts, without)
    )
    assert first == built


def test_a_frame_is_fast_on_a_slow_processor(lively, where, name):
    live, page = exhibited(name), lively(where, name)
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
    times = page.evaluate(TIMES, [name, [*settings(live, STOPS)] * 2])
    assert statistics.median(times[len(times) // 2 :]) <= FRAME


def test_the_address_keeps_what_was_set_by_keyboard(lively, where, name):
    page, key = lively(where, name), next(iter(sent(where, name)["controls"]))
    control = page.locator(f'[id="{name}.{key}"]')
    says = page.locator(f'figure[data-live="{name}"] .says')
    control = (
        control
        if control.evaluate("(control) => control.matches('input, select')")
        else control.locator("button").last
    )
    control.focus()
    control.press("Enter" if control.evaluate("(control) => control.matches('button')") else "End")
    page.wait_for_function(HAS, arg=[name, "made"])
    said = says.text_content()
    assert f"{name}.{key}=" in page.url
    page.reload(wait_until="load")
    page.wait_for_function(HAS, arg=[name, "made"])
    assert says.text_content() == said
    assert page.locator(f'figure[data-live="{name}"] svg').is_visible()


def test_what_is_dragged_moves_its_control(lively, where, name):
    page, controls = lively(where, name), sent(where, name)["controls"]
    picture = page.locator(f'figure[data-live="{name}"] svg')
    picture.evaluate("""(picture) => {
      for (let fold = picture; (fold = fold.parentElement.closest("details")); ) fold.open = true;
      picture.scrollIntoView({ block: "center", behavior: "instant" });
    }""")
    for key, control in controls.items():
        if control.get("drag"):
            slider = page.locator(f'[id="{name}.{key}"]')
            before, whole = slider.input_value(), picture.bounding_box()
            part = picture.locator(f'[data-artist="{control["drag"]}-0"]').bounding_box()
            here = _middle(part)
            page.mouse.move(*here)
            page.mouse.down()
            page.mouse.move(
                *(at + math.copysign(100, to - at) for at, to in zip(here, _middle(whole), strict=True))
            )
            page.mouse.up()
            assert slider.input_value() != before, key


def _middle(box):
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_controls_are_large_enough_for_a_finger(lively, report, where, name):
    page = lively(where, name, window="phone")
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    controls = page.locator(f'figure[data-live="{name}"] .controls :is(input, button, select)')
    small = [
        box for each in controls.all() if min((box := each.bounding_box())["width"], box["height"]) < TOUCH
    ]
    report(where, [str(box) for box in small], name)


@pytest.fixture(scope="module")
def played():
    """(page, name) of a live figure that can be played."""
    return next((where, name) for where, name in live_figures() if SITE.soup(where).select(".live .play"))


def test_play_sweeps_once_and_comes_back(lively, played):
    where, name = played
    key, control = next(iter(sent(where, name)["controls"].items()))
    page = lively(where, name)
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
    where, name = played
    policy = "script-src 'self'; img-src 'self' data:"
    page = visits.browser.new_page()
    page.route(
        origin + built.base + where,
        lambda route: route.fulfill(
            response=(given := route.fetch()), headers=given.headers | {"content-security-policy": policy}
        ),
    )
    page.goto(origin + built.base + where, wait_until="networkidle")
    assert page.evaluate(HAS, [name, "set"])
    page.context.close()


@pytest.mark.parametrize("script", ["graph.js", "live.js"])
def test_its_scripts_are_small(script):
    assert len(gzip.compress((SITE.root / "assets" / script).read_bytes())) <= SCRIPT
