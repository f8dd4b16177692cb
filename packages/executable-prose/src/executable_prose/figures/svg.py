"""How figures look, and how a matplotlib figure becomes SVG for a page.

Exhibits draw with matplotlib's ordinary names: black, white, gray and C0 to C5. On
the way out each becomes a CSS variable, so that a figure follows the page's light
and dark palette. Two colour maps fade to the page's background, whatever it is:
`amount` for what starts at zero, `signed` for what has a sign.

All text has one size, in the figure that of a phone: the style sheet sets it again,
smaller beside the drawing where that is shown larger.
"""

import csv
import io
import math
import re
import xml.etree.ElementTree as ElementTree

import matplotlib
import matplotlib.scale
from cycler import cycler
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.container import BarContainer
from matplotlib.image import AxesImage
from matplotlib.text import Text
from matplotlib.ticker import LogFormatterSciNotation
from numpy import nan, ndenumerate
from numpy.ma import filled

from executable_prose.figures.palette import ROLES, SIZE

SERIES = [color for color in ROLES if color not in ("#000000", "#ffffff", "#808080")]
MAPS = ("amount", "signed")
LIVE = "live-"  # begins the id of an artist that a live figure moves
LINK = re.compile(r"https?://|[^:]*$")
MOST = 500_000  # characters of SVG in one figure
MARKS = ("path", "text", "image", "use")  # elements of SVG that a reader sees
ORANGE, BLUE = (0.88, 0.42, 0.08), (0.10, 0.48, 0.80)

WIDTH = 4.4  # inches; that of every figure, whatever part of it is drawn on
LEAST = 1 / 6  # inches; a line of text
BEYOND = 0.1  # inches; so far text may reach over the edge, whose letters are not measured exactly

STYLE = {
    "figure.figsize": (WIDTH, 2.7),
    "figure.constrained_layout.use": True,
    "figure.facecolor": "none",
    "font.size": SIZE,
    "axes.titlesize": SIZE,
    "axes.labelsize": SIZE,
    "axes.facecolor": "none",
    "axes.edgecolor": "gray",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=SERIES),
    "xtick.color": "gray",
    "ytick.color": "gray",
    "xtick.labelcolor": "black",
    "ytick.labelcolor": "black",
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "image.cmap": "amount",
    "image.interpolation": "none",
    "image.aspect": "auto",
    "patch.linewidth": 0.8,
    "svg.fonttype": "none",
    "svg.hashsalt": "positions",
    "path.simplify_threshold": 0.5,
}


class FigureError(Exception):
    """The figure cannot be shown in both themes; the message says why."""


class Powers(LogFormatterSciNotation):
    """Plain numbers at a logarithmic axis: an exponent would be half as high as the text beside it."""

    def __call__(self, value, position=None):
        if not super().__call__(value, position):  # between two powers
            return ""
        size, short = abs(value), f"{value:.0e}"
        if self._base == 2 and 0 < value < 1:
            text = f"1/{1 / value:,.0f}"
        elif size and not 1e-3 <= size < 1e5 and math.isclose(float(short), value):
            digits, _, power = short.partition("e")
            text = f"{digits}e{int(power)}"
        else:
            text = f"{value:,.0f}" if size >= 1 else f"{value:.6g}"
        return text.replace("-", "\N{MINUS SIGN}")


def prepare() -> None:
    """Set the house style for every figure drawn from now on."""
    matplotlib.rcdefaults()
    for name in ("date.epoch", "figure.max_open_warning", "timezone"):  # left as a matplotlibrc has them
        matplotlib.rcParams[name] = matplotlib.rcParamsDefault[name]  # type: ignore[index]
    matplotlib.rcParams.update(STYLE)  # type: ignore[arg-type]
    matplotlib.scale.LogFormatterSciNotation = Powers  # type: ignore[attr-defined]
    amount = [(*BLUE, 0.0), (*BLUE, 1.0)]
    signed = [(*BLUE, 1.0), (*BLUE, 0.0), (*ORANGE, 0.0), (*ORANGE, 1.0)]
    places = [0.0, 0.5, 0.5, 1.0]
    for name, colors in zip(MAPS, (amount, list(zip(places, signed, strict=True))), strict=True):
        matplotlib.colormaps.register(LinearSegmentedColormap.from_list(name, colors), force=True)  # type: ignore[arg-type]


