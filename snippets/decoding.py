# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""Decoding: a KV cache, padding and packing with correct positions.

Each token has a position, counted from the start of its document, and the
number of its document. Padding is a document of its own, which no other token
sees. A query sees a key if

    their documents are the same and key position <= query position

wherever the two are in the batch or in the cache. An encoding receives the same
positions: an added encoding, at the embeddings; a rotation, on q, and on k
before k is cached; a bias or score that depends on distances, as
bias(query_positions, cache.positions) or score(q, cache.k, ...). CoPE and
Transformer-XL count slots instead of using positions: for them, no padding may
lie between the tokens of a document. If the encoding changes with the length of
the text, as with dynamic NTK or a moving centre of xPos, cache k before it is
encoded, and encode all of cache.k at each step.

`keep_slots` and `move_positions` free slots in a long text, or move a text that
was processed alone to other positions. The k and v of its tokens still depend
on the context in which these tokens were processed.

References:
    Packing that changes no result: arXiv:2107.02027.
    Positions with left padding: generation/utils.py in
    github.com/huggingface/transformers at v5.23.0.
    scaled_dot_product_attention and flex_attention of torch 2.13.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


def document_positions(
    documents: Tensor,  # (..., tokens)
) -> Tensor:
    """Return positions that start at 0 in each document of a sequence.

    The input must contain whole sequences. In decoding, the next token of a
    document has the next position. packed_positions of embed.py is the same
    function.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        documents: Document number of each token, shape `(..., tokens)`,
            integers or bool. Each document is one unbroken run. A padding mask
            works as well.

    Returns:
        Positions, shape `(..., tokens)`, int64.

    Raises:
        ValueError: If `documents` is not an integer or bool tensor.

    Example:
        >>> document_positions(torch.tensor([[0, 0, 1, 1, 1], [4, 4, 5, 5, 5]]))
        tensor([[0, 1, 0, 1, 2],
                [0, 1, 0, 1, 2]])
    """
    _check_integers("documents", documents, torch.bool)
    place = torch.arange(documents.shape[-1], device=documents.device)
    begins = documents.diff(prepend=documents[..., :1]) != 0  # (..., tokens)
    return place - (begins * place).cummax(-1).values  # (..., tokens)


def attention_mask(
    query_positions: Tensor,  # (..., queries)
    key_positions: Tensor,  # (..., keys)
    query_documents: Tensor,  # (..., queries)
    key_documents: Tensor,  # (..., keys)
    causal: bool = True,
    window: int | None = None,
) -> Tensor:
    """Return the mask of the keys that each query may see.

    If the queries are among the keys, every token sees itself, padding
    included. So no query has all its keys hidden, for which softmax is
    undefined.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        query_positions: Positions of the queries, shape `(..., queries)`,
            integers.
        key_positions: Positions of the keys, shape `(..., keys)`, integers. The
            axes before the last are those of the queries; if all sequences of a
            batch share positions, use `(1, queries)` and `(1, keys)`.
        query_documents: Document numbers of the queries, in the shape of
            `query_positions`, integers or bool.
        key_documents: Document numbers of the keys, in the shape of
            `key_positions`, integers or bool.
        causal: Whether to hide keys at later positions than the query.
        window: Hide keys at a distance of `window` positions or more; at least
            1. None is for no window. The token itself counts: with `causal`, a
            token sees `window` keys, and with window 1 only itself.
            sliding_window in the decoders of transformers counts in the same
            way. In its bidirectional models, such as ModernBERT, and in
            window_size of FlashAttention, the token itself does not count: pass
            one more here.

    Returns:
        The mask, shape `(..., queries, keys)`, bool; True where the key is
        visible.

    Raises:
        ValueError: If positions or documents do not have the dtype described
            above, the shapes do not match, or `window` is less than 1.

    Example:
        >>> documents = torch.tensor([0, 1, 1])  # left padding
        >>> positions = document_positions(documents)
        >>> attention_mask(positions, positions, documents, documents).int()
        tensor([[1, 0, 0],
                [0, 1, 0],
                [0, 1, 1]], dtype=torch.int32)

        >>> at, of = torch.arange(4), torch.zeros(4).int()
        >>> attention_mask(at, at, of, of, window=2)
        tensor([[ True, False, False, False],
                [ True,  True, False, False],
                [False,  True,  True, False],
                [False, False,  True,  True]])
    """
    _check_pair("query", query_positions, query_documents)
    _check_pair("key", key_positions, key_documents)
    _check_sides(query_positions, key_positions)
    _check_window(window)
    i, j = query_positions[..., :, None], key_positions[..., None, :]
    mask = query_documents[..., :, None] == key_documents[..., None, :]
    if causal:
        mask = mask & (j <= i)
    if window is not None:
        mask = mask & ((i.long() - j).abs() < window)
    return mask  # (..., queries, keys)


