"""Tag what is published by the date of the newest entry in CHANGES.md, so that it can be named and compared.

    python -m tools.tag REMOTE

What says the same as the last tag of that date needs none; further entries on one day make it 2026-11-23.2.
"""

import subprocess

from executable_prose import project
from executable_prose.command import run
from guide import changes
from tools import arguments
from tools.notebooks_branch import git


def tag(remote):
    """The name of the new tag at the remote, or None."""
    date = changes.entries()[0].date
    lines = git(project.ROOT, "ls-remote", "--tags", "--refs", remote, date, f"{date}.*").splitlines()
    known = sorted((line.split("\trefs/tags/") for line in lines), key=lambda each: (len(each[1]), each[1]))
    if known and _same(known[-1][0]):
        return None
    name = f"{date}.{len(known) + 1}" if known else date
    git(project.ROOT, "push", "--quiet", remote, f"HEAD:refs/tags/{name}")
    return name


def _same(commit):
    command = ["git", "diff", "--quiet", commit, "HEAD", "--", changes.FILE]
    return subprocess.run(command, cwd=project.ROOT, check=False).returncode == 0


if __name__ == "__main__":
    remote = arguments.remote(__doc__)
    run(lambda: print(tag(remote) or "no new tag: CHANGES.md is as it was"))
