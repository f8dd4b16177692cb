# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-22
"""Token embeddings plus any positional encoding that is added to them.

    x[t] = scale * tokens[id[t]] + encoding(position[t])

This file also computes the positions of padded or packed sequences, counted
from 0 at the first token of each document.

References:
    Vaswani et al. 2017, arXiv:1706.03762, section 3.4 (scale) and section 3.5.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn


def padded_positions(
    mask: Tensor,  # (..., tokens)
) -> Tensor:
    """Return the positions of the tokens in padded sequences.

    Padding has the position of the token before it; padding on the left has
    position 0. Attention must be masked for padding in any case.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        mask: True, or 1, where there is a token, shape `(..., tokens)`,
            integers or bool.

    Returns:
        Positions, shape `(..., tokens)`, int64.

    Raises:
        ValueError: If `mask` is not an integer or bool tensor, or has no axes.

    Example:
        >>> padded_positions(torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 0]]))
        tensor([[0, 0, 0, 1, 2],
                [0, 1, 2, 3, 3]])
    """
    _check_integers("mask", mask)
    count = mask.bool().cumsum(-1)  # (..., tokens)
    return (count - 1).clamp(min=0)  # (..., tokens)


def packed_positions(
    documents: Tensor,  # (..., tokens)
) -> Tensor:
    """Return the positions of the tokens in packed sequences.

    A new document begins wherever the document number changes.
    document_positions of decoding.py is the same function.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        documents: Document number of each token, shape `(..., tokens)`,
            integers or bool.

    Returns:
        Positions, shape `(..., tokens)`, int64, from 0 in each document.

    Raises:
        ValueError: If `documents` is not an integer or bool tensor, or has no
            axes.

    Example:
        >>> packed_positions(torch.tensor([7, 7, 7, 8, 8, 7]))
        tensor([0, 1, 2, 0, 1, 0])
    """
    _check_integers("documents", documents)
    tokens = documents.shape[-1]
    place = torch.arange(tokens, device=documents.device)  # (tokens)
    step = documents.diff(prepend=documents[..., :1])  # (..., tokens)
    start = ((step != 0) * place).cummax(-1).values  # (..., tokens)
    return place - start  # (..., tokens)


class Embed(nn.Module):
    """Map token ids and positions to the input of the first layer.

    If ids and positions are on the CPU and the module is not, each call copies
    them, and the host waits for the copy.

    Supports autocast, compile, export, vmap, per-sample gradients, mps; no
    host-device sync.

    Args:
        tokens: Token embeddings.
        add: Function or module that takes embeddings, shape
            `(..., tokens, dim)`, and positions, and returns their sum, such as
            AddSinusoidal or AddLearned.
        scale: Factor of the token embeddings: sqrt(dim) in the paper, whose
            encoding is sinusoidal; 1 in GPT-2 and BERT, which learn their
            positions.
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
        """Return the sum of the scaled embeddings and the encoding.

        Args:
            ids: Token ids, shape `(..., tokens)`.
            positions: Positions, as `add` takes them.

        Returns:
            The sum, shape `(..., tokens, dim)`. Errors of `tokens` and `add`
            are passed on.
        """
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
