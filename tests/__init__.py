"""A package, so that its modules are found before the `tests` that a library installs."""
