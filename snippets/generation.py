# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""Text generation: sample the next token from logits, and continue prompts.

    probability of a token = softmax(logits / temperature)

over the tokens that remain after filtering. Temperature 0 selects the most
probable token. `top_k` retains that many of the most probable tokens; `top_p`
retains the fewest most probable tokens whose probabilities together reach that
value. All tokens that are as probable as the last one retained are retained as
well.

Prompts of different lengths are aligned on the right, with padding on the left.
Each token has its position, counted from the start of its prompt, and is
processed once: the model returns a cache for later tokens, and receives it as
`past`.

References:
    Top-p: arXiv:1904.09751, section 3.
    All three, in this order: generation/logits_process.py and
    generation/utils.py in github.com/huggingface/transformers at v5.23.0, where
    `top_p` may separate tokens that are equally probable.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def next_token_probabilities(
    logits: Tensor,  # (..., words)
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
) -> Tensor:
    """Return next-token probabilities after temperature, top-k and top-p.

    The temperature is applied first. Then `top_k` retains that many of the best
    tokens, and those that equal the last of them. Then `top_p` retains the
    fewest of these, best first, that together reach that probability.

    Args:
        logits: Logits, shape `(..., words)`, floating-point, one for each token
            of the vocabulary.
        temperature: Divisor of the logits; at least 0 and finite. With 0, the
            best token, or the first of several, has probability 1.
        top_k: Number of tokens to retain; at least 1. None retains all.
        top_p: Probability that the retained tokens must reach together; above 0
            and at most 1. 1 retains all.

    Returns:
        Probabilities, shape `(..., words)`, float32 or wider.

    Raises:
        ValueError: If `logits` is not floating-point or has no tokens, or
            `temperature`, `top_k` or `top_p` is not as described above.

    Example:
        >>> logits = torch.tensor([0.1, 0.2, 0.3, 0.4]).log()
        >>> next_token_probabilities(logits, top_p=0.6)
        tensor([0.0000, 0.0000, 0.4286, 0.5714])
        >>> next_token_probabilities(logits, temperature=0.5, top_k=3)
        tensor([0.0000, 0.1379, 0.3103, 0.5517])
    """
    kind, shape = logits.dtype, tuple(logits.shape)
    fits = logits.is_floating_point() and shape[-1:] > (0,)
    _expect(fits, "logits", "floating (..., words)", f"{kind} {shape}")
    fits = 0 <= temperature < math.inf
    _expect(fits, "temperature", "0 or more and finite", temperature)
    _expect(top_k is None or top_k > 0, "top_k", "1 or more, or None", top_k)
    _expect(0 < top_p <= 1, "top_p", "above 0 and at most 1", top_p)
    logits = logits.to(torch.promote_types(kind, torch.float32))
    if temperature == 0:
        words = torch.arange(shape[-1], device=logits.device)
        return (words == logits.argmax(-1, keepdim=True)).to(logits.dtype)
    best = logits.amax(-1, keepdim=True)  # subtracted, so that none overflows
    tiny = torch.finfo(logits.dtype).tiny
    logits = (logits - best) / max(temperature, tiny)
    if top_k is not None:
        least = logits.topk(min(top_k, shape[-1])).values[..., -1:]
        logits = logits.masked_fill(logits < least, -math.inf)
    if top_p < 1:
        ranked = logits.sort(descending=True).values  # (..., words)
        probabilities = ranked.softmax(-1)
        # the probability of all better ones
        before = probabilities.cumsum(-1) - probabilities
        spare = ranked.masked_fill(before >= top_p, math.inf)
        least = spare.amin(-1, keepdim=True)  # (..., 1)
        logits = logits.masked_fill(logits < least, -math.inf)
    return logits.softmax(-1)


