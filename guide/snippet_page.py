"""```reference snippets/file.py```: all of a snippet's own page below its prose."""

import html
import re
import textwrap

from executable_prose import project, symbols
from executable_prose.registry import directive
from executable_prose.rendering.directives.code import DirectiveError, box, highlighted, placed
from guide import changes, heads
from guide import reference as stored

IN_A_MODEL = "How to use it in a known model. A test does this with a small model and compares the outputs."
UNSEARCHED = "data-search-exclude"
OLDER = "†"  # in a row whose times are older than the code
KEPT = {"anew": "nothing", "held": "tables"}


@directive("reference")
def reference(page, file, body):
    """The calls of a snippet, the whole file, its peers, its speed."""
    try:
        source = symbols.find(file)
        snippet = file.removeprefix("snippets/").removesuffix(".py")
        peers = stored.peers(snippet)
        machine, rows = stored.speed(snippet)
        page.top = warning_of_fixes(snippet, page.to("changes.md"))
    except (symbols.SymbolError, stored.ResultsError, changes.ChangesError) as error:
        raise DirectiveError(str(error)) from None
    if page.path() != heads.reference_page(file):
        raise DirectiveError(f"the reference of {file} belongs on docs/{heads.reference_page(file)}")
    parts = [["## What it offers"]]
    if not (calls := list(stored.calls(file))):
        raise DirectiveError(f"{file} has nothing that a reader could call")
    for name, signature, said in calls:
        signature = box(page, "highlight", highlighted(signature))
        parts += [[f"### `{name}` {{: .call }}"], signature]
        parts += [_docstring(page, method, *sections) for method, sections in said]
    if former := stored.former_names(file):
        parts += [[former_line(former)]]
    if supported := list(stored.supports(file)):
        parts += [["## Supported features"], feature_table(page, supported)]
    parts += [["## The file"], *placed(page, source)]
    if model := in_a_model(snippet):
        parts += [["## In a model", "", IN_A_MODEL], *placed(page, model)]
    parts += [["## Checked against"], peer_table(peers)]
    if rows:
        parts += [["## Speed { data-search-exclude }"], speed_table(machine, rows)]
    return parts


@reference.as_text
def _as_text(copy, file, body):
    """The file with what its page says beside it."""
    snippet = file.removeprefix("snippets/").removesuffix(".py")
    machine, rows = stored.speed(snippet)
    made = [*copy.plain(warning_of_fixes(snippet, "../changes.md")), "", *copy.code(symbols.find(file)), ""]
    if model := in_a_model(snippet):
        made += ["## In a model", "", IN_A_MODEL, "", *copy.code(model), ""]
    made += ["## Checked against", "", *peer_table(stored.peers(snippet)), ""]
    return made + (["## Speed", "", *copy.plain(speed_table(machine, rows))] if rows else [])


def in_a_model(snippet):
    """The code that puts a snippet into a known model, if there is some."""
    file = f"snippets/in_a_model/{snippet}.py"
    return symbols.find(file) if (project.ROOT / file).is_file() else None


def warning_of_fixes(snippet, changes_page):
    """What stands below the title, of copies that give wrong numbers; `changes_page` lists all changes."""
    if not (entries := changes.fixes_of(f"{snippet}.py")):
        return []
    return [
        f'??? warning "Fixed on {entries[0].date}: copies from before give wrong numbers"',
        "",
        *(f"    - {each.date}: {each.words}" for each in entries),
        "",
        f"    The first lines of a copy have its date. [Changes]({changes_page}) lists what changed since.",
    ]


def _docstring(page, method, description, *sections):
    """Return a whole docstring as HTML; the search finds only its summary."""
    name = f"<code>{method}</code>: " if method else ""
    _, (summary, *more) = description
    rest = "".join(_section(page, title, texts) for title, texts in [("", more), *sections])
    return f'<p class="call">{name}{_flowing(summary)}</p>' + (
        rest and f"<section {UNSEARCHED}>{rest}</section>"
    )


