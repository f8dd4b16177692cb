"""Compare the checker's findings on the broken and the fixed code."""

import textwrap


def compare(broken, fixed, check, finds):
    """Print the findings on both.

    check takes either version and returns findings. The check named by finds
    must fail on the broken version, and none may fail on the fixed one.
    """
    wrong = [f for f in check(broken) if f.verdict == "fails"]
    left = [f for f in check(fixed) if f.verdict == "fails"]
    names = [f.check for f in wrong]
    if finds not in names:
        told = ", ".join(names) or "nothing"
        raise ValueError(f"{finds} must fail; the failing checks are: {told}")
    if left:
        raise ValueError(f"no check may fail on the fix, but {left[0]}")
    found = next(f for f in wrong if f.check == finds)
    told = f"{finds} fails. {found.question} {found.found}"
    shown = "in place of", "instead of", "no: ", "no,"
    if not any(words in found.found for words in shown):
        told += f"; expected {found.expected}"
    say("broken", told + (f" ({found.where})" if found.where else ""))
    if others := sorted({name for name in names if name != finds}):
        say("", f"Also failing: {', '.join(others)}.")
    say("fixed", "no check fails.")


def say(name, words):
    """Print a paragraph after a name, wrapped for a narrow screen."""
    rest = " " * 8
    print(
        textwrap.fill(
            words, 72, initial_indent=f"{name:8}", subsequent_indent=rest
        )
    )
