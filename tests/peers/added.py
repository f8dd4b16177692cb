"""Who else adds something to embeddings."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import nn

from snippets.embed import Embed
from snippets.gated_encoding import gated_encoding
from snippets.graph_positions import random_walk_encoding
from snippets.learned import AddLearned
from snippets.sinusoidal import sinusoidal_encoding, sinusoidal_encoding_t2t
from snippets.sinusoidal_2d import axial_sinusoids, grid_positions
from snippets.vit_table import resize_table
from tests.peers import ANEW, BASE, DIM, FLOAT32, HELD, Case, Way, learnable, peer

MODELS = "transformers.models"
RANGE = "the range of the positions, where the snippet names what the table lacks"


def gptj(tokens, dim, base):
    return peer(f"{MODELS}.gptj.modeling_gptj").create_sinusoidal_positions(tokens, dim)


def roformer_embedding(tokens, dim):
    """A module, which holds its table."""
    module = peer(f"{MODELS}.roformer.modeling_roformer")
    embedding = module.RoFormerSinusoidalPositionalEmbedding(tokens, dim).requires_grad_(False)
    embedding.weight.data = embedding.create_weight()
    return embedding


def roformer(tokens, dim, base):
    return roformer_embedding(tokens, dim).weight


def x_transformers(tokens, dim, base):
    embedding = peer("x_transformers.x_transformers").ScaledSinusoidalEmbedding(dim, theta=base)
    return (embedding(torch.zeros(1, tokens, 0)) / embedding.scale).detach()


def m2m_100(tokens, dim, base):
    module = peer(f"{MODELS}.m2m_100.modeling_m2m_100")
    return module.M2M100SinusoidalPositionalEmbedding.get_embedding(tokens, dim)


def whisper(tokens, dim, base):
    return peer(f"{MODELS}.whisper.modeling_whisper").sinusoids(tokens, dim, base)


class Sinusoids(NamedTuple):
    """Who has a table of sinusoids, and which of the snippet's two it is."""

    where: str  # as peers.json calls it
    ours: Callable
    table: Callable  # (tokens, dim, base), all sines first
    takes_base: bool = False


SINUSOIDS = [
    Sinusoids(f"{MODELS}.gptj.modeling_gptj.create_sinusoidal_positions", sinusoidal_encoding, gptj),
    Sinusoids(
        f"{MODELS}.roformer.modeling_roformer.RoFormerSinusoidalPositionalEmbedding",
        sinusoidal_encoding,
        roformer,
    ),
    Sinusoids("x_transformers.ScaledSinusoidalEmbedding", sinusoidal_encoding, x_transformers, True),
    Sinusoids(
        f"{MODELS}.m2m_100.modeling_m2m_100.M2M100SinusoidalPositionalEmbedding",
        sinusoidal_encoding_t2t,
        m2m_100,
    ),
    Sinusoids(f"{MODELS}.whisper.modeling_whisper.sinusoids", sinusoidal_encoding_t2t, whisper, True),
]


def sinusoids(batch, heads, tokens):
    dim, at = heads * DIM, torch.arange(tokens)
    x, embedding = learnable(batch, tokens, dim), roformer_embedding(tokens, dim)

    def made():
        return sinusoidal_encoding(at, dim, layout="sin_cos")

    def anew(name, table):
        return Way(name, lambda: x + table(tokens, dim, BASE), less=FLOAT32, only=ANEW)

    ways = [
        Way("", lambda: x + made(), only=ANEW),
        Way("", lambda table: x + table[:tokens], lambda: (made(),), only=HELD),
        anew("transformers' GPT-J", gptj),
        anew("x-transformers", x_transformers),
        Way("transformers' RoFormer", lambda: x + embedding((batch, tokens)), only=HELD),
    ]
    return Case("sinusoidal", "sinusoidal_encoding, added", f"{batch} × {tokens} × {dim}", ways, 1e-3)


def sinusoids_t2t(batch, heads, tokens):
    dim, at = heads * DIM, torch.arange(tokens)
    ways = [
        Way("", lambda: sinusoidal_encoding_t2t(at, dim)),
        Way("transformers' M2M100", lambda: m2m_100(tokens, dim, BASE), less=FLOAT32),
        Way("transformers' Whisper", lambda: whisper(tokens, dim, BASE), less=FLOAT32),
    ]
    return Case("sinusoidal", "sinusoidal_encoding_t2t", f"{tokens} × {dim}", ways, 1e-3)


