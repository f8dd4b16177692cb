"""What must be right before it is read: files that are ours and text, the date, addresses of the site."""

import datetime
import os
import re
import tokenize

from executable_prose import project

READ = (
    "mkdocs.yml",
    "docs/**/*.md",
    "docs/**/*.py",
)

ADDRESSES = ("SITE_URL", "REPOSITORY_URL", "EDIT_URI")  # which the theme puts into pages as they are
# What editors, systems and merges leave.
LEFT = re.compile(
    r"[~#]$|^[#~]|\.(?:orig|bak|rej|tmp|swp|swo|old|part|crdownload|pyc)$|^4913$|^(?:thumbs\.db|desktop\.ini)$"
    r"|_(?:BACKUP|BASE|LOCAL|REMOTE)_\d+\.|sync-conflict|conflicted copy",
    re.I,
)
NO_ADDRESS = re.compile(r"""[\s"<>\\^`{|}]|script:""", re.I)


def fault() -> str | None:
    """Where the first fault is and what to do about it; None if there is no fault."""
    try:
        missing = [room for room in project.settings().sources if not (project.ROOT / room).is_dir()]
        if missing:
            return f"pyproject.toml: there is no folder {missing[0]!r}, which sources names"
    except project.SettingsError as error:
        return str(error)
    for name in ADDRESSES:
        address = os.environ.get(name, "")
        if NO_ADDRESS.search(address):
            return f"{name}: expected an address, got {address!r}: write a quote in it as %22, and the like"
    if why := _no_date(os.environ.get("SOURCE_DATE_EPOCH", "0")):
        return why
    for path in _found(f"{folder}/**/*" for folder in ("docs", project.templates()) if folder):
        if why := _strange(path):
            return f"{_name(path)}:1: {why}"
        if LEFT.search(path.name):
            left = "a program left this here, and it would be published"
            return f"{_name(path)}:1: {left}: remove or rename it"
    addresses: dict[str, str] = {}
    for path in _found(_read()):
        file = _name(path)
        if path.is_dir():
            return f"{file}:1: this is a folder: only a file may have such a name"
        if why := _strange(path):
            return f"{file}:1: {why}"
        address = file.removesuffix(".md").removesuffix("/index")
        if (other := addresses.setdefault(address, file)) != file:
            return f"{file}:1: the page has the address of {other}: rename one of them"
        try:
            text = path.read_bytes().decode()
            if path.suffix == ".py" and (other := _declared(text)):
                return f"{file}:{other[0]}: the file is read as UTF-8 and declares {other[1]}: remove that"
            if not text.startswith("\N{BYTE ORDER MARK}"):
                continue
            line, why = 1, "begins with a byte order mark"
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            why = f"holds the byte 0x{error.object[error.start]:02x}, which is no UTF-8"
        return f"{file}:{line}: the file {why}: save it as UTF-8, without a byte order mark"
    return None


def _read():
    """What is read as text."""
    settings = project.settings()
    code = [f"{room}/*.py" for room in settings.rooms]
    tests = [f"{folder}/**/test_*.py" for folder in settings.tests]
    return (*READ, *code, f"{settings.labs}/*.toml", *tests)


def _found(patterns):
    """Files and folders; nothing is published of hidden ones, and Emacs has one for each unsaved buffer."""
    found = (path for pattern in patterns for path in sorted(project.ROOT.glob(pattern)))
    return (path for path in found if "/." not in f"/{_name(path)}")


def _name(path):
    return path.relative_to(project.ROOT).as_posix()


def _strange(path):
    """What is wrong about something that is no file or folder of the project's own, else None."""
    if path.is_symlink():
        if not path.exists():
            return "this link leads nowhere: remove it, or name a file that is there"
        if project.relative(path.resolve()) is None:
            return "this link leads out of the project, and what it leads to would be published: copy it here"
    if not (path.is_file() or path.is_dir()):
        return "this is neither a file nor a folder: remove it"
    return None


def _declared(text):
    """The line that declares another encoding of a Python file than UTF-8, and what it declares."""
    for number, line in enumerate(text.split("\n", 2)[:2], 1):
        if found := tokenize.cookie_re.match(line):
            other = not re.fullmatch("utf-?8(-.*)?", found[1].lower().replace("_", "-"))
            return (number, repr(found[1])) if other else None
        if line.partition("#")[0].strip():
            break
    return None


def _no_date(seconds):
    """What is wrong about the date that the environment gives the site, else None."""
    try:
        datetime.datetime.fromtimestamp(int(seconds), datetime.UTC)
    except (ValueError, OverflowError, OSError):
        return f"expected whole seconds since 1970 in SOURCE_DATE_EPOCH, as of a commit, got {seconds!r}"