class KeyValueCache:
    """Hold the keys, values, positions and documents of earlier tokens.

    The methods return a new cache and do not change this one. When guessed
    tokens are rejected, go back to the shorter cache, which still exists, or to
    `first(keys)` of the longer one. If the sequences of a batch reject
    different numbers of tokens, keep all tokens and give the rejected ones a
    document of their own.

    Each layer has a cache. As int64, positions and documents take 16 bytes per
    token and sequence, in addition to k and v. One cache may hold all layers,
    with positions and documents stored once: k then has shape
    `(layers, batch, heads, keys, dim)`, and positions have `(1, batch, keys)`.
    In layer n, attend to `torch.cat((cache.k[n], k), -2)`, and extend the cache
    by the stacked new keys of all layers, which copies the old ones once more.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        k: Keys, shape `(..., heads, keys, dim)`.
        v: Values, shape `(..., heads, keys, dim)`; their last axis may differ
            from that of `k`.
        positions: Position of each key, shape `(..., keys)`, integers. An axis
            of 1 is shared: `(1, keys)` for all sequences of a batch.
        documents: Document number of each key, in the shape of `positions`,
            integers or bool.

    Raises:
        ValueError: If the shapes do not match, or `positions` or `documents`
            does not have the dtype described above.

    Example:
        >>> k, at = torch.zeros(1, 2, 3, 4), torch.tensor([[0, 1, 2]])
        >>> prompt = KeyValueCache(k, k, at, torch.ones_like(at))
        >>> guess = prompt.extend(k, k, at + 3, torch.ones_like(at))
        >>> guess.first(4).positions  # one of three was right
        tensor([[0, 1, 2, 3]])
    """

    def __init__(
        self, k: Tensor, v: Tensor, positions: Tensor, documents: Tensor
    ):
        _check_pair("key", positions, documents)
        *rows, keys = positions.shape
        want = (*(n if n != 1 else "any" for n in rows), "heads", keys, "dim")
        for name, given in (("k", k), ("v", v)):
            have = tuple(given.shape)
            fits = len(have) == len(want) and have[-2] == keys
            axes = zip(rows, have, strict=False)
            if not fits or any(n not in (1, of) for n, of in axes):
                raise ValueError(
                    f"{name} must be {want} for these positions, got {have}"
                    + (_positions_of(have) if len(have) > len(want) else "")
                )
        if k.shape[:-1] != v.shape[:-1]:
            want, have = (*k.shape[:-1], "dim"), tuple(v.shape)
            raise ValueError(f"v must be {want}, as k, got {have}")
        self.k, self.v = k, v
        self.positions, self.documents = positions, documents

    def extend(
        self, k: Tensor, v: Tensor, positions: Tensor, documents: Tensor
    ) -> "KeyValueCache":
        """Return a cache with new tokens after those of this cache.

        Args:
            k: New keys, with the shape of the cached ones except for their
                number.
            v: New values, with the shape of the cached ones except for their
                number.
            positions: Position of each new key, shape `(..., keys)`, integers.
            documents: Document number of each new key, in the shape of
                `positions`, integers or bool.

        Returns:
            The longer cache.

        Raises:
            ValueError: If the shapes do not match, or in the cases listed for
                the class.
        """
        new = KeyValueCache(k, v, positions, documents)
        for name, old, more in (("k", self.k, k), ("v", self.v, v)):
            *rows, _, dim = old.shape
            if [*more.shape[:-2], more.shape[-1]] != [*rows, dim]:
                want, got = (*rows, "keys", dim), tuple(more.shape)
                raise ValueError(f"{name} must be {want}, got {got}")
        here = self.positions.shape[:-1]
        rows = torch.broadcast_shapes(here, new.positions.shape[:-1])
        at, of = (
            torch.cat([each.expand(*rows, -1) for each in pair], -1)
            for pair in (
                (self.positions, new.positions),
                (self.documents, new.documents),
            )
        )
        k, v = torch.cat((self.k, new.k), -2), torch.cat((self.v, new.v), -2)
        return KeyValueCache(k, v, at, of)

    def first(self, keys: int) -> "KeyValueCache":
        """Return the cache as it was when it had this number of keys.

        Args:
            keys: Number of keys, from 0 to that of this cache.

        Returns:
            The shorter cache, of views without copies.

        Raises:
            ValueError: If `keys` is negative or more than the cache has.
        """
        most = self.positions.shape[-1]
        if not 0 <= keys <= most:
            raise ValueError(f"keys must be 0 to {most}, got {keys}")
        return KeyValueCache(
            self.k[..., :keys, :],
            self.v[..., :keys, :],
            self.positions[..., :keys],
            self.documents[..., :keys],
        )


