"""Where the project's files are, and what counts as one of them."""

import hashlib
import json
import os
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
HEAD = '{{"digest": "{}", '  # of what is stored
CACHE = ROOT / ".cache" / "weave"


def relative(path):
    """The path from the project's root with forward slashes, or None for a file that is not ours.

    Not ours: what lies outside, in a virtual environment, in a hidden folder
    such as the cache, and bytecode. A link in the project is ours, wherever it leads.
    """
    path = _absolute(os.fsdecode(path))
    if not path.is_relative_to(ROOT):
        path = path.resolve()
    if not path.is_relative_to(ROOT) or any(map(path.is_relative_to, _installed())):
        return None
    parts = path.relative_to(ROOT).parts
    if path.suffix == ".pyc" or any(part.startswith(".") for part in parts):
        return None
    return "/".join(parts)


def outside(path):
    """The whole path of a file that is neither ours nor installed, nor in the run's own folder, else None.

    What the system makes up (/proc) is no file; our caches depend on nothing else.
    """
    path = _absolute(os.fsdecode(path))
    own = (tempfile.gettempdir(), ROOT / ".cache", "/proc", "/sys", "/dev")
    libraries = (sys.base_prefix, *(each for each in sys.path if each and Path(each) != ROOT))
    known = [_absolute(each) for each in (*own, *libraries)] + list(_installed())
    return None if path.suffix == ".pyc" or any(map(path.is_relative_to, known)) else path.as_posix()


def _absolute(path):
    """Without dots, and with links as they are."""
    return Path(os.path.abspath(path))  # noqa: PTH100


def _installed():
    """The folders of what is installed: the environment, or parts of it if the project lies inside."""
    prefixes = {_absolute(sys.prefix), Path(sys.prefix).resolve()}
    if not any(map(ROOT.is_relative_to, prefixes)):
        return prefixes
    kinds = ("stdlib", "platstdlib", "purelib", "platlib", "scripts", "include")
    return {
        Path(sysconfig.get_path(kind, vars={"base": prefix, "platbase": prefix}))
        for prefix in prefixes
        for kind in kinds
    }


def digest(name):
    """SHA-256 of a project file, or of the names in a folder (`name/`), or None if it is not there.

    Of `name?`, what of the two there is.
    """
    if name.endswith("?"):
        path = ROOT / name[:-1]
        return "folder" if path.is_dir() else "file" if path.exists() else None
    try:
        content = _names(ROOT / name) if name.endswith("/") else (ROOT / name).read_bytes()
        return hashlib.sha256(content).hexdigest()
    except OSError:
        return None


def store(path, fields):
    """Write a dictionary as JSON, with the digest of all that follows it."""
    text = json.dumps(fields)[1:]
    write_whole(path, HEAD.format(hashlib.sha256(text.encode()).hexdigest()) + text)


def stored(path):
    """The dictionary that `store` wrote; {} if there is none, or not byte for byte the same."""
    if path.is_file():  # a pipe would be waited for
        data = path.read_bytes()
        text = data[len(HEAD.format("0" * 64)) :]
        if data == HEAD.format(hashlib.sha256(text).hexdigest()).encode() + text:
            return json.loads(b"{" + text)
    return {}


def write_whole(path, text):
    """Write a file so that no reader, and no kill, ever leaves half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    Path(temporary).replace(path)


def _names(folder):
    names = sorted(path.name for path in folder.iterdir() if not path.name.startswith((".", "__pycache__")))
    return "\n".join(names).encode(errors="surrogateescape")
