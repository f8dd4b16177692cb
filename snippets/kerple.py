# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-23
"""KERPLE: a learned penalty, by the logarithm or by a power of the distance.

Each head learns two positive numbers. The variants, log and power:

    bias[h, i, j] = -r1[h] * log(1 + r2[h] * |i - j|)       r1, r2 > 0
    bias[h, i, j] = -r1[h] * |i - j| ^ r2[h]                r1 > 0, 0 < r2 <= 2

Both are conditionally positive definite kernels of i and j: for the positions
of a text some constant, which the softmax does not notice, would turn them into
inner products (for r2 = 2 in the power and three or more positions, none does).
The power with r2 = 1 is ALiBi with a learned slope. Added to the scaled score,
as in the code; equation 1 of the paper divides the bias by sqrt(dim) as well.

Source: arXiv:2205.09921; ParallelKerpleLog and ParallelKerplePower in
github.com/chijames/KERPLE at 25be3d7, megatron/mpu/layers.py. There r1 and r2
are bias_p and bias_a of the log, but bias_a and bias_p of the power.
"""

import torch
from torch import Tensor, nn


def kerple_log_bias(
    query_positions: Tensor,  # (..., queries)
    key_positions: Tensor,  # (..., keys)
    r1: Tensor,  # (heads)
    r2: Tensor,  # (heads)
) -> Tensor:
    """The log variant: (..., heads, queries, keys), of the dtype of r1.

    Positions are integers, in tokens: (tokens,) for all rows of a batch, (1,
    tokens) or (batch, tokens). They may stay on the CPU. r1 is in units of the
    score, r2 per token. That they are in range is not checked: KerpleLog and
    KerplePower see to it. Counted in float32 or better, cast last. It
    hides no key: in a causal model mask later keys too.

    In float32 it takes 4 * heads + 4 bytes per query and key at its peak (with
    4 heads or more), 8 * heads more where gradients are recorded, and 16 *
    heads more with the backward pass. flex_bias of decoding.py needs but the
    bias of one query, nearest key first, and makes nothing of that size:
    kerple_log_bias(n, torch.arange(100), r1, r2)[:, 0].flip(-1), where n is
    torch.tensor([99]).

    >>> r1, r2 = torch.tensor([1.0]), torch.tensor([0.5])
    >>> kerple_log_bias(torch.tensor([4]), torch.tensor([0, 2, 4]), r1, r2)
    tensor([[[-1.0986, -0.6931, -0.0000]]])

    Positions left on the CPU are copied in each call: the host waits for that.

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: positions that are no tensors of integers or do not fit each
    other; r1 and r2 that are not one floating number per head, of one dtype.
    """
    distance, a, b = _prepare(query_positions, key_positions, r1, r2)
    bias = (b * distance).log1p_().mul_(-a)  # (..., heads, queries, keys)
    return bias.to(r1.dtype)


def kerple_power_bias(
    query_positions: Tensor,  # (..., queries)
    key_positions: Tensor,  # (..., keys)
    r1: Tensor,  # (heads)
    r2: Tensor,  # (heads)
) -> Tensor:
    """The power variant; all as kerple_log_bias, but r2 is a plain exponent.

    At its peak it takes 8 * heads + 4 bytes per query and key, also where
    gradients are recorded, and 25 * heads + 8 with the backward pass.

    Positions left on the CPU are copied in each call: the host waits for that.

    Fit for autocast, compile, export, vmap, mps; no sync.

    >>> r1, r2 = torch.tensor([1.0]), torch.tensor([0.5])
    >>> kerple_power_bias(torch.tensor([4]), torch.tensor([0, 3, 4]), r1, r2)
    tensor([[[-2., -1., -0.]]])
    """
    distance, a, b = _prepare(query_positions, key_positions, r1, r2)
    bias = -a * distance**b  # (..., heads, queries, keys)
    return bias.to(r1.dtype)


