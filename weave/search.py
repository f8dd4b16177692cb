"""A hook of MkDocs: the search plugin reads every tag of a page, and most say nothing to it.

What is to stay out of the index it takes for ended with an inner element of its name. Of a page as its
readers get it nothing changes.
"""

import re

from mkdocs.plugins import CombinedEvent, event_priority

DRAWN = re.compile(r"<svg\b.*?</svg>", re.S)  # its text is letters at axes
EXCLUDED = re.compile(r"<(\w+)\b[^>]* data-search-exclude\b[^>]*>")
SILENT = re.compile(r"</?(?:span|m[a-z]+)(?:\s[^>]*)?>")  # tags of coloured code and of formulas


def lean(content):
    """The HTML of a page, less what the index does not know."""
    return SILENT.sub("", _searched(DRAWN.sub("", content)))


def _searched(content):
    """All but the elements that are excluded from the search, whatever stands in them."""
    parts, end = [], 0
    for opening in EXCLUDED.finditer(content):
        if opening.start() >= end:
            parts.append(content[end : opening.start()])
            end = _end(opening[1], content, opening.start())
    return "".join([*parts, content[end:]])


def _end(name, content, start):
    """Where an element ends that may hold others of its name."""
    depth = 0
    for tag in re.compile(rf"<(/?){name}\b[^>]*>").finditer(content, start):
        depth += -1 if tag[1] else 1
        if not depth:
            return tag.end()
    return len(content)


@event_priority(100)
def _before(context, page, **others):
    page.whole, page.content = page.content, lean(page.content)


@event_priority(-100)
def _after(context, page, **others):
    page.content = page.whole


on_page_context = CombinedEvent(_before, _after)
