"""The policy of a page lets the scripts of the templates run, and the build stops at any other."""

import base64
import hashlib
import re

import pytest
from bs4 import BeautifulSoup

from executable_prose import input_checks, labs
from executable_prose.errors import BuildFault
from executable_prose.rendering.directives.lab import offer
from executable_prose.site import csp
from prose_testing.fixtures import StubResults, build_here
from prose_testing.projects import MATERIAL

STRANGE = """https://github.com/a/"><script>alert('1')</script>"""
TEMPLATE = "<title>{{ page.title }}</title><script>let up = '{{ base_url }}'</script>{{ page.content }}"


@pytest.fixture
def site(here):
    """A function that writes a page, made by a template, and its policy; the page."""
    here.write({"theme/main.html": TEMPLATE})
    page = here.root / "site" / "a" / "index.html"

    def site(text):
        here.write({"site/a/index.html": text})
        csp.write(here.root / "site", [here.root / "theme"])
        return page.read_text(encoding="utf-8")

    return site


@pytest.mark.parametrize("way", [".", "..", "../../..", "/", "/guide", "/a-b/c.d/~e"])
def test_a_script_of_a_template_may_run_with_the_way_that_the_page_fills_in(site, way):
    script = f"let up = '{way}'"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = site(f"<title>A</title><script>{script}</script><p>Text</p>")
    assert f"script-src 'self' 'sha256-{digest}'; " in page
    assert page.index("Content-Security-Policy") < page.index("<title>")


@pytest.mark.parametrize(
    "script",
    [
        "<script>alert(1)</script>",
        "<SCRIPT type=module>alert(1)</SCRIPT >",
        "<script>let up = '..'; alert(1)</script>",
        "<script>let up = '//example.org'</script>",
        "<script>let up = 'https://example.org'</script>",
        "<script>let up = '' + alert(1) + ''</script>",
        """<svg><script x=">">let up = '..'</script></svg>""",
    ],
)
def test_a_script_that_no_template_holds_stops_the_build_with_its_page(site, script):
    with pytest.raises(BuildFault, match=r"^a/index\.html: the page has a script that no template"):
        site(f"<title>A</title>{script}<script>let up = '..'</script>")


def test_what_runs_nothing_needs_no_template(site):
    data = '<script type="application/json">{}</script><script src="../assets/site.js"></script>'
    assert "script-src 'self'; " in site(f"<title>A</title>{data}")


def test_the_theme_holds_all_scripts_of_its_pages(here, monkeypatch):
    here.configure(MATERIAL)
    here.write({"docs/index.md": "# Home\n"})
    build_here(here, StubResults({}))
    csp.write(here.root / "site")
    page = (here.root / "site" / "index.html").read_text(encoding="utf-8")
    assert page.count("'sha256-") == len(set(csp.INLINE.findall(page))) > 1


@pytest.mark.parametrize("name", input_checks.ADDRESSES)
@pytest.mark.parametrize("address", [STRANGE, "https://a.org/ b", "https://a.org/`", "javascript:alert(1)"])
def test_what_is_no_address_is_refused_with_its_name(here, monkeypatch, name, address):
    monkeypatch.setenv(name, "https://example.org/a_(b)/?c=d&e=%22'#f")
    assert input_checks.fault() is None
    monkeypatch.setenv(name, address)
    assert re.match(rf"{name}: expected an address, got .*%22", input_checks.fault())


def test_addresses_are_escaped_where_they_stand_in_a_page(page, here, monkeypatch):
    here.write({"tests/test_a.py": '@pytest.mark.claim("a", "A.")\ndef test_a(): pass\n'})
    here.write({"docs/a.md": "# Page\n\nSo `#!claim a`.\n"})
    monkeypatch.setenv("REPOSITORY_URL", STRANGE)
    claims = page("# Claims\n\n```claims\n```\n", "claims.md")
    monkeypatch.setattr(labs, "needed", lambda: ["torch==1"])
    site = {"site": STRANGE, "repository": STRANGE}
    for made in (claims, offer("tour", site)):
        links = BeautifulSoup(made, "html.parser").select("a[href*=alert]")
        assert links and all(STRANGE.partition("/a/")[2] in link["href"] for link in links)
        assert "<script" not in made
