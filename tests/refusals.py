"""What is refused, and in which words."""

import pytest


def refused(message, function, *arguments, **options):
    with pytest.raises(ValueError) as caught:
        function(*arguments, **options)
    assert str(caught.value) == message
