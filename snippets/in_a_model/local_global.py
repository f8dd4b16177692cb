"""GPT-2 of transformers scores by local_global.py, and has no other positions.

No checkpoint has the two tables: they are learned with the rest, here by all
layers together. A model of transformers calls the attention that its
configuration names. Rows must be of one length: padding is not hidden.
"""

import torch
from transformers import AttentionInterface

from snippets.local_global import LocalGlobal


def attention(layer, q, k, v, mask, **_):
    keys = torch.arange(k.shape[-2], device=k.device)
    queries = keys[-q.shape[-2] :]  # the last of them, if there is a cache
    later = keys > queries[:, None]
    scores = layer.tables(q, k, queries, keys).masked_fill(later, -torch.inf)
    return (scores.softmax(-1) @ v).transpose(1, 2), None


def patch_model(model, **sizes):
    tables = LocalGlobal(model.transformer.h[0].attn.head_dim, **sizes)
    for block in model.transformer.h:
        block.attn.tables = tables
    model.transformer.wpe.forward = lambda positions: torch.zeros(
        (), device=positions.device
    )
    AttentionInterface.register("local_global", attention)
    model.set_attn_implementation("local_global")
