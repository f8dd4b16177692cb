# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""Sinusoidal positional encoding: add sines and cosines of the position.

Each pair p of channels, p = 0 .. dim/2 - 1, has its own frequency w[p] and
contains the sine and the cosine of the angle pos * w[p]:

    w[p]             = base ^ (-2 p / dim)     radians per position
    PE[pos, 2 p]     = sin(pos * w[p])
    PE[pos, 2 p + 1] = cos(pos * w[p])

The sum of token embedding and PE enters the first layer. Three channel layouts
are in use, which differ in the channels of the sine and of the cosine of pair
p:

    interleaved    2 p and 2 p + 1      the paper
    sin_cos        p and p + dim/2      tensor2tensor; the tables by which
                                        GPT-J and RoFormer in transformers
                                        rotate q and k
    cos_sin        p + dim/2 and p      timesteps of guided-diffusion

References:
    Vaswani et al. 2017, arXiv:1706.03762, section 3.5.
    The code released by its authors, with other frequencies, here
    `sinusoidal_encoding_t2t`: get_timing_signal_1d in
    github.com/tensorflow/tensor2tensor at bafdc1b,
    tensor2tensor/layers/common_attention.py.
    Layout cos_sin: timestep_embedding in github.com/openai/guided-diffusion at
    aca3097, guided_diffusion/nn.py.
