# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-23
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

kept and moved make room in a long text, or bring a text that was read alone to
another place. What its tokens saw when they were read stays in their k and v.

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

    Fit for autocast, compile, export, vmap, mps; no sync.

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

    If the queries are among the keys, every token sees itself, padding too: no
    row is all hidden, for which softmax has no answer. Before their last axis
    both sides are equal: one row for all texts of a batch is (1, queries) and
    (1, keys). Without causal, keys may come later too. A window hides keys
    whose positions are window or more away. It counts the token itself: with
    causal a token sees window keys, and with 1 none but itself. So does
    sliding_window of transformers' decoders. That of its models that read both
    ways, such as ModernBERT, and window_size of FlashAttention count the others
    alone: give one more here.

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

    Fit for autocast, compile, export, vmap, mps; no sync.

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
    where an axis of 1 is for all: (1, keys) for all texts of a batch. extend
    returns a longer one. The shorter is still there: go back to it, or to
    first(keys) of the longer, when guessed tokens are rejected. If rows of a
    batch reject different numbers, keep all and give the rejected a document of
    their own.

    Each layer has a cache. Its positions and documents take 16 bytes per token
    and text, as int64, beside k and v. One cache may hold all layers, and these
    once: k is then (layers, batch, heads, keys, dim), positions (1, batch,
    keys). Let layer n see torch.cat((cache.k[n], k), -2), and extend by the new
    keys of all layers, stacked, which copies old ones once more.

    >>> k, at = torch.zeros(1, 2, 3, 4), torch.tensor([[0, 1, 2]])
    >>> prompt = KeyValueCache(k, k, at, torch.ones_like(at))
    >>> guess = prompt.extend(k, k, at + 3, torch.ones_like(at))
    >>> guess.first(4).positions  # one of three was right
    tensor([[0, 1, 2, 3]])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: shapes that do not fit; positions no integers, documents neither
    integers nor bool; first below 0 or of more keys than there are.
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
        """The cache and after it these tokens, of shapes as there."""
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
        """The cache as it was when it had so many keys: views, no copies."""
        most = self.positions.shape[-1]
        if not 0 <= keys <= most:
            raise ValueError(f"keys must be 0 to {most}, got {keys}")
        return KeyValueCache(
            self.k[..., :keys, :],
            self.v[..., :keys, :],
            self.positions[..., :keys],
            self.documents[..., :keys],
        )


def kept(
    cache: KeyValueCache,
    places: Tensor,  # (..., kept)
) -> KeyValueCache:
    """The cache with the keys at these places alone, each as it was.

    places count from 0 as the keys stand, whatever their positions are, and
    their order is that of the new cache. They are (kept,) for all rows, or as
    many for each. Positions keep their gaps: the next token has the next one
    after the last, or moved closes the gaps. In rows where fewer are to go,
    give some a document of their own instead.

    >>> k, at = torch.zeros(1, 2, 6, 4), torch.arange(6)[None]
    >>> cache = KeyValueCache(k, k, at, torch.ones_like(at))
    >>> kept(cache, torch.tensor([0, 4, 5])).positions
    tensor([[0, 4, 5]])

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: places no integers, or of other rows than k. A place that there
    is not is torch's own error on the CPU.
    """
    _check_integers("places", places)
    _check_rows("places", places, cache.k, "kept")
    here, given = cache.positions.shape[:-1], places.shape[:-1]
    rows = torch.broadcast_shapes(here, given)
    at = places.long().expand(*rows, -1)  # (..., kept)
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


