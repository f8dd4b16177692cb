# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-23
"""Checks of position for your own model: numbers without a unit.

Each compares like with like: a change with a change, a distance with others,
weights with equal weights. Shapes that do not fit are refused with a ValueError
that says what was expected.

Source: arXiv:2104.09864, section 3.1 (scores by offset); arXiv:2108.12409,
section 1 (what extrapolation is). The numbers are of this guide's own making.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def relativity_error(
    score: Callable[[Tensor, Tensor], Tensor],
    positions: Tensor,  # (tokens)
    shifts: Sequence[int] = (1, 10, 100),
) -> Tensor:
    """How much scores change if all move, by how much if keys trade places: ().

    score takes the positions of queries and of keys, for contents that stay,
    and gives (..., tokens, tokens), -inf where a key is hidden. What all keys
    of a query share does not count, as in softmax. 0 if offsets alone count, of
    the order of 1 for a random table; the worst shift decides. inf if a shift
    hides other keys, or changes scores that trading places does not; nan if
    neither changes any that stays visible: only what is hidden tells places.

    >>> relativity_error(lambda i, j: -abs(i[:, None] - j) / 8, torch.arange(9))
    tensor(0., dtype=torch.float64)
    """
    _expect(positions.ndim == 1, "positions", "(tokens,)", positions.shape)
    _expect(any(shifts), "shifts", "one number or more, not all 0", shifts)
    here, n = score(positions, positions), len(positions)
    _expect(here.shape[-2:] == (n, n), "scores", f"(..., {n}, {n})", here.shape)
    moved = [score(positions + s, positions + s) for s in shifts]
    changes = [_change(here, there) for there in moved]
    drift = [gap.where(seen, torch.inf) for gap, seen in changes]
    traded, _ = _change(here, score(positions, positions.flip(0)))
    return torch.stack(drift).max() / traded


def row_similarity(
    encoding: Tensor,  # (positions, dim)
) -> Tensor:
    """Cosines of the rows, seen from their mean: (positions, positions).

    Rows that differ by rounding alone get 1; a row that is the mean, up to
    rounding, gets 0 with all others. Their angles would be noise. Whether all
    numbers are finite is not checked in a compiled graph.

    >>> row_similarity(torch.tensor([[2.0, 7.0], [2.0, 9.0], [2.0, 7.0]]))[0]
    tensor([ 1., -1.,  1.], dtype=torch.float64)
    """
    apart, rows = _apart(encoding)
    if not torch.compiler.is_compiling():  # there it would break the graph
        finite = bool(encoding.isfinite().all())
        _expect(finite, "encoding", "finite", "nan or inf")
    length = rows.norm(dim=-1, keepdim=True)  # (positions, 1)
    rows = rows / length.where(length > 0, 1.0)  # (positions, dim)
    return (rows @ rows.mT).where(apart > 0, 1.0)  # (positions, positions)


def row_margin(
    encoding: Tensor,  # (positions, dim)
) -> Tensor:
    """Distance of the nearest two rows, by the rms of all pairs: ().

    0 if any two are equal up to rounding. n rows at even steps, a ramp, have
    sqrt(6 / (n (n + 1))); random rows of many dimensions nearly 1.

    >>> row_margin(torch.tensor([[0.0], [1.0], [2.0]]))
    tensor(0.7071, dtype=torch.float64)
    """
    apart, _ = _apart(encoding)
    near = (
        apart + torch.diag(apart.new_full(apart.shape[:1], torch.inf))
    ).min()
    pairs = len(apart) * (len(apart) - 1)
    typical = (apart.square().sum() / pairs).sqrt()
    return near / typical.where(near > 0, 1.0)


def skill_beyond(
    losses: Tensor,  # (positions)
    trained: int,
    guess: float,
    block: int = 64,
) -> Tensor:
    """What is left of the skill in each block beyond trained: (blocks,).

    losses are means over many texts at each position; guess is the loss of a
    guess: by how frequent words are, or log(vocabulary) if all are alike. 1 is
    as good as the second half of trained, 0 a guess, below 0 worse than that;
    nan if there was no skill to lose.

    >>> skill_beyond(torch.tensor([4.0, 2, 2, 3, 5]), 3, guess=4.0, block=1)
    tensor([ 0.5000, -0.5000])
    """
    _expect(losses.ndim == 1, "losses", "(positions,)", losses.shape)
    most = len(losses) - 1
    _expect(0 < trained <= most, "trained", f"1 to {most}", trained)
    _expect(block > 0, "block", "1 or more", block)
    inside = guess - losses[trained // 2 : trained].mean()
    parts = torch.stack([p.mean() for p in losses[trained:].split(block)])
    return ((guess - parts) / inside).where(inside > 0, torch.nan)  # (blocks)


def attention_mass(
    weights: Tensor,  # (..., queries, keys)
    steps: Tensor,  # (queries, keys)
    visible: Tensor,  # (queries, keys)
    reach: int = 32,
) -> tuple[Tensor, Tensor]:
    """The weight at each step, and that of equal weights: two (..., bins).

    Of a query the sum of a bin, and of queries the mean; all bins make 1. steps
    is query minus key position: bin [..., reach] is step 0, those after it look
    back, those before it ahead; the two outermost hold all beyond.
    visible is True where the mask shows a key; rows without any do not count,
    whatever softmax made of them. Added up in float64.

    >>> i = torch.arange(2)
    >>> steps = i[:, None] - i
    >>> attention_mass(torch.eye(2), steps, visible=steps >= 0, reach=1)
    (tensor([0., 1., 0.]), tensor([0.0000, 0.7500, 0.2500]))
    """
    for name, given in (("steps", steps), ("visible", visible)):
        want = tuple(weights.shape[-2:])
        _expect(given.shape == want, name, want, given.shape)
    _expect(reach > 0, "reach", "1 or more", reach)
    bins = (steps.clamp(-reach, reach) + reach).flatten()
    rows = visible.any(-1, keepdim=True)  # (queries, 1)
    equal = visible.double() / visible.sum(-1, keepdim=True).clamp(min=1)
    made = []
    for each in (weights, equal):
        flat = (each.double().where(rows, 0.0) / rows.sum()).flatten(-2)
        empty = flat.new_zeros(*flat.shape[:-1], 2 * reach + 1)
        made.append(empty.index_add(-1, bins, flat).to(weights.dtype))
    mass, even = made  # (..., 2*reach + 1), (2*reach + 1)
    return mass, even.expand_as(mass)


def _change(here: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
    """Rms change, less what the keys of a query share; are the same hidden?"""
    hidden = here.isneginf() | there.isneginf()
    gap = (there.double() - here.double()).masked_fill(hidden, 0)
    count = (~hidden).sum(-1, keepdim=True)
    gap = (gap - gap.sum(-1, keepdim=True) / count).masked_fill(hidden, 0)
    same = (here.isneginf() == there.isneginf()).all()
    return (gap.square().sum() / count.sum()).sqrt(), same


def _apart(encoding: Tensor) -> tuple[Tensor, Tensor]:
    """Distances of rows, and the rows from their mean; 0 within rounding."""
    shape, dtype = tuple(encoding.shape), encoding.dtype
    fits = len(shape) == 2 and shape[0] > 1 and shape[1] > 0
    fits = fits and dtype.is_floating_point
    want = "(2 positions or more, dim) of a floating dtype"
    _expect(fits, "encoding", want, f"{shape} of {dtype}")
    rounding = torch.finfo(dtype).eps * encoding.abs().max() * shape[1] ** 0.5
    rows = encoding.double() - encoding.double().mean(0)
    apart = torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist")
    at_mean = rows.norm(dim=-1, keepdim=True) <= rounding  # (positions, 1)
    rows = rows.masked_fill(at_mean, 0)  # (positions, dim)
    return apart.masked_fill(apart <= rounding, 0), rows


def _expect(fits: bool, name: str, wanted: object, got: object) -> None:
    if not fits:
        got = tuple(got) if isinstance(got, torch.Size) else got
        raise ValueError(f"{name} must be {wanted}, got {got}")
