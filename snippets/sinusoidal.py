# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-22
"""Sinusoidal position encoding: every position is a row of clock hands.

Pair p of the channels is one hand, p = 0 .. dim/2 - 1. It turns at a rate of
its own, and the pair holds the sine and the cosine of where it points:

    w[p]             = base ^ (-2 p / dim)     radians per position
    PE[pos, 2 p]     = sin(pos * w[p])
    PE[pos, 2 p + 1] = cos(pos * w[p])

The sum of token embedding and PE enters the first layer. Three layouts say
where the sine and the cosine of hand p stand:

    interleaved    2 p and 2 p + 1      the paper
    sin_cos        p and p + dim/2      tensor2tensor; the tables by which
                                        GPT-J and RoFormer in transformers
                                        turn q and k
    cos_sin        p + dim/2 and p      timesteps of guided-diffusion

Source: arXiv:1706.03762, section 3.5. The code its authors released also has
other frequencies, here sinusoidal_encoding_t2t: get_timing_signal_1d in
github.com/tensorflow/tensor2tensor at bafdc1b,
tensor2tensor/layers/common_attention.py. cos_sin: timestep_embedding in
github.com/openai/guided-diffusion at aca3097, guided_diffusion/nn.py.
"""

import math

import torch
from torch import Tensor, nn


def sinusoidal_frequencies(
    dim: int, base: float = 10000.0, device: torch.device | None = None
) -> Tensor:
    """How fast each hand turns: (dim/2,), float64, radians per position.

    The wavelengths 2 pi / w grow by the same factor from 2 pi to
    2 pi base^(1 - 2/dim), which nears 2 pi base as dim grows. device is where
    they are made.

    >>> sinusoidal_frequencies(6)
    tensor([1.0000, 0.0464, 0.0022], dtype=torch.float64)

    ValueError: dim odd or below 2, base not positive, or infinite.
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
    """The encoding of each position: (..., dim) for positions of (...).

    Positions are counted in tokens: integers, or float32 or float64 for what
    lies between. Angles are float64 whatever the dtype of the result: in
    float32 some hands would be some 0.06 off near position 1,000,000. They are
    made where positions live: leave positions on the CPU if the result is for a
    device without float64, such as mps.

    A table made once, table = sinusoidal_encoding(torch.arange(length), dim),
    has the same rows: table[positions], for int64 positions from 0 on.

    >>> sinusoidal_encoding(torch.arange(3), dim=4)
    tensor([[ 0.0000,  1.0000,  0.0000,  1.0000],
            [ 0.8415,  0.5403,  0.0100,  0.9999],
            [ 0.9093, -0.4161,  0.0200,  0.9998]])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: dim or base as above; positions that are no tensor of uint8,
    int8 to int64, float32 or float64 (bfloat16 has no 257); dtype not floating;
    another layout.
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
    """The encoding as tensor2tensor has it: (..., dim) for positions of (...).

    Its frequencies are base^(-p / (dim/2 - 1)), so that the last is 1/base
    itself, whatever the layout. fairseq, M2M100, Whisper and the timesteps of
    DDPM follow this one.

    >>> sinusoidal_encoding_t2t(torch.tensor([1000]), dim=4)
    tensor([[0.8269, 0.0998, 0.5624, 0.9950]])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: as sinusoidal_encoding; dim must be at least 4.
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
    """M with M @ PE(pos) = PE(pos + offset): (..., dim, dim) for offsets (...).

    It turns every hand by offset * w, whatever the position: dim/2 rotations
    of 2 by 2 along the diagonal. Offsets may be negative or fractional. For
    the interleaved layout and the frequencies of the paper.

    >>> shift_matrix(torch.tensor(1), dim=2)
    tensor([[ 0.5403,  0.8415],
            [-0.8415,  0.5403]])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: as sinusoidal_encoding.
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
    """Token embeddings plus the encoding of their positions: like x.

    x is (..., tokens, dim); positions is (tokens,) for all rows alike or has
    the leading shape of x, as left padding and packing need, where any axis but
    the last may be 1. The encoding is made anew in each call, where positions
    live, and then moved to x. layout is that of sinusoidal_encoding.

    >>> AddSinusoidal(dim=2)(torch.zeros(1, 2), torch.tensor([1]))
    tensor([[0.8415, 0.5403]])

    Positions left on the CPU are copied in each call: the host waits for that.

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: as sinusoidal_encoding; x or positions of another shape; x not
    of a floating dtype.
    """

    def __init__(
        self, dim: int, base: float = 10000.0, layout: str = "interleaved"
    ):
        super().__init__()
        # refuse now what cannot be encoded
        sinusoidal_encoding(torch.arange(0), dim, base, layout=layout)
        self.dim = dim
        self.base = base
        self.layout = layout

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        if not x.is_floating_point():
            raise ValueError(f"x must be of a floating dtype, got {x.dtype}")
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
    """Sine and cosine of position times frequency: two of (..., pairs)."""
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
