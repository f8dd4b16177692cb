# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""FIRE: a small network maps a normalised log-distance to a bias.

    bias[h, i, j] = mlp(psi(i - j) / psi(max(L, i)))[h]   for keys j <= i
    psi(x)        = log(1 + c x)

The input of the network lies in 0 .. 1 for texts of any length. Up to position
L it depends only on i - j, beyond L also on the position. The network, c > 0
and L > 0 are learned. The bias is added to the scaled score.

References:
    arXiv:2310.04418.
    The network, the initial values, |c|, |L| and epsilon: class FIRE in
    github.com/chuanyang-Zheng/DAPE at bde344a, DAPE.py, and in
    github.com/mcleish7/arithmetic at 86022a5,
    cramming/architectures/embeddings.py.
"""

import math

import torch
from torch import Tensor, nn


class FireBias(nn.Module):
    """Compute the causal FIRE bias with a learned network.

    L, in tokens, is `init_L` times `L_multiplier`, which is learned. The bias
    is computed in float32 or wider, whatever the dtype of the parameters, also
    under autocast. At its peak this takes `hidden` numbers per query and key in
    addition to the result.

    FSDP shards no scalars, and `c` and `L_multiplier` are scalars, as in the
    released code: configure FSDP to ignore them, and average their gradients
    over the ranks yourself.

    If positions are on the CPU and the module is not, each call copies them,
    and the host waits for the copy.

    Supports autocast, compile, export, vmap, per-sample gradients, mps; no
    host-device sync.

    Args:
        heads: Number of heads; at least 1.
        hidden: Width of the hidden layer; at least 1.
        c: Initial value of c; positive and finite.
        init_L: Initial value of L, in tokens; positive and finite.

    Raises:
        ValueError: If `heads` or `hidden` is less than 1, or `c` or `init_L` is
            not positive and finite.

    Example:
        >>> fire = FireBias(heads=2)
        >>> fire(torch.tensor([2]), torch.arange(4)).isneginf()
        tensor([[[False, False, False,  True]],
        <BLANKLINE>
                [[False, False, False,  True]]])
    """

    def __init__(
        self,
        heads: int,
        hidden: int = 32,
        c: float = 0.1,
        init_L: float = 512.0,
    ):
        super().__init__()
        if heads < 1 or hidden < 1:
            raise ValueError(
                f"heads and hidden must be at least 1, got {heads} and {hidden}"
            )
        if not (0 < c < math.inf and 0 < init_L < math.inf):
            raise ValueError(
                f"c and init_L must be positive, got {c} and {init_L}"
            )
        self.init_c, self.init_L = c, init_L
        self.c = nn.Parameter(torch.empty(()))
        self.L_multiplier = nn.Parameter(torch.empty(()))
        self.mlp = nn.Sequential(
            nn.Linear(1, hidden), nn.ReLU(), nn.Linear(hidden, heads)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set c and L_multiplier to their initial values.

        The layers have their own method.
        """
        nn.init.constant_(self.c, self.init_c)
        nn.init.ones_(self.L_multiplier)

    def forward(
        self,
        query_positions: Tensor,  # (..., queries)
        key_positions: Tensor,  # (..., keys)
    ) -> Tensor:
        """Return the causal FIRE bias.

        Args:
            query_positions: Positions in tokens, integers from 0 on, shape
                `(queries,)` if all sequences share them, `(1, queries)` or
                `(batch, queries)`. May stay on the CPU.
            key_positions: The same for the keys, shape `(keys,)`, `(1, keys)`
                or `(batch, keys)`, with the same leading axes.

        Returns:
            The bias, shape `(..., heads, queries, keys)`, in the dtype of the
            parameters; -inf for later keys.

        Raises:
            ValueError: If positions are not integer tensors or their shapes do
                not match.
        """
        offsets = _offsets(query_positions, key_positions, self.c.device)
        dtype = torch.promote_types(self.c.dtype, torch.float32)
        c = self.c.to(dtype).abs()
        L = (self.L_multiplier.to(dtype) * self.init_L).abs()
        distance = (-offsets).clamp(min=0).to(dtype)  # (..., queries, keys)
        reach = query_positions.to(L.device, dtype).maximum(L)
        whole = (c * reach).log1p()[..., None] + 1e-6  # (..., queries, 1)
        share = (c * distance).log1p() / whole  # (..., queries, keys)
        # mlp with all pairs in the last axis, so that each head is contiguous
        (w1, b1), (w2, b2) = (
            (layer.weight.to(dtype), layer.bias.to(dtype)[:, None])
            for layer in self.mlp
            if isinstance(layer, nn.Linear)
        )
        pairs, where = share.reshape(1, -1), share.device.type
        with torch.autocast("cpu" if share.is_meta else where, enabled=False):
            inner = torch.addmm(b1, w1, pairs).relu_()  # (hidden, pairs)
            bias = torch.addmm(b2, w2, inner)  # (heads, pairs)
        bias.masked_fill_((offsets > 0).flatten(), -math.inf)
        bias = bias.unflatten(1, offsets.shape).movedim(0, -3)
        return bias.to(self.c.dtype)  # (..., heads, queries, keys)


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