def sinusoids_2d(batch, heads, tokens):
    dim, grid = heads * DIM, (tokens // 4, 4)
    theirs = peer(f"{MODELS}.vit_mae.modeling_vit_mae").build_2d_sinusoidal_position_embedding

    def ours():
        places = grid_positions(grid, start=0)
        return axial_sinusoids(places, dim, order=(0, 1), layout="sin_cos", base=BASE).flatten(0, 1)

    ways = [Way("", ours), Way("transformers' ViT-MAE", lambda: theirs(*grid, dim))]
    return Case("sinusoidal_2d", "axial_sinusoids", f"{grid[0]} × {grid[1]} × {dim}", ways)


def learned(batch, heads, tokens):
    dim = heads * DIM
    x, at, add = learnable(batch, tokens, dim), torch.arange(tokens), AddLearned(tokens, dim)
    embedding = nn.Embedding.from_pretrained(add.table.data, freeze=False)
    absolute = peer("x_transformers.x_transformers").AbsolutePositionalEmbedding(dim, tokens)
    absolute.emb.weight.data = add.table.data * dim**0.5
    ways = [
        Way("", lambda: add(x, at)),
        Way("torch.nn.Embedding, added", lambda: x + embedding(at), less=RANGE),
        Way("x-transformers", lambda: x + absolute(x, at)),
    ]
    return Case("learned", "AddLearned", f"{batch} × {tokens} × {dim}", ways)


def resized(batch, heads, tokens):
    modeling, dim, side = peer(f"{MODELS}.vit.modeling_vit"), heads * DIM, 8
    config = modeling.ViTConfig(hidden_size=dim, image_size=side, patch_size=1)
    theirs, grid = modeling.ViTEmbeddings(config), (tokens // 4, 4)
    patches = torch.zeros(1, 1 + tokens // 4 * 4, dim)

    def ours():
        table = theirs.position_embeddings
        return resize_table(table, (side, side), grid, convention="bicubic", extra=1)

    ways = [
        Way("", ours),
        Way("transformers' ViT", lambda: theirs.interpolate_pos_encoding(patches, *grid)),
    ]
    return Case(
        "vit_table", "resize_table, bicubic", f"{side} × {side} to {grid[0]} × {grid[1]}, {dim}", ways
    )


def embed(batch, heads, tokens):
    dim, words = heads * DIM, 4096
    ids, at = torch.randint(words, (batch, tokens)), torch.arange(tokens)
    ours = Embed(nn.Embedding(words, dim), AddLearned(tokens, dim), scale=dim**0.5)
    word, place = (nn.Embedding.from_pretrained(w.data, freeze=False) for w in ours.parameters())
    ways = [
        Way("", lambda: ours(ids, at)),
        Way("torch.nn.Embedding, twice", lambda: dim**0.5 * word(ids) + place(at), less=RANGE),
    ]
    return Case("embed", "Embed with AddLearned", f"{batch} × {tokens} × {dim}, {words} words", ways)


def gated(batch, heads, tokens):
    dim = heads * DIM
    given = [learnable(batch, tokens, dim), learnable(tokens, dim), learnable(dim), learnable()]
    ways = [Way("", lambda: gated_encoding(*given))]
    return Case("gated_encoding", "gated_encoding", f"{batch} × {tokens} × {dim}", ways)


def walks(batch, heads, tokens):
    nodes, steps = min(tokens, 256), 16
    drawn = (torch.rand(nodes, nodes) < 8 / nodes).triu(1)
    ring = torch.eye(nodes).bool().roll(1, 0)  # no node is without edges
    adjacency = (drawn | drawn.mT | ring | ring.mT).double()
    ways = [Way("", lambda: random_walk_encoding(adjacency, steps))]
    return Case("graph_positions", "random_walk_encoding", f"{nodes} nodes, {steps} steps", ways)


CASES = [sinusoids, sinusoids_t2t, sinusoids_2d, learned, embed, gated, walks]
CASES = [sinusoids, sinusoids_t2t, sinusoids_2d, learned, resized, embed, gated]
