# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""Gated encoding: each token scales the positional encoding added to it.

    gate[t] = sigmoid(weight . token[t] + bias)
    x[t]    = token[t] + gate[t] * encoding(position[t])

The gate is one number between 0 and 1 for each token. It scales the encoding
and cannot change it otherwise: where it is 0, the token has no position.

This is a module for learning, not a paper's method. Three bugs occur in other
implementations. (1) A factor computed from the length of the text, such as
torch.log(length) or torch.sigmoid(length / 512): torch's functions take tensors
and raise TypeError for a plain number. (2) Positions that are divided by that
length: each additional token then changes the encodings of earlier tokens, and
decoding with a cache gives wrong results. (3) A gate that depends on the mean
of the text: in a causal model, tokens then receive information about later
ones.

References:
    No paper of its own. The gated encoding is one that is added to the tokens,
    as in Vaswani et al. 2017, arXiv:1706.03762, section 3.5.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn


def gated_encoding(
    x: Tensor,  # (..., tokens, dim)
    encoding: Tensor,  # (..., tokens, dim)
    weight: Tensor,  # (dim)
    bias: Tensor,  # ()
) -> Tensor:
    """Return the gated encoding to add to each token.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        x: Token embeddings, shape `(..., tokens, dim)`, floating-point.
        encoding: Positional encoding, `(tokens, dim)` for all sequences, or in
            the shape of `x`, where any axis but the last two may be 1.
        weight: Weight of the gate, shape `(dim,)`.
        bias: Bias of the gate, shape `()`.

    Returns:
        The gated encoding, with the shape and dtype of `x`.

    Raises:
        ValueError: If `x` is not floating-point or its shape does not match
            `weight`, `weight` or `bias` does not have the shape described
            above, or the shape of `encoding` does not match that of `x`.

    Example:
        >>> x = torch.tensor([[0.0, 0.0], [0.0, 9.0], [0.0, -9.0]])
        >>> weight, bias = torch.tensor([0.0, 1.0]), torch.tensor(0.0)
        >>> gated_encoding(x, torch.ones(3, 2), weight, bias)
        tensor([[5.0000e-01, 5.0000e-01],
                [9.9988e-01, 9.9988e-01],
                [1.2339e-04, 1.2339e-04]])
    """
    if weight.ndim != 1 or bias.ndim != 0:
        raise ValueError(
            "weight must be (dim,) and bias (), "
            f"got {tuple(weight.shape)} and {tuple(bias.shape)}"
        )
    dim, shape = len(weight), tuple(x.shape)
    if not x.is_floating_point():
        raise ValueError(f"x must have a floating-point dtype, got {x.dtype}")
    if x.ndim < 2 or shape[-1] != dim:
        raise ValueError(f"x must be (..., tokens, {dim}), got {shape}")
    have = tuple(encoding.shape)
    fits = len(have) in (2, len(shape)) and have[-2:] == shape[-2:]
    axes = zip(have[:-2], shape, strict=False)
    if not fits or any(n not in (1, of) for n, of in axes):
        raise ValueError(
            f"encoding must be {shape[-2:]} or {shape}, where any axis but the "
            f"last two may be 1, got {have}"
        )
    # no matrix product: under autocast it would make coarse gates
    gate = torch.sigmoid((x * weight).sum(-1) + bias)  # (..., tokens)
    gate = gate.to(x.dtype)[..., None]  # (..., tokens, 1)
    return gate * encoding.to(x.device, x.dtype)  # (..., tokens, dim)


class AddGated(nn.Module):
    """Add a gated encoding of each position to token embeddings.

    The weight and the bias of the gate are initialised to 0, so that at first
    every token receives one half of its encoding. FSDP shards no scalars, and
    this bias is one: configure FSDP to ignore it, and average its gradient over
    the ranks yourself.

    If positions are on the CPU and the module is not, each call copies them,
    and the host waits for the copy.

    Supports autocast, compile, export, vmap, per-sample gradients, mps; no
    host-device sync.

    Args:
        dim: Number of channels of the embeddings; at least 1.
        encode: Function or module that maps positions, shape `(...)`, to
            encodings, shape `(..., dim)`, such as sinusoidal_encoding for a
            `dim`, or nn.Embedding.

    Raises:
        ValueError: If `dim` is less than 1.

    Example:
        >>> add = AddGated(2, lambda at: torch.stack([at] * 2, -1))
        >>> add(torch.zeros(3, 2), torch.arange(3))
        tensor([[0.0000, 0.0000],
                [0.5000, 0.5000],
                [1.0000, 1.0000]], grad_fn=<AddBackward0>)
    """

    def __init__(self, dim: int, encode: Callable[[Tensor], Tensor]):
        super().__init__()
        if dim < 1:
            raise ValueError(f"dim must be at least 1, got {dim}")
        self.encode = encode
        self.weight = nn.Parameter(torch.empty(dim))
        self.bias = nn.Parameter(torch.empty(()))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight and the bias of the gate to 0."""
        nn.init.zeros_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        """Return the sum of embeddings and gated encoding.

        Args:
            x: Token embeddings, shape `(..., tokens, dim)`, floating-point.
            positions: Positions, `(tokens,)` for all sequences, or in the
                leading shape of `x`, where any axis but the last may be 1.

        Returns:
            The sum, with the shape and dtype of `x`.

        Raises:
            ValueError: In the cases listed for `gated_encoding`, or if `encode`
                rejects the positions.
        """
        encoding = self.encode(positions)  # (..., dim)
        return x + gated_encoding(x, encoding, self.weight, self.bias)