def to_svg(figure: "matplotlib.figure.Figure", name: str) -> str:
    """The figure as inline SVG: its colours are CSS variables, its text is text.

    `name` makes the ids unique on a page that holds several figures.
    """
    _check_colormaps(figure)
    for ax in figure.axes:
        ax.tick_params(which="both", labelsize=SIZE)
    for text in figure.findobj(Text):
        if "$" in text.get_text():
            raise FigureError(
                f"the words {text.get_text()!r} are TeX, whose small letters cannot be read; write Unicode"
            )
        text.set_fontsize(SIZE)
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    _check_size(figure)
    root = ElementTree.fromstring(buffer.getvalue())
    for element in root.iter():
        _strip_namespaces(element)
    for part in list(root):
        if part.tag == "metadata" or part.find("style") is not None:
            root.remove(part)
    _check_links(root)
    _drop_unseen(root)
    _check_marks(root)
    _unwrap(root)
    _shorten_ids(root, name)
    for element in root.iter():
        _tidy(element)
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute)
    width, height = (float(side) for side in root.attrib["viewBox"].split()[2:])
    box = (width - 72 * WIDTH) / 2, 0, 72 * WIDTH, height
    root.attrib |= {"viewBox": " ".join(f"{side:g}" for side in box), "class": "figure", "role": "img"}
    svg = ElementTree.tostring(root, encoding="unicode", short_empty_elements=True)
    if len(svg) > MOST:
        raise FigureError(
            f"expected at most {MOST:,} characters of SVG, got {len(svg):,}: "
            "draw fewer points, or how many there are in each cell of a grid, by imshow"
        )
    return svg


def _check_size(figure):
    """What is wider than a page, or lies outside of the figure, would be cut off."""
    width, height = figure.get_size_inches()
    if width > WIDTH + 1e-6 or min(width, height) < LEAST:
        raise FigureError(
            f"expected a figure at most {WIDTH:g} inches wide and at least {LEAST:.2f} wide and high, got "
            f"{width:g} by {height:g}: set its figsize"
        )
    drawn = figure.get_tightbbox()
    if drawn.width > 0 and drawn.height > 0:
        beyond = {
            "left": -drawn.x0,
            "right": drawn.x1 - width,
            "bottom": -drawn.y0,
            "top": drawn.y1 - height,
        }
        side = max(beyond, key=beyond.__getitem__)
        if beyond[side] > BEYOND:
            raise FigureError(
                f"something is drawn up to {beyond[side]:.2g} inches beyond the {side} edge of the figure, "
                "where it would be cut off: move it inside, or shorten its words"
            )


def _check_marks(root):
    """A figure of nothing is an empty space under a caption."""
    hidden = {part for definitions in root.iter("defs") for part in definitions.iter()}
    marks = (part for part in root.iter() if part.tag in MARKS and part not in hidden)
    if not any(map(_is_seen, marks)):
        raise FigureError("the figure shows nothing: draw into axes of it, or return no figure")


def _is_seen(part):
    if part.tag == "path":
        return part.get("d", "") != ""
    return part.tag != "text" or "".join(part.itertext()).strip() != ""


def _check_links(root):
    """An artist may have an address, which a reader follows."""
    for link in root.iter("a"):
        if not LINK.match(link.get("href", "")):
            raise FigureError(f"expected a link to a page, got the url {link.get('href')!r} of an artist")


def _check_colormaps(figure):
    """An image leaves as pixels, so its colours are checked by name."""
    for image in figure.findobj(AxesImage):
        name = image.get_cmap().name
        if image.get_array().ndim == 2 and name in matplotlib.colormaps and name not in MAPS:
            raise FigureError(f"the figure uses the colour map {name!r}; expected {' or '.join(MAPS)}")


def data(figure: "matplotlib.figure.Figure") -> str:
    """What the figure shows, as CSV: a row for each point of a line or band, mark, bar, or cell of a grid."""
    made = io.StringIO()
    rows = csv.writer(made, lineterminator="\n")
    rows.writerow(("panel", "kind", "name", "x", "y", "value"))
    for panel, ax in enumerate(figure.axes, 1):
        for kind, name, points in _drawn(ax):
            rows.writerows((panel, kind, name, *(f"{number:.7g}" for number in point)) for point in points)
    return made.getvalue()


