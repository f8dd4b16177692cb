# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-22
"""Decoding: a cache, padding and packing that leave each token its position.

Each token has a position, counted from the start of its document, and the
number of its document. Padding is a document too, which nobody reads. A query
sees a key if

    their documents are the same and key position <= query position

wherever in the row the two stand. An encoding gets the same positions: at the
embeddings; on q and on k before k is cached, where it turns them; and as
bias(query_positions, cache.positions) or score(q, cache.k, ...), where it reads
distances. CoPE and Transformer-XL count rows in place of positions: for them
no padding may lie between a document's tokens. Where the length of the text
moves an encoding, as with dynamic NTK or a moving centre of xPos, cache k as it
was before, and apply it to all of cache.k at each step.

Source: arXiv:2107.02027 for packing that changes no result; for positions under
left padding generation/utils.py in github.com/huggingface/transformers at
v5.23.0; scaled_dot_product_attention and flex_attention of torch 2.13.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


def document_positions(
    documents: Tensor,  # (..., tokens)
) -> Tensor:
    """Positions in whole rows, from 0 in each document: (..., tokens), int64.

    documents has a number for each token, one unbroken run for each document.
    A padding mask will do. The next token of a document has the next position.
    packed_positions of embed.py is the same function.

    >>> document_positions(torch.tensor([[0, 0, 1, 1, 1], [4, 4, 5, 5, 5]]))
    tensor([[0, 1, 0, 1, 2],
            [0, 1, 0, 1, 2]])

    ValueError: documents no tensor of integers or bool.
    """
    _check_integers("documents", documents, torch.bool)
    place = torch.arange(documents.shape[-1], device=documents.device)
    begins = documents.diff(prepend=documents[..., :1]) != 0  # (..., tokens)
    return place - (begins * place).cummax(-1).values  # (..., tokens)


def visible(
    query_positions: Tensor,  # (..., queries)
    key_positions: Tensor,  # (..., keys)
    query_documents: Tensor,  # (..., queries)
    key_documents: Tensor,  # (..., keys)
    causal: bool = True,
    window: int | None = None,
) -> Tensor:
    """Which keys each query may see: (..., queries, keys), bool.

    Every token sees itself, padding too: no row is all hidden, for which
    softmax has no answer. Without causal, keys may come later too. A window
    hides keys whose positions are window or more away. It counts the token
    itself: with causal a token sees window keys, and with 1 none but itself.
    So does sliding_window of transformers' decoders; that of its ModernBERT and
    window_size of FlashAttention do not: there it is one more.

    >>> documents = torch.tensor([0, 1, 1])  # left padding
    >>> positions = document_positions(documents)
    >>> visible(positions, positions, documents, documents).int()
    tensor([[1, 0, 0],
            [0, 1, 0],
            [0, 1, 1]], dtype=torch.int32)

    >>> visible(*[torch.arange(4)] * 2, *[torch.zeros(4).int()] * 2, window=2)
    tensor([[ True, False, False, False],
            [ True,  True, False, False],
            [False,  True,  True, False],
            [False, False,  True,  True]])

    ValueError: not integers; shapes that do not fit; a window below 1.
    """
    _check_pair("query", query_positions, query_documents)
    _check_pair("key", key_positions, key_documents)
    _check_sides(query_positions, key_positions)
    _check_window(window)
    i, j = query_positions[..., :, None], key_positions[..., None, :]
    seen = query_documents[..., :, None] == key_documents[..., None, :]
    if causal:
        seen = seen & (j <= i)
    if window is not None:
        seen = seen & ((i.long() - j).abs() < window)
    return seen  # (..., queries, keys)


class KeyValueCache:
    """What later queries need of earlier tokens. It never changes by itself.

    k and v are (..., heads, keys, dim), positions and documents (..., keys),
    with a row for each text: expand one that is for all. extend(k, v,
    positions, documents) returns a longer one. The shorter is still there: go
    back to it, or to first(keys) of the longer, when guessed tokens are
    rejected. If rows of a batch reject different numbers, keep all and give the
    rejected a document of their own.

    >>> k, at = torch.zeros(1, 2, 3, 4), torch.tensor([[0, 1, 2]])
    >>> prompt = KeyValueCache(k, k, at, torch.ones_like(at))
    >>> guess = prompt.extend(k, k, at + 3, torch.ones_like(at))
    >>> guess.first(4).positions  # one of three was right
    tensor([[0, 1, 2, 3]])

    ValueError: shapes that do not fit; positions no integers, documents neither
    integers nor bool; first below 0 or of more keys than there are.
    """

    def __init__(
        self, k: Tensor, v: Tensor, positions: Tensor, documents: Tensor
    ):
        _check_pair("key", positions, documents)
        want = (*positions.shape[:-1], "heads", *positions.shape[-1:], "dim")
        for name, given in (("k", k), ("v", v)):
            shape = tuple(given.shape)
            fits = (*shape[:-3], *shape[-2:-1]) == tuple(positions.shape)
            if not fits or len(shape) != len(want):
                raise ValueError(
                    f"{name} must be {want} for these positions, got {shape}"
                )
        if k.shape[-3] != v.shape[-3]:
            raise ValueError(
                f"v must have {k.shape[-3]} heads, as k, got {v.shape[-3]}"
            )
        self.k, self.v = k, v
        self.positions, self.documents = positions, documents

    def extend(
        self, k: Tensor, v: Tensor, positions: Tensor, documents: Tensor
    ) -> "KeyValueCache":
        new = KeyValueCache(k, v, positions, documents)
        for name, old, more in (("k", self.k, k), ("v", self.v, v)):
            *rows, _, dim = old.shape
            if [*more.shape[:-2], more.shape[-1]] != [*rows, dim]:
                want, got = (*rows, "keys", dim), tuple(more.shape)
                raise ValueError(f"{name} must be {want}, got {got}")
        return KeyValueCache(
            torch.cat((self.k, new.k), -2),
            torch.cat((self.v, new.v), -2),
            torch.cat((self.positions, new.positions), -1),
            torch.cat((self.documents, new.documents), -1),
        )

    def first(self, keys: int) -> "KeyValueCache":
        most = self.positions.shape[-1]
        if not 0 <= keys <= most:
            raise ValueError(f"keys must be 0 to {most}, got {keys}")
        return KeyValueCache(
            self.k[..., :keys, :],
            self.v[..., :keys, :],
            self.positions[..., :keys],
            self.documents[..., :keys],
        )


def with_room(cache: KeyValueCache, places: int) -> KeyValueCache:
    """The cache with places for tokens to come, to be filled by write.

    Its shapes never change, as compiled steps want it. Places that nobody has
    written have document -1, which no token may have: visible hides them. Not
    for methods that count rows.

    >>> k, at = torch.zeros(1, 2, 3, 4), torch.tensor([[0, 1, 2]])
    >>> prompt = KeyValueCache(k, k, at, torch.ones_like(at))
    >>> cache, one = with_room(prompt, places=5), slice(0, 1)
    >>> new = k[..., one, :], k[..., one, :], at[:, one] + 3, at[:, one] + 1
    >>> write(cache, torch.tensor([3]), *new)
    >>> cache.positions, cache.documents
    (tensor([[0, 1, 2, 3, 0]]), tensor([[ 1,  1,  1,  1, -1]]))

    ValueError: fewer places than the cache has keys.
    """
    keys = cache.positions.shape[-1]
    if places < keys:
        raise ValueError(f"places must be {keys} or more, got {places}")
    room, pad = (0, places - keys), torch.nn.functional.pad
    return KeyValueCache(
        pad(cache.k, (0, 0, *room)),
        pad(cache.v, (0, 0, *room)),
        pad(cache.positions, room),
        pad(cache.documents.long(), room, value=-1),
    )


def write(
    cache: KeyValueCache,
    places: Tensor,  # (tokens)
    k: Tensor,  # (..., heads, tokens, dim)
    v: Tensor,  # (..., heads, tokens, value_dim)
    positions: Tensor,  # (..., tokens)
    documents: Tensor,  # (..., tokens)
) -> None:
    """Put tokens into places of a cache that has room: this one does change.

    They get the dtypes of the cache.

    ValueError: as KeyValueCache. What does not fit the cache, and on the CPU a
    place that there is not, is torch's own error.
    """
    new = KeyValueCache(k, v, positions, documents)
    for axis, names in ((-2, ("k", "v")), (-1, ("positions", "documents"))):
        for name in names:
            old = getattr(cache, name)
            old.index_copy_(axis, places, getattr(new, name).to(old.dtype))


def attend(
    q: Tensor,  # (..., heads, queries, dim)
    k: Tensor,  # (..., key_heads, keys, dim)
    v: Tensor,  # (..., key_heads, keys, value_dim)
    seen: Tensor,  # (..., queries, keys)
    bias: Tensor | None = None,  # (..., heads, queries, keys)
    scale: float | None = None,
) -> Tensor:
    """Attention by torch's kernel: (..., heads, queries, value_dim).

    seen is that of visible, with a batch of 1 or none where all see alike, bias
    of any method that adds to the scores. A score of its own is a bias too:
    bias=shaw_scores(q, k, ...) with scale=0. Never is_causal besides: it hides
    keys by their index, from the first key on. k and v may have fewer heads
    than q: each serves heads / key_heads of them, in order.

    >>> q, v = torch.zeros(1, 1, 4), torch.tensor([[[1.0], [2.0], [9.0]]])
    >>> attend(q, torch.zeros(1, 3, 4), v, torch.tensor([[True, True, False]]))
    tensor([[[1.5000]]])

    ValueError: k of another width, or with heads that do not divide those of q,
    or v with others; fewer than 3 axes; seen not bool or not the queries and
    keys of q and k; a bias that is not floating.
    """
    for name, each in {"q": q, "k": k, "v": v}.items():
        if each.ndim < 3:
            have = tuple(each.shape)
            raise ValueError(
                f"{name} must be (..., heads, tokens, dim), got {have}"
            )
    if k.shape[-1] != q.shape[-1]:
        raise ValueError(
            f"k must be as wide as q, {q.shape[-1]}, got {k.shape[-1]}"
        )
    heads, key_heads = q.shape[-3], k.shape[-3]
    if heads % key_heads or v.shape[-3] != key_heads:
        raise ValueError(
            f"k and v must have heads that divide the {heads} of q, "
            f"got {key_heads} and {v.shape[-3]}"
        )
    shape = (*q.shape[:-3], q.shape[-2], k.shape[-2])
    if seen.dtype != torch.bool:
        raise ValueError(f"seen must be bool, got {seen.dtype}")
    alike = shape[-2:]  # for all of a batch
    if tuple(seen.shape) not in (shape, (1, *alike), alike):
        raise ValueError(
            f"seen must be {shape} or {alike}, got {tuple(seen.shape)}"
        )
    mask = seen[..., None, :, :]  # one for all heads
    if bias is not None:
        if not bias.is_floating_point():
            raise ValueError(
                f"bias must be of a floating dtype, got {bias.dtype}"
            )
        mask = bias.masked_fill(~mask, -math.inf)  # (..., queries, keys)
    grouped = heads != key_heads
    return scaled_dot_product_attention(
        q, k, v, attn_mask=mask, scale=scale, enable_gqa=grouped
    )


def flex_visible(
    query_positions: Tensor,  # (batch, queries)
    key_positions: Tensor,  # (batch, keys)
    query_documents: Tensor,  # (batch, queries)
    key_documents: Tensor,  # (batch, keys)
) -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]:
    """visible as a mask_mod for create_block_mask of flex_attention.

    ValueError: as visible.
    """
    _check_pair("query", query_positions, query_documents)
    _check_pair("key", key_positions, key_documents)
    _check_sides(query_positions, key_positions, "batch")

    def mask_mod(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        same = query_documents[b, i] == key_documents[b, j]
        return same & (key_positions[b, j] <= query_positions[b, i])

    return mask_mod


def flex_bias(
    by_distance: Tensor,  # (heads, distances)
    query_positions: Tensor,  # (batch, queries)
    key_positions: Tensor,  # (batch, keys)
) -> Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]:
    """A causal bias that reads distances only, as a score_mod.

    by_distance is the bias of one query for the keys before it, nearest first:
    for ALiBi alibi_bias(n, torch.arange(100), slopes)[:, 0].flip(-1), where n
    is torch.tensor([99]) and slopes alibi_slopes(heads). Under torch.compile,
    flex_attention makes no tensor of queries x keys of it. It must reach the
    largest distance of any key before a query, hidden or not: beyond its end is
    torch's own index error.

    ValueError: shapes that do not fit; positions no integers.
    """
    if by_distance.ndim != 2:
        shape = tuple(by_distance.shape)
        raise ValueError(f"by_distance must be (heads, distances), got {shape}")
    _check_integers("query positions", query_positions)
    _check_integers("key positions", key_positions)
    _check_sides(query_positions, key_positions, "batch")

    def score_mod(
        score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor
    ) -> Tensor:
        distance = query_positions[b, i] - key_positions[b, j]
        return score + by_distance[h, distance.clamp(min=0)]

    return score_mod


def _check_pair(name: str, positions: Tensor, documents: Tensor) -> None:
    _check_integers(f"{name} positions", positions)
    _check_integers(f"{name} documents", documents, torch.bool)
    if positions.shape != documents.shape or not positions.ndim:
        raise ValueError(
            f"{name} positions and documents must be of one shape, "
            f"got {tuple(positions.shape)} and {tuple(documents.shape)}"
        )


def _check_sides(queries: Tensor, keys: Tensor, rows: str = "...") -> None:
    have = tuple(queries.shape), tuple(keys.shape)
    batched = rows == "..." or queries.ndim == 2
    if have[0][:-1] != have[1][:-1] or not batched:
        raise ValueError(
            f"positions must be ({rows}, queries) and ({rows}, keys), "
            f"got {have[0]} and {have[1]}"
        )


def _check_window(window: int | None) -> None:
    if window is not None and window < 1:
        raise ValueError(f"window must be at least 1, got {window}")


def _check_integers(name: str, given: Tensor, *others: torch.dtype) -> None:
    whole = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    tensor = isinstance(given, Tensor)
    kind = given.dtype if tensor else type(given).__name__
    if kind not in (*whole, *others):
        either = "bool, " if others else ""
        raise ValueError(
            f"{name} must be a tensor of {either}uint8 or int8 to int64, "
            f"got {kind}"
        )
