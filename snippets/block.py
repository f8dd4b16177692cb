# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-23
"""Transformer decoder that accepts any positional encoding.

An encoding overrides some of four methods, in most cases one:

    embed    the input of the first layer, at each position
    rotate   the query or key, at its position
    bias     the number that is added to the score of a query and a key
    score    the function that computes the score of a query and a key

The methods of Encoding itself ignore the positions. Override one and pass the
encoding to Decoder; nothing else changes. Two results that are the same in all
layers are computed once per call: `tables`, which contains all that `rotate`
needs of the positions, and the bias, which is combined with the mask. An
encoding that is added to the values, such as Shaw's second table, is not
supported here.

Every token comes with its position and the number of its document, so that
padding, packing and a cache give correct results; decoding.py describes how to
compute both. Both have the shape `(rows, tokens)`, where rows is the batch
size, or 1 if all sequences share them.

References:
    Vaswani et al. 2017, arXiv:1706.03762, section 3, with normalisation before
    each part and one matrix for input and output tokens, as in
    github.com/openai/gpt-2 at 9b63575, src/model.py.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn


class Encoding(nn.Module):
    """Encode no positions: override embed, rotate, bias or score."""

    def embed(
        self,
        x: Tensor,  # (batch, tokens, dim)
        positions: Tensor,  # (rows, tokens)
    ) -> Tensor:
        """Return the input of the first layer.

        Args:
            x: Token embeddings, shape `(batch, tokens, dim)`.
            positions: Position of each token, shape `(rows, tokens)`.

        Returns:
            The input, with the shape and dtype of `x`.
        """
        return x

    def tables(
        self,
        positions: Tensor,  # (rows, tokens)
    ) -> Any:
        """Return what `rotate` needs of the positions, once for all layers.

        Args:
            positions: Position of each token, shape `(rows, tokens)`.

        Returns:
            Anything that `rotate` takes as `tables`.
        """
        return positions

    def rotate(
        self,
        x: Tensor,  # (batch, heads, tokens, dim)
        tables: Any,
        role: str,
    ) -> Tensor:
        """Return the query or key with its position encoded.

        Args:
            x: Queries or keys, shape `(batch, heads, tokens, dim)`.
            tables: The result of `tables` for these tokens.
            role: "query" or "key".

        Returns:
            The result, with the shape and dtype of `x`.
        """
        return x

    def bias(
        self,
        query_positions: Tensor,  # (rows, queries)
        key_positions: Tensor,  # (rows, keys)
    ) -> Tensor | None:
        """Return the bias to add to the scores.

        Args:
            query_positions: Positions of the queries, shape `(rows, queries)`.
            key_positions: Positions of the keys, shape `(rows, keys)`.

        Returns:
            The bias, shape `(heads, queries, keys)` or
            `(rows, heads, queries, keys)`, where -inf hides a key; None if
            there is none.
        """
        return None

    def score(
        self,
        q: Tensor,  # (batch, heads, queries, dim)
        k: Tensor,  # (batch, heads, keys, dim)
        query_positions: Tensor,  # (rows, queries)
        key_positions: Tensor,  # (rows, keys)
    ) -> Tensor:
        """Return the score of each query and key.

        Args:
            q: Queries, shape `(batch, heads, queries, dim)`.
            k: Keys, shape `(batch, heads, keys, dim)`.
            query_positions: Positions of the queries, shape `(rows, queries)`.
            key_positions: Positions of the keys, shape `(rows, keys)`.

        Returns:
            Scores, shape `(batch, heads, queries, keys)`.
        """
        return q / math.sqrt(q.shape[-1]) @ k.mT


def additive_mask(
    seen: Tensor,  # (rows, queries, keys)
    bias: Tensor | None,  # (..., queries, keys)
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Return the mask to add to the scores, with the bias in it.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        seen: Whether each query sees each key, shape `(rows, queries, keys)`,
            bool.
        bias: Bias to combine with the mask, shape `(..., queries, keys)`, or
            None.
        dtype: Dtype of the result if there is no bias.

    Returns:
        The bias, or 0, where `seen` is True, and -inf elsewhere; shape
        `(rows, 1, queries, keys)`, or with the heads of `bias`.
    """
    if bias is None:
        bias = torch.zeros((), dtype=dtype, device=seen.device)
    return bias.masked_fill(~seen[:, None], -math.inf)


