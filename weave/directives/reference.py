"""```reference snippets/file.py```: all of a snippet's own page below its prose."""

import html

from weave import project, symbols
from weave import reference as known
from weave.directives.code import DirectiveError, box, highlighted, placed, reference_page

DROP_IN = "How it gets into a known model. A test does so to a small one and compares what it gives."
KEPT = {"anew": "nothing", "held": "tables"}


def reference(page, file, body):
    """The calls of a snippet, the whole file, its peers, its speed."""
    try:
        source = symbols.find(file)
        snippet = file.removeprefix("snippets/").removesuffix(".py")
        peers = known.peers(snippet)
        machine, rows = known.speed(snippet)
    except (symbols.SymbolError, known.LedgerError) as error:
        raise DirectiveError(str(error)) from None
    if page.path() != reference_page(file):
        raise DirectiveError(f"the reference of {file} belongs on docs/{reference_page(file)}")
    parts = [["## What it offers"]]
    if not (calls := list(known.calls(file))):
        raise DirectiveError(f"{file} has nothing that a reader could call")
    for name, signature, sentence, errors in calls:
        signature = box(page, "highlight", highlighted(signature))
        parts += [[f"### `{name}` {{: .call }}"], signature, _paragraph(sentence)]
        parts += [_paragraph(error, "raises") for error in errors]
    parts += [["## The file"], *placed(page, source)]
    if (project.ROOT / (model := f"tests/drop_in/{snippet}.py")).is_file():
        parts += [["## In a model", "", DROP_IN], *placed(page, symbols.find(model))]
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
