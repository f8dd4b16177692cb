"""How the four depths behave. Each check takes visits and returns a list of problems, in words."""

import re
from collections import Counter
from functools import cache

import visits
from built import LEVELS

DEFAULT = "basic"
TOUCH = 44  # px
NAMES = ["In plain words", "Basic", "Intermediate", "Advanced"]


def blocks_are_well_formed(soup):
    """Judged on the HTML alone, before any script."""
    problems, seen = [], []
    for block in soup.select("details[class*=level-]"):
        name = f"<details id={block.get('id')!r} class={' '.join(block.get('class'))!r}>"
        levels = [level for level in LEVELS if f"level-{level}" in block["class"]]
        if len(levels) != 1:
            problems.append(f"{name} has {len(levels)} of the four levels")
            continue
        seen += levels
        problems += [f"{name} {what}" for what in _faults(block, levels[0])]
    missing = [level for level in LEVELS if level not in seen]
    return problems + ([f"no block of level {missing}"] if missing else [])


def _faults(block, level):
    summary = block.find("summary", recursive=False)
    if not block.get("id"):
        yield "has no id"
    if summary is None or not summary.get_text(strip=True):
        yield "has no summary with words"
    if block.has_attr("open") is not (level == DEFAULT):
        yield f"should {'' if level == DEFAULT else 'not '}be open before any choice"
    if block.find_parent("details", class_=lambda name: name != "from-basic"):
        yield "stands inside another details"


def control(visit):
    """Four segments where there are levels, and nothing that a reader could take for them elsewhere."""
    found = visit.ask("control")
    if not visit.ask("levels"):
        return ["#level stands on a page without levels"] if found else []
    if not found or found["tag"] != "fieldset":
        return ["no <fieldset id=level>"]
    problems = []
    if "depth" not in found["name"].lower():
        problems.append(f"Accessible name: #level is named {found['name']!r}, not Depth")
    if tuple(found["options"]) != LEVELS:
        problems.append(f"#level offers {found['options']}")
    if not found["shown"]:
        return [*problems, "#level cannot be seen"]
    segments = visit.ask("segments")
    if (named := [segment["words"] for segment in segments]) != NAMES:
        problems.append(f"Accessible name: the segments are named {', '.join(named)}")
    for segment in segments:
        name, size = f"the segment {segment['words']!r}", min(segment["width"], segment["height"])
        if not segment["words"]:
            problems.append("Accessible name: a segment has no words")
        if segment["cut"] > 0:
            problems.append(f"Reflow: {name} is cut off by {segment['cut']} px")
        if size < TOUCH:
            problems.append(f"Target size: {name} is {size:.0f} px small, {TOUCH} are needed to touch it")
    return problems


def stands_at(visit, level, when):
    """Blocks up to `level` are open, deeper ones closed, and the control says so.

    The story is told to who asks for plain words; at the last level all is open.
    """
    limit = LEVELS.index(level)
    wrong = []
    for block in visit.ask("levels"):
        place = LEVELS.index(block["levels"][0])
        should = place <= limit and (place > 0 or level in ("layman", "advanced"))
        if block["open"] is not should:
            wrong.append(f"#{block['id']} is {'open' if block['open'] else 'closed'}")
    shown = (visit.ask("control") or {}).get("value")
    if shown != level:
        wrong.append(f"#level shows {shown}")
    return [f"{when}, at {level}: {', '.join(wrong)}"] if wrong else []


def choose(visit, level):
    """Choose as a reader would; returns problems."""
    try:
        visit.page.locator(f"#level label:has([value={level}])").click()
    except Exception as error:  # whatever Playwright could not do is the finding
        return [f"cannot choose {level} in #level: {_first_line(error)}"]
    return []


def _first_line(error):
    return str(error).strip().splitlines()[0]


def cumulative(visit):
    """Every choice, upwards and downwards."""
    problems = stands_at(visit, DEFAULT, "before any choice")
    for level in ("advanced", "layman", "intermediate", "basic"):
        problems += choose(visit, level) or stands_at(visit, level, "chosen")
    return problems


