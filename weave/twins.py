"""A plain Markdown twin of each page, and all of them in one file, for programs that read.

What a directive shows stands in it as code, as text, or as the words that stand for a figure.
"""

import os
import posixpath
import re
from pathlib import Path

from weave import claims, copies, heads, labs, project, symbols
from weave import reference as known
from weave.directives.changes import listed
from weave.directives.exhibit import argument
from weave.directives.reference import DROP_IN, compared, drop_in, fixed, timed
from weave.extension import CLAIM, RESULTS, VALUE, Directives, Page, formatted

BLOCK = re.compile(r'^(?:\?\?\?\+?|!!!) +(?P<kind>[\w-]+)(?: +"(?P<title>.*)")?$')
FRONT = re.compile(r"\A---\n.*?\n---\n", re.S)
LINK = re.compile(
    r"\]\((?!\))(?:(?P<path>[^():#\s]+)\.(?P<end>md|py|json))?(?P<rest>(?:\?[\w=]+)?(?:#[\w-]+)?)\)"
)
ATTRIBUTES = re.compile(r" *\{:? *[.#][\w-]+(?: [^{}]*)?\}")
GAPS = re.compile(r"(^(`{3,}).*?^\2$)|\n{3,}", re.M | re.S)  # but for those of listings
TWIN = "index.md"  # beside the page's own index.html


def write(site):
    """The twin of each page in its folder, and llms-full.txt in the order of llms.txt."""
    texts = {
        path: _text(path) for kind in ("*.md", "notebooks/*.py") for path in sorted(project.DOCS.rglob(kind))
    }
    for path, text in texts.items():
        file = site / folder(path) / TWIN
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_linked(path, text, folder(path)), encoding="utf-8")
    listed = project.DOCS / "llms.txt"
    if listed.is_file():
        places = re.findall(r"^- \[.*?\]\((\S+?)/\)", listed.read_text(encoding="utf-8"), re.M)
        found = {folder(path) or ".": _linked(path, text, "") for path, text in texts.items()}
        (site / "llms-full.txt").write_text("\n".join(map(found.get, places)), encoding="utf-8")


def folder(path):
    """The folder of the site in which a page stands."""
    return path.relative_to(project.DOCS).with_suffix("").as_posix().removesuffix("index").rstrip("/")


def _text(path):
    if path.suffix == ".py":
        return "\n".join(_cells(path.stem)).strip() + "\n"
    text = path.read_text(encoding="utf-8")
    plain = "\n".join(_plain(FRONT.sub("", text).split("\n")))
    plain = plain.replace("`#!minutes`", str(Page.minutes(text)))
    return GAPS.sub(lambda gap: gap[1] or "\n\n", plain).strip() + "\n"


def _linked(path, text, start):
    """With links to pages of the site, as they are named from the folder `start`."""

    def link(match):
        if match["end"] == "json":  # a file of the site, not a page
            there = path.parent.relative_to(project.DOCS) / f"{match['path']}.json"
            return f"]({posixpath.relpath(there.as_posix(), start or '.')})"
        target = Path(os.path.normpath(path.parent / f"{match['path']}.md")) if match["path"] else path
        there = posixpath.relpath(folder(target) or ".", start or ".")
        return f"]({there}/{match['rest']})"

    return LINK.sub(link, text)


def _plain(lines):
    made, number = [], 0
    while number < len(lines):
        line = lines[number]
        if fence := Directives.FENCE.match(line):
            end = _closed(lines, number, fence)
            body = [each.removeprefix(fence["indent"]) for each in lines[number + 1 : end]]
            made += _fenced(fence, body) or lines[number : end + 1]
            number = end
        elif listing := Directives.LISTING.match(line):
            made += _code(symbols.find(listing["file"], listing["symbol"]))
        elif block := BLOCK.match(line):
            end = _dedented(lines, number)
            title = block["title"] or block["kind"].capitalize()
            made += [f"### {title}" if block["kind"].startswith("level-") else f"**{title}**", ""]
            made += _plain([each.removeprefix("    ") for each in lines[number + 1 : end]])
            number = end - 1
        else:
            made.append(_words(line))
        number += 1
    return made


def _closed(lines, start, fence):
    close = re.compile(rf"^\s*{fence['fence'][0]}{{{len(fence['fence'])},}}\s*$")
    return next(number for number in range(start + 1, len(lines)) if close.match(lines[number]))


def _dedented(lines, start):
    """The number of the first line after a block that stands four columns deeper."""
    after = (n for n in range(start + 1, len(lines)) if lines[n].strip() and not lines[n].startswith("    "))
    return next(after, len(lines))


def _words(line):
    line = re.sub(VALUE, lambda value: formatted(RESULTS.get, value[1], value[2] or ""), line)
    return ATTRIBUTES.sub("", re.sub(rf" ?{CLAIM}", "", line))


def _fenced(fence, body):
    kind, rest = fence["kind"], fence["rest"].strip()
    if kind == "exhibit":
        return _exhibit(rest, [_words(line) for line in body])
    if kind == "lab":
        return _cells(rest)
    if kind == "reference":
        return _reference(rest)
    if kind == "files":
        return _files()
    if kind == "changes":
        return [line for lines in listed("`{}`".format) for line in ["", *lines]]
    if kind == "claims":
        known = claims.registry()
        return [f"- {known[id].statement}" for id in claims.citations()]
    return None


def _cells(name):
    cells = (cell.lines if cell.prose else _box("python", cell.lines) for cell in labs.cells(name))
    return [line for lines in cells for line in ["", *lines]]


def _exhibit(rest, caption):
    name, show = argument(rest)
    result = RESULTS.get(name)
    module, _, function = name.partition(".")
    source = symbols.find(f"exhibits/{module}.py", function)
    if show != "table" and (show or not result["figure"]):
        shown = [*(_code(source) if show == "code" else []), "", *_box("text", result["output"].splitlines())]
    else:
        shown = result["output"].splitlines() if show == "table" else [f"*Figure: {source.says}*"]
    return [*shown, "", *caption]


def _reference(file):
    """A snippet with what its page says beside it."""
    snippet = file.removeprefix("snippets/").removesuffix(".py")
    machine, rows = known.speed(snippet)
    made = [*_plain(fixed(snippet, "../files.md")), "", *_code(symbols.find(file)), ""]
    if model := drop_in(snippet):
        made += ["## In a model", "", DROP_IN, "", *_code(model), ""]
    made += ["## Checked against", "", *compared(known.peers(snippet)), ""]
    return made + (["## Speed", "", *_plain(timed(machine, rows))] if rows else [])


def _files():
    """Each file with its page and what it is."""
    made = [f"One archive of all: on [the page](files.md). Their versions: [{copies.LIST}]({copies.LIST})."]
    for title, names in known.groups().items():
        made += ["", f"## {title}", ""]
        made += [
            f"- [{name}.py](reference/{name}.md): {known.sentence(f'snippets/{name}.py')}" for name in names
        ]
    return made


def _code(source):
    lines = heads.handed_out("\n".join(source.lines), os.environ.get("SITE_URL", "")).split("\n")
    return [f"`{source.file}`:", "", *_box("python", lines)]


def _box(kind, lines):
    return [f"````{kind}", *lines, "````"]
