"""What every page must be. Each check takes a visit and returns a list of problems, in words.

Where WCAG or the web has a name for what is asked, a problem begins with it.
"""

from collections import Counter
from itertools import pairwise
from pathlib import Path

from visits import FADED, FRAME

HERE = Path(__file__).parent
AXE = HERE / "node_modules" / "axe-core" / "axe.min.js"
ON_COLOURS = ["color-contrast", "link-in-text-block"]  # of the rules that axe runs unless told otherwise
NO_AXE = "axe-core is not installed: npm ci --prefix tests/site"


def axe(visit, state, part="page"):
    """Violations of any axe-core rule in one part of the page: `page`, or `article`.

    The article brings the rules on whole documents. In the dark, of the rules those on colours: nothing
    else is another than by light.
    """
    if not AXE.is_file():
        return [NO_AXE]
    if not visit.page.evaluate("'axe' in window"):
        visit.page.evaluate(AXE.read_text(encoding="utf-8"))
    found = visit.ask("violations", part, ON_COLOURS if visit.theme == "dark" else None)
    return [_violation(rule, node, f"{visit.theme}, {state}") for rule in found for node in rule["nodes"]]


def _violation(rule, node, state):
    target = " ".join(map(str, node["target"]))
    return f"axe {rule['id']} ({rule['impact']}, {state}) {target}: {_first_reason(node)}"


def _first_reason(node):
    reasons = node["any"] + node["all"] + node["none"]
    return reasons[0]["message"][:220] if reasons else node["html"][:120]


def overflow(visit, width):
    """Nothing may stick out sideways or be cut off; what scrolls in its own box may be wide."""
    found = visit.ask("overflow", width)
    problems = [f"Reflow: at {width} px, cut off: {item}" for item in found["cut"]]
    if found["extra"]:
        problems.append(f"Reflow: at {width} px the page is {found['extra']} px too wide: {found['stray']}")
    elif found["stray"]:
        problems.append(f"Reflow: at {width} px, outside the window: {found['stray']}")
    return problems


def tidy(visit):
    """Nothing is cut off, covered or left alone on a line; ask with every details open."""
    visit.page.evaluate(FRAME)
    names = {
        "cutOff": "Line breaking: begins a line, cut off from its word",
        "loosePermalinks": "permalink alone on a line",
        "coveredSummaries": "the arrow lies on the words",
        "coveredListings": "the copy button covers the first line",
        "framedButtons": "the copy button has a frame",
        "unmarkedScrollers": "Scrollable region: scrolls sideways and does not show it",
        "hiddenRoots": "the diagram begins out of sight",
    }
    if visit.window == "desktop":
        names["cutListings"] = "Overflow: a listing is cut off"
    return [f"{name}: {item}" for question, name in names.items() for item in visit.ask(question)]


def roomy(visit, width):
    """In a window as wide as this, text has room, too, and is in its place; ask with every details open."""
    visit.page.set_viewport_size({"width": width, "height": 940})
    visit.page.evaluate(FRAME)
    problems = [f"Line length: {item}" for item in visit.ask("squeezed")]
    problems += overflow(visit, width) + tidy(visit) + legible(visit)
    return [f"{problem} ({width} px)" for problem in problems]


def legible(visit):
    """Text in figures and diagrams has at least 12 px; on a phone of 390 px, these and formulas fit."""
    if visit.window == "phone":
        visit.page.set_viewport_size({"width": 390, "height": 740})
        visit.page.evaluate(FRAME)
    small = [f"Font size: text of a figure is too small: {item}" for item in visit.ask("smallText", 12)]
    return small + [f"Reflow: does not fit: {item}" for item in visit.ask("wide")]


def meanings(visit):
    """The meaning of a term covers neither the term nor the page's first sentence; ask in plain words."""
    covered = visit.page.evaluate(COVERED)
    visit.page.keyboard.press("Escape")
    return [
        f"the meaning is hidden, is cut off, or covers its term or the first sentence: {term}"
        for term in covered
    ]


COVERED = """() => {
  return [...document.querySelectorAll('a.term')].filter((term) => term.checkVisibility() && !clear(term))
    .map((term) => term.innerText);

function clear(term) {
  term.scrollIntoView({block: 'center', behavior: 'instant'});
  term.click();
  const meaning = document.querySelector('.meaning').getBoundingClientRect();
  const clear = [...term.getClientRects(), document.querySelector('.lede')?.getBoundingClientRect()].every(
    (box) => !box || meaning.top >= box.bottom || meaning.bottom <= box.top);
  const across = meaning.left >= 0 && meaning.right <= document.body.clientWidth;
  return meaning.width > 0 && clear && across && meaning.top >= 0 && meaning.bottom <= innerHeight;
}
}"""


