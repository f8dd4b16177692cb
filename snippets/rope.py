"""Rotary position embedding (RoPE): q and k turn by an angle per position.

Pair p of the channels is a point (a, b) in a plane, p = 0 .. dim/2 - 1. At
position pos it is turned by the angle t = pos * w[p]:

    w[p] = base ^ (-2 p / dim)        radians per position
    (a, b) becomes (a cos t - b sin t, a sin t + b cos t)

The dot product of a turned q and a turned k knows the two positions only
through their difference. Two layouts say which channels make pair p:

    interleaved    2 p and 2 p + 1      the paper, LLaMA by Meta, GPT-J
    half           p and p + dim/2      GPT-NeoX, LLaMA in transformers

Source: arXiv:2104.09864, sections 3.2.2 and 3.4.2 (equations 15 and 34). Half:
github.com/EleutherAI/gpt-neox at ea7aefd,
megatron/model/positional_embeddings.py. Interleaved:
github.com/meta-llama/llama at 689c7f2, llama/model.py.
"""

import math

import torch
from torch import Tensor


def rope_frequencies(
    dim: int, base: float = 10000.0, device: torch.device | None = None
) -> Tensor:
    """How fast each pair turns: (dim/2,), float64, radians per position.

    >>> rope_frequencies(6)
    tensor([1.0000, 0.0464, 0.0022], dtype=torch.float64)

    ValueError: dim odd or below 2, base not positive.
    """
    if dim < 2 or dim % 2:
        raise ValueError(f"dim must be even and at least 2, got {dim}")
    if not 0 < base < math.inf:
        raise ValueError(f"base must be a positive number, got {base}")
    p = torch.arange(dim // 2, dtype=torch.float64, device=device)  # (dim/2)
    return base ** (-2 * p / dim)  # (dim/2)


def apply_rope(
    x: Tensor,  # (..., tokens, dim)
    positions: Tensor,  # (..., tokens)
    frequencies: Tensor,  # (pairs)
    layout: str,
) -> Tensor:
    """The q or the k of each head, turned: like x.

    positions is (tokens,), or has each leading axis of x, of the same size or
    1: (batch, 1, tokens) for x of (batch, heads, tokens, dim). Fewer pairs than
    dim/2 turn the first 2 * pairs channels and leave the rest: partial rotary.
    There is no default layout, since nothing but worse results tells that it is
    not the one of the checkpoint. Angles are float64 and the turning is float32
    at least, whatever the dtype of x. They are made where positions live: leave
    positions and frequencies on the CPU if x is on a device without float64.

    >>> x, w = torch.tensor([[1.0, 0.0, 0.0, 0.0]]), rope_frequencies(4)
    >>> apply_rope(x, torch.tensor([1]), w, "interleaved")
    tensor([[0.5403, 0.8415, 0.0000, 0.0000]])
    >>> apply_rope(x, torch.tensor([1]), w, "half")
    tensor([[0.5403, 0.0000, 0.8415, 0.0000]])

    ValueError: shapes that do not fit; x not of a floating dtype; frequencies
    not float32 or float64; positions of a dtype that cannot count (bfloat16 has
    no 257); another layout.
    """
    _check(x, positions, frequencies, layout)
    width, dim = 2 * len(frequencies), x.shape[-1]
    if width < dim:
        first, rest = x.split((width, dim - width), dim=-1)
        first = apply_rope(first, positions, frequencies, layout)
        return torch.cat((first, rest), dim=-1)  # (..., tokens, dim)
    dtype = torch.promote_types(x.dtype, torch.float32)
    angles = positions.double()[..., None] * frequencies.double()
    cos = angles.cos().to(x.device, dtype)  # (..., tokens, pairs)
    sin = angles.sin().to(x.device, dtype)  # (..., tokens, pairs)
    if layout == "half":  # a cos t - b sin t, then a sin t + b cos t
        a, b = x.to(dtype).chunk(2, dim=-1)  # (..., tokens, pairs)
        first = torch.addcmul(a * cos, b, sin, value=-1)
        second = torch.addcmul(a * sin, b, cos)
        turned = torch.cat((first, second), dim=-1)  # (..., tokens, dim)
    else:  # the same as complex numbers: (a + ib)(cos t + i sin t)
        a, b = x.to(dtype).unflatten(-1, (-1, 2)).unbind(-1)
        turned = torch.complex(a, b) * torch.complex(cos, sin)
        turned = torch.view_as_real(turned).flatten(-2)  # (..., tokens, dim)
    return turned.to(x.dtype)  # (..., tokens, dim)


def interleaved_to_half(
    weight: Tensor, heads: int, rotary_dim: int | None = None
) -> Tensor:
    """A q or k projection of an interleaved checkpoint, for half: like weight.

    weight is that of a Linear, (heads * dim, in), or its bias, (heads * dim,).
    k has as many heads as there are for k and v; a norm of dim channels after
    the projection counts as one head. v and the output stay as they are.
    rotary_dim is the number of channels that turn, all of them if not given.

    >>> interleaved_to_half(torch.tensor([0, 1, 2, 3, 4]), 1, rotary_dim=4)
    tensor([0, 2, 1, 3, 4])

    ValueError: rows that heads do not share; rotary_dim that does not fit.
    """
    return _reorder(weight, heads, rotary_dim, (-1, 2))


def half_to_interleaved(
    weight: Tensor, heads: int, rotary_dim: int | None = None
) -> Tensor:
    """The inverse of interleaved_to_half: like weight.

    ValueError: as interleaved_to_half.
    """
    return _reorder(weight, heads, rotary_dim, (2, -1))


def _reorder(
    weight: Tensor, heads: int, rotary_dim: int | None, pairs: tuple[int, int]
) -> Tensor:
    rows = weight.shape[0] if weight.ndim else 0
    if heads < 1 or rows < heads or rows % heads:
        raise ValueError(
            f"rows must be a multiple of heads, {heads}, got {rows}"
        )
    dim = rows // heads
    width = dim if rotary_dim is None else rotary_dim
    if not 2 <= width <= dim or width % 2:
        raise ValueError(f"rotary_dim must be even, 2 to {dim}, got {width}")
    each = weight.unflatten(0, (heads, dim))
    first = each[:, :width].unflatten(1, pairs).transpose(1, 2).flatten(1, 2)
    return torch.cat((first, each[:, width:]), dim=1).flatten(0, 1)


def _check(
    x: Tensor, positions: Tensor, frequencies: Tensor, layout: str
) -> None:
    if not x.is_floating_point():
        raise ValueError(f"x must be of a floating dtype, got {x.dtype}")
    if x.ndim < 2:
        raise ValueError(f"x must be (..., tokens, dim), got {tuple(x.shape)}")
    if frequencies.dtype not in (torch.float32, torch.float64):
        raise ValueError(
            f"frequencies must be float32 or float64, got {frequencies.dtype}"
        )
    most, shape = x.shape[-1] // 2, tuple(frequencies.shape)
    if len(shape) != 1 or not 1 <= shape[0] <= most:
        raise ValueError(
            f"frequencies must be (pairs,), 1 to {most} pairs, got {shape}"
        )
    tensor = isinstance(positions, Tensor)
    given = positions.dtype if tensor else type(positions).__name__
    whole = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    if given not in (*whole, torch.float32, torch.float64):
        raise ValueError(
            "positions must be a tensor of uint8, int8 to int64, float32 or "
            f"float64, got {given}"
        )
    want, have = tuple(x.shape[:-1]), tuple(positions.shape)
    leading = zip(have[:-1], want, strict=False)
    fits = len(have) in (1, len(want)) and have[-1:] == want[-1:]
    if not fits or any(n not in (1, of) for n, of in leading):
        raise ValueError(
            f"positions must be {want[-1:]} or {want}, where any axis but the "
            f"last may be 1, got {have}"
        )
    if layout not in ("interleaved", "half"):
        raise ValueError(
            f"layout must be 'interleaved' or 'half', got {layout!r}"
        )
