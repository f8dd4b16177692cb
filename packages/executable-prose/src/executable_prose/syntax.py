"""What a page can say beyond Markdown, read here and nowhere else.

A page is a row of blocks: lines of prose, fences, and listings (`--8<-- "file@symbol"`). Within prose, and
within what a fence says of itself, stand values, claims and the minutes, as code that begins with `#!`.
"""

import difflib
import functools
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

import yaml
from mkdocs.utils import meta

VALUE = r"(?<!`)`#!val\s+([^\s`]+)(?:\s+([^`]*?))?\s*`(?!`)"
CLAIM = r"(?<!`)`#!claim\s+([^`]+?)\s*`(?!`)"
MINUTES = "`#!minutes`"
# What was meant to be one of these, and is none.
NAMELESS = r"(?<!`)`(#!(?:val|value|claim|minute)s?(?:\s[^`]*)?)`(?!`)"
# Code that names a language, which is not shown.
CODE = (
    r"(?<![`\\])(?P<ticks>`+)(?!`)(?:#!|:{3,})\s*(?P<word>[\w#.+-]*)(?P<more>\s[^`].*?|)(?<!`)(?P=ticks)(?!`)"
)
FENCE = re.compile(r"^(?P<indent>\s*)(?P<fence>`{3,}|~{3,})\s*(?P<kind>[\w-]*)(?P<rest>[^`]*)$")
LISTING = re.compile(r'^(?P<indent>\s*)--8<--\s+"(?P<file>[^"@]+)(?:@(?P<symbol>[^"]+))?"\s*$')
BRACED = re.compile(r"(?:\{\s*\.?)?([\w-]*)")  # the first word behind a fence, as others write it
BOX = re.compile(r'^(?:\?\?\?\+?|!!!) +(?P<kind>[\w-]+)(?: +"(?P<title>.*)")?$')
LISTED = "--8<--"  # the kind of a listing
SHOWN = ("markdown", "md")  # fences that show how a directive is written
SPEAKING = ("exhibit",)  # fences whose lines are prose: their captions


class PageError(Exception):
    """A page cannot be read; the number of the line, from 1, and why."""


class Block(NamedTuple):
    """A part of a page: prose has no kind, a fence the word behind it, a listing `--8<--`."""

    kind: str | None
    line: int  # of its first line, from 1
    lines: list[str]  # as they stand
    indent: str = ""
    argument: str = ""  # of a fence what follows its kind, of a listing the file
    symbol: str | None = None
    body: list[str] = []


@functools.lru_cache(maxsize=128)
def blocks(text: str) -> tuple[Block, ...]:
    """The blocks of a page, in order; every line of prose is one. Several ask for them.

    PageError: a fence that nothing closes.
    """
    return tuple(_blocks(text.split("\n")))


def _blocks(lines):
    number = 0
    while number < len(lines):
        block = at(lines, number)
        yield block
        number += len(block.lines)


def checked(text: str, directives: Collection[str]) -> Iterator[Block]:
    """The blocks of a page, in order.

    PageError: also for one of the `directives` where it would be shown as it stands.
    """
    any_of = "|".join(directives)
    misplaced = re.compile(
        rf"^\s*((>|[-*+:]|\d+[.)]|\[\^[^]]+\]:)\s+)*(;*-+8<-+|(`{{3,}}|~{{3,}})\s*({any_of})\b)", re.I
    )
    try:
        found: Iterable[Block] = blocks(text)
    except PageError:  # what is wrong above it is told first
        found = _blocks(text.split("\n"))
    for block in found:
        _check_place(block, misplaced)
        _check_kind(block, directives)
        yield block


def at(lines: list[str], number: int) -> Block:
    """The block that begins with the line of this number, from 0."""
    return _fence(lines, number) or _listing(lines, number) or Block(None, number + 1, [lines[number]])


