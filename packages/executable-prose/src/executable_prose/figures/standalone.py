"""A figure as a file of its own: light colours on white, without a style sheet. It needs no matplotlib."""

import html
import re
import textwrap

from executable_prose.figures.palette import ROLES, SIZE

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"  # by which older programs read a link within the file
FONT = "sans-serif"
WIDTH = 640  # px of a picture with its margin
MARGIN = 8  # points; text may reach over the edge of a figure by a little less
PAPER = 'x="-1e4" y="-1e4" width="2e4" height="2e4" fill="#ffffff"'  # beyond all edges: they are blurred
SMALL, LINE, STEP = 7, 86, 10  # points of the lines below; letters in one; points from one to the next


def standalone(svg: str) -> str:
    """The same figure as a file of its own: light colours on white."""
    for color, variable in ROLES.items():
        svg = svg.replace(f"var({variable})", color)
    style = f"background:white;font-family:{FONT};font-size:{SIZE}px"
    return svg.replace("<svg ", f'<svg xmlns="{SVG}" style="{style}" ', 1)


def picture(svg: str, says: str, source: list[str]) -> tuple[str, int, int]:
    """The same with a margin, and below it where it is from; with its width and height in px.

    It says what it shows, as its text alternative does on the page.
    """
    left, top, wide, high = map(float, re.search(r'viewBox="([^"]+)"', svg)[1].split())  # type: ignore[index]
    lines = [line for words in source for line in textwrap.wrap(words, LINE)]
    box = left - MARGIN, top - MARGIN, wide + 2 * MARGIN, high + 2 * MARGIN + STEP * len(lines)
    height = round(WIDTH * box[3] / box[2])
    words = "".join(
        f'<text x="{left:g}" y="{top + high + STEP * number:g}" fill="#4c545e" style="font-size:{SMALL}px">'
        f"{html.escape(line, quote=False)}</text>"
        for number, line in enumerate(lines, 1)
    )
    head = f'<svg xmlns:xlink="{XLINK}" width="{WIDTH}" height="{height}" '
    made = standalone(svg).replace(' href="', ' xlink:href="').replace("<svg ", head, 1)
    made = re.sub(
        r'viewBox="[^"]+"', 'viewBox="' + " ".join(f"{side:g}" for side in box) + '"', made, count=1
    )
    about = f"<title>{html.escape(says, quote=False)}</title>"
    made = made.replace(">", f">{about}<rect {PAPER}/>", 1)
    return made.removesuffix("</svg>") + words + "</svg>", WIDTH, height
