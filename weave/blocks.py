"""What directives become. Each function returns parts: HTML, or lists of Markdown lines."""

import html
import re
import urllib.parse

from pygments import highlight
from pygments.filter import simplefilter
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from pygments.token import Name, Operator, Punctuation, Text

from weave import claims as claims_
from weave import diagrams, labs, live, project, symbols
from weave import reference as reference_
from weave.cached import cached

SHOWN = ("figure", "output", "code", "table")
# Folded code is for who opens it: it would drown the prose in search results.
FOLD = '<details class="code" data-search-exclude>'
SOLVED = '<details class="success" data-search-exclude>'
KEPT = {"anew": "nothing", "held": "tables"}


class BlockError(Exception):
    """The directive cannot be made; the message says why."""


def exhibit(page, argument, caption):
    """What an exhibit drew or printed, with its code folded; or, for show=code, its code first and open.

    For show=table, what it printed is a table in Markdown.
    """
    name, show = _exhibit_argument(argument)
    result = page.result(name)
    show = show or ("figure" if result["figure"] else "output")
    module, _, function = name.partition(".")
    source = symbols.find(f"exhibits/{module}.py", function)
    caption = ["/// caption", *caption, "///"] if any(caption) else []
    if show == "figure":
        if not result["figure"]:
            raise BlockError(f"exhibit {name!r} draws no figure")
        if not source.says:
            raise BlockError(
                f"exhibit {name!r} draws a figure but has no docstring, whose first paragraph is the figure's"
                f" text alternative (at {source.file}:{source.first})"
            )
        figure = _described(result["figure"], source.says)
        if "live" in result:
            if not caption:
                raise BlockError(f"exhibit {name!r} is live, so its directive needs a caption")
            caption.insert(1, f"    attrs: {{data-live: {name}}}")
            figure += live.shown(name, result["live"])
        return [figure, caption, _folded(page, "The code that drew this", source)]
    if not result["output"]:
        raise BlockError(f"exhibit {name!r} prints nothing")
    if show == "table":
        return [_table(name, result), caption, _folded(page, "The code that made this", source)]
    if show == "output":
        return [_printed(page, result), caption, _folded(page, "The code that printed this", source)]
    return [*_placed(page, source), _printed(page, result), caption]


def _described(svg, alternative):
    """The figure with the words that stand for it, which are no part of its result: they need no run."""
    return svg.replace(' role="img"', f' role="img" aria-label="{html.escape(alternative)}"', 1)


def _table(name, result):
    lines = result["output"].splitlines()
    if not all(line.startswith("|") for line in lines):
        raise BlockError(f"exhibit {name!r} prints no table: each line must begin with |")
    return lines


def _exhibit_argument(argument):
    name, *options = argument.split() or [""]
    show = dict(option.partition("=")[::2] for option in options)
    if not name or set(show) - {"show"} or show.get("show", "figure") not in SHOWN:
        ways = ", ".join(f"show={way}" for way in SHOWN)
        raise BlockError(f"expected 'module.function' and perhaps one of {ways}, got {argument!r}")
    return name, show.get("show")


def listing(page, file, symbol):
    """The source of a symbol or of a whole file; that of a snippet is linked to its own page."""
    try:
        source = symbols.find(file, symbol)
    except symbols.SymbolError as error:
        raise BlockError(str(error)) from None
    if file.startswith("snippets/") and not (project.DOCS / _reference(file)).is_file():
        raise BlockError(f"the listing links to docs/{_reference(file)}, which is not there")
    return _placed(page, source)


def _reference(file):
    """The page that shows a whole snippet, relative to docs/."""
    return f"reference/{file.removeprefix('snippets/').removesuffix('.py')}.md"


def reference(page, file):
    """All of a snippet's own page below its prose: its calls, the whole file, its peers, its speed."""
    try:
        source = symbols.find(file)
        snippet = file.removeprefix("snippets/").removesuffix(".py")
        peers = reference_.peers(snippet)
        machine, rows = reference_.speed(snippet)
    except (symbols.SymbolError, reference_.LedgerError) as error:
        raise BlockError(str(error)) from None
    if page.path() != _reference(file):
        raise BlockError(f"the reference of {file} belongs on docs/{_reference(file)}")
    parts = [["## What it offers"]]
    if not (calls := list(reference_.calls(file))):
        raise BlockError(f"{file} has nothing that a reader could call")
    for name, signature, sentence, errors in calls:
        signature = _box(page, "highlight", _highlighted(signature))
        parts += [[f"### `{name}` {{: .call }}"], signature, _paragraph(sentence)]
        parts += [_paragraph(error, "raises") for error in errors]
    parts += [["## The file"], *_placed(page, source)]
    parts += [["## Checked against"], _peers(peers)]
    if rows:
        parts += [["## Speed"], _speed(machine, rows)]
    return parts


def _paragraph(text, kind="call"):
    return f'<p class="{kind}">{html.escape(" ".join(text.split()))}</p>'


