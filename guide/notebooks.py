"""Write the files of the branch `notebooks`, where Colab and Binder find them, into a folder.

    python -m guide.notebooks FOLDER

$SITE_URL is the address that links in the notebooks begin with.
"""

import os
import sys
from pathlib import Path

from executable_prose import labs
from executable_prose.command import run

PYTHON = "3.12"  # Binder's own choice has been one that the pins refuse


def files(site):
    """Return the name and the text of each file of the branch."""
    found = {
        file: labs.notebook(name, solved, site)
        for name in labs.notebooks()
        for file, solved, _ in labs.published(name)
    }
    readme = f"The notebooks of <{site}>. The build overwrites this branch each time: edit its sources.\n"
    return found | {
        "README.md": readme,
        "requirements.txt": "\n".join([*labs.needed(), ""]),
        "runtime.txt": f"python-{PYTHON}\n",
    }


def main(arguments):
    site = os.environ.get("SITE_URL", "")
    if len(arguments) != 1 or not site:
        return f"expected a folder and the address of the site in $SITE_URL, got {arguments} and {site!r}"
    folder = Path(arguments[0])
    folder.mkdir(parents=True)
    for name, text in files(site).items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    run(lambda: sys.exit(main(sys.argv[1:])))
