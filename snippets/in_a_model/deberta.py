"""DeBERTa-v3 of transformers gets its terms of distance from deberta.py.

The rows are deberta.encoder.rel_embeddings.weight of its checkpoint, after the
norm of deberta.encoder.LayerNorm, projected by query_proj and key_proj of each
layer, which its share_att_key asks.
"""

import math

import torch

from snippets.deberta import deberta_scores


def patch_model(model):
    for layer in model.deberta.encoder.layer:
        attention = layer.attention.self
        attention.disentangled_attention_bias = terms_of(attention)


def terms_of(attention):
    heads, most = (
        attention.num_attention_heads,
        attention.max_relative_positions,
    )

    def terms(q, k, relative_pos, rows, scale_factor):
        # (batch, heads, tokens, dim)
        q, k = q.unflatten(0, (-1, heads)), k.unflatten(0, (-1, heads))
        key_rows, query_rows = (
            project(rows).unflatten(-1, (heads, -1)).transpose(0, 1)
            for project in (attention.key_proj, attention.query_proj)
        )
        queries, keys = torch.arange(q.shape[-2]), torch.arange(k.shape[-2])
        scores = deberta_scores(q, k, key_rows, query_rows, queries, keys, most)
        # which the model adds itself
        content = q @ k.mT / math.sqrt(scale_factor * q.shape[-1])
        return (scores - content).flatten(0, 1)

    return terms
