"""The menu has one entry for all files to copy: their list, docs/files.md, which leads to the page of each.

mkdocs.yml names this file under `hooks`. Its nav keeps the pages in their groups, so that each has a page
before and after it, and the list shows them by group.
"""

LIST = "files.md"


def on_nav(nav, config, files):
    """Put the list where the menu had the section that begins with it, and the section's groups below it."""
    _replace(nav.items)
    return nav


def _replace(items):
    for place, section in enumerate(items):
        if not section.children:
            continue
        first, *groups = section.children
        if first.is_page and first.file.src_uri == LIST:
            first.parent = section.parent
            for group in groups:
                group.parent = first
            items[place] = first
        else:
            _replace(section.children)
