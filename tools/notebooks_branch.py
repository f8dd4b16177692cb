"""Push all notebooks to the branch `notebooks`, one commit without history, where Colab and Binder find them.

    python -m tools.notebooks_branch REMOTE

The same sources give the same commit. $SITE_URL is the address that links in the notebooks begin with.
"""

import os
import subprocess
import tempfile
from pathlib import Path

from executable_prose import labs, project
from executable_prose.command import run
from tools import arguments

PYTHON = "3.12"  # Binder's own choice has been one that the pins refuse


def files(site):
    """All files of the branch: what each is called, and its text."""
    found = {
        file: labs.notebook(name, solved, site)
        for name in labs.notebooks()
        for file, solved, _ in labs.published(name)
    }
    readme = f"The notebooks of <{site}>. The build writes this branch anew each time: edit its sources.\n"
    return found | {
        "README.md": readme,
        "requirements.txt": "\n".join([*labs.needed(), ""]),
        "runtime.txt": f"python-{PYTHON}\n",
    }


def push(remote, site):
    date = git(project.ROOT, "log", "-1", "--format=%cI").strip()
    who = {f"GIT_{role}_{what}": said for role in ("AUTHOR", "COMMITTER") for what, said in _who(date)}
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files(site).items():
            (Path(folder) / name).write_text(text, encoding="utf-8", newline="\n")
        git(folder, "init", "--quiet", "--initial-branch", labs.BRANCH)
        git(folder, "-c", "core.autocrlf=false", "add", ".")
        git(folder, "commit", "--quiet", "--no-gpg-sign", "--message", "Notebooks", **who)
        git(folder, "push", "--quiet", "--force", remote, labs.BRANCH)


def _who(date):
    return ("NAME", "build"), ("EMAIL", "build@localhost"), ("DATE", date)


def git(folder, *command, **settings):
    done = subprocess.run(
        ["git", *command],
        cwd=folder,
        env=os.environ | settings,
        check=False,
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"git {' '.join(command)}: exit code {done.returncode}, for the reason above")
    return done.stdout


if __name__ == "__main__":
    remote = arguments.remote(__doc__)
    run(lambda: push(remote, os.environ.get("SITE_URL", "")))
