"""Llama of transformers attends by attention.py, which also gives the weights
of each head.

A model of transformers calls the attention that its configuration names, and
hands it a mask to add to the scores: 0, or the least number of its dtype where
a key is hidden.
"""

from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from snippets.attention import attention


def attend(layer, q, k, v, mask, **_):
    # queries for each head of keys and values
    groups = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(groups, 1) for x in (k, v))
    output, weights = attention(q, k, v, bias=mask)
    return output.transpose(1, 2), weights


def patch_model(model):
    AttentionInterface.register("attention.py", attend)
    AttentionMaskInterface.register("attention.py", eager_mask)
    model.set_attn_implementation("attention.py")
