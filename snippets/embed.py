# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-22
"""Embed: token embeddings plus any position encoding that is added to them.

    x[t] = scale * tokens[id[t]] + encoding(position[t])

and the positions of rows that are padded or packed, counted from 0 at the first
token of each document.

Source: arXiv:1706.03762, section 3.4 (scale) and section 3.5.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn


def padded_positions(
    mask: Tensor,  # (..., tokens)
) -> Tensor:
    """Positions in rows with padding: (..., tokens), int64.

    mask is True, or 1, where there is a token. Padding gets the position of the
    token before it, on the left 0: attention must not look at it anyway.

    >>> padded_positions(torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 0]]))
    tensor([[0, 0, 0, 1, 2],
            [0, 1, 2, 3, 3]])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: mask no tensor of integers or bool, or without axes.
    """
    _check_integers("mask", mask)
    count = mask.bool().cumsum(-1)  # (..., tokens)
    return (count - 1).clamp(min=0)  # (..., tokens)


def packed_positions(
    documents: Tensor,  # (..., tokens)
) -> Tensor:
    """Positions in rows of several documents: (..., tokens), int64.

    documents has the number of each token's document; where it changes, a new
    document begins. document_positions of decoding.py is the same function.

    >>> packed_positions(torch.tensor([7, 7, 7, 8, 8, 7]))
    tensor([0, 1, 2, 0, 1, 0])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: documents no tensor of integers or bool, or without axes.
    """
    _check_integers("documents", documents)
    tokens = documents.shape[-1]
    place = torch.arange(tokens, device=documents.device)  # (tokens)
    step = documents.diff(prepend=documents[..., :1])  # (..., tokens)
    start = ((step != 0) * place).cummax(-1).values  # (..., tokens)
    return place - start  # (..., tokens)


class Embed(nn.Module):
    """Ids and positions to the vectors that the first layer takes: (..., dim).

    add takes embeddings (..., tokens, dim) and positions, and returns their
    sum: AddSinusoidal and AddLearned do. scale multiplies the token
    embeddings: sqrt(dim) in the paper, whose encoding is sinusoidal; 1 in GPT-2
    and BERT, which learn their positions. ids is (..., tokens), positions
    what add takes; what they refuse is refused.

    Ids and positions left on the CPU are copied in each call: the host waits
    for that.

    Fit for autocast, compile, export, vmap, gradients per sample, mps; no sync.
    """

    def __init__(
        self,
        tokens: nn.Embedding,
        add: Callable[[Tensor, Tensor], Tensor],
        scale: float = 1.0,
    ):
        super().__init__()
        self.tokens = tokens
        self.add = add
        self.scale = scale

    def forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        return self.add(self.scale * self.tokens(ids), positions)


def _check_integers(name: str, given: Tensor) -> None:
    whole = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    tensor = isinstance(given, Tensor)
    kind = given.dtype if tensor else type(given).__name__
    if kind not in (torch.bool, *whole):
        raise ValueError(
            f"{name} must be a tensor of bool, uint8 or int8 to int64, "
            f"got {kind}"
        )
    if given.ndim < 1:
        raise ValueError(f"{name} must be (..., tokens), got ()")