def remembered(visit, path, other, level):
    """A choice made on `path` holds after a reload and on another page, by address or by link."""
    problems = choose(visit, level)
    visit.page.reload(wait_until="load")
    problems += stands_at(visit, level, "after reload")
    visit.go(other)
    problems += stands_at(visit, level, f"opened /{other}")
    target = visit.allowed + path
    if visit.page.evaluate(FOLLOW, target):
        visit.page.wait_for_url(target)
        visit.page.wait_for_load_state("load")
        return problems + stands_at(visit, level, f"followed a link to /{path}")
    return [*problems, f"/{other} has no link to /{path}"]


FOLLOW = """(target) => {
  const link = [...document.links].find((a) => a.href === target);
  link?.click();
  return Boolean(link);
}"""


def asked_in_address(visit, path, other):
    """?level= sets the depth, here and afterwards; nonsense in it changes nothing."""
    visit.go(path + "?level=advanced")
    problems = stands_at(visit, "advanced", "?level=advanced")
    visit.go(other)
    problems += stands_at(visit, "advanced", "the page after ?level=advanced")
    visit.go(path + "?level=layman")
    problems += stands_at(visit, "layman", "?level=layman after advanced")
    problems += choose(visit, "advanced")
    visit.page.reload(wait_until="load")
    problems += stands_at(visit, "advanced", "chosen after ?level=layman, and reloaded")
    visit.go(path + "?level=everything")
    return problems + stands_at(visit, "advanced", "?level=everything after advanced")


def keeps_the_place(visit, deepest="advanced"):
    """A choice leaves the line that is read where it is; if it closes its block, it leads to the summary."""
    problems = choose(visit, deepest)
    for block in [b for b in visit.ask("levels") if b["levels"] == [deepest]]:
        problems += choose(visit, deepest)
        if not visit.ask("readInside", block["id"]):
            continue  # so short that its summary never leaves the window
        problems += choose(visit, "layman") + _arrived(visit, block["id"], "closed while read", "stands")
    problems += choose(visit, "basic")
    heading = visit.ask("lastHeading")
    visit.ask("readAt", heading)
    before = visit.ask("topOf", heading)
    for level in ("advanced", "basic"):
        problems += choose(visit, level)
        visit.page.wait_for_timeout(100)
        if abs(visit.ask("topOf", heading) - before) > 2:
            moved = visit.ask("topOf", heading) - before
            problems.append(f"#{heading}, which is read, moves by {moved:.0f} px when {level} is chosen")
    return problems


def is_a_story(visit):
    """In plain words a page is a story: little else is seen, and it begins high up."""
    problems = choose(visit, "layman")
    visit.page.evaluate("scrollTo(0, 0)")
    words, plain = visit.ask("plainWords")
    if plain < PLAIN * words:
        problems.append(f"{plain} of {words} words in plain words are of the story, {PLAIN:.0%} are wanted")
    for name, (width, height) in STORY.items():
        visit.page.set_viewport_size({"width": width, "height": height})
        start = visit.ask("storyStart")
        if not start <= START:
            problems.append(f"on a {name} the story begins at {start:.2f} windows, {START} is allowed")
    missing = visit.page.evaluate(LACKS, PARTS)
    return problems + [f"in plain words there is no {what} in sight" for what in missing]


PLAIN = 0.7
STORY, START = {"desktop": (1440, 900), "phone": (360, 740)}, 0.65  # of the window's height
PARTS = [".story [aria-current]", ".lede", ".level-layman .question", ".level-layman .next"]
# A page beside the story has no place in it, and asks no question.
LACKS = """(all) => {
  const beside = document.querySelector(".story[data-aside]") && [".story", ".lede", ".level-layman .next"];
  return (beside ?? all).filter((what) => !document.querySelector(`article ${what}`)?.checkVisibility());
}"""


def pictures_use_the_room_of_a_laptop(visit):
    """Those that stand alone, or beside their caption."""
    visit.fit((1440, 900))
    return [f"a picture leaves the room of a laptop empty: {item}" for item in visit.page.evaluate(SMALL)]


SMALL = """() => [...document.querySelectorAll("figure:not([data-live]) svg.figure")]
  .filter((svg) => svg.checkVisibility() && svg.getBoundingClientRect().width < 640)
  .map((svg) => `${svg.closest("figure").id} is ${svg.getBoundingClientRect().width} px wide`)"""


