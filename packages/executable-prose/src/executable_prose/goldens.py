"""Golden files: what each exhibit prints and returns, one file per module, for tests to compare with.

Numbers with a point or a power of ten may differ by one in a thousand or by 1e-6, which covers another
machine's arithmetic; whole numbers and all other text must be the same.
"""

import math
import re
from pathlib import Path

from executable_prose.outcome import Result

HEADING = "=== "  # of an exhibit's part in its module's file
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
WHOLE = re.compile(r"[-+]?\d+")
RELATIVE, ABSOLUTE = 1e-3, 1e-6


def entry(result: Result) -> str:
    """An exhibit's part of a golden file: what it printed, then its values by name."""
    values = [f"{key} = {value!r}\n" for key, value in result["values"].items()]
    return result["output"] + ("---\n" if values else "") + "".join(values)


def read(folder: Path, module: str) -> dict[str, str]:
    """What the golden file of a module has, by the name of the exhibit."""
    file = folder / f"{module}.txt"
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    _, *found = re.split(rf"^{HEADING}(.+)\n", text, flags=re.MULTILINE)
    return dict(zip(found[::2], found[1::2], strict=True))


def page(parts: dict[str, str]) -> str:
    """The text of a module's golden file."""
    return "".join(f"{HEADING}{name}\n{part}" for name, part in sorted(parts.items()))


def write(folder: Path, name: str, result: Result) -> None:
    """Store what an exhibit gives in the golden file of its module."""
    module = name.partition(".")[0]
    folder.mkdir(parents=True, exist_ok=True)
    known, now = read(folder, module), entry(result)
    if name in known and not differences(known[name], now):
        return  # another machine's last digits are no news
    parts = known | {name: now}
    (folder / f"{module}.txt").write_text(page(parts), encoding="utf-8")


def differences(golden: str, now: str) -> list[str]:
    """The lines that differ by more than rounding."""
    if golden.count("\n") != now.count("\n"):
        return [f"{golden.count(chr(10))} lines became {now.count(chr(10))}"]
    pairs = zip(golden.splitlines(), now.splitlines(), strict=True)
    return [f"{old!r} became {new!r}" for old, new in pairs if not alike(old, new)]


def alike(old: str, new: str) -> bool:
    """Whether two lines differ at most in the last digits of their numbers."""
    # White space may differ: a number's sign or power of ten can change its width.
    texts = [NUMBER.sub("#", line).split() for line in (old, new)]
    numbers = zip(*(NUMBER.findall(line) for line in (old, new)), strict=True) if texts[0] == texts[1] else ()
    return texts[0] == texts[1] and all(a == b or _close(a, b) for a, b in numbers)


def _close(old, new):
    """Whether two numbers differ at most in their last digits; a whole one has none to spare."""
    whole = WHOLE.fullmatch(old) and WHOLE.fullmatch(new)
    return not whole and math.isclose(float(old), float(new), rel_tol=RELATIVE, abs_tol=ABSOLUTE)
