"""```lesson```: the plan of a lesson from docs/lesson.toml; ```figures```: all figures, by their pages.

The slides of the lesson are slides/index.html, which needs no script, and slides/slides.md for Marp.
"""

import html
import os
import textwrap
import tomllib

from markdown import markdown

from executable_prose import project, symbols
from executable_prose.reading import parsed
from executable_prose.registry import built, directive
from executable_prose.rendering.directives.code import DirectiveError
from executable_prose.rendering.directives.exhibit import address, taken
from executable_prose.site.figure_files import homes, title
from executable_prose.site.markdown_copies import folder
from guide import heads

FILE = "docs/lesson.toml"
TITLE = "Positional encoding in Transformers"
MARP = f"---\nmarp: true\ntitle: {TITLE}\n---\n\n"
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<link rel="icon" href="../assets/favicon.svg">
<link rel="stylesheet" href="../assets/slides.css">
<title>Slides: positional encoding in Transformers</title>
</head>
<body>
{slides}
</body>
</html>
"""


def parts():
    """The parts of the lesson, in order."""
    return parsed(_read, project.ROOT / FILE)


def _read(text):
    return tomllib.loads(text)["part"]


@directive("lesson")
def lesson(page, argument, body):
    """A table of the parts, below links to the slides where the build writes them."""
    rows = ["| Minutes | Topic | Figure | Question | Answer |", "|--:|---|---|---|---|"]
    for part in parts():
        name = part["figure"]
        shown = f"[{name}]({page.to(_home(name))}#{address(name)})"
        topic = f"[{part['title']}]({page.to(part['page'])})"
        rows.append(f"| {part['minutes']} | {topic} | {shown} | {part['ask']} | {part['answer']} |")
    rows.append(f"| {sum(part['minutes'] for part in parts())} | all | | | |")
    if not page.addresses["data"]:
        return [rows]
    there = f'<a href="{page.up()}slides/">the slides of this lesson</a>'
    marp = f'<a href="{page.up()}slides/slides.md" download>their Markdown</a>'
    return [
        f"<p>Here are {there}, one page to scroll or to print, and {marp}, "
        "to edit and to convert with Marp.</p>",
        rows,
    ]


@lesson.as_text
def _(copy, argument, body):
    told = "- {minutes} minutes: {title}. {ask} {answer}"
    return [told.format(**part) for part in parts()]


@directive("figures")
def figures(page, argument, body):
    """A fold for each page that has figures of its own: what each shows, and what can be taken of it."""
    made = []
    for path, names in _by_page().items():
        rows = [_row(page, path, name) for name in names if page.result(name)["figure"]]
        if rows:
            head = f"<summary>{html.escape(title(path))} ({len(rows)})</summary>"
            made.append(f"<details data-search-exclude>{head}<ul>{''.join(rows)}</ul></details>")
    return made


@figures.as_text
def _(copy, argument, body):
    return [f"- {title(path)}: {', '.join(names)}" for path, names in _by_page().items()]


def _by_page():
    pages = {}
    for name, path in homes().items():
        pages.setdefault(path, []).append(name)
    return pages


def _row(page, path, name):
    there = f"{page.up()}{folder(path)}/#{address(name)}"
    says = html.escape(textwrap.shorten(_says(name).rstrip("."), 100, placeholder=" …"))
    more = f": {taken(page, name, page.result(name))}" if page.addresses["data"] else ""
    return f'<li><a href="{there}">{says}</a>{more}</li>'


def _home(name):
    if name not in (known := homes()):
        raise DirectiveError(f"{FILE}: no page shows a figure {name!r}")
    return known[name].relative_to(project.DOCS).as_posix()


def _says(name):
    """The text alternative of a figure."""
    module, _, function = name.partition(".")
    return symbols.find(f"{project.settings().examples}/{module}.py", function).says


@built
def write(site):
    """The slides, from one text in Markdown."""
    if not (project.ROOT / FILE).is_file():
        return
    made = slides(heads.address(os.environ.get("SITE_URL", "")) or "../")
    room = site / "slides"
    room.mkdir()
    (room / "slides.md").write_text(MARP + "\n---\n\n".join(made), encoding="utf-8")
    shown = (f"<section>\n{markdown(slide)}\n</section>" for slide in slides("../"))
    (room / "index.html").write_text(PAGE.format(slides="\n".join(shown)), encoding="utf-8")


def slides(up):
    """Each slide in Markdown, with addresses that begin with `up`; what the teacher says is a comment."""
    first = (
        f"# {TITLE}\n\n[The guide, with all of its figures]({up}), code under 0BSD, figures under CC BY 4.0\n"
    )
    return [first, *(_slide(part, up) for part in parts())]


def _slide(part, up):
    points = "".join(f"- {point}\n" for point in part["points"])
    picture = f"![{_says(part['figure'])}]({up}data/{part['figure']}.svg)"
    page = f"[the page]({up}{part['page'].removesuffix('.md')}/)"
    links = f"[The figure with its caption]({up}embed/{part['figure']}/), {page}"
    notes = f"<!-- {part['minutes']} minutes. Answer: {part['answer']} -->"
    return f"## {part['title']}\n\n{picture}\n\n{points}\n**{part['ask']}**\n\n{links}\n\n{notes}\n"
