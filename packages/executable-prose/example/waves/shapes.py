"""Shapes made of sines."""

import math

import torch


def square(x, terms):
    """A square wave of period one, as the sum of its first odd sines.

    x is a number or a tensor of them, and so is what comes out; terms is how many sines there are.
    """
    x = torch.as_tensor(x, dtype=torch.float64)
    odd = [2 * n + 1 for n in range(terms)]
    return 4 / math.pi * sum(torch.sin(2 * math.pi * n * x) / n for n in odd)