def keep_slots(
    cache: KeyValueCache,
    slots: Tensor,  # (..., kept)
) -> KeyValueCache:
    """Return a cache with only the selected slots.

    Each slot is unchanged, so positions may have gaps: the next token has the
    position after the last one, or `move_positions` closes the gaps. All
    sequences keep the same number of slots. To drop more tokens from
    one sequence than from another, assign them a document number of their own
    instead.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        cache: The cache to select from; it does not change.
        slots: Slot indices, counted from 0 in the order of the cache, whatever
            the positions are; `(kept,)` for all sequences, or `(..., kept)` for
            each, integers. Their order is that of the new cache.

    Returns:
        The smaller cache.

    Raises:
        ValueError: If `slots` are not integers, or their leading axes do not
            match those of k. An index out of range raises torch's own error on
            the CPU.

    Example:
        >>> k, at = torch.zeros(1, 2, 6, 4), torch.arange(6)[None]
        >>> cache = KeyValueCache(k, k, at, torch.ones_like(at))
        >>> keep_slots(cache, torch.tensor([0, 4, 5])).positions
        tensor([[0, 4, 5]])
    """
    _check_integers("slots", slots)
    _check_rows("slots", slots, cache.k, "kept")
    here, given = cache.positions.shape[:-1], slots.shape[:-1]
    rows = torch.broadcast_shapes(here, given)
    at = slots.long().expand(*rows, -1)  # (..., kept)
    positions, documents = (
        each.expand(*rows, -1).gather(-1, at)
        for each in (cache.positions, cache.documents)
    )
    at = at[..., None, :, None]  # (..., 1, kept, 1)
    k, v = (
        each.gather(-2, at.expand(*each.shape[:-2], -1, each.shape[-1]))
        for each in (cache.k, cache.v)
    )
    return KeyValueCache(k, v, positions, documents)