def shows_the_heading(visit):
    """Where a link upwards has led, its heading stands in sight and nothing floats over the text."""
    heading = visit.ask("firstHeading")
    visit.ask("addLink", heading)
    visit.page.evaluate("scrollTo(0, document.body.scrollHeight)")
    visit.page.evaluate(visits.FRAME)
    visit.page.evaluate("document.getElementById('link-under-test').click()")
    problems = _arrived(visit, heading, "by a link upwards")
    visit.page.wait_for_timeout(500)
    return problems + visit.ask("covered")


def lands_still(visit, path):
    """A page that opens at a heading, with a depth remembered, does not jump while it loads."""
    problems = choose(visit, "advanced")
    heading = visit.ask("lastHeading")
    visit.page.goto("about:blank")
    visit.go(f"{path}#{heading}")
    problems += _arrived(visit, heading, "opened by address, at advanced")
    visit.page.wait_for_timeout(500)
    shift = visit.ask("shift")
    jump = f"Cumulative Layout Shift: the page jumps by {shift:.2f} while it loads"
    return problems + [jump] * (shift > STILL)


STILL = 0.05  # half of what the Web Vitals call good


def survives_nonsense_in_storage(visit, path):
    """A stored value that is no level is as good as none."""
    before = dict(visit.ask("storage"))
    problems = choose(visit, "advanced")
    changed = [key for key, value in visit.ask("storage") if before.get(key) != value]
    if not changed:
        return [*problems, "choosing a level stores nothing in localStorage"]
    for key in changed:
        visit.page.evaluate("(key) => localStorage.setItem(key, 'nonsense')", key)
    visit.go(path)
    return problems + stands_at(visit, DEFAULT, "with nonsense stored")


def deep_links(visit, path):
    """A fragment inside a closed block opens it and shows the place, however it is followed."""
    visit.go(path)
    targets = visit.ask("deepTargets", "advanced")
    if not targets:
        return ["no closed advanced block with an id"]
    problems = []
    for target in targets:
        for how, follow in FOLLOWINGS.items():
            visit.page.goto("about:blank")
            follow(visit, path, target)
            problems += _arrived(visit, target, how)
    visit.go(path)
    return problems + stands_at(visit, DEFAULT, "after deep links, which are no choice")


def _on_load(visit, path, target):
    visit.go(f"{path}#{target}")


def _on_hash_change(visit, path, target):
    visit.go(path)
    visit.page.evaluate("(id) => { location.hash = id; }", target)


def _on_click(visit, path, target):
    visit.go(path)
    visit.ask("addLink", target)
    visit.page.locator("#link-under-test").click()


def _on_second_click(visit, path, target):
    """The address holds the fragment already, so no hashchange is fired, once the first one was."""
    visit.go(path)
    visit.ask("addLink", target)
    visit.page.evaluate(HEAR_HASH_CHANGE)
    visit.page.locator("#link-under-test").click()
    visit.page.evaluate("heardHashChange")
    visit.page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = false; })")
    visit.page.locator("#link-under-test").click()


HEAR_HASH_CHANGE = """() => {
  window.heardHashChange = new Promise(
    (heard) => addEventListener("hashchange", () => requestAnimationFrame(() => setTimeout(heard))));
}"""


FOLLOWINGS = {
    "opened by address": _on_load,
    "by hashchange": _on_hash_change,
    "by a link in the page": _on_click,
    "by the same link again, closed meanwhile": _on_second_click,
}


def _arrived(visit, target, how, question="reached"):
    """Problems that remain after a while; scrolling may take a moment."""
    for _ in range(visits.SECONDS * 10):
        problem = visit.ask(question, target)
        if not problem:
            return []
        visit.page.wait_for_timeout(100)
    return [f"#{target} {how}: {problem}"]


def word_only_in(site, chapter, level="advanced"):
    """A word of the prose that stands nowhere in the site but in one block, or None."""
    blocks = site.soup(chapter).select(f"details.level-{level}")
    ours = [w for block in blocks for text in block.select("p, li") for w in _words(text)]
    counts = _all_words(site)
    rare = [w for w in ours if counts[w] == 1 and len(w) >= 7 and w.isascii()]
    # The search completes what is typed, so no other word may begin alike.
    alone = (w for w in rare if sum(other.startswith(w[:6]) for other in counts) == 1)
    return next(alone, None)


@cache
def _all_words(site):
    """How often each word stands in prose, whose pages are not parsed for it."""
    texts = (NO_PROSE.sub(" ", site.file(path).read_text(encoding="utf-8")) for path in site.pages)
    return Counter(word for text in texts for word in re.findall(r"[^\W\d_]+", text.lower()))