def _peers(peers):
    if not peers:
        return [
            "The tests compare it with no implementation by others. They hold it to its definition, "
            "written out in plain Python."
        ]
    rows = [f"| `{name}` | {version} | {_gap(gap)} |" for name, version, gap in peers]
    return [
        "These implementations were written by others. Beside each stands the largest difference that "
        "the tests found. One that works in float32 differs by its rounding.",
        "",
        "| Implementation | Version | Largest difference |",
        "|---|---|---|",
        *rows,
    ]


def _speed(machine, rows):
    lines = [f"| {' | '.join(cells)} |" for row in rows for cells in _speeds(row)]
    return [
        f"Measured on {machine['date']} with torch {machine['torch']} on one thread of {machine['cpu']} "
        f"({machine['system']}). *Kept* says whether tables and the like are made anew each time, or held by "
        "who calls. *Copies* is the time as a multiple of copying once what comes out. *Forward*, *backward* "
        "and *compiled*, which is forward through `torch.compile`, are the time divided by that of the "
        "implementation beside it, the fastest in one of these columns: below one, this file is faster."
        + ("" if machine["compiler"] else " There was no C++ compiler, so nothing was compiled."),
        "",
        "| Work | Kept | Microseconds | Copies | Beside | Forward | Backward | Compiled |",
        "|---|---|--:|--:|---|--:|--:|--:|",
        *lines,
        "",
        '??? note "How it was measured"',
        "",
        f"    {machine['method']}",
    ]


def _speeds(row):
    """The cells of each line: the first has the work itself, the others only another implementation."""
    copies = f"{row['copies']['forward']:.1f}"
    if "compiled" in row["copies"]:
        copies += f", compiled {row['copies']['compiled']:.1f}"
    work = f"{row['what']}, {row['size']}"
    if row["older"]:
        work += f" *(measured before {', '.join(f'`{name}`' for name in row['older'])} changed)*"
    own = [work, KEPT[row["story"]], f"{row['microseconds']['forward']:,.0f}", copies]
    for peer in row["peers"] or [{"name": "–", "less": None}]:
        beside = f"{peer['name']} (does less)" if peer["less"] else peer["name"]
        ratios = (peer.get(column) for column in ("forward", "backward", "compiled"))
        yield [*own, beside, *("–" if ratio is None else f"{ratio:.2f}" for ratio in ratios)]
        own = [""] * len(own)


def _gap(number):
    if number == 0:
        return "none"
    digits, _, power = f"{number:.0e}".partition("e")
    return f"{digits} × 10<sup>{str(int(power)).replace('-', '−')}</sup>"


def lab(page, name, site):
    """A lab: its cells in their order, what each gives below it, solutions folded below their hints.

    Below a check stands what it says to the untouched starter; its words on a solution stand with that.
    """
    try:
        cells = labs.cells(name)
        page.shows(labs.file(name))
        result = page.result(f"lab-{name}")
        parts, solutions = [], []
        for number, cell in enumerate(cells):
            given = result["solved"][number]
            if cell.prose:
                parts.append(cell.lines)
            elif cell.tag == "solution":
                solutions.append(_code_of(page, cell))
            elif cell.tag == "judge":
                parts.append(_folded_cell(page, "What the check tries", html.escape(cell.text + "\n")))
            elif cell.tag == "check":
                said = _said(page, result["started"][number])
                parts += [_code_of(page, cell), _label("What it says to the starter"), said]
                said = _said(page, given["output"])
                solutions.append(_label("What the check says to it") + said)
            else:
                starter = cell.tag == "starter"
                parts += [_label("The starter, yours to change")] if starter else []
                parts.append(_code_of(page, cell))
                parts += [_printed(page, given)] if given["output"] else []
                if given["figure"]:
                    parts.append(f"<figure>{_described(given['figure'], cell.alt)}</figure>")
            if number == 0:
                parts.append(_notebooks(name, site))
            if solutions and _step_ends(cells, number):
                parts.append(f"{SOLVED}<summary>A solution</summary>{''.join(solutions)}</details>")
                solutions = []
    except labs.LabError as error:
        raise BlockError(str(error)) from None
    return parts


def _step_ends(cells, number):
    """Whether a cell is the last of a step: the hints below a check, or a check without hints."""

    def hints(at):
        return at < len(cells) and cells[at].prose and "<details" in cells[at].text

    if hints(number):
        return cells[number - 1].tag == "check"
    return cells[number].tag == "check" and not hints(number + 1)


def _said(page, output):
    """What a check says: sentences, which a page breaks into lines of its own."""
    sentences = re.sub(r"(?<=\S)\n(?=\S)", " ", output)
    return _box(page, "no-copy printed said", html.escape(sentences))


def _folded_cell(page, title, code):
    return f"{FOLD}<summary>{title}</summary>{_box(page, 'highlight', code)}</details>"


def _label(text):
    return f'<p class="place">{text}</p>'


def _code_of(page, cell):
    return _box(page, "highlight", _highlighted(cell.lines))


