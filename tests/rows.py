"""Many rows for one test: all are tried in one run, and each that fails is named."""

import functools
import inspect

import torch


def each_of(names, rows, ids=repr):
    """Try a test with each of these rows, as pytest.mark.parametrize would: here they are its subtests.

    A row starts with the same random numbers as every test. Fixtures are made once for all rows.

    names  of the arguments: "one, other" or ("one", "other")
    rows   a value for one name, a tuple for several
    ids    a function of such a row that says which it is
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    rows = list(rows)
    assert rows, "a test without rows tries nothing"

    def decorate(test):
        asked = inspect.signature(test).parameters
        nested = "subtests" in asked

        @functools.wraps(test)
        def tried(subtests, **fixtures):
            if nested:
                fixtures["subtests"] = subtests
            for row in rows:
                given = zip(names, row if len(names) > 1 else [row], strict=True)
                with subtests.test(ids(row)):
                    torch.default_generator.manual_seed(0)
                    test(**dict(given), **fixtures)

        of_all = {"subtests": inspect.Parameter("subtests", inspect.Parameter.POSITIONAL_OR_KEYWORD)} | asked
        tried.__signature__ = inspect.Signature([of_all[name] for name in of_all if name not in names])
        return tried

    return decorate
