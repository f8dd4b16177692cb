"""Mermaid diagrams as inline SVG whose colours are those of docs/assets/site.css."""

import hashlib
import importlib.metadata
import re
from pathlib import Path

import mermaidx

from weave.project import CACHE, write_whole

SETTINGS = {"htmlLabels": False, "flowchart": {"htmlLabels": False, "nodeSpacing": 28, "rankSpacing": 36}}
LIBRARIES = ("mermaidx", "novasvg")
CODE = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
DESCRIBED = re.compile(r"^\s*acc(Title|Descr)\s*:\s*\S", re.M)


class DiagramError(Exception):
    """The diagram cannot be drawn; the message is Mermaid's own."""


def render(source):
    """The diagram as SVG; drawn once for each version of the libraries and of this file."""
    if {match[1] for match in DESCRIBED.finditer(source)} != {"Title", "Descr"}:
        raise DiagramError("it needs a line 'accTitle: …' and a line 'accDescr: …', its text alternative")
    versions = [importlib.metadata.version(name) for name in LIBRARIES]
    key = hashlib.sha256(f"{versions}\n{CODE}\n{source}".encode()).hexdigest()[:16]
    stored = CACHE / "diagrams" / f"{key}.svg"
    if (text := _load(stored)) is None:
        text = _draw(source)
        write_whole(stored, f"{_checksum(text)}\n{text}")
    svg = _clean(text, f"diagram-{key}")
    if re.search(r'(fill|stroke)="(#|rgb)', svg):
        raise DiagramError("this kind of diagram brings colours of its own; a flowchart follows the palette")
    return svg


def _load(stored):
    """A stored drawing, None if there is none or it is damaged."""
    try:
        checksum, _, text = stored.read_text(encoding="utf-8").partition("\n")
    except (OSError, ValueError):
        return None
    return text if checksum == _checksum(text) else None


def _checksum(text):
    return hashlib.sha256(text.encode()).hexdigest()


def _draw(source):
    try:
        return mermaidx.render(source, config=SETTINGS).svg()
    except RuntimeError as error:
        raise DiagramError(" ".join(str(error).removeprefix("Mermaid rendering failed: ").split())) from None


def _clean(svg, key):
    """Without Mermaid's own style sheet, filters and unused arrow heads; ids unique by `key`."""
    svg = re.sub(r"<style>.*?</style>", "", svg, flags=re.S)
    svg = re.sub(r"<defs>.*?</defs>", "", svg, flags=re.S)
    svg = re.sub(r' data-[\w-]+="[^"]*"| style="[^"]*"', "", svg)
    used = set(re.findall(r"url\(#([^)]+)\)", svg))
    svg = re.sub(r'<marker id="([^"]+)".*?</marker>', lambda m: m[0] if m[1] in used else "", svg)
    svg = re.sub(r'(<svg[^>]*?) width="100%"', r'\1 role="img"', svg, count=1)
    svg = re.sub(r' (role="graphics-[^"]*"|aria-roledescription="[^"]*"|xmlns(:xlink)?="[^"]*")', "", svg)
    width = float(re.search(r'viewBox="\S+ \S+ (\S+) ', svg)[1])
    svg = svg.replace("<svg ", f'<svg style="width:{width:.0f}px;min-width:{0.7 * width:.0f}px" ', 1)
    return svg.replace("my-svg", key)
