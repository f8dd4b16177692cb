"""llms.txt lists what the site holds, for programs that read; `make goldens` writes it from the pages."""

import re

import yaml

from weave.project import DOCS, ROOT

FILE = DOCS / "llms.txt"


def listing(entry, depth=2):
    """The lines for one entry of the nav: a page, or a section of pages."""
    if isinstance(entry, str):
        return [line_for(entry)]
    ((title, inner),) = entry.items()
    if isinstance(inner, str):
        return [line_for(inner)]
    below = [line for each in inner for line in listing(each, depth + 1)]
    return ["", f"{'#' * depth} {title}", *below]


def line_for(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    front = yaml.safe_load(re.match(r"---\n(.*?)\n---\n", text, flags=re.S)[1])
    folder = page.removesuffix(".md").removesuffix("index").removesuffix("/")
    address = f"{folder or '.'}/"
    return f"- [{front['title']}]({address}): {front.get('description', 'the front page').strip()}"


def test_the_list_for_programs_names_every_page(request):
    config = re.sub(r"!ENV \[[^]]*\]", '""', (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    site = yaml.safe_load(config)
    lines = [f"# {site['site_name']}", "", f"> {site['site_description'].strip()}", ""]
    lines += [line for entry in site["nav"] for line in listing(entry)]
    now = "\n".join(lines) + "\n"
    if request.config.getoption("--rewrite-goldens"):
        FILE.write_text(now, encoding="utf-8")
    assert FILE.read_text(encoding="utf-8") == now, "`make goldens` writes it"
