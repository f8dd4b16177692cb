"""A folder that the engine takes for the project, as its own tests have one."""

from engine.tests.conftest import additions, here  # noqa: F401