"""

import math

import torch
from torch import Tensor, nn


def sinusoidal_frequencies(
    dim: int, base: float = 10000.0, device: torch.device | None = None
) -> Tensor:
    """Return the frequency of each channel pair.

    The wavelengths 2 pi / w form a geometric sequence from 2 pi to 2 pi base^(1
    - 2/dim), which approaches 2 pi base as `dim` grows.

    Args:
        dim: Number of channels of the encoding; even and at least 2.
        base: Base of the frequencies; 10000 in the paper.
        device: Device on which to create the result; None is torch's default
            device.

    Returns:
        Frequencies in radians per position, shape `(dim/2,)`, float64.

    Raises:
        ValueError: If `dim` is odd or less than 2, or `base` is not a positive
            finite number.

    Example:
        >>> sinusoidal_frequencies(6)
        tensor([1.0000, 0.0464, 0.0022], dtype=torch.float64)
    """
    if dim < 2 or dim % 2:
        raise ValueError(f"dim must be even and at least 2, got {dim}")
    _check_base(base)
    p = torch.arange(dim // 2, dtype=torch.float64, device=device)  # (dim/2)
    return base ** (-2 * p / dim)  # (dim/2)


def sinusoidal_encoding(
    positions: Tensor,
    dim: int,
    base: float = 10000.0,
    dtype: torch.dtype = torch.float32,
    layout: str = "interleaved",
) -> Tensor:
    """Return the sinusoidal encoding of each position.

    The angles are computed in float64, whatever the dtype of the result: in
    float32, some channels would be off by about 0.06 near position 1,000,000.
    They are computed on the device of `positions`. If the result is for a
    device without float64, such as MPS, leave `positions` on the CPU.

    A table computed once,
    `table = sinusoidal_encoding(torch.arange(length), dim)`, contains the same
    rows: use `table[positions]` for int64 positions that are not negative.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        positions: Positions in tokens, any shape `(...)`; uint8, int8 to int64,
            or float32 or float64 for fractional positions. bfloat16 is rejected
            because it cannot represent 257.
        dim: Number of channels of the encoding; even and at least 2.
        base: Base of the frequencies; 10000 in the paper.
        dtype: Floating-point dtype of the result.
        layout: Order of the channels: "interleaved", "sin_cos" or "cos_sin".

    Returns:
        The encoding, shape `(..., dim)`, dtype `dtype`, on the device of
        `positions`.

    Raises:
        ValueError: If `dim` or `base` is invalid, as in
            `sinusoidal_frequencies`; `positions` is not a tensor of a listed
            dtype; `dtype` is not floating-point; or `layout` is unknown.

    Example:
        >>> sinusoidal_encoding(torch.arange(3), dim=4)
        tensor([[ 0.0000,  1.0000,  0.0000,  1.0000],
                [ 0.8415,  0.5403,  0.0100,  0.9999],
                [ 0.9093, -0.4161,  0.0200,  0.9998]])
    """
    _check_positions(positions)
    frequencies = sinusoidal_frequencies(dim, base, positions.device)
    return _encode(positions, frequencies, dtype, layout)  # (..., dim)


def sinusoidal_encoding_t2t(
    positions: Tensor,
    dim: int,
    base: float = 10000.0,
    dtype: torch.dtype = torch.float32,
    layout: str = "sin_cos",
) -> Tensor:
    """Return the encoding with the frequencies of tensor2tensor.

    Its frequencies are base^(-p / (dim/2 - 1)), so the last one is 1/base
    itself, in every layout. fairseq, M2M100, Whisper and the timesteps of DDPM
    use these frequencies.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        positions: Positions in tokens, any shape `(...)`; dtypes as in
            `sinusoidal_encoding`.
        dim: Number of channels of the encoding; even and at least 4.
        base: Base of the frequencies; 10000 in the paper.
        dtype: Floating-point dtype of the result.
        layout: Order of the channels: "interleaved", "sin_cos" or "cos_sin".

    Returns:
        The encoding, shape `(..., dim)`, dtype `dtype`, on the device of
        `positions`.

    Raises:
        ValueError: In the cases listed for `sinusoidal_encoding`, or if `dim`
            is less than 4.

    Example:
        >>> sinusoidal_encoding_t2t(torch.tensor([1000]), dim=4)
        tensor([[0.8269, 0.0998, 0.5624, 0.9950]])
    """
    _check_positions(positions)
    if dim < 4 or dim % 2:
        raise ValueError(f"dim must be even and at least 4, got {dim}")
    _check_base(base)
    p = torch.arange(dim // 2, dtype=torch.float64, device=positions.device)
    frequencies = base ** (-p / (dim // 2 - 1))  # (dim/2)
    return _encode(positions, frequencies, dtype, layout)  # (..., dim)


def shift_matrix(
    offsets: Tensor,
    dim: int,
    base: float = 10000.0,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Return the matrix that shifts an encoding by an offset.

    The matrix M satisfies M @ PE(pos) = PE(pos + offset) for every position. It
    rotates pair p by offset * w[p]: there are dim/2 rotations of 2 by 2 along
    the diagonal. It applies to layout "interleaved" and the frequencies of the
    paper.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        offsets: Offsets in tokens, any shape `(...)`; may be negative or
            fractional. Dtypes as for the positions of `sinusoidal_encoding`.
        dim: Number of channels of the encoding; even and at least 2.
        base: Base of the frequencies; 10000 in the paper.
        dtype: Floating-point dtype of the result.

    Returns:
        One matrix per offset, shape `(..., dim, dim)`, dtype `dtype`.

    Raises:
        ValueError: In the cases listed for `sinusoidal_encoding`.

    Example:
        >>> shift_matrix(torch.tensor(1), dim=2)
        tensor([[ 0.5403,  0.8415],
                [-0.8415,  0.5403]])
    """
    _check_positions(offsets, "offsets")
    frequencies = sinusoidal_frequencies(dim, base, offsets.device)
    sin, cos = _waves(offsets, frequencies, dtype)  # (..., dim/2)
    diagonal = cos.repeat_interleave(2, dim=-1)  # (..., dim)
    beside = torch.stack((sin, torch.zeros_like(sin)), dim=-1)
    beside = beside.flatten(-2)[..., :-1]  # (..., dim-1)
    turn = beside.diag_embed(1) - beside.diag_embed(-1)  # (..., dim, dim)
    return diagonal.diag_embed() + turn  # (..., dim, dim)


