"""Many rows for one test: all are tried in one run, and each that fails is named."""

import functools
import inspect

import torch


def each_of(names, rows, ids=str):
    """Try a test with each of these rows, as pytest.mark.parametrize would: here they are its subtests.

    A row starts with the same random numbers as every test. Fixtures are made once for all rows. Of two
    such lists every pair is tried.

    names  of the arguments: "one, other" or ("one", "other")
    rows   a value for one name, a tuple for several
    ids    a function of such a row that says which it is
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    cases = [(dict(zip(names, row if len(names) > 1 else [row], strict=True)), ids(row)) for row in rows]
    assert cases, "a test without rows tries nothing"

    def decorate(test):
        bare, within = getattr(test, "tried_with", (test, [({}, "")]))
        pairs = [(mine | inner, f"{word} {more}".strip()) for mine, word in cases for inner, more in within]

        asked = inspect.signature(bare).parameters
        subtest = inspect.Parameter("subtests", inspect.Parameter.POSITIONAL_OR_KEYWORD)

        @functools.wraps(test)
        def tried(subtests, **fixtures):
            if "subtests" in asked:
                fixtures["subtests"] = subtests
            for row, words in pairs:
                with subtests.test(words):
                    torch.default_generator.manual_seed(0)
                    bare(**row, **fixtures)

        kept = [asked[name] for name in asked if name not in pairs[0][0]]
        tried.__signature__ = inspect.Signature(kept if "subtests" in asked else [subtest, *kept])
        tried.tried_with = bare, pairs
        return tried

    return decorate
