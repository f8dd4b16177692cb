# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-23
"""Learned positions: a table with one trained vector for each position.

    x[t] = token[t] + table[position[t]]

The table has an end, and nothing is known of the positions beyond it. They are
refused: the last row in their place, or a row counted from the end for a
negative position, would be a wrong result that nobody sees.

Source: arXiv:1706.03762, section 3.5 and table 3, row E. Initial values:
github.com/openai/gpt-2 at 9b63575, src/model.py (wpe), and
github.com/google-research/bert at eedf571, modeling.py (create_initializer).
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding


def learned_encoding(
    positions: Tensor,
    table: Tensor,  # (length, dim)
) -> Tensor:
    """The row of each position: (..., dim) for positions of (...).

    Positions may stay on the CPU, whatever the device of the table: there they
    are compared with its length. On another device that would make the host
    wait, in a compiled graph it would break the graph, and under vmap or as
    fake tensors they show no numbers. There the lookup itself refuses, in
    torch's words; on CUDA by a device-side assertion. Not always on mps, where
    torch has given rows of zeros (github.com/pytorch/pytorch/issues/144824):
    leave positions on the CPU. Nor where vmap goes over tables as well: there
    torch gives rows of the next table, so see to it that positions fit.

    >>> table = torch.tensor([[0.0, 0.5], [1.0, 1.5], [2.0, 2.5]])
    >>> learned_encoding(torch.tensor([2, 0]), table)
    tensor([[2.0000, 2.5000],
            [0.0000, 0.5000]])

    Positions left on the CPU are copied in each call: the host waits for that.

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: positions that are no tensor of integers; positions on the CPU
    that the table does not have; a table of other axes.
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
    """Token embeddings plus the learned vector of their positions: like x.

    x is (..., tokens, dim); positions is (tokens,) for all rows alike or has
    the leading shape of x, as left padding and packing need, where any axis but
    the last may be 1. init names the model whose initial values the table gets:
    "gpt2" draws from a normal distribution of standard deviation 0.01, "bert"
    from one of 0.02 that is cut off at twice that.

    Positions left on the CPU are copied in each call: the host waits for that.

    Fit for autocast, compile, export, vmap, gradients per sample, mps; no sync.

    ValueError: as learned_encoding; length or dim below 1; another init; x or
    positions of another shape; x not of a floating dtype.
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
        if self.init == "gpt2":
            nn.init.normal_(self.table, std=0.01)
        else:
            nn.init.trunc_normal_(self.table, std=0.02, a=-0.04, b=0.04)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        if not x.is_floating_point():
            raise ValueError(f"x must be of a floating dtype, got {x.dtype}")
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
    except RuntimeError:  # there are none, or they show no numbers
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