class AddSinusoidal(nn.Module):
    """Add the sinusoidal encoding of each position to token embeddings.

    The encoding is computed in each call, on the device of `positions`, and
    then moved to the device of `x`. If `positions` are on the CPU and `x` is
    not, the host waits for this copy.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        dim: Number of channels of the embeddings; even and at least 2.
        base: Base of the frequencies; 10000 in the paper.
        layout: Order of the channels: "interleaved", "sin_cos" or "cos_sin".

    Raises:
        ValueError: If `dim`, `base` or `layout` is invalid, as in
            `sinusoidal_encoding`.

    Example:
        >>> AddSinusoidal(dim=2)(torch.zeros(1, 2), torch.tensor([1]))
        tensor([[0.8415, 0.5403]])
    """

    def __init__(
        self, dim: int, base: float = 10000.0, layout: str = "interleaved"
    ):
        super().__init__()
        # reject invalid values now
        sinusoidal_encoding(torch.arange(0), dim, base, layout=layout)
        self.dim = dim
        self.base = base
        self.layout = layout

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        """Return the sum of embeddings and encoding.

        Args:
            x: Token embeddings, shape `(..., tokens, dim)`, floating-point.
            positions: Position of each token: `(tokens,)` if all sequences
                share them, or the leading shape of `x`, `(..., tokens)`, for
                left padding and packing, where any axis but the last may be 1.
                Dtypes as in `sinusoidal_encoding`.

        Returns:
            The sum, with the shape and dtype of `x`.

        Raises:
            ValueError: If `x` or `positions` does not have the shape or dtype
                described above.
        """
        if not x.is_floating_point():
            raise ValueError(
                f"x must have a floating-point dtype, got {x.dtype}"
            )
        if x.ndim == 0 or x.shape[-1] != self.dim:
            shape = tuple(x.shape)
            raise ValueError(f"x must be (..., {self.dim}), got {shape}")
        _check_positions(positions)
        _check_shape(positions, x)
        encoding = sinusoidal_encoding(
            positions, self.dim, self.base, x.dtype, self.layout
        )
        return x + encoding.to(x.device)


def _encode(
    positions: Tensor, frequencies: Tensor, dtype: torch.dtype, layout: str
) -> Tensor:
    sin, cos = _waves(positions, frequencies, dtype)  # (..., pairs)
    if layout == "sin_cos":
        return torch.cat((sin, cos), dim=-1)  # (..., 2*pairs)
    if layout == "cos_sin":
        return torch.cat((cos, sin), dim=-1)  # (..., 2*pairs)
    if layout != "interleaved":
        raise ValueError(
            "layout must be 'interleaved', 'sin_cos' or 'cos_sin', "
            f"got {layout!r}"
        )
    encoding = sin.new_empty(*positions.shape, 2 * len(frequencies))
    encoding[..., 0::2], encoding[..., 1::2] = sin, cos
    return encoding  # (..., 2*pairs)


def _waves(
    positions: Tensor, frequencies: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Return the sine and cosine of position times frequency."""
    if not dtype.is_floating_point:
        raise ValueError(f"dtype must be a floating dtype, got {dtype}")
    angles = positions.double()[..., None] * frequencies  # (..., pairs)
    return angles.sin().to(dtype), angles.cos().to(dtype)  # (..., pairs)


def _check_base(base: float) -> None:
    if not 0 < base < math.inf:
        raise ValueError(f"base must be a positive number, got {base}")


def _check_positions(positions: Tensor, name: str = "positions") -> None:
    tensor = isinstance(positions, Tensor)
    given = positions.dtype if tensor else type(positions).__name__
    whole = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    if given not in (*whole, torch.float32, torch.float64):
        raise ValueError(
            f"{name} must be a tensor of uint8, int8 to int64, float32 or "
            f"float64, such as torch.arange(10), got {given}"
        )


def _check_shape(positions: Tensor, x: Tensor) -> None:
    have, leading = tuple(positions.shape), tuple(x.shape[:-1])
    fits = len(have) in (1, len(leading)) and have[-1:] == leading[-1:]
    axes = zip(have[:-1], leading, strict=False)
    if not fits or any(n not in (1, of) for n, of in axes):
        raise ValueError(
            f"positions must be {leading[-1:]} or {leading}, where any axis "
            f"but the last may be 1, got {have}"
        )