def move_positions(
    cache: KeyValueCache,
    positions: Tensor,  # (..., keys)
    rotate: Callable[[Tensor, Tensor], Tensor] | None,
) -> KeyValueCache:
    """Return a cache with its tokens moved to new positions.

    For k that was rotated by RoPE, `rotate` is another rotation,

        lambda k, by: apply_rope(k, *rope_tables(by, frequencies), layout)

    with the frequencies used before, and without the attention factor of YaRN
    or LongRoPE, which k already contains. Each rotation rounds k once more. If
    the cache holds all layers, `rotate` must rotate them one by one. An
    encoding that was added to the embeddings is contained in k and in v, and no
    rotation removes it.

    If `positions` are on the CPU and the cache is not, each call copies them,
    and the host waits for the copy.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        cache: The cache whose tokens to move; it does not change.
        positions: New position of each key, `(keys,)` for all sequences, or
            `(..., keys)` for each, integers.
        rotate: Function of k, shape `(..., heads, keys, dim)`, and offsets,
            shape `(..., keys)`, that returns k for tokens moved by these
            offsets, new minus old position. None is for k that contains no
            position: cached before it was rotated, or used with a bias or a
            score that depends on `cache.positions`.

    Returns:
        The cache at the new positions.

    Raises:
        ValueError: If `positions` are not integers, or their number or leading
            axes do not match those of k, or `rotate` returns a different shape
            or dtype.

    Example:
        >>> k, at = torch.zeros(1, 2, 3, 4), torch.tensor([[0, 4, 5]])
        >>> cache = KeyValueCache(k, k, at, torch.ones_like(at))
        >>> move_positions(cache, torch.arange(3), None).positions
        tensor([[0, 1, 2]])
    """
    _check_integers("positions", positions)
    _check_rows("positions", positions, cache.k, cache.k.shape[-2])
    here, given = cache.positions.shape[:-1], positions.shape[:-1]
    rows = torch.broadcast_shapes(here, given)
    at, documents = (
        each.expand(*rows, -1) for each in (positions, cache.documents)
    )
    k = cache.k
    if rotate is not None:
        k = rotate(k, at.long() - cache.positions.long())
        for want, got in (
            (tuple(cache.k.shape), tuple(k.shape)),
            (cache.k.dtype, k.dtype),
        ):
            if got != want:
                raise ValueError(f"rotate must give k as {want}, got {got}")
    return KeyValueCache(k, cache.v, at, documents)


def pad_cache(cache: KeyValueCache, slots: int) -> KeyValueCache:
    """Return the cache padded to a fixed number of slots (static cache).

    `write_slots` fills the new slots. The shapes of the result never change, as
    compiled steps require. Slots that have not been written have document -1,
    which no token may have, so `attention_mask` hides them. This is not for
    methods that count slots instead of using positions.

    Args:
        cache: The cache to copy.
        slots: Number of slots of the result, at least the number of keys of
            `cache`.

    Returns:
        The padded cache.

    Raises:
        ValueError: If there are fewer `slots` than keys in the cache.

    Example:
        >>> k, at = torch.zeros(1, 2, 3, 4), torch.tensor([[0, 1, 2]])
        >>> prompt = KeyValueCache(k, k, at, torch.ones_like(at))
        >>> cache, one = pad_cache(prompt, slots=5), slice(0, 1)
        >>> new = k[..., one, :], k[..., one, :], at[:, one] + 3, at[:, one] + 1
        >>> write_slots(cache, torch.tensor([3]), *new)
        >>> cache.positions, cache.documents
        (tensor([[0, 1, 2, 3, 0]]), tensor([[ 1,  1,  1,  1, -1]]))
    """
    keys = cache.positions.shape[-1]
    if slots < keys:
        raise ValueError(f"slots must be {keys} or more, got {slots}")
    room, pad = (0, slots - keys), torch.nn.functional.pad
    return KeyValueCache(
        pad(cache.k, (0, 0, *room)),
        pad(cache.v, (0, 0, *room)),
        pad(cache.positions, room),
        pad(cache.documents.long(), room, value=-1),
    )


