"""What is registered: the directives, how files are handed out, and what is written beside the pages."""

import os

from executable_prose.errors import BuildFault
from executable_prose.registry import built
from guide import changes, changes_page, copies, files_page, heads, register, snippet_page  # noqa: F401


@built
def write(site):
    """What became of copied files, for programs: changes.xml and snippets.json."""
    try:
        changes.write(site, heads.address(os.environ.get("SITE_URL", "")))
    except changes.ChangesError as error:
        raise BuildFault(str(error)) from None
    copies.write(site)