def sample_token(
    logits: Tensor,  # (..., words)
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Sample the next token of each sequence from `next_token_probabilities`.

    With temperature 0, the best token is returned and nothing is sampled. If
    the logits of a sequence contain nan or inf, or only -inf, there are no
    probabilities: sampling raises torch's own error.

    Args:
        logits: Logits, shape `(..., words)`, floating-point.
        temperature: See `next_token_probabilities`.
        top_k: See `next_token_probabilities`.
        top_p: See `next_token_probabilities`.
        generator: Random generator; None is torch's default one.

    Returns:
        Token ids, shape `(...)`, int64.

    Raises:
        ValueError: In the cases listed for `next_token_probabilities`.

    Example:
        >>> logits = torch.tensor([[0.1, 0.7, 0.2], [0.5, 0.4, 0.1]])
        >>> sample_token(logits, temperature=0)
        tensor([1, 0])
    """
    probabilities = next_token_probabilities(logits, temperature, top_k, top_p)
    if temperature == 0:
        return probabilities.argmax(-1)
    rows = probabilities.reshape(-1, probabilities.shape[-1])
    sampled = torch.multinomial(rows, 1, generator=generator)
    return sampled.view(probabilities.shape[:-1])


@torch.no_grad()
def generate(
    model: Callable[[Tensor, Tensor, Tensor, Any], tuple[Tensor, Any]],
    ids: Tensor,  # (batch, tokens)
    max_new_tokens: int,
    mask: Tensor | None = None,  # (batch, tokens)
    eos_id: int | None = None,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Continue a batch of prompts, token by token.

    Put the model into eval mode first. After a sequence has produced `eos_id`,
    it continues with `eos_id` only; generation stops when all sequences have
    produced it.

    Args:
        model: Function of `(ids, positions, documents, past)` that returns
            logits, shape `(batch, tokens, words)`, and the next `past`; the
            first `past` is None. positions and documents have the shape
            `(batch, tokens)`: padding has document 0, all other tokens 1, and a
            token may see the tokens of its document up to its own position.
            Decoder of block.py is such a model.
        ids: Prompts, shape `(batch, tokens)`, int64.
        max_new_tokens: Maximum number of new tokens; at least 0.
        mask: True at the tokens of the prompts, False at the padding on their
            left, shape `(batch, tokens)`, bool. None is for prompts without
            padding.
        eos_id: Id of the token that ends a sequence; None if there is none.
        temperature: See `next_token_probabilities`.
        top_k: See `next_token_probabilities`.
        top_p: See `next_token_probabilities`.
        generator: Random generator; None is torch's default one.

    Returns:
        Prompts and continuations, shape `(batch, tokens + new)` with at most
        `max_new_tokens` new tokens, int64.

    Raises:
        ValueError: If `ids` is empty or not int64 of shape `(batch, tokens)`;
            `max_new_tokens` is negative; `mask` is not bool, has a wrong shape,
            or has padding elsewhere than on the left; the model returns logits
            of a wrong shape; `eos_id` is not in the vocabulary; or in the cases
            listed for `next_token_probabilities`.

    Example:
        >>> def count(ids, positions, documents, past):
        ...     return torch.eye(9)[(ids + 1) % 9], past
        >>> prompts = torch.tensor([[4, 5], [0, 7]])
        >>> generate(count, prompts, max_new_tokens=4, temperature=0)
        tensor([[4, 5, 6, 7, 8, 0],
                [0, 7, 8, 0, 1, 2]])
    """
    shape = tuple(ids.shape)
    fits = ids.dtype == torch.int64 and len(shape) == 2 and ids.numel() > 0
    _expect(fits, "ids", "int64 (batch, tokens)", f"{ids.dtype} {shape}")
    _expect(max_new_tokens >= 0, "max_new_tokens", "0 or more", max_new_tokens)
    if mask is None:
        mask = torch.ones_like(ids, dtype=torch.bool)
    fits = mask.dtype == torch.bool and mask.shape == shape
    given = f"{mask.dtype} {tuple(mask.shape)}"
    _expect(fits, "mask", f"bool {shape}", given)
    left = mask[:, -1].all() and (mask[:, 1:] >= mask[:, :-1]).all()
    _expect(bool(left), "mask", "False on the left only", mask.int().tolist())
    positions = (mask.cumsum(-1) - 1).clamp(min=0)  # (batch, tokens)
    documents, past, text = mask.long(), None, [ids]
    ended = torch.zeros_like(mask[:, -1])  # (batch)
    for _ in range(max_new_tokens):
        logits, past = model(text[-1], positions, documents, past)
        want = (*text[-1].shape, "words")
        fits = logits.ndim == 3 and logits.shape[:2] == want[:2]
        _expect(fits, "logits", want, logits.shape)
        fits = eos_id is None or 0 <= eos_id < logits.shape[2]
        _expect(fits, "eos_id", f"0 to {logits.shape[2] - 1}", eos_id)
        token = sample_token(
            logits[:, -1], temperature, top_k, top_p, generator
        )
        if eos_id is not None:
            token = token.masked_fill(ended, eos_id)
            ended = ended | (token == eos_id)
        text.append(token[:, None])
        if eos_id is not None and ended.all():
            break
        positions, documents = positions[:, -1:] + 1, documents[:, -1:]
    return torch.cat(text, 1)


def _expect(fits: bool, name: str, wanted: object, got: object) -> None:
    if not fits:
        got = tuple(got) if isinstance(got, torch.Size) else got
        raise ValueError(f"{name} must be {wanted}, got {got}")


# Former names, kept until the next release.
next_chances = next_token_probabilities
choose = sample_token
