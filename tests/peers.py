"""Implementations that nobody here wrote, for tests that compare with them."""

import importlib
import importlib.util

import pytest


def peer(name):
    """A module by its dotted name. Skips the test if the package is not installed, and only then.

    A module that has moved within an installed package is an error, for nobody would miss its test.
    """
    package = name.partition(".")[0]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    return importlib.import_module(name)