def _notebooks(name, site):
    """The line that offers both notebooks, each whole in its link: it needs no server."""
    home = f"{site}/" if site else ""
    links = []
    for solved, kind in ((False, "exercise"), (True, "solution")):
        text = urllib.parse.quote(labs.notebook(name, solved, home), safe="/:,=()[]{}*!$@;")
        address = f"data:application/x-ipynb+json;charset=utf-8,{text}"
        file = f"{name}.ipynb" if kind == "exercise" else f"{name}-{kind}.ipynb"
        links.append(f'<a href="{address}" download="{file}">{kind} notebook</a>')
    return (
        f"<p>Work on it in Jupyter: download the {' or the '.join(links)}. "
        "They bring all their files along and need torch and matplotlib only.</p>"
    )


def diagram(page, body):
    """A Mermaid diagram, drawn."""
    try:
        return [f'<div class="diagram">{diagrams.render(chr(10).join(body))}</div>']
    except diagrams.DiagramError as error:
        raise BlockError(f"the diagram cannot be drawn: {error}") from None


def claims(page, repository):
    """Every claim, by the page that states it first: its sentence, where it is stated, and its tests."""
    try:
        known = claims_.registry()
    except claims_.ClaimError as error:
        raise BlockError(str(error)) from None
    stated = claims_.citations()
    for claim in claims_.unstated(known, stated):
        test = claim.tests[0]
        raise BlockError(f"no page states the claim {claim.id!r} of {test.file}:{test.line}")
    for id in stated.keys() - known.keys():
        raise BlockError(f"no test holds the claim {id!r} of docs/{stated[id][0]}")
    parts, chapter = [], None
    for id, paths in stated.items():
        if paths[0] != chapter:
            chapter = paths[0]
            parts.append([f"## {claims_.title(chapter)}"])
        parts += _claim(page, known[id], paths, repository)
    return parts


def _claim(page, claim, paths, repository):
    links = ", ".join(f"[{claims_.title(path)}]({page.to(path)}#states-{claim.id})" for path in paths)
    sentence = [f'<span id="{claim.id}"></span>**{claim.statement}** Stated in {links}.']
    return [sentence, *(_test(page, test, repository) for test in claim.tests)]


def _test(page, test, repository):
    """One test that holds a claim, its source folded."""
    place = f"{test.file}, line {test.line}"
    if repository:
        place = f'<a href="{repository}/blob/main/{test.file}#L{test.line}">{place}</a>'
    source = html.escape("\n".join(symbols.find(test.file, test.name).lines) + "\n")
    return (
        f"{FOLD}<summary><code>{test.name}</code></summary>"
        f"{place}{_box(page, 'no-copy test', source)}</details>"
    )


def _folded(page, title, source):
    """Code that few will open: without colours, which would be half of the page's elements."""
    place = f'<p class="place"><code>{source.file}</code>, {_lines(source)}</p>'
    code = _box(page, "highlight", html.escape("\n".join(source.lines) + "\n"))
    return f"{FOLD}<summary>{title}</summary>{place}{code}</details>"


def _placed(page, source):
    """Code under a line that says where it stands; a snippet links to its own page, and there to the file."""
    if page.path() == _reference(source.file):
        return [_download(source), _code(page, source)]
    file = f"`{source.file}`"
    if source.file.startswith("snippets/"):
        file = f"[{file}]({page.to(_reference(source.file))})"
    return [[f"{file}, {_lines(source)}", "{: .place }"], _code(page, source)]


def _download(source):
    """The line above a whole snippet, with the file itself in the link: it needs no server."""
    text = urllib.parse.quote("\n".join(source.lines) + "\n")
    name = source.file.rpartition("/")[2]
    link = f'<a href="data:text/x-python;charset=utf-8,{text}" download="{name}">download</a>'
    return f'<p class="place"><code>{source.file}</code>, {len(source.lines)} lines, {link}</p>'


def _lines(source):
    return f"lines {source.first} to {source.first + len(source.lines) - 1}"


def _code(page, source):
    return _box(page, "highlight", _highlighted(source.lines))


def _printed(page, result):
    return _box(page, "no-copy printed", html.escape(result["output"]))


def _box(page, kind, text):
    """Preformatted text. The theme names its copy button after the box, so each box has an id.

    What nobody copies is no-copy: on a phone the button would lie on the text. Every page loads
    the search index, so code stays out of it.
    """
    head = f'<div class="{kind}" id="{page.fresh_id(kind.split()[-1])}" data-search-exclude>'
    return f"{head}<pre><code>{text}</code></pre></div>"


@simplefilter
def _plain_names(self, lexer, stream, options):
    """Names and punctuation look like text: without a span each, a page has half the elements."""
    kept = (Name.Builtin, Name.Function, Name.Class, Name.Decorator)
    for token, text in stream:
        quiet = token in Punctuation or (token in Operator and token is not Operator.Word)
        named = token in Name and not any(token in kind for kind in kept)
        yield (Text if quiet or named else token), text


def _highlighted(lines):
    return _coloured("\n".join(lines) + "\n")


@cached
def _coloured(code):
    lexer = PythonLexer(stripnl=False)
    lexer.add_filter(_plain_names())
    return highlight(code, lexer, HtmlFormatter(nowrap=True))
