"""The files of a figure for readers to take away: its picture, its data, and a page for a frame elsewhere.

These are data/NAME.svg, data/NAME.png and data/NAME.csv, and embed/NAME/, which also has the lines that embed
and cite the figure. The figure there is cut out of the page that shows it, so it looks and moves alike.
"""

import functools
import gzip
import html
import os
import posixpath
import re
import shutil
import textwrap
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from mkdocs.config import load_config

from executable_prose import project, syntax
from executable_prose.execution.results import Results, exhibit_names
from executable_prose.figures.standalone import picture
from executable_prose.outcome import Result, Unavailable
from executable_prose.rendering.directives.exhibit import address
from executable_prose.site import markdown_copies, pictures

FIGURE = re.compile(
    r'<figure [^>]*\bid="([^"]+)"[^>]*>(?:(?!</figure>).)*?<svg [^>]*class="figure".*?</figure>', re.S
)
CODE = re.compile(r'<script type="module".*?</script>', re.S)
MOVES = re.compile(r'<section class="live".*?</section>|<span class="cards".*?</span>', re.S)
LINK = re.compile(r'(<a\b[^>]*?\bhref=")([^"]*)"')
MOST = 60_000  # bytes over the wire of a page to embed and all that it loads
STYLES, SCRIPTS = ("figures.css", "embed.css"), ("live.js", "graph.js", "cards.js")
HEADERS = 300  # bytes of each answer
WIDTH = 560  # px of a frame
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<link rel="icon" href="data:,">
{styles}<title>{title}</title>
</head>
<body>
<main>
<h1>{home}</h1>
{figure}
<details>
<summary>Take this figure</summary>
<p>{files}</p>
<p id="embed">To show it on another page:</p>
<pre><code>{frame}</code></pre>
<p id="cite">To cite it:</p>
<pre><code>{cite}</code></pre>
</details>
<p>{source}</p>
</main>
</body>
</html>
"""


@dataclass(frozen=True)
class Site:
    """Where the figures are from."""

    name: str
    url: str  # with a slash at its end, or "" where nobody has said
    date: str  # of the last commit, or ""
    licence: str

    @staticmethod
    def parts(*parts: str) -> list[str]:
        """Without what is empty or comes twice: a home page may be called as its site."""
        return [part for part in dict.fromkeys(parts) if part]


@dataclass(frozen=True)
class Figure:
    name: str
    page: str  # its folder, as guide/rope/
    title: str  # of the page
    html: str
    result: Result

    @property
    def place(self) -> str:
        return f"{self.page}#{address(self.name)}"

    @property
    def says(self) -> str:
        """Its text alternative."""
        return html.unescape(re.search(r'<svg [^>]*aria-label="([^"]*)"', self.html)[1])  # type: ignore[index]


def write(folder: Path, results: Results) -> None:
    """Write the data of all exhibits, and the pictures and the page of each figure that a page shows."""
    known = {}
    (folder / "data").mkdir()
    for name in exhibit_names():
        try:
            known[name] = results.get(name)
        except Unavailable as error:  # of an exhibit that no page shows
            raise SystemExit(str(error)) from None
        if data := known[name].get("data"):
            (folder / "data" / f"{name}.csv").write_text(data, encoding="utf-8")
    site = _site()
    for figure in _figures(folder, known):
        _draw(folder, site, figure)
        page = folder / "embed" / figure.name / "index.html"
        page.parent.mkdir(parents=True)
        page.write_text(embedded(folder, site, figure), encoding="utf-8")


def _site():
    said = load_config(str(project.ROOT / project.CONFIGURATION))
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", 0))
    date = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}" if seconds else ""
    url = f"{said.site_url.rstrip('/')}/" if said.site_url else ""
    return Site(said.site_name, url, date, project.settings().licence)


def homes() -> dict[str, Path]:
    """The page of each exhibit that may draw: the one called as its module, else the first of the nav."""
    found = {}
    order = [page for page, _ in project.pages_in_order()]
    for path in sorted(project.documents("*.md"), key=lambda path: _place(order, path)):
        for name in syntax.drawn(path.read_text(encoding="utf-8")):
            if name not in found or name.partition(".")[0] == path.stem.replace("-", "_"):
                found[name] = path
    return found


def _place(order, path):
    page = path.relative_to(project.DOCS).as_posix()
    return order.index(page) if page in order else len(order)


def _figures(folder, known):
    pages = functools.cache(lambda path: (title(path), _drawn(folder / markdown_copies.folder(path))))
    for name, path in homes().items():
        name_of_page, drawn = pages(path)
        if shown := drawn.get(address(name)):
            place = markdown_copies.folder(path)
            yield Figure(name, f"{place}/" if place else "", name_of_page, shown, known[name])


def title(path: Path) -> str:
    """Return the title of a page."""
    said, rest = syntax.front_matter(path.read_text(encoding="utf-8"))
    return said.get("title") or (re.findall(r"^# (.+)$", rest, re.M) or [path.stem])[0]


def _drawn(folder):
    """The figures of a built page by their ids; what has no caption has none."""
    page = folder / "index.html"  # which a draft does not have
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    return {figure[1]: figure[0] for figure in FIGURE.finditer(text)}


def _draw(folder, site, figure):
    """The picture as SVG and as pixels, twice as many as it is wide."""
    shown = site.parts(f"Figure {figure.name}", figure.title, site.name, site.licence)
    source = [", ".join(shown), *([site.url + figure.place] if site.url else [])]
    svg, width, height = picture(figure.result["figure"], figure.says, source)
    file = folder / "data" / f"{figure.name}.svg"
    file.write_text(svg, encoding="utf-8")
    shutil.copy(pictures.png(svg, 2 * width, 2 * height, colours=256), file.with_suffix(".png"))


def embedded(folder: Path, site: Site, figure: Figure) -> str:
    """The page to embed: live if that is light enough, else still, with a line that says so."""
    shown = LINK.sub(lambda link: f'{link[1]}{_moved(figure.page, link[2])}" target="_blank"', figure.html)
    shown = CODE.sub("", shown)
    still = MOVES.sub("", shown)
    if still == shown:
        return _page(site, figure, still)
    script = '<script type="module" src="../../assets/live.js"></script>\n</body>'
    live = _page(site, figure, shown).replace("</body>", script)
    loads = ((folder / "assets" / name).read_text(encoding="utf-8") for name in (*STYLES, *SCRIPTS))
    if sum(map(_weight, (live, *loads))) <= MOST:
        return live
    there = f'<a href="../../{figure.place}" target="_blank">on its page</a>'
    return _page(site, figure, f"{still}\n<p>This figure is interactive {there}.</p>")


def _weight(text):
    return len(gzip.compress(text.encode())) + HEADERS


def _moved(page, link):
    """A link of a page as it is from embed/NAME/."""
    if re.match(r"[a-z]+:|/", link):
        return link
    path, mark, fragment = link.partition("#")
    path, ask, query = path.partition("?")
    there = posixpath.normpath(posixpath.join("../..", page, path)) + "/" * (not path or path.endswith("/"))
    return there + ask + query + mark + fragment


def _page(site, figure, shown):
    name = figure.name
    kinds = ("svg", "png", "csv") if figure.result.get("data") else ("svg", "png")
    files = (f'<a href="../../data/{name}.{kind}" download>{kind.upper()}</a>' for kind in kinds)
    others = site.parts(figure.title, site.name)[1:]
    where = site.parts(site.url + figure.place if site.url else "", site.date, site.licence)
    home = f'<a href="../../{figure.place}" target="_blank">{html.escape(figure.title)}</a>'
    return PAGE.format(
        title=html.escape(f"Figure {name}, {figure.title}"),
        styles="".join(f'<link rel="stylesheet" href="../../assets/{each}">\n' for each in STYLES),
        figure=shown,
        files=", ".join(files),
        frame=html.escape(frame(site, figure)),
        cite=html.escape(", ".join([f"Figure {name}", f"“{figure.title}”", *others, *where])),
        home=home,
        source=html.escape(", ".join(site.parts(*others, site.licence))),
    )


def frame(site: Site, figure: Figure) -> str:
    """The line that embeds a figure, in a frame as high as it needs."""
    *_, wide, high = map(float, re.search(r'viewBox="([^"]+)"', figure.html)[1].split())  # type: ignore[index]
    words = re.search(r"<figcaption>(.*?)</figcaption>", figure.html, re.S)
    lines = len(re.sub(r"<[^>]+>", "", words[1] if words else "")) / 70
    controls = figure.result["live"]["controls"].values() if "live" in figure.result else ()
    sliders = sum("low" in each for each in controls)  # two in a row
    moved = 80 * (len(controls) - sliders // 2) + 100 if controls else 0
    height = round(min(512 * high / wide, 432 if controls else 4000) + 20 * lines + moved + 165)
    title = html.escape(textwrap.shorten(figure.says, 100, placeholder=" …"))
    return (
        f'<iframe src="{site.url}embed/{figure.name}/" width="{WIDTH}" height="{height}" title="{title}" '
        'loading="lazy" style="border: 0; max-width: 100%"></iframe>'
    )
