"""```claims```: every claim, in a fold for each page that states it."""

import html

from markdown.extensions.toc import slugify, unique

from executable_prose import symbols
from executable_prose.claims import ClaimError, by_page, citations, registry, title, unstated
from executable_prose.registry import Parts, directive
from executable_prose.rendering.directives.code import FOLD, DirectiveError, box
from executable_prose.rendering.page import Page

UNSEARCHED = 'data-search-exclude=""'  # the pages that state it are found by what it says


@directive("claims")
def claims(page: Page, argument: str, body: list[str]) -> Parts:
    """How many there are; the sentence of each, where it is stated, and where that is first its tests."""
    try:
        known, stated = page.claims, citations()
    except ClaimError as error:
        raise DirectiveError(str(error)) from None
    for claim in unstated(known, stated):
        test = claim.tests[0]
        raise DirectiveError(f"no page states the claim {claim.id!r} of {test.file}:{test.line}")
    for id in stated.keys() - known.keys():
        raise DirectiveError(f"no test holds the claim {id!r} of docs/{stated[id][0]}")
    tests = sum(len(claim.tests) for claim in known.values())
    names: set[str] = set()
    parts: list[str | list[str]] = [f'<p class="counted">{len(known)} claims, {tests} tests.</p>']
    for chapter, ids in by_page(stated).items():
        parts.append(f'<details class="chapter">{_heading(title(chapter), len(ids), names)}')
        for id in ids:
            parts += _claim(page, known[id], stated[id], chapter)
        parts.append("</details>")
    return parts


@claims.as_text
def _told(copy, argument, body):
    """Each claim below the pages that state it."""
    known, made = registry(), []
    for chapter, ids in by_page(citations()).items():
        made += ["", f"## {title(chapter)}", "", *(f"- {known[id].statement}" for id in ids)]
    return made


def _heading(words, count, names):
    """Return the summary of a fold. A heading of Markdown has a link, which a summary may not contain."""
    name = unique(slugify(words, "-"), names)
    return (
        f'<summary><h2 id="{name}">{html.escape(words)}</h2>'
        f"<span data-search-exclude>{count} claim{'s' * (count > 1)}</span></summary>"
    )


def _claim(page, claim, paths, chapter):
    """All of it where it is stated first, elsewhere its sentence; a mark says which of them has the tests."""
    place = f"{page.to(chapter)}#states-{claim.id}"
    if chapter != paths[0]:
        said = f"[{claim.statement}](#{claim.id}) Stated in [{title(chapter)}]({place}), too."
        return [[said, f"{{: {UNSEARCHED} }}"]]
    links = ", ".join(f"[{title(path)}]({page.to(path)}#states-{claim.id})" for path in paths)
    sentence = f"{claim.statement} Stated in {links}."
    held = f"{{: #{claim.id} .held {UNSEARCHED} }}"
    return [[sentence, held], *(_test(page, test) for test in claim.tests)]


def _test(page, test):
    """One test that holds a claim, its source folded."""
    place = f"{test.file}, line {test.line}"
    if repository := page.addresses["repository"]:
        place = f'<a href="{html.escape(repository)}/blob/main/{test.file}#L{test.line}">{place}</a>'
    source = html.escape("\n".join(symbols.find(test.file, test.name).lines) + "\n")
    return (
        f"{FOLD}<summary><code>{test.name}</code></summary>"
        f"{place}{box(page, 'no-copy test', source)}</details>"
    )
