"""```lab name```: a lab on its page. ```notebook name```: the line that offers a notebook."""

import html
import re
import urllib.parse

from weave import labs
from weave.directives.code import FOLD, DirectiveError, box, described, highlighted, printed

SOLVED = '<details class="success" data-search-exclude>'


def lab(page, name, body):
    """Its cells in their order, what each gives below it, solutions folded below their hints.

    Below a check stands what it says to the untouched starter; its words on a solution stand with that.
    """
    try:
        return list(_parts(page, name))
    except labs.LabError as error:
        raise DirectiveError(str(error)) from None


def notebook(page, name, body):
    """What a lab's page begins with, for a notebook that has its page from elsewhere."""
    try:
        return [offer(name, page.addresses)]
    except labs.LabError as error:
        raise DirectiveError(str(error)) from None


def _parts(page, name):
    cells = labs.cells(name)
    page.shows(labs.file(name))
    result = page.result(f"lab-{name}")
    solution = ""
    for number, cell in enumerate(cells):
        given = result["solved"][number]
        if cell.tag == "solution":
            solution += _code(page, cell)
        else:
            yield from _cell(page, cell, given, result["started"][number])
        if cell.tag == "check":
            solution += _label("What the check says to it") + _said(page, given["output"])
        if number == 0:
            yield offer(name, page.addresses)
        if solution and _step_ends(cells, number):
            yield f"{SOLVED}<summary>A solution</summary>{solution}</details>"
            solution = ""


def _cell(page, cell, given, started):
    """A cell that stands open on the page, and what it gives."""
    if cell.prose:
        yield cell.lines
    elif cell.tag == "judge":
        code = box(page, "highlight", html.escape(cell.text + "\n"))
        yield f"{FOLD}<summary>What the check tries</summary>{code}</details>"
    else:
        if cell.tag == "starter":
            yield _label("The starter, yours to change")
        yield _code(page, cell)
        if cell.tag == "check":
            yield _label("What it says to the starter")
            yield _said(page, started)
        elif given["output"]:
            yield printed(page, given)
        if given["figure"]:
            yield f"<figure>{described(given['figure'], cell.alt)}</figure>"


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
    return box(page, "no-copy printed said", html.escape(sentences))


def _label(text):
    return f'<p class="place">{text}</p>'


def _code(page, cell):
    return box(page, "highlight", highlighted(cell.lines))


def offer(name, addresses):
    """The line that offers a lab or a notebook to run, each file whole in its link: it needs no server."""
    site = addresses["site"].rstrip("/")
    home = f"{site}/" if site else ""
    links = []
    for file, solved, kind in labs.published(name):
        text = urllib.parse.quote(labs.notebook(name, solved, home), safe="/:,=()[]{}*!$@;")
        address = f"data:application/x-ipynb+json;charset=utf-8,{text}"
        links.append(f'<a href="{address}" download="{file}">{kind}</a>')
    return (
        f"<p>Work on it in Jupyter: download the {' or the '.join(links)}. "
        "It brings all its files along and needs torch and matplotlib only.</p>"
    )
