"""SVG as pixels, from the cache if it was drawn before."""

import hashlib
from pathlib import Path

from executable_prose import project
from executable_prose.figures.standalone import FONT

SERIF, SANS = "DejaVu Serif", "DejaVu Sans"
FILES = {(SERIF, True): "DejaVuSerif-Bold.ttf", (SANS, False): "DejaVuSans.ttf"}


def png(svg: str, width: int, height: int, colours: int = 0) -> Path:
    """Return the file of a picture whose text is in the fonts that matplotlib brings.

    With as few as 256 colours it has a quarter of the bytes.
    """
    decided_by = [svg, width, height, colours, Path(__file__).read_text(encoding="utf-8")]
    digest = hashlib.sha256(repr(decided_by).encode()).hexdigest()[:16]
    file = project.ROOT / ".cache" / "pictures" / f"{digest}.png"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")  # a killed build leaves no half of a picture
        _drawn(svg, width, height, colours).save(part, "PNG")
        part.replace(file)
    return file


def _drawn(svg, width, height, colours):
    """As Pillow has it, whose files are smaller and come sooner than those of the library that draws."""
    import matplotlib
    from novasvg import Document, fonts
    from PIL import Image

    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    for (family, bold), name in FILES.items():
        fonts.add_font_face_from_file(family, bold, False, str(folder / name))
    drawn = Document.load_from_data(svg.replace(FONT, SANS)).render_to_bitmap(width, height).to_pil()
    if not colours:
        return drawn.convert("RGB")
    few = drawn.convert("RGB").quantize(colours, Image.Quantize.FASTOCTREE)
    few.putpalette([255 if part > 251 else part for part in few.getpalette()])  # it misses white by little
    return few
