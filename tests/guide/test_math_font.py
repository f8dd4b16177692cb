"""The mathematics font is the one that its tool cuts, and has every character that a formula uses."""

import hashlib
import re
from io import BytesIO

import pytest
from fontTools.ttLib import TTFont
from math_core import LatexToMathML

from executable_prose.project import DOCS
from guide.math_font import cut
from tests.rows import each_of

FONT = DOCS / "assets" / "math.woff2"
RESERVED, PLANCK = "\U0001d455", "\u210e"  # italic h stands elsewhere, as Planck's constant
PAGES = sorted(DOCS.rglob("*.md"))


def tables(font):
    """A digest of every table but the one that holds the time and the file's own sum."""
    tags = set(font.keys()) - {"GlyphOrder", "head"}
    return {tag: hashlib.sha256(font.getTableData(tag)).hexdigest() for tag in tags}


@pytest.mark.slow
def test_the_font_is_cut_from_its_source():
    buffer = BytesIO()
    cut().save(buffer)
    assert tables(TTFont(buffer)) == tables(TTFont(FONT)), "run `make font`"


def test_the_font_keeps_its_licence():
    names = {record.nameID: str(record) for record in TTFont(FONT)["name"].names}
    assert "STIX Fonts Project Authors" in names[0]
    assert "Open Font License" in names[13]
    assert names[1] == "Guide Math"


@each_of("path", PAGES, ids=lambda p: p.stem)
def test_the_font_has_every_character_of_a_page_s_formulas(path):
    text = path.read_text(encoding="utf-8")
    formulas = re.findall(r"\$\$(.+?)\$\$|\$([^$\n]+)\$", text, flags=re.S)
    converter = LatexToMathML()
    mathml = "".join(converter.convert_with_local_state(a or b, displaystyle=bool(a)) for a, b in formulas)
    mathml = mathml.replace("&ApplyFunction;", "\u2061")
    used = set(re.sub(r"<[^>]+>|&#?\w+;", "", mathml)) - set("\n\t")
    # Letters of a single <mi> are italic by default: the browser takes the mathematical ones.
    letters = [ord(c) for c in used if c.isascii() and c.isalpha()]
    italic = {chr(c + (0x1D434 - ord("A") if c < ord("a") else 0x1D44E - ord("a"))) for c in letters}
    italic = {PLANCK if c == RESERVED else c for c in italic}
    missing = (used | italic) - {chr(c) for c in TTFont(FONT).getBestCmap()}
    assert not missing, (
        f"{path.name} uses {sorted(missing)}: add them in guide/math_font.py and run `make font`"
    )
