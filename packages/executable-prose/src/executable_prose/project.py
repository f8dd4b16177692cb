"""Where the project's files are, and what counts as one of them."""

import contextlib
import functools
import hashlib
import json
import os
import site
import sys
import sysconfig
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

CONFIGURATION = "mkdocs.yml"
ENGINE = Path(__file__).resolve().parent


def _root():
    """The nearest folder around the current one that has a configuration, else the current one."""
    here = Path.cwd().resolve()
    return next((each for each in (here, *here.parents) if (each / CONFIGURATION).is_file()), here)


ROOT = _root()
DOCS = ROOT / "docs"
HEAD = '{{"digest": "{}", '  # of what is stored
CACHE = ROOT / ".cache" / "executable_prose"
FileName = str | bytes | os.PathLike
Digests = dict[str, str | None]  # of files by name, as `digest` gives them


class SettingsError(Exception):
    """What a project says of itself cannot be read; the message says where and why."""


@dataclass(frozen=True)
class Notebooks:
    """What those of labs ask for."""

    needs: tuple[str, ...] = ()  # packages, which requirements.txt pins
    brings: tuple[str, ...] = ()  # folders of whose files they bring those that they import
    python: str = "3.11"  # the oldest
    oldest: str = ""  # version of the first package


@dataclass(frozen=True)
class Settings:
    """What a project says of itself; folders are relative to its own."""

    examples: str = "examples"  # of the functions that pages show
    sources: tuple[str, ...] = ()  # folders of the code that these run
    libraries: tuple[str, ...] = ()  # installed packages whose versions decide what is computed
    labs: str = "labs"
    tests: tuple[str, ...] = ("tests",)  # folders of those that hold claims
    additions: str = ""  # a module that registers what pages can say besides
    cards: tuple[str, ...] = ("**/*.md",)  # pages that have a picture of their own for those who link to them
    licence: str = ""  # of figures, named where one is taken away
    notebooks: Notebooks = Notebooks()

    @property
    def rooms(self) -> tuple[str, ...]:
        """The folders of code."""
        return (self.examples, *self.sources, self.labs)


SETTLED: list[Settings] = []  # of a process that looks at them no more


def settle() -> None:
    """Look at the settings no more: recorder.py would hear it, as if what runs depended on them."""
    SETTLED[:] = [settings()]


def settings() -> Settings:
    """What the project's pyproject.toml says below [tool.executable_prose]."""
    if SETTLED:
        return SETTLED[0]
    file = ROOT / "pyproject.toml"
    own = _tool(file, file.stat().st_mtime_ns) if file.is_file() else {}
    return _made(Settings, own | {"notebooks": _made(Notebooks, own.get("notebooks", {}))})


@functools.lru_cache(maxsize=8)
def _tool(file, changed):
    try:
        return tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {}).get(ENGINE.name, {})
    except ValueError as error:
        raise SettingsError(f"{file.name}: {error}") from None


def _made(kind, values):
    known = {each.name: each.default for each in fields(kind)}
    if strange := sorted(values.keys() - known.keys()):
        what = f"expected {', '.join(sorted(known))} in [tool.{ENGINE.name}], got {', '.join(strange)}"
        raise SettingsError(f"pyproject.toml: {what}")
    lists = {name for name, default in known.items() if isinstance(default, tuple)}
    return kind(**{name: _listed(each) if name in lists else each for name, each in values.items()})


def _listed(names):
    """What a project lists; one name stands for a list of one."""
    return (names,) if isinstance(names, str) else tuple(names)


def pages_in_order() -> list[tuple[str, tuple[str, ...]]]:
    """The pages of the nav in mkdocs.yml, each with the titles of the sections that it stands in."""
    with contextlib.suppress(AttributeError):  # MkDocs tells
        return list(_pages(configuration().get("nav") or [], ()))
    return []


def configuration() -> dict[str, Any]:
    """What mkdocs.yml says, as it stands there; nothing if it cannot be read."""
    file = ROOT / CONFIGURATION
    return _configuration(file, file.stat().st_mtime_ns) if file.is_file() else {}


def templates() -> str | None:
    """Return the folder of the site's own templates, as mkdocs.yml names it."""
    theme = configuration().get("theme")
    return theme.get("custom_dir") if isinstance(theme, dict) else None


@functools.lru_cache(maxsize=8)
def _configuration(file, changed):
    import yaml  # here, for what runs on a bare Python

    class Loader(yaml.SafeLoader):
        """Plugins, and MkDocs itself, have tags of their own."""

    Loader.add_multi_constructor("", lambda loader, tag, node: None)
    try:
        said = yaml.load(file.read_text(encoding="utf-8"), Loader)
    except (yaml.YAMLError, ValueError):  # MkDocs tells
        return {}
    return said if isinstance(said, dict) else {}


def _pages(entries, sections):
    for entry in entries:
        for title, below in entry.items() if isinstance(entry, dict) else [(None, entry)]:
            if isinstance(below, list):
                yield from _pages(below, (*sections, title))
            else:
                yield below, sections


def documents(*patterns: str) -> list[Path]:
    """Files and folders of docs/, without the hidden ones: editors lock there, and MkDocs publishes none."""
    found = {path for pattern in patterns for path in DOCS.rglob(pattern)}
    return sorted(path for path in found if "/." not in f"/{path.relative_to(DOCS).as_posix()}")


