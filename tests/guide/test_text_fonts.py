"""The typefaces of titles and text: cut and named as their tool says, awaited by letters of their size."""

import re
from collections import Counter
from pathlib import Path

import matplotlib
import pytest
from fontTools.ttLib import TTFont

from executable_prose.project import DOCS
from guide.text_fonts import CHARACTERS, FACES
from tests.rows import each_of

ASSETS = DOCS / "assets"
# Of the fonts that "Like Head" and "Like Text" take, or of some as wide: Times Bold and Helvetica.
AWAITED = {"head": "ptmb8a.afm", "text": "phvr8a.afm"}
MOST = 25_000  # bytes of both, which every page loads


def font(name):
    return TTFont(ASSETS / f"{name}.woff2")


@each_of("name", FACES)
def test_a_face_keeps_its_licence_and_not_its_name(name):
    said = {record.nameID: str(record) for record in font(name)["name"].names}
    face = FACES[name]
    assert f"The {face.original} Project Authors" in said[0]
    assert said[14] in ("https://scripts.sil.org/OFL", "https://openfontlicense.org")
    assert said[1] == said[4] == said[6] == face.family
    licence = (ASSETS / f"{name}-license.txt").read_text(encoding="utf-8")
    assert licence.startswith(f"{face.family} is a subset of {face.original}, ")
    assert "SIL OPEN FONT LICENSE Version 1.1" in licence


@each_of("name", FACES)
def test_a_face_has_the_letters_and_weights_that_it_should(name):
    face, cut = FACES[name], font(name)
    assert not set(CHARACTERS) - set(cut.getBestCmap())
    if isinstance(face.weights, int):
        assert "fvar" not in cut
    else:
        (axis,) = cut["fvar"].axes
        assert (axis.axisTag, axis.minValue, axis.maxValue) == ("wght", *face.weights)


def test_they_are_light():
    assert sum((ASSETS / f"{name}.woff2").stat().st_size for name in FACES) <= MOST


def letters():
    """How often each letter stands in the guide."""
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((DOCS / "guide").glob("*.md")))
    return Counter(letter for letter in text if letter == " " or (letter.isascii() and letter.isalpha()))


def width(of):
    counts = letters()
    return sum(of(letter) * count for letter, count in counts.items()) / counts.total()


@each_of("name", FACES)
def test_until_a_face_has_come_letters_as_wide_and_lines_as_high_stand_there(name):
    metrics = Path(matplotlib.get_data_path(), "fonts", "afm", AWAITED[name]).read_text(encoding="latin-1")
    awaited = {int(code): int(w) / 1000 for code, w in re.findall(r"^C (\d+) ; WX (\d+)", metrics, re.M)}
    cut = font(name)
    unit, places, lines = cut["head"].unitsPerEm, cut.getBestCmap(), cut["hhea"]
    ours = width(lambda letter: cut["hmtx"][places[ord(letter)]][0] / unit)
    size = ours / width(lambda letter: awaited[ord(letter)])
    styles = (ASSETS / "site.css").read_text(encoding="utf-8")
    (rule,) = re.findall(rf'@font-face {{ font-family: "Like {name.title()}";.*?}}', styles)
    said = {key: float(percent) for key, percent in re.findall(r"([\w-]+): ([\d.]+)%", rule)}
    wanted = {
        "size-adjust": size,
        "ascent-override": lines.ascent / unit / size,
        "descent-override": -lines.descent / unit / size,
        "line-gap-override": lines.lineGap / unit,
    }
    assert said == {key: pytest.approx(100 * share, abs=1) for key, share in wanted.items()}
