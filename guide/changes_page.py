"""```changes```: what changed in the files that people copy, by date."""

import itertools

from executable_prose.registry import directive
from executable_prose.rendering.directives.code import DirectiveError
from guide import changes as change_list


@directive("changes")
def changes(page, argument, body):
    """Where the feed is, if the build writes one; then each entry below its date, with links to its files."""
    parts = []
    if page.addresses["data"]:
        address = f"{page.up()}{change_list.FEED}"
        parts.append(f'<p>New entries also come as an <a href="{address}">Atom feed</a>.</p>')
    return [*parts, *as_markdown(lambda name: f"[`{name}`]({page.to(change_list.page_of(name))}.md)")]


@changes.as_text
def _as_text(copy, argument, body):
    return [line for lines in as_markdown("`{}`".format) for line in ["", *lines]]


def as_markdown(named):
    """Every entry in Markdown, a part for each date, its files as `named` has them."""
    try:
        entries = change_list.entries()
    except change_list.ChangesError as error:
        raise DirectiveError(str(error)) from None
    for date, those in itertools.groupby(entries, lambda each: each.date):
        items = (f"- **{each.kind}** {', '.join(map(named, each.names))}: {each.words}" for each in those)
        yield [f"## {date}", "", *items]
