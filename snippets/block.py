# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-23
"""One Transformer decoder with a switch for every encoding of position.

An encoding answers four questions, and most answer one of them:

    embed    what enters the first layer, at each position
    rotate   what becomes of a query or a key, at its position
    bias     what is added to the score of a query and a key
    score    how a query and a key are scored at all

Encoding answers all of them "as if there were no positions". Override one, give
it to Decoder, and nothing else changes. What no layer changes is asked once per
call: tables, which is all that rotate needs of the positions, and the bias,
which joins the mask. A fifth question, what is added to the values, is not
asked here; Shaw's second table answers it.

Every token comes with its position and the number of its document, so that
padding, packing and a cache come out right; decoding.py says how to make both.
Both are (rows, tokens): a row for each text, or one row for all.

Source: arXiv:1706.03762, section 3, with normalisation before each part and one
matrix for tokens in and out, as in github.com/openai/gpt-2 at 9b63575,
src/model.py.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn


class Encoding(nn.Module):
    """No encoding of position: override embed, rotate, bias or score."""

    def embed(
        self,
        x: Tensor,  # (batch, tokens, dim)
        positions: Tensor,  # (rows, tokens)
    ) -> Tensor:
        """What enters the first layer: like x."""
        return x

    def tables(
        self,
        positions: Tensor,  # (rows, tokens)
    ) -> Any:
        """What rotate needs of the positions."""
        return positions

    def rotate(
        self,
        x: Tensor,  # (batch, heads, tokens, dim)
        tables: Any,
        role: str,
    ) -> Tensor:
        """x, like x; role is "query" or "key"."""
        return x

    def bias(
        self,
        query_positions: Tensor,  # (rows, queries)
        key_positions: Tensor,  # (rows, keys)
    ) -> Tensor | None:
        """(heads, queries, keys), or with rows before; -inf hides a key."""
        return None

    def score(
        self,
        q: Tensor,  # (batch, heads, queries, dim)
        k: Tensor,  # (batch, heads, keys, dim)
        query_positions: Tensor,  # (rows, queries)
        key_positions: Tensor,  # (rows, keys)
    ) -> Tensor:
        """Of each query and key: (batch, heads, queries, keys)."""
        return q / math.sqrt(q.shape[-1]) @ k.mT


def additive_mask(
    seen: Tensor,  # (rows, queries, keys)
    bias: Tensor | None,  # (..., queries, keys)
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """What is added to scores: -inf where seen is False, else bias or 0.

    (rows, 1, queries, keys), or with as many heads as bias; dtype is that of
    the mask if there is no bias.

    Fit for autocast, compile, export, vmap, mps; no sync.
    """
    if bias is None:
        bias = torch.zeros((), dtype=dtype, device=seen.device)
    return bias.masked_fill(~seen[:, None], -math.inf)


class Block(nn.Module):
    """Attention, then a network for each token; both are added to x.

    tables is what encoding.tables gave for query_positions, mask the one of
    additive_mask. forward returns the new x and the keys and values of all
    tokens so far; past is what it returned before. Shapes are not checked:
    Decoder sees to them.

    Fit for compile, export, vmap, gradients per sample, mps; no sync.
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
    """Token ids, positions and documents to scores of the next token.

    forward returns (batch, tokens, vocabulary) and what a later call takes as
    past: the keys and values of each layer, and all positions and documents. A
    token sees those of its document that do not come after it. scale multiplies
    the token embeddings; all layers share the encoding. Tokens are drawn with
    standard deviation 0.02: after a start on no device, where reset_parameters
    of nn.Embedding draws with 1, call
    nn.init.normal_(decoder.tokens.weight, std=0.02).

    >>> _ = torch.manual_seed(0)
    >>> model = Decoder(Encoding(), vocabulary=9, dim=8, heads=2, layers=2)
    >>> ids, at, of = torch.tensor([[[4, 2, 7]], [[0, 1, 2]], [[1, 1, 1]]])
    >>> whole, _ = model(ids, at, of)
    >>> _, past = model(ids[:, :2], at[:, :2], of[:, :2])
    >>> last, _ = model(ids[:, 2:], at[:, 2:], of[:, 2:], past)
    >>> (whole[:, 2:] - last).abs().max() < 1e-6
    tensor(True)

    Fit for compile, export, vmap, gradients per sample, mps; no sync.

    ValueError: dim not a multiple of heads; ids not (batch, tokens); positions
    and documents not both of that shape or both (1, tokens).
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
