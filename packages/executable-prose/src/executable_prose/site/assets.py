"""What live figures load: scripts and a style sheet of this engine, beside those of the site."""

import shutil
from pathlib import Path

from executable_prose import project

FOLDER = "assets"


def write(site: Path) -> None:
    """Put them into the site's folder of assets."""
    shutil.copytree(project.ENGINE / "assets", site / FOLDER, dirs_exist_ok=True)