def write_slots(
    cache: KeyValueCache,
    slots: Tensor,  # (tokens)
    k: Tensor,  # (..., heads, tokens, dim)
    v: Tensor,  # (..., heads, tokens, value_dim)
    positions: Tensor,  # (..., tokens)
    documents: Tensor,  # (..., tokens)
) -> None:
    """Write tokens into slots of a cache, in place.

    Unlike the other functions, this one changes the cache. The tokens are
    converted to the dtypes of the cache.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        cache: A cache from `pad_cache`.
        slots: Slot index of each token, shape `(tokens,)`, integers.
        k: Keys, shape `(..., heads, tokens, dim)`.
        v: Values, shape `(..., heads, tokens, value_dim)`.
        positions: Position of each token, shape `(..., tokens)`, integers.
        documents: Document number of each token, shape `(..., tokens)`,
            integers or bool; not -1.

    Raises:
        ValueError: In the cases listed for `KeyValueCache`. Tokens that do not
            fit the cache and, on the CPU, an index out of range raise torch's
            own error.
    """
    new = KeyValueCache(k, v, positions, documents)
    for name in ("k", "v"):
        old = getattr(cache, name)
        old.index_copy_(-2, slots, getattr(new, name).to(old.dtype))
    for name in ("positions", "documents"):
        old = getattr(cache, name)
        more = getattr(new, name).expand(*old.shape[:-1], -1)
        old.index_copy_(-1, slots, more.to(old.dtype))


def attend(
    q: Tensor,  # (..., heads, queries, dim)
    k: Tensor,  # (..., key_heads, keys, dim)
    v: Tensor,  # (..., key_heads, keys, value_dim)
    mask: Tensor,  # (..., queries, keys)
    bias: Tensor | None = None,  # (..., queries, keys)
    scale: float | None = None,
) -> Tensor:
    """Compute attention with torch's kernel, for a mask from `attention_mask`.

    Do not combine it with is_causal, which hides keys by their index, counted
    from the first key.

    On the CPU, torch has a fused kernel, which stores no weights, for q, k and
    v whose last axis is contiguous, values as wide as q, and a bias that needs
    no gradient. Everything else is slower and, with a gradient, stores all
    weights. Under autocast, the kernel computes in the dtype of autocast.

    Supports compile, export, vmap, mps; no host-device sync.

    Args:
        q: Queries, shape `(..., heads, queries, dim)`.
        k: Keys, shape `(..., key_heads, keys, dim)`. Each key head serves heads
            / key_heads heads of `q`, in order.
        v: Values, shape `(..., key_heads, keys, value_dim)`.
        mask: Mask from `attention_mask`, shape `(..., queries, keys)`, bool. If
            all sequences share it, the batch axis may be 1 or missing.
        bias: Added to the scores, shape `(..., queries, keys)`, where axes
            before the last two may be 1 or missing; floating-point, in the
            dtype of `q` or float32. A method with its own score is a bias, too:
            `bias=shaw_scores(q, k, ...)` with `scale=0`.
        scale: Factor of the dot products; None is 1 / sqrt(dim).

    Returns:
        The outputs, shape `(..., heads, queries, value_dim)`.

    Raises:
        ValueError: If `k` has a different width from `q`, or a number of heads
            that does not divide that of `q`; the batch axes of `k` or `v`
            differ from those of `q`; `v` does not have the heads and keys of
            `k`; there are fewer than 3 axes; `q`, `k` and `v` have more than
            one dtype, without autocast; `mask` is not bool or its shape does
            not match; or `bias` does not have the shape or dtype described
            above.

    Example:
        >>> q, v = torch.zeros(1, 1, 4), torch.tensor([[[1.0], [2.0], [9.0]]])
        >>> mask = torch.tensor([[True, True, False]])
        >>> attend(q, torch.zeros(1, 3, 4), v, mask)
        tensor([[[1.5000]]])
    """
    _check_heads(q, k, v)
    *batch, heads, queries, _ = q.shape
    keys = k.shape[-2]
    alike = queries, keys  # for all of a batch
    shape = (*batch, *alike)
    if mask.dtype != torch.bool:
        raise ValueError(f"mask must be bool, got {mask.dtype}")
    if tuple(mask.shape) not in (shape, (1, *alike), alike):
        raise ValueError(
            f"mask must be {shape} or {alike}, as q and k are read as "
            f"(..., heads, tokens, dim), got {tuple(mask.shape)}"
        )
    attn_mask = mask[..., None, :, :]  # one for all heads
    if bias is not None:
        _check_bias(bias, q, (*batch, heads, *alike))
        attn_mask = bias.masked_fill(
            ~attn_mask, -math.inf
        )  # (..., queries, keys)
    if math.prod(attn_mask.shape[:-3]) != 1:
        attn_mask = attn_mask.expand(*batch, *attn_mask.shape[-3:])
    # not the comparison itself, which is not a bool under torch.compile
    grouped = {"enable_gqa": True} if heads != k.shape[-3] else {}
    # fused kernels want four axes, of the mask too
    q, k, v, attn_mask = (
        each.reshape(math.prod(each.shape[:-3]), *each.shape[-3:])
        for each in (q, k, v, attn_mask)
    )
    made = scaled_dot_product_attention(
        q, k, v, attn_mask=attn_mask, scale=scale, **grouped
    )
    return made.reshape(*batch, *made.shape[-3:])


