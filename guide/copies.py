"""When the code of each file to copy last changed.

    python -m guide.copies     write that into the head of each file, and copy the package's files
                               and the census

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
from executable_prose.execution.provenance import parts
from experiments.census.rows import census, rows, words
from guide.census import names_of
from guide.heads import GUIDE, HEAD, files, read

PACKAGE = "packages/check-positions/src/check_positions"
SOURCES = {  # of files to copy that are modules of a package
    "snippets/check_positions.py": f"{PACKAGE}/checker.py",
    "snippets/read_config.py": f"{PACKAGE}/config.py",
}
CENSUS = f"{PACKAGE}/census.json"
CHANGE = re.compile(r":\S+ \S+ \S+ (?P<blob>\w+) \w\t(?P<file>.+)")  # as Git writes it


def versions():
    """Return the versions of each file's code and their dates, the newest first, as Git knows them.

    Nothing without Git, and nothing of a history that is cut off: who began it is not known.
    """
    found = {}
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        if _git("rev-parse", "--is-shallow-repository", "--show-prefix") != "false\n\n":
            return {}
        date, changed, ours = "", [], files()
        log = ("log", "--reverse", "--no-renames", "--format=%as", "--raw", "--no-abbrev", "--diff-filter=AM")
        for line in _git(*log, "--", "snippets").splitlines():
            if change := CHANGE.match(line):
                if change["file"] in ours:
                    changed.append((date, change["file"], change["blob"]))
            elif line:
                date = line
        texts = _texts(dict.fromkeys(blob for *_, blob in changed))
        for date, file, blob in changed:
            known = found.setdefault(file, [])
            with contextlib.suppress(SyntaxError):
                code, before = parts(texts[blob]), known[0] if known else {"code": None, "date": ""}
                if code != before["code"]:  # no date is before that of older code
                    known.insert(0, {"code": code, "date": max(date, before["date"])})
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
    return {file: _date(parts(read(file)), known.get(file)) for file in files()}


def _date(code, known):
    return known[0]["date"] if known and known[0]["code"] == code else time.strftime("%Y-%m-%d")


def packaged_census():
    """The text of the census that the package carries: the facts of each model type in words."""
    models = {
        row.kind: {"class": row.cls, "reads": row.reads, "names": names_of(row.kind), "words": words(row)}
        for row in rows()
    }
    return (
        json.dumps({"transformers": census()["transformers"], "models": models}, indent=0, ensure_ascii=False)
        + "\n"
    )


def main():
    """Write into each head when its code last changed; a file without one gets one."""
    if not versions():
        sys.exit("expected the whole history of a Git repository: git fetch --unshallow, or clone it")
    for file, source in SOURCES.items():
        if (project.ROOT / source).is_file():
            head = HEAD.match(read(file))
            (project.ROOT / file).write_text((head[0] if head else "") + read(source), "utf-8", newline="\n")
    if (project.ROOT / PACKAGE).is_dir():
        (project.ROOT / CENSUS).write_text(packaged_census(), "utf-8", newline="\n")
    for file, date in dates().items():
        text = HEAD.sub("", read(file))
        head = f"# SPDX-License-Identifier: 0BSD\n# From {GUIDE}, {date}\n"
        (project.ROOT / file).write_text(head + text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    argparse.ArgumentParser("python -m guide.copies", description=main.__doc__).parse_args()
    command.run(main)
