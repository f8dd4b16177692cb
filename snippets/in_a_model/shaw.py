"""Wav2Vec2-BERT of transformers gets its relative keys from shaw.py.

The table of each layer is self_attn.distance_embedding.weight of its
checkpoint. It clips later keys sooner than earlier ones: those that it clips
share the last row.
"""

import torch
from transformers.models.wav2vec2_bert import modeling_wav2vec2_bert

from snippets.shaw import shaw_scores


def patch_model(model):
    def relative(attention, q, k):
        table = attention.distance_embedding.weight
        missing = (
            attention.left_max_position_embeddings
            - attention.right_max_position_embeddings
        )
        table = torch.cat((table, table[-1:].expand(missing, -1)))
        queries, keys = torch.arange(q.shape[-2]), torch.arange(k.shape[-2])
        # the model adds the products of q and k itself
        return q, shaw_scores(q, torch.zeros_like(k), table, queries, keys)

    modeling_wav2vec2_bert._apply_relative_key_position_encoding = relative
