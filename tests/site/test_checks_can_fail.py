"""Each check passes on a good page and fails on one with the fault that it looks for.

`specimen.html` is the good page; a case replaces one piece of it. A piece that is not found fails.
"""

from contextlib import ExitStack

import checks
import levels
import links
import pytest
import visits as visiting
from budgets import Budget
from built import BuiltSite
from server import serve

from conftest import BASE
from executable_prose.site import csp
from tests.rows import each_of

pytestmark = [pytest.mark.browser, pytest.mark.slow]  # by day nothing checks the checks

SPECIMEN = (checks.HERE / "specimen.html").read_text(encoding="utf-8")
MAIN = "<article>"
OTHER = (
    "<!doctype html><html lang=en><title>Other</title><link rel=icon href=data:,><body><h1>Other</h1>"
    "<p><a href='../'>back</a></p>"
)


@pytest.fixture(autouse=True)
def little_patience(monkeypatch):
    """The good page does everything within a second, so that a fault is seen after one."""
    monkeypatch.setattr(visiting, "SECONDS", 1)


@pytest.fixture
def specimen(tmp_path, visits):
    """`specimen(old, new, ...)` opens the good page with one piece replaced."""
    with serve(tmp_path, BASE) as origin, ExitStack() as stack:

        def open_specimen(old="", new="", **how):
            write_site(tmp_path, old, new)
            return stack.enter_context(visits.lend(origin + BASE, **how)).go()

        yield open_specimen


def write_site(folder, old="", new=""):
    assert old in SPECIMEN, f"the specimen does not hold {old!r}"
    places = "".join(f"<url><loc>https://example.org/{p}</loc></url>" for p in ("", "other/"))
    (folder / "sitemap.xml").write_text(f"<urlset>{places}</urlset>")
    (folder / "index.html").write_text(SPECIMEN.replace(old, new, 1) if old else SPECIMEN)
    (folder / "other").mkdir(exist_ok=True)
    (folder / "other" / "index.html").write_text(OTHER + LEVEL_PARTS)
    (folder / "card.png").write_bytes(bytes(16) + (3).to_bytes(4) + (2).to_bytes(4))
    (folder / "404.html").write_text(OTHER.replace("../", "/"))
    return BuiltSite(folder)


LEVEL_PARTS = SPECIMEN[SPECIMEN.index("<header>") : SPECIMEN.index("<main>")] + "".join(
    SPECIMEN[SPECIMEN.index(start) : SPECIMEN.index(end) + len(end)]
    for start, end in [('<details class="level-layman"', "now.</p></details>"), ("<script>", "</script>")]
)


def complaints(visit):
    visit.settle()
    return visit.problems


def narrow(visit):
    visit.page.set_viewport_size({"width": 320, "height": 640})
    return checks.overflow(visit, 320)


def rendered(visit):
    visit.ask("openAll")
    return checks.rendered(visit)


def legible(visit):
    return checks.legible(visit)


def tidy(visit):
    visit.ask("openAll")
    return checks.tidy(visit)


def roomy(visit):
    visit.ask("openAll")
    return [problem for width in visiting.WIDE for problem in checks.roomy(visit, width)]


def axe(part):
    return lambda visit: checks.axe(visit, "tried", part)


def axe_open(visit):
    visit.ask("openAll")
    return checks.axe(visit, "tried", "article")


def allowing(sources):
    """A head in which the policy lets these run, too."""
    return "<head>" + csp.META.format(hashes=sources)


def small(name):
    return lambda visit: checks.weight(visit, Budget(**{name: 1}))