NO_PROSE = re.compile(r"<head\b.*?</head>|<(pre|code|math|svg|script|style)\b.*?</\1>|<[^>]*>|&\w+;", re.S)


def _words(tag):
    prose = (text for text in tag.strings if not text.find_parent(["pre", "code", "math", "svg"]))
    return [word for text in prose for word in re.findall(r"[^\W\d_]+", text.lower())]


def search_hit_in_address(visit, path, word):
    """Material marks the word of ?h=; the block that holds the mark must be open."""
    visit.go(f"{path}?h={word}")
    return _until(visit, "marked", word, f"?h={word}")


def _until(visit, question, word, when):
    for _ in range(visits.SECONDS * 10):
        problem = visit.ask(question, word)
        if not problem:
            return []
        visit.page.wait_for_timeout(100)
    return [f"{when}: {problem}"]


def search_dialog(visit, path, word):
    """Type the word in the search, click the hit, and see its block in the window."""
    visit.go("")
    try:
        _click_hit(visit.page, path, word)
    except Exception as error:
        return [f"searching for {word!r} finds no hit in /{path} to click: {_first_line(error)}"]
    problems = _until(visit, "marked", word, f"the hit for {word!r}")
    return problems + _until(visit, "outOfSight", word, f"the hit for {word!r}")


def _click_hit(page, path, word):
    query = page.locator("[data-md-component=search-query]")
    opener = page.locator("header label[for=__search]").first
    (opener if opener.is_visible() else query).click()
    query.press_sequentially(word)
    hit = page.locator(f".md-search-result a[href*='{path}?h={word}']").first
    hit.click()
    page.wait_for_url(f"**/{path}*")
    page.wait_for_load_state("load")


def keyboard(visit, path):
    """Tab reaches the control and every summary, focus shows, Enter and Space work."""
    visit.go(path)
    resting = dict(visit.ask("looks"))
    focused = _tab_through(visit)
    missed = [name for name in resting if name not in focused]
    problems = [f"Keyboard: Tab does not reach {name}" for name in missed]
    problems += [
        f"Focus visible: focus does not show on {name}"
        for name, look in focused.items()
        if look == resting.get(name)
    ]
    return problems + _summary_keys(visit) + _arrow_keys(visit)


def _tab_through(visit):
    focused = {}
    for _ in range(visit.page.evaluate("document.querySelectorAll('*').length")):
        visit.page.keyboard.press("Tab")
        here = visit.ask("focused")
        if here:
            focused.setdefault(*here)
        elif visit.page.evaluate("document.activeElement === document.body"):
            break
    return focused


def _summary_keys(visit):
    problems = []
    for block in visit.ask("levels"):
        for key in ("Enter", "Space"):
            before = visit.ask("isOpen", block["id"])
            visit.ask("focusSummary", block["id"])
            visit.page.keyboard.press(key)
            if visit.ask("isOpen", block["id"]) is before:
                problems.append(f"Keyboard: {key} does not toggle #{block['id']}")
    return problems


def _arrow_keys(visit):
    visit.page.locator("#level :checked").focus()
    for _ in LEVELS[LEVELS.index(DEFAULT) + 1 :]:
        visit.page.keyboard.press("ArrowRight")
    return stands_at(visit, "advanced", "with the arrow keys")


def printing_changes_nothing(visit):
    """Blocks that were opened for the printer are closed again afterwards."""
    before = visit.ask("detailsState")
    visit.page.pdf()
    visit.page.wait_for_timeout(100)
    after = visit.ask("detailsState")
    opened = sum(after) - sum(before)
    return [f"Print stylesheet: {opened} details more are open after printing"] if after != before else []


def without_scripts(visit):
    """The HTML's own state, and no control that does nothing."""
    found = visit.ask("control")
    problems = ["#level is shown although it can do nothing"] if found and found["shown"] else []
    if visit.page.get_by_text(re.compile("depth control|control at the top")).count():
        problems.append("the text speaks of a control that is not there")
    for block in visit.ask("levels"):
        if block["open"] is not (block["levels"][0] == DEFAULT):
            problems.append(f"#{block['id']} is {'open' if block['open'] else 'closed'}")
    return [f"Progressive enhancement: {problem}" for problem in problems]
