"""```lab name```: a lab on its page, and the line that offers a lab or a notebook."""

import html
import re
import urllib.parse

from executable_prose import labs, project
from executable_prose.registry import Parts, directive
from executable_prose.rendering.directives.code import (
    FOLD,
    DirectiveError,
    box,
    described,
    highlighted,
    printed,
)
from executable_prose.rendering.page import Addresses, Page

SMALLER = (
    " On Linux, pip may take torch with all that NVIDIA's GPUs need, gigabytes of it: a CPU is enough, and "
    "torch's own page on installing names the index of the smaller builds for it."
)
SOLVED = '<details class="success" data-search-exclude>'


@directive("lab")
def lab(page: Page, name: str, body: list[str]) -> Parts:
    """Its cells in their order, what each gives below it, solutions folded below their hints.

    Below a check stands what it says to the untouched starter; its words on a solution stand with that.
    """
    try:
        return list(_parts(page, name))
    except labs.LabError as error:
        raise DirectiveError(str(error)) from None


@lab.as_text
def _told(copy, name, body):
    return copy.cells(name)


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
    return f'<p class="place" data-search-exclude>{text}</p>'


def _code(page, cell):
    return box(page, "highlight", highlighted(cell.lines))


def offer(name: str, addresses: Addresses) -> str:
    """How to run a lab or a notebook: at a host's if the site has a repository of GitHub, or alone."""
    published = [
        (file, kind, html.escape(_address(name, file, solved, addresses)))
        for file, solved, kind in labs.published(name)
    ]
    links = [f'<a href="{address}" download="{file}">{kind}</a>' for file, kind, address in published]
    first, hosts = published[0][0], ""
    asked, newest = project.settings().notebooks, labs.needed()[0].partition("==")[2]
    if repository := html.escape(_repository(addresses)):
        colab = f"https://colab.research.google.com/github/{repository}/blob/{labs.BRANCH}/{first}"
        binder = f"https://mybinder.org/v2/gh/{repository}/{labs.BRANCH}?labpath={first}"
        hosts = (
            f'<a href="{colab}">Open in Colab</a>, where you need an account of Google, or '
            f'<a href="{binder}">open in Binder</a>, where you need none and may wait for minutes. '
        )
    return (
        f"<p>{hosts}On your own machine, without any account: save the {' or the '.join(links)} "
        f"in an empty folder, run <code>pip install {' '.join(asked.needs)} jupyterlab</code> there, and "
        f"then <code>jupyter lab {first}</code>. A notebook brings all its files along. It needs Python "
        f"{asked.python} or newer, and is tried with {asked.needs[0]} {asked.oldest} and {newest}."
        f"{SMALLER * ('torch' in asked.needs)}</p>"
    )


def _repository(addresses):
    """Owner and name of the repository at GitHub, if that is where it is."""
    before, _, name = addresses["repository"].rstrip("/").partition("https://github.com/")
    return "" if before else name


def _address(name, file, solved, addresses):
    """Where a notebook is: on the branch that is published with the site, or whole in its link."""
    if repository := _repository(addresses):
        return f"https://raw.githubusercontent.com/{repository}/{labs.BRANCH}/{file}"
    site = addresses["site"].rstrip("/")
    text = urllib.parse.quote(labs.notebook(name, solved, f"{site}/" if site else ""), safe="/:,=()[]{}*!$@;")
    return f"data:application/x-ipynb+json;charset=utf-8,{text}"
