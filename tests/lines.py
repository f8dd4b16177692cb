"""Count the lines of each directory that are written by hand, and compare them with the budget.

python tests/lines.py

prints a table and fails if a directory has more lines than `lines.toml` allows. Files that a program writes
have the attribute `linguist-generated` in .gitattributes and do not count, nor do binary files.
"""

import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUDGET = Path(__file__).with_suffix(".toml")


def count_lines(root=ROOT):
    """Return the number of hand-kept lines by directory, as `directory_of` names it."""
    lines = Counter()
    for file in hand_kept(root):
        data = (root / file).read_bytes() if (root / file).is_file() else b""
        lines[directory_of(file)] += 0 if b"\0" in data else data.count(b"\n")
    return lines


def hand_kept(root):
    """Return the tracked files that no program writes."""
    files = git(root, "ls-files", "-z")
    attributes = git(root, "check-attr", "-z", "--stdin", "linguist-generated", given=files).split("\0")
    return [file for file, value in zip(attributes[::3], attributes[2::3], strict=False) if value != "set"]


def directory_of(file):
    """Return the top-level directory of a file, and for a package also its name; "." for files at the top."""
    first, *rest = file.split("/")
    if not rest:
        return "."
    return f"{first}/{rest[0]}" if first == "packages" else first


def git(root, *arguments, given=None):
    done = subprocess.run(
        ["git", "-C", str(root), *arguments], input=given, capture_output=True, text=True, check=True
    )
    return done.stdout


def report(lines, allowed):
    """Return the table, and the directories that exceed the budget or have none."""
    names = sorted({*lines, *allowed})
    table = [f"{'directory':30} {'lines':>8} {'allowed':>8}"]
    table += [f"{name:30} {lines[name]:8,} {allowed.get(name, 0):8,}" for name in names]
    table += [f"{'total':30} {lines.total():8,} {sum(allowed.values()):8,}"]
    return "\n".join(table), [name for name in names if lines[name] > allowed.get(name, 0)]


def main():
    table, exceeded = report(count_lines(), tomllib.loads(BUDGET.read_text(encoding="utf-8"))["lines"])
    print(table)
    if exceeded:
        sys.exit(
            f"{', '.join(exceeded)}: more lines than {BUDGET.name} allows; remove some, or raise the budget "
            "in a commit that says why"
        )


if __name__ == "__main__":
    main()
