# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-23
"""Generation: choose the next token from scores, and write on from prompts.

    chance of a token = softmax(scores / temperature), over those that are kept

Temperature 0 takes the best. top_k keeps as many of the best, top_p the fewest
of the best whose chances together reach it; of tokens that are as good as the
last one kept, all are kept.

Prompts of several lengths stand on the right, with padding on the left. Each
token gets its position, counted from the start of its prompt, and is read once:
the model keeps what later tokens need of it, and is given that as past.

Source: arXiv:1904.09751, section 3, for top_p; all three, in this order, as in
generation/logits_process.py and generation/utils.py in
github.com/huggingface/transformers at v5.23.0, where top_p may part tokens that
are equally good.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def next_chances(
    scores: Tensor,  # (..., words)
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
) -> Tensor:
    """The chance of each word to be next: (..., words), float32 or wider.

    The temperature, which divides the scores, comes first. Then top_k keeps as
    many of the best words, and any that equal the last of them; then top_p as
    many of what is left as reach that share of the chances together. With
    temperature 0 the best word, the first of several, has all of it.

    >>> scores = torch.tensor([0.1, 0.2, 0.3, 0.4]).log()
    >>> next_chances(scores, top_p=0.6)
    tensor([0.0000, 0.0000, 0.4286, 0.5714])
    >>> next_chances(scores, temperature=0.5, top_k=3)
    tensor([0.0000, 0.1379, 0.3103, 0.5517])

    ValueError: scores not floating or without words; temperature below 0 or
    not finite; top_k below 1; top_p not above 0 or more than 1.
    """
    kind, shape = scores.dtype, tuple(scores.shape)
    fits = scores.is_floating_point() and shape[-1:] > (0,)
    _expect(fits, "scores", "floating (..., words)", f"{kind} {shape}")
    fits = 0 <= temperature < math.inf
    _expect(fits, "temperature", "0 or more and finite", temperature)
    _expect(top_k is None or top_k > 0, "top_k", "1 or more, or None", top_k)
    _expect(0 < top_p <= 1, "top_p", "above 0 and at most 1", top_p)
    scores = scores.to(torch.promote_types(kind, torch.float32))
    if temperature == 0:
        words = torch.arange(shape[-1], device=scores.device)
        return (words == scores.argmax(-1, keepdim=True)).to(scores.dtype)
    best = scores.amax(-1, keepdim=True)  # taken off, so that none overflows
    tiny = torch.finfo(scores.dtype).tiny
    scores = (scores - best) / max(temperature, tiny)
    if top_k is not None:
        least = scores.topk(min(top_k, shape[-1])).values[..., -1:]
        scores = scores.masked_fill(scores < least, -math.inf)
    if top_p < 1:
        ranked = scores.sort(descending=True).values  # (..., words)
        chances = ranked.softmax(-1)
        before = chances.cumsum(-1) - chances  # the chances of all better ones
        spare = ranked.masked_fill(before >= top_p, math.inf)
        least = spare.amin(-1, keepdim=True)  # (..., 1)
        scores = scores.masked_fill(scores < least, -math.inf)
    return scores.softmax(-1)


def choose(
    scores: Tensor,  # (..., words)
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """The next word of each row, drawn by next_chances: (...), int64.

    temperature, top_k and top_p are those of next_chances; generator is what
    draws, or torch's own. With temperature 0 nothing is drawn. A row with nan
    or inf, or of -inf alone, has no chances: to draw from it is torch's own
    error.

    >>> choose(torch.tensor([[0.1, 0.7, 0.2], [0.5, 0.4, 0.1]]), temperature=0)
    tensor([1, 0])

    ValueError: as next_chances.
    """
    chances = next_chances(scores, temperature, top_k, top_p)
    if temperature == 0:
        return chances.argmax(-1)
    rows = chances.reshape(-1, chances.shape[-1])
    drawn = torch.multinomial(rows, 1, generator=generator)
    return drawn.view(chances.shape[:-1])


@torch.no_grad()
def generate(
    model: Callable[[Tensor, Tensor, Tensor, Any], tuple[Tensor, Any]],
    ids: Tensor,  # (batch, tokens)
    most: int,
    mask: Tensor | None = None,  # (batch, tokens)
    end: int | None = None,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Write on: (batch, tokens and at most `most` more), int64.

    model(ids, positions, documents, past) returns (batch, tokens, words) scores
    and what it takes as past; the first past is None. positions and documents
    are (batch, tokens): padding has document 0, all else 1, and a token may see
    those of its document up to its own position. Decoder of block.py is such a
    model; put yours into eval mode first. mask is True at the tokens of the
    prompts, False at the padding before them; without a mask there is none. A
    row that has written end goes on with nothing else; when all have, that is
    all. The rest is as in choose.

    >>> def count(ids, positions, documents, past):
    ...     return torch.eye(9)[(ids + 1) % 9], past
    >>> generate(count, torch.tensor([[4, 5], [0, 7]]), most=4, temperature=0)
    tensor([[4, 5, 6, 7, 8, 0],
            [0, 7, 8, 0, 1, 2]])

    ValueError: ids not int64 (batch, tokens) or empty; most below 0; a mask
    that is not bool and of that shape, or with padding elsewhere than on the
    left; scores of another shape; end not one of the words; as next_chances.
    """
    shape = tuple(ids.shape)
    fits = ids.dtype == torch.int64 and len(shape) == 2 and ids.numel() > 0
    _expect(fits, "ids", "int64 (batch, tokens)", f"{ids.dtype} {shape}")
    _expect(most >= 0, "most", "0 or more", most)
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
    for _ in range(most):
        scores, past = model(text[-1], positions, documents, past)
        want = (*text[-1].shape, "words")
        fits = scores.ndim == 3 and scores.shape[:2] == want[:2]
        _expect(fits, "scores", want, scores.shape)
        fits = end is None or 0 <= end < scores.shape[2]
        _expect(fits, "end", f"0 to {scores.shape[2] - 1}", end)
        token = choose(scores[:, -1], temperature, top_k, top_p, generator)
        if end is not None:
            token = token.masked_fill(ended, end)
            ended = ended | (token == end)
        text.append(token[:, None])
        if end is not None and ended.all():
            break
        positions, documents = positions[:, -1:] + 1, documents[:, -1:]
    return torch.cat(text, 1)


def _expect(fits: bool, name: str, wanted: object, got: object) -> None:
    if not fits:
        got = tuple(got) if isinstance(got, torch.Size) else got
        raise ValueError(f"{name} must be {wanted}, got {got}")
