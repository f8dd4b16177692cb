"""All that is timed: the table that `make bench` measures."""

from tests.peers import added, biases, models, scores, turned

FAMILIES = [turned, added, biases, scores, models]
HEADS = 8
SIZES = [(1, HEADS, 256), (2, HEADS, 1024)]  # batch, heads, tokens
DECODING = (1, HEADS, 1, 1024, 24)  # and the token's position, the layers that it goes through


def cases(sizes=SIZES, decoding=DECODING):
    """(what makes a case, the size to make it with)."""
    for family in FAMILIES:
        yield from ((case, size) for case in family.CASES for size in sizes)
        yield from ((case, decoding) for case in getattr(family, "DECODED", ()))
