"""What browsers may load and run on a page: the site itself, and the scripts that its templates hold.

An inline script that no template holds stops the build. Styles may stand in the page: figures and diagrams
carry their own.
"""

import base64
import hashlib
import importlib.util
import re
from collections.abc import Iterable
from pathlib import Path

from mkdocs.config import load_config

from executable_prose import project
from executable_prose.errors import BuildFault

META = (
    """<meta http-equiv="Content-Security-Policy" content="default-src 'self'; script-src 'self'{hashes}; """
    """style-src 'self' 'unsafe-inline'; img-src 'self' data:; """
    """object-src 'none'; base-uri 'none'; form-action 'self'">"""
)
INLINE = re.compile(
    r"<script(?![^>]*(?:\ssrc=|application/(?:ld\+)?json))[^>]*>(.*?)</script[^>]*>", re.S | re.I
)
FIELD = re.compile(r"\{[{%#].*?[}%#]\}", re.S)  # what a template leaves to the page
DATA = r"[^<>]*?"  # which is escaped, so that it ends nothing
WAY = r"(?!//)[\w./~-]*"  # what a script of a template may hold there: the way to a file of the site


def write(site: Path, folders: Iterable[str | Path] | None = None) -> None:
    """The policy of each page, at the head of it; `folders` hold the templates, the theme's if not given."""
    known = _known(folders or _folders())
    for page in sorted(site.rglob("*.html")):
        html = page.read_text(encoding="utf-8")
        scripts = dict.fromkeys(INLINE.findall(html))
        if strange := [script for script in scripts if not known.fullmatch(script)]:
            raise BuildFault(
                f"{page.relative_to(site).as_posix()}: the page has a script that no template holds, "
                f"{' '.join(strange[0].split())[:60]!r}: what a page does stands in a script of docs/assets"
            )
        hashes = "".join(f" 'sha256-{_hash(script)}'" for script in scripts)
        html = html.replace("<title>", f"{META.format(hashes=hashes)}<title>", 1)
        page.write_text(html, encoding="utf-8")


def _folders():
    """Where templates are: those of the theme and ours, and those of the theme's successor if it is there."""
    successor = importlib.util.find_spec("zensical")
    theirs = [Path(successor.origin).parent / "templates"] if successor else []
    return [*load_config(str(project.ROOT / "mkdocs.yml")).theme.dirs, *theirs]


def _known(folders):
    """What every inline script of the templates in some folders is like."""
    texts = [path.read_text(encoding="utf-8") for folder in folders for path in Path(folder).rglob("*.html")]
    scripts = dict.fromkeys(script for text in texts for script in INLINE.findall(text))
    return re.compile("|".join(map(_like, scripts)) or "(?!)", re.S)


def _like(script):
    """What a page may have where a template has this script."""
    fields = [DATA if "tojson" in field else WAY for field in FIELD.findall(script)]
    parts = [re.escape(part) for part in FIELD.split(script)]
    return "".join(part + field for part, field in zip(parts, [*fields, ""], strict=True))


def _hash(script):
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