def rendered(visit):
    """Maths and diagrams were rendered by the build; ask with every details open."""
    return [f"raw TeX: {item}" for item in visit.ask("rawTex")] + [
        f"not rendered: {item}" for item in visit.ask("leftovers")
    ]


def pictures(visit):
    return [f"Text alternative: picture without a name: {item}" for item in visit.ask("unnamedPictures")] + [
        f"broken image: {item}" for item in visit.ask("brokenImages")
    ]


def structure(visit):
    found = visit.ask("structure")
    problems = [f"duplicate id {item}" for item in found["duplicates"]]
    if not found["lang"]:
        problems.append("Language of page: <html> has no lang")
    return problems + _headings(found["headings"])


def _headings(headings):
    tops = [text for level, text in headings if level == 1]
    problems = [] if len(tops) == 1 else [f"Heading levels: {len(tops)} h1 headings: {tops}"]
    for (before, _), (level, text) in pairwise(headings):
        if level > before + 1:
            problems.append(f'Heading levels: heading "{text}" jumps from h{before} to h{level}')
    return problems


def policy(visit):
    """The page tells the browser what it may run. What that forbids, the browser complains of."""
    said = visit.ask("policy")
    scripts = next((part for part in said.split("; ") if part.startswith("script-src ")), "")
    if not said.startswith("default-src 'self'; ") or "'self'" not in scripts:
        return [f"Content-Security-Policy: no policy for scripts: {said!r}"]
    loose = [word for word in scripts.split() if "unsafe" in word or "*" in word]
    return [f"Content-Security-Policy: the policy lets {word} run" for word in loose]


def theme(visit):
    """The colours really are those of the asked scheme; else dark would test light twice."""
    numbers = visit.ask("background").partition("(")[2].rstrip(")").replace(",", " ").split()[:3]
    bright = sum(map(float, numbers)) / (3 * 255) > 0.5 if len(numbers) == 3 else None
    if bright is None or bright is not (visit.theme == "light"):
        seen = f"the background in the {visit.theme} theme is {visit.ask('background')}"
        return [f"prefers-color-scheme: {seen}"]
    return []


def weight(visit, budget):
    """Call after scrolling to the end."""
    counts = {
        "bytes": visit.bytes_received(),
        "requests": len(visit.requests),
        "elements": visit.ask("elements"),
    }
    allowed = vars(budget)
    over = [name for name, count in counts.items() if count > allowed[name]]
    return [f"Performance budget: {counts[name]:,} {name}, allowed {allowed[name]:,}" for name in over]


def prints_what_is_open(visit, how):
    """Paper shows what the screen does: printing opens nothing, hides nothing, and leaves closed code out."""
    before = visit.ask("detailsState")
    visit.page.emulate_media(media="print")
    if how == "scripts on":
        visit.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    opened = sum(visit.ask("detailsState")) - sum(before)
    problems = [f"not printed ({how}): {item}" for item in visit.ask("hiddenInDetails")]
    problems += [f"printed though closed ({how}): {item}" for item in visit.ask("foldedCode")]
    if how == "scripts on":
        visit.page.evaluate("dispatchEvent(new Event('afterprint'))")
    visit.page.emulate_media(media="screen")
    problems += [f"{opened} details are opened for the printer"] if opened else []
    return [f"Print stylesheet: {problem}" for problem in problems]


def prints_dark_on_white(visit):
    """Paper is white, whatever the theme."""
    visit.page.emulate_media(media="print")
    visit.page.evaluate(FADED)
    pale = visit.ask("paleOnWhite")
    visit.page.emulate_media(media="screen")
    return [f"Print stylesheet: too pale on paper: {item}" for item in pale]


def same_content(with_scripts, without):
    """Scripts add no words and no pictures. Compare with all details open in both."""
    on, off = Counter(with_scripts.ask("words")), Counter(without.ask("words"))
    problems = []
    for title, words in (("only with scripts", on - off), ("only without scripts", off - on)):
        if words:
            some = " ".join(list(words)[:12])
            problems.append(f"{words.total()} words {title}: {some}")
    counts_on, counts_off = with_scripts.ask("pictures"), without.ask("pictures")
    for tag, count in counts_on.items():
        if counts_off[tag] < count:
            problems.append(f"{count} <{tag}> with scripts, {counts_off[tag]} without")
    return problems


def opens_natively(visit):
    """With scripts off, a click on a summary opens its block."""
    closed = visit.ask("closedDetails")
    if not closed:
        return []
    index, name = closed[0]
    summary = visit.page.locator("details").nth(index).locator("> summary")
    try:
        summary.click()
    except Exception as error:  # Playwright's errors share no base worth importing here
        return [f"{name}: its summary cannot be clicked: {str(error).splitlines()[0]}"]
    if not visit.ask("detailsState")[index]:
        return [f"{name} stays closed when its summary is clicked"]
    return []
