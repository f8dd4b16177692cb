"""Cut the site's typefaces out of Literata and Figtree, which npm brings.

    python -m guide.text_fonts

writes docs/assets/head.woff2 and text.woff2, and beside each its licence, the SIL Open Font License 1.1.
"""

import base64
import hashlib
import io
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

from fontTools.ttLib import TTFont
from fontTools.varLib.instancer import instantiateVariableFont

from executable_prose.project import DOCS
from experiments import arguments
from guide.math_font import subset

# What sentences use; what is missing comes from the reader's own fonts.
CHARACTERS = [*range(0x20, 0x7F), *map(ord, "\N{NO-BREAK SPACE}°±²³·¹×éöü–’“”…−")]
FEATURES = ["kern", "tnum"]  # pairs of letters, and digits of one width for tables
VERSION = "5.3.0"
NOTICE = "{family} is a subset of {original}, cut and renamed by guide/text_fonts.py.\n\n"


class Face(NamedTuple):
    family: str  # as it is called here
    original: str
    digest: str  # of npm's package, as npm has it
    weights: int | tuple[int, int]


FACES = {
    "head": Face(
        "Guide Head",
        "Literata",
        "1Jw7xvOcoGyB83lxB2nG4bfNbqtX2/TTbdh9sHAOmU064SvmSdulDtA5RBu5JYWf64fdaKX7xU+z3GO1T2bCHA==",
        650,
    ),
    "text": Face(
        "Guide Text",
        "Figtree",
        "VRVodD7OiG7apQwE8/2fMjaqpY/a0qRJqL5HtYj8CKIVps+9amaFcdfKmDIf7iqYQx6iPLlArVXAfKeIZmVcNQ==",
        (400, 700),
    ),
}


def brought(face):
    """The font and its licence, from npm's package."""
    name = face.original.lower()
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", f"@fontsource-variable/{name}@{VERSION}"]
        packed = (
            Path(folder)
            / subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
        )
        digest = base64.b64encode(hashlib.sha512(packed.read_bytes()).digest()).decode()
        if digest != face.digest:
            raise ValueError(f"expected {packed.name} with the digest {face.digest}, npm brought {digest}")
        with tarfile.open(packed) as package:
            members = (f"package/files/{name}-latin-wght-normal.woff2", "package/LICENSE")
            return [package.extractfile(member).read() for member in members]


def cut(face, font):
    """The font with these characters alone, between these weights, under our name."""
    font = instantiateVariableFont(TTFont(io.BytesIO(font), recalcTimestamp=False), {"wght": face.weights})
    whole, font.flavor = io.BytesIO(), None
    font.save(whole)  # some of it is read late, and would miss what is cut away
    return subset(TTFont(whole, recalcTimestamp=False), CHARACTERS, face.family, FEATURES)


if __name__ == "__main__":
    arguments.none(__doc__)
    for name, face in FACES.items():
        font, licence = brought(face)
        cut(face, font).save(DOCS / "assets" / f"{name}.woff2")
        text = NOTICE.format(**face._asdict()) + licence.decode()
        (DOCS / "assets" / f"{name}-license.txt").write_text(text, encoding="utf-8")