def moved(
    cache: KeyValueCache,
    positions: Tensor,  # (..., keys)
    turn: Callable[[Tensor, Tensor], Tensor] | None,
) -> KeyValueCache:
    """The cache with its tokens at other positions: (keys,), or as many a row.

    turn(k, offsets) says what becomes of k, (..., heads, keys, dim), where each
    token moves on by its offset, (..., keys), or back if that is below 0. For
    k that was turned by RoPE it is RoPE once more,

        lambda k, by: apply_rope(k, *rope_tables(by, frequencies), layout)

    by the frequencies of then, and without the attention factor of YaRN or
    LongRoPE, which k has already. Each turn rounds k once more. Of a cache that
    holds all layers it has to turn them one by one. None is for k that holds no
    position: cached before it was turned, or with a bias or a score that reads
    cache.positions. What was added to the embeddings is in k and in v, and no
    turn takes it out.

    >>> k, at = torch.zeros(1, 2, 3, 4), torch.tensor([[0, 4, 5]])
    >>> cache = KeyValueCache(k, k, at, torch.ones_like(at))
    >>> moved(cache, torch.arange(3), None).positions
    tensor([[0, 1, 2]])

    Positions left on the CPU are copied in each call: the host waits for that.

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: positions no integers, not as many as keys or of other rows than
    k; a turn that gives another shape or dtype.
    """
    _check_integers("positions", positions)
    _check_rows("positions", positions, cache.k, cache.k.shape[-2])
    here, given = cache.positions.shape[:-1], positions.shape[:-1]
    rows = torch.broadcast_shapes(here, given)
    at, documents = (
        each.expand(*rows, -1) for each in (positions, cache.documents)
    )
    k = cache.k
    if turn is not None:
        k = turn(k, at.long() - cache.positions.long())
        for want, got in (
            (tuple(cache.k.shape), tuple(k.shape)),
            (cache.k.dtype, k.dtype),
        ):
            if got != want:
                raise ValueError(f"turn must give k as {want}, got {got}")
    return KeyValueCache(k, cache.v, at, documents)


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

    Fit for autocast, compile, export, vmap, mps; no sync.

    ValueError: as KeyValueCache. What does not fit the cache, and on the CPU a
    place that there is not, is torch's own error.
    """
    new = KeyValueCache(k, v, positions, documents)
    for name in ("k", "v"):
        old = getattr(cache, name)
        old.index_copy_(-2, places, getattr(new, name).to(old.dtype))
    for name in ("positions", "documents"):
        old = getattr(cache, name)
        more = getattr(new, name).expand(*old.shape[:-1], -1)
        old.index_copy_(-1, places, more.to(old.dtype))


def attend(
    q: Tensor,  # (..., heads, queries, dim)
    k: Tensor,  # (..., key_heads, keys, dim)
    v: Tensor,  # (..., key_heads, keys, value_dim)
    seen: Tensor,  # (..., queries, keys)
    bias: Tensor | None = None,  # (..., queries, keys)
    scale: float | None = None,
) -> Tensor:
    """Attention by torch's kernel: (..., heads, queries, value_dim).

    seen is that of visible, with a batch of 1 or none where all see alike, bias
    of any method that adds to the scores. A score of its own is a bias too:
    bias=shaw_scores(q, k, ...) with scale=0. Never is_causal besides: it hides
    keys by their index, from the first key on. k and v may have fewer heads
    than q: each serves heads / key_heads of them, in order.

    On the CPU torch has a fused kernel, which keeps no weights, for q, k and v
    whose last axis is contiguous, values as wide as q, and a bias that needs no
    gradient. All else is slower, and with a gradient holds all weights. Under
    autocast it computes in its dtype.

    >>> q, v = torch.zeros(1, 1, 4), torch.tensor([[[1.0], [2.0], [9.0]]])
    >>> attend(q, torch.zeros(1, 3, 4), v, torch.tensor([[True, True, False]]))
    tensor([[[1.5000]]])

    Fit for compile, export, vmap, mps; no sync.

    ValueError: k of another width, or with heads that do not divide those of q;
    k or v with another batch; v not with the heads and keys of k; fewer than 3
    axes; more than one dtype, without autocast; seen not bool or not the
    queries and keys of q and k; a bias that does not fit the scores, or is not
    floating, of q's dtype or float32.
    """
    _check_heads(q, k, v)
    *batch, heads, queries, _ = q.shape
    keys = k.shape[-2]
    alike = queries, keys  # for all of a batch
    shape = (*batch, *alike)
    if seen.dtype != torch.bool:
        raise ValueError(f"seen must be bool, got {seen.dtype}")
    if tuple(seen.shape) not in (shape, (1, *alike), alike):
        raise ValueError(
            f"seen must be {shape} or {alike}, as q and k are read as "
            f"(..., heads, tokens, dim), got {tuple(seen.shape)}"
        )
    mask = seen[..., None, :, :]  # one for all heads
    if bias is not None:
        _check_bias(bias, q, (*batch, heads, *alike))
        mask = bias.masked_fill(~mask, -math.inf)  # (..., queries, keys)
    if math.prod(mask.shape[:-3]) != 1:
        mask = mask.expand(*batch, *mask.shape[-3:])
    # not the comparison itself, which is no bool under torch.compile
    grouped = {"enable_gqa": True} if heads != k.shape[-3] else {}
    # fused kernels want four axes, of the mask too
    q, k, v, mask = (
        each.reshape(math.prod(each.shape[:-3]), *each.shape[-3:])
        for each in (q, k, v, mask)
    )
    made = scaled_dot_product_attention(
        q, k, v, attn_mask=mask, scale=scale, **grouped
    )
    return made.reshape(*batch, *made.shape[-3:])


def flex_visible(
    query_positions: Tensor,  # (batch, queries)
    key_positions: Tensor,  # (batch, keys)
    query_documents: Tensor,  # (batch, queries)
    key_documents: Tensor,  # (batch, keys)
    causal: bool = True,
    window: int | None = None,
) -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]:
    """visible as a mask_mod for create_block_mask of flex_attention.

    A batch of 1, on both sides, serves every text. causal and window are those
    of visible.

    Fit for autocast, compile, vmap, mps; no sync.

    ValueError: as visible; positions that are not (batch, tokens).
    """
    _check_pair("query", query_positions, query_documents)
    _check_pair("key", key_positions, key_documents)
    _check_sides(query_positions, key_positions, "batch")
    _check_window(window)
    many = len(query_positions) > 1
    query_positions = query_positions.long()

    def mask_mod(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        row = b * many
        seen = query_documents[row, i] == key_documents[row, j]
        distance = query_positions[row, i] - key_positions[row, j]
        if causal:
            seen = seen & (distance >= 0)
        if window is not None:
            seen = seen & (distance.abs() < window)
        return seen

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
    torch's own index error. A batch of 1, on both sides, serves every text.

    Fit for autocast, compile, vmap, mps; no sync.

    ValueError: shapes that do not fit; positions no integers.
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
    """What an error says of a k or v that has more axes than positions."""
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
        raise ValueError(f"bias must be of a floating dtype, got {bias.dtype}")
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
    """Whether autocast will bring all to one dtype."""
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
