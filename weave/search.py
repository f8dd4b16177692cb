"""A hook of MkDocs: the search plugin reads every tag of a page, and most say nothing to it.

Of a page as its readers get it nothing changes.
"""

import re

from mkdocs.plugins import CombinedEvent, event_priority

# Drawings, whose text is letters at axes, and what a box holds that stays out of the index.
UNREAD = re.compile(r"<svg\b.*?</svg>|(?<= data-search-exclude>)<pre>.*?</pre>", re.S)
SILENT = re.compile(r"</?(?:span|m[a-z]+)(?:\s[^>]*)?>")  # tags of coloured code and of formulas


def lean(content):
    """The HTML of a page, less what the index does not know."""
    return SILENT.sub("", UNREAD.sub("", content))


@event_priority(100)
def _before(context, page, **others):
    page.whole, page.content = page.content, lean(page.content)


@event_priority(-100)
def _after(context, page, **others):
    page.content = page.whole


on_page_context = CombinedEvent(_before, _after)
