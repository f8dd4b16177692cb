# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-23
"""How a model fares on texts longer than those it was trained on, and why.

Two questions, to any model that gives scores of the next token:

    loss by position    does it stay good past the length it was trained on?
    loss by context     do the tokens far back help, or hurt, or neither?

The first mixes two things: later tokens have more before them, and stand at
positions that training may never have shown. The second takes the same tokens
of the same texts each time, with more and more of what stands before them, so
how hard a text is cancels. Of both, interval says how sure they are.

Source: arXiv:2108.12409, section 1 (what extrapolation is) and appendix B (why
a longer text may help all the same); the second question is this guide's own.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy


@torch.no_grad()
def loss_by_position(
    model: Callable[[Tensor], Tensor],
    windows: Tensor,  # (windows, tokens)
    rows: int = 8,
) -> Tensor:
    """The loss of each token but the first, in nats: (windows, tokens - 1).

    model takes ids, (batch, tokens), and gives scores, (batch, tokens, words);
    put it into eval mode. It is given `rows` windows at a time. [:, i] is the
    loss of a token with i + 1 before it. interval says how sure the means are;
    means of several positions, unflatten(1, (-1, 16)).mean(-1), are surer.

    >>> windows = torch.tensor([[0, 1, 2, 3], [5, 6, 7, 7]])
    >>> def count(ids):  # sure that one more comes
    ...     return 3.0 * torch.eye(9)[ids + 1]
    >>> loss_by_position(count, windows)
    tensor([[0.3353, 0.3353, 0.3353],
            [0.3353, 0.3353, 3.3353]])

    ValueError: windows not int64 (windows, tokens) with two tokens or more;
    rows below 1; scores of another shape.
    """
    _check_windows(windows)
    _expect(rows > 0, "rows", "1 or more", rows)
    return torch.cat([_losses(model, part) for part in windows.split(rows)])


def loss_by_context(
    model: Callable[[Tensor], Tensor],
    windows: Tensor,  # (windows, tokens)
    far: int,
    contexts: Sequence[int],
    rows: int = 8,
) -> Tensor:
    """Loss of the last `far` tokens by what stands before: (contexts, windows).

    In nats, the mean over these tokens. With context c the last c + far tokens
    of a window count, of which the model reads all but the last: the first of
    the far ones has c before it, the last c + far - 1. Positions begin anew
    each time, as in a text of that length. Of two contexts take the interval of
    the difference.

    >>> windows = torch.tensor([[0, 3, 3, 3]])
    >>> def first(ids):  # sure that the first comes again
    ...     return 3.0 * torch.eye(9)[ids[:, :1].expand(ids.shape)]
    >>> loss_by_context(first, windows, far=1, contexts=[1, 2, 3])
    tensor([[0.3353],
            [0.3353],
            [3.3353]])

    ValueError: as loss_by_position; far not 1 to tokens - 1; no contexts, or
    one that is not 1 to tokens - far.
    """
    _check_windows(windows)
    most = windows.shape[1] - 1
    _expect(0 < far <= most, "far", f"1 to {most}", far)
    fits = all(0 < each <= most + 1 - far for each in contexts)
    _expect(
        fits and len(contexts) > 0,
        "contexts",
        f"some of 1 to {most + 1 - far}",
        contexts,
    )
    found = []
    for context in contexts:
        parts = loss_by_position(model, windows[:, -(context + far) :], rows)
        found.append(parts[:, -far:].mean(1))
    return torch.stack(found)


def interval(
    values: Tensor,
    level: float = 0.95,
    draws: int = 4000,
    seed: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    """The mean over windows and the ends of its interval: three (...), float64.

    values is (windows, ...). By bootstrap: windows are drawn again, with
    replacement, as many as there are, each whole; all but the given level of
    the means of these draws lie outside, one half on each side. On the CPU.
    Give windows of different texts, or first the mean over those of one text:
    parts of a text are alike. Of two models or contexts on the same windows
    take the interval of the difference. It knows nothing of other training
    runs, and of few windows it is too short.

    >>> mean, low, high = interval(torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
    >>> torch.stack([low, mean, high])
    tensor([2.1667, 3.5000, 4.8333], dtype=torch.float64)

    ValueError: fewer than two windows, or values not floating; level not
    between 0 and 1; too few draws to leave one outside on each side.
    """
    shape = tuple(values.shape)
    fits = values.is_floating_point() and shape[:1] > (1,)
    given = f"{values.dtype} {shape}"
    _expect(fits, "values", "floating (2 windows or more, ...)", given)
    _expect(0 < level < 1, "level", "between 0 and 1", level)
    outside = round((1 - level) / 2 * draws)
    _expect(outside > 0, "draws", f"more for a level of {level}", draws)
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(shape[0], (draws, shape[0]), generator=generator)
    share = torch.full(drawn.shape, 1 / shape[0], dtype=torch.float64)
    shares = torch.zeros_like(share).scatter_add_(1, drawn, share)
    flat = values.detach().cpu().double().reshape(shape[0], -1)
    ends = []
    for part in flat.split(512, dim=1):  # draws x others may be too much
        means = (shares @ part).sort(0).values
        ends.append(means[[outside, draws - 1 - outside]])
    low, high = torch.cat(ends, 1).view(2, *shape[1:])
    return flat.mean(0).view(shape[1:]), low, high


def _check_windows(windows: Tensor) -> None:
    fits = windows.dtype == torch.int64 and windows.ndim == 2
    fits = fits and len(windows) > 0 and windows.shape[1] > 1
    given = f"{windows.dtype} {tuple(windows.shape)}"
    _expect(fits, "windows", "int64 (windows, 2 tokens or more)", given)


def _losses(
    model: Callable[[Tensor], Tensor],
    ids: Tensor,  # (batch, tokens)
) -> Tensor:
    """(batch, tokens - 1)"""
    scores, want = model(ids[:, :-1]), (*ids[:, 1:].shape, "words")
    fits = scores.ndim == 3 and scores.shape[:2] == want[:2]
    _expect(fits, "scores", want, scores.shape)
    wide = torch.promote_types(scores.dtype, torch.float32)
    scores = scores.to(wide).mT  # (batch, words, asked)
    return cross_entropy(scores, ids[:, 1:], reduction="none")


def _expect(fits: bool, name: str, wanted: object, got: object) -> None:
    if not fits:
        got = tuple(got) if isinstance(got, torch.Size) else got
        raise ValueError(f"{name} must be {wanted}, got {got}")
