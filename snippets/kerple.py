# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""KERPLE: subtract a learned function of the distance, logarithm or power.

Each head learns two positive numbers. There are two variants, log and power:

    bias[h, i, j] = -r1[h] * log(1 + r2[h] * |i - j|)       r1, r2 > 0
    bias[h, i, j] = -r1[h] * |i - j| ^ r2[h]                r1 > 0, 0 < r2 <= 2

Both are conditionally positive definite kernels of i and j: for the positions
of a text, adding some constant, which the softmax does not depend on, would
make them inner products (for r2 = 2 in the power variant and three or more
positions, no constant does). The power variant with r2 = 1 is ALiBi with a
learned slope. The bias is added to the scaled score, as in the released code;
equation 1 of the paper divides the bias by sqrt(dim) as well.

References:
    arXiv:2205.09921; ParallelKerpleLog and ParallelKerplePower in
    github.com/chijames/KERPLE at 25be3d7, megatron/mpu/layers.py. There r1 and
    r2 are called bias_p and bias_a in the log variant, but bias_a and bias_p in
    the power variant.
"""

import torch
from torch import Tensor, nn


def kerple_log_bias(
    query_positions: Tensor,  # (..., queries)
    key_positions: Tensor,  # (..., keys)
    r1: Tensor,  # (heads)
    r2: Tensor,  # (heads)
) -> Tensor:
    """Return the KERPLE bias, log variant.

    The bias hides no key: in a causal model, mask later keys as well. It is
    computed in float32 or wider and then converted.

    In float32, the computation takes 4 * heads + 4 bytes per query and key at
    its peak (with 4 heads or more), 8 * heads more if gradients are recorded,
    and 16 * heads more with the backward pass. flex_bias of decoding.py avoids
    a tensor of this size. It needs only the bias of one query, nearest key
    first:

        n = torch.tensor([99])
        kerple_log_bias(n, torch.arange(100), r1, r2)[:, 0].flip(-1)

    If positions are on the CPU and `r1` is not, each call copies them, and the
    host waits for the copy.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        query_positions: Positions in tokens, integers, shape `(queries,)` if
            all sequences share them, `(1, queries)` or `(batch, queries)`. May
            stay on the CPU.
        key_positions: The same for the keys, shape `(keys,)`, `(1, keys)` or
            `(batch, keys)`, with the same leading axes.
        r1: Factor of each head in units of the score, shape `(heads,)`,
            floating-point; positive. The range is not checked here: KerpleLog
            ensures it.
        r2: Factor of the distance for each head, in units of one per token, in
            the shape and dtype of `r1`; positive (not checked).

    Returns:
        The bias, shape `(..., heads, queries, keys)`, with the dtype and device
        of `r1`.

    Raises:
        ValueError: If positions are not integer tensors or their shapes do not
            match, or `r1` and `r2` are not floating-point tensors of the same
            dtype with one number per head.

    Example:
        >>> r1, r2 = torch.tensor([1.0]), torch.tensor([0.5])
        >>> kerple_log_bias(torch.tensor([4]), torch.tensor([0, 2, 4]), r1, r2)
        tensor([[[-1.0986, -0.6931, -0.0000]]])
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
    """Return the KERPLE bias, power variant.

    The bias hides no key: in a causal model, mask later keys as well. It is
    computed in float32 or wider and then converted.

    At its peak, the computation takes 8 * heads + 4 bytes per query and key,
    also if gradients are recorded, and 25 * heads + 8 with the backward pass.
    As in `kerple_log_bias`, flex_bias of decoding.py avoids this.

    If positions are on the CPU and `r1` is not, each call copies them, and the
    host waits for the copy.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        query_positions: Positions of the queries, as in `kerple_log_bias`.
        key_positions: Positions of the keys, as in `kerple_log_bias`.
        r1: Factor of each head in units of the score, shape `(heads,)`,
            floating-point; positive. The range is not checked here: KerplePower
            ensures it.
        r2: Exponent of the distance for each head, in the shape and dtype of
            `r1`; above 0 and at most 2 (not checked).

    Returns:
        The bias, shape `(..., heads, queries, keys)`, with the dtype and device
        of `r1`.

    Raises:
        ValueError: In the cases listed for `kerple_log_bias`.

    Example:
        >>> r1, r2 = torch.tensor([1.0]), torch.tensor([0.5])
        >>> i, j = torch.tensor([4]), torch.tensor([0, 3, 4])
        >>> kerple_power_bias(i, j, r1, r2)
        tensor([[[-2., -1., -0.]]])

    """
    distance, a, b = _prepare(query_positions, key_positions, r1, r2)
    bias = -a * distance**b  # (..., heads, queries, keys)
    return bias.to(r1.dtype)


