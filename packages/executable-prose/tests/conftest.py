"""What the engine's tests share; sites that add to the engine use the same fixtures."""

from prose_testing.fixtures import (  # noqa: F401
    additions,
    ask,
    files,
    here,
    hooks_end,
    known,
    lively,
    log,
    page,
    plain,
    pytest_collection_finish,
    refusal,
    soup,
)