def flex_attention_mask(
    query_positions: Tensor,  # (batch, queries)
    key_positions: Tensor,  # (batch, keys)
    query_documents: Tensor,  # (batch, queries)
    key_documents: Tensor,  # (batch, keys)
    causal: bool = True,
    window: int | None = None,
) -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]:
    """Return the mask as a mask_mod for create_block_mask of flex_attention.

    The mask is the same as that of `attention_mask`.

    Supports autocast, compile, vmap, mps; no host-device sync.

    Args:
        query_positions: Positions of the queries, shape `(batch, queries)`,
            integers. A batch of 1, for queries and keys, serves every sequence.
        key_positions: Positions of the keys, shape `(batch, keys)`, integers.
        query_documents: Document numbers of the queries, in the shape of
            `query_positions`, integers or bool.
        key_documents: Document numbers of the keys, in the shape of
            `key_positions`, integers or bool.
        causal: See `attention_mask`.
        window: See `attention_mask`.

    Returns:
        The mask_mod, a function of the indices of batch, head, query and key.

    Raises:
        ValueError: In the cases listed for `attention_mask`, or if positions do
            not have the shape `(batch, tokens)`.
    """
    _check_pair("query", query_positions, query_documents)
    _check_pair("key", key_positions, key_documents)
    _check_sides(query_positions, key_positions, "batch")
    _check_window(window)
    many = len(query_positions) > 1
    query_positions = query_positions.long()

    def mask_mod(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        row = b * many
        mask = query_documents[row, i] == key_documents[row, j]
        distance = query_positions[row, i] - key_positions[row, j]
        if causal:
            mask = mask & (distance >= 0)
        if window is not None:
            mask = mask & (distance.abs() < window)
        return mask

    return mask_mod


def flex_bias(
    by_distance: Tensor,  # (heads, distances)
    query_positions: Tensor,  # (batch, queries)
    key_positions: Tensor,  # (batch, keys)
) -> Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]:
    """Return a causal bias that depends only on distances, as a score_mod.

    Under torch.compile, flex_attention does not create a tensor of queries x
    keys from it. For ALiBi:

        n, slopes = torch.tensor([99]), alibi_slopes(heads)
        by_distance = alibi_bias(n, torch.arange(100), slopes)[:, 0].flip(-1)

    Supports autocast, compile, vmap, mps; no host-device sync.

    Args:
        by_distance: Bias of one query for the keys before it, nearest key
            first, shape `(heads, distances)`. It must reach the largest
            distance of any key before a query, hidden or not: beyond its end,
            torch's own index error is raised.
        query_positions: Positions of the queries, shape `(batch, queries)`,
            integers. A batch of 1, for queries and keys, serves every sequence.
        key_positions: Positions of the keys, shape `(batch, keys)`, integers.

    Returns:
        The score_mod, a function of the score and the indices of batch, head,
        query and key.

    Raises:
        ValueError: If the shapes do not match or positions are not integers.
    """
    if by_distance.ndim != 2:
        shape = tuple(by_distance.shape)
        raise ValueError(f"by_distance must be (heads, distances), got {shape}")
    _check_integers("query positions", query_positions)
    _check_integers("key positions", key_positions)
    _check_sides(query_positions, key_positions, "batch")
    many = len(query_positions) > 1
    query_positions = query_positions.long()

    def score_mod(
        score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor
    ) -> Tensor:
        row = b * many
        distance = query_positions[row, i] - key_positions[row, j]
        return score + by_distance[h, distance.clamp(min=0)]

    return score_mod


