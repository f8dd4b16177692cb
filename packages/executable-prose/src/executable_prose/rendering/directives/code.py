"""Code, what it printed and what it drew, in boxes; and the listing, which is code alone."""

import ast
import html
import urllib.parse

from pygments import highlight
from pygments.filter import simplefilter
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from pygments.token import Name, Operator, Punctuation, Text

from executable_prose import project, symbols
from executable_prose.memo import cached
from executable_prose.outcome import Given, Result
from executable_prose.registry import ADDED, Parts
from executable_prose.rendering.page import Page

# Folded code is for who opens it: it would drown the prose in search results. What is to stay out of the
# search may hold no element of its own name: there the index begins again.
FOLD = '<details class="code" data-search-exclude>'


class DirectiveError(Exception):
    """The directive cannot be made; the message says why."""


def listing(page: Page, file: str, symbol: str | None) -> Parts:
    """The source of a whole file, or of a symbol, of whose docstring the file tells the rest.

    That of a file with a page of its own is linked to it.
    """
    try:
        source = symbols.find(file, symbol)
    except symbols.SymbolError as error:
        raise DirectiveError(str(error)) from None
    own = ADDED.files.page(file)
    if own and not (project.DOCS / own).is_file():
        raise DirectiveError(f"the listing links to docs/{own}, which is not there")
    return placed(page, source, brief=symbol is not None)


def _in_brief(lines):
    """Code with the first paragraph of each docstring, or whole if that would be other code."""
    short = _shortened(lines)
    return short if symbols.code_of("\n".join(short)) == symbols.code_of("\n".join(lines)) else lines


def _shortened(lines):
    lines = lines.copy()
    documented = (ast.AsyncFunctionDef, ast.FunctionDef, ast.ClassDef)
    nodes = [node for node in ast.walk(ast.parse("\n".join(lines))) if isinstance(node, documented)]
    for node in sorted(nodes, key=lambda node: -node.lineno):
        if ast.get_docstring(node):
            first, end = node.body[0].lineno - 1, node.body[0].end_lineno
            if blank := next((n for n in range(first, end) if not lines[n].strip()), None):
                lines[blank - 1 : end] = [f'{lines[blank - 1]}"""']
    return lines


def described(svg: str, alternative: str) -> str:
    """The figure with the words that stand for it, which are no part of its result: they need no run."""
    label = f' role="img" aria-label="{html.escape(alternative)}" data-search-exclude'
    return svg.replace(' role="img"', label, 1)


def folded(page: Page, title: str, source: symbols.Source, more: str = "", take: str = "") -> str:
    """Code that few will open: without colours, which would be half of the page's elements.

    Of a figure that can be taken away, the links to its files come first.
    """
    place = f'<p class="place"><code>{source.file}</code>, {_lines(source)}{more}</p>'
    code = box(page, "highlight", html.escape("\n".join(source.lines) + "\n"))
    if not take:
        return f"{FOLD}<summary>{title}</summary>{place}{code}</details>"
    summary = '<summary title="SVG, PNG, data, embed, cite, code">Take it, or read its code</summary>'
    return f'{FOLD}{summary}<p class="take">{take}</p>{place}{code}</details>'


def placed(page: Page, source: symbols.Source, brief: bool = False) -> Parts:
    """Code under a line that says where it stands and links to the file's own page, and there to the file."""
    whole = ADDED.files.handed_out("\n".join(source.lines), page.addresses["site"])
    source = source._replace(lines=whole.split("\n"))
    lines = _in_brief(source.lines) if brief else source.lines
    more = "; more in the docstring" if len(lines) < len(source.lines) else ""
    code = box(page, "highlight", highlighted(lines))
    own = ADDED.files.page(source.file)
    if own and page.path() == own:
        return [_download(source), code]
    file = f"`{source.file}`"
    if own:
        file = f"[{file}]({page.to(own)})"
    return [[f"{file}, {_lines(source)}{more}", '{: .place data-search-exclude="" }'], code]


def _download(source):
    """The line above a whole file, with the file itself in the link: it needs no server."""
    text = urllib.parse.quote("\n".join(source.lines) + "\n")
    name = source.file.rpartition("/")[2]
    link = f'<a href="data:text/x-python;charset=utf-8,{text}" download="{name}">download</a>'
    lines = f"<code>{source.file}</code>, {len(source.lines)} lines, {link}"
    return f'<p class="place" data-search-exclude>{lines}</p>'


def _lines(source):
    return f"lines {source.first} to {source.first + len(source.lines) - 1}"


def printed(page: Page, result: Result | Given, copied: bool = False) -> str:
    """Return what an exhibit printed, with a copy button if readers are meant to use the lines."""
    return box(page, "printed" if copied else "no-copy printed", html.escape(result["output"]))


def box(page: Page, kind: str, text: str) -> str:
    """Preformatted text. The theme names its copy button after the box, so each box has an id.

    What nobody copies is no-copy: on a phone the button would lie on the text. Every page loads
    the search index, so code stays out of it.
    """
    head = f'<div class="{kind}" id="{page.fresh_id(kind.split()[-1])}" data-search-exclude>'
    return f"{head}<pre><code>{text}</code></pre></div>"


@simplefilter
def _plain_names(self, lexer, stream, options):
    """Names and punctuation look like text: without a span each, a page has half the elements."""
    coloured = (Name.Builtin, Name.Function, Name.Class, Name.Decorator)
    for token, text in stream:
        quiet = token in Punctuation or (token in Operator and token is not Operator.Word)
        named = token in Name and not any(token in kind for kind in coloured)
        yield (Text if quiet or named else token), text


def highlighted(lines: list[str]) -> str:
    return _coloured("\n".join(lines) + "\n")


@cached
def _coloured(code):
    lexer = PythonLexer(stripnl=False)
    lexer.add_filter(_plain_names())
    return highlight(code, lexer, HtmlFormatter(nowrap=True))
