"""What is registered: the directives, how files are handed out, and what is written beside the pages."""

import os
import shutil

from executable_prose.errors import BuildFault
from executable_prose.registry import built
from guide import (  # noqa: F401
    census,
    changes,
    changes_page,
    config_page,
    files_page,
    heads,
    lesson,
    register,
    runs,
    snippet_page,
    story,
)


@built
def write(site):
    """Write all files to copy in one archive, and a feed of what changed in them.

    Remove the theme's search worker, which docs/assets/search.mjs replaces.
    """
    if (site / "search" / "search_index.json").exists():  # Zensical has another index, and keeps its worker
        shutil.rmtree(site / "assets" / "javascripts" / "workers", ignore_errors=True)
    address = heads.address(os.environ.get("SITE_URL", ""))
    try:
        changes.write(site, address)
        (site / files_page.NAME).write_bytes(files_page.archive(heads.files(), address))
    except changes.ChangesError as error:
        raise BuildFault(str(error)) from None
