"""gpt-oss of transformers attends by sinks.py, with the sinks of its
checkpoint.

A model of transformers calls the attention that its configuration names. It
hands it each layer's sinks as s_aux, and a mask to add to the scores: 0, or
the least number of its dtype where a key is hidden.
"""

from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from snippets.sinks import sink_softmax


def attend(layer, q, k, v, mask, scaling, s_aux, **_):
    # queries for each head of keys and values
    groups = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(groups, 1) for x in (k, v))
    weights = sink_softmax(q @ k.mT * scaling + mask, s_aux)
    return (weights @ v).transpose(1, 2), weights


def patch_model(model):
    AttentionInterface.register("sinks.py", attend)
    AttentionMaskInterface.register("sinks.py", eager_mask)
    model.set_attn_implementation("sinks.py")
