"""What is registered: the directives, how files are handed out, and what is written beside the pages."""

import os
import shutil
from datetime import UTC, datetime

from executable_prose import project
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

CITATION = "CITATION.cff"


@built
def write(site):
    """Write all files to copy in one archive, and a feed of what changed in them.

    Add the address and the date of the site to the file by which it is cited. Remove the theme's search
    worker, which docs/assets/search.mjs replaces.
    """
    if (site / "search" / "search_index.json").exists():  # Zensical has another index, and keeps its worker
        shutil.rmtree(site / "assets" / "javascripts" / "workers", ignore_errors=True)
    if (project.ROOT / CITATION).is_file():
        (site / CITATION).write_text(cited(os.environ), encoding="utf-8")
    address = heads.address(os.environ.get("SITE_URL", ""))
    try:
        changes.write(site, address)
        (site / files_page.NAME).write_bytes(files_page.archive(heads.files(), address))
    except changes.ChangesError as error:
        raise BuildFault(str(error)) from None


def cited(environment):
    """CITATION.cff with the date of the last commit as its version, and with the address of the site."""
    seconds = int(environment.get("SOURCE_DATE_EPOCH", 0))
    site = heads.address(environment.get("SITE_URL", ""))
    date = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}"
    dated = f"version: '{date}'\ndate-released: '{date}'\n" if seconds else ""
    known = heads.read(CITATION)
    return known + dated + (f"url: {site}\n" if site else "")
