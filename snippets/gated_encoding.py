# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-23
"""Gated encoding: each token decides how much of its position is added to it.

    gate[t] = sigmoid(weight . token[t] + bias)
    x[t]    = token[t] + gate[t] * encoding(position[t])

The gate is one number between 0 and 1 for each token. It scales the encoding
and cannot change it: where it is 0, the token has no place at all.

This is a module for learning, not a paper's method. Look for three faults where
it is written elsewhere. A factor from the length of the text, such as
torch.log(length) or torch.sigmoid(length / 512): torch's functions want tensors
and raise TypeError for a plain number. Positions that are divided by that
length: each further token then changes the encodings of those before it, and
decoding with a cache goes wrong. A gate that sees the mean of the text: in a
causal model, tokens learn of later ones from it.

Source: no paper of its own. What is gated is an encoding that is added to the
tokens, as in arXiv:1706.03762, section 3.5.
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
    """What is added to each token: (..., tokens, dim), of the dtype of x.

    encoding is (tokens, dim) for all rows alike or has the shape of x, where
    any axis but the last two may be 1.

    >>> x = torch.tensor([[0.0, 0.0], [0.0, 9.0], [0.0, -9.0]])
    >>> weight, bias = torch.tensor([0.0, 1.0]), torch.tensor(0.0)
    >>> gated_encoding(x, torch.ones(3, 2), weight, bias)
    tensor([[5.0000e-01, 5.0000e-01],
            [9.9988e-01, 9.9988e-01],
            [1.2339e-04, 1.2339e-04]])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: x not of a floating dtype, or not (..., tokens, dim) for the dim
    of weight; weight or bias of another shape; an encoding that does not fit x.
    """
    if weight.ndim != 1 or bias.ndim != 0:
        raise ValueError(
            "weight must be (dim,) and bias (), "
            f"got {tuple(weight.shape)} and {tuple(bias.shape)}"
        )
    dim, shape = len(weight), tuple(x.shape)
    if not x.is_floating_point():
        raise ValueError(f"x must be of a floating dtype, got {x.dtype}")
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
    """Token embeddings plus a gated encoding of their positions: like x.

    encode makes an encoding of positions: (..., dim) for (...). It may be a
    function, such as sinusoidal_encoding for a dim, or a module, such as
    nn.Embedding. positions is (tokens,) for all rows alike or has the leading
    shape of x, where any axis but the last may be 1. At first the weight and
    the bias of the gate are 0, so that every token takes one half. FSDP shards
    no scalars, as this bias is: have it ignore it, and average its gradient
    over the ranks yourself.

    >>> add = AddGated(2, lambda positions: torch.stack([positions] * 2, -1))
    >>> add(torch.zeros(3, 2), torch.arange(3))
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [1.0000, 1.0000]], grad_fn=<AddBackward0>)

    Positions left on the CPU are copied in each call: the host waits for that.

    Fit for autocast, compile, export, vmap, gradients per sample, mps; no sync.

    ValueError: as gated_encoding; what encode refuses; dim below 1.
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
        nn.init.zeros_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        encoding = self.encode(positions)  # (..., dim)
        return x + gated_encoding(x, encoding, self.weight, self.bias)
