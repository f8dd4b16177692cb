"""The picture that stands for a page where a link to it is shared: its title beside its first figure."""

import hashlib
import html
import shutil
import textwrap
from pathlib import Path

from weave import claims, project, twins
from weave.extension import RESULTS
from weave.results import NAMED

SIZE = WIDTH, HEIGHT = 1200, 630  # px, as those who show them ask for
FAMILY = "DejaVu Sans"
CARD = f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="{FAMILY}">
<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/><rect width="{WIDTH}" height="14" fill="#1d4f80"/>
{{title}}{{figure}}</svg>"""


def write(site):
    """card.png beside each chapter, and beside the home page for all pages without one."""
    for path in [project.DOCS / "index.md", *sorted(project.DOCS.glob("guide/*.md"))]:
        if svg := _first_figure(path.read_text(encoding="utf-8")):
            title = claims.title(path.relative_to(project.DOCS).as_posix())
            shutil.copy(_drawn(title, svg), site / twins.folder(path) / "card.png")


def _first_figure(text):
    names = (match["exhibit"] for match in NAMED.finditer(text) if match[0].startswith("exhibit"))
    return next(filter(None, (RESULTS.get(name)["figure"] for name in names)), None)


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


def draw(title, svg):
    """The card as pixels."""
    import matplotlib
    from novasvg import Document, fonts

    from weave.figures import standalone

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