class KerpleLog(nn.Module):
    """kerple_log_bias with learned r1 and r2, at first in 0 .. 2 and 0 .. 1.

    Where one fell below 0.01, 0.01 is used, as in the authors' code, which
    changes the parameter itself. Its gradient can still bring it back.

    Positions left on the CPU are copied in each call: the host waits for that.

    Fit for autocast, compile, export, vmap, gradients per sample, mps; no sync.

    ValueError: heads below 1; positions as kerple_log_bias.
    """

    def __init__(self, heads: int):
        super().__init__()
        self.r1, self.r2 = _parameters(heads)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.uniform_(self.r1, 0, 2)
        nn.init.uniform_(self.r2, 0, 1)

    def forward(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        r1, r2 = _limited(self.r1), _limited(self.r2)
        return kerple_log_bias(query_positions, key_positions, r1, r2)


class KerplePower(nn.Module):
    """kerple_power_bias with learned r1 and r2, at first in 0 .. 1 and 0 .. 2.

    Limited as KerpleLog, and an r2 above 2 is used as 2.

    Positions left on the CPU are copied in each call: the host waits for that.

    Fit for autocast, compile, export, vmap, gradients per sample, mps; no sync.

    ValueError: heads below 1; positions as kerple_log_bias.
    """

    def __init__(self, heads: int):
        super().__init__()
        self.r1, self.r2 = _parameters(heads)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.uniform_(self.r1, 0, 1)
        nn.init.uniform_(self.r2, 0, 2)

    def forward(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        r1, r2 = _limited(self.r1), _limited(self.r2, 2)
        return kerple_power_bias(query_positions, key_positions, r1, r2)


def _parameters(heads: int) -> list[nn.Parameter]:
    if heads < 1:
        raise ValueError(f"heads must be at least 1, got {heads}")
    return [nn.Parameter(torch.empty(heads)) for _ in ("r1", "r2")]


def _limited(r: Tensor, most: float | None = None) -> Tensor:
    """r in its range, with the gradient of r: clamp alone has none outside."""
    return r.detach().clamp(0.01, most) + (r - r.detach())


def _prepare(
    query_positions: Tensor, key_positions: Tensor, r1: Tensor, r2: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Distances, r1 and r2, all in one dtype and in shapes that fit."""
    one = r1.ndim == 1 and len(r1) and r1.is_floating_point()
    if not one or r2.shape != r1.shape or r2.dtype != r1.dtype:
        raise ValueError(
            "r1 and r2 must be floating and (heads,), "
            f"got {r1.dtype} {tuple(r1.shape)} and {r2.dtype} {tuple(r2.shape)}"
        )
    dtype = torch.promote_types(r1.dtype, torch.float32)
    offsets = _offsets(query_positions, key_positions, r1.device)
    distance = offsets.abs().to(dtype)  # (..., queries, keys)
    # as one, so that vmap over one of them may write into what both give
    a, b = torch.stack((r1, r2)).to(dtype)[..., None, None]  # (heads, 1, 1)
    return distance[..., None, :, :], a, b


def _check_integers(name: str, *given: Tensor) -> None:
    whole = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    for each in given:
        tensor = isinstance(each, Tensor)
        kind = each.dtype if tensor else type(each).__name__
        if kind not in whole:
            raise ValueError(
                f"{name} must be tensors of uint8 or int8 to int64, got {kind}"
            )


def _offsets(
    query_positions: Tensor, key_positions: Tensor, device: torch.device | None
) -> Tensor:
    """Return key minus query position: (..., queries, keys), int64."""
    _check_integers("positions", query_positions, key_positions)
    queries, keys = tuple(query_positions.shape), tuple(key_positions.shape)
    if not queries or not keys or queries[:-1] != keys[:-1]:
        raise ValueError(
            "positions must be (..., queries) and (..., keys), "
            f"got {queries} and {keys}"
        )
    i = query_positions.to(device, torch.int64)[..., :, None]
    return key_positions.to(device)[..., None, :] - i  # (..., queries, keys)
