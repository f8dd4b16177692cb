"""The head of each file to copy: its licence, where it is from, and when its code last changed.

In the repository it names the guide. What the site hands out names the site, so that a copy can be traced.
"""

import re

from executable_prose import project, registry

GUIDE = "The executable guide to positional encoding"
HEAD = re.compile(r"\A# SPDX-License-Identifier: 0BSD\n# From (?P<origin>.+), (?P<date>\d{4}-\d\d-\d\d)\n")
ADDRESS = re.compile(r"https://[!-~]+/")


def files():
    """Every file that is there to be copied."""
    found = sorted((project.ROOT / "snippets").glob("[!_]*.py"))
    return [f"snippets/{path.name}" for path in found]


def reference_page(file):
    """The page that shows a whole file to copy, relative to docs/."""
    return f"reference/{file.removeprefix('snippets/').removesuffix('.py')}.md"


@registry.files
class Copied(registry.Files):
    """Snippets have pages of their own, and what is to be copied names the site."""

    def page(self, file):
        return reference_page(file) if file in files() else None

    def handed_out(self, text, site):
        return handed_out(text, site)


def read(file):
    return (project.ROOT / file).read_text(encoding="utf-8")


def handed_out(text, site):
    """A file as the site hands it out: its head names the site, if that has an address of https."""
    site = address(site)
    return HEAD.sub(lambda head: head[0].replace(GUIDE, site, 1), text) if site else text


def address(site):
    """The address of a site as others can use it, with a slash at its end; "" if it has none of https."""
    site = f"{site.rstrip('/')}/"
    return site if ADDRESS.fullmatch(site) else ""
