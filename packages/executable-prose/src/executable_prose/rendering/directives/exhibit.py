"""```exhibit module.function```: what an exhibit drew or printed, with its code."""

import ast
import html
import textwrap

from executable_prose import project, symbols
from executable_prose.figures import live_html
from executable_prose.outcome import Result
from executable_prose.registry import Parts, directive
from executable_prose.rendering.directives.code import (
    DirectiveError,
    described,
    folded,
    placed,
    printed,
)
from executable_prose.rendering.page import Page

SHOWN = ("figure", "still", "output", "copy", "code", "table", "editable")


@directive("exhibit")
def exhibit(page: Page, asked: str, caption: list[str]) -> Parts:
    """The figure or the output with the code folded; or, for show=code, the code first and open.

    For show=still, the figure alone, without its code and its controls; for show=copy, the output has a copy
    button; for show=table, what it printed is a table in Markdown; for show=editable, its body is plain
    Python, which a reader changes and runs in the page.
    """
    name, show = argument(asked)
    result = page.result(name)
    show = show or ("figure" if result["figure"] else "output")
    source = _source(name)
    if show == "still":
        return [_still(page, name, result, source), ["/// caption", *caption, "///"]]
    known = f"    attrs: {{id: {address(name)}}}"
    caption = ["/// caption", known, *caption, "///"] if any(caption) else []
    if show == "figure":
        return [
            _figure(page, name, result, source, caption),
            caption,
            folded(page, "The code that drew this", source, **_offers(page, name, result, caption)),
        ]
    if not result["output"]:
        raise DirectiveError(f"exhibit {name!r} prints nothing")
    if show == "table":
        return [_table(name, result), caption, folded(page, "The code that made this", source)]
    if show in ("output", "copy"):
        shown = printed(page, result, copied=show == "copy")
        return [shown, caption, folded(page, "The code that printed this", source)]
    if show == "editable":
        return [_editable(page, name, source, printed(page, result)), caption]
    return [*placed(page, source, brief=True), printed(page, result), caption]


@exhibit.as_text
def _told(copy, asked, caption):
    """What it printed, or the words that stand for its figure, above the caption."""
    name, show = argument(asked)
    result, source = copy.results.get(name), _source(name)
    if show not in ("table", "still") and (show or not result["figure"]):
        shown = copy.code(source) if show == "code" else []
        shown += ["````python", *_body(source), "````"] if show == "editable" else []
        shown += ["", "````text", *result["output"].splitlines(), "````"]
    else:
        shown = result["output"].splitlines() if show == "table" else [f"*Figure: {source.says}*"]
    return [*shown, "", *map(copy.words, caption)]


def _source(name):
    module, _, function = name.partition(".")
    return symbols.find(f"{project.settings().examples}/{module}.py", function)


def argument(asked: str) -> tuple[str, str | None]:
    """The exhibit that a directive names, and what of it is to be shown."""
    name, *options = asked.split() or [""]
    show = dict(option.partition("=")[::2] for option in options)
    if not name or set(show) - {"show"} or show.get("show", "figure") not in SHOWN:
        variants = ", ".join(f"show={variant}" for variant in SHOWN)
        raise DirectiveError(f"expected 'module.function' and perhaps one of {variants}, got {asked!r}")
    return name, show.get("show")


def _figure(page, name, result, source, caption):
    figure = _still(page, name, result, source)
    if "live" not in result:
        return figure
    if not caption:
        raise DirectiveError(f"exhibit {name!r} is live, so its directive needs a caption")
    caption[1] = f"    attrs: {{id: {address(name)}, data-live: {name}}}"
    live = result["live"]
    return live_html.cards(name, live) + figure + live_html.shown(name, live) + _hand(page, "live.js")


def _still(page, name, result, source):
    if not result["figure"]:
        raise DirectiveError(f"exhibit {name!r} draws no figure")
    if not source.says:
        raise DirectiveError(
            f"exhibit {name!r} draws a figure but has no docstring, whose first paragraph is the figure's"
            f" text alternative (at {source.file}:{source.first})"
        )
    if not page.first(f"figure {name}"):
        raise DirectiveError(f"the page shows the figure of exhibit {name!r} twice: link to the first")
    return described(result["figure"], source.says)


def _editable(page, name, source, output):
    """The lines of a function as a program of their own, and what it printed."""
    code = "\n".join(_body(source))
    try:
        compile(code, source.file, "exec")
    except SyntaxError as error:
        raise DirectiveError(f"exhibit {name!r} is no program without its first line: {error.msg}") from None
    plain = 'readonly wrap="off" spellcheck="false" autocapitalize="off" autocomplete="off"'
    return (
        '<section class="editable" data-search-exclude><textarea aria-label="Code to change and run" '
        f'rows="{code.count(chr(10)) + 1}" {plain}>{html.escape(code)}</textarea>'
        '<p class="buttons"><button type="button">Run</button><button type="button">Reset</button>'
        '<span class="state" aria-live="polite"></span></p>'
        f'<div aria-live="polite">{output}</div></section>{_hand(page, "editable.js")}'
    )


def _body(source):
    """The lines of a function below its docstring, as they would stand in a file."""
    first, *others = ast.parse("\n".join(source.lines)).body[0].body
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and others:
        first = others[0]
    return textwrap.dedent("\n".join(source.lines[first.lineno - 1 :])).split("\n")


def _hand(page, script):
    """What gives a hand to all of a kind on a page, with the first of them."""
    return f'<script type="module" src="{page.up()}assets/{script}"></script>' * page.first(script)


def address(name: str) -> str:
    """The id of a figure."""
    return name.replace(".", "-")


def _offers(page, name, result, caption):
    """The address of a figure, and links to the files that the build writes of it."""
    if not caption:  # without one, nothing has its id
        return {}
    link = {"more": f', <a href="#{address(name)}">link</a>'}
    return link | ({"take": taken(page, name, result)} if page.addresses["data"] else {})


def taken(page: Page, name: str, result: Result) -> str:
    """Links to the files that the build writes of a figure; site/figure_files.py has what they are."""
    up, kinds = page.up(), ("svg", "png", "csv") if result.get("data") else ("svg", "png")
    files = [f'<a href="{up}data/{name}.{kind}" download>{kind.upper()}</a>' for kind in kinds]
    files += [f'<a href="{up}embed/{name}/#{what}">{what.capitalize()}</a>' for what in ("embed", "cite")]
    return ", ".join(files)


def _table(name, result):
    lines = result["output"].splitlines()
    if not all(line.startswith("|") for line in lines):
        raise DirectiveError(f"exhibit {name!r} prints no table: each line must begin with |")
    return lines