class Block(nn.Module):
    """Apply attention and then a network for each token, each added to x.

    Supports compile, export, vmap, per-sample gradients, mps; no host-device
    sync.

    Args:
        dim: Number of channels; a multiple of `heads`.
        heads: Number of heads.
    """

    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(dim), nn.LayerNorm(dim)])
        self.project = nn.Linear(dim, 3 * dim, bias=False)
        self.merge = nn.Linear(dim, dim, bias=False)
        self.network = nn.Sequential(
            nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)
        )

    def forward(
        self,
        x: Tensor,  # (batch, tokens, dim)
        encoding: Encoding,
        tables: Any,
        query_positions: Tensor,  # (rows, tokens)
        key_positions: Tensor,  # (rows, keys)
        mask: Tensor,  # (..., tokens, keys)
        past: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return the new x, and the keys and values of all tokens so far.

        Shapes are not checked: Decoder ensures that they match.

        Args:
            x: Inputs, shape `(batch, tokens, dim)`.
            encoding: The positional encoding.
            tables: The result of `encoding.tables` for `query_positions`.
            query_positions: Positions of the tokens, shape `(rows, tokens)`.
            key_positions: Positions of all keys, cached ones included, shape
                `(rows, keys)`.
            mask: The result of `additive_mask`, shape `(..., tokens, keys)`.
            past: Keys and values that this block returned before, or None.

        Returns:
            The outputs, in the shape of `x`, and the pair of keys and values to
            pass as `past` in the next call.
        """
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.project(self.norms[0](x)).chunk(3, -1)
        )
        q = encoding.rotate(q, tables, "query")
        k = encoding.rotate(k, tables, "key")
        if past is not None:
            k, v = torch.cat((past[0], k), -2), torch.cat((past[1], v), -2)
        scores = encoding.score(q, k, query_positions, key_positions)
        weights = (scores + mask).softmax(-1)  # (batch, heads, tokens, keys)
        each = weights @ v  # (batch, heads, tokens, width)
        x = x + self.merge(each.transpose(1, 2).flatten(-2))
        return x + self.network(self.norms[1](x)), (k, v)


class Decoder(nn.Module):
    """Map token ids, positions and documents to logits of the next token.

    A token sees the tokens of its document that do not come after it. All
    layers share the encoding.

    Token embeddings are initialised with standard deviation 0.02. If the model
    was created on the "meta" device, reset_parameters of nn.Embedding
    initialises them with 1: call
    `nn.init.normal_(decoder.tokens.weight, std=0.02)`.

    Supports compile, export, vmap, per-sample gradients, mps; no host-device
    sync.

    Args:
        encoding: The positional encoding.
        vocabulary: Number of tokens in the vocabulary.
        dim: Number of channels; a positive multiple of `heads`.
        heads: Number of heads; at least 1.
        layers: Number of layers.
        scale: Factor of the token embeddings.

    Raises:
        ValueError: If `dim` is not a positive multiple of `heads`.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> model = Decoder(Encoding(), vocabulary=9, dim=8, heads=2, layers=2)
        >>> ids, at, of = torch.tensor([[[4, 2, 7]], [[0, 1, 2]], [[1, 1, 1]]])
        >>> whole, _ = model(ids, at, of)
        >>> _, past = model(ids[:, :2], at[:, :2], of[:, :2])
        >>> last, _ = model(ids[:, 2:], at[:, 2:], of[:, 2:], past)
        >>> (whole[:, 2:] - last).abs().max() < 1e-6
        tensor(True)
    """

    def __init__(
        self,
        encoding: Encoding,
        vocabulary: int,
        dim: int,
        heads: int,
        layers: int,
        scale: float = 1.0,
    ):
        super().__init__()
        if heads < 1 or dim < 1 or dim % heads:
            raise ValueError(
                f"dim must be a multiple of heads, got {dim} and {heads}"
            )
        self.encoding = encoding
        self.scale = scale
        self.tokens = nn.Embedding(vocabulary, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(
        self,
        ids: Tensor,  # (batch, tokens)
        positions: Tensor,  # (rows, tokens)
        documents: Tensor,  # (rows, tokens)
        past: tuple[list, Tensor, Tensor] | None = None,
    ) -> tuple[Tensor, tuple[list, Tensor, Tensor]]:
        """Return the logits and the cache to pass in the next call.

        Args:
            ids: Token ids, shape `(batch, tokens)`.
            positions: Position of each token, shape `(rows, tokens)`.
            documents: Document number of each token, shape `(rows, tokens)`.
            past: The cache that an earlier call returned; None for the first
                call.

        Returns:
            The logits, shape `(batch, tokens, vocabulary)`, and the cache: the
            keys and values of each layer, and all positions and documents.

        Raises:
            ValueError: If `ids` does not have the shape `(batch, tokens)`, or
                `positions` and `documents` do not both have that shape or both
                `(1, tokens)`.
        """
        shapes = [tuple(each.shape) for each in (ids, positions, documents)]
        one = (1, *shapes[0][1:])
        if ids.ndim != 2 or shapes[1:] not in ([shapes[0]] * 2, [one] * 2):
            raise ValueError(
                "ids must be (batch, tokens), positions and documents both the "
                f"same or both (1, tokens), got {tuple(shapes)}"
            )
        x = self.encoding.embed(self.scale * self.tokens(ids), positions)
        layers, at, of = [None] * len(self.blocks), positions, documents
        if past is not None:
            layers = past[0]
            at, of = torch.cat((past[1], at), -1), torch.cat((past[2], of), -1)
        seen = of[:, None, :] == documents[:, :, None]
        seen = seen & (at[:, None, :] <= positions[:, :, None])
        mask = additive_mask(seen, self.encoding.bias(positions, at), x.dtype)
        place = self.encoding.tables(positions), positions, at, mask
        present = []
        for block, old in zip(self.blocks, layers, strict=True):
            x, new = block(x, self.encoding, *place, old)
            present.append(new)
        return self.norm(x) @ self.tokens.weight.T, (present, at, of)
