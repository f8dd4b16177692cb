"""What a page may weigh. The only place where a page is allowed more than the others."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """Counted after scrolling to the end, with an empty cache."""

    bytes: int = 200_000  # over the wire: headers and bodies, compressed
    requests: int = 15
    elements: int = 4_000


DEFAULT = Budget()

# Page path in the site, e.g. "labs/rope/", and the reason in a comment.
PER_PAGE: dict[str, Budget] = {
    # Every claim of the guide with the source of its tests: it grows with what is held.
    "claims/": Budget(bytes=340_000, elements=8_000),
    # A table of every model type: a cell is an element.
    "models/": Budget(elements=9_000),
    # The chapter with most figures, beside a navigation that grows with the guide.
    "guide/long-context/": Budget(elements=4_100),
    # The longest files, in colours: a name is an element.
    "reference/check_positions/": Budget(elements=7_000),
    "reference/read_config/": Budget(elements=7_000),
}


def budget_for(path):
    return PER_PAGE.get(path, DEFAULT)
