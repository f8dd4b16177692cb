"""Cut the site's mathematics font out of STIX Two Math, which the ziamath package brings.

    python -m guide.math_font

writes docs/assets/math.woff2. Its licence, the SIL Open Font License 1.1, lies beside it.
"""

import importlib.resources

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

from executable_prose.project import DOCS
from experiments import arguments

# What the formulas use, by Unicode block or piece of one.
CHARACTERS = (
    (0x20, 0x7E),  # Latin, digits, brackets
    (0xA0, 0xA0),  # space
    (0xAF, 0xAF),  # bar above
    (0xB1, 0xB1),  # plus-minus
    (0xD7, 0xD7),  # times
    (0x3B1, 0x3C9),  # Greek
    (0x2C6, 0x2C6),  # hat
    (0x2016, 0x2016),  # double bar of a norm
    (0x2032, 0x2032),  # prime
    (0x2061, 0x2063),  # invisible operators
    (0x210E, 0x210E),  # italic h
    (0x211D, 0x211D),  # real numbers
    (0x2190, 0x2190),  # arrow
    (0x21A6, 0x21A6),  # maps to
    (0x2202, 0x2202),  # differential
    (0x2208, 0x2208),  # element of
    (0x2211, 0x2212),  # sum, minus
    (0x221A, 0x221A),  # root
    (0x221E, 0x221E),  # infinity
    (0x2248, 0x2248),  # nearly equal
    (0x2260, 0x2260),  # not equal
    (0x2264, 0x2265),  # at most, at least
    (0x226B, 0x226B),  # much greater
    (0x22A4, 0x22A4),  # transpose
    (0x22C5, 0x22C5),  # dot product
    (0x22EF, 0x22EF),  # dots of a matrix
    (0x230A, 0x230B),  # floor
    (0x23DF, 0x23DF),  # brace below
    (0x27E8, 0x27E9),  # angle brackets
    (0x1D434, 0x1D467),  # italic Latin
    (0x1D6FC, 0x1D714),  # italic Greek
)


FAMILY_NAMES = (1, 4, 6)  # family, full and PostScript name: the font is no longer the original


def cut():
    """The font with these characters alone, and with what stretches them."""
    source = importlib.resources.files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf"
    with importlib.resources.as_file(source) as path:
        font = TTFont(path, recalcTimestamp=False)
    return subset(font, [c for first, last in CHARACTERS for c in range(first, last + 1)], "Guide Math", [])


def subset(font, characters, family, features):
    """A font with some characters and features alone, under another name."""
    options = Options()
    options.layout_features = features
    options.hinting = False
    options.name_IDs = ["*"]  # the notice and the licence stay with the font
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=characters)
    subsetter.subset(font)
    for record in font["name"].names:
        if record.nameID in FAMILY_NAMES:
            record.string = family
    font.flavor = "woff2"
    return font


if __name__ == "__main__":
    arguments.none(__doc__)
    cut().save(DOCS / "assets" / "math.woff2")
