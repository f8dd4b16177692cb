"""A folder that the engine takes for the project, as its own tests have one."""

from prose_testing.fixtures import additions, here, hooks_end  # noqa: F401
