# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""Learned positional encoding: add one trained vector per position.

    x[t] = token[t] + table[position[t]]

The table has a fixed length, and positions beyond it have no vector. Such
positions raise an error. Using the last row instead, or counting rows from the
end for a negative position, would silently give a wrong result.

References:
    Vaswani et al. 2017, arXiv:1706.03762, section 3.5 and table 3, row E.
    Initial values: github.com/openai/gpt-2 at 9b63575, src/model.py (wpe), and
    github.com/google-research/bert at eedf571, modeling.py
    (create_initializer).
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding


def learned_encoding(
    positions: Tensor,
    table: Tensor,  # (length, dim)
) -> Tensor:
    """Return the row of the table for each position.

    Positions on the CPU are compared with the length of the table; they may
    stay there whatever the device of the table. If `positions` are on the CPU
    and the table is not, each call copies them, and the host waits for the
    copy.

    Positions are not compared on another device, where the host would have to
    wait, in a compiled graph, which would break, or under vmap or as fake
    tensors, which have no readable values. There the lookup itself raises
    torch's own error; on CUDA it is a device-side assertion. In two cases, it
    may raise no error. On MPS, torch has returned rows of zeros
    (github.com/pytorch/pytorch/issues/144824): leave `positions` on the CPU. If
    vmap maps over tables as well, torch returns rows of the next table: make
    sure that the positions are in range.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        positions: Positions from 0 to length - 1, any shape `(...)`; uint8 or
            int8 to int64.
        table: One vector per position, shape `(length, dim)`.

    Returns:
        The vectors, shape `(..., dim)`, with the dtype and device of `table`.

    Raises:
        ValueError: If `positions` is not an integer tensor, contains on the CPU
            a position that the table does not have, or `table` does not have
            two axes.

    Example:
        >>> table = torch.tensor([[0.0, 0.5], [1.0, 1.5], [2.0, 2.5]])
        >>> learned_encoding(torch.tensor([2, 0]), table)
        tensor([[2.0000, 2.5000],
                [0.0000, 0.5000]])
    """
    tensor = isinstance(positions, Tensor)
    given = positions.dtype if tensor else type(positions).__name__
    whole = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    if given not in whole:
        raise ValueError(
            f"positions must be a tensor of uint8 or int8 to int64, got {given}"
        )
    if table.ndim != 2:
        raise ValueError(
            f"table must be (length, dim), got {tuple(table.shape)}"
        )
    positions = positions.long()
    if positions.device.type == "cpu" and not torch.compiler.is_compiling():
        _check_range(positions, len(table))
    return embedding(positions.to(table.device), table)  # (..., dim)


class AddLearned(nn.Module):
    """Add a learned vector for each position to token embeddings.

    If `positions` are on the CPU and the table is not, each call copies them,
    and the host waits for the copy.

    Supports autocast, compile, export, vmap, per-sample gradients, mps; no
    host-device sync.

    Args:
        length: Number of positions in the table; at least 1.
        dim: Number of channels of the embeddings; at least 1.
        init: Model whose initialisation the table gets: "gpt2" is a normal
            distribution with standard deviation 0.01, "bert" a normal
            distribution with standard deviation 0.02, truncated at twice that.

    Raises:
        ValueError: If `length` or `dim` is less than 1, or `init` is unknown.
    """

    def __init__(self, length: int, dim: int, init: str = "gpt2"):
        super().__init__()
        if length < 1 or dim < 1:
            raise ValueError(
                f"length and dim must be at least 1, got {length} and {dim}"
            )
        if init not in ("gpt2", "bert"):
            raise ValueError(f"init must be 'gpt2' or 'bert', got {init!r}")
        self.dim = dim
        self.init = init
        self.table = nn.Parameter(torch.empty(length, dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the table again."""
        if self.init == "gpt2":
            nn.init.normal_(self.table, std=0.01)
        else:
            nn.init.trunc_normal_(self.table, std=0.02, a=-0.04, b=0.04)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        """Return the sum of embeddings and vectors.

        Args:
            x: Token embeddings, shape `(..., tokens, dim)`, floating-point.
            positions: Position of each token: `(tokens,)` if all sequences
                share them, or the leading shape of `x`, `(..., tokens)`, for
                left padding and packing, where any axis but the last may be 1;
                uint8 or int8 to int64, from 0 to `length - 1`.

        Returns:
            The sum, with the shape and dtype of `x`.

        Raises:
            ValueError: In the cases listed for `learned_encoding`, or if `x` or
                `positions` has a wrong shape or `x` is not floating-point.
        """
        if not x.is_floating_point():
            raise ValueError(
                f"x must have a floating-point dtype, got {x.dtype}"
            )
        if x.ndim == 0 or x.shape[-1] != self.dim:
            shape = tuple(x.shape)
            raise ValueError(f"x must be (..., {self.dim}), got {shape}")
        encoding = learned_encoding(positions, self.table)  # (..., dim)
        _check_shape(positions, x)
        new = (None,) * (x.ndim - encoding.ndim)  # no sum for a batch of 1
        return x + encoding.to(x.dtype)[new]


def _check_range(positions: Tensor, length: int) -> None:
    try:
        low, high = map(int, positions.aminmax())
    except RuntimeError:  # none, or their numbers cannot be read
        return
    if low < 0 or high >= length:
        raise ValueError(
            f"positions must be 0 to {length - 1}, got {low} to {high}"
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
