"""```story guide/order.md```: its lines, in Markdown, of the story that begins on that page.

In them {chapters} is how many chapters follow one another in plain words, and {minutes} how long these take.
"""

import posixpath
import re

from executable_prose import project
from executable_prose.registry import directive
from executable_prose.rendering.directives.code import DirectiveError
from executable_prose.rendering.page import Page

PLAIN = re.compile(r"^\?\?\? level-layman .*\n(?:(?: {4}.*)?\n)+", re.M)
LEDE = re.compile(r"^# .*\n\n(?:.+\n)+(?=\{ \.lede \})", re.M)
NEXT = re.compile(r"\]\(([^)\s]+)\)\{ \.next \}")


@directive("story")
def story(page, argument, body):
    return [_filled(argument, body)]


@story.as_text
def _as_text(copy, argument, body):
    return _filled(argument, body)


def chapters(first):
    """What is told in plain words from a page of docs/ on, by page, in its order: each names the next."""
    told, page = {}, first
    while page not in told:
        file = project.DOCS / page
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        plain = PLAIN.search(text)
        if not plain:
            return told
        lede, following = LEDE.search(text), NEXT.search(plain[0])
        if not (lede and following):
            raise DirectiveError(
                f"docs/{page} tells the story and has no {{ .lede }}, or no link {{ .next }}"
            )
        told[page] = lede[0] + plain[0]
        page = posixpath.normpath(posixpath.join(posixpath.dirname(page), following[1]))
    raise DirectiveError(f"the story comes back to docs/{page}: its last chapter must lead out of it")


def _filled(first, body):
    told = chapters(first)
    if not told:
        raise DirectiveError(f"docs/{first} tells nothing in plain words: expected ??? level-layman in it")
    numbers = {"chapters": len(told), "minutes": Page.minutes("\n".join(told.values()))}
    return [re.sub(r"\{(chapters|minutes)\}", lambda name: str(numbers[name[1]]), line) for line in body]