POLICY = (
    """<meta http-equiv="Content-Security-Policy" content="default-src 'self'; script-src 'self'{}; x">"""
)
BLANK = "<button></button>"
FAINT = "color: #777; background: #999"
WIDE = "<p style='inline-size: 900px'>wide</p>"
LINE = "<p style='inline-size: 9em'>nine letters"
MATH = "<math><mi>x</mi></math>"
MARK = "<a class='claim' href='other/'>tested</a>"
BUTTON = (
    "<pre style='position: relative'><nav style='position: absolute; top: 0'>copy</nav><code>x</code></pre>"
)
THIN = ".thin { inline-size: 9px; padding: 0; overflow-wrap: anywhere }"
IN_WIDE, IN_WIDEST = (f"<style>@media (min-width: {px}px) {{ {THIN} }}</style>" for px in visiting.WIDE)
ROOT = "<g class='node' id='d-flowchart-A-0'><rect x='600' width='300' height='20'/></g>"
TREE = f"<div class='diagram' style='overflow-x: auto'><svg width='2000' height='20'>{ROOT}</svg></div>"
ARROW = ".arrow::after { content: ''; position: absolute; left: 0; top: 0; width: 20px; height: 20px; }"
FAULTS = {
    "lone mark": (tidy, MAIN, f"{MAIN}{LINE} so.<br>{MARK}</p>", '"so." | "tested"'),
    "lone full stop": (tidy, MAIN, f"{MAIN}{LINE} {MATH}<br>.</p>", '"x" | "."'),
    "lone permalink": (
        tidy,
        "A picture</h2>",
        "A picture<br><a class='headerlink' href='#picture'>¶</a></h2>",
        "permalink alone on a line: h2#picture > a.headerlink",
    ),
    "arrow on words": (
        tidy,
        "summary>Basic</summary>",
        f"summary style='position: relative' class='arrow'>Basic</summary><style>{ARROW}</style>",
        "the arrow lies on the words: details#basic",
    ),
    "button on code": (tidy, MAIN, MAIN + BUTTON, "the copy button covers the first line"),
    "unmarked": (
        tidy,
        MAIN,
        MAIN + TREE,
        "Scrollable region: scrolls sideways and does not show it: main > article > div.diagram",
    ),
    "wide listing": (
        tidy,
        MAIN,
        f"{MAIN}<pre style='inline-size: 300px'><code>{'x' * 80}</code></pre>",
        "Overflow: a listing is cut off",
    ),
    "small text": (
        legible,
        MAIN,
        MAIN
        + "<svg class='figure' width='90' viewBox='0 0 100 20'><text y='9' font-size='13'>tiny</text></svg>",
        'Font size: text of a figure is too small: 11.7 px at article > svg.figure > text "tiny"',
    ),
    "thin paragraph": (
        roomy,
        MAIN,
        f"{MAIN}{IN_WIDE}<p class='thin'>a letter a line</p>",
        "Line length: main > article > p.thin is 9 px wide and",
    ),
    "thin caption": (
        roomy,
        MAIN,
        f"{MAIN}{IN_WIDE}<figure><figcaption><p class='thin'>letters</p></figcaption></figure>",
        "figcaption > p.thin is 9 px wide and",
    ),
    "thin cell": (
        roomy,
        MAIN,
        f"{MAIN}{IN_WIDEST}<table><tr><td class='thin'>a letter a line</table>",
        "tr > td.thin is 9 px wide and",
    ),
    "framed button": (
        tidy,
        MAIN,
        f"{MAIN}<button class='md-code__button' style='border: 1px solid' title='Copy'></button>",
        "the copy button has a frame: main > article > button.md-code__button",
    ),
    "root out of sight": (
        tidy,
        MAIN,
        MAIN + TREE.replace("600", "1700"),
        "the diagram begins out of sight: g#d-flowchart-A-0.node",
    ),
    "console error": (complaints, MAIN, MAIN + "<script>console.error('no')</script>", "console error"),
    "console warning": (complaints, MAIN, MAIN + "<script>console.warn('no')</script>", "warning: no"),
    "exception": (complaints, MAIN, MAIN + "<script>throw Error('no')</script>", "exception: no"),
    "missing file": (complaints, MAIN, MAIN + "<img src='gone.png' alt='x'>", "status 404"),
    "absolute path": (complaints, MAIN, MAIN + "<img src='/gone.png' alt='x'>", "outside the site"),
    "other host": (
        complaints,
        MAIN,
        MAIN + "<img src='https://example.org/x.png' alt='x'>",
        "Third-party request: request outside the site: https://example.org/x.png",
    ),
    "axe as loaded": (axe("page"), MAIN, f"{MAIN}{BLANK}", "axe button-name (critical, light, tried)"),
    "axe in a header": (axe("page"), "<header>", f"<header>{BLANK}", "axe button-name"),
    "axe in an article": (axe("article"), MAIN, f"{MAIN}{BLANK}", "axe button-name"),
    "axe on a document": (axe("article"), ' lang="en"', "", "axe html-has-lang"),
    "axe in details": (axe_open, "The proof.", BLANK, "axe button-name"),
    "axe on a summary": (axe_open, "<summary>Adv", f"<summary style='{FAINT}'>Adv", "axe color-contrast"),
    "axe on headings": (axe("page"), "The proof.</p>", "<h3>A</h3></details><h4>B</h4>", "axe heading-order"),
    "too wide": (narrow, MAIN, MAIN + WIDE, "Reflow: at 320 px the page is"),
    "cut off": (narrow, MAIN, f"{MAIN}<div style='overflow: hidden'>{WIDE}</div>", "cut off"),
    "permalink beyond the margin": (
        narrow,
        "A picture</h2>",
        "A picture<a class='headerlink' href='#x' style='position: absolute; inline-size: 20px'></a></h2>",
        "outside the window",
    ),
    "outside": (narrow, MAIN, MAIN + "<p style='position: fixed; left: 400px'>x</p>", "outside the window"),
    "inline TeX": (rendered, MAIN, MAIN + r"<p>\(x\)</p>", "raw TeX"),
    "display TeX": (rendered, MAIN, MAIN + r"<p>\[x\]</p>", "raw TeX"),
    "dollars": (rendered, MAIN, MAIN + "<p>so $x_i$ is</p>", "raw TeX"),
    "dollars and em": (rendered, MAIN, MAIN + "<p>$x<em>i + y</em>i$</p>", "raw TeX"),
    "command": (rendered, MAIN, MAIN + r"<p>\frac12</p>", "raw TeX"),
    "command in details": (rendered, "The proof.", r"\theta", "raw TeX"),
    "command in a figure": (rendered, "<rect", r"<text>\theta</text><rect", "raw TeX"),
    "TeX of no renderer": (rendered, MAIN, MAIN + "<span class='arithmatex'>x</span>", "arithmatex"),
    "mermaid source": (rendered, MAIN, MAIN + "<pre class='mermaid'>graph</pre>", "pre.mermaid"),
    "mermaid as code": (
        rendered,
        MAIN,
        MAIN + "<pre><code class='language-mermaid'>graph</code></pre>",
        "code.language-mermaid",
    ),
    "no alt": (checks.pictures, 'alt="One pixel"', "", "no alt"),
    "empty alt": (checks.pictures, 'alt="One pixel"', 'alt=""', "empty alt"),
    "svg of no role": (checks.pictures, 'role="img"', "", 'role=""'),
    "svg of no name": (checks.pictures, 'aria-label="A square"', "", "no accessible name"),
    "broken image": (checks.pictures, "data:image/gif;base64,R0", "data:image/gif;base64,", "broken"),
    "two ids": (checks.structure, MAIN, MAIN + "<i id='inside'></i>", "duplicate id #inside (2"),
    "no h1": (checks.structure, "<h1>Specimen</h1>", "", "Heading levels: 0 h1"),
    "two h1": (checks.structure, MAIN, MAIN + "<h1>Again</h1>", "Heading levels: 2 h1"),
    "skipped level": (checks.structure, '<h2 id="picture">A picture</h2>', "<h3>A</h3>", "h1 to h3"),
    "no lang": (checks.structure, ' lang="en"', "", "Language of page: <html> has no lang"),
    "no policy": (checks.policy, "", "", "Content-Security-Policy: no policy for scripts: ''"),
    "policy of anything": (
        checks.policy,
        "<head>",
        allowing(" https://*"),
        "Content-Security-Policy: the policy lets https://* run",
    ),
    "policy of any line": (
        checks.policy,
        "<head>",
        allowing(" 'unsafe-inline'"),
        "'unsafe-inline' run",
    ),
    "script without leave": (complaints, "<head>", allowing(""), "Content Security Policy"),
    "dark only": (checks.theme, "background: white", "background: black", "light theme is"),
    "bytes": (small("bytes"), "", "", "bytes, allowed 1"),
    "requests": (small("requests"), MAIN, MAIN + "<img src='404.html' alt='x'>", "2 requests"),
    "elements": (small("elements"), "", "", "elements, allowed 1"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_page_check_can_fail(specimen, name):
    check, old, new, expected = FAULTS[name]
    found = check(specimen(old, new))
    assert any(expected in problem for problem in found), found


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_colour_too_faint_is_found_in_either_theme(specimen, theme):
    found = axe("article")(specimen(MAIN, f"{MAIN}<p style='{FAINT}'>Faint.</p>", theme=theme))
    assert any("axe color-contrast" in problem for problem in found), found


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_page_checks_pass_on_the_specimen(specimen, theme):
    page = specimen(theme=theme, window="phone")
    whole = [axe(part) for part in ("page", "article")]
    found = [checks.theme, checks.structure, *whole, rendered, tidy, checks.pictures, narrow, complaints]
    assert [problem for check in found for problem in check(page)] == []
    assert checks.weight(page, Budget()) == []
    assert roomy(specimen(theme=theme)) == []


EVALUATES = "<script>eval('1')</script>"
ATTEMPTS = [
    "<script>document.title = 'x'</script>",
    "<script src='https://example.org/x.js'></script>",
    "<img src='data:,' alt='x' onerror='x()'>",
    "<img src='https://example.org/x.png' alt='x'>",
    "<iframe src='javascript:x()'></iframe>",
    "<object data='404.html'></object>",
]


def test_the_policy_of_the_build_lets_through_what_the_build_wrote_and_nothing_else(tmp_path, visits):
    with serve(tmp_path, BASE) as origin:
        for before, after in [("", ""), (EVALUATES, ""), *(("", each) for each in ATTEMPTS)]:
            root = write_site(tmp_path, MAIN, MAIN + before).root
            csp.write(root, [root])
            file = tmp_path / "index.html"
            file.write_text(file.read_text().replace(MAIN, MAIN + after))
            with visits.lend(origin + BASE) as page:
                page.go().settle()
                refused = [each for each in page.problems if "Content Security Policy" in each]
                assert checks.policy(page) == []
                assert bool(refused) == bool(before or after), (before, after, page.problems)


def test_a_theme_that_is_turned_to_is_the_one_that_is_seen(specimen):
    page = specimen()
    page.turn("dark")
    assert checks.theme(page) == []
    page.theme = "light"
    assert checks.theme(page) == ["prefers-color-scheme: the background in the light theme is rgb(0, 0, 0)"]


def test_a_page_that_is_lent_again_is_as_new(visits, tmp_path):
    """The server says that answers may be kept, and what is kept is not sent."""
    write_site(tmp_path, MAIN, MAIN + "<img src='404.html' alt='x'>")
    seen = []
    with serve(tmp_path, BASE) as origin:
        for _ in range(2):
            with visits.lend(origin + BASE) as page:
                page.go().settle()
                sent = page.page.evaluate("performance.getEntries().map((each) => each.transferSize ?? 0)")
                kept = page.page.evaluate("[localStorage.x, sessionStorage.x, document.cookie]")
                seen.append((page.page, sum(sent), kept))
                page.page.evaluate("localStorage.x = sessionStorage.x = document.cookie = 'x=1'")
                page.page.set_viewport_size({"width": 320, "height": 640})
                page.turn("dark")
            assert page.page.url == "about:blank"
    assert seen[0] == seen[1]
    assert seen[0][1] > 1000 and seen[0][2] == [None, None, ""]


def on_paper(visit):
    problems = checks.prints_what_is_open(visit, "scripts on")
    visit.ask("openAll")
    return problems + checks.prints_dark_on_white(visit)


FOLD_RULE = "details.code:not([open]) { display: none; }"
ON_PAPER = {
    "fold": (
        FOLD_RULE,
        "",
        "Print stylesheet: printed though closed (scripts on): article > details.from-basic > details.code",
    ),
    "hidden": (FOLD_RULE, "details > p { display: none; }", "not printed (scripts on): details#layman"),
    "opened": (
        "const LEVELS",
        "addEventListener('beforeprint', () => openTo('advanced')); const LEVELS",
        "Print stylesheet: 2 details are opened for the printer",
    ),
    "pale": ("@media screen and (prefers", "@media (prefers", "too pale on paper: main > article > h1"),
    "pale figure": ("<rect", "<text fill='#eee'>x</text><rect", "too pale on paper"),
}


@pytest.mark.parametrize("name", ON_PAPER)
def test_print_check_can_fail(specimen, name):
    old, new, expected = ON_PAPER[name]
    found = on_paper(specimen(old, new, theme="dark"))
    assert any(expected in problem for problem in found), found


def test_print_check_passes_on_the_specimen(specimen):
    assert on_paper(specimen(theme="dark")) == []
    assert checks.prints_what_is_open(specimen(javascript=False), "scripts off") == []


def test_native_opening_check(specimen):
    assert checks.opens_natively(specimen(javascript=False)) == []
    broken = specimen("<summary>Inter", "<summary style='pointer-events: none'>Inter", javascript=False)
    assert checks.opens_natively(broken)


@pytest.mark.parametrize(
    ("addition", "expected"),
    [
        ("<script>document.write('<p>late words</p>')</script>", "2 words only with scripts"),
        ("<p id='x'>early</p><script>x.remove()</script>", "1 words only without scripts"),
        ("<script>document.write('<math><mi></mi></math>')</script>", "2 <math> with scripts, 1"),
    ],
)
def test_same_content_check(specimen, addition, expected):
    on, off = specimen(MAIN, MAIN + addition), specimen(MAIN, MAIN + addition, javascript=False)
    for visit in (on, off):
        visit.ask("openAll")
    assert any(expected in problem for problem in checks.same_content(on, off))


LEVEL_CHECKS = {
    "control": levels.control,
    "cumulative": levels.cumulative,
    "remembered": lambda v: levels.remembered(v, "", "other/", "advanced"),
    "story": levels.is_a_story,
    "address": lambda v: levels.asked_in_address(v, "", "other/"),
    "storage": lambda v: levels.survives_nonsense_in_storage(v, ""),
    "heading": levels.shows_the_heading,
    "place": levels.keeps_the_place,
    "landing": lambda v: levels.lands_still(v, ""),
    "deep links": lambda v: levels.deep_links(v, ""),
    "search hit": lambda v: levels.search_hit_in_address(v, "", "bamboozled"),
    "search dialog": lambda v: levels.search_dialog(v, "", "bamboozled"),
    "keyboard": lambda v: levels.keyboard(v, ""),
    "printing": levels.printing_changes_nothing,
}
LEVEL_FAULTS = {
    "unnamed": ("control", "<legend>Depth</legend>", "", "Accessible name: #level is named '', not Depth"),
    "a choice less": ("control", '<input type="radio" name="level" value="basic" checked>', "", "offers"),
    "without levels": (
        "control",
        "const LEVELS",
        "for (const block of document.querySelectorAll('details')) block.className = ''; const LEVELS",
        "without levels",
    ),
    "hidden": ("control", 'getElementById("depth").hidden = false', "body.id = ''", "cannot be seen"),
    "wordless": ("control", ">Advanced</label>", "></label>", "Accessible name: a segment has no words"),
    "otherwise named": (
        "control",
        ">Advanced</label>",
        ">All</label>",
        "Accessible name: the segments are named In plain words, Basic, Intermediate, All",
    ),
    "cut": (
        "control",
        ">In plain words</label>",
        " style='margin-inline-start: 2000px'>In plain words</label>",
        "'In plain words' is cut off",
    ),
    "low": ("control", "block-size: 44px", "block-size: 28px", "28 px small"),
    "covered": (
        "heading",
        "<main>",
        "<button style='position: fixed; top: 0; inline-size: 100%'>Up</button><main>",
        "lies on the article",
    ),
    "one level only": ("cumulative", "<= LEVELS.indexOf(level)", "=== LEVELS.indexOf(level)", "closed"),
    "control behind": ("cumulative", 'value="basic" checked', 'value="basic"', "shows None"),
    "little of it": (
        "story",
        "<h1>",
        "<p>" + "More words. " * 30 + "<h1>",
        "words in plain words are of the story",
    ),
    "late": ("story", "<h1>", "<h1 style='margin-top: 500px'>", "the story begins at"),
    "nothing next": ("story", 'class="next"', "", "no .level-layman .next in sight"),
    "forgotten": ("remembered", 'localStorage.setItem("depth", target.value)', "0", "after reload"),
    "address unread": ("address", 'query.get("level")))', '"x"))', "?level=advanced, at advanced"),
    "address unjudged": ("address", 'LEVELS.includes(query.get("level"))', "true", "everything"),
    "address asks again": ("address", "history.replaceState", "void ", "chosen after ?level=layman"),
    "place lost": ("place", "?? read).scrollIntoView()", "?? read)", "closed while read"),
    "line lost": ("place", "getBoundingClientRect().top - before", "getBoundingClientRect().top", "moves by"),
    "late opening": (
        "landing",
        '"depth"))) openTo(localStorage.getItem("depth"));',
        '"depth"))) setTimeout(() => { document.documentElement.style.overflowAnchor = "none"; '
        'openTo("advanced"); }, 300);',
        "Cumulative Layout Shift: the page jumps by",
    ),
    "storage unjudged": (
        "storage",
        'LEVELS.includes(localStorage.getItem("depth"))',
        'localStorage.getItem("depth")',
        "nonsense",
    ),
    "fragment on load": ("deep links", 'addEventListener("load", showTarget)', "0", "opened by address"),
    "hash change": ("deep links", 'addEventListener("hashchange", showTarget)', "0", "by hashchange"),
    "link again": ("deep links", 'addEventListener("click"', 'addEventListener("copy"', "same link again"),
    "unscrolled": ("deep links", "element.scrollIntoView()", "scrollTo(0, 0)", "px of a window"),
    "deep link chosen": (
        "deep links",
        "const showTarget = () => target() &&",
        "const showTarget = () => target() && !localStorage.setItem('depth', 'advanced') &&",
        "no choice",
    ),
    "mark in closed": ("search hit", "show(text)", "text.focus()", "is not visible"),
    "no mark": ("search hit", "<mark>$&</mark>", "$&", "no <mark>"),
    "no hit": ("search dialog", "./?h=bamboozled", "./?h=nothing", "finds no hit"),
    "hit out of sight": (
        "search dialog",
        "show(text);",
        'text.closest("details").open = true; document.body.style.paddingTop = "3000px";',
        "its block is at",
    ),
    "no focus ring": ("keyboard", "outline: 3px solid", "outline: none", "focus does not show on #level"),
    "no tab stop": ("keyboard", "<summary>Basic", "<summary tabindex=-1>Basic", "reach summary of #basic"),
    "no key": (
        "keyboard",
        "<summary>Basic",
        "<summary onkeydown='event.preventDefault()' onkeyup='event.preventDefault()'>Basic",
        "Keyboard: Enter does not toggle #basic",
    ),
    "left open": (
        "printing",
        "const LEVELS",
        "addEventListener('beforeprint', () => openTo('advanced')); const LEVELS",
        "Print stylesheet: 2 details more are open after printing",
    ),
}


@pytest.mark.parametrize("name", LEVEL_FAULTS)
def test_level_check_can_fail(specimen, name):
    check, old, new, expected = LEVEL_FAULTS[name]
    found = LEVEL_CHECKS[check](specimen(old, new))
    assert any(expected in problem for problem in found), found


@pytest.mark.parametrize("name", LEVEL_CHECKS)
def test_level_check_passes_on_the_specimen(specimen, name):
    assert LEVEL_CHECKS[name](specimen()) == []


def test_level_check_without_scripts(specimen):
    assert levels.without_scripts(specimen(javascript=False)) == []
    shown = specimen('<div id="depth" hidden>', '<div id="depth">', javascript=False)
    assert levels.without_scripts(shown) == [
        "Progressive enhancement: #level is shown although it can do nothing"
    ]
    told = specimen(MAIN, MAIN + "<p>Use the depth control.</p>", javascript=False)
    assert levels.without_scripts(told) == [
        "Progressive enhancement: the text speaks of a control that is not there"
    ]


@each_of(
    ("old", "new", "expected"),
    [
        ('class="level-basic"', 'class="level-easy"', "0 of the four levels"),
        ('class="level-basic"', 'class="level-basic level-layman"', "2 of the four levels"),
        ('id="basic"', "", "has no id"),
        ("<summary>Basic</summary>", "", "no summary"),
        ('id="basic" open', 'id="basic"', "should be open"),
        ('id="advanced"', 'id="advanced" open', "should not be open"),
        (
            "<p>A picture in words, and no more.</p>",
            "<details class='level-basic' id='x' open>",
            "inside another",
        ),
        ('class="level-basic"', 'class="note"', "no block of level ['basic']"),
    ],
)
def test_level_blocks_check(tmp_path, old, new, expected):
    found = levels.blocks_are_well_formed(write_site(tmp_path, old, new).soup(""))
    assert any(expected in problem for problem in found), found


def test_level_blocks_check_passes_on_the_specimen(tmp_path):
    assert levels.blocks_are_well_formed(write_site(tmp_path).soup("")) == []


def test_the_rare_word_is_found(tmp_path):
    site = write_site(tmp_path)
    assert levels.word_only_in(site, "") is None, "the other page holds the same block"
    (tmp_path / "other" / "index.html").write_text(OTHER)
    assert levels.word_only_in(BuiltSite(tmp_path), "") == "bamboozled"


@each_of(
    ("old", "new", "expected"),
    [
        ('href="other/"', 'href="gone/"', 'Broken link: <a> "gone/" (Next): no such file'),
        ('href="other/"', 'href="other/#gone"', "no id 'gone' in /other/"),
        ('href="#advanced"', 'href="#gone"', "no id 'gone' in /"),
        (">the other page<", ">more<", "Link purpose: <a> \"other/\": 'more' does not say where it leads"),
        ('href="other/"', 'href="/other/"', "is absolute"),
        ('href="other/"', 'href="//other/"', "leaves the site"),
        ('href="data:,"', 'href="https://example.com/x.ico"', "from another host"),
        ('rel="canonical" href="https://example.org/"', 'rel="canonical" href="other/"', "canonical is"),
        ("<title>Specimen</title>", "<title>Specimen - Specimen</title>", "Page title: the title is"),
        ("<title>Specimen</title>", "", "the title is"),
        (
            'property="og:url" content="https://example.org/"',
            'property="og:url" content="./"',
            "Open Graph: og:url is './'",
        ),
        (
            'content="https://example.org/card.png"',
            'content="card.png"',
            "Open Graph: og:image is 'card.png'",
        ),
        ("https://example.org/card.png", "https://example.org/none.png", "and no picture of [3, 2]"),
        ('height" content="2"', 'height" content="3"', "and no picture of [3, 3]"),
        ("/docs/index.md", "/docs/none.md", "edits no file of docs/"),
    ],
)
def test_link_check_can_fail(tmp_path, old, new, expected):
    site = write_site(tmp_path, old, new)
    found = links.page(site, "") + links.canonical(site, "") + links.title(site, "") + links.shared(site, "")
    assert any(expected in problem for problem in found), found


def test_link_check_passes_on_the_specimen(tmp_path):
    site = write_site(tmp_path)
    assert links.page(site, "") + links.canonical(site, "") + links.page(site, "404.html") == []
    assert links.title(site, "") + links.shared(site, "") == []
    assert "some none" in str(links.shared(site, "other/"))


@each_of(
    ("old", "new", "count"),
    [
        ("Depth", "Level", 2),
        ("./?h=bamboozled", "./?h=other", 2),
        ("A square", "", 2),
        ("Depth</legend>", "</legend>", 3),
        ('id="depth" hidden', 'id="depth"', 3),
        ("<header>", '<header class="other">', 3),
    ],
)
def test_samples_show_each_part_of_the_template(tmp_path, old, new, count):
    """Words and addresses make no other template; the page that is not found has one of its own."""
    site = write_site(tmp_path)
    (tmp_path / "other" / "index.html").write_text(SPECIMEN.replace(old, new))
    assert len(site.samples) == count


def test_a_site_of_no_address_names_none(tmp_path):
    write_site(tmp_path)
    (tmp_path / "sitemap.xml").write_text("<urlset></urlset>")
    site = BuiltSite(tmp_path)
    assert site.pages == ["", "other/"]
    assert links.canonical(site, "") == ["Canonical link: canonical is ['https://example.org/']"]
    assert links.canonical(site, "other/") == links.page(site, "") == []


def test_other_link_checks_can_fail(tmp_path):
    site = write_site(tmp_path)
    (tmp_path / "x.css").write_text("a { background: url(gone.svg) } b { src: url('data:,') }")
    (tmp_path / "search.json").write_text('{"items": [{"location": "other/#gone"}]}')
    (tmp_path / "llms.txt").write_text("- [x](https://example.org/gone/) [y](other/)")
    (tmp_path / "orphan.html").write_text(OTHER)
    (tmp_path / "404.html").write_text(OTHER)
    assert links.stylesheets(site) == ["Broken link: x.css: url(gone.svg) is not a file of the site"]
    assert len(links.search_index(site)) == 1
    assert len(links.text_file(site, "llms.txt")) == 1
    assert links.pages_in_no_sitemap(site) == ["orphan.html"]
    assert "is relative" in links.page(site, "404.html")[0]
