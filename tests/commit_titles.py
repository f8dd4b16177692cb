"""Check the titles of new commits: short, imperative, with a verb that one would search for.

python tests/commit_titles.py

checks all commits since START, or the last one where a shallow clone lacks START.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
START = "aa46db92d0da08d9d4b2f5052c14a903c83a48e5"  # titles before it are older than the rule
LONGEST = 72
VAGUE = ["Ask", "Give", "Hold", "Keep", "Lead", "Let", "Mend", "Say", "Tell"]


def problems_of(title):
    """Return what is wrong with the title of a commit, as sentences."""
    first = title.split(" ", 1)[0]
    found = []
    if len(title) > LONGEST:
        found.append(f"it must have at most {LONGEST} characters, got {len(title)}")
    if first in VAGUE or not re.fullmatch(r"[A-Z][a-z]+", first):
        found.append(f"it must begin with a verb such as Add, Fix, Remove or Rename, got {first!r}")
    return found


def titles(root=ROOT):
    """Return the titles of the commits since START."""
    known = subprocess.run(["git", "-C", str(root), "cat-file", "-e", START], capture_output=True)
    wanted = ["-1"] if known.returncode else [f"{START}..HEAD"]
    log = ["git", "-C", str(root), "log", "--no-merges", "--format=%s", *wanted]
    return subprocess.run(log, capture_output=True, text=True, check=True).stdout.splitlines()


def main():
    found = [f"{title!r}: {problem}" for title in titles() for problem in problems_of(title)]
    print(*found, sep="\n", end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
