"""The Markdown extension: where what a page may say beyond Markdown is read.

syntax.py has what that is. Directives stand on lines of their own; values, claims and formulas within
sentences.
"""

import functools
import traceback

from markdown import Markdown
from markdown.extensions import Extension
from markdown.preprocessors import Preprocessor

from executable_prose import project, registry, syntax
from executable_prose.errors import BuildFault
from executable_prose.outcome import Unavailable
from executable_prose.registry import ADDED
from executable_prose.rendering.directives import code
from executable_prose.rendering.inline import ClaimMark, Marks, Minutes, Nameless, UnknownCode, Value
from executable_prose.rendering.maths import Dollars, Mathematics
from executable_prose.rendering.page import Addresses, Page
from executable_prose.rendering.prose import Made, Prose, unseen
from executable_prose.rendering.trees import Indented, Terms


class PageExtension(Extension):
    """Register the parts; see the module's docstring for what they read."""

    defaults: dict[str, list] = {
        "repository": ["", "address of the repository, to link files on its main branch"],
        "site": ["", "address of the home page, for the links in notebooks"],
        "data": [False, "whether the build writes the data of figures"],
        "build": ["", "what the pages of a build share, from the process that starts it"],
    }

    def __init__(self, **settings: object) -> None:
        self.config = {name: list(default) for name, default in self.defaults.items()}
        super().__init__(**settings)

    def extendMarkdown(self, md: Markdown) -> None:
        try:
            registry.load(project.settings().additions)
        except project.SettingsError as error:
            raise BuildFault(str(error)) from None
        repository, site = ((self.getConfig(name) or "").rstrip("/") for name in ("repository", "site"))
        addresses = Addresses(repository=repository, site=site, data=self.getConfig("data"))
        md.page = Page(md, addresses, self.getConfig("build"))
        # Before the fences of SuperFences (25), after normalized white space (30).
        md.preprocessors.register(Directives(md), "executable-directives", 28)
        # Before inline code (190).
        md.inlinePatterns.register(Value(syntax.VALUE, md), "executable-value", 195)
        md.inlinePatterns.register(ClaimMark(syntax.CLAIM, md), "executable-claim", 194)
        md.inlinePatterns.register(Minutes(syntax.MINUTES, md), "executable-minutes", 193)
        md.inlinePatterns.register(Nameless(syntax.NAMELESS, md), "executable-nameless", 192)
        md.inlinePatterns.register(UnknownCode(syntax.CODE, md), "executable-unknown-code", 191)
        # Before indented code is highlighted (30).
        md.treeprocessors.register(Indented(md), "executable-indented", 31)
        # With the table of contents, which gives headings their ids first, and before MkDocs, which
        # collects what links may lead to: both have 5.
        md.treeprocessors.register(Terms(md), "executable-terms", 5)
        md.treeprocessors.register(Dollars(md), "executable-dollars", 2)
        # After all that changes the page, before links are resolved and what was escaped is put back (0).
        md.treeprocessors.register(Prose(md), "executable-prose", 0.5)
        md.postprocessors.register(Mathematics(md), "executable-math", -10)
        md.postprocessors.register(Marks(md), "executable-marks", -11)
        md.convert = functools.partial(_convert, md)


def _convert(md, text):
    page = md.page
    page.begin(normal := "\n".join(md.preprocessors["normalize_whitespace"].run(text.split("\n"))))
    page.build.results.visit(page.path(), normal)
    try:
        return page.build.converted(text, md)
    except RecursionError as error:
        why = "this is nested too deep: simplify it, or take it apart"
        raise BuildFault(f"{page.where(*_read(error))}: {why}") from None


def _read(error):
    """The lines of a page that were read when an error was raised, the last first."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    texts = [frame.f_locals.get(name) for frame in reversed(frames) for name in ("data", "text", "block")]
    lines = [line.strip() for text in texts if isinstance(text, str) for line in text.split("\n")]
    return [line for line in lines if len(line) > 1]


class Directives(Preprocessor):
    """Replace each directive by the HTML that it stands for."""

    def run(self, lines: list[str]) -> list[str]:
        text, made = "\n".join(lines), list[str]()
        self.md.page.check_front_matter(text)
        try:
            for block in syntax.checked(text, ADDED.directives):
                made += self._made(block) or block.lines
        except syntax.PageError as error:
            line, why = error.args
            raise BuildFault(f"{self.md.page.at(line)}: {why}") from None
        title = next((n for n, line in enumerate(made, 1) if line.startswith("# ")), 0)
        return [*made[:title], "", *self.md.page.top, "", *made[title:]] if self.md.page.top else made

    def _made(self, block):
        """The lines that stand for a block; None for one that stays as it is."""
        if block.kind == syntax.LISTED:
            return self._make(code.listing, block, block.argument, block.symbol)
        if known := ADDED.directives.get(block.kind):
            return self._make(known.shown, block, block.argument, block.body)
        return None

    def _make(self, directive, block, *arguments):
        """The lines that stand for a directive; its HTML is kept from Markdown."""
        line = block.line
        try:
            parts = directive(self.md.page, *arguments)
        except (code.DirectiveError, Unavailable) as error:
            raise BuildFault(f"{self.md.page.at(line)}: {error}") from None
        except BuildFault:
            raise
        except Exception as error:  # of a site's own directive
            place = traceback.extract_tb(error.__traceback__)[-1]
            why = f"{type(error).__name__}: {error} (at {project.relative(place.filename)}:{place.lineno})"
            raise BuildFault(f"{self.md.page.at(line)}: ```{block.kind} failed: {why}") from error
        placed = [""]
        for part in parts:
            if isinstance(part, str):
                if why := unseen(part):
                    raise BuildFault(f"{self.md.page.at(line)}: what is shown here may hold no {why}")
                text = [self.md.htmlStash.store(Made(part))]
            else:
                text = part
                self.md.page.brings(line, "\n".join(part))
            placed += [*(block.indent + line for line in text), ""]
        return placed