class KerpleLog(nn.Module):
    """Learn r1 and r2 of `kerple_log_bias`.

    The initial values of r1 are sampled from 0 .. 2, those of r2 from 0 .. 1. A
    value below 0.01 is used as 0.01; its gradient can still bring it back. The
    authors' code sets the parameter itself to 0.01.

    If positions are on the CPU and the module is not, each call copies them,
    and the host waits for the copy.

    Supports autocast, compile, export, vmap, per-sample gradients, mps; no
    host-device sync.

    Args:
        heads: Number of heads; at least 1.

    Raises:
        ValueError: If `heads` is less than 1.
    """

    def __init__(self, heads: int):
        super().__init__()
        self.r1, self.r2 = _parameters(heads)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sample r1 from 0 .. 2 and r2 from 0 .. 1, uniformly."""
        nn.init.uniform_(self.r1, 0, 2)
        nn.init.uniform_(self.r2, 0, 1)

    def forward(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        """Return the KERPLE bias, log variant.

        Args:
            query_positions: Positions of the queries, as in `kerple_log_bias`.
            key_positions: Positions of the keys, as in `kerple_log_bias`.

        Returns:
            The bias, shape `(..., heads, queries, keys)`.

        Raises:
            ValueError: If positions are invalid, as described for
                `kerple_log_bias`.
        """
        r1, r2 = _limited(self.r1), _limited(self.r2)
        return kerple_log_bias(query_positions, key_positions, r1, r2)


class KerplePower(nn.Module):
    """Learn r1 and r2 of `kerple_power_bias`.

    The initial values of r1 are sampled from 0 .. 1, those of r2 from 0 .. 2.
    Both are limited as in KerpleLog, and an r2 above 2 is used as 2.

    If positions are on the CPU and the module is not, each call copies them,
    and the host waits for the copy.

    Supports autocast, compile, export, vmap, per-sample gradients, mps; no
    host-device sync.

    Args:
        heads: Number of heads; at least 1.

    Raises:
        ValueError: If `heads` is less than 1.
    """

    def __init__(self, heads: int):
        super().__init__()
        self.r1, self.r2 = _parameters(heads)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sample r1 from 0 .. 1 and r2 from 0 .. 2, uniformly."""
        nn.init.uniform_(self.r1, 0, 1)
        nn.init.uniform_(self.r2, 0, 2)

    def forward(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        """Return the KERPLE bias, power variant.

        Args:
            query_positions: Positions of the queries, as in `kerple_log_bias`.
            key_positions: Positions of the keys, as in `kerple_log_bias`.

        Returns:
            The bias, shape `(..., heads, queries, keys)`.

        Raises:
            ValueError: If positions are invalid, as described for
                `kerple_log_bias`.
        """
        r1, r2 = _limited(self.r1), _limited(self.r2, 2)
        return kerple_power_bias(query_positions, key_positions, r1, r2)


def _parameters(heads: int) -> list[nn.Parameter]:
    if heads < 1:
        raise ValueError(f"heads must be at least 1, got {heads}")
    return [nn.Parameter(torch.empty(heads)) for _ in ("r1", "r2")]


def _limited(r: Tensor, most: float | None = None) -> Tensor:
    """Limit r to its range, but pass on its gradient outside it as well."""
    return r.detach().clamp(0.01, most) + (r - r.detach())


def _prepare(
    query_positions: Tensor, key_positions: Tensor, r1: Tensor, r2: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return distances, r1 and r2 in one dtype and in shapes that fit."""
    one = r1.ndim == 1 and len(r1) and r1.is_floating_point()
    if not one or r2.shape != r1.shape or r2.dtype != r1.dtype:
        raise ValueError(
            "r1 and r2 must be floating and (heads,), "
            f"got {r1.dtype} {tuple(r1.shape)} and {r2.dtype} {tuple(r2.shape)}"
        )
    dtype = torch.promote_types(r1.dtype, torch.float32)
    offsets = _offsets(query_positions, key_positions, r1.device)
    distance = offsets.abs().to(dtype)  # (..., queries, keys)
    # as one tensor, so that vmap over one of them may write into the result
    a, b = torch.stack((r1, r2)).to(dtype)[..., None, None]  # (heads, 1, 1)
    return distance[..., None, :, :], a, b


def _check_integers(name: str, *given: Tensor) -> None:
    whole = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    for each in given:
        tensor = isinstance(each, Tensor)
        kind = each.dtype if tensor else type(each).__name__
        if kind not in whole:
            raise ValueError(
                f"{name} must be integer tensors (uint8, int8, int16, int32 or "
                f"int64), got {kind}"
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
