# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""Diagnostics of position for your own model: numbers without a unit.

Each number compares two quantities of the same kind: a change with a change, a
distance with other distances, weights with equal weights. Wrong shapes raise a
ValueError that names the expected shape.

References:
    Scores by offset: Su et al. 2021, arXiv:2104.09864, section 3.1.
    Definition of extrapolation: Press et al. 2021, arXiv:2108.12409, section 1.
    The numbers themselves are this guide's own.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def shift_invariance_error(
    score: Callable[[Tensor, Tensor], Tensor],
    positions: Tensor,  # (tokens)
    shifts: Sequence[int] = (1, 10, 100),
) -> Tensor:
    """Return how much attention scores change under shifts of all positions.

    The root mean square change under a shift is divided by the change when keys
    swap positions. A constant that is added to the scores of all keys of a
    query is ignored, as in softmax.

    Args:
        score: Function of the positions of queries and of keys, for fixed
            content, that returns scores, shape `(..., tokens, tokens)`, with
            -inf where a key is hidden.
        positions: Positions, shape `(tokens,)`.
        shifts: Offsets by which all positions are shifted, not all 0. The
            largest error counts.

    Returns:
        The error, a scalar: 0 if scores depend only on offsets, of the order of
        1 for a random table; inf if a shift changes which keys are hidden, or
        changes scores that swapping keys does not change; nan if neither
        changes any visible score, so that only hidden keys depend on positions.

    Raises:
        ValueError: If `positions`, `shifts` or the scores do not have the
            shapes or values described above.

    Example:
        >>> score = lambda i, j: -abs(i[:, None] - j) / 8
        >>> shift_invariance_error(score, torch.arange(9))
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
    """Return the cosine similarity of the rows of an encoding, from their mean.

    Rows that differ only by rounding have similarity 1; a row that is the mean,
    up to rounding, has 0 with all other rows. Their angles would be noise.
    Whether all numbers are finite is not checked in a compiled graph.

    Args:
        encoding: One row per position, shape `(positions, dim)`, with at least
            2 positions, floating-point.

    Returns:
        Cosines, shape `(positions, positions)`, float64.

    Raises:
        ValueError: If `encoding` does not have the shape or dtype described
            above, or is not finite.

    Example:
        >>> encoding = torch.tensor([[2.0, 7.0], [2.0, 9.0], [2.0, 7.0]])
        >>> row_similarity(encoding)[0]
        tensor([ 1., -1.,  1.], dtype=torch.float64)

    """
    apart, rows = _apart(encoding)
    if not torch.compiler.is_compiling():  # there it would break the graph
        finite = bool(encoding.isfinite().all())
        _expect(finite, "encoding", "finite", "nan or inf")
    length = rows.norm(dim=-1, keepdim=True)  # (positions, 1)
    rows = rows / length.where(length > 0, 1.0)  # (positions, dim)
    return (rows @ rows.mT).where(apart > 0, 1.0)  # (positions, positions)


def min_row_distance(
    encoding: Tensor,  # (positions, dim)
) -> Tensor:
    """Return the distance of the two nearest rows, relative to all pairs.

    The distance is divided by the root mean square distance of all pairs.

    Args:
        encoding: One row per position, shape `(positions, dim)`, with at least
            2 positions, floating-point.

    Returns:
        The distance, a scalar, float64: 0 if any two rows are equal up to
        rounding; sqrt(6 / (n (n + 1))) for n rows at even steps, a ramp; almost
        1 for random rows of many dimensions.

    Raises:
        ValueError: If `encoding` does not have the shape or dtype described
            above.

    Example:
        >>> min_row_distance(torch.tensor([[0.0], [1.0], [2.0]]))
        tensor(0.7071, dtype=torch.float64)

    """
    apart, _ = _apart(encoding)
    near = (
        apart + torch.diag(apart.new_full(apart.shape[:1], torch.inf))
    ).min()
    pairs = len(apart) * (len(apart) - 1)
    typical = (apart.square().sum() / pairs).sqrt()
    return near / typical.where(near > 0, 1.0)


def extrapolation_skill(
    losses: Tensor,  # (positions)
    training_length: int,
    baseline_loss: float,
    block: int = 64,
) -> Tensor:
    """Return the fraction of skill that remains beyond the training length.

    Args:
        losses: Mean loss over many texts at each position, shape
            `(positions,)`.
        training_length: Training length in tokens, from 1 to the number of
            positions less 1.
        baseline_loss: Loss of a guess that ignores the context: by the
            frequencies of the tokens, or log(vocabulary) if all are equally
            frequent.
        block: Number of positions in a block; at least 1.

    Returns:
        The fraction for each block beyond `training_length`, shape `(blocks,)`:
        1 is as good as the second half of the training length, 0 is a guess,
        below 0 is worse than a guess; nan if there was no skill to lose.

    Raises:
        ValueError: If an argument is not as described above.

    Example:
        >>> losses = torch.tensor([4.0, 2, 2, 3, 5])
        >>> extrapolation_skill(losses, 3, baseline_loss=4.0, block=1)
        tensor([ 0.5000, -0.5000])

    """
    _expect(losses.ndim == 1, "losses", "(positions,)", losses.shape)
    most = len(losses) - 1
    _expect(
        0 < training_length <= most,
        "training_length",
        f"1 to {most}",
        training_length,
    )
    _expect(block > 0, "block", "1 or more", block)
    inside = (
        baseline_loss - losses[training_length // 2 : training_length].mean()
    )
    parts = torch.stack(
        [p.mean() for p in losses[training_length:].split(block)]
    )
    return ((baseline_loss - parts) / inside).where(
        inside > 0, torch.nan
    )  # (blocks)


def attention_mass(
    weights: Tensor,  # (..., queries, keys)
    steps: Tensor,  # (queries, keys)
    visible: Tensor,  # (queries, keys)
    reach: int = 32,
) -> tuple[Tensor, Tensor]:
    """Return the attention weight at each distance, and that of equal weights.

    For a query, the weights of a bin are added up, and the result is the mean
    over queries; all bins sum to 1. Queries without a visible key do not count,
    whatever softmax returned for them. Sums are computed in float64.

    Args:
        weights: Attention weights, shape `(..., queries, keys)`.
        steps: Query minus key position, shape `(queries, keys)`.
        visible: True where the mask shows a key, shape `(queries, keys)`.
        reach: Distance of the outermost bins; at least 1. Bin [..., reach] is
            step 0; later bins look back, earlier bins ahead; the two outermost
            bins also contain everything beyond.

    Returns:
        The weight in each bin, and the weight if all weights were equal, each
        of shape `(..., bins)` with 2 reach + 1 bins.

    Raises:
        ValueError: If `steps`, `visible` or `reach` is not as described above.

    Example:
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
    """Return the rms change, centred per query, and whether hiding is equal."""
    hidden = here.isneginf() | there.isneginf()
    gap = (there.double() - here.double()).masked_fill(hidden, 0)
    count = (~hidden).sum(-1, keepdim=True)
    gap = (gap - gap.sum(-1, keepdim=True) / count).masked_fill(hidden, 0)
    same = (here.isneginf() == there.isneginf()).all()
    return (gap.square().sum() / count.sum()).sqrt(), same


def _apart(encoding: Tensor) -> tuple[Tensor, Tensor]:
    """Return distances of rows, and rows from their mean; 0 within rounding."""
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


# Former names, kept until the next release.
relativity_error = shift_invariance_error
row_margin = min_row_distance
skill_beyond = extrapolation_skill
