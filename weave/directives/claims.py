"""```claims```: every claim, by the page that states it first."""

import html

from weave import symbols
from weave.claims import ClaimError, citations, title, unstated
from weave.directives.code import FOLD, DirectiveError, box


def claims(page, argument, body):
    """The sentence of each, where it is stated, and its tests."""
    try:
        known = page.claims
    except ClaimError as error:
        raise DirectiveError(str(error)) from None
    stated = citations()
    for claim in unstated(known, stated):
        test = claim.tests[0]
        raise DirectiveError(f"no page states the claim {claim.id!r} of {test.file}:{test.line}")
    for id in stated.keys() - known.keys():
        raise DirectiveError(f"no test holds the claim {id!r} of docs/{stated[id][0]}")
    parts, chapter = [], None
    for id, paths in stated.items():
        if paths[0] != chapter:
            chapter = paths[0]
            parts.append([f"## {title(chapter)}"])
        links = ", ".join(f"[{title(path)}]({page.to(path)}#states-{id})" for path in paths)
        parts.append([f'<span id="{id}"></span>**{known[id].statement}** Stated in {links}.'])
        parts += [_test(page, test) for test in known[id].tests]
    return parts


def _test(page, test):
    """One test that holds a claim, its source folded."""
    place = f"{test.file}, line {test.line}"
    if repository := page.addresses["repository"]:
        place = f'<a href="{repository}/blob/main/{test.file}#L{test.line}">{place}</a>'
    source = html.escape("\n".join(symbols.find(test.file, test.name).lines) + "\n")
    return (
        f"{FOLD}<summary><code>{test.name}</code></summary>"
        f"{place}{box(page, 'no-copy test', source)}</details>"
    )
