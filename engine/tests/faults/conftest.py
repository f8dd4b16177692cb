"""The site that is damaged."""

from engine.tests.faults.built import site  # noqa: F401
