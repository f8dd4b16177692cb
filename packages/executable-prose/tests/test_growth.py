"""How the work of a build grows with its pages, exhibits and claims: counted in calls, not in seconds."""

import cProfile

from prose_testing.fixtures import StubResults, build_here
from prose_testing.projects import BARE

SMALL = 16
MOST = 2.2  # times the work for twice as much


def files(count):
    """Pages, each with an exhibit's value, a claim, a listing and a link, and what these come from."""
    made = {"docs/index.md": "# Home\n", "theme/main.html": "{{ page.title }}|{{ page.content }}"}
    for n in range(count):
        made[f"docs/page_{n}.md"] = (
            f"# Page {n}\n\nIt gives `#!val some.shown_{n}.end` and doubles `#!claim doubles-{n}`. "
            f'[Next](page_{(n + 1) % count}.md)\n\n--8<-- "snippets/file_{n}.py@double"\n'
        )
        made[f"snippets/file_{n}.py"] = "def double(x):\n    return 2 * x\n"
        made[f"tests/test_{n}.py"] = (
            f'@pytest.mark.claim("doubles-{n}", "It doubles {n}.")\ndef test_a():\n    assert True\n'
        )
    return made


def work(here, count):
    """Calls of functions while a site is built anew, and while it is built again."""
    here.write(files(count))
    results = StubResults({f"some.shown_{n}": {"values": {"end": n}} for n in range(count)})
    calls = []
    for _ in range(2):
        with cProfile.Profile() as profile:
            build_here(here, results)
        calls.append(sum(entry.callcount for entry in profile.getstats()))
    return calls


def test_twice_as_many_pages_exhibits_and_claims_are_not_much_more_than_twice_the_work(here):
    here.configure(BARE)
    work(here, 1)  # what a process does once
    few, many = work(here, SMALL), work(here, 2 * SMALL)
    grown = {"anew": many[0] / few[0], "again": many[1] / few[1]}
    assert max(grown.values()) <= MOST, (grown, few, many)