def _positions_of(have: tuple[int, ...]) -> str:
    """Return the hint for a k or v that has more axes than the positions."""
    return (
        f": its positions must be {(*have[:-3], have[-2])}, "
        "or 1 for an axis, of layers or texts, that shares them"
    )


def _check_heads(q: Tensor, k: Tensor, v: Tensor) -> None:
    for name, each in (("q", q), ("k", k), ("v", v)):
        if each.ndim < 3:
            have = tuple(each.shape)
            raise ValueError(
                f"{name} must be (..., heads, tokens, dim), got {have}"
            )
    if k.shape[-1] != q.shape[-1]:
        raise ValueError(
            f"k must be as wide as q, {q.shape[-1]}, got {k.shape[-1]}"
        )
    *batch, heads = q.shape[:-2]
    key_heads, keys = k.shape[-3:-1]
    if not key_heads or heads % key_heads or v.shape[-3] != key_heads:
        raise ValueError(
            f"k and v must have heads that divide the {heads} of q, "
            f"got {key_heads} and {v.shape[-3]}"
        )
    for name, each in (("k", k), ("v", v)):
        want, have = (*batch, key_heads, keys), tuple(each.shape)
        if have[:-1] != want:
            dim = "dim" if name == "k" else "value_dim"
            raise ValueError(f"{name} must be {(*want, dim)}, got {have}")
    kinds = q.dtype, k.dtype, v.dtype
    if len(set(kinds)) > 1 and not _casts(q):
        raise ValueError(f"q, k and v must be of one dtype, got {kinds}")


def _check_bias(bias: Tensor, q: Tensor, want: tuple[int, ...]) -> None:
    if not bias.is_floating_point():
        raise ValueError(
            f"bias must have a floating-point dtype, got {bias.dtype}"
        )
    if bias.dtype not in (q.dtype, torch.float32) and not _casts(q):
        raise ValueError(
            f"bias must be of q's dtype, {q.dtype}, or float32, "
            f"got {bias.dtype}"
        )
    have = tuple(bias.shape)
    axes = zip(have[-3::-1], want[-3::-1], strict=False)
    fits = have[-2:] == want[-2:] and len(have) <= len(want)
    if not fits or any(n not in (1, of) for n, of in axes):
        raise ValueError(
            f"bias must be {want}, where any axis but the last two may be 1 or "
            f"missing, got {have}"
        )


def _casts(x: Tensor) -> bool:
    """Return whether autocast will convert all tensors to one dtype."""
    return torch.is_autocast_enabled("cpu" if x.is_meta else x.device.type)


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
            f"equal before the last axis, got {have[0]} and {have[1]}"
        )


def _check_rows(name: str, given: Tensor, k: Tensor, last: int | str) -> None:
    want, have = (*k.shape[:-3], last), tuple(given.shape)
    axes = zip(have[-2::-1], want[-2::-1], strict=False)
    fits = 1 <= len(have) <= len(want) and last in ("kept", have[-1])
    if not fits or any(n not in (1, of) for n, of in axes):
        raise ValueError(
            f"{name} must be {want}, where any axis but the last may be 1 or "
            f"missing, got {have}"
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


# Former names, kept until the next release.
visible = attention_mask
flex_visible = flex_attention_mask
kept = keep_slots
moved = move_positions
with_room = pad_cache
write = write_slots
