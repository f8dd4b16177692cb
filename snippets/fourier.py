# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-23
"""Learned Fourier features: places with several coordinates become waves.

    r(x)  = [cos(W x), sin(W x)] / sqrt(features)
    PE(x) = W2 gelu(W1 r(x) + b1) + b2

A place x has one coordinate or more: two for a pixel. Everything is learned. At
first each number of W comes from a normal distribution with mean 0 and variance
1 / gamma^2, so that over many frequencies

    r(x) . r(y)  is about  exp(-|x - y|^2 / (2 gamma^2)) / 2

gamma is a length, in the unit of the coordinates: what lies closer looks alike.
A place that is made of several, such as the two corners of a box, is cut into
groups. All go through the same weights, and each gives its share of channels.

Source: arXiv:2106.02795, algorithm 1 with equations 2 and 6. There gamma^-2 is
the second parameter of N(0, .), read here as a variance. Others have drawn with
that as the standard deviation, or with gamma^2:
github.com/willGuimont/learnable_fourier_positional_encoding at 220e938,
github.com/JHLew/Learnable-Fourier-Features at 84d17ac, positional_encoding.py.
"""

import torch
from torch import Tensor, nn


def fourier_features(
    coordinates: Tensor,
    frequencies: Tensor,  # (waves, axes)
) -> Tensor:
    """The waves of each place: (..., 2 waves) for coordinates of (..., axes).

    Frequencies are in radians per unit of a coordinate. All cosines come first.
    Angles are float64 and are made where coordinates live: leave them on the
    CPU if frequencies are on a device without float64, such as mps. The result
    has the dtype and the device of the frequencies.

    >>> frequencies = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    >>> fourier_features(torch.tensor([[0.0, 0.0], [1.0, 1.0]]), frequencies)
    tensor([[ 0.5000,  0.5000,  0.0000,  0.0000],
            [ 0.2702, -0.2081,  0.4207,  0.4546]])

    Coordinates left on the CPU take a copy in each call: the host waits for it.

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: coordinates that are no tensor of uint8, int8 to int64, float32
    or float64 (bfloat16 has no 257), or not (..., axes); frequencies not
    floating, or not (waves, axes).
    """
    if frequencies.ndim != 2 or not frequencies.is_floating_point():
        raise ValueError(
            "frequencies must be (waves, axes) of a floating dtype, "
            f"got {tuple(frequencies.shape)} of {frequencies.dtype}"
        )
    waves, axes = frequencies.shape
    _check_coordinates(coordinates, axes)
    exact = frequencies.to(coordinates.device).double()  # (waves, axes)
    angles = (coordinates[..., None, :] * exact).sum(-1)  # (..., waves)
    features = torch.cat([angles.cos(), angles.sin()], -1)  # (..., 2*waves)
    features = (features / (2 * waves) ** 0.5).to(frequencies.dtype)
    return features.to(frequencies.device)  # (..., 2*waves)


class FourierEncoding(nn.Module):
    """The encoding of each place: (..., dim) for coordinates of (..., axes).

    features is the number of cosines and sines together, hidden the width
    between the two layers, gamma the distance at which places begin to look
    different, in the unit of the coordinates. groups cuts the coordinates into
    runs of axes / groups. What comes out has the dtype of the parameters, or
    that of autocast, in which its two layers then are, and is added to the
    token embeddings.

    >>> encode = FourierEncoding(axes=2, dim=8, features=16, hidden=4, gamma=3)
    >>> rows, columns = torch.arange(5), torch.arange(7)
    >>> encode(torch.cartesian_prod(rows, columns)).shape
    torch.Size([35, 8])

    Coordinates left on the CPU take a copy in each call: the host waits for it.

    Fit for compile, export, vmap, gradients per sample, mps; no sync.

    ValueError: as fourier_features; a number below 1; features odd; groups that
    do not divide axes and dim; gamma not above 0.
    """

    def __init__(
        self,
        axes: int,
        dim: int,
        features: int,
        hidden: int,
        gamma: float,
        groups: int = 1,
    ):
        super().__init__()
        if min(axes, dim, features, hidden, groups) < 1:
            raise ValueError(
                "axes, dim, features, hidden and groups must be at least 1, "
                f"got {axes}, {dim}, {features}, {hidden} and {groups}"
            )
        if features % 2:
            raise ValueError(f"features must be even, got {features}")
        if axes % groups or dim % groups:
            raise ValueError(
                "groups must divide axes and dim, "
                f"got {groups} for {axes} and {dim}"
            )
        if not gamma > 0:
            raise ValueError(f"gamma must be above 0, got {gamma}")
        self.axes, self.groups, self.gamma = axes, groups, gamma
        empty = torch.empty(features // 2, axes // groups)
        self.frequencies = nn.Parameter(empty)
        self.reset_parameters()
        self.inner = nn.Linear(features, hidden)
        self.outer = nn.Linear(hidden, dim // groups)

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw the frequencies; the two layers have their own."""
        nn.init.normal_(self.frequencies).div_(self.gamma)

    def forward(self, coordinates: Tensor) -> Tensor:
        _check_coordinates(coordinates, self.axes)
        grouped = coordinates.unflatten(-1, (self.groups, -1))
        features = fourier_features(grouped, self.frequencies)
        hidden = nn.functional.gelu(self.inner(features))
        return self.outer(hidden).flatten(-2)  # (..., dim)


def _check_coordinates(coordinates: Tensor, axes: int) -> None:
    tensor = isinstance(coordinates, Tensor)
    given = coordinates.dtype if tensor else type(coordinates).__name__
    whole = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    if given not in (torch.float32, torch.float64, *whole):
        raise ValueError(
            "coordinates must be a tensor of integers, float32 or float64, "
            f"got {given}"
        )
    shape = tuple(coordinates.shape)
    if shape[-1:] != (axes,):
        raise ValueError(f"coordinates must be (..., {axes}), got {shape}")
