# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""Length extrapolation: the loss beyond the training length, and its cause.

Two measurements, for any model that returns logits of the next token:

    loss by position    is it still low beyond the training length?
    loss by context     do distant tokens help, hurt, or do neither?

The first mixes two effects: later tokens have more context, and are at
positions that may not have occurred in training. The second evaluates the same
tokens of the same texts each time, with increasingly long context, so the
difficulty of a text cancels. For both, `confidence_interval` returns the
uncertainty.

References:
    Press et al. 2021, arXiv:2108.12409, section 1 (its definition) and
    appendix B (why a longer text may help nevertheless).
    The second measurement is this guide's own.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy


@torch.no_grad()
def loss_by_position(
    model: Callable[[Tensor], Tensor],
    windows: Tensor,  # (windows, tokens)
    batch_size: int = 8,
) -> Tensor:
    """Return the loss of each token except the first.

    `confidence_interval` gives the uncertainty of the means; means of several
    positions, unflatten(1, (-1, 16)).mean(-1), are less uncertain.

    Args:
        model: Function of ids, shape `(batch, tokens)`, that returns logits,
            shape `(batch, tokens, words)`. Put a model into eval mode first.
        windows: Token ids, shape `(windows, tokens)` with at least two tokens,
            int64.
        batch_size: Number of windows in a batch; at least 1.

    Returns:
        Losses in nats, shape `(windows, tokens - 1)`; [:, i] is the loss of a
        token with i + 1 tokens before it.

    Raises:
        ValueError: If `windows` or `batch_size` is not as described above, or
            the model returns logits of a wrong shape.

    Example:
        >>> windows = torch.tensor([[0, 1, 2, 3], [5, 6, 7, 7]])
        >>> def count(ids):  # sure that one more comes
        ...     return 3.0 * torch.eye(9)[ids + 1]
        >>> loss_by_position(count, windows)
        tensor([[0.3353, 0.3353, 0.3353],
                [0.3353, 0.3353, 3.3353]])
    """
    _check_windows(windows)
    _expect(batch_size > 0, "batch_size", "1 or more", batch_size)
    return torch.cat(
        [_losses(model, part) for part in windows.split(batch_size)]
    )


def loss_by_context(
    model: Callable[[Tensor], Tensor],
    windows: Tensor,  # (windows, tokens)
    target_tokens: int,
    contexts: Sequence[int],
    batch_size: int = 8,
) -> Tensor:
    """Return the loss of the last tokens for each length of context.

    The loss is that of the last n = target_tokens tokens of a window. With
    context c, the model reads the last c + n tokens except the last: the first
    of the n tokens has c tokens before it, the last c + n - 1. Positions start
    again each time, as in a text of that length. To compare two contexts, take
    the interval of the difference.

    Args:
        model: See `loss_by_position`.
        windows: See `loss_by_position`.
        target_tokens: Number of evaluated tokens at the end of a window, 1 to
            tokens - 1.
        contexts: Numbers of tokens before the evaluated ones, each from 1 to
            tokens - target_tokens.
        batch_size: Number of windows in a batch; at least 1.

    Returns:
        Mean losses of these tokens in nats, shape `(contexts, windows)`.

    Raises:
        ValueError: In the cases listed for `loss_by_position`, or if
            `target_tokens` or `contexts` is not as described above.

    Example:
        >>> windows = torch.tensor([[0, 3, 3, 3]])
        >>> def first(ids):  # sure that the first comes again
        ...     return 3.0 * torch.eye(9)[ids[:, :1].expand(ids.shape)]
        >>> loss_by_context(first, windows, target_tokens=1, contexts=[1, 2, 3])
        tensor([[0.3353],
                [0.3353],
                [3.3353]])
    """
    _check_windows(windows)
    most = windows.shape[1] - 1
    _expect(
        0 < target_tokens <= most,
        "target_tokens",
        f"1 to {most}",
        target_tokens,
    )
    fits = all(0 < each <= most + 1 - target_tokens for each in contexts)
    _expect(
        fits and len(contexts) > 0,
        "contexts",
        f"some of 1 to {most + 1 - target_tokens}",
        contexts,
    )
    found = []
    for context in contexts:
        parts = loss_by_position(
            model, windows[:, -(context + target_tokens) :], batch_size
        )
        found.append(parts[:, -target_tokens:].mean(1))
    return torch.stack(found)


def confidence_interval(
    values: Tensor,
    level: float = 0.95,
    resamples: int = 4000,
    seed: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the mean over windows and its bootstrap confidence interval.

    Windows are sampled again with replacement, as many as there are, each as a
    whole. A fraction `level` of the means of these samples lies inside the
    interval, and one half of the others on each side.

    Pass windows of different texts, or take the mean over the windows of one
    text first: parts of a text are similar. For two models or contexts on the
    same windows, take the interval of the difference. The interval does not
    include the variation between training runs, and with few windows it is too
    short.

    Args:
        values: One value or more per window, shape `(windows, ...)` with at
            least two windows, floating-point.
        level: Fraction of the sampled means inside the interval, between 0 and
            1.
        resamples: Number of samples; enough to leave one outside on each side.
        seed: Seed of the samples.

    Returns:
        The mean, the lower end and the upper end, each of shape `(...)`,
        float64, on the CPU.

    Raises:
        ValueError: If `values`, `level` or `resamples` is not as described
            above.

    Example:
        >>> values = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        >>> mean, low, high = confidence_interval(values)
        >>> torch.stack([low, mean, high])
        tensor([2.1667, 3.5000, 4.8333], dtype=torch.float64)
    """
    shape = tuple(values.shape)
    fits = values.is_floating_point() and shape[:1] > (1,)
    given = f"{values.dtype} {shape}"
    _expect(fits, "values", "floating (2 windows or more, ...)", given)
    _expect(0 < level < 1, "level", "between 0 and 1", level)
    outside = round((1 - level) / 2 * resamples)
    _expect(outside > 0, "resamples", f"more for a level of {level}", resamples)
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(shape[0], (resamples, shape[0]), generator=generator)
    share = torch.full(drawn.shape, 1 / shape[0], dtype=torch.float64)
    shares = torch.zeros_like(share).scatter_add_(1, drawn, share)
    flat = values.detach().cpu().double().reshape(shape[0], -1)
    ends = []
    for part in flat.split(512, dim=1):  # samples x others may be too large
        means = (shares @ part).sort(0).values
        ends.append(means[[outside, resamples - 1 - outside]])
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
    """Return the loss of each token but the first: (batch, tokens - 1)."""
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


# Former names, kept until the next release.
interval = confidence_interval
