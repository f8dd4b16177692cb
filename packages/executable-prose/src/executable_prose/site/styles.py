"""The site's style sheets without what no page of it can use.

That is comments and indentation in our own, and in those of the theme the rules for classes and ids that
stand in no page and no script, those for writing from right to left where no page is, and pictures that
nothing names.
"""

import re
from collections.abc import Collection
from pathlib import Path

OURS, THEMES = "assets/*.css", "assets/stylesheets/*.css"
NAMED = re.compile(r"[.#](-?[A-Za-z_][\w-]*)")
WITHIN = re.compile(r":(?:not|is|where)\([^()]*\)")  # of which one may stand for many, or for what is absent
APART = re.compile(r",(?![^(]*\))")
PICTURE = re.compile(r"""(--[\w-]+):url\(("[^"]*"|[^")]*)\);?""")
PART = re.compile(r"""[{};]|"[^"]*"|'[^']*'""")  # what opens, closes or ends, and is not within quotes
# A space for each byte of which no name consists: to split text there is twice as fast as an expression.
BETWEEN = bytes(byte if re.match(rb"[\w-]", bytes([byte])) else ord(" ") for byte in range(256))
RIGHT_TO_LEFT = "[dir=rtl]"


def shorten(site: Path) -> None:
    """Do so in a site whose pages are all there."""
    for sheet in site.glob(OURS):
        text = re.sub(r"/\*.*?\*/\s*", "", sheet.read_text("utf-8"), flags=re.S)
        sheet.write_text(re.sub(r"\n\s+", "\n", text), "utf-8")
    pages = b"".join(page.read_bytes() for kind in ("html", "js") for page in site.rglob(f"*.{kind}"))
    names = {word.decode() for word in set(pages.translate(BETWEEN).split())}
    if re.search(rb"\bdir=.?rtl", pages):
        names.add(RIGHT_TO_LEFT)
    themes = {sheet: without_unused(sheet.read_text("utf-8"), names) for sheet in site.glob(THEMES)}
    texts = [pages, *(text.encode() for text in themes.values())]
    used = {name.decode() for text in texts for name in re.findall(rb"var\((--[\w-]+)", text)}
    for sheet, text in themes.items():
        kept = PICTURE.sub(lambda picture: picture[0] if picture[1] in used else "", text)
        sheet.write_text(kept, "utf-8")


def without_unused(styles: str, names: Collection[str]) -> str:
    """Minified styles, of whose rules only those stay that can be for elements with these classes and ids."""
    kept = []
    for head, body in _rules(styles):
        if body is None:
            kept.append(head)
        elif head.startswith(("@media", "@supports")):
            if inner := without_unused(body, names):
                kept.append(f"{head}{{{inner}}}")
        elif head.startswith("@"):
            kept.append(f"{head}{{{body}}}")
        elif selectors := [each for each in APART.split(head) if _can_be(each, names)]:
            kept.append(f"{','.join(selectors)}{{{body}}}")
    return "".join(kept)


def _can_be(selector, names):
    if RIGHT_TO_LEFT in selector and RIGHT_TO_LEFT not in names:
        return False
    return all(name in names for name in NAMED.findall(WITHIN.sub("", selector)))


def _rules(styles):
    """Each rule as its head and its body; what has no body, such as @charset, alone."""
    start = depth = body = 0
    for part in PART.finditer(styles):
        if part[0] == "{":
            depth += 1
            body = body if depth > 1 else part.end()
        elif part[0] == "}":
            depth -= 1
            if not depth:
                yield styles[start : body - 1], styles[body : part.start()]
                start = part.end()
        elif part[0] == ";" and not depth:
            yield styles[start : part.end()], None
            start = part.end()
