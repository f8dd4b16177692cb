# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-23
"""Learned Fourier features: encode positions with several coordinates.

    r(x)  = [cos(W x), sin(W x)] / sqrt(features)
    PE(x) = W2 gelu(W1 r(x) + b1) + b2

A position x has one coordinate or more: two for a pixel. All weights are
learned. Each entry of W is initialised from a normal distribution with mean 0
and variance 1 / gamma^2, so that over many frequencies

    r(x) . r(y)  is about  exp(-|x - y|^2 / (2 gamma^2)) / 2

gamma is a length, in the unit of the coordinates: positions that are closer
than gamma have similar features. A position that consists of several points,
such as the two corners of a box, is split into groups. The same weights are
applied to all groups, and each group gives its share of the channels.

References:
    arXiv:2106.02795, algorithm 1 with equations 2 and 6. There gamma^-2 is the
    second parameter of N(0, .), which is read here as a variance.
    Other implementations use it as the standard deviation, or use gamma^2:
    github.com/willGuimont/learnable_fourier_positional_encoding at 220e938,
    github.com/JHLew/Learnable-Fourier-Features at 84d17ac,
    positional_encoding.py.
"""

import torch
from torch import Tensor, nn


def fourier_features(
    coordinates: Tensor,
    frequencies: Tensor,  # (waves, axes)
) -> Tensor:
    """Return the cosines and sines of each position.

    Angles are computed in float64 on the device of `coordinates`. If
    `frequencies` are on a device without float64, such as MPS, leave
    `coordinates` on the CPU. If `coordinates` are on the CPU and `frequencies`
    are not, each call makes a copy, and the host waits for it.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        coordinates: Coordinates of each position, shape `(..., axes)`; uint8,
            int8 to int64, float32 or float64. bfloat16 is rejected because it
            cannot represent 257.
        frequencies: Radians per unit of a coordinate, shape `(waves, axes)`,
            floating-point.

    Returns:
        The features, shape `(..., 2*waves)`, all cosines first, with the dtype
        and device of `frequencies`.

    Raises:
        ValueError: If `coordinates` or `frequencies` does not have the shape or
            dtype described above.

    Example:
        >>> frequencies = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
        >>> coordinates = torch.tensor([[0.0, 0.0], [1.0, 1.0]])
        >>> fourier_features(coordinates, frequencies)
        tensor([[ 0.5000,  0.5000,  0.0000,  0.0000],
                [ 0.2702, -0.2081,  0.4207,  0.4546]])
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
    """Encode positions with learned Fourier features and a two-layer network.

    If coordinates are on the CPU and the module is not, each call makes a copy,
    and the host waits for it.

    Supports compile, export, vmap, per-sample gradients, mps; no host-device
    sync.

    Args:
        axes: Number of coordinates of a position.
        dim: Number of channels of the encoding.
        features: Number of cosines and sines together; even.
        hidden: Width between the two layers.
        gamma: Distance at which positions begin to have different features, in
            the unit of the coordinates; above 0.
        groups: Number of groups into which the coordinates are split, each of
            axes / groups consecutive ones; must divide `axes` and `dim`.

    Raises:
        ValueError: If a number is less than 1, `features` is odd, `groups` does
            not divide `axes` and `dim`, or `gamma` is not above 0.

    Example:
        >>> encode = FourierEncoding(2, dim=8, features=16, hidden=4, gamma=3)
        >>> rows, columns = torch.arange(5), torch.arange(7)
        >>> encode(torch.cartesian_prod(rows, columns)).shape
        torch.Size([35, 8])
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
        """Initialise the frequencies; the two layers have their own method."""
        nn.init.normal_(self.frequencies).div_(self.gamma)

    def forward(self, coordinates: Tensor) -> Tensor:
        """Return the encoding, to be added to the token embeddings.

        Args:
            coordinates: Coordinates of each position, shape `(..., axes)`;
                dtypes as in `fourier_features`.

        Returns:
            The encoding, shape `(..., dim)`, in the dtype of the parameters, or
            under autocast in that of autocast, in which the two layers then
            run.

        Raises:
            ValueError: If `coordinates` does not have the shape or dtype
                described above.
        """
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