def on_path() -> None:
    """Let the project's own modules be imported, whichever command has started."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))


def relative(path: FileName) -> str | None:
    """The path from the project's root with forward slashes, or None for a file that is not ours.

    Not ours: what lies outside, in a virtual environment, in a hidden folder
    such as the cache, and bytecode. A link in the project is ours, wherever it leads.
    """
    path = os.path.abspath(os.fsdecode(path))  # noqa: PTH100
    if not _is_within(path, ROOT):
        path = os.path.realpath(path)
    if not _is_within(path, ROOT) or any(_is_within(path, each) for each in _installed(ROOT, sys.prefix)):
        return None
    parts = Path(path).relative_to(ROOT).parts
    if path.endswith(".pyc") or any(part.startswith(".") or part == "__pycache__" for part in parts):
        return None
    return "/".join(parts)


def ours(path: FileName) -> str | None:
    """As `relative`, but None for a file of this engine."""
    return None if _is_within(os.path.abspath(os.fsdecode(path)), ENGINE) else relative(path)  # noqa: PTH100


def outside(path: FileName) -> str | None:
    """The whole path of a file that is neither ours nor installed, else None.

    What the system makes up (/proc) is no file; our caches depend on nothing else.
    """
    path = os.path.abspath(os.fsdecode(path))  # noqa: PTH100
    known = path.endswith(".pyc") or any(_is_within(path, each) for each in _independent(ROOT, sys.prefix))
    return None if known else Path(path).as_posix()


def _is_within(path, folder):
    """Whether an absolute path without dots is a folder or lies in it. `Path.is_relative_to` is slower."""
    path, folder = os.path.normcase(path), os.path.normcase(folder)
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _absolute(path):
    """Without dots, and with links as they are."""
    return Path(os.path.abspath(path))  # noqa: PTH100


@functools.cache
def _independent(root, prefix):
    """The folders of files on which nothing depends."""
    own = (root / ".cache", "/proc", "/sys", "/dev")
    libraries = (sys.base_prefix, ENGINE, *site.getsitepackages(), site.getusersitepackages())
    return [*map(_absolute, (*own, *libraries)), *_installed(root, prefix)]


@functools.cache
def _installed(root, prefix):
    """The folders of what is installed: the environment, or parts of it if the project lies inside."""
    prefixes = {_absolute(prefix), Path(prefix).resolve()}
    if not any(map(root.is_relative_to, prefixes)):
        return prefixes
    kinds = ("stdlib", "platstdlib", "purelib", "platlib", "scripts", "include")
    return {
        Path(sysconfig.get_path(kind, vars={"base": prefix, "platbase": prefix}))
        for prefix in prefixes
        for kind in kinds
    }


def digest(name: str) -> str | None:
    """SHA-256 of a project file, or None if it is not there.

    What else can be learnt of a path has a mark behind the name: what is there (KIND), which names a folder
    has (NAMES, or VISIBLE: those that are not hidden), and what the system says of a file (STATUS) or of all
    that is in a folder (STATUSES).
    """
    name, mark = _apart(name)
    path = ROOT / name
    try:
        return path_facts(path) if (path_facts := FACTS.get(mark)) else _sha(path.read_bytes())
    except OSError:
        return None


def _apart(name):
    """The name of a file, and the mark behind it."""
    found, separator, mark = name.rpartition("//")
    return (found, separator + mark) if separator + mark in FACTS else (name, "")


def _kind(path):
    target = f" to {os.readlink(path)}" if path.is_symlink() else ""  # noqa: PTH115
    return ("folder" if path.is_dir() else "file" if path.exists() else "nothing") + target


def _names(folder, hidden=True):
    """Without bytecode, and without what is hidden in the root: builds come and go there."""
    with os.scandir(folder) as entries:
        names = [entry.name + "/" * entry.is_dir() for entry in entries if entry.name != "__pycache__"]
    shown = sorted(name for name in names if not name.startswith(".") or (hidden and folder != ROOT))
    return _sha("\n".join(shown).encode(errors="surrogateescape"))


def _visible(folder):
    return _names(folder, hidden=False)


def _status(path):
    """Its kind, rights, size and time; and what is in it, of which that may tell."""
    state = path.lstat()
    within = _names(path) if path.is_dir() else _sha(path.read_bytes()) if path.is_file() else ""
    return " ".join(map(str, (_kind(path), state.st_mode, state.st_size, state.st_mtime_ns, within)))


def _statuses(folder):
    return _sha(repr([(path.name, _status(path)) for path in sorted(folder.iterdir())]).encode())


def _sha(data):
    return hashlib.sha256(data).hexdigest()


# No path has two slashes, but for one at its start.
KIND, NAMES, VISIBLE, STATUS, STATUSES = "//?", "//", "//.", "//!", "//*"
FACTS = {KIND: _kind, NAMES: _names, VISIBLE: _visible, STATUS: _status, STATUSES: _statuses}


def store(path: Path, fields: Mapping[str, object]) -> None:
    """Write a dictionary as JSON, with the digest of all that follows it."""
    text = json.dumps(fields)[1:]
    write_whole(path, HEAD.format(hashlib.sha256(text.encode()).hexdigest()) + text)


def stored(path: Path) -> dict:
    """The dictionary that `store` wrote; {} if there is none, or not byte for byte the same."""
    if path.is_file():  # a pipe would be waited for
        data = path.read_bytes()
        text = data[len(HEAD.format("0" * 64)) :]
        if data == HEAD.format(hashlib.sha256(text).hexdigest()).encode() + text:
            return json.loads(b"{" + text)
    return {}


def write_whole(path: Path, text: str) -> None:
    """Write a file so that no reader, and no kill, ever leaves half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    Path(temporary).replace(path)
