"""llms.txt lists what the site holds, for programs that read; `make goldens` writes it from the pages."""

import itertools
import re
from pathlib import Path

import yaml

from executable_prose.project import DOCS, ROOT
from guide import story

FILE = DOCS / "llms.txt"
STORY = [*story.chapters("guide/order.md")]  # in the order in which each chapter names the next


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
    if page.endswith(".py"):  # a notebook begins with its title and what it is
        title, says = re.match(r"# %% \[markdown\]\n# # ([^\n]*)\n#\n# (.*?\.)\s", text, re.S).groups()
        front = {"title": title, "description": " ".join(says.split("\n# "))}
    else:
        front = yaml.safe_load(re.match(r"---\n(.*?)\n---\n", text, flags=re.S)[1])
    folder = page.removesuffix(".md").removesuffix(".py").removesuffix("index").removesuffix("/")
    address = f"{folder or '.'}/"
    return f"- [{front['title']}]({address}): {front.get('description', 'the front page').strip()}"


def configuration():
    return yaml.safe_load(re.sub(r"!ENV \[[^]]*\]", '""', (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))


def entries(nav):
    """Each entry of the nav that is a page, with its name where it has one."""
    for entry in nav:
        inner = next(iter(entry.values())) if isinstance(entry, dict) else entry
        yield from entries(inner) if isinstance(inner, list) else [entry]


def test_the_tour_is_one_entry_of_the_navigation_and_no_reader_is_told_of_zensical():
    found = [entry for entry in entries(configuration()["nav"]) if "tour" in str(entry)]
    assert found == [{"Tour": "notebooks/tour.py"}]
    assert [path for path in DOCS.rglob("*.md") if "Zensical" in path.read_text(encoding="utf-8")] == []


def test_the_story_goes_from_chapter_to_chapter_and_has_an_icon_for_each():
    """Pages beside the story lead back to a chapter of it."""
    texts = {f"guide/{path.name}": path.read_text(encoding="utf-8") for path in (DOCS / "guide").glob("*.md")}
    aside = {each for each, text in texts.items() if "\naside: true\n---" in text}
    assert aside == {"guide/in-a-transformer.md", "guide/choosing.md"}
    assert {*STORY} == {*texts} - aside and len(STORY) == len({*STORY})
    following = {
        each: re.findall(r"^    \[.+\]\((\S+)\)\{ \.next \}$", text, re.M) for each, text in texts.items()
    }
    assert following[STORY[-1]] == ["../index.md"]
    assert {f"guide/{page}" for each in aside for page in following[each]} == {
        "guide/map.md",
        "guide/census.md",
    }
    icons = (ROOT / "guide/templates/partials/story.html").read_text(encoding="utf-8")
    assert re.findall(r'^  "([\w-]+)": "M', icons, re.M) == [Path(each).stem for each in STORY]


def test_a_chapter_mends_what_still_failed_in_the_one_before():
    """From loose words to pictures each method hands over to the next, in plain words and below."""
    texts = {Path(each).name: (DOCS / each).read_text(encoding="utf-8") for each in STORY}
    names = list(texts)
    mends = {name for name, text in texts.items() if "\n**This chapter solves** " in text}
    assert mends == set(names[1 : names.index("images.md") + 1])
    for before, name in itertools.pairwise(names[: names.index("images.md") + 1]):
        solves = f"**This chapter solves** [the problem that the previous one left open]({before}#what-next)"
        assert solves in " ".join(texts[name].split())
        story, _, rest = texts[before].partition("\n{ .needs }\n")
        left = rest.partition("## What next\n\n**What remains unsolved.** ")[2]
        assert f"({name})" in left.partition("\n## ")[0], before
        assert before == "order.md" or "\n    **What remains unsolved.** " in story, before


def test_the_idea_takes_four_minutes_and_links_to_each_chapter_that_mends_another():
    text = (DOCS / "retold.md").read_text(encoding="utf-8").partition("\n# ")[2]
    chapters = {path.name: path.read_text("utf-8") for path in (DOCS / "guide").glob("*.md")}
    mends = {name for name, chapter in chapters.items() if "\n**This chapter solves** " in chapter}
    assert {"order.md"} | mends - {"images.md"} <= {*re.findall(r"\(guide/([\w-]+\.md)\)", text)}
    for section in re.split("^## ", text, flags=re.M)[1:-2]:
        for figure in (figures := re.findall(r"^```exhibit (\S+)", section, re.M)):
            shown = {name for name, chapter in chapters.items() if f"```exhibit {figure}\n" in chapter}
            assert shown & {*re.findall(r"\(guide/([\w-]+\.md)\)", section)}, figure
        assert len(figures) == 1
    read = re.sub(r"^```.*$|`[^`]+`|\]\([^)]*\)|<[^>]+>", " ", text, flags=re.M)
    assert 800 < len(re.findall(r"[^\W\d_][\w’'-]*", read)) < 4.4 * 240  # words a minute


def test_the_list_for_programs_names_every_page(request):
    site = configuration()
    lines = [f"# {site['site_name']}", "", f"> {site['site_description'].strip()}", ""]
    lines += [line for entry in site["nav"] for line in listing(entry)]
    now = "\n".join(lines) + "\n"
    if request.config.getoption("--rewrite-goldens"):
        FILE.write_text(now, encoding="utf-8")
    assert FILE.read_text(encoding="utf-8") == now, "`make goldens` writes it"
