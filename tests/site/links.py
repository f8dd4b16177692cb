"""Where the addresses in the built HTML lead. Each check returns a list of problems, in words."""

import json
import re
from pathlib import Path
from urllib.parse import urlsplit

from built import NOT_FOUND

ATTRIBUTES = ("href", "src", "poster", "data", "action", "xlink:href")
LOADED = {"script", "img", "iframe", "source", "video", "audio", "embed", "object", "image", "use"}
LOADED_LINKS = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "modulepreload"}
CODE = r"(?ms)^(`{3,}).*?^\1$|`[^`\n]+`|\$[^$]+\$"  # of Markdown, and its formulas
# Words that Lighthouse takes for none.
VAGUE = re.compile(r"((click|right) )?(here|this)|go|start|((learn|read|see) )?more( info)?", re.I)
EDIT = "a.md-content__button[href*='/edit/']"
SOURCES = Path(__file__).parents[2] / "docs"
OTHER_SCHEMES = ("mailto:", "tel:", "data:", "javascript:")


def page(site, path):
    """Every address in one page."""
    problems = []
    for tag, reference in _references(site.soup(path)):
        link = f'<{tag.name}> "{reference}" ({_words(tag)})'
        if fault := _fault(site, path, reference):
            problems.append(f"Broken link: {link}: {fault}")
        elif fault := _placement(site, path, tag, reference):
            problems.append(f"{link}: {fault}")
        elif tag.name == "a" and VAGUE.fullmatch(_words(tag)):
            problems.append(f'Link purpose: <a> "{reference}": {_words(tag)!r} does not say where it leads')
    return problems


def _words(tag):
    return " ".join(tag.get_text(" ", strip=True).split())[:60] or tag.get("aria-label") or "no text"


def _references(soup):
    for tag in soup.find_all(True):
        for attribute in ATTRIBUTES:
            if tag.has_attr(attribute):
                yield tag, tag[attribute].strip()
        for candidate in filter(None, tag.get("srcset", "").split(",")):
            yield tag, candidate.split()[0]


def _fault(site, path, reference):
    """Why an address leads nowhere, or None."""
    if reference.lower().startswith(OTHER_SCHEMES):
        return None
    target, fragment = site.resolve(reference, path)
    if target is None:
        return None if re.match(r"https?://[^/\s]+\.[^/\s]+", reference) else "leaves the site"
    file = site.file(target)
    if not file.is_file():
        return "no such file in the site"
    if file.suffix == ".html" and fragment.partition(":~:")[0] not in site.anchors(target):
        return f"no id {fragment!r} in /{target}"
    return None


def _placement(site, path, tag, reference):
    """An address that leads somewhere, but not from where readers are."""
    parts = urlsplit(reference)
    if parts.scheme in ("http", "https"):
        return "is loaded from another host, a third-party request" if _is_loaded(tag) else None
    if parts.scheme or not parts.path:
        return None
    if path == NOT_FOUND:
        return None if reference.startswith("/") else "is relative, and 404.html serves any path"
    return "is absolute, and breaks where the site moves" if reference.startswith("/") else None


def _is_loaded(tag):
    return tag.name in LOADED or (tag.name == "link" and LOADED_LINKS & set(tag.get("rel", [])))


def canonical(site, path):
    """The page names itself, so that search engines and Lighthouse agree on its address."""
    links = [link["href"] for link in site.soup(path).select("link[rel=canonical]")]
    expected = [site.url + path] if site.locations else []
    return [] if links == expected or path == NOT_FOUND else [f"Canonical link: canonical is {links}"]


def shared(site, path):
    """What others show of a link to the page, and the link that leads to its source."""
    soup, problems = site.soup(path), []
    said = {tag["property"]: tag["content"] for tag in soup.select("meta[property^='og:']")}
    if site.locations and path != NOT_FOUND:
        if said.get("og:url") != site.url + path:
            problems.append(f"Open Graph: og:url is {said.get('og:url')!r}")
        size = [int(said.get(f"og:image:{side}", 0)) for side in ("width", "height")]
        if _size(site, path, said.get("og:image", "")) != size:
            problems.append(f"Open Graph: og:image is {said.get('og:image')!r}, and no picture of {size}")
    edits = [link["href"] for link in soup.select(EDIT)]
    if len(edits) != len(site.soup("").select(EDIT)) and path != NOT_FOUND:
        problems.append("some pages have a link to edit them, and some none")
    gone = [edit for edit in edits if not (SOURCES / edit.rpartition("/docs/")[2]).is_file()]
    return problems + [f"Broken link: {edit} edits no file of docs/" for edit in gone]


def _size(site, path, image):
    """Width and height of a picture of the site, or None; they stand at the head of a PNG."""
    file = site.root / (site.resolve(image, path)[0] or "none")
    if not image.startswith(site.url) or not file.is_file():
        return None
    return [int.from_bytes(file.read_bytes()[start : start + 4]) for start in (16, 20)]


def title(site, path):
    """The page has one title, which does not say the same twice."""
    titles = [tag.get_text(strip=True) for tag in site.soup(path).select("head > title")]
    parts = titles[0].split(" - ") if titles else []
    return (
        [] if len(titles) == 1 and len(parts) == len(set(parts)) else [f"Page title: the title is {titles}"]
    )


def stylesheets(site):
    """Every url() in the site's CSS."""
    problems = []
    for file in sorted(site.root.rglob("*.css")):
        path = file.relative_to(site.root).as_posix()
        for reference in re.findall(r"url\(\s*['\"]?([^'\")]+)", file.read_text(encoding="utf-8")):
            target = None if reference.startswith(("data:", "#")) else reference
            if target and (site.resolve(target, path)[0] is None or _fault(site, path, target)):
                problems.append(f"Broken link: {path}: url({reference}) is not a file of the site")
    return problems


def search_index(site):
    """Every place that the search can lead to."""
    files = [site.root / name for name in ("search/search_index.json", "search.json")]
    found = next((file for file in files if file.is_file()), None)
    if not found:
        return ["no search index"]
    index = json.loads(found.read_text(encoding="utf-8"))
    places = [entry["location"] for entry in index.get("docs", index.get("items", []))]
    faults = ((place, _fault(site, "", place)) for place in places)
    return [f"Broken link: search leads to {place}: {fault}" for place, fault in faults if fault]


def text_file(site, name):
    """Addresses of this site in a text file such as llms.txt."""
    text = re.sub(CODE, "", (site.root / name).read_text(encoding="utf-8"))
    own = re.findall(re.escape(site.url) + r"[^\s)>\]\"'`]*", text)
    relative = re.findall(r"\]\((?!https?:)([^)\s]+)\)", text)
    faults = ((place, _fault(site, "", place)) for place in [*own, *relative])
    return [f"Broken link: {name}: {place}: {fault}" for place, fault in faults if fault]


def pages_in_no_sitemap(site):
    """Pages that no test would visit."""
    return sorted(set(site.html_files()) - {*site.pages, NOT_FOUND})
