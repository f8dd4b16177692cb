"""What must be right before weave reads files: addresses of the site, text, no two pages of one address."""

import os
import re

from weave import project

READ = (
    "mkdocs.yml",
    "docs/**/*.md",
    "docs/**/*.py",
    "exhibits/*.py",
    "snippets/*.py",
    "labs/*.py",
    "labs/*.toml",
    "tests/**/test_*.py",
)

ADDRESSES = ("SITE_URL", "REPOSITORY_URL", "EDIT_URI")  # which the theme puts into pages as they are
NO_ADDRESS = re.compile(r"""[\s"<>\\^`{|}]|script:""", re.I)


def fault():
    """The place of the first fault and what to do; None if there is none."""
    for name in ADDRESSES:
        address = os.environ.get(name, "")
        if NO_ADDRESS.search(address):
            return f"{name}: expected an address, got {address!r}: write a quote in it as %22, and the like"
    addresses = {}
    for path in (path for pattern in READ for path in sorted(project.ROOT.glob(pattern))):
        file = path.relative_to(project.ROOT).as_posix()
        if path.is_dir():
            return f"{file}:1: this is a folder: only a file may have such a name"
        address = file.removesuffix(".md").removesuffix("/index")
        if (other := addresses.setdefault(address, file)) != file:
            return f"{file}:1: the page has the address of {other}: rename one of them"
        try:
            if not path.read_bytes().decode().startswith("\N{BYTE ORDER MARK}"):
                continue
            line, why = 1, "begins with a byte order mark"
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            why = f"holds the byte 0x{error.object[error.start]:02x}, which is no UTF-8"
        return f"{file}:{line}: the file {why}: save it as UTF-8, without a byte order mark"
    return None
