"""What the checker says of an entry of the register: broken, and mended."""

import textwrap


def compare(broken, mended, check, finds):
    """Print the findings on both.

    check takes either and gives findings. The one named by finds must fail
    on what is broken, and none may on what is mended.
    """
    wrong = [f for f in check(broken) if f.verdict == "fails"]
    left = [f for f in check(mended) if f.verdict == "fails"]
    names = [f.check for f in wrong]
    if finds not in names:
        told = ", ".join(names) or "nothing"
        raise ValueError(f"{finds} must find the fault, and {told} does")
    if left:
        raise ValueError(f"nothing may fail once mended, but {left[0]}")
    found = next(f for f in wrong if f.check == finds)
    told = f"{finds} fails. {found.asked} {found.found}"
    if not any(
        said in found.found for said in ("in place of", "no: ", "no,")
    ):
        told += f"; expected {found.expected}"
    say("broken", told + (f" ({found.where})" if found.where else ""))
    if others := sorted({name for name in names if name != finds}):
        verb = "does" if len(others) == 1 else "do"
        say("", f"So {verb} {', '.join(others)}.")
    say("mended", "nothing fails.")


def say(name, words):
    """A paragraph behind a name, for a narrow screen."""
    rest = " " * 8
    print(
        textwrap.fill(
            words, 72, initial_indent=f"{name:8}", subsequent_indent=rest
        )
    )
