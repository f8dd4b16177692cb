"""The rotation of a model of our own."""

import torch


def rotate(x, positions, base=10_000.0):
    """Rotate queries or keys, in the half layout."""
    dim = x.shape[-1]
    frequencies = base ** (-torch.arange(0, dim, 2) / dim)
    angles = positions[:, None] * frequencies
    a, b = x.chunk(2, dim=-1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)