def _drawn(ax):
    """What stands in a panel, each as a kind, a name and points."""
    for line in ax.lines:
        if line.get_transform().contains_branch(ax.transData):
            yield "line", _name(line), line.get_xydata().tolist()
    for bars in ax.containers:
        if isinstance(bars, BarContainer):
            yield "bar", _name(bars), [_end(bar, bars.orientation) for bar in bars]
    for marks in ax.collections:
        if isinstance(marks, PathCollection):
            yield "mark", _name(marks), filled(marks.get_offsets(), nan).tolist()
        elif isinstance(marks, PolyCollection):
            yield (
                "band",
                _name(marks),
                [point for path in marks.get_paths() for point in path.vertices.tolist()],
            )
    for image in ax.images:
        if image.get_array().ndim == 2:
            cells = ndenumerate(filled(image.get_array().astype(float), nan))
            yield "cell", _name(image), [(x, y, value) for (y, x), value in cells]


def _name(artist):
    return artist.get_label().replace("\n", " ") if artist.get_label()[:1] != "_" else ""


def _end(bar, orientation):
    middle = bar.get_x() + bar.get_width() / 2, bar.get_y() + bar.get_height() / 2
    if orientation == "vertical":
        return middle[0], bar.get_y() + bar.get_height()
    return bar.get_x() + bar.get_width(), middle[1]


def _strip_namespaces(element):
    element.tag = element.tag.partition("}")[2] or element.tag
    for key in list(element.attrib):
        if "}" in key:
            element.attrib[key.partition("}")[2]] = element.attrib.pop(key)
    element.tail = None
    if element.tag not in ("text", "tspan") or not (element.text or "").strip(" \n"):
        element.text = None


def _drop_unseen(parent):
    """Remove the frames that are neither filled nor stroked."""
    for child in list(parent):
        _drop_unseen(child)
        if child.tag == "path" and child.attrib.get("style") == "fill: none":
            parent.remove(child)


def _unwrap(parent):
    """Replace every group that says nothing by what it holds."""
    for child in list(parent):
        _unwrap(child)
        if child.tag == "g" and not set(child.attrib) - {"id"} and not child.get("id", "").startswith(LIVE):
            place = list(parent).index(child)
            parent.remove(child)
            for offset, grandchild in enumerate(child):
                parent.insert(place + offset, grandchild)


def _shorten_ids(root, name):
    """Drop the ids that nothing refers to; give the others the figure's name."""
    text = ElementTree.tostring(root, encoding="unicode")
    used = set(re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', text))
    ids = {old: f"{name}-{number}" for number, old in enumerate(sorted(a or b for a, b in used), 1)}
    for element in root.iter():
        if "id" in element.attrib:
            old = element.attrib.pop("id")
            if old.startswith(LIVE):
                element.attrib["data-artist"] = old.removeprefix(LIVE)
            elif old in ids:
                element.attrib["id"] = ids[old]
        for key in ("clip-path", "style", "href"):
            if key in element.attrib:
                value = re.sub(r"(?<=url\(#)[^)]+", lambda match: ids[match[0]], element.attrib[key])
                element.attrib[key] = f"#{ids[value[1:]]}" if key == "href" and value[0] == "#" else value


def _tidy(element):
    """Colours to variables, numbers to two decimals, no font family, no idle transform."""
    for key in ("fill", "stroke", "style"):
        if style := element.attrib.get(key):
            style = re.sub(r"(; )?font-(?:family|size): [^;]+", "", style).removeprefix("; ")
            style = re.sub(r"(?<!url\()#[0-9a-f]{6}\b", _variable, style)
            element.attrib[key] = style.replace(": ", ":").replace("; ", ";")
        if element.attrib.get(key) == "":
            del element.attrib[key]
    if element.attrib.get("transform", "").startswith("rotate(-0 "):
        del element.attrib["transform"]
    for key in ("d", "x", "y", "transform", "viewBox", "points", "width", "height"):
        if key in element.attrib:
            element.attrib[key] = " ".join(re.sub(r"-?\d+\.\d+", _short, element.attrib[key]).split())


def _short(number):
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def _variable(color):
    if color[0] not in ROLES:
        raise FigureError(
            f"the figure uses the colour {color[0]}, which has no place in both themes; "
            "expected black, white, gray, C0 to C5, or the colour maps 'amount' and 'signed'"
        )
    return f"var({ROLES[color[0]]})"