def _section(page, title, paragraphs):
    if title in ("Args", "Attributes", "Raises"):
        shown = "".join(map(_entries, paragraphs))
    else:
        shown = "".join(_paragraph(page, text) for text in paragraphs)
    return f'<p class="section">{title}</p>{shown}' if title else shown


def _entries(text):
    """Return the parameters of Args, or the exceptions of Raises, as a list of definitions."""
    pairs = (
        f"<dt><code>{html.escape(name)}</code></dt><dd>{_flowing(words)}</dd>"
        for name, words in stored.entries(text)
    )
    return f'<dl class="call">{"".join(pairs)}</dl>'


def _paragraph(page, text):
    if text.startswith((">>> ", "    ")):
        return box(page, "no-copy printed", html.escape(f"{textwrap.dedent(text)}\n"))
    kind = ' class="raises"' if text.startswith("ValueError: ") else ""
    return f"<p{kind}>{_flowing(text)}</p>"


def _flowing(text):
    return re.sub("`([^`]+)`", r"<code>\1</code>", html.escape(" ".join(text.split())))


def former_line(former):
    """Return the line of former names, in Markdown; links to the headings that they had lead here."""
    names = (f'<span id="{old.lower()}">`{old}`</span> (now `{new}`)' for old, new in former.items())
    return f"Former names, which work until the next release: {', '.join(names)}."


def feature_table(page, supported):
    """Return what each function supports, in lines of Markdown."""
    known = [name for name in stored.FEATURES if any(name in listed for _, listed in supported)]
    rows = [
        f"| `{name}` | {' | '.join('✓' if each in listed else '–' for each in known)} |"
        for name, listed in supported
    ]
    return [
        f"Tests check each ✓; [the list of all files]({page.to('files.md')}) says how. A dash: not tested.",
        "",
        f"| Function | {' | '.join(stored.FEATURES[name] for name in known)} |",
        "|---|" + ":-:|" * len(known),
        *rows,
    ]


def peer_table(peers):
    """Who a snippet is checked against, in lines of Markdown."""
    if not peers:
        return [
            "The tests know no implementation by other people. They compare the file with its definition, "
            "written as a loop in plain Python."
        ]
    rows = [f"| `{name}` | {version} | {_difference(gap)} |" for name, version, gap in peers]
    return [
        "Other people wrote these implementations. The last column is the largest difference that the tests "
        "found. An implementation that computes in float32 differs by its rounding.",
        "",
        "| Implementation | Version | Largest difference |",
        "|---|---|---|",
        *rows,
    ]


def speed_table(machine, rows):
    """How fast a snippet is, in lines of Markdown."""
    lines = [f"| {' | '.join(cells)} |" for row in rows for cells in _speeds(row)]
    changed = ", ".join(f"`{name}`" for name in sorted({name for row in rows for name in row["older"]}))
    return [
        f"Measured on {machine['date']} with torch {machine['torch']} on one thread of {machine['cpu']} "
        f"({machine['system']}). *Reused*: what the caller computes once and reuses. "
        "*Copies*: the time as a multiple of copying the output once. *Forward*, *backward* and "
        "*compiled* (forward through `torch.compile`): the time divided by that of the other implementation, "
        "which is the fastest in one of these columns; below one, this file is faster."
        + ("" if machine["compiler"] else " There was no C++ compiler, so nothing was compiled.")
        + (f" {OLDER}: measured before {changed} changed." if changed else ""),
        "",
        "| Work | Reused | Microseconds | Copies | Relative to | Forward | Backward | Compiled |",
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
        work += f" {OLDER}"
    own = [work, KEPT[row["story"]], f"{row['microseconds']['forward']:,.0f}", copies]
    for peer in row["peers"] or [{"name": "–", "less": None}]:
        beside = f"{peer['name']} (does less)" if peer["less"] else peer["name"]
        ratios = (peer.get(column) for column in ("forward", "backward", "compiled"))
        yield [*own, beside, *("–" if ratio is None else f"{ratio:.2f}" for ratio in ratios)]
        own = [""] * len(own)


def _difference(number):
    if number == 0:
        return "none"
    digits, _, power = f"{number:.0e}".partition("e")
    return f"{digits} × 10<sup>{str(int(power)).replace('-', '−')}</sup>"
