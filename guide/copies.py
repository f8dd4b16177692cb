"""The versions of each file to copy, and snippets.json, by which guide/check.py tells them apart.

    python -m guide.copies     write into the head of each file when its code last changed

That is the author's date of the commit in which the code became what it is. Comments, docstrings and layout
do not count.
"""

import argparse
import contextlib
import json
import re
import subprocess
import sys
import time

from executable_prose import command, project
from executable_prose.execution.memo import cached
from guide import changes, check
from guide.heads import CHECK, GUIDE, HEAD, files, read

LIST = "snippets.json"
CHANGE = re.compile(r":\S+ \S+ \S+ (?P<blob>\w+) \w\t(?P<file>.+)")  # as Git writes it

digest = cached(check.digest)


def versions():
    """Of each file the digests of its code and when it became so, the newest first, as Git knows them.

    Nothing without Git, and nothing of a history that is cut off: who began it is not known.
    """
    found = {}
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        if _git("rev-parse", "--is-shallow-repository", "--show-prefix") != "false\n\n":
            return {}
        date, changed, ours = "", [], files()
        log = ("log", "--reverse", "--no-renames", "--format=%as", "--raw", "--no-abbrev", "--diff-filter=AM")
        for line in _git(*log, "--", "snippets", CHECK).splitlines():
            if change := CHANGE.match(line):
                if change["file"] in ours:
                    changed.append((date, change["file"], change["blob"]))
            elif line:
                date = line
        texts = _texts(dict.fromkeys(blob for *_, blob in changed))
        for date, file, blob in changed:
            known = found.setdefault(file, [])
            with contextlib.suppress(check.Untold):
                code, before = digest(texts[blob]), known[0] if known else {"digest": "", "date": ""}
                if code != before["digest"]:  # no date is before that of older code
                    known.insert(0, {"digest": code, "date": max(date, before["date"])})
    return found


def _texts(blobs):
    """Each blob's text, asked of Git at once."""
    said, texts = _git("cat-file", "--batch", given="\n".join(blobs), text=False), {}
    for blob in blobs:
        head, _, said = said.partition(b"\n")
        size = int(head.split()[-1])
        texts[blob], said = said[:size].decode(), said[size + 1 :]
    return texts


def _git(*command, given=None, text=True):
    given = given if text or given is None else given.encode()
    done = subprocess.run(
        ["git", "-C", str(project.ROOT), *command], input=given, capture_output=True, text=text, check=True
    )
    return done.stdout


def dates():
    """When the code of each file last changed: today, if nobody has committed it yet."""
    known = versions()
    return {file: _date(digest(read(file)), known.get(file)) for file in files()}


def _date(code, known):
    return known[0]["date"] if known and known[0]["digest"] == code else time.strftime("%Y-%m-%d")


def write(site):
    (site / LIST).write_text(text(), "utf-8")


def text():
    """snippets.json, of the same bytes for the same history."""
    known, listed = versions(), {}
    for file in files():
        code = read(file)
        if head := HEAD.match(code):
            now = {"digest": digest(code), "date": head["date"]}
            name = file.rpartition("/")[2]
            fixed = [{"date": each.date, "words": each.words} for each in changes.fixed(name)]
            listed[name] = {
                "path": file,
                "versions": [now, *_earlier(now, known.get(file, []))],
                "fixed": fixed,
            }
    return json.dumps({"from": GUIDE, "files": listed}, indent=1) + "\n"


def _earlier(now, known):
    """Code that has come back is new."""
    seen = {now["digest"]}
    return [each for each in known if not (each["digest"] in seen or seen.add(each["digest"]))]


def main():
    """Write into each head when its code last changed; a file without one gets one."""
    if not versions():
        sys.exit("expected the whole history of a Git repository: git fetch --unshallow, or clone it")
    for file, date in dates().items():
        text = HEAD.sub("", read(file))
        head = f"# SPDX-License-Identifier: 0BSD\n# From {GUIDE}, {date}\n"
        (project.ROOT / file).write_text(head + text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    argparse.ArgumentParser("python -m guide.copies", description=main.__doc__).parse_args()
    command.run(main)
