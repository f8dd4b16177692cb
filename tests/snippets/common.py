"""What tests of many snippets begin with."""

import pytest
import torch


def random(*shape):
    return torch.randn(shape, dtype=torch.float64)


def vectors(seed, *shape):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def refused(message, function, *arguments, **options):
    with pytest.raises(ValueError) as caught:
        function(*arguments, **options)
    assert str(caught.value) == message
