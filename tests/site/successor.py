"""How the site differs that Zensical 0.0.73 builds, Material's successor: `make zensical`.

What is known is expected, and missed once it is gone. All runs in one process, as that counts what it saw.
Each reason is for people, too.
"""

import re

from built import SITE

BY_ZENSICAL = (SITE.root / "search.json").is_file()
# What a check says, and why.
PROBLEMS = {
    r"Performance budget: [\d,]+ bytes, allowed": "its styles and scripts weigh 200 kB more",
    r"axe landmark-unique .* nav\[aria-labelledby": "two parts of its navigation have one name",
}
# A part of a test's name, and why.
TESTS = {
    "test_licences.py::test_every_file_is_ours_or_the_themes": "the page of licences names Material's files",
    "test_search.py::": "it has a search of its own, with an index of its own",
    "test_tables.py::test_the_menu_leads": "it runs no hooks of MkDocs, so its menu has a page for each file",
    "test_tables.py::test_the_page_that_is_not_there": "it has a search of its own, which reads no address",
    "test_levels.py::test_search_hits": "it has a search of its own, with other elements",
}
_seen = set()


def unknown(problems):
    """The problems that are not known; the others were seen."""
    if not BY_ZENSICAL:
        return problems
    known = {each: pattern for each in problems for pattern in PROBLEMS if re.match(pattern, each)}
    _seen.update(known.values())
    return [each for each in problems if each not in known]


def reason(test):
    return next((why for name, why in TESTS.items() if name in test), "") if BY_ZENSICAL else ""


def gone():
    return sorted(PROBLEMS.keys() - _seen) if BY_ZENSICAL else []
