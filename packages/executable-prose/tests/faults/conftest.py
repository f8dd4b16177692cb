"""The site that is damaged."""

from prose_testing.built import site  # noqa: F401
