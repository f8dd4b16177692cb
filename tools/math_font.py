"""Cut the site's mathematics font out of STIX Two Math, which the ziamath package brings.

    python -m tools.math_font

writes docs/assets/math.woff2. Its licence, the SIL Open Font License 1.1, lies beside it.
"""

import importlib.resources

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

from executable_prose.project import DOCS

# What the formulas use, by Unicode block or piece of one.
CHARACTERS = (
    (0x20, 0x7E),  # Latin, digits, brackets
    (0xA0, 0xA0),  # space
    (0xAF, 0xAF),  # bar above
    (0xB1, 0xB1),  # plus-minus
    (0xB7, 0xB7),  # middle dot
    (0xD7, 0xD7),  # times
    (0x391, 0x3C9),  # Greek
    (0x2C6, 0x2C6),  # hat
    (0x2016, 0x2016),  # double bar of a norm
    (0x2026, 0x2026),  # dots
    (0x2032, 0x2032),  # prime
    (0x2061, 0x2064),  # invisible operators
    (0x211D, 0x211D),  # real numbers
    (0x2102, 0x2102),  # complex numbers
    (0x2124, 0x2124),  # integers
    (0x2190, 0x2194),  # arrows
    (0x21A6, 0x21A6),  # maps to
    (0x2200, 0x2209),  # for all, exists, element of
    (0x220F, 0x2212),  # product, sum, minus
    (0x2217, 0x221A),  # star, ring, root
    (0x221E, 0x221E),  # infinity
    (0x2225, 0x2225),  # parallel
    (0x2227, 0x222B),  # and, or, cap, cup, integral
    (0x2248, 0x2248),  # nearly equal
    (0x2260, 0x2265),  # not equal, identical, at most, at least
    (0x226A, 0x226B),  # much less, much greater
    (0x2282, 0x2287),  # subsets
    (0x22A4, 0x22A5),  # transpose, perpendicular
    (0x22C5, 0x22C5),  # dot product
    (0x22EE, 0x22F1),  # dots of a matrix
    (0x2308, 0x230B),  # floor and ceiling
    (0x23DE, 0x23DF),  # braces above and below
    (0x27E8, 0x27E9),  # angle brackets
    (0x1D434, 0x1D467),  # italic Latin
    (0x1D6FC, 0x1D71B),  # italic Greek
    (0x210E, 0x210E),  # italic h
)


FAMILY_NAMES = (1, 4, 6)  # family, full and PostScript name: the font is no longer the original


def cut():
    """The font with these characters alone, and with what stretches them."""
    source = importlib.resources.files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf"
    with importlib.resources.as_file(source) as path:
        font = TTFont(path, recalcTimestamp=False)
    options = Options()
    options.layout_features = []
    options.hinting = False
    options.name_IDs = ["*"]  # the notice and the licence stay with the font
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=[c for first, last in CHARACTERS for c in range(first, last + 1)])
    subsetter.subset(font)
    for record in font["name"].names:
        if record.nameID in FAMILY_NAMES:
            record.string = "Guide Math"
    font.flavor = "woff2"
    return font


if __name__ == "__main__":
    cut().save(DOCS / "assets" / "math.woff2")
