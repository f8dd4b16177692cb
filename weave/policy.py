"""What browsers may load and run on a page: the site itself, and scripts that the build wrote into the page.

Figures and diagrams carry styles of their own, so styles may stand in the page.
"""

import base64
import hashlib
import re

META = (
    """<meta http-equiv="Content-Security-Policy" content="default-src 'self'; script-src 'self'{hashes}; """
    """style-src 'self' 'unsafe-inline'; img-src 'self' data:; """
    """object-src 'none'; base-uri 'none'; form-action 'self'">"""
)
INLINE = re.compile(r"<script(?![^>]*(?:\ssrc=|application/(?:ld\+)?json))[^>]*>(.*?)</script>", re.S)


def write(site):
    """The policy of each page, at the head of it."""
    for page in sorted(site.rglob("*.html")):
        html = page.read_text(encoding="utf-8")
        hashes = dict.fromkeys(f" 'sha256-{_hash(script)}'" for script in INLINE.findall(html))
        meta = META.format(hashes="".join(hashes))
        page.write_text(html.replace("<title>", f"{meta}<title>", 1), encoding="utf-8")


def _hash(script):
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
