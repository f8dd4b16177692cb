"""The picture that stands for a page where a link to it is shared: its title beside its first figure."""

import hashlib
import html
import shutil
import textwrap
from pathlib import Path
from typing import Any

from executable_prose import claims, project, syntax
from executable_prose.execution.results import Results
from executable_prose.site import markdown_copies

SIZE = WIDTH, HEIGHT = 1200, 630  # px, as those who show them ask for
FAMILY = "DejaVu Sans"
CARD = f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="{FAMILY}">
<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/><rect width="{WIDTH}" height="14" fill="#1d4f80"/>
{{title}}{{figure}}</svg>"""


def write(site: Path, results: Results) -> None:
    """card.png beside each page that shall have one and has a figure."""
    for path in sorted({path for kind in project.settings().cards for path in project.DOCS.glob(kind)}):
        if svg := _first_figure(path.read_text(encoding="utf-8"), results):
            title = claims.title(path.relative_to(project.DOCS).as_posix())
            shutil.copy(_drawn(title, svg), site / markdown_copies.folder(path) / "card.png")


def _first_figure(text, results):
    figures = (results.get(name)["figure"] for name in syntax.exhibits(text))
    return next(filter(None, figures), None)


def _drawn(title, svg):
    """The file of a card in the cache."""
    decided_by = [title, svg, Path(__file__).read_text(encoding="utf-8")]
    file = (
        project.ROOT
        / ".cache"
        / "cards"
        / f"{hashlib.sha256(repr(decided_by).encode()).hexdigest()[:16]}.png"
    )
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        draw(title, svg).write_to_png(str(file))
    return file


def draw(title: str, svg: str) -> Any:
    """The card as pixels."""
    import matplotlib
    from novasvg import Document, fonts

    from executable_prose.figures.svg import standalone

    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    for name, bold in (("DejaVuSans.ttf", False), ("DejaVuSans-Bold.ttf", True)):
        fonts.add_font_face_from_file(FAMILY, bold, False, str(folder / name))
    place = '<svg x="500" y="85" width="660" height="460" '
    figure = standalone(svg).replace("<svg ", place, 1).replace("sans-serif", FAMILY)
    lines = enumerate(textwrap.wrap(title, 14))
    words = (
        f'<text x="60" y="{160 + 66 * n}" font-size="48">{html.escape(line)}</text>' for n, line in lines
    )
    card = CARD.format(title=f'<g font-weight="bold">{"".join(words)}</g>', figure=figure)
    return Document.load_from_data(card).render_to_bitmap(*SIZE)
