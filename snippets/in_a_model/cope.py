"""GPT-2 of transformers scores by cope.py, and has no other positions.

No checkpoint has CoPE's table: it is learned with the rest, one for each
layer. A model of transformers calls the attention that its configuration
names. Rows must be of one length: padding is not hidden.
"""

import torch
from transformers import AttentionInterface

from snippets.cope import CopeScores


def attention(layer, q, k, v, mask, **_):
    weights = layer.cope(q, k).softmax(-1)  # which hides later keys
    return (weights @ v).transpose(1, 2), None


def patch_model(model, rows):
    for block in model.transformer.h:
        block.attn.cope = CopeScores(block.attn.head_dim, rows)
    model.transformer.wpe.forward = lambda positions: torch.zeros(
        (), device=positions.device
    )
    AttentionInterface.register("cope", attention)
    model.set_attn_implementation("cope")
