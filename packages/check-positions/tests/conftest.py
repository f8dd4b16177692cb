"""The checker's tests have the fixtures of those of snippets."""

from tests.conftest import same_random_numbers  # noqa: F401 - it also checks shape comments
from tests.snippets.conftest import (  # noqa: F401
    pytest_collection_modifyitems,
    pytest_sessionfinish,
    same_as,
    stored,
)
