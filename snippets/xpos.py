"""xPos: RoPE whose pairs fade from the score with distance, fast ones sooner.

Pair p of a query at position i or a key at position j turns as in RoPE and is
scaled by a power of its decay zeta[p], inverse for queries and keys:

    w[p]    = base ^ (-2 p / dim)             radians per position
    zeta[p] = (2 p / dim + gamma) / (1 + gamma)
    query:    scale zeta[p] ^ ((i - centre) / scale_base)
    key:      scale zeta[p] ^ ((centre - j) / scale_base)

In the score the centre cancels and zeta[p] ^ ((i - j) / scale_base) is left.
For keys after the query it would grow: xPos is for causal attention only.

Source: arXiv:2212.10554, section 3.2 (equations 9 and 10, algorithm 1), which
has zeta ^ n, without scale_base. That and gamma are from
github.com/microsoft/torchscale at 4d1e0e8,
torchscale/component/xpos_relative_position.py.
"""

import math

import torch
from torch import Tensor


def xpos_decay(
    dim: int, gamma: float = 0.4, device: torch.device | None = None
) -> Tensor:
    """What remains of each pair after scale_base positions: (dim/2,), float64.

    >>> xpos_decay(4)
    tensor([0.2857, 0.6429], dtype=torch.float64)

    ValueError: dim odd or below 2, gamma not positive.
    """
    if dim < 2 or dim % 2:
        raise ValueError(f"dim must be even and at least 2, got {dim}")
    if not 0 < gamma < math.inf:
        raise ValueError(f"gamma must be a positive number, got {gamma}")
    p = torch.arange(dim // 2, dtype=torch.float64, device=device)  # (dim/2)
    return (2 * p / dim + gamma) / (1 + gamma)  # (dim/2)


def apply_xpos(
    x: Tensor,  # (..., tokens, dim)
    positions: Tensor,  # (..., tokens)
    role: str,
    centre: float,
    base: float = 10000.0,
    gamma: float = 0.4,
    scale_base: float = 512.0,
) -> Tensor:
    """The queries or the keys of each head, turned and scaled: like x.

    role is "query" or "key". centre is a position, the same for all queries and
    keys that meet, those of a cache included: torchscale's moves as the text
    grows, so that it has to cache keys before they are scaled. positions is
    (tokens,), or has each leading axis of x, of the same size or 1. Pairs are
    interleaved, channels 2 p and 2 p + 1.

    Far from the centre the scales leave what a dtype can hold, since at that
    distance n from it they reach 3.5 ^ (n / 512): 4,500 positions in float16,
    36,000 in float32 and bfloat16. Angles and scales are float64.

    >>> x, positions = torch.ones(2, 2), torch.tensor([0, 512])
    >>> apply_xpos(x, positions, "query", centre=0)
    tensor([[ 1.0000,  1.0000],
            [-0.3075, -0.2621]])

    ValueError: shapes that do not fit; dim odd; x not of a floating dtype;
    positions of a dtype that cannot count; base, gamma or scale_base not
    positive; another role.
    """
    _check(x, positions, role)
    for name, value in (("base", base), ("scale_base", scale_base)):
        if not 0 < value < math.inf:
            raise ValueError(f"{name} must be a positive number, got {value}")
    dim, device = x.shape[-1], positions.device
    zeta = xpos_decay(dim, gamma, device)  # (dim/2)
    p = torch.arange(dim // 2, dtype=torch.float64, device=device)  # (dim/2)
    position = positions.double()[..., None]  # (..., tokens, 1)
    power = (position - centre) / scale_base  # (..., tokens, 1)
    scale = zeta ** (power if role == "query" else -power)
    turn = torch.polar(scale, position * base ** (-2 * p / dim))
    dtype = torch.promote_types(x.dtype, torch.float32)
    a, b = x.to(dtype).unflatten(-1, (-1, 2)).unbind(-1)
    turned = torch.complex(a, b)  # (..., tokens, dim/2)
    turned = turned * turn.to(x.device, turned.dtype)  # (..., tokens, dim/2)
    return torch.view_as_real(turned).flatten(-2).to(x.dtype)


def _check(x: Tensor, positions: Tensor, role: str) -> None:
    if not x.is_floating_point():
        raise ValueError(f"x must be of a floating dtype, got {x.dtype}")
    if x.ndim < 2:
        raise ValueError(f"x must be (..., tokens, dim), got {tuple(x.shape)}")
    tensor = isinstance(positions, Tensor)
    given = positions.dtype if tensor else type(positions).__name__
    whole = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    if given not in (*whole, torch.float32, torch.float64):
        raise ValueError(
            "positions must be a tensor of uint8, int8 to int64, float32 or "
            f"float64, got {given}"
        )
    want, have = tuple(x.shape[:-1]), tuple(positions.shape)
    stretched = zip(have[:-1], want[:-1], strict=False)
    full = len(have) == len(want) and all(n in (1, of) for n, of in stretched)
    if have[-1:] != want[-1:] or not (len(have) == 1 or full):
        raise ValueError(
            f"positions must be {want[-1:]} or {want}, where any axis but the "
            f"last may be 1, got {have}"
        )
    if role not in ("query", "key"):
        raise ValueError(f"role must be 'query' or 'key', got {role!r}")
