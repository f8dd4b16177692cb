"""The examples are projects of their own; tests/test_examples.py runs them."""

collect_ignore = ["examples"]
