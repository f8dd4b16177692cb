"""All that is timed: the table that `make bench` measures."""

from tests.peers import added, biases, models, scores, turned

FAMILIES = [turned, added, biases, scores, models]
HEADS = 8
SIZES = [(1, HEADS, 256), (2, HEADS, 1024)]  # batch, heads, tokens
LARGE = (
    1,
    32,
    2048,
    0,
    1,
    128,
)  # a layer of LLaMA 7B, from position 0: its queries fit into no cache
DECODING = (1, HEADS, 1, 1024, 24)  # and the token's position, the layers that it goes through


def cases(sizes=SIZES, large=LARGE, decoding=DECODING):
    """(what makes a case, the size to make it with)."""
    for family in FAMILIES:
        yield from ((case, size) for case in family.CASES for size in sizes)
        yield from ((case, large) for case in getattr(family, "LARGE", ()))
        yield from ((case, decoding) for case in getattr(family, "DECODED", ()))