def _fence(lines, start):
    if not (fence := FENCE.match(lines[start])):
        return None
    close = re.compile(rf"^\s*{fence['fence'][0]}{{{len(fence['fence'])},}}\s*$")
    end = next((number for number in range(start + 1, len(lines)) if close.match(lines[number])), None)
    if end is None:
        raise PageError(start + 1, "the block that begins here is never closed")
    indent, body = fence["indent"], lines[start + 1 : end]
    body = [line.removeprefix(indent) for line in body]
    return Block(fence["kind"], start + 1, lines[start : end + 1], indent, fence["rest"].strip(), body=body)


def _listing(lines, number):
    if not (found := LISTING.match(lines[number])):
        return None
    return Block(LISTED, number + 1, [lines[number]], found["indent"], found["file"], found["symbol"])


def _check_place(block, misplaced):
    if block.kind in (*SHOWN, LISTED):
        return
    if block.kind is None:
        if misplaced.match(block.lines[0]):
            text = block.lines[0].strip()
            raise PageError(block.line, f"{text!r} must stand on lines of its own, its file in quotes")
        return
    for number, line in enumerate(block.lines[1:-1], block.line + 1):
        if misplaced.match(line):  # a fence shows what is in it as it stands
            raise PageError(
                number,
                f"{line.strip()!r} would be shown as it stands: take away the fence around it, "
                'as in --8<-- "folder/name.py@symbol" on a line of its own '
                "(only a ```markdown fence shows how it is written)",
            )


def _check_kind(block, directives):
    if block.kind is None or block.kind in (*directives, LISTED):
        return
    kind = block.kind or BRACED.match(block.argument)[1]
    if near := difflib.get_close_matches(kind.lower(), directives, n=1, cutoff=0.8):
        if kind == near[0]:
            raise PageError(block.line, f"a directive has no braces: write ```{kind}")
        raise PageError(block.line, f"no directive is named {kind!r}; did you mean {near[0]!r}?")
    if not any(line.strip() for line in block.body):
        raise PageError(
            block.line, f"nothing stands between these fences, and no directive is named {kind!r}"
        )


def exhibits(text: str) -> list[str]:
    """The exhibits that a page contains, in order, as `module.function`."""
    return [(block.argument.split() or [""])[0] for block in _of(text, "exhibit")]


def drawn(text: str) -> list[str]:
    """The exhibits of which a page shows the figure under a caption, if they draw one."""
    asked = (block.argument.split() for block in _of(text, "exhibit") if any(block.body))
    return [words[0] for words in asked if words[1:] in ([], ["show=figure"]) and words]


def named(text: str) -> set[str]:
    """The exhibits and labs of which a page shows something, labs as `lab-name`."""
    values = (match[1].rpartition(".")[0] for match in re.finditer(VALUE, _prose(text)))
    labs = (f"lab-{block.argument}" for block in _of(text, "lab"))
    return {*exhibits(text), *values, *labs}


def cited(text: str) -> list[str]:
    """The claims that a page states, each once."""
    return list(dict.fromkeys(re.findall(CLAIM, _prose(text))))


def diagrams(text: str) -> list[str]:
    """The sources of a page's diagrams."""
    return ["\n".join(block.body) for block in _of(text, "mermaid")]


def front_matter(text: str) -> tuple[dict[str, Any], str]:
    """What a page says of itself at its top, and the rest of it."""
    rest, said = meta.get_data(text)
    return said, rest


def front_matter_fault(text: str) -> tuple[int, str]:
    """The line on which what should be front matter is not, and why."""
    if not (front := meta.YAML_RE.match(text)):
        return 1, "no second line of --- ends it, or it is empty"
    try:
        return 1, f"it is {type(yaml.safe_load(front[1])).__name__}"
    except Exception as error:  # YAML lets through what Python says of a date
        line = error.problem_mark.line + 2 if hasattr(error, "problem_mark") else 1
        return line, " ".join(str(getattr(error, "problem", None) or error).split())


def _of(text, kind):
    return [block for block in blocks(text) if block.kind == kind]


def _prose(text):
    spoken = (block for block in blocks(text) if block.kind in (None, *SPEAKING))
    return "\n".join(line for block in spoken for line in block.body or block.lines)
