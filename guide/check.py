# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-26
"""Is a copied file as it is now, changed by you, or has it been fixed since?

    python check.py rope.py decoding.py
    python check.py rope.py --against snippets.json

A copy is known by its code: comments, docstrings and layout may differ. What
has become of it is asked of the site that the head of the file names, or read
from --against: the site's snippets.json, saved, or its https address.

A day is not enough where code of that day is of more than one kind: what was
fixed on it is listed, too.

The exit code is 1 if a file was fixed since, or may lack a fix, or else 2 if
one cannot be told.
Needs Python 3.11 or newer, and nothing else.
"""

import argparse
import ast
import functools
import hashlib
import http.client
import json
import os
import re
import sys
import urllib.request
import warnings
from pathlib import Path

HEAD = re.compile(r"^# From (?P<origin>.+), (?P<date>\d{4}-\d\d-\d\d)$", re.M)
DATE = re.compile(r"\d{4}-\d\d-\d\d")
LARGEST = 10_000_000  # bytes of a list that is read
PATIENCE = 20  # seconds
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Untold(Exception):
    """A file cannot be told; the message says why, and what to do."""


def main(arguments: list[str] | None = None) -> int:
    """Say of each file what it is; the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("files", nargs="+", metavar="file.py")
    parser.add_argument("--against", help="snippets.json, or its address")
    asked = parser.parse_args(arguments)
    codes, lines = set(), []
    for file in asked.files:
        try:
            says, fixes = told(file, asked.against)
        except Untold as error:
            says, fixes = f"cannot be told: {error}", []
            codes.add(2)
        lines.append(f"{file}: {says}\n")
        for fix in fixes:
            lines.append(f"    {fix['date']}: {fix['words']}\n")
            codes.add(1)
    return _written("".join(lines), min(codes, default=0))


def _written(text: str, code: int) -> int:
    """Write it out; the exit code, another one if nobody takes it."""
    try:
        if sys.stdout:
            sys.stdout.write(text)
            sys.stdout.flush()
    except OSError as error:
        # Python tries once more in the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if isinstance(error, BrokenPipeError):
            return 141
        sys.stderr.write(f"check.py: cannot write: {error.strerror}\n")
        return 2
    return code


def told(file: str, against: str | None = None) -> tuple[str, list[dict]]:
    """What a file is, in words, and what was fixed in it since, or may be.

    Untold: the file or the list of all files cannot be read, or the file is
    none of those.
    """
    text = _text(file)
    own, head, name = digest(text), HEAD.search(text), Path(file).name
    known = listed(against or _list_of(head))
    for known_as, entry in known.items():
        for place, version in enumerate(entry["versions"]):
            if version["digest"] == own:
                return _unchanged(entry, place, known_as)
    if name not in known:
        raise Untold("no file of the guide has its code or its name")
    return _changed(known[name], head["date"] if head else "", name)


def _unchanged(entry: dict, place: int, name: str) -> tuple[str, list[dict]]:
    """Of a version as it was handed out; the first is the newest."""
    date = entry["versions"][place]["date"]
    if place == 0:
        return f"current, {name} of {date}", []
    unsure = entry["versions"][place - 1]["date"] == date
    fixes = _fixes(entry, date, unsure)
    return f"older, {name} of {date}: {_since(entry, date, fixes)}", fixes


def _changed(entry: dict, date: str, name: str) -> tuple[str, list[dict]]:
    """Of code that nobody handed out, from a copy of that date."""
    days = [version["date"] for version in entry["versions"]]
    fixes = _fixes(entry, date, unsure=days.count(date) > 1)
    begin = f"changed by you, from {name} of {date or 'a day not known'}"
    if date >= days[0] and not fixes:
        return f"{begin}, the newest", []
    return f"{begin}: {_since(entry, date, fixes)}", fixes


def _fixes(entry: dict, date: str, unsure: bool) -> list[dict]:
    """What was fixed after a date; with unsure, on that day too."""
    later = [fix for fix in entry["fixed"] if fix["date"] >= date]
    return [fix for fix in later if unsure or fix["date"] != date]


def _since(entry: dict, date: str, fixes: list[dict]) -> str:
    if not fixes:
        return f"changed since ({entry['versions'][0]['date']}), not fixed"
    since = ["since"] * any(fix["date"] > date for fix in fixes)
    may = ["on that day, which it may lack"]
    may *= any(fix["date"] == date for fix in fixes)
    return f"fixed {', or '.join(since + may)}:"


def digest(text: str) -> str:
    """SHA-256 of code, the same for other comments, docstrings and layout.

    Untold: text that is no Python, or none at all.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the text
            tree = ast.parse(text)
        for node in ast.walk(tree):
            documented = isinstance(node, DOCUMENTED)
            if documented and ast.get_docstring(node) is not None:
                del node.body[0]
        code = json.dumps(_bare(tree)).encode()
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Untold(f"it is no Python that can be read: {error}") from None
    if not tree.body:
        raise Untold("it has no code")
    return hashlib.sha256(code).hexdigest()


def _bare(node: object) -> object:
    """A syntax tree as lists, the same under every Python: no empty fields."""
    if isinstance(node, list):
        return [_bare(each) for each in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = ((name, _bare(value)) for name, value in ast.iter_fields(node))
    full = [field for field in fields if field[1] not in ("None", [])]
    return [type(node).__name__, *full]


def _text(file: str) -> str:
    try:
        return _regular(file).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise Untold("it is no text in UTF-8") from None
    except (OSError, ValueError) as error:
        raise Untold(f"it cannot be read: {error}") from None


def _regular(file: str) -> Path:
    """The path of a file that has an end: a pipe and a device may have none."""
    if Path(file).exists() and not Path(file).is_file():
        raise OSError(f"it must be a regular file, got {file}")
    return Path(file)


def _list_of(head: re.Match | None) -> str:
    """The address of the list on the site that a head names."""
    if head and head["origin"].startswith("https://"):
        return head["origin"] + "snippets.json"
    raise Untold(
        "its head names no site: add --against with the address of the site's "
        "snippets.json, or with that file"
    )


def listed(where: str) -> dict:
    """All files of a list, from a path or from an https address.

    Untold: there is none.
    """
    data = _bytes(where)
    if isinstance(data, Untold):
        raise data
    try:
        known = json.loads(data)["files"]
        if known and all(_fits(*each) for each in known.items()):
            return known
    except (ValueError, TypeError, LookupError, AttributeError):
        pass
    raise Untold(f"{where} is no snippets.json of the guide")


def _fits(name: str, entry: dict) -> bool:
    """Whether all is there that is read; some of it goes to a terminal."""
    dated = [*entry["versions"], *entry["fixed"]]
    printed = [name, *(each["words"] for each in entry["fixed"])]
    return (
        all(DATE.fullmatch(each["date"]) for each in dated)
        and all(each.isprintable() for each in printed)
        and all(each["digest"] for each in entry["versions"])
        and len(entry["versions"]) > 0
    )


@functools.cache
def _bytes(where: str) -> bytes | Untold:
    """What is there, asked once for all files, or why there is nothing."""
    try:
        if "://" in where:
            return _fetched(where)
        return _regular(where).read_bytes()
    except (OSError, http.client.HTTPException, ValueError) as error:
        return Untold(f"{where} cannot be read: {error}")


def _fetched(address: str) -> bytes:
    if not address.startswith("https://"):
        raise ValueError("only https addresses are asked")
    with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
        if not answer.url.startswith("https://"):
            raise ValueError(f"it leads to {answer.url}, which is not https")
        return answer.read(LARGEST)


if __name__ == "__main__":
    if sys.stdout:
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(main())
