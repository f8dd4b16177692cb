"""The engine's own fixtures, for sites that add to it what this one does."""

import pytest

import guide.additions  # noqa: F401 - registers what it adds
from prose_testing.fixtures import files, here, hooks_end, known, lively, log, page, refusal, soup  # noqa: F401


@pytest.fixture(scope="session")
def additions():
    return "guide.additions"
