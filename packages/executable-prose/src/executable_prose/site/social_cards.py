"""What stands for a page where a link to it is shared: its title, a sentence, and its first figure."""

import html
import re
import shutil
import textwrap
from pathlib import Path

from executable_prose import project, syntax
from executable_prose.execution.results import Results
from executable_prose.figures.standalone import standalone
from executable_prose.site import markdown_copies, pictures
from executable_prose.site.pictures import SANS, SERIF

SIZE = WIDTH, HEIGHT = 1200, 630  # px, as those who show them ask for
LONGEST = 150  # letters of a sentence
PAPER, INK, QUIET = "#fffdf8", "#1b2430", "#4c545e"
CARD = f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">
<rect width="{WIDTH}" height="{HEIGHT}" fill="{PAPER}"/>{{parts}}</svg>"""


def write(site: Path, results: Results) -> None:
    """card.png beside each page that shall have one and has a figure."""
    mark = project.DOCS / "assets" / "favicon.svg"
    drawn = mark.read_text(encoding="utf-8") if mark.is_file() else ""
    for path in sorted({path for kind in project.settings().cards for path in project.DOCS.glob(kind)}):
        if project.relative(path) is None:
            continue
        text = path.read_text(encoding="utf-8")
        if svg := _first_figure(text, results):
            card = draw(*words(text), svg, drawn)
            shutil.copy(pictures.png(card, *SIZE), site / markdown_copies.folder(path) / "card.png")


def words(text: str) -> tuple[str, str]:
    """A page's heading, and what its description says before its first colon or full stop."""
    said, rest = syntax.front_matter(text)
    heading = re.search(r"^# (.+)$", rest, re.M)
    sentence = re.split("[.:]", " ".join(said.get("description", "").split()), maxsplit=1)[0]
    return (heading[1] if heading else said.get("title", "")), sentence


def _first_figure(text, results):
    figures = (results.get(name)["figure"] for name in syntax.exhibits(text))
    return next(filter(None, figures), None)


def draw(title: str, sentence: str, svg: str, mark: str = "") -> str:
    """The card as SVG; the mark is the site's, an SVG."""
    figure = standalone(svg).replace("#ffffff", PAPER).replace(":white", ":none")
    lines = textwrap.wrap(title, 19)
    words, end = _set(lines, 110, 50, f'font-family="{SERIF}" font-weight="bold" fill="{INK}"')
    more, _ = _set(
        textwrap.wrap(textwrap.shorten(sentence, LONGEST, placeholder=" …"), 36),
        end + 20,
        24,
        f'font-family="{SANS}" fill="{QUIET}"',
    )
    parts = [
        *words,
        *more,
        mark.replace("<svg ", '<svg x="60" y="535" width="44" height="44" ', 1),
        figure.replace("<svg ", '<svg x="590" y="75" width="570" height="480" ', 1),
    ]
    return CARD.format(parts="".join(parts))


def _set(lines, top, size, style):
    """Lines of text at the left, and where they end."""
    step = round(1.3 * size)
    texts = [
        f'<text x="60" y="{top + step * n}" font-size="{size}" {style}>{html.escape(line)}</text>'
        for n, line in enumerate(lines)
    ]
    return texts, top + step * len(lines)
